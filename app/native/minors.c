/* Contractions of the node of the least bag into a neighbour: minors whose least bag is as heavy as may be.
   app/bounds/treewidth/minors.py says why, and has the same with the same results. */
#include <stdlib.h>

#include "common.h"
#include "lists.h"

#define LEAST_COMMON 0
#define LONG_WORK (1 << 23) /* entries looked at, some hundredths of a second */

typedef struct {
    int64_t n, rule, made, best, kept; /* the best minor is that after `kept` contractions */
    int64_t work;                      /* entries looked at since the last pause */
    List *near;
    Queue left;      /* by the weight of the bag */
    int64_t *weight; /* of each node the lightest that was contracted into it */
    int32_t *rank;   /* of nodes with equal bags the lowest comes first */
    int32_t *scratch;
} Minor;

void lk_minor_free(Minor *m) {
    if (!m) return;
    for (int64_t v = 0; v < m->n && m->near; v++) free(m->near[v].near);
    free(m->near), free(m->left.entry), free(m->left.place), free(m->weight), free(m->rank), free(m->scratch);
    free(m);
}

/* weight [n] or NULL: all one. rank [n], all different. NULL without memory. */
Minor *lk_minor_new(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weight,
                    const int32_t *rank, int64_t rule) {
    Minor *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    const size_t room = (size_t)n + 1;
    m->n = n, m->rule = rule;
    m->near = calloc(room, sizeof *m->near);
    m->left.entry = malloc(room * sizeof *m->left.entry);
    m->left.place = malloc(room * sizeof *m->left.place);
    m->weight = malloc(room * sizeof *m->weight);
    m->rank = malloc(room * sizeof *m->rank);
    m->scratch = malloc(2 * room * sizeof *m->scratch);
    const int able = m->near && m->left.entry && m->left.place && m->weight && m->rank && m->scratch;
    if (!able || !fill_lists(m->near, n, indptr, indices)) {
        lk_minor_free(m);
        return NULL;
    }
    for (int64_t v = 0; v < n; v++) m->weight[v] = weight ? weight[v] : 1, m->rank[v] = rank[v];
    for (int64_t v = 0; v < n; v++) {
        int64_t bag = m->weight[v];
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) bag += m->weight[indices[e]];
        take_node(&m->left, (Entry){bag, rank[v], (int32_t)v});
    }
    return m;
}

/* The neighbour that v is contracted into, -1 where it has none. */
static int32_t chosen(Minor *m, int32_t v) {
    const List *own = m->near + v;
    int32_t best = -1;
    int64_t least = 0;
    for (int64_t i = 0; i < own->size; i++) {
        const int32_t x = own->near[i];
        if (m->rule == LEAST_COMMON) m->work += own->size + m->near[x].size;
        const int64_t both = m->rule == LEAST_COMMON ? common_of(own, m->near + x) : 0;
        const int64_t fewer = best < 0 ? 0 : m->near[x].size - m->near[best].size;
        if (best < 0 || both < least || (both == least && (fewer < 0 || (!fewer && m->rank[x] < m->rank[best]))))
            best = x, least = both;
    }
    return best;
}

INLINE void reweigh(Minor *m, int32_t v, int64_t more) {
    rescore(&m->left, v, m->left.entry[m->left.place[v]].score + more);
}

/* v goes into its neighbour u. Returns 0 without memory. */
static int contract(Minor *m, int32_t v, int32_t u) {
    List *own = m->near + v, *into = m->near + u;
    for (int64_t i = 0; i < own->size; i++) {
        leave(m->near + own->near[i], v);
        reweigh(m, own->near[i], -m->weight[v]);
    }
    for (int64_t i = 0; i < own->size; i++) {
        const int32_t x = own->near[i];
        if (x == u || holds(into, x)) continue;
        if (!enter(m->near + x, u)) return 0;
        reweigh(m, x, m->weight[u]);
        reweigh(m, u, m->weight[x]);
    }
    m->work += own->size + into->size;
    if (take_in(into, own, v, u, m->scratch) < 0) return 0;
    const int64_t lost = m->weight[u] - m->weight[v];
    if (lost > 0) {
        m->weight[u] = m->weight[v];
        reweigh(m, u, -lost);
        for (int64_t i = 0; i < into->size; i++) reweigh(m, into->near[i], -lost);
    }
    return 1;
}

/* Contractions until `made` + 1 is a multiple of `looks`, or much was looked at, or all are. steps [n]: the nodes that
   went, in order; into [n]: into which node each went, n for none. told: made, best, kept. 1: there is more to do;
   0: no; -1: memory is short. */
int64_t lk_minor_run(Minor *m, int64_t looks, int32_t *steps, int32_t *into, int64_t *told) {
    int64_t end = 0;
    m->work = 0;
    for (int first = 1; m->left.count; first = 0) {
        const Entry top = m->left.entry[0];
        if (top.score > m->best) m->best = top.score, m->kept = m->made;
        if (!first && (m->made % looks == looks - 1 || m->work > LONG_WORK)) {
            end = 1;
            break;
        }
        const int32_t v = take_top(&m->left), u = chosen(m, v);
        steps[m->made++] = v;
        into[v] = u < 0 ? (int32_t)m->n : u;
        if (u >= 0 && !contract(m, v, u)) {
            end = -1;
            break;
        }
        free(m->near[v].near);
        m->near[v] = (List){NULL, 0, 0};
    }
    told[0] = m->made, told[1] = m->best, told[2] = m->kept;
    return end;
}

/* label [n]: into which of the nodes that are left after so many contractions each node went, -1 for none. */
void lk_minor_parts(int64_t n, int64_t made, const int32_t *steps, const int32_t *into, int64_t *label) {
    for (int64_t v = 0; v < n; v++) label[v] = v;
    for (int64_t i = made - 1; i >= 0; i--) { /* what a node went into was there later than the node */
        const int32_t v = steps[i];
        label[v] = into[v] >= n ? -1 : label[into[v]];
    }
}
