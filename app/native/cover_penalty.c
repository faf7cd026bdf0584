/* Phased local search on independent sets; app/search/cover/penalty.py describes the search and its arrays,
 * app/search/cover/penalty_plain.py has the same functions with the same results.
 *
 * Rows of the adjacency matrix are bytes, so that counting conflicts is adding rows: the lanes of a register are
 * different nodes, and one pass over the nodes also finds the least cost among those that may enter. */
#include "random.h"

enum { BLOCK = 64, NONE = 0xFFFF, RANDOM = 0, PENALTY = 1, DEGREE = 2, PHASES = 3 };
static const int64_t LENGTH[PHASES] = {50, 50, 100};

typedef struct {
    int64_t n, padded;
    const int64_t *node_weight;               /* [n] or null: all one */
    const uint8_t *near;                      /* [n+1][padded] rows of zeros and ones; row n is zero */
    const uint16_t *rank;                     /* [padded] costs of the degree phase */
    uint8_t *best_set;                        /* [n] */
    uint16_t *conflicts, *penalty, *cost;     /* [padded] */
    int32_t *members, *member_at;             /* [n] the set as a list; places in it, -1 outside */
    int64_t *anchor;                          /* [n] the last iteration whose plateau began with this node */
    uint16_t *count;                          /* [padded/BLOCK] scratch */
    int64_t size, value, best, steps, found_at, phase, left, delay, cycle, last, iteration, overlap;
    int64_t free_cost, swap_cost;             /* the least cost among nodes of no conflict, of one; or NONE */
    uint64_t random;
} Penalty;

INLINE int64_t worth(const Penalty *s, int32_t v) { return s->node_weight ? s->node_weight[v] : 1; }
INLINE const uint8_t *row(const Penalty *s, int64_t v) { return s->near + v * s->padded; }

/* ---- passes over the nodes -------------------------------------------------------------------------------- */

/* Conflicts after `in` entered and `out` left (n: none), and the least costs. */
INLINE void update(Penalty *s, int64_t in, int64_t out) {
    const uint8_t *restrict plus = row(s, in), *restrict minus = row(s, out);
    const uint16_t *restrict cost = s->cost;
    uint16_t *restrict conflicts = s->conflicts;
    uint16_t free_cost = NONE, swap_cost = NONE;
    for (int64_t i = 0; i < s->padded; ++i) {
        const uint16_t c = (uint16_t)(conflicts[i] + plus[i] - minus[i]);
        /* NONE where the count of conflicts is another. */
        const uint16_t free = cost[i] | (uint16_t)-(c != 0), swap = cost[i] | (uint16_t)-(c != 1);
        conflicts[i] = c;
        free_cost = free < free_cost ? free : free_cost;
        swap_cost = swap < swap_cost ? swap : swap_cost;
    }
    s->free_cost = free_cost;
    s->swap_cost = swap_cost;
}

/* A random one of the nodes with so many conflicts and this cost; there is one. */
INLINE int32_t pick(Penalty *s, uint16_t conflicts, uint16_t cost) {
    const int64_t blocks = s->padded / BLOCK;
    uint32_t total = 0;
    for (int64_t b = 0; b < blocks; ++b) {
        const uint16_t *restrict c = s->conflicts + b * BLOCK, *restrict k = s->cost + b * BLOCK;
        uint16_t count = 0;
        for (int i = 0; i < BLOCK; ++i) count += (uint16_t)(c[i] == conflicts && k[i] == cost);
        s->count[b] = count;
        total += count;
    }
    uint32_t left = random_below(&s->random, total);
    int64_t b = 0;
    for (; left >= s->count[b]; ++b) left -= s->count[b];
    for (int32_t v = (int32_t)b * BLOCK;; ++v)
        if (s->conflicts[v] == conflicts && s->cost[v] == cost && left-- == 0) return v;
}

/* One less for every penalty; returns how many nodes are still penalised. */
INLINE int64_t relax(Penalty *s) {
    int64_t penalised = 0;
    for (int64_t i = 0; i < s->n; ++i) {
        s->penalty[i] -= s->penalty[i] > 0;
        penalised += s->penalty[i] > 0;
    }
    return penalised;
}

