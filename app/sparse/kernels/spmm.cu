/* Sparse times dense: Y += A X, or Y = A X where `first`. A row of A belongs to a sub-warp, whose lanes hold columns; a
 * column is one chain over the row's entries in stored order. What bounds a row is the time from one gather to the next:
 * so a lane asks for AHEAD lines of X before it adds the first, and for the column numbers of those after them. Rows with
 * many entries take a block each.
 *
 * A [n, *] CSR: offsets, columns, data (null: all ones)     X [*, c] row-major     Y [n, c], rows ldy apart
 * A row of c columns is that of c / f states side by side. live [n][c / f] or null: columns of a state where it is 0
 * are zero where `first`, else left as they are. gate or null: rows of f columns, [n][c / f] or by gate_index a table;
 * with it the sums are multiplied by (gate > 0).
 * order [n] or null: the rows in the order in which sub-warps take them, those of a warp with about as many entries
 * many [count]: the rows with more than `longest` entries, which the first blocks take */
#include "common.cuh"

typedef struct {
    i64 n;
    int c, f;
    const i64* offsets;
    const int* columns;
    const float *data, *X;
    float* Y;
    i64 ldy;
    const float* live;
    int first;
    const float* gate;
    const int* gate_index;
} Product;

#define PRODUCT_ARGUMENTS                                                                                     \
    const i64 n, const int c, const int f, const i64 *offsets, const int *columns, const float *data,         \
        const float *X, float *Y, const i64 ldy, const float *live, const int first, const float *gate,       \
        const int *gate_index
#define PRODUCT                                                                                               \
    Product { n, c, f, offsets, columns, data, X, Y, ldy, live, first, gate, gate_index }
#define ROW_ARGUMENTS const int *order, const int longest, const int count, const i64 *many

DEVICE bool is_live(const Product& p, i64 row, int col) {
    return !p.live || p.live[row * (p.c / p.f) + col / p.f] != 0.0f;
}

/* The element of the gate that belongs to (row, col). */
DEVICE const float* gate_at(const Product& p, i64 row, int col) {
    const i64 state = row * (p.c / p.f) + col / p.f;
    return p.gate + (p.gate_index ? (i64)p.gate_index[state] : state) * p.f + col % p.f;
}

/* ---- rows with many entries ---------------------------------------------------------------------------------
 * A block to a row and SPAN columns. Its last FETCHERS threads copy TILE entries into shared memory, ahead of its first warp,
 * which adds them in order, a column a lane; neither does anything else. So a row takes little more than its additions, of
 * four cycles each: what is read in between, and each tile's beginning, are what is left to save. */

enum { FETCHERS = 128, EACH = 16, CHUNK = 128 };

/* PIECE columns are copied at a time. */
template <int PIECE_, int SPAN_, int TILE_> struct Way {
    enum {
        PIECE = PIECE_, SPAN = SPAN_, TILE = TILE_, ACROSS = SPAN / PIECE, CHUNKS = TILE * ACROSS / FETCHERS,
        STEP = FETCHERS / ACROSS, KNOWN = PIECE > 1 ? CHUNKS : 1
    };
};
typedef Way<4, 8, 512> Narrow; /* up to 16 columns */
typedef Way<4, 16, 256> Wide;
typedef Way<1, 16, 256> Odd; /* any number of columns, any place in memory */

/* Of the tile that begins at entry `at`, next[i] = the row of X of the thread's entry i, -1: none. Odd has too many. */
template <class W> DEVICE void number_tile(const Product& p, i64 at, i64 end, int (&next)[W::KNOWN]) {
    const int first = ((int)threadIdx.x - ((int)blockDim.x - FETCHERS)) / W::ACROSS;
#pragma unroll
    for (int i = 0; i < W::KNOWN; ++i) {
        const i64 entry = at + first + i * W::STEP;
        next[i] = entry < end ? p.columns[entry] : -1;
    }
}

/* The thread's part of that tile; then the numbers of the tile after it. */
template <class W>
DEVICE void copy_tile(const Product& p, i64 at, i64 end, int col0, int (&next)[W::KNOWN], float* tile, float* values) {
    const int number = (int)threadIdx.x - ((int)blockDim.x - FETCHERS);
    const int first = number / W::ACROSS, place = number % W::ACROSS * W::PIECE, col = col0 + place;
#pragma unroll 8
    for (int i = 0; i < W::CHUNKS; ++i) {
        const int entry = first + i * W::STEP;
        if (at + entry >= end || col >= p.c) continue;
        const int row = W::KNOWN == W::CHUNKS ? next[i % W::KNOWN] : p.columns[at + entry];
        copy_ahead<4 * W::PIECE>(tile + entry * W::SPAN + place, p.X + (i64)row * p.c + col);
        if (p.data && place == 0) copy_ahead<4>(values + entry, p.data + at + entry);
    }
    close_copies();
    number_tile<W>(p, at + W::TILE, end, next);
}

