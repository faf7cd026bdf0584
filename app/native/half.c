/* The linear-programming relaxation of weighted vertex cover: nodes that some optimal cover holds or leaves out.
 *
 * Its optimum is half-integral and follows from a maximum flow in the bipartite double cover: nodes L_v and R_v for
 * each v, arcs L_u -> R_v and L_v -> R_u without limit for each edge, the source feeds L_v and the sink drains R_v with
 * w(v) each (Nemhauser and Trotter 1975). A set of nodes that residual arcs do not leave, and that never holds both
 * L_v and R_v, decides its nodes: v is left out where it holds L_v, and covered where it holds R_v. First comes what
 * the source still reaches, then strongly connected components, sinks first, so that (near) all-half is the one
 * optimum of what remains (Iwata, Oka and Yoshida 2014). app/reductions/half.py does the same. */
#include <stdlib.h>

#include "reduce.h"

/* Nodes of the double cover: L_v is v, R_v is k + v. Arc e of row v leads from L_v to R_col, and from R_v to L_col
 * where the opposite arc back[e] carries flow. */
typedef struct {
    Half *h;
    int64_t k, *back, *sent, *got, *next, *path;
    int32_t *level, *queue, *low, *component;
} Flow;

INLINE int64_t row_of(const Flow *f, int64_t node) { return node < f->k ? node : node - f->k; }
INLINE int64_t target(const Flow *f, int64_t node, int64_t e) {
    return node < f->k ? f->k + f->h->indices[e] : f->h->indices[e];
}
INLINE int is_open(const Flow *f, int64_t node, int64_t e) { return node < f->k || f->h->flow[f->back[e]] > 0; }

/* The opposite of every arc: rows in order meet the entries of a column in its row's order. */
static void find_opposites(Flow *f) {
    const Half *h = f->h;
    for (int64_t v = 0; v < f->k; ++v) f->next[v] = h->indptr[v];
    for (int64_t v = 0; v < f->k; ++v)
        for (int64_t e = h->indptr[v]; e < h->indptr[v + 1]; ++e) f->back[e] = f->next[h->indices[e]]++;
}

static void send_greedily(Flow *f) {
    const Half *h = f->h;
    for (int64_t v = 0; v < f->k; ++v)
        for (int64_t e = h->indptr[v]; e < h->indptr[v + 1] && f->sent[v] < h->weight[v]; ++e) {
            const int64_t u = h->indices[e], room = h->weight[u] - f->got[u], left = h->weight[v] - f->sent[v];
            const int64_t amount = room < left ? room : left;
            h->flow[e] += amount;
            f->sent[v] += amount;
            f->got[u] += amount;
        }
}

/* Breadth-first levels from the nodes the source still feeds; returns whether the sink is reached. No level lies
 * beyond the first that drains. */
static int set_levels(Flow *f) {
    int64_t head = 0, tail = 0, last = 2 * f->k;
    for (int64_t node = 0; node < 2 * f->k; ++node) f->level[node] = -1;
    for (int64_t v = 0; v < f->k; ++v)
        if (f->sent[v] < f->h->weight[v]) f->level[v] = 0, f->queue[tail++] = (int32_t)v;
    while (head < tail) {
        const int64_t node = f->queue[head++], row = row_of(f, node);
        if (f->level[node] >= last) break;
        if (node >= f->k && f->got[row] < f->h->weight[row]) {
            last = f->level[node];
            continue;
        }
        for (int64_t e = f->h->indptr[row]; e < f->h->indptr[row + 1]; ++e) {
            const int64_t to = target(f, node, e);
            if (f->level[to] >= 0 || !is_open(f, node, e)) continue;
            f->level[to] = f->level[node] + 1;
            f->queue[tail++] = (int32_t)to;
        }
    }
    return last < 2 * f->k;
}

/* Send what a path of `length` arcs from `root` to `end` can carry. */
static void augment(Flow *f, int64_t root, int64_t end, int64_t length) {
    Half *h = f->h;
    int64_t amount = h->weight[root] - f->sent[root], room = h->weight[end - f->k] - f->got[end - f->k];
    amount = room < amount ? room : amount;
    for (int64_t i = 1; i < length; i += 2) {
        const int64_t carried = h->flow[f->back[f->path[i]]];
        amount = carried < amount ? carried : amount;
    }
    for (int64_t i = 0; i < length; ++i) {
        if (i % 2) h->flow[f->back[f->path[i]]] -= amount;
        else h->flow[f->path[i]] += amount;
    }
    f->sent[root] += amount;
    f->got[end - f->k] += amount;
}

/* One path from `root` along rising levels, depth first; returns whether there was one. A dead end loses its level. */
static int find_path(Flow *f, int64_t root) {
    const Half *h = f->h;
    int64_t node = root, length = 0;
    for (;;) {
        const int64_t row = row_of(f, node);
        if (node >= f->k && f->got[row] < h->weight[row]) {
            augment(f, root, node, length);
            return 1;
        }
        while (f->next[node] < h->indptr[row + 1]) {
            const int64_t e = f->next[node];
            if (f->level[target(f, node, e)] == f->level[node] + 1 && is_open(f, node, e)) break;
            ++f->next[node];
        }
        if (f->next[node] < h->indptr[row + 1]) {
            const int64_t e = f->path[length++] = f->next[node];
            node = target(f, node, e);
            continue;
        }
        f->level[node] = -1;
        if (length == 0) return 0;
        /* The node before: arc e of the path leads from a row, odd arcs from an R. */
        --length;
        node = h->indices[f->back[f->path[length]]] + (length % 2 ? f->k : 0);
        ++f->next[node];
    }
}

