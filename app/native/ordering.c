/* Orders of the nodes of a digraph with little weight backward; app/search/ordering/search.py describes the search
 * and its arrays, app/search/ordering/plain.py has the same functions with the same results. */
#include <stdlib.h>

#include "random.h"
#include "sift.h"

enum { DRAWS = 4096, WINDOW = 10, MOVES = 8192 };

typedef struct {
    int64_t label, pull;
    int32_t node;
} Near;

typedef struct {
    int64_t n;
    const int64_t *ptr;                  /* [n+1] */
    const int32_t *near;                 /* [2 arcs] nodes at the other ends of the arcs of each node */
    const int64_t *pull;                 /* [2 arcs] what it gains to have that node before it; below 0: behind it */
    const int64_t *dense;                /* [n, n] the same of all pairs, or null */
    const int64_t *escape;               /* [DRAWS] */
    int64_t *label;                      /* [n+1] ascending along the order; label[n] = 0, that of the beginning */
    int32_t *next, *before;              /* [n+1] along the order, a ring with n for both ends */
    int32_t *queue;                      /* [n] a ring of nodes whose best place may have changed */
    uint8_t *queued;                     /* [n] */
    int32_t *moves;                      /* [3 MOVES] of this trial: the node, what it stood behind, and stands */
    int32_t *best_order;                 /* [n] */
    int32_t *best_next, *best_before;    /* [n+1] a ring as next and before, of the best order some moves ago */
    int32_t *since;                      /* [2 (n + MOVES)] these moves: the node, and what it stands behind */
    Near *scratch;                       /* [largest degree] */
    int64_t *table;                      /* [(WINDOW + 1) << WINDOW] */
    int64_t head, size, made, cost, current, best, steps, found_at, unsaved, descending, stale, patience, trials, heat,
        shift, kicks, every, listed, kept, passed;
    uint64_t random;
} Search;

INLINE int64_t placed(const Search *s) { return s->n; }

#include "labels.h"

/* ---- the order ---------------------------------------------------------------------------------------------- */

/* v goes behind p, which is another node, n being the beginning. */
static void place(Search *s, int32_t v, int32_t p) {
    if (s->before[v] == p) return;
    cut_out(s, v);
    link_behind(s, v, p);
}

INLINE void push(Search *s, int32_t v) {
    if (s->queued[v]) return;
    int64_t at = s->head + s->size++;
    if (at >= s->n) at -= s->n;
    s->queue[at] = v;
    s->queued[v] = 1;
}

INLINE int32_t pop(Search *s) {
    const int32_t v = s->queue[s->head];
    if (++s->head == s->n) s->head = 0;
    --s->size;
    s->queued[v] = 0;
    return v;
}

static void move(Search *s, int32_t v, int32_t p) {
    if (!s->descending) {
        int32_t *at = s->moves + 3 * s->made++;
        at[0] = v;
        at[1] = s->before[v];
        at[2] = p;
    }
    place(s, v, p);
}

static void undo(Search *s) {
    for (int64_t i = s->made - 1; i >= 0; --i) place(s, s->moves[3 * i], s->moves[3 * i + 1]);
}

static void redo(Search *s) {
    for (int64_t i = 0; i < s->made; ++i) place(s, s->moves[3 * i], s->moves[3 * i + 2]);
}

/* This trial stays: the ring of the best order lacks its moves, too. */
static void pass(Search *s) {
    if (s->passed + s->made > s->n + MOVES) s->listed = 0;
    if (!s->listed) return;
    for (int64_t i = 0; i < s->made; ++i) {
        int32_t *at = s->since + 2 * s->passed++;
        at[0] = s->moves[3 * i];
        at[1] = s->moves[3 * i + 2];
    }
}

