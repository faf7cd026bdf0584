/* Local search on tours (app/search/tour/search.py): Lin-Kernighan moves of up to three exchanges at a time, evaluated
 * before anything moves, and the kicks between them. app/search/tour/plain.py does the same, move by move. */
#include "tour.h"
#include "random.h"

enum { MOST_TOUCHED = 64, REACH = 1000 };

typedef struct {
    const Metric *metric;
    int64_t n, k, depth, longest, room; /* see app/native/tour.py */
    const int32_t *near, *cost;         /* [n][k] nearest cities, nearest first, and their distances */
    int32_t *order, *place;             /* [n] the tour, and where each city stands in it */
    int32_t *queue;                     /* [n] ring of cities to look at */
    uint8_t *queued;                    /* [n] */
    int32_t *journal;                   /* [room][2] reversals made: first place, number of cities */
    int64_t head, waiting, noted;
    int64_t length, steps, found_at;
    uint64_t random;
} Search;

/* An exchange: with path t[1] ... t[0] of the tour without its edge t[0]-t[1] (t1, t2 in the literature). */
enum Kind { NONE, FLIP, TWO_FLIPS, SWAP, TURN };

typedef struct {
    enum Kind kind;
    int64_t open; /* the gain before the tour is closed */
    int32_t t[6];
} Exchange;

/* ---- the tour ------------------------------------------------------------------------------------------------ */

INLINE int32_t next_city(const Search *s, int32_t city) {
    const int64_t i = s->place[city] + 1;
    return s->order[i == s->n ? 0 : i];
}

INLINE int32_t city_before(const Search *s, int32_t city) {
    const int64_t i = s->place[city];
    return s->order[i ? i - 1 : s->n - 1];
}

/* Reverse `count` cities from place `first` on, around the end; its own inverse. */
static void turn(Search *s, int64_t first, int64_t count) {
    int32_t *order = s->order, *place = s->place;
    const int64_t n = s->n;
    int64_t i = first, j = first + count - 1;
    if (j >= n) j -= n;
    for (int64_t left = count / 2; left > 0; --left) {
        const int32_t a = order[i], b = order[j];
        order[i] = b;
        place[b] = (int32_t)i;
        order[j] = a;
        place[a] = (int32_t)j;
        if (++i == n) i = 0;
        if (--j < 0) j = n - 1;
    }
}

INLINE void turn_noted(Search *s, int64_t first, int64_t count) {
    turn(s, first, count);
    s->journal[2 * s->noted] = (int32_t)first;
    s->journal[2 * s->noted++ + 1] = (int32_t)count;
}

static void undo(Search *s, int64_t noted) {
    while (s->noted > noted) {
        --s->noted;
        turn(s, s->journal[2 * s->noted], s->journal[2 * s->noted + 1]);
    }
}

/* Replace edges a-b and d-c by b-c and d-a, where b follows a and c follows d in one of the two directions. */
static void flip(Search *s, int32_t a, int32_t b, int32_t c, int32_t d) {
    (void)c;
    const int forward = next_city(s, a) == b;
    int64_t first = s->place[forward ? b : d], last = s->place[forward ? d : b];
    int64_t count = last - first + 1;
    if (count <= 0) count += s->n;
    if (2 * count > s->n) { /* the rest of the tour is shorter, and its reversal the same tour */
        first = last + 1 == s->n ? 0 : last + 1;
        count = s->n - count;
    }
    turn_noted(s, first, count);
}

static void apply(Search *s, const Exchange *e) {
    const int32_t *t = e->t;
    switch (e->kind) {
    case NONE: break;
    case FLIP: flip(s, t[0], t[1], t[2], t[3]); break;
    case TWO_FLIPS:
        flip(s, t[0], t[1], t[2], t[3]);
        flip(s, t[0], t[3], t[4], t[5]);
        break;
    case SWAP:
        flip(s, t[0], t[1], t[3], t[2]);
        flip(s, t[0], t[2], t[4], t[5]);
        flip(s, t[2], t[4], t[3], t[1]);
        break;
    case TURN:
        flip(s, t[5], t[4], t[3], t[2]);
        flip(s, t[0], t[1], t[2], t[5]);
        break;
    }
}

INLINE int32_t last_of(const Exchange *e) { return e->t[e->kind == FLIP ? 3 : 5]; }

/* ---- exchanges ----------------------------------------------------------------------------------------------- */

/* The path t2 = city 0, ..., t1 = city n-1. */
typedef struct {
    const Search *s;
    int64_t start;
    int forward;
} Path;

