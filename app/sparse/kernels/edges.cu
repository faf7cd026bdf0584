/* Messages along stored entries that have rows of their own (app/numerics/edges.py): relu(X_j + E_ij W + b), and back. An entry
 * has `each` numbers, E, or as many columns that are 1, C, or -1 for none; of both one is null. A thread has WIDE columns of a row and
 * goes through its entries in order, a few at a time: what it reads of W serves all of them. Rows of X and D have no gaps.
 *
 * E, C [nnz, each]   W [k, f]   b [f] or null   E_ij W is a chain over the columns of E; then b is added */
#include "common.cuh"

enum { SOME = 4 }; /* entries at a time */

typedef struct {
    const int* columns;
    int k, each;
    const float* E;
    const int* C;
    const float *W, *b;
    int f;
} Entries;

#define ENTRIES                                                                                               \
    const i64 n, const int f, const i64 *offsets, const int *columns, const int k, const int each,            \
        const float *E, const int *C, const float *W, const float *b
#define GIVEN                                                                                                 \
    { columns, k, each, E, C, W, b, f }

template <int WIDE> DEVICE void read(const float* x, float (&to)[WIDE]) {
    if (WIDE == 4) {
        const float4 four = *(const float4*)x;
        to[0] = four.x, to[WIDE / 4] = four.y, to[WIDE / 2] = four.z, to[WIDE - 1] = four.w;
    } else to[0] = *x;
}

template <int WIDE> DEVICE void write(float* y, const float (&from)[WIDE]) {
    if (WIDE == 4) *(float4*)y = make_float4(from[0], from[WIDE / 4], from[WIDE / 2], from[WIDE - 1]);
    else *y = from[0];
}

/* q[s] = columns c .. of E W + b of entries at[s]. */
template <int WIDE> DEVICE void edge_rows(const Entries& a, const i64 (&at)[SOME], int c, float (&q)[SOME][WIDE]) {
    float w[WIDE];
#pragma unroll
    for (int s = 0; s < SOME; ++s)
#pragma unroll
        for (int i = 0; i < WIDE; ++i) q[s][i] = 0.0f;
    if (a.E)
        for (int j = 0; j < a.k; ++j) {
            read<WIDE>(a.W + (i64)j * a.f + c, w);
#pragma unroll
            for (int s = 0; s < SOME; ++s) {
                const float e = a.E[at[s] * a.k + j];
#pragma unroll
                for (int i = 0; i < WIDE; ++i) q[s][i] = fused(q[s][i], e, w[i]);
            }
        }
    else
        for (int j = 0; j < a.each; ++j)
#pragma unroll
            for (int s = 0; s < SOME; ++s) {
                const int kind = a.C[at[s] * a.each + j];
                if (kind < 0) continue;
                read<WIDE>(a.W + (i64)kind * a.f + c, w);
#pragma unroll
                for (int i = 0; i < WIDE; ++i) q[s][i] = add(q[s][i], w[i]);
            }
    if (!a.b) return;
    read<WIDE>(a.b + c, w);
#pragma unroll
    for (int s = 0; s < SOME; ++s)
#pragma unroll
        for (int i = 0; i < WIDE; ++i) q[s][i] = add(q[s][i], w[i]);
}

/* SOME entries from p on; after the last one it again, for what nobody adds. */
DEVICE void some_entries(i64 p, i64 end, i64 (&at)[SOME]) {
#pragma unroll
    for (int s = 0; s < SOME; ++s) at[s] = p + s < end ? p + s : end - 1;
}

template <int WIDE> DEVICE void read_rows(const Entries& a, const float* X, const i64 (&at)[SOME], int c,
                                          float (&x)[SOME][WIDE]) {
#pragma unroll
    for (int s = 0; s < SOME; ++s) read<WIDE>(X + (i64)a.columns[at[s]] * a.f + c, x[s]);
}

/* Of a row the longest come first: (where its entries begin, its number and above it their count), as Line of spmm.cu. */
template <int WIDE> DEVICE void add_entries(const Entries& a, i64 n, const i64* lines, const float* X, float* Y, i64 ldy) {
    const i64 t = thread_number();
    const int across = a.f / WIDE, c = (int)(t % across) * WIDE;
    if (t / across >= n) return;
    const i64 begin = lines[t / across * 2], place = lines[t / across * 2 + 1], end = begin + (place >> 32);
    if (begin == end) return;
    float *to = Y + (place & 0xFFFFFFFFll) * ldy + c, y[WIDE];
    read<WIDE>(to, y);
    for (i64 p = begin; p < end; p += SOME) {
        i64 at[SOME];
        float x[SOME][WIDE], q[SOME][WIDE];
        some_entries(p, end, at);
        read_rows<WIDE>(a, X, at, c, x);
        edge_rows<WIDE>(a, at, c, q);
#pragma unroll
        for (int s = 0; s < SOME; ++s)
#pragma unroll
            for (int i = 0; i < WIDE; ++i) {
                const float m = add(x[s][i], q[s][i]);
                if (p + s < end) y[i] = add(y[i], m <= 0.0f ? 0.0f : m);
            }
    }
    write<WIDE>(to, y);
}

