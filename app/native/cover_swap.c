/* Iterated local search over independent sets by swaps of one node for two; app/search/cover/swap.py describes
 * the search and its arrays, app/search/cover/swap_plain.py has the same functions with the same results. */
#include "independent.h"

enum { WIDEST = 512, LOOKS = 8, TRIES = 20, ELDEST = 4, TIGHT = 2, ANY = 16, MOST = 1 << 30 };

typedef struct {
    Independent set;
    int32_t *tight, *owner;   /* [n] neighbours in the set, and the exclusive or of their names */
    int64_t *against;         /* [n] their weight, or null: all weigh one */
    int64_t *since;           /* [n] the step of the last time out of the set */
    int64_t *mark;            /* [n] the last epoch that a node was a neighbour in */
    int32_t *queue, *journal; /* [n] */
    uint8_t *queued;          /* [n] */
    int64_t unit;
    int64_t queue_size, journal_size, epoch;
} Swap;

INLINE uint32_t below(Swap *a, int64_t bound) { return random_below(&a->set.random, (uint32_t)bound); }

/* ---- the set ---------------------------------------------------------------------------------------------- */

INLINE void push(Swap *a, int32_t v) {
    if (a->queued[v]) return;
    a->queued[v] = 1;
    a->queue[a->queue_size++] = v;
}

/* Write down a change, to be undone; more than n of them cannot be. */
INLINE void record(Swap *a, int32_t entry) {
    if (a->journal_size < 0) return;
    if (a->journal_size == a->set.n) a->journal_size = -1;
    else a->journal[a->journal_size++] = entry;
}

/* A free node enters. */
INLINE void join(Swap *a, int32_t v) {
    Independent *s = &a->set;
    enlist(s, v);
    for (int64_t j = s->indptr[v], end = s->indptr[v + 1]; j < end; ++j) {
        const int32_t u = s->indices[j];
        a->owner[u] ^= v;
        if (a->tight[u]++ == 0) bind(s, u);
        if (a->against) a->against[u] += s->node_weight[v];
    }
}

/* A node of the set leaves, and is free. With `ask`, nodes that may do better now are queued. */
INLINE void leave(Swap *a, int32_t v, int ask) {
    Independent *s = &a->set;
    strike(s, v);
    for (int64_t j = s->indptr[v], end = s->indptr[v + 1]; j < end; ++j) {
        const int32_t u = s->indices[j];
        a->owner[u] ^= v;
        if (a->against) a->against[u] -= s->node_weight[v];
        if (--a->tight[u] == 0) set_free(s, u);
        else if (ask && a->tight[u] == 1) push(a, a->owner[u]);
        if (ask && a->against && a->against[u] < s->node_weight[u]) push(a, u);
    }
}

INLINE void bring(Swap *a, int32_t v) {
    join(a, v);
    record(a, v);
    push(a, v);
}

INLINE void drop(Swap *a, int32_t v) {
    leave(a, v, 1);
    record(a, ~v);
    a->since[v] = a->set.steps;
}

/* A node from outside enters, its neighbours leave. */
INLINE void force(Swap *a, int32_t v) {
    const Independent *s = &a->set;
    for (int64_t j = s->indptr[v]; a->tight[v] > 0; ++j)
        if (chosen(s, s->indices[j])) drop(a, s->indices[j]);
    bring(a, v);
}

INLINE void fill(Swap *a) {
    while (a->set.free_size) bring(a, a->set.order[a->set.size + below(a, a->set.free_size)]);
}

INLINE void undo(Swap *a) {
    while (a->journal_size > 0) {
        const int32_t entry = a->journal[--a->journal_size];
        if (entry >= 0) leave(a, entry, 0);
        else join(a, ~entry);
    }
}

/* ---- local search ----------------------------------------------------------------------------------------- */

/* A node of candidates[count] that is no neighbour of v and outweighs x together with it, or -1. */
INLINE int32_t partner(Swap *a, int32_t x, int32_t v, const int32_t *candidates, int64_t count) {
    const Independent *s = &a->set;
    ++a->epoch;
    a->set.work += degree(s, v) + count;
    for (int64_t j = s->indptr[v], end = s->indptr[v + 1]; j < end; ++j) a->mark[s->indices[j]] = a->epoch;
    const int64_t first = below(a, count);
    for (int64_t i = 0; i < count; ++i) {
        const int32_t w = candidates[first + i < count ? first + i : first + i - count];
        if (w != v && a->mark[w] != a->epoch && worth(s, v) + worth(s, w) > worth(s, x)) return w;
    }
    return -1;
}

