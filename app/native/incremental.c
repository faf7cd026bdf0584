/* Incremental inference (app/rl/incremental.py): after nodes were removed, recompute the rows that can change with
 * the operations of a full evaluation, pass on the rows whose bits did change, and keep the keys of candidates.
 *
 * Residual graphs: rows of nodes without live edges are not kept up to date, nothing reads them. What neighbours see of
 * a removed node is set to zero, which adds nothing to a chain. Elsewhere rows that lose their embedding are zeroed. */
#include "lanes.h"
#include "family.h"

enum { LAYERS = 16, CHUNK = 256, BLOCK = 64 };

/* The network of one evaluation; matrices padded to a multiple of 16 columns. */
enum { UNTOUCHED = -1, RULED_OUT = -2 };  /* in chosen_at, as in app/rl/env.py */

typedef struct {
    int64_t layers, K, F, hidden, self_weight, head_F; /* F, head_F: columns of the table that they use */
    const float *W[LAYERS];        /* layer l: [F (+K) (+K)][padded K] */
    const float *theta6, *theta7;  /* [K + head_F][padded hidden], [hidden] */
} Net;

/* Dynamics: residual graphs, dominating sets, 2-cores, large components, those whose steps Python makes, families of sets. */
enum { RESIDUAL, DOMINATION, CORE, PARTS, OTHER, FAMILY };

enum { FIRST_ALIVE = 2 }; /* of app/problems/problem.py */

typedef struct {
    int64_t dynamics, n_own, n_ext, own_at, lo, steps;
    const int32_t *indptr, *indices;         /* rows of A: extended columns */
    const int32_t *ghost_ptr, *ghost_rows;   /* own rows of each ghost column; null on one rank */
    const int64_t *columns;                  /* global number of each extended column, or null: the same */
    const uint8_t *boundary;                 /* own rows that other ranks hold as ghosts, or null */
    const Net *net;
    int64_t closed;                          /* choosing a node removes its neighbours too */
    int64_t first;                           /* the least live of a candidate */
    const int64_t *worth;                    /* [2 + largest degree], what a node adds to totals[2] by its degree, to
                                              * totals[3] of a dominating set by its gain */
    int64_t *reached;                        /* [1 + largest degree], in a run; of 2-cores and large components [n_own] */
    const float *table;                      /* [entries][F], by live */
    const float *factor;                     /* [entries], of neighbour sums, by live */
    float full_share;                        /* share of the stored entries beyond which a layer is made anew */
    int32_t *live;                           /* [n_own] what a row looks like, 0: no embedding. The degrees of a residual
                                              * graph; else codes */
    int32_t *chosen_at, *mark, *field;       /* of the environment; mark and field: dominating sets; of 2-cores and
                                              * large components field has the degrees, mark is zero between steps */
    const int64_t *look, *price;             /* of families: app/rl/family_env.py */
    float *X[LAYERS];                        /* layer l < layers: [n_ext][K], what neighbours see */
    uint64_t *key, *top;                     /* [n_own], and the largest of each BLOCK */
    float *aside_X[LAYERS];                  /* X, key and top of another state, or null; lk_inc_turn */
    uint64_t *aside_key, *aside_top;
    uint8_t *behind;                         /* [n_own] rows touched since these were put aside */
    int32_t *listed;                         /* [n_own] the last round in which a row was */
    int32_t *touched, *dead;                 /* lists of rows whose live changed: with an embedding, without one now */
    int32_t *changed, *affected, *ghosts;    /* lists of rows; ghosts: [n_ext] */
    float *scratch;                          /* CHUNK * (2 padded K + 2) */
    int64_t round, n_touched, n_dead, n_changed, n_ghosts;
    int64_t totals[4];                       /* alive, degree sum, sum of worth, free nodes (of large components: what
                                              * a small one has at most); or alive, sum of gains, undominated, sum of
                                              * worth; of a family alive, how cheap sets are over elements that
                                              * are left, these elements, their prices */
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
        code[i] = s->live[rows[i]];
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
    for (int64_t i = 0; i < count; ++i)
        set_key(s, rows[i], code[i] < s->first ? 0 : key_of(score[i], s->lo + rows[i]));
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
    s->n_touched = s->n_dead = 0;
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
        change[0] -= s->live[row] > 0;
        change[1] -= s->live[row];
        change[2] -= s->worth[s->live[row]];
        change[3] -= s->live[row] == 0 && s->chosen_at[row] == UNTOUCHED;
        s->live[row] = 0;
        s->chosen_at[row] = i < chosen ? (int32_t)s->steps : RULED_OUT;
        set_key(s, row, 0);
    }
    for (int64_t i = 0; i < count; ++i) {
        const int64_t at = position(s, nodes[i]);
        if (at < 0) continue;
        neighbours(s, at, &rows, &near, &shift);
        for (int64_t j = 0; j < near; ++j) {
            const int64_t row = (int64_t)rows[j] - shift;
            if (row < 0 || row >= s->n_own || s->live[row] == 0) continue;
            if (s->listed[row] != (int32_t)s->round) {
                s->listed[row] = (int32_t)s->round;
                s->touched[s->n_touched++] = (int32_t)row;
                change[2] -= s->worth[s->live[row]];
            }
            s->live[row] -= 1;
            change[1] -= 1;
        }
    }
    for (int64_t i = 0; i < s->n_touched; ++i) {
        const int32_t row = s->touched[i];
        if (s->behind) s->behind[row] = 1;
        if (s->live[row] == 0) {
            change[0] -= 1;
            change[3] += 1;
            set_key(s, row, 0);
            continue;
        }
        change[2] += s->worth[s->live[row]];
        s->touched[kept++] = row;
    }
    s->n_touched = kept;
    s->n_ghosts = 0;
    s->steps += 1;
    make_all(s, 0, s->touched, s->n_touched);
}

