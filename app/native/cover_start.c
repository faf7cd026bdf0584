/* Greedy vertex covers to start a search from; app/search/cover/start.py has the same without the library. */
#include "sift.h"

typedef struct {
    uint64_t key; /* degree per unit of node weight, in 1/2^32 */
    int32_t node;
} Entry;

INLINE uint64_t key_of(const int64_t *node_weight, int64_t degree, int64_t v) {
    const uint64_t scaled = (uint64_t)degree << 32;
    return node_weight ? scaled / (uint64_t)node_weight[v] : scaled;
}

INLINE int before(Entry a, Entry b) { return a.key != b.key ? a.key > b.key : a.node < b.node; }

SIFTS(Entry, before, rise, sink)

/* Moves the entry at `at` down to its place in a heap of `size` entries. */
static void settle(Entry *heap, int64_t size, int64_t at) {
    if (at < size) sink(heap, size, at, heap[at]);
}

static void take(const int64_t *indptr, const int32_t *indices, int32_t v, int32_t *degree, uint8_t *in_cover) {
    in_cover[v] = 1;
    degree[v] = 0;
    for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) --degree[indices[j]];
}

/* The node of the largest residual degree per weight until no edge is left, or until the entries looked at are
 * `most`. degree: [n], heap: room for n entries, of which `left` are those of an earlier call (-1: this is the
 * first one). Returns how many are left. Degrees only fall, so an entry of the heap is an upper bound until it is
 * brought up to date. */
int64_t lk_cover_greedy(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *node_weight,
                        int32_t *degree, void *room, uint8_t *in_cover, int64_t left, int64_t most) {
    Entry *heap = room;
    int64_t size = left;
    if (left < 0) {
        size = 0;
        for (int32_t v = 0; v < n; ++v) {
            degree[v] = (int32_t)(indptr[v + 1] - indptr[v]);
            if (degree[v]) heap[size++] = (Entry){key_of(node_weight, degree[v], v), v};
        }
        for (int64_t at = size / 2 - 1; at >= 0; --at) settle(heap, size, at);
    }
    for (int64_t seen = 0; size && seen < most; ++seen) {
        const int32_t v = heap[0].node;
        if (degree[v] > 0 && key_of(node_weight, degree[v], v) != heap[0].key) {
            heap[0].key = key_of(node_weight, degree[v], v);
        } else {
            if (degree[v] > 0) {
                seen += indptr[v + 1] - indptr[v];
                take(indptr, indices, v, degree, in_cover);
            }
            heap[0] = heap[--size];
        }
        settle(heap, size, 0);
    }
    return size;
}

/* Nodes leave the cover, in the given order, where all neighbours are in it. */
void lk_cover_drop(int64_t n, const int64_t *indptr, const int32_t *indices, const int32_t *order,
                   uint8_t *in_cover) {
    for (int64_t i = 0; i < n; ++i) {
        const int32_t v = order[i];
        int64_t j = indptr[v];
        while (j < indptr[v + 1] && in_cover[indices[j]]) ++j;
        if (j == indptr[v + 1]) in_cover[v] = 0;
    }
}
