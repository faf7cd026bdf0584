/* Annealing of orders without backward arcs; app/search/dfvs/search.py describes the search and its arrays,
 * app/search/dfvs/plain.py has the same functions with the same results. */
#include "random.h"

enum { DRAWS = 4096 };

#define TOP (INT64_C(1) << 62)           /* the label of the end */

typedef struct {
    int64_t n;
    const int64_t *out_ptr, *in_ptr;     /* [n+1] */
    const int32_t *out, *into;           /* [m] */
    const int64_t *price;                /* [n] or null: all one */
    const int64_t *escape, *heats;       /* [DRAWS]; [levels] */
    int64_t *label;                      /* [n+1], -1 outside the order; label[n] = 0, that of the beginning */
    int32_t *next, *before;              /* [n+1] along the order, a ring with n for both ends */
    int32_t *apart, *place;              /* [n] nodes outside the order, which are the set; where they stand */
    uint8_t *best_set;                   /* [n] */
    int64_t levels, shift, at, length, apart_size, cost, best, steps, found_at, unsaved;
    uint64_t random;
} Search;

INLINE int64_t price(const Search *s, int32_t v) { return s->price ? s->price[v] : 1; }
INLINE int64_t end_label(const Search *s, int32_t v) { return v == s->n ? TOP : s->label[v]; }

/* ---- the order ---------------------------------------------------------------------------------------------- */

static void relabel_all(Search *s) {
    const int64_t step = TOP / (s->n - s->apart_size + 2);
    int64_t label = 0;
    for (int32_t v = s->next[s->n]; v != s->n; v = s->next[v]) s->label[v] = label += step;
}

/* Spread the nodes after p evenly, as far as it takes to have room: Dietz and Sleator 1987, section 2. */
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

/* v comes after p, n being the beginning. */
INLINE void insert(Search *s, int32_t v, int32_t p) {
    if (end_label(s, s->next[p]) - s->label[p] < 2) spread(s, p);
    const int32_t q = s->next[p], last = s->apart[--s->apart_size];
    s->label[v] = s->label[p] + (end_label(s, q) - s->label[p]) / 2;
    s->next[v] = q;
    s->before[v] = p;
    s->next[p] = s->before[q] = v;
    s->apart[s->place[v]] = last;
    s->place[last] = s->place[v];
    s->cost -= price(s, v);
}

INLINE void take_out(Search *s, int32_t v) {
    const int32_t p = s->before[v], q = s->next[v];
    s->next[p] = q;
    s->before[q] = p;
    s->label[v] = -1;
    s->place[v] = (int32_t)s->apart_size;
    s->apart[s->apart_size++] = v;
    s->cost += price(s, v);
}

INLINE void save(Search *s) {
    memset(s->best_set, 0, (size_t)s->n);
    for (int64_t i = 0; i < s->apart_size; ++i) s->best_set[s->apart[i]] = 1;
    s->unsaved = 0;
}

/* ---- steps -------------------------------------------------------------------------------------------------- */

/* A node outside comes in after the last node with an arc to it, or before the first that it has an arc to; those
 * on the wrong side of it go, where they are worth little enough. */
INLINE void trial(Search *s, int64_t heat) {
    const uint64_t draw = random_bits(&s->random);
    const int32_t v = s->apart[((draw >> 32) * (uint64_t)s->apart_size) >> 32];
    const int late = (int)(draw >> 12 & 1);
    const int64_t most = price(s, v) + (heat * s->escape[draw % DRAWS] >> s->shift);
    const int64_t *near_ptr = late ? s->out_ptr : s->in_ptr, *far_ptr = late ? s->in_ptr : s->out_ptr;
    const int32_t *near = late ? s->out : s->into, *far = late ? s->into : s->out;
    int32_t at = (int32_t)s->n;
    int64_t limit = late ? TOP : 0, loss = 0;
    for (int64_t j = near_ptr[v]; j < near_ptr[v + 1]; ++j) {
        const int64_t label = s->label[near[j]];
        if (label >= 0 && (late ? label < limit : label > limit)) {
            limit = label;
            at = near[j];
        }
    }
    for (int64_t j = far_ptr[v]; j < far_ptr[v + 1]; ++j) {
        const int64_t label = s->label[far[j]];
        if (label < 0 || (late ? label < limit : label > limit)) continue;
        loss += price(s, far[j]);
        if (loss > most) return;
    }
    if (s->unsaved && loss >= price(s, v)) save(s);
    insert(s, v, late ? s->before[at] : at);
    if (loss) {
        const int64_t mine = s->label[v];
        for (int64_t j = far_ptr[v]; j < far_ptr[v + 1]; ++j) {
            const int64_t label = s->label[far[j]];
            if (label >= 0 && (late ? label > mine : label < mine)) take_out(s, far[j]);
        }
    }
    if (s->cost < s->best) {
        s->best = s->cost;
        s->found_at = s->steps;
        s->unsaved = 1;
    }
}

/* `count` trials of a round. */
void lk_dfvs_anneal(Search *s, int64_t count) {
    for (int64_t i = 0; i < count && s->apart_size; ++i) {
        ++s->steps;
        trial(s, s->heats[s->at * s->levels / s->length]);
        ++s->at;
    }
    if (s->unsaved) save(s);
}

/* The order of `count` nodes, without backward arcs; all others are outside it. */
void lk_dfvs_load(Search *s, const int32_t *order, int64_t count) {
    const int64_t step = TOP / (count + 2);
    int32_t p = (int32_t)s->n;
    for (int64_t v = 0; v < s->n; ++v) s->label[v] = -1;
    s->label[s->n] = 0;
    for (int64_t i = 0; i < count; ++i) {
        s->label[order[i]] = (i + 1) * step;
        s->before[order[i]] = p;
        s->next[p] = order[i];
        p = order[i];
    }
    s->next[p] = (int32_t)s->n;
    s->before[s->n] = p;
    s->apart_size = s->cost = 0;
    for (int32_t v = 0; v < s->n; ++v) {
        if (s->label[v] >= 0) continue;
        s->place[v] = (int32_t)s->apart_size;
        s->apart[s->apart_size++] = v;
        s->cost += price(s, v);
    }
}

/* The nodes outside a set in an order without backward arcs: first come, first served. Returns how many there are:
 * fewer than the others where these have a cycle. degree [n] is room. */
int64_t lk_dfvs_order(int64_t n, const int64_t *out_ptr, const int32_t *out, const int64_t *in_ptr,
                          const int32_t *into, const uint8_t *set, int32_t *degree, int32_t *order) {
    int64_t count = 0;
    for (int64_t v = 0; v < n; ++v) {
        if (set[v]) continue;
        degree[v] = 0;
        for (int64_t j = in_ptr[v]; j < in_ptr[v + 1]; ++j) degree[v] += !set[into[j]];
        if (!degree[v]) order[count++] = (int32_t)v;
    }
    for (int64_t i = 0; i < count; ++i)
        for (int64_t j = out_ptr[order[i]]; j < out_ptr[order[i] + 1]; ++j)
            if (!set[out[j]] && !--degree[out[j]]) order[count++] = out[j];
    return count;
}
