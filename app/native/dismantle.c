/* Annealing of the sets that dismantle a graph, and the greedy rules it begins with; app/search/dismantle/search.py
 * describes the search and its arrays, app/search/dismantle/plain.py has the same functions with the same results. */
#include "gain_heap.h"
#include "heap.h"

enum { CHOICES = 64, CHECKS = 64, SHIFT = 12, SELDOM = 20 };

typedef struct {
    int64_t n;
    const int64_t *indptr, *size, *weight; /* [n+1]; [n] or null: all one */
    const int32_t *indices;                /* [nnz] */
    const int64_t *hot, *escape;           /* [KINDS]; [DRAWS] */
    uint8_t *best_left;                    /* [n] */
    int32_t *order, *place, *moved;        /* [n] nodes that are left behind those that are taken; places; changes */
    int32_t *label;                        /* [n] the component of a node that is left, -1 of another */
    int32_t *spare;                        /* [n] numbers of no component: `spares` of them */
    int32_t *met, *out, *queue;            /* [n] scratch */
    int64_t *total, *contact;              /* [n] of components: size; scratch, 0 */
    int64_t taken, cost, best, steps, found_at, moved_size, cycle, at, spares, most, unit, largest, first, cold;
    uint64_t random;
} Search;

#include "annealed_set.h"

INLINE int64_t size_of(const int64_t *size, int32_t v) { return size ? size[v] : 1; }

/* ---- components ----------------------------------------------------------------------------------------------- */

/* All that is joined with `from` in component `old` gets another number; returns its size. */
static int64_t relabel(Search *s, int32_t from, int32_t old, int32_t number) {
    int64_t filled = 0, total = 0;
    s->label[from] = number;
    s->queue[filled++] = from;
    for (int64_t read = 0; read < filled; ++read) {
        const int32_t v = s->queue[read];
        total += size_of(s->size, v);
        for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
            const int32_t u = s->indices[j];
            if (s->label[u] != old) continue;
            s->label[u] = number;
            s->queue[filled++] = u;
        }
    }
    return total;
}

/* The components next to v, in the order of its neighbours, go to `met`, what their nodes there weigh to `contact`, and
 * *sum is their size. Returns how many there are. */
INLINE int64_t gather(Search *s, int32_t v, int64_t *sum) {
    int64_t count = 0;
    *sum = 0;
    for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
        const int32_t u = s->indices[j], c = s->label[u];
        if (c < 0) continue;
        if (!s->contact[c]) {
            s->met[count++] = c;
            *sum += s->total[c];
        }
        s->contact[c] += worth(s, u);
    }
    return count;
}

INLINE void forget(Search *s, int64_t count) {
    for (int64_t i = 0; i < count; ++i) s->contact[s->met[i]] = 0;
}

/* v is no longer taken: it joins the components next to it, in the number of the largest. */
static void enter(Search *s, int32_t v) {
    int32_t into = -1;
    int64_t sum;
    const int64_t count = gather(s, v, &sum);
    for (int64_t i = 0; i < count; ++i)
        if (into < 0 || s->total[s->met[i]] > s->total[into]) into = s->met[i];
    forget(s, count);
    if (into < 0) {
        into = s->spare[--s->spares];
        s->total[into] = 0;
    }
    for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
        const int32_t u = s->indices[j], c = s->label[u];
        if (c < 0 || c == into) continue;
        s->total[into] += relabel(s, u, c, into);
        s->spare[s->spares++] = c;
    }
    s->label[v] = into;
    s->total[into] += size_of(s->size, v);
    out_of_set(s, v);
}

/* v is taken: what it held together falls into pieces. */
static void leave(Search *s, int32_t v) {
    const int32_t old = s->label[v];
    int64_t joined = 0;
    s->label[v] = -1;
    s->total[old] -= size_of(s->size, v);
    for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) joined += s->label[s->indices[j]] == old;
    if (joined > 1)
        for (int64_t j = s->indptr[v]; j < s->indptr[v + 1] && s->total[old]; ++j) {
            const int32_t u = s->indices[j];
            if (s->label[u] != old) continue;
            const int32_t number = s->spare[--s->spares];
            s->total[number] = relabel(s, u, old, number);
            s->total[old] -= s->total[number];
        }
    if (!s->total[old]) s->spare[s->spares++] = old;
    into_set(s, v);
}

