/* The heaviest clique of a sparse graph, root by root (app/bounds/clique/roots.py).
 *
 * Nodes are numbered in a degeneracy order. Every clique has a first node, its root, and lies otherwise among the
 * root's later neighbours, which are few: a small dense graph, whose complement clique.c searches for its heaviest
 * independent set. Before that, nodes that weigh too little with their neighbours there are taken off one after the
 * other, and the rest is ordered by doing so on.
 *
 * All roots share the best clique. What a root may still hold stands in `bound`, so that a search can stop after any
 * amount of work, and leave a root for later once it has cost `each`. */
#include <stdlib.h>

#include "dense_set.h"

#define READS 16 /* entries that are read in the time of a word of bit sets */

typedef struct {
    int64_t n, n_roots, each; /* each: work on one root at most, 0: no limit */
    int64_t at, active, begun, best, n_found, found_at, work; /* found_at: the work done when the best was found */
    const int64_t *later_ptr;
    const int32_t *later;
    const int64_t *weight;
    const int32_t *roots; /* [n_roots] in the order of the search */
    int64_t *bound;       /* [n] no clique with this root weighs more than this, or than `best` */
    int32_t *found;       /* the best clique, where this search has found it */
    int32_t *place;       /* [n] -1 between calls */
    int32_t *node, *order; /* [most] scratch */
    int64_t *load;
    Dense *dense;
} Roots;

Dense *lk_roots_room(int64_t most) { return dense_room(most); }

void lk_roots_free(Dense *d) { lk_dense_free(d); }

/* The graph on the later neighbours of v: rows of bits in `near`; load: what each weighs with its neighbours. Returns
 * how many they are. */
static int64_t neighbourhood(Roots *r, int64_t v, uint64_t **near, int64_t *words) {
    const int64_t k = r->later_ptr[v + 1] - r->later_ptr[v];
    const int32_t *later = r->later + r->later_ptr[v];
    *words = (k + 63) / 64 + !k;
    *near = r->dense->open;
    memset(*near, 0, (size_t)(k * *words) * 8);
    for (int64_t i = 0; i < k; ++i) {
        r->place[later[i]] = (int32_t)i;
        r->load[i] = r->weight[later[i]];
        r->node[i] = later[i];
    }
    int64_t read = 0;
    for (int64_t i = 0; i < k; ++i) {
        read += r->later_ptr[later[i] + 1] - r->later_ptr[later[i]];
        for (int64_t j = r->later_ptr[later[i]]; j < r->later_ptr[later[i] + 1]; ++j) {
            const int64_t p = r->place[r->later[j]];
            if (p < 0) continue;
            put(*near + i * *words, p);
            put(*near + p * *words, i);
            r->load[i] += r->weight[later[p]];
            r->load[p] += r->weight[later[i]];
        }
    }
    r->dense->work += (read + k * k) / READS + 1;
    for (int64_t i = 0; i < k; ++i) r->place[later[i]] = -1;
    return k;
}

/* Take off the node of least load again and again: those that no clique heavier than `need` holds, then the others,
 * the last of them first in `order`. Returns how many these are; *top: no clique weighs more. */
static int64_t peel(Roots *r, int64_t k, const uint64_t *near, int64_t words, int64_t need, int64_t *top) {
    int64_t kept = -1;
    *top = 0;
    for (int64_t left = k; left > 0; --left) {
        int64_t least = -1;
        for (int64_t i = 0; i < k; ++i)
            if (r->load[i] >= 0 && (least < 0 || r->load[i] < r->load[least])) least = i;
        if (r->load[least] > *top) *top = r->load[least];
        if (kept < 0 && r->load[least] > need) kept = left;
        if (kept >= 0) r->order[left - 1] = (int32_t)least;
        r->load[least] = -1;
        for (int64_t w = 0; w < words; ++w)
            for (uint64_t bits = near[least * words + w]; bits; bits &= bits - 1) {
                const int64_t i = 64 * w + __builtin_ctzll(bits);
                if (r->load[i] >= 0) r->load[i] -= r->weight[r->node[least]];
            }
    }
    return kept < 0 ? 0 : kept;
}

/* Heavy nodes first; of equal ones the order stays. */
static void by_weight(Roots *r, int64_t m) {
    for (int64_t i = 1; i < m; ++i) {
        const int32_t a = r->order[i];
        const int64_t weight = r->weight[r->node[a]];
        int64_t j = i;
        for (; j > 0 && r->weight[r->node[r->order[j - 1]]] < weight; --j) r->order[j] = r->order[j - 1];
        r->order[j] = a;
    }
}

