/* Elimination orders of least degree, in memory that is linear in the graph: what is left is kept as a quotient graph
   (Amestoy, Davis and Duff 1996). app/bounds/treewidth/quotients.py says what the parts are, and has the same without
   kernels, with the same results. */
#include <stdlib.h>

#include "common.h"

enum { VARIABLE, ELEMENT, GONE };

/* A list of a variable has its elements first, then variables; that of an element its variables. */
typedef struct {
    int64_t n, room, own, end;             /* nodes; places of the pool; whether own nodes count; places in use */
    int64_t left, made, count, work, tick; /* nodes left; eliminated; entries of the heap; those looked at; marks */
    int32_t *pool;                         /* [room] */
    int64_t *from;                         /* [n] where lists begin */
    int32_t *length, *elements;            /* [n] entries of lists; those that are elements */
    int32_t *kind, *many;                  /* [n]; nodes of a variable, or of the bag of an element without its own */
    int32_t *bag;                          /* [n] no fewer than the nodes of a variable's bag */
    int32_t *next, *last;                  /* [n] the nodes of a variable as a list */
    int32_t *outside, *inside;             /* [n] nodes of an element that are not near a pivot; the last pivot near */
    int64_t *mark;                         /* [n] the last tick of each */
    int32_t *slot, *bucket, *chain;        /* [n] variables by the sum of what is near them */
    int64_t *key;                          /* [n] degree, or size of the bag, then node */
    int32_t *rank;                         /* [n] comes before that; variables have nodes of one rank */
    int32_t *heap, *place;                 /* [n] */
    int32_t *order;                        /* [n] */
} Quotient;

INLINE int earlier(const Quotient *q, int32_t a, int32_t b) {
    return q->rank[a] != q->rank[b] ? q->rank[a] < q->rank[b] : q->key[a] < q->key[b];
}

