/* Densest subgraphs: rounds of peeling, greedy growth, flows that balance loads; app/bounds/dense/balance.py describes
 * them, app/bounds/dense/plain.py has the same functions with the same results. */
#include <stdlib.h>

#include "common.h"

typedef __int128 Wide;

/* ---- a heap of nodes whose keys change, the least key on top, ties by rank ------------------------------------- */

typedef struct {
    double *key;        /* [n] */
    const int32_t *rank;
    int32_t *heap, *place;      /* [n] place: -1 where a node has gone */
    int64_t size;
} Queue;

INLINE int sooner(const Queue *q, int32_t a, int32_t b) {
    return q->key[a] < q->key[b] || (q->key[a] == q->key[b] && q->rank[a] < q->rank[b]);
}

INLINE void put(Queue *q, int64_t at, int32_t v) {
    q->heap[at] = v;
    q->place[v] = (int32_t)at;
}

static void up(Queue *q, int32_t v) {
    int64_t at = q->place[v];
    while (at > 0) {
        const int64_t above = (at - 1) / 2;
        if (!sooner(q, v, q->heap[above])) break;
        put(q, at, q->heap[above]);
        at = above;
    }
    put(q, at, v);
}

static void down(Queue *q, int32_t v) {
    int64_t at = q->place[v];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= q->size) break;
        if (child + 1 < q->size && sooner(q, q->heap[child + 1], q->heap[child])) ++child;
        if (!sooner(q, q->heap[child], v)) break;
        put(q, at, q->heap[child]);
        at = child;
    }
    put(q, at, v);
}

static int32_t pop(Queue *q) {
    const int32_t v = q->heap[0], last = q->heap[--q->size];
    q->place[v] = -1;
    if (q->size) {
        q->place[last] = 0;
        down(q, last);
    }
    return v;
}

static int queue_made(Queue *q, int64_t n, const int32_t *rank) {
    q->key = malloc((size_t)n * sizeof *q->key + 8);
    q->heap = malloc((size_t)n * sizeof *q->heap + 8);
    q->place = malloc((size_t)n * sizeof *q->place + 8);
    q->rank = rank;
    q->size = n;
    return q->key && q->heap && q->place;
}

static void queue_freed(Queue *q) {
    free(q->key);
    free(q->heap);
    free(q->place);
}

static void queue_sorted(Queue *q) {
    for (int64_t v = 0; v < q->size; ++v) put(q, v, (int32_t)v);
    for (int64_t i = q->size / 2 - 1; i >= 0; --i) down(q, q->heap[i]);
}

/* ---- rounds ---------------------------------------------------------------------------------------------------- */

/* A round of Greedy++. The node whose load and rest, for its size, is least goes, again and again; what it still has
 * is added to its load, and to what its entries hold. rest [n] comes as the weight at each node, and is spent. order
 * [n]: as they go. best: the weight and the size of the densest set known. Returns where in the order a denser one
 * begins, to the end; n: there is none; -1: no memory. */
int64_t lk_dense_round(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weight,
                       const int64_t *size, const int32_t *rank, int64_t *rest, int64_t *load, int64_t *held,
                       int32_t *order, int64_t *best) {
    Queue q;
    if (!queue_made(&q, n, rank)) {
        queue_freed(&q);
        return -1;
    }
    int64_t total = 0, sizes = 0, from = n;
    for (int64_t v = 0; v < n; ++v) {
        total += rest[v];
        sizes += size[v];
        q.key[v] = (double)(load[v] + rest[v]) / (double)size[v];
    }
    total /= 2;
    queue_sorted(&q);
    for (int64_t i = 0; i < n; ++i) {
        if ((Wide)total * best[1] > (Wide)best[0] * sizes) {
            best[0] = total;
            best[1] = sizes;
            from = i;
        }
        const int32_t v = pop(&q);
        order[i] = v;
        load[v] += rest[v];
        total -= rest[v];
        sizes -= size[v];
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
            const int32_t u = indices[j];
            if (q.place[u] < 0) continue;
            held[j] += weight[j];
            rest[u] -= weight[j];
            q.key[u] = (double)(load[u] + rest[u]) / (double)size[u];
            up(&q, u);
        }
    }
    queue_freed(&q);
    return from;
}

/* order [n]: from the node of most weight for its size on, the one that shares most weight with those before it, for
 * its size; of equal ones the lower rank. near [n] comes as the weight at each node. Returns -1 without memory. */
