/* Communities: moves of single nodes to the best community near them.
   app/search/communities/plain.py does the same without kernels, move by move. */
#include <stdint.h>

#include "common.h"

typedef struct {
    int64_t n, near, far; /* a pair in one community is worth near * weight - far * size * size */
    const int64_t *indptr;
    const int32_t *indices;
    const int64_t *weights; /* [nnz] */
    const int64_t *size;    /* [n] */
    int32_t *label;         /* [n] community of each node, 0..n-1 */
    int64_t *total;         /* [n] sizes of communities */
    int32_t *count;         /* [n] their nodes */
    int32_t *spare;         /* [n] labels that no node has: spares of them */
    int32_t *queue;         /* [n] a ring of nodes to look at, `waiting` of them from `first` on */
    uint8_t *queued;        /* [n] whether a node is in it */
    int64_t *joined;        /* [n] zeros: weight between a node and each community */
    int32_t *met;           /* [n] */
    int64_t first, waiting, spares, gain; /* gain: of all moves so far */
} Mover;

/* The label of the community that a node, taken out of its own, does best to join; `own` where that is as good,
   -1 for one of its own. */
INLINE int32_t best_label(Mover *m, int32_t v, int32_t own, int64_t *gained) {
    int32_t met = 0;
    for (int64_t e = m->indptr[v]; e < m->indptr[v + 1]; e++) {
        const int32_t c = m->label[m->indices[e]];
        if (m->joined[c] == 0) m->met[met++] = c; /* twice where weights cancel: no harm */
        m->joined[c] += m->weights[e];
    }
    const int64_t far = m->far * m->size[v];
    const int64_t stays = m->count[own] ? m->near * m->joined[own] - far * m->total[own] : 0;
    int64_t best = 0;
    int32_t label = -1;
    for (int32_t i = 0; i < met; i++) {
        const int32_t c = m->met[i];
        const int64_t worth = m->near * m->joined[c] - far * m->total[c];
        if (worth > best || (worth == best && label >= 0 && c < label)) {
            best = worth;
            label = c;
        }
    }
    for (int32_t i = 0; i < met; i++) m->joined[m->met[i]] = 0;
    *gained = best - stays;
    return best == stays ? own : label;
}

/* Look at so many nodes of the queue, fewer where it is empty, and move them where that gains; returns how many. */
int64_t lk_communities_move(Mover *m, int64_t most) {
    int64_t looked = 0;
    for (; looked < most && m->waiting > 0; looked++) {
        const int32_t v = m->queue[m->first];
        m->first = m->first + 1 == m->n ? 0 : m->first + 1;
        m->waiting -= 1;
        m->queued[v] = 0;
        const int32_t own = m->label[v];
        m->total[own] -= m->size[v];
        m->count[own] -= 1;
        int64_t gained;
        int32_t label = best_label(m, v, own, &gained);
        if (label < 0) label = m->count[own] ? m->spare[--m->spares] : own;
        if (label != own && m->count[own] == 0) m->spare[m->spares++] = own;
        m->total[label] += m->size[v];
        m->count[label] += 1;
        if (label == own) continue;
        m->label[v] = label;
        m->gain += gained;
        for (int64_t e = m->indptr[v]; e < m->indptr[v + 1]; e++) {
            const int32_t u = m->indices[e];
            if (m->queued[u] || m->label[u] == label) continue;
            const int64_t last = m->first + m->waiting;
            m->queue[last >= m->n ? last - m->n : last] = u;
            m->waiting += 1;
            m->queued[u] = 1;
        }
    }
    return looked;
}
