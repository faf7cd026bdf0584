/* Capacitated vehicle routing: strings of customers near each other leave their routes and are inserted again, one by
 * one, where that is cheapest. app/search/routing/plain.py has the same, app/search/routing/kernel.py the sources.
 * Where customers have windows, no route ever misses one.
 *
 * Stops are customers, by their numbers below n, and the depot, which is n + r on route r: each route is a ring. */
#include <stdint.h>

#include "common.h"
#include "random.h"
#include "tour.h"

typedef struct {
    int32_t customer, before, leg_before, leg; /* where it was; leg -1: it has been inserted */
} Change;

typedef struct {
    int32_t next, prev, leg, back; /* the stops after and before, and the ways to them */
    int32_t route;                 /* of a customer; -1: on none */
    int32_t unused[3];             /* two of them fill a cache line */
} Stop;

typedef struct {
    const Metric *metric;
    int64_t n, depot, near_count, looked_at, capacity, limit; /* looked_at: of near; limit: routes at most */
    const int32_t *near, *far; /* [n][near_count] customers nearest to each, and their distances */
    const int64_t *demand;     /* [n] */
    const int32_t *home;       /* [n] distances to the depot */
    const int64_t *toll;       /* [TOLLS] what a draw allows, by temperature, in 2^-16 */
    const int32_t *customers;  /* [count] */
    const int64_t *opens, *closes, *service; /* [n], of windows; null: there are none */
    int64_t count;
    Stop *stop;                 /* [2n] */
    int64_t *load;              /* [n], by route */
    int32_t *size;              /* [n] */
    int32_t *empty;             /* [n] routes without customers, a stack */
    int32_t *ruined, *place;    /* [n] routes that strings have left; of each route there, or -1 */
    int32_t *removed;           /* [n] */
    int64_t *rank;              /* [n] what removed customers are sorted by */
    Change *change;             /* [2n] */
    int32_t *best;              /* [n] the next stop of each, the depot's number at the end */
    int64_t *ready, *latest;    /* [2n] when a vehicle leaves a stop, as early as it can; when it has to be there */
    int32_t *grown, *grew;      /* [n] routes that have got customers, with windows; 1 of each route there */
    int32_t *late;              /* [n] 1 of routes on which a vehicle is late somewhere */
    int32_t *absent, *missing;  /* [n] customers on no route; the same, before a step */
    int64_t *absence;           /* [n] steps at the end of which each was on none, and 1 */
    int64_t empties, ruins, removals, changes, growths, absents;
    int64_t length, over; /* over: what all routes carry beyond the capacity */
    int64_t best_length, found_at, steps;
    int64_t temperature, price, dearest; /* in 2^-10; price: of a unit carried beyond the capacity */
    int64_t fitting;                     /* steps since the price was last changed, after which nothing was beyond */
    int64_t packing;                     /* whether customers may be on no route, and no route is beyond the capacity */
    uint64_t random;
} Routing;

#define NEVER ((int64_t)1 << 61) /* a cost beyond all others */

/* as in app/search/routing/plain.py */
enum { TOLLS = 4096, LONGEST = 10, MEAN_REMOVED = 10, ONE = 256, SPLIT_ON = 100, NO_BLINK = 127, PERIOD = 100, FITTING = 50 };
enum { AT_RANDOM = 4, BY_DEMAND = 8, FAR_FIRST = 10, ORDERS = 11 };

INLINE int64_t apart(const Routing *s, int32_t a, int32_t b) {
    if (a >= s->n) return b >= s->n ? 0 : s->home[b];
    return b >= s->n ? s->home[a] : between(s->metric, a, b);
}

INLINE int64_t beyond(const Routing *s, int64_t load) {
    return load > s->capacity ? load - s->capacity : 0;
}

INLINE int64_t draw(Routing *s, int64_t bound) {
    return random_below(&s->random, (uint32_t)bound);
}

