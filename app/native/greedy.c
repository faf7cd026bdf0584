/* Plain heuristics for vertex covers, dominating sets and cuts: app/search/{cover,domination,cut}/baselines.py have the same,
 * step for step, without the library. */
#include <stdlib.h>

#include "common.h"
#include "gain_heap.h"
#include "random.h"

/* ---- heaps of nodes ----------------------------------------------------------------------------------------- */

/* A binary heap of nodes by their keys, ties to the lowest number; a node's key may change while it is in. `move`
 * brings v to its place among the first `size`, `NAME_add` appends it. */
#define HEAP(NAME, KEY, FIRST)                                                                                \
    typedef struct {                                                                                          \
        int32_t *node, *at; /* the heap, and each node's place in it */                                       \
        KEY *key;                                                                                             \
        int64_t size;                                                                                         \
    } NAME;                                                                                                   \
    INLINE int NAME##_before(const NAME *h, int32_t a, int32_t b) {                                           \
        return h->key[a] != h->key[b] ? h->key[a] FIRST h->key[b] : a < b;                                    \
    }                                                                                                         \
    INLINE void NAME##_put(NAME *h, int64_t at, int32_t v) {                                                  \
        h->node[at] = v;                                                                                      \
        h->at[v] = (int32_t)at;                                                                               \
    }                                                                                                         \
    static void NAME##_move(NAME *h, int32_t v) {                                                             \
        int64_t at = h->at[v];                                                                                \
        for (int64_t up; at && NAME##_before(h, v, h->node[up = (at - 1) / 2]); at = up)                      \
            NAME##_put(h, at, h->node[up]);                                                                   \
        for (int64_t down; (down = 2 * at + 1) < h->size; at = down) {                                        \
            if (down + 1 < h->size && NAME##_before(h, h->node[down + 1], h->node[down])) ++down;             \
            if (!NAME##_before(h, h->node[down], v)) break;                                                   \
            NAME##_put(h, at, h->node[down]);                                                                 \
        }                                                                                                     \
        NAME##_put(h, at, v);                                                                                 \
    }                                                                                                         \
    INLINE void NAME##_add(NAME *h, int32_t v) {                                                              \
        h->at[v] = (int32_t)h->size++;                                                                        \
        NAME##_move(h, v);                                                                                    \
    }                                                                                                         \
    INLINE int32_t NAME##_pop(NAME *h) {                                                                      \
        const int32_t v = h->node[0], last = h->node[--h->size];                                              \
        if (h->size) {                                                                                        \
            h->at[last] = 0;                                                                                  \
            NAME##_move(h, last);                                                                             \
        }                                                                                                     \
        return v;                                                                                             \
    }

HEAP(Least, int32_t, <)
HEAP(Scores, double, >)
HEAP(Largest, int64_t, >)

/* ---- covers by the smallest degree -------------------------------------------------------------------------- */

/* Leaves out the node of smallest residual degree and covers its neighbours, and so on; ties to the lowest number.
 * numbers: [3 n] scratch, gone: [n] of zeros. */
void lk_cover_least(int64_t n, const int64_t *indptr, const int32_t *indices, int32_t *numbers, uint8_t *gone,
                    uint8_t *in_cover) {
    Least h = {numbers, numbers + n, numbers + 2 * n, 0};
    for (int32_t v = 0; v < n; ++v) {
        h.key[v] = (int32_t)(indptr[v + 1] - indptr[v]);
        Least_add(&h, v);
    }
    while (h.size) {
        const int32_t v = Least_pop(&h);
        if (gone[v]) continue; /* in the cover */
        gone[v] = 1;
        for (int64_t i = indptr[v]; i < indptr[v + 1]; ++i) {
            const int32_t u = indices[i];
            if (gone[u]) continue;
            gone[u] = in_cover[u] = 1;
            for (int64_t j = indptr[u]; j < indptr[u + 1]; ++j) {
                const int32_t w = indices[j];
                if (gone[w]) continue;
                --h.key[w];
                Least_move(&h, w);
            }
        }
    }
}

