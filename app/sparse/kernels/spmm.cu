/* Sparse times dense: Y += A X, or Y = A X where `first`. A row of A belongs to a sub-warp, whose lanes hold columns; a
 * column is one chain over the row's entries in stored order. What bounds a row is the time from one gather to the next:
 * so a lane asks for AHEAD lines of X before it adds the first, and for the column numbers of those after them. Rows with
 * many entries take a warp each, rows with very many a block.
 *
 * A [n, *] CSR: offsets, columns, data (null: all ones)     X [*, c] row-major     Y [n, c], rows ldy apart
 * A row of c columns is that of c / f states side by side. live [n][c / f] or null: columns of a state where it is 0
 * are zero where `first`, else left as they are. gate or null: rows of f columns, [n][c / f] or by gate_index a table;
 * with it the sums are multiplied by (gate > 0).
 * lines [n]: the rows in the order in which sub-warps take them, those of a warp with about as many entries
 * many [more]: the rows with more than `longest` entries, of which the first blocks take the first `longer`, which have the
 * most, and warps the others */
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
DEVICE bool is_live(const Product& p, i64 row, int col) {
    return !p.live || p.live[row * (p.c / p.f) + col / p.f] != 0.0f;
}

/* The element of the gate that belongs to (row, col). */
DEVICE const float* gate_at(const Product& p, i64 row, int col) {
    const i64 state = row * (p.c / p.f) + col / p.f;
    return p.gate + (p.gate_index ? (i64)p.gate_index[state] : state) * p.f + col % p.f;
}

/* ---- rows with many entries ---------------------------------------------------------------------------------
 * A team takes a row and SPAN of its columns. What it adds stands in a ring in shared memory: TILE entries are added while
 * DEEP tiles of lines of X are on their way, and the column numbers of as many tiles after those. For a load takes a
 * microsecond or two while all SMs load, as long as hundreds of additions, four cycles each.
 * A block takes a row with very many entries: its last FETCHERS threads copy, its first warp adds, a column a lane, and
 * neither does anything else, so that the row takes little more than its additions. The adder waits for its own loads from
 * shared memory behind the copies of others, and to be issued beside the warps of its own scheduler: so one line is copied at a
 * time, and for up to 16 columns by three warps, which are on the three other schedulers. A warp takes a row with many: it
 * copies and adds in turn, and as many rows are under way as there are warps. */

template <int FETCHERS_> struct BlockTeam {
    enum { FETCHERS = FETCHERS_ };
    static __device__ __forceinline__ int fetcher() { return (int)threadIdx.x - ((int)blockDim.x - FETCHERS); }
};

struct WarpTeam {
    enum { FETCHERS = WARP };
    static __device__ __forceinline__ int fetcher() { return (int)threadIdx.x % WARP; }
};

/* PIECE columns are copied at a time; FOURS times four entries are added while as many are read, VALUED times with values. */
template <class Team_, int PIECE_, int SPAN_, int TILE_, int DEEP_, int FOURS_, int VALUED_> struct Way {
    typedef Team_ Team;
    enum {
        PIECE = PIECE_, SPAN = SPAN_, TILE = TILE_, DEEP = DEEP_, FOURS = FOURS_, VALUED = VALUED_,
        ACROSS = SPAN / PIECE,
        COPIES = TILE * ACROSS / Team::FETCHERS, STEP = Team::FETCHERS / ACROSS
    };
    static_assert(COPIES * STEP == TILE && TILE % (8 * FOURS) == 0 && TILE % (8 * VALUED) == 0, "parts of a tile");
};

template <class W> struct Ring {
    float tiles[W::DEEP + 1][W::TILE * W::SPAN];
    float values[W::DEEP + 1][W::TILE];
    int numbers[2 * W::DEEP][W::TILE];
};

/* The column numbers of the tile that begins at entry `at`. */
template <class W> DEVICE void copy_numbers(const Product& p, i64 at, i64 end, int* numbers) {
#pragma unroll
    for (int entry = W::Team::fetcher(); entry < W::TILE; entry += W::Team::FETCHERS)
        if (at + entry < end) copy_ahead<4>((float*)numbers + entry, (const float*)p.columns + at + entry);
}

