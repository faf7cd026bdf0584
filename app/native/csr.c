/* Rows of a symmetric matrix from undirected pairs, by counting: 4 bytes per entry and no second copy. An entry
 * is a column, doubled, plus 1 where the pair stood in this direction in the file. */
#include <stdlib.h>

#include "common.h"

/* count[id] += how often id occurs in `k` ids. */
void lk_count_ids(const uint32_t *ids, int64_t k, uint32_t *count) {
    for (int64_t i = 0; i < k; ++i) ++count[ids[i]];
}

/* ids[i] = table[ids[i]]. */
void lk_renumber(const uint32_t *table, uint32_t *ids, int64_t k) {
    for (int64_t i = 0; i < k; ++i) ids[i] = table[ids[i]];
}

/* The rank whose rows offsets[r] .. offsets[r+1]-1 hold `row`. */
INLINE int64_t owner_of(const int64_t *offsets, int64_t ranks, int64_t row) {
    int64_t lo = 0, hi = ranks;
    while (hi - lo > 1) {
        const int64_t mid = (lo + hi) / 2;
        if (row >= offsets[mid]) lo = mid;
        else hi = mid;
    }
    return lo;
}

/* Both directions of `k` pairs as entries (row, column), those for rank 0 first, then those for rank 1, ...
 * counts [ranks]: how many for each. */
void lk_deal_pairs(const uint32_t *pairs, int64_t k, const int64_t *offsets, int64_t ranks, uint32_t *out,
                   int64_t *counts) {
    memset(counts, 0, (size_t)ranks * 8);
    for (int64_t i = 0; i < 2 * k; ++i) ++counts[owner_of(offsets, ranks, pairs[i])];
    for (int64_t r = 0, at = 0; r < ranks; ++r) {
        const int64_t size = counts[r];
        counts[r] = at;
        at += size;
    }
    for (int64_t i = 0; i < 2 * k; ++i) {
        uint32_t *entry = out + 2 * counts[owner_of(offsets, ranks, pairs[i])]++;
        entry[0] = pairs[i];
        entry[1] = pairs[i ^ 1] << 1 | (uint32_t)(~i & 1);
    }
    for (int64_t r = ranks - 1; r > 0; --r) counts[r] -= counts[r - 1];
}

/* Places both directions of `k` pairs: next[row] is where the row's next entry goes. */
void lk_place_pairs(const uint32_t *pairs, int64_t k, int64_t *next, uint32_t *entries) {
    for (int64_t i = 0; i < 2 * k; i += 2) {
        entries[next[pairs[i]]++] = pairs[i + 1] << 1 | 1;
        entries[next[pairs[i + 1]]++] = pairs[i] << 1;
    }
}

/* Places `k` entries (row, column) of the rows from `lo`. */
void lk_place_entries(const uint32_t *in, int64_t k, int64_t lo, int64_t *next, uint32_t *entries) {
    for (int64_t i = 0; i < 2 * k; i += 2) entries[next[in[i] - lo]++] = in[i + 1];
}

enum { LANES = 16, SHORT_ROW = 48 };

/* Up to `room` entries, each to the place that the number of smaller ones gives it: no branch depends on them. */
INLINE void sort_by_ranks(uint32_t *x, int64_t k, const int room) {
    uint32_t value[SHORT_ROW], rank[SHORT_ROW];
    for (int i = 0; i < room; ++i) {
        value[i] = i < k ? x[i] : UINT32_MAX;
        rank[i] = 0;
    }
    for (uint32_t j = 0; j < (uint32_t)k; ++j) {
        const uint32_t v = value[j];
        for (uint32_t i = 0; i < (uint32_t)room; ++i) rank[i] += (v < value[i]) | ((v == value[i]) & (j < i));
    }
    for (int64_t i = 0; i < k; ++i) x[rank[i]] = value[i];
}

INLINE void sort_short(uint32_t *x, int64_t k) {
    if (k <= LANES) sort_by_ranks(x, k, LANES);
    else if (k <= 2 * LANES) sort_by_ranks(x, k, 2 * LANES);
    else sort_by_ranks(x, k, SHORT_ROW);
}

/* By bytes, from the lowest; bytes that all entries share are passed over. */
static void sort_long(uint32_t *x, int64_t k, uint32_t *spare) {
    uint32_t *from = x, *to = spare;
    for (int shift = 0; shift < 32; shift += 8) {
        int64_t at[256] = {0}, sum = 0;
        for (int64_t i = 0; i < k; ++i) ++at[from[i] >> shift & 255];
        if (at[from[0] >> shift & 255] == k) continue;
        for (int b = 0; b < 256; ++b) {
            const int64_t size = at[b];
            at[b] = sum;
            sum += size;
        }
        for (int64_t i = 0; i < k; ++i) to[at[from[i] >> shift & 255]++] = from[i];
        uint32_t *other = from;
        from = to;
        to = other;
    }
    if (from != x) memcpy(x, from, (size_t)k * 4);
}

/* Sorts the rows lo .. lo+n-1, whose entries are [starts[i], ends[i]), drops loops and repeats, and moves what is
 * left to the front of `entries` as int32 columns: never past what is still to be read.
 * indptr [n+1], the first one given: rows may be finished part by part. Returns the number of (u, v) with u != v that the file has in this direction, or -1 without memory. */
WIDE int64_t lk_finish_rows(int64_t n, int64_t lo, const int64_t *starts, const int64_t *ends, uint32_t *entries,
                       int64_t *indptr) {
    int64_t longest = 0, written = 0, at = indptr[0];
    for (int64_t i = 0; i < n; ++i)
        if (ends[i] - starts[i] > longest) longest = ends[i] - starts[i];
    uint32_t *spare = longest > SHORT_ROW ? malloc((size_t)longest * 4) : 0;
    if (longest > SHORT_ROW && !spare) return -1;
    for (int64_t i = 0; i < n; ++i) {
        uint32_t *row = entries + starts[i];
        const int64_t k = ends[i] - starts[i];
        const uint32_t self = (uint32_t)(lo + i);
        if (k > SHORT_ROW) sort_long(row, k, spare);
        else sort_short(row, k);
        for (int64_t j = 0; j < k; ++j) {
            const uint32_t column = row[j] >> 1;
            if (column == self) continue;
            /* Of equal columns the one that is written comes last. */
            if (j + 1 < k && row[j + 1] >> 1 == column) continue;
            written += row[j] & 1;
            entries[at++] = column;
        }
        indptr[i + 1] = at;
    }
    free(spare);
    return written;
}
