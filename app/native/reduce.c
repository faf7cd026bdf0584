/* The reductions of minimum-weight vertex cover that change the optimum by a known amount: the order of the
 * rules, the relaxation as one of them, and what the caller sees. app/reductions/cover/plain.py does the same,
 * step for step. */
#include <stdlib.h>

#include "reduce.h"

/* ---- the relaxation ------------------------------------------------------------------------------------ */

/* Number the nodes that have edges 0.. in the order of `node`, copy their rows and weights. */
static void snapshot(Reducer *r, int64_t *indptr, int32_t *indices, int64_t *node, int64_t *weight) {
    int32_t *number = r->list;
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

static void take_crown(Reducer *r, const Half *h) {
    const int64_t *node = h->node;
    int64_t outs = 0, carried = 0;
    for (int64_t i = 0; i < h->k; ++i) {
        if (h->side[i] != OUT) continue;
        ++outs;
        for (int64_t e = h->indptr[i]; e < h->indptr[i + 1]; ++e) carried += h->flow[e] > 0;
    }
    if (!outs || !lk_reduce_log_room(r, 1 + outs + 3 * carried)) return;
    lk_reduce_log_begin(r, CROWN, 1 + outs + 3 * carried);
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
        if (h->side[i] == COVER) lk_reduce_cover(r, (int32_t)node[i]);
}

/* Begin a solution of the relaxation of what is left. */
static void begin_crown(Reducer *r) {
    Half *h = r->half = lk_half_new(r->alive, 2 * r->edges);
    if (h) snapshot(r, h->indptr, h->indices, h->node, h->weight);
    else r->failed = 1;
}

static void forget_crown(Reducer *r) {
    lk_half_free(r->half);
    r->half = 0;
}

/* Keep the matching of the double cover, from which the bound of the relaxation follows. */
static void keep_pairs(Reducer *r, const Half *h) {
    if (!r->unit || !h->carrier) return;
    if (!r->partner && !(r->partner = malloc((size_t)(r->n ? r->n : 1) * 4))) return; /* only the bound costs more */
    for (int64_t i = 0; i < h->k; ++i) {
        r->partner[h->node[i]] = -1;
        for (int64_t e = h->indptr[i]; e < h->indptr[i + 1]; ++e)
            if (h->flow[e]) r->partner[h->node[i]] = (int32_t)h->node[h->indices[e]];
    }
    r->paired = r->alive;
}

/* Every node is to be looked at, where any has gone since they last all were. */
static void look_everywhere(Reducer *r) {
    if (r->alive == r->looked) return;
    r->looked = r->alive;
    for (int32_t v = 0; v < r->n; ++v) push(r, &r->first, v);
}

/* Take what the solution decides; where that is nothing, have every node looked at once more. */
static void end_crown(Reducer *r) {
    const int64_t before = r->alive;
    take_crown(r, r->half);
    ++r->steps;
    if (r->alive == before && r->exact) keep_pairs(r, r->half);
    forget_crown(r);
    if (r->alive == before) look_everywhere(r);
}

/* ---- all rules ----------------------------------------------------------------------------------------- */

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

static void begin_sweep(Reducer *r) {
    r->swept = r->alive;
    if (2 * r->edges <= (r->exact ? HALF_ARCS : CHOSEN_ARCS)) begin_crown(r);
    else look_everywhere(r);
}

/* Apply rules to at most `steps` nodes of the queues; returns 1 if more is to do, 0 at the fixed point, -1
 * without memory. How the work is cut into calls changes nothing. */
int lk_reduce_run(Reducer *r, int64_t steps) {
    while (steps-- > 0 && !r->failed) {
        if (r->half) {
            if (lk_half_run(r->half) && (r->exact || r->half->phases < PHASES)) return 1;
            end_crown(r);
        } else if (r->first.count) {
            const int32_t v = pop(r, &r->first);
            ++r->steps;
            if (r->degree[v] && !lk_reduce_cheap_rules(r, v)) pass_on(r, v);
        } else if (r->second.count) {
            const int32_t v = pop(r, &r->second);
            ++r->steps;
            if (r->degree[v]) lk_reduce_unconfined(r, v);
        } else if (!sweep_due(r)) return 0;
        else begin_sweep(r);
    }
    return r->failed ? -1 : 1;
}

/* Put `count` nodes into the cover, those without an edge excepted; returns 0, or -1 without memory. */
int lk_reduce_take(Reducer *r, const int64_t *nodes, int64_t count) {
    forget_crown(r); /* of a reduction that was interrupted */
    for (int64_t i = 0; i < count; ++i) {
        const int32_t v = (int32_t)nodes[i];
        if (r->degree[v] == 0) continue;
        if (!lk_reduce_log_room(r, 1)) return -1;
        lk_reduce_log_begin(r, TAKE, 1);
        log_word(r, v);
        lk_reduce_cover(r, v);
        r->exact = 0;
    }
    return 0;
}

int64_t lk_reduce_steps(const Reducer *r) { return r->steps; }

/* ---- what the caller sees ------------------------------------------------------------------------------ */

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
    snapshot(r, indptr, indices, node, weight);
}

/* partner: [k] for each node that has edges the one, by its place among them, that a largest matching of the double
 * cover's copies gives it, or -1; number: [n] scratch. Returns whether one is known. */
int lk_reduce_partners(const Reducer *r, int32_t *number, int64_t *partner) {
    int32_t k = 0;
    if (!r->partner || r->paired != r->alive) return 0;
    for (int32_t v = 0; v < r->n; ++v)
        if (r->degree[v]) number[v] = k++;
    for (int64_t v = 0, i = 0; v < r->n; ++v)
        if (r->degree[v]) partner[i++] = r->partner[v] < 0 ? -1 : number[r->partner[v]];
    return 1;
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
