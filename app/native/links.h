/* A heap, or a list, of what two nodes have at a cost; the smallest cost first, then x, then y. It grows. */
#ifndef LOCKSTEP_LINKS_H
#define LOCKSTEP_LINKS_H

#include <stdint.h>
#include <stdlib.h>

#include "sift.h"

typedef struct {
    int64_t cost;
    int32_t x, y;
} Link;

typedef struct {
    Link *item;
    int64_t count, room;
} Links;

INLINE int before(Link a, Link b) {
    if (a.cost != b.cost) return a.cost < b.cost;
    return a.x != b.x ? a.x < b.x : a.y < b.y;
}

SIFTS(Link, before, link_rise, link_sink)

INLINE int grown(Links *l) {
    if (l->count < l->room) return 0;
    const int64_t room = l->room ? 2 * l->room : 256;
    Link *more = realloc(l->item, (size_t)room * sizeof *more);
    if (!more) return -1;
    l->item = more;
    l->room = room;
    return 0;
}

INLINE int push_both(Links *h, int64_t cost, int32_t x, int32_t y) {
    if (grown(h)) return -1;
    link_rise(h->item, h->count++, (Link){cost, x, y});
    return 0;
}

INLINE int push(Links *h, int64_t cost, int32_t x) {
    return push_both(h, cost, x, 0);
}

INLINE Link pop(Links *h) {
    const Link top = h->item[0];
    h->count -= 1;
    link_sink(h->item, h->count, 0, h->item[h->count]);
    return top;
}

#endif
