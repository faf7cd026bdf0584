/* Elimination orders of graphs: what an order is worth, greedy orders, a local search over tree decompositions, and an
   exhaustive search. app/bounds/treewidth/plain_orders.py, app/search/treewidth/plain.py and app/bounds/treewidth/plain.py
   have the same with the same results. */
#include <stdlib.h>

#include "common.h"
#include "heap.h"
#include "lists.h"
#include "random.h"

typedef uint64_t Word;
INLINE int64_t weight_of(const int64_t *weight, int64_t v) { return weight ? weight[v] : 1; }
INLINE int bit_of(const Word *set, int64_t i) { return (int)(set[i >> 6] >> (i & 63) & 1); }
INLINE void put_bit(Word *set, int64_t i) { set[i >> 6] |= (Word)1 << (i & 63); }
INLINE void drop_bit(Word *set, int64_t i) { set[i >> 6] &= ~((Word)1 << (i & 63)); }

/* ---- what an order is worth ------------------------------------------------------------------------------------- */

/* parent [n]: of each node the first of its neighbours in the filled graph that are eliminated after it, -1 for none
   (Liu 1990). bag [n]: the sum of weights of a node and all of these: the row of a node i is met by the subtree of all
   nodes with a filled edge to it, whose leaves are found by postorder numbers (Gilbert, Ng and Peyton 1994).
   Returns -1 without memory. */
int64_t lk_order_bags(int64_t n, const int64_t *indptr, const int32_t *indices, const int32_t *order,
                      const int64_t *weight, int32_t *parent, int64_t *bag) {
    int32_t *room = malloc((size_t)(8 * n + 1) * sizeof *room);
    if (!room) return -1;
    int32_t *place = room, *up = room + n, *above = room + 2 * n, *child = room + 3 * n, *next = room + 4 * n;
    int32_t *first = room + 5 * n, *highest = room + 6 * n, *leaf = room + 7 * n;
    for (int64_t i = 0; i < n; i++) place[order[i]] = (int32_t)i;
    for (int64_t i = 0; i < n; i++) { /* by places from here on */
        const int64_t v = order[i];
        up[i] = above[i] = -1;
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) {
            int32_t j = place[indices[e]];
            while (j < i && j >= 0 && j != i) {
                const int32_t jump = above[j];
                above[j] = (int32_t)i;
                if (jump < 0) up[j] = (int32_t)i;
                j = jump < 0 || jump == i ? (int32_t)i : jump;
            }
        }
    }
    for (int64_t i = 0; i < n; i++) child[i] = first[i] = highest[i] = leaf[i] = -1;
    for (int64_t i = n - 1; i >= 0; i--) {
        next[i] = -1;
        if (up[i] >= 0) {
            next[i] = child[up[i]];
            child[up[i]] = (int32_t)i;
        }
    }
    int32_t *post = above; /* [n] places in postorder; the path-shortened pointers are done with */
    int64_t count = 0;
    for (int64_t root = 0; root < n; root++) {
        if (up[root] >= 0) continue;
        for (int32_t i = (int32_t)root;;) { /* child lists are used up on the way */
            if (child[i] >= 0) {
                const int32_t c = child[i];
                child[i] = next[c];
                i = c;
                continue;
            }
            post[count++] = i;
            if (i == root) break;
            i = up[i];
        }
    }
    for (int64_t k = 0; k < n; k++) {
        int32_t i = post[k];
        bag[i] = first[i] < 0 ? weight_of(weight, order[i]) : 0;
        for (; i >= 0 && first[i] < 0; i = up[i]) first[i] = (int32_t)k;
    }
    int32_t *joined = child; /* union of what is finished, by its highest node */
    for (int64_t i = 0; i < n; i++) joined[i] = (int32_t)i;
    for (int64_t k = 0; k < n; k++) {
        const int32_t j = post[k];
        const int64_t v = order[j];
        if (up[j] >= 0) bag[up[j]] -= weight_of(weight, v);
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) {
            const int32_t i = place[indices[e]];
            if (i <= j || first[j] <= highest[i]) continue;
            highest[i] = first[j];
            const int64_t w = weight_of(weight, order[i]);
            bag[j] += w;
            if (leaf[i] >= 0) {
                int32_t q = leaf[i];
                while (joined[q] != q) q = joined[q];
                for (int32_t s = leaf[i]; s != q;) {
                    const int32_t t = joined[s];
                    joined[s] = q;
                    s = t;
                }
                bag[q] -= w;
            }
            leaf[i] = j;
        }
        if (up[j] >= 0) joined[j] = up[j];
    }
    for (int64_t i = 0; i < n; i++)
        if (up[i] >= 0) bag[up[i]] += bag[i];
    for (int64_t i = 0; i < n; i++) parent[order[i]] = up[i] < 0 ? -1 : order[up[i]];
    int64_t *told = malloc((size_t)(n + 1) * sizeof *told);
    if (!told) {
        free(room);
        return -1;
    }
    for (int64_t i = 0; i < n; i++) told[order[i]] = bag[i];
    memcpy(bag, told, (size_t)n * sizeof *told);
    free(told);
    free(room);
    return 0;
}

