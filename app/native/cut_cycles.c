/* Odd-cycle inequalities that a relaxed cut violates (app/bounds/cut/cycles.py). Integers only:
 * app/bounds/cover/plain.py has the same steps in Python, with the same results. */
#include <stdlib.h>
#include <string.h>

#include "heap.h"

/* A state is 2 v + side. An edge is gone along to the same side for one length and to the other for another. */
typedef struct {
    int64_t n, one, hop, most;             /* lengths are multiples of 1/one; hop: added for each edge; most: states
                                              that one search settles */
    const int64_t *indptr, *same, *other;  /* [nnz] lengths of the edge of each entry, to either side */
    const int32_t *indices;
    int64_t *dist;                  /* [2n] */
    int32_t *stamp, *parent;        /* [2n] the search that dist is of; the state before */
    int32_t *walk, *at;             /* [4n+4] states of a closed walk; [n] place on the stack, -1 */
    int32_t *stack;                 /* [2n+2] states */
    Heap heap;
} Search;

/* The shortest walk from the root to its own other side: Dijkstra to half its length, both halves from one search,
 * since what leads from the root to a state leads from the other side of that state to the root's other side.
 * Returns whether one shorter than `limit` was found, and the two states that meet; -1 without memory. */
static int closest(Search *s, int32_t root, int32_t round, int64_t limit, int32_t *ends) {
    const int64_t states = 2 * s->n, start = 2 * (int64_t)root;
    int64_t best = limit;
    int64_t settled = 0;
    int found = 0;
    s->heap.count = 0;
    s->dist[start] = 0;
    s->stamp[start] = round;
    s->parent[start] = -1;
    if (heap_push(&s->heap, start) < 0) return -1;
    while (s->heap.count > 0) {
        const int64_t key = heap_pop(&s->heap), d = key / states, state = key % states;
        if (2 * d >= best) break;
        if (d != s->dist[state]) continue;
        if (settled++ >= s->most) break;
        for (int64_t j = s->indptr[state >> 1]; j < s->indptr[(state >> 1) + 1]; ++j) {
            const int64_t along = 2 * (int64_t)s->indices[j] + (state & 1);
            for (int64_t next = along, over = 0; over < 2; next = along ^ 1, ++over) {
                const int64_t far = d + s->hop + (over ? s->other[j] : s->same[j]);
                if (s->stamp[next ^ 1] == round && far + s->dist[next ^ 1] < best) {
                    best = far + s->dist[next ^ 1];
                    ends[0] = (int32_t)state;
                    ends[1] = (int32_t)next;
                    found = 1;
                }
                if (2 * far >= best || (s->stamp[next] == round && s->dist[next] <= far)) continue;
                s->stamp[next] = round;
                s->dist[next] = far;
                s->parent[next] = (int32_t)state;
                if (heap_push(&s->heap, far * states + next) < 0) return -1;
            }
        }
    }
    return found;
}

/* A simple cycle that changes sides an odd number of times out of the closed walk root .. ends[0], ends[1] .. root's
 * other side; nodes, and whether the edge to the next one changes sides. Returns its length. */
static int64_t simple_cycle(Search *s, const int32_t *ends, int32_t *nodes, uint8_t *over) {
    int64_t steps = 0, depth = 0, count = 0;
    for (int32_t state = ends[0]; state >= 0; state = s->parent[state]) s->walk[steps++] = state;
    for (int64_t i = 0, j = steps - 1; i < j; ++i, --j) {
        const int32_t t = s->walk[i];
        s->walk[i] = s->walk[j];
        s->walk[j] = t;
    }
    s->walk[steps++] = ends[1];
    for (int32_t state = s->parent[ends[1] ^ 1]; state >= 0; state = s->parent[state]) s->walk[steps++] = state ^ 1;
    /* Detours that come back to the same side are dropped; the first one to the other side is the cycle. */
    for (int64_t i = 0; i < steps && count == 0; ++i) {
        const int32_t state = s->walk[i];
        const int64_t first = s->at[state >> 1];
        if (first < 0) {
            s->at[state >> 1] = (int32_t)depth;
            s->stack[depth++] = state;
        } else if (s->stack[first] == state) {
            while (depth > first + 1) s->at[s->stack[--depth] >> 1] = -1;
        } else {
            for (int64_t j = first; j < depth; ++j, ++count) {
                nodes[count] = s->stack[j] >> 1;
                over[count] = ((j + 1 < depth ? s->stack[j + 1] : state) ^ s->stack[j]) & 1;
            }
        }
    }
    while (depth > 0) s->at[s->stack[--depth] >> 1] = -1;
    return count;
}

/* Simple cycles of which the edges that change sides, an odd number, and the others, have a length below one - margin;
 * at most one from each root; a root that lies on `share` cycles is passed over. same, other [nnz], in units of 1/one;
 * an edge is not gone along where its length is one or more.
 * used [n] counts cycles by node, in and out. out_ptr [count+1]; nodes, over [room], where it stops when one would
 * not fit. Returns the number of cycles, -1 without memory; *next: roots done. */
int64_t lk_cut_cycles(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *same,
                      const int64_t *other, int64_t one, int64_t hop, int64_t most, int64_t margin, int64_t share, const int32_t *roots, int64_t count, int32_t *used,
                      int64_t *out_ptr, int32_t *nodes, uint8_t *over, int64_t room, int64_t *next) {
    int64_t *dist = malloc((size_t)(2 * n + 2) * sizeof *dist), found = 0, i = 0;
    int32_t *marks = calloc((size_t)(12 * n + 16), sizeof *marks), *cycle = malloc((size_t)(n + 1) * sizeof *cycle);
    uint8_t *sides = malloc((size_t)(n + 1));
    Search s = {n, one, hop, most, indptr, same, other, indices, dist, marks, marks + 2 * n, marks + 4 * n, marks + 8 * n + 8,
                marks + 9 * n + 8, {malloc(1024 * sizeof *dist), 0, 1024}};
    int32_t ends[2];
    if (!dist || !marks || !cycle || !sides || !s.heap.key) found = -1;
    else
        for (int64_t j = 0; j < n; ++j) s.at[j] = -1;
    out_ptr[0] = 0;
    for (; found >= 0 && i < count; ++i) {
        if (used[roots[i]] >= share) continue;
        const int met = closest(&s, roots[i], (int32_t)(i + 1), one - margin, ends);
        if (met < 0) found = -1;
        if (met <= 0) continue;
        const int64_t length = simple_cycle(&s, ends, cycle, sides);
        if (out_ptr[found] + length > room) break;
        memcpy(nodes + out_ptr[found], cycle, (size_t)length * sizeof *nodes);
        memcpy(over + out_ptr[found], sides, (size_t)length);
        for (int64_t j = 0; j < length; ++j) used[cycle[j]] += 1;
        out_ptr[found + 1] = out_ptr[found] + length;
        found += 1;
    }
    *next = i;
    free(dist);
    free(marks);
    free(cycle);
    free(sides);
    free(s.heap.key);
    return found;
}
