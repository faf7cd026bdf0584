/* A minimum 1-tree over all edges (app/bounds/tour/one_tree.py), in whole numbers. */
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

/* The two lightest edges at the special node, of those that were offered: the first of equal ones. */
typedef struct {
    int64_t first, second, at_first, at_second;
} Spokes;

static const Spokes NO_SPOKES = {INT64_MAX, INT64_MAX, 0, 0};

INLINE void offer_spoke(Spokes *s, int64_t node, int64_t weight) {
    if (weight < s->first) *s = (Spokes){weight, s->first, node, s->at_first};
    else if (weight < s->second) {
        s->second = weight;
        s->at_second = node;
    }
}

/* Adds the two to the tree; returns their weight. */
static int64_t take_spokes(const Spokes *s, int64_t special, int32_t *degree) {
    degree[special] = 2;
    ++degree[s->at_first];
    ++degree[s->at_second];
    return s->first + s->second;
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
    Spokes spokes = NO_SPOKES;
    for (int64_t j = 0; j < m->n; ++j)
        if (j != special) offer_spoke(&spokes, j, weight(&w, special, j));
    return total + take_spokes(&spokes, special, degree);
}

/* ---- 1-trees of few edges ------------------------------------------------------------------------------------ */

/* The edges of node i are ends[start[i]..start[i+1]) with their distances: every edge at both of its ends. */
typedef struct {
    const int64_t *start;
    const int32_t *ends, *distance;
    int32_t *heap, *place; /* [n] nodes outside the tree by (key, number); where a node stands there, or -1 */
    int64_t *key;
    int64_t waiting;
} Sparse;

INLINE int before(const Sparse *s, int32_t a, int32_t b) {
    return s->key[a] < s->key[b] || (s->key[a] == s->key[b] && a < b);
}

INLINE void put(Sparse *s, int64_t at, int32_t node) {
    s->heap[at] = node;
    s->place[node] = (int32_t)at;
}

/* A node whose key became smaller, or that is new at place `at`. */
static void rise(Sparse *s, int64_t at, int32_t node) {
    while (at > 0) {
        const int64_t above = (at - 1) / 2;
        if (!before(s, node, s->heap[above])) break;
        put(s, at, s->heap[above]);
        at = above;
    }
    put(s, at, node);
}

static int32_t take_first(Sparse *s) {
    const int32_t first = s->heap[0], node = s->heap[--s->waiting];
    int64_t at = 0;
    s->place[first] = -1;
    if (!s->waiting) return first;
    for (;;) {
        int64_t below = 2 * at + 1;
        if (below >= s->waiting) break;
        if (below + 1 < s->waiting && before(s, s->heap[below + 1], s->heap[below])) ++below;
        if (!before(s, s->heap[below], node)) break;
        put(s, at, s->heap[below]);
        at = below;
    }
    put(s, at, node);
    return first;
}

/* lk_one_tree of given edges alone (Prim with a heap), which have to connect the nodes without `special`, which has
 * two at least; rows are in ascending order. room [2][n] int32. Returns the weight. */
int64_t lk_sparse_one_tree(int64_t n, const int64_t *start, const int32_t *ends, const int32_t *distance,
                           const int64_t *pi, int64_t scale, int64_t special, int32_t *degree, int64_t *key,
                           int32_t *parent, int32_t *room) {
    Sparse s = {start, ends, distance, room, room + n, key, 0};
    int64_t total = 0, last = special == 0 ? 1 : 0;
    for (int64_t j = 0; j < n; ++j) {
        key[j] = FAR;
        s.place[j] = parent[j] = -1;
        degree[j] = 0;
    }
    key[special] = key[last] = IN_TREE;
    for (int64_t left = n - 2; left > 0; --left) {
        for (int64_t e = start[last]; e < start[last + 1]; ++e) {
            const int32_t j = ends[e];
            const int64_t offered = scale * distance[e] + pi[last] + pi[j];
            if (key[j] == IN_TREE || offered >= key[j]) continue;
            key[j] = offered;
            parent[j] = (int32_t)last;
            rise(&s, s.place[j] < 0 ? s.waiting++ : s.place[j], j);
        }
        last = take_first(&s);
        total += key[last];
        ++degree[last];
        ++degree[parent[last]];
        key[last] = IN_TREE;
    }
    Spokes spokes = NO_SPOKES;
    for (int64_t e = start[special]; e < start[special + 1]; ++e)
        offer_spoke(&spokes, ends[e], scale * distance[e] + pi[special] + pi[ends[e]]);
    return total + take_spokes(&spokes, special, degree);
}
