/* Incremental inference (app/rl/incremental.py): after nodes were removed, recompute the rows that can change with
 * the operations of a full evaluation, pass on the rows whose bits did change, and keep the keys of candidates.
 *
 * Rows of nodes without live edges are not kept up to date: nothing reads them. What neighbours see of a removed
 * node is set to zero, which adds nothing to a chain. */
#include "lanes.h"

enum { LAYERS = 16, CHUNK = 256, BLOCK = 64 };

/* The network of one evaluation; matrices padded to a multiple of 16 columns. */
enum { UNTOUCHED = -1, RULED_OUT = -2 };  /* in chosen_at, as in app/rl/env.py */

typedef struct {
    int64_t layers, K, F, hidden, self_weight, head_F; /* F, head_F: columns of the table that they use */
    const float *W[LAYERS];        /* layer l: [F (+K) (+K)][padded K] */
    const float *theta6, *theta7;  /* [K + head_F][padded hidden], [hidden] */
} Net;

typedef struct {
    int64_t n_own, n_ext, own_at, lo, steps;
    const int32_t *indptr, *indices;         /* rows of A: extended columns */
    const int32_t *ghost_ptr, *ghost_rows;   /* own rows of each ghost column; null on one rank */
    const int64_t *columns;                  /* global number of each extended column, or null: the same */
    const uint8_t *boundary;                 /* own rows that other ranks hold as ghosts, or null */
    const Net *net;
    int64_t closed;                          /* choosing a node removes its neighbours too */
    const int64_t *worth;                    /* [1 + largest degree], what a node of each degree adds to totals[2] */
    int64_t *reached;                        /* [1 + largest degree], in a run */
    const float *table;                      /* [2 + largest degree][F], entry 1 + degree */
    const float *factor;                     /* [2 + largest degree], of neighbour sums, entry 1 + degree */
    float full_share;                        /* share of the stored entries beyond which a layer is made anew */
    int32_t *degree, *chosen_at;             /* of the environment */
    float *X[LAYERS];                        /* layer l < layers: [n_ext][K], what neighbours see */
    uint64_t *key, *top;                     /* [n_own], and the largest of each BLOCK */
    float *aside_X[LAYERS];                  /* X, key and top of another state, or null; lk_inc_turn */
    uint64_t *aside_key, *aside_top;
    uint8_t *behind;                         /* [n_own] rows touched since these were put aside */
    int32_t *mark;                           /* [n_own] the last round in which a row was listed */
    int32_t *touched, *changed, *affected, *ghosts; /* lists of rows; ghosts: [n_ext] */
    float *scratch;                          /* CHUNK * (2 padded K + 2) */
    int64_t round, n_touched, n_changed, n_ghosts;
    int64_t totals[4];                       /* alive, degree sum, sum of worth, free nodes */
    int64_t rows_made, layers_full;          /* counters */
} State;

INLINE uint64_t key_of(float score, int64_t node) {
    uint32_t bits;
    score += 0.0f;
    memcpy(&bits, &score, 4);
    if (score != score) bits = 0xFFFFFFFFu;
    else bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (0xFFFFFFFFu - (uint64_t)node);
}

/* ---- keys ------------------------------------------------------------------------------------------------- */

INLINE void set_key(State *s, int64_t row, uint64_t key) {
    const uint64_t old = s->key[row];
    const int64_t block = row / BLOCK;
    if (old == key) return;
    s->key[row] = key;
    if (key > s->top[block]) s->top[block] = key;
    else if (old == s->top[block]) {
        const int64_t first = block * BLOCK, end = first + BLOCK < s->n_own ? first + BLOCK : s->n_own;
        uint64_t best = 0;
        for (int64_t i = first; i < end; ++i) best = s->key[i] > best ? s->key[i] : best;
        s->top[block] = best;
    }
}

WIDE uint64_t lk_inc_best(const State *s) {
    const int64_t blocks = (s->n_own + BLOCK - 1) / BLOCK;
    uint64_t best = 0;
    for (int64_t i = 0; i < blocks; ++i) best = s->top[i] > best ? s->top[i] : best;
    return best;
}

/* ---- rows ------------------------------------------------------------------------------------------------- */

/* Recompute layer `layer` (from 0) of at most CHUNK own rows; the rows whose bits changed join `changed`, in the last
 * layer keys are set instead. */
