/* Graph colouring: tabu search over colourings with conflicts, DSATUR and recursive largest first.
   app/search/coloring/plain.py does the same without kernels, draw by draw. */
#include <stdint.h>
#include <stdlib.h>

#include "common.h"
#include "heap.h"
#include "random.h"

#define NONE (INT32_C(1) << 29) /* a colour or a node that has no move; more than there are neighbours */

typedef struct {
    int64_t n, k, ring;
    const int64_t *indptr;
    const int32_t *indices;
    int32_t *color;   /* [n] */
    int32_t *near;    /* [k, n] neighbours of each colour: a move changes two rows, which stay in the cache */
    int32_t *row;     /* [n, k] the same by nodes, of those in conflict alone */
    int32_t *until;   /* [n, k] moves of this walk before which a colour is not taken again */
    int32_t *list, *place; /* [n] nodes in conflict, places in it; place -1: in none */
    int32_t *own, *least, *least_open; /* [n] by places in the list: neighbours of the node's colour, and the fewest
                                          of another one, and of another one that may be taken; NONE: there is none */
    int32_t *best_color;   /* [n] of the fewest conflicts of this walk */
    int32_t *first, *next; /* [ring] by moves: the last of those before that forbade a colour until this one, and the
                              one before that in the same list; -1: none */
    int64_t *forbidden;    /* [ring] what a move forbade, a place in `until` */
    int64_t conflicts, edges, best_edges, moves, fresh; /* fresh: best_color is not written yet */
    uint64_t random;
} Walk;

/* The fewest neighbours of another colour, of any and of one that may be taken. */
WIDE static void look_through(Walk *w, int64_t i) {
    const int64_t k = w->k, v = w->list[i];
    const int32_t *row = w->row + v * k, *until = w->until + v * k;
    const int32_t own = w->color[v], now = (int32_t)w->moves;
    int32_t least = NONE, least_open = NONE;
    for (int32_t c = 0; c < k; c++) {
        const int32_t value = c == own ? NONE : row[c], open = until[c] > now ? NONE : value;
        least = value < least ? value : least;
        least_open = open < least_open ? open : least_open;
    }
    w->own[i] = row[own];
    w->least[i] = least;
    w->least_open[i] = least_open;
}

INLINE void conflict_in(Walk *w, int32_t v) {
    const int64_t i = w->conflicts++;
    w->place[v] = (int32_t)i;
    w->list[i] = v;
    for (int64_t c = 0; c < w->k; c++) w->row[v * w->k + c] = w->near[c * w->n + v];
    look_through(w, i);
}

INLINE void conflict_out(Walk *w, int32_t v) {
    const int32_t i = w->place[v], end = (int32_t)--w->conflicts, last = w->list[end];
    w->list[i] = last;
    w->own[i] = w->own[end];
    w->least[i] = w->least[end];
    w->least_open[i] = w->least_open[end];
    w->place[last] = i;
    w->place[v] = -1;
}

/* A neighbour of a node in conflict went from colour a to c: what the node has fewest of is looked for again only where
 * c may have been the only one. */
INLINE void tell(Walk *w, int32_t v, int32_t a, int32_t left, int32_t c, int32_t more) {
    const int64_t i = w->place[v], at = v * w->k;
    w->row[at + a] = left;
    w->row[at + c] = more;
    if (w->color[v] == a) {
        w->own[i] = left;
    } else {
        if (left < w->least[i]) w->least[i] = left;
        if (left < w->least_open[i] && w->until[at + a] <= w->moves) w->least_open[i] = left;
    }
    if (w->color[v] == c) w->own[i] = more;
    else if (more - 1 == w->least[i] || more - 1 == w->least_open[i]) look_through(w, i);
}

/* The colour of v becomes c. */
static void recolor(Walk *w, int32_t v, int32_t c) {
    const int32_t a = w->color[v];
    int32_t *near_a = w->near + a * w->n, *near_c = w->near + c * w->n;
    w->edges += near_c[v] - near_a[v];
    w->color[v] = c;
    const int32_t *nodes = w->indices + w->indptr[v], *color = w->color, *place = w->place;
    const int64_t degree = w->indptr[v + 1] - w->indptr[v];
    for (int64_t e = 0; e < degree; e++) {
        near_a[nodes[e]] -= 1;
        near_c[nodes[e]] += 1;
    }
    for (int64_t e = 0; e < degree; e++) {
        const int32_t u = nodes[e], of = color[u];
        if (place[u] >= 0) tell(w, u, a, near_a[u], c, near_c[u]);
        if (of == a && near_a[u] == 0) conflict_out(w, u);
        if (of == c && near_c[u] == 1) conflict_in(w, u);
    }
    const int in = w->place[v] >= 0;
    if (in && near_c[v] == 0) conflict_out(w, v);
    if (!in && near_c[v] > 0) conflict_in(w, v);
}

