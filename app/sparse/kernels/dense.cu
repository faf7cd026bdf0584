/* Dense rows times a small matrix: Z = [part_0 | part_1 | part_2] W, an element one chain over the columns of all parts
 * in order. Then, in this order and each only where given:
 *   Z = base base_scale + Z;  Z = max(Z, 0);  Z *= scale (0 where scale is 0);  Z *= (gate > 0)
 *
 * A part is X [*, k], rows ld apart; row r is X[index[r]] times scale[r], where index and scale are given. Parts that
 * are missing have k = 0. base and gate [rows, m], rows ld apart; gate is a table where gate_index is given. */
#include "common.cuh"

typedef struct {
    const float* X;
    i64 ld;
    int k;
    const int* index;
    const float* scale;
} Part;

typedef struct {
    const float* base;
    i64 base_ld;
    const float* base_scale;
    int relu;
    const float *scale, *gate;
    i64 gate_ld;
    const int* gate_index;
} Finish;

#define PART(i) const float *X##i, const i64 ld##i, const int k##i, const int *index##i, const float *scale##i
#define DENSE_ARGUMENTS                                                                                       \
    const i64 rows, const int m, PART(0), PART(1), PART(2), const float *W, float *Z, const i64 ldz,          \
        const float *base, const i64 base_ld, const float *base_scale, const int relu, const float *scale,    \
        const float *gate, const i64 gate_ld, const int *gate_index
#define PARTS                                                                                                 \
    { {X0, ld0, k0, index0, scale0}, {X1, ld1, k1, index1, scale1}, {X2, ld2, k2, index2, scale2} }
#define FINISH                                                                                                \
    { base, base_ld, base_scale, relu, scale, gate, gate_ld, gate_index }

DEVICE float finish(const Finish& then, i64 row, int col, float z) {
    if (then.base) {
        const float b = then.base[row * then.base_ld + col];
        z = add(then.base_scale ? mul(b, then.base_scale[row]) : b, z);
    }
    if (then.relu) z = z < 0.0f ? 0.0f : z;
    if (then.scale) {
        const float s = then.scale[row];
        z = s != 0.0f ? mul(z, s) : 0.0f;
    }
    if (then.gate) {
        const i64 at = then.gate_index ? (i64)then.gate_index[row] : row;
        z = open_gate(z, then.gate[at * then.gate_ld + col]);
    }
    return z;
}

DEVICE float element(const Part& part, i64 row, int j) {
    const float x = part.X[(part.index ? (i64)part.index[row] : row) * part.ld + j];
    return part.scale ? mul(x, part.scale[row]) : x;
}

/* TALL x BROAD outputs to a block of 256 threads, HIGH x WIDE of them to a thread, DEEP columns of X at a time in shared
 * memory. Missing rows, columns and elements are zero there: a chain begins at +0 and is then never -0, so a product of
 * zero more changes nothing. */
enum { DEEP = 16 };

