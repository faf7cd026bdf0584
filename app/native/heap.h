/* A heap of 64-bit keys that grows, the smallest on top. */
#ifndef LOCKSTEP_HEAP_H
#define LOCKSTEP_HEAP_H

#include <stdint.h>
#include <stdlib.h>

#include "sift.h"

typedef struct {
    int64_t *key; /* distance * states + state */
    int64_t count, room;
} Heap;

INLINE int key_before(int64_t a, int64_t b) { return a < b; }

SIFTS(int64_t, key_before, key_rise, key_sink)

/* Returns -1 without memory. */
INLINE int heap_push(Heap *h, int64_t key) {
    if (h->count == h->room) {
        int64_t *more = realloc(h->key, (size_t)(2 * h->room) * sizeof *more);
        if (!more) return -1;
        h->key = more;
        h->room *= 2;
    }
    key_rise(h->key, h->count++, key);
    return 0;
}

INLINE int64_t heap_pop(Heap *h) {
    const int64_t top = h->key[0];
    h->count -= 1;
    key_sink(h->key, h->count, 0, h->key[h->count]);
    return top;
}

#endif
