/* Annealing of orders without backward arcs; app/search/dfvs/search.py describes the search and its arrays,
 * app/search/dfvs/plain.py has the same functions with the same results. */
#include "random.h"

enum { DRAWS = 4096 };

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
INLINE int64_t placed(const Search *s) { return s->n - s->apart_size; }

#include "labels.h"

/* ---- the order ---------------------------------------------------------------------------------------------- */

/* v comes after p, n being the beginning. */
INLINE void insert(Search *s, int32_t v, int32_t p) {
    link_behind(s, v, p);
    const int32_t last = s->apart[--s->apart_size];
    s->apart[s->place[v]] = last;
    s->place[last] = s->place[v];
    s->cost -= price(s, v);
}

INLINE void take_out(Search *s, int32_t v) {
    cut_out(s, v);
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
    for (int64_t v = 0; v < s->n; ++v) s->label[v] = -1;
    link_all(s, order, count);
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