/* x = column `lane` of EACH entries of a tile, one after the other; the lanes of a warp together. A load brings four, not
 * one: the warp has few marks to wait for loads by, and waited for all those under way. */
template <int SPAN> DEVICE void read_run(const float* tile, int lane, float (&x)[EACH]) {
#pragma unroll
    for (int q = 0; q < EACH; q += 4) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
        /* lane l names a line of entry l / 8, four columns; what it gets is column l of each entry */
        const float* line = tile + (q + lane / 8) * SPAN + lane * 4 % SPAN;
        unsigned r[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"((unsigned)__cvta_generic_to_shared(line))
                     : "memory");
        for (int i = 0; i < 4; ++i) x[q + i] = __int_as_float((int)r[i]);
#else
        for (int i = 0; i < 4; ++i) x[q + i] = tile[(q + i) * SPAN + lane % SPAN];
#endif
    }
}

template <bool VALUED> DEVICE float add_run(const float (&x)[EACH], const float* values, int count, float sum) {
#pragma unroll
    for (int q = 0; q < EACH; ++q)
        if (q < count) sum = add(sum, VALUED ? mul(values[q], x[q]) : x[q]);
    return sum;
}

/* The chain of column `lane` goes on over the entries of a tile: EACH are read while those before are added. */
template <bool VALUED, int SPAN>
DEVICE float add_tile(const float* tile, const float* values, int count, int lane, float sum) {
    float now[EACH], next[EACH];
    int t = 0;
#pragma unroll 1
    for (; t + CHUNK <= count; t += CHUNK) {
        read_run<SPAN>(tile + t * SPAN, lane, now);
#pragma unroll
        for (int i = 0; i < CHUNK; i += EACH) {
            if (i + EACH < CHUNK) read_run<SPAN>(tile + (t + i + EACH) * SPAN, lane, next);
            sum = add_run<VALUED>(now, values + t + i, EACH, sum);
#pragma unroll
            for (int q = 0; q < EACH; ++q) now[q] = next[q];
        }
    }
#pragma unroll 1
    for (; t < count; t += EACH) {
        read_run<SPAN>(tile + t * SPAN, lane, now);
        sum = add_run<VALUED>(now, values + t, count - t, sum);
    }
    return sum;
}

/* Columns from col0 on of a row of A, to row `place` of Y. */
template <class W> DEVICE void long_row(const Product& p, i64 row, i64 place, int col0) {
    __shared__ __align__(16) float tiles[2][W::TILE * W::SPAN];
    __shared__ float values[2][W::TILE];
    const i64 begin = p.offsets[row], end = p.offsets[row + 1];
    const int thread = (int)threadIdx.x, col = col0 + thread;
    const bool fetches = thread >= (int)blockDim.x - FETCHERS, adds = thread < W::SPAN && col < p.c;
    int next[W::KNOWN];
    if (fetches) {
        number_tile<W>(p, begin, end, next);
        copy_tile<W>(p, begin, end, col0, next, tiles[0], values[0]);
    }
    float sum = adds && !p.first ? p.Y[place * p.ldy + col] : 0.0f;
    int now = 0;
    for (i64 at = begin; at < end; at += W::TILE, now ^= 1) {
        if (fetches) await_copies<0>();
        __syncthreads(); /* this tile is here, and the one before was added, whose place is free */
        if (fetches) copy_tile<W>(p, at + W::TILE, end, col0, next, tiles[now ^ 1], values[now ^ 1]);
        else if (thread < WARP) {
            const int count = end - at < W::TILE ? (int)(end - at) : W::TILE;
            sum = p.data ? add_tile<true, W::SPAN>(tiles[now], values[now], count, thread, sum)
                         : add_tile<false, W::SPAN>(tiles[now], 0, count, thread, sum);
        }
    }
    if (!adds) return;
    float* y = p.Y + place * p.ldy + col;
    if (!is_live(p, row, col)) {
        if (p.first) *y = 0.0f;
        return;
    }
    *y = p.gate ? open_gate(sum, *gate_at(p, row, col)) : sum;
}

/* Blocks that take long rows. */
template <class W> DEVICE int blocks_before(const Product& p, int count) { return count * ((p.c + W::SPAN - 1) / W::SPAN); }

