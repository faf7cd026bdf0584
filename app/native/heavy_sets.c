/* Heavy independent sets, by exchanges from every node on (app/bounds/coloring/heavy_sets.py, which does the same
 * without kernels).
 *
 * A round takes in the node of the largest gain, its weight less that of its neighbours in the set, which leave and do
 * not come back for some rounds; gains may be negative. Of each course the heaviest set counts. */
#include "common.h"

enum { AWAY = 7, NONE = INT32_MIN };

typedef struct {
    int64_t n, rounds;
    const int64_t *indptr;
    const int32_t *indices, *weights; /* [n]; those of a node's neighbours and its own add up to less than 2^31 */
    uint8_t *inside, *best;           /* [n] the set, and the heaviest of a course */
    int32_t *cost, *until;            /* [n] weights of neighbours in the set; rounds before which a node does not come in,
                                         INT32_MAX: it is in the set */
} Course;

/* The largest gain of a node that may come in; NONE: there is none. */
WIDE static int32_t largest_gain(const Course *s, int32_t round) {
    const int32_t *weights = s->weights, *cost = s->cost, *until = s->until;
    int32_t best = NONE;
    for (int64_t v = 0; v < s->n; v++) {
        const int32_t gain = until[v] > round ? NONE : weights[v] - cost[v];
        best = gain > best ? gain : best;
    }
    return best;
}

/* The first node of this gain. */
INLINE int64_t node_of(const Course *s, int32_t round, int32_t gain) {
    int64_t v = 0;
    while (s->until[v] > round || s->weights[v] - s->cost[v] != gain) v++;
    return v;
}

INLINE void change(Course *s, int64_t v, int32_t by) {
    s->inside[v] ^= 1;
    for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) s->cost[s->indices[e]] += by;
}

/* Node v comes in. */
INLINE void take_in(Course *s, int64_t v) {
    s->until[v] = INT32_MAX;
    change(s, v, s->weights[v]);
}

/* The neighbours of v leave. */
INLINE void make_room(Course *s, int64_t v, int32_t round) {
    for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
        const int32_t u = s->indices[e];
        if (!s->inside[u]) continue;
        change(s, u, -s->weights[u]);
        s->until[u] = round + AWAY;
    }
}

/* The heaviest set of the course that begins at node `first`; returns its weight. */
static int64_t run(Course *s, int64_t first) {
    memset(s->inside, 0, (size_t)s->n);
    memset(s->cost, 0, (size_t)s->n * sizeof *s->cost);
    memset(s->until, 0, (size_t)s->n * sizeof *s->until);
    int64_t total = s->weights[first], most = -1;
    take_in(s, first);
    for (int32_t round = 0;; round++) {
        if (total > most) {
            most = total;
            memcpy(s->best, s->inside, (size_t)s->n);
        }
        const int32_t gain = round < s->rounds ? largest_gain(s, round) : NONE;
        if (gain == NONE) return most;
        const int64_t v = node_of(s, round, gain);
        make_room(s, v, round);
        take_in(s, v);
        total += gain;
    }
}

/* Of each course, one from every node: the heaviest set in `sets` [n, n], and its weight in `totals` [n]. */
void lk_heavy_sets(Course *s, uint8_t *sets, int64_t *totals) {
    for (int64_t v = 0; v < s->n; v++) {
        s->best = sets + v * s->n;
        totals[v] = run(s, v);
    }
}