/* Whether v joins nothing that becomes too large. */
INLINE int fits(Search *s, int32_t v) {
    int64_t sum;
    forget(s, gather(s, v, &sum));
    return sum + size_of(s->size, v) <= s->most;
}

/* Go on from the best set, without nodes that it does not need, from a drawn one on. */
static void go_back(Search *s) {
    const int32_t n = (int32_t)s->n;
    if (!n) return;
    const int32_t shift = (int32_t)random_below(&s->random, (uint32_t)n);
    int64_t head = 0, tail = n;
    for (int32_t v = 0; v < n; ++v) {
        const int64_t at = s->best_left[v] ? --tail : head++;
        s->order[at] = v;
        s->place[v] = (int32_t)at;
        s->label[v] = s->best_left[v] ? n : -1;
        s->contact[v] = 0;
    }
    s->taken = head;
    int32_t components = 0;
    for (int32_t v = 0; v < n; ++v)
        if (s->label[v] == n) {
            s->total[components] = relabel(s, v, n, components);
            ++components;
        }
    s->spares = 0;
    for (int32_t c = n; c-- > components;) s->spare[s->spares++] = c;
    s->cost = s->best;
    s->moved_size = 0;
    for (int32_t i = 0; i < n; ++i) {
        const int32_t v = turned(i, shift, n);
        if (s->label[v] < 0 && fits(s, v)) enter(s, v);
    }
    keep(s);
    s->moved_size = 0;
}

void lk_dismantle_return(Search *s) { go_back(s); }

/* ---- steps ---------------------------------------------------------------------------------------------------- */

/* Components that v is kept apart from, so that what it joins is small: a drawn one, where `first` is below `count`;
 * then those whose nodes next to v weigh least for their size, one after the other, as long as there is too much; then
 * those back that do have room, the last first. `contact` is below 0 of them. Returns what their nodes next to v weigh,
 * -1: too many to choose from. */
INLINE int64_t keep_apart(Search *s, int64_t count, int64_t sum, int64_t room, int64_t first) {
    int64_t weight = 0, apart = 0;
    int32_t chosen[CHOICES];
    if (sum <= room) return 0;
    if (count > CHOICES || room < 0) return -1;
    while (sum > room) {
        int32_t best = -1;
        if (!apart && first < count) best = s->met[first];
        else
            for (int64_t i = 0; i < count; ++i) {
                const int32_t c = s->met[i];
                if (s->contact[c] < 0) continue;
                if (best < 0 ||
                    (__int128)s->contact[c] * s->total[best] < (__int128)s->contact[best] * s->total[c])
                    best = c;
            }
        weight += s->contact[best];
        s->contact[best] = -s->contact[best];
        sum -= s->total[best];
        chosen[apart++] = best;
    }
    while (apart--) {
        const int32_t c = chosen[apart];
        if (sum + s->total[c] > room) continue;
        sum += s->total[c];
        s->contact[c] = -s->contact[c];
        weight -= s->contact[c];
    }
    return weight;
}

/* A node that is left is taken, if that is let pass. */
INLINE void take(Search *s, int64_t coldness, uint64_t draw) {
    const int64_t left = s->n - s->taken;
    if (!left) return;
    const int32_t v = s->order[s->taken + (int64_t)(((draw >> 32) * (uint64_t)left) >> 32)];
    if (!passes(s, worth(s, v), coldness, draw)) return;
    keep(s);
    leave(s, v);
}

