/* Sparse times dense: Y += A X, or Y = A X where `first`. A row of A belongs to a sub-warp, whose lanes hold columns; a
 * column is one chain over the row's entries in stored order. Rows of X are gathered several at a time.
 *
 * A [n, *] CSR: offsets, columns, data (null: all ones)     X [*, c], Y [n, c] row-major
 * A row of c columns is that of c / f states side by side. live [n][c / f] or null: columns of a state where it is 0
 * are zero where `first`, else left as they are. gate or null: rows of f columns, [n][c / f] or by gate_index a table;
 * with it the sums are multiplied by (gate > 0). longest: rows with more entries are left to spmm_long. */
#include "common.cuh"

typedef struct {
    i64 n;
    int c, f;
    const i64* offsets;
    const int* columns;
    const float *data, *X;
    float* Y;
    const float* live;
    int first;
    const float* gate;
    const int* gate_index;
} Product;

#define PRODUCT_ARGUMENTS                                                                                     \
    const i64 n, const int c, const int f, const i64 *offsets, const int *columns, const float *data,         \
        const float *X, float *Y, const float *live, const int first, const float *gate, const int *gate_index
#define PRODUCT                                                                                               \
    Product { n, c, f, offsets, columns, data, X, Y, live, first, gate, gate_index }

DEVICE bool is_live(const Product& p, i64 row, int col) {
    return !p.live || p.live[row * (p.c / p.f) + col / p.f] != 0.0f;
}

/* The element of the gate that belongs to (row, col). */
DEVICE const float* gate_at(const Product& p, i64 row, int col) {
    const i64 state = row * (p.c / p.f) + col / p.f;
    return p.gate + (p.gate_index ? (i64)p.gate_index[state] : state) * p.f + col % p.f;
}

/* ---- four columns a lane ----------------------------------------------------------------------------------- */

enum { AHEAD = 4 }; /* gathers in flight */

template <bool VALUED> DEVICE float4 follow(const Product& p, i64 at, i64 end, int col, float4 sum) {
    for (; at + AHEAD <= end; at += AHEAD) {
        float4 x[AHEAD];
        float a[AHEAD];
#pragma unroll
        for (int q = 0; q < AHEAD; ++q) {
            x[q] = *(const float4*)(p.X + (i64)p.columns[at + q] * p.c + col);
            a[q] = VALUED ? p.data[at + q] : 1.0f;
        }
#pragma unroll
        for (int q = 0; q < AHEAD; ++q) sum = VALUED ? link4(sum, a[q], x[q]) : add4(sum, x[q]);
    }
    for (; at < end; ++at) {
        const float4 x = *(const float4*)(p.X + (i64)p.columns[at] * p.c + col);
        sum = VALUED ? link4(sum, p.data[at], x) : add4(sum, x);
    }
    return sum;
}

DEVICE float4 gated4(const Product& p, i64 row, int col, float4 z) {
    if (!p.gate) return z;
    const float4 g = *(const float4*)gate_at(p, row, col);
    return make_float4(open_gate(z.x, g.x), open_gate(z.y, g.y), open_gate(z.z, g.z), open_gate(z.w, g.w));
}

template <int LANES> DEVICE void rows_by_four(const Product& p, int longest) {
    const i64 row = thread_number() / LANES;
    const int col = 4 * ((int)blockIdx.y * LANES + (int)threadIdx.x % LANES);
    if (row >= p.n || col >= p.c) return;
    const i64 begin = p.offsets[row], end = p.offsets[row + 1];
    if (end - begin > longest) return;
    float4* y = (float4*)(p.Y + row * p.c + col);
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (!is_live(p, row, col)) {
        if (p.first) *y = zero;
        return;
    }
    if (begin == end && !p.first) return;
    float4 sum = p.first ? zero : *y;
    sum = p.data ? follow<true>(p, begin, end, col, sum) : follow<false>(p, begin, end, col, sum);
    *y = gated4(p, row, col, sum);
}

/* Lanes x 4 columns; blocks in y are further columns. c and f are multiples of 4, X, Y and gate 16-byte aligned. */
KERNEL __launch_bounds__(256, 5) spmm_16(PRODUCT_ARGUMENTS, const int longest) { rows_by_four<4>(PRODUCT, longest); }
KERNEL __launch_bounds__(256, 5) spmm_32(PRODUCT_ARGUMENTS, const int longest) { rows_by_four<8>(PRODUCT, longest); }
KERNEL __launch_bounds__(256, 5) spmm_64(PRODUCT_ARGUMENTS, const int longest) { rows_by_four<16>(PRODUCT, longest); }
KERNEL __launch_bounds__(256, 5) spmm_128(PRODUCT_ARGUMENTS, const int longest) { rows_by_four<32>(PRODUCT, longest); }