static void make_rows(State *s, int64_t layer, const int32_t *rows, int64_t count) {
    const Net *net = s->net;
    const int64_t K = net->K, padded = (K + 15) / 16 * 16, hidden = (net->hidden + 15) / 16 * 16;
    float *N = s->scratch, *Z = N + CHUNK * padded, *score = Z + CHUNK * padded;
    int32_t code[CHUNK], own[CHUNK];
    Part part[3] = {{s->table, net->F, net->F, code, 0}, {N, K, K, 0, 0}, {0, K, K, own, 0}};
    for (int64_t i = 0; i < count; ++i) {
        code[i] = s->degree[rows[i]] + 1;
        own[i] = rows[i];
    }
    Dense d = {.rows = count, .parts = 1, .m = K, .mp = padded, .part = part, .W = net->W[layer], .Z = Z, .ldz = K,
               .relu = 1};
    if (layer > 0) {
        lk_lanes()->neighbour_sums(count, rows, s->indptr, s->indices, K, s->X[layer - 1], s->factor, code, N);
        part[2].X = s->X[layer - 1] + s->own_at * K;
        d.parts = net->self_weight ? 3 : 2;
    }
    lk_dense(&d);
    s->rows_made += count;
    if (layer < net->layers - 1) {
        for (int64_t i = 0; i < count; ++i) {
            float *x = s->X[layer] + (s->own_at + rows[i]) * K;
            if (memcmp(x, Z + i * K, (size_t)K * 4) == 0) continue;
            memcpy(x, Z + i * K, (size_t)K * 4);
            s->changed[s->n_changed++] = rows[i];
        }
        return;
    }
    Part head[2] = {{Z, K, K, 0, 0}, {s->table, net->F, net->head_F, code, 0}};
    Dense q = {.rows = count, .parts = net->head_F ? 2 : 1, .m = net->hidden, .mp = hidden, .part = head,
               .W = net->theta6, .relu = 1, .w = net->theta7, .out = score};
    lk_dense(&q);
    for (int64_t i = 0; i < count; ++i) set_key(s, rows[i], key_of(score[i], s->lo + rows[i]));
}

static void make_all(State *s, int64_t layer, const int32_t *rows, int64_t count) {
    s->n_changed = 0;
    for (int64_t i = 0; i < count; i += CHUNK) make_rows(s, layer, rows + i, count - i < CHUNK ? count - i : CHUNK);
}

/* ---- what a removal changes --------------------------------------------------------------------------------- */

INLINE int64_t position(const State *s, int64_t node) { /* extended column of a global node, or -1 */
    int64_t lo = 0, hi = s->n_ext;
    if (!s->columns) return node;
    while (lo < hi) {
        const int64_t mid = (lo + hi) / 2;
        if (s->columns[mid] < node) lo = mid + 1;
        else hi = mid;
    }
    return lo < s->n_ext && s->columns[lo] == node ? lo : -1;
}

/* The own rows that may touch an extended column; entries that are no own rows are negative or too large. */
INLINE void neighbours(const State *s, int64_t at, const int32_t **rows, int64_t *count, int32_t *shift) {
    const int64_t row = at - s->own_at;
    if (row >= 0 && row < s->n_own) {
        *rows = s->indices + s->indptr[row];
        *count = s->indptr[row + 1] - s->indptr[row];
        *shift = (int32_t)s->own_at;
    } else {
        *rows = s->ghost_rows + s->ghost_ptr[at];
        *count = s->ghost_ptr[at + 1] - s->ghost_ptr[at];
        *shift = 0;
    }
}

/* Remove nodes (global numbers), update degrees and what neighbours see, list the touched rows, make layer 0. The first
 * `chosen` nodes are chosen, the others ruled out. change [4] is this rank's share of the change of the totals. */