/* Rows that lost their embedding: in `layer` nothing is left of them, which their neighbours have to see. all: also where
 * nothing was left before. */
static void bury(State *s, int64_t layer, int all) {
    const int64_t K = s->net->K;
    if (layer == s->net->layers - 1) return;
    for (int64_t i = 0; i < s->n_dead; ++i) {
        float *x = s->X[layer] + (s->own_at + s->dead[i]) * K;
        int left = all;
        for (int64_t k = 0; k < K && !left; ++k) left = x[k] != 0;
        if (!left) continue;
        memset(x, 0, (size_t)K * 4);
        s->changed[s->n_changed++] = s->dead[i];
    }
}

/* Own rows, each once, and what they look like now: those that changed are touched or dead; layer 0 of them is made. */
void lk_inc_touch(State *s, const int32_t *rows, const int32_t *live, int64_t count) {
    s->n_touched = s->n_dead = s->n_ghosts = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t row = rows[i];
        if (live[i] == s->live[row]) continue;
        s->live[row] = live[i];
        if (s->behind) s->behind[row] = 1;
        if (live[i] < s->first) set_key(s, row, 0);
        if (live[i] > 0) s->touched[s->n_touched++] = row;
        else s->dead[s->n_dead++] = row;
    }
    make_all(s, 0, s->touched, s->n_touched);
    bury(s, 0, 0);
}

INLINE int64_t list_row(State *s, int64_t row, int64_t *count) {
    if (s->listed[row] == (int32_t)s->round || s->live[row] == 0) return 0;
    s->listed[row] = (int32_t)s->round;
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
    if (entries > most) { /* every row with an embedding */
        count = 0;
        s->layers_full += 1;
        for (int64_t row = 0; row < s->n_own; ++row)
            if (s->live[row] > 0) s->affected[count++] = (int32_t)row;
    }
    make_all(s, layer, s->affected, count);
    bury(s, layer, 0);
    s->n_ghosts = 0;
}

