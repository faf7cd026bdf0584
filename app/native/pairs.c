/* Pairs of nodes scored by the product of their rows, as in app/numerics/pairs.py: the same operations in the same order,
 * row by row.
 *
 * Entries are taken in groups: first their scores, of which the losses and gradients fill whole registers, then the rows
 * that these weigh, which are near by then. */
#include "elementary.h"
#include "pattern.h"

enum { LANES = 16, GROUP = 64, AHEAD = 4 };

typedef float v16 __attribute__((vector_size(64), aligned(4), may_alias));

INLINE float lane_dot(const float *x, const float *y, int64_t d) {
    float lanes[LANES] = {0};
    v16 sum = *(const v16 *)lanes;
    int64_t c = 0;
    for (; c + LANES <= d; c += LANES) sum += *(const v16 *)(x + c) * *(const v16 *)(y + c);
    *(v16 *)lanes = sum;
    for (int64_t j = 0; c + j < d; ++j) lanes[j] += x[c + j] * y[c + j];
    for (int64_t half = LANES / 2; half; half /= 2)
        for (int64_t j = 0; j < half; ++j) lanes[j] += lanes[half + j];
    return lanes[0];
}

/* y [d] += g[q] x_q of `count` entries: chains over q, whose sums stay in registers. */
INLINE void add_rows(int64_t count, int64_t d, const float **rows, const float *g, float *restrict y) {
    int64_t c = 0;
    for (; c + LANES <= d; c += LANES) {
        v16 sum = *(const v16 *)(y + c);
        for (int64_t q = 0; q < count; ++q) sum += g[q] * *(const v16 *)(rows[q] + c);
        *(v16 *)(y + c) = sum;
    }
    for (; c < d; ++c) {
        float sum = y[c];
        for (int64_t q = 0; q < count; ++q) sum += g[q] * rows[q][c];
        y[c] = sum;
    }
}

/* X [*, d] rows of the columns; Z, Y [n, d]; losses [n]. */
WIDE void lk_pair_add(const Pattern *a, int64_t d, const float *X, const float *Z, float target, float weight, float *Y,
                      float *losses) {
    float s[GROUP] = {0}, g[GROUP], terms[GROUP];
    const float *rows[GROUP];
    for (int64_t row = 0; row < a->n; ++row) {
        const float *z = Z + row * d;
        float total = losses[row];
        const int64_t end = number(a->indptr, a->wide, row + 1);
        for (int64_t p = number(a->indptr, a->wide, row); p < end; p += GROUP) {
            const int64_t count = end - p < GROUP ? end - p : GROUP;
            for (int64_t q = 0; q < count; ++q) rows[q] = X + number(a->indices, a->wide, p + q) * d;
            for (int64_t q = 0; q < count; ++q) {
                if (q + AHEAD < count)
                    for (int64_t j = 0; j < d; j += LANES) __builtin_prefetch(rows[q + AHEAD] + j);
                s[q] = lane_dot(z, rows[q], d);
            }
            for (int64_t t = 0; t < (count + LANES - 1) / LANES * LANES; ++t) {
                const float x = s[t], e = exp_float(-fabsf(x)), below = 1.0f + e;
                terms[t] = ((x > 0.0f ? x : 0.0f) - x * target) + log_float(below);
                g[t] = ((x < 0.0f ? e : 1.0f) / below - target) * weight;
            }
            for (int64_t q = 0; q < count; ++q) total += terms[q];
            add_rows(count, d, rows, g, Y + row * d);
        }
        losses[row] = total;
    }
}

/* out [k]: the products of rows of X and Y [k, d]. */
WIDE void lk_pair_dots(int64_t k, int64_t d, const float *X, const float *Y, float *out) {
    for (int64_t i = 0; i < k; ++i) out[i] = lane_dot(X + i * d, Y + i * d, d);
}