/* The bags without their own nodes, [n] lists of nodes one behind the other from ptr [n + 1] on, in the order of
   elimination; size [n] says how long each is. Returns -1 without memory. */
int64_t lk_order_lists(int64_t n, const int64_t *indptr, const int32_t *indices, const int32_t *order,
                       const int32_t *parent, const int64_t *ptr, int32_t *lists) {
    int32_t *room = malloc((size_t)(4 * n + 1) * sizeof *room);
    if (!room) return -1;
    int32_t *place = room, *child = room + n, *next = room + 2 * n, *mark = room + 3 * n;
    for (int64_t i = 0; i < n; i++) {
        place[order[i]] = (int32_t)i;
        child[i] = mark[i] = -1;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        const int32_t v = order[i], p = parent[v];
        if (p >= 0) {
            next[v] = child[p];
            child[p] = v;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        const int32_t v = order[i];
        int32_t *own = lists + ptr[v];
        int64_t size = 0;
        mark[v] = (int32_t)i;
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) {
            const int32_t u = indices[e];
            if (place[u] > i && mark[u] != i) mark[u] = (int32_t)i, own[size++] = place[u];
        }
        for (int32_t c = child[v]; c >= 0; c = next[c])
            for (int64_t e = ptr[c]; e < ptr[c + 1]; e++) {
                const int32_t u = lists[e];
                if (mark[u] != i) mark[u] = (int32_t)i, own[size++] = place[u];
            }
        for (int64_t gap = size / 2; gap > 0; gap /= 2) /* places ascending: Shell's sort */
            for (int64_t a = gap; a < size; a++) {
                const int32_t x = own[a];
                int64_t b = a;
                for (; b >= gap && own[b - gap] > x; b -= gap) own[b] = own[b - gap];
                own[b] = x;
            }
        for (int64_t a = 0; a < size; a++) own[a] = order[own[a]];
    }
    free(room);
    return 0;
}

/* ---- greedy orders of sparse graphs ------------------------------------------------------------------------------ */

/* Twice the pairs of neighbours of v that are not adjacent. */
static int64_t missing(const List *near, int32_t v, int64_t *work) {
    const List *own = near + v;
    int64_t count = own->size * (own->size - 1);
    for (int64_t i = 0; i < own->size; i++) {
        count -= common(own, near + own->near[i]);
        *work += own->size + near[own->near[i]].size;
    }
    return count;
}

/* An order [n] by the least degree (rule 0) or the fewest new edges (rule 1) of all that are left; ties [n] int32, all
   different, decide among equals. Ends where what is left is complete, or after `most` units of work, or with more than
   `room` neighbours kept: the rest then follows by degree. Returns how many nodes were eliminated, -1 without memory. */
