/* What annealing does with a set of nodes whose rest has to be of a kind: no cycles (feedback.c), or no large components
 * (dismantle.c). app/search/annealed_set.py describes the arrays. The file that includes this one has made `Search`, in
 * which label is below 0 of nodes in the set, and says `propose` and `go_back` (annealing.h). */
#ifndef LOCKSTEP_ANNEALED_SET_H
#define LOCKSTEP_ANNEALED_SET_H

#include "annealing.h"
#include "node_set.h"
#include "random.h"

INLINE int64_t worth(const Search *s, int32_t v) { return s->weight ? s->weight[v] : 1; }

/* v comes into the set, the `taken` nodes that are first of all; or leaves it. */
INLINE void into_set(Search *s, int32_t v) {
    swap_places(s->order, s->place, s->taken++, v);
    s->cost += worth(s, v);
    note_move(s->moved, &s->moved_size, s->n, v);
}

INLINE void out_of_set(Search *s, int32_t v) {
    swap_places(s->order, s->place, --s->taken, v);
    s->cost -= worth(s, v);
    note_move(s->moved, &s->moved_size, s->n, v);
}

INLINE void keep(Search *s) {
    if (s->cost >= s->best) return;
    s->best = s->cost;
    s->found_at = s->steps;
    if (s->moved_size < 0)
        for (int32_t v = 0; v < s->n; ++v) s->best_left[v] = s->label[v] >= 0;
    else
        for (int64_t i = 0; i < s->moved_size; ++i) s->best_left[s->moved[i]] = s->label[s->moved[i]] >= 0;
    s->moved_size = 0;
}

INLINE void anneal(Search *s, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        ++s->steps;
        step(s);
    }
}

/* The first node of a tree of nodes that are joined; ways to it become shorter. part [n] */
INLINE int32_t root(int32_t *part, int32_t v) {
    while (part[v] != v) v = part[v] = part[part[v]];
    return v;
}

/* The i-th of n nodes, from node `shift` on, round. */
INLINE int32_t turned(int32_t i, int32_t shift, int32_t n) { return i < n - shift ? i + shift : i + shift - n; }

#endif
