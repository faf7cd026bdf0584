/* Influence: reverse reachable sets, how many of them a choice of nodes hits, and cascades forward;
 * app/search/influence/sampling.py describes the arrays, app/search/influence/plain.py has the same functions with the
 * same results. A set, and a world, is a function of the key and of its own number. */
#include "random.h"

enum { MOST_HITS = 48 };                 /* arcs of one node that a table may make live at once */
static const uint64_t GAMMA = UINT64_C(0x9E3779B97F4A7C15);

typedef struct {
    int64_t n, threshold, rooted;        /* threshold: of linear thresholds, else cascades; rooted: set i begins at i */
    const int64_t *in_ptr, *out_ptr;     /* [n+1] */
    const int32_t *into, *out;           /* [m] tails of the arcs into each node, heads of those out of it */
    const uint64_t *limit;               /* [m] of `into`: live where 32 bits are below; thresholds: sums so far */
    const uint64_t *share;               /* [m] of `out`: the same for one arc alone */
    const int32_t *table;                /* [n] which table tells how many arcs into a node are live, -1: none */
    const int64_t *table_ptr;
    const uint64_t *odds;                /* 53 bits below odds[k]: at most k arcs are live */
} Diffusion;

/* What is drawn for number i of a key: the output i of its stream. */
INLINE uint64_t drawn(uint64_t key, uint64_t i) {
    uint64_t state = key + i * GAMMA;
    return random_bits(&state);
}

/* A whole number in [0, bound), bound < 2^31, of all 64 bits. */
INLINE int64_t below(uint64_t bits, int64_t bound) {
    const uint64_t low = ((bits & UINT64_C(0xFFFFFFFF)) * (uint64_t)bound) >> 32;
    return (int64_t)(((bits >> 32) * (uint64_t)bound + low) >> 32);
}

typedef struct {
    int64_t *seen;                       /* [n] the last set that has reached a node, plus one */
    int32_t *queue;                      /* [n] */
    int64_t stamp, size;
    const uint8_t *wanted;               /* [n] the set ends at such a node, or null */
    int hit;
} Reach;

INLINE void reach(Reach *r, int32_t u) {
    if (r->seen[u] == r->stamp) return;
    r->seen[u] = r->stamp;
    r->queue[r->size++] = u;
    r->hit |= r->wanted && r->wanted[u];
}

/* Where all arcs into a node are alike: how many are live, then which, each subset of that size being as likely. */
INLINE void by_table(const Diffusion *d, Reach *r, int32_t v, uint64_t *state) {
    const uint64_t *odds = d->odds + d->table_ptr[d->table[v]];
    const int64_t most = d->table_ptr[d->table[v] + 1] - d->table_ptr[d->table[v]];
    const int64_t first = d->in_ptr[v], degree = d->in_ptr[v + 1] - first;
    const uint64_t draw = random_bits(state) >> 11;
    int64_t chosen[MOST_HITS], count = 0, live = 0;
    while (live < most && draw >= odds[live]) ++live;
    while (count < live && !r->hit) {
        const int64_t at = below(random_bits(state), degree);
        int64_t same = 0;
        while (same < count && chosen[same] != at) ++same;
        if (same < count) continue;
        chosen[count++] = at;
        reach(r, d->into[first + at]);
    }
}

INLINE void by_coins(const Diffusion *d, Reach *r, int32_t v, uint64_t *state) {
    for (int64_t j = d->in_ptr[v]; j < d->in_ptr[v + 1] && !r->hit; ++j)
        if (random_bits(state) >> 32 < d->limit[j]) reach(r, d->into[j]);
}

/* At most one arc into a node is live: the first whose sum of shares is above a draw. */
INLINE void by_threshold(const Diffusion *d, Reach *r, int32_t v, uint64_t *state) {
    const uint64_t draw = random_bits(state) >> 32;
    int64_t low = d->in_ptr[v], high = d->in_ptr[v + 1];
    const int64_t end = high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (d->limit[middle] > draw) high = middle;
        else low = middle + 1;
    }
    if (low < end) reach(r, d->into[low]);
}

