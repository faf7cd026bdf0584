/* The independent check of a log of reductions of vertex cover: what app/reductions/cover/verify.py does with sets, on rows of
 * numbers. It shares with the reducer (reduce*.c) only the meaning of the log (app/reductions/cover/log.py), and searches
 * nothing: it asks of each step whether the nodes it names satisfy what its rule demands, and makes the changes itself.
 *
 * Nodes only ever leave. A row keeps those that have left until it is next read as a whole; looking up one neighbour that
 * is left does not mind them. */
#include "blocks.h"

enum { NEIGHBOURS, CLIQUE, TRANSFER, FOLD, TWIN, UNCONFINED, CROWN }; /* as in app/reductions/cover/log.py */
enum { SMALL = 3 }; /* sets of so many nodes are tried part by part */

typedef struct {
    int64_t n, offset;
    int32_t **row, *count, *room; /* ascending neighbours of each node, how many, and how many fit there */
    int32_t *pool;                /* the rows of the graph */
    int64_t *weight;
    uint8_t *gone;
    int32_t *mark, *closed; /* of one step, where they equal its stamp */
    int64_t *flow;          /* [n] of a crown: what each node sends or gets */
    int32_t stamp;
    Blocks grown;   /* rows that outgrew their place */
    uint8_t failed; /* no memory left */
} Check;

void lk_check_free(Check *c) {
    if (!c) return;
    free_blocks(&c->grown);
    void *arrays[] = {c->row, c->count, c->room, c->pool, c->weight, c->gone, c->mark, c->closed, c->flow};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) free(arrays[i]);
    free(c);
}

Check *lk_check_new(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weight) {
    const size_t nodes = (size_t)(n ? n : 1), entries = (size_t)(indptr[n] ? indptr[n] : 1);
    Check *c = calloc(1, sizeof *c);
    if (!c) return 0;
    c->n = n;
    c->row = malloc(nodes * sizeof *c->row), c->pool = malloc(entries * 4);
    c->count = malloc(nodes * 4), c->room = malloc(nodes * 4), c->weight = malloc(nodes * 8);
    c->gone = calloc(nodes, 1), c->mark = calloc(nodes, 4), c->closed = calloc(nodes, 4), c->flow = malloc(nodes * 8);
    if (!c->row || !c->pool || !c->count || !c->room || !c->weight || !c->gone || !c->mark || !c->closed || !c->flow) {
        lk_check_free(c);
        return 0;
    }
    memcpy(c->pool, indices, (size_t)indptr[n] * 4);
    memcpy(c->weight, weight, (size_t)n * 8);
    for (int64_t v = 0; v < n; ++v) {
        c->row[v] = c->pool + indptr[v];
        c->count[v] = c->room[v] = (int32_t)(indptr[v + 1] - indptr[v]);
    }
    return c;
}

/* ---- the residual graph -------------------------------------------------------------------------------- */

INLINE int is_left(const Check *c, int64_t v) { return v >= 0 && v < c->n && !c->gone[v]; }

INLINE void drop(Check *c, int64_t v) { c->gone[v] = 1; }

INLINE void cover(Check *c, int64_t v) {
    c->offset += c->weight[v];
    drop(c, v);
}

/* The neighbours of v that are left, count[v] of them. */
static const int32_t *tidy(Check *c, int64_t v) {
    int32_t *row = c->row[v], kept = 0;
    for (int32_t i = 0; i < c->count[v]; ++i)
        if (!c->gone[row[i]]) row[kept++] = row[i];
    c->count[v] = kept;
    return row;
}

/* The neighbours of a node that a step names; null where it has none, or has left. */
static const int32_t *named(Check *c, int64_t v) {
    if (!is_left(c, v)) return 0;
    const int32_t *row = tidy(c, v);
    return c->count[v] ? row : 0;
}

/* The place of the first entry of v's row that is not below u. */
static int32_t place(const Check *c, int64_t v, int64_t u) {
    int32_t from = 0, to = c->count[v];
    while (from < to) {
        const int32_t middle = from + (to - from) / 2;
        if (c->row[v][middle] < u) from = middle + 1;
        else to = middle;
    }
    return from;
}

