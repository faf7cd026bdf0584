/* What sets of a family and their elements look like: SetCover of app/problems/set_cover.py. */
#ifndef LOCKSTEP_FAMILY_H
#define LOCKSTEP_FAMILY_H

#include <stdint.h>

enum { UNIT_BITS = 8, EXACT_BITS = 5, LEVELS = 768, FIRST_DEMAND = 2, FIRST_SET = FIRST_DEMAND + LEVELS };

/* Six leading binary digits of a whole number from 0 up, ascending; 0 to 63 are themselves. */
static inline int32_t level_of(int64_t number) {
    int64_t shift = 0;
    while (number >> shift >= 2 << EXACT_BITS) ++shift;
    const int64_t level = (shift << EXACT_BITS) + (number >> shift);
    return (int32_t)(level < LEVELS ? level : LEVELS - 1);
}

/* The code of a node. mark: one on elements that are left; field: how many of these a set holds; look: how cheap a set is, of
 * elements minus the sum of these over their sets. */
static inline int32_t family_code(int32_t mark, int32_t field, int64_t look) {
    const int64_t worth = mark ? -look : field * look;
    if (worth <= 0) return 0;
    return (mark ? FIRST_DEMAND : FIRST_SET) + level_of(worth);
}

#endif