/* ---- the one-hop formula, one node at a time ---------------------------------------------------------------- */

typedef struct {
    const int64_t *indptr;
    const int32_t *indices;
    double *weight;            /* [n] 1/degree^2 of live nodes, else 0; scores are sums of it over neighbours */
    int32_t *degree, *changed; /* [n]; [n] nodes whose scores may have changed */
    uint8_t *dead, *listed;    /* [n] */
} OneHop;

static double sum_of(const OneHop *g, int32_t v) {
    double sum = 0;
    for (int64_t j = g->indptr[v]; j < g->indptr[v + 1]; ++j) sum += g->weight[g->indices[j]];
    return sum;
}

INLINE double inverse_square(int32_t degree) { return degree ? 1.0 / ((double)degree * (double)degree) : 0.0; }

INLINE int64_t list_once(OneHop *g, int64_t count, int32_t v) {
    if (g->dead[v] || g->listed[v]) return count;
    g->listed[v] = 1;
    g->changed[count] = v;
    return count + 1;
}

/* v, whose edges have gone: the weights near it; returns how many nodes are listed as changed. */
static int64_t around(OneHop *g, int32_t v) {
    int64_t count = 0;
    for (int64_t i = g->indptr[v]; i < g->indptr[v + 1]; ++i) {
        const int32_t u = g->indices[i];
        if (g->dead[u]) continue;
        g->weight[u] = inverse_square(--g->degree[u]);
        count = list_once(g, count, u);
        for (int64_t j = g->indptr[u]; j < g->indptr[u + 1]; ++j) count = list_once(g, count, g->indices[j]);
    }
    return count;
}

/* Takes the live node of the largest score until no edge is left, ties to the lowest number.
 * floats: [2 n], ints: [4 n] scratch; bytes: [2 n] of zeros. */
void lk_cover_one_hop_single(int64_t n, const int64_t *indptr, const int32_t *indices, double *floats, int32_t *ints,
                             uint8_t *bytes, uint8_t *in_cover) {
    OneHop g = {indptr, indices, floats, ints, ints + n, bytes, bytes + n};
    Scores h = {ints + 2 * n, ints + 3 * n, floats + n, 0};
    for (int64_t v = 0; v < n; ++v) {
        g.degree[v] = (int32_t)(indptr[v + 1] - indptr[v]);
        g.weight[v] = inverse_square(g.degree[v]);
    }
    for (int32_t v = 0; v < n; ++v) {
        h.key[v] = sum_of(&g, v);
        Scores_add(&h, v);
    }
    while (h.size && h.key[h.node[0]] > 0) {
        const int32_t v = Scores_pop(&h);
        in_cover[v] = g.dead[v] = 1;
        g.weight[v] = 0;
        const int64_t count = around(&g, v);
        for (int64_t i = 0; i < count; ++i) {
            const int32_t u = g.changed[i];
            g.listed[u] = 0;
            h.key[u] = sum_of(&g, u);
            Scores_move(&h, u);
        }
    }
}

/* ---- the one-hop formula, by rounds ------------------------------------------------------------------------- */

enum { DENSE = 10 }; /* a graph is dense with more entries than n^2 / DENSE */

typedef struct {
    double score;
    int32_t node;
} Scored;

