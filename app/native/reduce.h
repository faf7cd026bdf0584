/* The state of the vertex-cover reductions, shared by the rules (reduce.c) and the relaxation (half.c). */
#ifndef LOCKSTEP_REDUCE_H
#define LOCKSTEP_REDUCE_H

#include "common.h"

/* A graph whose nodes are 0..k-1, both directions of every edge, columns ascending, and what its relaxation says.
 * side [k]: 0 half, OUT or COVER. flow [arcs]: what arc row -> column of the bipartite double cover carries. */
typedef struct {
    int64_t k;
    int64_t *indptr, *weight, *flow;
    int32_t *indices;
    uint8_t *side;
} Half;

enum { UNDECIDED, OUT, COVER };

/* Fills side and flow; returns the number of decided nodes, or -1 without memory. */
int64_t half_integral(Half *h);

#endif