/* The state before this trial is the best: moves are made up for, or, where they are too many, all is copied. */
static void keep(Search *s) {
    if (s->listed) {
        int32_t *next = s->best_next, *before = s->best_before;
        for (int64_t i = 0; i < s->passed; ++i) {
            const int32_t v = s->since[2 * i], p = s->since[2 * i + 1];
            if (before[v] == p) continue;
            next[before[v]] = next[v];
            before[next[v]] = before[v];
            next[v] = next[p];
            before[v] = p;
            before[next[v]] = v;
            next[p] = v;
        }
    } else {
        const size_t size = (size_t)(s->n + 1) * sizeof *s->next;
        if (s->made) undo(s);
        memcpy(s->best_next, s->next, size);
        memcpy(s->best_before, s->before, size);
        if (s->made) redo(s);
        s->listed = 1;
    }
    s->passed = 0;
    s->unsaved = 0;
    s->kept = 1;
}

/* The best order, where it is another than before this call. */
static void tell(Search *s) {
    if (s->unsaved) keep(s);
    if (!s->kept) return;
    int64_t i = 0;
    for (int32_t v = s->best_next[s->n]; v != s->n; v = s->best_next[v]) s->best_order[i++] = v;
}

/* ---- steps -------------------------------------------------------------------------------------------------- */

static int by_label(const void *a, const void *b) {
    const int64_t x = ((const Near *)a)->label, y = ((const Near *)b)->label;
    return (x > y) - (x < y);
}

/* The neighbours of v in the order of their places; returns how many stand before it. */
static int64_t sorted_near(Search *s, int32_t v) {
    const int64_t first = s->ptr[v], degree = s->ptr[v + 1] - first, label = s->label[v];
    int64_t ahead = 0;
    Near *near = s->scratch;
    for (int64_t i = 0; i < degree; ++i) {
        const int32_t u = s->near[first + i];
        near[i].label = s->label[u];
        near[i].pull = s->pull[first + i];
        near[i].node = u;
        ahead += near[i].label < label;
    }
    if (degree > 24) {
        qsort(near, (size_t)degree, sizeof *near, by_label);
        return ahead;
    }
    for (int64_t i = 1; i < degree; ++i) {
        const Near each = near[i];
        int64_t at = i;
        for (; at && near[at - 1].label > each.label; --at) near[at] = near[at - 1];
        near[at] = each;
    }
    return ahead;
}

/* v goes to where it gains most, of such places to the nearest, behind rather than before; those that it passes wait. */
static void settle_sparse(Search *s, int32_t v) {
    const Near *near = s->scratch;
    const int64_t degree = s->ptr[v + 1] - s->ptr[v], ahead = sorted_near(s, v);
    int64_t gain = 0, most = 0, at = -1;
    for (int64_t i = ahead; i < degree; ++i)
        if ((gain += near[i].pull) > most) {
            most = gain;
            at = i;
        }
    gain = 0;
    for (int64_t i = ahead - 1; i >= 0; --i)
        if ((gain -= near[i].pull) > most) {
            most = gain;
            at = i;
        }
    if (!most) return;
    move(s, v, at >= ahead ? near[at].node : s->before[near[at].node]);
    s->cost -= most;
    if (at >= ahead)
        for (int64_t i = ahead; i <= at; ++i) push(s, near[i].node);
    else
        for (int64_t i = ahead - 1; i >= at; --i) push(s, near[i].node);
}

static void settle_dense(Search *s, int32_t v) {
    const int64_t *row = s->dense + (int64_t)v * s->n;
    int64_t gain = 0, most = 0;
    int32_t at = -1, back = -1;
    for (int32_t u = s->next[v]; u != s->n; u = s->next[u])
        if ((gain += row[u]) > most) {
            most = gain;
            at = u;
        }
    gain = 0;
    for (int32_t u = s->before[v]; u != s->n; u = s->before[u])
        if ((gain -= row[u]) > most) {
            most = gain;
            back = u;
        }
    if (!most) return;
    const int32_t after = s->next[v], ahead = s->before[v];
    move(s, v, back >= 0 ? s->before[back] : at);
    s->cost -= most;
    if (back >= 0) {
        for (int32_t u = ahead;; u = s->before[u]) {
            if (row[u]) push(s, u);
            if (u == back) break;
        }
    } else {
        for (int32_t u = after;; u = s->next[u]) {
            if (row[u]) push(s, u);
            if (u == at) break;
        }
    }
}

