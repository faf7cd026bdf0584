/* Sparse times dense: Y += A X, or Y = A X where `first`: then Y is not read. An element of Y is one chain over the
 * entries of its row in stored order, whatever is held where.
 *
 * Two ways through A. By rows: a row of X is fetched some entries before its use, into an outer cache where X is
 * larger than the caches, else into the first. By tiles of columns, where many entries of a row fall into one: the
 * rows of X that a tile reads stay in the second-level cache, and each row of Y goes on from where it was. */
#include "products.h"

#include <unistd.h>

/* Where the q-th of V vectors of L columns begins among W columns. Where these are no multiple of L, the last two
 * overlap, and some sums are made twice, to the same bits. */
#define PLACE(q, V, L, W) ((V) == 1 ? 0 : (q) < (V) - 1 ? (L) * (q) : (W) - (L))

/* Which of V vectors of a row of X is read k-th: of a long row first and last by turns. Where it comes from afar, that
 * was measured to be a tenth to a quarter faster than from one end to the other. */
#define TURN(k, V) ((V) < 8 ? (k) : (k) % 2 ? (V) - 1 - (k) / 2 : (k) / 2)

/* One row, the W columns that X and y point at, in V registers of L columns. */
#define CHAIN(type, L, V, W, T, ahead, hint)                                                                  \
    {                                                                                                         \
        type a[V];                                                                                            \
        for (int q = 0; q < V; ++q) a[q] = START(type, y + PLACE(q, V, L, W));                                \
        for (int64_t j = begin; j < end; ++j) {                                                               \
            const float *x = X + (size_t)indices[j] * ld;                                                     \
            if (j + (ahead) < last) {                                                                         \
                const float *next = X + (size_t)indices[j + (ahead)] * ld;                                    \
                for (int q = 0; q < V; ++q) __builtin_prefetch(next + PLACE(q, V, L, W), 0, hint);            \
            }                                                                                                 \
            for (int k = 0; k < V; ++k) {                                                                     \
                const int q = TURN(k, V);                                                                     \
                a[q] += T(*(const type *)(x + PLACE(q, V, L, W)));                                            \
            }                                                                                                 \
        }                                                                                                     \
        for (int q = 0; q < V; ++q) *(type *)(y + PLACE(q, V, L, W)) = a[q];                                  \
    }
#define ROWS(type, L, V, T)                                                                                   \
    for (int64_t i = 0; i < n; ++i) {                                                                         \
        const int64_t begin = indptr[i], end = indptr[i + 1];                                                 \
        const float *X = X_ + tiles;                                                                          \
        float *y = Y + i * ldy + tiles;                                                                       \
        if (first || begin < end) CHAIN(type, L, V, w, T, 16, 3)                                              \
    }                                                                                                         \
    break

/* Columns that are made 64 or more at a time; what is left are fewer than 80, in one go: at least 16, or all. */
INLINE int64_t whole_tiles(int64_t columns) {
    const int64_t rest = columns % 64;
    return columns - rest - (columns > 64 && rest && rest < 16 ? 64 : 0);
}

/* The next of them: 256 or 128 where there are registers for so many. */
INLINE int64_t step(int64_t left, const int many) {
    return many && left >= 256 ? 256 : many && left >= 128 ? 128 : 64;
}

