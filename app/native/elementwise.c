/* The operations on rows of app/numerics/elementwise.py: the same operations on every element in the same order. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math") /* nobody asks which exceptions were raised: both sides of a choice may run */
#endif
#include "elementary.h"
#include "random.h"

/* Which elements are dropped: see Dropout in app/numerics/elementwise.py. */
typedef struct {
    uint64_t key;
    int64_t first_row, threshold;
    float factor;
} Drop;

/* Columns of a row at a time; of a hash; rows whose chains run beside; stored entries at a time. */
enum { TILE = 256, FIELDS = 4, TOGETHER = 8, DRAWN = 1024 };

/* factor[j] of columns at..at+width-1 of a node with generator `state`: drop->factor where kept, else 0. */
INLINE void drop_factors(const Drop *drop, uint64_t state, int64_t at, int64_t width, int32_t *keep) {
    const int32_t threshold = (int32_t)drop->threshold;
    for (int64_t j = 0; j < (width + FIELDS - 1) / FIELDS; ++j) {
        const uint64_t word = splitmix(state, (uint64_t)(at / FIELDS + j));
        keep[4 * j] = (int32_t)(word & 0xFFFF) >= threshold;
        keep[4 * j + 1] = (int32_t)(word >> 16 & 0xFFFF) >= threshold;
        keep[4 * j + 2] = (int32_t)(word >> 32 & 0xFFFF) >= threshold;
        keep[4 * j + 3] = (int32_t)(word >> 48) >= threshold;
    }
}

/* z = z * factor where kept, else 0. */
INLINE void drop_tile(const Drop *drop, int64_t row, int64_t at, int64_t width, float *z) {
    int32_t keep[TILE];
    const float factor = drop->factor;
    drop_factors(drop, splitmix(drop->key, (uint64_t)(drop->first_row + row)), at, width, keep);
    for (int64_t j = 0; j < width; ++j) z[j] = keep[j] ? z[j] * factor : 0.0f;
}

/* Z [rows, m] *= scale[row]; += bias[column]; += add; relu; dropout: each only where given. Rows of Z and of add are
 * ldz and lda apart. */
WIDE void lk_activate(int64_t rows, int64_t m, float *Z, int64_t ldz, const float *scale, const float *bias,
                      const float *add, int64_t lda, int relu, const Drop *drop) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t at = 0; at < m; at += TILE) {
            const int64_t width = m - at < TILE ? m - at : TILE;
            float *z = Z + r * ldz + at;
            if (scale) {
                const float s = scale[r];
                for (int64_t j = 0; j < width; ++j) z[j] *= s;
            }
            if (bias)
                for (int64_t j = 0; j < width; ++j) z[j] += bias[at + j];
            if (add) {
                const float *a = add + r * lda + at;
                for (int64_t j = 0; j < width; ++j) z[j] += a[j];
            }
            if (relu)
                for (int64_t j = 0; j < width; ++j) z[j] = z[j] <= 0.0f ? 0.0f : z[j];
            if (drop) drop_tile(drop, r, at, width, z);
        }
}

/* The adjoint, in place over D [rows, m]; H (what activate left) or null: no relu. */
WIDE void lk_deactivate(int64_t rows, int64_t m, float *D, int64_t ldd, const float *H, int64_t ldh, const float *scale,
                        const Drop *drop) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t at = 0; at < m; at += TILE) {
            const int64_t width = m - at < TILE ? m - at : TILE;
            float *d = D + r * ldd + at;
            if (H) {
                const float *h = H + r * ldh + at;
                const float factor = drop ? drop->factor : 1.0f;
                for (int64_t j = 0; j < width; ++j) d[j] = h[j] <= 0.0f ? 0.0f : d[j] * factor;
            } else if (drop) drop_tile(drop, r, at, width, d);
            if (scale) {
                const float s = scale[r];
                for (int64_t j = 0; j < width; ++j) d[j] *= s;
            }
        }
}

typedef struct {
    int64_t wide, by_columns; /* whether offsets and columns have 8 bytes; whether the rows are columns of nodes' rows */
    int64_t first_node, first_column;
    const void *indptr, *indices;
} Stored;

