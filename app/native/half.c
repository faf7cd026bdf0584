/* The linear-programming relaxation of weighted vertex cover: nodes that some optimal cover holds or leaves
 * out.
 *
 * Its optimum is half-integral and follows from a maximum flow in the bipartite double cover: nodes L_v and
 * R_v for each v, arcs L_u -> R_v and L_v -> R_u without limit for each edge, the source feeds L_v and the
 * sink drains R_v with w(v) each (Nemhauser and Trotter 1975). A set of nodes that residual arcs do not
 * leave, and that never holds both L_v and R_v, decides its nodes: v is left out where it holds L_v, and
 * covered where it holds R_v. First comes what the source still reaches, then strongly connected components,
 * sinks first, so that (near) all-half is the one optimum of what remains (Iwata, Oka and Yoshida 2014).
 * app/reductions/cover/half.py does the same. */
#include <stdlib.h>

#include "half.h"

/* Nodes of the double cover: L_v is v, R_v is k + v. Arc e of row v leads from L_v to R_col, and from R_v to
 * L_col where the opposite arc back[e] carries flow. */

INLINE int64_t row_of(const Half *h, int64_t node) { return node < h->k ? node : node - h->k; }
INLINE int64_t target(const Half *h, int64_t node, int64_t e) {
    return node < h->k ? h->k + h->indices[e] : h->indices[e];
}
INLINE int is_open(const Half *h, int64_t node, int64_t e) { return node < h->k || h->open[e]; }

/* The arcs that may be open: all of a row, but where all weights are one a single one of R_v, its carrier. */
INLINE int64_t arcs_begin(const Half *h, int64_t node) {
    const int64_t row = row_of(h, node);
    return node < h->k || !h->carrier ? h->indptr[row] : h->carrier[row];
}
INLINE int64_t arcs_end(const Half *h, int64_t node) {
    const int64_t row = row_of(h, node);
    if (node < h->k || !h->carrier) return h->indptr[row + 1];
    return h->carrier[row] < 0 ? h->carrier[row] : h->carrier[row] + 1;
}

INLINE void send(Half *h, int64_t e, int64_t amount) {
    if (!amount) return;
    h->flow[e] += amount;
    h->open[h->back[e]] = 1;
    if (h->carrier) h->carrier[h->indices[e]] = h->back[e];
}

/* Take flow back along arc e of an R. */
INLINE void send_back(Half *h, int64_t e, int64_t amount) {
    const int64_t carried = h->flow[h->back[e]] -= amount;
    h->open[e] = carried > 0;
}

/* The opposite of every arc: rows in order meet the entries of a column in its row's order. */
static void find_opposites(Half *h) {
    for (int64_t v = 0; v < h->k; ++v) h->next[v] = h->indptr[v];
    for (int64_t v = 0; v < h->k; ++v)
        for (int64_t e = h->indptr[v]; e < h->indptr[v + 1]; ++e) h->back[e] = h->next[h->indices[e]]++;
}

/* Where all weights are one a node of the right takes from one node alone: its carrier. */
static void choose_form(Half *h) {
    int64_t v = 0;
    while (v < h->k && h->weight[v] == 1) ++v;
    if (v < h->k) h->carrier = 0;
    else for (v = 0; v < h->k; ++v) h->carrier[v] = -1;
}

static void send_greedily(Half *h) {
    for (int64_t v = 0; v < h->k; ++v)
        for (int64_t e = h->indptr[v]; e < h->indptr[v + 1] && h->sent[v] < h->weight[v]; ++e) {
            const int64_t u = h->indices[e];
            const int64_t left = h->weight[v] - h->sent[v], room = h->weight[u] - h->got[u];
            const int64_t amount = room < left ? room : left;
            send(h, e, amount);
            h->sent[v] += amount;
            h->got[u] += amount;
        }
}

/* ---- a start where all weights are one (Karp and Sipser 1981) ---- */

