/* Trees that a set of nodes has to break; app/bounds/dismantle/trees.py describes them and has the same without
 * kernels. */
#include "heap.h"

typedef struct {
    const int64_t *size, *length; /* [n] */
    const int32_t *nodes, *above; /* [k] of the tree */
    int64_t *below;               /* [k] */
    int64_t most;
} Tree;

/* The size below each of the first `count` nodes, no more than the right side, to `below`; returns the cost of these
 * coefficients, and the right side in *right. */
static int64_t capped(Tree *t, int64_t count, int64_t *right) {
    int64_t cost = 0;
    for (int64_t i = 0; i < count; ++i) t->below[i] = t->size[t->nodes[i]];
    for (int64_t i = count; --i > 0;) t->below[t->above[i]] += t->below[i];
    *right = t->below[0] - t->most;
    for (int64_t i = 0; i < count; ++i) {
        if (t->below[i] > *right) t->below[i] = *right;
        cost += t->below[i] * t->length[t->nodes[i]];
    }
    return cost;
}

/* A tree of shortest paths from a root by lengths [n] of nodes, each from 1 to 2^24 (direct: every node is as far as it
 * is long), of as many of the nearest nodes as make the cost of its coefficients for its right side least, of those with
 * right sides of 1, 2, 4, .. and of the one that would be best if coefficients were not capped; none of more than
 * `widest` but for the last node. nodes, above [n]: the
 * tree, each node behind the one above it, whose place there `above` is; below [n]: coefficients. dist [n] is -1 before
 * and after; parent [n] scratch. Returns how many nodes it has, 0: all that it reaches is not too large, -1: without
 * memory; the right side and the cost go to told [2]. */
int64_t lk_dismantle_tree(const int64_t *indptr, const int32_t *indices, const int64_t *size, const int64_t *length,
                          int64_t n, int64_t most, int64_t widest, int64_t direct, int32_t root, int32_t *nodes, int32_t *above,
                          int64_t *below, int64_t *dist, int32_t *parent, int64_t *told) {
    Heap heap = {malloc(256 * sizeof(int64_t)), 0, 256};
    Tree tree = {size, length, nodes, above, below, most};
    int64_t count = 0, total = 0, best = 0, best_right = 1, next = 1, right;
    int64_t ends[64], tries = 0;
    __int128 cost = 0, best_cost = 0;
    if (!heap.key) return -1;
    dist[root] = length[root];
    parent[root] = -1;
    int failed = heap_push(&heap, length[root] * n + root);
    while (!failed && heap.count) {
        const int64_t key = heap_pop(&heap), far = key / n;
        const int32_t v = (int32_t)(key % n);
        if (dist[v] != far) continue;
        if (total - most >= widest || (best && (__int128)far * best_right >= best_cost)) break;
        dist[v] = -2 - count; /* its place */
        nodes[count] = v;
        above[count++] = parent[v];
        total += size[v];
        cost += (__int128)size[v] * far;
        if (total > most && (!best || cost * best_right < best_cost * (total - most))) {
            best = count;
            best_cost = cost;
            best_right = total - most;
        }
        if (total > most && total - most >= next) {
            ends[tries++] = count;
            while (next <= total - most) next *= 2;
        }
        for (int64_t j = indptr[v]; j < indptr[v + 1] && !failed; ++j) {
            const int32_t u = indices[j];
            const int64_t farther = (direct ? 0 : far) + length[u];
            if (dist[u] < -1 || (dist[u] >= 0 && dist[u] <= farther)) continue;
            dist[u] = farther;
            parent[u] = (int32_t)(count - 1);
            failed = heap_push(&heap, farther * n + u);
        }
    }
    for (int64_t i = 0; i < count; ++i) {
        dist[nodes[i]] = -1;
        for (int64_t j = indptr[nodes[i]]; j < indptr[nodes[i] + 1]; ++j) dist[indices[j]] = -1;
    }
    dist[root] = -1;
    free(heap.key);
    if (failed) return -1;
    if (!best) return 0;
    ends[tries++] = best;
    int64_t chosen = 0;
    for (int64_t i = 0; i < tries; ++i) {
        if (ends[i] > best) continue;
        const int64_t own = capped(&tree, ends[i], &right);
        if (chosen && (__int128)own * told[0] >= (__int128)told[1] * right) continue;
        chosen = ends[i];
        told[0] = right;
        told[1] = own;
    }
    told[1] = capped(&tree, chosen, told);
    return chosen;
}
