/* Edge assembly crossover of two tours (app/native/tour_assembly.py): a tour takes over from another, cycle by cycle,
 * the edges in which they differ. app/search/tour/assembly_plain.py does the same without a compiler.
 *
 * Source: Nagata and Kobayashi 2013 (AB-cycles, single strategy, subtours joined by the neighbours of the smallest).
 *
 * Edges that one of the tours A and B has and the other has not fall into closed walks that take one of A's and one of
 * B's by turns: AB-cycles. A child is A with one cycle's edges exchanged; where that leaves several subtours, the
 * smallest is joined to another by the cheapest exchange of two edges, until one is left. */
#include "random.h"
#include "tour.h"
#include <stdlib.h>

typedef struct {
    int32_t out[2], in[2]; /* edges out[0]-in[0] and out[1]-in[1] gave way to out[0]-out[1] and in[0]-in[1] */
} Join;

typedef struct {
    const Metric *metric;
    int64_t n, k;                  /* see app/native/tour.py */
    const int32_t *near;           /* [n][k] nearest cities, nearest first */
    int32_t *order, *place, *link; /* [n] A, [n] where each city stands in it, [n][2] its neighbours: before, after */
    int32_t *other;                /* [n][2] the neighbours in B */
    int32_t *loose, *left;         /* [n][2][2] and [n][2] edges of A and of B that no cycle has yet, and how many */
    int32_t *trail, *at;           /* [2n+1] a walk, and [2][n] where in it a city was left by an edge of A, of B; -1 */
    int32_t *cycles, *first;       /* [2n] the cities of all cycles, edges of A at even ones; [n+1] where each begins */
    int32_t *cuts, *label;         /* [n] last places of the segments of A that a child keeps; their subtours */
    int32_t *root, *size, *entry;  /* [n] subtours: what each was joined to, its number of cities, one of them */
    int32_t *drawn;                /* [n] cycles: drawn ones first, or those that gain */
    Join *joins;                   /* [n] */
    int64_t count, next;           /* cycles, and how many of them children were made of */
    int64_t gain, best, gaining;   /* of the best child, and its cycle; cycles of children that gain, in `drawn` */
    int64_t segments, subtours, joined;
    uint64_t random;
} Assembly;

/* ---- AB-cycles ----------------------------------------------------------------------------------------------- */

INLINE int linked(const int32_t *links, int32_t a, int32_t b) { return links[2 * a] == b || links[2 * a + 1] == b; }

static void set_links(Assembly *s) {
    for (int64_t i = 0; i < s->n; ++i) {
        const int32_t city = s->order[i];
        s->place[city] = (int32_t)i;
        s->link[2 * city] = s->order[i ? i - 1 : s->n - 1];
        s->link[2 * city + 1] = s->order[i + 1 < s->n ? i + 1 : 0];
    }
}

static void find_loose(Assembly *s) {
    const int32_t *links[2] = {s->link, s->other};
    for (int64_t city = 0; city < s->n; ++city)
        for (int side = 0; side < 2; ++side) {
            int32_t count = 0;
            for (int i = 0; i < 2; ++i) {
                const int32_t end = links[side][2 * city + i];
                if (!linked(links[!side], (int32_t)city, end)) s->loose[4 * city + 2 * side + count++] = end;
            }
            s->left[2 * city + side] = count;
            s->at[side * s->n + city] = -1;
        }
}

static void drop_loose(Assembly *s, int32_t city, int side, int32_t end) {
    int32_t *ends = s->loose + 4 * city + 2 * side;
    if (ends[0] == end) ends[0] = ends[1];
    --s->left[2 * city + side];
}

/* The cycle that the walk closed: its cities from place `from` up to `top`, beginning with an edge of A. */
static void keep_cycle(Assembly *s, int64_t from, int64_t top) {
    int32_t *cycle = s->cycles + s->first[s->count];
    const int64_t length = top - from, turned = from & 1;
    for (int64_t i = 0; i < length; ++i) {
        const int64_t next = from + (i + turned) % length;
        cycle[i] = s->trail[next];
        s->at[(next & 1) * s->n + s->trail[next]] = -1;
    }
    s->first[s->count + 1] = s->first[s->count] + (int32_t)length;
    ++s->count;
}

