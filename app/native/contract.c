/* Graphs of groups of nodes; app/graphs/contracted.py does the same by sorting. */
#include <stdint.h>
#include <stdlib.h>

#include "common.h"

/* The graph of groups 0..k-1 of nodes: weights between two of them added up, none within one, rows ascending.
   nodes [n] by their groups, group g from begin[g] to begin[g + 1]. The new rows go to out_indptr [k + 1], out_indices
   and out_weights, which have room for all entries. Returns the entries, -1 without memory. */
int64_t lk_contract(
    int64_t k, const int64_t *indptr, const int32_t *indices, const int64_t *weights, const int32_t *group,
    const int32_t *nodes, const int64_t *begin, int64_t *out_indptr, int32_t *out_indices, int64_t *out_weights
) {
    const int64_t entries = begin[k] ? indptr[begin[k]] : 0; /* begin[k] is n */
    int64_t *joined = malloc((size_t)(k + 1) * sizeof *joined), *rows = malloc((size_t)(k + 2) * sizeof *rows);
    int32_t *last = malloc((size_t)(k + 1) * sizeof *last), *column = malloc((size_t)(entries + 1) * sizeof *column);
    int64_t *value = malloc((size_t)(entries + 1) * sizeof *value), made = -1;
    if (joined && rows && last && column && value) {
        for (int64_t g = 0; g < k; g++) last[g] = -1;
        made = 0;
        for (int64_t g = 0; g < k; g++) {
            const int64_t from = rows[g] = made;
            for (int64_t i = begin[g]; i < begin[g + 1]; i++)
                for (int64_t e = indptr[nodes[i]]; e < indptr[nodes[i] + 1]; e++) {
                    const int32_t h = group[indices[e]];
                    if (h == g) continue;
                    if (last[h] != g) {
                        last[h] = (int32_t)g;
                        joined[h] = 0;
                        column[made++] = h;
                    }
                    joined[h] += weights[e];
                }
            for (int64_t e = from; e < made; e++) value[e] = joined[column[e]];
        }
        rows[k] = made;
        memcpy(out_indptr, rows, (size_t)(k + 1) * sizeof *rows);
        for (int64_t g = 0; g < k; g++) /* the transpose, which is the same, has its rows in order */
            for (int64_t e = rows[g]; e < rows[g + 1]; e++) {
                const int64_t at = out_indptr[column[e]]++;
                out_indices[at] = (int32_t)g;
                out_weights[at] = value[e];
            }
        memcpy(out_indptr, rows, (size_t)(k + 1) * sizeof *rows);
    }
    free(joined), free(rows), free(last), free(column), free(value);
    return made;
}
