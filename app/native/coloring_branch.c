/* Is there a colouring with at most `most` colours? Branch and bound (app/bounds/coloring/branch.py).
 *
 * The next node is one that has few colours left, as in DSATUR (Brelaz 1979), and many open neighbours, and that has
 * often been where the search got stuck: the most open neighbours and failures for each free colour, but nodes with one
 * free colour come first. It gets each free colour in use, then one new colour, as colours have no names. A node that
 * has more colours than neighbours yet to be coloured is put off: it finds a colour whenever all others have theirs,
 * and its neighbours then have one such neighbour less.
 *
 * The tree is a stack of levels in arrays of the caller, so that a search can stop after any amount of work. */
#include "common.h"

#define OPEN (-1)
#define PUT_OFF (-2)

typedef struct {
    int64_t n, most, words; /* words: of 64 colours */
    int64_t depth, used, fresh, n_trail, branches, work; /* used: colours 0..used-1 occur; fresh: a level begins;
                                                            work: nodes and entries gone through */
    const int64_t *indptr;
    const int32_t *indices;
    int32_t *colour; /* [n] or OPEN, PUT_OFF */
    int32_t *seen;   /* [n] colours of the neighbours: how many, */
    uint64_t *taken; /* [n][words] which, */
    int32_t *count;  /* [n][most] and on how many neighbours */
    int32_t *hard;   /* [n] neighbours that are open */
    int64_t *failed; /* [n] how often the node had no colour left, or took the last one */
    int32_t *trail;  /* [n] nodes as they were coloured and put off */
    int32_t *node, *tried, *mark, *above; /* [n+1] of each level: the node, its last colour, how long the trail and how
                                             many the colours were before it */
} Colouring;

INLINE int eased(const Colouring *s, int64_t v) {
    return s->colour[v] == OPEN && s->seen[v] + s->hard[v] < s->most;
}

/* Put off the neighbours of v that now have colours enough. */
static void ease(Colouring *s, int64_t v) {
    for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j)
        if (eased(s, s->indices[j])) {
            s->colour[s->indices[j]] = PUT_OFF;
            s->trail[s->n_trail++] = s->indices[j];
        }
    s->work += s->indptr[v + 1] - s->indptr[v];
}

/* What follows from the nodes that were put off, from place `at` of the trail on. */
static void follow(Colouring *s, int64_t at) {
    for (; at < s->n_trail; ++at) {
        const int64_t v = s->trail[at];
        for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) s->hard[s->indices[j]] -= 1;
        ease(s, v);
    }
}

/* Node v gets colour c. Returns 0 where an open node is left without a colour. */
static int give(Colouring *s, int64_t v, int64_t c) {
    int stuck = 0;
    s->colour[v] = (int32_t)c;
    s->trail[s->n_trail++] = (int32_t)v;
    for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
        const int64_t u = s->indices[j];
        s->hard[u] -= 1;
        if (s->count[u * s->most + c]++) continue;
        s->taken[u * s->words + (c >> 6)] |= UINT64_C(1) << (c & 63);
        s->seen[u] += 1;
        if (s->colour[u] != OPEN || s->seen[u] < s->most) continue;
        s->failed[u] += 1;
        s->failed[v] += 1;
        stuck = 1;
    }
    s->work += s->indptr[v + 1] - s->indptr[v];
    if (stuck) return 0;
    const int64_t at = s->n_trail;
    ease(s, v);
    follow(s, at);
    return 1;
}

/* Make the trail as short as it was. */
static void take_back(Colouring *s, int64_t mark) {
    while (s->n_trail > mark) {
        const int64_t v = s->trail[--s->n_trail], c = s->colour[v];
        s->colour[v] = OPEN;
        for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
            const int64_t u = s->indices[j];
            s->hard[u] += 1;
            if (c < 0 || --s->count[u * s->most + c]) continue;
            s->taken[u * s->words + (c >> 6)] &= ~(UINT64_C(1) << (c & 63));
            s->seen[u] -= 1;
        }
        s->work += s->indptr[v + 1] - s->indptr[v];
    }
}

/* The next node, of equal ones the first; -1 where none is open. */
static int64_t choose(Colouring *s) {
    int64_t chosen = -1, above = 0, below = 1; /* its open neighbours and failures, its free colours */
    s->work += s->n;
    for (int64_t v = 0; v < s->n; ++v) {
        if (s->colour[v] != OPEN) continue;
        const int64_t key = s->failed[v] + s->hard[v], free = s->most - s->seen[v];
        if (free == 1) return v;
        if (chosen >= 0 && key * below <= above * free) continue;
        chosen = v;
        above = key;
        below = free;
    }
    return chosen;
}

/* The next free colour of v after c, in use or the first that is not; -1: there is none. */
static int64_t next_colour(const Colouring *s, int64_t v, int64_t c) {
    const int64_t end = s->used < s->most ? s->used + 1 : s->most;
    for (c += 1; c < end; ++c)
        if (!(s->taken[v * s->words + (c >> 6)] >> (c & 63) & 1)) return c;
    return -1;
}

/* The root: nothing but a clique [k] coloured. `hard` holds degrees, `colour` OPEN, other arrays and numbers zeros.
 * Returns 0 where there is no colouring. */
int64_t lk_colouring_begin(Colouring *s, const int32_t *clique, int64_t k) {
    for (int64_t i = 0; i < k; ++i) {
        if (s->colour[clique[i]] != OPEN) continue; /* put off: of colours it has enough */
        if (s->used >= s->most || !give(s, clique[i], s->used)) return 0;
        s->used += 1;
    }
    const int64_t at = s->n_trail;
    for (int64_t v = 0; v < s->n; ++v)
        if (eased(s, v)) {
            s->colour[v] = PUT_OFF;
            s->trail[s->n_trail++] = (int32_t)v;
        }
    follow(s, at);
    s->fresh = 1;
    return 1;
}

/* Work until `work` has reached `until`. Returns 0: there is more to do, 1: there is a colouring, nodes that were put
 * off aside, 2: there is none. */
int64_t lk_colouring_run(Colouring *s, int64_t until) {
    while (s->work < until) {
        const int64_t level = s->depth;
        if (s->fresh) {
            const int64_t v = choose(s);
            if (v < 0) return 1;
            s->node[level] = (int32_t)v;
            s->tried[level] = -1;
            s->mark[level] = (int32_t)s->n_trail;
            s->above[level] = (int32_t)s->used;
            s->fresh = 0;
        } else {
            take_back(s, s->mark[level]);
            s->used = s->above[level];
        }
        const int64_t c = next_colour(s, s->node[level], s->tried[level]);
        if (c < 0) {
            if (level == 0) return 2;
            s->depth -= 1;
            continue;
        }
        s->tried[level] = (int32_t)c;
        s->branches += 1;
        if (c == s->used) s->used += 1;
        if (give(s, s->node[level], c)) {
            s->depth += 1;
            s->fresh = 1;
        }
    }
    return 0;
}