INLINE int64_t index_of(const Path *p, int32_t city) {
    const int64_t i = p->forward ? p->s->place[city] - p->start : p->start - p->s->place[city];
    return i < 0 ? i + p->s->n : i;
}

INLINE int32_t city_at(const Path *p, int64_t index) {
    int64_t i = p->forward ? p->start + index : p->start - index;
    if (i < 0) i += p->s->n;
    if (i >= p->s->n) i -= p->s->n;
    return p->s->order[i];
}

/* Take the exchange if closing the tour gains, else keep it if its open gain is the largest. */
INLINE int consider(const Search *s, Exchange *best, enum Kind kind, int64_t open, const int32_t t[6]) {
    const int64_t closing = between(s->metric, t[0], t[kind == FLIP ? 3 : 5]);
    if (open <= closing && open <= best->open) return 0;
    best->kind = kind;
    best->open = open;
    memcpy(best->t, t, sizeof best->t);
    return open > closing;
}

/* After the flip at t3 = city i, t4 = city i-1: a second flip. */
static int second_flips(const Path *p, Exchange *best, int64_t i, int64_t open, int32_t t[6]) {
    const Search *s = p->s;
    const int32_t *near = s->near + t[3] * s->k, *cost = s->cost + t[3] * s->k;
    for (int64_t b = 0; b < s->k && open > cost[b]; ++b) {
        const int64_t j = index_of(p, near[b]);
        if (j == i || j == i - 2 || j == s->n - 1) continue;
        t[4] = near[b];
        t[5] = city_at(p, j > i ? j - 1 : j + 1);
        if (consider(s, best, TWO_FLIPS, open - cost[b] + between(s->metric, t[4], t[5]), t)) return 1;
    }
    return 0;
}

/* Edges t2-t3 and t3-t4, t4 = city i+1, leave cities 0..i as a cycle: open it at t5-t6 beside t4. */
static int openings(const Path *p, Exchange *best, int64_t i, int64_t open, int32_t t[6]) {
    const Search *s = p->s;
    const int32_t *near = s->near + t[3] * s->k, *cost = s->cost + t[3] * s->k;
    for (int64_t b = 0; b < s->k && open > cost[b]; ++b) {
        const int64_t j = index_of(p, near[b]);
        if (j >= i) continue;
        t[4] = near[b];
        t[5] = city_at(p, j + 1);
        if (consider(s, best, SWAP, open - cost[b] + between(s->metric, t[4], t[5]), t)) return 1;
        if (j == 0) continue;
        t[5] = city_at(p, j - 1);
        if (consider(s, best, TURN, open - cost[b] + between(s->metric, t[4], t[5]), t)) return 1;
    }
    return 0;
}

/* The first exchange that shortens the tour (returns 1), or in *best the one of the largest open gain.
 * open: what was gained so far, the length of the edge t1-t2 included. */
static int find_exchange(const Search *s, int32_t t1, int32_t t2, int64_t open, Exchange *best) {
    const int32_t *near = s->near + t2 * s->k, *cost = s->cost + t2 * s->k;
    const Path p = {s, s->place[t2], next_city(s, t1) == t2};
    int32_t t[6] = {t1, t2, 0, 0, 0, 0};
    best->kind = NONE;
    best->open = 0;
    for (int64_t a = 0; a < s->k && open > cost[a]; ++a) {
        const int64_t i = index_of(&p, near[a]), gain = open - cost[a];
        if (i == 1 || i == s->n - 1) continue;
        t[2] = near[a];
        t[3] = city_at(&p, i - 1);
        const int64_t flipped = gain + between(s->metric, t[2], t[3]);
        if (consider(s, best, FLIP, flipped, t) || second_flips(&p, best, i, flipped, t)) return 1;
        if (i == s->n - 2) continue;
        t[3] = city_at(&p, i + 1);
        if (openings(&p, best, i, gain + between(s->metric, t[2], t[3]), t)) return 1;
    }
    return 0;
}

/* ---- descent ------------------------------------------------------------------------------------------------- */

INLINE void enqueue(Search *s, int32_t city) {
    if (s->queued[city]) return;
    s->queued[city] = 1;
    int64_t at = s->head + s->waiting++;
    s->queue[at >= s->n ? at - s->n : at] = city;
}

INLINE int32_t dequeue(Search *s) {
    const int32_t city = s->queue[s->head];
    if (++s->head == s->n) s->head = 0;
    --s->waiting;
    s->queued[city] = 0;
    return city;
}

