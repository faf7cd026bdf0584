/* Products of device.py. One output element is one left-to-right chain; registers hold different outputs. */
#include "lanes.h"

/* Y [n, c] *= (live != 0) * (gate > 0): what live_* do as they go. */
WIDE static void gate_rows(int64_t rows, int64_t f, float *Y, const float *live, const Gate *gate) {
    for (int64_t r = 0; r < rows; ++r) {
        const float *g = gate_row(gate, f, r);
        float *y = Y + r * f;
        if (live && live[r] == 0.0f) memset(y, 0, (size_t)f * 4);
        else
            for (int64_t j = 0; j < f; ++j) y[j] *= g[j] > 0.0f ? 1.0f : 0.0f;
    }
}

/* Y [n, c] += A X as lk_spmm. Rows are those of c / f states side by side. live [n][c / f], or null: rows of Y where it
 * is 0 may be left out, and where `first` be zero; with a gate they are. gate, or null (needs first): the sums times
 * (gate > 0). */
void lk_spmm_live(int64_t n, int64_t m, int wide, const void *indptr, const void *indices, const float *data, int64_t c,
                  int64_t f, const float *X, float *Y, const float *live, int first, const Gate *gate, int64_t tile) {
    const int alone = c == f && !first;
    if (!live || alone || wide || f % 16 || is_far(m, c) || c > STATES * f) {
        lk_spmm(n, m, wide, indptr, indices, data, c, X, Y, c, alone ? live : 0, first, tile);
        if (gate) gate_rows(n * (c / f), f, Y, live, gate);
    } else lk_lanes()->live(n, indptr, indices, data, c, f, X, Y, live, first, gate);
}

/* One product for each graph of a batch: `table` [members][9] holds n, m, wide, indptr, indices, data (addresses),
 * the first row of the graph in X and in Y, and how many rows of f columns stand side by side for a node. */
void lk_spmm_members(int64_t members, const int64_t *table, int64_t f, const float *X, float *Y, const float *live,
                     int first, const Gate *gate, int64_t tile) {
    for (const int64_t *t = table; t < table + 9 * members; t += 9) {
        Gate own = {0};
        if (gate)
            own = (Gate){gate->values + (gate->index ? 0 : t[7] * f), gate->index ? gate->index + t[7] : 0};
        lk_spmm_live(t[0], t[1], (int)t[2], (const void *)(intptr_t)t[3], (const void *)(intptr_t)t[4],
                     (const float *)(intptr_t)t[5], t[8] * f, f, X + t[6] * f, Y + t[7] * f, live ? live + t[7] : 0,
                     first, gate ? &own : 0, tile);
    }
}

/* Y += A X where X[u, s] = table[code[u, s]]. Members, live and first as above; f columns in a row of the table. */
void lk_lookup_members(int64_t members, const int64_t *graphs, int64_t f, const float *table, const int32_t *code,
                       float *Y, const float *live, int first) {
    for (const int64_t *t = graphs; t < graphs + 9 * members; t += 9)
        lk_lanes()->lookup(t[0], t[2] != 0, (const void *)(intptr_t)t[3], (const void *)(intptr_t)t[4], t[8], f, table,
                           code + t[6], Y + t[7] * f, live ? live + t[7] : 0, first);
}

/* ---- sums of rows -----------------------------------------------------------------------------------------
 * out[i] = X[starts[i]] + X[starts[i]+1] + ... from the left; rows of `c` floats, `ldo` apart in out. */

WIDE static void fold_rows(int64_t k, const int64_t *starts, const float *X, int64_t c, float *out, int64_t ldo) {
    for (int64_t i = 0; i < k; ++i) {
        float *o = out + i * ldo;
        memset(o, 0, (size_t)c * 4);
        for (int64_t r = starts[i]; r < starts[i + 1]; ++r) {
            const float *x = X + r * c;
            for (int64_t j = 0; j < c; ++j) o[j] += x[j];
        }
    }
}

void lk_fold(int64_t k, const int64_t *starts, const float *X, int64_t c, float *out) {
    fold_rows(k, starts, X, c, out, c);
}

/* Sums of the rows of X [rows, m] by subtrees of row blocks: out [spans, m], span i of blocks span[3 i] ..
 * span[3 i + 1] - 1, at least one. One level of a subtree after another, neighbours in pairs, as merge_rows of
 * app/numerics/products.py; sums: room for [blocks of the widest span, m]. */
WIDE void lk_column_roots(const int64_t *starts, const float *X, int64_t m, int64_t spans, const int64_t *span,
                          float *sums, float *out) {
    for (int64_t i = 0; i < spans; ++i) {
        int64_t first = span[3 * i], left = span[3 * i + 1] - first;
        fold_rows(left, starts + first, X, m, sums, m);
        for (; left > 1; left = (left + 1) / 2)
            for (int64_t k = 0; k < (left + 1) / 2; ++k) {
                const float *a = sums + 2 * k * m;
                float *to = sums + k * m;
                if (2 * k + 1 < left)
                    for (int64_t j = 0; j < m; ++j) to[j] = a[j] + a[m + j];
                else memmove(to, a, (size_t)m * 4);
            }
        memcpy(out + i * m, sums, (size_t)m * 4);
    }
}

/* For each graph g its counts[g] states: out[b][first[g]*f ..] = sum over the rows of block b (starts as in Gram,
 * in rows of counts[g]*f floats counted from the graph's own first row at[g]). */
void lk_pool(int64_t graphs, int64_t blocks, const int64_t *starts, const int64_t *at, const int64_t *counts,
             const int64_t *first, int64_t states, int64_t f, const float *X, float *out) {
    for (int64_t g = 0; g < graphs; ++g)
        fold_rows(blocks, starts + g * (blocks + 1), X + at[g] * f, counts[g] * f, out + first[g] * f, states * f);
}

/* out [rows, m]: values[index[r]] where gate[r] > 0, else 0 times it. */
WIDE void lk_gated_spread(int64_t rows, int64_t m, const float *values, const int32_t *index, const float *gate,
                          float *out) {
    for (int64_t r = 0; r < rows; ++r) {
        const float *v = values + (int64_t)index[r] * m, *g = gate + r * m;
        float *o = out + r * m;
        for (int64_t j = 0; j < m; ++j) o[j] = v[j] * (g[j] > 0.0f ? 1.0f : 0.0f);
    }
}

/* For every state of every graph its best candidate: top [states] (LOWEST: none), where [states] its local row. The
 * first of equal scores wins, as in an argmax; a NaN is above all. */
void lk_best_rows(int64_t graphs, const int64_t *at, const int64_t *counts, const int64_t *first, const int64_t *rows,
                  const float *score, const uint8_t *candidate, float lowest, float least, float *top, int64_t *where) {
    for (int64_t g = 0; g < graphs; ++g) {
        const float *x = score + at[g];
        const uint8_t *c = candidate + at[g];
        float *best = top + first[g];
        int64_t *row = where + first[g];
        for (int64_t s = 0; s < counts[g]; ++s) best[s] = lowest, row[s] = 0;
        for (int64_t i = 0; i < rows[g]; ++i, x += counts[g], c += counts[g])
            for (int64_t s = 0; s < counts[g]; ++s) {
                if (!c[s]) continue;
                const float v = x[s] < least ? least : x[s];
                if (v > best[s] || (v != v && best[s] == best[s])) best[s] = v, row[s] = i;
            }
    }
}
