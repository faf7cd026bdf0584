/* Cheapest places of all cities that are not yet on a tour (app/search/tour/insertion.py), kept up to date. Distances are whole
 * numbers below 2^31, and sums of a few of them are exact in double. */
#include "tour.h"

typedef struct {
    const Metric *metric;
    int64_t n, size, length;
    int32_t *order, *place; /* the tour's `size` cities; where a city stands, or -1 */
    int32_t *after;         /* [n] the city behind which an outside city is cheapest */
    int64_t *cost, *nearest; /* [n] of outside cities: that cost, and the distance to the nearest city of the tour */
    double *x, *y, *step;   /* [n] along the tour: coordinates (of points in the plane), the distance to the next city */
    double *to, *to_a, *to_b, *to_c; /* [n+1] scratch: distances */
} Insertion;

/* ---- distances from one place to many ----------------------------------------------------------------------- */

/* to[i]: the distance of (x[i stride], y[i stride]) to (px, py), as `rounded` has it. */
#define DISTANCES(NAME, LENGTH)                                                                                    \
    WIDE static void NAME(int64_t count, const double *x, const double *y, int64_t stride, double px, double py,   \
                          double *to) {                                                                            \
        for (int64_t i = 0; i < count; ++i) {                                                                      \
            const double dx = x[i * stride] - px, dy = y[i * stride] - py, square = dx * dx + dy * dy;             \
            to[i] = LENGTH;                                                                                        \
        }                                                                                                          \
    }

INLINE double up(double r) {
    const double whole = (double)(int32_t)r;
    return whole < r ? whole + 1 : whole;
}

INLINE double att(double r) {
    const double whole = (double)(int32_t)(r + 0.5);
    return whole < r ? whole + 1 : whole;
}

DISTANCES(euclidean, (double)(int32_t)(sqrt(square) + 0.5))
DISTANCES(rounded_up, up(sqrt(square)))
DISTANCES(rounded_down, (double)(int32_t)sqrt(square))
DISTANCES(pseudo_euclidean, att(sqrt(square / 10.0)))

static void in_plane(const Metric *m, int32_t city, int64_t count, const double *x, const double *y, int64_t stride,
                     double *to) {
    const double px = m->points[2 * city], py = m->points[2 * city + 1];
    if (m->kind == EUC_2D)
        euclidean(count, x, y, stride, px, py, to);
    else if (m->kind == CEIL_2D)
        rounded_up(count, x, y, stride, px, py, to);
    else if (m->kind == FLOOR_2D)
        rounded_down(count, x, y, stride, px, py, to);
    else
        pseudo_euclidean(count, x, y, stride, px, py, to);
}

WIDE static void as_double(int64_t count, const int32_t *row, double *to) {
    for (int64_t i = 0; i < count; ++i) to[i] = row[i];
}

WIDE static void at_cities(int64_t count, const int32_t *row, const int32_t *cities, double *to) {
    for (int64_t i = 0; i < count; ++i) to[i] = row[cities[i]];
}

/* [n] the distances of all cities to one. */
static void to_all(const Insertion *s, int32_t city, double *to) {
    const Metric *m = s->metric;
    if (m->table)
        as_double(s->n, m->table + city * m->n, to);
    else
        in_plane(m, city, s->n, m->points, m->points + 1, 2, to);
}

/* [size + 1] the distances of the tour's cities to one, in their order, the first at the end again. */
static void to_tour(const Insertion *s, int32_t city, double *to) {
    const Metric *m = s->metric;
    if (m->table)
        at_cities(s->size, m->table + city * m->n, s->order, to);
    else
        in_plane(m, city, s->size, s->x, s->y, 1, to);
    to[s->size] = to[0];
}

/* ---- the cheapest place of one city ------------------------------------------------------------------------- */

enum { BLOCK = 64, SIDE = 8 };

