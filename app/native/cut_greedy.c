/* Cycles with an odd number of edges of positive weight, each with a value that all its edges still have room for: greedily,
 * triangles first, then by searches of bounded length (app/bounds/cut/greedy.py). Integers only; greedy_plain.py has the
 * same steps in Python, with the same results. */
#include <stdlib.h>
#include <string.h>

#include "common.h"

/* Takes the least room of count edges from all of them, and returns it. */
static int64_t take(int64_t *room, const int64_t *edges, int64_t count) {
    int64_t least = room[edges[0]];
    for (int64_t i = 1; i < count; ++i) least = room[edges[i]] < least ? room[edges[i]] : least;
    for (int64_t i = 0; i < count; ++i) room[edges[i]] -= least;
    return least;
}

/* Triangles of nodes *at .. end - 1 with later ones, `most` at most. Row v of start, ends, edge: the neighbours that are later in
 * an order of all nodes, and the numbers of these edges; odd [m]: of positive weight; room [m], in and out. seen [n]: zeros, and
 * zeros again afterwards. Fills nodes [most][3] and value [most]; returns how many; *at: the first node that was not done. */
int64_t lk_cut_triangles(int64_t end, const int64_t *start, const int32_t *ends, const int64_t *edge, const uint8_t *odd,
                         int64_t *room, int64_t *seen, int64_t most, int32_t *nodes, int64_t *value, int64_t *at) {
    int64_t found = 0, v = *at;
    for (; v < end && found < most; ++v) {
        for (int64_t i = start[v]; i < start[v + 1]; ++i) seen[ends[i]] = edge[i] + 1;
        for (int64_t i = start[v]; i < start[v + 1] && found < most; ++i) {
            const int32_t a = ends[i];
            for (int64_t j = start[a]; j < start[a + 1] && room[edge[i]] > 0 && found < most; ++j) {
                const int64_t third = seen[ends[j]] - 1;
                if (third < 0 || room[third] <= 0 || room[edge[j]] <= 0) continue;
                if (!((odd[edge[i]] + odd[edge[j]] + odd[third]) & 1)) continue;
                const int64_t edges[3] = {edge[i], edge[j], third};
                value[found] = take(room, edges, 3);
                nodes[3 * found] = (int32_t)v;
                nodes[3 * found + 1] = a;
                nodes[3 * found + 2] = ends[j];
                ++found;
            }
        }
        for (int64_t i = start[v]; i < start[v + 1]; ++i) seen[ends[i]] = 0;
        if (found == most) break; /* this node again: it may have more */
    }
    *at = v;
    return found;
}

/* A state is 2 v + side; an edge of positive weight leads to the other side. */
typedef struct {
    const int64_t *indptr, *edge;
    const int32_t *indices;
    const uint8_t *odd;
    int64_t *room;
    int64_t most;               /* entries that one search looks at */
    int32_t *stamp, *dist, *parent, *queue; /* [2n] the search that dist is of, edges from the root, the state before */
    int64_t *by;                /* [2n] the edge to it */
    int32_t *place;             /* [n] where a node stands on the walk, -1 */
    int32_t *walk;              /* [4n+4] states */
    int64_t *along;             /* [4n+4] the edge from a state of the walk to the next */
} Search;

/* A short walk from the root to its own other side, level by level from both at once, since what leads from the root to a state
 * leads from the other side of that state to the root's. Returns whether there is one, and where its halves meet. */
static int meet(Search *s, int32_t root, int32_t round, int32_t *ends, int64_t *between) {
    int64_t head = 0, tail = 0, scanned = 0;
    int32_t best = INT32_MAX;
    s->queue[tail++] = 2 * root;
    s->stamp[2 * root] = round;
    s->dist[2 * root] = 0;
    s->parent[2 * root] = -1;
    while (head < tail) {
        const int32_t state = s->queue[head++], v = state >> 1, d = s->dist[state];
        if (2 * d + 1 >= best) break;
        for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
            if (scanned++ >= s->most) return best < INT32_MAX;
            const int64_t e = s->edge[j];
            if (s->room[e] <= 0) continue;
            const int32_t next = 2 * s->indices[j] + ((state & 1) ^ s->odd[e]);
            if (s->stamp[next ^ 1] == round && d + 1 + s->dist[next ^ 1] < best) {
                best = d + 1 + s->dist[next ^ 1];
                ends[0] = state;
                ends[1] = next;
                *between = e;
            }
            if (s->stamp[next] == round) continue;
            s->stamp[next] = round;
            s->dist[next] = d + 1;
            s->parent[next] = state;
            s->by[next] = e;
            s->queue[tail++] = next;
        }
    }
    return best < INT32_MAX;
}

