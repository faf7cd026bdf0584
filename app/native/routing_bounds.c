/* Bounds of vehicle routes: sets of customers that a point enters too seldom (app/bounds/routing/separation.py), and
 * least routes that come back to a customer only from afar (app/bounds/routing/pricing.py). */
#include "common.h"

#define FAR (INT64_MAX / 4) /* above every cost */

/* From each seed a set grows by the customer of the largest key, ties to the lowest number:
 *     2 x(S : v) - degree[v] + rate * demand[v]
 * of those that x joins to S. Kept is where 2 ceil(demand(S) / capacity) - x(delta(S)) was largest: excess[s], of the
 * first size[s] customers of order[s * longest ...]. Rows of the point: to, x from begin[v] to begin[v + 1].
 * joins, state [n]: scratch; state is 0 on entry and on return. */
void lk_grow_sets(int64_t n, const int64_t *begin, const int32_t *to, const double *x, const double *degree,
                  const int64_t *demand, int64_t capacity, double rate, int64_t seeds, const int32_t *seed,
                  int64_t longest, int32_t *order, int32_t *size, double *excess, double *joins, uint8_t *state) {
    enum { AWAY, NEAR, INSIDE };
    for (int64_t s = 0; s < seeds; ++s) {
        int32_t *members = order + s * longest;
        int64_t count = 0, carried = 0, v = seed[s];
        double leaving = 0.0;
        for (int64_t k = 0; k < n; ++k) joins[k] = 0.0;
        excess[s] = -1e300;
        size[s] = 0;
        for (;;) {
            leaving = leaving + (degree[v] - 2.0 * joins[v]);
            carried += demand[v];
            members[count++] = (int32_t)v;
            state[v] = INSIDE;
            int64_t vehicles = carried / capacity + (carried % capacity > 0);
            if (vehicles < 1) vehicles = 1;
            const double missing = 2.0 * (double)vehicles - leaving;
            if (missing > excess[s]) {
                excess[s] = missing;
                size[s] = (int32_t)count;
            }
            if (count == longest) break;
            for (int64_t e = begin[v]; e < begin[v + 1]; ++e) {
                joins[to[e]] += x[e];
                if (state[to[e]] == AWAY) state[to[e]] = NEAR;
            }
            int64_t next = -1;
            double most = 0.0;
            for (int64_t k = 0; k < n; ++k) {
                if (state[k] != NEAR) continue;
                const double key = 2.0 * joins[k] - degree[k] + rate * (double)demand[k];
                if (next < 0 || key > most) {
                    next = k;
                    most = key;
                }
            }
            if (next < 0) break;
            v = next;
        }
        for (int64_t k = 0; k < n; ++k) state[k] = AWAY;
    }
}

typedef struct {
    int64_t n, width, capacity, room, top;
    const int64_t *begin;                       /* [n + 1] arcs of each customer */
    const int32_t *to, *carried, *block, *load; /* [arcs]; [arcs][width]; [arcs]; [n] */
    const int64_t *cost, *out;                  /* [arcs]; [n] from the depot, FAR where it cannot be */
    int64_t *dominant;                          /* [n << width] least cost of the labels of a subset so far */
    int64_t *least;                             /* [capacity + 1][n] least cost of a load of at most so much, or null */
    int32_t *head;                              /* [capacity + 1] */
    int64_t *value;                             /* [room] of labels: cost */
    int32_t *before, *next, *customer, *memory; /* [room] */
    int32_t *ends;                              /* [n][top] labels of the best routes that end at each customer, or -1 */
    int64_t *length;                            /* [n][top] their costs, ascending */
} Routes;

INLINE int64_t put_label(const Routes *r, int64_t made, int64_t load, int64_t customer, int64_t memory, int64_t cost,
                         int64_t before) {
    if (made == r->room) return -1;
    r->value[made] = cost;
    r->before[made] = (int32_t)before;
    r->customer[made] = (int32_t)customer;
    r->memory[made] = (int32_t)memory;
    r->next[made] = r->head[load];
    r->head[load] = (int32_t)made;
    return made + 1;
}

