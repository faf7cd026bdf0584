/* Rows of a symmetric matrix from undirected pairs, by counting: 4 bytes per entry, 8 with a weight, and no second copy. An
 * entry is a column, doubled, plus 1 where the pair stood in this direction in the file; with a weight it stands in the
 * upper half of a number whose lower half is the weight's rank. */
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

/* Ids by number in the order in which they occur, and a table of these numbers by hash (app/graphs/kernels.py). table: an id
 * + 1, or 0: free, and behind it its number; slots + 1 places, a power of two, of which some stay free. */
typedef struct {
    uint64_t *table;
    int64_t *ids;
    int64_t count, most, slots;
    uint64_t salt[2];
} Ids;

INLINE int64_t slot_of(const Ids *ids, uint64_t id) {
    return (int64_t)(salted(id, ids->salt) & (uint64_t)ids->slots);
}

/* The place of an id in the table: where it is, or a free one where it would be. */
INLINE int64_t find_id(const Ids *ids, uint64_t id) {
    int64_t at = slot_of(ids, id);
    while (ids->table[2 * at] && ids->table[2 * at] != id + 1) at = (at + 1) & ids->slots;
    return at;
}

INLINE void enter_id(Ids *ids, int64_t at, uint64_t id, int64_t number) {
    ids->table[2 * at] = id + 1;
    ids->table[2 * at + 1] = (uint64_t)number;
}

/* Fills an empty table with the ids that there are. */
void lk_fill_ids(Ids *ids) {
    for (int64_t i = 0; i < ids->count; ++i)
        enter_id(ids, find_id(ids, (uint64_t)ids->ids[i]), (uint64_t)ids->ids[i], i);
}

INLINE uint64_t end_at(const void *ends, int64_t wide, int64_t at) {
    uint64_t id;
    uint32_t narrow;
    if (wide) memcpy(&id, (const char *)ends + 8 * at, 8);
    else {
        memcpy(&narrow, (const char *)ends + 4 * at, 4);
        id = narrow;
    }
    return id;
}

enum { IDS_AHEAD = 16 };

/* Numbers the ends first..k-1, int64 (wide) or uint32: number i goes to the i-th 4 bytes of the same memory, never past
 * what is still to be read. Returns how far it came: less than k where there is no room for another id. */
