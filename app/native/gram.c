/* Weight gradients: [parts]^T D by row blocks, each element one chain over the rows of its block (multiply, then add),
 * and sums of blocks as a fixed tree. Lanes and registers hold different elements, so their number changes no bit. */
#include "products.h"

typedef struct {
    int64_t graphs, blocks, parts, m;
    const Part *part;
    const int64_t *starts; /* [graphs][blocks + 1]: block b of graph g is rows starts[g][b] .. starts[g][b + 1] - 1 */
    const float *D;
    const float *live; /* rows where this is 0 are left out, or null */
    float *out;        /* [blocks][sum k][m] */
} Gram;

/* ROWS rows of a block at a time: a panel of 8 elements of each row and one of 16 of each row of D stay in the
 * first-level cache, SLICE elements of each row in the second. */
enum { ROWS = 256, SLICE = 128, TALL = 8, BROAD = 16 };

/* The rows of a chunk that are not left out: where they stand in D, and for one part their elements and scales. */
typedef struct {
    int64_t count, row[ROWS];
    const float *x[ROWS];
    float scale[ROWS];
} Rows;

typedef struct {
    float x[SLICE / TALL][ROWS + 2][TALL]; /* panels a power of two apart would share a few sets of the cache */
    float d[ROWS][BROAD];
} Packed;

/* out [N][lanes], rows ldo apart, += over the rows x[0..N-1] times d; both from where `rows` says (from element k0 and
 * column 0 of D on), or where it is null packed. One vector of columns: each x is then an operand of one multiplication,
 * which reads it from memory, where two would need it in a register first and take longer. */
#define TILE(name, type, N)                                                                                   \
    INLINE void name(const Rows *rows, int64_t k0, const float *D, int64_t ldd, int64_t count,                \
                     const float *packed_x, const float *packed_d, float *out, int64_t ldo) {                 \
        type acc[N];                                                                                          \
        for (int i = 0; i < N; ++i) acc[i] = *(const type *)(out + i * ldo);                                  \
        for (int64_t r = 0; r < count; ++r) {                                                                 \
            const float *x = rows ? rows->x[r] + k0 : packed_x + r * TALL;                                    \
            const type d = *(const type *)(rows ? D + rows->row[r] * ldd : packed_d + r * BROAD);             \
            for (int i = 0; i < N; ++i) acc[i] += x[i] * d;                                                   \
        }                                                                                                     \
        for (int i = 0; i < N; ++i) *(type *)(out + i * ldo) = acc[i];                                        \
    }
TILE(tile_8_16, v16, 8)
TILE(tile_4_16, v16, 4)
TILE(tile_8_8, v8, 8)
TILE(tile_4_8, v8, 4)

/* A tile of n = 4 or 8 rows and width = 8 or 16 columns; `few`: there are 16 registers of 8 numbers. */
INLINE void whole_tile(const Rows *rows, int64_t k0, const float *D, int64_t ldd, int64_t count, const float *x,
                       const float *d, float *out, int64_t ldo, int64_t n, int64_t width, const int few) {
    if (width == 16 && n == 8 && !few) tile_8_16(rows, k0, D, ldd, count, x, d, out, ldo);
    else if (width == 16) {
        tile_4_16(rows, k0, D, ldd, count, x, d, out, ldo);
        if (n == 8) tile_4_16(rows, k0 + 4, D, ldd, count, x + 4, d, out + 4 * ldo, ldo);
    } else if (n == 8) tile_8_8(rows, k0, D, ldd, count, x, d, out, ldo);
    else tile_4_8(rows, k0, D, ldd, count, x, d, out, ldo);
}

