/* Facility location: shortest paths, the interchange search, reduced costs. app/search/facility/search.py describes the
 * search and its arrays, app/search/facility/plain.py has the same functions with the same results, and
 * app/graphs/facility.py and app/bounds/facility/dual.py those of the rest. */
#include "heap.h"
#include "random.h"

/* ---- shortest paths -------------------------------------------------------------------------------------------- */

/* The lengths of shortest paths from `count` nodes to all n, `far` where there is none: Dijkstra from each. found
 * [count * n]. (the largest length of a path + 1) * n has to fit. Returns -1 without memory. */
int64_t lk_facility_paths(int64_t n, const int64_t *ptr, const int32_t *nodes, const int64_t *lengths, int64_t count,
                          const int64_t *from, int64_t far, int64_t *found) {
    Heap heap = {malloc(1024 * sizeof(int64_t)), 0, 1024};
    int failed = heap.key == NULL;
    for (int64_t i = 0; i < count && !failed; ++i) {
        int64_t *away = found + i * n;
        for (int64_t v = 0; v < n; ++v) away[v] = far;
        away[from[i]] = 0;
        failed = heap_push(&heap, from[i]);
        while (heap.count && !failed) {
            const int64_t key = heap_pop(&heap), here = key / n, v = key % n;
            if (here > away[v]) continue;
            for (int64_t j = ptr[v]; j < ptr[v + 1]; ++j) {
                const int64_t there = here + lengths[j];
                if (there >= away[nodes[j]]) continue;
                away[nodes[j]] = there;
                if (heap_push(&heap, there * n + nodes[j])) failed = 1;
            }
        }
    }
    free(heap.key);
    return failed ? -1 : 0;
}

/* ---- the search ------------------------------------------------------------------------------------------------ */

enum { LOCAL = 3, SPREAD = 2, MORE = 4 }; /* a shake is anywhere where these bits of a draw are 0; its width */

typedef struct {
    int64_t m, n;
    const int64_t *cost, *opening;   /* [m, n], [m] */
    const int32_t *near;             /* [n, m] facilities, the cheapest first */
    const int64_t *ordered;          /* [n, m] their costs */
    const uint8_t *forced;           /* [m] */
    uint8_t *best_open;              /* [m] */
    int32_t *slot, *inside;          /* [m] place in the list of open ones, or -1; [slots] that list */
    int32_t *first, *second, *touched; /* [n] the cheapest open ones; room */
    int64_t *d1, *d2;                /* [n] what these cost */
    int64_t *stamp;                  /* [m] the shake that opened it */
    int64_t *gain, *loss, *extra;    /* [m], [slots], [m, slots] */
    int64_t most, slots, far, counted, strongest;
    int64_t size, value, best, steps, found_at, shaking, shakes, around, width;
    uint64_t random;
} Search;

#include "open_list.h"

/* Add what a customer lets open and close gain to the sums, or take it out: sign -1. */
INLINE void contribute(Search *s, int64_t u, int64_t sign) {
    const int32_t a = s->slot[s->first[u]];
    const int64_t d1 = s->d1[u], d2 = s->d2[u];
    const int32_t *near = s->near + u * s->m;
    const int64_t *costs = s->ordered + u * s->m;
    s->loss[a] += sign * (d2 - d1);
    for (int64_t k = 0; k < s->m && costs[k] < d2; ++k) {
        const int32_t f = near[k];
        if (costs[k] < d1) {
            s->gain[f] += sign * (d1 - costs[k]);
            s->extra[f * s->slots + a] += sign * (d2 - d1);
        } else {
            s->extra[f * s->slots + a] += sign * (d2 - costs[k]);
        }
    }
}

/* The two cheapest open facilities of a customer. */
INLINE void locate(Search *s, int64_t u) {
    const int32_t *near = s->near + u * s->m;
    int64_t k = 0;
    s->second[u] = -1;
    s->d2[u] = s->far;
    while (s->slot[near[k]] < 0) ++k;
    s->first[u] = near[k];
    s->d1[u] = s->ordered[u * s->m + k];
    if (s->size < 2) return;
    do ++k;
    while (s->slot[near[k]] < 0);
    s->second[u] = near[k];
    s->d2[u] = s->ordered[u * s->m + k];
}