static int by_score(const void *left, const void *right) {
    const Scored *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

enum { NEAR = 1, CHANGED = 2, GONE = 4 }; /* marks: a neighbour has been taken; one of a neighbour; taken itself */

/* What is left of a graph after some rounds, whose scores are sums of weights over neighbours. */
typedef struct {
    int64_t n, numbered;             /* live nodes, those that have edges; all that have a number */
    int64_t *begin, *end;            /* [numbered] of rows: neighbours that are gone leave one when it is summed */
    int32_t *indices, *degree;       /* entries; live neighbours */
    int32_t *live, *name, *number;   /* live nodes, ascending; names in the graph; scratch */
    int32_t *taken;                  /* those of a round */
    double *weight, *score;          /* 1/degree^2 of live nodes, else 0 */
    uint8_t *blocked, *mark;         /* next to a taken node; what is written above */
    Scored *best;
} Left;

static void sum_row(Left *g, int32_t v) {
    const int64_t begin = g->begin[v], end = g->end[v];
    const double *weight = g->weight;
    int32_t *row = g->indices;
    int64_t kept = begin;
    double sum = 0;
    for (int64_t j = begin; j < end; ++j) {
        const int32_t u = row[j];
        const double addend = weight[u];
        row[kept] = u;
        kept += addend > 0;
        sum += addend; /* 0 changes no bit of it */
    }
    g->end[v] = kept;
    g->score[v] = sum;
}

/* Take `count` nodes out: degrees fall next to them, and with those the weights that others sum. In the order of the
 * live nodes, whose rows then come one after the other. */
static void take_out(Left *g, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const int32_t v = g->taken[i];
        g->mark[v] = GONE;
        g->weight[v] = g->score[v] = 0;
        for (int64_t j = g->begin[v]; j < g->end[v]; ++j) {
            const int32_t u = g->indices[j];
            g->blocked[u] = 0;
            g->mark[u] |= NEAR;
            --g->degree[u];
        }
    }
    for (int64_t i = 0; i < g->n; ++i) {
        const int32_t v = g->live[i];
        if ((g->mark[v] & (NEAR | GONE)) != NEAR) continue;
        g->weight[v] = inverse_square(g->degree[v]);
        g->mark[v] = CHANGED;
        for (int64_t j = g->begin[v]; j < g->end[v]; ++j) g->mark[g->indices[j]] |= CHANGED;
    }
    for (int64_t i = 0; i < g->n; ++i) {
        const int32_t v = g->live[i];
        if ((g->mark[v] & (CHANGED | GONE)) != CHANGED) continue;
        g->mark[v] = 0;
        sum_row(g, v);
    }
}

/* Number the live nodes anew, in their order: what is read here and there then lies close together. */
static void renumber(Left *g) {
    int64_t at = 0;
    for (int64_t i = 0; i < g->n; ++i) g->number[g->live[i]] = (int32_t)i;
    for (int64_t i = 0; i < g->n; ++i) {
        const int32_t v = g->live[i];
        const int64_t begin = at;
        for (int64_t j = g->begin[v]; j < g->end[v]; ++j)
            if (g->weight[g->indices[j]] > 0) g->indices[at++] = g->number[g->indices[j]];
        g->begin[i] = begin;
        g->end[i] = at;
        g->degree[i] = g->degree[v];
        g->name[i] = g->name[v];
        g->score[i] = g->score[v];
        g->mark[i] = 0;
        g->live[i] = (int32_t)i;
    }
    for (int64_t i = 0; i < g->n; ++i) g->weight[i] = inverse_square(g->degree[i]);
    g->numbered = g->n;
}

/* Live nodes without those that have no edge any more; returns the entries of their rows. */
static int64_t leave(Left *g) {
    int64_t kept = 0, entries = 0;
    for (int64_t i = 0; i < g->n; ++i) {
        const int32_t v = g->live[i];
        if (g->score[v] <= 0) continue;
        g->live[kept++] = v;
        entries += g->degree[v];
    }
    g->n = kept;
    if (4 * g->n < 3 * g->numbered) renumber(g);
    return entries;
}

/* The upper 16 bits of a positive number, which rise with it. */
INLINE int64_t coarse(double score) {
    uint64_t bits;
    memcpy(&bits, &score, 8);
    return (int64_t)(bits >> 48);
}

/* Brings the `count` best of `size` to the front, in any order (Hoare 1961). */
static void select_best(Scored *s, int64_t size, int64_t count) {
    int64_t low = 0, high = size - 1;
    while (low < high) {
        const Scored pivot = s[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (by_score(s + i, &pivot) < 0) ++i;
            while (by_score(s + j, &pivot) > 0) --j;
            if (i > j) break;
            const Scored other = s[i];
            s[i++] = s[j];
            s[j--] = other;
        }
        if (count <= j)
            high = j;
        else if (count > i)
            low = i;
        else
            return;
    }
}