#define BY_ROWS(tag, INDEX, T)                                                                                \
    WIDE static void rows_##tag(int64_t n, const INDEX *indptr, const INDEX *indices, const float *data,      \
                                int64_t ld, const float *X_, float *Y, int64_t ldy, int far, int many,        \
                                const int first) {                                                            \
        const int64_t last = n ? (int64_t)indptr[n] : 0, tiles = whole_tiles(ld);                             \
        (void)data;                                                                                           \
        for (int64_t i = 0; tiles && i < n; ++i) {                                                            \
            const int64_t begin = indptr[i], end = indptr[i + 1];                                             \
            if (first || begin < end)                                                                         \
                for (int64_t at = 0, w; at < tiles; at += w) {                                                \
                    const float *X = X_ + at;                                                                 \
                    float *y = Y + i * ldy + at;                                                              \
                    w = step(tiles - at, far && many);                                                        \
                    if (w == 256) CHAIN(v16, 16, 16, 256, T, 12, 1)                                           \
                    else if (w == 128) CHAIN(v16, 16, 8, 128, T, 24, 1)                                       \
                    else if (far) CHAIN(v16, 16, 4, 64, T, 48, 1)                                             \
                    else CHAIN(v16, 16, 4, 64, T, 24, 3)                                                      \
                }                                                                                             \
        }                                                                                                     \
        const int64_t w = ld - tiles;                                                                         \
        switch (w < 4 ? w : w < 8 ? 4 + w % 4 : w < 16 ? 8 + w % 8 : 16 + (w - 1) / 16) {                     \
            case 0: break;                                                                                    \
            case 1: ROWS(float, 1, 1, T);                                                                     \
            case 2: ROWS(float, 1, 2, T);                                                                     \
            case 3: ROWS(float, 1, 3, T);                                                                     \
            case 4: ROWS(v4, 4, 1, T);                                                                        \
            case 5: case 6: case 7: ROWS(v4, 4, 2, T);                                                        \
            case 8: ROWS(v8, 8, 1, T);                                                                        \
            case 16: ROWS(v16, 16, 1, T);                                                                     \
            case 17: ROWS(v16, 16, 2, T);                                                                     \
            case 18: ROWS(v16, 16, 3, T);                                                                     \
            case 19: ROWS(v16, 16, 4, T);                                                                     \
            case 20: ROWS(v16, 16, 5, T);                                                                     \
            default: ROWS(v8, 8, 2, T);                                                                       \
        }                                                                                                     \
    }

/* The entries of a row from `begin` on whose columns are below `limit`; `stop` is where they end. */
#define GO_ON(V, W, T)                                                                                        \
    {                                                                                                         \
        v16 a[V];                                                                                             \
        int64_t j = begin;                                                                                    \
        for (int q = 0; q < V; ++q) a[q] = zero ? (v16){0} : LOAD16(y + PLACE(q, V, 16, W));                  \
        for (; j < end && indices[j] < limit; ++j) {                                                          \
            const float *x = X + (size_t)indices[j] * ld;                                                     \
            for (int q = 0; q < V; ++q) a[q] += T(LOAD16(x + PLACE(q, V, 16, W)));                            \
        }                                                                                                     \
        for (int q = 0; q < V; ++q) STORE16(y + PLACE(q, V, 16, W), a[q]);                                    \
        stop = j;                                                                                             \
    }

/* Lines of column numbers that are fetched for a row and tile: twice the mean, as rows differ and begin anywhere. */
INLINE int64_t index_lines(int64_t bytes, int64_t visits) {
    const int64_t lines = 2 * bytes / (64 * visits) + 2;
    return lines < 8 ? lines : 8;
}

/* Rows are taken some at a time, so that their entries and sums stay in the third-level cache from tile to tile; the
 * list says how far each of them is. Their column numbers are fetched AHEAD rows before, else each tile waits for
 * them. `height`: columns of A in a tile. */
enum { TOGETHER = 4096, AHEAD = 8 };
#define BY_TILES(tag, INDEX, T)                                                                               \
    WIDE static void tiles_##tag(int64_t n, int64_t m, const INDEX *indptr, const INDEX *indices,             \
                                 const float *data, int64_t ld, const float *X_, float *Y, int64_t ldy,       \
                                 int many, const int first, int64_t height) {                                 \
        INDEX list[TOGETHER + AHEAD];                                                                         \
        const int64_t tiles = whole_tiles(ld), lines = index_lines(sizeof *list * (indptr[n] - indptr[0]),    \
                                                                   n * ((m - 1) / height + 1));               \
        (void)data;                                                                                           \
        for (int64_t lo = 0; lo < n; lo += TOGETHER) {                                                        \
            const int64_t hi = lo + TOGETHER < n ? lo + TOGETHER : n;                                         \
            memcpy(list, indptr + lo, (size_t)(hi - lo) * sizeof *list);                                      \
            for (int k = 0; k < AHEAD; ++k) list[hi - lo + k] = list[0];                                      \
            for (int64_t column = 0; column < m; column += height) {                                          \
                const INDEX limit = (INDEX)(m - column < height ? m : column + height);                       \
                const int zero = first && !column;                                                            \
                for (int64_t i = lo; i < hi; ++i) {                                                           \
                    const int64_t begin = list[i - lo], end = indptr[i + 1];                                  \
                    int64_t stop = begin, at = 0, w;                                                          \
                    const char *next = (const char *)(indices + list[i - lo + AHEAD]);                        \
                    for (int64_t line = 0; line < lines; ++line) __builtin_prefetch(next + 64 * line, 0, 3);  \
                    if (!zero && !(begin < end && indices[begin] < limit)) continue;                          \
                    for (; at < ld; at += w) {                                                                \
                        const float *X = X_ + at;                                                             \
                        float *y = Y + i * ldy + at;                                                          \
                        w = at < tiles ? step(tiles - at, many) : ld - at;                                    \
                        switch ((w + 15) / 16) {                                                              \
                            case 1: GO_ON(1, w, T) break;                                                     \
                            case 2: GO_ON(2, w, T) break;                                                     \
                            case 3: GO_ON(3, w, T) break;                                                     \
                            case 4: GO_ON(4, w, T) break;                                                     \
                            case 5: GO_ON(5, w, T) break;                                                     \
                            case 8: GO_ON(8, 128, T) break;                                                   \
                            default: GO_ON(16, 256, T)                                                        \
                        }                                                                                     \
                    }                                                                                         \
                    list[i - lo] = (INDEX)stop;                                                               \
                }                                                                                             \
            }                                                                                                 \
        }                                                                                                     \
    }