/* The least extra length of `count` places one after the other. */
WIDE static double least(const double *to, const double *step, int64_t count) {
    double lane[SIDE];
    int64_t i = 0;
    for (int64_t k = 0; k < SIDE; ++k) lane[k] = INFINITY;
    for (; i + SIDE <= count; i += SIDE)
        for (int64_t k = 0; k < SIDE; ++k) {
            const double cost = to[i + k] + to[i + k + 1] - step[i + k];
            lane[k] = cost < lane[k] ? cost : lane[k];
        }
    for (; i < count; ++i) {
        const double cost = to[i] + to[i + 1] - step[i];
        lane[0] = cost < lane[0] ? cost : lane[0];
    }
    for (int64_t k = 1; k < SIDE; ++k) lane[0] = lane[k] < lane[0] ? lane[k] : lane[0];
    return lane[0];
}

/* The first of the cheapest places of an outside city. */
static void scan(Insertion *s, int32_t city) {
    double best = INFINITY;
    int64_t at = 0;
    to_tour(s, city, s->to);
    for (int64_t i = 0; i < s->size; i += BLOCK) {
        const double cost = least(s->to + i, s->step + i, s->size - i < BLOCK ? s->size - i : BLOCK);
        if (cost >= best) continue;
        best = cost;
        at = i;
    }
    while (s->to[at] + s->to[at + 1] - s->step[at] != best) ++at;
    s->cost[city] = (int64_t)best;
    s->after[city] = s->order[at];
}

static void scan_outside(Insertion *s) {
    for (int32_t city = 0; city < s->n; ++city)
        if (s->place[city] < 0) scan(s, city);
}

/* Take the place behind `a` if it is cheaper, or as cheap and earlier. */
INLINE void offer(Insertion *s, int32_t city, int32_t a, int64_t cost) {
    if (cost > s->cost[city] || (cost == s->cost[city] && s->place[a] > s->place[s->after[city]])) return;
    s->cost[city] = cost;
    s->after[city] = a;
}

/* ---- insertions --------------------------------------------------------------------------------------------- */

void lk_insertion_start(Insertion *s) {
    for (int64_t i = 0; i < s->size; ++i) {
        const int32_t city = s->order[i];
        s->step[i] = (double)between(s->metric, city, s->order[i + 1 == s->size ? 0 : i + 1]);
        if (s->metric->table) continue;
        s->x[i] = s->metric->points[2 * city];
        s->y[i] = s->metric->points[2 * city + 1];
    }
    for (int32_t city = 0; city < s->n; ++city) {
        if (s->place[city] >= 0) continue;
        scan(s, city);
        double nearest = s->to[0];
        for (int64_t i = 1; i < s->size; ++i) nearest = s->to[i] < nearest ? s->to[i] : nearest;
        s->nearest[city] = (int64_t)nearest;
    }
}

INLINE void make_room(double *values, int64_t at, int64_t size, double value) {
    memmove(values + at + 1, values + at, (size_t)(size - at) * sizeof *values);
    values[at] = value;
}

/* Puts c at its place; what is known of the outside cities stays as it was. */
static void put(Insertion *s, int32_t c) {
    const Metric *m = s->metric;
    const int32_t a = s->after[c];
    const int64_t at = s->place[a] + 1;
    const int32_t b = s->order[at == s->size ? 0 : at];
    s->length += s->cost[c];
    memmove(s->order + at + 1, s->order + at, (size_t)(s->size - at) * sizeof *s->order);
    s->order[at] = c;
    make_room(s->step, at, s->size, (double)between(m, c, b));
    s->step[at - 1] = (double)between(m, a, c);
    if (!m->table) {
        make_room(s->x, at, s->size, m->points[2 * c]);
        make_room(s->y, at, s->size, m->points[2 * c + 1]);
    }
    ++s->size;
    for (int64_t i = at; i < s->size; ++i) s->place[s->order[i]] = (int32_t)i;
    s->cost[c] = s->nearest[c] = 0;
}

/* The cities before and behind one of the tour. */
INLINE int32_t city_before(const Insertion *s, int32_t city) {
    return s->order[s->place[city] ? s->place[city] - 1 : s->size - 1];
}

INLINE int32_t city_behind(const Insertion *s, int32_t city) {
    return s->order[s->place[city] + 1 == s->size ? 0 : s->place[city] + 1];
}

/* What outside cities know after c was put between two others. Where `stale` [n] is given, no city whose place has gone looks
 * for another one: it is marked, and its cost is then a lower bound, that of all places there are. */