static void enqueue_all(Search *s, const int32_t *cities, int64_t count) {
    for (int64_t i = 0; i < count; ++i) enqueue(s, cities[i]);
}

/* Whether an exchange, which may be undone, reverses no long stretch. */
static int within_reach(const Search *s, const Exchange *e) {
    for (int i = 3; i < (e->kind == FLIP ? 4 : 6); ++i) {
        int64_t away = s->place[e->t[i]] - s->place[e->t[0]];
        if (away < 0) away = -away;
        if (away > REACH && s->n - away > REACH) return 0;
    }
    return 1;
}

/* A chain of exchanges from edge t1-t2; undone unless it shortens the tour. */
static int chain(Search *s, int32_t t1, int32_t t2) {
    const int64_t noted = s->noted;
    int64_t open = between(s->metric, t1, t2), touched = 0;
    int32_t cities[MOST_TOUCHED];
    for (int64_t round = 0; round < s->depth; ++round) {
        Exchange e;
        const int gained = find_exchange(s, t1, t2, open, &e);
        if (e.kind == NONE || (!gained && (round + 1 == s->depth || !within_reach(s, &e)))) break;
        const int64_t count = e.kind == FLIP ? 4 : 6;
        apply(s, &e);
        memcpy(cities + touched, e.t, (size_t)count * sizeof *cities);
        touched += count;
        t2 = last_of(&e);
        open = e.open;
        if (gained) {
            s->length -= open - between(s->metric, t2, t1);
            enqueue_all(s, cities, touched);
            return 1;
        }
    }
    undo(s, noted);
    return 0;
}

/* Look at waiting cities, `most` of them (all: -1), while the journal has room; keep: no undoing later. */
static void descend(Search *s, int64_t most, int keep) {
    while (s->waiting && most-- && s->noted + 3 * s->depth <= s->room) {
        const int32_t t1 = dequeue(s);
        while (chain(s, t1, next_city(s, t1)) || chain(s, t1, city_before(s, t1))) {
            if (keep) s->noted = 0;
            if (s->noted + 3 * s->depth > s->room) break;
        }
    }
    if (s->noted + 3 * s->depth > s->room)
        while (s->waiting) dequeue(s);
}

/* Part of the first descent; returns how many cities still wait. */
int64_t lk_tour_descend(Search *s, int64_t most) {
    descend(s, most, 1);
    s->noted = 0;
    return s->waiting;
}

/* ---- kicks --------------------------------------------------------------------------------------------------- */

/* Double bridge on three neighbouring segments B C D of a few cities each: A B C D becomes A D C B. */
static void kick(Search *s) {
    const int64_t n = s->n, first = random_below(&s->random, (uint32_t)n);
    int64_t size[3], at[5] = {first ? first - 1 : n - 1, first};
    for (int i = 0; i < 3; ++i) size[i] = 1 + random_below(&s->random, (uint32_t)s->longest);
    for (int i = 0; i < 3; ++i) at[i + 2] = (at[i + 1] + size[i]) % n;
    int32_t ends[8]; /* the four edges that go: end of A, start of B, ..., end of D, start of A */
    ends[0] = s->order[at[0]];
    ends[1] = s->order[first];
    for (int i = 2; i < 5; ++i) {
        ends[2 * i - 2] = s->order[at[i] ? at[i] - 1 : n - 1];
        ends[2 * i - 1] = s->order[at[i]];
    }
    static const int from[4] = {0, 6, 4, 2}, to[4] = {5, 3, 1, 7};
    for (int i = 0; i < 4; ++i) {
        s->length += between(s->metric, ends[from[i]], ends[to[i]]);
        s->length -= between(s->metric, ends[2 * i], ends[2 * i + 1]);
    }
    turn_noted(s, first, size[0] + size[1] + size[2]);
    turn_noted(s, first, size[2]);
    turn_noted(s, (first + size[2]) % n, size[1]);
    turn_noted(s, (first + size[2] + size[1]) % n, size[0]);
    enqueue_all(s, ends, 8);
}

/* `steps` kicks, each with its repair, undone where the tour got longer. */
void lk_tour_run(Search *s, int64_t steps) {
    for (; steps > 0; --steps) {
        const int64_t before = s->length;
        s->noted = 0;
        kick(s);
        descend(s, -1, 0);
        ++s->steps;
        if (s->length > before) {
            undo(s, 0);
            s->length = before;
        } else if (s->length < before) s->found_at = s->steps;
    }
    s->noted = 0;
}
