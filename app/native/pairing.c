/* Entries of sparse matrices of whole numbers, and sums of products of two; app/graphs/pairing.py. Columns of rows are
 * ascending. */
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { SHORT = 32 }; /* entries of a row that are searched; of a longer one a copy is made in full */

/* The entry of one row at a column, 0 where it has none. */
INLINE int64_t entry_of(const int32_t *near, const int64_t *data, int64_t start, int64_t end, int64_t column) {
    while (start < end) {
        const int64_t middle = start + (end - start) / 2;
        if (near[middle] < column) start = middle + 1;
        else if (near[middle] > column) end = middle;
        else return data[middle];
    }
    return 0;
}

/* found[i] is the entry at rows[i], columns[i], 0 where there is none. */
void lk_pairing_entries(int64_t count, const int64_t *ptr, const int32_t *near, const int64_t *data, const int64_t *rows,
                        const int64_t *columns, int64_t *found) {
    for (int64_t i = 0; i < count; ++i)
        found[i] = entry_of(near, data, ptr[rows[i]], ptr[rows[i] + 1], columns[i]);
}

/* The sum of a_ij b_p(i)p(j), of nodes that p [n] has a place for (-1: none); b has m rows; modulo 2^64. Returns -1
 * without memory. */
int64_t lk_pairing_products(int64_t n, int64_t m, const int64_t *a_ptr, const int32_t *a_near, const int64_t *a_data,
                            const int64_t *b_ptr, const int32_t *b_near, const int64_t *b_data, const int64_t *p,
                            int64_t *sum) {
    int64_t *full = calloc((size_t)m + 1, sizeof *full);
    uint64_t total = 0;
    if (!full) return -1;
    for (int64_t i = 0; i < n; ++i) {
        if (p[i] < 0) continue;
        const int64_t start = b_ptr[p[i]], end = b_ptr[p[i] + 1];
        const int wide = end - start > SHORT;
        for (int64_t j = start; wide && j < end; ++j) full[b_near[j]] = b_data[j];
        for (int64_t j = a_ptr[i]; j < a_ptr[i + 1]; ++j) {
            const int64_t to = p[a_near[j]];
            if (to < 0) continue;
            const int64_t each = wide ? full[to] : entry_of(b_near, b_data, start, end, to);
            total += (uint64_t)a_data[j] * (uint64_t)each;
        }
        for (int64_t j = start; wide && j < end; ++j) full[b_near[j]] = 0;
    }
    free(full);
    *sum = (int64_t)total;
    return 0;
}
