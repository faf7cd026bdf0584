/* Pairs of nodes scored by the product of their rows (app/numerics/pairs.py): sums go on from what is there, in the order of
 * the entries. */
#include "common.cuh"

enum { LANES = 16 };

/* The sum of the first 2 HALF lanes, added up in halves. Every index is known, so that they stay in registers. */
template <int HALF> DEVICE float folded(float (&lanes)[LANES]) {
#pragma unroll
    for (int j = 0; j < HALF; ++j) lanes[j] = add(lanes[j], lanes[HALF + j]);
    if constexpr (HALF > 1)
        return folded<HALF / 2>(lanes);
    else
        return lanes[0];
}

/* The product of two rows [d]: LANES chains, added up in halves. */
DEVICE float lane_dot(const int d, const float* x, const float* y) {
    float lanes[LANES];
#pragma unroll
    for (int j = 0; j < LANES; ++j) lanes[j] = 0.0f;
    for (int c = 0; c < d; c += LANES) {
#pragma unroll
        for (int j = 0; j < LANES; ++j)
            if (c + j < d) lanes[j] = link(lanes[j], x[c + j], y[c + j]);
    }
    return folded<LANES / 2>(lanes);
}

/* G, terms [nnz]: the factor of the gradient and the loss of every entry. A warp to a row, a thread to an entry. */
KERNEL __launch_bounds__(256) pair_terms(const i64 n, const i64* offsets, const int* columns, const int d,
                                         const float* X, const float* Z, const float target, const float weight,
                                         float* G, float* terms) {
    const i64 t = thread_number(), row = t / WARP;
    if (row >= n) return;
    for (i64 p = offsets[row] + t % WARP; p < offsets[row + 1]; p += WARP) {
        const float s = lane_dot(d, Z + row * d, X + (i64)columns[p] * d);
        const float e = exp_float(-fabsf(s)), below = add(1.0f, e);
        terms[p] = add(sub(s > 0.0f ? s : 0.0f, mul(s, target)), log_float(below));
        G[p] = mul(sub(__fdiv_rn(s < 0.0f ? e : 1.0f, below), target), weight);
    }
}

/* The first d of the columns of Y [n, width] += G x, X [*, width]. A thread to an element. */
KERNEL __launch_bounds__(256) pair_rows(const i64 n, const i64* offsets, const int* columns, const int d, const int width,
                                        const float* X, const float* G, float* Y) {
    const i64 t = thread_number(), row = t / d;
    if (row >= n) return;
    const int c = (int)(t % d);
    float sum = Y[row * width + c];
    for (i64 p = offsets[row]; p < offsets[row + 1]; ++p) sum = link(sum, G[p], X[(i64)columns[p] * width + c]);
    Y[row * width + c] = sum;
}

/* sigmoid(x) weight. */
DEVICE float behind(const float x, const float weight) {
    const float e = exp_float(-fabsf(x));
    return mul(__fdiv_rn(x < 0.0f ? e : 1.0f, add(1.0f, e)), weight);
}

/* S, C [nnz]: the score of every entry, and the gradient by it; X [*, d + k], Z [n, d + k]. A warp to a row, a thread to
 * an entry. */
KERNEL __launch_bounds__(256) rank_terms(const i64 n, const i64* offsets, const int* columns, const int d, const int k,
                                         const float* X, const float* Z, const float weight, float* S, float* C) {
    const i64 t = thread_number(), row = t / WARP;
    if (row >= n) return;
    const int width = d + k;
    const float* z = Z + row * width;
    for (i64 p = offsets[row] + t % WARP; p < offsets[row + 1]; p += WARP) {
        const float* x = X + (i64)columns[p] * width;
        const float s = lane_dot(d, z, x);
        float c = 0.0f;
        for (int r = 0; r < k; ++r) c = add(c, behind(sub(z[d + r], s), weight));
        for (int r = 0; r < k; ++r) c = add(c, behind(sub(x[d + r], s), weight));
        S[p] = s;
        C[p] = -c;
    }
}

/* The last k of the columns of Y [n, d + k] += what entries count by the scores there in Z; losses [n, k] likewise. A
 * thread to an element. */
KERNEL __launch_bounds__(256) rank_sums(const i64 n, const i64* offsets, const int d, const int k, const float* Z,
                                        const float weight, const float* S, float* Y, float* losses) {
    const i64 t = thread_number(), row = t / k;
    if (row >= n) return;
    const i64 at = row * (d + k) + d + t % k;
    float sum = Y[at], total = losses[t];
    for (i64 p = offsets[row]; p < offsets[row + 1]; ++p) {
        const float x = sub(Z[at], S[p]);
        sum = add(sum, behind(x, weight));
        total = add(total, add(x > 0.0f ? x : 0.0f, log_float(add(1.0f, exp_float(-fabsf(x))))));
    }
    Y[at] = sum;
    losses[t] = total;
}

/* losses [n] += terms. A thread to a row. */
KERNEL pair_losses(const i64 n, const i64* offsets, const float* terms, float* losses) {
    const i64 row = thread_number();
    if (row >= n) return;
    float sum = losses[row];
    for (i64 p = offsets[row]; p < offsets[row + 1]; ++p) sum = add(sum, terms[p]);
    losses[row] = sum;
}

/* out [k]: the products of rows of X and Y [k, d]. A thread to a pair. */
KERNEL __launch_bounds__(256) pair_dots(const i64 k, const int d, const float* X, const float* Y, float* out) {
    const i64 i = thread_number();
    if (i < k) out[i] = lane_dot(d, X + i * d, Y + i * d);
}