/* ---- windows ------------------------------------------------------------------------------------------------------- */

/* When a vehicle leaves the stops of a route, and when it has to be there; whether it is late. */
static void retime(Routing *s, int32_t r) {
    const int32_t depot = (int32_t)s->n + r;
    int64_t at = s->opens[s->depot];
    int32_t late = 0;
    for (int32_t x = s->stop[depot].next; x < s->n; x = s->stop[x].next) {
        at += s->stop[x].back;
        late |= at > s->closes[x];
        if (at < s->opens[x]) at = s->opens[x];
        at += s->service[x];
        s->ready[x] = at;
    }
    s->late[r] = late | (at + s->stop[depot].back > s->closes[s->depot]);
    at = s->closes[s->depot];
    for (int32_t x = s->stop[depot].prev; x < s->n; x = s->stop[x].prev) {
        at -= s->stop[x].leg + s->service[x];
        if (at > s->closes[x]) at = s->closes[x];
        s->latest[x] = at;
    }
}

/* Whether c, so far from p and from x, can be served between them. */
INLINE int in_time(const Routing *s, int32_t c, int32_t p, int64_t from, int32_t x, int64_t to) {
    if (!s->opens) return 1;
    int64_t at = s->ready[p] + from;
    if (at < s->opens[c]) at = s->opens[c];
    return at <= s->closes[c] && at + s->service[c] + to <= s->latest[x];
}

/* Whether no vehicle is late. Where a way is longer than one round by a customer it may be once that one has left. */
static int timely(const Routing *s) {
    for (int64_t i = 0; s->opens && i < s->ruins; i++)
        if (s->late[s->ruined[i]]) return 0;
    return 1;
}

static void note_growth(Routing *s, int32_t r) {
    if (s->grew[r]) return;
    s->grew[r] = 1;
    s->grown[s->growths++] = r;
}

/* ---- routes -------------------------------------------------------------------------------------------------------- */

static void unload(Routing *s, int32_t c, int32_t r) {
    s->over -= beyond(s, s->load[r]);
    s->load[r] -= s->demand[c];
    s->over += beyond(s, s->load[r]);
    s->stop[c].route = -1;
    if (--s->size[r] == 0) s->empty[s->empties++] = r;
}

/* p and x, between which a customer was, are next to each other. */
static void part(Routing *s, int32_t p, int32_t x, int32_t leg) {
    s->stop[p].next = x;
    s->stop[x].prev = p;
    s->stop[p].leg = s->stop[x].back = leg;
}

static void take_out(Routing *s, int32_t c) {
    const int32_t p = s->stop[c].prev, x = s->stop[c].next, r = s->stop[c].route;
    const int32_t leg = (int32_t)apart(s, p, x);
    s->change[s->changes++] = (Change){c, p, s->stop[p].leg, s->stop[c].leg};
    s->length += leg - (int64_t)s->stop[p].leg - s->stop[c].leg;
    part(s, p, x, leg);
    unload(s, c, r);
}

static void link_in(Routing *s, int32_t c, int32_t p, int32_t leg_before, int32_t leg) {
    const int32_t x = s->stop[p].next, r = p >= s->n ? p - (int32_t)s->n : s->stop[p].route;
    s->length += (int64_t)leg_before + leg - s->stop[p].leg;
    s->stop[p].next = s->stop[x].prev = c;
    s->stop[p].leg = leg_before;
    s->stop[x].back = leg;
    s->stop[c].next = x;
    s->stop[c].prev = p;
    s->stop[c].leg = leg;
    s->stop[c].back = leg_before;
    s->over -= beyond(s, s->load[r]);
    s->load[r] += s->demand[c];
    s->over += beyond(s, s->load[r]);
    s->stop[c].route = r;
    if (s->size[r]++ == 0) s->empties -= 1; /* it is the last of the stack */
}

