/* Whether a graph has a tree decomposition without a heavy bag, by the blocks that have one.
   app/bounds/treewidth/blocks.py says how it goes and why; plain_blocks.py has the same with the same results.
   Sets of nodes are rows of W words, of which there are 1, 2, 4 or 8. */
#ifndef _WIN32
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif
#include <stdlib.h>
#include <time.h>

#include "common.h"

typedef uint64_t Word;
#define MOST_WORDS 8
#define COMPARED 256 /* clusters that are compared cost as much as one that is kept */
#define FULL (-1)    /* more than `limit` rows would be held, or time is over */
#define LOOKS 16     /* bags between two looks at the clock */
#define COMPARES 4096 /* and clusters */

#define EACH(i) for (int64_t i = 0; i < W; i++)
#define NODES(set, v)                                                                                                  \
    for (int64_t v##_at = 0; v##_at < W; v##_at++)                                                                     \
        for (Word v##_left = (set)[v##_at]; v##_left; v##_left &= v##_left - 1)                                        \
            for (int64_t v = v##_at * 64 + __builtin_ctzll(v##_left), v##_now = 1; v##_now; v##_now = 0)

/* Different rows, which a hash finds. */
typedef struct {
    Word *row;
    int32_t *slot; /* which row, plus one; 0: free */
    int64_t size, mask;
} Rows;

typedef struct {
    int32_t bag, next;
} Waiting;

typedef struct {
    int64_t n, most, limit, held, compared, root, queued, clusters, waits, taken;
    int64_t end; /* when time is over, of `now`; INT64_MAX: never */
    const Word *near;
    const int64_t *weight;
    Rows part, bag;   /* components of the graph without a bag; bags */
    int32_t *bag_of;  /* of each component the bag that makes it a feasible block, -1 for none */
    int32_t *waiting; /* and the first bag that waits for it, -1 for none */
    int32_t *queue;   /* feasible blocks in the order in which they were found */
    Waiting *wait;
    Word *beside;  /* components of the graph without a bag, and the nodes around each */
    Word *cluster; /* of each its nodes, those around them, those that are near all of its blocks */
} Blocks;

INLINE int64_t weigh(const Blocks *b, const Word *set, const int64_t W) {
    int64_t sum = 0;
    if (!b->weight) EACH(i) sum += __builtin_popcountll(set[i]);
    else NODES(set, v) sum += b->weight[v];
    return sum;
}

INLINE int within(const Word *set, const Word *other, const int64_t W) {
    Word beyond = 0;
    EACH(i) beyond |= set[i] & ~other[i];
    return !beyond;
}

INLINE int meets(const Word *set, const Word *other, const int64_t W) {
    Word both = 0;
    EACH(i) both |= set[i] & other[i];
    return both != 0;
}

INLINE int64_t first_of(const Word *set, const int64_t W) {
    EACH(i) if (set[i]) return i * 64 + __builtin_ctzll(set[i]);
    return -1;
}

static int64_t now(void) {
    struct timespec t;
#ifdef _WIN32
    timespec_get(&t, TIME_UTC);
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int late(const Blocks *b) {
    return b->end < INT64_MAX && now() > b->end;
}

/* The nodes that are not in a set. */
INLINE void others(const Blocks *b, const Word *set, Word *rest, const int64_t W) {
    EACH(i) {
        const int64_t bits = b->n - 64 * i;
        rest[i] = ~set[i] & (bits >= 64 ? ~(Word)0 : bits > 0 ? ((Word)1 << bits) - 1 : 0);
    }
}

/* The component of `inside` that v is in, and the nodes around it. */
INLINE void component(const Blocks *b, const Word *inside, int64_t v, Word *part, Word *around, const int64_t W) {
    Word todo[MOST_WORDS];
    EACH(i) part[i] = todo[i] = around[i] = 0;
    part[v >> 6] = todo[v >> 6] = (Word)1 << (v & 63);
    for (int64_t u; (u = first_of(todo, W)) >= 0;) {
        const Word *own = b->near + u * W;
        todo[u >> 6] &= ~((Word)1 << (u & 63));
        EACH(i) {
            const Word fresh = own[i] & inside[i] & ~part[i];
            part[i] |= fresh;
            todo[i] |= fresh;
            around[i] |= own[i];
        }
    }
    EACH(i) around[i] &= ~part[i];
}

/* The slot of a row, or where it would be. */
INLINE int64_t slot_of(const Rows *rows, const Word *row, const int64_t W) {
    Word hash = 0;
    EACH(i) hash = (hash ^ row[i]) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 29;
    int64_t at = (int64_t)(hash & (Word)rows->mask);
    for (; rows->slot[at]; at = (at + 1) & rows->mask) {
        const Word *held = rows->row + (rows->slot[at] - 1) * W;
        Word differs = 0;
        EACH(i) differs |= held[i] ^ row[i];
        if (!differs) break;
    }
    return at;
}

/* The number of a row, which is held from now on; FULL. */
INLINE int64_t number_of(Blocks *b, Rows *rows, const Word *row, const int64_t W) {
    const int64_t at = slot_of(rows, row, W);
    if (rows->slot[at]) return rows->slot[at] - 1;
    if (b->held++ == b->limit) return FULL;
    EACH(i) rows->row[rows->size * W + i] = row[i];
    rows->slot[at] = (int32_t)++rows->size;
    return rows->size - 1;
}

INLINE int64_t part_number(Blocks *b, const Word *part, const int64_t W) {
    const int64_t before = b->part.size, k = number_of(b, &b->part, part, W);
    if (k >= 0 && k == before) b->bag_of[k] = b->waiting[k] = -1;
    return k;
}

/* Take a bag, for the first time or again since a component that it waited for is feasible.
   1: it is a root, all components are feasible; 0; FULL. */
INLINE int take_bag(Blocks *b, int64_t number, int first, const int64_t W) {
    Word left[MOST_WORDS], bag[MOST_WORDS], part[MOST_WORDS], around[MOST_WORDS], needed[MOST_WORDS];
    int64_t count = 0, unknown = 0;
    if (b->taken++ % LOOKS == LOOKS - 1 && late(b)) return FULL;
    EACH(i) bag[i] = b->bag.row[number * W + i], needed[i] = 0;
    others(b, bag, left, W);
    for (int64_t v; (v = first_of(left, W)) >= 0; count++) {
        component(b, left, v, part, around, W);
        Word *own = b->beside + count * 2 * W;
        EACH(i) left[i] &= ~part[i], own[i] = part[i], own[W + i] = around[i];
        const int64_t k = part_number(b, part, W);
        if (k < 0) return FULL;
        if (b->bag_of[k] >= 0) continue;
        unknown++;
        EACH(i) needed[i] |= around[i];
        if (!first || part[0] & 1) continue; /* the block of node 0 is never asked for */
        if (b->held++ == b->limit) return FULL;
        b->wait[b->waits] = (Waiting){(int32_t)number, b->waiting[k]};
        b->waiting[k] = (int32_t)b->waits++;
    }
    if (!unknown) {
        b->root = number;
        return 1;
    }
    for (int64_t p = 0; p < count; p++) {
        const Word *outer = b->beside + p * 2 * W, *outlet = outer + W;
        if (!within(needed, outlet, W) || within(bag, outlet, W)) continue;
        Word own[MOST_WORDS], inside[MOST_WORDS];
        EACH(i) own[i] = bag[i] & ~outlet[i], left[i] = outer[i] | outlet[i];
        others(b, left, inside, W);
        component(b, inside, first_of(own, W), part, around, W);
        if (!within(own, part, W) || part[0] & 1) continue;
        const int64_t k = part_number(b, part, W);
        if (k < 0) return FULL;
        if (b->bag_of[k] >= 0) continue;
        b->bag_of[k] = (int32_t)number;
        b->queue[b->queued++] = (int32_t)k;
    }
    return 0;
}

/* Take a bag unless it is known, or too heavy. */
INLINE int offer(Blocks *b, const Word *bag, const int64_t W) {
    if (weigh(b, bag, W) > b->most) return 0;
    const int64_t before = b->bag.size, k = number_of(b, &b->bag, bag, W);
    return k == FULL ? FULL : k < before ? 0 : take_bag(b, k, 1, W);
}

/* Keep a cluster, and offer its bags. */
INLINE int keep(Blocks *b, const Word *nodes, const Word *around, const Word *common, const int64_t W) {
    Word bag[MOST_WORDS];
    if (b->held++ == b->limit) return FULL;
    Word *kept = b->cluster + b->clusters++ * 3 * W;
    EACH(i) kept[i] = nodes[i], kept[W + i] = around[i], kept[2 * W + i] = common[i];
    NODES(common, v) {
        EACH(i) bag[i] = around[i] | (b->near[v * W + i] & ~nodes[i]);
        const int end = offer(b, bag, W);
        if (end) return end;
    }
    return 0;
}

/* What follows from a feasible block. */
INLINE int follow(Blocks *b, int64_t block, const int64_t W) {
    Word part[MOST_WORDS], edge[MOST_WORDS], closed[MOST_WORDS], nodes[MOST_WORDS], around[MOST_WORDS];
    Word common[MOST_WORDS];
    int end;
    for (int32_t w = b->waiting[block]; w >= 0; w = b->wait[w].next)
        if ((end = take_bag(b, b->wait[w].bag, 0, W))) return end;
    EACH(i) nodes[i] = b->part.row[block * W + i];
    component(b, nodes, first_of(nodes, W), part, edge, W);
    EACH(i) closed[i] = part[i] | edge[i];
    const int64_t known = b->clusters;
    for (int64_t c = 0; c < known; c++) {
        const Word *other = b->cluster + c * 3 * W;
        if (c % COMPARES == COMPARES - 1 && late(b)) return FULL;
        if (meets(other, closed, W) || !meets(other + 2 * W, edge, W)) continue;
        EACH(i) around[i] = other[W + i] | edge[i];
        if (weigh(b, around, W) > b->most) continue;
        EACH(i) nodes[i] = other[i] | part[i], common[i] = other[2 * W + i] & edge[i];
        if ((end = keep(b, nodes, around, common, W))) return end;
    }
    b->compared += known;
    if ((end = keep(b, part, edge, edge, W))) return end;
    return b->held + b->compared / COMPARED > b->limit ? FULL : 0;
}

INLINE int search(Blocks *b, const int64_t W) {
    Word bag[MOST_WORDS];
    int end;
    for (int64_t v = 0; v < b->n; v++) {
        EACH(i) bag[i] = b->near[v * W + i];
        bag[v >> 6] |= (Word)1 << (v & 63);
        if ((end = offer(b, bag, W))) return end;
    }
    for (int64_t k = 0; k < b->queued; k++)
        if ((end = follow(b, b->queue[k], W))) return end;
    return 0;
}

/* order [at...]: first the blocks below a bag, then the nodes of the bag that are inside. Returns where they end. */
static int64_t lay(const Blocks *b, const Word *inside, int64_t number, int32_t *order, int64_t at, const int64_t W) {
    const Word *bag = b->bag.row + number * W;
    Word left[MOST_WORDS], part[MOST_WORDS], around[MOST_WORDS];
    EACH(i) left[i] = inside[i] & ~bag[i];
    for (int64_t v; (v = first_of(left, W)) >= 0;) {
        component(b, left, v, part, around, W);
        EACH(i) left[i] &= ~part[i];
        at = lay(b, part, b->bag_of[b->part.slot[slot_of(&b->part, part, W)] - 1], order, at, W);
    }
    EACH(i) left[i] = inside[i] & bag[i];
    NODES(left, v) order[at++] = (int32_t)v;
    return at;
}

static int make(Blocks *b, int64_t W) {
    const size_t most = (size_t)b->limit + 1;
    int64_t slots = 64;
    while (slots < 2 * b->limit) slots *= 2;
    b->part.mask = b->bag.mask = slots - 1;
    b->part.row = malloc(most * (size_t)W * sizeof(Word));
    b->bag.row = malloc(most * (size_t)W * sizeof(Word));
    b->cluster = malloc(3 * most * (size_t)W * sizeof(Word));
    b->part.slot = calloc((size_t)slots, sizeof(int32_t));
    b->bag.slot = calloc((size_t)slots, sizeof(int32_t));
    b->bag_of = malloc(3 * most * sizeof(int32_t));
    b->wait = malloc(most * sizeof *b->wait);
    b->beside = malloc(2 * (size_t)(b->n * W + 1) * sizeof(Word));
    const int short_of = !b->part.row || !b->bag.row || !b->cluster || !b->part.slot || !b->bag.slot || !b->bag_of;
    if (short_of || !b->wait || !b->beside) return 0;
    b->waiting = b->bag_of + most;
    b->queue = b->waiting + most;
    return 1;
}

static void drop(Blocks *b) {
    free(b->part.row), free(b->bag.row), free(b->cluster), free(b->part.slot), free(b->bag.slot);
    free(b->bag_of), free(b->wait), free(b->beside);
}

/* Is there a tree decomposition of a graph in which no bag weighs more than `most`? 1: order [n] stands for
   it; 0: there is none; -1: more than `limit` rows would be held, or time is over; -2: memory is short. held: how many
   rows were.
   near   [n, words] words, the neighbours of each node
   time   nanoseconds that it may take, below 0: all that it needs */
int64_t lk_block_seek(int64_t n, int64_t words, const Word *near, const int64_t *weight, int64_t most, int64_t limit,
                      int64_t time, int32_t *order, int64_t *held) {
    Blocks b = {.n = n, .most = most, .limit = limit, .near = near, .weight = weight};
    b.end = time < 0 ? INT64_MAX : now() + time;
    int64_t found = -2;
    if (make(&b, words)) {
        found = words == 1 ? search(&b, 1) : words == 2 ? search(&b, 2) : words == 4 ? search(&b, 4) : search(&b, 8);
        if (found == 1) {
            Word none[MOST_WORDS] = {0}, all[MOST_WORDS];
            others(&b, none, all, words);
            lay(&b, all, b.root, order, 0, words);
        }
    }
    drop(&b);
    *held = b.held + b.compared / COMPARED;
    return found;
}