/* Node v does not take colour c again before move `until`. */
static void forbid(Walk *w, int64_t v, int64_t c, int64_t until) {
    const int64_t slot = w->moves % w->ring, end = until % w->ring;
    w->until[v * w->k + c] = (int32_t)until;
    w->forbidden[slot] = v * w->k + c;
    w->next[slot] = w->first[end];
    w->first[end] = (int32_t)slot;
    if (w->place[v] >= 0) look_through(w, w->place[v]);
}

/* The colours that may be taken from this move on. */
static void allow(Walk *w) {
    const int64_t end = w->moves % w->ring;
    for (int32_t slot = w->first[end]; slot >= 0; slot = w->next[slot]) {
        const int64_t at = w->forbidden[slot], v = at / w->k, i = w->place[v];
        if (i < 0 || w->until[at] > w->moves || at % w->k == w->color[v]) continue;
        if (w->row[at] < w->least_open[i]) w->least_open[i] = w->row[at];
    }
    w->first[end] = -1;
}

/* The least change of conflicts by a move, of those that may be made in *open; NONE or nearly so: there is none. */
WIDE static int32_t least_changes(const Walk *w, int32_t *open) {
    const int32_t *own = w->own, *least = w->least, *least_open = w->least_open;
    int32_t best = NONE, best_open = NONE;
    for (int64_t i = 0; i < w->conflicts; i++) {
        const int32_t any = least[i] - own[i], free = least_open[i] - own[i];
        best = any < best ? any : best;
        best_open = free < best_open ? free : best_open;
    }
    *open = best_open;
    return best;
}

/* How many colours of the node at place i of the list change conflicts the least; its colours that may be taken alone
 * where `any` is 0. */
WIDE static int32_t count_colors(const Walk *w, int64_t i, int any) {
    const int64_t k = w->k, v = w->list[i];
    const int32_t *row = w->row + v * k, *until = w->until + v * k;
    const int32_t own = w->color[v], now = any ? INT32_MAX : (int32_t)w->moves;
    const int32_t target = any ? w->least[i] : w->least_open[i];
    int32_t count = 0;
    for (int32_t d = 0; d < k; d++) count += (row[d] == target) & (d != own) & (until[d] <= now);
    return count;
}

/* How many moves have this change, of all or of those that may be made. */
static int64_t count_moves(const Walk *w, int32_t change, int any) {
    const int32_t *least = any ? w->least : w->least_open;
    int64_t count = 0;
    for (int64_t i = 0; i < w->conflicts; i++)
        if (least[i] - w->own[i] == change) count += count_colors(w, i, any);
    return count;
}

/* The one of them numbered `wanted`, from 0 on: its node and its colour. */
static void find_move(const Walk *w, int32_t change, int any, int64_t wanted, int32_t *v, int32_t *c) {
    const int32_t *least = any ? w->least : w->least_open, now = any ? INT32_MAX : (int32_t)w->moves;
    int64_t i = 0;
    for (;; i++) {
        if (least[i] - w->own[i] != change) continue;
        const int64_t here = count_colors(w, i, any);
        if (wanted < here) break;
        wanted -= here;
    }
    *v = w->list[i];
    const int32_t *row = w->row + *v * w->k, *until = w->until + *v * w->k;
    for (*c = 0;; ++*c)
        if (row[*c] == least[i] && *c != w->color[*v] && until[*c] <= now && wanted-- == 0) return;
}

static void write_best(Walk *w) {
    memcpy(w->best_color, w->color, (size_t)w->n * sizeof *w->color);
    w->fresh = 0;
}

/* So many moves, fewer where no conflict is left; returns the moves made. */
int64_t lk_coloring_walk(Walk *w, int64_t steps) {
    int64_t made = 0;
    for (; made < steps && w->edges > 0; made++) {
        int32_t open, v, c;
        allow(w);
        const int32_t all = least_changes(w, &open);
        const int any = all < NONE / 2 && w->edges + all < w->best_edges;
        const int32_t change = any ? all : open;
        if (change < NONE / 2) {
            const int64_t count = count_moves(w, change, any);
            find_move(w, change, any, random_below(&w->random, (uint32_t)count), &v, &c);
            if (w->fresh && change >= 0) write_best(w);
            const int32_t a = w->color[v];
            recolor(w, v, c);
            const int64_t tenure = random_below(&w->random, 10) + 6 * w->conflicts / 10;
            forbid(w, v, a, w->moves + 1 + tenure);
        }
        w->moves += 1;
        if (w->edges < w->best_edges) {
            w->best_edges = w->edges;
            w->fresh = 1;
        }
    }
    if (w->fresh) write_best(w);
    return made;
}

/* A colouring: the node with most colours around it, of these the one with most neighbours left, of these the
   first, gets the least colour it can have. Returns -1 without memory. */
