/* The independent check of a log of reductions of maximum cut: what app/reductions/cut/verify.py does with dictionaries,
 * on rows of numbers. It shares with the reducer (reduce_cut.c) only the meaning of the log (app/reductions/cut/log.py):
 * it asks of each step whether the nodes it names satisfy what its rule demands, and makes the changes itself.
 *
 * Nodes only ever leave. A row keeps edges to those that have left, and edges whose weight has become 0, until it is next
 * read as a whole. */
#include "blocks.h"

enum { TIE, MERGE, TWIN, TRIANGLE, CLIQUE }; /* as in app/reductions/cut/log.py */

__extension__ typedef __int128 Product;

typedef struct {
    int64_t weight;
    int32_t node;
} Edge;

typedef struct {
    int64_t n, offset, untied;
    Edge **row, *pool;     /* ascending neighbours of each node, and the rows of the graph */
    int32_t *count, *room; /* entries of a row, and how many fit there */
    uint8_t *gone;
    int64_t *tie; /* [n] 2 v + apart of the node v that a node is still to be tied to, or -1 */
    int32_t *mark;
    int32_t stamp;
    Blocks grown;   /* rows that outgrew their place */
    uint8_t failed; /* no memory left */
} Check;

void lk_check_cut_free(Check *c) {
    if (!c) return;
    free_blocks(&c->grown);
    void *arrays[] = {c->row, c->pool, c->count, c->room, c->gone, c->tie, c->mark};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) free(arrays[i]);
    free(c);
}

Check *lk_check_cut_new(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *weights) {
    const size_t nodes = (size_t)(n ? n : 1), entries = (size_t)(indptr[n] ? indptr[n] : 1);
    Check *c = calloc(1, sizeof *c);
    if (!c) return 0;
    c->n = n;
    c->row = malloc(nodes * sizeof *c->row), c->pool = malloc(entries * sizeof *c->pool);
    c->count = malloc(nodes * 4), c->room = malloc(nodes * 4), c->tie = malloc(nodes * 8);
    c->gone = calloc(nodes, 1), c->mark = calloc(nodes, 4);
    if (!c->row || !c->pool || !c->count || !c->room || !c->tie || !c->gone || !c->mark) {
        lk_check_cut_free(c);
        return 0;
    }
    for (int64_t i = 0; i < indptr[n]; ++i) c->pool[i] = (Edge){weights[i], indices[i]};
    for (int64_t v = 0; v < n; ++v) {
        c->row[v] = c->pool + indptr[v];
        c->count[v] = c->room[v] = (int32_t)(indptr[v + 1] - indptr[v]);
        c->tie[v] = -1;
    }
    return c;
}

/* u is to be tied to v before anything else happens to it. */
void lk_check_cut_expect(Check *c, int64_t u, int64_t v, int64_t apart) {
    c->tie[u] = 2 * v + apart;
    ++c->untied;
}

/* ---- the residual graph -------------------------------------------------------------------------------- */

INLINE int is_left(const Check *c, int64_t v) { return v >= 0 && v < c->n && !c->gone[v]; }

/* Whether a step may take u out. */
INLINE int is_free(const Check *c, int64_t u) { return is_left(c, u) && c->tie[u] < 0; }

/* The edges of v that are left, count[v] of them. */
static const Edge *tidy(Check *c, int64_t v) {
    Edge *row = c->row[v];
    int32_t kept = 0;
    for (int32_t i = 0; i < c->count[v]; ++i)
        if (row[i].weight && !c->gone[row[i].node]) row[kept++] = row[i];
    c->count[v] = kept;
    return row;
}

/* The place of the first edge of v's row whose end is not below u. */
static int32_t place(const Check *c, int64_t v, int64_t u) {
    int32_t from = 0, to = c->count[v];
    while (from < to) {
        const int32_t middle = from + (to - from) / 2;
        if (c->row[v][middle].node < u) from = middle + 1;
        else to = middle;
    }
    return from;
}

/* The weight between two nodes that are left; 0: no edge. */
static int64_t weight_of(const Check *c, int64_t u, int64_t v) {
    const int32_t at = place(c, u, v);
    return at < c->count[u] && c->row[u][at].node == v ? c->row[u][at].weight : 0;
}