/* 256 columns of a row: 8 a lane, so that a warp reads whole rows of X one after the other. live must be null. */
KERNEL __launch_bounds__(256, 5) spmm_256(PRODUCT_ARGUMENTS, const int longest) {
    const Product p = PRODUCT;
    const i64 row = thread_number() / 32;
    const int col = 256 * (int)blockIdx.y + 4 * ((int)threadIdx.x % 32), other = col + 128;
    if (row >= n || col >= c) return;
    i64 at = offsets[row];
    const i64 end = offsets[row + 1];
    if (end - at > longest || (at == end && !first)) return;
    const bool both = other < c;
    float *y = Y + row * c + col;
    float4 low = make_float4(0.0f, 0.0f, 0.0f, 0.0f), high = low;
    if (!first) {
        low = *(const float4*)y;
        if (both) high = *(const float4*)(y + 128);
    }
    for (; at + 2 <= end; at += 2) {
        const float *x = X + (i64)columns[at] * c + col, *next = X + (i64)columns[at + 1] * c + col;
        const float a = data ? data[at] : 1.0f, b = data ? data[at + 1] : 1.0f;
        const float4 x0 = *(const float4*)x, x1 = *(const float4*)next;
        float4 z0 = x0, z1 = x1;
        if (both) z0 = *(const float4*)(x + 128), z1 = *(const float4*)(next + 128);
        low = link4(link4(low, a, x0), b, x1); /* 1 x is x: ones need no other chain */
        high = link4(link4(high, a, z0), b, z1);
    }
    if (at < end) {
        const float* x = X + (i64)columns[at] * c + col;
        const float a = data ? data[at] : 1.0f;
        low = link4(low, a, *(const float4*)x);
        if (both) high = link4(high, a, *(const float4*)(x + 128));
    }
    *(float4*)y = gated4(p, row, col, low);
    if (both) *(float4*)(y + 128) = gated4(p, row, other, high);
}

/* ---- any width: a column a lane, at most 32 lanes to a row --------------------------------------------------- */

DEVICE float follow_column(const Product& p, i64 at, i64 end, int col, float sum) {
    for (; at + AHEAD <= end; at += AHEAD) {
        float x[AHEAD];
#pragma unroll
        for (int q = 0; q < AHEAD; ++q) {
            x[q] = p.X[(i64)p.columns[at + q] * p.c + col];
            if (p.data) x[q] = mul(p.data[at + q], x[q]);
        }
#pragma unroll
        for (int q = 0; q < AHEAD; ++q) sum = add(sum, x[q]);
    }
    for (; at < end; ++at) {
        const float x = p.X[(i64)p.columns[at] * p.c + col];
        sum = add(sum, p.data ? mul(p.data[at], x) : x);
    }
    return sum;
}

DEVICE void one_column(const Product& p, i64 row, int col) {
    const i64 at = p.offsets[row], end = p.offsets[row + 1];
    float* y = p.Y + row * p.c + col;
    if (!is_live(p, row, col)) {
        if (p.first) *y = 0.0f;
        return;
    }
    if (at == end && !p.first) return;
    const float sum = follow_column(p, at, end, col, p.first ? 0.0f : *y);
    *y = p.gate ? open_gate(sum, *gate_at(p, row, col)) : sum;
}

/* lanes: a power of two up to 32 */
KERNEL __launch_bounds__(256, 5) spmm_any(PRODUCT_ARGUMENTS, const int longest, const int lanes) {
    const i64 row = thread_number() / lanes;
    const int col = (int)blockIdx.y * lanes + (int)threadIdx.x % lanes;
    if (row < n && col < c && offsets[row + 1] - offsets[row] <= longest) one_column(PRODUCT, row, col);
}

/* ---- rows with many entries ---------------------------------------------------------------------------------
 * A block to a row and 32 columns: all threads bring entries into shared memory, one warp adds them in order. While it
 * adds one tile the others fetch the next. */

enum { SPAN = 32, TILE = 64 }; /* columns, entries */

DEVICE void fetch_tile(const Product& p, i64 at, i64 end, int col0, float* tile) {
    for (int t = (int)threadIdx.x; t < TILE * SPAN; t += (int)blockDim.x) {
        const i64 entry = at + t / SPAN;
        const int col = col0 + t % SPAN;
        if (entry >= end || col >= p.c) continue;
        const float x = p.X[(i64)p.columns[entry] * p.c + col];
        tile[t] = p.data ? mul(p.data[entry], x) : x;
    }
}