/* Whether this block is one of those; if so it does. */
template <class W> DEVICE bool took_long_row(const Product& p, int count, const i64* many) {
    const int spans = (p.c + W::SPAN - 1) / W::SPAN;
    if ((int)blockIdx.x >= count * spans) return false;
    if (!blockIdx.y) {
        const i64 row = many[(int)blockIdx.x / spans];
        long_row<W>(p, row, row, (int)blockIdx.x % spans * W::SPAN);
    }
    return true;
}

/* The row that this thread's group of lanes takes, in a block after `before` others; or -1. */
DEVICE i64 row_of_group(const Product& p, int lanes, const int* order, int longest, int before) {
    const i64 place = ((i64)((int)blockIdx.x - before) * blockDim.x + threadIdx.x) / lanes;
    if (place >= p.n) return -1;
    const i64 row = order ? (i64)order[place] : place;
    return p.offsets[row + 1] - p.offsets[row] > longest ? -1 : row;
}

/* ---- four columns a lane, or eight ------------------------------------------------------------------------- */

enum { AHEAD = 6 }; /* gathers in flight */

/* sum[i], columns col + i stride to + 3: the chains go on over the entries begin .. end - 1. */
template <bool VALUED, int RUNS, int MOST>
DEVICE void follow(const Product& p, const i64 begin, const i64 end, const int col, const int stride,
                   const bool (&runs)[RUNS], float4 (&sum)[RUNS]) {
    const int *columns = p.columns + begin, count = (int)(end - begin);
    const float *data = VALUED ? p.data + begin : 0, *X = p.X + col;
    int next[MOST];
#pragma unroll
    for (int q = 0; q < MOST; ++q) next[q] = q < count ? columns[q] : 0;
    for (int at = 0; at < count; at += MOST) {
        float4 x[MOST][RUNS];
#pragma unroll
        for (int q = 0; q < MOST; ++q)
#pragma unroll
            for (int i = 0; i < RUNS; ++i)
                if (at + q < count && runs[i]) x[q][i] = *(const float4*)(X + (i64)next[q] * p.c + i * stride);
#pragma unroll
        for (int q = 0; q < MOST; ++q) next[q] = at + MOST + q < count ? columns[at + MOST + q] : 0;
#pragma unroll
        for (int q = 0; q < MOST; ++q) {
            const float a = VALUED && at + q < count ? data[at + q] : 1.0f;
#pragma unroll
            for (int i = 0; i < RUNS; ++i)
                if (at + q < count && runs[i]) sum[i] = VALUED ? link4(sum[i], a, x[q][i]) : add4(sum[i], x[q][i]);
        }
    }
}

DEVICE float4 gated4(const Product& p, i64 row, int col, float4 z) {
    if (!p.gate) return z;
    const float4 g = *(const float4*)gate_at(p, row, col);
    return make_float4(open_gate(z.x, g.x), open_gate(z.y, g.y), open_gate(z.z, g.z), open_gate(z.w, g.w));
}

/* RUNS x 4 columns a lane; with more than one, live must be null. */
template <int LANES, int RUNS, int MOST> DEVICE void row_by_four(const Product& p, i64 row) {
    const int stride = 4 * LANES, col = RUNS * stride * (int)blockIdx.y + 4 * ((int)threadIdx.x % LANES);
    if (row < 0 || col >= p.c) return;
    const i64 begin = p.offsets[row], end = p.offsets[row + 1];
    float* y = p.Y + row * p.ldy + col;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (RUNS == 1 && !is_live(p, row, col)) {
        if (p.first) *(float4*)y = zero;
        return;
    }
    if (begin == end && !p.first) return;
    bool runs[RUNS];
    float4 sum[RUNS];
#pragma unroll
    for (int i = 0; i < RUNS; ++i) {
        runs[i] = !i || col + i * stride < p.c;
        sum[i] = p.first || !runs[i] ? zero : *(const float4*)(y + i * stride);
    }
    if (p.data) follow<true, RUNS, MOST>(p, begin, end, col, stride, runs, sum);
    else follow<false, RUNS, MOST>(p, begin, end, col, stride, runs, sum);
#pragma unroll
    for (int i = 0; i < RUNS; ++i)
        if (runs[i]) *(float4*)(y + i * stride) = gated4(p, row, col + i * stride, sum[i]);
}

/* Lanes x 4 columns; blocks in y are further columns. c, f and ldy are multiples of 4, X, Y and gate 16-byte aligned. */
#define BY_FOUR(name, WAY, LANES, RUNS)                                                                            \
    KERNEL __launch_bounds__(256, 4) name(PRODUCT_ARGUMENTS, ROW_ARGUMENTS) {                                      \
        const Product p = PRODUCT;                                                                                 \
        if (took_long_row<WAY>(p, count, many)) return;                                                            \
        const i64 row = row_of_group(p, LANES, order, longest, blocks_before<WAY>(p, count));                      \
        row_by_four<LANES, RUNS, AHEAD / RUNS>(p, row);                                                            \
    }