/* Dropout of `count` entries of a CSR matrix: rows and columns of some, then as many hashes at a time as fit. */
WIDE void lk_drop_stored(int64_t count, const Stored *stored, const float *values, const Drop *drop, float *out) {
    uint64_t along[DRAWN], across[DRAWN];
    const uint64_t key = drop->key, threshold = (uint64_t)drop->threshold;
    const uint64_t first_node = (uint64_t)stored->first_node, first_column = (uint64_t)stored->first_column;
    const uint64_t *node = stored->by_columns ? across : along, *column = stored->by_columns ? along : across;
    const int64_t wide = stored->wide;
    const float factor = drop->factor;
    int64_t row = 0, end = count ? number(stored->indptr, wide, 1) : 0;
    for (int64_t at = 0; at < count; at += DRAWN) {
        const int64_t most = count - at < DRAWN ? count - at : DRAWN;
        for (int64_t i = 0; i < most;) {
            while (end <= at + i) end = number(stored->indptr, wide, ++row + 1);
            const int64_t stop = end - at < most ? end - at : most;
            for (; i < stop; ++i) along[i] = (uint64_t)row;
        }
        if (wide)
            for (int64_t i = 0; i < most; ++i) across[i] = (uint64_t)((const int64_t *)stored->indices)[at + i];
        else
            for (int64_t i = 0; i < most; ++i) across[i] = (uint64_t)((const int32_t *)stored->indices)[at + i];
        const float *from = values + at;
        float *to = out + at;
#pragma GCC ivdep
        for (int64_t i = 0; i < most; ++i) { /* `out` may be `values`, and is nothing else that is read */
            const uint64_t c = column[i] + first_column, state = splitmix(key, node[i] + first_node);
            const uint64_t field = splitmix(state, c / FIELDS) >> c % FIELDS * 16 & 0xFFFF;
            to[i] = field >= threshold ? from[i] * factor : 0.0f;
        }
    }
}

/* Y [rows, m] += factor * X. */
WIDE void lk_add_into(int64_t rows, int64_t m, float *Y, int64_t ldy, const float *X, int64_t ldx, float factor) {
    for (int64_t r = 0; r < rows; ++r) {
        float *y = Y + r * ldy;
        const float *x = X + r * ldx;
        for (int64_t j = 0; j < m; ++j) y[j] += x[j] * factor;
    }
}

/* Z [rows, m] = z + 1 where z > 0, else exp z. */
WIDE void lk_elu_plus_one(int64_t rows, int64_t m, float *Z, int64_t ldz) {
    for (int64_t r = 0; r < rows; ++r) {
        float *z = Z + r * ldz;
        for (int64_t j = 0; j < m; ++j) {
            const float x = z[j], e = exp_float(x < 0.0f ? x : 0.0f);
            z[j] = x > 0.0f ? x + 1.0f : e;
        }
    }
}

/* ---- losses ----------------------------------------------------------------------------------------------- */

/* The softmax cross-entropy of a row against one label; z becomes its gradient. */
INLINE float softmax_row(int64_t c, float *z, int32_t label, float weight) {
    float top = z[0], total = 0.0f;
    for (int64_t j = 1; j < c; ++j) top = z[j] > top ? z[j] : top;
    const float chosen = z[label] - top;
    for (int64_t j = 0; j < c; ++j) z[j] = exp_float(z[j] - top);
    for (int64_t j = 0; j < c; ++j) total += z[j];
    for (int64_t j = 0; j < c; ++j) z[j] = z[j] / total;
    z[label] -= 1.0f;
    for (int64_t j = 0; j < c; ++j) z[j] *= weight;
    return (log_float(total) - chosen) * weight;
}

WIDE void lk_softmax_loss(int64_t rows, int64_t c, float *Z, int64_t ldz, const int32_t *labels, const float *weight,
                          float *losses) {
    for (int64_t r = 0; r < rows; ++r) {
        if (labels[r] >= 0 && labels[r] < c && weight[r] != 0.0f)
            losses[r] = softmax_row(c, Z + r * ldz, labels[r], weight[r]);
        else {
            losses[r] = 0.0f;
            memset(Z + r * ldz, 0, (size_t)c * 4);
        }
    }
}

/* Squared error, summed over the columns of a row whose target is known, no NaN; z becomes the gradient. */
WIDE void lk_squared_loss(int64_t rows, int64_t c, float *Z, int64_t ldz, const float *targets, int64_t ldt,
                          const float *weight, float *losses) {
    for (int64_t r = 0; r < rows; ++r) {
        float *z = Z + r * ldz, total = 0.0f;
        const float *target = targets + r * ldt, twice = 2.0f * weight[r];
        const int counts = weight[r] != 0.0f;
        for (int64_t j = 0; j < c; ++j) {
            const float error = target[j] == target[j] ? z[j] - target[j] : 0.0f;
            total += error * error;
            z[j] = counts ? error * twice : 0.0f;
        }
        losses[r] = counts ? total * weight[r] : 0.0f;
    }
}

/* The same of a sigmoid against a target 0 or 1, NaN: none; z becomes the gradient but for the weight. */
INLINE float sigmoid_term(float *z, float target) {
    const float x = *z, e = exp_float(-fabsf(x)), below = 1.0f + e;
    const float gradient = (x < 0.0f ? e : 1.0f) / below - target;
    const float term = ((x > 0.0f ? x : 0.0f) - x * target) + log_float(below);
    const int known = target == target;
    *z = known ? gradient : 0.0f;
    return known ? term : 0.0f;
}

