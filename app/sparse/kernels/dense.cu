/* Dense rows times a small matrix: Z = [part_0 | part_1 | part_2] W, an element one chain over the columns of all parts
 * in order. Then, in this order and each only where given:
 *   Z = base base_scale + Z;  Z = max(Z, 0);  Z *= scale (0 where scale is 0);  Z *= (gate > 0), or 0 if gate <= 0
 * (relu + 2 shuts: of the flags the first is for the maximum, the second for that zero; then gate may be Z itself)
 *
 * A part is X [*, k], rows ld apart; row r is X[index[r]] times scale[r], where index and scale are given. Parts that
 * are missing have k = 0. base and gate [rows, m], rows ld apart; gate is a table where gate_index is given. */
#include "common.cuh"
#include "tiles.cuh"

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
    int flags;
    const float *scale, *gate;
    i64 gate_ld;
    const int* gate_index;
} Finish;

enum { RELU = 1, SHUTS = 2 };

#define PART(i) const float *X##i, const i64 ld##i, const int k##i, const int *index##i, const float *scale##i
#define DENSE_ARGUMENTS                                                                                       \
    const i64 rows, const int m, PART(0), PART(1), PART(2), const float *W, float *Z, const i64 ldz,          \
        const float *base, const i64 base_ld, const float *base_scale, const int flags, const float *scale,    \
        const float *gate, const i64 gate_ld, const int *gate_index
#define PARTS                                                                                                 \
    { {X0, ld0, k0, index0, scale0}, {X1, ld1, k1, index1, scale1}, {X2, ld2, k2, index2, scale2} }
#define FINISH                                                                                                \
    { base, base_ld, base_scale, flags, scale, gate, gate_ld, gate_index }

DEVICE float rescaled(const Finish& then, float z, float s) {
    if (then.flags & RELU) z = z < 0.0f ? 0.0f : z;
    return !then.scale ? z : s != 0.0f ? mul(z, s) : 0.0f;
}

DEVICE float gated(const Finish& then, float z, float gate) {
    return then.flags & SHUTS ? (gate <= 0.0f ? 0.0f : z) : open_gate(z, gate);
}

DEVICE float finish(const Finish& then, i64 row, int col, float z) {
    if (then.base) {
        const float b = then.base[row * then.base_ld + col];
        z = add(then.base_scale ? mul(b, then.base_scale[row]) : b, z);
    }
    z = rescaled(then, z, then.scale ? then.scale[row] : 1.0f);
    if (!then.gate) return z;
    const i64 at = then.gate_index ? (i64)then.gate_index[row] : row;
    return gated(then, z, then.gate[at * then.gate_ld + col]);
}

/* Four columns; the rows of base and gate are not always aligned. */
DEVICE float4 finish4(const Finish& then, i64 row, int col, float4 z) {
    const float* gate = then.gate;
    if (then.base || !gate || (u64)gate & 15 || then.gate_ld % 4) {
        z.x = finish(then, row, col, z.x), z.y = finish(then, row, col + 1, z.y);
        z.z = finish(then, row, col + 2, z.z), z.w = finish(then, row, col + 3, z.w);
        return z;
    }
    const i64 at = then.gate_index ? (i64)then.gate_index[row] : row;
    const float4 g = *(const float4*)(gate + at * then.gate_ld + col);
    const float s = then.scale ? then.scale[row] : 1.0f;
    z.x = gated(then, rescaled(then, z.x, s), g.x), z.y = gated(then, rescaled(then, z.y, s), g.y);
    z.z = gated(then, rescaled(then, z.z, s), g.z), z.w = gated(then, rescaled(then, z.w, s), g.w);
    return z;
}

DEVICE float element(const Part& part, i64 row, int j) {
    const float x = part.X[(part.index ? (i64)part.index[row] : row) * part.ld + j];
    return part.scale ? mul(x, part.scale[row]) : x;
}

/* Where a product is in its chain: columns at .. at + DEEP - 1 of a part, whose first row of W is `first`. */
typedef struct {
    int part, at, first;
} Cursor;

DEVICE Part part_of(const Part (&parts)[3], int q) { /* an index would need memory */
    return q == 0 ? parts[0] : q == 1 ? parts[1] : parts[2];
}

/* To the next slice, from part -1 on to the first; part 3: there is none. */
DEVICE void advance(const Part (&parts)[3], Cursor& cursor) {
    cursor.at += DEEP;
    while (cursor.part < 3 && (cursor.part < 0 || cursor.at >= part_of(parts, cursor.part).k)) {
        cursor.first += cursor.part < 0 ? 0 : part_of(parts, cursor.part).k;
        cursor.at = 0;
        ++cursor.part;
    }
}