BY_FOUR(spmm_16, Narrow, 4, 1)
BY_FOUR(spmm_32, Wide, 8, 1)
BY_FOUR(spmm_64, Wide, 16, 1)
BY_FOUR(spmm_128, Wide, 32, 1)
BY_FOUR(spmm_256, Wide, 32, 2) /* a warp reads whole rows of X one after the other */

/* ---- any width: a column a lane, at most 32 lanes to a row --------------------------------------------------- */

DEVICE float follow_column(const Product& p, const i64 begin, const i64 end, const int col, float sum) {
    const int *columns = p.columns + begin, count = (int)(end - begin);
    const float *data = p.data ? p.data + begin : 0, *X = p.X + col;
    int next[AHEAD];
#pragma unroll
    for (int q = 0; q < AHEAD; ++q) next[q] = q < count ? columns[q] : 0;
    for (int at = 0; at < count; at += AHEAD) {
        float x[AHEAD];
#pragma unroll
        for (int q = 0; q < AHEAD; ++q) {
            if (at + q < count) x[q] = X[(i64)next[q] * p.c];
            if (data && at + q < count) x[q] = mul(data[at + q], x[q]);
        }
#pragma unroll
        for (int q = 0; q < AHEAD; ++q) next[q] = at + AHEAD + q < count ? columns[at + AHEAD + q] : 0;
#pragma unroll
        for (int q = 0; q < AHEAD; ++q)
            if (at + q < count) sum = add(sum, x[q]);
    }
    return sum;
}

DEVICE void one_column(const Product& p, i64 row, int col) {
    const i64 at = p.offsets[row], end = p.offsets[row + 1];
    float* y = p.Y + row * p.ldy + col;
    if (!is_live(p, row, col)) {
        if (p.first) *y = 0.0f;
        return;
    }
    if (at == end && !p.first) return;
    const float sum = follow_column(p, at, end, col, p.first ? 0.0f : *y);
    *y = p.gate ? open_gate(sum, *gate_at(p, row, col)) : sum;
}

/* lanes: a power of two up to 32 */
KERNEL __launch_bounds__(256, 3) spmm_any(PRODUCT_ARGUMENTS, ROW_ARGUMENTS, const int lanes) {
    const Product p = PRODUCT;
    if (took_long_row<Odd>(p, count, many)) return;
    const i64 row = row_of_group(p, lanes, order, longest, blocks_before<Odd>(p, count));
    const int col = (int)blockIdx.y * lanes + (int)threadIdx.x % lanes;
    if (row >= 0 && col < c) one_column(p, row, col);
}

/* ---- some rows ------------------------------------------------------------------------------------------------
 * N [count, c] = the sums of rows [count]: a sub-warp of `lanes`, a power of two up to 32, to a row. */

#define SOME_ARGUMENTS                                                                                        \
    const i64 count, const int c, const i64 *offsets, const int *columns, const float *data, const float *X,   \
        const int *rows, float *N, const int longest, const int lanes
#define SOME                                                                                                  \
    Product { count, c, c, offsets, columns, data, X, N, c, 0, 1, 0, 0 }

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
    const bool runs[1] = {true};
    float4 sum[1] = {make_float4(0.0f, 0.0f, 0.0f, 0.0f)};
    if (data) follow<true, 1, AHEAD>(p, begin, end, col, 0, runs, sum);
    else follow<false, 1, AHEAD>(p, begin, end, col, 0, runs, sum);
    *(float4*)(N + i * c + col) = sum[0];
}

/* The rows of N `places` [gridDim.x], which are those of long [gridDim.x]; blocks in y are further columns. */
#define LONG_SOME const i64 *rows, const i64 *places
KERNEL __launch_bounds__(256) spmm_long(PRODUCT_ARGUMENTS, LONG_SOME) {
    long_row<Odd>(PRODUCT, rows[blockIdx.x], places[blockIdx.x], (int)blockIdx.y * Odd::SPAN);
}

/* c a multiple of 4, X 16-byte aligned. */
KERNEL __launch_bounds__(256) spmm_long_4(PRODUCT_ARGUMENTS, LONG_SOME) {
    long_row<Wide>(PRODUCT, rows[blockIdx.x], places[blockIdx.x], (int)blockIdx.y * Wide::SPAN);
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