/* Its lines of X, by those numbers, and its values. */
template <class W>
DEVICE void copy_lines(const Product& p, i64 at, i64 end, int col0, const int* numbers, float* tile, float* values) {
    const int first = W::Team::fetcher() / W::ACROSS, place = W::Team::fetcher() % W::ACROSS * W::PIECE;
    if (col0 + place >= p.c) return;
    const float* X = p.X + col0 + place;
#pragma unroll 8
    for (int i = 0; i < W::COPIES; ++i) {
        const int entry = first + i * W::STEP;
        if (at + entry >= end) continue; /* a branch: so the copies do not all come at once */
        copy_ahead<4 * W::PIECE>(tile + entry * W::SPAN + place, X + (i64)numbers[entry] * p.c);
        if (p.data && place == 0) copy_ahead<4>(values + entry, p.data + at + entry);
    }
}

/* x = column `lane` of four entries of a tile, one after the other; the lanes of a warp together. A load brings four, not
 * one: the warp has few marks to wait for loads by, and waited for all those under way. */
template <int SPAN> DEVICE void read_four(const float* tile, int lane, float (&x)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
    /* lane l names a line of entry l / 8, four columns; what it gets is column l of each entry */
    const float* line = tile + lane / 8 * SPAN + lane * 4 % SPAN;
    unsigned r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(line))
                 : "memory");
    for (int i = 0; i < 4; ++i) x[i] = __int_as_float((int)r[i]);
#else
    for (int i = 0; i < 4; ++i) x[i] = tile[i * SPAN + lane % SPAN];
#endif
}

DEVICE void read_values(const float* values, float (&a)[4]) {
    const float4 four = *(const float4*)values;
    a[0] = four.x, a[1] = four.y, a[2] = four.z, a[3] = four.w;
}

/* A number of which the compiler is to know nothing. */
DEVICE int hidden(int number) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(number));
#endif
    return number;
}

/* FOURS times four entries of a tile, in registers. */
template <class W, bool VALUED> struct Terms {
    enum { FOURS = VALUED ? W::VALUED : W::FOURS, COUNT = 4 * FOURS };
    float x[FOURS][4], a[VALUED ? FOURS : 1][4];
    __device__ __forceinline__ void read(const Ring<W>& ring, int place, int at, int lane) {
#pragma unroll
        for (int j = 0; j < FOURS; ++j) {
            read_four<W::SPAN>(ring.tiles[place] + (at + 4 * j) * W::SPAN, lane, x[j]);
            if (VALUED) read_values(ring.values[place] + at + 4 * j, a[VALUED ? j : 0]);
        }
    }
    /* The links FROM .. TO - 1 of a chain, of those that there are. */
    template <int FROM, int TO> __device__ __forceinline__ float add_to(float sum, int count = COUNT) const {
#pragma unroll
        for (int q = FROM; q < TO; ++q)
            if (q < count) sum = add(sum, VALUED ? mul(a[VALUED ? q / 4 : 0][q % 4], x[q / 4][q % 4]) : x[q / 4][q % 4]);
        return sum;
    }
};

/* The chain of column `lane` over `count` entries, which lie in a ring from its first tile on. While some are added, the next
 * are read: a load takes as long as 15 additions do (with values fewer are, for want of registers). What parts the loads from
 * the additions after them is a way out of the loop, or the compiler moves them closer to their use. `advance` is called
 * before the first entries of each further tile are read, when all those of the one before were. */
