/* Kernels that hold sums in vector registers by name (*_lanes.h) are compiled once for each register width, LANES numbers:
 * vectors wider than the registers would live in memory. Lanes are different outputs, so the width changes no bit. */
#ifndef LOCKSTEP_LANES_H
#define LOCKSTEP_LANES_H

#include "products.h"
#include "tiled.h"

/* Weight gradients: see gram_lanes.h. */
typedef struct {
    int64_t graphs, blocks, parts, m;
    const Part *part;
    const int64_t *starts; /* [graphs][blocks + 1]: block b of graph g is rows starts[g][b] .. starts[g][b + 1] - 1 */
    const float *D;
    const float *live; /* rows where this is 0 are left out, or null */
    float *out;        /* [blocks][sum k][m] */
} Gram;

/* Entries that have rows of their own, and the weights of these: see edges.c. */
typedef struct {
    int64_t n, wide; /* rows; whether offsets and columns have 8 bytes */
    const void *indptr, *indices;
    int64_t k, each, kinds; /* rows of W; numbers of an entry; whether these are columns that are 1, or -1 for none */
    const float *E;         /* [nnz][each] */
    const int32_t *C;       /* the same of categories */
} Edges;

/* W is [k][mp], mp = f padded by zeros to a multiple of 16; b is [mp], and none is mp zeros; Q has room for a group of rows
 * of f numbers. */
typedef struct {
    int64_t f, mp;
    const float *W, *b, *none;
    float *Q;
} Message;

/* The kernels of one width; each is described where it is. */
typedef struct {
    int64_t lanes;
    void (*spmm)(int64_t n, int64_t m, int wide, const void *indptr, const void *indices, const float *data, int64_t c,
                 const float *X, float *Y, int64_t ldy, const float *live, int first, int64_t height, int often,
                 int far);
    void (*tiled)(const Tiled *A, int64_t c, const float *X, float *Y, int64_t ldy, const float *live,
                  float *room);
    void (*live)(int64_t n, const int32_t *indptr, const int32_t *indices, const float *data, int64_t ld, int64_t f,
                 const float *X, float *Y, const float *live, int first, const Gate *gate);
    void (*lookup)(int64_t n, int wide, const void *indptr, const void *indices, int64_t states, int64_t f,
                   const float *table, const int32_t *code, float *Y, const float *live, int first);
    void (*dense)(const Dense *given);
    void (*gram_block)(const Gram *g, int64_t b, float *out);
    void (*basis_rows)(int64_t rows, int64_t bases, int64_t h, const float *V, const float *a, const int32_t *node,
                       const int32_t *relation, float *W);
    void (*basis_nodes)(int64_t nodes, int64_t bases, int64_t h, const int64_t *starts, const float *a,
                        const int32_t *relation, const float *dW, float *dV);
    void (*basis_shares)(int64_t nodes, int64_t bases, int64_t h, const int64_t *starts, const float *V,
                         const float *dW, const int64_t *at, float *turned, float *sums);
    void (*neighbour_sums)(int64_t count, const int32_t *rows, const int32_t *indptr, const int32_t *indices,
                           int64_t K, const float *X, const float *factor, const int32_t *code, float *N);
    void (*edge_add)(const Edges *a, const Message *to, const float *X, float *Y, int64_t ldy);
    void (*edge_back)(const Edges *a, const Message *to, const float *H, int64_t ldh, const float *D, float *dH,
                      int64_t ldd, int64_t blocks, const int64_t *starts, float *out);
    void (*edge_rows)(const Edges *a, int64_t p, int64_t count, const Message *to, float *Q);
    void (*edge_gram)(const Edges *a, int64_t p, int64_t count, int64_t f, const float *G, float *dW);
} Lanes;

extern const Lanes lk_lanes_4; /* any processor */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HAS_WIDER_LANES
extern const Lanes lk_lanes_8, lk_lanes_16;
#endif

/* The widest kernels that this processor runs, or those that lk_use_lanes chose. */
const Lanes *lk_lanes(void);

#endif
