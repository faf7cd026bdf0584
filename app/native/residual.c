/* Steps on residual graphs that one rank holds whole: those of GraphEnv.choose_own (app/rl/env.py), in integers. */
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