int64_t lk_coloring_dsatur(int64_t n, const int64_t *indptr, const int32_t *indices, int32_t *color) {
    int64_t most = 0;
    for (int64_t v = 0; v < n; v++) {
        const int64_t degree = indptr[v + 1] - indptr[v];
        most = degree > most ? degree : most;
    }
    int64_t around = 0; /* colours around a node, at most: every colour c has a node with c neighbours */
    while (around < most && around * (around + 1) / 2 <= indptr[n]) around++;
    const int64_t width = most + 1;
    if (width > INT64_MAX / (around + 1) / (n + 1)) return -1; /* keys: (colours missing, neighbours missing, node) */
    int32_t *met = malloc((size_t)(indptr[n] + 1) * sizeof *met), *count = calloc((size_t)n + 1, sizeof *count);
    int32_t *left = malloc((size_t)(n + 1) * sizeof *left), *used = calloc((size_t)width + 1, sizeof *used);
    Heap heap = {malloc((size_t)(n + 16) * sizeof *heap.key), 0, n + 16};
    int64_t status = met && count && left && used && heap.key ? 0 : -1;
    for (int64_t v = 0; v < n && !status; v++) {
        color[v] = -1;
        left[v] = (int32_t)(indptr[v + 1] - indptr[v]);
        status = heap_push(&heap, (around * width + most - left[v]) * n + v);
    }
    for (int64_t done = 0; done < n && !status;) {
        const int64_t key = heap_pop(&heap), v = key % n;
        if (color[v] >= 0 || key / n != (around - count[v]) * width + most - left[v]) continue; /* an older key */
        for (int32_t i = 0; i < count[v]; i++) used[met[indptr[v] + i]] = 1;
        int32_t c = 0;
        while (used[c]) c++;
        for (int32_t i = 0; i < count[v]; i++) used[met[indptr[v] + i]] = 0;
        color[v] = c;
        done += 1;
        for (int64_t e = indptr[v]; e < indptr[v + 1] && !status; e++) {
            const int64_t u = indices[e];
            if (color[u] >= 0) continue;
            int32_t i = 0;
            while (i < count[u] && met[indptr[u] + i] != c) i++;
            if (i == count[u]) met[indptr[u] + count[u]++] = c;
            left[u] -= 1;
            status = heap_push(&heap, ((around - count[u]) * width + most - left[u]) * n + u);
        }
    }
    free(met), free(count), free(left), free(used), free(heap.key);
    return status;
}

/* A colouring, class by class: the first node of a class has most neighbours left, each further one most
   neighbours among the nodes that the class rules out, of these fewest among the others, of these it is the
   first. Returns -1 without memory. */
int64_t lk_coloring_rlf(int64_t n, const int64_t *indptr, const int32_t *indices, int32_t *color) {
    int32_t *near = malloc((size_t)(2 * n + 1) * sizeof *near), *out = near + n; /* free, ruled out neighbours */
    uint8_t *state = malloc((size_t)n + 1); /* 0 has a colour, 1 free, 2 ruled out */
    if (!near || !state) {
        free(near), free(state);
        return -1;
    }
    for (int64_t v = 0; v < n; v++) {
        near[v] = (int32_t)(indptr[v + 1] - indptr[v]);
        out[v] = 0;
        state[v] = 1;
        color[v] = -1;
    }
    int64_t left = n;
    for (int32_t c = 0; left > 0; c++) {
        for (int first = 1;; first = 0) {
            int64_t best = -1;
            for (int64_t v = 0; v < n; v++) {
                if (state[v] != 1) continue;
                if (best < 0 || (first ? near[v] > near[best]
                                       : out[v] > out[best] || (out[v] == out[best] && near[v] < near[best])))
                    best = v;
            }
            if (best < 0) break;
            color[best] = c;
            state[best] = 0;
            left -= 1;
            for (int64_t e = indptr[best]; e < indptr[best + 1]; e++) {
                const int64_t u = indices[e];
                near[u] -= 1; /* best has a colour */
                if (state[u] != 1) continue;
                state[u] = 2;
                for (int64_t f = indptr[u]; f < indptr[u + 1]; f++) {
                    near[indices[f]] -= 1;
                    out[indices[f]] += 1;
                }
            }
        }
        for (int64_t v = 0; v < n; v++) {
            near[v] += out[v];
            out[v] = 0;
            state[v] = color[v] < 0;
        }
    }
    free(near), free(state);
    return 0;
}

/* Nodes in an order, each the least colour that no neighbour has; others keep theirs, -1 for none. Returns -1
   without memory. */
int64_t lk_coloring_extend(
    int64_t n, const int64_t *indptr, const int32_t *indices, int64_t count, const int32_t *order, int32_t *color
) {
    int64_t *met = calloc((size_t)n + 1, sizeof *met); /* the last node that met a colour, from 1 on */
    if (!met) return -1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t v = order[i];
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++)
            if (color[indices[e]] >= 0) met[color[indices[e]]] = i + 1;
        int32_t c = 0;
        while (met[c] == i + 1) c++;
        color[v] = c;
    }
    free(met);
    return 0;
}