/* Numbers the nodes in the order of their degrees, of equal ones in that of their numbers. */
static void order_by_degree(Half *h, int32_t *order, int32_t *before) {
    int64_t most = 0;
    for (int64_t v = 0; v < h->k; ++v)
        if (h->indptr[v + 1] - h->indptr[v] > most) most = h->indptr[v + 1] - h->indptr[v];
    memset(before, 0, (size_t)(most + 2) * 4);
    for (int64_t v = 0; v < h->k; ++v) ++before[h->indptr[v + 1] - h->indptr[v] + 1];
    for (int64_t d = 0; d < most; ++d) before[d + 1] += before[d];
    for (int64_t v = 0; v < h->k; ++v) order[before[h->indptr[v + 1] - h->indptr[v]]++] = (int32_t)v;
}

/* The arc of `node` to the free node on the other side that has the fewest free neighbours, the first of them; -1: none.
 * degree: [2k], of free nodes their free neighbours. */
static int64_t arc_to_neediest(const Half *h, int64_t node, const int32_t *degree) {
    const int64_t row = row_of(h, node);
    const int64_t *taken = node < h->k ? h->got : h->sent;
    const int32_t *other = degree + (node < h->k ? h->k : 0);
    int64_t found = -1;
    for (int64_t e = h->indptr[row]; e < h->indptr[row + 1]; ++e)
        if (!taken[h->indices[e]] && (found < 0 || other[h->indices[e]] < other[h->indices[found]])) found = e;
    return found;
}

/* L_v and R_u are no longer free; nodes that have one free neighbour left join the queue. Returns its end. */
static int64_t join(Half *h, int64_t v, int64_t u, int32_t *degree, int64_t tail) {
    h->sent[v] = h->got[u] = 1;
    for (int64_t e = h->indptr[v]; e < h->indptr[v + 1]; ++e)
        if (--degree[h->k + h->indices[e]] == 1) h->queue[tail++] = (int32_t)(h->k + h->indices[e]);
    for (int64_t e = h->indptr[u]; e < h->indptr[u + 1]; ++e)
        if (--degree[h->indices[e]] == 1) h->queue[tail++] = h->indices[e];
    return tail;
}

/* Nodes with one free neighbour come first, as some largest matching joins them to it; else the next of the left, few
 * neighbours first. Each takes the free neighbour that has the fewest others: few nodes are left over. */
static void match_greedily(Half *h) {
    int32_t *degree = h->level, *order = h->low;
    int64_t head = 0, tail = 0, next = 0;
    order_by_degree(h, order, h->component);
    for (int64_t node = 0; node < 2 * h->k; ++node) {
        const int64_t row = row_of(h, node);
        degree[node] = (int32_t)(h->indptr[row + 1] - h->indptr[row]);
        if (degree[node] == 1) h->queue[tail++] = (int32_t)node;
    }
    while (head < tail || next < h->k) {
        const int64_t node = head < tail ? h->queue[head++] : order[next++], row = row_of(h, node);
        if (node < h->k ? h->sent[row] : h->got[row]) continue;
        const int64_t e = arc_to_neediest(h, node, degree);
        if (e < 0) continue;
        send(h, node < h->k ? e : h->back[e], 1);
        tail = node < h->k ? join(h, row, h->indices[e], degree, tail) : join(h, h->indices[e], row, degree, tail);
    }
}

/* ---- the flow ---- */

/* Bring what the queue will ask for into the caches: where rows begin, then their arcs, then the levels of
 * the nodes that these lead to. */
INLINE void fetch_ahead(const Half *h, int64_t head, int64_t tail) {
    if (head + 16 < tail) {
        const int64_t node = h->queue[head + 16], row = row_of(h, node);
        __builtin_prefetch(node < h->k || !h->carrier ? h->indptr + row : h->carrier + row);
        __builtin_prefetch(h->got + row);
    }
    if (head + 8 < tail) {
        const int64_t node = h->queue[head + 8], begin = arcs_begin(h, node);
        if (begin >= 0) __builtin_prefetch(h->indices + begin), __builtin_prefetch(h->open + begin);
    }
    if (head + 4 < tail) {
        const int64_t node = h->queue[head + 4], begin = arcs_begin(h, node), end = arcs_end(h, node);
        for (int64_t e = begin; e < end && e < begin + 16; ++e)
            if (is_open(h, node, e)) __builtin_prefetch(h->level + target(h, node, e));
    }
}

/* Breadth-first levels from the nodes the source still feeds; returns whether the sink is reached. No level
 * lies beyond the first that drains. */