/* The nodes from which a random node is reached along live arcs: in r->queue. */
static void reverse(const Diffusion *d, Reach *r, uint64_t key, int64_t i) {
    uint64_t state = drawn(key, (uint64_t)i);
    r->stamp = i + 1;
    r->size = r->hit = 0;
    reach(r, (int32_t)(d->rooted ? i : below(random_bits(&state), d->n)));
    for (int64_t at = 0; at < r->size && !r->hit; ++at) {
        const int32_t v = r->queue[at];
        if (d->in_ptr[v] == d->in_ptr[v + 1]) continue;
        if (d->threshold) by_threshold(d, r, v, &state);
        else if (d->table[v] >= 0) by_table(d, r, v, &state);
        else by_coins(d, r, v, &state);
    }
}

/* Sets first .. first + count - 1, one behind the other in nodes [room], their sizes in sizes [count]; ends before
 * one that no longer fits. nodes null: sizes alone. Returns how many were made. */
int64_t lk_influence_sets(const Diffusion *d, uint64_t key, int64_t first, int64_t count, int64_t *seen,
                          int32_t *queue, int64_t *sizes, int32_t *nodes, int64_t room) {
    Reach r = {seen, queue, 0, 0, 0, 0};
    int64_t used = 0;
    for (int64_t i = 0; i < count; ++i) {
        reverse(d, &r, key, first + i);
        if (nodes) {
            if (used + r.size > room) {
                /* The next call makes this set anew. */
                for (int64_t j = 0; j < r.size; ++j) seen[queue[j]] = 0;
                return i;
            }
            memcpy(nodes + used, queue, (size_t)r.size * sizeof *nodes);
            used += r.size;
        }
        sizes[i] = r.size;
    }
    return count;
}

/* Of these sets how many hold a wanted node; each is left as soon as one is found. */
int64_t lk_influence_hits(const Diffusion *d, uint64_t key, int64_t first, int64_t count, int64_t *seen,
                          int32_t *queue, const uint8_t *wanted) {
    Reach r = {seen, queue, 0, 0, wanted, 0};
    int64_t hits = 0;
    for (int64_t i = 0; i < count; ++i) {
        reverse(d, &r, key, first + i);
        hits += r.hit;
    }
    return hits;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* How many nodes become active in each of the worlds first .. first + count - 1 when the seeds [k] do, in `active`
 * [count]. A world says of each arc whether it is live (cascades), of each node which threshold it has: whatever the
 * seeds are it is the same world. seen [n] as above, filled [n] what a node has heard so far. */
void lk_influence_worlds(const Diffusion *d, uint64_t key, int64_t first, int64_t count, const int32_t *seeds, int64_t k,
                         int64_t *seen, int32_t *queue, int64_t *heard_in, uint64_t *filled, int64_t *active) {
    for (int64_t i = 0; i < count; ++i) {
        const uint64_t world = drawn(key, (uint64_t)(first + i));
        Reach r = {seen, queue, first + i + 1, 0, 0, 0};
        for (int64_t j = 0; j < k; ++j) reach(&r, seeds[j]);
        for (int64_t at = 0; at < r.size; ++at) {
            const int32_t u = queue[at];
            for (int64_t j = d->out_ptr[u]; j < d->out_ptr[u + 1]; ++j) {
                const int32_t v = d->out[j];
                if (seen[v] == r.stamp) continue;
                if (!d->threshold) {
                    if (drawn(world, (uint64_t)j) >> 32 < d->share[j]) reach(&r, v);
                    continue;
                }
                if (heard_in[v] != r.stamp) {
                    heard_in[v] = r.stamp;
                    filled[v] = 0;
                }
                filled[v] += d->share[j];
                if (filled[v] > drawn(world, (uint64_t)v) >> 32) reach(&r, v);
            }
        }
        active[i] = r.size;
    }
}