static void follow(Insertion *s, int32_t c, uint8_t *stale) {
    const int32_t a = city_before(s, c), b = city_behind(s, c);
    to_all(s, a, s->to_a);
    to_all(s, b, s->to_b);
    to_all(s, c, s->to_c);
    const double a_to_c = s->to_c[a], c_to_b = s->to_c[b];
    for (int32_t city = 0; city < s->n; ++city) {
        if (s->place[city] >= 0) continue;
        const int64_t to_c = (int64_t)s->to_c[city];
        const int64_t first = (int64_t)(s->to_a[city] + s->to_c[city] - a_to_c);
        const int64_t second = (int64_t)(s->to_c[city] + s->to_b[city] - c_to_b);
        if (to_c < s->nearest[city]) s->nearest[city] = to_c;
        if (stale && (stale[city] || s->after[city] == a)) {
            const int64_t cost = first < second ? first : second;
            stale[city] = 1;
            if (cost < s->cost[city]) s->cost[city] = cost;
        } else if (s->after[city] == a) {
            scan(s, city);
        } else {
            offer(s, city, a, first);
            offer(s, city, c, second);
        }
    }
}

void lk_insertion_insert(Insertion *s, int64_t inserted) {
    put(s, (int32_t)inserted);
    follow(s, (int32_t)inserted, 0);
}

/* What an outside city u saves in distance to the tour and in insertion cost when c comes between a and b. */
INLINE int64_t saved(const Insertion *s, int32_t u, int32_t a, int32_t c, int32_t b) {
    const int64_t to_c = between(s->metric, u, c);
    const int64_t first = between(s->metric, a, u) + to_c - between(s->metric, a, c);
    const int64_t second = to_c + between(s->metric, u, b) - between(s->metric, c, b);
    const int64_t cost = first < second ? first : second;
    return (to_c < s->nearest[u] ? s->nearest[u] - to_c : 0) + (cost < s->cost[u] ? s->cost[u] - cost : 0);
}

/* What the insertion of each outside city saves itself and the outside ones among its k in near [n, k]. */
void lk_insertion_gains(const Insertion *s, const int32_t *near, int64_t k, int64_t *gain) {
    for (int32_t city = 0; city < s->n; ++city) {
        gain[city] = 0;
        if (s->place[city] >= 0) continue;
        const int32_t a = s->after[city], b = city_behind(s, a);
        gain[city] = s->nearest[city] - s->cost[city];
        for (int64_t i = 0; i < k; ++i) {
            const int32_t u = near[city * k + i];
            if (s->place[u] < 0) gain[city] += saved(s, u, a, city, b);
        }
    }
}

/* Insert cities one after the other; returns how many, fewer where one is on the tour already. */
int64_t lk_insertion_play(Insertion *s, const int64_t *cities, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        if (s->place[cities[i]] >= 0) return i;
        lk_insertion_insert(s, cities[i]);
    }
    return count;
}

/* Inserts, `count` times, the city farthest from the tour, ties to the lowest number. Only that city looks for its place. */
void lk_insertion_farthest(Insertion *s, int64_t count) {
    for (; count > 0 && s->size < s->n; --count) {
        int32_t farthest = -1;
        for (int32_t city = 0; city < s->n; ++city)
            if (s->place[city] < 0 && (farthest < 0 || s->nearest[city] > s->nearest[farthest])) farthest = city;
        scan(s, farthest);
        put(s, farthest);
        to_all(s, farthest, s->to_c);
        for (int32_t city = 0; city < s->n; ++city)
            if (s->place[city] < 0 && s->to_c[city] < (double)s->nearest[city]) s->nearest[city] = (int64_t)s->to_c[city];
    }
    scan_outside(s);
}

/* Inserts, `count` times, the city that costs least, ties to the lowest number; stale: [n] of zeros. A city whose place has
 * gone looks for another one once its lower bound is the least there is. */
void lk_insertion_cheapest(Insertion *s, int64_t count, uint8_t *stale) {
    while (count > 0 && s->size < s->n) {
        int32_t cheapest = -1;
        for (int32_t city = 0; city < s->n; ++city)
            if (s->place[city] < 0 && (cheapest < 0 || s->cost[city] < s->cost[cheapest])) cheapest = city;
        if (stale[cheapest]) {
            stale[cheapest] = 0;
            scan(s, cheapest);
            continue;
        }
        put(s, cheapest);
        follow(s, cheapest, stale);
        --count;
    }
    scan_outside(s);
}