/* Columns of A in a tile, or 0 to go by rows. Tiles are worth it where X is more than SOME of them (rows that many read
 * stay in the cache anyhow) and a row reads enough of each in the mean to pay for its sums, which are read and written
 * again for every tile. Measured (1 MB of second-level cache, power-law degrees, 64 to 256 columns): even at 3 to 4 KB
 * where X lies in the third-level cache; where it does not, still 1.7 times faster at 1.4 KB. */
enum { SOME = 6, LEAST = 4096, LEAST_OUTSIDE = 1024, OUTER_CACHE = 32 << 20 };
int64_t lk_tile_columns(int64_t n, int64_t m, int64_t entries, int64_t c, int64_t tile) {
    const int64_t height = c >= 16 ? tile / (4 * c) : 0;
    const int64_t least = 4 * m * c > OUTER_CACHE ? LEAST_OUTSIDE : LEAST;
    if (height < 1 || m <= SOME * height) return 0;
    return 4 * c * entries >= least * n * ((m - 1) / height + 1) ? height : 0;
}

#define PRODUCT(tag, INDEX, T)                                                                                \
    BY_ROWS(tag, INDEX, T)                                                                                    \
    BY_TILES(tag, INDEX, T)                                                                                   \
    static void product_##tag(int64_t n, int64_t m, const INDEX *indptr, const INDEX *indices,                \
                              const float *data, int64_t c, const float *X, float *Y, int64_t ldy, int first, \
                              int64_t tile) {                                                                 \
        const int64_t height = n ? lk_tile_columns(n, m, indptr[n] - indptr[0], c, tile) : 0;                 \
        const int many = many_registers();                                                                    \
        if (height)                                                                                           \
            tiles_##tag(n, m, indptr, indices, data, c, X, Y, ldy, many, first, height);                      \
        else                                                                                                  \
            rows_##tag(n, indptr, indices, data, c, X, Y, ldy, is_far(m, c), many, first);                    \
    }
PRODUCT(narrow_ones, int32_t, ONE)
PRODUCT(narrow_data, int32_t, VALUED)
PRODUCT(long_ones, int64_t, ONE)
PRODUCT(long_data, int64_t, VALUED)

void lk_spmm(int64_t n, int64_t m, int wide, const void *indptr, const void *indices, const float *data, int64_t c,
             const float *X, float *Y, int64_t ldy, int first, int64_t tile) {
    if (wide && data) product_long_data(n, m, indptr, indices, data, c, X, Y, ldy, first, tile);
    else if (wide) product_long_ones(n, m, indptr, indices, data, c, X, Y, ldy, first, tile);
    else if (data) product_narrow_data(n, m, indptr, indices, data, c, X, Y, ldy, first, tile);
    else product_narrow_ones(n, m, indptr, indices, data, c, X, Y, ldy, first, tile);
}

/* What a tile may read of X: most of the second-level cache; the rest is for entries and sums that pass by. */
int64_t lk_tile_bytes(void) {
    int64_t cache = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
    cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return (cache > 0 ? cache : 1 << 20) / 8 * 5;
}