int64_t lk_number_ids(Ids *ids, void *ends, int64_t wide, int64_t first, int64_t k) {
    for (int64_t i = first; i < k; ++i) {
        if (i + IDS_AHEAD < k) __builtin_prefetch(ids->table + 2 * slot_of(ids, end_at(ends, wide, i + IDS_AHEAD)));
        const uint64_t id = end_at(ends, wide, i);
        const int64_t at = find_id(ids, id);
        if (!ids->table[2 * at]) {
            if (ids->count == ids->most) return i;
            ids->ids[ids->count] = (int64_t)id;
            enter_id(ids, at, id, ids->count++);
        }
        const uint32_t number = (uint32_t)ids->table[2 * at + 1];
        memcpy((char *)ends + 4 * i, &number, 4);
    }
    return k;
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
 * counts [ranks]: how many for each. weights [k], dealt [2k]: those of the entries, or both 0. */
void lk_deal_pairs(const uint32_t *pairs, const float *weights, int64_t k, const int64_t *offsets, int64_t ranks,
                   uint32_t *out, float *dealt, int64_t *counts) {
    memset(counts, 0, (size_t)ranks * 8);
    for (int64_t i = 0; i < 2 * k; ++i) ++counts[owner_of(offsets, ranks, pairs[i])];
    for (int64_t r = 0, at = 0; r < ranks; ++r) {
        const int64_t size = counts[r];
        counts[r] = at;
        at += size;
    }
    for (int64_t i = 0; i < 2 * k; ++i) {
        const int64_t at = counts[owner_of(offsets, ranks, pairs[i])]++;
        out[2 * at] = pairs[i];
        out[2 * at + 1] = pairs[i ^ 1] << 1 | (uint32_t)(~i & 1);
        if (weights) dealt[at] = weights[i >> 1];
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

/* A weight as a number that is as large as it, -0 below 0; its own inverse. */
INLINE int32_t ranked(int32_t bits) { return bits < 0 ? bits ^ 0x7FFFFFFF : bits; }

INLINE uint64_t with_weight(uint32_t entry, float weight) {
    int32_t bits;
    memcpy(&bits, &weight, 4);
    return (uint64_t)entry << 32 | (uint32_t)ranked(bits);
}

INLINE float weight_of(int32_t rank) {
    const int32_t bits = ranked(rank);
    float weight;
    memcpy(&weight, &bits, 4);
    return weight;
}

/* As lk_place_pairs and lk_place_entries, with weights [k]. */
void lk_place_weighted_pairs(const uint32_t *pairs, const float *weights, int64_t k, int64_t *next, uint64_t *entries) {
    for (int64_t i = 0; i < k; ++i) {
        const uint32_t u = pairs[2 * i], v = pairs[2 * i + 1];
        entries[next[u]++] = with_weight(v << 1 | 1, weights[i]);
        entries[next[v]++] = with_weight(u << 1, weights[i]);
    }
}

void lk_place_weighted_entries(const uint32_t *in, const float *weights, int64_t k, int64_t lo, int64_t *next,
                               uint64_t *entries) {
    for (int64_t i = 0; i < k; ++i) entries[next[in[2 * i] - lo]++] = with_weight(in[2 * i + 1], weights[i]);
}

enum { LANES = 16, SHORT_ROW = 48 };

INLINE uint32_t entry_at(const void *entries, const int wide, int64_t at) {
    return wide ? (uint32_t)(((const uint64_t *)entries)[at] >> 32) : ((const uint32_t *)entries)[at];
}

INLINE int32_t rank_at(const void *entries, const int wide, int64_t at) {
    return wide ? (int32_t)(uint32_t)((const uint64_t *)entries)[at] : 0;
}

INLINE void *row_at(void *entries, const int wide, int64_t at) { return (char *)entries + (wide ? 8 : 4) * at; }

/* Up to `room` entries, each to the place that the number of smaller ones gives it: no branch depends on them. */
INLINE void sort_by_ranks(void *row, const int wide, int64_t k, const int room) {
    uint64_t held[SHORT_ROW];
    uint32_t value[SHORT_ROW], rank[SHORT_ROW];
    for (int i = 0; i < room; ++i) {
        value[i] = i < k ? entry_at(row, wide, i) : UINT32_MAX;
        rank[i] = 0;
    }
    for (uint32_t j = 0; j < (uint32_t)k; ++j) {
        const uint32_t v = value[j];
        for (uint32_t i = 0; i < (uint32_t)room; ++i) rank[i] += (v < value[i]) | ((v == value[i]) & (j < i));
    }
    if (wide) memcpy(held, row, (size_t)k * 8);
    for (int64_t i = 0; i < k; ++i)
        if (wide) ((uint64_t *)row)[rank[i]] = held[i];
        else ((uint32_t *)row)[rank[i]] = value[i];
}

/* By bytes, from the lowest; bytes that all entries share are passed over. Weights have no part in it: of equal columns
 * the largest is looked for. */
INLINE void sort_long(void *row, const int wide, int64_t k, void *spare) {
    void *from = row, *to = spare;
    for (int shift = 0; shift < 32; shift += 8) {
        int64_t at[256] = {0}, sum = 0;
        for (int64_t i = 0; i < k; ++i) ++at[entry_at(from, wide, i) >> shift & 255];
        if (at[entry_at(from, wide, 0) >> shift & 255] == k) continue;
        for (int b = 0; b < 256; ++b) {
            const int64_t size = at[b];
            at[b] = sum;
            sum += size;
        }
        for (int64_t i = 0; i < k; ++i) {
            const int64_t place = at[entry_at(from, wide, i) >> shift & 255]++;
            if (wide) ((uint64_t *)to)[place] = ((const uint64_t *)from)[i];
            else ((uint32_t *)to)[place] = ((const uint32_t *)from)[i];
        }
        void *other = from;
        from = to;
        to = other;
    }
    if (from != row) memcpy(row, from, (size_t)k * (wide ? 8 : 4));
}

/* spare [k]: room for a row that is longer than SHORT_ROW */
INLINE void sort_row(void *row, const int wide, int64_t k, void *spare) {
    if (k > SHORT_ROW) sort_long(row, wide, k, spare);
    else if (k <= LANES) sort_by_ranks(row, wide, k, LANES);
    else if (k <= 2 * LANES) sort_by_ranks(row, wide, k, 2 * LANES);
    else sort_by_ranks(row, wide, k, SHORT_ROW);
}

/* Room for the longest row, where it takes some; null: there is no memory for it, or it takes none. */
static void *room_for(int64_t n, const int64_t *starts, const int64_t *ends, int64_t wide, int64_t *longest) {
    *longest = 0;
    for (int64_t i = 0; i < n; ++i)
        if (ends[i] - starts[i] > *longest) *longest = ends[i] - starts[i];
    return *longest > SHORT_ROW ? malloc((size_t)*longest * (wide ? 8 : 4)) : NULL;
}

/* Sorts the rows lo .. lo+n-1, whose entries are [starts[i], ends[i]), drops loops and repeats, and moves what is
 * left to the front of `entries` as int32 columns: never past what is still to be read.
 * indptr [n+1], the first one given: rows may be finished part by part. Returns the number of (u, v) with u != v that
 * the file has in this direction, or -1 without memory. */
WIDE int64_t lk_finish_rows(int64_t n, int64_t lo, const int64_t *starts, const int64_t *ends, uint32_t *entries,
                       int64_t *indptr) {
    int64_t longest, written = 0, at = indptr[0];
    void *spare = room_for(n, starts, ends, 0, &longest);
    if (longest > SHORT_ROW && !spare) return -1;
    for (int64_t i = 0; i < n; ++i) {
        uint32_t *row = entries + starts[i];
        const int64_t k = ends[i] - starts[i];
        const uint32_t self = (uint32_t)(lo + i);
        sort_row(row, 0, k, spare);
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

/* ---- weights and directions ---- */

/* What the equal columns of a row were: which flags were seen, and the largest rank of each. */
typedef struct {
    int seen[2];
    int32_t best[2];
} Merged;

INLINE void merge(Merged *m, uint32_t flag, int32_t rank) {
    if (!m->seen[flag] || rank > m->best[flag]) m->best[flag] = rank;
    m->seen[flag] = 1;
}

/* One distinct entry of a row, to place `at` of the outputs that there are (app/graphs/rows.py: Rows). */
INLINE void put_merged(const Merged *m, int64_t a_flag, int64_t at, float *weights, float *transpose, uint8_t *arcs) {
    if (a_flag < 0) {
        const int one = m->seen[0] && (!m->seen[1] || m->best[0] > m->best[1]) ? 0 : 1;
        weights[at] = weight_of(m->best[one]);
        return;
    }
    const int64_t a = a_flag, t = 1 - a_flag;
    arcs[at] = (uint8_t)(m->seen[a] | m->seen[t] << 1);
    if (!weights) return;
    weights[at] = m->seen[a] ? weight_of(m->best[a]) : 0.0f;
    transpose[at] = m->seen[t] ? weight_of(m->best[t]) : 0.0f;
}

INLINE int64_t finish_merged(const int wide, int64_t n, int64_t lo, const int64_t *starts, const int64_t *ends,
                             void *entries, int64_t a_flag, void *spare, int64_t *indptr, float *weights,
                             float *transpose, uint8_t *arcs, uint8_t *loops) {
    int64_t written = 0, at = indptr[0];
    for (int64_t i = 0; i < n; ++i) {
        const int64_t stop = ends[i];
        sort_row(row_at(entries, wide, starts[i]), wide, stop - starts[i], spare);
        for (int64_t j = starts[i]; j < stop;) {
            const uint32_t column = entry_at(entries, wide, j) >> 1;
            Merged m = {{0, 0}, {0, 0}};
            for (; j < stop && entry_at(entries, wide, j) >> 1 == column; ++j)
                merge(&m, entry_at(entries, wide, j) & 1, rank_at(entries, wide, j));
            if (column == (uint32_t)(lo + i)) {
                if (loops) loops[i] = 1;
                continue;
            }
            written += m.seen[1];
            put_merged(&m, a_flag, at, weights, transpose, arcs);
            memcpy((char *)entries + 4 * at++, &column, 4); /* what has been read by now is no shorter */
        }
        indptr[i + 1] = at;
    }
    return written;
}

/* As lk_finish_rows, where entries have weights (wide), directions are told apart, or both: of equal columns the largest
 * weight is kept, of either direction where they are. entries: uint32, wide uint64, columns int32 afterwards.
 * a_flag       what marks an entry of A; -1: the graph is undirected, then arcs, transpose and loops are 0
 * weights, transpose, arcs   [entries], filled as far as there are distinct ones; weights 0: there are none
 * loops [n]    1 where a row has an entry in its own column, else left */
WIDE int64_t lk_finish_merged(int64_t wide, int64_t n, int64_t lo, const int64_t *starts, const int64_t *ends, void *entries,
                         int64_t a_flag, int64_t *indptr, float *weights, float *transpose, uint8_t *arcs,
                         uint8_t *loops) {
    int64_t longest, written;
    void *spare = room_for(n, starts, ends, wide, &longest);
    if (longest > SHORT_ROW && !spare) return -1;
    if (wide)
        written = finish_merged(1, n, lo, starts, ends, entries, a_flag, spare, indptr, weights, transpose, arcs, loops);
    else
        written = finish_merged(0, n, lo, starts, ends, entries, a_flag, spare, indptr, weights, transpose, arcs, loops);
    free(spare);
    return written;
}