/* Walk along loose edges of A and of B by turns, and take every cycle out, until the walk is empty. */
static void walk(Assembly *s, int32_t city) {
    int64_t top = 0;
    for (;;) {
        const int side = top & 1;
        s->trail[top] = city;
        s->at[side * s->n + city] = (int32_t)top;
        const int32_t *ends = s->loose + 4 * city + 2 * side;
        const int32_t next = ends[s->left[2 * city + side] > 1 ? random_below(&s->random, 2) : 0];
        drop_loose(s, city, side, next);
        drop_loose(s, next, side, city);
        const int32_t from = s->at[!side * s->n + next];
        ++top;
        city = next;
        if (from < 0) continue;
        keep_cycle(s, from, top);
        if (!from) return;
        top = from;
    }
}

/* ---- a child ------------------------------------------------------------------------------------------------- */

INLINE void replace(Assembly *s, int32_t city, int32_t old, int32_t new) {
    s->link[2 * city + (s->link[2 * city] != old)] = new;
}

/* Exchange the edges of a cycle in `link`; returns what that gains. */
static int64_t exchange(Assembly *s, const int32_t *cycle, int64_t length) {
    int64_t gain = 0;
    for (int64_t i = 0; i < length; i += 2) {
        replace(s, cycle[i], cycle[i + 1], -1);
        replace(s, cycle[i + 1], cycle[i], -1);
        gain += between(s->metric, cycle[i], cycle[i + 1]);
    }
    for (int64_t i = 1; i < length; i += 2) {
        const int32_t next = cycle[i + 1 < length ? i + 1 : 0];
        replace(s, cycle[i], -1, next);
        replace(s, next, -1, cycle[i]);
        gain -= between(s->metric, cycle[i], next);
    }
    return gain;
}

static int by_value(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Add the places at which a cycle cuts A. */
static void cut(Assembly *s, const int32_t *cycle, int64_t length) {
    for (int64_t i = 0; i < length; i += 2) {
        const int32_t a = s->place[cycle[i]], b = s->place[cycle[i + 1]];
        s->cuts[s->segments++] = b == (a + 1 < s->n ? a + 1 : 0) ? a : b;
    }
}

/* The segment of a place: the first that ends there or beyond; what comes after the last belongs to the first. */
INLINE int64_t segment_of(const Assembly *s, int32_t place) {
    int64_t low = 0, high = s->segments;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (s->cuts[middle] < place) low = middle + 1;
        else high = middle;
    }
    return low == s->segments ? 0 : low;
}

INLINE int32_t first_of(const Assembly *s, int64_t segment) {
    const int32_t before = s->cuts[segment ? segment - 1 : s->segments - 1];
    return s->order[before + 1 < s->n ? before + 1 : 0];
}

INLINE int32_t across(const Assembly *s, int32_t city, int32_t from) {
    return s->link[2 * city + (s->link[2 * city] == from)];
}

/* Give the segments of the subtour through one of them its number; returns its cities. */
static int32_t trace(Assembly *s, int64_t segment) {
    const int32_t number = (int32_t)s->subtours;
    int32_t cities = 0, end = first_of(s, segment), from = -1;
    while (s->label[segment] < 0) {
        const int32_t first = first_of(s, segment), last = s->order[s->cuts[segment]];
        const int32_t long_way = s->cuts[segment] - s->place[first];
        s->label[segment] = number;
        cities += 1 + (int32_t)(long_way < 0 ? long_way + s->n : long_way);
        int32_t leave = end == first ? last : first, inner;
        if (first == last) inner = from < 0 ? s->link[2 * first] : from;
        else inner = leave == last ? s->order[s->cuts[segment] ? s->cuts[segment] - 1 : s->n - 1]
                                   : s->order[s->place[first] + 1 < s->n ? s->place[first] + 1 : 0];
        end = across(s, leave, inner);
        from = leave;
        segment = segment_of(s, s->place[end]);
    }
    return cities;
}