static int set_levels(Half *h) {
    int64_t head = 0, tail = 0, last = 2 * h->k;
    for (int64_t node = 0; node < 2 * h->k; ++node) h->level[node] = -1;
    for (int64_t v = 0; v < h->k; ++v)
        if (h->sent[v] < h->weight[v]) h->level[v] = 0, h->queue[tail++] = (int32_t)v;
    while (head < tail) {
        fetch_ahead(h, head, tail);
        const int64_t node = h->queue[head++], row = row_of(h, node);
        if (h->level[node] >= last) break;
        if (node >= h->k && h->got[row] < h->weight[row]) {
            last = h->level[node];
            continue;
        }
        for (int64_t e = arcs_begin(h, node), end = arcs_end(h, node); e < end; ++e) {
            if (!is_open(h, node, e)) continue;
            const int64_t to = target(h, node, e);
            if (h->level[to] >= 0) continue;
            h->level[to] = h->level[node] + 1;
            h->queue[tail++] = (int32_t)to;
        }
    }
    return last < 2 * h->k;
}

/* Send what a path of `length` arcs from `root` to `end` can carry. */
static void augment(Half *h, int64_t root, int64_t end, int64_t length) {
    int64_t amount = h->weight[root] - h->sent[root], room = h->weight[end - h->k] - h->got[end - h->k];
    amount = room < amount ? room : amount;
    for (int64_t i = 1; i < length; i += 2) {
        const int64_t carried = h->flow[h->back[h->path[i]]];
        amount = carried < amount ? carried : amount;
    }
    for (int64_t i = 0; i < length; ++i) {
        if (i % 2) send_back(h, h->path[i], amount);
        else send(h, h->path[i], amount);
    }
    h->sent[root] += amount;
    h->got[end - h->k] += amount;
}

/* The next arc from `node` that leads one level up, or -1. What is left of the arcs of a row is in next; the
 * carrier changes while flow is sent, to one that leads down. */
static int64_t arc_up(Half *h, int64_t node) {
    const int64_t up = h->level[node] + 1;
    if (node >= h->k && h->carrier) {
        const int64_t e = h->carrier[node - h->k];
        return e >= 0 && h->level[h->indices[e]] == up ? e : -1;
    }
    const int64_t end = h->indptr[row_of(h, node) + 1];
    for (; h->next[node] < end; ++h->next[node]) {
        const int64_t e = h->next[node];
        if (is_open(h, node, e) && h->level[target(h, node, e)] == up) return e;
    }
    return -1;
}

/* One path from `root` along rising levels, depth first; returns whether there was one. A dead end loses its
 * level. */
static int find_path(Half *h, int64_t root) {
    int64_t node = root, length = 0;
    for (;;) {
        const int64_t row = row_of(h, node);
        if (node >= h->k && h->got[row] < h->weight[row]) {
            augment(h, root, node, length);
            return 1;
        }
        const int64_t e = arc_up(h, node);
        if (e >= 0) {
            h->path[length++] = e;
            node = target(h, node, e);
            continue;
        }
        h->level[node] = -1;
        if (length == 0) return 0;
        /* The node before: arc e of the path leads from a row, odd arcs from an R. */
        --length;
        node = h->indices[h->back[h->path[length]]] + (length % 2 ? h->k : 0);
        ++h->next[node];
    }
}

/* One phase of Dinic's algorithm, which with unit weights is that of Hopcroft and Karp; whether flow was
 * sent. */
static int send_more(Half *h) {
    if (!set_levels(h)) return 0;
    for (int64_t node = 0; node < 2 * h->k; ++node) h->next[node] = arcs_begin(h, node);
    for (int64_t v = 0; v < h->k; ++v)
        while (h->sent[v] < h->weight[v] && h->level[v] == 0 && find_path(h, v)) continue;
    return 1;
}

/* What the source reaches: after the last search these are the nodes with a level. */
static void decide_reached(Half *h) {
    for (int64_t v = 0; v < h->k; ++v) {
        const int left = h->level[v] >= 0, right = h->level[h->k + v] >= 0;
        if (left == right) continue;
        h->side[v] = left ? OUT : COVER;
    }
}