static void sift(Quotient *q, int64_t i) {
    const int32_t own = q->heap[i];
    for (; i > 0 && earlier(q, own, q->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        q->heap[i] = q->heap[(i - 1) / 2];
        q->place[q->heap[i]] = (int32_t)i;
    }
    for (int64_t c = 2 * i + 1; c < q->count; c = 2 * i + 1) {
        if (c + 1 < q->count && earlier(q, q->heap[c + 1], q->heap[c])) c += 1;
        if (!earlier(q, q->heap[c], own)) break;
        q->heap[i] = q->heap[c];
        q->place[q->heap[i]] = (int32_t)i;
        i = c;
    }
    q->heap[i] = own;
    q->place[own] = (int32_t)i;
}

static void drop(Quotient *q, int32_t v) {
    const int64_t i = q->place[v];
    const int32_t other = q->heap[--q->count];
    if (other == v) return;
    q->heap[i] = other;
    q->place[other] = (int32_t)i;
    sift(q, i);
}

static int32_t lowest(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The nodes of a variable, ascending, go next. */
static void put(Quotient *q, int32_t v) {
    const int64_t first = q->made;
    for (int32_t u = v; u >= 0; u = q->next[u]) q->order[q->made++] = u;
    if (q->made - first > 1) qsort(q->order + first, (size_t)(q->made - first), sizeof(int32_t), lowest);
}

/* Lists that are in use, one behind the other. Returns -1 without memory. */
static int64_t compact(Quotient *q) {
    int32_t *held = malloc((size_t)(q->end + 1) * sizeof *held);
    if (!held) return -1;
    int64_t end = 0;
    for (int64_t v = 0; v < q->n; v++) {
        if (q->kind[v] == GONE) continue;
        memcpy(held + end, q->pool + q->from[v], (size_t)q->length[v] * sizeof *held);
        q->from[v] = end;
        end += q->length[v];
    }
    memcpy(q->pool, held, (size_t)end * sizeof *held);
    q->end = end;
    free(held);
    return 0;
}

/* The variables near p, at the end of the pool; returns how many, -1 without memory. */
static int64_t gather(Quotient *q, int32_t p, int64_t *weighs) {
    int64_t bound = q->length[p];
    for (int64_t e = 0; e < q->elements[p]; e++) bound += q->length[q->pool[q->from[p] + e]];
    if (bound > q->n) bound = q->n;
    if (q->end + bound > q->room && compact(q) < 0) return -1;
    int32_t *found = q->pool + q->end;
    int64_t count = 0;
    q->inside[p] = p;
    *weighs = 0;
    const int32_t *own = q->pool + q->from[p];
    for (int64_t at = 0; at < q->length[p]; at++) {
        const int32_t e = own[at], is = at < q->elements[p];
        if (is && q->kind[e] != ELEMENT) continue;
        const int32_t *list = is ? q->pool + q->from[e] : own + at;
        const int64_t size = is ? q->length[e] : 1;
        if (is) q->kind[e] = GONE;
        for (int64_t i = 0; i < size; i++) {
            const int32_t v = list[i];
            if (q->kind[v] != VARIABLE || q->inside[v] == p) continue;
            q->inside[v] = p;
            found[count++] = v;
            *weighs += q->many[v];
        }
    }
    return count;
}

/* What v is near to without what p has made needless, and with p; returns the sum of its numbers. To bag are added
   the nodes of its elements and variables that are not near p. */
static uint64_t prune(Quotient *q, int32_t v, int32_t p, int64_t *bag) {
    int32_t *list = q->pool + q->from[v];
    int32_t kept = 0;
    uint64_t sum = (uint64_t)p;
    for (int32_t at = 0; at < q->elements[v]; at++) {
        const int32_t e = list[at];
        if (q->kind[e] == ELEMENT && !q->outside[e]) q->kind[e] = GONE; /* all that are near e are near p */
        if (q->kind[e] != ELEMENT) continue;
        *bag += q->outside[e];
        sum += (uint64_t)e;
        list[kept++] = e;
    }
    const int32_t of_elements = kept;
    for (int32_t at = q->elements[v]; at < q->length[v]; at++) {
        const int32_t u = list[at];
        if (q->kind[u] != VARIABLE || q->inside[u] == p) continue;
        *bag += q->many[u];
        sum += (uint64_t)u;
        list[kept++] = u;
    }
    list[kept] = list[of_elements]; /* p was near v itself, or through an element that is gone: there is room */
    list[of_elements] = p;
    q->elements[v] = of_elements + 1;
    q->length[v] = kept + 1;
    return sum;
}

static int same(const Quotient *q, int32_t v) {
    const int32_t *list = q->pool + q->from[v];
    for (int32_t at = 0; at < q->length[v]; at++)
        if (q->mark[list[at]] != q->tick) return 0;
    return 1;
}

/* Variables of one bucket and rank that are near the same become one, of the lowest number. */
static void merge(Quotient *q, int32_t first) {
    for (int32_t v = first; v >= 0; v = q->chain[v]) {
        if (q->kind[v] != VARIABLE || q->chain[v] < 0) continue;
        const int32_t *list = q->pool + q->from[v], length = q->length[v], elements = q->elements[v];
        q->tick += 1;
        for (int32_t at = 0; at < length; at++) q->mark[list[at]] = q->tick;
        int32_t own = v;
        for (int32_t u = q->chain[v]; u >= 0; u = q->chain[u]) {
            if (q->kind[u] != VARIABLE || q->rank[u] != q->rank[v]) continue;
            if (q->length[u] != length || q->elements[u] != elements || !same(q, u)) continue;
            const int32_t into = u < own ? u : own, other = u < own ? own : u;
            q->many[into] += q->many[other];
            if (q->bag[other] < q->bag[into]) q->bag[into] = q->bag[other];
            q->next[q->last[into]] = other;
            q->last[into] = q->last[other];
            q->kind[other] = GONE;
            drop(q, other);
            own = into;
        }
    }
}

/* How many nodes of other elements are not near p. */
static void count_outside(Quotient *q, const int32_t *own, int64_t found) {
    q->tick += 1;
    for (int64_t i = 0; i < found; i++) {
        const int32_t v = own[i], *list = q->pool + q->from[v];
        for (int32_t at = 0; at < q->elements[v]; at++) {
            const int32_t e = list[at];
            if (q->kind[e] != ELEMENT) continue;
            if (q->mark[e] != q->tick) q->mark[e] = q->tick, q->outside[e] = q->many[e];
            q->outside[e] -= q->many[v];
        }
    }
}

static int64_t eliminate(Quotient *q, int32_t p) {
    int64_t weighs = 0;
    const int64_t found = gather(q, p, &weighs);
    if (found < 0) return -1;
    int32_t *own = q->pool + q->end;
    put(q, p);
    drop(q, p);
    q->left -= q->many[p];
    q->kind[p] = ELEMENT;
    q->many[p] = (int32_t)weighs;
    count_outside(q, own, found);
    for (int64_t i = 0; i < found; i++) {
        const int32_t v = own[i];
        int64_t bag = weighs;
        const uint64_t sum = prune(q, v, p, &bag);
        const int64_t known = q->bag[v] + weighs - q->many[v];
        if (bag > known) bag = known;
        q->bag[v] = (int32_t)(bag < q->left ? bag : q->left);
        q->work += 1 + q->length[v];
        q->slot[v] = (int32_t)(sum % (uint64_t)q->n);
        q->chain[v] = q->bucket[q->slot[v]];
        q->bucket[q->slot[v]] = v;
    }
    for (int64_t i = 0; i < found; i++) {
        merge(q, q->bucket[q->slot[own[i]]]);
        q->bucket[q->slot[own[i]]] = -1;
    }
    int32_t kept = 0;
    for (int64_t i = 0; i < found; i++) {
        const int32_t v = own[i];
        if (q->kind[v] != VARIABLE) continue;
        own[kept++] = v;
        q->key[v] = (int64_t)(q->bag[v] - (q->own ? 0 : q->many[v])) << 32 | v;
        sift(q, q->place[v]);
    }
    q->from[p] = q->end;
    q->length[p] = kept;
    q->end += kept;
    if (!kept) q->kind[p] = GONE;
    return 0;
}

/* All nodes as variables; lists, many, bag and key are there. */
void lk_quotient_load(Quotient *q) {
    for (int64_t v = 0; v < q->n; v++) {
        q->heap[v] = (int32_t)v;
        q->count = v + 1;
        sift(q, v);
    }
}

/* Eliminate nodes while there are some, and work is less than `most`. Returns -1 without memory. */
int64_t lk_quotient_run(Quotient *q, int64_t most) {
    while (q->count && q->work < most)
        if (eliminate(q, q->heap[0]) < 0) return -1;
    return 0;
}

/* What is left follows by degree. */
void lk_quotient_end(Quotient *q) {
    while (q->count) {
        const int32_t v = q->heap[0];
        put(q, v);
        drop(q, v);
    }
}