INLINE void settle(Search *s, int32_t v) {
    if (s->dense)
        settle_dense(s, v);
    else
        settle_sparse(s, v);
}

/* v goes to the other side of a neighbour, to be next to it. */
static void kick(Search *s, int32_t v, int32_t u) {
    const int64_t from = s->label[v], to = s->label[u], first = s->ptr[v], last = s->ptr[v + 1];
    int64_t loss = 0;
    for (int64_t i = first; i < last; ++i) {
        const int64_t label = s->label[s->near[i]];
        if (from < to ? label > from && label <= to : label < from && label >= to) {
            loss -= from < to ? s->pull[i] : -s->pull[i];
            push(s, s->near[i]);
        }
    }
    move(s, v, from < to ? u : s->before[u]);
    s->cost += loss;
    push(s, v);
}

/* The best order of some nodes that follow each other: Held and Karp's program of subsets. */
static void window(Search *s) {
    int32_t node[WINDOW];
    int64_t above[WINDOW][WINDOW];       /* what it costs to have the one before the other */
    int64_t *least = s->table, *behind = s->table + (INT64_C(1) << WINDOW);
    int32_t v = (int32_t)random_below(&s->random, (uint32_t)s->n);
    const int32_t first = s->before[v];
    int k = 0;
    for (; v != s->n && k < WINDOW; v = s->next[v]) node[k++] = v;
    memset(above, 0, sizeof above);
    for (int i = 0; i < k; ++i)
        for (int64_t j = s->ptr[node[i]]; j < s->ptr[node[i] + 1]; ++j) {
            const int64_t label = s->label[s->near[j]];
            if (s->pull[j] > 0 && label >= s->label[node[0]] && label <= s->label[node[k - 1]])
                for (int l = 0; l < k; ++l)
                    if (node[l] == s->near[j]) above[i][l] = s->pull[j];
        }
    int64_t now = 0;
    for (int i = 0; i < k; ++i)
        for (int j = i + 1; j < k; ++j) now += above[i][j];
    if (!now) return;
    const int64_t full = (INT64_C(1) << k) - 1;
    for (int i = 0; i < k; ++i) behind[(int64_t)i << WINDOW] = 0;
    least[0] = 0;
    for (int64_t set = 1; set <= full; ++set) {
        const int64_t rest = set & (set - 1);
        int low = 0;
        while (!(set >> low & 1)) ++low;
        for (int i = 0; i < k; ++i)
            behind[((int64_t)i << WINDOW) + set] = behind[((int64_t)i << WINDOW) + rest] + above[low][i];
        int64_t best = TOP;
        for (int i = k - 1; i >= 0; --i)
            if (set >> i & 1) {
                const int64_t other = set ^ (INT64_C(1) << i);
                const int64_t cost = least[other] + behind[((int64_t)i << WINDOW) + other];
                if (cost < best) best = cost;
            }
        least[set] = best;
    }
    if (least[full] >= now) return;
    int32_t order[WINDOW];
    int64_t set = full;
    for (int at = k - 1; at >= 0; --at)
        for (int i = k - 1; i >= 0; --i) {
            const int64_t other = set ^ (INT64_C(1) << i);
            if (set >> i & 1 && least[set] == least[other] + behind[((int64_t)i << WINDOW) + other]) {
                order[at] = node[i];
                set = other;
                break;
            }
        }
    int32_t p = first;
    for (int i = 0; i < k; ++i) {
        if (s->before[order[i]] != p) move(s, order[i], p);
        push(s, p = order[i]);
    }
    s->cost += least[full] - now;
}

