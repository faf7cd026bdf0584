/* What dense.cu and gram.cu share: a block of 256 threads adds up a tile of TALL x BROAD outputs, HIGH x WIDE of them to
 * a thread, from DEEP terms at a time that lie in shared memory as a [DEEP][TALL] and b [DEEP][BROAD]. While it adds one
 * such slice, the next one is on its way from device memory, into registers or straight into shared memory.
 *
 * What a slice lacks of its terms is +0 in a and -0 in b: their product, -0, changes no sum, of whatever sign.
 *
 * A warp covers 8 threads across, so that what its lanes read at a time lies in one line of shared memory; a thread's
 * rows and columns come in runs of four, which one instruction reads. Of two neighbouring lanes, and of lanes two apart,
 * one pair has its rows in common and one its columns: only then do 16 lanes read by 16 bytes in one go, not in two. */
#ifndef LOCKSTEP_TILES_CUH
#define LOCKSTEP_TILES_CUH

enum { DEEP = 16, PAD = 4 }; /* floats between the rows of a, so that a column of X is stored with two at a time in a bank at most */

template <int SIZE, int EACH> struct Runs {
    enum { RUN = EACH < 4 ? EACH : 4, THREADS = SIZE / EACH, STEP = THREADS * RUN };
};

/* The place in the tile of output i of a thread, in a direction of SIZE outputs of which a thread has EACH. */
template <int SIZE, int EACH> DEVICE int place_of(int thread, int i) {
    typedef Runs<SIZE, EACH> Way;
    return thread * Way::RUN + i / Way::RUN * Way::STEP + i % Way::RUN;
}

/* Chains of nothing, and the thread's number down and across the tile. */
template <int TALL, int BROAD, int HIGH, int WIDE> DEVICE void begin_tile(float (&sum)[HIGH][WIDE], int& down, int& across) {
    enum { LANES = 8, WARPS = BROAD / WIDE / LANES };
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    down = warp / WARPS * (WARP / LANES) + (lane >> 1 & 1) + (lane >> 3 & 2);
    across = warp % WARPS * LANES + (lane & 1) + (lane >> 1 & 6);
#pragma unroll
    for (int i = 0; i < HIGH; ++i)
#pragma unroll
        for (int j = 0; j < WIDE; ++j) sum[i][j] = 0.0f;
}

/* to[i] = from[place_of(i)], a run at a time. */
template <int SIZE, int EACH> DEVICE void read_runs(const float* from, int thread, float (&to)[EACH]) {
    typedef Runs<SIZE, EACH> Way;
#pragma unroll
    for (int i = 0; i < EACH; i += Way::RUN) {
        const float* run = from + thread * Way::RUN + i / Way::RUN * Way::STEP;
        if (Way::RUN == 4) {
            const float4 four = *(const float4*)run;
            to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
        } else {
#pragma unroll
            for (int q = 0; q < Way::RUN; ++q) to[i + q] = run[q];
        }
    }
}

template <int TALL, int BROAD, int HIGH, int WIDE> struct Slices {
    float a[2][DEEP][TALL + PAD];
    float b[2][DEEP][BROAD];
};

/* A slice of rows [DEEP][SIZE] in registers: row r of it is from(r), or null for none, of which columns first .. belong to
 * the tile; rows that are missing, and columns from `columns` on, are `none`. A thread holds every 256th element, or FOUR of
 * them. */
template <int SIZE> struct Lines {
    enum { EACH = SIZE * DEEP / 256, FOURS = EACH / 4 };
    float x[EACH];
};

template <bool FOUR, int SIZE, class From>
DEVICE void fetch_lines(Lines<SIZE>& lines, From from, int first, int columns, float none) {
    enum { AT_ONCE = FOUR && SIZE >= 64 ? 4 : 1, ACROSS = SIZE / AT_ONCE };
#pragma unroll
    for (int i = 0; i < lines.EACH / AT_ONCE; ++i) {
        const int t = (int)threadIdx.x + i * 256, col = first + t % ACROSS * AT_ONCE;
        const float* row = from(t / ACROSS);
        const bool here = row && col < columns;
        if (AT_ONCE == 4) {
            const float4 x = here ? *(const float4*)(row + col) : make_float4(none, none, none, none);
            float* to = lines.x + i * AT_ONCE;
            to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
        } else lines.x[i] = here ? row[col] : none;
    }
}

