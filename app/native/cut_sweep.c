/* A sweep of annealing over the own rows of a cut, one class of nodes that are not next to each other at a time.
 * app/solver/rows/cut_sweeps.py has the same trials. Integers only; the draw of a node is a function of the key of the
 * sweep and of the node's number, so that no order of trials and no cut of the rows changes it. */
#include "common.h"

enum { LEVEL_SHIFT = 52 }; /* the upper 12 bits of a draw: one of 4096 levels, as in cut_search.c */

typedef struct {
    int64_t down, up;       /* threshold = (log * heat >> down) << up */
    const int64_t *indptr;  /* [k+h+1] of each node, own ones first: its own neighbours */
    const int32_t *indices;
    const int64_t *weights;
    const int64_t *ids;     /* [k] numbers in the graph */
    const int64_t *logs;    /* [4096] -ln(u), falling */
    uint8_t *sides;         /* [k+h] */
    int64_t *gain;          /* [k] what a flip adds to the cut */
} SweepState;

/* The finaliser of SplitMix64 (Steele, Lea and Flood 2014), of states that are a step apart for each number. */
INLINE uint64_t draw(uint64_t key, int64_t id) {
    uint64_t z = key + (uint64_t)id * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The node has changed its side: what its own neighbours gain by changing theirs. */
INLINE void tell(SweepState *s, int64_t v) {
    const uint8_t side = s->sides[v];
    for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
        const int64_t twice = 2 * s->weights[e];
        s->gain[s->indices[e]] += s->sides[s->indices[e]] == side ? twice : -twice;
    }
}

/* Metropolis trials of own nodes first .. last-1; a flip that changes nothing is made half the time. */
void lk_cut_sweep(SweepState *s, int64_t first, int64_t last, int64_t heat, uint64_t key) {
    const int64_t most = (s->logs[0] * heat >> s->down) << s->up;
    for (int64_t v = first; v < last; v++) {
        const int64_t loss = -s->gain[v];
        if (loss > most) continue;
        if (loss >= 0) {
            const uint64_t bits = draw(key, s->ids[v]);
            if (loss == 0 ? (int)(bits & 1) : loss > (s->logs[bits >> LEVEL_SHIFT] * heat >> s->down) << s->up) continue;
        }
        s->gain[v] = loss;
        s->sides[v] ^= 1;
        tell(s, v);
    }
}

/* The sides [last-first] of nodes first .. last-1 that other ranks hold, as they are now. */
void lk_cut_told(SweepState *s, int64_t first, int64_t last, const uint8_t *sides) {
    for (int64_t v = first; v < last; v++) {
        if (s->sides[v] == sides[v - first]) continue;
        s->sides[v] ^= 1;
        tell(s, v);
    }
}