/* Whether what a trial has come to is taken; else all is as before it. */
static void judge(Search *s) {
    if (s->descending) {
        s->descending = 0;
    } else if (s->made) {
        const int64_t better = s->cost < s->best;
        int64_t slack = 0;
        if (better) {
            s->best = s->cost;
            s->found_at = s->steps;
            s->unsaved = 1;
            s->stale = 0;
        } else {
            slack = s->heat * s->escape[random_bits(&s->random) % DRAWS] >> s->shift;
            ++s->stale;
        }
        if (!better && (s->cost > s->current + slack || s->made >= MOVES - WINDOW - s->kicks)) {
            undo(s);
            s->cost = s->current;
        } else {
            /* The earlier of two as good ones is kept, wherever a call has ended. */
            if (!better && s->unsaved) keep(s);
            pass(s);
        }
    }
    s->made = 0;
    s->current = s->cost;
}

static void begin(Search *s) {
    if (++s->trials % s->every == 0) {
        window(s);
        return;
    }
    const int64_t kicks = 1 + random_below(&s->random, (uint32_t)s->kicks);
    int32_t v = (int32_t)random_below(&s->random, (uint32_t)s->n);
    for (int64_t i = 0; i < kicks; ++i) {
        const int64_t first = s->ptr[v], degree = s->ptr[v + 1] - first;
        const int32_t u = s->near[first + random_below(&s->random, (uint32_t)degree)];
        kick(s, v, u);
        v = u;
    }
}

/* At most `count` steps, each a node that is settled or a trial that is begun; fewer where a round is over, which is
 * when so many trials have found nothing better. Returns how many. */
int64_t lk_order_run(Search *s, int64_t count) {
    int64_t done = 0;
    s->listed = s->kept = 0;
    while (done < count) {
        if (!s->size) {
            judge(s);
            if (s->stale >= s->patience) break;
        }
        ++done;
        ++s->steps;
        if (!s->size) {
            begin(s);
            continue;
        }
        settle(s, pop(s));
        if (s->descending && s->cost < s->best) {
            s->best = s->cost;
            s->found_at = s->steps;
            s->unsaved = 1;
        }
        if (s->made >= MOVES - WINDOW - s->kicks)  /* a trial as long as that is given up */
            while (s->size) pop(s);
    }
    tell(s);
    return done;
}

/* Go on from an order [n], from which every node is settled first. */
void lk_order_load(Search *s, const int32_t *order) {
    while (s->size) pop(s);
    link_all(s, order, s->n);
    s->cost = 0;
    for (int64_t v = 0; v < s->n; ++v)
        for (int64_t i = s->ptr[v]; i < s->ptr[v + 1]; ++i)
            if (s->pull[i] > 0 && s->label[s->near[i]] > s->label[v]) s->cost += s->pull[i];
    for (int64_t i = 0; i < s->n; ++i) push(s, order[i]);
    s->descending = 1;
    s->made = s->stale = 0;
    s->current = s->cost;
}

/* ---- other orders ------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t key;
    int32_t node;
} Entry;

INLINE int ahead(Entry a, Entry b) { return a.key != b.key ? a.key > b.key : a.node < b.node; }

SIFTS(Entry, ahead, rise, sink)

static void heap_push(Entry *heap, int64_t *size, Entry each) { rise(heap, (*size)++, each); }

static Entry heap_pop(Entry *heap, int64_t *size) {
    const Entry top = heap[0];
    *size -= 1;
    sink(heap, *size, 0, heap[*size]);
    return top;
}

/* A set of numbers below n whose smallest is found in a few words: a bit for each, and for each word of bits that is not 0
 * one of the next level, up to a single word. */
enum { LEVELS = 7 };

typedef struct {
    uint64_t *level[LEVELS];
    int64_t top;
} Bits;

INLINE void bits_put(Bits *b, int64_t v) {
    for (int64_t i = 0; i <= b->top; ++i, v >>= 6) b->level[i][v >> 6] |= (uint64_t)1 << (v & 63);
}

/* The smallest leaves; there is one. */
INLINE int64_t bits_pop(Bits *b) {
    int64_t v = 0;
    for (int64_t i = b->top; i >= 0; --i) v = v << 6 | __builtin_ctzll(b->level[i][v]);
    int64_t at = v;
    for (int64_t i = 0; i <= b->top; ++i, at >>= 6)
        if (b->level[i][at >> 6] &= ~((uint64_t)1 << (at & 63))) break;
    return v;
}