int64_t lk_greedy_order(int64_t n, const int64_t *indptr, const int32_t *indices, const int32_t *ties, int64_t rule,
                        int64_t most, int64_t room, int32_t *order) {
    int64_t made = 0, work = 0, kept = 0, bad = 0;
    List *near = calloc((size_t)n + 1, sizeof *near);
    Queue q = {malloc((size_t)(n + 1) * sizeof *q.entry), malloc((size_t)(n + 1) * sizeof *q.place), 0};
    int32_t *scratch = malloc((size_t)(2 * n + 2) * sizeof *scratch);
    int32_t *mark = calloc((size_t)n + 1, sizeof *mark), *reached = malloc((size_t)(n + 1) * sizeof *reached);
    bad = !near || !q.entry || !q.place || !scratch || !mark || !reached;
    bad = bad || !fill_lists(near, n, indptr, indices);
    kept = indptr[n];
    for (int64_t v = 0; v < n && !bad; v++)
        take_node(&q, (Entry){rule ? missing(near, (int32_t)v, &work) : near[v].size, ties[v], (int32_t)v});
    while (q.count && !bad && work < most && kept <= room) {
        const int32_t v = q.entry[0].node;
        List *own = near + v;
        if (own->size == q.count - 1 && !rule) break; /* the least degree: all are adjacent */
        order[made++] = v;
        take_top(&q);
        const int64_t joins = rule ? missing(near, v, &work) : 1;
        for (int64_t i = 0; i < own->size && !bad; i++) {
            List *other = near + own->near[i];
            work += other->size + own->size;
            if (!joins) { /* v goes, nothing comes */
                leave(other, v);
                kept -= 1;
                continue;
            }
            const int64_t before_it = other->size, fresh = take_in(other, own, v, own->near[i], scratch);
            bad |= fresh < 0;
            kept += other->size - before_it;
        }
        int64_t count = 0;
        for (int64_t i = 0; i < own->size && !bad; i++) {
            const int32_t u = own->near[i];
            if (!mark[u]) mark[u] = 1, reached[count++] = u;
            if (!rule || !joins) continue;
            for (int64_t j = 0; j < near[u].size; j++) { /* whose neighbours may have become adjacent */
                const int32_t w = near[u].near[j];
                if (!mark[w]) mark[w] = 1, reached[count++] = w;
            }
        }
        for (int64_t i = 0; i < count && !bad; i++) {
            const int32_t u = reached[i];
            mark[u] = 0;
            rescore(&q, u, rule ? missing(near, u, &work) : near[u].size);
        }
        kept -= own->size;
        free(own->near);
        own->near = NULL;
    }
    const int64_t eliminated = made;
    for (int64_t i = 0, left = q.count; i < left && !bad; i++) { /* what is left, by degree */
        q.entry[i].score = near[q.entry[i].node].size;
        q.count = i + 1;
        sift(&q, i);
    }
    while (q.count && !bad) order[made++] = take_top(&q);
    for (int64_t v = 0; v < n && near; v++) free(near[v].near);
    free(near), free(q.entry), free(q.place), free(scratch), free(mark), free(reached);
    return bad ? -1 : eliminated;
}

/* The reverse of maximum cardinality search: from the last node down always one with most neighbours after it, of equal
   ones the lowest. Returns -1 without memory. */
int64_t lk_cardinality(int64_t n, const int64_t *indptr, const int32_t *indices, int32_t *order) {
    Queue q = {malloc((size_t)(n + 1) * sizeof *q.entry), malloc((size_t)(n + 1) * sizeof *q.place), 0};
    const int able = q.entry && q.place;
    for (int64_t v = 0; v < n && able; v++) take_node(&q, (Entry){0, (int32_t)v, (int32_t)v});
    for (int64_t i = n - 1; i >= 0 && able; i--) {
        const int32_t v = order[i] = take_top(&q);
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) {
            const int32_t place = q.place[indices[e]];
            if (place >= 0) rescore(&q, indices[e], q.entry[place].score - 1);
        }
    }
    free(q.entry), free(q.place);
    return able ? 0 : -1;
}

/* ---- local search over tree decompositions ------------------------------------------------------------------------ */

#define MOST_NODES 4096 /* of a piece and its border */
#define PATIENCE 400    /* moves without anything better, after which a piece is made anew whatever comes of it */

static const int64_t NOISE[4] = {0, 0, 7, 31}; /* of scores, in 64ths, at most */

/* A tree of eliminations: parent of each node, -1 for none, lists of children, and the bag of each node without itself.
   app/search/treewidth/search.py describes the moves. */
typedef struct {
    int64_t n, fill, levels, shift;
    const int64_t *indptr;
    const int32_t *indices;
    const int64_t *weight;                       /* [n] or NULL: all one */
    int32_t *parent, *child, *next, *prev;       /* [n] */
    int64_t *bag;                                /* [n] weights of the bags, of fill-in the sizes without the node */
    int32_t *top, *at;                           /* [n] the heaviest bags as a list; places in it, -1 for none */
    int32_t *best_parent;                        /* [n] of the best tree */
    int64_t tops, worth, best, steps, found_at, stale, lost; /* worth: of the state; lost: 1 where memory is short */
    uint64_t random;
    List *lists;                                 /* of the kernel alone, by lk_tree_load; NULL before */
} Tree;

