/* Which rows of a table hold all columns of another; app/reductions/domination/table_rows.py does the same by sorted keys. */
#include "common.h"

/* first: [rows] of each row the column that fewest rows have, the lowest of equals; -1: the row has none. */
void lk_rarest_columns(int64_t rows, const int64_t *indptr, const int32_t *indices, const int64_t *degree, int32_t *first) {
    for (int64_t u = 0; u < rows; ++u) {
        first[u] = -1;
        for (int64_t e = indptr[u]; e < indptr[u + 1]; ++e)
            if (first[u] < 0 || degree[indices[e]] < degree[first[u]]) first[u] = indices[e];
    }
}

/* Whether the ascending numbers a [m] are all among the ascending numbers b [n]. */
static int holds(const int32_t *b, int64_t n, const int32_t *a, int64_t m) {
    int64_t at = 0;
    for (int64_t i = 0; i < m; ++i, ++at) {
        if (n - at < m - i) return 0;
        if (16 * (m - i) < n - at) { /* much longer: the next one is far ahead */
            int64_t from = at, to = n;
            while (from < to) {
                const int64_t middle = from + (to - from) / 2;
                if (b[middle] < a[i]) from = middle + 1;
                else to = middle;
            }
            at = from;
        } else {
            while (at < n && b[at] < a[i]) ++at;
        }
        if (at == n || b[at] != a[i]) return 0;
    }
    return 1;
}

/* Pairs (u, v) where row v holds all of row u = of[i], i < count, for v != u among the rows that have u's first column:
 * turned_indptr and turned are the rows of each column. Of kept rows v alone. Returns how many; both ascending. */
int64_t lk_rows_within(int64_t count, const int64_t *of, const int64_t *indptr, const int32_t *indices,
                       const int32_t *first, const int64_t *turned_indptr, const int32_t *turned, const uint8_t *kept,
                       int64_t *us, int64_t *vs) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t u = of[i], size = indptr[u + 1] - indptr[u], end = turned_indptr[first[u] + 1];
        for (int64_t e = turned_indptr[first[u]]; e < end; ++e) {
            if (e + 4 < end) __builtin_prefetch(indptr + turned[e + 4]);
            if (e + 2 < end) __builtin_prefetch(indices + indptr[turned[e + 2]]);
            const int64_t v = turned[e], length = indptr[v + 1] - indptr[v];
            if (v == u || length < size || !kept[v]) continue;
            if (!holds(indices + indptr[v], length, indices + indptr[u], size)) continue;
            us[found] = u;
            vs[found++] = v;
        }
    }
    return found;
}
