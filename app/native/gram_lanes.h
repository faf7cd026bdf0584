/* Weight gradients: [parts]^T D by row blocks, each element one chain over the rows of its block (fused, see vectors.h).
 * Lanes and registers hold different elements, so their number changes no bit. */
#include "vectors.h"

/* GRAM_ROWS rows of a block at a time: a panel of TALL elements of each row and one of BROAD of each row of D stay in
 * the first-level cache, SLICE elements of each row in the second. */
#if LANES == 16
enum { GRAM_ROWS = 160, SLICE = 128, TALL = 8, BROAD = 32 };
#else
enum { GRAM_ROWS = 256, SLICE = 128, TALL = 8, BROAD = 16 };
#endif

/* The rows of a chunk that are not left out: where they stand in D, and for one part their elements and scales. */
typedef struct {
    int64_t count, row[GRAM_ROWS];
    const float *x[GRAM_ROWS];
    float scale[GRAM_ROWS];
} Rows;

typedef struct {
    float x[SLICE / TALL][GRAM_ROWS + 2][TALL]; /* panels a power of two apart would share a few sets of the cache */
    float d[GRAM_ROWS][BROAD];
} Packed;

/* out [N][V vectors], rows ldo apart, += over the rows x[0..N-1] times d; both from where `rows` says (from element k0
 * and column `at` of D on), or where it is null packed. */
#define GRAM_TILE(name, type, V, N, fused)                                                                          \
    INLINE void name(const Rows *rows, int64_t k0, const float *D, int64_t ldd, int64_t count,                \
                     const float *packed_x, const float *packed_d, float *out, int64_t ldo) {                 \
        const int64_t lanes = sizeof(type) / 4;                                                               \
        type acc[N][V];                                                                                       \
        for (int i = 0; i < N; ++i)                                                                           \
            for (int v = 0; v < V; ++v) acc[i][v] = *(const type *)(out + i * ldo + v * lanes);               \
        for (int64_t r = 0; r < count; ++r) {                                                                 \
            const float *x = rows ? rows->x[r] + k0 : packed_x + r * TALL;                                    \
            const float *from = rows ? D + rows->row[r] * ldd : packed_d + r * BROAD;                         \
            type d[V];                                                                                        \
            for (int v = 0; v < V; ++v) d[v] = *(const type *)(from + v * lanes);                             \
            for (int i = 0; i < N; ++i)                                                                       \
                for (int v = 0; v < V; ++v) acc[i][v] = fused(x[i] - (type){0}, d[v], acc[i][v]);             \
        }                                                                                                     \
        for (int i = 0; i < N; ++i)                                                                           \
            for (int v = 0; v < V; ++v) *(type *)(out + i * ldo + v * lanes) = acc[i][v];                     \
    }
#if LANES == 16
GRAM_TILE(tile_8_32, vec, 2, 8, fused)
GRAM_TILE(tile_4_32, vec, 2, 4, fused)
GRAM_TILE(tile_8_16, vec, 1, 8, fused)
GRAM_TILE(tile_4_16, vec, 1, 4, fused)
GRAM_TILE(tile_8_8, v8, 1, 8, fused_8)
GRAM_TILE(tile_4_8, v8, 1, 4, fused_8)
#elif LANES == 8
GRAM_TILE(tile_4_16, vec, 2, 4, fused)
GRAM_TILE(tile_8_8, vec, 1, 8, fused)
GRAM_TILE(tile_4_8, vec, 1, 4, fused)
#else
GRAM_TILE(tile_4_8, vec, 2, 4, fused)
#endif

/* Part of what is packed; null where nothing is. */
INLINE const float *packed_from(const float *p, int64_t at) { return p ? p + at : 0; }

/* A tile of n = 4 or 8 rows and width = 8, 16 or (where BROAD is) 32 columns, in pieces of as many as there are registers
 * for. */
