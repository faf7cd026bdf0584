/* DistMult on triples: what app/numerics/distmult.py says, without a row of numbers for every triple. */
#include "common.h"

enum { TOGETHER = 8, AHEAD = 16 };

INLINE void fetch(const float *row, int64_t d) {
    for (int64_t j = 0; j < d; j += 16) __builtin_prefetch(row + j);
}

/* scores [t]: a chain over the columns of a triple; chains of several triples go on side by side. */
WIDE void lk_triple_scores(int64_t t, const int32_t *s, const int32_t *r, const int32_t *o, const float *E,
                           const float *D, int64_t d, float *scores) {
    int64_t i = 0;
    for (; i + TOGETHER <= t; i += TOGETHER) {
        const float *a[TOGETHER], *b[TOGETHER], *c[TOGETHER];
        float sum[TOGETHER] = {0};
        for (int q = 0; q < TOGETHER; ++q) {
            a[q] = E + s[i + q] * d;
            b[q] = D + r[i + q] * d;
            c[q] = E + o[i + q] * d;
        }
        for (int64_t j = 0; j < d; ++j)
            for (int q = 0; q < TOGETHER; ++q) sum[q] += a[q][j] * b[q][j] * c[q][j];
        memcpy(scores + i, sum, sizeof sum);
    }
    for (; i < t; ++i) {
        const float *a = E + s[i] * d, *b = D + r[i] * d, *c = E + o[i] * d;
        float sum = 0.0f;
        for (int64_t j = 0; j < d; ++j) sum += a[j] * b[j] * c[j];
        scores[i] = sum;
    }
}

/* out [k, d]: row i the chain over triples starts[i] .. starts[i+1]-1 of (g E_s) E_o. */
WIDE void lk_triple_relation_sums(int64_t k, const int64_t *starts, const int32_t *s, const int32_t *o, const float *g,
                                  const float *E, int64_t d, float *out) {
    memset(out, 0, (size_t)(k * d) * 4);
    for (int64_t i = 0; i < k; ++i)
        for (int64_t t = starts[i]; t < starts[i + 1]; ++t) {
            const float *a = E + s[t] * d, *b = E + o[t] * d;
            float *sum = out + i * d;
            if (t + AHEAD < starts[k]) {
                fetch(E + s[t + AHEAD] * d, d);
                fetch(E + o[t + AHEAD] * d, d);
            }
            for (int64_t j = 0; j < d; ++j) sum[j] += g[t] * a[j] * b[j];
        }
}

/* Where the nodes lo .. lo+n-1 stand in s followed by o: starts [n+1], then places by node, in their order. With
 * places null only the counts are made: starts[i+1] is then how many places the first i+1 nodes have. */
void lk_triples_by_node(int64_t t, const int32_t *s, const int32_t *o, int64_t lo, int64_t n, int64_t *starts,
                        int64_t *places) {
    if (!places) {
        memset(starts, 0, (size_t)(n + 1) * 8);
        for (int64_t i = 0; i < t; ++i) {
            const uint64_t a = (uint64_t)(s[i] - lo), b = (uint64_t)(o[i] - lo);
            if (a < (uint64_t)n) ++starts[a + 1];
            if (b < (uint64_t)n) ++starts[b + 1];
        }
        for (int64_t i = 0; i < n; ++i) starts[i + 1] += starts[i];
        return;
    }
    const int32_t *ends[2] = {s, o};
    for (int side = 0; side < 2; ++side)
        for (int64_t i = 0; i < t; ++i) {
            const uint64_t a = (uint64_t)(ends[side][i] - lo);
            if (a < (uint64_t)n) places[starts[a]++] = side * t + i;
        }
    memmove(starts + 1, starts, (size_t)n * 8); /* each start has become its end */
    starts[0] = 0;
}

/* out [n, d]: row i the chain over its places of (D_r E_other) g. */
WIDE void lk_triple_node_sums(int64_t n, const int64_t *starts, const int64_t *places, int64_t t, const int32_t *s,
                              const int32_t *r, const int32_t *o, const float *g, const float *E, const float *D,
                              int64_t d, float *out) {
    memset(out, 0, (size_t)(n * d) * 4);
    for (int64_t i = 0; i < n; ++i)
        for (int64_t p = starts[i]; p < starts[i + 1]; ++p) {
            const int64_t at = places[p] < t ? places[p] : places[p] - t;
            const float *a = D + r[at] * d, *b = E + (places[p] < t ? o : s)[at] * d;
            float *sum = out + i * d;
            if (p + AHEAD < starts[n]) {
                const int64_t next = places[p + AHEAD];
                fetch(E + (next < t ? o[next] : s[next - t]) * d, d);
            }
            for (int64_t j = 0; j < d; ++j) sum[j] += a[j] * b[j] * g[at];
        }
}
