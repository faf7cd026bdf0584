/* Local search by exchange for minimum dominating set; app/search/domination/search.py describes the search and its
 * arrays, app/search/domination/plain.py has the same functions with the same results.
 *
 * A node dominates itself and its neighbours, its closed neighbourhood. */
#include "random.h"

enum { FREE = 0, OUTSIDE = 2, WEIGHED = 8, DOMINATED = 1 << 30 };

typedef struct {
    int64_t n, least;                    /* least: no dominating set costs less */
    const int64_t *indptr, *price;       /* [n+1]; [n] or null: all one */
    const int32_t *indices;              /* [nnz] */
    const uint8_t *fixed;                /* [n] FREE, inside, OUTSIDE */
    uint8_t *chosen, *best_chosen;       /* [n] */
    int32_t *times, *who;                /* [n] by how many nodes it is dominated (DOMINATED: it is
                                            * anyway, and nothing changes that); their numbers, xored */
    int64_t *weight, *score;             /* [n] */
    int64_t *stamp, *touched;            /* [n] tick of a node's last move; of the last change of `times` */
    int32_t *open, *open_at;             /* [n] undominated nodes, and each one's place */
    int32_t *heap, *heap_at;             /* [n] chosen nodes that are free, none better than its parent; places */
    int64_t heap_size, open_size, cost, best, steps, found_at, last_in, tick;
    uint64_t random;
} Search;

/* Runs `ACTION` for u = v and for every neighbour u of v. */
#define CLOSED(s, v, u, ACTION)                                                                               \
    for (int64_t j_##u = (s)->indptr[v] - 1, end_##u = (s)->indptr[(v) + 1]; j_##u < end_##u; ++j_##u) {      \
        const int32_t u = j_##u < (s)->indptr[v] ? (int32_t)(v) : (s)->indices[j_##u];                        \
        ACTION                                                                                                \
    }

INLINE int64_t price(const Search *s, int32_t v) { return s->price ? s->price[v] : 1; }

/* Whether moving a is better than moving b: the score by price, then the age, then the number. */
INLINE int better(const Search *s, int32_t a, int32_t b) {
    const __int128 x = (__int128)s->score[a] * price(s, b), y = (__int128)s->score[b] * price(s, a);
    if (x != y) return x > y;
    if (s->stamp[a] != s->stamp[b]) return s->stamp[a] < s->stamp[b];
    return a < b;
}

/* ---- who leaves next ---------------------------------------------------------------------------------------- */

INLINE void put(Search *s, int64_t at, int32_t v) {
    s->heap[at] = v;
    s->heap_at[v] = (int32_t)at;
}

/* v, whose score has risen, goes up. */
INLINE void rise(Search *s, int32_t v) {
    int64_t at = s->heap_at[v];
    for (int64_t up; at && better(s, v, s->heap[up = (at - 1) / 2]); at = up) put(s, at, s->heap[up]);
    put(s, at, v);
}

/* v, whose score has fallen, goes down. */
INLINE void sink(Search *s, int32_t v) {
    int64_t at = s->heap_at[v];
    for (int64_t down; (down = 2 * at + 1) < s->heap_size; at = down) {
        if (down + 1 < s->heap_size && better(s, s->heap[down + 1], s->heap[down])) ++down;
        if (!better(s, s->heap[down], v)) break;
        put(s, at, s->heap[down]);
    }
    put(s, at, v);
}

INLINE void leave(Search *s, int32_t v) {
    const int32_t last = s->heap[--s->heap_size];
    if (last == v) return;
    put(s, s->heap_at[v], last);
    rise(s, last);
    sink(s, last);
}

/* ---- moves -------------------------------------------------------------------------------------------------- */

INLINE void open_node(Search *s, int32_t u) {
    s->open_at[u] = (int32_t)s->open_size;
    s->open[s->open_size++] = u;
}

INLINE void close_node(Search *s, int32_t u) {
    const int32_t last = s->open[--s->open_size];
    s->open[s->open_at[u]] = last;
    s->open_at[last] = s->open_at[u];
}

/* The only one that dominates u. */
INLINE void only(Search *s, int32_t u, int64_t change) {
    const int32_t v = s->who[u];
    s->score[v] += change;
    if (s->fixed[v] != FREE) return;
    if (change > 0) rise(s, v);
    else sink(s, v);
}

/* u, which nobody dominates, is worth its weight to all that could; or no longer. */
INLINE void offer(Search *s, int32_t u, int64_t weight) {
    CLOSED(s, u, x, s->score[x] += weight;)
}

