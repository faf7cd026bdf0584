/* Attention over stored entries (app/numerics/attention.py): sums go on from what is there, in the order of the entries. h heads
 * of k columns; a thread has one column, or one head, of a row, and makes the weights that it needs itself.
 *
 * Kernels that end in _edges: entries have rows z of h numbers of their own (app/numerics/edge_attention.py), and r + z stands for
 * r. Z [nnz, h]. */
#include "common.cuh"

DEVICE float leaky(float s) { return s > 0.0f ? s : mul(s, 0.2f); }

template <bool EDGED> DEVICE float with_edge(float r, const float* Z, i64 at) { return EDGED ? add(r, Z[at]) : r; }

template <bool EDGED>
DEVICE void top(const i64 n, const int h, const i64* offsets, const int* columns, const float* Z, const float* R, float* T) {
    const i64 t = thread_number(), row = t / h;
    const int head = (int)(t % h);
    if (row >= n) return;
    float most = T[row * 3 * h + head];
    for (i64 p = offsets[row]; p < offsets[row + 1]; ++p) {
        const float r = with_edge<EDGED>(R[(i64)columns[p] * h + head], Z, p * h + head);
        most = r > most ? r : most;
    }
    T[row * 3 * h + head] = most;
}

/* T[:, :h] = the largest of itself and the r of the row's entries. R [*, h], T [n, 3 h]. */
KERNEL attention_top(const i64 n, const int h, const i64* offsets, const int* columns, const float* R, float* T) {
    top<false>(n, h, offsets, columns, 0, R, T);
}

KERNEL attention_top_edges(const i64 n, const int h, const i64* offsets, const int* columns, const float* Z, const float* R,
                           float* T) {
    top<true>(n, h, offsets, columns, Z, R, T);
}

/* T = [m | 0 | 0]; V is set to zero by the caller. L [n, h]. */
KERNEL attention_begin(const i64 n, const int h, const float* L, float* T) {
    const i64 t = thread_number(), row = t / h;
    const int head = (int)(t % h);
    if (row >= n) return;
    float* own = T + row * 3 * h + head;
    own[0] = leaky(add(L[t], own[0]));
    own[h] = own[2 * h] = 0.0f;
}

template <bool EDGED>
DEVICE void add_rows(const i64 n, const int h, const int k, const i64* offsets, const int* columns, const float* Z,
                     const float* E, const float* L, float* T, float* V) {
    const i64 width = (i64)h * k, t = thread_number(), row = t / width, ld = width + h;
    if (row >= n) return;
    const i64 c = t % width;
    const int head = (int)(c / k);
    const float l = L[row * h + head], m = T[row * 3 * h + head];
    float *sums = T + row * 3 * h + h + head, *v = V + row * 2 * width + c;
    const bool first = c % k == 0;
    float sum = first ? sums[0] : 0.0f, low_sum = first ? sums[h] : 0.0f, high = v[0], low = v[width];
    for (i64 p = offsets[row]; p < offsets[row + 1]; ++p) {
        const float* e = E + (i64)columns[p] * ld;
        const float r = with_edge<EDGED>(e[width + head], Z, p * h + head);
        const float s = add(l, r), w = exp_float(sub(leaky(s), m));
        const float below = s > 0.0f ? w : mul(w, 0.2f), x = e[c];
        sum = add(sum, w);
        low_sum = add(low_sum, below);
        high = link(high, w, x);
        low = link(low, below, x);
    }
    v[0] = high;
    v[width] = low;
    if (first) sums[0] = sum, sums[h] = low_sum;
}

/* E [*, h k + h]: S | r.  T [n, 3 h]: m | sum of w | sum of w slope.  V [n, 2 h k]: sums of both times S. A thread to a
 * column of V's first half and its counterpart; that of a head's first column also sums w. */
KERNEL __launch_bounds__(256) attention_add(const i64 n, const int h, const int k, const i64* offsets,
                                            const int* columns, const float* E, const float* L, float* T, float* V) {
    add_rows<false>(n, h, k, offsets, columns, 0, E, L, T, V);
}

KERNEL __launch_bounds__(256) attention_add_edges(const i64 n, const int h, const int k, const i64* offsets,
                                                  const int* columns, const float* Z, const float* E, const float* L,
                                                  float* T, float* V) {
    add_rows<true>(n, h, k, offsets, columns, Z, E, L, T, V);
}

/* u = 1 / sum of w: T = [m | u | q] and V times u by heads. A thread to a head. */
KERNEL attention_finish(const i64 n, const int h, const int k, float* T, float* V) {
    const i64 t = thread_number(), row = t / h, width = (i64)h * k;
    const int head = (int)(t % h);
    if (row >= n) return;
    float *own = T + row * 3 * h + head, *v = V + row * 2 * width + (i64)head * k;
    const float u = __fdiv_rn(1.0f, own[h]);
    own[h] = u;
    own[2 * h] = mul(own[2 * h], u);
    for (int c = 0; c < k; ++c) {
        v[c] = mul(v[c], u);
        v[width + c] = mul(v[width + c], u);
    }
}