/* The sum over the columns of a row. */
INLINE float sigmoid_row(int64_t c, float *z, const float *target, float weight) {
    float total = 0.0f, terms[TILE];
    for (int64_t at = 0; at < c; at += TILE, z += TILE, target += TILE) {
        const int64_t width = c - at < TILE ? c - at : TILE;
        for (int64_t j = 0; j < width; ++j) {
            terms[j] = sigmoid_term(z + j, target[j]);
            z[j] *= weight;
        }
        for (int64_t j = 0; j < width; ++j) total += terms[j];
    }
    return total * weight;
}

/* Rows of one column, several at a time. */
INLINE void sigmoid_column(int64_t rows, float *restrict z, const float *target, const float *weight,
                           float *restrict losses) {
    for (int64_t r = 0; r < rows; ++r) {
        const float loss = (0.0f + sigmoid_term(z + r, target[r])) * weight[r];
        const int counts = weight[r] != 0.0f;
        losses[r] = counts ? loss : 0.0f;
        z[r] = counts ? z[r] * weight[r] : 0.0f;
    }
}

WIDE void lk_sigmoid_loss(int64_t rows, int64_t c, float *Z, int64_t ldz, const float *targets, int64_t ldt,
                          const float *weight, float *losses) {
    if (c == 1 && ldz == 1 && ldt == 1) {
        sigmoid_column(rows, Z, targets, weight, losses);
        return;
    }
    for (int64_t r = 0; r < rows; ++r) {
        if (weight[r] != 0.0f) losses[r] = sigmoid_row(c, Z + r * ldz, targets + r * ldt, weight[r]);
        else {
            losses[r] = 0.0f;
            memset(Z + r * ldz, 0, (size_t)c * 4);
        }
    }
}

/* The column of the largest element of each row: the first of equal ones, NaN above all. */
void lk_argmax_rows(int64_t rows, int64_t c, const float *Z, int64_t ldz, int32_t *out) {
    for (int64_t r = 0; r < rows; ++r) {
        const float *z = Z + r * ldz;
        int64_t best = 0;
        for (int64_t j = 1; j < c && z[best] == z[best]; ++j)
            if (z[j] > z[best] || z[j] != z[j]) best = j;
        out[r] = (int32_t)best;
    }
}

/* ---- layer normalisation ----------------------------------------------------------------------------------
 * A chain over the columns of a row waits for each addition: those of TOGETHER rows run side by side. The last rows are
 * taken one at a time. */

#define NORMALISE(R)                                                                                          \
    {                                                                                                         \
        const float *z = Z + r * ldz;                                                                         \
        float *y = out + r * ldy, sum[R] = {0}, square[R] = {0};                                              \
        for (int64_t j = 0; j < m; ++j)                                                                       \
            for (int i = 0; i < R; ++i) sum[i] += z[i * ldz + j];                                             \
        for (int i = 0; i < R; ++i) mean[r + i] = sum[i] = sum[i] / size;                                     \
        for (int64_t j = 0; j < m; ++j)                                                                       \
            for (int i = 0; i < R; ++i) square[i] += (z[i * ldz + j] - sum[i]) * (z[i * ldz + j] - sum[i]);   \
        for (int i = 0; i < R; ++i) {                                                                         \
            const float scale = inverse[r + i] = 1.0f / sqrtf(square[i] / size + epsilon), shift = sum[i];    \
            for (int64_t j = 0; j < m; ++j)                                                                   \
                y[i * ldy + j] = (z[i * ldz + j] - shift) * scale * gamma[j] + beta[j];                       \
        }                                                                                                     \
        r += R;                                                                                               \
    }

/* out [rows, m], which may be Z, and the mean and 1 / deviation of each row. */
WIDE void lk_normalise_rows(int64_t rows, int64_t m, const float *Z, int64_t ldz, const float *gamma, const float *beta,
                            float epsilon, float *out, int64_t ldy, float *mean, float *inverse) {
    const float size = (float)m;
    int64_t r = 0;
    while (r + TOGETHER <= rows) NORMALISE(8)
    while (r < rows) NORMALISE(1)
}

