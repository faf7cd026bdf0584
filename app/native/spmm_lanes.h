/* Sparse times dense: Y += A X, or Y = A X where `first`: then Y is not read. An element of Y is one chain over the
 * entries of its row in stored order, whatever is held where.
 *
 * Two ways through A. By rows: a row of X is fetched some entries before its use, into an outer cache where X is
 * larger than the caches, else into the first. By tiles of columns, where many entries of a row fall into one: the
 * rows of X that a tile reads stay in the second-level cache, and each row of Y goes on from where it was. */
#include "vectors.h"

#include <stdlib.h>

/* Where the q-th of V vectors of L columns begins among W columns. Where these are no multiple of L, the last two
 * overlap, and some sums are made twice, to the same bits. */
#define PLACE(q, V, L, W) ((V) == 1 ? 0 : (q) < (V) - 1 ? (L) * (q) : (W) - (L))

/* Whether a line of the cache, 16 columns, may begin there. */
#define NEW_LINE(q, V, L) ((q) * (L) % 16 == 0 || (q) == (V) - 1)

/* Which of V vectors of a row of X is read k-th: of a long row first and last by turns. Where it comes from afar, that
 * was measured to be a tenth to a quarter faster than from one end to the other. */
#define TURN(k, V) ((V) < 8 ? (k) : (k) % 2 ? (V) - 1 - (k) / 2 : (k) / 2)

/* One row, the W columns that y points at, in V registers of L columns; X holds them as WX columns (see pack). */
#define CHAIN(type, L, V, W, WX, T, ahead, hint)                                                              \
    {                                                                                                         \
        type a[V];                                                                                            \
        for (int q = 0; q < V; ++q) a[q] = START(type, y + PLACE(q, V, L, W));                                \
        for (int64_t j = begin; j < end; ++j) {                                                               \
            const float *x = X + (size_t)indices[j] * ld;                                                     \
            if (j + (ahead) < last) {                                                                         \
                const float *next = X + (size_t)indices[j + (ahead)] * ld;                                    \
                for (int q = 0; q < V; ++q)                                                                   \
                    if (NEW_LINE(q, V, L)) __builtin_prefetch(next + PLACE(q, V, L, WX), 0, hint);            \
            }                                                                                                 \
            for (int k = 0; k < V; ++k) {                                                                     \
                const int q = TURN(k, V);                                                                     \
                a[q] += T(*(const type *)(x + PLACE(q, V, L, WX)));                                           \
            }                                                                                                 \
        }                                                                                                     \
        for (int q = 0; q < V; ++q) *(type *)(y + PLACE(q, V, L, W)) = a[q];                                  \
    }

/* Columns that are made TILE or more at a time, half of all registers; what is left are fewer than TILE + 16, in one go:
 * at least 16, or all. */
enum { TILE = LANES < 8 ? 32 : 64 };
INLINE int64_t whole_of(int64_t columns, int64_t tile) {
    const int64_t rest = columns % tile;
    return columns - rest - (columns > tile && rest && rest < 16 ? tile : 0);
}
INLINE int64_t whole_tiles(int64_t columns) { return whole_of(columns, TILE); }

/* The next of them: 256 or 128 where there are registers for so many. */
INLINE int64_t step(int64_t left, int far) {
    return LANES == 16 && far && left >= 256 ? 256 : LANES == 16 && far && left >= 128 ? 128 : TILE;
}

/* `ACTION(V)` for the number of vectors that hold w columns, at least one vector and fewer than TILE + 16 columns. */
#define FITS(V) ((V) * LANES < TILE + 16 + LANES)
#define CASE(V, ACTION)                                                                                       \
    case V:                                                                                                   \
        if (FITS(V)) ACTION(V)                                                                                \
        break;
#define BY_VECTORS(w, ACTION)                                                                                 \
    switch (((w) + LANES - 1) / LANES) {                                                                      \
        CASE(1, ACTION)                                                                                       \
        CASE(2, ACTION)                                                                                       \
        CASE(3, ACTION)                                                                                       \
        CASE(4, ACTION)                                                                                       \
        CASE(5, ACTION)                                                                                       \
        CASE(6, ACTION)                                                                                       \
        CASE(7, ACTION)                                                                                       \
        CASE(8, ACTION)                                                                                       \
        CASE(9, ACTION)                                                                                       \
        CASE(10, ACTION)                                                                                      \
        CASE(11, ACTION)                                                                                      \
        CASE(12, ACTION)                                                                                      \
    }

/* A row of Y that is left as it is. */
#define IS_LEFT(i) (live && !nonzero(live + (i)))

/* The W columns of all rows that are left, in V vectors. */
#define ROWS(type, L, V, T)                                                                                   \
    for (int64_t i = 0; i < n; ++i) {                                                                         \
        const int64_t begin = indptr[i], end = indptr[i + 1];                                                 \
        const float *X = X_ + tiles;                                                                          \
        float *y = Y + i * ldy + tiles;                                                                       \
        if (first || (begin < end && !IS_LEFT(i))) CHAIN(type, L, V, w, wx, T, 16, 3)                         \
    }
