/* A heap of 64-bit keys that grows, the smallest on top. */
#ifndef LOCKSTEP_HEAP_H
#define LOCKSTEP_HEAP_H

#include <stdint.h>
#include <stdlib.h>

#include "common.h"

typedef struct {
    int64_t *key; /* distance * states + state */
    int64_t count, room;
} Heap;

/* Returns -1 without memory. */
INLINE int heap_push(Heap *h, int64_t key) {
    if (h->count == h->room) {
        int64_t *more = realloc(h->key, (size_t)(2 * h->room) * sizeof *more);
        if (!more) return -1;
        h->key = more;
        h->room *= 2;
    }
    int64_t i = h->count++;
    while (i > 0 && h->key[(i - 1) / 2] > key) {
        h->key[i] = h->key[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->key[i] = key;
    return 0;
}

INLINE int64_t heap_pop(Heap *h) {
    const int64_t top = h->key[0], last = h->key[--h->count];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= h->count) break;
        if (child + 1 < h->count && h->key[child + 1] < h->key[child]) child += 1;
        if (h->key[child] >= last) break;
        h->key[i] = h->key[child];
        i = child;
    }
    h->key[i] = last;
    return top;
}

#endif
