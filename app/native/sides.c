/* Steps and codes of states with two sides that one rank holds whole: those of SidesEnv (app/rl/sides.py), in integers. */
#include "common.h"

/* What a step works on; all [n]. units: of the entries' weights, or null: all one. change: of the sum of the fields, of the nodes
 * with a field above zero, and of those of them on the first side. */
typedef struct {
    int64_t wide;
    const void *indptr, *indices;
    const int64_t *units;
    int32_t *mark;
    int8_t *mark_ext;
    int64_t *field;
    int32_t *parts;
    uint8_t *listed; /* zeros */
    int64_t grain, per_grain, most;
    int64_t change[3];
} Sides;

static void count(Sides *g, int64_t node, int64_t sign) {
    g->change[0] += sign * g->field[node];
    g->change[1] += sign * (g->field[node] > 0);
    g->change[2] += sign * (g->field[node] > 0 && g->mark[node] > 0);
}

static int64_t list(Sides *g, int64_t node, int64_t *touched, int64_t listed) {
    if (g->listed[node]) return listed;
    g->listed[node] = 1;
    count(g, node, -1);
    touched[listed] = node;
    return listed + 1;
}

/* A field in parts of a grain, rounded away from zero, within +-most. */
INLINE int32_t in_parts(const Sides *g, int64_t field) {
    const int64_t parts = field * g->per_grain, size = ((parts < 0 ? -parts : parts) + g->grain - 1) / g->grain;
    const int64_t least = size < g->most ? size : g->most;
    return (int32_t)(parts < 0 ? -least : least);
}

/* Distinct nodes move to their other sides, one after the other. touched: room for all nodes; gets those whose fields change, of
 * which it returns how many there are. */
int64_t lk_sides_step(Sides *g, const int64_t *node, int64_t nodes, int64_t *touched) {
    int64_t listed = 0;
    for (int64_t i = 0; i < nodes; ++i) {
        const int64_t v = node[i], twice = -2 * g->mark_ext[v];
        listed = list(g, v, touched, listed);
        for (int64_t e = number(g->indptr, g->wide, v), end = number(g->indptr, g->wide, v + 1); e < end; ++e) {
            const int64_t u = number(g->indices, g->wide, e);
            listed = list(g, u, touched, listed);
            g->field[u] += twice * g->mark[u] * (g->units ? g->units[e] : 1);
        }
        g->mark_ext[v] = (int8_t)-g->mark_ext[v];
        g->mark[v] = -g->mark[v];
        g->field[v] = -g->field[v];
    }
    for (int64_t i = 0; i < listed; ++i) {
        const int64_t v = touched[i];
        count(g, v, 1);
        g->parts[v] = in_parts(g, g->field[v]);
        g->listed[v] = 0;
    }
    return listed;
}

/* How codes follow from ages in rests, fields in parts of a grain, and sides: code_of [ages + 1][2 parts + 1][2]; larger ones count
 * as the largest. */
typedef struct {
    int64_t ages, parts;
    const int32_t *code_of;
} Codes;

/* code [n] of nodes that moved last when the clock, now at `clock`, stood at moved + 1; -1: never. 0 where mark is. */
void lk_sides_codes(const Codes *c, int64_t n, const int32_t *mark, const int32_t *parts, const int32_t *moved, int64_t clock,
                    int64_t rest, int32_t *code) {
    const int64_t width = 2 * c->parts + 1;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t age = (clock - 1 - moved[i]) / rest, rests = moved[i] < 0 || age > c->ages ? c->ages : age;
        const int64_t most = parts[i] < c->parts ? parts[i] : c->parts, gain = most < -c->parts ? -c->parts : most;
        code[i] = mark[i] ? c->code_of[(rests * width + c->parts + gain) * 2 + (mark[i] < 0)] : 0;
    }
}
