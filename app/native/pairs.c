/* Pairs of nodes scored by the product of their rows, as in app/numerics/pairs.py: the same operations in the same order,
 * row by row.
 *
 * Entries are taken in groups: first their scores, of which the losses and gradients fill whole registers, then the rows
 * that these weigh, which are near by then. */
#include "elementary.h"
#include "pattern.h"

enum { LANES = 16, GROUP = 64, AHEAD = 12 };

typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));

/* The first eight lanes of a product and the last, added up in halves. */
INLINE float halves(v8 low, v8 high) {
    const v8 eight = low + high;
    const v4 first = {eight[0], eight[1], eight[2], eight[3]}, last = {eight[4], eight[5], eight[6], eight[7]};
    const v4 four = first + last;
    return (four[0] + four[2]) + (four[1] + four[3]);
}

INLINE float lane_dot(const float *x, const float *y, int64_t d) {
    v8 low = {0}, high = {0};
    int64_t c = 0;
    for (; c + LANES <= d; c += LANES) {
        low += *(const v8 *)(x + c) * *(const v8 *)(y + c);
        high += *(const v8 *)(x + c + 8) * *(const v8 *)(y + c + 8);
    }
    if (c < d) { /* fewer columns, and zeros */
        float lanes[LANES] = {0};
        for (int64_t k = 0; c + k < d; ++k) lanes[k] = x[c + k] * y[c + k];
        low += *(const v8 *)lanes;
        high += *(const v8 *)(lanes + 8);
    }
    return halves(low, high);
}

/* y [d] += g[q] x_q of `count` entries: chains over q, whose sums stay in registers. */
INLINE void add_rows(int64_t count, int64_t d, const float **rows, const float *g, float *restrict y) {
    int64_t c = 0;
    for (; c + LANES <= d; c += LANES) {
        v8 low = *(const v8 *)(y + c), high = *(const v8 *)(y + c + 8);
        for (int64_t q = 0; q < count; ++q) {
            low += g[q] * *(const v8 *)(rows[q] + c);
            high += g[q] * *(const v8 *)(rows[q] + c + 8);
        }
        *(v8 *)(y + c) = low;
        *(v8 *)(y + c + 8) = high;
    }
    for (; c < d; ++c) {
        float sum = y[c];
        for (int64_t q = 0; q < count; ++q) sum += g[q] * rows[q][c];
        y[c] = sum;
    }
}

/* X [*, d] rows of the columns; Z, Y [n, d]; losses [n]. Entries of several rows are taken together. */
WIDE void lk_pair_add(const Pattern *a, int64_t d, const float *X, const float *Z, float target, float weight, float *Y,
                      float *losses) {
    float s[GROUP] = {0}, g[GROUP], terms[GROUP];
    const float *rows[GROUP];
    const int64_t end = number(a->indptr, a->wide, a->n);
    int64_t row = 0;
    for (int64_t p = number(a->indptr, a->wide, 0); p < end; p += GROUP) {
        const int64_t count = end - p < GROUP ? end - p : GROUP;
        for (int64_t q = 0, r = row; q < count; ++q) {
            while (number(a->indptr, a->wide, r + 1) <= p + q) ++r;
            if (p + q + AHEAD < end) {
                const float *next = X + number(a->indices, a->wide, p + q + AHEAD) * d;
                for (int64_t j = 0; j < d; j += LANES) __builtin_prefetch(next + j);
            }
            rows[q] = X + number(a->indices, a->wide, p + q) * d;
            s[q] = lane_dot(Z + r * d, rows[q], d);
        }
        for (int64_t t = 0; t < (count + LANES - 1) / LANES * LANES; ++t) {
            const float x = s[t], e = exp_float(-fabsf(x)), below = 1.0f + e;
            terms[t] = ((x > 0.0f ? x : 0.0f) - x * target) + log_float(below);
            g[t] = ((x < 0.0f ? e : 1.0f) / below - target) * weight;
        }
        for (int64_t q = 0; q < count;) {
            while (number(a->indptr, a->wide, row + 1) <= p + q) ++row;
            const int64_t left = number(a->indptr, a->wide, row + 1) - p, stop = left < count ? left : count;
            float total = losses[row];
            for (int64_t k = q; k < stop; ++k) total += terms[k];
            losses[row] = total;
            add_rows(stop - q, d, rows + q, g + q, Y + row * d);
            q = stop;
        }
    }
}

/* What s of entries falls behind t: h(t - s) and sigmoid(t - s) weight, of the first `count` of whole registers. */
INLINE void behind(int64_t count, const float *s, const float *t, float weight, float *g, float *terms) {
    for (int64_t i = 0; i < (count + LANES - 1) / LANES * LANES; ++i) {
        const float x = t[i] - s[i], e = exp_float(-fabsf(x)), below = 1.0f + e;
        terms[i] = (x > 0.0f ? x : 0.0f) + log_float(below);
        g[i] = (x < 0.0f ? e : 1.0f) / below * weight;
    }
}

/* X [*, d + k] rows of the columns, and their scores t; Z, Y [n, d + k]; losses [n, k]. What counts nothing, as all t of
 * -inf do, is left out: it would add 0. */
WIDE void lk_rank_add(const Pattern *a, int64_t d, int64_t k, const float *X, const float *Z, float weight, float *Y,
                      float *losses) {
    float s[GROUP] = {0}, t[GROUP] = {0}, c[GROUP], g[GROUP], terms[GROUP];
    const float *rows[GROUP];
    int64_t own[GROUP];
    const int64_t width = d + k, end = number(a->indptr, a->wide, a->n);
    int64_t row = 0;
    for (int64_t p = number(a->indptr, a->wide, 0); p < end; p += GROUP) {
        const int64_t count = end - p < GROUP ? end - p : GROUP;
        for (int64_t q = 0; q < count; ++q) {
            while (number(a->indptr, a->wide, row + 1) <= p + q) ++row;
            if (p + q + AHEAD < end) {
                const float *next = X + number(a->indices, a->wide, p + q + AHEAD) * width;
                for (int64_t j = 0; j < width; j += LANES) __builtin_prefetch(next + j);
            }
            own[q] = row;
            rows[q] = X + number(a->indices, a->wide, p + q) * width;
            s[q] = lane_dot(Z + row * width, rows[q], d);
            c[q] = 0.0f;
        }
        for (int64_t r = 0; r < 2 * k; ++r) { /* against the scores of the row, then those of the column */
            const int64_t at = d + (r < k ? r : r - k);
            int some = 0;
            for (int64_t q = 0; q < count; ++q) {
                t[q] = r < k ? Z[own[q] * width + at] : rows[q][at];
                some |= !(t[q] == -INFINITY);
            }
            if (!some) continue;
            behind(count, s, t, weight, g, terms);
            for (int64_t q = 0; q < count; ++q) c[q] += g[q];
            for (int64_t q = 0; r < k && q < count; ++q) {
                Y[own[q] * width + at] += g[q];
                losses[own[q] * k + r] += terms[q];
            }
        }
        for (int64_t q = 0; q < count; ++q) c[q] = -c[q];
        for (int64_t q = 0, stop; q < count; q = stop) {
            for (stop = q + 1; stop < count && own[stop] == own[q];) ++stop;
            add_rows(stop - q, d, rows + q, c + q, Y + own[q] * width);
        }
    }
}

/* out [k]: the products of rows of X and Y [k, d]. */
WIDE void lk_pair_dots(int64_t k, int64_t d, const float *X, const float *Y, float *out) {
    for (int64_t i = 0; i < k; ++i) out[i] = lane_dot(X + i * d, Y + i * d, d);
}