/* n rows and `width` columns of the gradient from packed operands, which are 0 beyond. */
INLINE void packed_tile(int64_t count, const float *x, const float *d, float *out, int64_t m, int64_t n,
                        int64_t width, const int few) {
    const int64_t tall = n > 4 ? 8 : 4, broad = width > 8 ? 16 : 8;
    if (n == tall && width == broad) {
        whole_tile(0, 0, 0, 0, count, x, d, out, m, tall, broad, few);
        return;
    }
    float whole[TALL][BROAD] = {{0}};
    for (int64_t i = 0; i < n; ++i) memcpy(whole[i], out + i * m, (size_t)width * 4);
    whole_tile(0, 0, 0, 0, count, x, d, whole[0], BROAD, tall, broad, few);
    for (int64_t i = 0; i < n; ++i) memcpy(out + i * m, whole[i], (size_t)width * 4);
}

/* Elements k0..k0+width-1 of the rows, times their scales where `scaled`. */
INLINE void pack_elements(const Rows *rows, int64_t k0, int64_t width, const int scaled, Packed *to) {
    for (int64_t r = 0; r < rows->count; ++r) {
        const float *x = rows->x[r] + k0;
        const float scale = scaled ? rows->scale[r] : 1.0f;
        int64_t j = 0;
        for (; j + TALL <= width; j += TALL) *(v8 *)to->x[j / TALL][r] = *(const v8 *)(x + j) * scale;
        if (j == width) continue;
        float *last = to->x[j / TALL][r];
        *(v8 *)last = (v8){0};
        for (; j < width; ++j) last[j % TALL] = x[j] * scale;
    }
}

/* Columns at..at+width-1 of the rows of D. */
INLINE void pack_columns(const Gram *g, const Rows *rows, int64_t at, int64_t width, Packed *to) {
    for (int64_t r = 0; r < rows->count; ++r) {
        const float *d = g->D + rows->row[r] * g->m + at;
        if (width == BROAD) {
            STORE16(to->d[r], LOAD16(d));
            continue;
        }
        memset(to->d[r], 0, sizeof to->d[r]);
        for (int64_t j = 0; j < width; ++j) to->d[r][j] = d[j];
    }
}

/* The rows of a chunk for one part of k elements: out [k][m]. */
INLINE void gram_packed(const Gram *g, const Rows *rows, int64_t k, const int scaled, const int few, Packed *packed,
                        float *out) {
    for (int64_t lo = 0; lo < k; lo += SLICE) {
        const int64_t slice = k - lo < SLICE ? k - lo : SLICE;
        pack_elements(rows, lo, slice, scaled, packed);
        for (int64_t at = 0; at < g->m; at += BROAD) {
            const int64_t width = g->m - at < BROAD ? g->m - at : BROAD;
            pack_columns(g, rows, at, width, packed);
            for (int64_t j = 0; j < slice; j += TALL)
                packed_tile(rows->count, packed->x[j / TALL][0], packed->d[0], out + (lo + j) * g->m + at, g->m,
                            slice - j < TALL ? slice - j : TALL, width, few);
        }
    }
}

/* As gram_packed where m is 16 or 32 and k a multiple of 4: every element is read once, and from where it is. */
INLINE void gram_direct(const Gram *g, const Rows *rows, int64_t k, const int few, float *out) {
    for (int64_t j = 0; j < k; j += TALL)
        for (int64_t at = 0; at < g->m; at += BROAD)
            whole_tile(rows, j, g->D + at, g->m, rows->count, 0, 0, out + j * g->m + at, g->m,
                       k - j < TALL ? 4 : TALL, BROAD, few);
}

/* Which of rows lo..hi-1 are live and have a scale: a row times 0 adds nothing. */
INLINE int64_t list_rows(int64_t lo, int64_t hi, const float *live, const float *scale, int64_t *row) {
    int64_t count = 0;
    for (int64_t r = lo; r < hi; ++r) {
        row[count] = r;
        count += (!live || nonzero(live + r)) & (!scale || nonzero(scale + r));
    }
    return count;
}

