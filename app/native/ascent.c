/* Dual ascent for Steiner trees, distances along arcs, and trees along them (app/bounds/steiner/ascent.py). Integers only;
 * plain.py there has the same steps in Python, with the same results.
 *
 * Entry i of row v is the arc from indices[i] to v; room[i] what is left of its length, below 0: there is no such arc. */
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "heap.h"
#include "sift.h"

enum { GOING = 0, DONE = 1, FULL = 2 };

typedef struct {
    int64_t n, k, root, most, lower, work, waiting, used, slots, stamp;
    const int64_t *indptr;
    const int32_t *indices;
    int64_t *room;
    const int32_t *place;     /* [n] the number of a terminal, -1 */
    const int64_t *terminals; /* [k] */
    uint8_t *active;          /* [k] */
    int64_t *total;           /* [k] what a terminal's cuts were raised by */
    int64_t *first, *last;    /* [k] of the list of its nodes, -1 */
    int64_t *heap;            /* [k+1] size of the cut * k + terminal */
    int32_t *mark;            /* [n] the search that has come to a node */
    int32_t *front;           /* [n] nodes of the cut */
    int64_t *cut;             /* [nnz] its arcs, some of them between its nodes by now */
    int32_t *node, *owner;    /* [slots] a node that has joined a terminal's cut, */
    int64_t *height, *next;   /* [slots] when it had been raised by so much; the next in the list */
} Ascent;

/* A cut that is being looked at. */
typedef struct {
    int64_t terminal, nodes, looked_at, arcs, least;
} Cut;

INLINE void join(Ascent *a, Cut *c, int32_t u, int listed) {
    a->mark[u] = (int32_t)a->stamp;
    a->front[c->nodes++] = u;
    if (listed) return;
    const int64_t slot = a->used++;
    a->node[slot] = u;
    a->owner[slot] = (int32_t)c->terminal;
    a->height[slot] = a->total[c->terminal];
    a->next[slot] = -1;
    if (a->last[c->terminal] < 0) a->first[c->terminal] = slot;
    else a->next[a->last[c->terminal]] = slot;
    a->last[c->terminal] = slot;
}

/* Whether a node ends the work on a terminal: the root, or another terminal whose cuts are still raised. */
INLINE int ends(const Ascent *a, const Cut *c, int32_t u) {
    const int32_t other = a->place[u];
    return u == a->root || (other >= 0 && other != c->terminal && a->active[other]);
}

/* Nodes that reach the cut's by arcs without room join. Returns 1 where one ends the work. */
static int grow(Ascent *a, Cut *c) {
    while (c->looked_at < c->nodes) {
        const int32_t v = a->front[c->looked_at++];
        a->work += a->indptr[v + 1] - a->indptr[v] + 1;
        for (int64_t i = a->indptr[v]; i < a->indptr[v + 1]; ++i) {
            const int32_t u = a->indices[i];
            if (a->room[i] < 0 || a->mark[u] == a->stamp) continue;
            if (a->room[i] > 0) a->cut[c->arcs++] = i;
            else if (ends(a, c, u)) return 1;
            else join(a, c, u, 0);
        }
    }
    int64_t kept = 0;
    c->least = INT64_MAX;
    a->work += c->arcs;
    for (int64_t j = 0; j < c->arcs; ++j) {
        const int64_t i = a->cut[j];
        if (a->mark[a->indices[i]] == a->stamp) continue;
        if (a->room[i] < c->least) c->least = a->room[i];
        a->cut[kept++] = i;
    }
    c->arcs = kept;
    return 0;
}

/* Raises the cut by the least room of its arcs; returns 1 where a node that ends the work has joined. */
static int rise(Ascent *a, Cut *c) {
    const int64_t missing = a->most - a->lower, by = c->least < missing ? c->least : missing;
    a->total[c->terminal] += by;
    a->lower += by;
    a->work += c->arcs;
    int over = 0;
    for (int64_t j = 0; j < c->arcs; ++j) a->room[a->cut[j]] -= by;
    for (int64_t j = 0; j < c->arcs && !over; ++j) {
        const int32_t u = a->indices[a->cut[j]];
        if (a->room[a->cut[j]] > 0 || a->mark[u] == a->stamp) continue;
        if (ends(a, c, u)) over = 1;
        else join(a, c, u, 0);
    }
    return over;
}

static void look_at(Ascent *a, Cut *c, int64_t terminal) {
    *c = (Cut){terminal, 0, 0, 0, 0};
    ++a->stamp;
    if (a->first[terminal] < 0) join(a, c, (int32_t)a->terminals[terminal], 0);
    else
        for (int64_t slot = a->first[terminal]; slot >= 0; slot = a->next[slot]) join(a, c, a->node[slot], 1);
}