static void hang(Tree *t, int32_t v, int32_t p) {
    t->parent[v] = p;
    t->prev[v] = t->next[v] = -1;
    if (p < 0) return;
    t->next[v] = t->child[p];
    if (t->child[p] >= 0) t->prev[t->child[p]] = v;
    t->child[p] = v;
}

static void unhang(Tree *t, int32_t v) {
    if (t->prev[v] >= 0) t->next[t->prev[v]] = t->next[v];
    else if (t->parent[v] >= 0) t->child[t->parent[v]] = t->next[v];
    if (t->next[v] >= 0) t->prev[t->next[v]] = t->prev[v];
}

static void find_tops(Tree *t) {
    int64_t most = 0;
    for (int64_t v = 0; v < t->n; v++) most = t->bag[v] > most ? t->bag[v] : most;
    t->tops = 0;
    for (int64_t v = 0; v < t->n; v++) {
        t->at[v] = -1;
        if (t->bag[v] == most) t->at[v] = (int32_t)t->tops, t->top[t->tops++] = (int32_t)v;
    }
    t->worth = most;
}

static void untop(Tree *t, int32_t v) {
    if (t->at[v] < 0) return;
    const int32_t last = t->top[--t->tops];
    t->top[t->at[v]] = last;
    t->at[last] = t->at[v];
    t->at[v] = -1;
}

static int set_list(List *l, int64_t size) {
    if (!l->near || size > l->room || 4 * size < l->room) {
        free(l->near);
        l->near = malloc((size_t)(size + 1) * sizeof *l->near);
        l->room = l->near ? size : 0;
    }
    l->size = size;
    return l->near ? 0 : -1;
}

void lk_tree_free(Tree *t) {
    for (int64_t v = 0; v < t->n && t->lists; v++) free(t->lists[v].near);
    free(t->lists);
    t->lists = NULL;
}

/* The tree of `parent`: its children, bags, and what it is worth. `lost` is 1 where memory is short. */
void lk_tree_load(Tree *t) {
    const int64_t n = t->n;
    int32_t *mark = malloc((size_t)(3 * n + 1) * sizeof *mark), *post = mark + n, *found = mark + 2 * n;
    if (!t->lists) t->lists = calloc((size_t)n + 1, sizeof *t->lists);
    t->lost = !mark || !t->lists;
    if (t->lost) {
        free(mark);
        return;
    }
    for (int64_t v = 0; v < n; v++) t->child[v] = t->next[v] = t->prev[v] = mark[v] = -1;
    for (int64_t v = n - 1; v >= 0; v--) hang(t, (int32_t)v, t->parent[v]);
    int64_t count = 0;
    for (int64_t root = 0; root < n; root++) {
        if (t->parent[root] >= 0) continue;
        int32_t v = (int32_t)root;
        while (t->child[v] >= 0) v = t->child[v];
        for (;;) {
            post[count++] = v;
            if (v == root) break;
            if (t->next[v] >= 0) {
                v = t->next[v];
                while (t->child[v] >= 0) v = t->child[v];
            } else v = t->parent[v];
        }
    }
    for (int64_t i = 0; i < n; i++) t->at[post[i]] = (int32_t)i; /* places */
    t->worth = 0;
    for (int64_t i = 0; i < n && !t->lost; i++) {
        const int32_t v = post[i];
        int64_t size = 0, load = t->fill ? 0 : weight_of(t->weight, v);
        mark[v] = (int32_t)i;
        for (int64_t e = t->indptr[v]; e < t->indptr[v + 1]; e++) {
            const int32_t u = t->indices[e];
            if (t->at[u] > i && mark[u] != i) mark[u] = (int32_t)i, found[size++] = u;
        }
        for (int32_t c = t->child[v]; c >= 0; c = t->next[c])
            for (int64_t e = 0; e < t->lists[c].size; e++) {
                const int32_t u = t->lists[c].near[e];
                if (mark[u] != i) mark[u] = (int32_t)i, found[size++] = u;
            }
        if (set_list(t->lists + v, size)) t->lost = 1;
        else memcpy(t->lists[v].near, found, (size_t)size * sizeof *found);
        for (int64_t e = 0; e < size; e++) load += t->fill ? 1 : weight_of(t->weight, found[e]);
        t->bag[v] = load;
        t->worth += load;
    }
    free(mark);
    if (!t->fill) find_tops(t);
}

