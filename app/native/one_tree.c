/* A minimum 1-tree over all edges (app/bounds/one_tree.py), in whole numbers. */
#include "tour.h"

/* The weight of edge i-j is scale * distance + weights[i] + weights[j]. A 1-tree is a spanning tree of all nodes but
 * `special` (Prim 1957, dense) and the two lightest edges at `special`; ties go to the lowest node.
 * degree [n] is filled; key [n] and parent [n] are room to work in. Returns the weight. */
WIDE
int64_t lk_one_tree(const Metric *m, const int64_t *weights, int64_t scale, int64_t special, int32_t *degree,
                    int64_t *key, int32_t *parent) {
    const int64_t n = m->n, far = INT64_MAX;
    int64_t total = 0, last = special == 0 ? 1 : 0;
    for (int64_t j = 0; j < n; ++j) {
        key[j] = far - 1; /* far: in the tree */
        parent[j] = -1;
        degree[j] = 0;
    }
    key[special] = key[last] = far;
    for (int64_t left = n - 2; left > 0; --left) {
        int64_t lightest = far;
        for (int64_t j = 0; j < n; ++j) {
            const int64_t w = scale * between(m, last, j) + weights[last] + weights[j];
            const int closer = key[j] != far && w < key[j];
            key[j] = closer ? w : key[j];
            parent[j] = closer ? (int32_t)last : parent[j];
            lightest = key[j] < lightest ? key[j] : lightest;
        }
        int64_t next = 0;
        while (key[next] != lightest) ++next;
        total += lightest;
        ++degree[next];
        ++degree[parent[next]];
        key[next] = far;
        last = next;
    }
    int64_t first = far, second = far, at_first = -1, at_second = -1;
    for (int64_t j = 0; j < n; ++j) {
        if (j == special) continue;
        const int64_t w = scale * between(m, special, j) + weights[special] + weights[j];
        if (w < first) {
            second = first;
            at_second = at_first;
            first = w;
            at_first = j;
        } else if (w < second) {
            second = w;
            at_second = j;
        }
    }
    degree[special] = 2;
    ++degree[at_first];
    ++degree[at_second];
    return total + first + second;
}
