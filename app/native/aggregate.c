/* Several aggregators over stored entries, as in app/numerics/aggregation.py: the same operations in the same order, row
 * by row. Mean, largest, smallest and squares are made in one pass over the entries, column by column beside each other. */
#include <math.h>

#include "pattern.h"

static const float EPSILON = 1e-5f; /* added to a variance before its root is taken */

/* One more row x [k] to a mean and to squares about it. */
INLINE void hear(int64_t k, const float *restrict x, float inverse, float *restrict mean, float *restrict square) {
    for (int64_t i = 0; i < k; ++i) {
        const float d = x[i] - mean[i], m = mean[i] + d * inverse;
        square[i] += d * (x[i] - m);
        mean[i] = m;
    }
}

typedef float floats __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t masks __attribute__((vector_size(16), aligned(4), may_alias));
enum { AT_ONCE = 4 };

/* one where the mask is set, else other. */
#define PICK(mask, one, other) ((floats)(((masks)(one) & (mask)) | ((masks)(other) & ~(mask))))

/* The best of a row so far, and whose it is; x is better where `x RELATION best`. */
#define BETTER(function, RELATION)                                                                     \
    INLINE void function(int64_t k, const float *x, float name, float *best, float *whose) {           \
        const floats names = {name, name, name, name};                                                 \
        int64_t i = 0;                                                                                 \
        for (; i + AT_ONCE <= k; i += AT_ONCE) {                                                       \
            const floats now = *(const floats *)(x + i), old = *(const floats *)(best + i);            \
            const masks better = now RELATION old;                                                     \
            *(floats *)(best + i) = PICK(better, now, old);                                            \
            *(floats *)(whose + i) = PICK(better, names, *(const floats *)(whose + i));                \
        }                                                                                              \
        for (; i < k; ++i) {                                                                           \
            if (x[i] RELATION best[i]) best[i] = x[i], whose[i] = name;                                \
        }                                                                                              \
    }

BETTER(highest, >)
BETTER(lowest, <)

/* V [n, 4 k]: mean | max | min | squares.  T [n, 2 k + 1]: name of max | of min | count.  E [*, k + 1]: row | name. */
void lk_aggregate_add(const Pattern *a, int64_t k, const float *E, float *V, float *T) {
    for (int64_t row = 0; row < a->n; ++row) {
        float *v = V + row * 4 * k, *t = T + row * (2 * k + 1), count = t[2 * k];
        const int64_t end = number(a->indptr, a->wide, row + 1);
        for (int64_t p = number(a->indptr, a->wide, row); p < end; ++p) {
            count += 1.0f;
            const float *x = E + number(a->indices, a->wide, p) * (k + 1);
            hear(k, x, 1.0f / count, v, v + 3 * k);
            highest(k, x, x[k], v + k, t);
            lowest(k, x, x[k], v + 2 * k, t + k);
        }
        t[2 * k] = count;
    }
}

/* One entry's part of the gradient g [k] by a row x [k] of this name; F [7 k] as in aggregate_pack. */
INLINE void add_part(int64_t k, const float *restrict F, const float *restrict x, float name, float *restrict g) {
    for (int64_t i = 0; i < k; ++i) {
        float part = F[i] + F[k + i] * (x[i] - F[2 * k + i]);
        part += F[5 * k + i] == name ? F[3 * k + i] : 0.0f;
        part += F[6 * k + i] == name ? F[4 * k + i] : 0.0f;
        g[i] += part;
    }
}

/* dS [n, k] += the parts of all entries. F [*, 7 k], S [n, k], names [n]. */
void lk_aggregate_back(const Pattern *a, int64_t k, const float *F, const float *S, const float *names, float *dS) {
    for (int64_t row = 0; row < a->n; ++row) {
        const int64_t end = number(a->indptr, a->wide, row + 1);
        for (int64_t p = number(a->indptr, a->wide, row); p < end; ++p)
            add_part(k, F + number(a->indices, a->wide, p) * 7 * k, S + row * k, names[row], dS + row * k);
    }
}

/* Deviations in the place of squares; rows that hear nothing are zero. */
void lk_aggregate_finish(int64_t n, int64_t k, float *V, const float *T) {
    for (int64_t row = 0; row < n; ++row) {
        float *v = V + row * 4 * k;
        const float count = T[row * (2 * k + 1) + 2 * k];
        if (count > 0.0f)
            for (int64_t i = 3 * k; i < 4 * k; ++i) v[i] = sqrtf(v[i] / count + EPSILON);
        else
            memset(v, 0, (size_t)(4 * k) * 4);
    }
}

/* F [n, 7 k] of D, V [n, 4 k] and T [n, 2 k + 1]. */
void lk_aggregate_pack(int64_t n, int64_t k, const float *D, const float *V, const float *T, float *F) {
    for (int64_t row = 0; row < n; ++row) {
        const float *d = D + row * 4 * k, *v = V + row * 4 * k, *t = T + row * (2 * k + 1), count = t[2 * k];
        float *f = F + row * 7 * k;
        for (int64_t i = 0; i < k; ++i) {
            f[i] = count > 0.0f ? d[i] / count : 0.0f;
            f[k + i] = count > 0.0f ? d[3 * k + i] / (count * v[3 * k + i]) : 0.0f;
        }
        memcpy(f + 2 * k, v, (size_t)k * 4);
        memcpy(f + 3 * k, d + k, (size_t)(2 * k) * 4);
        memcpy(f + 5 * k, t, (size_t)(2 * k) * 4);
    }
}
