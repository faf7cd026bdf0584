/* What the searches over independent sets share; app/search/cover/independent.py describes the arrays.
 *
 * `order` holds the set, then the free nodes, which have no neighbour in the set, then the rest. */
#ifndef LOCKSTEP_INDEPENDENT_H
#define LOCKSTEP_INDEPENDENT_H

#include "node_set.h"
#include "random.h"

/* Nanoseconds, roughly: of a node that changes sides, of an entry of a row, of a draw among nodes. */
enum { CHANGE = 16, ENTRY = 3, DRAW = 8 };

typedef struct {
    int64_t n;
    const int64_t *indptr, *node_weight; /* [n+1]; [n] or null: all one */
    const int32_t *indices;              /* [nnz] */
    uint8_t *best_set;                   /* [n] */
    int32_t *order, *place, *moved;      /* [n] */
    int64_t size, free_size, value, best, steps, found_at, moved_size, work;
    uint64_t random;
} Independent;

INLINE int64_t worth(const Independent *s, int32_t v) { return s->node_weight ? s->node_weight[v] : 1; }
INLINE int64_t degree(const Independent *s, int32_t v) { return s->indptr[v + 1] - s->indptr[v]; }
INLINE int chosen(const Independent *s, int32_t v) { return s->place[v] < s->size; }

/* Exchange the node in place i with v. */
INLINE void put(Independent *s, int64_t i, int32_t v) { swap_places(s->order, s->place, i, v); }

INLINE void set_free(Independent *s, int32_t u) { put(s, s->size + s->free_size++, u); }
INLINE void bind(Independent *s, int32_t u) { put(s, s->size + --s->free_size, u); }

/* v changes sides: one more change since the best set was saved. */
INLINE void note(Independent *s, int32_t v) {
    s->work += CHANGE + ENTRY * degree(s, v);
    note_move(s->moved, &s->moved_size, s->n, v);
}

/* A free node enters. What its neighbours are told is up to the search. */
INLINE void enlist(Independent *s, int32_t v) {
    put(s, s->size++, v);
    --s->free_size;
    s->value += worth(s, v);
    note(s, v);
}

/* A node of the set leaves, and is free. */
INLINE void strike(Independent *s, int32_t v) {
    put(s, --s->size, v);
    ++s->free_size;
    s->value -= worth(s, v);
    note(s, v);
}

/* Save the set if none of its weight was found before. */
INLINE void keep_best(Independent *s) {
    if (s->value <= s->best) return;
    s->best = s->value;
    s->found_at = s->steps;
    if (s->moved_size < 0)
        for (int32_t v = 0; v < s->n; ++v) s->best_set[v] = (uint8_t)chosen(s, v);
    for (int64_t i = 0; i < s->moved_size; ++i) s->best_set[s->moved[i]] = (uint8_t)chosen(s, s->moved[i]);
    s->moved_size = 0;
}

#endif
