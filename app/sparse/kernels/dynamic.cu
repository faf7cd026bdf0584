/* Dynamic attention over stored entries (app/numerics/dynamic.py): sums go on from what is there, in the order of the entries. h
 * heads of k columns. First a warp to a row makes the numbers of each of its entries, lane by lane; then a thread has one
 * column, or one head, of a row and goes through them.
 *
 * Kernels that end in _edges: entries have rows of their own (app/numerics/edge_attention.py), which are added to T + S.
 * Q [nnz, h k]. */
#include "common.cuh"

DEVICE float sloped(float s, float x) { return s > 0.0f ? x : mul(x, 0.2f); }

template <bool EDGED> DEVICE float with_edge(float s, const float* Q, i64 at) { return EDGED ? add(s, Q[at]) : s; }

/* The score of a head: the chain over its columns of a leaky(T + S), or with Q, from its column `at` on. */
template <bool EDGED>
DEVICE float score(const int k, const float* T, const float* S, const float* Q, const i64 at, const float* a) {
    float e = 0.0f;
    for (int c = 0; c < k; ++c) {
        const float s = with_edge<EDGED>(add(T[c], S[c]), Q, at + c);
        e = link(e, a[c], sloped(s, s));
    }
    return e;
}

/* M [n, 2 h] = [-infinity | 0]; V is set to zero by the caller. */
KERNEL dynamic_begin(const i64 n, const int h, float* M) {
    const i64 t = thread_number(), row = t / h;
    if (row >= n) return;
    float* own = M + row * 2 * h + t % h;
    own[0] = __int_as_float(0xff800000);
    own[h] = 0.0f;
}

template <bool EDGED>
DEVICE void scores(const i64 n, const int h, const int k, const i64* offsets, const int* columns, const float* Q,
                   const float* S, const float* T, const float* a, float* E) {
    const i64 t = thread_number(), row = t / WARP, width = (i64)h * k;
    if (row >= n) return;
    for (i64 p = offsets[row] + t % WARP; p < offsets[row + 1]; p += WARP)
        for (int head = 0; head < h; ++head) {
            const i64 c = (i64)head * k;
            const float *t_own = T + row * width + c, *s = S + (i64)columns[p] * width + c;
            E[p * h + head] = score<EDGED>(k, t_own, s, Q, p * width + c, a + c);
        }
}

/* E [nnz, h]: scores of the entries. S [*, h k], T [n, h k]. A warp to a row. */
KERNEL dynamic_scores(const i64 n, const int h, const int k, const i64* offsets, const int* columns, const float* S,
                      const float* T, const float* a, float* E) {
    scores<false>(n, h, k, offsets, columns, 0, S, T, a, E);
}

KERNEL dynamic_scores_edges(const i64 n, const int h, const int k, const i64* offsets, const int* columns, const float* Q,
                            const float* S, const float* T, const float* a, float* E) {
    scores<true>(n, h, k, offsets, columns, Q, S, T, a, E);
}

/* E: from scores to weights w; O [nnz, h]: what sums so far are multiplied by. M [n, 2 h]: m | sum of w. A thread to a head. */
KERNEL dynamic_weights(const i64 n, const int h, const i64* offsets, float* E, float* O, float* M) {
    const i64 t = thread_number(), row = t / h;
    const int head = (int)(t % h);
    if (row >= n) return;
    float *own = M + row * 2 * h + head, m = own[0], sum = own[h];
    for (i64 p = offsets[row]; p < offsets[row + 1]; ++p) {
        const float e = E[p * h + head], top = e > m ? e : m;
        const float old = exp_float(sub(m, top)), w = exp_float(sub(e, top));
        O[p * h + head] = old;
        E[p * h + head] = w;
        sum = link(w, sum, old);
        m = top;
    }
    own[0] = m;
    own[h] = sum;
}

/* V [n, h k]: sums of w S. A thread to a column. */
KERNEL dynamic_add(const i64 n, const int h, const int k, const i64* offsets, const int* columns, const float* S,
                   const float* E, const float* O, float* V) {
    const i64 width = (i64)h * k, t = thread_number(), row = t / width;
    if (row >= n) return;
    const i64 c = t % width;
    const int head = (int)(c / k);
    float v = V[t];
    for (i64 p = offsets[row]; p < offsets[row + 1]; ++p) {
        const float x = S[(i64)columns[p] * width + c];
        v = add(mul(v, O[p * h + head]), mul(E[p * h + head], x));
    }
    V[t] = v;
}

/* u = 1 / sum of w: M = [m | u] and V times u by heads. A thread to a head. */
KERNEL dynamic_finish(const i64 n, const int h, const int k, float* M, float* V) {
    const i64 t = thread_number(), row = t / h, width = (i64)h * k;
    const int head = (int)(t % h);
    if (row >= n) return;
    float *own = M + row * 2 * h + head, *v = V + row * width + (i64)head * k;
    const float u = __fdiv_rn(1.0f, own[h]);
    own[h] = u;
    for (int c = 0; c < k; ++c) v[c] = mul(v[c], u);
}

/* F [n, 2 h k + 3 h] = D | T | m | u | c, c = D V by heads. A thread to a head. */
KERNEL dynamic_pack(const i64 n, const int h, const int k, const float* D, const float* T, const float* M,
                    const float* V, float* F) {
    const i64 t = thread_number(), row = t / h, width = (i64)h * k;
    const int head = (int)(t % h);
    if (row >= n) return;
    const float *d = D + row * width, *own = M + row * 2 * h + head, *v = V + row * width;
    float *f = F + row * (2 * width + 3 * h), dot = 0.0f;
    for (int c = head * k; c < (head + 1) * k; ++c) {
        dot = link(dot, d[c], v[c]);
        f[c] = d[c];
        f[width + c] = T[row * width + c];
    }
    f += 2 * width + head;
    f[0] = own[0];
    f[h] = own[h];
    f[2 * h] = dot;
}