/* Whether two nodes that are left are joined. */
static int joined(const Check *c, int64_t u, int64_t v) {
    if (c->count[u] > c->count[v]) {
        const int64_t other = u;
        u = v, v = other;
    }
    const int32_t at = place(c, u, v);
    return at < c->count[u] && c->row[u][at] == v;
}

/* Enter u into v's row, where it is not yet. */
static void enter(Check *c, int64_t v, int64_t u) {
    if (c->count[v] == c->room[v]) tidy(c, v);
    if (c->count[v] == c->room[v]) {
        const int32_t room = 2 * c->count[v] + 4;
        int32_t *row = take_piece(&c->grown, (size_t)room * 4);
        if (!row) {
            c->failed = 1;
            return;
        }
        memcpy(row, c->row[v], (size_t)c->count[v] * 4);
        c->row[v] = row;
        c->room[v] = room;
    }
    const int32_t at = place(c, v, u);
    memmove(c->row[v] + at + 1, c->row[v] + at, (size_t)(c->count[v] - at) * 4);
    c->row[v][at] = (int32_t)u;
    ++c->count[v];
}

static int32_t new_stamp(Check *c) {
    if (c->stamp == INT32_MAX) {
        memset(c->mark, 0, (size_t)c->n * 4);
        memset(c->closed, 0, (size_t)c->n * 4);
        c->stamp = 0;
    }
    return ++c->stamp;
}

/* ---- what the rules ask --------------------------------------------------------------------------------- */

/* Whether the words are different nodes that are left; marks them. */
static int different(Check *c, const int64_t *word, int64_t count) {
    const int32_t stamp = new_stamp(c);
    for (int64_t i = 0; i < count; ++i) {
        if (!is_left(c, word[i]) || c->mark[word[i]] == stamp) return 0;
        c->mark[word[i]] = stamp;
    }
    return 1;
}

/* Whether the words are the neighbours of v, which has some. */
static int all_neighbours(Check *c, int64_t v, const int64_t *word, int64_t count) {
    const int32_t *row = named(c, v);
    if (!row || c->count[v] != count || !different(c, word, count)) return 0;
    for (int64_t i = 0; i < count; ++i)
        if (c->mark[row[i]] != c->stamp) return 0;
    return 1;
}

static int none_joined(const Check *c, const int64_t *word, int64_t count) {
    for (int64_t i = 1; i < count; ++i)
        for (int64_t j = 0; j < i; ++j)
            if (joined(c, word[i], word[j])) return 0;
    return 1;
}

static int row_is_clique(const Check *c, int64_t v) {
    const int32_t *row = c->row[v];
    for (int32_t i = 1; i < c->count[v]; ++i)
        for (int32_t j = 0; j < i; ++j)
            if (!joined(c, row[i], row[j])) return 0;
    return 1;
}

static int64_t total(const Check *c, const int64_t *word, int64_t count) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += c->weight[word[i]];
    return sum;
}

/* The most that an independent set of a few nodes weighs; of more than SMALL, what all weigh. */
static int64_t heaviest(const Check *c, const int64_t *word, int64_t count) {
    int64_t most = 0;
    if (count > SMALL) return total(c, word, count);
    for (int set = 1; set < 1 << count; ++set) {
        int64_t part[SMALL], size = 0;
        for (int64_t i = 0; i < count; ++i)
            if (set >> i & 1) part[size++] = word[i];
        const int64_t weight = none_joined(c, part, size) ? total(c, part, size) : 0;
        if (weight > most) most = weight;
    }
    return most;
}

/* ---- the rules: whether the step is one, and then done -------------------------------------------------- */

static int check_neighbours(Check *c, const int64_t *word, int64_t count) {
    const int64_t v = word[0], *near = word + 1;
    if (!all_neighbours(c, v, near, count - 1) || heaviest(c, near, count - 1) > c->weight[v]) return 0;
    for (int64_t i = 0; i < count - 1; ++i) cover(c, near[i]);
    return 1;
}

static int check_clique(Check *c, const int64_t *word, int64_t count) {
    const int64_t v = word[0], *light = word + 1;
    if (count < 2 || !named(c, v) || !different(c, light, count - 1) || !row_is_clique(c, v)) return 0;
    for (int64_t i = 0; i < count - 1; ++i)
        if (!joined(c, v, light[i]) || c->weight[light[i]] > c->weight[v]) return 0;
    for (int64_t i = 0; i < count - 1; ++i) cover(c, light[i]);
    return 1;
}