/* All nodes outside the set may enter again, at the costs of the phase. */
INLINE void reset_costs(Penalty *s) {
    const size_t bytes = (size_t)s->n * sizeof *s->cost;
    if (s->phase == RANDOM) memset(s->cost, 0, bytes);
    else memcpy(s->cost, s->phase == PENALTY ? s->penalty : s->rank, bytes);
    for (int64_t i = 0; i < s->size; ++i) s->cost[s->members[i]] = NONE;
}

/* ---- the set ---------------------------------------------------------------------------------------------- */

INLINE void enlist(Penalty *s, int32_t v) {
    s->member_at[v] = (int32_t)s->size;
    s->members[s->size++] = v;
    s->value += worth(s, v);
    s->cost[v] = NONE;
    s->last = v;
}

INLINE void strike(Penalty *s, int32_t v) {
    const int32_t last = s->members[--s->size], at = s->member_at[v];
    s->members[at] = last;
    s->member_at[last] = at;
    s->member_at[v] = -1;
    s->value -= worth(s, v);
    s->cost[v] = NONE;
}

INLINE void keep_best(Penalty *s) {
    if (s->value <= s->best) return;
    s->best = s->value;
    s->found_at = s->steps;
    memset(s->best_set, 0, (size_t)s->n);
    for (int64_t i = 0; i < s->size; ++i) s->best_set[s->members[i]] = 1;
}

/* ---- steps ------------------------------------------------------------------------------------------------ */

INLINE void enter(Penalty *s) {
    const int32_t v = pick(s, 0, (uint16_t)s->free_cost);
    enlist(s, v);
    update(s, v, s->n);
}

INLINE void swap(Penalty *s) {
    const int32_t v = pick(s, 1, (uint16_t)s->swap_cost);
    const uint8_t *near = row(s, v);
    int64_t i = 0;
    if (s->overlap < 0) {
        for (s->overlap = 0; s->overlap < s->size; ++s->overlap) s->anchor[s->members[s->overlap]] = s->iteration;
    }
    while (!near[s->members[i]]) ++i;
    const int32_t out = s->members[i];
    s->overlap -= s->anchor[out] == s->iteration;
    strike(s, out);
    enlist(s, v);
    s->overlap += s->anchor[v] == s->iteration;
    update(s, v, out);
}

INLINE void penalise(Penalty *s) {
    for (int64_t i = 0; i < s->size; ++i) s->penalty[s->members[i]] += s->penalty[s->members[i]] < NONE - 1;
    if (++s->cycle < s->delay) return;
    s->cycle = 0;
    if (4 * relax(s) < 3 * s->n) ++s->delay;
    else if (s->delay > 1) --s->delay;
}

/* Only the last node stays. */
INLINE void reduce(Penalty *s) {
    const int32_t v = (int32_t)s->last;
    while (s->size) strike(s, s->members[s->size - 1]);
    memset(s->conflicts, 0, (size_t)s->padded * sizeof *s->conflicts);
    enlist(s, v);
}

/* A random node enters, its neighbours leave. */
INLINE int64_t disturb(Penalty *s) {
    const int32_t v = (int32_t)random_below(&s->random, (uint32_t)s->n);
    const uint8_t *near = row(s, v);
    if (s->member_at[v] >= 0) return s->n;
    for (int64_t i = s->size - 1; i >= 0; --i) {
        const int32_t out = s->members[i];
        if (!near[out]) continue;
        strike(s, out);
        update(s, s->n, out);
    }
    enlist(s, v);
    return v;
}

/* The end of an iteration: penalties, the next phase when its turn has come, and a new set to go on from. */
INLINE void next_iteration(Penalty *s) {
    const int reducing = s->phase == PENALTY && s->delay > 1 && s->size > 0;
    int64_t in = s->last;
    if (s->phase == PENALTY) penalise(s);
    if (reducing) reduce(s);
    else in = disturb(s);
    if (--s->left == 0) {
        s->phase = (s->phase + 1) % PHASES;
        s->left = LENGTH[s->phase];
    }
    ++s->iteration;
    s->overlap = -1;
    reset_costs(s);
    update(s, in, s->n);
}

WIDE void lk_cover_penalty(Penalty *s, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        ++s->steps;
        if (s->free_cost != NONE) enter(s);
        else if (s->swap_cost != NONE && s->overlap != 0) swap(s);
        else next_iteration(s);
        keep_best(s);
    }
}
