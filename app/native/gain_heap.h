/* A binary heap of nodes by what they gain, most on top, ties to the lowest number. Gains only fall: an entry is an
 * upper bound, which is made right where it comes to the top. */
#ifndef LOCKSTEP_GAIN_HEAP_H
#define LOCKSTEP_GAIN_HEAP_H

#include <stdint.h>

#include "common.h"

typedef struct {
    double key;
    int32_t node;
} Gain;

INLINE int ahead(Gain a, Gain b) { return a.key != b.key ? a.key > b.key : a.node < b.node; }

INLINE void settle(Gain *heap, int64_t size, int64_t at) {
    if (at >= size) return;
    const Gain entry = heap[at];
    for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && ahead(heap[child + 1], heap[child])) ++child;
        if (ahead(entry, heap[child])) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = entry;
}

#endif