template <class W, bool VALUED, class Advance>
DEVICE float add_entries(const Ring<W>& ring, i64 count, int lane, float sum, const Advance& advance) {
    Terms<W, VALUED> now, next;
    enum { EACH = Terms<W, VALUED>::COUNT };
    int left = (int)count - EACH, place = 0, at = 0; /* after those in `now` */
    now.read(ring, 0, 0, lane);
    if (left <= 0) return now.template add_to<0, EACH>(sum, left + EACH);
#pragma unroll 1
    for (;;) {
        next.read(ring, place, at + EACH, lane);
        sum = now.template add_to<0, 4>(sum);
        if (left <= EACH) break;
        sum = now.template add_to<4, EACH>(sum);
        at += 2 * EACH;
        if (at == W::TILE) {
            advance();
            at = 0, place = place == W::DEEP ? 0 : place + 1;
        }
        now.read(ring, place, at, lane);
        sum = next.template add_to<0, 4>(sum);
        if (left <= 2 * EACH) {
            sum = next.template add_to<4, EACH>(sum, hidden(left));
            return now.template add_to<0, EACH>(sum, left - EACH);
        }
        sum = next.template add_to<4, EACH>(sum);
        left -= 2 * EACH;
    }
    sum = now.template add_to<4, EACH>(sum, EACH + hidden(left));
    return next.template add_to<0, EACH>(sum, left);
}

/* A row of A: where its entries begin and how many they are. */
struct __align__(16) Line {
    i64 begin;
    int row, count;
};

/* Where a thread that copies is: the next tile that is added, and its places in a ring of tiles and of numbers. */
typedef struct {
    i64 at;
    int tile, numbers;
} Turn;

/* Of a row whose entries end at `end`, the numbers of the tile `turn` and of those after it, then all their lines. */
template <class W> DEVICE void copy_first_numbers(const Product& p, const Turn& turn, i64 end, Ring<W>& ring) {
    for (int s = 0; s < 2 * W::DEEP; ++s) {
        copy_numbers<W>(p, turn.at + s * W::TILE, end, ring.numbers[s]);
        if (s == W::DEEP - 1) close_copies();
    }
    close_copies();
    await_copies<1>(); /* those of the first DEEP tiles */
}

template <class W> DEVICE void copy_first_lines(const Product& p, const Turn& turn, i64 end, int col0, Ring<W>& ring) {
    for (int s = 0; s < W::DEEP; ++s) {
        copy_lines<W>(p, turn.at + s * W::TILE, end, col0, ring.numbers[s], ring.tiles[s], ring.values[s]);
        close_copies();
    }
}

/* The tile `turn` is here, and the one before was read, whose place is free: DEEP tiles ahead. */
template <class W> DEVICE void copy_further(const Product& p, Turn& turn, i64 end, int col0, Ring<W>& ring) {
    const int place = turn.tile ? turn.tile - 1 : W::DEEP, ahead = turn.numbers < W::DEEP ? W::DEEP : -W::DEEP;
    copy_lines<W>(p, turn.at + W::DEEP * W::TILE, end, col0, ring.numbers[turn.numbers + ahead], ring.tiles[place],
                  ring.values[place]);
    copy_numbers<W>(p, turn.at + 2 * W::DEEP * W::TILE, end, ring.numbers[turn.numbers]);
    close_copies();
    turn.at += W::TILE;
    turn.tile = turn.tile == W::DEEP ? 0 : turn.tile + 1;
    turn.numbers = turn.numbers == 2 * W::DEEP - 1 ? 0 : turn.numbers + 1;
}

template <class W, class Advance>
DEVICE float add_row(const Product& p, const Ring<W>& ring, i64 count, int lane, float sum, const Advance& advance) {
    return p.data ? add_entries<W, true>(ring, count, lane, sum, advance)
                  : add_entries<W, false>(ring, count, lane, sum, advance);
}

/* The sum of a column before any entry, and where it goes: to row `place` of Y. */
DEVICE float begin_sum(const Product& p, i64 place, int col) { return p.first ? 0.0f : p.Y[place * p.ldy + col]; }

DEVICE void end_sum(const Product& p, i64 row, i64 place, int col, float sum) {
    float* y = p.Y + place * p.ldy + col;
    if (!is_live(p, row, col)) {
        if (p.first) *y = 0.0f;
        return;
    }
    *y = p.gate ? open_gate(sum, *gate_at(p, row, col)) : sum;
}

