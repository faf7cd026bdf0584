/* The reductions of maximum cut (app/reductions/cut/log.py); app/reductions/cut/plain.py does the same, step for step.
 *
 * Rows are lists of half-edges, 2e and 2e + 1 of edge e, whose order means nothing: whatever depends on an order asks
 * for node numbers. A table finds the edge of two nodes; an edge that goes leaves its place to the next one. */
#include <stdlib.h>

#include "common.h"

enum { TIE, MERGE, TWIN, TRIANGLE, CLIQUE, RULES };
enum { ROUNDS, PASS, DONE };

typedef struct {
    uint64_t key;
    int32_t node, closed; /* closed: of N[u], for CLIQUE */
} Keyed;

typedef struct {
    int64_t n, edges, most, mask, offset, words, room, visited, now_count, later_count, free_count, steps;
    int32_t *head, *degree;     /* [n] */
    int32_t *next, *prev, *end; /* [2 most]: the node at the other end */
    int64_t *weight;            /* [most] */
    int32_t *slot, *freed;      /* [mask + 1] edge or -1; [most] */
    int32_t *now, *later, *list; /* [n] nodes of this round, of the next one; of a row or group */
    uint8_t *flag;              /* [n] in `later` */
    int64_t *log;
    int64_t counts[RULES];
    int passes, stage, failed;
} Residual;

