/* Sums over neighbours of the rows that incremental inference makes again. */
#include "vectors.h"

typedef float v1 __attribute__((vector_size(4), aligned(4), may_alias));

#define SUMS(type, V)                                                                                         \
    {                                                                                                         \
        type a[V];                                                                                            \
        for (int v = 0; v < V; ++v) a[v] = (type){0};                                                         \
        for (int32_t j = begin; j < end; ++j) {                                                               \
            const float *x = X + (int64_t)indices[j] * K + at;                                                \
            for (int v = 0; v < V; ++v) a[v] += ((const type *)x)[v];                                         \
        }                                                                                                     \
        for (int v = 0; v < V; ++v) ((type *)(out + at))[v] = a[v];                                           \
    }

/* out [K] = sum over the neighbours begin..end-1 of a row, in order. */
INLINE void neighbour_sum(int32_t begin, int32_t end, const int32_t *indices, int64_t K, const float *X, float *out) {
    int64_t at = 0;
    for (; at + 4 * COLUMNS <= K; at += 4 * COLUMNS) SUMS(vec, 4 * HELD)
    for (; at + 2 * COLUMNS <= K; at += 2 * COLUMNS) SUMS(vec, 2 * HELD)
    for (; at + COLUMNS <= K; at += COLUMNS) SUMS(vec, HELD)
    for (; at + LANES <= K; at += LANES) SUMS(vec, 1)
    for (; at + 4 <= K; at += 4) SUMS(v4, 1)
    for (; at < K; ++at) SUMS(v1, 1)
}

/* N [count][K] = the sums over the neighbours of `rows`, times factor[code]. */
static void neighbour_sums(int64_t count, const int32_t *rows, const int32_t *indptr, const int32_t *indices, int64_t K,
                           const float *X, const float *factor, const int32_t *code, float *N) {
    for (int64_t i = 0; i < count; ++i) {
        const int64_t row = rows[i];
        if (i + 1 < count) __builtin_prefetch(indices + indptr[rows[i + 1]], 0, 3);
        neighbour_sum(indptr[row], indptr[row + 1], indices, K, X, N + i * K);
        for (int64_t k = 0; k < K; ++k) N[i * K + k] *= factor[code[i]];
    }
}