/* A node that is taken is left instead of its neighbours in some components, if that is let pass. */
INLINE void propose(Search *s, int64_t coldness) {
    if (!s->taken) return;
    const uint64_t draw = random_bits(&s->random);
    if (!(draw >> SELDOM & 15)) {
        take(s, coldness, draw);
        return;
    }
    const int32_t v = s->order[(int64_t)(((draw >> 32) * (uint64_t)s->taken) >> 32)];
    int64_t sum, leaving = 0;
    const int64_t count = gather(s, v, &sum);
    const int64_t drawn = (int64_t)(draw >> SHIFT & (CHOICES - 1)); /* often no component's */
    const int64_t weight = keep_apart(s, count, sum, s->most - size_of(s->size, v), drawn);
    const int64_t loss = weight - worth(s, v);
    const int made = weight >= 0 && (loss <= 0 || passes(s, loss, coldness, draw));
    if (made && weight)
        for (int64_t j = s->indptr[v]; j < s->indptr[v + 1]; ++j) {
            const int32_t u = s->indices[j];
            if (s->label[u] >= 0 && s->contact[s->label[u]] < 0) s->out[leaving++] = u;
        }
    forget(s, count);
    if (!made) return;
    if (loss > 0) keep(s);
    for (int64_t i = 0; i < leaving; ++i) leave(s, s->out[i]);
    enter(s, v);
    for (int64_t i = 0; i < leaving; ++i)
        if (fits(s, s->out[i])) enter(s, s->out[i]);
}

void lk_dismantle_anneal(Search *s, int64_t count) { anneal(s, count); }

/* ---- greedy rules ---------------------------------------------------------------------------------------------- */

/* What a forest, the nodes that are not chosen, still needs: of each tree, from the leaves up, nodes with more than
 * `most` below them. chosen [n]; queue, above [n] and total [n] scratch. */
void lk_dismantle_trees(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *size, int64_t most,
                        uint8_t *chosen, int32_t *queue, int32_t *above, int64_t *total) {
    int64_t filled = 0, read = 0;
    for (int32_t v = 0; v < n; ++v) {
        above[v] = -2;
        total[v] = size_of(size, v);
    }
    for (int32_t first = 0; first < n; ++first) {
        if (chosen[first] || above[first] != -2) continue;
        above[first] = -1;
        for (queue[filled++] = first; read < filled; ++read) {
            const int32_t v = queue[read];
            for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
                const int32_t u = indices[j];
                if (chosen[u] || above[u] != -2) continue;
                above[u] = v;
                queue[filled++] = u;
            }
        }
    }
    while (filled--) {
        const int32_t v = queue[filled];
        if (total[v] > most) chosen[v] = 1;
        else if (above[v] >= 0) total[above[v]] += total[v];
    }
}

/* Of a node its own size and that of the components that it would join; mark [n] of roots, below `stamp`. */
INLINE int64_t joined(const int64_t *indptr, const int32_t *indices, const int64_t *size, const uint8_t *chosen,
                      int32_t *part, const int64_t *total, int64_t *mark, int64_t stamp, int32_t v) {
    int64_t sum = size_of(size, v);
    for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
        if (chosen[indices[j]]) continue;
        const int32_t r = root(part, indices[j]);
        if (mark[r] == stamp) continue;
        mark[r] = stamp;
        sum += total[r];
    }
    return sum;
}

/* Chosen nodes go back, the one first that makes the smallest component for its gain [n] of at most `top`, as long as
 * none is larger than `most`; once `limit` entries of nodes whose components had grown were looked at, others go back by
 * what they were last seen to make. chosen [n]; order [n]: the nodes, as they go back; part [n], total [n], mark [n]
 * scratch. Returns how many there are, -1 without memory. */
