/* Sparse times dense: how it goes through A, and with which kernels. */
#include "lanes.h"

#include <unistd.h>

/* Columns of A in a tile, or 0 to go by rows. Tiles are worth it where X is more than one of them and a row reads enough
 * of each in the mean, a FEW entries at least, to pay for its sums, which are read and written again for every tile.
 * Measured (power-law degrees, 32 to 256 columns): with 2 MB of second-level cache, X in the third-level one, even at 2 KB
 * and 1.3 to 2 times faster at 4 KB; with 1 MB, even at 3 to 4 KB there, and where X does not fit that either, still 1.7
 * times faster at 1.4 KB. 512 and 1536 columns: 1.5 times faster at 2.5 entries, 1.6 times slower at one. */
enum { LEAST = 3072, LEAST_OUTSIDE = 1024, FEW = 2 };
int64_t lk_tile_columns(int64_t n, int64_t m, int64_t entries, int64_t c, int64_t tile) {
    const int64_t height = c >= 16 ? tile / (4 * c) : 0;
    const int64_t least = 4 * m * c > OUTER_CACHE ? LEAST_OUTSIDE : LEAST;
    if (height < 1 || m <= height) return 0;
    const int64_t cells = n * ((m - 1) / height + 1);
    return entries >= FEW * cells && 4 * c * entries >= least * cells ? height : 0;
}

/* Reads of a row of X that pay for a copy of it. */
enum { OFTEN = 64 };

/* Half of a second-level cache from which rows of X are fetched into the first-level one, however far they are. Measured:
 * with 2 MB of it 128 and 256 columns are then 1.15 to 1.4 times faster, with 1 MB 1.1 to 1.25 times slower. */
enum { LARGE = 1 << 20 };

void lk_spmm(int64_t n, int64_t m, int wide, const void *indptr, const void *indices, const float *data, int64_t c,
             const float *X, float *Y, int64_t ldy, const float *live, int first, int64_t tile) {
    if (!n) return;
    const int64_t first_entry = wide ? ((const int64_t *)indptr)[0] : ((const int32_t *)indptr)[0];
    const int64_t end = wide ? ((const int64_t *)indptr)[n] : ((const int32_t *)indptr)[n];
    const int64_t entries = end - first_entry, height = lk_tile_columns(n, m, entries, c, tile);
    const int often = entries >= OFTEN * m, far = is_far(m, c) && tile < LARGE;
    lk_lanes()->spmm(n, m, wide, indptr, indices, data, c, X, Y, ldy, live, first, height, often, far);
}

/* What a tile may read of X: half of the second-level cache; the rest is for entries and sums that pass by. */
int64_t lk_tile_bytes(void) {
    int64_t cache = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
    cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return (cache > 0 ? cache : 1 << 20) / 2;
}