static void insert(Routing *s, int32_t c, int32_t p) {
    const int32_t x = s->stop[p].next;
    s->change[s->changes++] = (Change){c, p, s->stop[p].leg, -1};
    link_in(s, c, p, (int32_t)apart(s, p, c), (int32_t)apart(s, c, x));
    if (!s->opens) return;
    retime(s, s->stop[c].route);
    note_growth(s, s->stop[c].route);
}

static void undo(Routing *s) {
    while (s->changes) {
        const Change it = s->change[--s->changes];
        const int32_t c = it.customer;
        if (it.leg >= 0) {
            link_in(s, c, it.before, it.leg_before, it.leg);
            continue;
        }
        const int32_t p = it.before, x = s->stop[c].next, r = s->stop[c].route;
        s->length += it.leg_before - (int64_t)s->stop[p].leg - s->stop[c].leg;
        part(s, p, x, it.leg_before);
        unload(s, c, r);
    }
    if (!s->opens) return;
    for (int64_t i = 0; i < s->ruins; i++) retime(s, s->ruined[i]);
    for (int64_t i = 0; i < s->growths; i++) retime(s, s->grown[i]);
}

/* ---- ruin ---------------------------------------------------------------------------------------------------------- */

/* A string of customers of the route of c, c in it, leaves; of a longer one all but some in its middle. */
static void ruin_route(Routing *s, int32_t c, int64_t longest) {
    const int32_t r = s->stop[c].route;
    const int64_t size = s->size[r];
    const int64_t most = longest < size * ONE ? longest : size * ONE;
    int64_t length = (ONE + draw(s, most)) / ONE, kept = 0;
    if (length > size) length = size;
    if (length > 1 && length < size && draw(s, 2)) {
        kept = 1;
        while (length + kept < size && !draw(s, SPLIT_ON)) kept += 1;
    }
    const int64_t whole = length + kept;
    int64_t ahead = 0, behind = 0; /* stops before and after c that the string may hold */
    for (int32_t x = s->stop[c].prev; x < s->n && ahead < whole - 1; x = s->stop[x].prev) ahead += 1;
    for (int32_t x = s->stop[c].next; x < s->n && behind < whole - 1; x = s->stop[x].next) behind += 1;
    const int64_t least = whole - 1 - behind;
    int64_t back = least + draw(s, ahead - least + 1);
    const int64_t first_kept = kept ? 1 + draw(s, length - 1) : whole; /* place in the string */
    int32_t x = c;
    for (; back > 0; back--) x = s->stop[x].prev;
    s->place[r] = (int32_t)s->ruins;
    s->ruined[s->ruins++] = r;
    for (int64_t i = 0; i < whole; i++) {
        const int32_t y = s->stop[x].next;
        if (i < first_kept || i >= first_kept + kept) {
            take_out(s, x);
            s->removed[s->removals++] = x;
        }
        x = y;
    }
    if (s->opens) retime(s, r);
}

static void ruin(Routing *s) {
    const int64_t routes = s->n > s->empties ? s->n - s->empties : 1, mean = ONE * s->count / routes;
    const int64_t longest = mean < LONGEST * ONE ? mean : LONGEST * ONE;
    const int64_t strings = (ONE + draw(s, 4 * MEAN_REMOVED * ONE * ONE / (ONE + longest) - ONE)) / ONE;
    const int32_t seed = s->customers[draw(s, s->count)];
    const int32_t *near = s->near + seed * s->near_count;
    if (s->stop[seed].route >= 0) ruin_route(s, seed, longest);
    for (int64_t i = 0; i < s->near_count && s->ruins < strings; i++) {
        const int32_t c = near[i], r = s->stop[c].route;
        if (r >= 0 && s->place[r] < 0) ruin_route(s, c, longest);
    }
}

/* ---- recreate ------------------------------------------------------------------------------------------------------ */

