/* The residual graph of the vertex-cover reductions: its state, and what the files reduce*.c use of each
 * other.
 *
 * Rows are ascending lists in one pool. A removed node stays in its neighbours' rows until these are next
 * walked, so that a hub does not pay for each leaf. A fold keeps the number of one of its nodes. */
#ifndef LOCKSTEP_REDUCE_H
#define LOCKSTEP_REDUCE_H

#include "common.h"
#include "half.h"

/* As in app/reductions/cover/log.py. */
enum { NEIGHBOURS, CLIQUE, TRANSFER, FOLD, TWIN, UNCONFINED, CROWN, TAKE, RULES };
enum { LARGEST_CLIQUE = 8, LARGEST_FOLD = 3, LARGEST_TWIN = 8, TWIN_SCAN = 64, NEAR = 32, CHAIN = 16 };
enum { READS = 8192, HALF_ARCS = 1 << 28, CHOSEN_ARCS = 1 << 20, PHASES = 32 };

typedef struct {
    int64_t at;
    int32_t length, room;
} Row;

/* First in, first out; a node waits at most once. */
typedef struct {
    int32_t *item;
    int64_t head, count;
    uint8_t *queued;
} Queue;

typedef struct {
    int64_t n, alive, edges, offset, counts[RULES];
    int64_t swept;  /* nodes left when the whole graph was last looked at; -1: never */
    int64_t looked; /* nodes left when all of them last came to the rules */
    int64_t steps;  /* nodes that came to the rules so far, and relaxations */
    int64_t pool_length, pool_room, log_length, log_room;
    int32_t *pool;
    int64_t *log;
    Row *row;
    int32_t *degree;
    int64_t *weight;
    uint8_t *gone, *lighter; /* lighter: its weight fell, which its neighbours have not yet seen */
    Queue first, second;
    int32_t *near, *chosen, *list; /* stamps and list of the search for unconfined nodes */
    int32_t stamp;
    uint8_t unit, exact, failed; /* failed: no memory left */
    Half *half;                  /* the relaxation while it is being solved */
    int32_t *partner;            /* [n] where the last relaxation decided nothing, with unit weights; or 0 */
    int64_t paired;              /* nodes that were left then */
} Reducer;

/* ---- the log: room first, so that nothing is half done without memory ---------------------------------- */

int lk_reduce_log_room(Reducer *r, int64_t length); /* for an entry of `length` words; false without memory */
void lk_reduce_log_begin(Reducer *r, int64_t rule, int64_t length);
INLINE void log_word(Reducer *r, int64_t word) { r->log[r->log_length++] = word; }

/* ---- queues -------------------------------------------------------------------------------------------- */

INLINE void push(Reducer *r, Queue *q, int32_t v) {
    if (q->queued[v] || r->degree[v] == 0) return;
    q->queued[v] = 1;
    q->item[(q->head + q->count++) % r->n] = v;
}

INLINE int32_t pop(Reducer *r, Queue *q) {
    const int32_t v = q->item[q->head];
    q->head = (q->head + 1) % r->n;
    --q->count;
    q->queued[v] = 0;
    return v;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

/* The neighbours of v, degree[v] of them, ascending. */
INLINE int32_t *live_row(Reducer *r, int32_t v) {
    Row *row = r->row + v;
    int32_t *at = r->pool + row->at, k = 0;
    if (row->length == r->degree[v]) return at;
    for (int32_t i = 0; i < row->length; ++i)
        if (!r->gone[at[i]]) at[k++] = at[i];
    row->length = k;
    return at;
}

/* The place of the first entry of v's row that is not below u. */
INLINE int32_t place_of(const Reducer *r, int32_t v, int32_t u) {
    const int32_t *at = r->pool + r->row[v].at;
    int32_t lo = 0, hi = r->row[v].length;
    while (lo < hi) {
        const int32_t mid = (lo + hi) / 2;
        if (at[mid] < u) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

INLINE int adjacent(const Reducer *r, int32_t u, int32_t v) {
    const int shorter = r->row[u].length <= r->row[v].length;
    const int32_t a = shorter ? u : v, b = shorter ? v : u, i = place_of(r, a, b);
    return i < r->row[a].length && r->pool[r->row[a].at + i] == b;
}

/* Room for more entries in v's row, which may move; false without memory. */
int lk_reduce_reserve(Reducer *r, int32_t v, int32_t more);

/* ---- changes of the graph ------------------------------------------------------------------------------ */

void lk_reduce_drop(Reducer *r, int32_t v);  /* remove v and its edges */
void lk_reduce_cover(Reducer *r, int32_t v); /* pay for v and drop it */
/* Give the edges of y to x, which is not adjacent to it and has the room. */
void lk_reduce_merge(Reducer *r, int32_t x, int32_t y);
void lk_reduce_set_weight(Reducer *r, int32_t v, int64_t weight);

/* ---- rules: whether one applied to v, which has an edge ------------------------------------------------ */

int lk_reduce_cheap_rules(Reducer *r, int32_t v);
int lk_reduce_unconfined(Reducer *r, int32_t v);

#endif