INLINE void whole_tile(const Rows *rows, int64_t k0, const float *D, int64_t ldd, int64_t count, const float *x,
                       const float *d, float *out, int64_t ldo, int64_t n, int64_t width) {
#if LANES == 16
    if (n == 8 && width == 32) tile_8_32(rows, k0, D, ldd, count, x, d, out, ldo);
    else if (width == 32) tile_4_32(rows, k0, D, ldd, count, x, d, out, ldo);
    else if (n == 8 && width == 16) tile_8_16(rows, k0, D, ldd, count, x, d, out, ldo);
    else if (width == 16) tile_4_16(rows, k0, D, ldd, count, x, d, out, ldo);
    else if (n == 8) tile_8_8(rows, k0, D, ldd, count, x, d, out, ldo);
    else tile_4_8(rows, k0, D, ldd, count, x, d, out, ldo);
#elif LANES == 8
    if (width == 8 && n == 8) tile_8_8(rows, k0, D, ldd, count, x, d, out, ldo);
    else if (width == 8) tile_4_8(rows, k0, D, ldd, count, x, d, out, ldo);
    else
        for (int64_t i = 0; i < n; i += 4)
            tile_4_16(rows, k0 + i, D, ldd, count, packed_from(x, i), d, out + i * ldo, ldo);
#else
    for (int64_t i = 0; i < n; i += 4)
        for (int64_t j = 0; j < width; j += 8)
            tile_4_8(rows, k0 + i, packed_from(D, j), ldd, count, packed_from(x, i), packed_from(d, j),
                     out + i * ldo + j, ldo);
#endif
}

/* n rows and `width` columns of the gradient from packed operands, which are 0 beyond. */
INLINE void packed_tile(int64_t count, const float *x, const float *d, float *out, int64_t m, int64_t n,
                        int64_t width) {
    const int64_t tall = n > 4 ? 8 : 4, broad = width > 16 ? BROAD : width > 8 ? 16 : 8;
    if (n == tall && width == broad) {
        whole_tile(0, 0, 0, 0, count, x, d, out, m, tall, broad);
        return;
    }
    float whole[TALL][BROAD] = {{0}};
    for (int64_t i = 0; i < n; ++i) memcpy(whole[i], out + i * m, (size_t)width * 4);
    whole_tile(0, 0, 0, 0, count, x, d, whole[0], BROAD, tall, broad);
    for (int64_t i = 0; i < n; ++i) memcpy(out + i * m, whole[i], (size_t)width * 4);
}

#if LANES == 16
typedef v8 piece;
#else
typedef vec piece;
#endif
enum { STEP = sizeof(piece) / 4 };

/* Elements k0..k0+width-1 of the rows, times their scales where `scaled`. */
INLINE void pack_elements(const Rows *rows, int64_t k0, int64_t width, const int scaled, Packed *to) {
    for (int64_t r = 0; r < rows->count; ++r) {
        const float *x = rows->x[r] + k0;
        const float scale = scaled ? rows->scale[r] : 1.0f;
        int64_t j = 0;
        for (; j + TALL <= width; j += TALL)
            for (int i = 0; i < TALL; i += STEP)
                *(piece *)(to->x[j / TALL][r] + i) = *(const piece *)(x + j + i) * scale;
        if (j == width) continue;
        float *last = to->x[j / TALL][r];
        memset(last, 0, sizeof to->x[0][0]);
        for (; j < width; ++j) last[j % TALL] = x[j] * scale;
    }
}

/* Columns at..at+width-1 of the rows of D. */
INLINE void pack_columns(const Gram *g, const Rows *rows, int64_t at, int64_t width, Packed *to) {
    for (int64_t r = 0; r < rows->count; ++r) {
        const float *d = g->D + rows->row[r] * g->m + at;
        if (width == BROAD) {
            for (int v = 0; v < BROAD; v += LANES) STORE(to->d[r] + v, LOAD(d + v));
            continue;
        }
        memset(to->d[r], 0, sizeof to->d[r]);
        memcpy(to->d[r], d, (size_t)width * 4);
    }
}

