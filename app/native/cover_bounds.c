/* Pieces of lower bounds for vertex cover (app/bounds): clique covers, violated odd cycles and cliques, and the
 * filling of a packing. Integers only: app/bounds/cover/plain.py has the same steps in Python, with the same results. */
#include <stdlib.h>

#include "heap.h"
#include "random.h"

/* ---- clique covers ------------------------------------------------------------------------------------------ */

typedef struct {
    int64_t n, cliques;
    const int64_t *indptr;
    const int32_t *indices;
    int32_t *order, *clique, *size, *met, *seen; /* [n] each */
} Cover;

/* Each node, in the given order, joins the largest clique that it is joined to entirely; ties to the oldest. */
static void greedy_cover(Cover *c) {
    c->cliques = 0;
    for (int64_t i = 0; i < c->n; ++i) c->clique[i] = -1;
    for (int64_t i = 0; i < c->n; ++i) {
        const int32_t node = c->order[i];
        int32_t best = -1, found = 0;
        for (int64_t j = c->indptr[node]; j < c->indptr[node + 1]; ++j) {
            const int32_t k = c->clique[c->indices[j]];
            if (k < 0) continue;
            if (c->met[k]++ == 0) c->seen[found++] = k;
        }
        for (int32_t j = 0; j < found; ++j) {
            const int32_t k = c->seen[j];
            if (c->met[k] == c->size[k]
                && (best < 0 || c->size[k] > c->size[best] || (c->size[k] == c->size[best] && k < best)))
                best = k;
            c->met[k] = 0;
        }
        if (best < 0) {
            best = (int32_t)c->cliques++;
            c->size[best] = 0;
        }
        c->clique[node] = best;
        c->size[best] += 1;
    }
}

/* What a clique cover leaves out at most: the sum over cliques of the largest weight. peak [n] is scratch. */
static int64_t left_out(const Cover *c, const int64_t *weights, int64_t *peak) {
    int64_t sum = 0;
    for (int64_t k = 0; k < c->cliques; ++k) peak[k] = 0;
    for (int64_t i = 0; i < c->n; ++i) {
        const int32_t k = c->clique[i];
        if (weights[i] > peak[k]) {
            sum += weights[i] - peak[k];
            peak[k] = weights[i];
        }
    }
    return sum;
}

/* A new order of the cliques: rank [cliques]. By turns at random: reversed, largest first, shuffled. */
static void rank_cliques(Cover *c, uint64_t *state, int32_t *rank, int32_t *list) {
    const int64_t k = c->cliques;
    const uint32_t kind = random_below(state, 4);
    if (kind == 0) {
        for (int64_t i = 0; i < k; ++i) list[i] = (int32_t)(k - 1 - i);
    } else if (kind == 1) { /* counting sort by size, the largest first, ties by number */
        int32_t at = 0, most = 0;
        for (int64_t i = 0; i < k; ++i) most = c->size[i] > most ? c->size[i] : most;
        for (int32_t s = most; s > 0; --s)
            for (int64_t i = 0; i < k && at < k; ++i)
                if (c->size[i] == s) list[at++] = (int32_t)i;
    } else {
        for (int64_t i = 0; i < k; ++i) list[i] = (int32_t)i;
        for (int64_t i = k - 1; i > 0; --i) {
            const uint32_t j = random_below(state, (uint32_t)(i + 1));
            const int32_t t = list[i];
            list[i] = list[j];
            list[j] = t;
        }
    }
    for (int64_t i = 0; i < k; ++i) rank[list[i]] = (int32_t)i;
}

/* order = its own nodes, stably sorted by the rank of their clique. start [cliques+1], next [n] are scratch. */
static void order_by_rank(Cover *c, const int32_t *rank, int32_t *start, int32_t *next) {
    memset(start, 0, (size_t)(c->cliques + 1) * sizeof *start);
    for (int64_t i = 0; i < c->n; ++i) start[rank[c->clique[i]] + 1] += 1;
    for (int64_t k = 0; k < c->cliques; ++k) start[k + 1] += start[k];
    for (int64_t i = 0; i < c->n; ++i) next[start[rank[c->clique[c->order[i]]]]++] = c->order[i];
    memcpy(c->order, next, (size_t)c->n * sizeof *next);
}

/* Greedy cover of `order`, then `rounds` rounds of iterated greedy. best [n]: the clique of each node in the best
 * cover, *value what it leaves out (input: what best leaves out, or -1 for none). order ends as the last round's.
 * fresh: order is a new one; else the cliques of the last call (clique) go on. Returns 0, or -1 without memory. */
