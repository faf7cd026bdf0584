/* Dynamic attention over stored entries, as in app/numerics/dynamic.py: the same operations in the same order, row by row.
 * With a window entries have rows of their own (app/numerics/edge_attention.py), of which Q is added to s. */
#include "attention.h"
#include "edge_window.h"

/* M [n, 2 h] = [-infinity | 0], V [n, h k] = 0. */
void lk_dynamic_begin(int64_t n, int64_t h, int64_t k, float *M, float *V) {
    for (int64_t row = 0; row < n; ++row)
        for (int64_t i = 0; i < h; ++i) M[row * 2 * h + i] = -INFINITY, M[(row * 2 + 1) * h + i] = 0.0f;
    memset(V, 0, (size_t)(n * h * k) * 4);
}

/* T + S of a column, and Q where entries have rows. */
INLINE float joined(const int edged, float t, float x, const float *Q, int64_t at) {
    return edged ? (t + x) + Q[at] : t + x;
}

/* out[q * h + i] = the chain over a head's columns of a leaky(T_q + S_q + Q_q); rows of T and S at T[q step], S[q]. */
INLINE void score(const int edged, int64_t count, int64_t h, int64_t k, const float *const *T, int64_t step, const float *const *S,
                  const float *Q, const float *a, float *out) {
    for (int64_t i = 0; i < h; ++i) {
        float sum[TOGETHER] = {0};
        for (int64_t c = i * k; c < (i + 1) * k; ++c)
            for (int64_t q = 0; q < count; ++q) sum[q] += a[c] * leaky(joined(edged, T[q * step][c], S[q][c], Q, q * h * k + c));
        for (int64_t q = 0; q < count; ++q) out[q * h + i] = sum[q];
    }
}

/* The scores of `count` entries, TOGETHER at a time; step 0: all have T[0], 1: each has its own; S likewise by `s_step`. */
INLINE void scores(const int edged, int64_t count, int64_t h, int64_t k, const float *const *T, int64_t step, const float *const *S,
                   int64_t s_step, const float *Q, const float *a, float *out) {
    for (int64_t q = 0; q < count; q += TOGETHER) {
        const int64_t beside = count - q < TOGETHER ? count - q : TOGETHER;
        const float *rows[TOGETHER] = {0};
        for (int64_t b = 0; b < beside; ++b) rows[b] = S[(q + b) * s_step];
        const float *own = edged ? Q + q * h * k : NULL;
        if (beside == TOGETHER) score(edged, TOGETHER, h, k, T + q * step, step, rows, own, a, out + q * h);
        else score(edged, beside, h, k, T + q * step, step, rows, own, a, out + q * h);
    }
}