INLINE void add(Search *s, int32_t v) {
    const int64_t gain = s->score[v];
    ++s->tick;
    CLOSED(s, v, u, {
        if (s->times[u] == DOMINATED) continue;
        if (s->times[u] == 0) {
            close_node(s, u);
            offer(s, u, -s->weight[u]);
        } else if (s->times[u] == 1) only(s, u, s->weight[u]);
        ++s->times[u];
        s->who[u] ^= v;
        s->touched[u] = s->tick;
    })
    s->score[v] = -gain;
    s->chosen[v] = 1;
    s->stamp[v] = s->tick;
    s->cost += price(s, v);
    if (s->fixed[v] != FREE) return;
    put(s, s->heap_size++, v);
    rise(s, v);
}

INLINE void take_out(Search *s, int32_t v) {
    const int64_t loss = s->score[v];
    leave(s, v);
    ++s->tick;
    CLOSED(s, v, u, {
        if (s->times[u] == DOMINATED) continue;
        --s->times[u];
        s->who[u] ^= v;
        s->touched[u] = s->tick;
        if (s->times[u] == 0) {
            open_node(s, u);
            offer(s, u, s->weight[u]);
        } else if (s->times[u] == 1) only(s, u, -s->weight[u]);
    })
    s->score[v] = -loss;
    s->chosen[v] = 0;
    s->stamp[v] = s->tick;
    s->cost -= price(s, v);
}

/* ---- choices ------------------------------------------------------------------------------------------------ */

/* The chosen node that leaves, never `kept` unless it is the only one; -1 where none can. */
INLINE int32_t choose_loss(const Search *s, int64_t kept) {
    const int32_t *heap = s->heap;
    if (!s->heap_size) return -1;
    if (heap[0] != kept || s->heap_size == 1) return heap[0];
    return s->heap_size > 2 && better(s, heap[2], heap[1]) ? heap[2] : heap[1];
}

/* Whether something has changed around a node since it left. */
INLINE int is_fresh(const Search *s, int32_t v) {
    CLOSED(s, v, u, if (s->touched[u] > s->stamp[v]) return 1;)
    return 0;
}

/* The node that shall dominate u: the best fresh one, or where none is the best of all; -1 where all are outside. */
INLINE int32_t choose_gain(const Search *s, int32_t u) {
    int32_t best = -1, stale = -1;
    CLOSED(s, u, x, {
        if (s->fixed[x] == OUTSIDE) continue;
        if (best < 0 || better(s, x, best)) {
            if (is_fresh(s, x)) best = x;
            else if (stale < 0 || better(s, x, stale)) stale = x;
        }
    })
    return best < 0 ? stale : best;
}

/* ---- steps -------------------------------------------------------------------------------------------------- */

INLINE void keep_best(Search *s) {
    if (s->cost >= s->best) return;
    s->best = s->cost;
    s->found_at = s->steps;
    memcpy(s->best_chosen, s->chosen, (size_t)s->n);
}

/* Save a dominating set, then take nodes out until one is undominated and the cost is below `best`. */
INLINE void shrink(Search *s) {
    for (;;) {
        if (!s->open_size) keep_best(s);
        if (!s->heap_size || (s->open_size && s->cost < s->best)) return;
        take_out(s, choose_loss(s, -1));
    }
}

/* One more for each undominated node, or where there are more than WEIGHED for so many drawn. */
INLINE void weigh(Search *s) {
    const int few = s->open_size <= WEIGHED;
    for (int64_t i = 0; i < (few ? s->open_size : WEIGHED); ++i) {
        const int32_t u = s->open[few ? i : random_below(&s->random, (uint32_t)s->open_size)];
        ++s->weight[u];
        offer(s, u, 1);
    }
}

INLINE void exchange(Search *s) {
    const int32_t out = choose_loss(s, s->last_in);
    if (out >= 0) take_out(s, out);
    do {
        const int32_t in = choose_gain(s, s->open[random_below(&s->random, (uint32_t)s->open_size)]);
        if (in < 0 || s->cost + price(s, in) >= s->best) break;
        add(s, in);
        s->last_in = in;
    } while (s->price && s->open_size);
    weigh(s);
    if (!s->open_size) shrink(s);
}

/* Choose `count` nodes, then leave out those that are not needed, and more: see shrink. */
void lk_domination_load(Search *s, int64_t count, const int32_t *nodes) {
    for (int64_t i = 0; i < count; ++i) add(s, nodes[i]);
    shrink(s);
}

void lk_domination_exchange(Search *s, int64_t count) {
    for (int64_t i = 0; i < count && s->best > s->least; ++i) {
        ++s->steps;
        exchange(s);
    }
}