/* Removed customers in the order in which they are inserted. */
static void sort(Routing *s) {
    const int64_t kind = draw(s, ORDERS);
    for (int64_t i = 0; i < s->removals; i++) {
        const int32_t c = s->removed[i];
        s->rank[i] = kind < AT_RANDOM   ? draw(s, 1 << 30)
                     : kind < BY_DEMAND ? -s->demand[c]
                     : kind < FAR_FIRST ? -(int64_t)s->home[c]
                                        : s->home[c];
    }
    for (int64_t i = 1; i < s->removals; i++) {
        const int64_t rank = s->rank[i];
        const int32_t c = s->removed[i];
        int64_t at = i;
        for (; at > 0 && s->rank[at - 1] > rank; at--) {
            s->rank[at] = s->rank[at - 1];
            s->removed[at] = s->removed[at - 1];
        }
        s->rank[at] = rank;
        s->removed[at] = c;
    }
}

/* A byte of a draw for each place: seldom a place is not seen. */
typedef struct {
    uint64_t bits;
    int left;
} Blinks;

INLINE int blinks(Routing *s, Blinks *b) {
    if (!b->left) {
        b->bits = random_bits(&s->random);
        b->left = 8;
    }
    const int found = !(b->bits & NO_BLINK);
    b->bits >>= 8;
    b->left -= 1;
    return found;
}

/* What it costs that route r cannot carry c, too; beyond NEVER, whatever is saved on the way: it shall not. */
INLINE int64_t fine_of(const Routing *s, int32_t c, int32_t r) {
    const int64_t more = beyond(s, s->load[r] + s->demand[c]) - beyond(s, s->load[r]);
    return more && s->packing ? 2 * NEVER : s->price * more >> 10;
}

/* The stop after which c is inserted; -1: there is none. A place between two stops is looked at from the nearer one. */
static int32_t best_place(Routing *s, int32_t c, Blinks *b) {
    const int32_t *near = s->near + c * s->near_count, *far = s->far + c * s->near_count;
    int64_t least = s->packing ? NEVER : INT64_MAX;
    int32_t found = -1;
    if (s->n - s->empties < s->limit && s->empties) {
        const int32_t depot = (int32_t)s->n + s->empty[s->empties - 1];
        if (in_time(s, c, depot, s->home[c], depot, s->home[c])) {
            least = 2 * (int64_t)s->home[c];
            found = depot;
        }
    }
    for (int64_t i = 0; i < s->ruins; i++) { /* from the depot, and back to it */
        const int32_t r = s->ruined[i], depot = (int32_t)s->n + r;
        if (!s->size[r]) continue;
        const int32_t first = s->stop[depot].next, last = s->stop[depot].prev;
        const int64_t fine = fine_of(s, c, r);
        int64_t to = apart(s, c, first), cost = fine + s->home[c] + to - s->stop[depot].leg;
        if (cost < least && in_time(s, c, depot, s->home[c], first, to) && !blinks(s, b)) {
            least = cost;
            found = depot;
        }
        to = apart(s, c, last);
        cost = fine + s->home[c] + to - s->stop[last].leg;
        if (cost < least && in_time(s, c, last, to, depot, s->home[c]) && !blinks(s, b)) {
            least = cost;
            found = last;
        }
    }
    for (int64_t i = 0; i < s->looked_at; i++) {
        const int32_t j = near[i];
        const Stop at = s->stop[j];
        if (at.route < 0) continue;
        const int64_t d = far[i], home = s->home[c];
        const int behind = 2 * d - at.leg < least || (at.next >= s->n && home < d);
        const int ahead = 2 * d - at.back < least || (at.prev >= s->n && home < d);
        if (!behind && !ahead) continue;
        const int64_t fine = fine_of(s, c, at.route);
        if (behind && (fine + 2 * d - at.leg < least || at.next >= s->n)) {
            const int64_t to = apart(s, c, at.next), cost = fine + d + to - at.leg;
            if (cost < least && in_time(s, c, j, d, at.next, to) && !blinks(s, b)) {
                least = cost;
                found = j;
            }
        }
        if (ahead && (fine + 2 * d - at.back < least || at.prev >= s->n)) {
            const int64_t to = apart(s, c, at.prev), cost = fine + d + to - at.back;
            if (cost < least && in_time(s, c, at.prev, to, j, d) && !blinks(s, b)) {
                least = cost;
                found = at.prev;
            }
        }
    }
    return found;
}