/* Two nodes whose only neighbour in the set is x enter for it, where that gains weight and a look finds them. */
INLINE int swap(Swap *a, int32_t x) {
    const Independent *s = &a->set;
    int32_t candidates[WIDEST];
    int64_t count = 0;
    for (int64_t j = s->indptr[x], end = s->indptr[x + 1]; j < end && count < WIDEST; ++j)
        if (a->tight[s->indices[j]] == 1) candidates[count++] = s->indices[j];
    a->set.work += degree(s, x);
    if (count < 2) return 0;
    const int64_t first = below(a, count), looks = count - 1 < LOOKS ? count - 1 : LOOKS;
    for (int64_t i = 0; i < looks; ++i) {
        const int32_t v = candidates[(first + i) % count], w = partner(a, x, v, candidates, count);
        if (w < 0) continue;
        drop(a, x);
        bring(a, v);
        bring(a, w);
        return 1;
    }
    return 0;
}

/* Swaps, and with node weights nodes that outweigh their neighbours, until the queue is empty. */
INLINE void improve(Swap *a) {
    fill(a);
    while (a->queue_size) {
        const int64_t i = below(a, a->queue_size);
        a->set.work += DRAW;
        const int32_t v = a->queue[i];
        a->queue[i] = a->queue[--a->queue_size];
        a->queued[v] = 0;
        if (chosen(&a->set, v)) {
            if (swap(a, v)) fill(a);
        } else if (a->against && a->against[v] < worth(&a->set, v)) {
            force(a, v);
            fill(a);
        }
    }
}

/* Go on from the best set, made better where it can be. */
void lk_cover_swap_return(Swap *a) {
    Independent *s = &a->set;
    int64_t filled = 0;
    for (int32_t v = 0; v < s->n; ++v) {
        a->tight[v] = a->owner[v] = 0;
        if (a->against) a->against[v] = 0;
    }
    for (int32_t v = 0; v < s->n; ++v) {
        if (!s->best_set[v]) continue;
        s->order[filled++] = v;
        push(a, v);
        for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
            const int32_t u = s->indices[j];
            ++a->tight[u];
            a->owner[u] ^= v;
            if (a->against) a->against[u] += s->node_weight[v];
        }
    }
    s->size = filled;
    for (int32_t v = 0; v < s->n; ++v)
        if (!s->best_set[v] && a->tight[v] == 0) s->order[filled++] = v;
    s->free_size = filled - s->size;
    for (int32_t v = 0; v < s->n; ++v) {
        if (a->tight[v] == 0) continue;
        s->order[filled++] = v;
        if (a->against && a->against[v] < s->node_weight[v]) push(a, v);
    }
    for (int64_t i = 0; i < s->n; ++i) s->place[s->order[i]] = (int32_t)i;
    s->value = s->best;
    s->moved_size = 0;
    a->journal_size = -1;
    improve(a);
    keep_best(s);
}

/* ---- steps ------------------------------------------------------------------------------------------------ */

/* A node from outside, with at most `most` neighbours in the set if some draws find one. */
INLINE int32_t outsider(Swap *a, int64_t most) {
    Independent *s = &a->set;
    int32_t v = 0;
    for (int i = 0; i < TRIES; ++i) {
        s->work += DRAW;
        v = s->order[s->size + below(a, s->n - s->size)];
        if (a->tight[v] <= most) break;
    }
    return v;
}

/* The one of several draws that left the set first. */
INLINE int32_t eldest(Swap *a, int64_t most) {
    int32_t found = outsider(a, most);
    for (int i = 1; i < ELDEST; ++i) {
        const int32_t v = outsider(a, most);
        if (a->since[v] < a->since[found]) found = v;
    }
    return found;
}

INLINE int32_t neighbour(Swap *a, int32_t v) {
    const Independent *s = &a->set;
    return s->indices[s->indptr[v] + below(a, degree(s, v))];
}

/* A node is forced in; rarely also some that are two edges away. */
INLINE void perturb(Swap *a) {
    Independent *s = &a->set;
    int64_t more = 0;
    if (below(a, 2 * s->size) == 0)
        for (more = 1; random_bits(&s->random) & 1;) ++more;
    const int64_t most = below(a, ANY) ? TIGHT : MOST;
    const int32_t v = more ? outsider(a, most) : eldest(a, most);
    force(a, v);
    for (; more > 0; --more) {
        const int32_t u = neighbour(a, neighbour(a, v));
        if (!chosen(s, u) && a->tight[u] > 0) force(a, u);
    }
}

/* Whether to go on from a set that lost weight: once in 1 + loss (distance to the best), in mean weights. */
INLINE int passes(Swap *a, int64_t loss, int64_t distance) {
    const double odds = (double)loss / (double)a->unit * ((double)distance / (double)a->unit);
    return below(a, odds < (double)MOST ? 1 + (int64_t)odds : MOST) == 0;
}

INLINE void step(Swap *a) {
    Independent *s = &a->set;
    const int64_t before = s->value;
    if (s->size == s->n) return;
    a->journal_size = 0;
    perturb(a);
    improve(a);
    keep_best(s);
    if (s->value < before && !passes(a, before - s->value, s->best - s->value)) undo(a);
}

void lk_cover_swap(Swap *a, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        ++a->set.steps;
        step(a);
    }
}
