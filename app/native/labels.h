/* An order of nodes as a ring, with n for both ends, and labels that ascend along it, so that places are compared at
 * once; where there is no room between two, those behind are spread: Dietz and Sleator 1987, section 2. The file that
 * includes this one has made `Search`, with label, next and before [n+1] (app/search/labels.py), and says
 *
 *     placed(s)    how many nodes the order has */
#ifndef LOCKSTEP_LABELS_H
#define LOCKSTEP_LABELS_H

#include "common.h"

#define TOP (INT64_C(1) << 62)           /* the label of the end */

INLINE int64_t end_label(const Search *s, int32_t v) { return v == s->n ? TOP : s->label[v]; }

static void relabel_all(Search *s) {
    const int64_t step = TOP / (placed(s) + 2);
    int64_t label = 0;
    for (int32_t v = s->next[s->n]; v != s->n; v = s->next[v]) s->label[v] = label += step;
}

/* Spread the nodes behind p evenly, as far as it takes to have room. */
static void spread(Search *s, int32_t p) {
    const int64_t low = s->label[p];
    int64_t count = 1;
    int32_t q = s->next[p];
    while (end_label(s, q) - low <= count * count) {
        if (q == s->n) {
            relabel_all(s);
            return;
        }
        q = s->next[q];
        ++count;
    }
    const int64_t step = (end_label(s, q) - low) / count;
    int64_t label = low;
    for (int32_t v = s->next[p]; v != q; v = s->next[v]) s->label[v] = label += step;
}

/* v, which is not in the order, comes behind p, n being the beginning. */
INLINE void link_behind(Search *s, int32_t v, int32_t p) {
    if (end_label(s, s->next[p]) - s->label[p] < 2) spread(s, p);
    const int32_t q = s->next[p];
    s->label[v] = s->label[p] + (end_label(s, q) - s->label[p]) / 2;
    s->next[v] = q;
    s->before[v] = p;
    s->next[p] = s->before[q] = v;
}

/* v leaves the order. */
INLINE void cut_out(Search *s, int32_t v) {
    const int32_t p = s->before[v], q = s->next[v];
    s->next[p] = q;
    s->before[q] = p;
}

/* The order is that of some nodes [count]. */
INLINE void link_all(Search *s, const int32_t *order, int64_t count) {
    const int64_t step = TOP / (count + 2);
    int32_t p = (int32_t)s->n;
    s->label[s->n] = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t v = order[i];
        s->label[v] = (i + 1) * step;
        s->before[v] = p;
        s->next[p] = v;
        p = v;
    }
    s->next[p] = (int32_t)s->n;
    s->before[s->n] = p;
}

#endif