/* Columns at .. at + DEEP - 1 of TALL rows of a part in registers, a thread every 256th element, or FOUR of a row; 0 where there
 * are none. */
template <int TALL> struct Columns {
    enum { EACH = TALL * DEEP / 256 };
    float x[EACH];
};

template <bool FOUR, int TALL> DEVICE void fetch_columns(Columns<TALL>& columns, const Part& part, int at, i64 rows) {
    enum { AT_ONCE = FOUR ? 4 : 1, ACROSS = DEEP / AT_ONCE, STEP = 256 / ACROSS };
    const i64 row0 = (i64)blockIdx.x * TALL + (int)threadIdx.x / ACROSS;
    const int j = at + (int)threadIdx.x % ACROSS * AT_ONCE;
#pragma unroll
    for (int i = 0; i < columns.EACH / AT_ONCE; ++i) {
        const i64 row = row0 + i * STEP;
        const bool here = row < rows && j < part.k;
        const float* from = part.X + (here && part.index ? (i64)part.index[row] : row) * part.ld + j;
        if (FOUR) {
            const float4 x = here ? *(const float4*)from : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            float* to = columns.x + i * AT_ONCE;
            to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
        } else columns.x[i] = here ? *from : 0.0f;
    }
    if (!part.scale) return;
#pragma unroll
    for (int i = 0; i < columns.EACH; ++i) {
        const i64 row = row0 + i / AT_ONCE * STEP;
        if (row < rows && j < part.k) columns.x[i] = mul(columns.x[i], part.scale[row]); /* not 0 times infinity */
    }
}

/* Transposed: to[j][row]. */
template <bool FOUR, int TALL> DEVICE void store_columns(const Columns<TALL>& columns, float (&to)[DEEP][TALL + PAD]) {
    enum { AT_ONCE = FOUR ? 4 : 1, ACROSS = DEEP / AT_ONCE, STEP = 256 / ACROSS };
    const int row = (int)threadIdx.x / ACROSS, j = (int)threadIdx.x % ACROSS * AT_ONCE;
#pragma unroll
    for (int i = 0; i < columns.EACH; ++i) to[j + i % AT_ONCE][row + i / AT_ONCE * STEP] = columns.x[i];
}

template <bool FOUR, int TALL, int BROAD, int HIGH, int WIDE>
DEVICE void write_tile(const float (&sum)[HIGH][WIDE], int down, int across, i64 rows, int m, float* Z, i64 ldz,
                       const Finish& then) {
    const int col0 = (int)blockIdx.y * BROAD;
    const i64 row0 = (i64)blockIdx.x * TALL;
    enum { RUN = FOUR && WIDE >= 4 ? 4 : 1 }; /* columns that are written at a time */
#pragma unroll
    for (int i = 0; i < HIGH; ++i) {
        const i64 row = row0 + place_of<TALL, HIGH>(down, i);
        if (row >= rows) continue;
#pragma unroll
        for (int j = 0; j < WIDE; j += RUN) {
            const int col = col0 + place_of<BROAD, WIDE>(across, j);
            if (col >= m) continue;
            const float* z = &sum[i][j];
            if (RUN == 4) *(float4*)(Z + row * ldz + col) = finish4(then, row, col, make_float4(z[0], z[1], z[2], z[3]));
            else Z[row * ldz + col] = finish(then, row, col, *z);
        }
    }
}

template <bool FOUR, int TALL, int BROAD, int HIGH, int WIDE>
DEVICE void tile_product(Slices<TALL, BROAD, HIGH, WIDE>& slices, i64 rows, int m, const Part (&parts)[3],
                         const float* W, float* Z, i64 ldz, const Finish& then) {
    const int col0 = (int)blockIdx.y * BROAD;
    float sum[HIGH][WIDE];
    int down, across, now = 0;
    begin_tile<TALL, BROAD>(sum, down, across);
    Cursor cursor = {-1, 0, 0};
    Columns<TALL> x;
    Lines<BROAD> w;
    const auto fetch = [&] {
        const Part part = part_of(parts, cursor.part);
        fetch_columns<FOUR>(x, part, cursor.at, rows);
        const float* from = W + (i64)(cursor.first + cursor.at) * m;
        const int left = part.k - cursor.at;
        fetch_lines<FOUR>(w, [&](int d) { return d < left ? from + (i64)d * m : (const float*)0; }, col0, m, -0.0f);
    };
    advance(parts, cursor);
    if (cursor.part < 3) fetch();
    while (cursor.part < 3) {
        store_columns<FOUR>(x, slices.a[now]);
        store_lines<FOUR>(w, slices.b[now]);
        __syncthreads(); /* this slice is here; the one before the last was added, and gives way to the next */
        advance(parts, cursor);
        if (cursor.part < 3) fetch();
        add_slice(slices, now, down, across, sum);
        now ^= 1;
    }
    write_tile<FOUR, TALL, BROAD>(sum, down, across, rows, m, Z, ldz, then);
}