/* The order in which every arc leads forward, smallest nodes first; words [n / 32 + 8] zeros. Returns how many have
 * such a place: fewer than n where there is a cycle. */
int64_t lk_order_least(int64_t n, const int64_t *ptr, const int32_t *heads, int32_t *degree, uint64_t *words,
                       int32_t *order) {
    Bits ready = {{words}, 0};
    int64_t done = 0;
    for (int64_t size = (n + 63) / 64; size > 1; size = (size + 63) / 64, ++ready.top)
        ready.level[ready.top + 1] = ready.level[ready.top] + size;
    for (int64_t i = 0; i < ptr[n]; ++i) ++degree[heads[i]];
    for (int64_t v = 0; v < n; ++v)
        if (!degree[v]) bits_put(&ready, v);
    while (*ready.level[ready.top]) {
        const int64_t v = bits_pop(&ready);
        order[done++] = (int32_t)v;
        for (int64_t i = ptr[v]; i < ptr[v + 1]; ++i)
            if (!--degree[heads[i]]) bits_put(&ready, heads[i]);
    }
    return done;
}

/* Eades, Lin and Smyth 1993, with weights: nodes without arcs out go to the end, those without arcs in to the
 * beginning, else the one whose arcs out weigh most over those in. outs, ins [n] counts, gap [n], heap [n + 2 arcs],
 * gone [n]; order [n]. */
void lk_order_greedy(int64_t n, const int64_t *ptr, const int32_t *near, const int64_t *pull, int32_t *outs,
                     int32_t *ins, int64_t *gap, Entry *heap, int32_t *waiting, uint8_t *gone, int32_t *order) {
    int64_t size = 0, waits = 0, left = 0, right = n;
    for (int64_t v = 0; v < n; ++v) {
        for (int64_t i = ptr[v]; i < ptr[v + 1]; ++i) {
            ++(pull[i] > 0 ? ins : outs)[v];
            gap[v] -= pull[i];
        }
        heap_push(heap, &size, (Entry){gap[v], (int32_t)v});
    }
    for (int64_t v = n - 1; v >= 0; --v)
        if (!outs[v] || !ins[v]) waiting[waits++] = (int32_t)v;
    while (left < right) {
        int32_t v = -1;
        while (waits && v < 0)
            if (gone[v = waiting[--waits]]) v = -1;
        const int queued = v >= 0;
        while (v < 0) {
            const Entry top = heap_pop(heap, &size);
            if (!gone[top.node] && gap[top.node] == top.key) v = top.node;
        }
        gone[v] = 1;
        if (queued && !outs[v])
            order[--right] = v;
        else
            order[left++] = v;
        for (int64_t i = ptr[v]; i < ptr[v + 1]; ++i) {
            const int32_t u = near[i];
            if (gone[u]) continue;
            gap[u] -= pull[i];           /* an arc v -> u is one into u, of pull below 0 at v */
            if (!--(pull[i] > 0 ? outs : ins)[u])
                waiting[waits++] = u;
            else
                heap_push(heap, &size, (Entry){gap[u], u});
        }
    }
}

/* ---- packed cycles ------------------------------------------------------------------------------------------ */

typedef struct {
    int64_t n;
    const int64_t *out_ptr, *in_ptr;     /* [n+1] */
    const int32_t *out, *into;           /* [m] heads of arcs, in order of tails; tails, in order of heads */
    const int64_t *in_arc;               /* [m] which arc that is */
    const int32_t *turns;                /* [n] nodes in the order in which they are asked */
    int64_t *rest;                       /* [m] what is left of the weights */
    int64_t *seen, *goal;                /* [n] when a node was found from the root; when the root from it */
    int64_t *by, *last;                  /* [n] by which arc; the first of those from it to the root */
    int32_t *queue, *above;              /* [n] from the root; the node before */
    int32_t *back, *below;               /* [n] to the root; the node behind */
    int32_t *nodes;                      /* [room] of cycles, one behind the other */
    int64_t *ends, *values;              /* [room] */
    int64_t room, at, stamp, cycles, used;
} Packing;