#define ROWS_ONE(V) ROWS(vec, LANES, V, ONE)
#define ROWS_VALUED(V) ROWS(vec, LANES, V, VALUED)

#define BY_ROWS(tag, INDEX, T)                                                                                \
    static void rows_##tag(int64_t n, const INDEX *indptr, const INDEX *indices, const float *data,           \
                           int64_t c, int64_t ld, const float *X_, float *Y, int64_t ldy,                     \
                           const float *live, int far, const int first) {                                     \
        const int64_t last = n ? (int64_t)indptr[n] : 0, tiles = whole_tiles(c);                              \
        (void)data;                                                                                           \
        for (int64_t i = 0; tiles && i < n; ++i) {                                                            \
            const int64_t begin = indptr[i], end = indptr[i + 1];                                             \
            if (first || (begin < end && !IS_LEFT(i)))                                                        \
                for (int64_t at = 0, w; at < tiles; at += w) {                                                \
                    const float *X = X_ + at;                                                                 \
                    float *y = Y + i * ldy + at;                                                              \
                    w = step(tiles - at, far);                                                                \
                    if (LANES == 16 && w == 256) CHAIN(vec, LANES, 16, 256, 256, T, 12, 1)                    \
                    else if (LANES == 16 && w == 128) CHAIN(vec, LANES, 8, 128, 128, T, 24, 1)                \
                    else if (far) CHAIN(vec, LANES, TILE / LANES, TILE, TILE, T, 48, 1)                       \
                    else CHAIN(vec, LANES, TILE / LANES, TILE, TILE, T, 24, 3)                                \
                }                                                                                             \
        }                                                                                                     \
        const int64_t w = c - tiles, wx = ld - tiles;                                                         \
        if (w == 1) ROWS(float, 1, 1, T)                                                                      \
        else if (w == 2) ROWS(float, 1, 2, T)                                                                 \
        else if (w == 3) ROWS(float, 1, 3, T)                                                                 \
        else if (w == 4) ROWS(v4, 4, 1, T)                                                                    \
        else if (w && w < 8) ROWS(v4, 4, 2, T)                                                                \
        else if (LANES == 16 && w == 8) ROWS(v8, 8, 1, T)                                                     \
        else if (LANES == 16 && w && w < 16) ROWS(v8, 8, 2, T)                                                \
        else BY_VECTORS(w, ROWS_##T)                                                                          \
    }

/* The entries of a row from `begin` on whose columns are below `limit`; `stop` is where they end. */
#define GO_ON(V, W, WX, T)                                                                                    \
    {                                                                                                         \
        vec a[V];                                                                                             \
        int64_t j = begin;                                                                                    \
        for (int q = 0; q < V; ++q) a[q] = zero ? (vec){0} : LOAD(y + PLACE(q, V, LANES, W));                 \
        for (; j < end && indices[j] < limit; ++j) {                                                          \
            const float *x = X + (size_t)indices[j] * ld;                                                     \
            for (int q = 0; q < V; ++q) a[q] += T(LOAD(x + PLACE(q, V, LANES, WX)));                          \
        }                                                                                                     \
        for (int q = 0; q < V; ++q) STORE(y + PLACE(q, V, LANES, W), a[q]);                                   \
        stop = j;                                                                                             \
    }

/* Lines of column numbers that are fetched for a row and tile: twice the mean, as rows differ and begin anywhere. */
INLINE int64_t index_lines(int64_t bytes, int64_t visits) {
    const int64_t lines = 2 * bytes / (64 * visits) + 2;
    return lines < 8 ? lines : 8;
}

#define GO_ON_ONE(V) GO_ON(V, w, wx, ONE)
#define GO_ON_VALUED(V) GO_ON(V, w, wx, VALUED)

/* Rows are taken some at a time, so that their entries and sums stay in the third-level cache from tile to tile; the
 * list says how far each of them is. Their column numbers are fetched AHEAD rows before, else each tile waits for
 * them. `height`: columns of A in a tile. */
enum { PASS = 4096, AHEAD = 8 };
#define BY_TILES(tag, INDEX, T)                                                                               \
    static void tiles_##tag(int64_t n, int64_t m, const INDEX *indptr, const INDEX *indices,                  \
                                 const float *data, int64_t c, int64_t ld, const float *X_, float *Y,         \
                                 int64_t ldy, const float *live, const int first, int64_t height) {           \
        INDEX list[PASS + AHEAD];                                                                             \
        const int64_t tiles = whole_tiles(c), lines = index_lines(sizeof *list * (indptr[n] - indptr[0]),     \
                                                                   n * ((m - 1) / height + 1));               \
        (void)data;                                                                                           \
        for (int64_t lo = 0; lo < n; lo += PASS) {                                                            \
            const int64_t hi = lo + PASS < n ? lo + PASS : n;                                                 \
            memcpy(list, indptr + lo, (size_t)(hi - lo) * sizeof *list);                                      \
            for (int k = 0; k < AHEAD; ++k) list[hi - lo + k] = list[0];                                      \
            for (int64_t column = 0; column < m; column += height) {                                          \
                const INDEX limit = (INDEX)(m - column < height ? m : column + height);                       \
                const int zero = first && !column;                                                            \
                for (int64_t i = lo; i < hi; ++i) {                                                           \
                    const int64_t begin = list[i - lo], end = indptr[i + 1];                                  \
                    int64_t stop = begin, at = 0, w, wx;                                                      \
                    const char *next = (const char *)(indices + list[i - lo + AHEAD]);                        \
                    for (int64_t line = 0; line < lines; ++line) __builtin_prefetch(next + 64 * line, 0, 3);  \
                    if (!zero && (IS_LEFT(i) || !(begin < end && indices[begin] < limit))) continue;          \
                    for (; at < c; at += w) {                                                                 \
                        const float *X = X_ + at;                                                             \
                        float *y = Y + i * ldy + at;                                                          \
                        w = at < tiles ? step(tiles - at, 1) : c - at;                                        \
                        wx = at < tiles ? w : ld - at;                                                        \
                        if (LANES == 16 && w == 256) GO_ON(16, 256, 256, T)                                   \
                        else if (LANES == 16 && w == 128) GO_ON(8, 128, 128, T)                               \
                        else BY_VECTORS(w, GO_ON_##T)                                                         \
                    }                                                                                         \
                    list[i - lo] = (INDEX)stop;                                                               \
                }                                                                                             \
            }                                                                                                 \
        }                                                                                                     \
    }

#define PRODUCT(tag, INDEX, T)                                                                                \
    BY_ROWS(tag, INDEX, T)                                                                                    \
    BY_TILES(tag, INDEX, T)                                                                                   \
    static void product_##tag(int64_t n, int64_t m, const INDEX *indptr, const INDEX *indices,                \
                              const float *data, int64_t c, int64_t ld, const float *X, float *Y,             \
                              int64_t ldy, const float *live, int first, int64_t height, int far) {           \
        if (height) tiles_##tag(n, m, indptr, indices, data, c, ld, X, Y, ldy, live, first, height);          \
        else rows_##tag(n, indptr, indices, data, c, ld, X, Y, ldy, live, far, first);                        \
    }