static int check_transfer(Check *c, const int64_t *word, int64_t count) {
    const int64_t v = word[0], *heavy = word + 1;
    if (!all_neighbours(c, v, heavy, count - 1) || !row_is_clique(c, v)) return 0;
    for (int64_t i = 0; i < count - 1; ++i)
        if (c->weight[heavy[i]] <= c->weight[v]) return 0;
    drop(c, v);
    for (int64_t i = 0; i < count - 1; ++i) {
        c->weight[heavy[i]] -= c->weight[v];
        c->offset += c->weight[v];
    }
    return 1;
}

static int check_fold(Check *c, const int64_t *word, int64_t count) {
    const int64_t v = word[0], *near = word + 1;
    if (!all_neighbours(c, v, near, count - 1)) return 0;
    const int64_t sum = total(c, near, count - 1), x = near[0];
    int64_t least = c->weight[x];
    for (int64_t i = 1; i < count - 1; ++i)
        if (c->weight[near[i]] < least) least = c->weight[near[i]];
    if (sum - least > c->weight[v] || c->weight[v] >= sum || !none_joined(c, near, count - 1)) return 0;
    cover(c, v);
    for (int64_t i = 1; i < count - 1; ++i) {
        const int64_t y = near[i];
        const int32_t *row = tidy(c, y);
        for (int32_t j = 0; j < c->count[y]; ++j) {
            if (joined(c, x, row[j])) continue;
            enter(c, x, row[j]);
            enter(c, row[j], x);
        }
        drop(c, y);
    }
    c->weight[x] = sum - c->weight[v];
    return 1;
}

static int check_twin(Check *c, const int64_t *word, int64_t count) {
    if (count != 2 || word[0] == word[1]) return 0;
    const int64_t v = word[0], u = word[1];
    const int32_t *of_v = named(c, v), *of_u = named(c, u);
    if (!of_v || !of_u || c->count[v] != c->count[u] || memcmp(of_v, of_u, (size_t)c->count[v] * 4)) return 0;
    c->weight[v] += c->weight[u];
    drop(c, u);
    return 1;
}

/* Whether node u, a neighbour of the chosen nodes that is not lighter than those beside it, has no neighbours outside
 * the closed set but x (-1: none). */
static int leads_on(Check *c, int64_t u, int64_t x) {
    const int32_t *row = named(c, u), stamp = c->stamp;
    int64_t beside = 0, found = 0, outside = 0;
    if (!row || c->mark[u] == stamp) return 0;
    for (int32_t i = 0; i < c->count[u]; ++i) {
        if (c->mark[row[i]] == stamp) beside += c->weight[row[i]], ++found;
        if (c->closed[row[i]] == stamp) continue;
        if (row[i] != x) return 0;
        ++outside;
    }
    return found && beside <= c->weight[u] && outside == (x >= 0);
}

/* Marks v as chosen; closed holds the chosen nodes and their neighbours. */
static int choose(Check *c, int64_t v) {
    const int32_t *row = named(c, v);
    if (!row) return 0;
    c->mark[v] = c->closed[v] = c->stamp;
    for (int32_t i = 0; i < c->count[v]; ++i) c->closed[row[i]] = c->stamp;
    return 1;
}

static int check_unconfined(Check *c, const int64_t *word, int64_t count) {
    const int64_t v = word[0];
    new_stamp(c);
    if (count % 2 || !choose(c, v)) return 0;
    for (int64_t i = 1; i < count; i += 2) {
        const int64_t x = i + 1 < count ? word[i + 1] : -1;
        if ((i + 1 < count && x < 0) || !leads_on(c, word[i], x) || (x >= 0 && !choose(c, x))) return 0;
    }
    cover(c, v);
    return 1;
}

/* Marks the nodes that are left out, none of which may be another's neighbour; no flow leaves or reaches any yet. */
static int open_crown(Check *c, const int64_t *out, int64_t count) {
    if (!different(c, out, count)) return 0;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t *row = named(c, out[i]);
        if (!row) return 0;
        c->flow[out[i]] = 0;
        for (int32_t j = 0; j < c->count[out[i]]; ++j) {
            if (c->mark[row[j]] == c->stamp) return 0;
            c->flow[row[j]] = 0;
        }
    }
    return 1;
}

