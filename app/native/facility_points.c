/* Facilities among very many points: interchanges whose gains are found from coordinates when they are asked for, so
 * that memory is that of a few numbers for each point. app/search/facility/points.py describes the search and its
 * arrays, app/search/facility/points_plain.py has the same functions with the same results. */
#include "tour.h"

enum { SLACK = 4 }; /* more than rounding takes from a triangle's sides */

typedef struct {
    int64_t m, n, kind;
    const double *place, *customer;  /* [m, 2], [n, 2] */
    const int64_t *demand, *opening; /* [n], [m] */
    const uint8_t *forced;           /* [m] */
    const int32_t *beside;           /* [n] a place near a customer */
    uint8_t *best_open;              /* [m] */
    int32_t *slot, *inside;          /* [m] place in the list of open ones, or -1; [slots] that list */
    int32_t *first, *second;         /* [n] the nearest open ones */
    int32_t *head, *next, *prev;     /* [slots], [n], [n] the customers of an open one */
    int32_t *touched, *seen;         /* [n], [slots] room */
    int32_t *journal;                /* [2 room] moves since the base */
    int64_t *d1, *d2;                /* [n] how far these are */
    int64_t *reach, *loss, *extra;   /* [slots] */
    int64_t *stamp;                  /* [m] the shake that opened it */
    int64_t most, slots, counted, strongest, radius, stride, room, never; /* never: longer than any distance */
    int64_t size, value, base, best, steps, found_at, shaking, shakes, width, at, left, noted, begin;
    uint64_t random;
} Search;

#include "open_list.h"

INLINE int64_t apart(const Search *s, const double *a, const double *b) {
    const Metric m = {0, s->kind, NULL, NULL};
    return rounded(&m, a[0] - b[0], a[1] - b[1]);
}

INLINE int64_t of_places(const Search *s, int64_t f, int64_t g) { return apart(s, s->place + 2 * f, s->place + 2 * g); }

INLINE int64_t to(const Search *s, int64_t u, int64_t f) { return apart(s, s->customer + 2 * u, s->place + 2 * f); }

/* What a customer costs at a distance. */
INLINE int64_t cost(const Search *s, int64_t u, int64_t away) {
    return s->radius ? away * s->demand[u] >= s->radius : away * s->demand[u];
}

/* ---- customers and their facilities ------------------------------------------------------------------------------ */

INLINE void leave(Search *s, int32_t u) {
    const int32_t a = s->slot[s->first[u]];
    s->loss[a] -= cost(s, u, s->d2[u]) - cost(s, u, s->d1[u]);
    s->value -= cost(s, u, s->d1[u]);
    if (s->prev[u] >= 0) s->next[s->prev[u]] = s->next[u];
    else s->head[a] = s->next[u];
    if (s->next[u] >= 0) s->prev[s->next[u]] = s->prev[u];
}

INLINE void enter(Search *s, int32_t u) {
    const int32_t a = s->slot[s->first[u]];
    s->loss[a] += cost(s, u, s->d2[u]) - cost(s, u, s->d1[u]);
    s->value += cost(s, u, s->d1[u]);
    s->prev[u] = -1;
    s->next[u] = s->head[a];
    if (s->head[a] >= 0) s->prev[s->head[a]] = u;
    s->head[a] = u;
}

/* One more open facility may be among the two nearest of a customer; of equal ones the first counts as nearer. */
INLINE void offer(Search *s, int32_t u, int32_t f) {
    const int64_t away = to(s, u, f);
    if (away < s->d1[u] || (away == s->d1[u] && f < s->first[u])) {
        s->second[u] = s->first[u];
        s->d2[u] = s->d1[u];
        s->first[u] = f;
        s->d1[u] = away;
    } else if (away < s->d2[u] || (away == s->d2[u] && f < s->second[u])) {
        s->second[u] = f;
        s->d2[u] = away;
    }
}

INLINE void locate(Search *s, int32_t u) {
    s->first[u] = s->second[u] = (int32_t)s->m;
    s->d1[u] = s->d2[u] = s->never;
    for (int64_t a = 0; a < s->size; ++a) offer(s, u, s->inside[a]);
}

