/* The heaviest independent set of a dense graph by branch and bound on bit sets (app/bounds/cover/branch.py); what it
 * leaves out is the cheapest vertex cover.
 *
 * A node set is bounded by covering it greedily with cliques of the graph, of which an independent set has one node
 * each: the colouring bound of clique searches (Tomita and Kameda 2007) read on the complement, with bit sets as in
 * San Segundo, Rodriguez-Losada and Jimenez 2011. Of unit weights, a node that would open a clique too many is first
 * tried in an older one, one node of which moves (Tomita et al. 2010, "re-numbering").
 *
 * The recursion is a stack of levels on the heap, so that a search can stop after any number of tree nodes. */
#include <stdlib.h>

#include "dense_set.h"
#include "random.h"

INLINE int64_t first_bit(const uint64_t *set, int64_t words, int64_t from) {
    for (int64_t i = from; i < words; ++i)
        if (set[i]) return 64 * i + __builtin_ctzll(set[i]);
    return -1;
}

/* The members of `set` that row v is not joined to: how many, and the last of them. Without branches: of what comes
 * next no processor can tell. */
INLINE int64_t strangers(const uint64_t *set, const uint64_t *row, int64_t words, int64_t *last) {
    int64_t count = 0, at = 0;
    uint64_t some = 0;
    for (int64_t i = 0; i < words; ++i) {
        const uint64_t bits = set[i] & ~row[i];
        count += __builtin_popcountll(bits);
        at = bits ? i : at;
        some = bits ? bits : some;
    }
    *last = 64 * at + __builtin_ctzll(some | UINT64_C(1) << 63);
    return count;
}

/* Whether row v is joined to all members of `set`. */
INLINE int joins(const uint64_t *set, const uint64_t *row, int64_t words) {
    uint64_t any = 0;
    for (int64_t i = 0; i < words; ++i) any |= set[i] & ~row[i];
    return !any;
}

/* Row v joins an older clique k1 < most, the only member there that it is not joined to moves to a clique k2. */
INLINE int renumber(Dense *d, int64_t v, int64_t most, int64_t words) {
    const uint64_t *row = d->joined + v * words;
    for (int64_t k1 = 0; k1 + 1 < most; ++k1) {
        uint64_t *one = d->class + k1 * words;
        int64_t w;
        const int64_t count = strangers(one, row, words, &w);
        if (count > 1) continue;
        if (count == 0) {
            put(one, v);
            return 1;
        }
        for (int64_t k2 = k1 + 1; k2 < most; ++k2) {
            uint64_t *two = d->class + k2 * words;
            if (!joins(two, d->joined + w * words, words)) continue;
            drop(one, w);
            put(one, v);
            put(two, w);
            return 1;
        }
    }
    return 0;
}

/* colour, below, for a number of words that the compiler may know. */
INLINE void colour_with(Dense *d, int64_t level, int64_t need, int64_t words) {
    uint64_t *rest = d->rest, *tail = d->tail;
    int64_t sum = 0, count = 0, k = 0, at = 0, seen = 0;
    memcpy(rest, d->open + level * words, (size_t)words * 8);
    for (;;) {
        while (at < words && !rest[at]) ++at;
        if (at == words) break;
        uint64_t *class = d->class + k * words;
        const int64_t before = count;
        int64_t peak = 0, size = 0;
        for (int64_t i = 0; i < words; ++i) {
            tail[i] = rest[i];
            class[i] = 0;
        }
        for (int64_t v = first_bit(tail, words, at); v >= 0; v = first_bit(tail, words, v >> 6)) {
            const uint64_t *row = d->joined + v * words;
            seen += 1;
            drop(tail, v);
            drop(rest, v);
            if (d->unit && sum >= need && renumber(d, v, need, words)) continue;
            for (int64_t i = 0; i < words; ++i) tail[i] &= row[i];
            put(class, v);
            size += 1;
            if (d->weight[v] > peak) peak = d->weight[v];
            if (sum + peak > need) d->branch[level][count++] = (int32_t)v;
        }
        if (size == 0) continue; /* all went to older cliques */
        sum += peak;
        for (int64_t i = before; i < count; ++i) d->bound[level][i] = sum;
        k += 1;
    }
    d->left[level] = d->listed[level] = count;
    d->work += (seen + 1) * words;
}