/* The cycle from v to w, and from w back to v, uses up what its arcs have left in common. */
static void take(Packing *p, int32_t v, int32_t w) {
    int64_t value = INT64_MAX, place = p->used;
    for (int32_t x = w; x != v; x = p->above[x], ++place)
        if (p->rest[p->by[x]] < value) value = p->rest[p->by[x]];
    for (int32_t x = w; x != v; x = p->below[x])
        if (p->rest[p->last[x]] < value) value = p->rest[p->last[x]];
    int64_t end = place + 1;
    for (int32_t x = w; x != v; x = p->above[x]) {
        p->rest[p->by[x]] -= value;
        p->nodes[place--] = x;
    }
    p->nodes[place] = v;
    for (int32_t x = w; x != v; x = p->below[x]) {
        p->rest[p->last[x]] -= value;
        if (p->below[x] != v) p->nodes[end++] = p->below[x];
    }
    p->ends[p->cycles] = p->used = end;
    p->values[p->cycles++] = value;
}

/* The next nodes from the root; returns one that leads back to it, below 0: there is none. */
static int32_t grow_out(Packing *p, int64_t *from, int64_t *to) {
    for (const int64_t end = *to; *from < end; ++*from) {
        const int32_t u = p->queue[*from];
        for (int64_t i = p->out_ptr[u]; i < p->out_ptr[u + 1]; ++i) {
            const int32_t w = p->out[i];
            if (!p->rest[i] || p->seen[w] == p->stamp) continue;
            p->seen[w] = p->stamp;
            p->above[w] = u;
            p->by[w] = i;
            if (p->goal[w] == p->stamp) return w;
            p->queue[(*to)++] = w;
        }
    }
    return -1;
}

/* The next nodes that lead to the root; returns one that is led to from it, below 0: there is none. */
static int32_t grow_back(Packing *p, int64_t *from, int64_t *to) {
    for (const int64_t end = *to; *from < end; ++*from) {
        const int32_t u = p->back[*from];
        for (int64_t i = p->in_ptr[u]; i < p->in_ptr[u + 1]; ++i) {
            const int32_t w = p->into[i];
            if (!p->rest[p->in_arc[i]] || p->goal[w] == p->stamp) continue;
            p->goal[w] = p->stamp;
            p->below[w] = u;
            p->last[w] = p->in_arc[i];
            if (p->seen[w] == p->stamp) return w;
            p->back[(*to)++] = w;
        }
    }
    return -1;
}

/* Take a short cycle through v of at most `reach` arcs, by looking from both sides, where fewer nodes wait, until about
 * `most` nodes were looked at; returns how many were, below 0: and found none. */
static int64_t take_cycle(Packing *p, int32_t v, int64_t reach, int64_t most) {
    int64_t from = 0, to = 1, back_from = 0, back_to = 1, length = 0;
    p->queue[0] = p->back[0] = v;
    p->seen[v] = p->goal[v] = ++p->stamp;
    while (from < to && back_from < back_to && length < reach && to + back_to < most) {
        ++length;
        const int out = back_to > 1 && to - from <= back_to - back_from;  /* v ends neither side: first a step back */
        const int32_t w = out ? grow_out(p, &from, &to) : grow_back(p, &back_from, &back_to);
        if (w < 0) continue;
        take(p, v, w);
        return to + back_to;
    }
    return -(to + back_to);
}

/* Cycles through nodes by turns, from p->at on, until so many nodes were looked at or there is no more room. */
void lk_order_pack(Packing *p, int64_t reach, int64_t most, int64_t work) {
    while (p->at < p->n && work > 0) {
        if (p->used + p->n > p->room) return;
        const int64_t count = take_cycle(p, p->turns[p->at], reach, most);
        work -= count < 0 ? -count : count;
        if (count < 0) ++p->at;
    }
}