/* A route that ends with a label joins the best `top` of its last customer, the cheapest first. */
static void note_end(int64_t *length, int32_t *ends, int64_t top, int64_t label, int64_t cost) {
    int64_t at = top;
    while (at > 0 && cost < length[at - 1]) --at;
    if (at == top) return;
    for (int64_t k = top - 1; k > at; --k) {
        length[k] = length[k - 1];
        ends[k] = ends[k - 1];
    }
    length[at] = cost;
    ends[at] = (int32_t)label;
}

/* Labels in the order of their loads: a path from the depot to a customer, and which of the customer's neighbours it
 * remembers as visited. One that another of no more load, cost and memory is there for is dropped. Returns the number
 * of labels, or -1 where there is no room. */
int64_t lk_ng_routes(const Routes *r) {
    const int64_t n = r->n, sets = (int64_t)1 << r->width;
    int64_t made = 0;
    for (int64_t k = 0; k < n * sets; ++k) r->dominant[k] = FAR;
    for (int64_t q = 0; q <= r->capacity; ++q) r->head[q] = -1;
    for (int64_t k = 0; k < n * r->top; ++k) {
        r->ends[k] = -1;
        r->length[k] = FAR;
    }
    for (int64_t i = 0; i < n; ++i) {
        if (r->out[i] >= FAR) continue;
        if ((made = put_label(r, made, r->load[i], i, 1, r->out[i], -1)) < 0) return -1;
    }
    if (r->least)
        for (int64_t i = 0; i < n; ++i) r->least[i] = FAR;
    for (int64_t q = 1; q <= r->capacity; ++q) {
        int64_t *least = r->least ? r->least + q * n : 0;
        if (least) memcpy(least, least - n, (size_t)n * sizeof *least);
        for (int64_t label = r->head[q]; label >= 0; label = r->next[label]) {
            const int64_t i = r->customer[label], memory = r->memory[label], cost = r->value[label];
            int64_t *dominant = r->dominant + i * sets;
            if (dominant[memory] <= cost) continue;
            for (int64_t s = memory; s < sets; s = (s + 1) | memory)
                if (dominant[s] > cost) dominant[s] = cost;
            if (least && cost < least[i]) least[i] = cost;
            if (r->out[i] < FAR) note_end(r->length + i * r->top, r->ends + i * r->top, r->top, label, cost + r->out[i]);
            for (int64_t a = r->begin[i]; a < r->begin[i + 1]; ++a) {
                const int64_t j = r->to[a], load = q + r->load[j];
                if (load > r->capacity || (memory & r->block[a])) continue;
                int64_t kept = 1;
                const int32_t *carried = r->carried + a * r->width;
                for (int64_t b = 0; b < r->width; ++b)
                    if (memory >> b & 1) kept |= carried[b];
                const int64_t longer = cost + r->cost[a];
                if (r->dominant[j * sets + kept] <= longer) continue;
                if ((made = put_label(r, made, load, j, kept, longer, label)) < 0) return -1;
            }
        }
    }
    return made;
}

typedef struct {
    int64_t n, width, capacity, room, top, opens_at, closes_at; /* the latter two of the depot */
    const int64_t *begin;                       /* [n + 1] arcs of each customer */
    const int32_t *to, *carried, *block, *load; /* as of Routes */
    const int64_t *cost, *out;                  /* as of Routes */
    const int64_t *step, *away, *home; /* [arcs] from one service to the next customer; [n] from the depot; back, service too */
    const int64_t *opens, *closes;     /* [n] */
    int64_t *dominant; /* [n << width][capacity + 1] least cost of the labels of a subset and no more load so far */
    int64_t *value, *time;                         /* [room] of labels: cost, when service begins */
    int32_t *before, *customer, *memory, *carries; /* [room] */
    int32_t *heap;                                 /* [room] labels not yet looked at, the earliest first */
    int32_t *ends;                                 /* as of Routes */
    int64_t *length;                               /* as of Routes */
    int64_t *closed;                               /* [capacity + 1] least cost of the routes of each load */
} TimedRoutes;

/* Of two labels that begin at the same time the one made first. */
INLINE int earlier(const TimedRoutes *r, int32_t a, int32_t b) {
    return r->time[a] < r->time[b] || (r->time[a] == r->time[b] && a < b);
}

