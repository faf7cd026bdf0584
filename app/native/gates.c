/* Gates, as in app/numerics/gates.py: the same operations in the same order, element by element. Lanes are columns of one
 * row. */
#include "common.h"
#include "elementary.h"

INLINE float logistic(float x) { return 1.0f / (1.0f + exp_float(-x)); }

INLINE float tanh_of(float x) { return 2.0f / (1.0f + exp_float(-2.0f * x)) - 1.0f; }

/* X, G [m, 3h]; bias [h]; H, Q, out [m, h]. */
WIDE void lk_gru_step(int64_t m, int64_t h, float *X, const float *G, const float *bias, const float *H, float *Q,
                      float *out) {
    for (int64_t i = 0; i < m; ++i) {
        float *restrict r = X + i * 3 * h, *restrict z = r + h, *restrict c = z + h;
        const float *restrict g = G + i * 3 * h, *restrict before = H + i * h;
        float *restrict q = Q + i * h, *restrict after = out + i * h;
        for (int64_t j = 0; j < h; ++j) r[j] = logistic(r[j] + g[j]);
        for (int64_t j = 0; j < h; ++j) z[j] = logistic(z[j] + g[h + j]);
        for (int64_t j = 0; j < h; ++j) {
            const float hidden = g[2 * h + j] + bias[j], found = tanh_of(c[j] + r[j] * hidden);
            q[j] = hidden;
            c[j] = found;
            after[j] = found + z[j] * (before[j] - found);
        }
    }
}

/* X, G [m, 3h]; Q, H, D [m, h]. */
WIDE void lk_gru_back(int64_t m, int64_t h, float *X, const float *Q, const float *H, float *D, float *G) {
    for (int64_t i = 0; i < m; ++i) {
        float *restrict r = X + i * 3 * h, *restrict z = r + h, *restrict c = z + h;
        float *restrict g = G + i * 3 * h, *restrict d = D + i * h;
        const float *restrict q = Q + i * h, *restrict before = H + i * h;
        for (int64_t j = 0; j < h; ++j) {
            const float rj = r[j], zj = z[j], cj = c[j], dj = d[j];
            const float dc = dj * (1.0f - zj) * (1.0f - cj * cj);
            const float dr = dc * q[j] * rj * (1.0f - rj), dz = dj * (before[j] - cj) * zj * (1.0f - zj);
            r[j] = dr;
            z[j] = dz;
            c[j] = dc;
            g[j] = dr;
            g[h + j] = dz;
            g[2 * h + j] = dc * rj;
            d[j] = dj * zj;
        }
    }
}

/* X [m, 2h]; out [m, h]. */
WIDE void lk_glu(int64_t m, int64_t h, float *X, float *out) {
    for (int64_t i = 0; i < m; ++i) {
        float *restrict a = X + i * 2 * h, *restrict s = a + h, *restrict y = out + i * h;
        for (int64_t j = 0; j < h; ++j) {
            s[j] = logistic(s[j]);
            y[j] = a[j] * s[j];
        }
    }
}

/* X [m, 2h]; D [m, h]. */
WIDE void lk_glu_back(int64_t m, int64_t h, float *X, const float *D) {
    for (int64_t i = 0; i < m; ++i) {
        float *restrict a = X + i * 2 * h, *restrict s = a + h;
        const float *restrict d = D + i * h;
        for (int64_t j = 0; j < h; ++j) {
            const float aj = a[j], sj = s[j];
            a[j] = d[j] * sj;
            s[j] = d[j] * aj * sj * (1.0f - sj);
        }
    }
}
