/* Binary heaps in flat arrays, on top the item that comes before all others. */
#ifndef LOCKSTEP_SIFT_H
#define LOCKSTEP_SIFT_H

#include <stdint.h>

#include "common.h"

/* Two functions of items, of which before(a, b) says whether a comes before b:
 *   rise(heap, at, item)         the item comes in at the free place `at`, the last one, or above it
 *   sink(heap, size, at, item)   it comes in at the free place `at` of `size`, or below it */
#define SIFTS(Item, before, rise, sink)                                                                                \
    INLINE void rise(Item *heap, int64_t at, Item item) {                                                              \
        for (int64_t up; at > 0 && before(item, heap[up = (at - 1) / 2]); at = up) heap[at] = heap[up];                \
        heap[at] = item;                                                                                               \
    }                                                                                                                  \
    INLINE void sink(Item *heap, int64_t size, int64_t at, Item item) {                                                \
        for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {                                           \
            if (child + 1 < size && before(heap[child + 1], heap[child])) ++child;                                     \
            if (!before(heap[child], item)) break;                                                                     \
            heap[at] = heap[child];                                                                                    \
            at = child;                                                                                                \
        }                                                                                                              \
        heap[at] = item;                                                                                               \
    }

#endif