void lk_inc_remove(State *s, const int64_t *nodes, int64_t count, int64_t chosen, int64_t *change) {
    const int64_t K = s->net->K;
    const int32_t *rows;
    int64_t near, kept = 0;
    int32_t shift;
    memset(change, 0, 4 * sizeof *change);
    s->n_touched = 0;
    s->round += 1;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t at = position(s, nodes[i]), row = at - s->own_at;
        if (at < 0) continue;
        for (int64_t l = 0; l + 1 < s->net->layers; ++l) {
            memset(s->X[l] + at * K, 0, (size_t)K * 4);
            if (s->behind) memset(s->aside_X[l] + at * K, 0, (size_t)K * 4);
        }
        if (row < 0 || row >= s->n_own) continue;
        if (s->behind) s->behind[row] = 1;
        change[0] -= s->degree[row] > 0;
        change[1] -= s->degree[row];
        change[2] -= s->worth[s->degree[row]];
        change[3] -= s->degree[row] == 0 && s->chosen_at[row] == UNTOUCHED;
        s->degree[row] = 0;
        s->chosen_at[row] = i < chosen ? (int32_t)s->steps : RULED_OUT;
        set_key(s, row, 0);
    }
    for (int64_t i = 0; i < count; ++i) {
        const int64_t at = position(s, nodes[i]);
        if (at < 0) continue;
        neighbours(s, at, &rows, &near, &shift);
        for (int64_t j = 0; j < near; ++j) {
            const int64_t row = (int64_t)rows[j] - shift;
            if (row < 0 || row >= s->n_own || s->degree[row] == 0) continue;
            if (s->mark[row] != (int32_t)s->round) {
                s->mark[row] = (int32_t)s->round;
                s->touched[s->n_touched++] = (int32_t)row;
                change[2] -= s->worth[s->degree[row]];
            }
            s->degree[row] -= 1;
            change[1] -= 1;
        }
    }
    for (int64_t i = 0; i < s->n_touched; ++i) {
        const int32_t row = s->touched[i];
        if (s->behind) s->behind[row] = 1;
        if (s->degree[row] == 0) {
            change[0] -= 1;
            change[3] += 1;
            set_key(s, row, 0);
            continue;
        }
        change[2] += s->worth[s->degree[row]];
        s->touched[kept++] = row;
    }
    s->n_touched = kept;
    s->n_ghosts = 0;
    s->steps += 1;
    make_all(s, 0, s->touched, s->n_touched);
}

INLINE int64_t list_row(State *s, int64_t row, int64_t *count) {
    if (s->mark[row] == (int32_t)s->round || s->degree[row] == 0) return 0;
    s->mark[row] = (int32_t)s->round;
    s->affected[(*count)++] = (int32_t)row;
    return s->indptr[row + 1] - s->indptr[row];
}

/* Layer `layer` >= 1 of the rows that touched rows, changed rows and changed ghosts can have changed. */
void lk_inc_layer(State *s, int64_t layer) {
    const int64_t most = (int64_t)(s->full_share * (double)s->indptr[s->n_own]), changed = s->n_changed;
    int64_t count = 0, entries = 0;
    s->round += 1;
    for (int64_t i = 0; i < s->n_touched; ++i) entries += list_row(s, s->touched[i], &count);
    if (s->net->self_weight)
        for (int64_t i = 0; i < changed; ++i) entries += list_row(s, s->changed[i], &count);
    for (int64_t i = 0; i < changed + s->n_ghosts && entries <= most; ++i) {
        const int64_t at = i < changed ? s->own_at + s->changed[i] : s->ghosts[i - changed];
        const int32_t *rows;
        int64_t near;
        int32_t shift;
        neighbours(s, at, &rows, &near, &shift);
        for (int64_t j = 0; j < near; ++j) {
            const int64_t row = (int64_t)rows[j] - shift;
            if (row >= 0 && row < s->n_own) entries += list_row(s, row, &count);
        }
    }
    if (entries > most) { /* every row with live edges */
        count = 0;
        s->layers_full += 1;
        for (int64_t row = 0; row < s->n_own; ++row)
            if (s->degree[row] > 0) s->affected[count++] = (int32_t)row;
    }
    make_all(s, layer, s->affected, count);
    s->n_ghosts = 0;
}

/* Every row from the degrees: the start, and whenever the mean degree moved. X of ghosts is the caller's. */
void lk_inc_refresh(State *s, int64_t layer) {
    int64_t count = 0;
    for (int64_t row = 0; row < s->n_own; ++row)
        if (s->degree[row] > 0) s->affected[count++] = (int32_t)row;
    if (layer == 0) memset(s->key, 0, (size_t)s->n_own * 8), memset(s->top, 0, (size_t)((s->n_own + BLOCK - 1) / BLOCK) * 8);
    if (layer < s->net->layers - 1)
        memset(s->X[layer] + s->own_at * s->net->K, 0, (size_t)(s->n_own * s->net->K) * 4);
    make_all(s, layer, s->affected, count);
}

/* ---- a state that comes back --------------------------------------------------------------------------------- */

INLINE void swap(void *a, void *b) { /* two pointers */
    void *held;
    memcpy(&held, a, sizeof held);
    memcpy(a, b, sizeof held);
    memcpy(b, &held, sizeof held);
}

/* Put X and the keys aside, and go on with those put aside before. What the last removal touched is behind in the
 * first: its later layers were not made; `touched` lists the rows with live edges that are behind in the second. */