typedef struct {
    int32_t *own, *local, *sequence; /* nodes of the piece and its border; numbers in it [n], -1; their new order */
    int64_t *score, *load;           /* by numbers: of a rule; new weights of bags */
    Word *row, *mask, *dirty, *open; /* [size] rows of the piece's graph; sets */
    int64_t inner, size, words;
} Piece;

/* Nodes of the tree around v: up from it, then down, some at random; their border. Returns the highest of them. */
static int32_t grow(Tree *t, Piece *p, int32_t v) {
    const int64_t limit = INT64_C(8) << random_below(&t->random, (uint32_t)t->levels);
    int64_t up = random_below(&t->random, (uint32_t)(limit / 2 + 1));
    p->inner = 0;
    p->own[p->inner++] = v;
    while (up-- > 0 && t->parent[v] >= 0) p->own[p->inner++] = v = t->parent[v];
    for (int64_t i = 0; i < p->inner; i++) p->local[p->own[i]] = (int32_t)i;
    for (int64_t i = 0; i < p->inner && p->inner < limit; i++)
        for (int32_t c = t->child[p->own[i]]; c >= 0 && p->inner < limit; c = t->next[c])
            if (p->local[c] < 0 && random_bits(&t->random) >> 62) {
                p->local[c] = (int32_t)p->inner;
                p->own[p->inner++] = c;
            }
    p->size = p->inner;
    for (int64_t e = 0; e < t->lists[v].size && p->size <= MOST_NODES; e++) {
        p->local[t->lists[v].near[e]] = (int32_t)p->size;
        p->own[p->size++] = t->lists[v].near[e];
    }
    return v;
}

/* The graph of a piece: its edges, and those of bags below it and of its border. Returns -1 without memory. */
static int join(Tree *t, Piece *p) {
    const int64_t words = p->words = (p->size + 63) / 64;
    p->row = calloc((size_t)((p->size + 3) * words), sizeof *p->row);
    if (!p->row) return -1;
    p->mask = p->row + p->size * words;
    p->dirty = p->mask + words;
    p->open = p->dirty + words;
    for (int64_t i = p->inner; i < p->size; i++)
        for (int64_t j = p->inner; j < p->size; j++) put_bit(p->row + i * words, j);
    for (int64_t i = 0; i < p->inner; i++) {
        const int32_t v = p->own[i];
        for (int64_t e = t->indptr[v]; e < t->indptr[v + 1]; e++) {
            const int32_t j = p->local[t->indices[e]];
            if (j < 0) continue;
            put_bit(p->row + i * words, j);
            put_bit(p->row + j * words, i);
        }
        for (int32_t c = t->child[v]; c >= 0; c = t->next[c]) {
            if (p->local[c] >= 0) continue;
            const List *l = t->lists + c;
            memset(p->mask, 0, (size_t)words * sizeof(Word));
            for (int64_t e = 0; e < l->size; e++) put_bit(p->mask, p->local[l->near[e]]);
            for (int64_t e = 0; e < l->size; e++) {
                Word *row = p->row + p->local[l->near[e]] * words;
                for (int64_t k = 0; k < words; k++) row[k] |= p->mask[k];
            }
        }
    }
    for (int64_t i = 0; i < p->size; i++) drop_bit(p->row + i * words, i);
    return 0;
}

static int64_t count_of(const Word *set, int64_t words) {
    int64_t count = 0;
    for (int64_t k = 0; k < words; k++) count += __builtin_popcountll(set[k]);
    return count;
}

/* Pairs of neighbours of i that are not adjacent. */
static int64_t open_pairs(const Piece *p, int64_t i) {
    const Word *own = p->row + i * p->words;
    int64_t count = 0;
    for (int64_t k = 0; k < p->words; k++)
        for (Word rest = own[k]; rest; rest &= rest - 1) {
            const int64_t j = 64 * k + __builtin_ctzll(rest);
            const Word *other = p->row + j * p->words;
            for (int64_t m = 0; m < p->words; m++) count += __builtin_popcountll(own[m] & ~other[m]);
            count -= 1; /* j itself */
        }
    return count / 2;
}