/* Insert what is removed. Returns whether there was a place for all; in packing those without one are absent. */
static int recreate(Routing *s) {
    Blinks b = {0, 0};
    sort(s);
    for (int64_t i = 0; i < s->removals; i++) {
        const int32_t c = s->removed[i], p = best_place(s, c, &b);
        if (p >= 0)
            insert(s, c, p);
        else if (s->packing)
            s->absent[s->absents++] = c;
        else
            return 0;
    }
    return 1;
}

/* ---- steps --------------------------------------------------------------------------------------------------------- */

INLINE int64_t value(const Routing *s) {
    return s->length + (s->price * s->over >> 10);
}

static void note(Routing *s) {
    s->best_length = s->length;
    s->found_at = s->steps;
    for (int64_t i = 0; i < s->count; i++) {
        const int32_t c = s->customers[i], x = s->stop[c].next;
        s->best[c] = x >= s->n ? (int32_t)s->depot : x;
    }
}

/* The price goes up where routes too seldom carry what they can, else down. */
static void reprice(Routing *s) {
    s->price += s->fitting < FITTING ? (s->price >> 6) + 1 : -(s->price >> 6);
    if (s->price > s->dearest) s->price = s->dearest;
    s->fitting = 0;
}

/* Nothing has left a route, or come to one. */
static void begin_step(Routing *s) {
    s->changes = s->ruins = s->removals = s->growths = 0;
    s->steps += 1;
}

static void end_step(Routing *s) {
    for (int64_t i = 0; i < s->ruins; i++) s->place[s->ruined[i]] = -1;
    for (int64_t i = 0; i < s->growths; i++) s->grew[s->grown[i]] = 0;
}

void lk_routing_run(Routing *s, int64_t steps) {
    for (; steps > 0; steps--) {
        const int64_t before = value(s);
        begin_step(s);
        ruin(s);
        const int complete = recreate(s);
        end_step(s);
        const int64_t toll = s->temperature * s->toll[draw(s, TOLLS)] >> 26;
        if (!complete || !timely(s) || value(s) >= before + toll)
            undo(s);
        else if (!s->over && s->length < s->best_length)
            note(s);
        s->fitting += !s->over;
        if (s->steps % PERIOD == 0) reprice(s);
    }
}

static int64_t sum_of(const Routing *s, const int32_t *absent, int64_t count) {
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) total += s->absence[absent[i]];
    return total;
}

/* Steps until every customer is on a route. Other customers may take the place of those that are absent where these
 * have seldom been, or where that is shorter and no more are absent. */
void lk_routing_pack(Routing *s, int64_t steps) {
    for (; steps > 0 && s->absents; steps--) {
        const int64_t before = s->length, missed = s->absents, sum = sum_of(s, s->absent, s->absents);
        begin_step(s);
        ruin(s);
        for (int64_t i = 0; i < missed; i++) s->removed[s->removals++] = s->missing[i] = s->absent[i];
        s->absents = 0;
        recreate(s);
        end_step(s);
        const int64_t toll = s->temperature * s->toll[draw(s, TOLLS)] >> 26;
        const int fewer = sum_of(s, s->absent, s->absents) < sum;
        if (!timely(s) || (!fewer && (s->absents > missed || s->length >= before + toll))) {
            undo(s);
            s->absents = missed;
            for (int64_t i = 0; i < missed; i++) s->absent[i] = s->missing[i];
        }
        for (int64_t i = 0; i < s->absents; i++) s->absence[s->absent[i]] += 1;
    }
    if (!s->absents && s->length < s->best_length) note(s);
}
