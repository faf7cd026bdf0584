/* Steps on residual graphs that one rank holds whole, in integers: those of GraphEnv (app/rl/env.py) and CoreEnv (core_env.py). */
#include "common.h"

enum { UNTOUCHED = -1, RULED_OUT = -2 }; /* as in app/rl/env.py */

/* What the step works on. worth: by degrees; change: of the nodes with live edges, of their degrees, of their worth, and
 * of the nodes without live edges that were neither chosen nor ruled out. */
typedef struct {
    int64_t wide;
    const void *indptr, *indices;
    int32_t *degree, *chosen_at;
    const int64_t *worth;
    int64_t change[4];
} Graph;

/* The degree of a node becomes another. */
static void change_degree(Graph *g, int64_t node, int32_t degree) {
    const int32_t before = g->degree[node];
    g->change[0] += (degree > 0) - (before > 0);
    g->change[1] += degree - before;
    g->change[2] += g->worth[degree] - g->worth[before];
    g->degree[node] = degree;
}

/* Nodes leave in transition `step`: the first `chosen` of them were chosen, the others are next to these. touched: has
 * room for the degrees of all; gets the nodes that lose an edge, each as often as it does. Returns how many these are. */
int64_t lk_residual_step(Graph *g, const int64_t *node, int64_t count, int64_t chosen, int64_t step, int64_t *touched) {
    int64_t losses = 0;
    for (int64_t i = 0; i < count; ++i) {
        g->change[3] -= g->degree[node[i]] == 0 && g->chosen_at[node[i]] == UNTOUCHED;
        change_degree(g, node[i], 0);
        g->chosen_at[node[i]] = i < chosen ? (int32_t)step : RULED_OUT;
    }
    for (int64_t i = 0; i < count; ++i)
        for (int64_t e = number(g->indptr, g->wide, node[i]), end = number(g->indptr, g->wide, node[i] + 1); e < end; ++e) {
            const int64_t near = number(g->indices, g->wide, e);
            if (g->degree[near] <= 0) continue;
            change_degree(g, near, g->degree[near] - 1);
            g->change[3] += g->degree[near] == 0;
            touched[losses++] = near;
        }
    return losses;
}

/* A node's degree is about to change: what it was at the last state is kept, and the node listed, once. */
INLINE int64_t touch(const Graph *g, int64_t node, int32_t *before, int64_t *touched, int64_t count) {
    if (before[node] >= 0) return count;
    before[node] = g->degree[node];
    touched[count] = node;
    return count + 1;
}

/* Nodes are chosen in transition `step`, and leave; then those with fewer than `least` live neighbours fall, and those that this
 * leaves with fewer. before: -1 of all; falling, touched: room for all nodes. Returns how many nodes were touched: those that left
 * or lost an edge. */
int64_t lk_core_step(Graph *g, const int64_t *node, int64_t count, int64_t step, int64_t least, int32_t *before, int64_t *falling,
                     int64_t *touched) {
    int64_t waiting = 0, listed = 0;
    for (int64_t i = 0; i < count; ++i) {
        g->chosen_at[node[i]] = (int32_t)step;
        if (g->degree[node[i]] <= 0) continue;
        listed = touch(g, node[i], before, touched, listed);
        change_degree(g, node[i], 0);
        falling[waiting++] = node[i];
    }
    while (waiting) {
        const int64_t gone = falling[--waiting];
        for (int64_t e = number(g->indptr, g->wide, gone), end = number(g->indptr, g->wide, gone + 1); e < end; ++e) {
            const int64_t near = number(g->indices, g->wide, e);
            if (g->degree[near] <= 0) continue;
            listed = touch(g, near, before, touched, listed);
            const int32_t left = g->degree[near] - 1;
            change_degree(g, near, left < least ? 0 : left);
            if (left >= least) continue;
            g->chosen_at[near] = RULED_OUT;
            falling[waiting++] = near;
        }
    }
    for (int64_t i = 0; i < listed; ++i) before[touched[i]] = -1;
    return listed;
}

/* Environments of several graphs in flat arrays (app/rl/fleet.py): node v of the environment in place i is at i * width + v.
 *   starts, near   rows of all graphs, one behind the other; those of graph k begin with row first[k]
 *   graph          of each place
 *   removed        room for the largest row and one more */
typedef struct {
    const int64_t *starts, *first, *graph, *worth;
    const int32_t *near;
    int32_t *degree, *chosen_at;
    int64_t width, closed;
    int64_t *removed;
} Fleet;

INLINE void step_in(const Fleet *fleet, int64_t place, int64_t node, int64_t step, int64_t *change) {
    Graph g = {.degree = fleet->degree + place * fleet->width, .chosen_at = fleet->chosen_at + place * fleet->width,
               .worth = fleet->worth};
    const int64_t *starts = fleet->starts + fleet->first[fleet->graph[place]];
    int64_t count = 1;
    fleet->removed[0] = node;
    for (int64_t e = starts[node]; fleet->closed && e < starts[node + 1]; ++e)
        if (g.degree[fleet->near[e]] > 0) fleet->removed[count++] = fleet->near[e];
    for (int64_t i = 0; i < count; ++i) {
        const int64_t gone = fleet->removed[i];
        g.change[3] -= g.degree[gone] == 0 && g.chosen_at[gone] == UNTOUCHED;
        change_degree(&g, gone, 0);
        g.chosen_at[gone] = i ? RULED_OUT : (int32_t)step;
    }
    for (int64_t i = 0; i < count; ++i)
        for (int64_t e = starts[fleet->removed[i]]; e < starts[fleet->removed[i] + 1]; ++e) {
            const int64_t near = fleet->near[e];
            if (g.degree[near] <= 0) continue;
            change_degree(&g, near, g.degree[near] - 1);
            g.change[3] += g.degree[near] == 0;
        }
    memcpy(change, g.change, sizeof g.change);
}

/* Node node[i] is chosen in place[i], in its transition step[i], for i < count. change [count, 4]: as of Graph. */
void lk_fleet_step(const Fleet *fleet, int64_t count, const int64_t *place, const int64_t *node, const int64_t *step,
                   int64_t *change) {
    for (int64_t i = 0; i < count; ++i) step_in(fleet, place[i], node[i], step[i], change + 4 * i);
}