/* Goes on until the work has reached `until`; FULL: n more slots are wanted. */
int64_t lk_ascent_run(Ascent *a, int64_t until) {
    Heap heap = {a->heap, a->waiting, a->k + 1};
    int64_t status = DONE;
    while (heap.count && a->lower < a->most) {
        status = a->slots - a->used < a->n ? FULL : a->work >= until ? GOING : DONE;
        if (status != DONE) break;
        Cut c;
        look_at(a, &c, heap_pop(&heap) % a->k);
        int over = grow(a, &c);
        while (!over && a->lower < a->most) {
            const int64_t smallest = heap.count ? heap.key[0] / a->k : c.arcs;
            if (4 * c.arcs > 5 * smallest) break;
            over = rise(a, &c) || grow(a, &c);
        }
        if (over) a->active[c.terminal] = 0;
        else heap_push(&heap, c.arcs * a->k + c.terminal);
    }
    a->waiting = heap.count;
    return status;
}

/* A heap of (distance, node), the least distance on top, of equal ones the smallest node. */
typedef struct {
    int64_t far;
    int32_t node;
} Reached;

typedef struct {
    Reached *items;
    int64_t count, room;
} Queue;

INLINE int before(Reached a, Reached b) { return a.far != b.far ? a.far < b.far : a.node < b.node; }

SIFTS(Reached, before, queue_rise, queue_sink)

static int queue_push(Queue *q, Reached item) {
    if (q->count == q->room) {
        Reached *more = realloc(q->items, (size_t)(2 * q->room) * sizeof *more);
        if (!more) return -1;
        q->items = more;
        q->room *= 2;
    }
    queue_rise(q->items, q->count++, item);
    return 0;
}

static Reached queue_pop(Queue *q) {
    const Reached top = q->items[0];
    q->count -= 1;
    queue_sink(q->items, q->count, 0, q->items[q->count]);
    return top;
}

/* The least distance of every node from the k nodes of `from`, along the entries of rows with these lengths (below 0: none);
 * `most` + 1 where it is more than `most`. Returns 0, -1 without memory. */
int64_t lk_arc_distances(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *length, int64_t k,
                         const int64_t *from, int64_t most, int64_t *far) {
    Queue q = {malloc(1024 * sizeof *q.items), 0, 1024};
    int64_t failed = q.items ? 0 : -1;
    for (int64_t v = 0; v < n; ++v) far[v] = most + 1;
    for (int64_t j = 0; j < k && !failed && most >= 0; ++j) {
        far[from[j]] = 0;
        failed = queue_push(&q, (Reached){0, (int32_t)from[j]});
    }
    while (q.count && !failed) {
        const Reached at = queue_pop(&q);
        if (at.far > far[at.node]) continue;
        for (int64_t i = indptr[at.node]; i < indptr[at.node + 1] && !failed; ++i) {
            const int32_t u = indices[i];
            if (length[i] < 0 || length[i] > most - at.far || at.far + length[i] >= far[u]) continue;
            far[u] = at.far + length[i];
            failed = queue_push(&q, (Reached){far[u], u});
        }
    }
    free(q.items);
    return failed;
}

/* A tree from the root to all terminals (wanted [n] 1) along entries with a length of 0 or more: by turns the nearest terminal
 * joins on its shortest path. parent [n]: -1 outside the tree. Returns how many terminals it lacks, -1 without memory. */
int64_t lk_tree_along(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *length, const uint8_t *wanted,
                        int64_t root, int64_t *parent) {
    Queue q = {malloc(1024 * sizeof *q.items), 0, 1024};
    int64_t *far = malloc((size_t)(n + 1) * sizeof *far), missing = 0;
    int32_t *by = malloc((size_t)(n + 1) * sizeof *by);
    int failed = !q.items || !far || !by;
    for (int64_t v = 0; v < n && !failed; ++v) {
        far[v] = INT64_MAX;
        by[v] = -1;
        parent[v] = -1;
        missing += wanted[v] && v != root;
    }
    if (!failed) {
        far[root] = 0;
        parent[root] = root;
        failed = queue_push(&q, (Reached){0, (int32_t)root});
    }
    while (q.count && !failed && missing) {
        const Reached at = queue_pop(&q);
        if (at.far > far[at.node]) continue;
        if (wanted[at.node] && parent[at.node] < 0) { /* its path joins, and its nodes are at no distance from now on */
            for (int32_t v = at.node; parent[v] < 0 && !failed; v = by[v]) {
                parent[v] = by[v];
                far[v] = 0;
                missing -= wanted[v];
                failed = queue_push(&q, (Reached){0, v});
            }
            continue;
        }
        for (int64_t i = indptr[at.node]; i < indptr[at.node + 1] && !failed; ++i) {
            const int32_t u = indices[i];
            if (length[i] < 0 || parent[u] >= 0 || at.far + length[i] >= far[u]) continue;
            far[u] = at.far + length[i];
            by[u] = at.node;
            failed = queue_push(&q, (Reached){far[u], u});
        }
    }
    free(q.items);
    free(far);
    free(by);
    return failed ? -1 : missing;
}