void lk_inc_turn(State *s) {
    const int64_t last = s->n_touched;
    int64_t count = 0;
    for (int64_t l = 0; l + 1 < s->net->layers; ++l) swap(&s->X[l], &s->aside_X[l]);
    swap(&s->key, &s->aside_key);
    swap(&s->top, &s->aside_top);
    swap(&s->touched, &s->affected);
    for (int64_t row = 0; row < s->n_own; ++row) {
        if (!s->behind[row]) continue;
        s->behind[row] = 0;
        if (s->degree[row] > 0) s->touched[count++] = (int32_t)row;
        else set_key(s, row, 0);
    }
    for (int64_t i = 0; i < last; ++i) s->behind[s->affected[i]] = 1;
    s->n_touched = count;
    s->n_ghosts = 0;
}

/* Layer 0 of the rows that are behind; all of them count as changed: some were made in layer 0 alone. */
void lk_inc_catch_up(State *s) {
    make_all(s, 0, s->touched, s->n_touched);
    memcpy(s->changed, s->touched, (size_t)s->n_touched * sizeof *s->changed);
    s->n_changed = s->n_touched;
}

/* ---- between ranks ------------------------------------------------------------------------------------------- */

/* Changed rows that other ranks hold: records of 1 + K words (global node, row of X); returns their number. */
int64_t lk_inc_pack(const State *s, int64_t layer, float *out) {
    const int64_t K = s->net->K;
    int64_t count = 0;
    for (int64_t i = 0; i < s->n_changed; ++i) {
        const int32_t row = s->changed[i];
        if (s->boundary && !s->boundary[row]) continue;
        float *record = out + count++ * (K + 1);
        const uint32_t node = (uint32_t)(s->lo + row);
        memcpy(record, &node, 4);
        memcpy(record + 1, s->X[layer] + (s->own_at + row) * K, (size_t)K * 4);
    }
    return count;
}

void lk_inc_unpack(State *s, int64_t layer, const float *records, int64_t count) {
    const int64_t K = s->net->K;
    for (int64_t i = 0; i < count; ++i) {
        const float *record = records + i * (K + 1);
        uint32_t node;
        memcpy(&node, record, 4);
        const int64_t at = position(s, node);
        if (at < 0) continue;
        memcpy(s->X[layer] + at * K, record + 1, (size_t)K * 4);
        s->ghosts[s->n_ghosts++] = (int32_t)at;
    }
}

/* ---- a run on one rank --------------------------------------------------------------------------------------- */

/* coarse() of app/problems/problem.py, of degrees. */
static double mean_degree(const int64_t *totals) {
    double value;
    int exponent = 0;
    if (totals[0] == 0) return 1.0;
    value = (double)totals[1] / (double)totals[0];
    while (value >= 16) value /= 2, ++exponent;
    while (value < 8) value *= 2, --exponent;
    value = __builtin_nearbyint(value);
    while (exponent > 0) value *= 2, --exponent;
    while (exponent < 0) value /= 2, ++exponent;
    return value;
}

/* Lists a node and, where the problem is closed, its neighbours with live edges; returns how many. One rank only. */
INLINE int64_t reach(State *s, int64_t node) {
    int64_t count = 1;
    s->reached[0] = node;
    if (!s->closed) return count;
    for (int32_t j = s->indptr[node]; j < s->indptr[node + 1]; ++j)
        if (s->degree[s->indices[j]] > 0) s->reached[count++] = s->indices[j];
    return count;
}

/* Select the best node and update, until no edge is left, the mean degree moves (where factors and features follow
 * it: later layers are left as they were), fewer than `least_alive` nodes are alive, a score is NaN, or `most` steps are made.
 * Returns the number of steps; *bad is set for NaN. */
int64_t lk_inc_run(State *s, int64_t most, int64_t least_alive, int follow_mean, int *bad) {
    const double mean = mean_degree(s->totals);
    int64_t steps = 0, change[4];
    *bad = 0;
    while (steps < most && s->totals[1] > 0 && s->totals[0] >= least_alive) {
        const uint64_t best = lk_inc_best(s);
        const int64_t node = (int64_t)(0xFFFFFFFFu - (best & 0xFFFFFFFFu));
        if (best >> 32 == 0xFFFFFFFFu) {
            *bad = 1;
            break;
        }
        lk_inc_remove(s, s->reached, reach(s, node), 1, change);
        for (int k = 0; k < 4; ++k) s->totals[k] += change[k];
        ++steps;
        if (follow_mean && mean_degree(s->totals) != mean) break;
        for (int64_t l = 1; l < s->net->layers; ++l) lk_inc_layer(s, l);
    }
    return steps;
}
