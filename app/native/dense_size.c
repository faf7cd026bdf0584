/* Sets of so many nodes with most weight inside: exchanges, and bounds by shares of edges; app/search/dense/swaps.py
 * and app/bounds/dense/split.py describe them; the same in Python: app/search/dense/plain.py, app/bounds/dense/rows.py. */
#include <stdlib.h>

#include "random.h"

typedef struct {
    int64_t n;
    const int64_t *indptr;
    const int32_t *indices;
    const int64_t *weight;                  /* [nnz] */
    const uint8_t *fixed;                   /* [n] 1: stays where it is */
    uint8_t *chosen, *best_chosen;          /* [n] */
    int64_t *gain, *free_at;                /* [n] weight of the edges to chosen nodes; the step from which it may move */
    int32_t *list, *place;                  /* [n] chosen nodes, then the others; places in it */
    int64_t size, value, best, steps, found_at, unsaved, tenure;
    uint64_t random;
} Swaps;

INLINE void trade(Swaps *s, int32_t a, int32_t b) {
    const int32_t i = s->place[a], j = s->place[b];
    s->list[i] = b;
    s->list[j] = a;
    s->place[a] = j;
    s->place[b] = i;
}

INLINE void turn(Swaps *s, int32_t v, int64_t sign) {
    s->chosen[v] = sign > 0;
    s->value += sign * s->gain[v];
    for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) s->gain[s->indices[j]] += sign * s->weight[j];
}

/* Of the nodes list[from..to) that may move the one of most sign * gain, of equal ones that which may move since
 * longest, of these the first. -1: none may. */
INLINE int32_t most(const Swaps *s, int64_t from, int64_t to, int64_t sign) {
    int32_t found = -1;
    int64_t top = 0, since = 0;
    for (int64_t i = from; i < to; ++i) {
        const int32_t v = s->list[i];
        const int64_t gain = sign * s->gain[v];
        if (found >= 0 && gain < top) continue;
        if (s->fixed[v] || s->free_at[v] > s->steps) continue;
        if (found < 0 || gain > top || s->free_at[v] < since) {
            found = v;
            top = gain;
            since = s->free_at[v];
        }
    }
    return found;
}

INLINE void keep(Swaps *s) {
    memcpy(s->best_chosen, s->chosen, (size_t)s->n);
    s->unsaved = 0;
}

/* The chosen node that loses least leaves, the one outside that gains most comes. */
INLINE void swap_two(Swaps *s) {
    ++s->steps;
    const int32_t gone = most(s, 0, s->size, -1);
    if (gone < 0) return;
    if (s->unsaved) keep(s);
    turn(s, gone, -1);
    int32_t come = most(s, s->size, s->n, 1);
    if (come < 0) come = gone;
    turn(s, come, 1);
    if (come != gone) trade(s, gone, come);
    s->free_at[gone] = s->steps + 1 + (int64_t)random_below(&s->random, (uint32_t)s->tenure);
    s->free_at[come] = s->steps + 1 + (int64_t)random_below(&s->random, (uint32_t)s->tenure) / 2;
    if (s->value > s->best) {
        s->best = s->value;
        s->found_at = s->steps;
        s->unsaved = 1;
    }
}

void lk_dense_swap(Swaps *s, int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) swap_two(s);
    if (s->unsaved) keep(s);
}

/* From nothing to the best set. */
void lk_dense_load(Swaps *s) {
    int64_t inner = 0, outer = s->size;
    memset(s->gain, 0, (size_t)s->n * sizeof *s->gain);
    s->value = 0;
    for (int64_t v = 0; v < s->n; ++v) {
        const int64_t at = s->best_chosen[v] ? inner++ : outer++;
        s->list[at] = (int32_t)v;
        s->place[v] = (int32_t)at;
    }
    for (int64_t i = 0; i < s->size; ++i) turn(s, s->list[i], 1);
    memcpy(s->chosen, s->best_chosen, (size_t)s->n);
}