/* ---- what a policy sees: `codes` of app/problems/tsp.py ------------------------------------------------------- */

/* steps [count]: the least value of each level but the first, ascending. */
typedef struct {
    int64_t first, on_tour, detours, levels, distances;
    const int64_t *level, *distance;
} CodeSteps;

enum { SHARE_BITS = 26, SHARE_SHIFT = 4 };

/* part / whole in fixed point, 0 where negative. */
INLINE int64_t share(int64_t part, int64_t whole) {
    return (part < 0 ? 0 : (part << SHARE_BITS) / (whole < 1 ? 1 : whole)) << SHARE_SHIFT;
}

/* How many of some steps are not above a value. */
INLINE int64_t steps_up_to(const int64_t *step, int64_t count, int64_t value) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; ++i) found += step[i] <= value;
    return found;
}

/* code [n] of all cities; gain: scratch [n]. */
void lk_insertion_codes(const Insertion *s, const int32_t *near, int64_t k, const CodeSteps *c, int64_t *gain, int32_t *code) {
    int64_t farthest = -1, most = 0;
    lk_insertion_gains(s, near, k, gain);
    for (int32_t city = 0; city < s->n; ++city) {
        most = !city || gain[city] > most ? gain[city] : most;
        farthest = s->place[city] < 0 && s->nearest[city] > farthest ? s->nearest[city] : farthest;
    }
    for (int32_t city = 0; city < s->n; ++city) {
        code[city] = (int32_t)c->on_tour;
        if (s->place[city] >= 0) continue;
        const int64_t far = s->nearest[city], cost = s->cost[city] < 0 ? 0 : s->cost[city];
        const int64_t level = steps_up_to(c->level, c->levels, share(gain[city], most));
        const int64_t distance = steps_up_to(c->distance, c->distances, share(far, farthest));
        const int64_t detour = c->detours * cost / (2 * far < 1 ? 1 : 2 * far);
        code[city] = (int32_t)(c->first + c->detours * ((c->distances + 1) * level + distance)
                               + (detour < c->detours ? detour : c->detours - 1));
    }
}

/* A tour becomes that of another state of the same cities. */
static void become(Insertion *s, const Insertion *from) {
    const size_t n = (size_t)from->n, size = (size_t)from->size;
    s->size = from->size, s->length = from->length;
    memcpy(s->order, from->order, size * sizeof *s->order);
    memcpy(s->place, from->place, n * sizeof *s->place);
    memcpy(s->after, from->after, n * sizeof *s->after);
    memcpy(s->cost, from->cost, n * sizeof *s->cost);
    memcpy(s->nearest, from->nearest, n * sizeof *s->nearest);
    memcpy(s->step, from->step, size * sizeof *s->step);
    if (s->metric->table) return;
    memcpy(s->x, from->x, size * sizeof *s->x);
    memcpy(s->y, from->y, size * sizeof *s->y);
}

/* codes [2][states][n] of states before and after, which begin as `first` does; s: the memory of a tour on its way. State i has
 * the cities chosen[begin[i]...], of which `early` lead to the state before and `late` to that after. Returns 1 where a city is on
 * its tour already. */
int64_t lk_insertion_replay(const Insertion *first, Insertion *s, int64_t states, const int64_t *chosen, const int64_t *begin,
                            const int64_t *early, const int64_t *late, const int32_t *near, int64_t k, const CodeSteps *c,
                            int64_t *gain, int32_t *code) {
    for (int64_t i = 0; i < states; ++i) {
        const int64_t *mine = chosen + begin[i], more = late[i] - early[i];
        become(s, first);
        if (lk_insertion_play(s, mine, early[i]) < early[i]) return 1;
        lk_insertion_codes(s, near, k, c, gain, code + i * s->n);
        if (lk_insertion_play(s, mine + early[i], more) < more) return 1;
        lk_insertion_codes(s, near, k, c, gain, code + (states + i) * s->n);
    }
    return 0;
}