/* Of rows `first` .. first + n - 1, which are where messages come from: G, D_j where H_i + E_ij W + b > 0, else 0, is added to
 * dH_i, and written for each entry, from that of the first row on. */
template <int WIDE> DEVICE void back_entries(const Entries& a, i64 n, const i64* offsets, i64 first, const float* H, i64 ldh,
                                             const float* D, float* dH, i64 ldd, float* G) {
    const i64 t = thread_number();
    const int across = a.f / WIDE, c = (int)(t % across) * WIDE;
    if (t / across >= n) return;
    const i64 row = first + t / across, begin = offsets[row], end = offsets[row + 1];
    if (begin == end) return;
    float *to = dH + row * ldd + c, sum[WIDE], h[WIDE];
    read<WIDE>(to, sum);
    read<WIDE>(H + row * ldh + c, h);
    G += (begin - offsets[first]) * a.f + c;
    for (i64 p = begin; p < end; p += SOME, G += SOME * (i64)a.f) {
        i64 at[SOME];
        float d[SOME][WIDE], q[SOME][WIDE];
        some_entries(p, end, at);
        read_rows<WIDE>(a, D, at, c, d);
        edge_rows<WIDE>(a, at, c, q);
#pragma unroll
        for (int s = 0; s < SOME; ++s) {
            if (p + s >= end) break;
            float g[WIDE];
#pragma unroll
            for (int i = 0; i < WIDE; ++i) {
                g[i] = add(h[i], q[s][i]) > 0.0f ? d[s][i] : 0.0f;
                sum[i] = add(sum[i], g[i]);
            }
            write<WIDE>(G + s * (i64)a.f, g);
        }
    }
    write<WIDE>(to, sum);
}

/* Y_i += relu(X_j + E_ij W + b) for every entry, in order. Y [n, f], rows ldy apart. _4: f, ldy multiples of 4, W, b, X and Y
 * 16-byte aligned. */
KERNEL __launch_bounds__(256, 2) edge_add(ENTRIES, const i64* lines, const float* X, float* Y, const i64 ldy) {
    const Entries a = GIVEN;
    add_entries<1>(a, n, lines, X, Y, ldy);
}

KERNEL __launch_bounds__(256, 2) edge_add_4(ENTRIES, const i64* lines, const float* X, float* Y, const i64 ldy) {
    const Entries a = GIVEN;
    add_entries<4>(a, n, lines, X, Y, ldy);
}

/* H, dH [*, f], rows ldh and ldd apart   D [*, f]   G [entries, f] */
KERNEL __launch_bounds__(256, 2) edge_back(ENTRIES, const i64 first, const float* H, const i64 ldh, const float* D, float* dH,
                                        const i64 ldd, float* G) {
    const Entries a = GIVEN;
    back_entries<1>(a, n, offsets, first, H, ldh, D, dH, ldd, G);
}

KERNEL __launch_bounds__(256, 2) edge_back_4(ENTRIES, const i64 first, const float* H, const i64 ldh, const float* D, float* dH,
                                          const i64 ldd, float* G) {
    const Entries a = GIVEN;
    back_entries<4>(a, n, offsets, first, H, ldh, D, dH, ldd, G);
}

/* Q [count, f] = E W + b of entries first .. first + count - 1. A thread has SOME of them. */
template <int WIDE> DEVICE void made_rows(const Entries& a, i64 first, i64 count, float* Q) {
    const i64 t = thread_number();
    const int across = a.f / WIDE, c = (int)(t % across) * WIDE;
    const i64 begin = t / across * SOME;
    if (begin >= count) return;
    i64 at[SOME];
    float q[SOME][WIDE];
    some_entries(first + begin, first + count, at);
    edge_rows<WIDE>(a, at, c, q);
#pragma unroll
    for (int s = 0; s < SOME; ++s)
        if (begin + s < count) write<WIDE>(Q + (begin + s) * a.f + c, q[s]);
}

KERNEL edge_products(ENTRIES, const i64 first, const i64 count, float* Q) {
    const Entries a = GIVEN;
    made_rows<1>(a, first, count, Q);
}

KERNEL edge_products_4(ENTRIES, const i64 first, const i64 count, float* Q) {
    const Entries a = GIVEN;
    made_rows<4>(a, first, count, Q);
}

/* out [count, k] = the columns of entries as ones and zeros. */
KERNEL edge_ones(const i64 count, const int k, const int each, const int* C, float* out) {
    const i64 t = thread_number();
    if (t >= count * k) return;
    const int *own = C + t / k * each, column = (int)(t % k);
    float found = 0.0f;
    for (int j = 0; j < each; ++j) found = own[j] == column ? 1.0f : found;
    out[t] = found;
}
