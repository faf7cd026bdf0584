/* Sums over rows by block of rows: weight gradients X^T D, sums of columns, and sums of blocks as a fixed tree.
 * An element of a block is one chain over the block's rows, graph by graph. */
#include "common.cuh"
#include "tiles.cuh"

/* The gradient's elements of one block of rows that a block of threads makes: TALL columns of X by BROAD of D, from DEEP
 * rows at a time. 
 *
 * out [blocks][stride] + first: [k][m]     starts [graphs][blocks + 1]: rows of block b of each graph
 * X [*, k], rows ld apart, row r is X[index[r]] times scale[r] where given     D [rows, m], rows ldd apart */
#define GRAM_ARGUMENTS                                                                                        \
    const i64 graphs, const i64 blocks, const i64 first_block, const int k, const int m, const i64 *starts,   \
        const float *X, const i64 ld, const int *index, const float *scale, const float *D, const i64 ldd,    \
        float *out, const i64 stride, const i64 first

/* To the next rows of the block, from graph -1 on to the first; graph `graphs`: there are none. */
DEVICE void advance(i64 graphs, i64 blocks, i64 block, const i64* starts, i64& g, i64& at, i64& end) {
    at += DEEP;
    while (g < graphs && (g < 0 || at >= end)) {
        if (++g == graphs) return;
        at = starts[g * (blocks + 1) + block], end = starts[g * (blocks + 1) + block + 1];
    }
}

template <bool FOUR, int TALL, int BROAD, int HIGH, int WIDE>
DEVICE void gram_tile(Slices<TALL, BROAD, HIGH, WIDE>& slices, GRAM_ARGUMENTS) {
    const int tiles = (m + BROAD - 1) / BROAD;
    const int i0 = (int)blockIdx.y / tiles * TALL, j0 = (int)blockIdx.y % tiles * BROAD;
    const i64 block = first_block + blockIdx.x;
    float sum[HIGH][WIDE];
    int down, across, now = 0;
    begin_tile<TALL, BROAD>(sum, down, across);
    i64 g = -1, at = 0, end = 0;
    Lines<TALL> x;
    Lines<BROAD> d;
    const auto left = [&](int r) { return at + r < end ? X + (index ? (i64)index[at + r] : at + r) * ld : 0; };
    const auto right = [&](int r) { return at + r < end ? D + (at + r) * ldd : 0; };
    const auto numbered = [&](int r) { return at + r < end ? left(r) + i0 : 0; };
    const auto factor = [&](int r) { return at + r < end ? scale[at + r] : 0.0f; };
    const auto fetch = [&](int next) {
        if (FOUR) { /* straight into shared memory */
            if (index) copy_lines<false, TALL>(slices.a[next], numbered, k - i0);
            else copy_rows<false, TALL>(slices.a[next], X + at * ld + i0, ld, end - at, k - i0);
            copy_rows<true, BROAD>(slices.b[next], D + at * ldd + j0, ldd, end - at, m - j0);
            close_copies();
        } else {
            fetch_lines<false>(x, left, i0, k, 0.0f);
            fetch_lines<false>(d, right, j0, m, -0.0f);
            if (scale) scale_lines(x, factor);
        }
    };
    advance(graphs, blocks, block, starts, g, at, end);
    if (g < graphs) fetch(0);
    while (g < graphs) {
        if (FOUR) await_copies<0>();
        else {
            store_lines<false>(x, slices.a[now]);
            store_lines<false>(d, slices.b[now]);
        }
        __syncthreads(); /* as in dense.cu */
        advance(graphs, blocks, block, starts, g, at, end);
        if (g < graphs) fetch(now ^ 1);
        add_slice(slices, now, down, across, sum);
        now ^= 1;
    }
    float* to = out + (i64)blockIdx.x * stride + first;
#pragma unroll
    for (int i = 0; i < HIGH; ++i)
#pragma unroll
        for (int j = 0; j < WIDE; ++j) {
            const int row = i0 + place_of<TALL, HIGH>(down, i), col = j0 + place_of<BROAD, WIDE>(across, j);
            if (row < k && col < m) to[(i64)row * m + col] = sum[i][j];
        }
}