static int64_t load_of(const Tree *t, const Piece *p, int64_t i) {
    const Word *own = p->row + i * p->words;
    if (t->fill) return count_of(own, p->words);
    if (!t->weight) return count_of(own, p->words) + 1;
    int64_t load = t->weight[p->own[i]];
    for (int64_t k = 0; k < p->words; k++)
        for (Word rest = own[k]; rest; rest &= rest - 1) load += t->weight[p->own[64 * k + __builtin_ctzll(rest)]];
    return load;
}

static int64_t score_of(const Tree *t, const Piece *p, int64_t i, int64_t rule) {
    const int64_t degree = rule == 1 ? 0 : load_of(t, p, i) >> t->shift;
    return degree + (rule ? open_pairs(p, i) : 0);
}

/* Eliminate node i of a piece; says which scores change. */
static void eliminate(Piece *p, int64_t i, int64_t rule) {
    const int64_t words = p->words;
    const Word *own = p->row + i * words;
    int joins = 0;
    drop_bit(p->open, i);
    memset(p->dirty, 0, (size_t)words * sizeof(Word));
    for (int64_t k = 0; k < words; k++)
        for (Word rest = own[k]; rest; rest &= rest - 1) {
            const int64_t j = 64 * k + __builtin_ctzll(rest);
            Word *row = p->row + j * words;
            drop_bit(row, i);
            for (int64_t m = 0; m < words; m++) {
                const Word fresh = own[m] & ~row[m];
                row[m] |= fresh;
                joins |= (fresh & ~(m == j >> 6 ? (Word)1 << (j & 63) : 0)) != 0;
            }
            drop_bit(row, j);
        }
    for (int64_t k = 0; k < words; k++)
        for (Word rest = own[k]; rest; rest &= rest - 1) {
            const int64_t j = 64 * k + __builtin_ctzll(rest);
            put_bit(p->dirty, j);
            for (int64_t m = 0; m < words && joins && rule; m++) p->dirty[m] |= p->row[j * words + m];
        }
    for (int64_t k = 0; k < words; k++) p->dirty[k] &= p->open[k];
}

/* A new order of a piece by a rule with noise, worth no more than `most`, of that at most `often` times (of fill-in: the
   sum of all); 0 where it ends up with more, else 1. */
static int order_anew(Tree *t, Piece *p, int64_t rule, int64_t noise, int64_t most, int64_t often) {
    int64_t sum = 0, seen = 0;
    for (int64_t i = 0; i < p->inner; i++) put_bit(p->open, i), put_bit(p->dirty, i);
    for (int64_t made = 0; made < p->inner; made++) {
        int64_t best = INT64_MAX, chosen = -1;
        for (int64_t i = 0; i < p->inner; i++) {
            if (!bit_of(p->open, i)) continue;
            if (bit_of(p->dirty, i)) p->score[i] = score_of(t, p, i, rule);
            const uint64_t draw = random_bits(&t->random);
            const int64_t factor = 64 + (int64_t)((draw >> 32) & (uint64_t)noise);
            const int64_t key = ((p->score[i] + 1) * factor << 16) | (int64_t)(draw >> 16 & 65535);
            if (key < best) best = key, chosen = i;
        }
        const int64_t load = load_of(t, p, chosen);
        p->sequence[made] = (int32_t)chosen;
        p->load[chosen] = load;
        sum += load;
        seen += load == most;
        if (t->fill ? sum > most : load > most || seen > often) return 0;
        eliminate(p, chosen, rule);
    }
    return 1;
}