/* The `count` nodes of the largest scores, ties to the lowest number, sorted; tally: [1 << 16] scratch. */
static void find_best(Left *g, int64_t count, int64_t *tally) {
    int64_t least = (1 << 16) - 1, found = 0;
    memset(tally, 0, sizeof *tally << 16);
    for (int64_t i = 0; i < g->n; ++i) ++tally[coarse(g->score[g->live[i]])];
    for (int64_t above = tally[least]; above < count; above += tally[least]) --least;
    for (int64_t i = 0; i < g->n; ++i) {
        const int32_t v = g->live[i];
        if (coarse(g->score[v]) >= least) g->best[found++] = (Scored){g->score[v], v};
    }
    select_best(g->best, found, count);
    qsort(g->best, (size_t)count, sizeof *g->best, by_score);
}

/* Of the `count` best nodes those that no better one blocks, which it does where nodes are taken apart; returns how many. */
static int64_t choose(Left *g, int64_t count, int apart) {
    int64_t taken = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t v = g->best[i].node;
        if (g->blocked[v]) continue;
        g->taken[taken++] = v;
        for (int64_t j = g->begin[v]; apart && j < g->end[v]; ++j) g->blocked[g->indices[j]] = 1;
    }
    return taken;
}

static void all_live(Left *g, int64_t n, const int64_t *indptr) {
    g->n = g->numbered = n;
    for (int64_t v = 0; v < n; ++v) {
        g->begin[v] = indptr[v];
        g->end[v] = indptr[v + 1];
        g->degree[v] = (int32_t)(indptr[v + 1] - indptr[v]);
        g->weight[v] = inverse_square(g->degree[v]);
        g->live[v] = g->name[v] = (int32_t)v;
    }
    for (int64_t v = 0; v < n; ++v) sum_row(g, (int32_t)v);
}

/* A round takes the best one in `one_in` of the nodes that have edges, no two adjacent (of a dense rest: adjacent or
 * not), until no edge is left. Returns 0, or -1 without memory. */
int lk_cover_one_hop_rounds(int64_t n, const int64_t *indptr, const int32_t *indices, int64_t one_in,
                            uint8_t *in_cover) {
    const size_t nodes = (size_t)n + 1, entries = (size_t)indptr[n] + 1;
    int64_t *longs = malloc((2 * nodes + (1 << 16)) * 8);
    int32_t *ints = malloc((5 * nodes + entries) * 4);
    double *scores = malloc(2 * nodes * 8);
    uint8_t *bytes = calloc(2 * nodes, 1);
    Scored *best = malloc(nodes * sizeof *best);
    const int room = longs && ints && scores && bytes && best;
    if (room) {
        Left g = {n, n, longs, longs + nodes, ints + 5 * nodes, ints, ints + nodes, ints + 2 * nodes, ints + 3 * nodes,
                  ints + 4 * nodes, scores, scores + nodes, bytes, bytes + nodes, best};
        memcpy(g.indices, indices, (entries - 1) * 4);
        all_live(&g, n, indptr);
        for (int64_t left = leave(&g); g.n; left = leave(&g)) {
            const int64_t count = (g.n + one_in - 1) / one_in;
            find_best(&g, count, longs + 2 * nodes);
            const int64_t taken = choose(&g, count, DENSE * left <= g.n * g.n);
            for (int64_t i = 0; i < taken; ++i) in_cover[g.name[g.taken[i]]] = 1;
            take_out(&g, taken);
        }
    }
    free(longs);
    free(ints);
    free(scores);
    free(bytes);
    free(best);
    return room ? 0 : -1;
}

/* ---- dominating sets ---------------------------------------------------------------------------------------- */

/* The heap's keys: undominated nodes that a node would dominate, by its price. */

/* Take the marks of v and its neighbours; gains around them fall. */
static void dominate(const int64_t *indptr, const int32_t *indices, int32_t v, uint8_t *dominated, int32_t *gain) {
    for (int64_t i = indptr[v] - 1; i < indptr[v + 1]; ++i) {
        const int32_t u = i < indptr[v] ? v : indices[i];
        if (dominated[u]) continue;
        dominated[u] = 1;
        --gain[u];
        for (int64_t j = indptr[u]; j < indptr[u + 1]; ++j) --gain[indices[j]];
    }
}