/* Close one, open one; -1: none. At least one is open afterwards. */
static void move(Search *s, int32_t out, int32_t in) {
    const int64_t *costs = in < 0 ? NULL : s->cost + in * s->n;
    int64_t count = 0;
    for (int64_t u = 0; u < s->n; ++u) {
        const int hit = out >= 0 && (s->first[u] == out || s->second[u] == out);
        if (!hit && (!costs || costs[u] >= s->d2[u])) continue;
        contribute(s, u, -1);
        s->value -= s->d1[u];
        s->touched[count++] = (int32_t)u;
    }
    const int64_t a = relist(s, out, in), last = s->size;
    if (in < 0 && a != last) {
        for (int64_t f = 0; f < s->m; ++f) {
            s->extra[f * s->slots + a] = s->extra[f * s->slots + last];
            s->extra[f * s->slots + last] = 0;
        }
        s->loss[a] = s->loss[last];
        s->loss[last] = 0;
    }
    for (int64_t i = 0; i < count; ++i) {
        const int64_t u = s->touched[i];
        locate(s, u);
        s->value += s->d1[u];
        contribute(s, u, 1);
    }
}

/* What closing a slot's facility gains: below 0 where it loses. */
INLINE int64_t saved(const Search *s, int64_t a) { return s->opening[s->inside[a]] - s->loss[a]; }

WIDE static int64_t largest(const int64_t *extra, const int64_t *net, int64_t size) {
    int64_t most = INT64_MIN;
    for (int64_t a = 0; a < size; ++a) {
        const int64_t here = extra[a] + net[a];
        most = here > most ? here : most;
    }
    return most;
}

/* The move that gains most; of equal ones first those that only close, then by what opens, then by what closes. */
static int64_t best_move(Search *s, int64_t *net, int32_t *out, int32_t *in) {
    int64_t best = 0, dearest = 0;
    *out = *in = -1;
    for (int64_t a = 0; a < s->size; ++a) {
        const int32_t f = s->inside[a];
        net[a] = s->forced[f] ? -s->far : saved(s, a);
        if (s->forced[f]) continue;
        dearest = s->opening[f] > dearest ? s->opening[f] : dearest;
        if (s->size > 1 && net[a] > best) {
            best = net[a];
            *out = f;
        }
    }
    for (int32_t f = 0; f < s->m; ++f) {
        const int64_t gain = s->gain[f] - s->opening[f];
        if (s->slot[f] >= 0 || gain + dearest <= best) continue;
        if (s->size < s->most && gain > best) {
            best = gain;
            *out = -1;
            *in = f;
        }
        const int64_t *extra = s->extra + f * s->slots;
        if (gain + largest(extra, net, s->size) <= best) continue;
        for (int64_t a = 0; a < s->size; ++a) {
            if (s->forced[s->inside[a]] || gain + extra[a] + net[a] <= best) continue;
            best = gain + extra[a] + net[a];
            *out = s->inside[a];
            *in = f;
        }
    }
    return best;
}

/* Back to the best solution: what is open there and not here takes the place of what is not open there. */
static void go_back(Search *s) {
    int32_t in = 0, out = 0;
    for (;;) {
        while (in < s->m && !(s->best_open[in] && s->slot[in] < 0)) ++in;
        while (out < s->m && !(s->slot[out] >= 0 && !s->best_open[out])) ++out;
        if (in == s->m && out == s->m) return;
        move(s, out < s->m ? out : -1, in < s->m ? in : -1);
    }
}

/* The next closed facility at or after a place in a list; -1: none. near: the list, or null: all in order. */
INLINE int32_t closed_from(const Search *s, const int32_t *near, int64_t at) {
    for (int64_t k = 0; k < s->m; ++k) {
        const int64_t j = at + k < s->m ? at + k : at + k - s->m;
        const int32_t f = near ? near[j] : (int32_t)j;
        if (s->slot[f] < 0) return f;
    }
    return -1;
}

/* Likewise an open one that may close and was not opened by this shake. */
INLINE int32_t open_from(const Search *s, const int32_t *near, int64_t at) {
    for (int64_t k = 0; k < s->m; ++k) {
        const int64_t j = at + k < s->m ? at + k : at + k - s->m;
        const int32_t f = near ? near[j] : (int32_t)j;
        if (s->slot[f] >= 0 && !s->forced[f] && s->stamp[f] != s->shakes) return f;
    }
    return -1;
}