/* Every row from the degrees: the start, and whenever the mean degree moved. X of ghosts is the caller's. */
void lk_inc_refresh(State *s, int64_t layer) {
    int64_t count = 0;
    for (int64_t row = 0; row < s->n_own; ++row)
        if (s->live[row] > 0) s->affected[count++] = (int32_t)row;
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
    const int64_t last = s->n_touched, lost = s->n_dead;
    int64_t count = 0;
    for (int64_t l = 0; l + 1 < s->net->layers; ++l) swap(&s->X[l], &s->aside_X[l]);
    swap(&s->key, &s->aside_key);
    swap(&s->top, &s->aside_top);
    swap(&s->touched, &s->affected);
    swap(&s->dead, &s->changed);
    s->n_dead = 0;
    for (int64_t row = 0; row < s->n_own; ++row) {
        if (!s->behind[row]) continue;
        s->behind[row] = 0;
        if (s->live[row] > 0) s->touched[count++] = (int32_t)row;
        else if (s->dynamics == RESIDUAL) set_key(s, row, 0);
        else set_key(s, row, 0), s->dead[s->n_dead++] = (int32_t)row;
    }
    for (int64_t i = 0; i < last; ++i) s->behind[s->affected[i]] = 1;
    for (int64_t i = 0; i < lost; ++i) s->behind[s->changed[i]] = 1;
    s->n_touched = count;
    s->n_ghosts = 0;
}

