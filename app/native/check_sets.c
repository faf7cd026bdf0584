/* Is there an independent set heavier than a limit? The check of fractional colourings (app/bounds/coloring/heaviest.py,
 * which does the same without kernels); no search for bounds uses it.
 *
 * Nodes that are left are put into cliques, the heaviest node of each first: a set has one node of a clique at most, so
 * that the first nodes of cliques bound what it weighs. Nodes are tried from the last clique back, until the bound of
 * what is left is within the limit (Tomita and Kameda 2007; weights: Kumlander 2004). */
#include <stdlib.h>

#include "common.h"

typedef struct {
    int64_t n, words, limit, work, most_work;
    const uint64_t *near;  /* [n][words] neighbours of each node, heaviest nodes first */
    const int64_t *weight; /* [n] falling */
} Check;

typedef struct {
    int64_t above, count; /* weight of the nodes taken before; nodes still to be tried */
    uint64_t *left;       /* [words] */
    int32_t *node;        /* [n] in the order of their cliques, */
    int64_t *bound;       /* [n] and what no set of them up to there weighs more than */
} Level;

INLINE int64_t first_of(const uint64_t *set, int64_t words, int64_t *from) {
    for (; *from < words; ++*from)
        if (set[*from]) return *from * 64 + __builtin_ctzll(set[*from]);
    return -1;
}

/* Put the nodes left into cliques; spare [2 words]. */
static void arrange(Check *s, Level *level, uint64_t *spare) {
    const int64_t words = s->words;
    uint64_t *rest = spare, *joins = spare + words;
    memcpy(rest, level->left, (size_t)words * 8);
    int64_t total = 0, v, from = 0;
    level->count = 0;
    while ((v = first_of(rest, words, &from)) >= 0) {
        total += s->weight[v];
        memcpy(joins, rest, (size_t)words * 8);
        for (int64_t at = from; v >= 0; v = first_of(joins, words, &at)) {
            rest[v >> 6] &= ~(UINT64_C(1) << (v & 63));
            for (int64_t i = at; i < words; i++) joins[i] &= s->near[v * words + i];
            level->node[level->count] = (int32_t)v;
            level->bound[level->count++] = total;
            s->work += words;
        }
    }
}

/* 1: there is one, 0: there is none, -1: no memory, -2: it would take more than most_work. */
int64_t lk_check_sets(Check *s) {
    const int64_t n = s->n, words = s->words, each = words * 8 + n * 12;
    Level *levels = calloc((size_t)n + 1, sizeof *levels);
    char *memory = malloc((size_t)(n + 1) * (size_t)each + (size_t)words * 16);
    int64_t depth = 0, status = -1;
    if (!levels || !memory) goto end;
    for (int64_t i = 0; i <= n; i++) {
        char *at = memory + (size_t)words * 16 + (size_t)(i * each);
        levels[i].left = (uint64_t *)at;
        levels[i].bound = (int64_t *)(at + words * 8);
        levels[i].node = (int32_t *)(at + words * 8 + n * 8);
    }
    uint64_t *spare = (uint64_t *)memory;
    memset(levels[0].left, 0, (size_t)words * 8);
    for (int64_t v = 0; v < n; v++) levels[0].left[v >> 6] |= UINT64_C(1) << (v & 63);
    levels[0].above = 0;
    arrange(s, levels, spare);
    while (depth >= 0) {
        Level *level = levels + depth;
        const int64_t last = level->count - 1;
        if (last < 0 || level->above + level->bound[last] <= s->limit) {
            depth -= 1;
            continue;
        }
        const int64_t v = level->node[last];
        level->count = last;
        level->left[v >> 6] &= ~(UINT64_C(1) << (v & 63));
        Level *below = level + 1;
        below->above = level->above + s->weight[v];
        status = below->above > s->limit ? 1 : s->work > s->most_work ? -2 : 0;
        if (status) goto end;
        for (int64_t i = 0; i < words; i++) below->left[i] = level->left[i] & ~s->near[v * words + i];
        arrange(s, below, spare);
        depth += 1;
    }
    status = 0;
end:
    free(levels), free(memory);
    return status;
}
