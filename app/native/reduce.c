/* Reductions for minimum-weight vertex cover that change the optimum by a known amount; app/reductions/plain.py does
 * the same, step for step, and docstrings of app/reductions/log.py say what each rule is.
 *
 * Rows are ascending lists in one pool. A removed node stays in its neighbours' rows until these are next walked, so
 * that a hub does not pay for each leaf. A fold keeps the number of one of its nodes. */
#include <stdlib.h>

#include "reduce.h"

/* As in app/reductions/log.py. */
enum { NEIGHBOURS, CLIQUE, TRANSFER, FOLD, TWIN, UNCONFINED, CROWN, TAKE, RULES };
enum { LARGEST_CLIQUE = 8, LARGEST_FOLD = 3, LARGEST_TWIN = 8, TWIN_SCAN = 64, NEAR = 32, CHAIN = 16, READS = 8192 };
enum { HALF_ARCS = 1 << 28 };

typedef struct {
    int64_t at;
    int32_t length, room;
} Row;

typedef struct {
    int32_t *item;
    int64_t head, count;
    uint8_t *queued;
} Queue;

typedef struct {
    int64_t n, alive, edges, offset, counts[RULES];
    int64_t swept; /* nodes left when the whole graph was last looked at; -1: never */
    int64_t pool_length, pool_room, log_length, log_room;
    int32_t *pool;
    int64_t *log;
    Row *row;
    int32_t *degree;
    int64_t *weight;
    uint8_t *gone, *lighter; /* lighter: its weight fell, which its neighbours have not yet seen */
    Queue first, second;
    int32_t *near, *chosen, *list; /* stamps and list of lk_reduce's search for unconfined nodes */
    int32_t stamp;
    uint8_t unit, exact, failed;
} Reducer;

/* ---- memory ----------------------------------------------------------------------------------------------- */

static void *grown(void *block, int64_t *room, int64_t needed, size_t size) {
    int64_t larger = *room + *room / 2 + 64;
    if (needed <= *room) return block;
    if (larger < needed) larger = needed;
    block = realloc(block, (size_t)larger * size);
    if (block) *room = larger;
    return block;
}

/* Room for a log entry of `length` words; false without memory. */
static int log_room(Reducer *r, int64_t length) {
    int64_t *log = grown(r->log, &r->log_room, r->log_length + length + 2, 8);
    if (!log) return !(r->failed = 1);
    r->log = log;
    return 1;
}

static void log_begin(Reducer *r, int64_t rule, int64_t length) {
    r->log[r->log_length++] = rule;
    r->log[r->log_length++] = length;
    ++r->counts[rule];
}

INLINE void log_word(Reducer *r, int64_t word) { r->log[r->log_length++] = word; }

void lk_reduce_free(Reducer *r) {
    if (!r) return;
    void *blocks[] = {r->pool, r->log, r->row, r->degree, r->weight, r->gone, r->lighter, r->first.item,
                      r->first.queued, r->second.item, r->second.queued, r->near, r->chosen, r->list};
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
    return r->pool && r->row && r->degree && r->weight && r->gone && r->lighter && r->first.item && r->first.queued
           && r->second.item && r->second.queued && r->near && r->chosen && r->list;
}

/* ---- queues ----------------------------------------------------------------------------------------------- */

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

/* ---- rows ------------------------------------------------------------------------------------------------- */

/* The neighbours of v, degree[v] of them, ascending. */
static int32_t *live_row(Reducer *r, int32_t v) {
    Row *row = r->row + v;
    int32_t *at = r->pool + row->at, k = 0;
    if (row->length == r->degree[v]) return at;
    for (int32_t i = 0; i < row->length; ++i)
        if (!r->gone[at[i]]) at[k++] = at[i];
    row->length = k;
    return at;
}

