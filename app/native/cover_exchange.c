/* Local search by exchange for minimum vertex cover; app/search/cover/exchange.py describes the search and its
 * arrays, app/search/cover/exchange_plain.py has the same functions with the same results.
 *
 * An edge u-v is two entries of the adjacency rows, j and mirror[j]; its number is the entry in the row of the
 * smaller end. Edge weights stand at both entries, so that the row loops read them in order. */
#include "random.h"

enum { BLOCK = 64, BARRED = -(1 << 30), MOST = 1 << 28, DRAWN = 50 };

typedef struct {
    int64_t n, padded, nnz;
    int64_t samples, ceiling;                /* nodes drawn for a removal, 0: all; mean weight that forgets */
    const int64_t *indptr, *node_weight;     /* [n+1]; [n] or null: all one */
    const int32_t *divisor;                  /* [padded] node_weight again, 1 beyond n */
    const int32_t *indices, *mirror;         /* [nnz] */
    uint8_t *in_cover, *best_cover, *fresh;  /* [n]; fresh: a neighbour changed since this node left */
    int32_t *score, *bar;                    /* [padded]; bar: 0 in the cover, BARRED outside */
    int32_t *weight, *weighted_degree;       /* [nnz], [n] */
    int64_t *stamp;                          /* [n] step of the last change */
    int32_t *cover, *cover_at;               /* [n] the cover as a list, and each node's place in it */
    int32_t *open, *open_at;                 /* [nnz/2], [nnz] uncovered edges, and each one's place */
    int32_t *top;                            /* [padded/BLOCK] scratch */
    double *ratio_top;                       /* the same */
    int64_t cover_size, open_size, cost, best, steps, found_at, total_weight, heavy, last_in;
    uint64_t random;
} Search;

/* ---- the cover and its scores ----------------------------------------------------------------------------- */

INLINE int32_t edge_of(const Search *s, int32_t v, int32_t u, int64_t j) {
    return v < u ? (int32_t)j : s->mirror[j];
}

INLINE void open_edge(Search *s, int32_t edge) {
    s->open_at[edge] = (int32_t)s->open_size;
    s->open[s->open_size++] = edge;
}

INLINE void close_edge(Search *s, int32_t edge) {
    const int32_t last = s->open[--s->open_size], at = s->open_at[edge];
    s->open[at] = last;
    s->open_at[last] = at;
}

INLINE int64_t price(const Search *s, int32_t v) { return s->node_weight ? s->node_weight[v] : 1; }

INLINE void add(Search *s, int32_t v) {
    const int32_t *indices = s->indices, *weight = s->weight;
    const uint8_t *in_cover = s->in_cover;
    int32_t *score = s->score;
    for (int64_t j = s->indptr[v], end = s->indptr[v + 1]; j < end; ++j) {
        const int32_t u = indices[j];
        if (in_cover[u]) score[u] += weight[j];
        else {
            score[u] -= weight[j];
            s->fresh[u] = 1;
            close_edge(s, edge_of(s, v, u, j));
        }
    }
    score[v] = -score[v];
    s->in_cover[v] = 1;
    s->bar[v] = 0;
    s->cover_at[v] = (int32_t)s->cover_size;
    s->cover[s->cover_size++] = v;
    s->cost += price(s, v);
}

INLINE void take_out(Search *s, int32_t v) {
    const int32_t *indices = s->indices, *weight = s->weight;
    const uint8_t *in_cover = s->in_cover;
    int32_t *score = s->score;
    for (int64_t j = s->indptr[v], end = s->indptr[v + 1]; j < end; ++j) {
        const int32_t u = indices[j];
        if (in_cover[u]) score[u] -= weight[j];
        else {
            score[u] += weight[j];
            s->fresh[u] = 1;
            open_edge(s, edge_of(s, v, u, j));
        }
    }
    const int32_t last = s->cover[--s->cover_size], at = s->cover_at[v];
    s->cover[at] = last;
    s->cover_at[last] = at;
    score[v] = -score[v];
    s->in_cover[v] = 0;
    s->bar[v] = BARRED;
    s->fresh[v] = 0;
    s->cost -= price(s, v);
}

