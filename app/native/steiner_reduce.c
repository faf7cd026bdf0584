/* Reductions of Steiner trees: edges that a way around makes needless. app/reductions/steiner/plain.py has the same. */
#include <stdint.h>
#include <stdlib.h>

#include "common.h"
#include "links.h"

typedef struct {
    int64_t n;
    const int64_t *indptr;
    const int32_t *indices, *row; /* row: of each entry */
    const int64_t *lengths, *twin; /* twin: the entry of the other direction */
    const uint8_t *terminal;
    uint8_t *alive;           /* of entries */
    int64_t *distance;        /* [2 n] since the last terminal, from either end of an edge */
    int64_t *record, *stamp;  /* [2 n] how a node was reached, and for which edge */
    int64_t *node, *from;     /* [room] records: a node, and the record before */
    int64_t room, most;       /* records, and entries that one edge may look at */
} Ways;

/* One search from a node along edges other than `edge`: a terminal sets the distance back to 0, and none goes beyond
   `length`. side 1 ends where it meets side 0. Returns the record in which it ended, -1 elsewhere, -2 without memory;
   *met: the record of side 0. */
static int64_t look(Ways *w, int32_t start, int32_t goal, int64_t edge, int64_t side, int64_t *made, int64_t *met) {
    const int64_t length = w->lengths[edge], other = w->twin[edge], at = side * w->n, mark = edge + 1;
    Links heap = {0};
    int64_t looked = 0, ended = -1;
    int failed = 0;
    w->node[*made] = start;
    w->from[*made] = -1;
    w->distance[at + start] = 0;
    w->record[at + start] = *made;
    w->stamp[at + start] = mark;
    failed = push(&heap, 0, (int32_t)(*made)++);
    while (heap.count && !failed && ended < 0 && looked < w->most) {
        const Link least = pop(&heap);
        const int32_t x = (int32_t)w->node[least.x];
        if (w->record[at + x] != least.x) continue;
        for (int64_t e = w->indptr[x]; e < w->indptr[x + 1] && looked < w->most && *made < w->room; e++) {
            if (!w->alive[e] || e == edge || e == other) continue;
            looked += 1;
            const int32_t y = w->indices[e];
            int64_t d = least.cost + w->lengths[e];
            if (d > length) continue;
            const int64_t beyond = d;
            if (w->terminal[y]) d = 0;
            if (w->stamp[at + y] == mark && w->distance[at + y] <= d) continue;
            const int64_t made_now = (*made)++;
            w->node[made_now] = y;
            w->from[made_now] = least.x;
            w->distance[at + y] = d;
            w->record[at + y] = made_now;
            w->stamp[at + y] = mark;
            if (side == 0 ? y == goal : w->stamp[y] == mark && w->distance[y] + beyond <= length) {
                ended = made_now;
                *met = side ? w->record[y] : -1;
                break;
            }
            failed |= push(&heap, d, (int32_t)made_now);
        }
    }
    free(heap.item);
    return failed ? -2 : ended;
}

/* Edges order[from .. count), by entries, that have a way around: of each `out` gets u, v, k and the k nodes of the way
   from u to v, and its entries are dead. Returns where it stopped as there was no more room in out [left]; *words: how
   much of that is used; -1 without memory. */
int64_t lk_steiner_detours(
    Ways *w, const int64_t *order, int64_t from, int64_t count, int64_t *out, int64_t left, int64_t *words
) {
    *words = 0;
    for (; from < count; from++) {
        if (left - *words < w->room + 3) return from;
        const int64_t edge = order[from];
        const int32_t u = w->row[edge], v = w->indices[edge];
        int64_t made = 0, met = -1, k = 0, end;
        if ((end = look(w, u, v, edge, 0, &made, &met)) == -1) end = look(w, v, u, edge, 1, &made, &met);
        if (end == -2) return -1;
        if (end < 0) continue;
        int64_t *way = out + *words + 3;
        const int64_t first = met >= 0 ? met : end;
        for (int64_t i = first; i >= 0; i = w->from[i]) way[k++] = w->node[i];
        for (int64_t i = 0, j = k - 1; i < j; i++, j--) {
            const int64_t node = way[i];
            way[i] = way[j];
            way[j] = node;
        }
        if (met >= 0)
            for (int64_t i = w->from[end]; i >= 0; i = w->from[i]) way[k++] = w->node[i];
        way[-3] = u, way[-2] = v, way[-1] = k;
        *words += 3 + k;
        w->alive[edge] = w->alive[w->twin[edge]] = 0;
    }
    return from;
}