int64_t lk_dense_grow(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weight,
                      const int64_t *size, const int32_t *rank, const int64_t *near, int32_t *order) {
    Queue q;
    int64_t *shared = calloc((size_t)n + 1, sizeof *shared), first = 0;
    if (!queue_made(&q, n, rank) || !shared) {
        queue_freed(&q);
        free(shared);
        return -1;
    }
    for (int64_t v = 0; v < n; ++v) {
        q.key[v] = 0;
        const double one = (double)near[v] / (double)size[v], most = (double)near[first] / (double)size[first];
        if (one > most || (one == most && rank[v] < rank[first])) first = v;
    }
    if (n) q.key[first] = -1;
    queue_sorted(&q);
    for (int64_t i = 0; i < n; ++i) {
        const int32_t v = pop(&q);
        order[i] = v;
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
            const int32_t u = indices[j];
            if (q.place[u] < 0) continue;
            shared[u] += weight[j];
            q.key[u] = -(double)shared[u] / (double)size[u];
            weight[j] < 0 ? down(&q, u) : up(&q, u);
        }
    }
    queue_freed(&q);
    free(shared);
    return 0;
}

/* ---- flows ----------------------------------------------------------------------------------------------------- */

/* What entries hold, of `old` units to one of weight, in units of `fresh`: of the row that has the lower number
 * rounded down, of the other one the rest. */
void lk_dense_scale(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weight,
                    const int64_t *twin, int64_t *held, int64_t old, int64_t fresh) {
    for (int64_t v = 0; v < n; ++v)
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
            if (indices[j] <= v) continue;
            held[j] = (int64_t)((Wide)held[j] * fresh / old);
            held[twin[j]] = fresh * weight[j] - held[j];
        }
}

enum { BALANCED, MOVED, DENSER };

/* A phase of Dinic's algorithm. Nodes whose load is above cap give what they hold of edges to those at the other ends,
 * along shortest ways to nodes with room. level [n], queue [n], at [n] are room, path [n] too. Where no way is left the
 * nodes of level >= 0 are those that are reached, a denser set. */
int64_t lk_dense_phase(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *twin, int64_t *held,
                       int64_t *load, const int64_t *cap, int32_t *level, int32_t *queue, int64_t *at,
                       int64_t *path) {
    int64_t head = 0, tail = 0, sources;
    int32_t limit = INT32_MAX;
    for (int64_t v = 0; v < n; ++v) {
        level[v] = load[v] > cap[v] ? 0 : -1;
        if (!level[v]) queue[tail++] = (int32_t)v;
    }
    sources = tail;
    if (!sources) return BALANCED;
    while (head < tail) {
        const int32_t v = queue[head++];
        if (level[v] >= limit) break;
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
            const int32_t u = indices[j];
            if (level[u] >= 0 || !held[j]) continue;
            level[u] = level[v] + 1;
            queue[tail++] = u;
            if (load[u] < cap[u]) limit = level[u];
        }
    }
    if (limit == INT32_MAX) return DENSER;
    for (int64_t i = 0; i < tail; ++i) at[queue[i]] = indptr[queue[i]];
    for (int64_t i = 0; i < sources; ++i) {
        const int32_t s = queue[i];
        int64_t length = 0;
        int32_t v = s;
        while (load[s] > cap[s]) {
            if (load[v] < cap[v]) {
                int64_t amount = load[s] - cap[s];
                if (cap[v] - load[v] < amount) amount = cap[v] - load[v];
                for (int64_t k = 0; k < length; ++k)
                    if (held[path[k]] < amount) amount = held[path[k]];
                int64_t cut = length;
                for (int64_t k = length - 1; k >= 0; --k) {
                    held[path[k]] -= amount;
                    held[twin[path[k]]] += amount;
                    if (!held[path[k]]) cut = k;
                }
                load[s] -= amount;
                load[v] += amount;
                if (cut < length) {
                    v = indices[twin[path[cut]]];
                    length = cut;
                } else if (load[v] >= cap[v]) {
                    v = s;
                    length = 0;
                }
                continue;
            }
            int64_t j = at[v];
            const int64_t end = indptr[v + 1];
            if (level[v] < limit)
                while (j < end && (!held[j] || level[indices[j]] != level[v] + 1)) ++j;
            else
                j = end;
            at[v] = j;
            if (j < end) {
                path[length++] = j;
                v = indices[j];
            } else if (length) {
                v = indices[twin[path[--length]]];
                at[v] += 1;
            } else {
                break;
            }
        }
    }
    return MOVED;
}