/* Decide a component whose arcs stay inside or lead to decided nodes, and which holds no node twice. */
static void decide_component(Half *h, const int32_t *nodes, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const int64_t node = nodes[i], row = row_of(h, node);
        if (h->side[row] || h->component[node < h->k ? node + h->k : row] == h->component[node]) return;
        for (int64_t e = arcs_begin(h, node), end = arcs_end(h, node); e < end; ++e)
            if (is_open(h, node, e) && !h->side[h->indices[e]]
                && h->component[target(h, node, e)] != h->component[node]) return;
    }
    for (int64_t i = 0; i < count; ++i) h->side[row_of(h, nodes[i])] = nodes[i] < h->k ? OUT : COVER;
}

/* Tarjan's algorithm from `root`; level holds the order of discovery, the queue is its stack. */
static void components_from(Half *h, int64_t root, int32_t *found, int64_t *tail, int32_t *number) {
    int64_t node = root, depth = 0;
    h->level[node] = h->low[node] = (*found)++;
    h->queue[(*tail)++] = (int32_t)node;
    for (;;) {
        const int64_t end = arcs_end(h, node);
        int64_t to = -1;
        for (; h->next[node] < end; ++h->next[node]) {
            const int64_t e = h->next[node];
            if (!is_open(h, node, e)) continue;
            to = target(h, node, e);
            if (h->level[to] < 0) break;
            if (h->component[to] < 0 && h->level[to] < h->low[node]) h->low[node] = h->level[to];
        }
        if (h->next[node] < end) { /* go down */
            h->path[depth++] = node;
            ++h->next[node];
            node = to;
            h->level[node] = h->low[node] = (*found)++;
            h->queue[(*tail)++] = (int32_t)node;
            continue;
        }
        if (h->low[node] == h->level[node]) {
            int64_t first = *tail;
            do h->component[h->queue[--first]] = *number;
            while (h->queue[first] != node);
            decide_component(h, h->queue + first, *tail - first);
            *tail = first;
            ++*number;
        }
        if (depth == 0) return;
        const int64_t above = h->path[--depth];
        if (h->low[node] < h->low[above]) h->low[above] = h->low[node];
        node = above;
    }
}

static void decide_components(Half *h) {
    int64_t tail = 0;
    int32_t found = 0, number = 0;
    for (int64_t node = 0; node < 2 * h->k; ++node) {
        h->next[node] = arcs_begin(h, node);
        h->level[node] = h->component[node] = -1;
    }
    for (int64_t node = 0; node < 2 * h->k; ++node)
        if (h->level[node] < 0) components_from(h, node, &found, &tail, &number);
}

int lk_half_run(Half *h) {
    if (!h->begun) {
        find_opposites(h);
        choose_form(h);
        if (h->carrier) match_greedily(h);
        else send_greedily(h);
        h->begun = 1;
    }
    if (send_more(h)) {
        ++h->phases;
        return 1;
    }
    decide_reached(h);
    decide_components(h);
    return 0;
}

void lk_half_free(Half *h) {
    if (!h) return;
    free(h->words);
    free(h->halves);
    free(h->side);
    free(h);
}

Half *lk_half_new(int64_t k, int64_t arcs) {
    Half *h = calloc(1, sizeof *h);
    if (!h) return 0;
    h->k = k;
    int64_t *w = h->words = calloc((size_t)(2 * arcs + 10 * k + 2), 8);
    int32_t *i = h->halves = calloc((size_t)(arcs + 8 * k + 1), 4);
    h->side = calloc((size_t)(k + arcs + 1), 1);
    if (!w || !i || !h->side) {
        lk_half_free(h);
        return 0;
    }
    h->indptr = w, h->flow = w + k + 1, h->back = h->flow + arcs;
    h->weight = h->back + arcs, h->node = h->weight + k, h->sent = h->node + k, h->got = h->sent + k;
    h->next = h->got + k, h->path = h->next + 2 * k, h->carrier = h->path + 2 * k;
    h->indices = i, h->level = i + arcs, h->queue = h->level + 2 * k, h->low = h->queue + 2 * k;
    h->component = h->low + 2 * k;
    h->open = h->side + k;
    return h;
}