int64_t lk_dismantle_reinsert(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *size,
                              const int64_t *gain, int64_t top, int64_t most, int64_t limit, uint8_t *chosen,
                              int32_t *order, int32_t *part, int64_t *total, int64_t *mark) {
    Heap heap = {malloc((size_t)(n + 1) * sizeof(int64_t)), 0, n + 1};
    int64_t count = 0, stamp = 0, looked = 0;
    if (!heap.key) return -1;
    for (int32_t v = 0; v < n; ++v) {
        part[v] = v;
        total[v] = size_of(size, v);
        mark[v] = 0;
    }
    for (int32_t v = 0; v < n; ++v) {
        if (chosen[v]) continue;
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
            if (indices[j] > v || chosen[indices[j]]) continue;
            const int32_t r = root(part, indices[j]), own = root(part, v);
            if (r == own) continue;
            total[own] += total[r];
            part[r] = own;
        }
    }
    for (int32_t v = 0; v < n; ++v) {
        if (!chosen[v]) continue;
        const int64_t sum = joined(indptr, indices, size, chosen, part, total, mark, ++stamp, v);
        if (sum <= most && heap_push(&heap, sum * top / gain[v] * n + v)) count = -1;
    }
    while (count >= 0 && heap.count) {
        const int64_t key = heap_pop(&heap);
        const int32_t v = (int32_t)(key % n);
        const int64_t sum = joined(indptr, indices, size, chosen, part, total, mark, ++stamp, v);
        if (sum > most) continue;
        if (sum * top / gain[v] != key / n && looked <= limit) {
            looked += indptr[v + 1] - indptr[v];
            if (heap_push(&heap, sum * top / gain[v] * n + v)) count = -1;
            continue;
        }
        chosen[v] = 0;
        order[count++] = v;
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j)
            if (!chosen[indices[j]]) part[root(part, indices[j])] = v;
        total[v] = sum;
    }
    free(heap.key);
    return count;
}

/* Nodes of the largest component as nodes [count] of an order go back, the last one first: found[i] while those before
 * i are out. found[count] is given. part [n], total [n]: of what is left without them; gone [n] marks them. */
void lk_dismantle_curve(const int64_t *indptr, const int32_t *indices, int64_t count, const int64_t *order,
                        int32_t *part, int64_t *total, uint8_t *gone, int64_t *found) {
    for (int64_t i = count - 1; i >= 0; --i) {
        const int32_t v = (int32_t)order[i];
        gone[v] = 0;
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) {
            if (gone[indices[j]]) continue;
            const int32_t r = root(part, indices[j]);
            if (r == v) continue;
            part[r] = v;
            total[v] += total[r];
        }
        found[i] = found[i + 1] > total[v] ? found[i + 1] : total[v];
    }
}

/* The nodes of a set in the order of their degrees in what is left, most first. left [n] marks them, degree [n] is given:
 * both are changed; room: an entry of a heap for each; order: [k]. */
void lk_dismantle_by_degree(int64_t n, const int64_t *indptr, const int32_t *indices, uint8_t *left, int64_t *degree,
                            void *room, int64_t *order) {
    Gain *heap = room;
    int64_t size = 0, taken = 0;
    for (int32_t v = 0; v < n; ++v)
        if (left[v]) heap[size++] = (Gain){(double)degree[v], v};
    for (int64_t at = size / 2 - 1; at >= 0; --at) settle(heap, size, at);
    while (size) {
        const int32_t v = heap[0].node;
        if (heap[0].key != (double)degree[v]) {
            heap[0].key = (double)degree[v];
        } else {
            left[v] = 0;
            order[taken++] = v;
            for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j) degree[indices[j]] -= left[indices[j]];
            heap[0] = heap[--size];
        }
        settle(heap, size, 0);
    }
}

typedef struct {
    int64_t n;
    const int64_t *indptr;
    const int32_t *indices;
    int64_t *degree; /* [n], -1 of nodes that have gone */
    int32_t *queue;  /* [n] nodes of the last ball */
    int64_t *mark;   /* [n] */
    int64_t stamp, work;
} Balls;

/* The nodes within so many steps of v go to the queue, v first; returns how many, and in *edge where those that are as
 * far begin. */
INLINE int64_t ball(Balls *b, int32_t *queue, int32_t v, int64_t radius, int64_t *edge) {
    int64_t filled = 1, read = 0;
    ++b->stamp;
    b->mark[v] = b->stamp;
    queue[0] = v;
    *edge = 0;
    for (int64_t step = 0; step < radius; ++step) {
        const int64_t end = filled;
        for (; read < end; ++read) {
            const int32_t at = queue[read];
            b->work += b->indptr[at + 1] - b->indptr[at];
            for (int64_t j = b->indptr[at]; j < b->indptr[at + 1]; ++j) {
                const int32_t u = b->indices[j];
                if (b->degree[u] < 0 || b->mark[u] == b->stamp) continue;
                b->mark[u] = b->stamp;
                queue[filled++] = u;
            }
        }
        *edge = end;
    }
    return filled;
}