/* The open one whose place a facility takes at the least loss, of those that `open_from` finds. */
INLINE int32_t cheapest_out(const Search *s, int32_t in) {
    const int64_t *extra = s->extra + in * s->slots;
    int32_t found = -1;
    int64_t most = 0;
    for (int64_t a = 0; a < s->size; ++a) {
        const int32_t f = s->inside[a];
        if (s->forced[f] || s->stamp[f] == s->shakes) continue;
        const int64_t here = saved(s, a) + extra[a];
        if (found >= 0 && here <= most) continue;
        found = f;
        most = here;
    }
    return found;
}

/* One move of a shake. */
static void shake(Search *s) {
    const uint64_t draw = random_bits(&s->random);
    const int32_t *near = s->around < 0 ? NULL : s->near + s->around * s->m;
    const uint32_t width = (uint32_t)(near ? s->width : s->m);
    const int64_t kind = s->counted ? (s->size < s->most ? 0 : 2) : (int64_t)random_below(&s->random, 3);
    int32_t in = -1, out = -1;
    if (kind != 1 && (s->size < s->most || kind == 2)) in = closed_from(s, near, random_below(&s->random, width));
    if (kind == 2 && in >= 0 && draw & 1) out = cheapest_out(s, in);
    else if (kind != 0) out = open_from(s, near, random_below(&s->random, width));
    if ((kind == 2 && (in < 0 || out < 0)) || (in < 0 && (out < 0 || s->size < 2))) return;
    if (in >= 0) s->stamp[in] = s->shakes;
    move(s, out, in);
}

INLINE void note(Search *s) {
    if (s->value >= s->best) return;
    s->best = s->value;
    s->found_at = s->steps;
    save_open(s, s->m);
}

/* So many moves; net [slots] is room. */
void lk_facility_search(Search *s, int64_t steps, int64_t *net) {
    for (int64_t i = 0; i < steps; ++i) {
        int32_t out, in;
        ++s->steps;
        if (s->shaking) {
            --s->shaking;
            shake(s);
            note(s);
        } else if (best_move(s, net, &out, &in) > 0) {
            move(s, out, in);
            note(s);
        } else {
            if (s->value == s->best) save_open(s, s->m);
            else go_back(s);
            ++s->shakes;
            s->shaking = 1 + random_below(&s->random, (uint32_t)s->strongest);
            s->around = random_bits(&s->random) & LOCAL ? (int64_t)random_below(&s->random, (uint32_t)s->n) : -1;
            s->width = SPREAD * s->shaking * (s->m / s->size) + MORE;
            if (s->width > s->m) s->width = s->m;
        }
    }
}

/* From nothing to the open facilities of the best solution, of which there is at least one. */
void lk_facility_load(Search *s) {
    memset(s->gain, 0, (size_t)s->m * sizeof *s->gain);
    memset(s->loss, 0, (size_t)s->slots * sizeof *s->loss);
    memset(s->extra, 0, (size_t)(s->m * s->slots) * sizeof *s->extra);
    s->size = s->value = 0;
    for (int32_t f = 0; f < s->m; ++f) {
        s->slot[f] = -1;
        if (!s->best_open[f]) continue;
        s->slot[f] = (int32_t)s->size;
        s->inside[s->size++] = f;
        s->value += s->opening[f];
    }
    for (int64_t u = 0; u < s->n; ++u) {
        locate(s, u);
        s->value += s->d1[u];
        contribute(s, u, 1);
    }
}

/* ---- reduced costs --------------------------------------------------------------------------------------------- */

/* reduced [m]: of each facility the sum over customers of min(0, one cost - v). */
void lk_facility_reduced(int64_t m, int64_t n, const int32_t *near, const int64_t *ordered, const int64_t *v,
                         int64_t one, int64_t *reduced) {
    memset(reduced, 0, (size_t)m * sizeof *reduced);
    for (int64_t u = 0; u < n; ++u)
        for (int64_t k = 0; k < m && one * ordered[u * m + k] < v[u]; ++k)
            reduced[near[u * m + k]] += one * ordered[u * m + k] - v[u];
}

/* served [n]: of each customer how many facilities of a mask [m] cost less than v. */
void lk_facility_served(int64_t m, int64_t n, const int32_t *near, const int64_t *ordered, const int64_t *v,
                        int64_t one, const uint8_t *taken, int64_t *served) {
    for (int64_t u = 0; u < n; ++u) {
        served[u] = 0;
        for (int64_t k = 0; k < m && one * ordered[u * m + k] < v[u]; ++k) served[u] += taken[near[u * m + k]];
    }
}
