/* The residual graph of the reductions: memory, rows, and how nodes leave it. */
#include <stdlib.h>

#include "reduce.h"

/* ---- memory -------------------------------------------------------------------------------------------- */

static void *grown(void *block, int64_t *room, int64_t needed, size_t size) {
    int64_t larger = *room + *room / 2 + 64;
    if (needed <= *room) return block;
    if (larger < needed) larger = needed;
    block = realloc(block, (size_t)larger * size);
    if (block) *room = larger;
    return block;
}

int lk_reduce_log_room(Reducer *r, int64_t length) {
    int64_t *log = grown(r->log, &r->log_room, r->log_length + length + 2, 8);
    if (!log) return !(r->failed = 1);
    r->log = log;
    return 1;
}

void lk_reduce_log_begin(Reducer *r, int64_t rule, int64_t length) {
    r->log[r->log_length++] = rule;
    r->log[r->log_length++] = length;
    ++r->counts[rule];
}

void lk_reduce_free(Reducer *r) {
    if (!r) return;
    lk_half_free(r->half);
    void *blocks[] = {r->pool, r->log, r->row, r->degree, r->weight, r->gone, r->lighter, r->first.item,
                      r->first.queued, r->second.item, r->second.queued, r->near, r->chosen, r->list,
                      r->partner};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) free(blocks[i]);
    free(r);
}

static int allocate(Reducer *r, int64_t n, int64_t arcs) {
    const size_t room = (size_t)(n ? n : 1);
    r->pool_room = arcs + n + 64;
    r->pool = malloc((size_t)r->pool_room * 4);
    r->row = malloc(room * sizeof *r->row);
    r->degree = malloc(room * 4), r->weight = malloc(room * 8);
    r->gone = calloc(room, 1), r->lighter = calloc(room, 1);
    r->first.item = malloc(room * 4), r->first.queued = calloc(room, 1);
    r->second.item = malloc(room * 4), r->second.queued = calloc(room, 1);
    r->near = calloc(room, 4), r->chosen = calloc(room, 4), r->list = malloc(room * 4);
    return r->pool && r->row && r->degree && r->weight && r->gone && r->lighter && r->near && r->chosen
           && r->list && r->first.item && r->first.queued && r->second.item && r->second.queued;
}

/* settled: no rule applies to the graph, so that nothing is to be looked at before it changes. */
Reducer *lk_reduce_new(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weight, int unit,
                       int settled) {
    Reducer *r = calloc(1, sizeof *r);
    if (!r || !allocate(r, n, indptr[n])) {
        lk_reduce_free(r);
        return 0;
    }
    r->n = n, r->unit = (uint8_t)unit, r->exact = 1;
    r->edges = indptr[n] / 2;
    r->pool_length = indptr[n];
    memcpy(r->pool, indices, (size_t)indptr[n] * 4);
    memcpy(r->weight, weight, (size_t)n * 8);
    for (int64_t v = 0; v < n; ++v) {
        const int32_t degree = (int32_t)(indptr[v + 1] - indptr[v]);
        r->row[v] = (Row){indptr[v], degree, degree};
        r->degree[v] = degree;
        r->alive += degree > 0;
        if (!settled) push(r, &r->first, (int32_t)v);
    }
    r->swept = settled ? r->alive : -1;
    r->looked = r->alive;
    return r;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

int lk_reduce_reserve(Reducer *r, int32_t v, int32_t more) {
    Row *row = r->row + v;
    if (row->room - row->length >= more) return 1;
    live_row(r, v);
    if (row->room - row->length >= more) return 1;
    const int32_t room = 2 * (row->length + more);
    int32_t *pool = grown(r->pool, &r->pool_room, r->pool_length + room, 4);
    if (!pool) return !(r->failed = 1);
    r->pool = pool;
    memcpy(pool + r->pool_length, pool + row->at, (size_t)row->length * 4);
    row->at = r->pool_length;
    row->room = room;
    r->pool_length += room;
    return 1;
}

static void insert(Reducer *r, int32_t v, int32_t u) {
    Row *row = r->row + v;
    int32_t *at = r->pool + row->at + place_of(r, v, u);
    memmove(at + 1, at, (size_t)(r->pool + row->at + row->length - at) * 4);
    *at = u;
    ++row->length;
}

/* In z's row, x takes the place of y. */
static void replace(Reducer *r, int32_t z, int32_t y, int32_t x) {
    int32_t *at = r->pool + r->row[z].at, from = place_of(r, z, y), to = place_of(r, z, x);
    if (to > from) memmove(at + from, at + from + 1, (size_t)(--to - from) * 4);
    else memmove(at + to + 1, at + to, (size_t)(from - to) * 4);
    at[to] = x;
}

/* ---- changes ------------------------------------------------------------------------------------------- */

INLINE void lose_edge(Reducer *r, int32_t v) {
    --r->edges;
    if (--r->degree[v] == 0) --r->alive;
    else push(r, &r->first, v);
}

void lk_reduce_drop(Reducer *r, int32_t v) {
    const int32_t *near = live_row(r, v);
    const int32_t degree = r->degree[v];
    r->gone[v] = 1;
    for (int32_t i = 0; i < degree; ++i) lose_edge(r, near[i]);
    if (degree) --r->alive;
    r->degree[v] = 0;
}

void lk_reduce_cover(Reducer *r, int32_t v) {
    r->offset += r->weight[v];
    lk_reduce_drop(r, v);
}

void lk_reduce_set_weight(Reducer *r, int32_t v, int64_t weight) {
    if (weight < r->weight[v]) r->lighter[v] = 1;
    r->weight[v] = weight;
    push(r, &r->first, v);
}

void lk_reduce_merge(Reducer *r, int32_t x, int32_t y) {
    const int32_t *near = live_row(r, y), degree = r->degree[y];
    r->gone[y] = 1;
    if (degree) --r->alive;
    if (degree && !r->degree[x]) ++r->alive;
    for (int32_t i = 0; i < degree; ++i) {
        const int32_t z = near[i];
        if (adjacent(r, x, z)) {
            lose_edge(r, z);
            continue;
        }
        replace(r, z, y, x);
        insert(r, x, z);
        ++r->degree[x];
        push(r, &r->first, z);
    }
    r->degree[y] = 0;
}