static void push_label(const TimedRoutes *r, int64_t count, int32_t label) {
    int64_t at = count;
    while (at > 0) {
        const int64_t up = (at - 1) / 2;
        if (!earlier(r, label, r->heap[up])) break;
        r->heap[at] = r->heap[up];
        at = up;
    }
    r->heap[at] = label;
}

/* The first of `count` labels leaves the heap. */
static int32_t pop_label(const TimedRoutes *r, int64_t count) {
    const int32_t found = r->heap[0], last = r->heap[count - 1];
    int64_t at = 0;
    for (;;) {
        int64_t down = 2 * at + 1;
        if (down >= count - 1) break;
        if (down + 1 < count - 1 && earlier(r, r->heap[down + 1], r->heap[down])) down += 1;
        if (!earlier(r, r->heap[down], last)) break;
        r->heap[at] = r->heap[down];
        at = down;
    }
    r->heap[at] = last;
    return found;
}

/* Labels in the order of time: as of lk_ng_routes, which also know when service begins. One that another of no more
 * time, load, cost and memory is there for is dropped. Returns the number of labels, or -1 where there is no room. */
int64_t lk_timed_routes(const TimedRoutes *r) {
    const int64_t n = r->n, sets = (int64_t)1 << r->width, loads = r->capacity + 1;
    int64_t made = 0, count = 0;
    for (int64_t k = 0; k < n * sets * loads; ++k) r->dominant[k] = FAR;
    for (int64_t q = 0; q < loads; ++q) r->closed[q] = FAR;
    for (int64_t k = 0; k < n * r->top; ++k) {
        r->ends[k] = -1;
        r->length[k] = FAR;
    }
    for (int64_t i = 0; i < n; ++i) {
        if (r->out[i] >= FAR) continue;
        int64_t time = r->opens_at + r->away[i];
        if (time < r->opens[i]) time = r->opens[i];
        if (time > r->closes[i]) continue;
        if (made == r->room) return -1;
        r->value[made] = r->out[i];
        r->time[made] = time;
        r->before[made] = -1;
        r->customer[made] = (int32_t)i;
        r->memory[made] = 1;
        r->carries[made] = r->load[i];
        push_label(r, count++, (int32_t)made++);
    }
    while (count) {
        const int32_t label = pop_label(r, count--);
        const int64_t i = r->customer[label], memory = r->memory[label], load = r->carries[label];
        const int64_t cost = r->value[label], time = r->time[label];
        int64_t *dominant = r->dominant + i * sets * loads;
        if (dominant[memory * loads + load] <= cost) continue;
        for (int64_t s = memory; s < sets; s = (s + 1) | memory)
            for (int64_t q = load; q < loads && dominant[s * loads + q] > cost; ++q) dominant[s * loads + q] = cost;
        if (r->out[i] < FAR && time + r->home[i] <= r->closes_at) {
            note_end(r->length + i * r->top, r->ends + i * r->top, r->top, label, cost + r->out[i]);
            if (cost + r->out[i] < r->closed[load]) r->closed[load] = cost + r->out[i];
        }
        for (int64_t a = r->begin[i]; a < r->begin[i + 1]; ++a) {
            const int64_t j = r->to[a], more = load + r->load[j];
            int64_t next = time + r->step[a];
            if (next < r->opens[j]) next = r->opens[j];
            if (next > r->closes[j] || more > r->capacity || (memory & r->block[a])) continue;
            int64_t kept = 1;
            const int32_t *carried = r->carried + a * r->width;
            for (int64_t b = 0; b < r->width; ++b)
                if (memory >> b & 1) kept |= carried[b];
            const int64_t longer = cost + r->cost[a];
            if (r->dominant[(j * sets + kept) * loads + more] <= longer) continue;
            if (made == r->room) return -1;
            r->value[made] = longer;
            r->time[made] = next;
            r->before[made] = label;
            r->customer[made] = (int32_t)j;
            r->memory[made] = (int32_t)kept;
            r->carries[made] = (int32_t)more;
            push_label(r, count++, (int32_t)made++);
        }
    }
    return made;
}
