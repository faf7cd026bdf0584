/* Graphs that change: a list of neighbours for each node, and a heap of the nodes that are left. */
#ifndef LOCKSTEP_LISTS_H
#define LOCKSTEP_LISTS_H

#include <stdint.h>
#include <stdlib.h>

#include "common.h"

typedef struct {
    int32_t *near; /* ascending */
    int64_t size, room;
} List;

INLINE int64_t find_in(const List *l, int32_t v) {
    int64_t a = 0, b = l->size;
    while (a < b) {
        const int64_t m = (a + b) / 2;
        if (l->near[m] < v) a = m + 1;
        else b = m;
    }
    return a;
}

INLINE int64_t common(const List *a, const List *b) {
    int64_t i = 0, j = 0, count = 0;
    while (i < a->size && j < b->size) {
        const int32_t x = a->near[i], y = b->near[j];
        count += x == y;
        i += x <= y;
        j += y <= x;
    }
    return count;
}

typedef struct {
    int64_t score;
    int32_t tie, node;
} Entry;

INLINE int before(Entry a, Entry b) {
    return a.score != b.score ? a.score < b.score : a.tie < b.tie;
}

/* A heap of all nodes that are left, with the place of each. */
typedef struct {
    Entry *entry;
    int32_t *place;
    int64_t count;
} Queue;

INLINE void sift(Queue *q, int64_t i) {
    const Entry own = q->entry[i];
    while (i > 0 && before(own, q->entry[(i - 1) / 2])) {
        q->entry[i] = q->entry[(i - 1) / 2];
        q->place[q->entry[i].node] = (int32_t)i;
        i = (i - 1) / 2;
    }
    for (;;) {
        int64_t c = 2 * i + 1;
        if (c >= q->count) break;
        if (c + 1 < q->count && before(q->entry[c + 1], q->entry[c])) c += 1;
        if (!before(q->entry[c], own)) break;
        q->entry[i] = q->entry[c];
        q->place[q->entry[i].node] = (int32_t)i;
        i = c;
    }
    q->entry[i] = own;
    q->place[own.node] = (int32_t)i;
}

INLINE void rescore(Queue *q, int32_t v, int64_t score) {
    const int64_t i = q->place[v];
    if (q->entry[i].score == score) return;
    q->entry[i].score = score;
    sift(q, i);
}

/* near := (near + others) - {v, own}, both ascending; returns the nodes that are new, -1 without memory. */
INLINE int64_t take_in(List *l, const List *others, int32_t v, int32_t own, int32_t *scratch) {
    int64_t i = 0, j = 0, size = 0, fresh = 0;
    while (i < l->size || j < others->size) {
        const int32_t x = i < l->size ? l->near[i] : INT32_MAX, y = j < others->size ? others->near[j] : INT32_MAX;
        const int32_t least = x < y ? x : y;
        i += x == least;
        j += y == least;
        if (least == v || least == own) continue;
        fresh += x != least;
        scratch[size++] = least;
    }
    if (size > l->room) {
        int32_t *more = realloc(l->near, (size_t)(size + size / 4) * sizeof *more);
        if (!more) return -1;
        l->near = more;
        l->room = size + size / 4;
    }
    memcpy(l->near, scratch, (size_t)size * sizeof *scratch);
    l->size = size;
    return fresh;
}

/* The lists of a graph; 0 without memory. */
INLINE int fill_lists(List *near, int64_t n, const int64_t *indptr, const int32_t *indices) {
    for (int64_t v = 0; v < n; v++) {
        near[v].size = near[v].room = indptr[v + 1] - indptr[v];
        near[v].near = malloc((size_t)(near[v].size + 1) * sizeof(int32_t));
        if (!near[v].near) return 0;
        memcpy(near[v].near, indices + indptr[v], (size_t)near[v].size * sizeof(int32_t));
    }
    return 1;
}

/* The node on top goes. */
INLINE int32_t take_top(Queue *q) {
    const int32_t v = q->entry[0].node;
    q->entry[0] = q->entry[--q->count];
    if (q->count) sift(q, 0);
    q->place[v] = -1;
    return v;
}

/* A node comes, the last one. */
INLINE void take_node(Queue *q, Entry entry) {
    q->entry[q->count] = entry;
    q->place[entry.node] = (int32_t)q->count++;
    sift(q, q->count - 1);
}

INLINE int holds(const List *l, int32_t v) {
    const int64_t at = find_in(l, v);
    return at < l->size && l->near[at] == v;
}

/* v, which is not there, comes in; 0 without memory. */
INLINE int enter(List *l, int32_t v) {
    if (l->size == l->room) {
        const int64_t room = l->size + l->size / 4 + 4;
        int32_t *more = realloc(l->near, (size_t)room * sizeof *more);
        if (!more) return 0;
        l->near = more;
        l->room = room;
    }
    const int64_t at = find_in(l, v);
    memmove(l->near + at + 1, l->near + at, (size_t)(l->size - at) * sizeof(int32_t));
    l->near[at] = v;
    l->size += 1;
    return 1;
}

/* As common, a list that is much shorter looked up in the other. */
INLINE int64_t common_of(const List *a, const List *b) {
    const List *few = a->size < b->size ? a : b, *many = few == a ? b : a;
    if (16 * few->size > many->size) return common(few, many);
    int64_t count = 0;
    for (int64_t i = 0; i < few->size; i++) count += holds(many, few->near[i]);
    return count;
}

/* v, which is there, goes. */
INLINE void leave(List *l, int32_t v) {
    const int64_t at = find_in(l, v);
    memmove(l->near + at, l->near + at + 1, (size_t)(l->size - at - 1) * sizeof(int32_t));
    l->size -= 1;
}

#endif