/* S [*, h k]: rows that columns number.  T [n, h k].  M [n, 2 h]: m | sum of w.  V [n, h k]: sum of w S. */
INLINE void dynamic_add(const Pattern *p, int64_t h, int64_t k, const float *S, const float *T, const float *a,
                        float *M, float *V, Window *window) {
    float e[GROUP], old[GROUP] = {0}, w[GROUP] = {0};
    const float *rows[GROUP];
    const int edged = window != NULL;
    const int64_t width = h * k, most = edged ? together(h) : GROUP / h;
    for (int64_t row = 0; row < p->n; ++row) {
        const float *t = T + row * width;
        float *m = M + row * 2 * h, *sum = m + h, *v = V + row * width;
        const int64_t end = number(p->indptr, p->wide, row + 1);
        for (int64_t first = number(p->indptr, p->wide, row); first < end; first += most) {
            const int64_t count = end - first < most ? end - first : most;
            for (int64_t q = 0; q < count; ++q) rows[q] = S + number(p->indices, p->wide, first + q) * width;
            const float *Q = edged ? window_at(window, first, count) : NULL;
            scores(edged, count, h, k, &t, 0, rows, 1, Q, a, e);
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
    if (h == 1) dynamic_add(p, 1, k, S, T, a, M, V, NULL); /* without loops over heads */
    else dynamic_add(p, h, k, S, T, a, M, V, NULL);
}

WIDE void lk_dynamic_add_edges(const Edges *edges, const Message *to, int64_t h, int64_t k, const float *S,
                               const float *T, const float *a, float *M, float *V) {
    const Pattern p = {edges->n, edges->wide, edges->indptr, edges->indices};
    Window window = window_of(edges, to, NULL, 0, edges->n);
    if (h == 1) dynamic_add(&p, 1, k, S, T, a, M, V, &window);
    else dynamic_add(&p, h, k, S, T, a, M, V, &window);
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

/* dT [n, h k] += g a slope and G [n, h k] += g leaky(s); F [n, 2 h k + 3 h] of the rows, S [*, h k] of the columns. Rows
 * `from` .. `until` - 1; what is added to dT takes the place of Q. */
INLINE void back_rows(const Pattern *p, int64_t from, int64_t until, int64_t h, int64_t k, const float *S,
                      const float *F, const float *a, float *dT, float *G, Window *window) {
    float w[GROUP] = {0}, d[TOGETHER * GROUP];
    const float *rows[GROUP];
    const int edged = window != NULL;
    const int64_t width = h * k, most = edged ? together(h) : GROUP / h;
    for (int64_t row = from; row < until; ++row) {
        const float *D = F + row * (2 * width + 3 * h), *t = D + width, *m = t + width, *u = m + h, *c0 = u + h;
        float *restrict dt = dT + row * width, *restrict gs = G + row * width;
        const int64_t end = number(p->indptr, p->wide, row + 1);
        for (int64_t first = number(p->indptr, p->wide, row); first < end; first += most) {
            const int64_t count = end - first < most ? end - first : most;
            for (int64_t q = 0; q < count; ++q) rows[q] = S + number(p->indices, p->wide, first + q) * width;
            float *Q = edged ? window_at(window, first, count) : NULL;
            scores(edged, count, h, k, &t, 0, rows, 1, Q, a, w);
            for (int64_t q = 0; q < count; ++q)
                for (int64_t i = 0; i < h; ++i) w[q * h + i] -= m[i];
            for (int64_t q = 0; q < (count * h + FULL - 1) / FULL * FULL; ++q) w[q] = exp_float(w[q]);
            for (int64_t q = 0; q < count; q += TOGETHER) {
                const int64_t beside = count - q < TOGETHER ? count - q : TOGETHER;
                dots(beside, h, k, rows + q, D, d);
                for (int64_t b = 0; b < beside; ++b)
                    for (int64_t i = 0; i < h; ++i) {
                        const float g = w[(q + b) * h + i] * u[i] * (d[b * h + i] - c0[i]), *x = rows[q + b];
                        float *restrict own = edged ? Q + (q + b) * width : NULL;
#pragma GCC ivdep /* none of the rows overlap */
                        for (int64_t c = i * k; c < (i + 1) * k; ++c) {
                            const float s = joined(edged, t[c], x[c], own, c), back = sloped(s, g * a[c]);
                            dt[c] += back;
                            gs[c] += g * leaky(s);
                            if (edged) own[c] = back;
                        }
                    }
            }
        }
    }
}

WIDE void lk_dynamic_back_rows(const Pattern *p, int64_t h, int64_t k, const float *S, const float *F, const float *a,
                               float *dT, float *G) {
    if (h == 1) back_rows(p, 0, p->n, 1, k, S, F, a, dT, G, NULL);
    else back_rows(p, 0, p->n, h, k, S, F, a, dT, G, NULL);
}

/* out [blocks][k of E][h k] = the gradient by W of each block's rows starts[i] .. starts[i + 1] - 1. */
WIDE void lk_dynamic_back_rows_edges(const Edges *edges, const Message *to, int64_t h, int64_t k, const float *S,
                                     const float *F, const float *a, float *dT, float *G, int64_t blocks,
                                     const int64_t *starts, float *out) {
    const Pattern p = {edges->n, edges->wide, edges->indptr, edges->indices};
    for (int64_t i = 0; i < blocks; ++i, out += edges->k * to->f) {
        memset(out, 0, (size_t)(edges->k * to->f) * 4);
        Window window = window_of(edges, to, out, starts[i], starts[i + 1]);
        if (h == 1) back_rows(&p, starts[i], starts[i + 1], 1, k, S, F, a, dT, G, &window);
        else back_rows(&p, starts[i], starts[i + 1], h, k, S, F, a, dT, G, &window);
        window_done(&window, window.last);
    }
}

/* dS [n, h k] += w D, then g a slope; F [*, 2 h k + 3 h] of the columns, S [n, h k] of the rows. */
INLINE void back_columns(const Pattern *p, int64_t h, int64_t k, const float *F, const float *S, const float *a,
                         float *dS, Window *window) {
    float w[GROUP] = {0}, d[TOGETHER * GROUP];
    const float *rows[GROUP], *T[GROUP];
    const int edged = window != NULL;
    const int64_t width = h * k, ld = 2 * width + 3 * h, most = edged ? together(h) : GROUP / h;
    for (int64_t row = 0; row < p->n; ++row) {
        const float *own = S + row * width;
        float *restrict ds = dS + row * width;
        const int64_t end = number(p->indptr, p->wide, row + 1);
        for (int64_t first = number(p->indptr, p->wide, row); first < end; first += most) {
            const int64_t count = end - first < most ? end - first : most;
            for (int64_t q = 0; q < count; ++q) {
                rows[q] = F + number(p->indices, p->wide, first + q) * ld;
                T[q] = rows[q] + width;
            }
            const float *Q = edged ? window_at(window, first, count) : NULL;
            scores(edged, count, h, k, T, 1, &own, 0, Q, a, w);
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
                            ds[c] += sloped(joined(edged, t[c], own[c], Q, (q + b) * width + c), g * a[c]);
                        }
                    }
            }
        }
    }
}

WIDE void lk_dynamic_back_columns(const Pattern *p, int64_t h, int64_t k, const float *F, const float *S,
                                  const float *a, float *dS) {
    if (h == 1) back_columns(p, 1, k, F, S, a, dS, NULL);
    else back_columns(p, h, k, F, S, a, dS, NULL);
}

WIDE void lk_dynamic_back_columns_edges(const Edges *edges, const Message *to, int64_t h, int64_t k, const float *F,
                                        const float *S, const float *a, float *dS) {
    const Pattern p = {edges->n, edges->wide, edges->indptr, edges->indices};
    Window window = window_of(edges, to, NULL, 0, edges->n);
    if (h == 1) back_columns(&p, 1, k, F, S, a, dS, &window);
    else back_columns(&p, h, k, F, S, a, dS, &window);
}
