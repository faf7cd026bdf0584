/* Branch and reduce for minimum (weight) vertex cover of sparse graphs (app/bounds/cover/branch.py).
 *
 * Reductions: a node as heavy as its neighbours together, leaves, folding of degree two, domination; of unit weights
 * also unconfined nodes (Xiao and Nagamochi 2013) and the half-integral relaxation (Nemhauser and Trotter 1975).
 * Bounds: clique cover, and the relaxation with the odd cycles of its matching rounded up. Branching on a node of
 * largest degree; connected components on their own (after Akiba and Iwata 2016).
 *
 * Every tree node (Frame) has a graph of its own: copying it costs as much as bounding it, and nothing is undone.
 * The tree is walked with a stack on the heap, so that a search can stop after any number of tree nodes. */
#include <stdlib.h>

#include "common.h"

enum { TAKE, COVER, LEAF, FOLD };          /* what the log of a frame says; five numbers an entry */
enum { READY, FIRST, SECOND, SPLIT, DONE }; /* state of a frame */
enum { WIDEST = 64, DEEPEST = 12 };        /* degrees tried for domination; nodes of a confining set */
#define NEVER (INT64_MAX / 4)
#define MOST_HELD ((int64_t)1 << 29) /* bytes of all frames: deep trees of large graphs are given up */

typedef struct Frame {
    struct Frame *parent;
    int32_t n_in, ids, n;       /* nodes on entry; with folded ones; left after the reductions */
    int32_t *ptr, *adj;         /* rows of what is left */
    int64_t *weight;            /* [n] */
    int32_t *id;                /* [n] number on entry (or of a folded node) of each node left */
    int32_t *to_parent;         /* [n_in] node of the parent's rows */
    int32_t *log;
    int64_t bytes, entries, offset, limit, value; /* offset: decided by reductions; value: of cover, NEVER without one */
    uint8_t *cover, *left;      /* [n_in] best cover; [n] of the rows left */
    int32_t state, node, parts, part; /* of the branching and of the components */
    int32_t *part_of, *part_order;    /* [n], [parts] smallest first */
    int32_t *part_start, *part_nodes; /* [parts+1], [n] the nodes of each part */
    int64_t *part_bound, rest;        /* [parts]; sum of solved parts and of the bounds of the others */
} Frame;

typedef struct {
    int32_t *start, *len, *deg, *mark, *count, *queue; /* [room] */
    uint8_t *alive, *queued;
    int64_t *weight;
    int32_t *list;              /* neighbours; entries of nodes that went are skipped */
    int64_t room, list_len, list_room, head, tail;
    int32_t *log;
    int64_t log_len, log_room, offset;
    int32_t ids, stamp;
    int unit, failed;
    int32_t *a, *b, *c, *d, *e, *f; /* [room] of bounds */
    int64_t *sum;               /* [room] */
} Work;

typedef struct {
    Frame *top;
    Work work;
    int64_t nodes, value, held; /* held: bytes of all frames */
    int32_t n;
    uint8_t *cover;
    int failed;
} Search;

/* ---- memory --------------------------------------------------------------------------------------------------- */

static void grow(Work *w, void **array, int64_t bytes) {
    void *more = realloc(*array, (size_t)bytes + 8);
    if (more) *array = more;
    else w->failed = 1;
}

static void grow_room(Work *w, int64_t room) {
    int32_t **ints[] = {&w->start, &w->len, &w->deg, &w->mark, &w->count, &w->queue,
                        &w->a, &w->b, &w->c, &w->d, &w->e, &w->f};
    if (room <= w->room) return;
    for (size_t i = 0; i < sizeof ints / sizeof *ints; ++i) grow(w, (void **)ints[i], room * 4);
    grow(w, (void **)&w->alive, room);
    grow(w, (void **)&w->queued, room);
    grow(w, (void **)&w->weight, room * 8);
    grow(w, (void **)&w->sum, room * 8);
    if (!w->failed) w->room = room;
}

static void grow_list(Work *w, int64_t more) {
    if (w->list_len + more <= w->list_room) return;
    const int64_t room = 2 * (w->list_len + more);
    grow(w, (void **)&w->list, room * 4);
    if (!w->failed) w->list_room = room;
}

