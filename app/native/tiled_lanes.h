/* Sparse times dense by a tiled matrix (tiled.h): Y += A X, an element of Y one chain over the entries of its row in
 * stored order. What a tile reads of X stays in the second cache, and rows of Y are fetched some cells ahead; columns
 * come in one stream of 2 bytes each, and runs of rows with equally many need no guess of where a row ends. */
#include "tiled.h"

/* The W columns that y points at, of one row. */
#define CELL(V, W, WX, T)                                                                                     \
    {                                                                                                         \
        vec a[V];                                                                                             \
        for (int q = 0; q < V; ++q) a[q] = LOAD(y + PLACE(q, V, LANES, W));                                   \
        for (uint32_t j = 0; j < length; ++j) {                                                               \
            const float *x = X + (size_t)entry[j] * ld;                                                       \
            for (int q = 0; q < V; ++q) a[q] += T(LOAD(x + PLACE(q, V, LANES, WX)));                          \
        }                                                                                                     \
        for (int q = 0; q < V; ++q) STORE(y + PLACE(q, V, LANES, W), a[q]);                                   \
    }

/* Row and entries of the i-th cell of a run, while rows further on are fetched. */
#define AT(i)                                                                                                 \
    float *y = Y + row[i] * ldy;                                                                              \
    const uint16_t *entry = entries + (size_t)(i) * length;                                                   \
    const float *data = values ? values + (size_t)(i) * length : 0;                                           \
    (void)data;

/* All cells of a tile whose rows of X are given. Those of rows that are left out are sorted out of a run before. */
#define CELLS(V, T)                                                                                           \
    for (int64_t k = tile[0]; k < tile[3]; ++k) {                                                             \
        const uint32_t length = runs[2 * k], count = runs[2 * k + 1];                                         \
        uint32_t found = 0;                                                                                   \
        for (uint32_t i = 0; live && i < count; ++i) {                                                        \
            list[found] = (uint16_t)i;                                                                        \
            found += (uint32_t)nonzero(live + row[i]);                                                        \
        }                                                                                                     \
        for (uint32_t i = 0; live && i < found; ++i) {                                                        \
            AT(list[i])                                                                                       \
            CELL(V, w, wx, T)                                                                                 \
        }                                                                                                     \
        for (uint32_t i = 0; !live && i < count; ++i) {                                                       \
            const float *ahead = Y + row[i + LOOK_AHEAD] * ldy;                                               \
            for (int q = 0; q < V; ++q)                                                                       \
                if (NEW_LINE(q, V, LANES)) __builtin_prefetch(ahead + PLACE(q, V, LANES, w), 1, 3);           \
            AT(i)                                                                                             \
            CELL(V, w, wx, T)                                                                                 \
        }                                                                                                     \
        row += count;                                                                                         \
        entries += (size_t)count * length;                                                                    \
        if (values) values += (size_t)count * length;                                                         \
    }
#define CELLS_ONE(V) CELLS(V, ONE)
#define CELLS_VALUED(V) CELLS(V, VALUED)

/* The w columns of X [m, c] from `at` on, in rows of whole vectors: the last holds the last LANES of them. */
static void pack_panel(int64_t m, int64_t c, const float *X, int64_t at, int64_t w, float *room, int64_t ld) {
    for (int64_t i = 0; i < m; ++i) {
        memcpy(room + i * ld, X + i * c + at, (size_t)(ld - LANES) * 4);
        memcpy(room + (i + 1) * ld - LANES, X + i * c + at + w - LANES, LANES * 4);
    }
}

/* See lk_tiled. room: null, or where X is packed, some columns at a time. */
static void tiled(const Tiled *A, int64_t c, const float *X_, float *Y_, int64_t ldy, const float *live_,
                  float *room) {
    const int64_t tiles = tiles_of(A->m, A->height), whole = whole_of(c, panel_of(LANES));
    const uint32_t *runs = A->runs;
    uint16_t list[BAND];
    for (int64_t at = 0, w; at < c; at += w) {
        w = at < whole ? panel_of(LANES) : c - at;
        const int64_t packed = (w + LANES - 1) / LANES * LANES, ld = room ? packed : c, wx = room ? packed : w;
        const float *X_at = room ? room : X_ + at;
        const int64_t *tile = A->tiles;
        if (room) pack_panel(A->m, c, X_, at, w, room, ld);
        for (int64_t lo = 0; lo < A->n; lo += BAND) {
            float *Y = Y_ + lo * ldy + at;
            const float *live = live_ ? live_ + lo : 0;
            for (int64_t t = 0; t < tiles; ++t, tile += 3) {
                const float *X = X_at + t * A->height * ld;
                const uint16_t *row = A->rows + tile[1], *entries = A->entries + tile[2];
                const float *values = A->values ? A->values + tile[2] : 0;
                if (values) {
                    BY_VECTORS(w, CELLS_VALUED)
                } else {
                    BY_VECTORS(w, CELLS_ONE)
                }
            }
        }
    }
}
