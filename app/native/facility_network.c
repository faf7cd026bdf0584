/* Facilities of a large network: interchanges whose gains are found by searches of paths when they are asked for, so
 * that memory is that of a few numbers for each node. app/search/facility/network.py describes the search, its arrays,
 * and why paths end where they do; app/search/facility/network_plain.py has the same functions with the same results. */
#include "heap.h"

typedef struct {
    int64_t nodes, m, n;
    const int64_t *ptr;                /* [nodes + 1] */
    const int32_t *near;               /* [entries] */
    const int64_t *lengths;            /* [entries] */
    const int32_t *places, *customers; /* [m], [n] nodes, ascending */
    const int64_t *demand, *opening;   /* [nodes] */
    const uint8_t *forced, *may;       /* [nodes] facilities that stay; nodes that may be one */
    uint8_t *best_open;                /* [nodes] */
    int32_t *slot, *inside;            /* [nodes] place in the list of open ones, or -1; [slots] that list */
    int32_t *first, *second;           /* [nodes] the nearest open ones; `nodes`: none */
    int32_t *touched, *window;         /* [nodes], [m] room; the places that are looked at */
    int32_t *journal;                  /* [2 room] moves since the base */
    int64_t *d1, *d2;                  /* [nodes] how far these are */
    int64_t *away, *mark;              /* [nodes] of one search of paths, where `mark` has its number */
    int64_t *loss, *extra;             /* [slots] */
    int64_t *stamp;                    /* [nodes] the shake that opened it */
    int64_t most, slots, counted, strongest, radius, stride, room, never, far;
    int64_t size, value, base, best, steps, found_at, shaking, shakes, width, at, left, noted, searches;
    uint64_t random;
    Heap *heap;
    int64_t failed; /* no memory for the heap */
} Search;

#include "open_list.h"