static void note(Work *w, int32_t kind, int32_t a, int32_t b, int32_t c, int32_t d) {
    if (w->log_len + 5 > w->log_room) {
        grow(w, (void **)&w->log, (2 * w->log_room + 320) * 4);
        if (w->failed) return;
        w->log_room = 2 * w->log_room + 320;
    }
    int32_t *entry = w->log + w->log_len;
    entry[0] = kind;
    entry[1] = a;
    entry[2] = b;
    entry[3] = c;
    entry[4] = d;
    w->log_len += 5;
}

static void free_work(Work *w) {
    void *all[] = {w->start, w->len, w->deg, w->mark, w->count, w->queue, w->a, w->b, w->c, w->d, w->e, w->f,
                   w->alive, w->queued, w->weight, w->list, w->log, w->sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
}

static void free_frame(Frame *f) {
    void *all[] = {f->ptr, f->adj, f->weight, f->id, f->to_parent, f->log, f->cover, f->left, f->part_of,
                   f->part_order, f->part_start, f->part_nodes, f->part_bound, f};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
}

/* ---- reductions ----------------------------------------------------------------------------------------------- */

INLINE void wake(Work *w, int32_t v) {
    if (w->queued[v]) return;
    w->queued[v] = 1;
    w->queue[w->tail++ % w->room] = v;
}

/* The live neighbours of v, moved to the front of its list; returns them. */
INLINE int32_t *near(Work *w, int32_t v) {
    int32_t *list = w->list + w->start[v], kept = 0;
    if (w->len[v] == w->deg[v]) return list;
    for (int32_t j = 0; j < w->len[v]; ++j)
        if (w->alive[list[j]]) list[kept++] = list[j];
    w->len[v] = kept;
    return list;
}

static void drop(Work *w, int32_t v) {
    const int32_t *list = near(w, v), count = w->deg[v];
    w->alive[v] = 0;
    for (int32_t j = 0; j < count; ++j) {
        w->deg[list[j]] -= 1;
        wake(w, list[j]);
    }
}

static void put_in_cover(Work *w, int32_t v) {
    note(w, COVER, v, 0, 0, 0);
    w->offset += w->weight[v];
    drop(w, v);
}

static void take(Work *w, int32_t v) {
    note(w, TAKE, v, 0, 0, 0);
    while (w->deg[v] > 0) put_in_cover(w, near(w, v)[0]);
    w->alive[v] = 0;
}

static int adjacent(Work *w, int32_t u, int32_t v) {
    if (w->deg[u] > w->deg[v]) {
        const int32_t t = u;
        u = v;
        v = t;
    }
    const int32_t *list = near(w, u);
    for (int32_t j = 0; j < w->deg[u]; ++j)
        if (list[j] == v) return 1;
    return 0;
}

/* A leaf lighter than its neighbour u: pay for the leaf now, for u the rest; the leaf is in the cover if u is not. */
static void cut_leaf(Work *w, int32_t v, int32_t u) {
    note(w, LEAF, v, u, 0, 0);
    w->offset += w->weight[v];
    w->weight[u] -= w->weight[v];
    drop(w, v);
    const int32_t *list = near(w, u);
    for (int32_t j = 0; j < w->deg[u]; ++j) wake(w, list[j]);
}

INLINE void rename_entry(Work *w, int32_t v, int32_t from, int32_t to) {
    int32_t *list = near(w, v), j = 0;
    while (list[j] != from) ++j;
    list[j] = to;
}

/* v with the neighbours u, x, not joined: one node instead of three, in the cover if u and x are (then v is not). */
static void fold(Work *w, int32_t v, int32_t u, int32_t x) {
    const int32_t y = w->ids++, stamp = ++w->stamp;
    int32_t *out, count = 0;
    grow_list(w, w->deg[u] + w->deg[x]);
    if (w->failed) return;
    note(w, FOLD, y, v, u, x);
    w->offset += w->weight[v];
    w->weight[y] = w->weight[u] + w->weight[x] - w->weight[v];
    w->start[y] = (int32_t)w->list_len;
    w->alive[y] = 1;
    out = w->list + w->list_len;
    for (int side = 0; side < 2; ++side) {
        const int32_t end = side ? x : u, *list = near(w, end);
        for (int32_t j = 0; j < w->deg[end]; ++j) {
            const int32_t z = list[j];
            if (z == v) continue;
            if (w->mark[z] == stamp) { /* joined to both */
                const int32_t last = near(w, z)[w->deg[z] - 1];
                rename_entry(w, z, end, last);
                w->deg[z] -= 1;
                w->len[z] = w->deg[z];
            } else {
                w->mark[z] = stamp;
                rename_entry(w, z, end, y);
                out[count++] = z;
            }
            wake(w, z);
        }
    }
    w->alive[v] = w->alive[u] = w->alive[x] = 0;
    w->queued[y] = 0;
    w->mark[y] = 0;
    w->deg[y] = w->len[y] = count;
    w->list_len += count;
    wake(w, y);
}

/* The rules for nodes of few neighbours. */
static void reduce_node(Work *w, int32_t v) {
    const int32_t *list = near(w, v), deg = w->deg[v];
    int64_t sum = 0;
    if (deg > 2 && (w->unit || deg > 8)) return;
    for (int32_t j = 0; j < deg; ++j) sum += w->weight[list[j]];
    if (w->weight[v] >= sum) take(w, v);
    else if (deg == 1) cut_leaf(w, v, list[0]);
    else if (deg == 2) {
        const int32_t u = list[0], x = list[1];
        if (w->weight[v] < w->weight[u] || w->weight[v] < w->weight[x]) return;
        if (adjacent(w, u, x)) take(w, v);
        else fold(w, v, u, x);
    }
}

/* Some neighbour u of v, at least as heavy, has all its other neighbours among those of v: v joins the cover. */
static int dominates(Work *w, int32_t v) {
    const int32_t *list = near(w, v), stamp = ++w->stamp, deg = w->deg[v];
    w->mark[v] = stamp;
    for (int32_t j = 0; j < deg; ++j) w->mark[list[j]] = stamp;
    for (int32_t j = 0; j < deg; ++j) {
        const int32_t u = list[j];
        if (w->deg[u] > deg || w->weight[u] < w->weight[v]) continue;
        const int32_t *other = near(w, u);
        int32_t i = 0;
        while (i < w->deg[u] && w->mark[other[i]] == stamp) ++i;
        if (i == w->deg[u]) return 1;
    }
    return 0;
}

/* Unit weights: assume no smallest cover holds v; nodes that then must stay out too (S) may lead to a contradiction.
 * mark == stamp: in S or next to it; count: neighbours in S. */
static int unconfined(Work *w, int32_t v) {
    const int32_t stamp = ++w->stamp;
    int32_t *beside = w->a, found = 0, size = 1, next = v;
    w->mark[v] = stamp;
    w->count[v] = 0;
    for (;;) {
        const int32_t *list = near(w, next);
        for (int32_t j = 0; j < w->deg[next]; ++j) {
            const int32_t u = list[j];
            if (w->mark[u] != stamp) {
                w->mark[u] = stamp;
                w->count[u] = 0;
                beside[found++] = u;
            }
            w->count[u] += 1;
        }
        next = -1;
        for (int32_t i = 0; i < found; ++i) {
            const int32_t u = beside[i];
            int32_t outside = 0, last = -1;
            if (w->count[u] != 1) continue;
            const int32_t *other = near(w, u);
            for (int32_t j = 0; j < w->deg[u] && outside < 2; ++j)
                if (w->mark[other[j]] != stamp) {
                    outside += 1;
                    last = other[j];
                }
            if (outside == 0) return 1;
            if (outside == 1 && next < 0) next = last;
        }
        if (next < 0 || ++size > DEEPEST) return 0;
        w->mark[next] = stamp; /* joined to no node of S: it is outside N(S) */
        w->count[next] = 0;
    }
}

static void reduce_local(Work *w) {
    for (int changed = 1; changed && !w->failed;) {
        while (w->head < w->tail && !w->failed) {
            const int32_t v = w->queue[w->head++ % w->room];
            w->queued[v] = 0;
            if (w->alive[v]) reduce_node(w, v);
        }
        changed = 0;
        for (int32_t v = 0; v < w->ids && !w->failed; ++v) {
            if (!w->alive[v] || w->deg[v] > WIDEST) continue;
            if (w->unit ? unconfined(w, v) : dominates(w, v)) {
                put_in_cover(w, v);
                changed = 1;
            }
        }
    }
}

static void load_rows(Work *w, int32_t n, const int32_t *ptr, const int32_t *adj, const int64_t *weight) {
    grow_room(w, 2 * (int64_t)n + 4);
    w->list_len = 0;
    grow_list(w, ptr[n]);
    if (w->failed) return;
    if (ptr[n] > 0) memcpy(w->list, adj, (size_t)ptr[n] * 4);
    w->list_len = ptr[n];
    w->ids = n;
    w->log_len = w->offset = w->head = w->tail = 0;
    w->stamp = 0;
    w->unit = 1;
    memset(w->mark, 0, (size_t)(2 * n + 4) * 4);
    memset(w->queued, 0, (size_t)(2 * n + 4));
    for (int32_t v = 0; v < n; ++v) {
        w->start[v] = ptr[v];
        w->len[v] = w->deg[v] = ptr[v + 1] - ptr[v];
        w->alive[v] = 1;
        w->weight[v] = weight[v];
        w->unit &= weight[v] == 1;
        wake(w, v);
    }
}

/* ---- what is left, as rows ------------------------------------------------------------------------------------ */

/* f->n, ptr, adj, weight, id from the live nodes. */
static int store_rows(Work *w, Frame *f) {
    int64_t entries = 0;
    int32_t n = 0, at = 0, *new_number = w->a;
    for (int32_t v = 0; v < w->ids; ++v)
        if (w->alive[v]) {
            new_number[v] = n++;
            entries += w->deg[v];
        }
    f->n = n;
    f->ptr = realloc(f->ptr, (size_t)(n + 1) * 4);
    f->adj = realloc(f->adj, (size_t)entries * 4 + 8);
    f->weight = realloc(f->weight, (size_t)n * 8 + 8);
    f->id = realloc(f->id, (size_t)n * 4 + 8);
    if (!f->ptr || !f->adj || !f->weight || !f->id) return -1;
    for (int32_t v = 0; v < w->ids; ++v) {
        if (!w->alive[v]) continue;
        const int32_t i = new_number[v], *list = near(w, v);
        f->id[i] = v;
        f->weight[i] = w->weight[v];
        f->ptr[i] = at;
        for (int32_t j = 0; j < w->deg[v]; ++j) f->adj[at++] = new_number[list[j]];
    }
    f->ptr[n] = at;
    return 0;
}

/* ---- the half-integral relaxation (unit weights) ---------------------------------------------------------------- */

/* A maximum matching of the bipartite double cover: right[u] = v and left[v] = u for a pair (u, v), else -1.
 * seen [n]: v is reached from an unmatched u by an alternating path. queue, from: scratch. */
static void match(const Frame *f, int32_t *right, int32_t *left, int32_t *seen, int32_t *queue, int32_t *from) {
    const int32_t n = f->n;
    for (int32_t u = 0; u < n; ++u) right[u] = left[u] = seen[u] = -1;
    for (int32_t u = 0; u < n; ++u)
        for (int32_t j = f->ptr[u]; j < f->ptr[u + 1]; ++j)
            if (left[f->adj[j]] < 0) {
                right[u] = f->adj[j];
                left[right[u]] = u;
                break;
            }
    for (int32_t root = 0; root < n; ++root) {
        int32_t head = 0, tail = 0, end = -1;
        if (right[root] >= 0) continue;
        queue[tail++] = root;
        while (head < tail && end < 0) {
            const int32_t u = queue[head++];
            for (int32_t j = f->ptr[u]; j < f->ptr[u + 1] && end < 0; ++j) {
                const int32_t v = f->adj[j];
                if (seen[v] >= 0) continue;
                seen[v] = root;
                from[v] = u;
                if (left[v] < 0) end = v;
                else queue[tail++] = left[v];
            }
        }
        if (end < 0) continue; /* what was seen stays seen: no later path leads on from there */
        for (int32_t i = 0; i < head; ++i)
            for (int32_t j = f->ptr[queue[i]]; j < f->ptr[queue[i] + 1]; ++j)
                if (seen[f->adj[j]] == root) seen[f->adj[j]] = -1;
        while (end >= 0) {
            const int32_t u = from[end], before = right[u];
            right[u] = end;
            left[end] = u;
            end = before;
        }
    }
}

/* Decide the nodes with the value 0 or 1 in an optimum of the relaxation; returns whether there were any. */
static int reduce_relaxed(Work *w, const Frame *f) {
    int32_t *right = w->b, *left = w->c, *seen = w->d, fixed = 0;
    match(f, right, left, seen, w->e, w->f);
    for (int32_t v = 0; v < f->n; ++v) {
        const int reached = right[v] < 0 || seen[right[v]] >= 0; /* v on the left side, by an alternating path */
        if (reached && seen[v] < 0) {
            if (!w->alive[f->id[v]]) continue;
            take(w, f->id[v]);
            fixed = 1;
        }
    }
    return fixed;
}

/* ---- components and bounds ------------------------------------------------------------------------------------ */

static int find_parts(Frame *f) {
    int32_t *queue = f->part_nodes = malloc((size_t)f->n * 4 + 8);
    f->part_of = malloc((size_t)f->n * 4 + 8);
    f->part_start = malloc((size_t)(f->n + 1) * 4);
    if (!f->part_of || !f->part_nodes || !f->part_start) return -1;
    for (int32_t v = 0; v < f->n; ++v) f->part_of[v] = -1;
    int32_t head = 0, tail = 0;
    f->parts = 0;
    for (int32_t root = 0; root < f->n; ++root) {
        if (f->part_of[root] >= 0) continue;
        f->part_start[f->parts] = head;
        queue[tail++] = root;
        f->part_of[root] = f->parts;
        while (head < tail) {
            const int32_t u = queue[head++];
            for (int32_t j = f->ptr[u]; j < f->ptr[u + 1]; ++j)
                if (f->part_of[f->adj[j]] < 0) {
                    f->part_of[f->adj[j]] = f->parts;
                    queue[tail++] = f->adj[j];
                }
        }
        f->parts += 1;
    }
    f->part_start[f->parts] = head;
    f->part_bound = calloc((size_t)f->parts + 1, 8);
    f->part_order = calloc((size_t)f->parts + 1, 4);
    return f->part_bound && f->part_order ? 0 : -1;
}

/* part_bound += weights of the nodes less the heaviest of each clique of a greedy cover, nodes of low degree first. */
static void bound_by_cliques(Work *w, Frame *f) {
    const int32_t n = f->n;
    int32_t *order = w->a, *clique = w->e, *size = w->f, *met = w->count, *start = w->mark, cliques = 0, most = 0;
    int64_t *peak = w->sum;
    for (int32_t v = 0; v < n; ++v) most = f->ptr[v + 1] - f->ptr[v] > most ? f->ptr[v + 1] - f->ptr[v] : most;
    memset(start, 0, (size_t)(most + 2) * 4);
    for (int32_t v = 0; v < n; ++v) start[f->ptr[v + 1] - f->ptr[v] + 1] += 1;
    for (int32_t d = 0; d <= most; ++d) start[d + 1] += start[d];
    for (int32_t v = 0; v < n; ++v) order[start[f->ptr[v + 1] - f->ptr[v]]++] = v;
    for (int32_t v = 0; v < n; ++v) {
        clique[v] = -1;
        met[v] = 0;
    }
    for (int32_t i = 0; i < n; ++i) {
        const int32_t v = order[i];
        int32_t best = -1;
        for (int32_t j = f->ptr[v]; j < f->ptr[v + 1]; ++j) {
            const int32_t k = clique[f->adj[j]];
            if (k >= 0 && ++met[k] == size[k] && (best < 0 || size[k] > size[best])) best = k;
        }
        for (int32_t j = f->ptr[v]; j < f->ptr[v + 1]; ++j)
            if (clique[f->adj[j]] >= 0) met[clique[f->adj[j]]] = 0;
        if (best < 0) {
            best = cliques++;
            size[best] = 0;
            peak[best] = 0;
        }
        clique[v] = best;
        size[best] += 1;
        f->part_bound[f->part_of[v]] += f->weight[v];
        if (f->weight[v] > peak[best]) {
            f->part_bound[f->part_of[v]] -= f->weight[v] - peak[best];
            peak[best] = f->weight[v];
        }
    }
}

/* Half the matching of the relaxation, each odd cycle of it rounded up, where that is more. */
static void bound_by_matching(Work *w, Frame *f) {
    int32_t *right = w->b, *done = w->d;
    int64_t *twice = w->sum;
    for (int32_t k = 0; k < f->parts; ++k) twice[k] = 0;
    for (int32_t v = 0; v < f->n; ++v) done[v] = 0;
    for (int32_t v = 0; v < f->n; ++v) { /* all nodes are matched: what was not, the relaxation decided */
        int32_t length = 0;
        for (int32_t u = v; u >= 0 && !done[u]; u = right[u]) {
            done[u] = 1;
            length += right[u] >= 0;
        }
        twice[f->part_of[v]] += length + (length > 1 && length % 2);
    }
    for (int32_t k = 0; k < f->parts; ++k)
        if (twice[k] / 2 > f->part_bound[k]) f->part_bound[k] = twice[k] / 2;
}

/* ---- frames --------------------------------------------------------------------------------------------------- */

/* f->cover from f->left [n] and the log, last entry first. */
static int lift(Frame *f, uint8_t *value) {
    if (!f->cover) f->cover = malloc((size_t)f->n_in + 8);
    if (!f->cover) return -1;
    for (int32_t i = 0; i < f->n; ++i) value[f->id[i]] = f->left[i];
    for (int64_t at = f->entries - 5; at >= 0; at -= 5) {
        const int32_t *e = f->log + at;
        if (e[0] == TAKE) value[e[1]] = 0;
        if (e[0] == COVER) value[e[1]] = 1;
        if (e[0] == LEAF) value[e[1]] = !value[e[2]];
        if (e[0] == FOLD) {
            value[e[2]] = !value[e[1]];
            value[e[3]] = value[e[4]] = value[e[1]];
        }
    }
    memcpy(f->cover, value, (size_t)f->n_in);
    return 0;
}

static int prepare(Search *s, Frame *f, const int32_t *ptr, const int32_t *adj, const int64_t *weight) {
    Work *w = &s->work;
    load_rows(w, f->n_in, ptr, adj, weight);
    if (w->failed) return -1;
    for (int again = 1; again;) {
        reduce_local(w);
        if (w->failed || store_rows(w, f) < 0) return -1;
        w->unit = 1; /* folding may have made weights alike; it keeps unit weights unit */
        for (int32_t i = 0; i < f->n; ++i) w->unit &= f->weight[i] == 1;
        again = w->unit && f->n > 0 && reduce_relaxed(w, f);
    }
    if (w->failed) return -1;
    f->offset = w->offset;
    f->ids = w->ids;
    f->entries = w->log_len;
    f->log = malloc((size_t)w->log_len * 4 + 8);
    f->left = calloc((size_t)f->n + 1, 1);
    if (!f->log || !f->left || find_parts(f) < 0) return -1;
    if (w->log_len > 0) memcpy(f->log, w->log, (size_t)w->log_len * 4);
    f->state = DONE;
    if (f->offset >= f->limit) return 0;
    if (f->n == 0) {
        f->value = f->limit = f->offset;
        return lift(f, w->alive);
    }
    bound_by_cliques(w, f);
    if (w->unit) bound_by_matching(w, f);
    f->rest = 0;
    for (int32_t k = 0; k < f->parts; ++k) f->rest += f->part_bound[k];
    if (f->offset + f->rest < f->limit) f->state = f->parts > 1 ? SPLIT : FIRST;
    return 0;
}

/* A node of largest degree; of these the one whose neighbours have the fewest edges among them (first of equals). */
static int32_t branch_node(Work *w, const Frame *f) {
    int32_t best = 0, most = 0, *mark = w->a;
    int64_t fewest = 0;
    for (int32_t v = 0; v < f->n; ++v) {
        const int32_t deg = f->ptr[v + 1] - f->ptr[v];
        most = deg > most ? deg : most;
        mark[v] = -1;
    }
    best = -1;
    for (int32_t v = 0; v < f->n; ++v) {
        int64_t inside = 0;
        if (f->ptr[v + 1] - f->ptr[v] < most) continue;
        for (int32_t j = f->ptr[v]; j < f->ptr[v + 1]; ++j) mark[f->adj[j]] = v;
        for (int32_t j = f->ptr[v]; j < f->ptr[v + 1]; ++j)
            for (int32_t i = f->ptr[f->adj[j]]; i < f->ptr[f->adj[j] + 1]; ++i) inside += mark[f->adj[i]] == v;
        if (best < 0 || inside < fewest) {
            best = v;
            fewest = inside;
        }
    }
    return best;
}

/* A frame of `count` nodes of f; number [f->n] is at least 0 for these, and for no neighbour of them that is not one.
 * limit: what its cover must cost less than. */
static int push(Search *s, Frame *f, const int32_t *nodes, int32_t count, int32_t *number, int64_t limit) {
    Frame *child = calloc(1, sizeof *child);
    int64_t entries = 0;
    int32_t at = 0, *ptr, *adj;
    if (!child) return -1;
    child->parent = f;
    child->value = NEVER;
    child->limit = limit;
    child->n_in = count;
    s->top = child;
    for (int32_t i = 0; i < count; ++i) {
        number[nodes[i]] = i;
        entries += f->ptr[nodes[i] + 1] - f->ptr[nodes[i]];
    }
    child->to_parent = malloc((size_t)count * 4 + 8);
    ptr = malloc((size_t)(count + 1) * 4);
    adj = malloc((size_t)entries * 4 + 8);
    int64_t *weight = malloc((size_t)count * 8 + 8);
    int status = child->to_parent && ptr && adj && weight ? 0 : -1;
    if (status == 0) {
        for (int32_t i = 0; i < count; ++i) {
            const int32_t v = nodes[i];
            child->to_parent[i] = v;
            weight[i] = f->weight[v];
            ptr[i] = at;
            for (int32_t j = f->ptr[v]; j < f->ptr[v + 1]; ++j)
                if (number[f->adj[j]] >= 0) adj[at++] = number[f->adj[j]];
        }
        ptr[count] = at;
        status = prepare(s, child, ptr, adj, weight);
    }
    if (status == 0) {
        child->bytes = 4 * child->entries + 4 * (int64_t)child->ptr[child->n] + 48 * child->n + 8 * count;
        s->held += child->bytes;
        if (s->held > MOST_HELD) status = -1;
    }
    free(ptr);
    free(adj);
    free(weight);
    return status;
}

/* The child of a branch: its node in the cover, then its neighbours in the cover instead. */
static int push_branch(Search *s, Frame *f) {
    Work *w = &s->work;
    int32_t *number = w->e, *nodes = w->d, count = 0;
    int64_t paid = 0;
    if (f->state == FIRST) f->node = branch_node(w, f);
    for (int32_t v = 0; v < f->n; ++v) number[v] = 0;
    number[f->node] = -1;
    if (f->state == FIRST) paid = f->weight[f->node];
    else
        for (int32_t j = f->ptr[f->node]; j < f->ptr[f->node + 1]; ++j) {
            number[f->adj[j]] = -1;
            paid += f->weight[f->adj[j]];
        }
    for (int32_t v = 0; v < f->n; ++v)
        if (number[v] == 0) nodes[count++] = v;
    return push(s, f, nodes, count, number, f->limit - f->offset - paid);
}

/* part_order by size, ties by number: counting sort. */
static void order_parts(Frame *f, int32_t *start) {
    memset(start, 0, (size_t)(f->n + 2) * 4);
    for (int32_t k = 0; k < f->parts; ++k) start[f->part_start[k + 1] - f->part_start[k] + 1] += 1;
    for (int32_t i = 0; i <= f->n; ++i) start[i + 1] += start[i];
    for (int32_t k = 0; k < f->parts; ++k) f->part_order[start[f->part_start[k + 1] - f->part_start[k]]++] = k;
}

static int push_part(Search *s, Frame *f) {
    if (f->part == 0) order_parts(f, s->work.a);
    const int32_t k = f->part_order[f->part], first = f->part_start[k], count = f->part_start[k + 1] - first;
    return push(s, f, f->part_nodes + first, count, s->work.e, f->limit - f->offset - (f->rest - f->part_bound[k]));
}

/* Take over what a finished child found. */
static int collect(Search *s, Frame *f, const Frame *child) {
    const int found = child->value < NEVER;
    if (f->state == SPLIT) {
        if (!found) {
            f->state = DONE;
            return 0;
        }
        f->rest += child->value - f->part_bound[f->part_order[f->part]];
        for (int32_t i = 0; i < child->n_in; ++i) f->left[child->to_parent[i]] = child->cover[i];
        if (++f->part < f->parts) return 0;
        f->value = f->offset + f->rest;
        f->state = DONE;
        return lift(f, s->work.alive);
    }
    const int first = f->state == FIRST;
    f->state = first ? SECOND : DONE;
    if (!found) return 0;
    memset(f->left, 0, (size_t)f->n);
    int64_t cost = f->offset;
    if (first) f->left[f->node] = 1;
    else
        for (int32_t j = f->ptr[f->node]; j < f->ptr[f->node + 1]; ++j) f->left[f->adj[j]] = 1;
    for (int32_t i = 0; i < child->n_in; ++i) f->left[child->to_parent[i]] = child->cover[i];
    for (int32_t v = 0; v < f->n; ++v) cost += f->left[v] ? f->weight[v] : 0;
    f->value = f->limit = cost;
    return lift(f, s->work.alive);
}

/* ---- the search ------------------------------------------------------------------------------------------------ */

void lk_branch_free(Search *s) {
    if (!s) return;
    while (s->top) {
        Frame *f = s->top;
        s->top = f->parent;
        free_frame(f);
    }
    free_work(&s->work);
    free(s->cover);
    free(s);
}

/* A search for the cheapest cover that costs less than `limit`. Null without memory. */
Search *lk_branch_new(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weights, int64_t limit) {
    Search *s = calloc(1, sizeof *s);
    Frame *f = calloc(1, sizeof *f);
    int32_t *ptr = malloc((size_t)(n + 1) * 4);
    if (s) s->cover = calloc((size_t)n + 1, 1);
    if (s) s->top = f;
    if (!s || !f || !ptr || !s->cover) {
        free(ptr);
        if (!s) free(f);
        lk_branch_free(s);
        return 0;
    }
    s->n = (int32_t)n;
    s->value = f->value = NEVER;
    f->n_in = (int32_t)n;
    f->limit = limit;
    for (int64_t v = 0; v <= n; ++v) ptr[v] = (int32_t)indptr[v];
    s->failed = prepare(s, f, ptr, indices, weights) < 0;
    free(ptr);
    return s;
}

/* Work on at most `nodes` tree nodes. Returns 0: there is more to do, 1: finished, -1: out of memory. */
int64_t lk_branch_run(Search *s, int64_t nodes) {
    while (s->top && nodes > 0 && !s->failed) {
        Frame *f = s->top;
        if (f->state == FIRST || f->state == SECOND) {
            if (f->offset + f->part_bound[0] >= f->limit) f->state = DONE;
            else s->failed = push_branch(s, f) < 0;
            nodes -= 1;
            s->nodes += 1;
        } else if (f->state == SPLIT) {
            s->failed = push_part(s, f) < 0;
            nodes -= 1;
            s->nodes += 1;
        } else {
            if (f->parent) s->failed = collect(s, f->parent, f) < 0;
            else if (f->value < NEVER) {
                s->value = f->value;
                memcpy(s->cover, f->cover, (size_t)s->n);
            }
            s->top = f->parent;
            s->held -= f->bytes;
            free_frame(f);
        }
    }
    return s->failed ? -1 : !s->top;
}

/* What a finished search found: the cost, -1 where every cover costs at least the limit. cover [n]. */
int64_t lk_branch_result(const Search *s, uint8_t *cover, int64_t *nodes) {
    *nodes = s->nodes;
    if (s->value >= NEVER) return -1;
    memcpy(cover, s->cover, (size_t)s->n);
    return s->value;
}