/* Add to the weight in v's row of the edge to u. */
static void add_half(Check *c, int64_t v, int64_t u, int64_t weight) {
    int32_t at = place(c, v, u);
    if (at < c->count[v] && c->row[v][at].node == u) {
        c->row[v][at].weight += weight;
        return;
    }
    if (c->count[v] == c->room[v]) tidy(c, v);
    if (c->count[v] == c->room[v]) {
        const int32_t room = 2 * c->count[v] + 4;
        Edge *row = take_piece(&c->grown, (size_t)room * sizeof *row);
        if (!row) {
            c->failed = 1;
            return;
        }
        memcpy(row, c->row[v], (size_t)c->count[v] * sizeof *row);
        c->row[v] = row;
        c->room[v] = room;
    }
    at = place(c, v, u);
    memmove(c->row[v] + at + 1, c->row[v] + at, (size_t)(c->count[v] - at) * sizeof(Edge));
    c->row[v][at] = (Edge){weight, (int32_t)u};
    ++c->count[v];
}

INLINE void add(Check *c, int64_t u, int64_t v, int64_t weight) {
    if (!weight) return;
    add_half(c, u, v, weight);
    add_half(c, v, u, weight);
}

/* Put u and v together: what is cut exactly where v and x are on one side counts as cut, less the weight of v and x. */
static void contract(Check *c, int64_t u, int64_t v, int apart) {
    const Edge *row = tidy(c, u);
    c->gone[u] = 1;
    for (int32_t i = 0; i < c->count[u]; ++i) {
        const int64_t x = row[i].node, weight = row[i].weight;
        if (apart) c->offset += weight;
        if (x != v) add(c, v, x, apart ? -weight : weight);
    }
}

/* ---- the rules: whether the step is one, and then done -------------------------------------------------- */

static int check_tie(Check *c, const int64_t *word) {
    const int64_t u = word[0], v = word[1], apart = word[2] != 0;
    if (!is_left(c, u) || !is_left(c, v) || u == v || c->tie[u] != 2 * v + apart) return 0;
    c->tie[u] = -1;
    --c->untied;
    contract(c, u, v, (int)apart);
    return 1;
}

static int check_merge(Check *c, const int64_t *word) {
    const int64_t u = word[0], v = word[1];
    int64_t total = 0;
    if (!is_free(c, u) || !is_left(c, v)) return 0;
    const Edge *row = tidy(c, u);
    for (int32_t i = 0; i < c->count[u]; ++i) total += llabs(row[i].weight);
    const int64_t own = weight_of(c, u, v);
    if (!own || (own > 0) != (word[2] != 0) || 2 * llabs(own) < total) return 0;
    contract(c, u, v, word[2] != 0);
    return 1;
}

static int check_twin(Check *c, const int64_t *word) {
    const int64_t u = word[0], v = word[1];
    if (c->untied || !is_free(c, u) || !is_left(c, v) || u == v) return 0; /* v, too, has to be free in its side */
    const Edge *a = tidy(c, u), *b = tidy(c, v);
    if (!c->count[u] || c->count[u] != c->count[v]) return 0;
    for (int32_t i = 0; i < c->count[u]; ++i)
        if (a[i].node != b[i].node || (Product)a[i].weight * b->weight != (Product)b[i].weight * a->weight) return 0;
    if (((a->weight < 0) != (b->weight < 0)) != (word[2] != 0)) return 0;
    contract(c, u, v, word[2] != 0);
    return 1;
}

/* The most that a node with the edges row [3] can add where the neighbour `lone` is apart from the others; -1: none is. */
static int64_t worth(const Edge *row, int lone) {
    int64_t here = 0, there = 0;
    for (int i = 0; i < 3; ++i) {
        if (i == lone) there += row[i].weight;
        else here += row[i].weight;
    }
    return here > there ? here : there;
}

static int check_triangle(Check *c, const int64_t *word) {
    const int64_t u = word[0];
    int64_t base, doubled[3]; /* [i]: twice what the edge opposite neighbour i gets */
    if (!is_free(c, u)) return 0;
    const Edge *row = tidy(c, u);
    if (c->count[u] != 3) return 0;
    for (int i = 0; i < 3; ++i) { /* all different, as each is in the row of three */
        int found = 0;
        for (int j = 0; j < 3; ++j) found += word[1 + 2 * j] == row[i].node && word[2 + 2 * j] == row[i].weight;
        if (!found) return 0;
    }
    base = worth(row, -1);
    for (int i = 0; i < 3; ++i) {
        doubled[i] = worth(row, (i + 1) % 3) + worth(row, (i + 2) % 3) - worth(row, i) - base;
        if (doubled[i] % 2) return 0;
    }
    for (int i = 0; i < 3; ++i) /* the triangle adds what u does */
        if (base + doubled[(i + 1) % 3] / 2 + doubled[(i + 2) % 3] / 2 != worth(row, i)) return 0;
    c->offset += base;
    c->gone[u] = 1;
    for (int i = 0; i < 3; ++i) add(c, row[(i + 1) % 3].node, row[(i + 2) % 3].node, doubled[i] / 2);
    return 1;
}

