/* What searches for sets of nodes share (app/search/set_plain.py has the same functions): the nodes as a list of which
 * one side comes first, so that a node of either can be drawn, and those that changed sides since the best set was saved. */
#ifndef LOCKSTEP_NODE_SET_H
#define LOCKSTEP_NODE_SET_H

#include "common.h"

/* Exchange the node in place i with v. order, place [n] */
INLINE void swap_places(int32_t *order, int32_t *place, int64_t i, int32_t v) {
    const int32_t other = order[i], at = place[v];
    order[i] = v;
    place[v] = (int32_t)i;
    order[at] = other;
    place[other] = at;
}

/* v changes sides: one more of moved [n], *size of them; after more than n, -1: any node may have. */
INLINE void note_move(int32_t *moved, int64_t *size, int64_t n, int32_t v) {
    if (*size < 0) return;
    if (*size == n) *size = -1;
    else moved[(*size)++] = v;
}

#endif
