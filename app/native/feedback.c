/* Annealing of induced forests, and the greedy set on the 2-core; app/search/fvs/search.py describes the search and its
 * arrays, app/search/fvs/plain.py has the same functions with the same results. */
#include "heap.h"

#define TOP ((int64_t)1 << 62)

typedef struct {
    int64_t n;
    const int64_t *indptr, *weight;      /* [n+1]; [n] or null: all one */
    const int32_t *indices;              /* [nnz] */
    const uint8_t *twice;                /* [nnz] or null: no double edge */
    const int64_t *hot, *escape;         /* [KINDS]; [DRAWS] */
    uint8_t *best_left;                  /* [n] the best forest */
    int32_t *order, *place, *moved;      /* [n] nodes of the forest behind the others; places; changes */
    int32_t *next, *before;              /* [n+1] the forest as a ring by labels; n: between last and first */
    int32_t *earlier;                    /* [n] of a node of the forest: neighbours there of lower label */
    int32_t *part, *seen;                /* [n] scratch */
    int64_t *label;                      /* [n+1] ascending along the ring, -1 outside; of n: 0 */
    int64_t taken, cost, best, steps, found_at, moved_size, cycle, at, unit, largest, first, cold;
    uint64_t random;
} Search;

#include "annealed_set.h"

INLINE int inside(const Search *s, int32_t v) { return s->label[v] >= 0; }
INLINE int doubled(const Search *s, int64_t j) { return s->twice && s->twice[j]; }

/* ---- the forest --------------------------------------------------------------------------------------------- */

/* Even labels, from the first to the last. */
INLINE void spread(Search *s) {
    const int64_t gap = TOP / (s->n - s->taken + 2);
    int64_t label = 0;
    for (int32_t v = s->next[s->n]; v != s->n; v = s->next[v]) s->label[v] = label += gap;
}

/* The label of a node that comes right behind `at`; n: before all. */
INLINE int64_t label_behind(Search *s, int32_t at) {
    for (;;) {
        const int64_t low = s->label[at], high = s->next[at] == s->n ? TOP : s->label[s->next[at]];
        if (high - low > 1) return low + (high - low) / 2;
        spread(s);
    }
}

/* v enters behind `at`; its neighbours in the forest beside `at` have no earlier one. */
INLINE void enter(Search *s, int32_t v, int32_t at) {
    const int32_t after = s->next[at];
    const int64_t label = label_behind(s, at);
    s->label[v] = label;
    s->next[at] = s->before[after] = v;
    s->next[v] = after;
    s->before[v] = at;
    s->earlier[v] = at != s->n;
    for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
        const int32_t u = s->indices[j];
        if (s->label[u] > label) ++s->earlier[u];
    }
    out_of_set(s, v);
}

INLINE void leave(Search *s, int32_t v) {
    const int64_t label = s->label[v];
    s->next[s->before[v]] = s->next[v];
    s->before[s->next[v]] = s->before[v];
    s->label[v] = -1;
    for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
        const int32_t u = s->indices[j];
        if (s->label[u] > label) --s->earlier[u];
    }
    into_set(s, v);
}

/* ---- the best forest, made as large as it can be, in a new order ---------------------------------------------- */

/* Whether v closes no cycle with a forest; then it is one of its trees. seen: no node's number + 1 yet. */
INLINE int joins(Search *s, int32_t v) {
    for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
        const int32_t u = s->indices[j];
        if (!s->best_left[u]) continue;
        if (doubled(s, j)) return 0;
        const int32_t r = root(s->part, u);
        if (s->seen[r] == v + 1) return 0;
        s->seen[r] = v + 1;
    }
    for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j)
        if (s->best_left[s->indices[j]]) s->part[root(s->part, s->indices[j])] = v;
    return 1;
}

