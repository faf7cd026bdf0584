/* The search for the heaviest independent set of a dense graph on bit sets (clique.c), for kernels that make such
 * graphs themselves: dense_room once, then for each graph dense_rows, its edges and weights, dense_begin, and
 * dense_step until depth is below 0. */
#ifndef LOCKSTEP_DENSE_SET_H
#define LOCKSTEP_DENSE_SET_H

#include "common.h"

typedef struct {
    int64_t room, n, words, depth, nodes, best, limit; /* room: nodes there is memory for; best: weight of the heaviest
                                                          set; limit: stop once it is reached */
    int64_t work;        /* words of bit sets that colourings have gone through */
    int unit;
    int32_t *node;       /* [n] the caller's number of each row */
    int64_t *weight;     /* [n] */
    uint64_t *joined;    /* [n][words] rows of the graph */
    uint64_t *open;      /* [n+1][words] candidates of each level */
    int32_t **branch;    /* [n+1] rows to branch on, the last first */
    int64_t **bound;     /* [n+1] of a set within the candidates up to this row */
    int64_t *left, *listed, *sum; /* [n+1] rows not yet branched on, and at first; weight taken above */
    int32_t *chosen, *found; /* [n+1] */
    int64_t n_found;
    uint64_t *class;     /* [n][words] cliques of one colouring */
    uint64_t *rest, *tail;
} Dense;

#define ROW(array, i) ((array) + (int64_t)(i) * d->words)

INLINE void put(uint64_t *set, int64_t i) { set[i >> 6] |= UINT64_C(1) << (i & 63); }
INLINE void drop(uint64_t *set, int64_t i) { set[i >> 6] &= ~(UINT64_C(1) << (i & 63)); }

/* Memory for graphs of at most n nodes; null without. lk_dense_free gives it back. */
Dense *dense_room(int64_t n);
void lk_dense_free(Dense *d);

/* A graph of n nodes without edges, whose `node`, `weight` and `joined` are to be filled. */
void dense_rows(Dense *d, int64_t n);

/* The root of the tree. best: weight of a set that is known; limit: no set is heavier. */
void dense_begin(Dense *d, int64_t best, int64_t limit);

/* The work below the first level, as a random path through child `first` of `left[0]` tells it, weighted by the
 * branches it did not take (Knuth 1975); its mean over all paths is the work of the search if nothing better is found.
 * -1: out of memory. */
double dense_path(Dense *d, int64_t first, uint64_t *state);

/* One tree node, or one step back. Returns -1 without memory. */
int dense_step(Dense *d);

#endif
