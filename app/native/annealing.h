/* The course of an annealing (app/search/annealing.py): its coldness rises from hot to cold in a cycle of steps, and a
 * cycle takes twice as many as the one before. The file that includes this one has made `Search`, with hot [KINDS],
 * escape [DRAWS] and the numbers cycle, at, unit, largest, first, cold, and says
 *
 *     propose(s, coldness)    a change, made if what it loses is let pass
 *     go_back(s)              go on from the best solution
 *     keep(s)                 save the solution where it is better than the best one */
#ifndef LOCKSTEP_ANNEALING_H
#define LOCKSTEP_ANNEALING_H

#include "common.h"

enum { PROPOSALS = 32, DRAWS = 4096, KINDS = 2, LONGEST = 30 };

INLINE void propose(Search *s, int64_t coldness);
static void go_back(Search *s);
INLINE void keep(Search *s);

/* Whether a draw lets a loss above 0 pass: with probability exp(-coldness loss / unit). */
INLINE int passes(const Search *s, int64_t loss, int64_t coldness, uint64_t draw) {
    return loss <= s->largest && (__int128)loss * coldness <= (__int128)s->escape[draw % DRAWS] * s->unit;
}

/* Steps of this cycle. */
INLINE int64_t length(const Search *s) { return s->first << (s->cycle < LONGEST ? s->cycle : LONGEST); }

INLINE void step(Search *s) {
    if (s->at == length(s)) {
        go_back(s);
        ++s->cycle;
        s->at = 0;
    }
    const int64_t hot = s->hot[s->cycle % KINDS];
    const double risen = (double)(s->cold - hot) * (double)s->at / (double)length(s);
    for (int i = 0; i < PROPOSALS; ++i) propose(s, hot + (int64_t)risen);
    ++s->at;
    keep(s);
}

#endif
