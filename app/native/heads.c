/* Heads of edges, as in app/numerics/heads.py: the same operations in the same order, entry by entry; no row is copied.
 *
 * The rows of a node are three parts of h columns. Lanes are columns of one entry. */
#include <math.h>

#include "common.h"

enum { AHEAD = 6, LINE = 16 };

/* Ask for the row of an entry that comes soon. */
INLINE void fetch(int64_t e, int64_t k, int64_t width, const int32_t *column, const float *X) {
    if (e + AHEAD >= k) return;
    const float *next = X + (int64_t)column[e + AHEAD] * width;
    for (int64_t j = 0; j < width; j += LINE) __builtin_prefetch(next + j);
}

/* Z, X [*, 3h] rows of the ends; bias [h] or NULL; U [k, h], which is added where `begun`. */
WIDE void lk_head_units(int64_t k, int64_t h, const int32_t *row, const int32_t *column, const float *Z, const float *X,
                        const float *bias, int64_t begun, float *restrict U) {
    for (int64_t e = 0; e < k; ++e) {
        const float *a = Z + (int64_t)row[e] * 3 * h, *b = X + (int64_t)column[e] * 3 * h;
        float *restrict u = U + e * h;
        fetch(e, k, 3 * h, column, X);
        for (int64_t j = 0; j < h; ++j) {
            float m = a[j] + b[j];
            m += a[h + j] * b[h + j];
            m += fabsf(a[2 * h + j] - b[2 * h + j]);
            if (begun) m += u[j];
            if (bias) m += bias[j];
            u[j] = m <= 0.0f ? 0.0f : m;
        }
    }
}

/* U [k, h]; G [k, h] becomes 0 where U is; D [*, 3h] rows from `first` on. */
WIDE void lk_head_back(int64_t k, int64_t h, const int32_t *row, const int32_t *column, const float *Z, const float *X,
                       const float *U, float *restrict G, float *restrict D, int64_t first) {
    for (int64_t e = 0; e < k; ++e) {
        const float *a = Z + (int64_t)row[e] * 3 * h, *b = X + (int64_t)column[e] * 3 * h, *u = U + e * h;
        float *restrict g = G + e * h, *restrict d = D + (row[e] - first) * 3 * h;
        fetch(e, k, 3 * h, column, X);
        for (int64_t j = 0; j < h; ++j) {
            const float x = u[j] > 0.0f ? g[j] : 0.0f, away = a[2 * h + j] - b[2 * h + j];
            g[j] = x;
            d[j] += x;
            d[h + j] += x * b[h + j];
            d[2 * h + j] += away > 0.0f ? x : away < 0.0f ? -x : 0.0f;
        }
    }
}