static int check_crown(Check *c, const int64_t *word, int64_t count) {
    if (word[0] < 1 || word[0] > count - 1) return 0;
    const int64_t outs = word[0], flows = count - 1 - outs, *flow = word + 1 + outs;
    if (flows % 3 || !open_crown(c, word + 1, outs)) return 0;
    for (int64_t i = 0; i < flows; i += 3) {
        const int64_t from = flow[i], to = flow[i + 1], amount = flow[i + 2];
        if (!is_left(c, from) || !is_left(c, to) || c->mark[from] != c->stamp || !joined(c, from, to)) return 0;
        if (amount < 1 || amount > c->weight[from] - c->flow[from] || amount > c->weight[to] - c->flow[to]) return 0;
        c->flow[from] += amount;
        c->flow[to] += amount;
    }
    for (int64_t i = 0; i < outs; ++i)
        for (int32_t j = 0; j < c->count[word[1 + i]]; ++j) {
            const int32_t head = c->row[word[1 + i]][j];
            if (c->flow[head] != c->weight[head]) return 0;
        }
    for (int64_t i = 0; i < outs; ++i)
        for (int32_t j = 0; j < c->count[word[1 + i]]; ++j)
            if (!c->gone[c->row[word[1 + i]][j]]) cover(c, c->row[word[1 + i]][j]);
    return 1;
}

/* ---- what the caller sees ------------------------------------------------------------------------------- */

/* Pay for `count` different nodes and remove them: those that are fixed before the first step. */
void lk_check_cover(Check *c, const int64_t *nodes, int64_t count) {
    for (int64_t i = 0; i < count; ++i) cover(c, nodes[i]);
}

static int check_entry(Check *c, int64_t rule, const int64_t *word, int64_t count) {
    switch (rule) {
    case NEIGHBOURS: return check_neighbours(c, word, count);
    case CLIQUE: return check_clique(c, word, count);
    case TRANSFER: return check_transfer(c, word, count);
    case FOLD: return check_fold(c, word, count);
    case TWIN: return check_twin(c, word, count);
    case UNCONFINED: return check_unconfined(c, word, count);
    case CROWN: return check_crown(c, word, count);
    default: return 0; /* a choice, or no entry of a log */
    }
}

/* Check at most `steps` entries of a log from word `at` on; returns where the next one begins, -1 at an entry that is not
 * proved, -2 without memory. */
int64_t lk_check_run(Check *c, const int64_t *log, int64_t length, int64_t at, int64_t steps) {
    for (; steps-- > 0 && at < length; at += 2 + log[at + 1]) {
        if (length - at < 3 || log[at + 1] < 1 || log[at + 1] > length - at - 2) return -1;
        if (!check_entry(c, log[at], log + at + 2, log[at + 1])) return -1;
        if (c->failed) return -2;
    }
    return at;
}

/* rest [3]: the offset; nodes that have an edge left, and their entries. */
void lk_check_rest(Check *c, int64_t *rest) {
    rest[0] = c->offset, rest[1] = rest[2] = 0;
    for (int64_t v = 0; v < c->n; ++v) {
        if (c->gone[v]) continue;
        tidy(c, v);
        rest[1] += c->count[v] > 0;
        rest[2] += c->count[v];
    }
}

/* After lk_check_rest: indptr [k + 1], indices [entries], node [k] and weight [k] of those nodes, ascending. */
void lk_check_kernel(Check *c, int64_t *indptr, int32_t *indices, int64_t *node, int64_t *weight) {
    int32_t *number = c->mark, k = 0;
    int64_t at = 0;
    for (int64_t v = 0; v < c->n; ++v)
        if (!c->gone[v] && c->count[v]) number[v] = k++;
    *indptr = 0;
    for (int64_t v = 0; v < c->n; ++v) {
        if (c->gone[v] || !c->count[v]) continue;
        for (int32_t i = 0; i < c->count[v]; ++i) indices[at++] = number[c->row[v][i]];
        *++indptr = at;
        *node++ = v;
        *weight++ = c->weight[v];
    }
}