/* The place of the first entry of v's row that is not below u. */
static int32_t place_of(const Reducer *r, int32_t v, int32_t u) {
    const int32_t *at = r->pool + r->row[v].at;
    int32_t lo = 0, hi = r->row[v].length;
    while (lo < hi) {
        const int32_t mid = (lo + hi) / 2;
        if (at[mid] < u) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static int adjacent(const Reducer *r, int32_t u, int32_t v) {
    if (r->row[u].length > r->row[v].length) return adjacent(r, v, u);
    const int32_t i = place_of(r, u, v);
    return i < r->row[u].length && r->pool[r->row[u].at + i] == v;
}

/* Room for `more` entries at the end of v's row, which may move. */
static int reserve(Reducer *r, int32_t v, int32_t more) {
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

/* ---- changes of the graph --------------------------------------------------------------------------------- */

INLINE void lose_edge(Reducer *r, int32_t v) {
    --r->edges;
    if (--r->degree[v] == 0) --r->alive;
    else push(r, &r->first, v);
}

/* Remove v and its edges. */
static void drop(Reducer *r, int32_t v) {
    const int32_t *near = live_row(r, v);
    const int32_t degree = r->degree[v];
    r->gone[v] = 1;
    for (int32_t i = 0; i < degree; ++i) lose_edge(r, near[i]);
    if (degree) --r->alive;
    r->degree[v] = 0;
}

static void cover(Reducer *r, int32_t v) {
    r->offset += r->weight[v];
    drop(r, v);
}

static void set_weight(Reducer *r, int32_t v, int64_t weight) {
    if (weight < r->weight[v]) r->lighter[v] = 1;
    r->weight[v] = weight;
    push(r, &r->first, v);
}

/* ---- rules: each returns whether it applied --------------------------------------------------------------- */

/* Whether the neighbours of v, at most three, hold no independent set heavier than v. */
static int outweighs_sets(Reducer *r, int32_t v) {
    const int32_t *u = live_row(r, v), degree = r->degree[v];
    for (int32_t set = 1; set < 1 << degree; ++set) {
        int64_t weight = 0;
        int independent = 1;
        for (int32_t i = 0; i < degree; ++i) {
            if (!(set >> i & 1)) continue;
            weight += r->weight[u[i]];
            for (int32_t j = 0; j < i; ++j)
                if (set >> j & 1 && adjacent(r, u[i], u[j])) independent = 0;
        }
        if (independent && weight > r->weight[v]) return 0;
    }
    return 1;
}

static int outweighs(Reducer *r, int32_t v) {
    if (r->unit && r->degree[v] > LARGEST_FOLD) return 0;
    const int32_t *near = live_row(r, v);
    int64_t rest = r->weight[v];
    for (int32_t i = 0; i < r->degree[v] && rest >= 0; ++i) rest -= r->weight[near[i]];
    return rest >= 0 || (r->degree[v] <= LARGEST_FOLD && outweighs_sets(r, v));
}

static int take_neighbours(Reducer *r, int32_t v) {
    const int32_t degree = r->degree[v], *near;
    if (!outweighs(r, v) || !log_room(r, degree + 1)) return 0;
    near = live_row(r, v);
    log_begin(r, NEIGHBOURS, degree + 1);
    log_word(r, v);
    for (int32_t i = 0; i < degree; ++i) log_word(r, near[i]);
    for (int32_t i = 0; i < degree; ++i) cover(r, near[i]);
    return 1;
}

static int is_clique(Reducer *r, const int32_t *u, int32_t count) {
    for (int32_t i = 1; i < count; ++i)
        for (int32_t j = 0; j < i; ++j)
            if (!adjacent(r, u[i], u[j])) return 0;
    return 1;
}

static int clique(Reducer *r, int32_t v) {
    const int32_t degree = r->degree[v];
    int32_t near[LARGEST_CLIQUE], light[LARGEST_CLIQUE], lights = 0, heavies = 0;
    if (degree > LARGEST_CLIQUE || !is_clique(r, live_row(r, v), degree) || !log_room(r, 2 * degree + 4)) return 0;
    memcpy(near, live_row(r, v), (size_t)degree * 4);
    for (int32_t i = 0; i < degree; ++i) {
        if (r->weight[near[i]] <= r->weight[v]) light[lights++] = near[i];
        else near[heavies++] = near[i];
    }
    if (lights) {
        log_begin(r, CLIQUE, lights + 1);
        log_word(r, v);
        for (int32_t i = 0; i < lights; ++i) log_word(r, light[i]);
        for (int32_t i = 0; i < lights; ++i) cover(r, light[i]);
    }
    if (!heavies) return 1;
    log_begin(r, TRANSFER, heavies + 1);
    log_word(r, v);
    drop(r, v);
    for (int32_t i = 0; i < heavies; ++i) {
        log_word(r, near[i]);
        r->offset += r->weight[v];
        set_weight(r, near[i], r->weight[near[i]] - r->weight[v]);
    }
    return 1;
}

/* Give the edges of y to x, which is not adjacent to it. */
static void merge(Reducer *r, int32_t x, int32_t y) {
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

static int fold(Reducer *r, int32_t v) {
    const int32_t degree = r->degree[v];
    int32_t near[LARGEST_FOLD], x, more = 0;
    int64_t sum = 0, least = INT64_MAX;
    if (degree < 2 || degree > LARGEST_FOLD) return 0;
    memcpy(near, live_row(r, v), (size_t)degree * 4);
    x = near[0];
    for (int32_t i = 0; i < degree; ++i) {
        for (int32_t j = 0; j < i; ++j)
            if (adjacent(r, near[i], near[j])) return 0;
        sum += r->weight[near[i]];
        least = r->weight[near[i]] < least ? r->weight[near[i]] : least;
        more += r->degree[near[i]];
        if (r->degree[near[i]] > r->degree[x]) x = near[i];
    }
    if (r->weight[v] < sum - least || !reserve(r, x, more - r->degree[x]) || !log_room(r, degree + 1)) return 0;
    log_begin(r, FOLD, degree + 1);
    log_word(r, v);
    log_word(r, x);
    r->offset += r->weight[v];
    drop(r, v);
    for (int32_t i = 0; i < degree; ++i) {
        if (near[i] == x) continue;
        log_word(r, near[i]);
        merge(r, x, near[i]);
    }
    set_weight(r, x, sum - r->weight[v]);
    return 1;
}

/* Another node with the neighbours of v, or -1. */
static int32_t twin_of(Reducer *r, int32_t v) {
    const int32_t degree = r->degree[v], *near = live_row(r, v);
    int32_t via = near[0];
    for (int32_t i = 1; i < degree; ++i)
        if (r->degree[near[i]] < r->degree[via]) via = near[i];
    if (r->degree[via] > TWIN_SCAN) return -1;
    const int32_t *other = live_row(r, via);
    for (int32_t i = 0; i < r->degree[via]; ++i)
        if (other[i] != v && r->degree[other[i]] == degree
            && !memcmp(live_row(r, other[i]), near, (size_t)degree * 4)) return other[i];
    return -1;
}

/* Where all weights are one, only twins whose merger a neighbour rule or a fold then removes: weights stay one. */
static int twin(Reducer *r, int32_t v) {
    const int32_t degree = r->degree[v];
    if (r->unit ? degree != LARGEST_FOLD : degree > LARGEST_TWIN) return 0;
    const int32_t u = twin_of(r, v);
    if (u < 0 || !log_room(r, 2)) return 0;
    log_begin(r, TWIN, 2);
    log_word(r, v);
    log_word(r, u);
    drop(r, u);
    set_weight(r, v, r->weight[v] + r->weight[u]);
    return r->unit ? take_neighbours(r, v) || fold(r, v) : 1;
}

/* ---- unconfined nodes ------------------------------------------------------------------------------------- */

/* Add v to the chosen set S; `near` stamps N[S], `list` holds N(S). Returns the new length of the list. */
static int32_t choose(Reducer *r, int32_t v, int32_t count) {
    const int32_t *near = live_row(r, v);
    r->chosen[v] = r->near[v] = r->stamp;
    for (int32_t i = 0; i < r->degree[v]; ++i) {
        if (r->near[near[i]] == r->stamp) continue;
        r->near[near[i]] = r->stamp;
        r->list[count++] = near[i];
    }
    return count;
}

/* How many neighbours u has outside N[S], 2 standing for more; 2 also where S outweighs u. *outside: the last. */
static int outside_of(Reducer *r, int32_t u, int32_t *outside, int64_t *reads) {
    const int32_t *near = live_row(r, u);
    int64_t rest = r->weight[u];
    int found = 0;
    for (int32_t i = 0; i < r->degree[u]; ++i) {
        const int32_t z = near[i];
        ++*reads;
        if (r->chosen[z] == r->stamp) rest -= r->weight[z];
        else if (r->near[z] != r->stamp) ++found, *outside = z;
        if (rest < 0 || found > 1) return 2;
    }
    return found;
}

static int unconfined(Reducer *r, int32_t v) {
    int32_t chain[2 * CHAIN], links = 0, outside = -1;
    int64_t reads = 0;
    ++r->stamp;
    int32_t count = choose(r, v, 0);
    for (int32_t i = 0; i < count && reads < READS; ++i) {
        const int32_t u = r->list[i];
        if (r->degree[u] > count + links / 2 + 1) continue; /* more than one neighbour lies outside N[S] */
        const int found = outside_of(r, u, &outside, &reads);
        if (found == 2) continue;
        if (found == 0) {
            if (!log_room(r, links + 2)) return 0;
            log_begin(r, UNCONFINED, links + 2);
            log_word(r, v);
            for (int32_t j = 0; j < links; ++j) log_word(r, chain[j]);
            log_word(r, u);
            cover(r, v);
            return 1;
        }
        if (links == 2 * CHAIN) return 0;
        chain[links++] = u;
        chain[links++] = outside;
        reads += r->degree[outside];
        count = choose(r, outside, count);
        i = -1;
    }
    return 0;
}

/* ---- the relaxation --------------------------------------------------------------------------------------- */

/* Number the nodes that have edges 0.., in `number` and `node`, and copy their rows and weights. */
static void snapshot(Reducer *r, int64_t *indptr, int32_t *indices, int64_t *node, int64_t *weight, int32_t *number) {
    int64_t k = 0, at = 0;
    for (int32_t v = 0; v < r->n; ++v)
        if (r->degree[v]) node[k] = v, weight[k] = r->weight[v], number[v] = (int32_t)k++;
    for (int64_t i = 0; i < k; ++i) {
        const int32_t *near = live_row(r, (int32_t)node[i]);
        indptr[i] = at;
        for (int32_t j = 0; j < r->degree[node[i]]; ++j) indices[at++] = number[near[j]];
    }
    indptr[k] = at;
}

static void take_crown(Reducer *r, const Half *h, const int64_t *node) {
    int64_t outs = 0, carried = 0;
    for (int64_t i = 0; i < h->k; ++i) {
        outs += h->side[i] == OUT;
        for (int64_t e = h->indptr[i]; h->side[i] == OUT && e < h->indptr[i + 1]; ++e) carried += h->flow[e] > 0;
    }
    if (!outs || !log_room(r, 1 + outs + 3 * carried)) return;
    log_begin(r, CROWN, 1 + outs + 3 * carried);
    log_word(r, outs);
    for (int64_t i = 0; i < h->k; ++i)
        if (h->side[i] == OUT) log_word(r, node[i]);
    for (int64_t i = 0; i < h->k; ++i)
        for (int64_t e = h->indptr[i]; h->side[i] == OUT && e < h->indptr[i + 1]; ++e) {
            if (!h->flow[e]) continue;
            log_word(r, node[i]);
            log_word(r, node[h->indices[e]]);
            log_word(r, h->flow[e]);
        }
    for (int64_t i = 0; i < h->k; ++i)
        if (h->side[i] == COVER) cover(r, (int32_t)node[i]);
}

static int crown(Reducer *r) {
    const int64_t k = r->alive, arcs = 2 * r->edges;
    if (arcs > HALF_ARCS) return 0;
    Half h = {k, calloc((size_t)(k + 1), 8), calloc((size_t)k, 8), calloc((size_t)arcs, 8),
              calloc((size_t)arcs, 4), calloc((size_t)k, 1)};
    int64_t *node = calloc((size_t)k, 8);
    r->failed = !(h.indptr && h.weight && h.flow && h.indices && h.side && node);
    if (!r->failed) {
        snapshot(r, h.indptr, h.indices, node, h.weight, r->list);
        if (half_integral(&h) < 0) r->failed = 1;
        else take_crown(r, &h, node);
    }
    void *blocks[] = {h.indptr, h.weight, h.flow, h.indices, h.side, node};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) free(blocks[i]);
    return r->alive < k;
}

/* ---- all rules -------------------------------------------------------------------------------------------- */

/* What a change of v may have made possible elsewhere. */
static void pass_on(Reducer *r, int32_t v) {
    const int32_t degree = r->degree[v];
    push(r, &r->second, v);
    if (degree > NEAR && !r->lighter[v]) return;
    const int32_t *near = live_row(r, v);
    for (int32_t i = 0; r->lighter[v] && i < degree; ++i) push(r, &r->first, near[i]);
    r->lighter[v] = 0;
    for (int32_t i = 0; degree <= NEAR && i < degree; ++i) push(r, &r->second, near[i]);
}

/* Whether the graph has changed since it was last swept; after a choice, whether a quarter of it has gone. */
static int sweep_due(const Reducer *r) {
    if (r->edges == 0) return 0;
    if (r->swept < 0) return 1;
    if (r->exact) return r->alive != r->swept; /* every rule removes a node */
    return r->alive <= r->swept - r->swept / 4;
}

/* Solve the relaxation; where it decides nothing, have every node looked at once more. */
static void sweep(Reducer *r) {
    r->swept = r->alive;
    if (crown(r)) return;
    for (int32_t v = 0; v < r->n; ++v) push(r, &r->first, v);
}

/* Apply rules to at most `steps` nodes of the queues; returns 1 if more is to do, 0 at the fixed point, -1 without
 * memory. How the work is cut into calls changes nothing. */
int lk_reduce_run(Reducer *r, int64_t steps) {
    while (steps-- > 0 && !r->failed) {
        if (r->first.count) {
            const int32_t v = pop(r, &r->first);
            if (r->degree[v] == 0 || take_neighbours(r, v) || clique(r, v) || fold(r, v) || twin(r, v)) continue;
            pass_on(r, v);
        } else if (r->second.count) {
            const int32_t v = pop(r, &r->second);
            if (r->degree[v]) unconfined(r, v);
        } else if (!sweep_due(r)) return 0;
        else sweep(r);
    }
    return r->failed ? -1 : 1;
}

/* Put `count` nodes into the cover, those without an edge excepted; returns 0, or -1 without memory. */
int lk_reduce_take(Reducer *r, const int64_t *nodes, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const int32_t v = (int32_t)nodes[i];
        if (r->degree[v] == 0) continue;
        if (!log_room(r, 1)) return -1;
        log_begin(r, TAKE, 1);
        log_word(r, v);
        cover(r, v);
        r->exact = 0;
    }
    return 0;
}

/* ---- what the caller sees --------------------------------------------------------------------------------- */

Reducer *lk_reduce_new(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weight, int unit) {
    Reducer *r = calloc(1, sizeof *r);
    if (!r || !allocate(r, n, indptr[n])) {
        lk_reduce_free(r);
        return 0;
    }
    r->n = n, r->unit = (uint8_t)unit, r->exact = 1;
    r->swept = -1;
    r->edges = indptr[n] / 2;
    r->pool_length = indptr[n];
    memcpy(r->pool, indices, (size_t)indptr[n] * 4);
    memcpy(r->weight, weight, (size_t)n * 8);
    for (int64_t v = 0; v < n; ++v) {
        const int32_t degree = (int32_t)(indptr[v + 1] - indptr[v]);
        r->row[v] = (Row){indptr[v], degree, degree};
        r->degree[v] = degree;
        r->alive += degree > 0;
        push(r, &r->first, (int32_t)v);
    }
    return r;
}

/* totals [5 + RULES]: nodes and edges left, offset, exact, words of the log, uses of each rule. */
void lk_reduce_totals(const Reducer *r, int64_t *totals) {
    const int64_t own[] = {r->alive, r->edges, r->offset, r->exact, r->log_length};
    memcpy(totals, own, sizeof own);
    memcpy(totals + 5, r->counts, sizeof r->counts);
}

void lk_reduce_log(const Reducer *r, int64_t *log) {
    if (r->log_length) memcpy(log, r->log, (size_t)r->log_length * 8);
}

void lk_reduce_degrees(const Reducer *r, int64_t *degrees) {
    for (int64_t v = 0; v < r->n; ++v) degrees[v] = r->degree[v];
}

void lk_reduce_kernel(Reducer *r, int64_t *indptr, int32_t *indices, int64_t *node, int64_t *weight) {
    snapshot(r, indptr, indices, node, weight, r->list);
}

/* Complete a cover of what is left, in_cover [n], to one of the whole graph: the log backwards. */
void lk_reduce_lift(const Reducer *r, int64_t *ends, uint8_t *in_cover) {
    int64_t entries = 0;
    for (int64_t at = 0; at < r->log_length; at += 2 + r->log[at + 1]) ends[entries++] = at;
    while (entries--) {
        const int64_t *entry = r->log + ends[entries], length = entry[1], *word = entry + 2;
        switch (entry[0]) {
        case NEIGHBOURS:
        case CLIQUE:
            for (int64_t i = 1; i < length; ++i) in_cover[word[i]] = 1;
            break;
        case TRANSFER:
            for (int64_t i = 1; i < length; ++i) in_cover[word[0]] |= !in_cover[word[i]];
            break;
        case FOLD:
            for (int64_t i = 2; i < length; ++i) in_cover[word[i]] = in_cover[word[1]];
            in_cover[word[0]] = !in_cover[word[1]];
            break;
        case TWIN:
            in_cover[word[1]] = in_cover[word[0]];
            break;
        case CROWN:
            for (int64_t i = 1 + word[0]; i < length; i += 3) in_cover[word[i + 1]] = 1;
            break;
        default: /* UNCONFINED, TAKE */
            in_cover[word[0]] = 1;
        }
    }
}
