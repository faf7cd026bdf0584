/* Elimination orders by a front that moves over the graph (King 1970). app/search/treewidth/sweeps.py has the same without
   kernels, with the same results. */
#include <stdlib.h>

#include "common.h"
#include "heap.h"

#define GONE (-1)
#define WALKS 3

/* The last node of walks by breadth, each from the end of the one before: of the last level that of the least degree,
   then of the lowest number. seen [n]: the last walk to each, walk: how many there were; queue [n]. */
static int32_t end_of(const int64_t *indptr, const int32_t *indices, int32_t root, int64_t *seen, int64_t *walk,
                      int32_t *queue) {
    for (int32_t k = 0; k < WALKS; k++) {
        const int64_t own = ++*walk;
        int64_t first = 0, last = 1, all = 1;
        queue[0] = root;
        seen[root] = own;
        while (first < last) {
            root = queue[first];
            for (; first < last; first++) {
                const int32_t v = queue[first];
                const int64_t more = (indptr[v + 1] - indptr[v]) - (indptr[root + 1] - indptr[root]);
                if (more < 0 || (more == 0 && v < root)) root = v;
                for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) {
                    const int32_t u = indices[e];
                    if (seen[u] != own) seen[u] = own, queue[all++] = u;
                }
            }
            last = all;
        }
    }
    return root;
}

/* Nodes [found] enter the front; returns -1 without memory. came [n]: nodes as they entered; entered [n]: their places
   there, -1 before; outside [n]: neighbours that have not entered, GONE or less of nodes that are eliminated. */
static int enter(const int64_t *indptr, const int32_t *indices, const int32_t *found, int64_t size, int64_t *outside,
                 int32_t *entered, int32_t *came, int64_t *count, Heap *heap) {
    for (int64_t i = 0; i < size; i++) {
        entered[found[i]] = (int32_t)*count;
        came[(*count)++] = found[i];
    }
    for (int64_t i = 0; i < size; i++)
        for (int64_t e = indptr[found[i]]; e < indptr[found[i] + 1]; e++) outside[indices[e]] -= 1;
    for (int64_t i = 0; i < size; i++) {
        const int32_t v = found[i];
        if (heap_push(heap, outside[v] << 32 | entered[v]) < 0) return -1;
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) {
            const int32_t u = indices[e];
            if (entered[u] >= 0 && outside[u] > GONE && heap_push(heap, outside[u] << 32 | entered[u]) < 0) return -1;
        }
    }
    return 0;
}

/* An order [n]. Returns -1 without memory. */
int64_t lk_swept(int64_t n, const int64_t *indptr, const int32_t *indices, int32_t *order) {
    int32_t *room = malloc((size_t)(3 * n + 1) * sizeof *room);
    int64_t *wide = malloc((size_t)(2 * n + 1) * sizeof *wide);
    Heap heap = {malloc(1024 * sizeof *heap.key), 0, 1024};
    int64_t made = 0, count = 0, walk = 0, bad = !room || !wide || !heap.key;
    int32_t *entered = room, *came = room + n, *found = room + 2 * n;
    int64_t *outside = wide, *seen = wide + n;
    for (int64_t v = 0; v < n && !bad; v++) {
        entered[v] = -1;
        outside[v] = indptr[v + 1] - indptr[v];
        seen[v] = 0;
    }
    for (int64_t first = 0; first < n && !bad; first++) {
        if (entered[first] >= 0) continue;
        int64_t size = 1;
        found[0] = end_of(indptr, indices, (int32_t)first, seen, &walk, found);
        while (!bad) {
            bad |= enter(indptr, indices, found, size, outside, entered, came, &count, &heap) < 0;
            int32_t v = -1;
            while (!bad && heap.count && v < 0) {
                const int64_t key = heap_pop(&heap);
                const int32_t u = came[key & INT32_MAX];
                if (outside[u] == key >> 32) v = u;
            }
            if (v < 0) break;
            outside[v] = GONE;
            order[made++] = v;
            size = 0;
            for (int64_t e = indptr[v]; e < indptr[v + 1]; e++)
                if (entered[indices[e]] < 0) found[size++] = indices[e];
        }
    }
    free(room), free(wide), free(heap.key);
    return bad ? -1 : made;
}
