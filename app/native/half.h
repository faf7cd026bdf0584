/* The relaxation of weighted vertex cover; half.c says what it decides and how. */
#ifndef LOCKSTEP_HALF_H
#define LOCKSTEP_HALF_H

#include "common.h"

enum { UNDECIDED, OUT, COVER };

/* A graph with nodes 0..k-1, both directions of every edge, columns ascending, and what its relaxation says.
 * */
typedef struct {
    int64_t k;
    int64_t *indptr, *weight, *node; /* filled by the caller; node is for the caller alone */
    int32_t *indices;
    int64_t *flow; /* of each arc L_row -> R_column of the double cover */
    int64_t *carrier; /* of each R_v the arc of row v whose opposite carries flow, or -1; 0: weights differ */
    uint8_t *side; /* UNDECIDED, OUT or COVER */
    uint8_t *open; /* of each arc whether its opposite carries flow, so that R_row may send it back */
    int64_t *back, *sent, *got, *next, *path, *words;
    int32_t *level, *queue, *low, *component, *halves;
    int64_t phases; /* of the flow so far */
    uint8_t begun;
} Half;

Half *lk_half_new(int64_t k, int64_t arcs); /* or 0 without memory */
void lk_half_free(Half *h);
int lk_half_run(Half *h); /* one phase of the flow; 1 if more is to do, 0 when side and flow are final */

#endif