/* Layer 0 of the rows that are behind; all of them count as changed: some were made in layer 0 alone. */
void lk_inc_catch_up(State *s) {
    make_all(s, 0, s->touched, s->n_touched);
    memcpy(s->changed, s->touched, (size_t)s->n_touched * sizeof *s->changed);
    s->n_changed = s->n_touched;
    bury(s, 0, 1);
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

/* coarse() of app/problems/problem.py. */
static double coarse(int64_t total, int64_t count) {
    double value;
    int exponent = 0;
    if (count == 0 || total <= 0) return 1.0;
    value = (double)total / (double)count;
    while (value >= 16) value /= 2, ++exponent;
    while (value < 8) value *= 2, --exponent;
    value = __builtin_nearbyint(value);
    while (exponent > 0) value *= 2, --exponent;
    while (exponent < 0) value /= 2, ++exponent;
    return value;
}

static int64_t root(int64_t x) { /* rounded down */
    int64_t r = (int64_t)__builtin_sqrt((double)x);
    while (r * r > x) --r;
    while ((r + 1) * (r + 1) <= x) ++r;
    return r;
}

typedef struct {
    double scale, mean, scarce;
} Seen;

/* What all rows see of the state: Problem.state. */
static Seen seen(const State *s) {
    const int64_t *t = s->totals;
    Seen now = {0, coarse(t[1], t[0]), 0};
    if (s->dynamics == FAMILY) {
        const int64_t sets = t[0] - t[2];
        now.scale = coarse(t[1], root(sets * t[2]) << UNIT_BITS);
        now.mean = coarse(t[1], sets << UNIT_BITS);
        now.scarce = coarse(t[1], t[2] << UNIT_BITS);
    }
    if (s->dynamics == DOMINATION) now.scale = coarse(t[1], root(t[0] * t[2]));
    if (s->dynamics == PARTS) now.scale = coarse(t[3], t[0]);
    return now;
}

INLINE int done(const State *s) {
    return s->totals[s->dynamics == DOMINATION || s->dynamics == FAMILY ? 2 : 1] == 0;
}

/* Lists a node and, where the problem is closed, its neighbours with live edges; returns how many. One rank only. */
INLINE int64_t reach(State *s, int64_t node) {
    int64_t count = 1;
    s->reached[0] = node;
    if (!s->closed) return count;
    for (int32_t j = s->indptr[node]; j < s->indptr[node + 1]; ++j)
        if (s->live[s->indices[j]] > 0) s->reached[count++] = s->indices[j];
    return count;
}

/* Adds `sign` times what a row counts for to the totals. */
INLINE void count_row(State *s, int32_t row, int64_t sign) {
    const int64_t gain = s->mark[row] + s->field[row];
    s->totals[0] += sign * (gain > 0);
    s->totals[1] += sign * gain;
    s->totals[2] += sign * s->mark[row];
    s->totals[3] += sign * (s->mark[row] ? s->worth[gain] : 0);
}

INLINE void list_near(State *s, int32_t row, int64_t *count) { /* in affected */
    if (s->listed[row] == (int32_t)s->round) return;
    s->listed[row] = (int32_t)s->round;
    s->affected[(*count)++] = row;
    count_row(s, row, -1);
}

/* Choose a node: the marks of it and its neighbours go, the fields next to them follow (FieldEnv.choose_own), and the
 * codes are those of MinimumDominatingSet.code. One rank only. */
static void dominate(State *s, int64_t node) {
    int64_t count = 0, reached = 0;
    s->round += 1;
    for (int32_t j = s->indptr[node] - 1; j < s->indptr[node + 1]; ++j) {
        const int32_t row = j < s->indptr[node] ? (int32_t)node : s->indices[j];
        if (s->mark[row] == 0) continue;
        s->reached[reached++] = row;
        list_near(s, row, &count);
        for (int32_t k = s->indptr[row]; k < s->indptr[row + 1]; ++k) list_near(s, s->indices[k], &count);
    }
    for (int64_t i = 0; i < reached; ++i) {
        const int64_t row = s->reached[i];
        s->mark[row] = 0;
        for (int32_t k = s->indptr[row]; k < s->indptr[row + 1]; ++k) s->field[s->indices[k]] -= 1;
    }
    for (int64_t i = 0; i < count; ++i) {
        const int32_t row = s->affected[i];
        count_row(s, row, 1);
        s->changed[i] = s->mark[row] + s->field[row] > 0 ? FIRST_ALIVE + 2 * s->field[row] + s->mark[row] : 0;
    }
    s->chosen_at[node] = (int32_t)s->steps++;
    lk_inc_touch(s, s->affected, s->changed, count);
}

/* Choose a set: the marks of its elements go, and so many fewer are left in their sets (FamilyEnv). One rank only. */
static void cover(State *s, int64_t node) {
    int64_t count = 0;
    s->round += 1;
    for (int32_t j = s->indptr[node]; j < s->indptr[node + 1]; ++j) {
        const int32_t met = s->indices[j];
        if (s->mark[met] == 0) continue;
        s->mark[met] = 0;
        s->totals[0] -= 1;
        s->totals[1] += s->look[met];
        s->totals[2] -= 1;
        s->totals[3] -= s->price[met];
        s->affected[count++] = met;
        for (int32_t k = s->indptr[met]; k < s->indptr[met + 1]; ++k) {
            const int32_t row = s->indices[k];
            s->field[row] -= 1;
            if (s->look[row] <= 0 || s->listed[row] == (int32_t)s->round) continue;
            s->listed[row] = (int32_t)s->round;
            s->affected[count++] = row;
        }
    }
    for (int64_t i = 0; i < count; ++i) {
        const int32_t row = s->affected[i];
        s->changed[i] = family_code(s->mark[row], s->field[row], s->look[row]);
        s->totals[0] -= s->look[row] > 0 && s->field[row] == 0;
    }
    s->chosen_at[node] = (int32_t)s->steps++;
    lk_inc_touch(s, s->affected, s->changed, count);
}

/* Adds `sign` times what a node of a degree counts for to the totals. */
INLINE void count_degree(State *s, int32_t degree, int64_t sign) {
    s->totals[0] += sign * (degree > 0);
    s->totals[1] += sign * degree;
    s->totals[2] += sign * s->worth[degree];
}

/* Choose a node of a 2-core: it leaves, and one after the other all that are left with fewer than two neighbours
 * (CoreEnv). One rank only. */
static void uncore(State *s, int64_t node) {
    int64_t count = 1, gone = 1;
    s->round += 1;
    s->reached[0] = node;
    s->affected[0] = (int32_t)node;
    s->listed[node] = (int32_t)s->round;
    count_degree(s, s->field[node], -1);
    s->field[node] = 0;
    for (int64_t i = 0; i < gone; ++i) {
        const int64_t row = s->reached[i];
        for (int32_t j = s->indptr[row]; j < s->indptr[row + 1]; ++j) {
            const int32_t near = s->indices[j];
            if (s->field[near] == 0) continue;
            if (s->listed[near] != (int32_t)s->round) {
                s->listed[near] = (int32_t)s->round;
                s->affected[count++] = near;
                count_degree(s, s->field[near], -1);
            }
            if (--s->field[near] >= 2) continue;
            s->field[near] = 0;
            s->chosen_at[near] = RULED_OUT;
            s->reached[gone++] = near;
        }
    }
    for (int64_t i = 0; i < count; ++i) {
        const int32_t degree = s->field[s->affected[i]];
        count_degree(s, degree, 1);
        s->changed[i] = degree > 0 ? FIRST_ALIVE + degree : 0;
    }
    s->chosen_at[node] = (int32_t)s->steps++;
    lk_inc_touch(s, s->affected, s->changed, count);
}

INLINE void list_degree(State *s, int32_t row, int64_t *count) { /* in affected, once */
    if (s->listed[row] == (int32_t)s->round) return;
    s->listed[row] = (int32_t)s->round;
    s->affected[(*count)++] = row;
    count_degree(s, s->field[row], -1);
}

/* Follow a component from the row `start`: its rows join reached[first..], marked by `name`, until it is known to be
 * large, by its size or since it meets rows of an earlier search of this step, which then were not all of theirs.
 * Returns where its rows end, or of a large one minus that. */
static int64_t follow_part(State *s, int32_t start, int64_t first, int32_t name) {
    int64_t end = first;
    s->reached[end++] = start;
    s->mark[start] = name;
    for (int64_t i = first; i < end; ++i) {
        const int64_t row = s->reached[i];
        for (int32_t j = s->indptr[row]; j < s->indptr[row + 1]; ++j) {
            const int32_t near = s->indices[j];
            if (s->field[near] == 0 || s->mark[near] == name) continue;
            if (s->mark[near] != 0) return -end;
            s->mark[near] = name;
            s->reached[end++] = near;
        }
        if (end - first > s->totals[3]) return -end;
    }
    return end - first > s->totals[3] ? -end : end;
}

/* Choose a node of a large component: it leaves, and components that this makes small fall (PartsEnv). One rank only. */
static void unjoin(State *s, int64_t node) {
    int64_t count = 0, losers, met = 0;
    s->round += 1;
    list_degree(s, (int32_t)node, &count);
    s->field[node] = 0;
    for (int32_t j = s->indptr[node]; j < s->indptr[node + 1]; ++j) {
        const int32_t near = s->indices[j];
        if (s->field[near] == 0) continue;
        list_degree(s, near, &count);
        s->field[near] -= 1;
    }
    losers = count;
    for (int64_t i = 1; i < losers; ++i) {
        const int64_t first = met;
        if (s->mark[s->affected[i]] != 0) continue;
        met = follow_part(s, s->affected[i], first, (int32_t)i);
        if (met < 0) {
            met = -met;
            continue;
        }
        for (int64_t k = first; k < met; ++k) {
            const int32_t row = (int32_t)s->reached[k];
            list_degree(s, row, &count);
            s->field[row] = 0;
            s->chosen_at[row] = RULED_OUT;
        }
    }
    for (int64_t k = 0; k < met; ++k) s->mark[s->reached[k]] = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t degree = s->field[s->affected[i]];
        count_degree(s, degree, 1);
        s->changed[i] = degree > 0 ? FIRST_ALIVE + degree : 0;
    }
    s->chosen_at[node] = (int32_t)s->steps++;
    lk_inc_touch(s, s->affected, s->changed, count);
}

