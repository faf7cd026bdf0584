/* Degeneracy order and core numbers, nodes that no heavy clique holds, greedy colouring (app/bounds/clique/degeneracy.py). */
#include <stdlib.h>

#include "common.h"

/* order [n]: the node of least degree among those left, again and again; core [n]: the largest such degree so far.
 * In linear time by sorting into buckets (Batagelj and Zaversnik 2003). Returns -1 without memory. */
int64_t lk_core_order(int64_t n, const int64_t *indptr, const int32_t *indices, int32_t *order, int32_t *core) {
    int64_t most = 0;
    for (int64_t v = 0; v < n; ++v) {
        const int64_t degree = indptr[v + 1] - indptr[v];
        core[v] = (int32_t)degree;
        if (degree > most) most = degree;
    }
    int64_t *first = calloc((size_t)most + 2, 8);
    int32_t *place = malloc((size_t)n * 4 + 8);
    if (!first || !place) {
        free(first);
        free(place);
        return -1;
    }
    for (int64_t v = 0; v < n; ++v) first[core[v] + 1] += 1;
    for (int64_t d = 0; d < most; ++d) first[d + 1] += first[d];
    for (int64_t v = 0; v < n; ++v) {
        place[v] = (int32_t)first[core[v]]++;
        order[place[v]] = (int32_t)v;
    }
    for (int64_t d = most; d > 0; --d) first[d] = first[d - 1];
    first[0] = 0;
    for (int64_t i = 0; i < n; ++i) {
        const int32_t v = order[i];
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
            const int32_t u = indices[j];
            if (core[u] <= core[v]) continue;
            /* u changes places with the first of its bucket, which then begins one later. */
            const int64_t at = first[core[u]]++;
            const int32_t w = order[at];
            order[place[u]] = w;
            place[w] = place[u];
            order[at] = u;
            place[u] = (int32_t)at;
            core[u] -= 1;
        }
    }
    free(first);
    free(place);
    return 0;
}

/* Take off nodes that weigh, with their neighbours that are left, at most `least`: those of the start by number, then
 * as they come. order [n]: the nodes taken off; load [n]: what each node left weighs with its neighbours, -1 taken off.
 * Returns their number. */
int64_t lk_peel(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weights, int64_t least,
                int32_t *order, int64_t *load) {
    int64_t count = 0;
    for (int64_t v = 0; v < n; ++v) {
        load[v] = weights[v];
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) load[v] += weights[indices[j]];
        if (load[v] <= least) order[count++] = (int32_t)v;
    }
    for (int64_t i = 0; i < count; ++i) load[order[i]] = -1;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t v = order[i];
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
            const int32_t u = indices[j];
            if (load[u] < 0) continue;
            load[u] -= weights[v];
            if (load[u] > least) continue;
            load[u] = -1;
            order[count++] = u;
        }
    }
    return count;
}

/* colour [n]: of each node in the given order the least that no neighbour has. Returns how many colours, -1 without
 * memory. */
int64_t lk_greedy_colours(int64_t n, const int64_t *indptr, const int32_t *indices, const int32_t *order,
                          int32_t *colour) {
    int64_t most = 0;
    int32_t *seen = malloc((size_t)n * 4 + 8); /* the last node that saw a colour at a neighbour */
    if (!seen) return -1;
    memset(seen, 255, (size_t)n * 4);
    memset(colour, 255, (size_t)n * 4);
    for (int64_t i = 0; i < n; ++i) {
        const int32_t v = order[i];
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j)
            if (colour[indices[j]] >= 0) seen[colour[indices[j]]] = v;
        int32_t k = 0;
        while (seen[k] == v) k += 1;
        colour[v] = k;
        if (k >= most) most = k + 1;
    }
    free(seen);
    return most;
}
