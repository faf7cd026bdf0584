/* Trees of shortest paths to the nodes around a root, and how much of what they hold hangs on each edge.
   app/bounds/partition/spread.py does the same without kernels. */
#include <stdint.h>
#include <stdlib.h>

#include "common.h"
#include "heap.h"

/* The nodes nearest to `root`, in order of (distance, number), until they weigh more than `most` and the next one is
   farther away than the sum of distances times weights over what they weigh more than that: how many, 0 where all that
   is connected weighs no more, -1 without memory. length [nnz] > 0; order, parent (a place in `order`) and entry (of
   the row of the parent's node) [n] are told for each; distance [n] of -1 and place [n] are room, the first left
   as it was. */
int64_t lk_spread_tree(
    int64_t n, int64_t root, int64_t most, const int64_t *indptr, const int32_t *indices, const int64_t *length,
    const int64_t *size, int64_t *distance, int64_t *place, int64_t *order, int64_t *parent, int64_t *entry
) {
    Heap heap = {malloc(64 * sizeof(int64_t)), 0, 64};
    int32_t *touched = malloc((size_t)n * sizeof *touched);
    int64_t *from = malloc((size_t)n * sizeof *from), *by = malloc((size_t)n * sizeof *by);
    int64_t count = 0, met = 1, weighs = 0, sum = 0;
    int failed = !heap.key || !touched || !from || !by;
    if (!failed) {
        distance[root] = 0;
        touched[0] = (int32_t)root;
        from[root] = by[root] = place[root] = -1;
        failed = heap_push(&heap, root);
    }
    while (!failed && heap.count) {
        const int64_t key = heap_pop(&heap), far = key / n, v = key % n;
        if (place[v] >= 0) continue; /* it was nearer by another way */
        if (weighs > most && far * (weighs - most) >= sum) break;
        place[v] = count;
        order[count] = v;
        parent[count] = from[v];
        entry[count++] = by[v];
        weighs += size[v];
        sum += far * size[v];
        for (int64_t e = indptr[v]; e < indptr[v + 1] && !failed; e++) {
            const int32_t u = indices[e];
            const int64_t there = far + length[e];
            if (distance[u] >= 0 && distance[u] <= there) continue;
            if (distance[u] < 0) {
                touched[met++] = u;
                place[u] = -1;
            }
            distance[u] = there;
            from[u] = place[v];
            by[u] = e;
            failed = heap_push(&heap, there * n + u);
        }
    }
    if (touched)
        for (int64_t i = 0; i < met; i++) distance[touched[i]] = -1;
    free(heap.key);
    free(touched);
    free(from);
    free(by);
    return failed ? -1 : weighs > most ? count : 0;
}

/* load [edges] grows by `much` times what hangs on each edge of such a tree; edge [nnz], below [count] room. */
void lk_spread_load(
    int64_t count, int64_t much, const int64_t *order, const int64_t *parent, const int64_t *entry, const int64_t *size,
    const int64_t *edge, int64_t *below, int64_t *load
) {
    for (int64_t i = 0; i < count; i++) below[i] = size[order[i]];
    for (int64_t i = count - 1; i > 0; i--) {
        below[parent[i]] += below[i];
        load[edge[entry[i]]] += much * below[i];
    }
}
