/* A minimum 1-tree over all edges (app/bounds/one_tree.py), in whole numbers. */
#include "tour.h"

static const int64_t IN_TREE = INT64_MAX, FAR = INT64_MAX - 1;

typedef struct {
    const Metric *metric;
    const int64_t *pi;
    int64_t scale;
} Weights;

INLINE int64_t weight(const Weights *w, int64_t i, int64_t j) {
    return w->scale * between(w->metric, i, j) + w->pi[i] + w->pi[j];
}

/* Offer the edges from `last` to every node outside the tree; returns the lightest key. */
INLINE int64_t relax(const Weights *w, int64_t last, int64_t n, int64_t *key, int32_t *parent) {
    int64_t lightest = IN_TREE;
    for (int64_t j = 0; j < n; ++j) {
        const int64_t offered = weight(w, last, j), held = key[j];
        const int closer = held != IN_TREE && offered < held;
        const int64_t kept = closer ? offered : held;
        key[j] = kept;
        parent[j] = closer ? (int32_t)last : parent[j];
        lightest = kept < lightest ? kept : lightest;
    }
    return lightest;
}

/* The two lightest edges at the special node; returns their weight. */
static int64_t add_spokes(const Weights *w, int64_t special, int32_t *degree) {
    int64_t first = IN_TREE, second = IN_TREE, at_first = 0, at_second = 0;
    for (int64_t j = 0; j < w->metric->n; ++j) {
        if (j == special) continue;
        const int64_t offered = weight(w, special, j);
        if (offered < first) {
            second = first;
            at_second = at_first;
            first = offered;
            at_first = j;
        } else if (offered < second) {
            second = offered;
            at_second = j;
        }
    }
    degree[special] = 2;
    ++degree[at_first];
    ++degree[at_second];
    return first + second;
}

/* The weight of edge i-j is scale * distance + pi[i] + pi[j]. A 1-tree is a spanning tree of all nodes but
 * `special` (Prim 1957, dense) and the two lightest edges at `special`; ties go to the lowest node. Fills degree
 * and parent [n]: the node by which a node joined the tree, or -1; key [n] is room. Returns the weight. */
WIDE
int64_t lk_one_tree(const Metric *m, const int64_t *pi, int64_t scale, int64_t special, int32_t *degree,
                    int64_t *key, int32_t *parent) {
    const Weights w = {m, pi, scale};
    int64_t total = 0, last = special == 0 ? 1 : 0;
    for (int64_t j = 0; j < m->n; ++j) {
        key[j] = FAR;
        parent[j] = -1;
        degree[j] = 0;
    }
    key[special] = key[last] = IN_TREE;
    for (int64_t left = m->n - 2; left > 0; --left) {
        const int64_t lightest = relax(&w, last, m->n, key, parent);
        for (last = 0; key[last] != lightest;) ++last;
        total += lightest;
        ++degree[last];
        ++degree[parent[last]];
        key[last] = IN_TREE;
    }
    return total + add_spokes(&w, special, degree);
}
