/* Rows of weights that are combinations of bases, and their gradients: the chains of app/gnn/rgcn/basis.py. Row p belongs to
 * node[p] and relation[p]; V is [nodes][bases][h], a is [relations][bases]. Lanes are different outputs. */
#include "vectors.h"

/* W[p] = sum over b of a[relation[p]][b] * V[node[p]][b], from the first basis on. */
static void basis_rows(int64_t rows, int64_t bases, int64_t h, const float *V, const float *a, const int32_t *node,
                       const int32_t *relation, float *W) {
    for (int64_t p = 0; p < rows; ++p) {
        const float *share = a + relation[p] * bases, *v = V + node[p] * bases * h;
        for (int64_t k = 0; k < h; k += LANES) {
            int64_t width = within(h, k);
            vec sum = {0};
            if (width == LANES)
                for (int64_t b = 0; b < bases; ++b) sum += share[b] * LOAD(v + b * h + k);
            else
                for (int64_t b = 0; b < bases; ++b) sum += share[b] * load_part(v + b * h + k, width);
            store_part(W + p * h + k, width, sum);
        }
    }
}

/* The gradient by V of nodes whose rows are starts[j] .. starts[j + 1] - 1:
 * dV[j][b] = sum over the rows p of node j of a[relation[p]][b] * dW[p]. */
static void basis_nodes(int64_t nodes, int64_t bases, int64_t h, const int64_t *starts, const float *a,
                        const int32_t *relation, const float *dW, float *dV) {
    for (int64_t j = 0; j < nodes; ++j)
        for (int64_t k = 0; k < h; k += LANES) {
            int64_t width = within(h, k);
            for (int64_t b = 0; b < bases; ++b) {
                vec sum = {0};
                for (int64_t p = starts[j]; p < starts[j + 1]; ++p)
                    sum += a[relation[p] * bases + b] * load_part(dW + p * h + k, width);
                store_part(dV + (j * bases + b) * h + k, width, sum);
            }
        }
}

/* sums[at[p]][b] += sum over k of V[j][b][k] * dW[p][k], a chain for each row p of node j, row after row.
 * turned: room for [h][bases rounded up to 16] numbers. */
static void basis_shares(int64_t nodes, int64_t bases, int64_t h, const int64_t *starts, const float *V,
                         const float *dW, const int64_t *at, float *turned, float *sums) {
    int64_t ld = (bases + LANES - 1) / LANES * LANES;
    memset(turned, 0, (size_t)(h * ld) * sizeof *turned);
    for (int64_t j = 0; j < nodes; ++j) {
        if (starts[j] == starts[j + 1]) continue;
        for (int64_t b = 0; b < bases; ++b)
            for (int64_t k = 0; k < h; ++k) turned[k * ld + b] = V[(j * bases + b) * h + k];
        for (int64_t p = starts[j]; p < starts[j + 1]; ++p)
            for (int64_t b = 0; b < bases; b += LANES) {
                float *into = sums + at[p] * bases + b;
                int64_t width = within(bases, b);
                vec sum = {0};
                for (int64_t k = 0; k < h; ++k) sum += dW[p * h + k] * LOAD(turned + k * ld + b);
                store_part(into, width, load_part(into, width) + sum);
            }
    }
}
