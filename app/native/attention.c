/* Attention over stored entries, as in app/numerics/attention.py: the same operations in the same order, row by row.
 *
 * Entries are taken in groups: first the numbers of each head, of which the exponentials fill whole registers, then
 * the rows that they weigh. An entry's columns of l, r, ... follow its row, so the first part also fetches the rows. */
#include "attention.h"
#include "edge_window.h"

/* r, or with a window r + z: entries have rows of their own then (app/numerics/edge_attention.py), h numbers of E W. */
INLINE float with_edge(const int edged, float r, const float *z, int64_t at) { return edged ? r + z[at] : r; }

INLINE void attention_top(const Pattern *a, int64_t h, const float *R, float *T, Window *window) {
    for (int64_t row = 0; row < a->n; ++row) {
        float *top = T + row * 3 * h;
        const int64_t end = number(a->indptr, a->wide, row + 1);
        for (int64_t p = number(a->indptr, a->wide, row); p < end; ++p) {
            const float *r = R + number(a->indices, a->wide, p) * h, *z = window ? window_at(window, p, 1) : NULL;
            for (int64_t i = 0; i < h; ++i) {
                const float s = with_edge(window != NULL, r[i], z, i);
                top[i] = s > top[i] ? s : top[i];
            }
        }
    }
}

/* T[:, :h] = the largest of itself and the r of the row's entries. R [*, h], T [n, 3 h]. */
void lk_attention_top(const Pattern *a, int64_t h, const float *R, float *T) { attention_top(a, h, R, T, NULL); }

void lk_attention_top_edges(const Edges *edges, const Message *to, int64_t h, const float *R, float *T) {
    const Pattern a = {edges->n, edges->wide, edges->indptr, edges->indices};
    Window window = window_of(edges, to, NULL, 0, edges->n);
    attention_top(&a, h, R, T, &window);
}

/* T = [m | 0 | 0] and V [n, 2 h k] = 0. L [n, h]. */
void lk_attention_begin(int64_t n, int64_t h, int64_t k, const float *L, float *T, float *V) {
    for (int64_t row = 0; row < n; ++row) {
        float *t = T + row * 3 * h;
        for (int64_t i = 0; i < h; ++i) t[i] = leaky(L[row * h + i] + t[i]);
        memset(t + h, 0, (size_t)h * 8);
    }
    memset(V, 0, (size_t)(n * 2 * h * k) * 4);
}

typedef float v16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));

/* sum[c] += w[q h] S_q[c], and low_sum with low, for `size` columns at a time of the rows S_q of `count` entries: chains
 * over q, whose sums stay in registers. */
#define WEIGH(type, size)                                                                   \
    for (; c + size <= k; c += size) {                                                      \
        type one = *(const type *)(sum + c), two = low ? *(const type *)(low_sum + c) : one; \
        for (int64_t q = 0; q < count; ++q) {                                               \
            const type S = *(const type *)(rows[q] + c);                                    \
            one += w[q * h] * S;                                                            \
            if (low) two += low[q * h] * S;                                                 \
        }                                                                                   \
        *(type *)(sum + c) = one;                                                           \
        if (low) *(type *)(low_sum + c) = two;                                              \
    }

/* sum += w S, and low_sum += low S where given, by heads of k columns. */
INLINE void add_weighed(int64_t count, int64_t h, int64_t k, const float **rows, const float *w, const float *low,
                        float *restrict sum, float *restrict low_sum) {
    if (h > 1 && k < 16) {
        for (int64_t q = 0; q < count; ++q)
            for (int64_t i = 0; i < h; ++i) {
                const float *S = rows[q] + i * k, one = w[q * h + i], two = low ? low[q * h + i] : 0.0f;
                for (int64_t c = 0; c < k; ++c) sum[i * k + c] += one * S[c];
                if (low)
                    for (int64_t c = 0; c < k; ++c) low_sum[i * k + c] += two * S[c];
            }
        return;
    }
    for (int64_t i = 0; i < h; ++i, ++w, sum += k) {
        int64_t c = 0;
        WEIGH(v16, 16)
        WEIGH(v8, 8)
        WEIGH(float, 1)
        for (int64_t q = 0; q < count; ++q) rows[q] += k;
        if (low) ++low, low_sum += k;
    }
}