/* Scores and uncovered edges from the cover and the weights. */
void lk_cover_rescore(Search *s) {
    s->open_size = 0;
    for (int32_t v = 0; v < s->n; ++v) {
        int32_t sum = 0;
        for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
            const int32_t u = s->indices[j];
            if (s->in_cover[u]) continue;
            sum += s->weight[j];
            if (v < u && !s->in_cover[v]) open_edge(s, (int32_t)j);
        }
        s->score[v] = s->in_cover[v] ? -sum : sum;
    }
}

void lk_cover_mirror(int64_t n, const int64_t *indptr, const int32_t *indices, int64_t *next, int32_t *mirror) {
    memcpy(next, indptr, (size_t)n * sizeof *next);
    for (int64_t v = 0; v < n; ++v)
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) mirror[j] = (int32_t)next[indices[j]]++;
}

/* ---- choices ---------------------------------------------------------------------------------------------- */

/* Whether moving a is better than moving b: gains more, or loses less, per unit of node weight; of equals the
 * older, then the lower. */
INLINE int better(const Search *s, int32_t a, int32_t b) {
    const int64_t x = s->score[a] * price(s, b), y = s->score[b] * price(s, a);
    if (x != y) return x > y;
    if (s->stamp[a] != s->stamp[b]) return s->stamp[a] < s->stamp[b];
    return a < b;
}

INLINE int32_t sampled_loss(Search *s) {
    int32_t best = -1;
    for (int64_t i = 0; i < s->samples; ++i) {
        const int32_t v = s->cover[random_below(&s->random, (uint32_t)s->cover_size)];
        if (s->bar[v] == 0 && (best < 0 || better(s, v, best))) best = v;
    }
    return best;
}

/* Score by node weight. Division rounds, but never turns an order around: the best of all is among those of the
 * largest quotient. What is barred is far below the least quotient, -MOST. */
INLINE double ratio(const Search *s, int64_t v) {
    return (double)s->score[v] / (double)s->divisor[v] + 1e9 * (double)s->bar[v];
}

/* The largest quotient of each block, then the best node of those that have it. */
INLINE int32_t weighted_loss(const Search *s) {
    const int64_t blocks = s->padded / BLOCK;
    double best = -1e300;
    int32_t found = -1;
    for (int64_t b = 0; b < blocks; ++b) {
        double lane[8] = {-1e300, -1e300, -1e300, -1e300, -1e300, -1e300, -1e300, -1e300};
        for (int64_t i = b * BLOCK; i < (b + 1) * BLOCK; i += 8)
            for (int k = 0; k < 8; ++k) lane[k] = ratio(s, i + k) > lane[k] ? ratio(s, i + k) : lane[k];
        for (int k = 1; k < 8; ++k) lane[0] = lane[k] > lane[0] ? lane[k] : lane[0];
        s->ratio_top[b] = lane[0];
        best = lane[0] > best ? lane[0] : best;
    }
    if (best < -2.0 * MOST) return -1;
    for (int64_t b = 0; b < blocks; ++b) {
        if (s->ratio_top[b] != best) continue;
        for (int32_t v = (int32_t)b * BLOCK; v < (b + 1) * BLOCK; ++v)
            if (ratio(s, v) == best && (found < 0 || better(s, v, found))) found = v;
    }
    return found;
}

/* The best score of each block, then the oldest node among the best blocks. */
INLINE int32_t scanned_loss(const Search *s) {
    const int32_t *score = s->score, *bar = s->bar;
    const int64_t blocks = s->padded / BLOCK;
    int32_t best = INT32_MIN, found = -1;
    for (int64_t b = 0; b < blocks; ++b) {
        int32_t top = INT32_MIN;
        for (int64_t i = b * BLOCK; i < (b + 1) * BLOCK; ++i) {
            const int32_t value = score[i] + bar[i];
            top = value > top ? value : top;
        }
        s->top[b] = top;
        best = top > best ? top : best;
    }
    if (best < -MOST) return -1;
    for (int64_t b = 0; b < blocks; ++b) {
        if (s->top[b] != best) continue;
        for (int32_t v = (int32_t)b * BLOCK; v < (b + 1) * BLOCK; ++v)
            if (score[v] + bar[v] == best && (found < 0 || s->stamp[v] < s->stamp[found])) found = v;
    }
    return found;
}