/* What a node costs at a distance. */
INLINE int64_t cost(const Search *s, int64_t v, int64_t away) {
    if (!s->demand[v]) return 0;
    if (away >= s->never) return s->radius ? 1 : s->far;
    const int64_t found = away * s->demand[v];
    return s->radius ? found >= s->radius : found;
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

INLINE void put(Search *s, int64_t away, int64_t v) {
    if (heap_push(s->heap, away * s->nodes + v)) s->failed = 1;
}

INLINE int64_t take(Search *s, int64_t *v) {
    const int64_t key = heap_pop(s->heap);
    *v = key % s->nodes;
    return key / s->nodes;
}

/* A search from one node begins; `reach` it as far as something is. */
INLINE void begin(Search *s, int64_t v) {
    s->mark[v] = ++s->searches;
    s->away[v] = 0;
    s->heap->count = 0;
    put(s, 0, v);
}

INLINE void reach(Search *s, int64_t v, int64_t here) {
    for (int64_t j = s->ptr[v]; j < s->ptr[v + 1]; ++j) {
        const int32_t w = s->near[j];
        const int64_t there = here + s->lengths[j];
        if (s->mark[w] == s->searches && s->away[w] <= there) continue;
        s->mark[w] = s->searches;
        s->away[w] = there;
        put(s, there, w);
    }
}

/* ---- nodes and their facilities ---------------------------------------------------------------------------------- */

/* What a node adds to the sums, or takes out of them: sign -1. */
INLINE void count_in(Search *s, int64_t v, int64_t sign) {
    const int64_t here = cost(s, v, s->d1[v]);
    s->value += sign * here;
    if (s->first[v] < s->nodes) s->loss[s->slot[s->first[v]]] += sign * (cost(s, v, s->d2[v]) - here);
}

INLINE int nearer(int64_t away, int32_t f, int64_t other, int32_t g) { return away < other || (away == other && f < g); }

/* An open facility may be among the two nearest of a node; of equal ones the first counts as nearer. */
INLINE int offer(Search *s, int64_t v, int32_t f, int64_t away) {
    if (f == s->first[v]) {
        if (away >= s->d1[v]) return 0;
        s->d1[v] = away;
    } else if (nearer(away, f, s->d1[v], s->first[v])) {
        s->second[v] = s->first[v];
        s->d2[v] = s->d1[v];
        s->first[v] = f;
        s->d1[v] = away;
    } else if (nearer(away, f, s->d2[v], s->second[v])) {
        s->second[v] = f;
        s->d2[v] = away;
    } else {
        return 0;
    }
    return 1;
}

static void open_one(Search *s, int32_t f) {
    s->slot[f] = (int32_t)s->size;
    s->loss[s->size] = 0;
    s->inside[s->size++] = f;
    s->value += s->opening[f];
    begin(s, f);
    while (s->heap->count) {
        int64_t v, here = take(s, &v);
        if (here > s->away[v] || !nearer(here, f, s->d2[v], s->second[v])) continue;
        count_in(s, v, -1);
        offer(s, v, f, here);
        count_in(s, v, 1);
        reach(s, v, here);
    }
}

/* The nodes that a facility is among the two nearest of, into `touched`. */
static int64_t served_by(Search *s, int32_t f) {
    int64_t count = 0;
    ++s->searches;
    if (s->first[f] == f || s->second[f] == f) {
        s->touched[count++] = f;
        s->mark[f] = s->searches;
    }
    for (int64_t i = 0; i < count; ++i) {
        const int32_t v = s->touched[i];
        for (int64_t j = s->ptr[v]; j < s->ptr[v + 1]; ++j) {
            const int32_t w = s->near[j];
            if (s->mark[w] == s->searches || (s->first[w] != f && s->second[w] != f)) continue;
            s->touched[count++] = w;
            s->mark[w] = s->searches;
        }
    }
    return count;
}

/* A node without its second facility is offered what its neighbours have. */
static void ask_around(Search *s, int32_t v) {
    int found = s->slot[v] >= 0 && offer(s, v, v, 0);
    for (int64_t j = s->ptr[v]; j < s->ptr[v + 1]; ++j) {
        const int32_t w = s->near[j];
        if (s->first[w] < s->nodes) found |= offer(s, v, s->first[w], s->d1[w] + s->lengths[j]);
        if (s->second[w] < s->nodes) found |= offer(s, v, s->second[w], s->d2[w] + s->lengths[j]);
    }
    if (found) put(s, s->d2[v], v);
}

static void close_one(Search *s, int32_t f) {
    const int64_t count = served_by(s, f);
    for (int64_t i = 0; i < count; ++i) {
        const int32_t v = s->touched[i];
        count_in(s, v, -1);
        if (s->first[v] == f) {
            s->first[v] = s->second[v];
            s->d1[v] = s->d2[v];
        }
        s->second[v] = (int32_t)s->nodes;
        s->d2[v] = s->never;
    }
    const int32_t a = s->slot[f];
    s->slot[f] = -1;
    s->value -= s->opening[f];
    s->heap->count = 0;
    for (int64_t i = 0; i < count; ++i) ask_around(s, s->touched[i]);
    while (s->heap->count) {
        int64_t v, here = take(s, &v);
        if (here != s->d2[v]) continue;
        for (int64_t j = s->ptr[v]; j < s->ptr[v + 1]; ++j) {
            const int32_t w = s->near[j];
            if (s->mark[w] == s->searches && offer(s, w, s->second[v], here + s->lengths[j])) put(s, s->d2[w], w);
        }
    }
    for (int64_t i = 0; i < count; ++i) count_in(s, s->touched[i], 1);
    const int32_t last = (int32_t)--s->size;
    s->inside[a] = s->inside[last];
    s->loss[a] = s->loss[last];
    if (a != last) s->slot[s->inside[a]] = a;
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

/* Close one, open one; -1: none. At least one is open throughout. */
static void move(Search *s, int32_t out, int32_t in) {
    if (in >= 0) open_one(s, in);
    if (out >= 0) close_one(s, out);
}

/* What opening a place saves, and in extra [size] how much less closing a facility costs then. */
static int64_t saved_by(Search *s, int32_t f) {
    int64_t gain = -s->opening[f];
    memset(s->extra, 0, (size_t)s->size * sizeof *s->extra);
    begin(s, f);
    while (s->heap->count) {
        int64_t v, here = take(s, &v);
        if (here > s->away[v] || here >= s->d2[v]) continue;
        reach(s, v, here);
        if (!s->demand[v]) continue;
        const int64_t before = cost(s, v, s->d1[v]), now = cost(s, v, here);
        if (here < s->d1[v]) gain += before - now;
        if (s->first[v] < s->nodes)
            s->extra[s->slot[s->first[v]]] += cost(s, v, s->d2[v]) - (here < s->d1[v] ? before : now);
    }
    return gain;
}

INLINE int64_t served(const Search *s, int64_t u) { return cost(s, s->customers[u], s->d1[s->customers[u]]); }

INLINE int32_t place_at(const Search *s, int64_t k) { return s->width == s->m ? s->places[k] : s->window[k]; }

/* The places nearest to a customer, by length of path and then by number; fewer where its part of the network has no
 * more. */
static void look_near(Search *s, int64_t u) {
    int64_t count = 0, farthest = s->never;
    if (s->width == s->m) return;
    begin(s, s->customers[u]);
    while (s->heap->count) {
        int64_t v, here = take(s, &v), k = count;
        if (here > farthest) break;
        if (here > s->away[v]) continue;
        reach(s, v, here);
        if (!s->may[v]) continue;
        for (; k > 0 && s->away[s->window[k - 1]] == here && s->window[k - 1] > v; --k) s->window[k] = s->window[k - 1];
        s->window[k] = (int32_t)v;
        if (++count == s->width) farthest = here; /* where edges have length 0 nodes of lower numbers may follow */
    }
    if (count < s->width) s->width = count ? count : s->m;
}

INLINE void keep(Search *s) { save_open(s, s->nodes); }

/* ---- the search -------------------------------------------------------------------------------------------------- */

#include "facility_moves.h"

/* Each returns -1 without memory. */
int64_t lk_network_search(Search *s, int64_t steps) {
    Heap heap = {malloc(1024 * sizeof(int64_t)), 0, 1024};
    s->heap = &heap;
    s->failed = !heap.key;
    if (heap.key) search(s, steps);
    free(heap.key);
    return s->failed ? -1 : 0;
}

/* From nothing to the open facilities of the best solution, of which there is at least one. */
int64_t lk_network_load(Search *s) {
    Heap heap = {malloc(1024 * sizeof(int64_t)), 0, 1024};
    s->heap = &heap;
    s->failed = !heap.key;
    s->size = s->value = 0;
    for (int32_t v = 0; v < s->nodes; ++v) {
        s->slot[v] = -1;
        s->first[v] = s->second[v] = (int32_t)s->nodes;
        s->d1[v] = s->d2[v] = s->never;
    }
    for (int32_t v = 0; v < s->nodes && heap.key; ++v) {
        if (!s->best_open[v]) continue;
        s->slot[v] = (int32_t)s->size;
        s->loss[s->size] = 0;
        s->inside[s->size++] = v;
        s->value += s->opening[v];
        offer(s, v, v, 0);
        put(s, 0, v);
    }
    while (heap.count) {
        int64_t v, here = take(s, &v);
        for (int64_t j = s->ptr[v]; j < s->ptr[v + 1]; ++j) {
            const int32_t w = s->near[j];
            const int64_t there = here + s->lengths[j];
            int found = s->d1[v] == here && offer(s, w, s->first[v], there);
            if (s->second[v] < s->nodes && s->d2[v] == here) found |= offer(s, w, s->second[v], there);
            if (found) put(s, there, w);
        }
    }
    for (int64_t v = 0; v < s->nodes; ++v) count_in(s, v, 1);
    free(heap.key);
    return s->failed ? -1 : 0;
}

/* Facilities more, up to `most`, each the place `beside` [n] (a node, -1: none) of the customer that costs most, of equal
 * ones the first; fewer where that is open. The search begins anew with `load` afterwards. */
int64_t lk_network_farthest(Search *s, const int32_t *beside) {
    Heap heap = {malloc(1024 * sizeof(int64_t)), 0, 1024};
    s->heap = &heap;
    s->failed = !heap.key;
    while (!s->failed && s->size < s->most) {
        int64_t most = 0;
        int32_t found = -1;
        for (int64_t u = 0; u < s->n; ++u) {
            const int64_t here = beside[u] < 0 ? 0 : served(s, u);
            if (here <= most) continue;
            most = here;
            found = beside[u];
        }
        if (found < 0 || s->slot[found] >= 0) break;
        open_one(s, found);
    }
    free(heap.key);
    return s->failed ? -1 : 0;
}

/* Lists of nodes that wait, by their distance in a ring of lists. */
typedef struct {
    int32_t *next, *last, *head;
    int64_t waiting;
} Ring;

INLINE void ring_put(Ring *r, int32_t v, int64_t at) {
    r->next[v] = r->head[at];
    r->last[v] = -1;
    if (r->head[at] >= 0) r->last[r->head[at]] = v;
    r->head[at] = v;
    ++r->waiting;
}

INLINE void ring_take(Ring *r, int32_t v, int64_t at) {
    if (r->last[v] >= 0) r->next[r->last[v]] = r->next[v];
    else r->head[at] = r->next[v];
    if (r->next[v] >= 0) r->last[r->next[v]] = r->last[v];
    --r->waiting;
}

/* How far the nearest of chosen nodes [count], all different, is from each: away [nodes], at first `never` of all, which is
 * longer than any path. Lengths are 0..longest: nodes that wait are at most that much farther than the one whose turn
 * it is, so that a ring of longest + 1 lists has them in order (Dial, Algorithm 360, Communications of the ACM 1969).
 * room [2 nodes + longest + 1] is of the lists; before [nodes] or null: the node before each on its way, of several the
 * first one, where no length is 0. Returns 0, or 1 where a path is longer than `most`: each unit of length is a look at
 * a list, and it is given up. */
int64_t lk_network_nearest(int64_t nodes, const int64_t *ptr, const int32_t *near, const int64_t *lengths, int64_t count,
                           const int64_t *chosen, int64_t longest, int64_t most, int64_t never, int64_t *away,
                           int32_t *room, int32_t *before) {
    Ring r = {room, room + nodes, room + 2 * nodes, 0};
    const int64_t ring = longest + 1;
    for (int64_t at = 0; at < ring; ++at) r.head[at] = -1;
    for (int64_t i = 0; i < count; ++i) {
        away[chosen[i]] = 0;
        ring_put(&r, (int32_t)chosen[i], 0);
    }
    for (int64_t here = 0; r.waiting; ++here) {
        if (here > most) return 1;
        while (r.head[here % ring] >= 0) {
            const int32_t v = r.head[here % ring];
            ring_take(&r, v, here % ring);
            for (int64_t j = ptr[v]; j < ptr[v + 1]; ++j) {
                const int32_t w = near[j];
                const int64_t there = here + lengths[j];
                if (away[w] <= there) {
                    if (before && away[w] == there && v < before[w]) before[w] = v;
                    continue;
                }
                if (before) before[w] = v;
                if (away[w] < never) ring_take(&r, w, away[w] % ring);
                away[w] = there;
                ring_put(&r, w, there % ring);
            }
        }
    }
    return 0;
}