/* Whether and how a flow comes from the root to t: levels are distances to t by arcs with something left. */
typedef struct {
    int64_t n;
    const int64_t *indptr, *back;
    const int32_t *indices;
    int64_t *left;        /* [nnz] of the capacity of an arc */
    int32_t *level, *list; /* [n] -1: does not reach t; nodes in the order of their levels */
    int64_t *current, *path; /* [n] the entry that a node's search stands at; entries of the path from the root */
} Flow;

/* Returns how many nodes reach t: fewer than all of interest where the root is among them. */
static int64_t levels(Flow *f, int64_t root, int64_t t) {
    int64_t count = 0;
    for (int64_t v = 0; v < f->n; ++v) f->level[v] = -1;
    f->level[t] = 0;
    f->list[count++] = (int32_t)t;
    for (int64_t at = 0; at < count && f->level[root] < 0; ++at) {
        const int32_t v = f->list[at];
        for (int64_t i = f->indptr[v]; i < f->indptr[v + 1]; ++i) {
            const int32_t u = f->indices[i];
            if (f->left[i] <= 0 || f->level[u] >= 0) continue;
            f->level[u] = f->level[v] + 1;
            f->list[count++] = u;
        }
    }
    return count;
}

/* A flow that no shortest way adds to, of `most` at most. */
static int64_t blocking(Flow *f, int64_t root, int64_t t, int64_t most) {
    int64_t flow = 0, depth = 0, v = root;
    for (int64_t u = 0; u < f->n; ++u) f->current[u] = f->indptr[u];
    while (flow < most) {
        if (v == t) {
            int64_t by = most - flow, kept = 0;
            for (int64_t j = 0; j < depth; ++j) by = f->left[f->path[j]] < by ? f->left[f->path[j]] : by;
            for (int64_t j = depth - 1; j >= 0; --j) {
                f->left[f->path[j]] -= by;
                f->left[f->back[f->path[j]]] += by;
                if (!f->left[f->path[j]]) kept = j;
            }
            flow += by;
            depth = kept;
            v = depth ? f->indices[f->back[f->path[depth - 1]]] : root;
            continue;
        }
        int64_t *at = &f->current[v];
        for (; *at < f->indptr[v + 1]; ++*at) {
            const int32_t u = f->indices[*at];
            if (f->left[f->back[*at]] > 0 && f->level[u] >= 0 && f->level[u] == f->level[v] - 1) break;
        }
        if (*at < f->indptr[v + 1]) {
            f->path[depth++] = f->back[*at];
            v = f->indices[*at];
        } else {
            if (!depth) break;
            f->level[v] = -1;
            --depth;
            v = f->indices[f->path[depth]];
        }
    }
    return flow;
}

/* Cuts between the root and terminals [k] that arcs with these capacities [nnz] hold less than `one` of. The arcs of a cut that was
 * found have the capacity `one` from then on; of each terminal at most `each` cuts. Fills terminal, ptr [slots+1] and nodes [space];
 * ends where there may be no room for another. Returns how many, -1 without memory; *at: the first terminal that was not done. */
int64_t lk_directed_cuts(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *back, int64_t *capacity,
                         int64_t root, int64_t k, const int64_t *terminals, int64_t one, int64_t each, int64_t slots,
                         int64_t space, int64_t *terminal, int64_t *ptr, int32_t *nodes, int64_t *at) {
    const int64_t entries = indptr[n];
    int64_t *left = malloc((size_t)(entries + 2 * n + 2) * sizeof *left), found = 0, j = *at;
    int32_t *marks = malloc((size_t)(2 * n + 2) * sizeof *marks);
    Flow f = {n, indptr, back, indices, left, marks, marks ? marks + n : NULL, left ? left + entries : NULL,
              left ? left + entries + n : NULL};
    int full = !left || !marks;
    ptr[0] = 0;
    for (; j < k && !full; j += !full) {
        for (int64_t cut = 0; cut < each; ++cut) {
            int64_t flow = 0, count = 0;
            full = found == slots || ptr[found] + n > space;
            if (full) break;
            memcpy(left, capacity, (size_t)entries * sizeof *left);
            while (flow < one) {
                count = levels(&f, root, terminals[j]);
                if (f.level[root] < 0) break;
                flow += blocking(&f, root, terminals[j], one - flow);
            }
            if (flow >= one) break;
            terminal[found] = terminals[j];
            for (int64_t a = 0; a < count; ++a) {
                const int32_t v = f.list[a];
                nodes[ptr[found] + a] = v;
                for (int64_t i = indptr[v]; i < indptr[v + 1]; ++i)
                    if (f.level[indices[i]] < 0) capacity[i] = one;
            }
            ptr[found + 1] = ptr[found] + count;
            ++found;
        }
    }
    *at = j;
    free(left);
    free(marks);
    return found || (left && marks) ? found : -1;
}