#define GRAM_NAMES                                                                                            \
    graphs, blocks, first_block, k, m, starts, X, ld, index, scale, D, ldd, out, stride, first
#define TILES(name, FOUR, BLOCKS, TALL, BROAD, HIGH, WIDE)                                                            \
    KERNEL __launch_bounds__(256, BLOCKS) name(GRAM_ARGUMENTS) {                                                      \
        __shared__ __align__(16) Slices<TALL, BROAD, HIGH, WIDE> slices;                                              \
        gram_tile<FOUR>(slices, GRAM_NAMES);                                                                          \
    }
TILES(gram_16, false, 3, 32, 16, 2, 1)
TILES(gram_tall, false, 3, 128, 16, 4, 2)
TILES(gram_64, false, 3, 64, 64, 4, 4)
TILES(gram_128, false, 1, 128, 128, 8, 8)
/* k, m and the rows' strides multiples of 4, X and D 16-byte aligned; no scale. */
TILES(gram_64_4, true, 3, 64, 64, 4, 4)
TILES(gram_128_4, true, 2, 128, 128, 8, 8)

/* Four levels of the tree over rows [count][width]: row i += row i + s, for s = step, 2 step, 4 step, 8 step and i a multiple
 * of 2 s. A row without a partner stays as it is. */
KERNEL merge_rows(const i64 count, const i64 width, const i64 step, float* rows) {
    enum { EACH = 16 };
    const i64 t = thread_number(), first = t / width * EACH * step;
    if (first >= count) return;
    float* column = rows + first * width + t % width;
    const i64 left = (count - first + step - 1) / step;
    float sum[EACH];
#pragma unroll
    for (int q = 0; q < EACH; ++q) sum[q] = q < left ? column[q * step * width] : 0.0f;
#pragma unroll
    for (int s = 1; s < EACH; s *= 2)
#pragma unroll
        for (int q = 0; q < EACH; q += 2 * s)
            if (q + s < left) sum[q] = add(sum[q], sum[q + s]);
    *column = sum[0];
}

/* The chain goes on over EACH of `count` numbers, `step` apart; what is beyond them is read again and not added. */
template <int EACH> DEVICE float add_some(const float* x, i64 step, i64 count, float sum) {
    float next[EACH];
#pragma unroll
    for (int q = 0; q < EACH; ++q) next[q] = x[(q < count ? q : count - 1) * step];
#pragma unroll
    for (int q = 0; q < EACH; ++q) sum = q < count ? add(sum, next[q]) : sum;
    return sum;
}

/* Over all of them: 32 are on their way at a time, so that few waits are left. */
DEVICE float add_rows(const float* x, i64 step, i64 count, float sum) {
    for (; count >= 32; count -= 32, x += 32 * step) sum = add_some<32>(x, step, 32, sum);
    for (; count > 0; count -= 8, x += 8 * step) sum = add_some<8>(x, step, count, sum);
    return sum;
}

/* out [count, c]: X[starts[i]] + ... + X[starts[i + 1] - 1]. */
KERNEL fold(const i64 count, const int c, const i64* starts, const float* X, float* out) {
    const i64 t = thread_number(), i = t / c;
    if (i >= count) return;
    const i64 first = starts[i];
    out[t] = add_rows(X + first * c + t % c, c, starts[i + 1] - first, 0.0f);
}

/* out [blocks, states, f]: sums over the nodes of each block, of every state of a batch. Graph g has nodes
 * nodes[g][b] .. nodes[g][b + 1] - 1 in block b, count[g] states from first[g] on, and rows from at[g] on. */
KERNEL fold_members(const i64 blocks, const i64 states, const int f, const int* member, const i64* nodes,
                    const i64* count, const i64* first, const i64* at, const float* X, float* out) {
    const i64 t = thread_number(), block = t / f / states, state = t / f % states;
    if (block >= blocks) return;
    const i64 g = member[state], begin = nodes[g * (blocks + 1) + block], end = nodes[g * (blocks + 1) + block + 1];
    const i64 step = count[g] * f;
    out[t] = add_rows(X + (at[g] + state - first[g]) * f + t % f + begin * step, step, end - begin, 0.0f);
}