/* Cliques that cover the candidates of a level; the rows that may lead beyond `need` are listed with their bounds:
 * a set without rows after the i-th weighs at most bound[i], a set without any of them at most `need`. */
WIDE static void colour(Dense *d, int64_t level, int64_t need) {
    switch (d->words) {
    case 1: colour_with(d, level, need, 1); break;
    case 2: colour_with(d, level, need, 2); break;
    case 3: colour_with(d, level, need, 3); break;
    case 4: colour_with(d, level, need, 4); break;
    case 5: colour_with(d, level, need, 5); break;
    case 6: colour_with(d, level, need, 6); break;
    case 7: colour_with(d, level, need, 7); break;
    case 8: colour_with(d, level, need, 8); break;
    default: colour_with(d, level, need, d->words);
    }
}

static int room_at(Dense *d, int64_t level) {
    if (!d->branch[level]) d->branch[level] = malloc((size_t)d->room * 4 + 8);
    if (!d->bound[level]) d->bound[level] = malloc((size_t)d->room * 8 + 8);
    return d->branch[level] && d->bound[level] ? 0 : -1;
}

void lk_dense_free(Dense *d) {
    if (!d) return;
    for (int64_t i = 0; d->branch && i <= d->room; ++i) free(d->branch[i]);
    for (int64_t i = 0; d->bound && i <= d->room; ++i) free(d->bound[i]);
    void *all[] = {d->node, d->weight, d->joined, d->open, d->branch, d->bound, d->left, d->listed, d->sum, d->chosen,
                   d->found, d->class, d->rest, d->tail, d};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
}

Dense *dense_room(int64_t n) {
    Dense *d = calloc(1, sizeof *d);
    if (!d) return 0;
    const size_t words = (size_t)((n + 63) / 64 + !n), rows = (size_t)n + 1;
    d->room = n;
    d->node = malloc((size_t)n * 4 + 8);
    d->weight = malloc((size_t)n * 8 + 8);
    d->joined = malloc(rows * words * 8);
    d->open = malloc(rows * words * 8);
    d->class = malloc(rows * words * 8);
    d->branch = calloc(rows, sizeof *d->branch);
    d->bound = calloc(rows, sizeof *d->bound);
    d->left = calloc(rows, 8);
    d->listed = calloc(rows, 8);
    d->sum = calloc(rows, 8);
    d->chosen = calloc(rows, 4);
    d->found = calloc(rows, 4);
    d->rest = calloc(words, 8);
    d->tail = calloc(words, 8);
    if (!d->node || !d->weight || !d->joined || !d->open || !d->class || !d->branch || !d->bound || !d->left
        || !d->listed || !d->sum || !d->chosen || !d->found || !d->rest || !d->tail || room_at(d, 0) < 0) {
        lk_dense_free(d);
        return 0;
    }
    return d;
}

void dense_rows(Dense *d, int64_t n) {
    d->n = n;
    d->words = (n + 63) / 64 + !n;
    memset(d->joined, 0, (size_t)((n + 1) * d->words) * 8);
}

void dense_begin(Dense *d, int64_t best, int64_t limit) {
    d->best = best;
    d->limit = limit;
    d->unit = 1;
    d->depth = d->n_found = 0;
    d->sum[0] = 0;
    memset(d->open, 0, (size_t)d->words * 8);
    for (int64_t i = 0; i < d->n; ++i) {
        d->unit &= d->weight[i] == 1;
        put(d->open, i);
    }
    colour(d, 0, best);
}