/* The same by four of one part without factors, whose elements threads would need: it goes straight into shared memory,
 * transposed, and so does W. */
template <int TALL, int BROAD, int HIGH, int WIDE> struct Straight {
    Slices<TALL, BROAD, HIGH, WIDE> slices;
    const float* rows[TALL]; /* of X; after the last one it again, for outputs that nobody writes */
};

template <int TALL> DEVICE void find_rows(const float* (&to)[TALL], const Part& part, i64 rows) {
    if ((int)threadIdx.x < TALL) {
        i64 row = (i64)blockIdx.x * TALL + (int)threadIdx.x;
        if (row >= rows) row = rows - 1;
        to[threadIdx.x] = part.X + (part.index ? (i64)part.index[row] : row) * part.ld;
    }
    __syncthreads();
}

template <int TALL>
DEVICE void copy_columns(float (&to)[DEEP][TALL + PAD], const float* const (&rows)[TALL], int at, int k) {
    enum { STEP = 256 / DEEP };
    const int down = (int)threadIdx.x / DEEP, j = (int)threadIdx.x % DEEP;
    const bool here = at + j < k;
#pragma unroll
    for (int i = 0; i < TALL; i += STEP) copy_or_clear<4>(to[j] + down + i, rows[down + i] + at + j, here);
}

template <int TALL, int BROAD, int HIGH, int WIDE>
DEVICE void straight_product(Straight<TALL, BROAD, HIGH, WIDE>& shared, i64 rows, int m, const Part& part, const float* W,
                             float* Z, i64 ldz, const Finish& then) {
    const int col0 = (int)blockIdx.y * BROAD;
    float sum[HIGH][WIDE];
    int down, across, now = 0;
    begin_tile<TALL, BROAD>(sum, down, across);
    const auto fetch = [&](int at, int next) {
        copy_columns<TALL>(shared.slices.a[next], shared.rows, at, part.k);
        copy_rows<true, BROAD>(shared.slices.b[next], W + (i64)at * m + col0, m, part.k - at, m - col0);
        close_copies();
    };
    find_rows<TALL>(shared.rows, part, rows);
    if (part.k > 0) fetch(0, 0);
    for (int at = 0; at < part.k; at += DEEP) {
        await_copies<0>();
        __syncthreads();
        if (at + DEEP < part.k) fetch(at + DEEP, now ^ 1);
        add_slice(shared.slices, now, down, across, sum);
        now ^= 1;
    }
    write_tile<true, TALL, BROAD>(sum, down, across, rows, m, Z, ldz, then);
}

#define TILES(name, FOUR, BLOCKS, TALL, BROAD, HIGH, WIDE)                                                            \
    KERNEL __launch_bounds__(256, BLOCKS) name(DENSE_ARGUMENTS) {                                                     \
        __shared__ __align__(16) Slices<TALL, BROAD, HIGH, WIDE> slices;                                              \
        const Part parts[3] = PARTS;                                                                                  \
        const Finish then = FINISH;                                                                                   \
        tile_product<FOUR>(slices, rows, m, parts, W, Z, ldz, then);                                                  \
    }
TILES(dense_16, false, 3, 128, 16, 4, 2)
TILES(dense_32, false, 3, 128, 32, 4, 4)
TILES(dense_64, false, 2, 128, 64, 8, 4)
TILES(dense_128, false, 1, 128, 128, 8, 8)
/* k, m and the rows' strides multiples of 4, X, W and Z 16-byte aligned. */
TILES(dense_16_4, true, 3, 128, 16, 4, 2)
TILES(dense_32_4, true, 3, 128, 32, 4, 4)
TILES(dense_64_4, true, 2, 128, 64, 8, 4)
TILES(dense_128_4, true, 2, 128, 128, 8, 8)
/* And one part, without factors. */
#define STRAIGHT(name, BLOCKS, TALL, BROAD, HIGH, WIDE)                                                               \
    KERNEL __launch_bounds__(256, BLOCKS) name(DENSE_ARGUMENTS) {                                                     \
        __shared__ __align__(16) Straight<TALL, BROAD, HIGH, WIDE> shared;                                            \
        const Part part = {X0, ld0, k0, index0, scale0};                                                              \
        const Finish then = FINISH;                                                                                   \
        straight_product(shared, rows, m, part, W, Z, ldz, then);                                                     \
    }
STRAIGHT(dense_64_one, 2, 128, 64, 8, 4)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900 /* whose compiler wants more registers */
STRAIGHT(dense_128_one, 1, 128, 128, 8, 8)
#else
STRAIGHT(dense_128_one, 2, 128, 128, 8, 8)
#endif

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