INLINE void gram_chunk(const Gram *g, int64_t lo, int64_t hi, const int few, Packed *packed, float *out) {
    Rows rows;
    for (int64_t p = 0; p < g->parts; ++p) {
        const Part *part = g->part + p;
        const float *scale = part->scale, *live = g->live == scale ? 0 : g->live;
        int ones = 1;
        if (live && scale) rows.count = list_rows(lo, hi, live, scale, rows.row);
        else if (live || scale) rows.count = list_rows(lo, hi, live ? live : scale, 0, rows.row);
        else rows.count = list_rows(lo, hi, 0, 0, rows.row);
        for (int64_t i = 0; i < rows.count; ++i) {
            const int64_t r = rows.row[i];
            rows.x[i] = part->X + (part->index ? (int64_t)part->index[r] : r) * part->ld;
        }
        for (int64_t i = 0; scale && i < rows.count; ++i) {
            rows.scale[i] = scale[rows.row[i]];
            ones &= rows.scale[i] == 1.0f;
        }
        if (ones && (g->m == 16 || g->m == 32) && part->k % 4 == 0) gram_direct(g, &rows, part->k, few, out);
        else if (ones) gram_packed(g, &rows, part->k, 0, few, packed, out);
        else gram_packed(g, &rows, part->k, 1, few, packed, out);
        out += part->k * g->m;
    }
}

/* out [sum k][m] += block b. */
WIDE static void gram_block(const Gram *g, int64_t b, int few, float *out) {
    Packed packed;
    for (int64_t q = 0; q < g->graphs; ++q) {
        const int64_t *s = g->starts + q * (g->blocks + 1) + b;
        const int64_t chunks = (s[1] - s[0] + ROWS - 1) / ROWS, step = chunks ? (s[1] - s[0] + chunks - 1) / chunks : 1;
        for (int64_t lo = s[0]; lo < s[1]; lo += step) {
            const int64_t hi = lo + step < s[1] ? lo + step : s[1];
            if (few) gram_chunk(g, lo, hi, 1, &packed, out);
            else gram_chunk(g, lo, hi, 0, &packed, out);
        }
    }
}

static int64_t gram_size(const Gram *g) {
    int64_t k = 0;
    for (int64_t p = 0; p < g->parts; ++p) k += g->part[p].k;
    return k * g->m;
}

void lk_gram(const Gram *g) {
    const int64_t size = gram_size(g);
    const int few = !many_registers();
    for (int64_t b = 0; b < g->blocks; ++b) gram_block(g, b, few, g->out + b * size);
}

WIDE static void add_sums(int64_t size, float *to, const float *from) {
    for (int64_t i = 0; i < size; ++i) to[i] += from[i];
}

/* out = the subtree of `level` from block lo on, cut at hi: its left half plus its right half, if there is one.
 * spare: `level` times as much memory as out. */
static void gram_tree(const Gram *g, int64_t lo, int64_t hi, int64_t level, int64_t size, float *out, float *spare) {
    if (hi - lo == 1) {
        memset(out, 0, (size_t)size * 4);
        gram_block(g, lo, !many_registers(), out);
        return;
    }
    const int64_t middle = lo + ((int64_t)1 << (level - 1));
    if (middle >= hi) {
        gram_tree(g, lo, hi, level - 1, size, out, spare);
        return;
    }
    gram_tree(g, lo, middle, level - 1, size, out, spare);
    gram_tree(g, middle, hi, level - 1, size, spare, spare + size);
    add_sums(size, out, spare);
}

/* Row i of g->out becomes the subtree spans[i] = (first block, last block + 1, level); spare: the highest level times
 * as much memory as a row. */
void lk_gram_roots(const Gram *g, int64_t count, const int64_t *spans, float *spare) {
    const int64_t size = gram_size(g);
    for (int64_t i = 0; i < count; ++i, spans += 3)
        gram_tree(g, spans[0], spans[1], spans[2], size, g->out + i * size, spare);
}