int64_t lk_clique_cover(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weights,
                        int32_t *order, int32_t *best, int64_t *value, int64_t rounds, uint64_t *state) {
    int32_t *room = calloc((size_t)(7 * n + 8), sizeof *room);
    int64_t *peak = calloc((size_t)(n + 1), sizeof *peak);
    if (!room || !peak) {
        free(room);
        free(peak);
        return -1;
    }
    Cover c = {n, 0, indptr, indices, order, room, room + n, room + 2 * n, room + 3 * n};
    int32_t *rank = room + 4 * n, *start = room + 5 * n, *next = room + 6 * n + 4;
    for (int64_t round = 0; round <= rounds; ++round) {
        if (round > 0) {
            rank_cliques(&c, state, rank, start);
            order_by_rank(&c, rank, start, next);
        }
        greedy_cover(&c);
        const int64_t found = left_out(&c, weights, peak);
        if (*value < 0 || found < *value) {
            *value = found;
            memcpy(best, c.clique, (size_t)n * sizeof *best);
        }
    }
    free(room);
    free(peak);
    return 0;
}

/* ---- violated odd cycles ------------------------------------------------------------------------------------- */

typedef struct {
    int64_t n, one, hop, limit, most; /* prices are multiples of 1/one; hop: added per edge; limit of a walk's
                                         length; most settled states */
    const int64_t *indptr, *price;
    const int32_t *indices;
    int64_t *dist;                 /* [2n] */
    int32_t *stamp, *done, *parent; /* [2n] round of dist, round in which settled, state before */
    int32_t *walk, *at;            /* [4n+4] closed walk; [n] place on the stack, -1 */
    Heap heap;
} Cycles;

INLINE int64_t length(const Cycles *c, int64_t u, int64_t v) {
    const int64_t slack = c->price[u] + c->price[v] - c->one;
    return (slack > 0 ? slack : 0) + c->hop;
}

/* The shortest odd closed walk met from `root`: Dijkstra over (node, parity), both halves of the walk from one
 * search. An edge between two settled states of equal parity closes one. Returns whether ends [2] (states) were
 * found, -1 without memory. */
static int closest(Cycles *c, int32_t root, int32_t round, int32_t *ends) {
    const int64_t states = 2 * c->n;
    int64_t best = c->limit, settled = 0;
    int found = 0;
    c->heap.count = 0;
    c->dist[2 * (int64_t)root] = 0;
    c->stamp[2 * (int64_t)root] = round;
    c->parent[2 * (int64_t)root] = -1;
    if (heap_push(&c->heap, 2 * (int64_t)root) < 0) return -1;
    while (c->heap.count > 0 && settled < c->most) {
        const int64_t key = heap_pop(&c->heap), d = key / states, state = key % states;
        const int64_t u = state >> 1, parity = state & 1;
        if (2 * d + c->hop >= best) break;
        if (c->done[state] == round) continue;
        c->done[state] = round;
        settled += 1;
        for (int64_t j = c->indptr[u]; j < c->indptr[u + 1]; ++j) {
            const int64_t v = c->indices[j], same = 2 * v + parity, other = 2 * v + 1 - parity;
            const int64_t step = length(c, u, v), far = d + step;
            if (c->done[same] == round && far + c->dist[same] < best) {
                best = far + c->dist[same];
                ends[0] = (int32_t)state;
                ends[1] = (int32_t)same;
                found = 1;
            }
            if (2 * far >= best + c->hop || c->done[other] == round) continue;
            if (c->stamp[other] == round && c->dist[other] <= far) continue;
            c->stamp[other] = round;
            c->dist[other] = far;
            c->parent[other] = (int32_t)state;
            if (heap_push(&c->heap, far * states + other) < 0) return -1;
        }
    }
    return found;
}

/* A simple odd cycle out of the closed walk from ends[0] to the root and back to ends[1]; returns its length. */
static int64_t simple_cycle(Cycles *c, const int32_t *ends, int32_t *out) {
    int64_t steps = 0, half, depth = 0, count = 0;
    for (int32_t s = ends[0]; s >= 0; s = c->parent[s]) c->walk[steps++] = s >> 1;
    half = steps;
    for (int32_t s = ends[1]; c->parent[s] >= 0; s = c->parent[s]) c->walk[steps++] = s >> 1;
    for (int64_t i = half, j = steps - 1; i < j; ++i, --j) { /* the way back runs from the root */
        const int32_t t = c->walk[i];
        c->walk[i] = c->walk[j];
        c->walk[j] = t;
    }
    c->walk[steps++] = ends[0] >> 1;
    /* Even detours are dropped; the first odd one is a simple odd cycle. */
    for (int64_t i = 0; i < steps && count == 0; ++i) {
        const int32_t node = c->walk[i];
        const int64_t first = c->at[node];
        if (first >= 0 && (depth - first) % 2 == 1) {
            for (int64_t j = first; j < depth; ++j) out[count++] = c->walk[steps + j];
        } else if (first >= 0) {
            while (depth > first + 1) c->at[c->walk[steps + --depth]] = -1;
        } else {
            c->at[node] = (int32_t)depth;
            c->walk[steps + depth++] = node;
        }
    }
    while (depth > 0) c->at[c->walk[steps + --depth]] = -1;
    return count;
}

/* Odd cycles of length L with a price below (L+1)/2 by more than margin, at most one from each root; a root that
 * lies on `share` cycles of this call is passed over. price [n], in units of 1/one.
 * out_ptr [count+1], out [room] with room >= count * (n + 1) not needed: it stops where a cycle would not fit.
 * used [n] counts cycles by node, in and out. Returns the number of cycles, -1 without memory; *next: roots done. */
