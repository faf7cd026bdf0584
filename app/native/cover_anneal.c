/* Annealing of independent sets; app/search/cover/anneal.py describes the search and its arrays,
 * app/search/cover/anneal_plain.py has the same functions with the same results. */
#include "independent.h"

typedef struct {
    Independent set;
    const int64_t *hot, *escape;         /* [KINDS]; [DRAWS] */
    int64_t *against;                    /* [n] weight of the neighbours in the set */
    int64_t unit, largest, first, cold;
    int64_t cycle, at;
} Search;

#include "annealing.h"

/* ---- the set ---------------------------------------------------------------------------------------------- */

INLINE void join(Search *a, int32_t v) {
    Independent *s = &a->set;
    const int64_t weight = worth(s, v);
    enlist(s, v);
    for (int64_t j = s->indptr[v], end = s->indptr[v + 1]; j < end; ++j) {
        const int32_t u = s->indices[j];
        if (a->against[u] == 0) bind(s, u);
        a->against[u] += weight;
    }
}

INLINE void leave(Search *a, int32_t v) {
    Independent *s = &a->set;
    const int64_t weight = worth(s, v);
    strike(s, v);
    for (int64_t j = s->indptr[v], end = s->indptr[v + 1]; j < end; ++j) {
        const int32_t u = s->indices[j];
        a->against[u] -= weight;
        if (a->against[u] == 0) set_free(s, u);
    }
}

/* The neighbours of v in the set leave. */
INLINE void clear(Search *a, int32_t v) {
    for (int64_t j = a->set.indptr[v]; a->against[v] > 0; ++j) {
        const int32_t u = a->set.indices[j];
        if (chosen(&a->set, u)) leave(a, u);
    }
}

static void go_back(Search *a) {
    Independent *s = &a->set;
    int64_t filled = 0;
    memset(a->against, 0, (size_t)s->n * sizeof *a->against);
    for (int32_t v = 0; v < s->n; ++v) {
        if (!s->best_set[v]) continue;
        s->order[filled++] = v;
        for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) a->against[s->indices[j]] += worth(s, v);
    }
    s->size = filled;
    for (int32_t v = 0; v < s->n; ++v)
        if (!s->best_set[v] && a->against[v] == 0) s->order[filled++] = v;
    s->free_size = filled - s->size;
    for (int32_t v = 0; v < s->n; ++v)
        if (a->against[v] > 0) s->order[filled++] = v;
    for (int64_t i = 0; i < s->n; ++i) s->place[s->order[i]] = (int32_t)i;
    s->value = s->best;
    s->moved_size = 0;
}

void lk_cover_anneal_return(Search *a) { go_back(a); }

/* ---- steps ------------------------------------------------------------------------------------------------ */

/* A free node enters; else any node outside is drawn, and enters if what it loses is let pass. */
INLINE void propose(Search *a, int64_t coldness) {
    Independent *s = &a->set;
    const uint64_t draw = random_bits(&s->random);
    const uint64_t among = (uint64_t)(s->free_size ? s->free_size : s->n - s->size);
    if (among == 0) return;
    const int32_t v = s->order[s->size + (int64_t)(((draw >> 32) * among) >> 32)];
    if (s->free_size == 0) {
        const int64_t loss = a->against[v] - worth(s, v);
        if (loss > 0) {
            if (!passes(a, loss, coldness, draw)) return;
            keep_best(s);
        }
        clear(a, v);
    }
    join(a, v);
}

INLINE void keep(Search *a) {
    a->set.work += PROPOSALS * DRAW;
    keep_best(&a->set);
}

void lk_cover_anneal(Search *a, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        ++a->set.steps;
        step(a);
    }
}