static void find_subtours(Assembly *s) {
    s->subtours = 0;
    for (int64_t i = 0; i < s->segments; ++i) s->label[i] = -1;
    for (int64_t i = 0; i < s->segments; ++i) {
        if (s->label[i] >= 0) continue;
        s->root[s->subtours] = (int32_t)s->subtours;
        s->entry[s->subtours] = first_of(s, i);
        s->size[s->subtours] = trace(s, i);
        ++s->subtours;
    }
}

INLINE int32_t subtour_of(const Assembly *s, int32_t city) {
    int32_t subtour = s->label[segment_of(s, s->place[city])];
    while (s->root[subtour] != subtour) subtour = s->root[subtour];
    return subtour;
}

static int32_t smallest(const Assembly *s) {
    int32_t best = -1;
    for (int32_t i = 0; i < s->subtours; ++i)
        if (s->root[i] == i && (best < 0 || s->size[i] < s->size[best])) best = i;
    return best;
}

/* The cheapest exchange of an edge at `city` in a subtour for one of another; *cost: of the best so far. */
static void find_join(const Assembly *s, int32_t city, int32_t subtour, int64_t *cost, Join *best) {
    for (int64_t i = 0; i < s->k; ++i) {
        const int32_t near = s->near[city * s->k + i];
        const int64_t bridge = between(s->metric, city, near);
        if (subtour_of(s, near) == subtour) continue;
        for (int a = 0; a < 2; ++a)
            for (int b = 0; b < 2; ++b) {
                const int32_t u = s->link[2 * city + a], v = s->link[2 * near + b];
                const int64_t found = bridge + between(s->metric, u, v) - between(s->metric, city, u) -
                                      between(s->metric, near, v);
                if (found >= *cost) continue;
                *cost = found;
                *best = (Join){{city, near}, {u, v}};
            }
    }
}

INLINE void set_join(Assembly *s, const Join *j) {
    replace(s, j->out[0], j->in[0], j->out[1]);
    replace(s, j->in[0], j->out[0], j->in[1]);
    replace(s, j->out[1], j->in[1], j->out[0]);
    replace(s, j->in[1], j->out[1], j->in[0]);
}

/* Join subtours, the smallest first, until one is left, for a lower *gain; 0 where one has no neighbours outside. */
static int join_subtours(Assembly *s, int64_t *gain) {
    for (int64_t left = s->subtours; left > 1; --left) {
        const int32_t subtour = smallest(s), begin = s->entry[subtour];
        int32_t city = begin, before = s->link[2 * begin];
        int64_t cost = INT64_MAX;
        Join best;
        do {
            find_join(s, city, subtour, &cost, &best);
            const int32_t next = across(s, city, before);
            before = city;
            city = next;
        } while (city != begin);
        if (cost == INT64_MAX) return 0;
        const int32_t into = subtour_of(s, best.out[1]);
        set_join(s, &best);
        s->joins[s->joined++] = best;
        s->root[subtour] = into;
        s->size[into] += s->size[subtour];
        *gain -= cost;
    }
    return 1;
}

/* Make the child of some cycles in `link`; returns what it gains, INT64_MIN where a subtour cannot be joined. */
static int64_t make(Assembly *s, const int32_t *numbers, int64_t many) {
    int64_t gain = 0;
    s->segments = s->joined = 0;
    for (int64_t i = 0; i < many; ++i) {
        const int32_t first = s->first[numbers[i]], length = s->first[numbers[i] + 1] - first;
        cut(s, s->cycles + first, length);
        gain += exchange(s, s->cycles + first, length);
    }
    qsort(s->cuts, (size_t)s->segments, sizeof *s->cuts, by_value);
    find_subtours(s);
    return join_subtours(s, &gain) ? gain : INT64_MIN;
}