/* How far from a facility another one changes anything for its customers: the triangle that they make. */
INLINE void measure(Search *s, int64_t a) {
    int64_t most = 0;
    for (int32_t u = s->head[a]; u >= 0; u = s->next[u]) {
        const int64_t here = s->d1[u] + s->d2[u] + SLACK;
        most = here > most ? here : most;
    }
    s->reach[a] = most;
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

/* Close one, open one; -1: none. At least one is open afterwards. */
static void move(Search *s, int32_t out, int32_t in) {
    int64_t count = 0;
    for (int64_t a = 0; a < s->size; ++a) {
        const int near_out = out >= 0 && of_places(s, out, s->inside[a]) < s->reach[a];
        const int near_in = in >= 0 && of_places(s, in, s->inside[a]) < s->reach[a];
        if (!near_out && !near_in) continue;
        for (int32_t u = s->head[a]; u >= 0; u = s->next[u])
            if ((near_out && (s->first[u] == out || s->second[u] == out)) || (near_in && to(s, u, in) < s->d2[u]))
                s->touched[count++] = u;
    }
    for (int64_t i = 0; i < count; ++i) leave(s, s->touched[i]);
    for (int64_t a = 0; a < s->size; ++a) s->seen[a] = 0;
    for (int64_t i = 0; i < count; ++i) s->seen[s->slot[s->first[s->touched[i]]]] = 1;
    const int64_t place = relist(s, out, in), last = s->size;
    if (in < 0) {
        s->head[place] = s->head[last];
        s->reach[place] = s->reach[last];
        s->loss[place] = s->loss[last];
        s->seen[place] = s->seen[last];
    } else {
        if (out < 0) {
            s->head[place] = -1;
            s->reach[place] = s->loss[place] = 0;
        }
        s->seen[place] = 1;
    }
    for (int64_t i = 0; i < count; ++i) {
        const int32_t u = s->touched[i];
        if (out >= 0 && (s->first[u] == out || s->second[u] == out)) locate(s, u);
        else offer(s, u, in);
        enter(s, u);
        s->seen[s->slot[s->first[u]]] = 1;
    }
    for (int64_t a = 0; a < s->size; ++a)
        if (s->seen[a]) measure(s, a);
}

/* What opening a place saves, and in extra [size] how much less closing a facility costs then. */
static int64_t saved_by(Search *s, int32_t f) {
    int64_t gain = -s->opening[f];
    for (int64_t a = 0; a < s->size; ++a) {
        s->extra[a] = 0;
        if (of_places(s, f, s->inside[a]) >= s->reach[a]) continue;
        int64_t extra = 0;
        for (int32_t u = s->head[a]; u >= 0; u = s->next[u]) {
            const int64_t away = to(s, u, f);
            if (away >= s->d2[u]) continue;
            const int64_t before = cost(s, u, s->d1[u]), here = cost(s, u, away), next = cost(s, u, s->d2[u]);
            if (away < s->d1[u]) gain += before - here;
            extra += next - (away < s->d1[u] ? before : here);
        }
        s->extra[a] = extra;
    }
    return gain;
}

INLINE int64_t served(const Search *s, int64_t u) { return cost(s, u, s->d1[u]); }

INLINE int32_t place_at(const Search *s, int64_t k) { return (int32_t)((s->begin + k) % s->m); }

INLINE void look_near(Search *s, int64_t u) { s->begin = (s->beside[u] + s->m - s->width / 2) % s->m; }

INLINE void keep(Search *s) { save_open(s, s->m); }

/* ---- the search -------------------------------------------------------------------------------------------------- */

#include "facility_moves.h"

int64_t lk_points_search(Search *s, int64_t steps) { return search(s, steps); }

/* From nothing to the open facilities of the best solution, of which there is at least one. */
void lk_points_load(Search *s) {
    s->size = s->value = 0;
    for (int32_t f = 0; f < s->m; ++f) {
        s->slot[f] = -1;
        if (!s->best_open[f]) continue;
        s->head[s->size] = -1;
        s->loss[s->size] = 0;
        s->slot[f] = (int32_t)s->size;
        s->inside[s->size++] = f;
        s->value += s->opening[f];
    }
    for (int32_t u = 0; u < s->n; ++u) {
        locate(s, u);
        enter(s, u);
    }
    for (int64_t a = 0; a < s->size; ++a) measure(s, a);
}
