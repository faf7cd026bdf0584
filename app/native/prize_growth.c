/* Growth of clusters by their prizes (Goemans and Williamson): the edges that join them. app/search/steiner/plain_growth.py
 * has the same. */
#include <stdint.h>
#include <stdlib.h>

#include "common.h"
#include "links.h"

#define MOST ((int64_t)1 << 60) /* that a cluster has left: longer than all growth takes, which ends before 2^58 */

typedef struct {
    int64_t n;
    const int64_t *indptr;
    const int32_t *indices, *row;
    const int64_t *lengths;
    int32_t *above, *next, *last; /* of each node one of its cluster; lists of the nodes of clusters */
    int64_t *grown;               /* at a root: how far its nodes had grown at `since`; else beside the node above */
    int64_t *since, *left;        /* at roots: when that was, and what was left of the prizes */
    uint8_t *active;
    int64_t now, count; /* count: active clusters */
} Clusters;

/* The root of a node's cluster, and how far the node has grown. */
static int32_t root_of(Clusters *c, int32_t x, int64_t *far) {
    int64_t beside = 0;
    while (c->above[x] != x) {
        const int32_t p = c->above[x];
        if (c->above[p] != p) { /* halve the way */
            c->grown[x] += c->grown[p];
            c->above[x] = c->above[p];
        }
        beside += c->grown[x];
        x = c->above[x];
    }
    *far = beside + c->grown[x] + (c->active[x] ? c->now - c->since[x] : 0);
    return x;
}

/* When an entry of the graph is full, if clusters go on as they do. Returns whether it is full now. */
static int wait_for(Clusters *c, Links *heap, int64_t e, int *failed) {
    int64_t one, other;
    const int32_t u = c->row[e], a = root_of(c, u, &one), b = root_of(c, c->indices[e], &other);
    const int64_t rate = c->active[a] + c->active[b], room = c->lengths[e] - one - other;
    if (a == b || !rate) return 0;
    if (room < rate) return 1;
    *failed |= push_both(heap, c->now + room / rate, u, (int32_t)(e - c->indptr[u]));
    return 0;
}

static void settle(Clusters *c, int32_t root) {
    if (c->active[root]) {
        c->grown[root] += c->now - c->since[root];
        c->left[root] -= c->now - c->since[root];
    }
    c->since[root] = c->now;
}

/* The clusters of a full entry become one. */
static void unite(Clusters *c, Links *heap, int64_t e, int *failed) {
    int64_t far;
    int32_t a = root_of(c, c->row[e], &far), b = root_of(c, c->indices[e], &far);
    const int32_t slept = !c->active[a] ? a : !c->active[b] ? b : -1, end = slept < 0 ? -1 : c->last[slept];
    settle(c, a);
    settle(c, b);
    c->count -= c->active[a] && c->active[b];
    if (b < a) {
        const int32_t t = a;
        a = b;
        b = t;
    }
    c->above[b] = a;
    c->grown[b] -= c->grown[a];
    c->left[a] = c->left[a] + c->left[b] < MOST ? c->left[a] + c->left[b] : MOST;
    c->active[a] = 1;
    c->next[c->last[a]] = b;
    c->last[a] = c->last[b];
    *failed |= push_both(heap, c->now + c->left[a], (int32_t)c->n + a, 0);
    for (int32_t x = slept; x >= 0; x = x == end ? -1 : c->next[x]) /* awake again */
        for (int64_t i = c->indptr[x]; i < c->indptr[x + 1] && !*failed; i++)
            if (wait_for(c, heap, i, failed)) *failed |= push_both(heap, c->now, x, (int32_t)(i - c->indptr[x]));
}

/* The entries that join clusters, in order, until one cluster at most is active. Returns how many, -1 without memory. */
int64_t lk_prize_growth(
    int64_t n, const int64_t *indptr, const int32_t *indices, const int32_t *row, const int64_t *lengths, const int64_t *prizes,
    int64_t *joined) {
    Links heap = {0};
    Clusters c = {n, indptr, indices, row, lengths};
    int64_t found = 0;
    int failed = 0;
    int32_t *three = malloc((size_t)(3 * n + 1) * sizeof *three);
    int64_t *wide = calloc((size_t)(3 * n + 1), sizeof *wide);
    c.active = calloc((size_t)n + 1, 1);
    if (!three || !wide || !c.active) failed = -1;
    if (!failed) {
        c.above = three, c.next = three + n, c.last = three + 2 * n;
        c.grown = wide, c.since = wide + n, c.left = wide + 2 * n;
    }
    for (int64_t x = 0; x < n && !failed; x++) {
        c.above[x] = c.last[x] = (int32_t)x;
        c.next[x] = -1;
        c.left[x] = prizes[x];
        c.active[x] = prizes[x] > 0;
        c.count += c.active[x];
        if (c.active[x]) failed |= push_both(&heap, prizes[x], (int32_t)(n + x), 0);
    }
    for (int64_t e = 0; !failed && e < indptr[n]; e++)
        if (row[e] < indices[e] && wait_for(&c, &heap, e, &failed)) failed |= push_both(&heap, 0, row[e], (int32_t)(e - indptr[row[e]]));
    while (!failed && heap.count && c.count > 1) {
        const Link it = pop(&heap);
        c.now = it.cost;
        if (it.x >= n) { /* a cluster whose prizes are spent sleeps */
            const int32_t root = it.x - (int32_t)n;
            if (c.above[root] != root || !c.active[root] || c.left[root] > c.now - c.since[root]) continue;
            settle(&c, root);
            c.active[root] = 0;
            c.count -= 1;
            continue;
        }
        const int64_t e = indptr[it.x] + it.y;
        if (!wait_for(&c, &heap, e, &failed) || failed) continue;
        joined[found++] = e;
        unite(&c, &heap, e, &failed);
    }
    free(three), free(wide), free(c.active), free(heap.item);
    return failed ? -1 : found;
}
