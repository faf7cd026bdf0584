/* What products.c, spmm.c and lanes.c offer the other kernel files. */
#ifndef LOCKSTEP_PRODUCTS_H
#define LOCKSTEP_PRODUCTS_H

#include "common.h"

INLINE int nonzero(const float *x) {
    uint32_t bits;
    memcpy(&bits, x, 4);
    return bits << 1 != 0;
}

/* Neighbouring rows that one call may tell live from others. */
enum { STATES = 64 };

/* Parts of a dense product's left operand. */
enum { MOST_PARTS = 36 };

/* Some columns of the left operand: row r is X[index ? index[r] : r][0..k-1], times scale[r] where given. */
typedef struct {
    const float *X;
    int64_t ld, k;
    const int32_t *index;
    const float *scale;
} Part;

/* Row r is values[index ? index[r] : r], as long as the rows that it gates. */
typedef struct {
    const float *values;
    const int32_t *index;
} Gate;

INLINE const float *gate_row(const Gate *gate, int64_t f, int64_t r) {
    return gate->values + (gate->index ? (int64_t)gate->index[r] : r) * f;
}

/* Rows of a part that are made when they are needed, sums over neighbours of rows of a table: for one graph what
 * lk_lookup_members is given. */
typedef struct {
    const int64_t *graph;
    int64_t f;
    const float *table;
    const int32_t *code;
    float *Y;
    const float *live;
} Lookup;

/* Sums of the rows of Z over the nodes of each block, for every state of one graph: out [blocks][states * m] is zero
 * before. Block b is nodes[b] .. nodes[b + 1] - 1. */
typedef struct {
    int64_t blocks, states;
    const int64_t *nodes;
    float *out;
} Pool;

typedef struct {
    int64_t rows, parts, m, mp; /* mp: m padded to a multiple of 16 */
    const Part *part;
    const float *W; /* [sum k][mp], padded by zeros */
    float *Z;
    int64_t ldz;
    const float *base;
    int64_t ldbase;
    const float *base_scale;
    int64_t relu;
    const float *scale;
    const float *gate;
    int64_t ldgate;
    const float *w; /* [m], or null: then out [rows] gets the chain of Z w, and Z is not written */
    float *out;
    const float *start; /* [*][mp], or null: row r's chain begins with start[start_index[r]] */
    const int32_t *start_index;
    const int32_t *gate_index; /* or null: row r is gated by gate[gate_index[r]] */
    const Lookup *lookup;      /* or null */
    const Pool *pool;          /* or null */
    const float *through;      /* [rows][m], or null: rows ldthrough apart, which may be Z itself */
    int64_t ldthrough;
    float factor;
    const float *panels; /* of the kernel itself, null in what it is given: W cut into panels, one behind the other */
    int64_t k;           /* its rows */
} Dense;

/* See dense_lanes.h. */
void lk_dense(const Dense *d);

/* Whether rows of X [m, c] are fetched from an outer cache; what that holds, bytes. */
enum { FAR_BYTES = 8 << 20, OUTER_CACHE = 32 << 20 };
INLINE int is_far(int64_t m, int64_t c) {
    return c > 64 && m * c * 4 > FAR_BYTES;
}

/* Y [n, c] += A X, or = A X where `first`; X [m, c]; rows of Y are ldy long. `wide`: indptr and indices are 64-bit; data
 * may be null: all values one. live [n] or null (null where `first`): rows of Y where it is 0 are left as they are. tile:
 * bytes of X that a tile of A's columns may read (see lk_tile_bytes), or 0. */
void lk_spmm(int64_t n, int64_t m, int wide, const void *indptr, const void *indices, const float *data, int64_t c,
             const float *X, float *Y, int64_t ldy, const float *live, int first, int64_t tile);

#endif
