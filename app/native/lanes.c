/* Which width of kernels runs, and those that need nothing before it. */
#include "lanes.h"

static const Lanes *in_use = 0;

/* Use the widest kernels of at most `most` lanes that this processor runs; which they are. Not while any runs. */
int64_t lk_use_lanes(int64_t most) {
#ifdef HAS_WIDER_LANES
    if (most >= 16 && __builtin_cpu_supports("x86-64-v4")) {
        in_use = &lk_lanes_16;
        return 16;
    }
    if (most >= 8 && __builtin_cpu_supports("x86-64-v3")) {
        in_use = &lk_lanes_8;
        return 8;
    }
#endif
    (void)most;
    in_use = &lk_lanes_4;
    return 4;
}

const Lanes *lk_lanes(void) {
    if (!in_use) lk_use_lanes(16);
    return in_use;
}

int64_t lk_lanes_in_use(void) { return lk_lanes()->lanes; }

void lk_dense(const Dense *d) { lk_lanes()->dense(d); }

void lk_basis_rows(int64_t rows, int64_t bases, int64_t h, const float *V, const float *a, const int32_t *node,
                   const int32_t *relation, float *W) {
    lk_lanes()->basis_rows(rows, bases, h, V, a, node, relation, W);
}

void lk_basis_nodes(int64_t nodes, int64_t bases, int64_t h, const int64_t *starts, const float *a,
                    const int32_t *relation, const float *dW, float *dV) {
    lk_lanes()->basis_nodes(nodes, bases, h, starts, a, relation, dW, dV);
}

void lk_basis_shares(int64_t nodes, int64_t bases, int64_t h, const int64_t *starts, const float *V, const float *dW,
                     const int64_t *at, float *turned, float *sums) {
    lk_lanes()->basis_shares(nodes, bases, h, starts, V, dW, at, turned, sums);
}