/* The tree with a piece below the node v, its highest, in the new order. */
static void take(Tree *t, Piece *p, int32_t v) {
    const int32_t above = t->parent[v];
    int heavier = 0;
    int32_t *place = malloc((size_t)p->inner * sizeof *place);
    if (!place) {
        t->lost = 1;
        return;
    }
    for (int64_t i = 0; i < p->inner; i++) place[p->sequence[i]] = (int32_t)i;
    int32_t below = -1; /* nodes under the piece, as a list by `next`: the last one first */
    for (int64_t i = 0; i < p->inner; i++)
        for (int32_t c = t->child[p->own[i]]; c >= 0;) {
            const int32_t after = t->next[c];
            if (p->local[c] < 0) t->next[c] = below, below = c;
            c = after;
        }
    unhang(t, v);
    for (int64_t i = 0; i < p->inner; i++) t->child[p->own[i]] = -1;
    for (int64_t i = 0; i < p->inner; i++) {
        const int32_t own = p->own[i];
        const Word *row = p->row + i * p->words;
        List *l = t->lists + own;
        int64_t first = p->inner, size = 0;
        if (set_list(l, count_of(row, p->words))) {
            t->lost = 1;
            break;
        }
        for (int64_t k = 0; k < p->words; k++)
            for (Word rest = row[k]; rest; rest &= rest - 1) {
                const int64_t j = 64 * k + __builtin_ctzll(rest);
                l->near[size++] = p->own[j];
                if (j < p->inner && place[j] < first) first = place[j];
            }
        hang(t, own, first < p->inner ? p->own[p->sequence[first]] : above);
        if (t->fill) t->worth += p->load[i] - t->bag[own];
        else untop(t, own);
        t->bag[own] = p->load[i];
    }
    while (below >= 0 && !t->lost) {
        const int32_t after = t->next[below];
        const List *l = t->lists + below;
        int64_t first = p->inner;
        for (int64_t e = 0; e < l->size; e++) {
            const int32_t j = p->local[l->near[e]];
            if (j < p->inner && place[j] < first) first = place[j];
        }
        hang(t, below, p->own[p->sequence[first]]);
        below = after;
    }
    free(place);
    if (t->fill) return;
    for (int64_t i = 0; i < p->inner; i++) {
        const int32_t own = p->own[i];
        if (t->bag[own] == t->worth) t->at[own] = (int32_t)t->tops, t->top[t->tops++] = own;
        heavier |= t->bag[own] > t->worth;
    }
    if (heavier || !t->tops) find_tops(t);
}

/* One move; kick: at a node anywhere, whatever comes of it. */
static void move(Tree *t, Piece *p, int64_t kick) {
    const int32_t v = kick || t->fill ? (int32_t)random_below(&t->random, (uint32_t)t->n)
                                      : t->top[random_below(&t->random, (uint32_t)t->tops)];
    const int32_t high = grow(t, p, v);
    const int64_t rule = random_below(&t->random, 3);
    const int64_t noise = kick ? 63 : NOISE[random_below(&t->random, 4)];
    int64_t most = 0, often = 0;
    for (int64_t i = 0; i < p->inner; i++) {
        const int64_t load = t->bag[p->own[i]];
        if (t->fill) most += load;
        else if (load > most) most = load, often = 1;
        else often += load == most;
    }
    if (kick) most = often = INT64_MAX;
    if (p->size <= MOST_NODES) {
        if (join(t, p)) t->lost = 1;
        else if (order_anew(t, p, rule, noise, most, often)) {
            const int64_t before_it = t->worth, tops = t->tops;
            take(t, p, high);
            if (t->worth < before_it || (!t->fill && t->worth == before_it && t->tops < tops)) t->stale = 0;
        }
        free(p->row);
    }
    for (int64_t i = 0; i < p->size; i++) p->local[p->own[i]] = -1;
}

/* So many moves; `lost` is 1 where memory is short. */
void lk_tree_run(Tree *t, int64_t steps) {
    const int64_t n = t->n, room = MOST_NODES + 1;
    Piece p = {0};
    p.own = malloc((size_t)(n + 2 * room) * sizeof *p.own);
    p.score = malloc((size_t)(2 * room) * sizeof *p.score);
    if (!p.own || !p.score) t->lost = 1;
    else {
        p.local = p.own + room;
        p.sequence = p.local + n;
        p.load = p.score + room;
        for (int64_t v = 0; v < n; v++) p.local[v] = -1;
    }
    for (; steps > 0 && !t->lost; steps--) {
        t->steps += 1;
        const int64_t kick = ++t->stale > PATIENCE;
        if (kick && t->worth > t->best) {
            memcpy(t->parent, t->best_parent, (size_t)n * sizeof *t->parent);
            lk_tree_load(t);
        }
        if (kick) t->stale = 0;
        if (!t->lost) move(t, &p, kick);
        if (t->worth < t->best && !t->lost) {
            t->best = t->worth;
            t->found_at = t->steps;
            memcpy(t->best_parent, t->parent, (size_t)n * sizeof *t->parent);
        }
    }
    free(p.own), free(p.score);
}

