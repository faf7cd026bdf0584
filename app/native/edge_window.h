/* Rows of E W of stored entries for kernels that go through entries row by row (attention.c, dynamic.c): made for WINDOW
 * entries at a time, so that weights are read once for many, however few a row has. Backward the gradients take their
 * place, and go to that of W in stored order. */
#ifndef LOCKSTEP_EDGE_WINDOW_H
#define LOCKSTEP_EDGE_WINDOW_H

#include "lanes.h"

enum { WINDOW = 64 }; /* at most; EDGE_ROWS of edges.py */

/* Q = rows p .. p + count - 1 of E W, to->f numbers each; dW [k][f] += E^T G of these entries, G [count][f]. */
void lk_edge_rows(const Edges *a, int64_t p, int64_t count, const Message *to, float *Q);
void lk_edge_gram(const Edges *a, int64_t p, int64_t count, int64_t f, const float *G, float *dW);

/* Entries first .. end - 1 have their rows in to->Q; none from `last` on is asked for. */
typedef struct {
    const Edges *edges;
    const Message *to;
    float *dW; /* or null: nothing is put in the place of rows */
    int64_t first, end, last;
} Window;

/* How many entries of h numbers a kernel takes at a time: its own GROUP, and a window. */
#define together(h) (GROUP / (h) < WINDOW ? GROUP / (h) : WINDOW)

/* No entry yet, of rows `from` .. `until` - 1. */
INLINE Window window_of(const Edges *a, const Message *to, float *dW, int64_t from, int64_t until) {
    const int64_t first = number(a->indptr, a->wide, from), last = number(a->indptr, a->wide, until);
    return (Window){a, to, dW, first, first, last};
}

/* Add to dW what stands in the place of the rows of entries before p. */
INLINE void window_done(const Window *window, int64_t p) {
    if (window->dW && p > window->first)
        lk_edge_gram(window->edges, window->first, p - window->first, window->to->f, window->to->Q, window->dW);
}

/* The rows of entries p .. p + count - 1, count <= WINDOW; p never falls. */
INLINE float *window_at(Window *window, int64_t p, int64_t count) {
    if (p + count > window->end) {
        window_done(window, p);
        window->first = p;
        window->end = window->last - p < WINDOW ? window->last : p + WINDOW;
        lk_edge_rows(window->edges, p, window->end - p, window->to, window->to->Q);
    }
    return window->to->Q + (p - window->first) * window->to->f;
}

#endif