PRODUCT(narrow_ones, int32_t, ONE)
PRODUCT(narrow_data, int32_t, VALUED)
PRODUCT(long_ones, int64_t, ONE)
PRODUCT(long_data, int64_t, VALUED)

/* How long a row of X is where its vectors stand one after the other, each of LANES columns: no load then crosses a line
 * of the cache. 0 where they do as X is, or do not fill a vector. */
INLINE int64_t packed_width(int64_t c) {
    const int64_t tiles = whole_tiles(c), w = c - tiles;
    return w > LANES && w > 16 && w % LANES ? tiles + (w + LANES - 1) / LANES * LANES : 0;
}

/* X in such rows, where they fit an outer cache; the last vector holds the last LANES columns, of which the one before has some too. */
static float *pack(int64_t m, int64_t c, int64_t ld, const float *X) {
    float *room = aligned_alloc(64, ((size_t)(m * ld) * 4 + 63) / 64 * 64);
    for (int64_t i = 0; room && i < m; ++i) {
        float *to = room + i * ld;
        memcpy(to, X + i * c, (size_t)(ld - LANES) * 4);
        memcpy(to + ld - LANES, X + (i + 1) * c - LANES, LANES * 4);
    }
    return room;
}

/* See lk_spmm. height: columns of A in a tile, or 0 to go by rows; often: rows of X are read so often that it pays to
 * pack them; far: they are fetched into an outer cache. */
static void spmm(int64_t n, int64_t m, int wide, const void *indptr, const void *indices, const float *data, int64_t c,
                 const float *X, float *Y, int64_t ldy, const float *live, int first, int64_t height, int often,
                 int far) {
    const int64_t packed = often ? packed_width(c) : 0;
    float *room = packed && 4 * m * packed <= OUTER_CACHE ? pack(m, c, packed, X) : 0;
    const int64_t ld = room ? packed : c;
    if (room) X = room;
    if (wide && data) product_long_data(n, m, indptr, indices, data, c, ld, X, Y, ldy, live, first, height, far);
    else if (wide) product_long_ones(n, m, indptr, indices, data, c, ld, X, Y, ldy, live, first, height, far);
    else if (data) product_narrow_data(n, m, indptr, indices, data, c, ld, X, Y, ldy, live, first, height, far);
    else product_narrow_ones(n, m, indptr, indices, data, c, ld, X, Y, ldy, live, first, height, far);
    free(room);
}