/* Nodes that dominate all that the chosen ones do not, in the order in which they are taken: each dominates most
 * undominated nodes for its price, ties to the lowest number. price: [n] or null; chosen, barred: [n] or null;
 * dominated: [n] nodes that need not be, changed; gain: [n] scratch, room: [n] entries of the heap; order: [n]. Returns how many. */
int64_t lk_dominate_greedy(int64_t n, const int64_t *indptr, const int32_t *indices, const double *price,
                           const uint8_t *chosen, const uint8_t *barred, uint8_t *dominated, int32_t *gain, void *room,
                           int32_t *order) {
    Gain *heap = room;
    int64_t size = 0, taken = 0;
    for (int32_t v = 0; v < n; ++v) {
        gain[v] = !dominated[v];
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) gain[v] += !dominated[indices[j]];
    }
    for (int32_t v = 0; chosen && v < n; ++v)
        if (chosen[v]) dominate(indptr, indices, v, dominated, gain);
    for (int32_t v = 0; v < n; ++v)
        if (!barred || !barred[v]) heap[size++] = (Gain){gain[v] / (price ? price[v] : 1.0), v};
    for (int64_t at = size / 2 - 1; at >= 0; --at) settle(heap, size, at);
    while (size) {
        const int32_t v = heap[0].node;
        const double key = gain[v] / (price ? price[v] : 1.0);
        if (gain[v] && key != heap[0].key) {
            heap[0].key = key; /* gains only fall: an old entry was an upper bound */
        } else {
            if (gain[v]) {
                order[taken++] = v;
                dominate(indptr, indices, v, dominated, gain);
            }
            heap[0] = heap[--size];
        }
        settle(heap, size, 0);
    }
    return taken;
}

/* Nodes of `order`, the last first, leave the dominating set where nothing needs them; times: [n] by how many nodes
 * each is dominated. */
void lk_dominate_needed(const int64_t *indptr, const int32_t *indices, const int64_t *order, int64_t count,
                        int64_t *times, uint8_t *left) {
    while (count--) {
        const int64_t v = order[count];
        int64_t j = indptr[v];
        while (j < indptr[v + 1] && times[indices[j]] > 1) ++j;
        if (j < indptr[v + 1] || times[v] <= 1) continue;
        left[v] = 0;
        --times[v];
        for (j = indptr[v]; j < indptr[v + 1]; ++j) --times[indices[j]];
    }
}

/* ---- cuts --------------------------------------------------------------------------------------------------- */

/* Puts v on its better side and tells its neighbours that have none: `pull` is the weight towards placed nodes of side 0
 * less that towards side 1. */
#define PLACE(v, TOLD)                                                                                        \
    placed[v] = 1;                                                                                            \
    sides[v] = pull[v] > 0;                                                                                   \
    for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {                                                     \
        const int32_t u = indices[j];                                                                         \
        if (placed[u]) continue;                                                                              \
        pull[u] += sides[v] ? -weights[j] : weights[j];                                                       \
        TOLD                                                                                                  \
    }

/* Places nodes one by one, next the one whose better side gains most over the other, ties to the lowest number, until
 * at least `most` entries have been looked at. ints: [2 n], longs: [2 n] scratch; placed: [n]; sides: [n].
 * size   nodes that an earlier call, which left the arrays as they are, has not placed; below 0: this is the first one
 * returns   nodes that are not placed */
int64_t lk_cut_greedy(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weights, int32_t *ints,
                      int64_t *longs, uint8_t *placed, uint8_t *sides, int64_t size, int64_t most) {
    Largest h = {ints, ints + n, longs, size < 0 ? 0 : size};
    int64_t *pull = longs + n;
    for (int32_t v = 0; size < 0 && v < n; ++v) {
        h.key[v] = pull[v] = placed[v] = 0;
        Largest_add(&h, v);
    }
    for (int64_t seen = 0; h.size && seen < most;) {
        const int32_t v = Largest_pop(&h);
        seen += indptr[v + 1] - indptr[v];
        PLACE(v, h.key[u] = pull[u] < 0 ? -pull[u] : pull[u]; Largest_move(&h, u);)
    }
    return h.size;
}