INLINE uint64_t mixed(uint64_t z) {
    z = (z + UINT64_C(0x9E3779B97F4A7C15)) ^ (z >> 30);
    z *= UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static int by_number(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* ---- edges --------------------------------------------------------------------------------------------- */

INLINE int64_t place(const Residual *r, int32_t a, int32_t b) {
    const uint64_t lo = (uint64_t)(a < b ? a : b), hi = (uint64_t)(a < b ? b : a);
    return (int64_t)(mixed(lo * (uint64_t)r->n + hi) & (uint64_t)r->mask);
}

/* The edge of two nodes, or -1. */
INLINE int32_t edge_of(const Residual *r, int32_t a, int32_t b) {
    for (int64_t p = place(r, a, b);; p = (p + 1) & r->mask) {
        const int32_t e = r->slot[p];
        if (e < 0) return -1;
        const int32_t x = r->end[2 * (int64_t)e], y = r->end[2 * (int64_t)e + 1];
        if ((x == a && y == b) || (x == b && y == a)) return e;
    }
}

INLINE int64_t weight_of(const Residual *r, int32_t a, int32_t b) {
    const int32_t e = edge_of(r, a, b);
    return e < 0 ? 0 : r->weight[e];
}

static void link_half(Residual *r, int32_t half, int32_t node) {
    r->next[half] = r->head[node];
    r->prev[half] = -1;
    if (r->head[node] >= 0) r->prev[r->head[node]] = half;
    r->head[node] = half;
    r->degree[node] += 1;
}

static void unlink_half(Residual *r, int32_t half, int32_t node) {
    if (r->prev[half] >= 0) r->next[r->prev[half]] = r->next[half];
    else r->head[node] = r->next[half];
    if (r->next[half] >= 0) r->prev[r->next[half]] = r->prev[half];
    r->degree[node] -= 1;
}

static void new_edge(Residual *r, int32_t a, int32_t b, int64_t weight) {
    const int32_t e = r->freed[--r->free_count];
    r->end[2 * (int64_t)e] = b;
    r->end[2 * (int64_t)e + 1] = a;
    r->weight[e] = weight;
    link_half(r, 2 * e, a);
    link_half(r, 2 * e + 1, b);
    int64_t p = place(r, a, b);
    while (r->slot[p] >= 0) p = (p + 1) & r->mask;
    r->slot[p] = e;
    r->edges += 1;
}

/* Out of both rows and the table, whose later entries move up where they may. */
static void drop_edge(Residual *r, int32_t e) {
    const int32_t a = r->end[2 * (int64_t)e + 1], b = r->end[2 * (int64_t)e];
    int64_t hole = place(r, a, b);
    while (r->slot[hole] != e) hole = (hole + 1) & r->mask;
    for (int64_t p = (hole + 1) & r->mask; r->slot[p] >= 0; p = (p + 1) & r->mask) {
        const int32_t other = r->slot[p];
        const int64_t home = place(r, r->end[2 * (int64_t)other], r->end[2 * (int64_t)other + 1]);
        if (((p - home) & r->mask) < ((p - hole) & r->mask)) continue;
        r->slot[hole] = other;
        hole = p;
    }
    r->slot[hole] = -1;
    unlink_half(r, 2 * e, a);
    unlink_half(r, 2 * e + 1, b);
    r->freed[r->free_count++] = e;
    r->edges -= 1;
}

static void add(Residual *r, int32_t a, int32_t b, int64_t weight) {
    const int32_t e = edge_of(r, a, b);
    if (e < 0) {
        if (weight) new_edge(r, a, b, weight);
    } else if (r->weight[e] + weight) {
        r->weight[e] += weight;
    } else {
        drop_edge(r, e);
    }
}

/* ---- steps --------------------------------------------------------------------------------------------- */

INLINE void look_again(Residual *r, int32_t v) {
    if (r->flag[v]) return;
    r->flag[v] = 1;
    r->later[r->later_count++] = v;
}

/* Room for one more entry of the log; 0 without memory. */
static int note(Residual *r, int rule, int64_t length) {
    if (r->words + length + 2 > r->room) {
        const int64_t room = 2 * r->room + length + 2;
        int64_t *more = realloc(r->log, (size_t)room * sizeof *more);
        if (!more) return r->failed = 1, 0;
        r->log = more;
        r->room = room;
    }
    r->log[r->words++] = rule;
    r->log[r->words++] = length;
    r->counts[rule] += 1;
    return 1;
}

INLINE void word(Residual *r, int64_t value) { r->log[r->words++] = value; }

static void contract(Residual *r, int32_t u, int32_t v, int apart) {
    for (int32_t half = r->head[u]; half >= 0;) {
        const int32_t x = r->end[half], e = half >> 1;
        const int64_t w = r->weight[e];
        half = r->next[half];
        drop_edge(r, e);
        look_again(r, x);
        if (apart) r->offset += w;
        if (x != v) add(r, v, x, apart ? -w : w);
    }
    look_again(r, v);
}

static void join(Residual *r, int rule, int32_t u, int32_t v, int apart) {
    if (!note(r, rule, 3)) return;
    word(r, u);
    word(r, v);
    word(r, apart);
    contract(r, u, v, apart);
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void triangle(Residual *r, int32_t u) {
    int32_t x[3];
    int64_t w[3], more[3], found[3], total = 0;
    int k = 0;
    for (int32_t half = r->head[u]; half >= 0; half = r->next[half]) x[k++] = r->end[half];
    qsort(x, 3, sizeof *x, by_number);
    for (k = 0; k < 3; ++k) total += w[k] = weight_of(r, u, x[k]);
    const int64_t base = larger(0, total);
    for (k = 0; k < 3; ++k) more[k] = larger(w[k], total - w[k]) - base;
    for (k = 0; k < 3; ++k) { /* pairs 01, 02, 12: all but the last, the middle, the first */
        found[k] = more[0] + more[1] + more[2] - 2 * more[2 - k];
        if (found[k] % 2) return;
        found[k] /= 2;
    }
    const int32_t from[3] = {x[0], x[0], x[1]}, to[3] = {x[1], x[2], x[2]};
    if (!note(r, TRIANGLE, 7)) return;
    word(r, u);
    for (k = 0; k < 3; ++k) {
        word(r, x[k]);
        word(r, w[k]);
    }
    r->offset += base;
    while (r->head[u] >= 0) drop_edge(r, r->head[u] >> 1);
    for (k = 0; k < 3; ++k) look_again(r, x[k]);
    for (k = 0; k < 3; ++k) add(r, from[k], to[k], found[k]);
}

static void visit(Residual *r, int32_t u) {
    int32_t best = -1;
    int64_t most = 0, total = 0, weight = 0;
    for (int32_t half = r->head[u]; half >= 0; half = r->next[half]) {
        const int64_t w = r->weight[half >> 1], size = w < 0 ? -w : w;
        total += size;
        if (size > most || (size == most && r->end[half] < best)) {
            most = size;
            weight = w;
            best = r->end[half];
        }
    }
    if (best < 0) return;
    if (2 * most >= total) join(r, MERGE, u, best, weight > 0);
    else if (r->degree[u] == 3) triangle(r, u);
}

/* ---- groups -------------------------------------------------------------------------------------------- */

/* Whether u is first or joined to it, with the weight w to every other node of N[first], and no other neighbours. */
static int spans(const Residual *r, int32_t u, int32_t first, int64_t w) {
    if (r->degree[u] != r->degree[first] || (u != first && edge_of(r, first, u) < 0)) return 0;
    for (int32_t half = r->head[u]; half >= 0; half = r->next[half])
        if (r->weight[half >> 1] != w || (r->end[half] != first && edge_of(r, first, r->end[half]) < 0)) return 0;
    return 1;
}

static void clique(Residual *r, const Keyed *group, int64_t count) {
    const int32_t first = group[0].node;
    const int64_t size = r->degree[first] + 1, w = r->weight[r->head[first] >> 1];
    int64_t in = 0, out = 0;
    if (w < 0 || !spans(r, first, first, w)) return;
    int32_t *inside = r->list, *outside = r->now; /* [size] each: the round is over */
    for (int64_t i = 0; i < count; ++i)
        if (spans(r, group[i].node, first, w)) inside[in++] = group[i].node;
    if (in < 2 || in < size - in - 1) return;
    for (int32_t half = r->head[first]; half >= 0; half = r->next[half])
        if (!bsearch(&r->end[half], inside, (size_t)in, sizeof *inside, by_number)) outside[out++] = r->end[half];
    qsort(outside, (size_t)out, sizeof *outside, by_number);
    if (!note(r, CLIQUE, 2 + in + out)) return;
    word(r, w);
    word(r, in);
    for (int64_t i = 0; i < in; ++i) word(r, inside[i]);
    for (int64_t i = 0; i < out; ++i) word(r, outside[i]);
    r->offset += w * (size * size / 4);
    for (int64_t i = 0; i < in; ++i)
        while (r->head[inside[i]] >= 0) {
            look_again(r, r->end[r->head[inside[i]]]);
            drop_edge(r, r->head[inside[i]] >> 1);
        }
    for (int64_t i = 0; i < out; ++i)
        for (int64_t j = i + 1; j < out; ++j) add(r, outside[i], outside[j], -w);
}

/* Put the nodes of a group together with its first one, where their rows are so many times its row of now. */
static void twins(Residual *r, const Keyed *group, int64_t count) {
    const int32_t v = group[0].node;
    int64_t times = 1;
    for (int64_t i = 1; i < count; ++i) {
        const int32_t u = group[i].node;
        if (r->head[u] < 0 || r->degree[u] != r->degree[v]) continue;
        int32_t x = r->end[r->head[u]];
        const int64_t sign = (r->weight[r->head[u] >> 1] > 0) == (weight_of(r, v, x) > 0) ? times : -times;
        int same = 1;
        for (int32_t half = r->head[u]; same && half >= 0; half = r->next[half])
            same = weight_of(r, v, r->end[half]) == sign * r->weight[half >> 1];
        if (!same) continue;
        join(r, TWIN, u, v, sign < 0);
        times += 1;
    }
}

static int by_key(const void *a, const void *b) {
    const Keyed *x = a, *y = b;
    if (x->closed != y->closed) return x->closed - y->closed;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

typedef struct {
    int64_t from, count;
    int32_t first, twin;
} Group;

static int by_first(const void *a, const void *b) {
    const Group *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->twin - y->twin;
}

/* The keys of all nodes: of the row, the same for its negative; of the closed row, where it has one positive weight. */
static int64_t keys_of(const Residual *r, Keyed *keyed) {
    int64_t k = 0;
    for (int32_t u = 0; u < r->n; ++u) {
        if (r->head[u] < 0) continue;
        const int64_t first = r->weight[r->head[u] >> 1];
        uint64_t row = 0, nodes = mixed((uint64_t)u);
        int even = first > 0;
        for (int32_t half = r->head[u]; half >= 0; half = r->next[half]) {
            const uint64_t each = mixed((uint64_t)r->end[half]);
            const int64_t w = r->weight[half >> 1]; /* mixed: all may be multiples of a large power of two */
            row += w < 0 ? -(each * mixed((uint64_t)-w)) : each * mixed((uint64_t)w);
            nodes += each;
            even &= r->weight[half >> 1] == first;
        }
        keyed[k++] = (Keyed){row < -row ? row : -row, u, 0};
        if (even) keyed[k++] = (Keyed){mixed(nodes + mixed((uint64_t)first)), u, 1};
    }
    return k;
}

/* TWIN and CLIQUE wherever they apply; returns whether they did. */
static int pass(Residual *r) {
    Keyed *keyed = malloc((size_t)(2 * r->n + 1) * sizeof *keyed);
    Group *group = malloc((size_t)(r->n + 1) * sizeof *group);
    int64_t groups = 0, before = r->counts[TWIN] + r->counts[CLIQUE];
    if (!keyed || !group) r->failed = 1;
    const int64_t count = r->failed ? 0 : keys_of(r, keyed);
    if (count) qsort(keyed, (size_t)count, sizeof *keyed, by_key);
    for (int64_t i = 0, j = 0; i < count; i = j) {
        for (j = i + 1; j < count && keyed[j].key == keyed[i].key && keyed[j].closed == keyed[i].closed;) ++j;
        if (j > i + 1) group[groups++] = (Group){i, j - i, keyed[i].node, !keyed[i].closed};
    }
    if (groups) qsort(group, (size_t)groups, sizeof *group, by_first);
    for (int64_t g = 0; g < groups; ++g)
        if (r->head[group[g].first] >= 0)
            (group[g].twin ? twins : clique)(r, keyed + group[g].from, group[g].count);
    free(keyed);
    free(group);
    return r->counts[TWIN] + r->counts[CLIQUE] > before;
}

/* ---- what the caller sees ------------------------------------------------------------------------------ */

void lk_cut_reduce_free(Residual *r) {
    if (!r) return;
    free(r->head), free(r->degree), free(r->next), free(r->prev), free(r->end), free(r->weight), free(r->slot);
    free(r->freed), free(r->now), free(r->later), free(r->list), free(r->flag), free(r->log), free(r);
}

/* Rows of a symmetric matrix without a diagonal, [n+1], [nnz], [nnz]; entries of weight 0 are no edges. NULL without
 * memory. */
Residual *lk_cut_reduce_new(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weights) {
    Residual *r = calloc(1, sizeof *r);
    if (!r) return 0;
    const int64_t most = indptr[n] / 2;
    r->n = n, r->most = most, r->room = 1024, r->mask = 15;
    while (r->mask + 1 < 2 * most) r->mask = 2 * r->mask + 1;
    const size_t nodes = (size_t)(n + 1) * sizeof(int32_t), edges = (size_t)(most + 1) * sizeof(int32_t);
    r->head = malloc(nodes), r->degree = calloc((size_t)n + 1, sizeof(int32_t));
    r->next = malloc(2 * edges), r->prev = malloc(2 * edges), r->end = malloc(2 * edges);
    r->weight = malloc(2 * edges), r->slot = malloc((size_t)(r->mask + 1) * sizeof(int32_t));
    r->freed = malloc(edges), r->now = malloc(nodes), r->later = malloc(nodes), r->list = malloc(nodes);
    r->flag = calloc((size_t)n + 1, 1), r->log = malloc((size_t)r->room * sizeof *r->log);
    if (!r->head || !r->degree || !r->next || !r->prev || !r->end || !r->weight || !r->slot || !r->freed || !r->now ||
        !r->later || !r->list || !r->flag || !r->log)
        return lk_cut_reduce_free(r), NULL;
    for (int64_t v = 0; v < n; ++v) r->head[v] = -1;
    for (int64_t p = 0; p <= r->mask; ++p) r->slot[p] = -1;
    for (int64_t e = most; e > 0; --e) r->freed[r->free_count++] = (int32_t)(e - 1);
    for (int32_t v = 0; v < n; ++v) {
        look_again(r, v);
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j)
            if (v < indices[j] && weights[j]) new_edge(r, v, indices[j], weights[j]);
    }
    return r;
}

void lk_cut_reduce_tie(Residual *r, int64_t u, int64_t v, int64_t apart) {
    join(r, TIE, (int32_t)u, (int32_t)v, (int)apart);
}

/* Take at most so many steps, looks at a node or passes over all; returns 1 while there are more, -1 without memory. */
int lk_cut_reduce_run(Residual *r, int64_t steps, int64_t passes) {
    while (steps > 0 && r->stage == ROUNDS && !r->failed) {
        if (r->visited < r->now_count) {
            visit(r, r->now[r->visited++]);
            --steps, ++r->steps;
        } else if (r->later_count) {
            int32_t *swap = r->now;
            r->now = r->later, r->later = swap;
            r->now_count = r->later_count, r->later_count = r->visited = 0;
            qsort(r->now, (size_t)r->now_count, sizeof *r->now, by_number);
            for (int64_t i = 0; i < r->now_count; ++i) r->flag[r->now[i]] = 0;
        } else {
            r->stage = PASS;
        }
    }
    if (steps > 0 && r->stage == PASS && !r->failed) {
        ++r->steps;
        r->now_count = r->visited = 0;
        const int more = pass(r);
        r->stage = more && ++r->passes < passes ? ROUNDS : DONE;
    }
    return r->failed ? -1 : r->stage != DONE;
}

int64_t lk_cut_reduce_steps(const Residual *r) { return r->steps; }

/* [9]: nodes with edges, edges, offset, words of the log, how often each rule was applied. */
void lk_cut_reduce_totals(const Residual *r, int64_t *totals) {
    int64_t alive = 0;
    for (int64_t v = 0; v < r->n; ++v) alive += r->head[v] >= 0;
    totals[0] = alive, totals[1] = r->edges, totals[2] = r->offset, totals[3] = r->words;
    for (int k = 0; k < RULES; ++k) totals[4 + k] = r->counts[k];
}

void lk_cut_reduce_log(const Residual *r, int64_t *log) { memcpy(log, r->log, (size_t)r->words * sizeof *log); }

/* What is left, renumbered in ascending order: indptr [k+1], indices, weights [2 edges], nodes [k]. */
void lk_cut_reduce_kernel(const Residual *r, int64_t *indptr, int32_t *indices, int64_t *weights, int64_t *nodes) {
    int32_t *number = r->list;
    int64_t k = 0;
    indptr[0] = 0;
    for (int32_t v = 0; v < r->n; ++v)
        if (r->head[v] >= 0) {
            number[v] = (int32_t)k;
            nodes[k] = v;
            indptr[k + 1] = indptr[k] + r->degree[v];
            ++k;
        }
    for (int64_t i = k; i > 0; --i) indptr[i] = indptr[i - 1]; /* where each row's next entry goes */
    for (int64_t i = 0; i < k; ++i)
        for (int32_t half = r->head[nodes[i]]; half >= 0; half = r->next[half]) {
            const int64_t at = indptr[number[r->end[half]] + 1]++;
            indices[at] = (int32_t)i;
            weights[at] = r->weight[half >> 1];
        }
}

/* The log backwards, as cut_log.lift does. ends [entries]; sides [n]. */
void lk_cut_lift(const int64_t *log, int64_t words, int64_t *ends, uint8_t *sides) {
    int64_t count = 0;
    for (int64_t at = 0; at < words; at += 2 + log[at + 1]) ends[count++] = at;
    while (count > 0) {
        const int64_t *entry = log + ends[--count], rule = entry[0], length = entry[1];
        const int64_t *w = entry + 2;
        if (rule == TRIANGLE) {
            int64_t pull = 0;
            for (int k = 1; k < 7; k += 2) pull += sides[w[k]] ? w[k + 1] : -w[k + 1];
            sides[w[0]] = pull < 0;
        } else if (rule == CLIQUE) {
            int64_t ones = (length - 2) / 2;
            for (int64_t k = 2 + w[1]; k < length; ++k) ones -= sides[w[k]];
            for (int64_t k = 2; k < 2 + w[1]; ++k) sides[w[k]] = ones-- > 0;
        } else {
            sides[w[0]] = sides[w[1]] ^ (uint8_t)w[2];
        }
    }
}