/* The walk root .. ends[0], ends[1] .. root's other side; its length in edges. */
static int64_t whole_walk(Search *s, const int32_t *ends, int64_t between) {
    int64_t length = s->dist[ends[0]], steps = length;
    s->walk[length] = ends[0];
    for (int32_t state = ends[0]; s->parent[state] >= 0; state = s->parent[state]) {
        --steps;
        s->walk[steps] = s->parent[state];
        s->along[steps] = s->by[state];
    }
    s->along[length++] = between;
    s->walk[length] = ends[1];
    for (int32_t state = ends[1] ^ 1; s->parent[state] >= 0; state = s->parent[state]) {
        s->along[length++] = s->by[state];
        s->walk[length] = s->parent[state] ^ 1;
    }
    return length;
}

/* The part of the walk between the first two visits of a node on different sides, without detours that come back to the same
 * side; moved to the front of walk and along. Returns its length. */
static int64_t simple_part(Search *s, int64_t length) {
    int64_t depth = 0, first = 0, count = 0;
    for (int64_t i = 0; i <= length && !count; ++i) {
        const int32_t state = s->walk[i];
        const int64_t place = s->place[state >> 1];
        if (place < 0) {
            s->place[state >> 1] = (int32_t)depth;
        } else if (s->walk[place] == state) {
            while (depth > place) s->place[s->walk[--depth] >> 1] = -1;
            s->place[state >> 1] = (int32_t)depth;
        } else {
            first = place;
            count = depth - place;
            break;
        }
        s->walk[depth] = state;
        s->along[depth++] = i < length ? s->along[i] : -1;
    }
    for (int64_t i = 0; i < depth; ++i) s->place[s->walk[i] >> 1] = -1;
    memmove(s->walk, s->walk + first, (size_t)count * sizeof *s->walk);
    memmove(s->along, s->along + first, (size_t)count * sizeof *s->along);
    return count;
}

/* Cycles from nodes *at .. end - 1, from each as many as are found by searches that look at `most` entries.
 * edge [nnz] numbers of the entries' edges, odd, room [m] as above. Fills ptr [k+1], nodes [space] (a cycle's, in order) and value
 * [k]; ends where `space` nodes or `slots` cycles would not be enough. Returns k, -1 without memory; *at: the first node not done. */
int64_t lk_cut_short_cycles(int64_t n, int64_t end, const int64_t *indptr, const int32_t *indices, const int64_t *edge,
                            const uint8_t *odd, int64_t *room, int64_t most, int64_t slots, int64_t space, int64_t *ptr,
                            int32_t *nodes, int64_t *value, int64_t *at) {
    const size_t states = (size_t)(2 * n + 2);
    int32_t *marks = calloc(7 * states, sizeof *marks);
    int64_t *edges = malloc(3 * states * sizeof *edges), found = 0, v = *at;
    Search s = {indptr, edge, indices, odd, room, most, marks, marks + states, marks + 2 * states, marks + 3 * states, edges,
                marks + 4 * states, marks + 5 * states, edges + states};
    int32_t ends[2] = {0, 0}, round = 0;
    int64_t between = 0;
    int full = 0;
    ptr[0] = 0;
    if (!marks || !edges) found = -1;
    else
        for (int64_t i = 0; i < n; ++i) s.place[i] = -1;
    for (; found >= 0 && v < end && !full; v += !full) {
        while (meet(&s, (int32_t)v, ++round, ends, &between)) {
            const int64_t length = simple_part(&s, whole_walk(&s, ends, between));
            full = found == slots || ptr[found] + length > space;
            if (full) break;
            value[found] = take(room, s.along, length);
            for (int64_t i = 0; i < length; ++i) nodes[ptr[found] + i] = s.walk[i] >> 1;
            ptr[found + 1] = ptr[found] + length;
            ++found;
        }
    }
    *at = v;
    free(marks);
    free(edges);
    return found;
}