#define BACK(R)                                                                                               \
    {                                                                                                         \
        float *d = D + r * ldd, first[R] = {0}, second[R] = {0};                                              \
        const float *z = Z + r * ldz;                                                                         \
        for (int i = 0; i < R; ++i) {                                                                         \
            const float shift = mean[r + i], scale = inverse[r + i];                                          \
            if (product)                                                                                      \
                for (int64_t j = 0; j < m; ++j)                                                               \
                    product[(r + i) * ldp + j] = d[i * ldd + j] * ((z[i * ldz + j] - shift) * scale);         \
            for (int64_t j = 0; j < m; ++j) d[i * ldd + j] *= gamma[j];                                       \
        }                                                                                                     \
        for (int64_t j = 0; j < m; ++j)                                                                       \
            for (int i = 0; i < R; ++i) {                                                                     \
                first[i] += d[i * ldd + j];                                                                   \
                second[i] += d[i * ldd + j] * ((z[i * ldz + j] - mean[r + i]) * inverse[r + i]);              \
            }                                                                                                 \
        for (int i = 0; i < R; ++i) {                                                                         \
            const float shift = mean[r + i], scale = inverse[r + i], a = first[i] / size, b = second[i] / size; \
            for (int64_t j = 0; j < m; ++j)                                                                   \
                d[i * ldd + j] = ((d[i * ldd + j] - a) - (z[i * ldz + j] - shift) * scale * b) * scale;       \
        }                                                                                                     \
        r += R;                                                                                               \
    }

/* The adjoint by Z in place over D; product, or null: D times the normalised rows. */
WIDE void lk_normalise_rows_back(int64_t rows, int64_t m, float *D, int64_t ldd, const float *Z, int64_t ldz,
                                 const float *mean, const float *inverse, const float *gamma, float *product,
                                 int64_t ldp) {
    const float size = (float)m;
    int64_t r = 0;
    while (r + TOGETHER <= rows) BACK(8)
    while (r < rows) BACK(1)
}

/* ---- batch normalisation -----------------------------------------------------------------------------------
 * mean, inverse (1 / deviation), gamma, beta, first, second: of columns. */

/* out [blocks, m]: by blocks of rows the sums of those that are counted, of squares above the mean where that is given. */
WIDE void lk_counted_sums(int64_t blocks, const int64_t *starts, int64_t m, const float *Z, int64_t ldz,
                          const float *counted, const float *mean, float *out) {
    for (int64_t b = 0; b < blocks; ++b) {
        float *sum = out + b * m;
        for (int64_t j = 0; j < m; ++j) sum[j] = 0.0f;
        for (int64_t r = starts[b]; r < starts[b + 1]; ++r) {
            const float *z = Z + r * ldz;
            if (counted[r] == 0.0f) continue;
            if (mean)
                for (int64_t j = 0; j < m; ++j) sum[j] += (z[j] - mean[j]) * (z[j] - mean[j]);
            else
                for (int64_t j = 0; j < m; ++j) sum[j] += z[j];
        }
    }
}

/* out [rows, m], which may be Z: normalised columns times gamma, and beta. */
WIDE void lk_normalise_columns(int64_t rows, int64_t m, const float *Z, int64_t ldz, const float *mean,
                               const float *inverse, const float *gamma, const float *beta, float *out, int64_t ldo) {
    for (int64_t r = 0; r < rows; ++r) {
        const float *z = Z + r * ldz;
        float *y = out + r * ldo;
        for (int64_t j = 0; j < m; ++j) y[j] = (z[j] - mean[j]) * inverse[j] * gamma[j] + beta[j];
    }
}

/* out [blocks, 2 m]: by blocks of rows the sums of D, and of D times the normalised columns. */
WIDE void lk_norm_sums(int64_t blocks, const int64_t *starts, int64_t m, const float *D, int64_t ldd, const float *Z,
                       int64_t ldz, const float *mean, const float *inverse, float *out) {
    for (int64_t b = 0; b < blocks; ++b) {
        float *first = out + b * 2 * m, *second = first + m;
        for (int64_t j = 0; j < 2 * m; ++j) first[j] = 0.0f;
        for (int64_t r = starts[b]; r < starts[b + 1]; ++r) {
            const float *d = D + r * ldd, *z = Z + r * ldz;
            for (int64_t j = 0; j < m; ++j) {
                first[j] += d[j];
                second[j] += d[j] * ((z[j] - mean[j]) * inverse[j]);
            }
        }
    }
}

/* The adjoint by Z in place over D; counted: [rows], 1 where a row has part in the statistics, else 0. */
WIDE void lk_normalise_columns_back(int64_t rows, int64_t m, float *D, int64_t ldd, const float *Z, int64_t ldz,
                                    const float *mean, const float *inverse, const float *gamma, const float *first,
                                    const float *second, const float *counted) {
    for (int64_t r = 0; r < rows; ++r) {
        const float *z = Z + r * ldz, part = counted[r];
        float *d = D + r * ldd;
        for (int64_t j = 0; j < m; ++j)
            d[j] = (d[j] - ((z[j] - mean[j]) * inverse[j] * second[j] + first[j]) * part) * (gamma[j] * inverse[j]);
    }
}