/* Dinic's algorithm; with unit weights it is that of Hopcroft and Karp. */
static void send_all(Flow *f) {
    const Half *h = f->h;
    while (set_levels(f)) {
        for (int64_t node = 0; node < 2 * f->k; ++node) f->next[node] = h->indptr[row_of(f, node)];
        for (int64_t v = 0; v < f->k; ++v)
            while (f->sent[v] < h->weight[v] && f->level[v] == 0 && find_path(f, v)) continue;
    }
}

/* What the source reaches: after the last search these are the nodes with a level. */
static int64_t decide_reached(Flow *f) {
    int64_t decided = 0;
    for (int64_t v = 0; v < f->k; ++v) {
        const int left = f->level[v] >= 0, right = f->level[f->k + v] >= 0;
        if (left == right) continue;
        f->h->side[v] = left ? OUT : COVER;
        ++decided;
    }
    return decided;
}

/* Decide a component whose arcs stay inside or lead to decided nodes, and which holds no node twice. */
static int64_t decide_component(Flow *f, const int32_t *nodes, int64_t count) {
    Half *h = f->h;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t node = nodes[i], row = row_of(f, node);
        if (h->side[row] || f->component[node < f->k ? node + f->k : row] == f->component[node]) return 0;
        for (int64_t e = h->indptr[row]; e < h->indptr[row + 1]; ++e)
            if (is_open(f, node, e) && !h->side[h->indices[e]]
                && f->component[target(f, node, e)] != f->component[node]) return 0;
    }
    for (int64_t i = 0; i < count; ++i) h->side[row_of(f, nodes[i])] = nodes[i] < f->k ? OUT : COVER;
    return count;
}

/* Tarjan's algorithm from `root`; level holds the order of discovery, the queue is its stack. */
static int64_t components_from(Flow *f, int64_t root, int32_t *found, int64_t *tail, int32_t *number) {
    const Half *h = f->h;
    int64_t node = root, depth = 0, decided = 0;
    f->level[node] = f->low[node] = (*found)++;
    f->queue[(*tail)++] = (int32_t)node;
    for (;;) {
        const int64_t end = h->indptr[row_of(f, node) + 1];
        int64_t to = -1;
        for (; f->next[node] < end; ++f->next[node]) {
            const int64_t e = f->next[node];
            if (!is_open(f, node, e)) continue;
            to = target(f, node, e);
            if (f->level[to] < 0) break;
            if (f->component[to] < 0 && f->level[to] < f->low[node]) f->low[node] = f->level[to];
        }
        if (f->next[node] < end) { /* go down */
            f->path[depth++] = node;
            ++f->next[node];
            node = to;
            f->level[node] = f->low[node] = (*found)++;
            f->queue[(*tail)++] = (int32_t)node;
            continue;
        }
        if (f->low[node] == f->level[node]) {
            int64_t first = *tail;
            do f->component[f->queue[--first]] = *number;
            while (f->queue[first] != node);
            decided += decide_component(f, f->queue + first, *tail - first);
            *tail = first;
            ++*number;
        }
        if (depth == 0) return decided;
        const int64_t above = f->path[--depth];
        if (f->low[node] < f->low[above]) f->low[above] = f->low[node];
        node = above;
    }
}

static int64_t decide_components(Flow *f) {
    int64_t decided = 0, tail = 0;
    int32_t found = 0, number = 0;
    for (int64_t node = 0; node < 2 * f->k; ++node) {
        f->next[node] = f->h->indptr[row_of(f, node)];
        f->level[node] = f->component[node] = -1;
    }
    for (int64_t node = 0; node < 2 * f->k; ++node)
        if (f->level[node] < 0) decided += components_from(f, node, &found, &tail, &number);
    return decided;
}

int64_t half_integral(Half *h) {
    const int64_t k = h->k, arcs = h->indptr[k];
    Flow f = {h, k};
    int64_t decided = -1;
    /* path: as long as there are nodes; next: one per node of the double cover */
    int64_t *words = calloc((size_t)(arcs + 6 * k + 1), 8);
    int32_t *halves = calloc((size_t)(8 * k + 1), 4);
    if (words && halves) {
        f.back = words;
        f.sent = words + arcs, f.got = f.sent + k, f.next = f.got + k, f.path = f.next + 2 * k;
        f.level = halves, f.queue = f.level + 2 * k, f.low = f.queue + 2 * k, f.component = f.low + 2 * k;
        find_opposites(&f);
        send_greedily(&f);
        send_all(&f);
        decided = decide_reached(&f);
        decided += decide_components(&f);
    }
    free(words);
    free(halves);
    return decided;
}