static void restore(Assembly *s, int32_t city) {
    const int64_t i = s->place[city], n = s->n;
    s->link[2 * city] = s->order[i ? i - 1 : n - 1];
    s->link[2 * city + 1] = s->order[i + 1 < n ? i + 1 : 0];
}

/* Make A of `link` again. */
static void unmake(Assembly *s, const int32_t *numbers, int64_t many) {
    for (int64_t k = 0; k < many; ++k)
        for (int64_t i = s->first[numbers[k]]; i < s->first[numbers[k] + 1]; ++i) restore(s, s->cycles[i]);
    for (int64_t i = 0; i < s->joined; ++i)
        for (int end = 0; end < 2; ++end) {
            restore(s, s->joins[i].out[end]);
            restore(s, s->joins[i].in[end]);
        }
}

/* Make the tour of `link` A. */
static void settle(Assembly *s) {
    int32_t city = s->order[0], before = s->link[2 * city];
    for (int64_t i = 0; i < s->n; ++i) {
        s->order[i] = city;
        const int32_t next = across(s, city, before);
        before = city;
        city = next;
    }
    set_links(s);
}

/* ---- for a caller -------------------------------------------------------------------------------------------- */

/* Split the difference of A (order) and B (other) into cycles, in `count`. */
void lk_assembly_begin(Assembly *s) {
    set_links(s);
    find_loose(s);
    s->count = s->next = s->first[0] = s->gain = s->best = s->gaining = 0;
    const int64_t n = s->n, offset = random_below(&s->random, (uint32_t)n);
    for (int64_t i = 0; i < n; ++i) {
        const int32_t city = s->order[(i + offset) % n];
        while (s->left[2 * city]) walk(s, city);
    }
}

/* Take over all cycles that gain, at once, or the best where together they gain less. */
static void take_over(Assembly *s) {
    const int32_t best = (int32_t)s->best;
    int64_t gain = make(s, s->drawn, s->gaining);
    if (gain < s->gain) {
        unmake(s, s->drawn, s->gaining);
        gain = make(s, &best, 1);
    }
    s->gain = gain;
    settle(s);
}

/* Make up to `most` of the children that are left, one for each cycle; returns how many. With the last of them A takes
 * over what gains, and `gain` is how much that is; before it is the gain of the best child. */
int64_t lk_assembly_merge(Assembly *s, int64_t most) {
    int64_t made = 0;
    for (; made < most && s->next < s->count; ++made) {
        const int32_t number = (int32_t)s->next++;
        const int64_t gain = make(s, &number, 1);
        unmake(s, &number, 1);
        if (gain > 0) s->drawn[s->gaining++] = number;
        if (gain > s->gain) {
            s->gain = gain;
            s->best = number;
        }
        if (s->next == s->count && s->gaining) take_over(s);
    }
    return made;
}

/* Make up to `most` children of cycles drawn from those that are left; returns how many. The best so far is `best`
 * (after lk_assembly_begin none), and gains `gain`. */
int64_t lk_assembly_draw(Assembly *s, int64_t most) {
    int64_t made = 0;
    for (; made < most && s->next < s->count; ++made, ++s->next) {
        if (!s->next)
            for (int64_t i = 0; i < s->count; ++i) s->drawn[i] = (int32_t)i;
        const int64_t other = s->next + random_below(&s->random, (uint32_t)(s->count - s->next));
        const int32_t number = s->drawn[other];
        s->drawn[other] = s->drawn[s->next];
        s->drawn[s->next] = number;
        const int64_t gain = make(s, &number, 1);
        unmake(s, &number, 1);
        if (gain > s->gain) {
            s->gain = gain;
            s->best = number;
        }
    }
    return made;
}

/* Make A the best child of lk_assembly_draw, which gains something. */
void lk_assembly_take(Assembly *s) {
    const int32_t best = (int32_t)s->best;
    make(s, &best, 1);
    settle(s);
}