template <bool EDGED>
DEVICE void slopes(const i64 n, const int h, const int k, const i64* offsets, const int* columns, const int turned,
                   const float* Q, const float* F, const float* S, const float* a, float* W, float* G) {
    const i64 t = thread_number(), row = t / WARP, width = (i64)h * k;
    if (row >= n) return;
    for (i64 p = offsets[row] + t % WARP; p < offsets[row + 1]; p += WARP) {
        const i64 other = columns[p];
        const float *f = F + (turned ? other : row) * (2 * width + 3 * h), *x = S + (turned ? row : other) * width;
        for (int head = 0; head < h; ++head) {
            const i64 first = (i64)head * k;
            const float *own = f + 2 * width + head, *d = f + first;
            const float e = score<EDGED>(k, f + width + first, x + first, Q, p * width + first, a + first);
            const float w = mul(exp_float(sub(e, own[0])), own[h]);
            float dot = 0.0f;
            for (int c = 0; c < k; ++c) dot = link(dot, d[c], x[first + c]);
            if (W) W[p * h + head] = w; /* may be null */
            G[p * h + head] = mul(w, sub(dot, own[2 * h]));
        }
    }
}

/* W, G [nnz, h]: w and g of the entries. F [*, 2 h k + 3 h] and S [*, h k], of rows and of columns, or the other way
 * round where `turned`. A warp to a row. */
KERNEL dynamic_slopes(const i64 n, const int h, const int k, const i64* offsets, const int* columns, const int turned,
                      const float* F, const float* S, const float* a, float* W, float* G) {
    slopes<false>(n, h, k, offsets, columns, turned, 0, F, S, a, W, G);
}

KERNEL dynamic_slopes_edges(const i64 n, const int h, const int k, const i64* offsets, const int* columns, const int turned,
                            const float* Q, const float* F, const float* S, const float* a, float* W, float* G) {
    slopes<true>(n, h, k, offsets, columns, turned, Q, F, S, a, W, G);
}

template <bool EDGED>
DEVICE void back_rows(const i64 n, const int h, const int k, const i64* offsets, const int* columns, float* Q,
                      const float* S, const float* F, const float* a, const float* G, float* dT, float* B) {
    const i64 width = (i64)h * k, t = thread_number(), row = t / width;
    if (row >= n) return;
    const i64 c = t % width;
    const int head = (int)(c / k);
    const float own = F[row * (2 * width + 3 * h) + width + c], by = a[c];
    float dt = dT[t], b = B[t];
    for (i64 p = offsets[row]; p < offsets[row + 1]; ++p) {
        const i64 at = p * width + c;
        const float s = with_edge<EDGED>(add(own, S[(i64)columns[p] * width + c]), Q, at), g = G[p * h + head];
        const float back = sloped(s, mul(g, by));
        dt = add(dt, back);
        b = link(b, g, sloped(s, s));
        if (EDGED) Q[at] = back;
    }
    dT[t] = dt;
    B[t] = b;
}

/* dT [n, h k] += g a slope and B [n, h k] += g leaky(s). A thread to a column. */
KERNEL dynamic_back_rows(const i64 n, const int h, const int k, const i64* offsets, const int* columns, const float* S,
                         const float* F, const float* a, const float* G, float* dT, float* B) {
    back_rows<false>(n, h, k, offsets, columns, 0, S, F, a, G, dT, B);
}

/* What is added to dT takes the place of the entries' rows. */
KERNEL dynamic_back_rows_edges(const i64 n, const int h, const int k, const i64* offsets, const int* columns, float* Q,
                               const float* S, const float* F, const float* a, const float* G, float* dT, float* B) {
    back_rows<true>(n, h, k, offsets, columns, Q, S, F, a, G, dT, B);
}

template <bool EDGED>
DEVICE void back_columns(const i64 n, const int h, const int k, const i64* offsets, const int* columns, const float* Q,
                         const float* F, const float* S, const float* a, const float* W, const float* G, float* dS) {
    const i64 width = (i64)h * k, t = thread_number(), row = t / width;
    if (row >= n) return;
    const i64 c = t % width;
    const int head = (int)(c / k);
    const float own = S[t], by = a[c];
    float ds = dS[t];
    for (i64 p = offsets[row]; p < offsets[row + 1]; ++p) {
        const float* f = F + (i64)columns[p] * (2 * width + 3 * h) + c;
        ds = link(ds, W[p * h + head], f[0]);
        const float s = with_edge<EDGED>(add(f[width], own), Q, p * width + c);
        ds = add(ds, sloped(s, mul(G[p * h + head], by)));
    }
    dS[t] = ds;
}

/* dS [n, h k] += w D, then g a slope. F [*, 2 h k + 3 h] of the columns. A thread to a column. */
KERNEL dynamic_back_columns(const i64 n, const int h, const int k, const i64* offsets, const int* columns,
                            const float* F, const float* S, const float* a, const float* W, const float* G,
                            float* dS) {
    back_columns<false>(n, h, k, offsets, columns, 0, F, S, a, W, G, dS);
}

KERNEL dynamic_back_columns_edges(const i64 n, const int h, const int k, const i64* offsets, const int* columns,
                                  const float* Q, const float* F, const float* S, const float* a, const float* W,
                                  const float* G, float* dS) {
    back_columns<true>(n, h, k, offsets, columns, Q, F, S, a, W, G, dS);
}
