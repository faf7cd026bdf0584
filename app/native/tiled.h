/* A second form of a matrix, for products that are made often: its entries tile by tile. */
#ifndef LOCKSTEP_TILED_H
#define LOCKSTEP_TILED_H

#include "common.h"

/* A cell is what one row has in one tile. Rows are taken BAND at a time, and of those `height` columns at a time; the
 * rows of a tile that have any entry stand in runs of equally many, so that the processor foresees where each ends. */
enum { BAND = 8192, LOOK_AHEAD = 8 };
typedef struct {
    int64_t n, m, height;    /* rows and columns of the matrix, columns of a tile (at most 65,536) */
    const int64_t *tiles;    /* [bands * tiles + 1][3]: the first run, cell and entry of each tile, then their numbers */
    const uint32_t *runs;    /* [runs][2]: entries of a cell, cells */
    const uint16_t *rows;    /* [cells + LOOK_AHEAD]: the row of each cell, from the band's first on */
    const uint16_t *entries; /* columns, from the tile's first on, in the order in which the matrix has them */
    const float *values;     /* of the entries, or null: all are one */
} Tiled;

/* Columns of the operand that are multiplied at a time, on registers of so many. Four registers hold them, or eight of
 * the narrowest: measured with eight of 8 columns (512 KB of second-level cache, 11 million entries), 128 columns took 1.12
 * times as long, as there are then twice as many cells of half as many entries. */
INLINE int64_t panel_of(int64_t lanes) { return lanes == 16 ? 64 : 32; }

INLINE int64_t tiles_of(int64_t m, int64_t height) { return (m + height - 1) / height; }

#endif