/* Degree, or collective influence within a radius and, where that is equal, degree. */
INLINE int64_t influence(Balls *b, int32_t v, int64_t radius, int64_t scale) {
    int64_t edge, sum = 0;
    if (!radius) return b->degree[v];
    if (b->degree[v] < 1) return 0;
    const int64_t count = ball(b, b->queue, v, radius, &edge);
    for (int64_t i = edge; i < count; ++i) sum += b->degree[b->queue[i]] - 1;
    return (b->degree[v] - 1) * sum * scale + b->degree[v];
}

/* Whether no component of the nodes that are there is larger than `most`. */
static int apart(Balls *b, const int64_t *size, int64_t most) {
    ++b->stamp;
    for (int32_t first = 0; first < b->n; ++first) {
        if (b->degree[first] < 0 || b->mark[first] == b->stamp) continue;
        int64_t filled = 1, total = 0;
        b->mark[first] = b->stamp;
        b->queue[0] = first;
        for (int64_t read = 0; read < filled; ++read) {
            const int32_t v = b->queue[read];
            total += size_of(size, v);
            if (total > most) return 0;
            for (int64_t j = b->indptr[v]; j < b->indptr[v + 1]; ++j) {
                const int32_t u = b->indices[j];
                if (b->degree[u] < 0 || b->mark[u] == b->stamp) continue;
                b->mark[u] = b->stamp;
                b->queue[filled++] = u;
            }
        }
    }
    return 1;
}

/* Nodes by their influence in what is left, times gain [n], the largest first, until some time after no component is
 * larger than `most`. degree [n]: those of the graph; order [n]: the nodes; queue, near [n], mark, value [n] scratch.
 * Returns how many there are, -1 without memory, -2: more than `limit` entries were looked at. */
int64_t lk_dismantle_order(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *size,
                           const int64_t *gain, int64_t radius, int64_t scale, int64_t most, int64_t limit,
                           int64_t *degree, int32_t *order, int32_t *queue, int32_t *near, int64_t *mark,
                           int64_t *value) {
    Heap heap = {malloc((size_t)(n + 1) * sizeof(int64_t)), 0, n + 1};
    Balls b = {n, indptr, indices, degree, queue, mark, 0, 0};
    int64_t count = 0, edge, every = n / CHECKS + 1;
    if (!heap.key) return -1;
    for (int32_t v = 0; v < n; ++v) mark[v] = 0;
    for (int32_t v = 0; v < n; ++v) {
        value[v] = influence(&b, v, radius, scale) * gain[v];
        if (heap_push(&heap, v - value[v] * n)) count = -1;
    }
    while (count >= 0 && heap.count && b.work <= limit) {
        if (count % every == 0 && apart(&b, size, most)) break;
        int32_t v = -1;
        while (heap.count && v < 0) {
            const int64_t key = heap_pop(&heap), at = (key % n + n) % n;
            if (degree[at] >= 0 && value[at] == (at - key) / n) v = (int32_t)at;
        }
        if (v < 0) break;
        const int64_t reached = ball(&b, near, v, radius + 1, &edge);
        for (int64_t j = indptr[v]; j < indptr[v + 1]; ++j)
            if (degree[indices[j]] >= 0) --degree[indices[j]];
        degree[v] = -1;
        order[count++] = v;
        for (int64_t i = 1; i < reached && count >= 0; ++i) {
            const int32_t u = near[i];
            const int64_t now = influence(&b, u, radius, scale) * gain[u];
            if (now == value[u]) continue;
            value[u] = now;
            if (heap_push(&heap, u - now * n)) count = -1;
        }
    }
    free(heap.key);
    return count >= 0 && b.work > limit ? -2 : count;
}