static void go_back(Search *s) {
    const int32_t n = (int32_t)s->n;
    if (!n) return;
    const int32_t shift = (int32_t)random_below(&s->random, (uint32_t)n);
    for (int32_t v = 0; v < n; ++v) {
        s->part[v] = v;
        s->seen[v] = 0;
        s->label[v] = -1;
    }
    for (int32_t v = 0; v < n; ++v) {
        if (!s->best_left[v]) continue;
        for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
            const int32_t u = s->indices[j];
            if (u < v && s->best_left[u]) s->part[root(s->part, u)] = root(s->part, v);
        }
    }
    for (int32_t i = 0; i < n; ++i) {
        const int32_t v = turned(i, shift, n);
        if (s->best_left[v] || !joins(s, v)) continue;
        s->best_left[v] = 1;
        s->best -= worth(s, v);
        s->found_at = s->steps;
    }
    /* Trees, root first: `part` is a queue now. */
    int64_t filled = 0, read = 0;
    int32_t last = n;
    s->label[n] = 0;
    for (int32_t i = 0; i < n; ++i) {
        const int32_t first = turned(i, shift, n);
        if (!s->best_left[first] || inside(s, first)) continue;
        s->label[first] = 0;
        s->earlier[first] = 0;
        for (s->part[filled++] = first; read < filled; ++read) {
            const int32_t v = s->part[read];
            s->next[last] = v;
            s->before[v] = last;
            last = v;
            for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
                const int32_t u = s->indices[j];
                if (!s->best_left[u] || inside(s, u)) continue;
                s->label[u] = 0;
                s->earlier[u] = 1;
                s->part[filled++] = u;
            }
        }
    }
    s->next[last] = n;
    s->before[n] = last;
    s->taken = n - filled;
    for (int32_t v = 0, out = 0; v < n; ++v) {
        if (s->best_left[v]) continue;
        s->order[out] = v;
        s->place[v] = out++;
    }
    for (int64_t i = 0; i < filled; ++i) {
        s->order[s->taken + i] = s->part[i];
        s->place[s->part[i]] = (int32_t)(s->taken + i);
    }
    spread(s);
    s->cost = s->best;
    s->moved_size = 0;
}

void lk_feedback_return(Search *s) { go_back(s); }

/* ---- steps ---------------------------------------------------------------------------------------------------- */

/* What leaves where v enters behind `parent`: a neighbour u at entry j of the forest. */
INLINE int leaves(const Search *s, int64_t j, int32_t parent) {
    const int32_t u = s->indices[j];
    return doubled(s, j) || (u != parent && (s->earlier[u] || s->label[u] < s->label[parent]));
}

/* The first of the neighbours of v in the forest that no double edge joins, and the next one from entry `from` on; n:
 * there is none. */
INLINE void parents(const Search *s, int32_t v, int64_t from, int32_t *first, int32_t *any) {
    const int64_t begin = s->indptr[v], end = s->indptr[v + 1];
    int64_t low = TOP, wrapped = -1, met = -1;
    for (int64_t j = begin; j < end; ++j) {
        const int32_t u = s->indices[j];
        if (!inside(s, u) || doubled(s, j)) continue;
        if (j >= from) {
            if (met < 0) met = j;
        } else if (wrapped < 0) wrapped = j;
        if (s->label[u] < low) {
            low = s->label[u];
            *first = u;
        }
    }
    if (met < 0) met = wrapped;
    if (met >= 0) *any = s->indices[met];
}

/* What leaves where v enters behind `parent`, less v. */
INLINE int64_t loss_behind(const Search *s, int32_t v, int32_t parent) {
    int64_t loss = -worth(s, v);
    for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j)
        if (inside(s, s->indices[j]) && leaves(s, j, parent)) loss += worth(s, s->indices[j]);
    return loss;
}

/* A node outside enters behind the first of its neighbours, or with weights behind a drawn one where less leaves for
 * it, if that is let pass. */
