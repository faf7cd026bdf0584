/* The rules that look at one node and what is near it; app/reductions/cover/log.py states them, rules.py and
 * unconfined.py are the same in Python. Each returns whether it applied. */
#include "reduce.h"

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
    const Row *row = r->row + v;
    if (row->length > 2 * r->degree[v]) live_row(r, v);
    /* A heavy hub is met often and left early: do not walk its whole row for that. */
    int64_t rest = r->weight[v];
    for (const int32_t *u = r->pool + row->at; u < r->pool + row->at + row->length && rest >= 0; ++u)
        if (!r->gone[*u]) rest -= r->weight[*u];
    return rest >= 0 || (r->degree[v] <= LARGEST_FOLD && outweighs_sets(r, v));
}

static int take_neighbours(Reducer *r, int32_t v) {
    const int32_t degree = r->degree[v], *near;
    if (!outweighs(r, v) || !lk_reduce_log_room(r, degree + 1)) return 0;
    near = live_row(r, v);
    lk_reduce_log_begin(r, NEIGHBOURS, degree + 1);
    log_word(r, v);
    for (int32_t i = 0; i < degree; ++i) log_word(r, near[i]);
    for (int32_t i = 0; i < degree; ++i) lk_reduce_cover(r, near[i]);
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
    if (degree > LARGEST_CLIQUE || !is_clique(r, live_row(r, v), degree)) return 0;
    if (!lk_reduce_log_room(r, 2 * degree + 4)) return 0;
    memcpy(near, live_row(r, v), (size_t)degree * 4);
    for (int32_t i = 0; i < degree; ++i) {
        if (r->weight[near[i]] <= r->weight[v]) light[lights++] = near[i];
        else near[heavies++] = near[i];
    }
    if (lights) {
        lk_reduce_log_begin(r, CLIQUE, lights + 1);
        log_word(r, v);
        for (int32_t i = 0; i < lights; ++i) log_word(r, light[i]);
        for (int32_t i = 0; i < lights; ++i) lk_reduce_cover(r, light[i]);
    }
    if (!heavies) return 1;
    lk_reduce_log_begin(r, TRANSFER, heavies + 1);
    log_word(r, v);
    lk_reduce_drop(r, v);
    for (int32_t i = 0; i < heavies; ++i) {
        log_word(r, near[i]);
        r->offset += r->weight[v];
        lk_reduce_set_weight(r, near[i], r->weight[near[i]] - r->weight[v]);
    }
    return 1;
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
    if (r->weight[v] < sum - least) return 0;
    if (!lk_reduce_reserve(r, x, more - r->degree[x]) || !lk_reduce_log_room(r, degree + 1)) return 0;
    lk_reduce_log_begin(r, FOLD, degree + 1);
    log_word(r, v);
    log_word(r, x);
    r->offset += r->weight[v];
    lk_reduce_drop(r, v);
    for (int32_t i = 0; i < degree; ++i) {
        if (near[i] == x) continue;
        log_word(r, near[i]);
        lk_reduce_merge(r, x, near[i]);
    }
    lk_reduce_set_weight(r, x, sum - r->weight[v]);
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

/* Where all weights are one, only twins whose merger a neighbour rule or a fold then removes: weights stay
 * one. */
static int twin(Reducer *r, int32_t v) {
    const int32_t degree = r->degree[v];
    if (r->unit ? degree != LARGEST_FOLD : degree > LARGEST_TWIN) return 0;
    const int32_t u = twin_of(r, v);
    if (u < 0 || !lk_reduce_log_room(r, 2)) return 0;
    lk_reduce_log_begin(r, TWIN, 2);
    log_word(r, v);
    log_word(r, u);
    lk_reduce_drop(r, u);
    lk_reduce_set_weight(r, v, r->weight[v] + r->weight[u]);
    return r->unit ? take_neighbours(r, v) || fold(r, v) : 1;
}

int lk_reduce_cheap_rules(Reducer *r, int32_t v) {
    return take_neighbours(r, v) || clique(r, v) || fold(r, v) || twin(r, v);
}

/* ---- unconfined nodes ---------------------------------------------------------------------------------- */

/* Add v to the chosen set S; `near` stamps N[S], `list` holds N(S). Returns the new length of the list. */
static int32_t choose(Reducer *r, int32_t v, int32_t count) {
    const int32_t *near = live_row(r, v);
    r->chosen[v] = r->near[v] = r->stamp;
    for (int32_t i = 0; i < r->degree[v]; ++i) {
        __builtin_prefetch(r->degree + near[i]);
        __builtin_prefetch(r->row + near[i]);
    }
    for (int32_t i = 0; i < r->degree[v]; ++i) {
        if (r->near[near[i]] == r->stamp) continue;
        r->near[near[i]] = r->stamp;
        r->list[count++] = near[i];
    }
    return count;
}

/* Bring into the caches what the nodes that follow in the list will ask for: their rows, then the stamps of the first
 * nodes of these. */
INLINE void fetch_ahead(const Reducer *r, int32_t i, int32_t count) {
    if (i + 8 < count) __builtin_prefetch(r->pool + r->row[r->list[i + 8]].at);
    if (i + 4 >= count) return;
    const Row *row = r->row + r->list[i + 4];
    for (int32_t j = 0; j < 3 && j < row->length; ++j) __builtin_prefetch(r->near + r->pool[row->at + j]);
}

/* How many neighbours u has outside N[S], 2 standing for more; 2 also where S outweighs u. *outside: the
 * last. */
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

int lk_reduce_unconfined(Reducer *r, int32_t v) {
    int32_t chain[2 * CHAIN], links = 0, outside = -1;
    int64_t reads = 0;
    ++r->stamp;
    int32_t count = choose(r, v, 0);
    for (int32_t i = 0; i < count && i < 8; ++i) __builtin_prefetch(r->pool + r->row[r->list[i]].at);
    for (int32_t i = 0; i < count && reads < READS; ++i) {
        const int32_t u = r->list[i];
        fetch_ahead(r, i, count);
        if (r->degree[u] > count + links / 2 + 1) continue; /* more than one neighbour lies outside N[S] */
        const int found = outside_of(r, u, &outside, &reads);
        if (found == 2) continue;
        if (found == 0) {
            if (!lk_reduce_log_room(r, links + 2)) return 0;
            lk_reduce_log_begin(r, UNCONFINED, links + 2);
            log_word(r, v);
            for (int32_t j = 0; j < links; ++j) log_word(r, chain[j]);
            log_word(r, u);
            lk_reduce_cover(r, v);
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
