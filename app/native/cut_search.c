/* Simulated annealing by single flips for the maximum cut of a graph with signed whole weights, and what of a cut can
 * be read off.
 * app/search/cut/plain.py has the same trials and random numbers. Integers only: a gain is compared with
 * temperature * -ln(u), both in fixed point, u one of LEVELS values. */
#include "random.h"

enum { LEVELS = 4096, LOG_BITS = 16 };
enum { CUT, BEST, FOUND_AT, STEPS, PLACE, SWEEP, SWEEPS, HEAT, RANDOM, TARGET }; /* places in `number` */

typedef struct {
    int64_t n, free, down, up; /* threshold = (log * heat >> down) << up */
    const int64_t *indptr;
    const int32_t *indices;
    const int64_t *weights;
    const int32_t *order; /* [free] nodes whose side is not given, ascending: the order of trials */
    const int64_t *logs;  /* [LEVELS] -ln(u) with LOG_BITS binary places, falling */
    uint8_t *sides, *best_sides;
    int64_t *gain; /* [n] what a flip adds to the cut */
    int64_t *number;
} CutState;

/* Gains and cut of the present sides; they are the round's best so far. */
void lk_cut_begin(CutState *s) {
    int64_t twice = 0;
    for (int64_t v = 0; v < s->n; v++) {
        int64_t gain = 0;
        for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
            int cut = s->sides[v] != s->sides[s->indices[e]];
            gain += cut ? -s->weights[e] : s->weights[e];
            twice += cut ? s->weights[e] : 0;
        }
        s->gain[v] = gain;
    }
    s->number[CUT] = s->number[BEST] = twice / 2;
    s->number[FOUND_AT] = s->number[STEPS];
    s->number[PLACE] = s->number[SWEEP] = 0;
    memcpy(s->best_sides, s->sides, (size_t)s->n);
}

INLINE void flip(CutState *s, int32_t v) {
    uint8_t side = s->sides[v] ^= 1;
    s->number[CUT] += s->gain[v];
    s->gain[v] = -s->gain[v];
    for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
        int32_t u = s->indices[e];
        int64_t twice = 2 * s->weights[e];
        s->gain[u] += s->sides[u] == side ? twice : -twice;
    }
}

/* Metropolis trials of order[from..to-1] at one temperature; a flip that changes nothing is made half the time. */
static void trials(CutState *s, int64_t from, int64_t to, int64_t heat) {
    uint64_t random = (uint64_t)s->number[RANDOM];
    int64_t most = (s->logs[0] * heat >> s->down) << s->up;
    for (int64_t i = from; i < to; i++) {
        int32_t v = s->order[i];
        int64_t loss = -s->gain[v];
        if (loss > most) continue;
        if (loss > 0) {
            int64_t log = s->logs[random_below(&random, LEVELS)];
            if (loss > (log * heat >> s->down) << s->up) continue;
        } else if (loss == 0 && random_below(&random, 2)) {
            continue;
        }
        flip(s, v);
    }
    s->number[RANDOM] = (int64_t)random;
}

/* The end of a sweep: cuts are compared here only. */
static void end_sweep(CutState *s) {
    int64_t *number = s->number;
    number[PLACE] = 0;
    number[SWEEP]++;
    if (number[CUT] <= number[BEST]) return;
    number[BEST] = number[CUT];
    number[FOUND_AT] = number[STEPS];
    memcpy(s->best_sides, s->sides, (size_t)s->n);
}

/* Up to `steps` trials; stops at the end of the round, or at a cut of TARGET. Returns the trials made. */
int64_t lk_cut_anneal(CutState *s, int64_t steps) {
    int64_t *number = s->number, left = steps;
    while (left > 0 && number[SWEEP] < number[SWEEPS] && number[BEST] < number[TARGET]) {
        int64_t heat = number[HEAT] * (number[SWEEPS] - 1 - number[SWEEP]) / number[SWEEPS];
        int64_t from = number[PLACE], to = s->free - from < left ? s->free : from + left;
        trials(s, from, to, heat);
        number[PLACE] = to;
        number[STEPS] += to - from;
        left -= to - from;
        if (to == s->free) end_sweep(s);
    }
    return steps - left;
}

/* ---- parts whose sides can be read off -------------------------------------------------------------------- */

/* Sets of nodes of which the sides are known relative to each other (union by find, with halved paths). */
typedef struct {
    int32_t *above; /* [n+1] a node of the same set, a lower one; the lowest is its own */
    uint8_t *turned; /* [n+1] whether the node is on the other side than that one */
    uint8_t *torn;   /* [n+1] of lowest nodes: whether an edge of the set asks for something else */
} Sides;

/* The lowest node of v's set; *side: whether v is on the other side. */
INLINE int32_t lowest(Sides *s, int32_t v, uint8_t *side) {
    *side = 0;
    while (s->above[v] != v) {
        const int32_t next = s->above[v];
        s->turned[v] ^= s->turned[next];
        s->above[v] = s->above[next];
        *side ^= s->turned[v];
        v = s->above[v];
    }
    return v;
}

INLINE void join(Sides *s, int32_t a, int32_t b, uint8_t apart) {
    uint8_t side_a, side_b;
    a = lowest(s, a, &side_a);
    b = lowest(s, b, &side_b);
    apart ^= side_a ^ side_b;
    if (a == b) {
        s->torn[a] |= apart;
        return;
    }
    const int32_t low = a < b ? a : b, high = a < b ? b : a;
    s->above[high] = low;
    s->turned[high] = apart;
    s->torn[low] |= s->torn[high];
}

/* perfect_sides of app/search/cut/search.py: node n, on side 0, is tied to all nodes whose side is fixed (0, 1; -1: free). */
void lk_cut_perfect(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weights,
                    const int8_t *fixed, int32_t *above, uint8_t *turned, uint8_t *torn, uint8_t *settled,
                    uint8_t *sides) {
    Sides s = {above, turned, torn};
    uint8_t of_last, side;
    for (int32_t v = 0; v <= n; v++) above[v] = v, turned[v] = torn[v] = 0;
    for (int32_t v = 0; v < n; v++) {
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++)
            if (indices[e] < v && weights[e]) join(&s, v, indices[e], weights[e] > 0);
        if (fixed[v] >= 0) join(&s, v, (int32_t)n, (uint8_t)fixed[v]);
    }
    const int32_t last = lowest(&s, (int32_t)n, &of_last);
    for (int32_t v = 0; v < n; v++) {
        const int32_t low = lowest(&s, v, &side);
        settled[v] = !torn[low];
        sides[v] = settled[v] && (low == last ? side ^ of_last : side);
    }
}