template <int TALL, int BROAD, int HIGH, int WIDE>
DEVICE void tile_product(i64 rows, int m, const Part (&parts)[3], const float* W, float* Z, i64 ldz,
                         const Finish& then) {
    __shared__ __align__(16) float x[DEEP][TALL + 4];
    __shared__ __align__(16) float w[DEEP][BROAD];
    const int thread = (int)threadIdx.x, across = BROAD / WIDE;
    const i64 row0 = (i64)blockIdx.x * TALL;
    const int col0 = (int)blockIdx.y * BROAD, high = thread / across * HIGH, wide = thread % across * WIDE;
    float sum[HIGH][WIDE];
#pragma unroll
    for (int i = 0; i < HIGH; ++i)
#pragma unroll
        for (int j = 0; j < WIDE; ++j) sum[i][j] = 0.0f;
#pragma unroll 1
    for (int q = 0; q < 3; ++q) {
        const Part part = q == 0 ? parts[0] : q == 1 ? parts[1] : parts[2]; /* an index would need memory */
        for (int at = 0; at < part.k; at += DEEP) {
            for (int t = thread; t < TALL * DEEP; t += 256) {
                const i64 row = row0 + t / DEEP;
                const int j = at + t % DEEP;
                x[t % DEEP][t / DEEP] = row < rows && j < part.k ? element(part, row, j) : 0.0f;
            }
            for (int t = thread; t < DEEP * BROAD; t += 256) {
                const int j = at + t / BROAD, col = col0 + t % BROAD;
                w[t / BROAD][t % BROAD] = j < part.k && col < m ? W[(i64)j * m + col] : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (int d = 0; d < DEEP; ++d) {
                float a[HIGH], b[WIDE];
#pragma unroll
                for (int i = 0; i < HIGH; ++i) a[i] = x[d][high + i];
#pragma unroll
                for (int j = 0; j < WIDE; ++j) b[j] = w[d][wide + j];
#pragma unroll
                for (int i = 0; i < HIGH; ++i)
#pragma unroll
                    for (int j = 0; j < WIDE; ++j) sum[i][j] = fused(sum[i][j], a[i], b[j]);
            }
            __syncthreads();
        }
        W += (i64)part.k * m;
    }
#pragma unroll
    for (int i = 0; i < HIGH; ++i) {
        const i64 row = row0 + high + i;
        if (row >= rows) continue;
#pragma unroll
        for (int j = 0; j < WIDE; ++j) {
            const int col = col0 + wide + j;
            if (col < m) Z[row * ldz + col] = finish(then, row, col, sum[i][j]);
        }
    }
}

#define TILES(name, BLOCKS, TALL, BROAD, HIGH, WIDE)                                                                  \
    KERNEL __launch_bounds__(256, BLOCKS) name(DENSE_ARGUMENTS) {                                                     \
        const Part parts[3] = PARTS;                                                                          \
        const Finish then = FINISH;                                                                           \
        tile_product<TALL, BROAD, HIGH, WIDE>(rows, m, parts, W, Z, ldz, then);                               \
    }
TILES(dense_16, 3, 128, 16, 4, 2)
TILES(dense_32, 2, 128, 32, 4, 4)
TILES(dense_64, 2, 128, 64, 8, 4)
TILES(dense_128, 1, 128, 128, 8, 8)

/* A few columns: a thread to an element. */
KERNEL __launch_bounds__(256) dense_thin(DENSE_ARGUMENTS) {
    const Part parts[3] = PARTS;
    const Finish then = FINISH;
    const i64 t = thread_number(), row = t / m;
    const int col = (int)(t % m);
    if (row >= rows) return;
    float sum = 0.0f;
#pragma unroll
    for (int q = 0; q < 3; ++q) {
        for (int j = 0; j < parts[q].k; ++j) sum = fused(sum, element(parts[q], row, j), W[(i64)j * m + col]);
        W += (i64)parts[q].k * m;
    }
    Z[row * ldz + col] = finish(then, row, col, sum);
}

/* The same where part `which` is sums over neighbours that are made on the way (spmm_lookup, Y = A X): a layer in one
 * kernel. A block makes 256 / f rows of f columns, keeps them in shared memory for the product, and writes them to N for
 * the backward pass. f divides 256; rows are (node, state). */
KERNEL __launch_bounds__(256, 4)
    dense_made(DENSE_ARGUMENTS, const int which, const int states, const int f, const i64* offsets,
               const int* columns, const float* table, const int* code, const float* live, float* N) {
    __shared__ float made[256];
    const Part parts[3] = PARTS;
    const Finish then = FINISH;
    const int thread = (int)threadIdx.x, col = thread % f;
    const i64 row = (i64)blockIdx.x * (256 / f) + thread / f;
    if (row < rows) {
        const i64 node = row / states, end = live && live[row] == 0.0f ? 0 : offsets[node + 1];
        const int state = (int)(row % states);
        float sum = 0.0f;
#pragma unroll 4
        for (i64 at = offsets[node]; at < end; ++at)
            sum = add(sum, table[(i64)code[(i64)columns[at] * states + state] * f + col]);
        made[thread] = sum;
        N[row * f + col] = sum;
    }
    __syncthreads();
    if (row >= rows) return;
    for (int j = col; j < m; j += f) {
        const float* w = W + j;
        float sum = 0.0f;
#pragma unroll 1
        for (int q = 0; q < 3; ++q) {
            const Part part = q == 0 ? parts[0] : q == 1 ? parts[1] : parts[2];
            for (int d = 0; d < part.k; ++d, w += m) {
                float x;
                if (q != which) x = element(part, row, d);
                else x = part.scale ? mul(made[thread - col + d], part.scale[row]) : made[thread - col + d];
                sum = fused(sum, x, *w);
            }
        }
        Z[row * ldz + j] = finish(then, row, j, sum);
    }
}

/* out [rows, m] = values[index[r]] where gate is open, else 0 times it. */
KERNEL gated_spread(const i64 rows, const int m, const float* values, const int* index, const float* gate,
                    float* out) {
    const i64 t = thread_number();
    if (t < rows * m) out[t] = open_gate(values[(i64)index[t / m] * m + t % m], gate[t]);
}
