/* The tiled form of a matrix (tiled.h): made in two walks along its entries, one that counts and one that fills. */
#include "tiled.h"

#include <stdlib.h>

#include "lanes.h"

/* What is under way: where each row of the band has got to; in the tile, what each row has and how many have as much. */
typedef struct {
    int64_t at[BAND];
    uint32_t has[BAND];
    uint32_t next[65536 + 1]; /* where the next row with so many goes */
    uint32_t alike[65536 + 1];
} Walk;

/* Column j of an array of 4 or 8 bytes each. */
#define ENTRY(wide, array, j) ((wide) ? ((const int64_t *)(array))[j] : (int64_t)((const int32_t *)(array))[j])

/* The entries of each of `rows` rows below `limit`: into has; the largest. */
static uint32_t advance(Walk *walk, int64_t rows, int64_t lo, int wide, const void *indptr, const void *indices,
                        int64_t limit) {
    uint32_t most = 0;
    for (int64_t i = 0; i < rows; ++i) {
        const int64_t begin = walk->at[i], end = ENTRY(wide, indptr, lo + i + 1);
        int64_t j = begin;
        if (wide) while (j < end && ((const int64_t *)indices)[j] < limit) ++j;
        else while (j < end && ((const int32_t *)indices)[j] < limit) ++j;
        walk->at[i] = j;
        walk->has[i] = (uint32_t)(j - begin);
        if (walk->has[i] > most) most = walk->has[i];
    }
    return most;
}

/* Whether the columns of every row ascend. */
static int ascends(int64_t n, int wide, const void *indptr, const void *indices) {
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = ENTRY(wide, indptr, i) + 1; j < ENTRY(wide, indptr, i + 1); ++j)
            if (ENTRY(wide, indices, j - 1) >= ENTRY(wide, indices, j)) return 0;
    return 1;
}

/* The entries of the tile from `column` on, cell by cell, after `walk` has gone past them. */
static void fill(const Walk *walk, int64_t cells, int wide, const void *indices, const float *data, int64_t column,
                 const uint16_t *rows, uint16_t *entries, float *values) {
    for (int64_t k = 0; k < cells; ++k) {
        const int64_t i = rows[k], end = walk->at[i];
        for (int64_t j = end - walk->has[i]; j < end; ++j) {
            *entries++ = (uint16_t)(ENTRY(wide, indices, j) - column);
            if (values) *values++ = data[j];
        }
    }
}

/* Lays out a matrix [n, m] of ascending rows. sizes [2]: its runs and cells. `runs` null: counts only; else all of Tiled
 * is written, values where they are given. Returns 0, or 1 where rows do not ascend, 2 without memory. */
int lk_tile(int64_t n, int64_t m, int wide, const void *indptr, const void *indices, const float *data, int64_t height,
            int64_t *tiles, uint32_t *runs, uint16_t *rows, uint16_t *entries, float *values, int64_t *sizes) {
    int64_t made = 0, cells = 0, placed = 0;
    if (!runs && !ascends(n, wide, indptr, indices)) return 1;
    Walk *walk = calloc(1, sizeof *walk);
    if (!walk) return 2;
    for (int64_t lo = 0; lo < n; lo += BAND) {
        const int64_t count = n - lo < BAND ? n - lo : BAND;
        for (int64_t i = 0; i < count; ++i) walk->at[i] = ENTRY(wide, indptr, lo + i);
        for (int64_t column = 0; column < m; column += height) {
            const int64_t first = cells;
            const uint32_t most = advance(walk, count, lo, wide, indptr, indices, column + height);
            if (runs) {
                *tiles++ = made;
                *tiles++ = cells;
                *tiles++ = placed;
            }
            for (int64_t i = 0; i < count; ++i) ++walk->alike[walk->has[i]];
            for (uint32_t k = 1; k <= most; ++k) {
                if (!walk->alike[k]) continue;
                walk->next[k] = (uint32_t)(cells - first);
                if (runs) {
                    runs[2 * made] = k;
                    runs[2 * made + 1] = walk->alike[k];
                }
                ++made;
                cells += walk->alike[k];
            }
            if (runs) {
                for (int64_t i = 0; i < count; ++i)
                    if (walk->has[i]) rows[first + walk->next[walk->has[i]]++] = (uint16_t)i;
                fill(walk, cells - first, wide, indices, data, column, rows + first, entries + placed,
                     values ? values + placed : 0);
                for (int64_t i = 0; i < count; ++i) placed += walk->has[i];
            }
            memset(walk->alike, 0, ((size_t)most + 1) * sizeof *walk->alike);
        }
    }
    if (runs) {
        *tiles++ = made;
        *tiles++ = cells;
        *tiles++ = placed;
        memset(rows + cells, 0, LOOK_AHEAD * sizeof *rows);
    }
    sizes[0] = made;
    sizes[1] = cells;
    free(walk);
    return 0;
}

/* Columns of A in a tile, or 0 where a matrix [n, m] gains nothing by them. A panel of X is then 128 KB, which the
 * second-level cache gives fastest; more of them, up to `most` bytes, where a cell has fewer than ENOUGH entries in the mean.
 * Measured (2 MB of second-level cache, power-law degrees, 16 to 64 columns): 1.1 to 1.7 times faster from three entries on,
 * with no difference at two. */
enum { BEST = 128 << 10, ENOUGH = 6, LEAST = 3 };
int64_t lk_tiled_panel(void) { return panel_of(lk_lanes()->lanes); }
int64_t lk_tiled_height(int64_t n, int64_t m, int64_t entries, int64_t most) {
    const int64_t row = 4 * lk_tiled_panel();
    int64_t height = BEST / row;
    if (n < 1 || m <= height) return 0;
    while (2 * height <= 65536 && 2 * height * row <= most && entries < ENOUGH * n * tiles_of(m, height)) height *= 2;
    return entries >= LEAST * n * tiles_of(m, height) ? height : 0;
}

/* Y [n, c] += A X; rows of Y are ldy long, those where live is 0 (null: none) are left as they are. X is packed where its
 * rows are long or of no whole vectors, if they are read OFTEN enough and a panel of them fits an outer cache. */
enum { OFTEN = 32 };
void lk_tiled(const Tiled *A, int64_t c, const float *X, float *Y, int64_t ldy, const float *live) {
    const int64_t panel = lk_tiled_panel(), most = panel + 16; /* columns of a panel at most: see whole_of */
    const int64_t widest = c <= most ? (c + 15) / 16 * 16 : most;
    const int64_t bands = (A->n + BAND - 1) / BAND, stored = A->tiles[3 * bands * tiles_of(A->m, A->height) + 2];
    const int packs = (c > panel || c % 16) && stored >= OFTEN * A->m && 4 * A->m * widest <= OUTER_CACHE;
    float *room = packs ? aligned_alloc(64, (size_t)(4 * A->m * widest)) : 0;
    lk_lanes()->tiled(A, c, X, Y, ldy, live, room);
    free(room);
}
