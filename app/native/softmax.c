/* The softmax over the candidates of each state (app/rl/softmax.py): the same operations in the same order. A row's state is
 * state[r]; arrays of states have an element for each. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math") /* nobody asks which exceptions were raised: both sides of a choice may run */
#endif
#include "elementary.h"
#include "random.h"

/* a = z - top and exp a of candidates, 0 on other rows: shifted [rows], and pairs [rows][2] of exp a and a exp a. */
WIDE void lk_softmax_shift(int64_t rows, const int32_t *state, const uint8_t *candidate, const float *score, const float *top,
                           float *shifted, float *pairs) {
    for (int64_t r = 0; r < rows; ++r) {
        const float a = candidate[r] ? score[r] - top[state[r]] : 0.0f, e = exp_float(a);
        shifted[r] = a;
        pairs[2 * r] = candidate[r] ? e : 0.0f;
        pairs[2 * r + 1] = pairs[2 * r] * a;
    }
}

/* log S and the entropies from sums [states][2] of these pairs; probability [rows]. */
void lk_softmax_close(int64_t rows, int64_t states, const int32_t *state, const float *pairs, const float *sums,
                      float *log_total, float *entropy, float *probability) {
    for (int64_t s = 0; s < states; ++s) {
        log_total[s] = log_float(sums[2 * s]);
        entropy[s] = log_total[s] - sums[2 * s + 1] / sums[2 * s];
    }
    for (int64_t r = 0; r < rows; ++r) probability[r] = pairs[2 * r] / sums[2 * state[r]];
}

/* dz [rows] by the derivatives by log pi of the choices, which stand in rows chosen [states] (-1: in none), and by the
 * entropies; times `candidate` [rows]. */
void lk_softmax_back(int64_t rows, int64_t states, const int32_t *state, const float *shifted, const float *probability,
                     const float *log_total, const float *entropy, const float *dlog, const float *dentropy,
                     const int64_t *chosen, const float *candidate, float *dz) {
    for (int64_t r = 0; r < rows; ++r) {
        const int32_t s = state[r];
        const float surprise = shifted[r] + (entropy[s] - log_total[s]); /* log pi + H */
        dz[r] = -probability[r] * (dlog[s] + dentropy[s] * surprise);
    }
    for (int64_t s = 0; s < states; ++s)
        if (chosen[s] >= 0) dz[chosen[s]] += dlog[s];
    for (int64_t r = 0; r < rows; ++r) dz[r] *= candidate[r];
}

enum { GUMBEL_BITS = 52 }; /* as in app/rl/softmax.py */

/* Scores of the candidates among `nodes` nodes of state `number` += standard Gumbel numbers of a key. */
void lk_gumbel(int64_t nodes, uint64_t key, uint64_t number, const uint8_t *candidate, float *score) {
    const uint64_t state = splitmix(key, number);
    for (int64_t i = 0; i < nodes; ++i) {
        if (!candidate[i]) continue;
        const double u = ((double)(splitmix(state, (uint64_t)i) >> (64 - GUMBEL_BITS)) + 0.5) * 0x1p-52;
        score[i] += (float)-log_double(-log_double(u));
    }
}