/* Whether the words are different nodes that are left and free; marks them. */
static int different(Check *c, const int64_t *word, int64_t count) {
    if (c->stamp == INT32_MAX) memset(c->mark, 0, (size_t)c->n * 4), c->stamp = 0;
    ++c->stamp;
    for (int64_t i = 0; i < count; ++i) {
        if (!is_free(c, word[i]) || c->mark[word[i]] == c->stamp) return 0;
        c->mark[word[i]] = c->stamp;
    }
    return 1;
}

static int check_clique(Check *c, const int64_t *word, int64_t count) {
    if (word[0] < 1 || word[1] < 1 || word[1] > count - 2) return 0;
    const int64_t weight = word[0], ins = word[1], k = count - 2, outs = k - ins, *inside = word + 2;
    if (ins < outs - 1 || !different(c, inside, k)) return 0;
    for (int64_t i = 0; i < ins; ++i) {
        const Edge *row = tidy(c, inside[i]);
        if (c->count[inside[i]] != k - 1) return 0;
        for (int64_t j = 0; j < k - 1; ++j)
            if (c->mark[row[j].node] != c->stamp || row[j].weight != weight) return 0;
    }
    if (k > 1) c->offset += weight * (k * k / 4);
    for (int64_t i = 0; i < ins; ++i) c->gone[inside[i]] = 1;
    for (int64_t i = ins; i < k; ++i)
        for (int64_t j = ins; j < i; ++j) add(c, inside[i], inside[j], -weight);
    return 1;
}

/* ---- what the caller sees ------------------------------------------------------------------------------- */

static int check_entry(Check *c, int64_t rule, const int64_t *word, int64_t count) {
    switch (rule) {
    case TIE: return count == 3 && check_tie(c, word);
    case MERGE: return count == 3 && check_merge(c, word);
    case TWIN: return count == 3 && check_twin(c, word);
    case TRIANGLE: return count == 7 && check_triangle(c, word);
    case CLIQUE: return count >= 3 && check_clique(c, word, count);
    default: return 0;
    }
}

/* Check at most `steps` entries of a log from word `at` on; returns where the next one begins, -1 at an entry that is not
 * proved, -2 without memory. */
int64_t lk_check_cut_run(Check *c, const int64_t *log, int64_t length, int64_t at, int64_t steps) {
    for (; steps-- > 0 && at < length; at += 2 + log[at + 1]) {
        if (length - at < 3 || log[at + 1] < 1 || log[at + 1] > length - at - 2) return -1;
        if (!check_entry(c, log[at], log + at + 2, log[at + 1])) return -1;
        if (c->failed) return -2;
    }
    return at;
}

/* rest [4]: the offset; nodes that have an edge left, and their entries; nodes that are still to be tied. */
void lk_check_cut_rest(Check *c, int64_t *rest) {
    rest[0] = c->offset, rest[1] = rest[2] = 0, rest[3] = c->untied;
    for (int64_t v = 0; v < c->n; ++v) {
        if (c->gone[v]) continue;
        tidy(c, v);
        rest[1] += c->count[v] > 0;
        rest[2] += c->count[v];
    }
}

/* After lk_check_cut_rest: indptr [k + 1], indices and weights [entries], node [k] of those nodes, ascending. */
void lk_check_cut_kernel(Check *c, int64_t *indptr, int32_t *indices, int64_t *weights, int64_t *node) {
    int32_t *number = c->mark, k = 0;
    int64_t at = 0;
    for (int64_t v = 0; v < c->n; ++v)
        if (!c->gone[v] && c->count[v]) number[v] = k++;
    *indptr = 0;
    for (int64_t v = 0; v < c->n; ++v) {
        if (c->gone[v] || !c->count[v]) continue;
        for (int32_t i = 0; i < c->count[v]; ++i, ++at) {
            indices[at] = number[c->row[v][i].node];
            weights[at] = c->row[v][i].weight;
        }
        *++indptr = at;
        *node++ = v;
    }
}