/* Select the best node and update, until the solution is complete, what all rows see of the state moves (where it is an
 * input: later layers are left as they were), fewer than `least_alive` nodes are alive, a score is NaN, or `most` steps
 * are made. Returns the number of steps; *bad is set for NaN. */
int64_t lk_inc_run(State *s, int64_t most, int64_t least_alive, int follow_state, int *bad) {
    const Seen first = seen(s);
    int64_t steps = 0, change[4];
    *bad = 0;
    while (steps < most && !done(s) && s->totals[0] >= least_alive) {
        const uint64_t best = lk_inc_best(s);
        const int64_t node = (int64_t)(0xFFFFFFFFu - (best & 0xFFFFFFFFu));
        Seen now;
        if (best >> 32 == 0xFFFFFFFFu) {
            *bad = 1;
            break;
        }
        if (s->dynamics == DOMINATION) dominate(s, node);
        else if (s->dynamics == FAMILY) cover(s, node);
        else if (s->dynamics == CORE) uncore(s, node);
        else if (s->dynamics == PARTS) unjoin(s, node);
        else {
            lk_inc_remove(s, s->reached, reach(s, node), 1, change);
            for (int k = 0; k < 4; ++k) s->totals[k] += change[k];
        }
        ++steps;
        now = seen(s);
        if (follow_state && (now.mean != first.mean || now.scale != first.scale || now.scarce != first.scarce)) break;
        for (int64_t l = 1; l < s->net->layers; ++l) lk_inc_layer(s, l);
    }
    return steps;
}