/* Row r of the slice, of which a thread holds every 256th element, becomes scale(r) times itself. */
template <int SIZE, class Scale> DEVICE void scale_lines(Lines<SIZE>& lines, Scale scale) {
#pragma unroll
    for (int i = 0; i < lines.EACH; ++i) lines.x[i] = mul(lines.x[i], scale(((int)threadIdx.x + i * 256) / SIZE));
}

template <bool FOUR, int SIZE, int WIDTH> DEVICE void store_lines(const Lines<SIZE>& lines, float (&to)[DEEP][WIDTH]) {
    enum { AT_ONCE = FOUR && SIZE >= 64 ? 4 : 1, ACROSS = SIZE / AT_ONCE };
#pragma unroll
    for (int i = 0; i < lines.EACH / AT_ONCE; ++i) {
        const int t = (int)threadIdx.x + i * 256;
        float* place = to[t / ACROSS] + t % ACROSS * AT_ONCE;
        const float* x = lines.x + i * AT_ONCE;
        if (AT_ONCE == 4) *(float4*)place = make_float4(x[0], x[1], x[2], x[3]);
        else *place = *x;
    }
}

/* The slice straight into shared memory, by four: the thread does not wait. Its rows are `first` and those `ld` apart after
 * it, `rows` of them with `columns` of the tile, or by from(r) where rows have numbers of their own. What is missing is +0, or -0
 * if NEGATIVE. */
template <bool NEGATIVE> DEVICE void copy_four(float* place, const float* from, bool here) {
    if (!NEGATIVE) copy_or_clear<16>(place, from, here);
    else if (here) copy_ahead<16>(place, from);
    else *(float4*)place = make_float4(-0.0f, -0.0f, -0.0f, -0.0f);
}

template <bool NEGATIVE, int SIZE, int WIDTH>
DEVICE void copy_rows(float (&to)[DEEP][WIDTH], const float* first, i64 ld, i64 rows, int columns) {
    enum { ACROSS = SIZE / 4, STEP = 256 / ACROSS };
    const int down = (int)threadIdx.x / ACROSS, col = (int)threadIdx.x % ACROSS * 4;
    const int count = col >= columns ? 0 : rows < DEEP ? (int)rows : (int)DEEP;
    const float* from = first + down * ld + col;
#pragma unroll
    for (int row = 0; row < DEEP; row += STEP, from += STEP * ld)
        copy_four<NEGATIVE>(to[down + row] + col, from, down + row < count);
}

template <bool NEGATIVE, int SIZE, int WIDTH, class From>
DEVICE void copy_lines(float (&to)[DEEP][WIDTH], From from, int columns) {
    enum { ACROSS = SIZE / 4 };
#pragma unroll
    for (int i = 0; i < Lines<SIZE>::FOURS; ++i) {
        const int t = (int)threadIdx.x + i * 256, col = t % ACROSS * 4;
        const float* row = from(t / ACROSS);
        copy_four<NEGATIVE>(to[t / ACROSS] + col, row + col, row && col < columns);
    }
}

/* The next link of all chains, DEEP times. */
template <int TALL, int BROAD, int HIGH, int WIDE>
DEVICE void add_slice(const Slices<TALL, BROAD, HIGH, WIDE>& slices, int now, int down, int across,
                      float (&sum)[HIGH][WIDE]) {
#pragma unroll
    for (int d = 0; d < DEEP; ++d) {
        float a[HIGH], b[WIDE];
        read_runs<TALL, HIGH>(slices.a[now][d], down, a);
        read_runs<BROAD, WIDE>(slices.b[now][d], across, b);
#pragma unroll
        for (int i = 0; i < HIGH; ++i)
#pragma unroll
            for (int q = 0; q < WIDE; ++q) { /* there and back: two factors of the three are often those of the link before */
                const int j = i % 2 ? WIDE - 1 - q : q;
                sum[i][j] = fused(sum[i][j], a[i], b[j]);
            }
    }
}

#endif