/* The rows of a chunk for one part of k elements: out [k][m]. */
INLINE void gram_packed(const Gram *g, const Rows *rows, int64_t k, const int scaled, Packed *packed,
                        float *out) {
    for (int64_t lo = 0; lo < k; lo += SLICE) {
        const int64_t slice = k - lo < SLICE ? k - lo : SLICE;
        pack_elements(rows, lo, slice, scaled, packed);
        for (int64_t at = 0; at < g->m; at += BROAD) {
            const int64_t width = g->m - at < BROAD ? g->m - at : BROAD;
            pack_columns(g, rows, at, width, packed);
            for (int64_t j = 0; j < slice; j += TALL)
                packed_tile(rows->count, packed->x[j / TALL][0], packed->d[0], out + (lo + j) * g->m + at, g->m,
                            slice - j < TALL ? slice - j : TALL, width);
        }
    }
}

/* As gram_packed where m is 16 or 32 and k a multiple of 4: every element is read once, and from where it is. */
INLINE void gram_direct(const Gram *g, const Rows *rows, int64_t k, float *out) {
    const int64_t width = g->m < BROAD ? g->m : BROAD;
    for (int64_t j = 0; j < k; j += TALL)
        for (int64_t at = 0; at < g->m; at += width)
            whole_tile(rows, j, g->D + at, g->m, rows->count, 0, 0, out + j * g->m + at, g->m,
                       k - j < TALL ? 4 : TALL, width);
}

/* Rows that are taken together: of one graph, or of some, of which one alone has few. */
enum { MOST_RANGES = 32 };
typedef struct {
    int64_t count, rows, lo[MOST_RANGES], hi[MOST_RANGES];
} Ranges;

/* Which rows of the ranges are live and have a scale: a row times 0 adds nothing. */
INLINE int64_t list_rows(const Ranges *of, const float *live, const float *scale, int64_t *row) {
    int64_t count = 0;
    for (int64_t i = 0; i < of->count; ++i)
        for (int64_t r = of->lo[i]; r < of->hi[i]; ++r) {
            row[count] = r;
            count += (!live || nonzero(live + r)) & (!scale || nonzero(scale + r));
        }
    return count;
}

static void gram_chunk(const Gram *g, const Ranges *of, Packed *packed, float *out) {
    Rows rows;
    for (int64_t p = 0; p < g->parts; ++p) {
        const Part *part = g->part + p;
        const float *scale = part->scale, *live = g->live == scale ? 0 : g->live;
        int ones = 1;
        if (live && scale) rows.count = list_rows(of, live, scale, rows.row);
        else if (live || scale) rows.count = list_rows(of, live ? live : scale, 0, rows.row);
        else rows.count = list_rows(of, 0, 0, rows.row);
        for (int64_t i = 0; i < rows.count; ++i) {
            const int64_t r = rows.row[i];
            rows.x[i] = part->X + (part->index ? (int64_t)part->index[r] : r) * part->ld;
        }
        for (int64_t i = 0; scale && i < rows.count; ++i) {
            rows.scale[i] = scale[rows.row[i]];
            ones &= rows.scale[i] == 1.0f;
        }
        if (ones && (g->m == 16 || g->m == 32) && part->k % 4 == 0) gram_direct(g, &rows, part->k, out);
        else if (ones) gram_packed(g, &rows, part->k, 0, packed, out);
        else gram_packed(g, &rows, part->k, 1, packed, out);
        out += part->k * g->m;
    }
}

/* out [sum k][m] += block b. */
static void gram_block(const Gram *g, int64_t b, float *out) {
    Packed packed;
    Ranges of = {0};
    for (int64_t q = 0; q < g->graphs; ++q) {
        const int64_t *s = g->starts + q * (g->blocks + 1) + b;
        const int64_t chunks = (s[1] - s[0] + GRAM_ROWS - 1) / GRAM_ROWS, step = chunks ? (s[1] - s[0] + chunks - 1) / chunks : 1;
        for (int64_t lo = s[0]; lo < s[1]; lo += step) {
            const int64_t hi = lo + step < s[1] ? lo + step : s[1];
            if (of.count == MOST_RANGES || of.rows + hi - lo > GRAM_ROWS) {
                gram_chunk(g, &of, &packed, out);
                of.count = of.rows = 0;
            }
            of.lo[of.count] = lo;
            of.hi[of.count++] = hi;
            of.rows += hi - lo;
        }
    }
    if (of.count) gram_chunk(g, &of, &packed, out);
}
