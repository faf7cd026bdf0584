/* A binary heap of nodes by what they gain, most on top, ties to the lowest number. Gains only fall: an entry is an
 * upper bound, which is made right where it comes to the top. */
#ifndef LOCKSTEP_GAIN_HEAP_H
#define LOCKSTEP_GAIN_HEAP_H

#include <stdint.h>

#include "sift.h"

typedef struct {
    double key;
    int32_t node;
} Gain;

INLINE int ahead(Gain a, Gain b) { return a.key != b.key ? a.key > b.key : a.node < b.node; }

SIFTS(Gain, ahead, gain_rise, gain_sink)

/* The entry at `at` has fallen, or is new. */
INLINE void settle(Gain *heap, int64_t size, int64_t at) {
    if (at < size) gain_sink(heap, size, at, heap[at]);
}

#endif