/* E [*, h k + h]: S | r.  L [n, h].  T [n, 3 h]: m | sum of w | sum of w slope.  V [n, 2 h k]: sums of both times S. */
INLINE void attention_add(const Pattern *a, int64_t h, int64_t k, const float *E, const float *L, float *T, float *V,
                          Window *window) {
    float s[GROUP] = {0}, w[GROUP] = {0}, low[GROUP];
    const float *rows[GROUP];
    const int64_t width = h * k, ld = width + h, most = window ? together(h) : GROUP / h;
    for (int64_t row = 0; row < a->n; ++row) {
        const float *l = L + row * h;
        float *m = T + row * 3 * h, *sum = m + h, *low_sum = sum + h, *v = V + row * 2 * width;
        const int64_t end = number(a->indptr, a->wide, row + 1);
        for (int64_t p = number(a->indptr, a->wide, row); p < end; p += most) {
            const int64_t count = end - p < most ? end - p : most;
            const float *z = window ? window_at(window, p, count) : NULL;
            for (int64_t q = 0; q < count; ++q) {
                rows[q] = E + number(a->indices, a->wide, p + q) * ld;
                const float *r = rows[q] + width;
                for (int64_t i = 0; i < h; ++i) {
                    s[q * h + i] = l[i] + with_edge(window != NULL, r[i], z, q * h + i);
                    w[q * h + i] = leaky(s[q * h + i]) - m[i];
                }
            }
            for (int64_t t = 0; t < (count * h + FULL - 1) / FULL * FULL; ++t) {
                const float e = exp_float(w[t]), below = e * SLOPE;
                w[t] = e;
                low[t] = s[t] > 0.0f ? e : below;
            }
            for (int64_t q = 0; q < count; ++q)
                for (int64_t i = 0; i < h; ++i) sum[i] += w[q * h + i], low_sum[i] += low[q * h + i];
            add_weighed(count, h, k, rows, w, low, v, v + width);
        }
    }
}

WIDE void lk_attention_add(const Pattern *a, int64_t h, int64_t k, const float *E, const float *L, float *T, float *V) {
    if (h == 1) attention_add(a, 1, k, E, L, T, V, NULL); /* without loops over heads */
    else attention_add(a, h, k, E, L, T, V, NULL);
}

WIDE void lk_attention_add_edges(const Edges *edges, const Message *to, int64_t h, int64_t k, const float *E,
                                 const float *L, float *T, float *V) {
    const Pattern a = {edges->n, edges->wide, edges->indptr, edges->indices};
    Window window = window_of(edges, to, NULL, 0, edges->n);
    if (h == 1) attention_add(&a, 1, k, E, L, T, V, &window);
    else attention_add(&a, h, k, E, L, T, V, &window);
}

/* T = [m | u | q], u = 1 / sum of w, and V times u by heads. */
WIDE void lk_attention_finish(int64_t n, int64_t h, int64_t k, float *T, float *V) {
    for (int64_t row = 0; row < n; ++row) {
        float *u = T + row * 3 * h + h, *v = V + row * 2 * h * k;
        for (int64_t i = 0; i < h; ++i) {
            u[i] = 1.0f / u[i];
            u[h + i] *= u[i];
            for (int64_t c = i * k; c < (i + 1) * k; ++c) v[c] *= u[i];
            for (int64_t c = (h + i) * k; c < (h + i + 1) * k; ++c) v[c] *= u[i];
        }
    }
}

/* F [n, h k + 4 h] = D | l | m | u | c and dL = D P - c q; V [n, 2 h k] = Z | P. */
void lk_attention_pack(int64_t n, int64_t h, int64_t k, const float *D, const float *L, const float *T, const float *V,
                       float *F, float *dL) {
    const int64_t width = h * k;
    for (int64_t row = 0; row < n; ++row) {
        const float *d = D + row * width, *t = T + row * 3 * h, *v = V + row * 2 * width;
        float *f = F + row * (width + 4 * h);
        memcpy(f, d, (size_t)width * 4);
        memcpy(f + width, L + row * h, (size_t)h * 4);
        memcpy(f + width + h, t, (size_t)h * 8);
        for (int64_t i = 0; i < h; ++i) {
            float first = 0.0f, second = 0.0f;
            for (int64_t c = i * k; c < (i + 1) * k; ++c) first += d[c] * v[c], second += d[c] * v[width + c];
            f[width + 3 * h + i] = first;
            dL[row * h + i] = second - first * t[2 * h + i];
        }
    }
}