/* F [n, h k + 4 h] = D | l | m | u | c and dL = D P - c q; V [n, 2 h k] = Z | P. A thread to a head. */
KERNEL attention_pack(const i64 n, const int h, const int k, const float* D, const float* L, const float* T,
                      const float* V, float* F, float* dL) {
    const i64 t = thread_number(), row = t / h, width = (i64)h * k;
    const int head = (int)(t % h);
    if (row >= n) return;
    const float *d = D + row * width, *own = T + row * 3 * h + head, *v = V + row * 2 * width;
    float *f = F + row * (width + 4 * h), first = 0.0f, second = 0.0f;
    for (int c = head * k; c < (head + 1) * k; ++c) {
        first = link(first, d[c], v[c]);
        second = link(second, d[c], v[width + c]);
        f[c] = d[c];
    }
    f += width + head;
    f[0] = L[t];
    f[h] = own[0];
    f[2 * h] = own[h];
    f[3 * h] = first;
    dL[t] = sub(second, mul(first, own[2 * h]));
}

template <bool EDGED>
DEVICE void back_rows(const i64 n, const int h, const int k, const i64* offsets, const int* columns, const float* Z,
                      const float* F, const float* R, float* dS) {
    const i64 width = (i64)h * k, t = thread_number(), row = t / width, ld = width + 4 * h;
    if (row >= n) return;
    const i64 c = t % width;
    const int head = (int)(c / k);
    const float r = R[row * h + head];
    float ds = dS[t];
    for (i64 p = offsets[row]; p < offsets[row + 1]; ++p) {
        const float *f = F + (i64)columns[p] * ld, *own = f + width + head;
        const float s = add(own[0], with_edge<EDGED>(r, Z, p * h + head));
        const float w = mul(exp_float(sub(leaky(s), own[h])), own[2 * h]);
        ds = link(ds, w, f[c]);
    }
    dS[t] = ds;
}

/* F [*, h k + 4 h]: D | l | m | u | c of the columns.  S, dS [n, h k], R, dR [n, h] of the rows: dS += w D. */
KERNEL __launch_bounds__(256) attention_back_rows(const i64 n, const int h, const int k, const i64* offsets,
                                                  const int* columns, const float* F, const float* R, float* dS) {
    back_rows<false>(n, h, k, offsets, columns, 0, F, R, dS);
}

KERNEL __launch_bounds__(256) attention_back_rows_edges(const i64 n, const int h, const int k, const i64* offsets,
                                                        const int* columns, const float* Z, const float* F,
                                                        const float* R, float* dS) {
    back_rows<true>(n, h, k, offsets, columns, Z, F, R, dS);
}

template <bool EDGED>
DEVICE void back_heads(const i64 n, const int h, const int k, const i64* offsets, const int* columns, float* Z,
                       const float* F, const float* S, const float* R, float* dR) {
    const i64 width = (i64)h * k, t = thread_number(), row = t / h, ld = width + 4 * h;
    const int head = (int)(t % h);
    if (row >= n) return;
    const float r = R[t], *x = S + row * width + (i64)head * k;
    float dr = dR[t];
    for (i64 p = offsets[row]; p < offsets[row + 1]; ++p) {
        const float *f = F + (i64)columns[p] * ld, *own = f + width + head, *d = f + (i64)head * k;
        const float s = add(own[0], with_edge<EDGED>(r, Z, p * h + head));
        const float w = mul(exp_float(sub(leaky(s), own[h])), own[2 * h]);
        float dot = 0.0f;
        for (int c = 0; c < k; ++c) dot = link(dot, d[c], x[c]);
        const float g = mul(w, sub(dot, own[3 * h]));
        const float back = s > 0.0f ? g : mul(g, 0.2f);
        dr = add(dr, back);
        if (EDGED) Z[p * h + head] = back;
    }
    dR[t] = dr;
}

/* dR += w (D S - c) slope. A thread to a head. */
KERNEL __launch_bounds__(256) attention_back_heads(const i64 n, const int h, const int k, const i64* offsets,
                                                   const int* columns, const float* F, const float* S,
                                                   const float* R, float* dR) {
    back_heads<false>(n, h, k, offsets, columns, 0, F, S, R, dR);
}

/* What is added to dR takes the place of z. */
KERNEL __launch_bounds__(256) attention_back_heads_edges(const i64 n, const int h, const int k, const i64* offsets,
                                                         const int* columns, float* Z, const float* F, const float* S,
                                                         const float* R, float* dR) {
    back_heads<true>(n, h, k, offsets, columns, Z, F, S, R, dR);
}

/* out[row] = the chain from 0 over the columns of X * D, both [n, m]. */
KERNEL row_dots(const i64 n, const int m, const float* X, const float* D, float* out) {
    const i64 row = thread_number();
    if (row >= n) return;
    float sum = 0.0f;
    for (int c = 0; c < m; ++c) sum = link(sum, X[row * m + c], D[row * m + c]);
    out[row] = sum;
}
