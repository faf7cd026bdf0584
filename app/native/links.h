/* A heap, or a list, of what two nodes have at a cost; the smallest cost first, then x, then y. It grows. */
#ifndef LOCKSTEP_LINKS_H
#define LOCKSTEP_LINKS_H

#include <stdint.h>
#include <stdlib.h>

#include "common.h"

typedef struct {
    int64_t cost;
    int32_t x, y;
} Link;

typedef struct {
    Link *item;
    int64_t count, room;
} Links;

INLINE int before(const Link *a, const Link *b) {
    if (a->cost != b->cost) return a->cost < b->cost;
    return a->x != b->x ? a->x < b->x : a->y < b->y;
}

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
    const Link it = {cost, x, y};
    int64_t i = h->count++;
    while (i > 0 && before(&it, &h->item[(i - 1) / 2])) {
        h->item[i] = h->item[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->item[i] = it;
    return 0;
}

INLINE int push(Links *h, int64_t cost, int32_t x) {
    return push_both(h, cost, x, 0);
}

INLINE Link pop(Links *h) {
    const Link top = h->item[0], last = h->item[--h->count];
    int64_t i = 0;
    for (;;) {
        int64_t c = 2 * i + 1;
        if (c >= h->count) break;
        if (c + 1 < h->count && before(&h->item[c + 1], &h->item[c])) c += 1;
        if (!before(&h->item[c], &last)) break;
        h->item[i] = h->item[c];
        i = c;
    }
    h->item[i] = last;
    return top;
}

#endif