/* order [n]: the caller's numbers, row by row. best: weight of a set that is known; limit: no set is heavier.
 * Null without memory. */
Dense *lk_dense_new(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weights,
                    const int32_t *order, int64_t best, int64_t limit) {
    Dense *d = dense_room(n);
    int32_t *row = malloc((size_t)n * 4 + 8);
    if (!d || !row) {
        free(row);
        lk_dense_free(d);
        return 0;
    }
    dense_rows(d, n);
    for (int64_t i = 0; i < n; ++i) row[order[i]] = (int32_t)i;
    for (int64_t i = 0; i < n; ++i) {
        const int32_t v = order[i];
        d->node[i] = v;
        d->weight[i] = weights[v];
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) put(ROW(d->joined, i), row[indices[j]]);
    }
    free(row);
    dense_begin(d, best, limit);
    return d;
}

int dense_step(Dense *d) {
    const int64_t level = d->depth;
    int64_t *left = d->left + level;
    if (d->best >= d->limit) d->depth = -1;
    else if (*left == 0 || d->sum[level] + d->bound[level][*left - 1] <= d->best) d->depth -= 1;
    else {
        const int64_t v = d->branch[level][--*left], sum = d->sum[level] + d->weight[v];
        const uint64_t *from = ROW(d->open, level), *row = ROW(d->joined, v);
        uint64_t *to = ROW(d->open, level + 1), any = 0;
        drop(ROW(d->open, level), v);
        d->chosen[level] = (int32_t)v;
        for (int64_t i = 0; i < d->words; ++i) any |= to[i] = from[i] & ~row[i];
        d->nodes += 1;
        if (sum > d->best) {
            d->best = sum;
            d->n_found = level + 1;
            memcpy(d->found, d->chosen, (size_t)(level + 1) * 4);
        }
        if (!any) return 0;
        if (room_at(d, level + 1) < 0) return -1;
        d->sum[level + 1] = sum;
        d->depth = level + 1;
        colour(d, level + 1, d->best - sum);
    }
    return 0;
}

double dense_path(Dense *d, int64_t first, uint64_t *state) {
    double paths = 1, words = 0;
    for (int64_t level = 0; level >= 0 && d->left[level] > 0; ++level) {
        const int64_t count = d->left[level], before = d->work;
        const int64_t i = level ? (int64_t)random_below(state, (uint32_t)count) : first, v = d->branch[level][i];
        const int64_t sum = d->sum[level] + d->weight[v];
        const uint64_t *from = ROW(d->open, level), *row = ROW(d->joined, v);
        uint64_t *to = ROW(d->open, level + 1), any = 0;
        for (int64_t w = 0; w < d->words; ++w) to[w] = from[w] & ~row[w];
        for (int64_t j = i; j < count; ++j) drop(to, d->branch[level][j]);
        for (int64_t w = 0; w < d->words; ++w) any |= to[w];
        if (!any || sum > d->best) break;
        if (room_at(d, level + 1) < 0) return -1;
        d->sum[level + 1] = sum;
        colour(d, level + 1, d->best - sum);
        paths *= (double)count;
        words += paths * (double)(d->work - before);
    }
    return words;
}

/* Work on at most `nodes` tree nodes. Returns 0: there is more to do, 1: finished, -1: out of memory. */
int64_t lk_dense_run(Dense *d, int64_t nodes) {
    const int64_t last = d->nodes + nodes;
    while (d->depth >= 0 && d->nodes < last)
        if (dense_step(d) < 0) return -1;
    return d->depth < 0;
}

/* cover [n] = what the heaviest set found leaves out. Returns its number of nodes, 0 where none was found. */
int64_t lk_dense_result(const Dense *d, uint8_t *cover, int64_t *nodes) {
    *nodes = d->nodes;
    memset(cover, 1, (size_t)d->n);
    for (int64_t i = 0; i < d->n_found; ++i) cover[d->node[d->found[i]]] = 0;
    return d->n_found;
}
