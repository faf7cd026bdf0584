/* Dynamic attention over stored entries, as in app/numerics/dynamic.py: the same operations in the same order, row by row. */
#include "attention.h"

/* M [n, 2 h] = [-infinity | 0], V [n, h k] = 0. */
void lk_dynamic_begin(int64_t n, int64_t h, int64_t k, float *M, float *V) {
    for (int64_t row = 0; row < n; ++row)
        for (int64_t i = 0; i < h; ++i) M[row * 2 * h + i] = -INFINITY, M[(row * 2 + 1) * h + i] = 0.0f;
    memset(V, 0, (size_t)(n * h * k) * 4);
}

/* out[q * h + i] = the chain over a head's columns of a leaky(T_q + S_q); rows of T and S at T[q step], S[q]. */
INLINE void score(int64_t count, int64_t h, int64_t k, const float *const *T, int64_t step, const float *const *S,
                  const float *a, float *out) {
    for (int64_t i = 0; i < h; ++i) {
        float sum[TOGETHER] = {0};
        for (int64_t c = i * k; c < (i + 1) * k; ++c)
            for (int64_t q = 0; q < count; ++q) sum[q] += a[c] * leaky(T[q * step][c] + S[q][c]);
        for (int64_t q = 0; q < count; ++q) out[q * h + i] = sum[q];
    }
}

/* The scores of `count` entries, TOGETHER at a time; step 0: all have T[0], 1: each has its own; S likewise by `s_step`. */
INLINE void scores(int64_t count, int64_t h, int64_t k, const float *const *T, int64_t step, const float *const *S,
                   int64_t s_step, const float *a, float *out) {
    for (int64_t q = 0; q < count; q += TOGETHER) {
        const int64_t beside = count - q < TOGETHER ? count - q : TOGETHER;
        const float *rows[TOGETHER];
        for (int64_t b = 0; b < beside; ++b) rows[b] = S[(q + b) * s_step];
        if (beside == TOGETHER) score(TOGETHER, h, k, T + q * step, step, rows, a, out + q * h);
        else score(beside, h, k, T + q * step, step, rows, a, out + q * h);
    }
}

/* S [*, h k]: rows that columns number.  T [n, h k].  M [n, 2 h]: m | sum of w.  V [n, h k]: sum of w S. */
INLINE void dynamic_add(const Pattern *p, int64_t h, int64_t k, const float *S, const float *T, const float *a,
                        float *M, float *V) {
    float e[GROUP], old[GROUP] = {0}, w[GROUP] = {0};
    const float *rows[GROUP];
    const int64_t width = h * k, most = GROUP / h;
    for (int64_t row = 0; row < p->n; ++row) {
        const float *t = T + row * width;
        float *m = M + row * 2 * h, *sum = m + h, *v = V + row * width;
        const int64_t end = number(p->indptr, p->wide, row + 1);
        for (int64_t first = number(p->indptr, p->wide, row); first < end; first += most) {
            const int64_t count = end - first < most ? end - first : most;
            for (int64_t q = 0; q < count; ++q) rows[q] = S + number(p->indices, p->wide, first + q) * width;
            scores(count, h, k, &t, 0, rows, 1, a, e);
            for (int64_t i = 0; i < h; ++i)
                for (int64_t q = i; q < count * h; q += h) {
                    const float top = e[q] > m[i] ? e[q] : m[i];
                    old[q] = m[i] - top;
                    w[q] = e[q] - top;
                    m[i] = top;
                }
            for (int64_t q = 0; q < (count * h + FULL - 1) / FULL * FULL; ++q) {
                old[q] = exp_float(old[q]);
                w[q] = exp_float(w[q]);
            }
            for (int64_t q = 0; q < count; ++q)
                for (int64_t i = 0; i < h; ++i) {
                    const float before = old[q * h + i], weight = w[q * h + i], *x = rows[q];
                    sum[i] = sum[i] * before + weight;
                    for (int64_t c = i * k; c < (i + 1) * k; ++c) v[c] = v[c] * before + weight * x[c];
                }
        }
    }
}

WIDE void lk_dynamic_add(const Pattern *p, int64_t h, int64_t k, const float *S, const float *T, const float *a,
                         float *M, float *V) {
    if (h == 1) dynamic_add(p, 1, k, S, T, a, M, V); /* without loops over heads */
    else dynamic_add(p, h, k, S, T, a, M, V);
}

/* M = [m | u], u = 1 / sum of w, and V times u by heads. */
void lk_dynamic_finish(int64_t n, int64_t h, int64_t k, float *M, float *V) {
    for (int64_t row = 0; row < n; ++row) {
        float *u = M + row * 2 * h + h, *v = V + row * h * k;
        for (int64_t i = 0; i < h; ++i) {
            u[i] = 1.0f / u[i];
            for (int64_t c = i * k; c < (i + 1) * k; ++c) v[c] *= u[i];
        }
    }
}