/* F [*, h k + 4 h]: D | l | m | u | c of the columns.  S, dS [n, h k], R, dR [n, h] of the rows `from` .. `until` - 1; what
 * is added to dR takes the place of z. */
INLINE void attention_back(const Pattern *a, int64_t from, int64_t until, int64_t h, int64_t k, const float *F,
                           const float *S, const float *R, float *dS, float *dR, Window *window) {
    float s[GROUP], w[GROUP] = {0}, u[GROUP] = {0}, d[TOGETHER * GROUP];
    const float *rows[GROUP];
    const int64_t width = h * k, ld = width + 4 * h, most = window ? together(h) : GROUP / h;
    for (int64_t row = from; row < until; ++row) {
        const float *own = S + row * width, *r = R + row * h;
        float *ds = dS + row * width, *dr = dR + row * h;
        const int64_t end = number(a->indptr, a->wide, row + 1);
        for (int64_t p = number(a->indptr, a->wide, row); p < end; p += most) {
            const int64_t count = end - p < most ? end - p : most;
            float *z = window ? window_at(window, p, count) : NULL;
            for (int64_t q = 0; q < count; ++q) {
                rows[q] = F + number(a->indices, a->wide, p + q) * ld;
                const float *f = rows[q] + width;
                for (int64_t i = 0; i < h; ++i) {
                    s[q * h + i] = f[i] + with_edge(window != NULL, r[i], z, q * h + i);
                    w[q * h + i] = leaky(s[q * h + i]) - f[h + i];
                    u[q * h + i] = f[2 * h + i];
                }
            }
            for (int64_t t = 0; t < (count * h + FULL - 1) / FULL * FULL; ++t) w[t] = exp_float(w[t]) * u[t];
            for (int64_t q = 0; q < count; q += TOGETHER) {
                const int64_t beside = count - q < TOGETHER ? count - q : TOGETHER;
                dots(beside, h, k, rows + q, own, d);
                for (int64_t b = 0; b < beside; ++b)
                    for (int64_t i = 0; i < h; ++i) {
                        const int64_t t = (q + b) * h + i;
                        const float g = w[t] * (d[b * h + i] - rows[q + b][width + 3 * h + i]);
                        const float back = s[t] > 0.0f ? g : g * SLOPE;
                        dr[i] += back;
                        if (window) z[t] = back;
                    }
            }
            add_weighed(count, h, k, rows, w, NULL, ds, NULL);
        }
    }
}

WIDE void lk_attention_back(const Pattern *a, int64_t h, int64_t k, const float *F, const float *S, const float *R,
                            float *dS, float *dR) {
    if (h == 1) attention_back(a, 0, a->n, 1, k, F, S, R, dS, dR, NULL);
    else attention_back(a, 0, a->n, h, k, F, S, R, dS, dR, NULL);
}

/* out [blocks][k of E][h] = the gradient by W of each block's rows starts[i] .. starts[i + 1] - 1. */
WIDE void lk_attention_back_edges(const Edges *edges, const Message *to, int64_t h, int64_t k, const float *F,
                                  const float *S, const float *R, float *dS, float *dR, int64_t blocks,
                                  const int64_t *starts, float *out) {
    const Pattern a = {edges->n, edges->wide, edges->indptr, edges->indices};
    for (int64_t i = 0; i < blocks; ++i, out += edges->k * h) {
        memset(out, 0, (size_t)(edges->k * h) * 4);
        Window window = window_of(edges, to, out, starts[i], starts[i + 1]);
        if (h == 1) attention_back(&a, starts[i], starts[i + 1], 1, k, F, S, R, dS, dR, &window);
        else attention_back(&a, starts[i], starts[i + 1], h, k, F, S, R, dS, dR, &window);
        window_done(&window, window.last);
    }
}

/* out[row] = the chain from 0 over the columns of X * D, both [n, m]. */
WIDE void lk_row_dots(int64_t n, int64_t m, const float *X, const float *D, float *out) {
    for (int64_t row = 0; row < n; row += TOGETHER) {
        const int64_t count = n - row < TOGETHER ? n - row : TOGETHER;
        float sum[TOGETHER] = {0};
        for (int64_t c = 0; c < m; ++c)
            for (int64_t q = 0; q < count; ++q) sum[q] += X[(row + q) * m + c] * D[(row + q) * m + c];
        for (int64_t q = 0; q < count; ++q) out[row + q] = sum[q];
    }
}
