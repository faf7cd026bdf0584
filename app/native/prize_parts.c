/* Steiner trees with prizes: what is reached without loss from a node, and the best part of a tree. app/graphs/prizes.py has
 * the same. */
#include <stdint.h>
#include <stdlib.h>

#include "common.h"
#include "links.h"

/* The nodes in the reach of a node, in the order they are met, as far as the first of `goal`, or `most` of them (0: all).
 * mark [n]: zeros, which it has again at the end; reached [n]. Returns how many, -1 without memory. */
int64_t lk_prize_reach(
    const int64_t *indptr, const int32_t *indices, const int64_t *lengths, const int64_t *prizes, const uint8_t *goal, int64_t node,
    int64_t most, uint8_t *mark, int32_t *reached) {
    Links heap = {0};
    int64_t count = 1;
    int failed = push(&heap, -prizes[node], (int32_t)node), met = 0;
    reached[0] = (int32_t)node;
    mark[node] = 1;
    while (!failed && !met && heap.count && (!most || count < most)) {
        const Link it = pop(&heap);
        for (int64_t at = indptr[it.x]; at < indptr[it.x + 1] && !failed && !met; at++) {
            const int32_t w = indices[at];
            if (lengths[at] > -it.cost || mark[w]) continue;
            mark[w] = 1;
            reached[count++] = w;
            met = goal[w];
            if (!met) failed = push(&heap, it.cost + lengths[at] - prizes[w], w);
        }
    }
    for (int64_t i = 0; i < count; i++) mark[reached[i]] = 0;
    free(heap.item);
    return failed ? -1 : count;
}

/* The length of the edge x-y; 0: there is none. */
static int64_t length_of(const int64_t *indptr, const int32_t *indices, const int64_t *lengths, int64_t x, int64_t y) {
    int64_t low = indptr[x], high = indptr[x + 1];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (indices[middle] < y) low = middle + 1;
        else high = middle;
    }
    return low < indptr[x + 1] && indices[low] == y ? lengths[low] : 0;
}

/* The best tree within a tree, by its parents [n]: found [n], parents, all -1 before. held [n]: terminals, all of which are in
 * the tree; changed. Returns what it gains, the prizes it holds less its edges; INT64_MIN without memory. */
int64_t lk_prize_best(
    int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *lengths, const int64_t *prizes, const int64_t *parent,
    int64_t terminals, uint8_t *held, int64_t *found) {
    int32_t *left = calloc((size_t)(2 * n + 1), sizeof *left), *order = left ? left + n : NULL;
    int64_t *gain = malloc((size_t)(n + 1) * sizeof *gain), count = 0, best = INT64_MIN;
    uint8_t *kept = calloc((size_t)n + 1, 1);
    if (left && gain && kept && n > 0) {
        for (int64_t x = 0; x < n; x++) {
            gain[x] = prizes[x];
            if (parent[x] >= 0 && parent[x] != x) left[parent[x]] += 1;
        }
        for (int64_t x = 0; x < n; x++)
            if (parent[x] >= 0 && !left[x]) order[count++] = (int32_t)x;
        for (int64_t i = 0; i < count; i++) { /* each node behind those below it */
            const int32_t x = order[i];
            const int64_t above = parent[x];
            if (above == x) continue;
            const int64_t more = gain[x] - length_of(indptr, indices, lengths, x, above);
            kept[x] = more > 0 || held[x];
            if (kept[x]) gain[above] += more;
            held[above] |= held[x];
            if (!--left[above]) order[count++] = (int32_t)above;
        }
        int64_t root = count ? order[count - 1] : 0; /* the last one has no other above it */
        for (int64_t x = 0; x < n && !terminals; x++)
            if (parent[x] >= 0 && (gain[x] > gain[root] || (gain[x] == gain[root] && x < root))) root = x;
        found[root] = root;
        best = gain[root];
        for (int64_t i = count - 1; i >= 0; i--) {
            const int32_t x = order[i];
            if (x != root && kept[x] && found[parent[x]] >= 0) found[x] = parent[x];
        }
    }
    free(left), free(gain), free(kept);
    return best;
}