/* ---- exhaustive search -------------------------------------------------------------------------------------------- */

#define MOST_SOUGHT 64 /* nodes */

/* For fill-in, of graphs of up to 64 nodes; app/bounds/treewidth/exact.py says how it goes. */
typedef struct {
    int64_t n, most, limit, slots, states;
    Word *key;     /* [slots] sets of eliminated nodes that were looked at, plus one; 0: free */
    int64_t *paid; /* [slots] edges made until then */
    Word last;     /* a clique that comes last */
    int32_t *order;
} Sought;

INLINE int64_t pairs_open(const Word *near, Word own) {
    int64_t count = 0;
    for (Word rest = own; rest; rest &= rest - 1) count += __builtin_popcountll(own & ~near[__builtin_ctzll(rest)]) - 1;
    return count / 2;
}

/* 1: this set was looked at with no more edges made; 0: it is noted; -1: there are too many. */
static int noted(Sought *s, Word gone, int64_t paid) {
    const Word mask = (Word)s->slots - 1;
    Word before = gone, at = random_bits(&before) & mask;
    for (; s->key[at]; at = (at + 1) & mask)
        if (s->key[at] == gone + 1) {
            if (s->paid[at] <= paid) return 1;
            s->paid[at] = paid;
            return 0;
        }
    if (s->states == s->limit) return -1;
    s->states += 1;
    s->key[at] = gone + 1;
    s->paid[at] = paid;
    return 0;
}

/* near := the graph without v, whose neighbours are then adjacent. */
INLINE void without(const Word *near, Word *after, Word left, int v) {
    const Word own = near[v];
    for (Word rest = left & ~((Word)1 << v); rest; rest &= rest - 1) {
        const int i = __builtin_ctzll(rest);
        after[i] = own >> i & 1 ? (near[i] | own) & ~((Word)1 << i | (Word)1 << v) : near[i];
    }
}

static int seek(Sought *s, const Word *near, Word gone, int64_t depth, int64_t paid) {
    const Word left = (s->n == 64 ? ~(Word)0 : ((Word)1 << s->n) - 1) & ~gone;
    Word after[MOST_SOUGHT];
    if (!left) return 1;
    const int known = noted(s, gone, paid);
    if (known) return known < 0 ? -1 : 0;
    int64_t cost[MOST_SOUGHT];
    int tried[MOST_SOUGHT], count = 0;
    for (Word rest = left; rest; rest &= rest - 1) {
        const int i = __builtin_ctzll(rest);
        const int64_t open = pairs_open(near, near[i]);
        if (!open) { /* its neighbours are adjacent: it goes, and nothing is lost */
            without(near, after, left, i);
            s->order[depth] = i;
            return seek(s, after, gone | (Word)1 << i, depth + 1, paid);
        }
        if (s->last >> i & 1 || paid + open > s->most) continue;
        int k = count++;
        for (; k > 0 && cost[k - 1] > open; k--) cost[k] = cost[k - 1], tried[k] = tried[k - 1];
        cost[k] = open;
        tried[k] = i;
    }
    for (int k = 0; k < count; k++) {
        without(near, after, left, tried[k]);
        s->order[depth] = tried[k];
        const int found = seek(s, after, gone | (Word)1 << tried[k], depth + 1, paid + cost[k]);
        if (found) return found;
    }
    return 0;
}

/* Is there an order that makes no more than `most` new edges? 1: it is order [n]; 0: there is none; -1: more than
   `limit` sets would have to be looked at; -2: memory is short. states: how many were. */
int64_t lk_order_seek(int64_t n, const uint64_t *near, int64_t most, int64_t limit, uint64_t last, int32_t *order,
                      int64_t *states) {
    Sought s = {.n = n, .most = most, .limit = limit, .last = last, .order = order};
    for (s.slots = 64; s.slots < 2 * limit;) s.slots *= 2;
    s.key = calloc((size_t)s.slots, sizeof *s.key);
    s.paid = malloc((size_t)s.slots * sizeof *s.paid);
    const int found = s.key && s.paid ? seek(&s, near, 0, 0, 0) : -2;
    free(s.key), free(s.paid);
    *states = s.states;
    return found;
}