INLINE void propose(Search *s, int64_t coldness) {
    if (!s->taken) return;
    const uint64_t draw = random_bits(&s->random);
    const int32_t v = s->order[(int64_t)(((draw >> 32) * (uint64_t)s->taken) >> 32)];
    const int64_t begin = s->indptr[v], end = s->indptr[v + 1];
    int32_t parent = (int32_t)s->n, other = parent;
    parents(s, v, begin + (int64_t)(((draw & UINT32_MAX) * (uint64_t)(end - begin)) >> 32), &parent, &other);
    int64_t loss = loss_behind(s, v, parent);
    if (s->weight && loss > 0) {
        const int64_t instead = loss_behind(s, v, other);
        if (instead < loss) {
            loss = instead;
            parent = other;
        }
    }
    if (loss > 0) {
        if (!passes(s, loss, coldness, draw)) return;
        keep(s);
    }
    for (int64_t j = begin; j < end; ++j)
        if (inside(s, s->indices[j]) && leaves(s, j, parent)) leave(s, s->indices[j]);
    enter(s, v, parent);
}

void lk_feedback_anneal(Search *s, int64_t count) { anneal(s, count); }

/* ---- the greedy set ------------------------------------------------------------------------------------------- */

/* What a node costs for the cycles it may break; app/search/fvs/baselines.py: RANK. */
INLINE int64_t rank(const int64_t *price, const int64_t *degree, int32_t v) { return price[v] / (degree[v] - 1); }

/* Nodes of the 2-core, one after the other that of the least price for its degree there less one, until there is no
 * cycle. price [n] below 2^30; degree [n]: those of the graph; order [n]: the nodes, as they are chosen; queue [n]
 * scratch. Returns how many there are, -1 without memory. */
int64_t lk_feedback_greedy(int64_t n, const int64_t *indptr, const int32_t *indices, const uint8_t *twice,
                           const int64_t *price, int64_t *degree, int32_t *order, int32_t *queue) {
    Heap heap = {malloc((size_t)(n + 1) * sizeof(int64_t)), 0, n + 1};
    int64_t count = 0, waiting = 0;
    if (!heap.key) return -1;
    for (int32_t v = 0; v < n; ++v)
        if (degree[v] < 2) {
            queue[waiting++] = v;
            degree[v] = -1;
        }
    for (int32_t v = 0; v < n; ++v)
        if (degree[v] >= 2 && heap_push(&heap, rank(price, degree, v) * n + v)) count = -1;
    while (count >= 0) {
        while (waiting) {
            const int32_t v = queue[--waiting];
            for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
                const int32_t u = indices[j];
                if (degree[u] < 0) continue;
                degree[u] -= 1 + (twice && twice[j]);
                if (degree[u] < 2) {
                    queue[waiting++] = u;
                    degree[u] = -1;
                }
            }
        }
        if (!heap.count) break;
        const int64_t key = heap_pop(&heap);
        const int32_t v = (int32_t)(key % n);
        if (degree[v] < 0) continue;
        if (rank(price, degree, v) != key / n) {
            if (heap_push(&heap, rank(price, degree, v) * n + v)) count = -1;
            continue;
        }
        order[count++] = v;
        degree[v] = -1;
        queue[waiting++] = v;
    }
    free(heap.key);
    return count;
}

/* chosen [n] without those of order [count], the last first, that no cycle needs. part, seen [n] scratch. */
void lk_feedback_needed(int64_t n, const int64_t *indptr, const int32_t *indices, const uint8_t *twice,
                        int64_t count, const int32_t *order, uint8_t *chosen, int32_t *part, int32_t *seen) {
    Search s = {.n = n, .indptr = indptr, .indices = indices, .twice = twice};
    s.best_left = chosen; /* 1 is the forest in `joins` */
    s.part = part;
    s.seen = seen;
    for (int32_t v = 0; v < n; ++v) {
        chosen[v] = !chosen[v];
        part[v] = v;
        seen[v] = 0;
    }
    for (int32_t v = 0; v < n; ++v) {
        if (!chosen[v]) continue;
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j)
            if (indices[j] < v && chosen[indices[j]]) part[root(part, indices[j])] = root(part, v);
    }
    while (count--)
        if (!chosen[order[count]] && joins(&s, order[count])) chosen[order[count]] = 1;
    for (int32_t v = 0; v < n; ++v) chosen[v] = !chosen[v];
}