/* The node to remove, never `kept` unless it is the only one; -1 from an empty cover. */
INLINE int32_t choose_loss(Search *s, int64_t kept) {
    int32_t v = -1;
    if (s->cover_size == 0) return -1;
    if (s->cover_size == 1) return s->cover[0];
    const int barring = kept >= 0 && s->in_cover[kept];
    if (barring) s->bar[kept] = BARRED;
    if (s->samples) v = sampled_loss(s);
    if (v < 0) v = s->node_weight ? weighted_loss(s) : scanned_loss(s);
    if (barring) s->bar[kept] = 0;
    return v;
}

/* The end of an edge that may enter and gains more. */
INLINE int32_t choose_end(const Search *s, int32_t edge) {
    const int32_t u = s->indices[s->mirror[edge]], v = s->indices[edge];
    if (!s->fresh[u]) return v;
    if (!s->fresh[v]) return u;
    return better(s, u, v) ? u : v;
}

INLINE int32_t choose_gain(Search *s) {
    return choose_end(s, s->open[random_below(&s->random, (uint32_t)s->open_size)]);
}

/* The best end of as many draws as there are uncovered edges, at most DRAWN. */
INLINE int32_t choose_weighted_gain(Search *s) {
    const int64_t count = s->open_size <= DRAWN ? s->open_size : DRAWN;
    int32_t best = -1;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t v = choose_end(s, s->open[random_below(&s->random, (uint32_t)s->open_size)]);
        if (best < 0 || better(s, v, best)) best = v;
    }
    return best;
}

/* ---- edge weights ----------------------------------------------------------------------------------------- */

static void forget(Search *s) {
    int64_t total = 0;
    s->heavy = 0;
    for (int64_t v = 0; v < s->n; ++v) {
        int32_t sum = 0;
        for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
            s->weight[j] = (int32_t)((int64_t)s->weight[j] * 3 / 10);
            sum += s->weight[j];
        }
        s->weighted_degree[v] = sum;
        total += sum;
    }
    s->total_weight = total / 2;
    lk_cover_rescore(s);
}

INLINE void heavier(Search *s, int32_t v) {
    ++s->score[v];
    if (++s->weighted_degree[v] >= MOST) s->heavy = 1;
}

INLINE void weigh(Search *s) {
    if (s->ceiling == 0) return;
    for (int64_t i = 0; i < s->open_size; ++i) {
        const int32_t edge = s->open[i], back = s->mirror[edge];
        ++s->weight[edge];
        ++s->weight[back];
        heavier(s, s->indices[edge]);
        heavier(s, s->indices[back]);
    }
    s->total_weight += s->open_size;
    if (s->heavy || s->total_weight >= s->ceiling * (s->nnz / 2)) forget(s);
}

/* ---- steps ------------------------------------------------------------------------------------------------ */

INLINE void keep_best(Search *s) {
    if (s->cost >= s->best) return;
    s->best = s->cost;
    s->found_at = s->steps;
    memcpy(s->best_cover, s->in_cover, (size_t)s->n);
}

/* Save a cover, then remove nodes until an edge is uncovered and the cost is below `best`. */
INLINE void shrink(Search *s) {
    while (s->cover_size && (s->open_size == 0 || s->cost >= s->best)) {
        if (s->open_size == 0) keep_best(s);
        take_out(s, choose_loss(s, -1));
    }
}

INLINE void exchange(Search *s) {
    const int32_t out = choose_loss(s, s->last_in);
    if (out < 0) return;
    take_out(s, out);
    const int32_t in = choose_gain(s);
    add(s, in);
    s->stamp[out] = s->stamp[in] = s->steps;
    s->last_in = in;
    weigh(s);
    if (s->open_size == 0) shrink(s);
}

INLINE void weighted_exchange(Search *s) {
    int added = 0;
    for (int i = 0; i < 2; ++i) {
        const int32_t out = choose_loss(s, s->last_in);
        if (out < 0) break;
        take_out(s, out);
        s->stamp[out] = s->steps;
    }
    while (s->open_size) {
        const int32_t in = choose_weighted_gain(s);
        if (s->cost + price(s, in) >= s->best) break;
        add(s, in);
        s->stamp[in] = s->steps;
        s->last_in = in;
        weigh(s);
        ++added;
    }
    if (s->open_size == 0) shrink(s);
    else if (!added) weigh(s);
}

void lk_cover_shrink(Search *s) { shrink(s); }

WIDE void lk_cover_exchange(Search *s, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        ++s->steps;
        exchange(s);
    }
}

WIDE void lk_cover_weighted_exchange(Search *s, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        ++s->steps;
        weighted_exchange(s);
    }
}