/* The dense graph: rows in the given order, joined where the nodes are not. */
static void strangers(Roots *r, int64_t k, int64_t m, const uint64_t *near, int64_t words) {
    Dense *d = r->dense;
    int32_t *row = d->chosen;
    dense_rows(d, m);
    for (int64_t i = 0; i < k; ++i) row[i] = -1;
    for (int64_t a = 0; a < m; ++a) row[r->order[a]] = (int32_t)a;
    for (int64_t a = 0; a < m; ++a) {
        uint64_t *joined = ROW(d->joined, a);
        d->node[a] = r->node[r->order[a]];
        d->weight[a] = r->weight[d->node[a]];
        for (int64_t w = 0; w < d->words; ++w) joined[w] = 64 * w + 64 <= m ? ~UINT64_C(0) : (UINT64_C(1) << (m & 63)) - 1;
        drop(joined, a);
        for (int64_t w = 0; w < words; ++w)
            for (uint64_t bits = near[r->order[a] * words + w]; bits; bits &= bits - 1) {
                const int32_t b = row[64 * w + __builtin_ctzll(bits)];
                if (b >= 0) drop(joined, b);
            }
    }
}

/* The search below v begins; returns 0 where nothing there is heavier than the best. */
static int begin(Roots *r, int64_t v) {
    Dense *d = r->dense;
    uint64_t *near;
    int64_t words, top;
    if (r->weight[v] > r->best) {
        r->best = r->weight[v];
        r->found[0] = (int32_t)v;
        r->n_found = 1;
        r->found_at = d->work;
    }
    const int64_t k = neighbourhood(r, v, &near, &words), need = r->best - r->weight[v];
    const int64_t m = peel(r, k, near, words, need, &top);
    if (r->weight[v] + top < r->bound[v]) r->bound[v] = r->weight[v] + top;
    if (!m || r->bound[v] <= r->best) return 0;
    by_weight(r, m);
    strangers(r, k, m, near, words);
    dense_begin(d, need, INT64_MAX);
    return 1;
}

/* What the root under search may still hold: the branch it is in, else the next one. */
static void note(Roots *r, int64_t v) {
    const Dense *d = r->dense;
    int64_t most = r->best;
    if (d->depth >= 0) {
        const int64_t branch = d->left[0] - (d->depth == 0);
        if (branch >= 0 && r->weight[v] + d->bound[0][branch] > most) most = r->weight[v] + d->bound[0][branch];
    }
    if (most < r->bound[v]) r->bound[v] = most;
}

static void take(Roots *r, int64_t v) {
    const Dense *d = r->dense;
    r->best = r->weight[v] + d->best;
    r->n_found = d->n_found + 1;
    r->found_at = d->work;
    r->found[0] = (int32_t)v;
    for (int64_t i = 0; i < d->n_found; ++i) r->found[i + 1] = d->node[d->found[i]];
}

/* Work until `work` has reached `until`. Returns 1: all roots were seen, 0: there are more, -1: out of memory. */
int64_t lk_roots_run(Roots *r, int64_t until) {
    Dense *d = r->dense;
    if (r->active) { /* a better clique may have become known */
        const int64_t need = r->best - r->weight[r->roots[r->at]];
        if (need > d->best) d->best = need;
    }
    while (r->at < r->n_roots && r->work < until) {
        const int64_t v = r->roots[r->at];
        if (!r->active) {
            if (r->bound[v] > r->best && begin(r, v)) {
                r->active = 1;
                r->begun = d->work;
            } else r->at += 1;
            r->work = d->work;
            continue;
        }
        if (dense_step(d) < 0) return -1;
        if (r->weight[v] + d->best > r->best) take(r, v);
        if (d->depth < 0 || (r->each && d->work - r->begun >= r->each)) {
            note(r, v);
            r->active = 0;
            r->at += 1;
        }
        r->work = d->work;
    }
    if (r->active) note(r, r->roots[r->at]);
    return r->at >= r->n_roots;
}

/* About the work of searching below root v, by random paths; nothing may be under search. -1: out of memory. */
double lk_roots_probe(Roots *r, int64_t v, int64_t paths, uint64_t seed) {
    Dense *d = r->dense;
    const int64_t before = d->work, branches = begin(r, v) ? d->left[0] : 0;
    const double above = (double)(d->work - before);
    double below = 0;
    for (int64_t i = 0; i < paths && branches; ++i) {
        const double words = dense_path(d, (2 * i + 1) * branches / (2 * paths), &seed);
        if (words < 0) return -1;
        below += words;
    }
    r->work = d->work;
    return above + below / (double)paths;
}