int64_t lk_odd_cycles(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *price, int64_t one,
                      int64_t hop, int64_t margin, int64_t most, int64_t share, const int32_t *roots, int64_t count,
                      int32_t *used, int64_t *out_ptr, int32_t *out, int64_t room, int64_t *next) {
    int64_t *dist = malloc((size_t)(2 * n) * sizeof *dist + 8), found = 0;
    int32_t *marks = calloc((size_t)(13 * n + 16), sizeof *marks), *cycle = marks + 7 * n;
    Cycles c = {n, one, hop, one - 2 * margin, most, indptr, price, indices, dist, marks, marks + 2 * n, marks + 4 * n,
                malloc((size_t)(8 * n + 16) * sizeof(int32_t)), marks + 6 * n, {malloc(1024 * sizeof *dist), 0, 1024}};
    int32_t ends[2];
    int64_t i = 0;
    if (!dist || !marks || !c.walk || !c.heap.key) found = -1;
    else
        for (int64_t j = 0; j < n; ++j) c.at[j] = -1;
    out_ptr[0] = 0;
    for (; found >= 0 && i < count; ++i) {
        if (used[roots[i]] >= share) continue;
        const int met = closest(&c, roots[i], (int32_t)(i + 1), ends);
        if (met < 0) found = -1;
        if (met <= 0) continue;
        const int64_t length = simple_cycle(&c, ends, cycle);
        int64_t sum = 0;
        for (int64_t j = 0; j < length; ++j) sum += price[cycle[j]];
        if (2 * (sum + margin) >= (length + 1) * one) continue;
        if (out_ptr[found] + length > room) break;
        memcpy(out + out_ptr[found], cycle, (size_t)length * sizeof *out);
        for (int64_t j = 0; j < length; ++j) used[cycle[j]] += 1;
        out_ptr[found + 1] = out_ptr[found] + length;
        found += 1;
    }
    *next = i;
    free(dist);
    free(marks);
    free(c.walk);
    free(c.heap.key);
    return found;
}

/* ---- violated cliques ---------------------------------------------------------------------------------------- */

/* Cliques of k >= 3 nodes with a price below k-1 by more than margin: from each root, the cheapest common neighbour
 * joins (ties to the lowest) until none is left. As lk_odd_cycles. */
int64_t lk_cliques(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *price, int64_t one,
                   int64_t margin, int64_t share, const int32_t *roots, int64_t count, int32_t *used, int64_t *out_ptr,
                   int32_t *out, int64_t room, int64_t *next) {
    int32_t *common = calloc((size_t)(4 * n + 8), sizeof *common), *met = common + n, *clique = met + n;
    int64_t found = common ? 0 : -1, i = 0;
    out_ptr[0] = 0;
    for (; found >= 0 && i < count; ++i) {
        const int32_t root = roots[i];
        int64_t left = indptr[root + 1] - indptr[root], k = 1, sum = price[root];
        if (used[root] >= share) continue;
        clique[0] = root;
        memcpy(common, indices + indptr[root], (size_t)left * sizeof *common);
        while (left > 0) {
            int32_t best = common[0];
            int64_t kept = 0;
            for (int64_t j = 1; j < left; ++j)
                if (price[common[j]] < price[best]) best = common[j];
            clique[k++] = best;
            sum += price[best];
            for (int64_t j = indptr[best]; j < indptr[best + 1]; ++j) met[indices[j]] = best + 1;
            for (int64_t j = 0; j < left; ++j)
                if (met[common[j]] == best + 1) common[kept++] = common[j];
            left = kept;
        }
        for (int64_t j = 0; j < k; ++j) /* the marks of this clique must not meet those of the next */
            for (int64_t e = indptr[clique[j]]; e < indptr[clique[j] + 1]; ++e) met[indices[e]] = 0;
        if (k < 3 || sum + margin >= (k - 1) * one) continue;
        if (out_ptr[found] + k > room) break;
        memcpy(out + out_ptr[found], clique, (size_t)k * sizeof *out);
        for (int64_t j = 0; j < k; ++j) used[clique[j]] += 1;
        out_ptr[found + 1] = out_ptr[found] + k;
        found += 1;
    }
    *next = i;
    free(common);
    return found;
}

/* ---- packings ------------------------------------------------------------------------------------------------ */

/* Raise each value of a packing, in the given order, as far as the slack of its nodes allows. */
void lk_fill_packing(int64_t count, const int64_t *order, const int64_t *ptr, const int32_t *nodes, int64_t *slack,
                     int64_t *value) {
    for (int64_t i = 0; i < count; ++i) {
        const int64_t k = order[i];
        int64_t least = INT64_MAX;
        for (int64_t j = ptr[k]; j < ptr[k + 1]; ++j) least = slack[nodes[j]] < least ? slack[nodes[j]] : least;
        if (least <= 0 || ptr[k] == ptr[k + 1]) continue;
        for (int64_t j = ptr[k]; j < ptr[k + 1]; ++j) slack[nodes[j]] -= least;
        value[k] += least;
    }
}