/* Places the nodes that lk_cut_greedy has left, in the order of their numbers. */
void lk_cut_greedy_rest(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weights, int64_t *longs,
                        uint8_t *placed, uint8_t *sides) {
    int64_t *pull = longs + n;
    for (int32_t v = 0; v < n; ++v) {
        if (placed[v]) continue;
        PLACE(v, )
    }
}

/* The end of the steepest descent from `sides` [n]: flips the node of the largest gain while it is above 0, ties to
 * the lowest number. ints: [2 n] scratch; gains: [n] of single flips. */
void lk_cut_descend(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weights, int32_t *ints,
                    int64_t *gains, uint8_t *sides) {
    Largest h = {ints, ints + n, gains, 0};
    for (int32_t v = 0; v < n; ++v) Largest_add(&h, v);
    while (n && gains[h.node[0]] > 0) {
        const int32_t v = h.node[0];
        sides[v] ^= 1;
        gains[v] = -gains[v];
        Largest_move(&h, v);
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
            const int32_t u = indices[j];
            gains[u] += sides[u] == sides[v] ? 2 * weights[j] : -2 * weights[j];
            Largest_move(&h, u);
        }
    }
}

enum { BLOCK = 64 };

/* The nodes of a block: the largest gain of those that do not rest (INT64_MIN: all do), of all of them, and the first step
 * at which this has to be looked at again. */
typedef struct {
    int64_t open, any, until;
} Top;

WIDE static Top top_of(const int64_t *gains, const int64_t *free_at, int64_t count, int64_t step) {
    Top top = {INT64_MIN, INT64_MIN, INT64_MAX};
    for (int64_t i = 0; i < count; ++i) {
        const int64_t open = free_at[i] <= step ? gains[i] : INT64_MIN, until = free_at[i] > step ? free_at[i] : INT64_MAX;
        top.open = open > top.open ? open : top.open;
        top.any = gains[i] > top.any ? gains[i] : top.any;
        top.until = until < top.until ? until : top.until;
    }
    return top;
}

/* Flips the node of the largest gain that does not rest, or whose flip gives a new best cut, ties to the lowest number; it
 * then rests for n/20 to n/10 flips, so that never all do. gains: [n] of single flips; free_at: [n], tops: [n / BLOCK + 1],
 * of zeros; sides: [n], whose cut is `value`; best: [n] the same, in the end the best sides found. */
void lk_cut_tabu(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weights, int64_t *gains,
                 int64_t *free_at, void *tops, uint8_t *sides, uint8_t *best, int64_t value, int64_t flips) {
    Top *top = tops;
    const int64_t rest = n / 20;
    uint64_t random = 0;
    int64_t cut = value;
    for (int64_t step = 0; n && step < flips; ++step) {
        int64_t most = INT64_MIN, v = 0;
        for (int64_t first = 0; first < n; first += BLOCK) {
            Top *here = top + first / BLOCK;
            if (here->until <= step)
                *here = top_of(gains + first, free_at + first, n - first < BLOCK ? n - first : BLOCK, step);
            const int64_t gain = cut + here->any > value ? here->any : here->open;
            if (gain <= most) continue;
            most = gain;
            v = first;
        }
        while (gains[v] != most || (free_at[v] > step && cut + most <= value)) ++v;
        cut += most;
        sides[v] ^= 1;
        gains[v] = -most;
        free_at[v] = step + 1 + rest + random_below(&random, (uint32_t)rest + 1);
        top[v / BLOCK].until = 0;
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
            const int32_t u = indices[j];
            gains[u] += sides[u] == sides[v] ? 2 * weights[j] : -2 * weights[j];
            top[u / BLOCK].until = 0;
        }
        if (cut <= value) continue;
        value = cut;
        memcpy(best, sides, (size_t)n);
    }
}
