/* Rows of weights that are combinations of bases, and their gradients: the chains of app/gnn/basis.py. Row p belongs to
 * node[p] and relation[p]; V is [nodes][bases][h], a is [relations][bases]. Lanes are different outputs. */
#include "products.h"

enum { TILE = 16 };

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* W[p] = sum over b of a[relation[p]][b] * V[node[p]][b], from the first basis on. */
WIDE void lk_basis_rows(int64_t rows, int64_t bases, int64_t h, const float *V, const float *a, const int32_t *node,
                        const int32_t *relation, float *W) {
    for (int64_t p = 0; p < rows; ++p) {
        const float *share = a + relation[p] * bases, *v = V + node[p] * bases * h;
        for (int64_t k = 0; k < h; k += TILE) {
            int64_t width = least(TILE, h - k);
            v16 sum = {0};
            if (width == TILE)
                for (int64_t b = 0; b < bases; ++b) sum += share[b] * LOAD16(v + b * h + k);
            else
                for (int64_t b = 0; b < bases; ++b) sum += share[b] * load_part(v + b * h + k, width);
            store_part(W + p * h + k, width, sum);
        }
    }
}

/* The gradient by V of nodes whose rows are starts[j] .. starts[j + 1] - 1:
 * dV[j][b] = sum over the rows p of node j of a[relation[p]][b] * dW[p]. */
WIDE void lk_basis_nodes(int64_t nodes, int64_t bases, int64_t h, const int64_t *starts, const float *a,
                         const int32_t *relation, const float *dW, float *dV) {
    for (int64_t j = 0; j < nodes; ++j)
        for (int64_t k = 0; k < h; k += TILE) {
            int64_t width = least(TILE, h - k);
            for (int64_t b = 0; b < bases; ++b) {
                v16 sum = {0};
                for (int64_t p = starts[j]; p < starts[j + 1]; ++p)
                    sum += a[relation[p] * bases + b] * load_part(dW + p * h + k, width);
                store_part(dV + (j * bases + b) * h + k, width, sum);
            }
        }
}

/* sums[at[p]][b] += sum over k of V[j][b][k] * dW[p][k], a chain for each row p of node j, row after row.
 * turned: room for [h][bases rounded up to 16] numbers. */
WIDE void lk_basis_shares(int64_t nodes, int64_t bases, int64_t h, const int64_t *starts, const float *V,
                          const float *dW, const int64_t *at, float *turned, float *sums) {
    int64_t ld = (bases + TILE - 1) / TILE * TILE;
    memset(turned, 0, (size_t)(h * ld) * sizeof *turned);
    for (int64_t j = 0; j < nodes; ++j) {
        if (starts[j] == starts[j + 1]) continue;
        for (int64_t b = 0; b < bases; ++b)
            for (int64_t k = 0; k < h; ++k) turned[k * ld + b] = V[(j * bases + b) * h + k];
        for (int64_t p = starts[j]; p < starts[j + 1]; ++p)
            for (int64_t b = 0; b < bases; b += TILE) {
                float *into = sums + at[p] * bases + b;
                int64_t width = least(TILE, bases - b);
                v16 sum = {0};
                for (int64_t k = 0; k < h; ++k) sum += dW[p * h + k] * LOAD16(turned + k * ld + b);
                store_part(into, width, load_part(into, width) + sum);
            }
    }
}
