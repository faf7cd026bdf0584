/* The open facilities as a list; app/search/facility/open_list.py has the same functions. The file that includes this one
 * has made `Search`: slot, the place of an open facility in the list or -1, inside [slots], the list, of `size` of them. */
#ifndef LOCKSTEP_OPEN_LIST_H
#define LOCKSTEP_OPEN_LIST_H

#include "common.h"

/* One closes, one opens; -1: none. What opens takes the place of what closes, or the last one; where nothing opens, the
 * last of the list does. Returns that place. */
INLINE int32_t relist(Search *s, int32_t out, int32_t in) {
    const int32_t place = out >= 0 ? s->slot[out] : (int32_t)s->size++;
    const int32_t f = in >= 0 ? in : s->inside[--s->size];
    s->inside[place] = f;
    s->slot[f] = place;
    if (out >= 0) {
        s->value -= s->opening[out];
        s->slot[out] = -1;
    }
    if (in >= 0) s->value += s->opening[in];
    return place;
}

/* The open ones are the best ones; of `count` places. */
INLINE void save_open(Search *s, int64_t count) {
    memset(s->best_open, 0, (size_t)count);
    for (int64_t a = 0; a < s->size; ++a) s->best_open[s->inside[a]] = 1;
}

#endif