/* Columns from col0 on of a row of A, to row `place` of Y: all threads of a block; of a warp. */
template <class W> DEVICE void block_row(const Product& p, const Line row, i64 place, int col0, Ring<W>& ring) {
    const i64 begin = row.begin, end = begin + row.count;
    const int lane = (int)threadIdx.x, col = col0 + lane;
    const bool fetches = W::Team::fetcher() >= 0;
    Turn turn = {begin, 0, 0};
    if (fetches) copy_first_numbers<W>(p, turn, end, ring);
    __syncthreads();
    if (begin == end && !p.first) return;
    if (fetches) {
        copy_first_lines<W>(p, turn, end, col0, ring);
        while (turn.at < end) {
            await_copies<W::DEEP - 1>();
            __syncthreads();
            copy_further<W>(p, turn, end, col0, ring);
        }
    } else if (lane < WARP) {
        const bool writes = lane < W::SPAN && col < p.c;
        float sum = writes ? begin_sum(p, place, col) : 0.0f;
        if (begin < end) __syncthreads();
        sum = add_row<W>(p, ring, end - begin, lane, sum, [] { __syncthreads(); });
        if (writes) end_sum(p, row.row, place, col, sum);
    } else
        for (i64 at = begin; at < end; at += W::TILE) __syncthreads();
}

template <class W> DEVICE void warp_row(const Product& p, const Line row, int col0, Ring<W>& ring) {
    const i64 begin = row.begin, end = begin + row.count;
    const int lane = (int)threadIdx.x % WARP, col = col0 + lane;
    const bool writes = lane < W::SPAN && col < p.c;
    Turn turn = {begin, 0, 0};
    copy_first_numbers<W>(p, turn, end, ring);
    __syncwarp();
    copy_first_lines<W>(p, turn, end, col0, ring);
    const auto advance = [&] {
        await_copies<W::DEEP - 1>();
        __syncwarp();
        copy_further<W>(p, turn, end, col0, ring);
    };
    if (begin < end) advance();
    const float sum = add_row<W>(p, ring, end - begin, lane, writes ? begin_sum(p, row.row, col) : 0.0f, advance);
    if (writes) end_sum(p, row.row, row.row, col, sum);
}

#define ROW_ARGUMENTS const i64 *lines, const i64 *many, const int longest, const int longer, const int more
#define ROWS                                                                                                  \
    Rows { (const Line*)lines, (const Line*)many, longest, longer, more }

/* How the rows are shared out: the first `longer` of many [more] to blocks, its others to warps, and to sub-warps those with
 * at most `longest` entries. */
typedef struct {
    const Line *lines, *many;
    int longest, longer, more;
} Rows;

/* What the first blocks of a kernel do: up to 16 columns; more; any number of them, any place in memory. */
template <class Block_, class Warp_> struct Ways {
    typedef Block_ Block;
    typedef Warp_ Warp;
    union Rings {
        Ring<Block> block;
        Ring<Warp> warps[8];
    };
};
typedef Ways<Way<BlockTeam<96>, 4, 8, 384, 2, 6, 2>, Way<WarpTeam, 4, 16, 32, 1, 4, 2> > Narrow;
typedef Ways<Way<BlockTeam<128>, 4, 16, 128, 3, 4, 2>, Way<WarpTeam, 4, 16, 32, 1, 4, 2> > Wide;
typedef Ways<Way<BlockTeam<128>, 1, 16, 128, 3, 4, 2>, Way<WarpTeam, 1, 16, 32, 1, 4, 2> > Odd;

/* How many blocks take rows with many entries, for parts of SPAN columns. */
template <class W> DEVICE int teams(const Product& p, int rows) { return rows * ((p.c + W::SPAN - 1) / W::SPAN); }

template <class W> DEVICE int blocks_before(const Product& p, const Rows& r) {
    const int each = (int)blockDim.x / WARP;
    return teams<typename W::Block>(p, r.longer) + (teams<typename W::Warp>(p, r.more - r.longer) + each - 1) / each;
}

