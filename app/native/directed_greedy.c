/* Directed feedback vertex sets without search: the node with most ways through it, and what a set does not need.
 * app/search/dfvs/baselines.py has the same without kernels. */
#include "common.h"
#include "gain_heap.h"

typedef struct {
    int64_t n;
    const int64_t *out_ptr, *in_ptr; /* [n+1] */
    const int32_t *out, *into;       /* [m] */
    const int64_t *price;            /* [n] */
    uint8_t *alive, *chosen;         /* [n] what is left of the digraph; the set */
    int32_t *heads, *tails;          /* [n] arcs out and in, of what is left */
    int32_t *waiting;                /* [2n] room for nodes that have no arcs in, or none out: `waits` of them */
    void *heap;                      /* [n] entries */
    int64_t size, waits;
} Ways;

/* Ways through a node for its price: whole numbers below 2^53, and one rounding. */
INLINE double worth(const Ways *w, int32_t v) {
    return (double)((int64_t)w->heads[v] * w->tails[v]) / (double)w->price[v];
}

INLINE void fewer(Ways *w, int32_t *count, int32_t u) {
    if (w->alive[u] && !--count[u]) w->waiting[w->waits++] = u;
}

static void leave(Ways *w, int32_t v) {
    w->alive[v] = 0;
    for (int64_t j = w->out_ptr[v]; j < w->out_ptr[v + 1]; ++j) fewer(w, w->tails, w->out[j]);
    for (int64_t j = w->in_ptr[v]; j < w->in_ptr[v + 1]; ++j) fewer(w, w->heads, w->into[j]);
}

/* Counts, and the heap, of the nodes that are alive. */
void lk_dfvs_ways_begin(Ways *w) {
    Gain *heap = w->heap;
    w->size = w->waits = 0;
    for (int32_t v = 0; v < w->n; ++v) {
        w->heads[v] = w->tails[v] = 0;
        if (!w->alive[v]) continue;
        for (int64_t j = w->out_ptr[v]; j < w->out_ptr[v + 1]; ++j) w->heads[v] += w->alive[w->out[j]];
        for (int64_t j = w->in_ptr[v]; j < w->in_ptr[v + 1]; ++j) w->tails[v] += w->alive[w->into[j]];
        heap[w->size++] = (Gain){worth(w, v), v};
        if (!(w->heads[v] && w->tails[v])) w->waiting[w->waits++] = v;
    }
    for (int64_t at = w->size / 2 - 1; at >= 0; --at) settle(heap, w->size, at);
}

/* Take so many nodes, fewer where no cycle is left, and all that go as they come; returns how many were taken. */
int64_t lk_dfvs_ways(Ways *w, int64_t most) {
    Gain *heap = w->heap;
    int64_t taken = 0;
    for (;;) {
        while (w->waits) {
            const int32_t v = w->waiting[--w->waits];
            if (w->alive[v]) leave(w, v);
        }
        if (taken == most) return taken;
        while (w->size) {
            const int32_t v = heap[0].node;
            const double now = worth(w, v);
            const int stays = w->alive[v] && now != heap[0].key;
            if (w->alive[v] && !stays) break;
            heap[0] = stays ? (Gain){now, v} : heap[w->size - 1];
            w->size -= !stays;
            settle(heap, w->size, 0);
        }
        if (!w->size) return taken;
        const int32_t v = heap[0].node;
        heap[0] = heap[--w->size];
        settle(heap, w->size, 0);
        w->chosen[v] = 1;
        ++taken;
        leave(w, v);
    }
}

/* Nodes [count] of a set that fit into an order of the others leave the set; label [n]: places in the order, -1 in the
 * set. */
void lk_dfvs_needed(int64_t n, const int64_t *out_ptr, const int32_t *out, const int64_t *in_ptr, const int32_t *into,
                    const int64_t *nodes, int64_t count, double *label, uint8_t *chosen) {
    for (int64_t i = 0; i < count; ++i) {
        const int64_t v = nodes[i];
        double low = 0.0, high = (double)n + 1.0;
        for (int64_t j = in_ptr[v]; j < in_ptr[v + 1]; ++j)
            if (label[into[j]] > low) low = label[into[j]];
        for (int64_t j = out_ptr[v]; j < out_ptr[v + 1]; ++j)
            if (label[out[j]] >= 0 && label[out[j]] < high) high = label[out[j]];
        const double place = (low + high) / 2;
        if (!(low < place && place < high)) continue;
        label[v] = place;
        chosen[v] = 0;
    }
}