/* rows [gridDim.x]; 256 threads; blocks in y are further columns. places or null: where in Y the sums of each go, with
 * live and gate null */
KERNEL __launch_bounds__(256) spmm_long(PRODUCT_ARGUMENTS, const i64* rows, const i64* places) {
    __shared__ float tiles[2][TILE * SPAN];
    const Product p = PRODUCT;
    const i64 row = rows[blockIdx.x], end = offsets[row + 1], place = places ? places[blockIdx.x] : row;
    const int col0 = (int)blockIdx.y * SPAN, lane = (int)threadIdx.x, col = col0 + lane;
    const bool adds = lane < SPAN && col < c;
    float sum = adds && !first ? Y[place * c + col] : 0.0f;
    int now = 0;
    fetch_tile(p, offsets[row], end, col0, tiles[0]);
    __syncthreads();
    for (i64 at = offsets[row]; at < end; at += TILE, now ^= 1) {
        const int count = end - at < TILE ? (int)(end - at) : TILE;
        if (adds)
            for (int t = 0; t < count; ++t) sum = add(sum, tiles[now][t * SPAN + lane]);
        fetch_tile(p, at + TILE, end, col0, tiles[now ^ 1]);
        __syncthreads();
    }
    if (!adds) return;
    float* y = Y + place * c + col;
    if (!is_live(p, row, col)) {
        if (first) *y = 0.0f;
        return;
    }
    *y = gate ? open_gate(sum, *gate_at(p, row, col)) : sum;
}

/* ---- some rows ------------------------------------------------------------------------------------------------
 * N [count, c] = the sums of rows [count]: a sub-warp of `lanes`, a power of two up to 32, to a row. */

#define SOME_ARGUMENTS                                                                                        \
    const i64 count, const int c, const i64 *offsets, const int *columns, const float *data, const float *X,   \
        const int *rows, float *N, const int longest, const int lanes
#define SOME                                                                                                  \
    Product { count, c, c, offsets, columns, data, X, N, 0, 1, 0, 0 }

KERNEL __launch_bounds__(256) spmm_rows(SOME_ARGUMENTS) {
    const i64 i = thread_number() / lanes;
    const int col = (int)blockIdx.y * lanes + (int)threadIdx.x % lanes;
    if (i >= count || col >= c) return;
    const i64 begin = offsets[rows[i]], end = offsets[rows[i] + 1];
    if (end - begin <= longest) N[i * c + col] = follow_column(SOME, begin, end, col, 0.0f);
}

/* Four columns a lane; X and N are 16-byte aligned. */
KERNEL __launch_bounds__(256) spmm_rows_4(SOME_ARGUMENTS) {
    const i64 i = thread_number() / lanes;
    const int col = 4 * ((int)blockIdx.y * lanes + (int)threadIdx.x % lanes);
    if (i >= count || col >= c) return;
    const i64 begin = offsets[rows[i]], end = offsets[rows[i] + 1];
    if (end - begin > longest) return;
    const Product p = SOME;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4* to = (float4*)(N + i * c + col);
    *to = data ? follow<true>(p, begin, end, col, zero) : follow<false>(p, begin, end, col, zero);
}

/* ---- rows that stand in a table ------------------------------------------------------------------------------
 * X[u, s] = table[code[u * states + s]], f columns. A thread has one column of one state of a row. */
KERNEL __launch_bounds__(256)
    spmm_lookup(const i64 n, const int states, const int f, const i64* offsets, const int* columns,
                const float* table, const int* code, float* Y, const float* live, const int first) {
    const i64 t = thread_number(), own = t / f;
    if (own >= n * states) return;
    const i64 row = own / states, end = offsets[row + 1];
    const int state = (int)(own % states), col = (int)(t % f);
    if (live && live[own] == 0.0f) {
        if (first) Y[t] = 0.0f;
        return;
    }
    float sum = first ? 0.0f : Y[t];
    i64 at = offsets[row];
    for (; at + AHEAD <= end; at += AHEAD) {
        float x[AHEAD];
#pragma unroll
        for (int q = 0; q < AHEAD; ++q)
            x[q] = table[(i64)code[(i64)columns[at + q] * states + state] * f + col];
#pragma unroll
        for (int q = 0; q < AHEAD; ++q) sum = add(sum, x[q]);
    }
    for (; at < end; ++at) sum = add(sum, table[(i64)code[(i64)columns[at] * states + state] * f + col]);
    Y[t] = sum;
}
