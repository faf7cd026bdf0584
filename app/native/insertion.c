/* Cheapest places of all cities that are not yet on a tour (app/search/tour/insertion.py), kept up to date. */
#include "tour.h"

typedef struct {
    const Metric *metric;
    int64_t n, size, length;
    int32_t *order, *place; /* the tour's `size` cities; where a city stands, or -1 */
    int32_t *after;         /* [n] the city behind which an outside city is cheapest */
    int64_t *cost, *nearest; /* [n] of outside cities: that cost, and the distance to the nearest city of the tour */
} Insertion;

INLINE int32_t next_city(const Insertion *s, int32_t city) {
    const int64_t i = s->place[city] + 1;
    return s->order[i == s->size ? 0 : i];
}

/* Extra length of `city` between a and b. */
INLINE int64_t extra(const Insertion *s, int32_t city, int32_t a, int32_t b) {
    return between(s->metric, a, city) + between(s->metric, city, b) - between(s->metric, a, b);
}

/* Take the place behind `a` if it is cheaper, or as cheap and earlier. */
INLINE void offer(Insertion *s, int32_t city, int32_t a, int64_t cost) {
    if (cost > s->cost[city] || (cost == s->cost[city] && s->place[a] > s->place[s->after[city]])) return;
    s->cost[city] = cost;
    s->after[city] = a;
}

static void scan(Insertion *s, int32_t city) {
    s->after[city] = s->order[0];
    s->cost[city] = extra(s, city, s->order[0], next_city(s, s->order[0]));
    for (int64_t i = 1; i < s->size; ++i) {
        const int32_t a = s->order[i];
        const int64_t cost = extra(s, city, a, s->order[i + 1 == s->size ? 0 : i + 1]);
        if (cost < s->cost[city]) {
            s->cost[city] = cost;
            s->after[city] = a;
        }
    }
}

void lk_insertion_start(Insertion *s) {
    for (int32_t city = 0; city < s->n; ++city) {
        if (s->place[city] >= 0) continue;
        scan(s, city);
        s->nearest[city] = between(s->metric, city, s->order[0]);
        for (int64_t i = 1; i < s->size; ++i) {
            const int64_t d = between(s->metric, city, s->order[i]);
            if (d < s->nearest[city]) s->nearest[city] = d;
        }
    }
}

/* One outside city after `c` was put between a and b. */
INLINE void follow(Insertion *s, int32_t city, int32_t a, int32_t c, int32_t b) {
    const int64_t to_c = between(s->metric, city, c);
    if (to_c < s->nearest[city]) s->nearest[city] = to_c;
    if (s->after[city] == a) {
        scan(s, city);
        return;
    }
    offer(s, city, a, between(s->metric, city, a) + to_c - between(s->metric, a, c));
    offer(s, city, c, to_c + between(s->metric, city, b) - between(s->metric, c, b));
}

void lk_insertion_insert(Insertion *s, int64_t inserted) {
    const int32_t c = (int32_t)inserted, a = s->after[c], b = next_city(s, a);
    const int64_t at = s->place[a] + 1;
    s->length += s->cost[c];
    memmove(s->order + at + 1, s->order + at, (size_t)(s->size - at) * sizeof *s->order);
    s->order[at] = c;
    ++s->size;
    for (int64_t i = at; i < s->size; ++i) s->place[s->order[i]] = (int32_t)i;
    s->cost[c] = s->nearest[c] = 0;
    for (int32_t city = 0; city < s->n; ++city)
        if (s->place[city] < 0) follow(s, city, a, c, b);
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
        const int32_t a = s->after[city], b = next_city(s, a);
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

void lk_insertion_farthest(Insertion *s, int64_t count) {
    for (; count > 0 && s->size < s->n; --count) {
        int64_t farthest = -1;
        for (int64_t city = 0; city < s->n; ++city)
            if (s->place[city] < 0 && (farthest < 0 || s->nearest[city] > s->nearest[farthest])) farthest = city;
        lk_insertion_insert(s, farthest);
    }
}