/* Whether this block is one of those; if so it does. */
template <class W> DEVICE bool took_long_rows(const Product& p, const Rows& r) {
    __shared__ __align__(16) typename W::Rings rings;
    const int block = (int)blockIdx.x, first = teams<typename W::Block>(p, r.longer);
    if (block >= blocks_before<W>(p, r)) return false;
    if (blockIdx.y) return true;
    if (block < first) {
        const int spans = teams<typename W::Block>(p, 1);
        const Line line = r.many[block / spans];
        block_row<typename W::Block>(p, line, line.row, block % spans * W::Block::SPAN, rings.block);
        return true;
    }
    const int warp = (int)threadIdx.x / WARP, part = (block - first) * ((int)blockDim.x / WARP) + warp;
    if (part < teams<typename W::Warp>(p, r.more - r.longer)) {
        const int spans = teams<typename W::Warp>(p, 1);
        const Line line = r.many[r.longer + part / spans];
        warp_row<typename W::Warp>(p, line, part % spans * W::Warp::SPAN, rings.warps[warp]);
    }
    return true;
}

/* The row of A that a block takes alone. */
DEVICE Line line_of(const Product& p, i64 row) {
    const Line line = {p.offsets[row], (int)row, (int)(p.offsets[row + 1] - p.offsets[row])};
    return line;
}

/* The row that this thread's group of lanes takes, in a block after `before` others. */
DEVICE Line line_of_group(const Product& p, const Rows& r, int lanes, int before) {
    const i64 place = ((i64)((int)blockIdx.x - before) * blockDim.x + threadIdx.x) / lanes;
    Line none = {0, -1, 0};
    if (place >= p.n) return none;
    const Line line = r.lines[place];
    return line.count > r.longest ? none : line;
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
template <int LANES, int RUNS, int MOST> DEVICE void row_by_four(const Product& p, const Line line) {
    const int stride = 4 * LANES, col = RUNS * stride * (int)blockIdx.y + 4 * ((int)threadIdx.x % LANES);
    if (line.row < 0 || col >= p.c) return;
    const i64 row = line.row, begin = line.begin, end = begin + line.count;
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
#define BY_FOUR(name, BLOCKS, WAY, LANES, RUNS)                                                                            \
    KERNEL __launch_bounds__(256, BLOCKS) name(PRODUCT_ARGUMENTS, ROW_ARGUMENTS) {                                      \
        const Product p = PRODUCT;                                                                                 \
        const Rows r = ROWS;                                                                                       \
        if (took_long_rows<WAY>(p, r)) return;                                                                     \
        row_by_four<LANES, RUNS, AHEAD / RUNS>(p, line_of_group(p, r, LANES, blocks_before<WAY>(p, r)));           \
    }
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1200) /* whose compiler wants more registers */
#define FULL 3
#else
#define FULL 4
#endif
BY_FOUR(spmm_16, 3, Narrow, 4, 1)
BY_FOUR(spmm_32, FULL, Wide, 8, 1)
BY_FOUR(spmm_64, FULL, Wide, 16, 1)
BY_FOUR(spmm_128, FULL, Wide, 32, 1)
BY_FOUR(spmm_256, FULL, Wide, 32, 2) /* a warp reads whole rows of X one after the other */

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

DEVICE void one_column(const Product& p, const Line line, int col) {
    const i64 row = line.row;
    const i64 at = line.begin, end = at + line.count;
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
    const Rows r = ROWS;
    if (took_long_rows<Odd>(p, r)) return;
    const Line line = line_of_group(p, r, lanes, blocks_before<Odd>(p, r));
    const int col = (int)blockIdx.y * lanes + (int)threadIdx.x % lanes;
    if (line.row >= 0 && col < c) one_column(p, line, col);
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
    __shared__ __align__(16) Ring<Odd::Block> ring;
    const Product p = PRODUCT;
    block_row<Odd::Block>(p, line_of(p, rows[blockIdx.x]), places[blockIdx.x], (int)blockIdx.y * Odd::Block::SPAN, ring);
}

/* c a multiple of 4, X 16-byte aligned. */
KERNEL __launch_bounds__(256) spmm_long_4(PRODUCT_ARGUMENTS, LONG_SOME) {
    __shared__ __align__(16) Ring<Wide::Block> ring;
    const Product p = PRODUCT;
    block_row<Wide::Block>(p, line_of(p, rows[blockIdx.x]), places[blockIdx.x], (int)blockIdx.y * Wide::Block::SPAN, ring);
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
