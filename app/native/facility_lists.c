/* Lists of the facilities nearest to each customer, for bounds without a table of all pairs. app/bounds/facility/lists.py
 * has the same functions with the same results. */
#include "heap.h"

/* The `width` places nearest to each of n customers, by length of path from it: found, away [n, width], and how many,
 * counts [n]; limit [n]: all places nearer than that are found. number [nodes]: of a place, or -1. Returns -1 without
 * memory. */
int64_t lk_network_lists(int64_t nodes, const int64_t *ptr, const int32_t *near, const int64_t *lengths, int64_t n,
                         const int32_t *customers, const int32_t *number, int64_t width, int64_t never, int32_t *found,
                         int64_t *away, int64_t *counts, int64_t *limit) {
    Heap heap = {malloc(1024 * sizeof(int64_t)), 0, 1024};
    int64_t *here = malloc((size_t)nodes * sizeof *here), *mark = calloc((size_t)nodes + 1, sizeof *mark);
    int failed = !heap.key || !here || !mark;
    for (int64_t u = 0; u < n && !failed; ++u) {
        int64_t count = 0;
        limit[u] = never;
        mark[customers[u]] = u + 1;
        here[customers[u]] = 0;
        heap.count = 0;
        failed = heap_push(&heap, customers[u]);
        while (heap.count && !failed) {
            const int64_t key = heap_pop(&heap), far = key / nodes, v = key % nodes;
            if (far > here[v]) continue;
            if (number[v] >= 0) {
                if (count == width) {
                    limit[u] = far;
                    break;
                }
                found[u * width + count] = number[v];
                away[u * width + count++] = far;
            }
            for (int64_t j = ptr[v]; j < ptr[v + 1]; ++j) {
                const int32_t w = near[j];
                const int64_t there = far + lengths[j];
                if (mark[w] == u + 1 && here[w] <= there) continue;
                mark[w] = u + 1;
                here[w] = there;
                if (heap_push(&heap, there * nodes + w)) failed = 1;
            }
        }
        counts[u] = count;
    }
    free(heap.key);
    free(here);
    free(mark);
    return failed ? -1 : 0;
}

/* Add to reduced [m] of each facility the sum over the customers' lists of min(0, one demand away - v). */
void lk_lists_reduced(int64_t n, int64_t width, const int32_t *near, const int64_t *away, const int64_t *counts,
                      const int64_t *demand, const int64_t *v, int64_t one, int64_t *reduced) {
    for (int64_t u = 0; u < n; ++u) {
        const int64_t each = one * demand[u];
        for (int64_t k = u * width; k < u * width + counts[u] && each * away[k] < v[u]; ++k)
            reduced[near[k]] += each * away[k] - v[u];
    }
}

/* served [n]: of each customer how many facilities of a mask [m] cost less than v. */
void lk_lists_served(int64_t n, int64_t width, const int32_t *near, const int64_t *away, const int64_t *counts,
                     const int64_t *demand, const int64_t *v, int64_t one, const uint8_t *taken, int64_t *served) {
    for (int64_t u = 0; u < n; ++u) {
        const int64_t each = one * demand[u];
        served[u] = 0;
        for (int64_t k = u * width; k < u * width + counts[u] && each * away[k] < v[u]; ++k) served[u] += taken[near[k]];
    }
}