/* F [n, 2 h k + 3 h] = D | T | m | u | c, c = D V by heads. */
void lk_dynamic_pack(int64_t n, int64_t h, int64_t k, const float *D, const float *T, const float *M, const float *V,
                     float *F) {
    const int64_t width = h * k;
    for (int64_t row = 0; row < n; ++row) {
        const float *d = D + row * width;
        float *f = F + row * (2 * width + 3 * h);
        memcpy(f, d, (size_t)width * 4);
        memcpy(f + width, T + row * width, (size_t)width * 4);
        memcpy(f + 2 * width, M + row * 2 * h, (size_t)h * 8);
        dots(1, h, k, &d, V + row * width, f + 2 * width + 2 * h);
    }
}

/* dT [n, h k] += g a slope and G [n, h k] += g leaky(s); F [n, 2 h k + 3 h] of the rows, S [*, h k] of the columns. */
INLINE void back_rows(const Pattern *p, int64_t h, int64_t k, const float *S, const float *F, const float *a,
                      float *dT, float *G) {
    float w[GROUP] = {0}, d[TOGETHER * GROUP];
    const float *rows[GROUP];
    const int64_t width = h * k, most = GROUP / h;
    for (int64_t row = 0; row < p->n; ++row) {
        const float *D = F + row * (2 * width + 3 * h), *t = D + width, *m = t + width, *u = m + h, *c0 = u + h;
        float *dt = dT + row * width, *gs = G + row * width;
        const int64_t end = number(p->indptr, p->wide, row + 1);
        for (int64_t first = number(p->indptr, p->wide, row); first < end; first += most) {
            const int64_t count = end - first < most ? end - first : most;
            for (int64_t q = 0; q < count; ++q) rows[q] = S + number(p->indices, p->wide, first + q) * width;
            scores(count, h, k, &t, 0, rows, 1, a, w);
            for (int64_t q = 0; q < count; ++q)
                for (int64_t i = 0; i < h; ++i) w[q * h + i] -= m[i];
            for (int64_t q = 0; q < (count * h + FULL - 1) / FULL * FULL; ++q) w[q] = exp_float(w[q]);
            for (int64_t q = 0; q < count; q += TOGETHER) {
                const int64_t beside = count - q < TOGETHER ? count - q : TOGETHER;
                dots(beside, h, k, rows + q, D, d);
                for (int64_t b = 0; b < beside; ++b)
                    for (int64_t i = 0; i < h; ++i) {
                        const float g = w[(q + b) * h + i] * u[i] * (d[b * h + i] - c0[i]), *x = rows[q + b];
                        for (int64_t c = i * k; c < (i + 1) * k; ++c) {
                            const float s = t[c] + x[c];
                            dt[c] += sloped(s, g * a[c]);
                            gs[c] += g * leaky(s);
                        }
                    }
            }
        }
    }
}

WIDE void lk_dynamic_back_rows(const Pattern *p, int64_t h, int64_t k, const float *S, const float *F, const float *a,
                               float *dT, float *G) {
    if (h == 1) back_rows(p, 1, k, S, F, a, dT, G);
    else back_rows(p, h, k, S, F, a, dT, G);
}

/* dS [n, h k] += w D, then g a slope; F [*, 2 h k + 3 h] of the columns, S [n, h k] of the rows. */
INLINE void back_columns(const Pattern *p, int64_t h, int64_t k, const float *F, const float *S, const float *a,
                         float *dS) {
    float w[GROUP] = {0}, d[TOGETHER * GROUP];
    const float *rows[GROUP], *T[GROUP];
    const int64_t width = h * k, ld = 2 * width + 3 * h, most = GROUP / h;
    for (int64_t row = 0; row < p->n; ++row) {
        const float *own = S + row * width;
        float *ds = dS + row * width;
        const int64_t end = number(p->indptr, p->wide, row + 1);
        for (int64_t first = number(p->indptr, p->wide, row); first < end; first += most) {
            const int64_t count = end - first < most ? end - first : most;
            for (int64_t q = 0; q < count; ++q) {
                rows[q] = F + number(p->indices, p->wide, first + q) * ld;
                T[q] = rows[q] + width;
            }
            scores(count, h, k, T, 1, &own, 0, a, w);
            for (int64_t q = 0; q < count; ++q)
                for (int64_t i = 0; i < h; ++i) w[q * h + i] -= rows[q][2 * width + i];
            for (int64_t q = 0; q < (count * h + FULL - 1) / FULL * FULL; ++q) w[q] = exp_float(w[q]);
            for (int64_t q = 0; q < count; q += TOGETHER) {
                const int64_t beside = count - q < TOGETHER ? count - q : TOGETHER;
                dots(beside, h, k, rows + q, own, d);
                for (int64_t b = 0; b < beside; ++b)
                    for (int64_t i = 0; i < h; ++i) {
                        const float *D = rows[q + b], *t = T[q + b], *rest = D + 2 * width + i;
                        const float weight = w[(q + b) * h + i] * rest[h], g = weight * (d[b * h + i] - rest[2 * h]);
                        for (int64_t c = i * k; c < (i + 1) * k; ++c) {
                            ds[c] += weight * D[c];
                            ds[c] += sloped(t[c] + own[c], g * a[c]);
                        }
                    }
            }
        }
    }
}

WIDE void lk_dynamic_back_columns(const Pattern *p, int64_t h, int64_t k, const float *F, const float *S,
                                  const float *a, float *dS) {
    if (h == 1) back_columns(p, 1, k, F, S, a, dS);
    else back_columns(p, h, k, F, S, a, dS);
}
