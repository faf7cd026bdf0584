/* Sums over rows by block of rows: weight gradients X^T D, sums of columns, and sums of blocks as a fixed tree.
 * An element of a block is one chain over the block's rows, graph by graph. */
#include "common.cuh"

/* The gradient's elements of one block of rows that a block of threads makes: TALL columns of X by BROAD of D, HIGH x
 * WIDE to a thread, from DEEP rows at a time in shared memory. Missing ones are zero, as in dense.cu.
 *
 * out [blocks][stride] + first: [k][m]     starts [graphs][blocks + 1]: rows of block b of each graph
 * X [*, k], rows ld apart, row r is X[index[r]] times scale[r] where given     D [rows, m], rows ldd apart */
enum { DEEP = 16 };

#define GRAM_ARGUMENTS                                                                                        \
    const i64 graphs, const i64 blocks, const i64 first_block, const int k, const int m, const i64 *starts,   \
        const float *X, const i64 ld, const int *index, const float *scale, const float *D, const i64 ldd,    \
        float *out, const i64 stride, const i64 first

template <int TALL, int BROAD, int HIGH, int WIDE> DEVICE void gram_tile(GRAM_ARGUMENTS) {
    __shared__ __align__(16) float x[DEEP][TALL];
    __shared__ __align__(16) float d[DEEP][BROAD];
    const int thread = (int)threadIdx.x, across = BROAD / WIDE, tiles = (m + BROAD - 1) / BROAD;
    const int i0 = (int)blockIdx.y / tiles * TALL, j0 = (int)blockIdx.y % tiles * BROAD;
    const int high = thread / across * HIGH, wide = thread % across * WIDE;
    const i64 block = first_block + blockIdx.x;
    float sum[HIGH][WIDE];
#pragma unroll
    for (int i = 0; i < HIGH; ++i)
#pragma unroll
        for (int j = 0; j < WIDE; ++j) sum[i][j] = 0.0f;
    for (i64 g = 0; g < graphs; ++g) {
        const i64 end = starts[g * (blocks + 1) + block + 1];
        for (i64 at = starts[g * (blocks + 1) + block]; at < end; at += DEEP) {
            for (int t = thread; t < DEEP * TALL; t += 256) {
                const i64 row = at + t / TALL;
                const int i = i0 + t % TALL;
                float value = 0.0f;
                if (row < end && i < k) {
                    value = X[(index ? (i64)index[row] : row) * ld + i];
                    if (scale) value = mul(value, scale[row]);
                }
                x[t / TALL][t % TALL] = value;
            }
            for (int t = thread; t < DEEP * BROAD; t += 256) {
                const i64 row = at + t / BROAD;
                const int j = j0 + t % BROAD;
                d[t / BROAD][t % BROAD] = row < end && j < m ? D[row * ldd + j] : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (int r = 0; r < DEEP; ++r) {
                float a[HIGH], b[WIDE];
#pragma unroll
                for (int i = 0; i < HIGH; ++i) a[i] = x[r][high + i];
#pragma unroll
                for (int j = 0; j < WIDE; ++j) b[j] = d[r][wide + j];
#pragma unroll
                for (int i = 0; i < HIGH; ++i)
#pragma unroll
                    for (int j = 0; j < WIDE; ++j) sum[i][j] = fused(sum[i][j], a[i], b[j]);
            }
            __syncthreads();
        }
    }
    float* to = out + (i64)blockIdx.x * stride + first;
#pragma unroll
    for (int i = 0; i < HIGH; ++i)
#pragma unroll
        for (int j = 0; j < WIDE; ++j)
            if (i0 + high + i < k && j0 + wide + j < m) to[(i64)(i0 + high + i) * m + j0 + wide + j] = sum[i][j];
}

#define GRAM_NAMES                                                                                            \
    graphs, blocks, first_block, k, m, starts, X, ld, index, scale, D, ldd, out, stride, first
KERNEL __launch_bounds__(256, 3) gram_16(GRAM_ARGUMENTS) { gram_tile<32, 16, 2, 1>(GRAM_NAMES); }
KERNEL __launch_bounds__(256, 3) gram_64(GRAM_ARGUMENTS) { gram_tile<64, 64, 4, 4>(GRAM_NAMES); }

/* One level of the tree over rows [count][width]: row i += row i + step, for i a multiple of 2 step. A row without a
 * partner stays as it is. */
KERNEL merge_pairs(const i64 count, const i64 width, const i64 step, float* rows) {
    const i64 t = thread_number(), left = t / width * 2 * step, right = left + step;
    if (right >= count) return;
    float* to = rows + left * width + t % width;
    *to = add(*to, rows[right * width + t % width]);
}

/* out [count, c]: X[starts[i]] + ... + X[starts[i + 1] - 1]. */
KERNEL fold(const i64 count, const int c, const i64* starts, const float* X, float* out) {
    const i64 t = thread_number(), i = t / c;
    if (i >= count) return;
    const i64 end = starts[i + 1];
    float sum = 0.0f;
#pragma unroll 4
    for (i64 row = starts[i]; row < end; ++row) sum = add(sum, X[row * c + t % c]);
    out[t] = sum;
}

/* out [blocks, states, f]: sums over the nodes of each block, of every state of a batch. Graph g has nodes
 * nodes[g][b] .. nodes[g][b + 1] - 1 in block b, count[g] states from first[g] on, and rows from at[g] on. */
KERNEL fold_members(const i64 blocks, const i64 states, const int f, const int* member, const i64* nodes,
                    const i64* count, const i64* first, const i64* at, const float* X, float* out) {
    const i64 t = thread_number(), block = t / f / states, state = t / f % states;
    if (block >= blocks) return;
    const i64 g = member[state], end = nodes[g * (blocks + 1) + block + 1];
    const float* x = X + (at[g] + state - first[g]) * f + t % f;
    float sum = 0.0f;
#pragma unroll 4
    for (i64 node = nodes[g * (blocks + 1) + block]; node < end; ++node) sum = add(sum, x[node * count[g] * f]);
    out[t] = sum;
}