/* So many drawn nodes leave, and others, drawn too, come; fixed ones stay. */
void lk_dense_shake(Swaps *s, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const int32_t gone = s->list[random_below(&s->random, (uint32_t)s->size)];
        const int32_t come = s->list[s->size + random_below(&s->random, (uint32_t)(s->n - s->size))];
        if (s->fixed[gone] || s->fixed[come]) continue;
        turn(s, gone, -1);
        turn(s, come, 1);
        trade(s, gone, come);
    }
}

/* Fixed nodes alone, then an end of the drawn one of `entries` stored entries, then those of most gain, one by one. */
void lk_dense_regrow(Swaps *s, int64_t entries) {
    const int32_t v = s->indices[random_below(&s->random, (uint32_t)entries)];
    int64_t count = s->size;
    memset(s->free_at, 0, (size_t)s->n * sizeof *s->free_at);
    for (int64_t i = s->size - 1; i >= 0; --i) {
        const int32_t u = s->list[i];
        if (s->fixed[u]) continue;
        turn(s, u, -1);
        trade(s, u, s->list[--count]);
    }
    for (int32_t u = s->fixed[v] ? -1 : v; count < s->size; u = -1) {
        if (u < 0) u = most(s, count, s->n, 1);
        turn(s, u, 1);
        trade(s, u, s->list[count++]);
    }
}

/* ---- bounds ---------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t value;
    int32_t at;
} Each;

INLINE int larger(Each a, Each b) { return a.value != b.value ? a.value > b.value : a.at < b.at; }

/* The `count` largest of [size] come to the front, in any order. */
static void front(Each *list, int64_t size, int64_t count) {
    int64_t low = 0, high = size - 1;
    while (low < high) {
        const Each pivot = list[(low + high) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (larger(list[i], pivot)) ++i;
            while (larger(pivot, list[j])) --j;
            if (i > j) break;
            const Each other = list[i];
            list[i++] = list[j];
            list[j--] = other;
        }
        if (count - 1 <= j) high = j;
        else if (count - 1 >= i) low = i;
        else break;
    }
}

/* sum [n]: the most that a row's entries are worth together with exactly `most` others of the n nodes, of those that
 * are no neighbours 0 each; taken [nnz]: 1 where that takes an entry. state [n]: 1 forced, 2 barred, 0 free. Returns -1 without memory. */
int64_t lk_dense_rows(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *held, const uint8_t *state,
                      int64_t free_nodes, int64_t forced, int64_t most, int64_t *sum, uint8_t *taken) {
    Each *list = malloc((size_t)n * sizeof *list + 16);
    if (!list) return -1;
    for (int64_t v = 0; v < n; ++v) {
        int64_t size = 0, total = 0, count = most - forced, strangers = free_nodes;
        if (state[v] == 1) ++count; /* one of the forced is v itself */
        if (state[v] == 0) --strangers;
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
            const uint8_t other = state[indices[j]];
            taken[j] = other == 1;
            if (other == 1) total += held[j];
            if (other != 0) continue;
            list[size].value = held[j];
            list[size++].at = (int32_t)(j - indptr[v]);
            --strangers;
        }
        /* Free nodes: the positive entries first, then those that are no neighbours, then the rest. */
        if (count > 0) {
            if (count < size) front(list, size, count);
            int64_t above = 0, first = count < size ? count : size;
            for (int64_t i = 0; i < first; ++i) above += list[i].value > 0;
            int64_t wanted = count - strangers > above ? count - strangers : above;
            if (wanted > first) wanted = first;
            if (wanted < first) front(list, first, wanted);
            for (int64_t i = 0; i < wanted; ++i) {
                total += list[i].value;
                taken[indptr[v] + list[i].at] = 1;
            }
        }
        sum[v] = total;
    }
    free(list);
    return 0;
}
