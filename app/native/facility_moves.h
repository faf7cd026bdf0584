/* Interchanges whose gains are found when they are asked for: how searches for facilities without a table of all pairs
 * go on (app/search/facility/tableless.py). The file that includes this one has made `Search`, and says
 *
 *     move(s, out, in)    close one, open one; -1: none. At least one is open afterwards
 *     saved_by(s, f)      what opening a place saves, and in extra [size] how much less closing a facility costs then
 *     served(s, u)        what customer u costs
 *     place_at(s, k)      the k-th place of the window, of `width`
 *     look_near(s, u)     the window is one of `width` places near customer u
 *     keep(s)             the open facilities are the best ones */
#ifndef LOCKSTEP_FACILITY_MOVES_H
#define LOCKSTEP_FACILITY_MOVES_H

#include "random.h"

enum { SPREAD = 2, MORE = 8 }; /* of a shake's width */

/* The facility whose closing gains most beside what `extra` says, and that no shake of this number opened; -1: none
 * may close. */
INLINE int32_t cheapest_out(const Search *s, int64_t number, int64_t *net) {
    int32_t found = -1;
    for (int64_t a = 0; a < s->size; ++a) {
        const int32_t f = s->inside[a];
        const int64_t here = s->opening[f] - s->loss[a] + s->extra[a];
        if (s->forced[f] || s->stamp[f] == number || (found >= 0 && here <= *net)) continue;
        found = f;
        *net = here;
    }
    return found;
}

INLINE void no_extra(Search *s) { memset(s->extra, 0, (size_t)s->size * sizeof *s->extra); }

/* The best move with a place: an interchange, an opening, where the number allows it; or a closing alone. */
static int64_t best_move(Search *s, int32_t f, int32_t *out, int32_t *in) {
    int64_t best = 0, net = 0;
    *out = *in = -1;
    if (s->slot[f] >= 0) {
        no_extra(s);
    } else {
        const int64_t gain = saved_by(s, f);
        if (s->size < s->most && gain > best) {
            best = gain;
            *in = f;
        }
        const int32_t other = cheapest_out(s, -1, &net);
        if (other >= 0 && gain + net > best) {
            best = gain + net;
            *out = other;
            *in = f;
        }
        if (s->counted) return best;
        no_extra(s);
    }
    if (s->counted || s->size < 2) return best;
    const int32_t other = cheapest_out(s, -1, &net);
    if (other >= 0 && net > best) {
        best = net;
        *out = other;
        *in = -1;
    }
    return best;
}

static void made(Search *s, int32_t out, int32_t in) {
    move(s, out, in);
    s->journal[2 * s->noted] = out;
    s->journal[2 * s->noted++ + 1] = in;
    if (s->value >= s->best) return;
    s->best = s->base = s->value;
    s->found_at = s->steps;
    s->noted = 0;
    keep(s);
}

/* The next closed place of the window at or after one of its places; -1: none. */
INLINE int32_t closed_from(const Search *s, int64_t at) {
    for (int64_t k = 0; k < s->width; ++k) {
        const int32_t f = place_at(s, (at + k) % s->width);
        if (s->slot[f] < 0) return f;
    }
    return -1;
}

/* One move of a shake, in the window. */
static void shake(Search *s) {
    const int64_t kind = s->counted ? (s->size < s->most ? 0 : 2) : (int64_t)random_below(&s->random, 3);
    int64_t net = 0;
    int32_t in = closed_from(s, random_below(&s->random, (uint32_t)s->width)), out = -1;
    if (in < 0 || (kind == 0 && s->size == s->most)) return;
    if (kind) {
        if (kind == 2) saved_by(s, in);
        else no_extra(s);
        out = cheapest_out(s, s->shakes, &net);
        if (out < 0 || (kind == 1 && s->size < 2)) return;
        if (kind == 1) in = -1;
    }
    if (in >= 0) s->stamp[in] = s->shakes;
    made(s, out, in);
}

/* From a local optimum: it is the new base, or the base comes back; then a window, and how much it is shaken. */
static void turn(Search *s) {
    if (s->value <= s->base) {
        s->base = s->value;
        s->noted = 0;
    }
    while (s->noted) {
        --s->noted;
        move(s, s->journal[2 * s->noted + 1], s->journal[2 * s->noted]);
    }
    ++s->shakes;
    int64_t u = random_below(&s->random, (uint32_t)s->n);
    if (s->radius)
        for (int64_t k = 0; k < s->n && !served(s, u); ++k) u = u + 1 < s->n ? u + 1 : 0;
    s->shaking = 1 + random_below(&s->random, (uint32_t)s->strongest);
    if (s->radius && random_bits(&s->random) & 1) s->shaking = 0;
    s->width = (SPREAD + s->shaking) * (s->m / s->size) + MORE;
    if (s->width > s->m) s->width = s->m;
    look_near(s, u);
    s->at = 0;
    s->left = s->width;
}

/* So many places that are looked at, or moves of shakes; of a radius it ends where all customers are within it.
 * Returns how many there were. */
static int64_t search(Search *s, int64_t steps) {
    int64_t i = 0;
    for (; i < steps && !(s->radius && !s->best); ++i) {
        int32_t out, in;
        ++s->steps;
        if (s->shaking) {
            --s->shaking;
            shake(s);
            continue;
        }
        if (!s->left || s->noted + s->strongest >= s->room) {
            turn(s);
            continue;
        }
        const int64_t whole = s->width == s->m, at = whole ? s->at * s->stride % s->m : s->at;
        const int32_t f = place_at(s, at);
        s->at = s->at + 1 < s->width ? s->at + 1 : 0;
        --s->left;
        if (best_move(s, f, &out, &in) <= 0) continue;
        made(s, out, in);
        s->left = s->width;
    }
    return i;
}

#endif
