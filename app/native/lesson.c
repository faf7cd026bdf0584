/* One minibatch of the deep Q-learner (RL4GO Alg. 1) on one rank, from its choices to the gradient; and of policies that draw.
 *
 * The same products as app/rl/agent.py and policy_gradient.py ask for one by one, by the same kernels, and between them the
 * same operations in the same order: no bit differs. For graphs whose products are done in microseconds. All memory is given. */
#include "lesson.h"
#include "family.h"

void lk_gram(const Gram *g);
void lk_fold(int64_t k, const int64_t *starts, const float *X, int64_t c, float *out);
void lk_pool(int64_t graphs, int64_t blocks, const int64_t *starts, const int64_t *at, const int64_t *counts,
             const int64_t *first, int64_t states, int64_t f, const float *X, float *out);
void lk_gated_spread(int64_t rows, int64_t m, const float *values, const int32_t *index, const float *gate, float *out);
void lk_spmm_members(int64_t members, const int64_t *table, int64_t f, const float *X, float *Y, const float *live,
                     int first, const Gate *gate, int64_t tile);
void lk_lookup_members(int64_t members, const int64_t *graphs, int64_t f, const float *table, const int32_t *code,
                       float *Y, const float *live, int first);
void lk_best_rows(int64_t graphs, const int64_t *at, const int64_t *counts, const int64_t *first, const int64_t *rows,
                  const float *score, const uint8_t *candidate, float lowest, float least, float *top, int64_t *where);
void lk_softmax_shift(int64_t rows, const int32_t *state, const uint8_t *candidate, const float *score, const float *top,
                      float *shifted, float *pairs);
void lk_softmax_close(int64_t rows, int64_t states, const int32_t *state, const float *pairs, const float *sums,
                      float *log_total, float *entropy, float *probability);
void lk_softmax_back(int64_t rows, int64_t states, const int32_t *state, const float *shifted, const float *probability,
                     const float *log_total, const float *entropy, const float *dlog, const float *dentropy,
                     const int64_t *chosen, const float *candidate, float *dz);
void lk_gumbel(int64_t nodes, uint64_t key, uint64_t number, const uint8_t *candidate, float *score);

static const float LOWEST = -3.0e38f, LEAST = -2.9e38f; /* as in app/rl/select.py */
enum { CODE_ALIVE = 2, MEMBER = 9, OCTET = 8, WIDTH = 16, ALIGNED = 64 };

/* ---- memory --------------------------------------------------------------------------------------------------------- */

/* All that a call works on. Shapes: R rows, S states, G graphs, B blocks, T rows of the tables of all states. */
typedef struct Work {
    const Network *net;
    const World *world;
    const Sample *sample;
    int64_t R, S, S8, G, B, T, E, Kp, Hp, head; /* S8: S up to a multiple of 8; head: rows of theta6 */
    int64_t edges, wide;                        /* whether edges have weights; columns of what a round knows of nodes */
    int64_t *member, *nodes, *starts, *counts, *at, *first, *n, *row; /* the layout; row [S] of the chosen nodes */
    int32_t *state, *code[2], *degree, *falling, *index, *slot, *slot_of_look, *entry_of;
    int64_t *sum;                                                /* [R] of the sides of neighbours */
    uint8_t *mark, *is_candidate;
    float *X, *entry_alive;                                      /* [T, wide], [T] */
    float *known, *terms, *weight[2];                            /* [T, F + 2], [T, K], [R] each */
    float *pair, *pair_turned, *E8, *through, *dT, *dpair, *whole; /* of theta2, and on the way back to it */
    float *candidate, *masks, *scale;                            /* [R], [2 R], [R] */
    float *alive, *present;                                      /* [R] of these */
    float *H1, *H1_alive, *start;                                /* [T, K], [T, K], [T, width] */
    float *N[MOST_ROUNDS], *H[MOST_ROUNDS];                      /* [R, K] */
    float *masked, *dZ, *dN, *dH;                                /* [R, K] */
    float *W, *base, *score;                                     /* padded weights; [R, hidden], [R] */
    float *sums, *part[MOST_ROUNDS];                             /* [B, S K], [B, rows of W times K] */
    float *pooled, *mean, *V, *Z6, *Z5, *A, *q, *qa, *dq, *dV, *dpool, *later, *top;
    int64_t *where;
    float *hidden, *dhidden, *shifted, *probability, *pairs;     /* of a softmax: [R, hidden] twice, [R], [R], [R, 2] */
    float *pair_sums, *totals, *log_total, *entropy, *dhead;     /* [B, S 2], [S 2], [S], [S], [B, S hidden] */
    float *part6, *part7, *sum5, *sum_value;                     /* addends that are not in this room */
    struct Work *kept;                                           /* from the first of two calls to the second */
} Work;

INLINE int64_t up_to(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

/* The next `size` bytes of the room; null while it is only measured. */
static void *take(char *room, int64_t *used, int64_t size) {
    void *at = room ? room + *used : 0;
    *used += up_to(size, ALIGNED);
    return at;
}

/* Rows of W of a round: features, terms of the edges, and later what is met. */
static int64_t rows_of(const Network *net, int64_t layer) {
    return net->F + (net->theta2 < 0 ? 0 : net->K) + (layer ? net->K * (1 + (net->self_weight != 0)) : 0);
}

/* Rows of its gradient before the two of the edges' weights have become those of their terms. */
static int64_t gram_rows(const Network *net, int64_t layer) {
    return rows_of(net, layer) + (net->theta2 < 0 ? 0 : 2 - net->K);
}

INLINE const int64_t *graph_of(const World *world, int64_t graph) { return world->graph + graph * GRAPH_FIELDS; }

/* Rows, graphs and entries of the tables of a sample. */
static void measure(const World *world, Sample *sample) {
    sample->rows = sample->members = sample->entries = 0;
    for (int64_t s = 0; s < sample->states; ++s) {
        const int64_t *g = graph_of(world, sample->graph[s]);
        sample->rows += g[N_ROWS];
        sample->members += sample->apart || !s || sample->graph[s] != sample->graph[s - 1];
        if (g[ENTRIES] > sample->entries) sample->entries = g[ENTRIES];
    }
}

/* Where everything lies in a room; returns the bytes of it. */
static int64_t lay_out(Work *w, char *room, const Network *net, const World *world, const Sample *sample) {
    int64_t used = 0;
    w->net = net, w->world = world, w->sample = sample;
    const int64_t S = w->S = sample->states, R = w->R = sample->rows, G = w->G = sample->members, B = w->B = world->blocks;
    const int64_t K = net->K, F = net->F, E = w->E = sample->entries;
    const int64_t T = world->by_weight || R < S * E ? up_to(R, OCTET) : S * E;
    const int64_t S8 = w->S8 = up_to(S, OCTET), Kp = w->Kp = up_to(K, WIDTH), Hp = w->Hp = up_to(net->hidden, WIDTH);
    const int64_t head = w->head = K + (net->paper ? 0 : F), wide = Hp > Kp ? Hp : Kp;
    const int64_t tall = rows_of(net, 1) > net->hidden ? rows_of(net, 1) : net->hidden, K8 = up_to(K, OCTET);
    const int64_t edges = w->edges = net->theta2 >= 0, columns = w->wide = rows_of(net, 0);
#define TAKE(field, count) (w->field = take(room, &used, (int64_t)sizeof *w->field * (count)))
    TAKE(member, G * MEMBER), TAKE(nodes, G * (B + 1)), TAKE(starts, G * (B + 1));
    TAKE(counts, G), TAKE(at, G + 1), TAKE(first, G + 1), TAKE(n, G), TAKE(row, S), TAKE(where, S);
    TAKE(state, R), TAKE(code[0], R), TAKE(code[1], R), TAKE(degree, R), TAKE(falling, R), TAKE(index, R);
    TAKE(slot, S), TAKE(slot_of_look, world->looks), TAKE(entry_of, S * E), TAKE(mark, R), TAKE(is_candidate, R);
    TAKE(sum, world->codes == BY_SIDES ? R : 0);
    TAKE(X, T * columns), TAKE(entry_alive, T);
    TAKE(known, edges * T * (F + 2)), TAKE(terms, edges * T * K);
    for (int i = 0; i < 2; ++i) TAKE(weight[i], world->by_weight ? R : 0);
    TAKE(pair, edges * 2 * Kp), TAKE(pair_turned, edges * K8 * 2), TAKE(E8, edges * S8 * K), TAKE(through, edges * S8 * K);
    TAKE(dT, edges * K8 * K), TAKE(dpair, edges * 2 * K), TAKE(whole, edges * gram_rows(net, 1) * K);
    TAKE(candidate, R), TAKE(masks, 2 * R), TAKE(scale, R);
    TAKE(H1, T * K), TAKE(H1_alive, T * K), TAKE(start, T * wide);
    for (int64_t layer = 0; layer < net->layers; ++layer) {
        TAKE(N[layer], layer ? R * K : 0), TAKE(H[layer], R * K);
        TAKE(part[layer], B * gram_rows(net, layer) * K);
    }
    TAKE(masked, R * K), TAKE(dZ, R * K), TAKE(dN, R * K), TAKE(dH, R * K);
    TAKE(W, tall * (wide > up_to(head, WIDTH) ? wide : up_to(head, WIDTH)));
    TAKE(base, net->theta7a < 0 ? R * net->hidden : 0), TAKE(score, R);
    TAKE(sums, B * S * K), TAKE(pooled, S8 * K), TAKE(mean, S);
    TAKE(V, S8 * head), TAKE(Z6, S8 * net->hidden), TAKE(Z5, S8 * net->hidden), TAKE(A, S8 * net->hidden);
    TAKE(q, S8), TAKE(qa, S8), TAKE(dq, S8), TAKE(dV, S8 * head), TAKE(dpool, S8 * K), TAKE(later, S), TAKE(top, S);
    const int64_t draws = sample->draws != 0;
    TAKE(hidden, draws * R * net->hidden), TAKE(dhidden, draws * R * net->hidden), TAKE(shifted, draws * R);
    TAKE(probability, draws * R), TAKE(pairs, draws * 2 * R), TAKE(pair_sums, draws * B * S * 2), TAKE(totals, draws * 2 * S);
    TAKE(log_total, draws * S), TAKE(entropy, draws * S), TAKE(kept, draws);
    TAKE(dhead, net->theta7a < 0 ? draws * B * S * net->hidden : 0);
#undef TAKE
    return used;
}

/* Bytes that calls with such a sample need; also writes its rows. */
int64_t lk_lesson_room(const Network *net, const World *world, Sample *sample) {
    Work w;
    measure(world, sample);
    return lay_out(&w, 0, net, world, sample);
}

/* ---- the layout: StateBatch (app/sparse/batch.py) ------------------------------------------------------------------- */

static void lay_states(Work *w) {
    const int64_t *graph = w->sample->graph;
    int64_t s = 0, row = 0;
    for (int64_t m = 0; m < w->G; ++m) {
        const int64_t *g = graph_of(w->world, graph[s]), rows = g[N_ROWS];
        int64_t count = 1;
        if (!w->sample->apart)
            while (s + count < w->S && graph[s + count] == graph[s]) ++count;
        const int64_t table[MEMBER] = {rows, g[N_COLUMNS], g[IS_WIDE], g[INDPTR], g[INDICES], 0, row, row, count};
        memcpy(w->member + m * MEMBER, table, sizeof table);
        w->counts[m] = count, w->at[m] = row, w->first[m] = s;
        const int64_t *block = (const int64_t *)(intptr_t)g[BLOCK_STARTS];
        for (int64_t b = 0; b <= w->B; ++b) {
            w->nodes[m * (w->B + 1) + b] = block[b];
            w->starts[m * (w->B + 1) + b] = block[b] * count + row;
        }
        w->n[m] = block[w->B];
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < count; ++j) w->state[row + i * count + j] = (int32_t)(s + j);
        row += rows * count;
        s += count;
    }
    w->at[w->G] = row;
    w->first[w->G] = s;
}

/* ---- codes of residual graphs: `replayed` of GraphEnv (app/rl/env.py) and CoreEnv (core_env.py) ---------------------- */

/* A graph of the sample, the states of its nodes side by side, and how many live neighbours each one has; looks of families. */
typedef struct {
    int64_t n, count, wide;
    const void *indptr, *indices;
    uint8_t *mark;
    int32_t *degree, *falling; /* the latter has room for [nodes] */
    const int64_t *look;
} Residual;

/* A node leaves a state, unless it has gone before. */
static void leave(const Residual *g, int64_t node, int64_t state) {
    if (!g->mark[node * g->count + state]) return;
    g->mark[node * g->count + state] = 0;
    for (int64_t e = number(g->indptr, g->wide, node), end = number(g->indptr, g->wide, node + 1); e < end; ++e)
        --g->degree[number(g->indices, g->wide, e) * g->count + state];
}

/* Choices [count] in a state: their nodes leave, and where the problem is `closed` those next to them. */
static void choose(const Residual *g, int64_t state, const int64_t *chosen, int64_t count, int64_t closed) {
    for (int64_t i = 0; i < count; ++i) {
        if (chosen[i] < 0 || chosen[i] >= g->n) continue;
        leave(g, chosen[i], state);
        if (!closed) continue;
        for (int64_t e = number(g->indptr, g->wide, chosen[i]), end = number(g->indptr, g->wide, chosen[i] + 1); e < end; ++e)
            leave(g, number(g->indices, g->wide, e), state);
    }
}

/* Nodes of a state with fewer than `least` live neighbours fall, and those that this leaves with fewer. */
static void peel(const Residual *g, int64_t state, int32_t least) {
    int64_t count = 0;
    for (int64_t i = 0; i < g->n; ++i) {
        g->falling[count] = (int32_t)i;
        count += g->mark[i * g->count + state] && g->degree[i * g->count + state] < least;
    }
    while (count) {
        const int64_t node = g->falling[--count];
        leave(g, node, state);
        for (int64_t e = number(g->indptr, g->wide, node), end = number(g->indptr, g->wide, node + 1); e < end; ++e) {
            const int64_t near = number(g->indices, g->wide, e);
            /* Just now one too few: each node is listed once. */
            if (g->mark[near * g->count + state] && g->degree[near * g->count + state] == least - 1)
                g->falling[count++] = (int32_t)near;
        }
    }
}

static void write_codes(const Residual *g, int64_t codes, int every, int32_t *code) {
    for (int64_t r = 0; codes == BY_GAIN && r < g->n * g->count; ++r)
        code[r] = g->mark[r] + g->degree[r] > 0 ? CODE_ALIVE + 2 * g->degree[r] + g->mark[r] : 0;
    for (int64_t r = 0; codes == BY_FAMILY && r < g->n * g->count; ++r)
        code[r] = family_code(g->mark[r], g->degree[r], g->look[r / g->count]);
    for (int64_t r = 0; codes == BY_DEGREE && r < g->n * g->count; ++r) {
        const int32_t degree = g->mark[r] ? g->degree[r] : 0;
        code[r] = every ? 1 + g->mark[r] * (1 + degree) : degree > 0 ? CODE_ALIVE + degree : 0;
    }
}

/* [rows] codes of the states before and, where asked for, after; the choices before are the first of those after. */
static void make_residual_codes(Work *w, const Look *before, const Look *after) {
    const int32_t least = (int32_t)w->world->least;
    const int64_t codes = w->world->codes;
    for (int64_t m = 0; m < w->G; ++m) {
        const int64_t *t = w->member + m * MEMBER, at = w->at[m], count = t[8];
        const int64_t *fields = graph_of(w->world, w->sample->graph[w->first[m]]);
        const int64_t n = fields[N_REAL], padding = (t[0] - n) * count;
        const Residual g = {n, count, t[2], (const void *)(intptr_t)t[3], (const void *)(intptr_t)t[4], w->mark + at,
                            w->degree + at, w->falling, (const void *)(intptr_t)fields[LOOK]};
        const int8_t *mark = codes == BY_FAMILY ? (const void *)(intptr_t)fields[START] : 0;
        const int32_t *field = (const void *)(intptr_t)fields[FIELD];
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < count; ++j) {
                const int64_t degree = number(g.indptr, g.wide, i + 1) - number(g.indptr, g.wide, i);
                g.mark[i * count + j] = mark ? (uint8_t)mark[i] : 1;
                g.degree[i * count + j] = mark ? field[i] : (int32_t)degree;
            }
        for (int64_t j = 0, s = w->first[m]; j < count; ++j, ++s)
            choose(&g, j, before->chosen + before->begin[s], before->count[s], w->world->closed);
        for (int64_t j = 0; least && j < count; ++j) peel(&g, j, least);
        write_codes(&g, codes, w->sample->every != 0, w->code[0] + at);
        for (int k = 0; k < 2; ++k) memset(w->code[k] + at + n * count, 0, (size_t)padding * sizeof **w->code);
        if (!after) continue;
        for (int64_t j = 0, s = w->first[m]; j < count; ++j, ++s)
            choose(&g, j, after->chosen + after->begin[s] + before->count[s], after->count[s] - before->count[s],
                   w->world->closed);
        for (int64_t j = 0; least && j < count; ++j) peel(&g, j, least);
        write_codes(&g, codes, w->sample->every != 0, w->code[1] + at);
    }
}

/* ---- codes of states with two sides: `replayed` of SidesEnv (app/rl/sides.py) ---------------------------------------- */

/* One state: sides, the weighted sums of the neighbours' sides, and when a node moved last (-1: never), [n] each. */
typedef struct {
    int64_t n, wide;
    const void *indptr, *indices;
    const int64_t *units; /* or null: all one */
    int8_t *side;
    int64_t *sum;
    int32_t *moved;
} Sides;

static Sides begin_sides(const Work *w, int64_t m) {
    const int64_t *f = graph_of(w->world, w->sample->graph[w->first[m]]);
    const int own = f[UNITS] == 0;
    Sides g = {f[N_REAL], f[own ? IS_WIDE : UNITS_WIDE], (const void *)(intptr_t)f[own ? INDPTR : UNITS_INDPTR],
               (const void *)(intptr_t)f[own ? INDICES : UNITS_INDICES], (const int64_t *)(intptr_t)f[UNITS],
               (int8_t *)w->mark, w->sum, w->degree};
    memcpy(g.side, (const int8_t *)(intptr_t)f[START], (size_t)g.n);
    for (int64_t i = 0; i < g.n; ++i) g.moved[i] = -1;
    return g;
}

static void add_sides(Sides *g) {
    for (int64_t i = 0; i < g->n; ++i) {
        int64_t sum = 0;
        for (int64_t e = number(g->indptr, g->wide, i), end = number(g->indptr, g->wide, i + 1); e < end; ++e)
            sum += (g->units ? g->units[e] : 1) * g->side[number(g->indices, g->wide, e)];
        g->sum[i] = sum;
    }
}

/* A node changes sides in move `at`; `follow`: the sums of its neighbours do, too. */
static void move(Sides *g, int64_t node, int64_t at, int follow) {
    if (node < 0 || node >= g->n) return;
    g->side[node] = (int8_t)-g->side[node];
    g->moved[node] = (int32_t)at;
    if (!follow) return;
    for (int64_t e = number(g->indptr, g->wide, node), end = number(g->indptr, g->wide, node + 1); e < end; ++e)
        g->sum[number(g->indices, g->wide, e)] += 2 * (g->units ? g->units[e] : 1) * g->side[node];
}

/* Codes of a state after `moves`, `count` rows apart. */
static void write_side_codes(const Sides *g, const World *world, const int64_t *fields, int64_t moves, int64_t count,
                             int32_t *code) {
    const int64_t grain = fields[GRAIN], rest = fields[REST], width = 2 * world->parts + 1;
    for (int64_t i = 0; i < g->n; ++i) {
        const int64_t twice = 2 * g->side[i] * g->sum[i], up = ((twice < 0 ? -twice : twice) + grain - 1) / grain;
        const int64_t size = up < world->parts ? up : world->parts, age = (moves - 1 - g->moved[i]) / rest;
        const int64_t rests = g->moved[i] < 0 || age > world->ages ? world->ages : age;
        code[i * count] = world->code_of[(rests * width + world->parts + (twice < 0 ? -size : size)) * 2 + (g->side[i] < 0)];
    }
}

static void make_side_codes(Work *w, const Look *before, const Look *after) {
    for (int64_t m = 0; m < w->G; ++m) {
        const int64_t *fields = graph_of(w->world, w->sample->graph[w->first[m]]), at = w->at[m], count = w->counts[m];
        for (int64_t j = 0, s = w->first[m]; j < count; ++j, ++s) {
            Sides g = begin_sides(w, m);
            const int64_t *chosen = before->chosen + before->begin[s];
            for (int64_t i = 0; i < before->count[s]; ++i) move(&g, chosen[i], i, 0);
            add_sides(&g);
            write_side_codes(&g, w->world, fields, before->count[s], count, w->code[0] + at + j);
            if (!after) continue;
            chosen = after->chosen + after->begin[s];
            for (int64_t i = before->count[s]; i < after->count[s]; ++i) move(&g, chosen[i], i, 1);
            write_side_codes(&g, w->world, fields, after->count[s], count, w->code[1] + at + j);
        }
        const int64_t nodes = fields[N_REAL] * count, padding = fields[N_ROWS] * count - nodes;
        for (int k = 0; k < 2; ++k) memset(w->code[k] + at + nodes, 0, (size_t)padding * sizeof **w->code);
    }
}

static void make_codes(Work *w, const Look *before, const Look *after) {
    if (w->world->codes == BY_SIDES) make_side_codes(w, before, after);
    else make_residual_codes(w, before, after);
}

/* ---- what the network is given: QNetwork.inputs --------------------------------------------------------------------- */

/* Where the entries of a state's table are looked for, states that look alike sharing one; the mean factor. */
static void find_tables(Work *w, const Look *look) {
    int32_t slots = 0;
    for (int64_t s = 0; s < w->S; ++s) w->slot_of_look[look->look[s]] = -1;
    for (int64_t s = 0; s < w->S; ++s) {
        int32_t *slot = w->slot_of_look + look->look[s];
        if (*slot < 0 || w->world->owns) *slot = slots++;
        w->slot[s] = *slot;
        w->mean[s] = w->net->paper ? 1.0f : (float)(1.0 / (double)(look->alive[s] > 1 ? look->alive[s] : 1));
    }
}

/* One entry: the features of a code in a state and, where weights of edges are degrees, these. */
static void copy_entry(Work *w, const Look *look, int64_t state, int32_t code, int64_t entry) {
    const World *world = w->world;
    const int64_t F = w->net->F;
    float *x = w->X + entry * w->wide;
    memcpy(x, world->tables + (look->look[state] * world->entries + code) * F, (size_t)F * 4);
    for (int64_t i = 0; i < world->owns; ++i) x[world->own[i]] *= look->own[state * world->owns + i];
    w->entry_alive[entry] = code >= CODE_ALIVE ? 1.0f : 0.0f;
    if (!w->edges) return;
    float *known = w->known + entry * (F + 2);
    memcpy(known, x, (size_t)F * 4);
    known[F] = code > CODE_ALIVE ? (float)(code - CODE_ALIVE) : 0.0f;
    known[F + 1] = 0.0f;
}

/* The table of what nodes look like, of entries that occur alone: index of rows in it. */
static void copy_tables(Work *w, const Look *look, const int32_t *code) {
    const int64_t E = w->E;
    find_tables(w, look);
    w->T = 0;
    if (!w->world->by_weight) memset(w->entry_of, -1, (size_t)(w->S * E) * sizeof *w->entry_of);
    for (int64_t r = 0; r < w->R; ++r) {
        int32_t *entry = w->entry_of + w->slot[w->state[r]] * E + code[r];
        if (w->world->by_weight || *entry < 0) copy_entry(w, look, w->state[r], code[r], *entry = (int32_t)w->T++);
        w->index[r] = *entry;
    }
    for (; w->T % OCTET; ++w->T) {
        memset(w->X + w->T * w->wide, 0, (size_t)w->wide * 4);
        w->entry_alive[w->T] = 0.0f;
        if (w->edges) memset(w->known + w->T * (w->net->F + 2), 0, (size_t)(w->net->F + 2) * 4);
    }
}

/* Sums of the positive or of the negated negative weights to live neighbours [R], where a node is alive. */
static void add_weights(Work *w, int64_t which, float *out) {
    for (int64_t m = 0; m < w->G; ++m) {
        int64_t row[MEMBER];
        const int64_t *f = graph_of(w->world, w->sample->graph[w->first[m]]) + which;
        memcpy(row, w->member + m * MEMBER, sizeof row);
        if (f[1]) row[2] = f[0], row[3] = f[1], row[4] = f[2], row[5] = f[3];
        else if (which == MINUS) {
            memset(out + w->at[m], 0, (size_t)(w->at[m + 1] - w->at[m]) * 4);
            continue;
        }
        lk_spmm_members(1, row, 1, w->alive, out, 0, 1, 0, w->world->tile);
    }
    for (int64_t r = 0; r < w->R; ++r) out[r] *= w->alive[r];
}

/* What is known of edges in place of degrees. */
static void copy_weights(Work *w) {
    const int64_t F = w->net->F;
    for (int i = 0; i < 2; ++i) {
        add_weights(w, i ? MINUS : PLUS, w->weight[i]);
        for (int64_t r = 0; r < w->R; ++r) w->known[r * (F + 2) + F + i] = w->weight[i][r];
    }
}

/* One mask is all three: nodes that are alive, or have an embedding, are candidates. */
INLINE int masks_differ(const Work *w) { return w->sample->every || w->world->first_candidate > CODE_ALIVE + 1; }

/* Factors of neighbour sums [rows], where a node is alive. */
static void make_scale(Work *w, const Look *look, const int32_t *code) {
    const World *world = w->world;
    if (world->by_degree)
        for (int64_t m = 0, r = 0; m < w->G; ++m) {
            const int64_t *g = graph_of(world, w->sample->graph[w->first[m]]);
            const float *inverse = (const float *)(intptr_t)g[INVERSE_DEGREES];
            for (int64_t i = 0; i < g[N_ROWS]; ++i)
                for (int64_t j = 0; j < w->counts[m]; ++j, ++r) w->scale[r] = w->alive[r] * inverse[i];
        }
    else if (!world->factors) memcpy(w->scale, w->alive, (size_t)w->R * 4);
    else if (world->by_entry)
        for (int64_t r = 0; r < w->R; ++r)
            w->scale[r] = w->alive[r] * world->factors[look->look[w->state[r]] * world->entries + code[r]];
    else {
        for (int64_t s = 0; s < w->S; ++s) w->top[s] = world->factors[look->look[s]];
        for (int64_t r = 0; r < w->R; ++r) w->scale[r] = w->alive[r] * w->top[w->state[r]];
    }
}

static void make_inputs(Work *w, const Look *look, const int32_t *code) {
    const int32_t first = (int32_t)w->world->first_candidate;
    copy_tables(w, look, code);
    for (int64_t r = 0; r < w->R; ++r) {
        w->is_candidate[r] = code[r] >= first;
        w->candidate[r] = code[r] >= first ? 1.0f : 0.0f;
    }
    w->alive = w->present = w->candidate;
    if (masks_differ(w)) {
        w->alive = w->masks;
        w->present = w->masks + w->R;
        for (int64_t r = 0; r < w->R; ++r) {
            w->alive[r] = code[r] >= CODE_ALIVE ? 1.0f : 0.0f;
            w->present[r] = code[r] > 0 ? 1.0f : 0.0f;
        }
    }
    make_scale(w, look, code);
    if (w->world->by_weight) copy_weights(w);
}

/* ---- products ------------------------------------------------------------------------------------------------------- */

/* W [k, m], rows ldw apart, with columns padded; of W^T where `turned` (then W is [m, k]). */
static const float *padded(Work *w, const float *W, int64_t k, int64_t m, int64_t ldw, int turned) {
    const int64_t mp = up_to(m, WIDTH);
    if (!turned && mp == m && ldw == m) return W;
    for (int64_t i = 0; i < k; ++i) {
        float *to = w->W + i * mp;
        for (int64_t j = 0; j < m; ++j) to[j] = turned ? W[j * ldw + i] : W[i * ldw + j];
        for (int64_t j = m; j < mp; ++j) to[j] = 0.0f;
    }
    return w->W;
}

/* A dense product; columns that stand in a small table are multiplied once for each of its entries. */
static void product(Work *w, Dense d) {
    const Part *part = d.part;
    if (d.parts && part->index && !part->scale && 2 * w->T < d.rows) {
        const Part table = {part->X, part->ld, part->k, 0, 0};
        const Dense begun = {.rows = w->T, .parts = 1, .m = d.mp, .mp = d.mp, .part = &table, .W = d.W, .Z = w->start,
                             .ldz = d.mp};
        lk_dense(&begun);
        d.start = w->start, d.start_index = part->index;
        d.W += part->k * d.mp;
        d.part++, d.parts--;
    }
    lk_dense(&d);
}

/* Z [rows, m] = X [rows, k] W, rows a multiple of 8; relu: max(Z, 0). */
static void some_rows(Work *w, int64_t rows, const float *X, int64_t k, const float *W, int64_t m, int turned, int64_t relu,
                      float *Z) {
    const Part part = {X, k, k, 0, 0};
    const float *held = padded(w, W, k, m, turned ? k : m, turned);
    const Dense d = {.rows = rows, .parts = 1, .m = m, .mp = up_to(m, WIDTH), .part = &part, .W = held, .Z = Z, .ldz = m,
                     .relu = relu};
    lk_dense(&d);
}

/* The same of a row for each state. */
static void small_product(Work *w, const float *X, int64_t k, const float *W, int64_t m, int turned, int64_t relu, float *Z) {
    some_rows(w, w->S8, X, k, W, m, turned, relu, Z);
}

/* out [k, m] = X^T D, of S8 rows. */
static void small_gram(const Work *w, const float *X, int64_t k, const float *D, int64_t m, float *out) {
    const Part part = {X, k, k, 0, 0};
    const int64_t starts[2] = {0, w->S8};
    const Gram g = {1, 1, 1, m, &part, starts, D, 0, out};
    memset(out, 0, (size_t)(k * m) * 4);
    lk_gram(&g);
}

/* out = the sum of B blocks' addends of `size` numbers. */
static void sum_blocks(const Work *w, const float *part, int64_t size, float *out) {
    const int64_t ends[2] = {0, w->B};
    lk_fold(1, ends, part, size, out);
}

/* ---- forward: Structure2Vec.embed ----------------------------------------------------------------------------------- */

static Part features_of(const Work *w) { return (Part){w->X, w->wide, w->net->F, w->index, 0}; }

/* The features and the terms of the edges. */
static Part fixed_of(const Work *w) { return (Part){w->X, w->wide, w->wide, w->index, 0}; }

/* The terms of the edges, [plus | minus] [relu(theta2); relu(-theta2)], which stand beside the features. */
static void make_terms(Work *w, const float *theta2) {
    const int64_t K = w->net->K, F = w->net->F;
    memset(w->pair, 0, (size_t)(2 * w->Kp) * 4);
    memset(w->pair_turned, 0, (size_t)(up_to(K, OCTET) * 2) * 4);
    for (int64_t k = 0; k < K; ++k) {
        w->pair[k] = w->pair_turned[2 * k] = theta2[k] < 0.0f ? 0.0f : theta2[k];
        w->pair[w->Kp + k] = w->pair_turned[2 * k + 1] = theta2[k] > 0.0f ? 0.0f : -theta2[k];
    }
    const Part part = {w->known + F, F + 2, 2, 0, 0};
    const Dense d = {.rows = w->T, .parts = 1, .m = K, .mp = w->Kp, .part = &part, .W = w->pair, .Z = w->terms, .ldz = K};
    lk_dense(&d);
    for (int64_t i = 0; i < w->T; ++i) memcpy(w->X + i * w->wide + F, w->terms + i * K, (size_t)K * 4);
}

/* H of a round as rows, or in the first one as a table. */
static Part hidden_of(const Work *w, int64_t layer) {
    const int64_t K = w->net->K;
    return layer ? (Part){w->H[layer], K, K, 0, 0} : (Part){w->H1, K, K, w->index, 0};
}

INLINE int is_late(const Work *w) { return w->G == 1 && w->S <= STATES; }

/* N = scale * A (alive * H) of a round from H of the one before; `late` is what makes it, where the next product does. */
static const Lookup *meet(Work *w, int64_t layer, Lookup *late) {
    const int64_t K = w->net->K;
    if (layer == 1) {
        for (int64_t i = 0; i < w->T; ++i)
            for (int64_t k = 0; k < K; ++k) w->H1_alive[i * K + k] = w->H1[i * K + k] * w->entry_alive[i];
        *late = (Lookup){w->member, K, w->H1_alive, w->index, w->N[layer], w->alive};
        if (is_late(w)) return late;
        lk_lookup_members(w->G, w->member, K, w->H1_alive, w->index, w->N[layer], w->alive, 1);
        return 0;
    }
    const float *H = w->H[layer - 1];
    if (masks_differ(w)) {
        const Dense d = {.rows = w->R, .m = K, .mp = w->Kp, .W = w->W, .Z = w->masked, .ldz = K, .base = H, .ldbase = K,
                         .base_scale = w->alive};
        lk_dense(&d);
        H = w->masked;
    }
    lk_spmm_members(w->G, w->member, K, H, w->N[layer], w->alive, 1, 0, w->world->tile);
    return 0;
}

/* H of all rounds, and where `pool` the mean over the nodes of each state. */
static void embed(Work *w, const float *weights, int pool) {
    const Network *net = w->net;
    const int64_t K = net->K, last = net->layers - 1;
    if (w->edges) make_terms(w, weights + net->theta2);
    const Part x = fixed_of(w), table = {w->X, w->wide, w->wide, 0, 0};
    const Dense one = {.rows = w->T, .parts = 1, .m = K, .mp = w->Kp, .part = &table, .Z = w->H1, .ldz = K, .relu = 1,
                       .W = padded(w, weights + net->W[0], w->wide, K, K, 0)};
    lk_dense(&one);
    if (!last)
        for (int64_t r = 0; r < w->R; ++r) memcpy(w->H[0] + r * K, w->H1 + w->index[r] * K, (size_t)K * 4);
    for (int64_t layer = 1; layer <= last; ++layer) {
        Lookup late;
        const Lookup *lookup = meet(w, layer, &late);
        const Part part[3] = {x, {w->N[layer], K, K, 0, w->scale}, hidden_of(w, layer - 1)};
        const Pool sums = {w->B, w->S, w->nodes, w->sums};
        const int pooled = pool && layer == last && is_late(w);
        if (pooled) memset(w->sums, 0, (size_t)(w->B * w->S * K) * 4);
        product(w, (Dense){.rows = w->R, .parts = net->self_weight ? 3 : 2, .m = K, .mp = w->Kp, .part = part,
                           .W = padded(w, weights + net->W[layer], rows_of(net, layer), K, K, 0), .Z = w->H[layer],
                           .ldz = K, .relu = 1, .scale = w->present, .lookup = lookup, .pool = pooled ? &sums : 0});
    }
    if (!pool) return;
    if (!last || !is_late(w))
        lk_pool(w->G, w->B, w->nodes, w->at, w->counts, w->first, w->S, K, w->H[last], w->sums);
    sum_blocks(w, w->sums, w->S * K, w->pooled);
    for (int64_t i = 0; i < w->S * K; ++i) w->pooled[i] *= w->mean[i / K];
    memset(w->pooled + w->S * K, 0, (size_t)((w->S8 - w->S) * K) * 4);
}

/* ---- the head: QNetwork --------------------------------------------------------------------------------------------- */

static float *own_rows(const Work *w) { return w->H[w->net->layers - 1]; }

/* [R] scores up to a constant of each state; 0 where a node is no candidate. hidden [R, hidden] or null: what they are made
 * of, which is written. */
static void node_scores(Work *w, const float *weights, float *score, float *hidden_rows) {
    const Network *net = w->net;
    const int64_t hidden = net->hidden;
    const Part part[2] = {{own_rows(w), net->K, net->K, 0, 0}, features_of(w)};
    if (net->theta7a < 0) {
        small_product(w, w->pooled, net->K, weights + net->theta5, hidden, 0, 0, w->Z5);
        for (int64_t r = 0; r < w->R; ++r)
            memcpy(w->base + r * hidden, w->Z5 + w->state[r] * hidden, (size_t)hidden * 4);
    }
    product(w, (Dense){.rows = w->R, .parts = net->paper ? 1 : 2, .m = hidden, .mp = w->Hp, .part = part,
                       .W = padded(w, weights + net->theta6, w->head, hidden, hidden, 0), .Z = hidden_rows, .ldz = hidden,
                       .base = net->theta7a < 0 ? w->base : 0, .ldbase = hidden, .relu = 1, .scale = w->candidate,
                       .w = hidden_rows ? 0 : weights + net->theta7b, .out = score});
    if (!hidden_rows) return;
    const Part rows = {hidden_rows, hidden, hidden, 0, 0};
    lk_dense(&(Dense){.rows = w->R, .parts = 1, .m = 1, .mp = WIDTH, .part = &rows, .Z = score, .ldz = 1,
                      .W = padded(w, weights + net->theta7b, hidden, 1, 1, 0), .scale = w->candidate});
}

static void local_scores(Work *w, const float *weights, float *score) { node_scores(w, weights, score, 0); }

/* q [S8], the constant of each state, from the pooled embeddings; keeps Z5. */
static void pooled_scores(Work *w, const float *weights, float *q) {
    const Network *net = w->net;
    const int64_t hidden = net->hidden;
    small_product(w, w->pooled, net->K, weights + net->theta5, hidden, 0, 0, w->Z5);
    for (int64_t i = 0; i < w->S8 * hidden; ++i) w->A[i] = w->Z5[i] < 0.0f ? 0.0f : w->Z5[i];
    small_product(w, w->A, hidden, weights + net->theta7a, 1, 0, 0, q);
}

/* The rows of a node of each state, -1 where a graph has no such node. */
static void find_rows(Work *w, const int64_t *node) {
    for (int64_t m = 0; m < w->G; ++m)
        for (int64_t s = w->first[m]; s < w->first[m + 1]; ++s) {
            const int64_t n = graph_of(w->world, w->sample->graph[s])[N_REAL];
            w->row[s] = node[s] < 0 || node[s] >= n ? -1 : w->at[m] + node[s] * w->counts[m] + s - w->first[m];
        }
}

/* q [S8] of one node of each state; keeps V, Z6 and Z5. */
static void chosen_values(Work *w, const float *weights, const int64_t *node) {
    const Network *net = w->net;
    const int64_t K = net->K, hidden = net->hidden, head = w->head;
    memset(w->V, 0, (size_t)(w->S8 * head) * 4);
    find_rows(w, node);
    for (int64_t s = 0; s < w->S; ++s) {
        if (w->row[s] < 0) continue;
        memcpy(w->V + s * head, own_rows(w) + w->row[s] * K, (size_t)K * 4);
        memcpy(w->V + s * head + K, w->X + w->index[w->row[s]] * w->wide, (size_t)(head - K) * 4);
    }
    small_product(w, w->V, head, weights + net->theta6, hidden, 0, 0, w->Z6);
    if (net->theta7a >= 0) pooled_scores(w, weights, w->qa);
    else {
        small_product(w, w->pooled, K, weights + net->theta5, hidden, 0, 0, w->Z5);
        for (int64_t i = 0; i < w->S8 * hidden; ++i) w->Z6[i] += w->Z5[i];
    }
    for (int64_t i = 0; i < w->S8 * hidden; ++i) w->A[i] = w->Z6[i] < 0.0f ? 0.0f : w->Z6[i];
    small_product(w, w->A, hidden, weights + net->theta7b, 1, 0, 0, w->q);
    if (net->theta7a >= 0)
        for (int64_t s = 0; s < w->S8; ++s) w->q[s] += w->qa[s];
}

/* D [S8, hidden] = dq theta7^T * [Z > 0]; rows beyond the states are zero. */
static void through_relu(const Work *w, const float *theta7, const float *Z, float *D) {
    const int64_t hidden = w->net->hidden;
    for (int64_t i = 0; i < w->S8 * hidden; ++i)
        D[i] = i < w->S * hidden ? w->dq[i / hidden] * theta7[i % hidden] * (Z[i] > 0.0f ? 1.0f : 0.0f) : 0.0f;
}

static void positive(const Work *w, const float *Z, float *A) {
    const int64_t hidden = w->net->hidden;
    for (int64_t i = 0; i < w->S8 * hidden; ++i) A[i] = i >= w->S * hidden || Z[i] < 0.0f ? 0.0f : Z[i];
}

/* ---- backward ------------------------------------------------------------------------------------------------------- */

/* The head's gradients, and dZ of the last round (QNetwork.chosen_backward). */
static void head_back(Work *w, const float *weights, float *gradient) {
    const Network *net = w->net;
    const int64_t K = net->K, hidden = net->hidden, head = w->head;
    const float *theta7b = weights + net->theta7b;
    positive(w, w->Z6, w->A);
    small_gram(w, w->A, hidden, w->dq, 1, gradient + net->theta7b);
    through_relu(w, theta7b, w->Z6, w->Z6);
    small_gram(w, w->V, head, w->Z6, hidden, gradient + net->theta6);
    if (net->theta7a >= 0) {
        positive(w, w->Z5, w->A);
        small_gram(w, w->A, hidden, w->dq, 1, gradient + net->theta7a);
        through_relu(w, weights + net->theta7a, w->Z5, w->Z5);
    } else memcpy(w->Z5, w->Z6, (size_t)(w->S8 * hidden) * 4);
    small_gram(w, w->pooled, K, w->Z5, hidden, gradient + net->theta5);
    small_product(w, w->Z6, hidden, weights + net->theta6, head, 1, 0, w->dV);
    small_product(w, w->Z5, hidden, weights + net->theta5, K, 1, 0, w->dpool);
    for (int64_t i = 0; i < w->S * K; ++i) w->dpool[i] *= w->mean[i / K];
    lk_gated_spread(w->R, K, w->dpool, w->state, own_rows(w), w->dZ);
    for (int64_t s = 0; s < w->S; ++s) {
        if (w->row[s] < 0) continue;
        const float *h = own_rows(w) + w->row[s] * K;
        for (int64_t k = 0; k < K; ++k)
            w->dZ[w->row[s] * K + k] = (w->dpool[s * K + k] + w->dV[s * head + k]) * (h[k] > 0.0f ? 1.0f : 0.0f);
    }
}

/* dZ of the round before from dZ of one (Structure2Vec._through_round). W: of this round, from the rows of N on. */
static void through_round(Work *w, const float *W, int64_t layer) {
    const int64_t K = w->net->K;
    const Part dz = {w->dZ, K, K, 0, 0}, H = hidden_of(w, layer - 1);
    const Gate gate = {H.X, H.index};
    const Dense d = {.rows = w->R, .parts = 1, .m = K, .mp = w->Kp, .part = &dz, .Z = w->dN, .ldz = K, .scale = w->scale,
                     .W = padded(w, W, K, K, K, 1)};
    lk_dense(&d);
    lk_spmm_members(w->G, w->member, K, w->dN, w->dH, w->alive, 1, w->net->self_weight ? 0 : &gate, w->world->tile);
    if (w->net->self_weight) {
        const Dense own = {.rows = w->R, .parts = 1, .m = K, .mp = w->Kp, .part = &dz, .Z = w->dN, .ldz = K,
                           .base = w->dH, .ldbase = K, .base_scale = masks_differ(w) ? w->alive : 0,
                           .scale = w->present, .gate = H.X, .ldgate = K, .gate_index = H.index,
                           .W = padded(w, W + K * K, K, K, K, 1)};
        lk_dense(&own);
    }
    float **made = w->net->self_weight ? &w->dN : &w->dH, *before = w->dZ;
    w->dZ = *made;
    *made = before;
}

/* The sum of the blocks' addends of a round's W, without the rows of the terms. */
static void sum_round(Work *w, int64_t layer, float *dW) {
    const int64_t K = w->net->K, size = gram_rows(w->net, layer) * K, first = w->net->F * K;
    if (!w->edges) {
        sum_blocks(w, w->part[layer], size, dW);
        return;
    }
    sum_blocks(w, w->part[layer], size, w->whole);
    memcpy(dW, w->whole, (size_t)first * 4);
    memcpy(dW + w->wide * K, w->whole + first + 2 * K, (size_t)(size - first - 2 * K) * 4);
}

/* The rows of the terms in a round's gradient, and what it adds to that of theta2 (Structure2Vec.finish); W, dW: of the round,
 * from these rows on. */
static void terms_back(Work *w, int64_t layer, const float *W, float *dW) {
    const int64_t K = w->net->K, first = w->net->F * K, last = layer == w->net->layers - 1;
    sum_blocks(w, w->part[layer], gram_rows(w->net, layer) * K, w->whole);
    memset(w->E8, 0, (size_t)(w->S8 * K) * 4);
    memcpy(w->E8, w->whole + first, (size_t)(2 * K) * 4);
    small_product(w, w->E8, K, W, K, 1, 0, w->through);
    some_rows(w, up_to(K, OCTET), w->pair_turned, 2, w->E8, K, 0, 0, w->dT);
    for (int64_t i = 0; i < 2 * K; ++i) w->dpair[i] = last ? w->through[i] : w->dpair[i] + w->through[i];
    for (int64_t i = 0; i < K * K; ++i) dW[i] = last || !w->net->shared ? w->dT[i] : dW[i] + w->dT[i];
}

/* The last round has all rows of the one W: those of an earlier round add to it. */
static void add_round(Work *w, int64_t layer) {
    const int64_t K = w->net->K, last = w->net->layers - 1, first = w->net->F * K, end = first + 2 * w->edges * K;
    const int64_t size = gram_rows(w->net, layer) * K, all = gram_rows(w->net, last) * K;
    for (int64_t b = 0; b < w->B; ++b) {
        const float *part = w->part[layer] + b * size;
        float *sum = w->part[last] + b * all;
        for (int64_t i = 0; i < first; ++i) sum[i] += part[i];
        for (int64_t i = end; i < size; ++i) sum[i] += part[i];
    }
}

/* The addends of the rounds' gradients from dZ of the last one (Structure2Vec.backward). */
static void embed_back(Work *w, const float *weights) {
    const Network *net = w->net;
    const int64_t K = net->K, F = net->F, last = net->layers - 1;
    const Part known = w->edges ? (Part){w->known, F + 2, F + 2, w->index, 0} : features_of(w);
    for (int64_t layer = last; layer >= 0; --layer) {
        const Part part[3] = {known, {w->N[layer], K, K, 0, w->scale}, layer ? hidden_of(w, layer - 1) : (Part){0}};
        const float *live = layer == last || net->self_weight ? w->present : w->alive;
        const Gram g = {w->G, w->B, layer ? (net->self_weight ? 3 : 2) : 1, K, part, w->starts, w->dZ, live, w->part[layer]};
        memset(w->part[layer], 0, (size_t)(w->B * gram_rows(net, layer) * K) * 4);
        lk_gram(&g);
        if (net->shared && layer < last) add_round(w, layer);
        if (layer) through_round(w, weights + net->W[layer] + w->wide * K, layer);
    }
}

/* The gradients of the rounds from their addends (Structure2Vec.finish). */
static void embed_close(Work *w, const float *weights, float *gradient) {
    const Network *net = w->net;
    const int64_t K = net->K, F = net->F, last = net->layers - 1;
    for (int64_t layer = last; layer >= 0; --layer) {
        if (w->edges) terms_back(w, layer, weights + net->W[layer] + F * K, gradient + net->W[layer] + F * K);
        if (layer == last || !net->shared) sum_round(w, layer, gradient + net->W[layer]);
    }
    for (int64_t k = 0; k < w->edges * K; ++k) {
        const float theta2 = weights[net->theta2 + k];
        gradient[net->theta2 + k] = w->dpair[k] * (theta2 > 0.0f ? 1.0f : 0.0f) - w->dpair[K + k] * (theta2 < 0.0f ? 1.0f : 0.0f);
    }
}

/* ---- policies that draw: Softmax, node_head.py ---------------------------------------------------------------------- */

/* The next `count` of some numbers; null while they are only counted. */
static float *next_of(float *at, int64_t *used, int64_t count) {
    float *next = at ? at + *used : 0;
    *used += count;
    return next;
}

/* Where the addends of a gradient lie: of theta6 and theta7b by blocks, of the rounds, of theta5 where the head is "mixing", of
 * a value's head. Returns how many they are. */
static int64_t lay_addends(Work *w, int has_value, float *at) {
    const Network *net = w->net;
    int64_t used = 0;
    w->part6 = next_of(at, &used, w->B * w->head * net->hidden);
    w->part7 = next_of(at, &used, w->B * net->hidden);
    for (int64_t layer = 0; layer < net->layers; ++layer)
        w->part[layer] = next_of(at, &used, w->B * gram_rows(net, layer) * net->K);
    w->sum5 = next_of(at, &used, net->theta7a < 0 ? net->K * net->hidden : 0);
    w->sum_value = next_of(at, &used, has_value ? net->K + 1 : 0);
    return used;
}

/* log pi of the nodes, entropies and values of states that were embedded; 1 where a score is NaN. */
static int draw_probabilities(Work *w, const PolicyLesson *l) {
    const int64_t S = w->S, K = w->net->K;
    node_scores(w, l->weights, w->score, w->hidden);
    lk_best_rows(w->G, w->at, w->counts, w->first, w->n, w->score, w->is_candidate, LOWEST, LEAST, w->top, w->where);
    for (int64_t s = 0; s < S; ++s) {
        if (w->top[s] != w->top[s]) return 1;
        w->top[s] = w->top[s] == LOWEST ? 0.0f : w->top[s] + 0.0f;
    }
    lk_softmax_shift(w->R, w->state, w->is_candidate, w->score, w->top, w->shifted, w->pairs);
    lk_pool(w->G, w->B, w->nodes, w->at, w->counts, w->first, S, 2, w->pairs, w->pair_sums);
    sum_blocks(w, w->pair_sums, 2 * S, w->totals);
    lk_softmax_close(w->R, S, w->state, w->pairs, w->totals, w->log_total, w->entropy, w->probability);
    find_rows(w, l->nodes);
    for (int64_t s = 0; s < S; ++s)
        l->log_probability[s] = (w->row[s] < 0 ? 0.0f : w->shifted[w->row[s]]) - w->log_total[s];
    memcpy(l->entropy, w->entropy, (size_t)S * 4);
    if (!l->value) return 0;
    small_product(w, w->pooled, K, l->value, 1, 0, 0, w->q);
    for (int64_t s = 0; s < S; ++s) l->values[s] = w->q[s] + l->value[K];
    return 0;
}

/* dpool [S8, K] of the value's head, and the addends of that (ValueHead.backward). */
static void value_back(Work *w, const PolicyLesson *l) {
    const int64_t K = w->net->K;
    memset(w->dq, 0, (size_t)w->S8 * 4);
    memcpy(w->dq, l->dvalue, (size_t)w->S * 4);
    small_gram(w, w->pooled, K, w->dq, 1, w->sum_value);
    for (int64_t s = 0; s < w->S8; ++s) w->q[s] = s < w->S ? 1.0f : 0.0f;
    small_gram(w, w->q, 1, w->dq, 1, w->sum_value + K);
    for (int64_t i = 0; i < w->S * K; ++i) w->dpool[i] = w->dq[i / K] * l->value[i % K];
}

/* The same of a head that mixes; `more`: to what is there. */
static void mixed_back(Work *w, const float *weights, int more) {
    const int64_t K = w->net->K, hidden = w->net->hidden;
    lk_pool(w->G, w->B, w->nodes, w->at, w->counts, w->first, w->S, hidden, w->dhidden, w->dhead);
    memset(w->Z5, 0, (size_t)(w->S8 * hidden) * 4);
    sum_blocks(w, w->dhead, w->S * hidden, w->Z5);
    small_gram(w, w->pooled, K, w->Z5, hidden, w->sum5);
    small_product(w, w->Z5, hidden, weights + w->net->theta5, K, 1, 0, w->dV);
    for (int64_t i = 0; i < w->S * K; ++i) w->dpool[i] = more ? w->dpool[i] + w->dV[i] : w->dV[i];
}

/* Addends of the gradient (node_gradient, and what it asks for). */
static void policy_back(Work *w, const PolicyLesson *l) {
    const Network *net = w->net;
    const int64_t K = net->K, hidden = net->hidden, mixes = net->theta7a < 0;
    const float *theta7b = l->weights + net->theta7b;
    float *err = w->score;
    if (l->value) value_back(w, l);
    lk_softmax_back(w->R, w->S, w->state, w->shifted, w->probability, w->log_total, w->entropy, l->dlog, l->dentropy, w->row,
                    w->candidate, err);
    for (int64_t r = 0; r < w->R; ++r)
        for (int64_t j = 0; j < hidden; ++j)
            w->dhidden[r * hidden + j] = err[r] * theta7b[j] * (w->hidden[r * hidden + j] > 0.0f ? 1.0f : 0.0f);
    const Part rows = {w->hidden, hidden, hidden, 0, 0}, known[2] = {{own_rows(w), K, K, 0, 0}, features_of(w)};
    const Gram last = {w->G, w->B, 1, 1, &rows, w->starts, err, w->candidate, w->part7};
    const Gram first = {w->G, w->B, net->paper ? 1 : 2, hidden, known, w->starts, w->dhidden, w->candidate, w->part6};
    memset(w->part7, 0, (size_t)(w->B * hidden) * 4);
    memset(w->part6, 0, (size_t)(w->B * w->head * hidden) * 4);
    lk_gram(&last);
    lk_gram(&first);
    if (mixes) mixed_back(w, l->weights, l->value != 0);
    const int pools = mixes || l->value;
    for (int64_t i = 0; pools && i < w->S * K; ++i) w->dpool[i] *= w->mean[i / K];
    if (pools) lk_gated_spread(w->R, K, w->dpool, w->state, own_rows(w), w->dN);
    /* Rows of nodes that are no candidates are zero, as is their scale. */
    const Part through = {w->dhidden, hidden, hidden, 0, w->candidate};
    lk_dense(&(Dense){.rows = w->R, .parts = 1, .m = K, .mp = w->Kp, .part = &through, .Z = w->dZ, .ldz = K,
                      .W = padded(w, l->weights + net->theta6, hidden, K, hidden, 1), .base = pools ? w->dN : 0, .ldbase = K,
                      .gate = own_rows(w), .ldgate = K});
    embed_back(w, l->weights);
}

/* The gradient from the addends of all parts. */
static void policy_close(Work *w, const PolicyLesson *l) {
    const Network *net = w->net;
    const int64_t hidden = net->hidden, pooled = net->K * hidden;
    sum_blocks(w, w->part6, w->head * hidden, l->gradient + net->theta6);
    sum_blocks(w, w->part7, hidden, l->gradient + net->theta7b);
    if (net->theta7a < 0) memcpy(l->gradient + net->theta5, w->sum5, (size_t)pooled * 4);
    else {
        memset(l->gradient + net->theta5, 0, (size_t)pooled * 4);
        memset(l->gradient + net->theta7a, 0, (size_t)hidden * 4);
    }
    embed_close(w, l->weights, l->gradient);
    if (l->value) memcpy(l->gradient + net->size, w->sum_value, (size_t)(net->K + 1) * 4);
}

/* ---- what is called ------------------------------------------------------------------------------------------------- */

/* The best candidate of every state by its scores, -1 where there is none; 1 where a best score is NaN. */
static int best_of_states(Work *w, int64_t *node) {
    int bad = 0;
    lk_best_rows(w->G, w->at, w->counts, w->first, w->n, w->score, w->is_candidate, LOWEST, LEAST, w->top, w->where);
    for (int64_t s = 0; s < w->S; ++s) {
        bad |= w->top[s] != w->top[s];
        node[s] = w->top[s] == LOWEST ? -1 : w->where[s];
    }
    return bad;
}

/* The values of the states after (Agent._next_values); 1 where a score is NaN. */
static int next_values(Work *w, const Lesson *l) {
    int bad;
    if (l->twice) {
        embed(w, l->weights, l->net->theta7a < 0);
        local_scores(w, l->weights, w->score);
        bad = best_of_states(w, w->where);
        embed(w, l->target_weights, 1);
        chosen_values(w, l->target_weights, w->where);
        memcpy(w->later, w->q, (size_t)w->S * 4);
        return bad;
    }
    embed(w, l->target_weights, 1);
    local_scores(w, l->target_weights, w->score);
    bad = best_of_states(w, w->where);
    if (l->net->theta7a >= 0) pooled_scores(w, l->target_weights, w->qa);
    for (int64_t s = 0; s < w->S; ++s) {
        const float best = w->top[s] == LOWEST ? 0.0f : w->top[s] + 0.0f;
        w->later[s] = best + (l->net->theta7a >= 0 ? w->qa[s] : 0.0f);
    }
    return bad;
}

/* Losses and their derivatives (td_loss of app/gnn/loss.py). */
static void td_loss(Work *w, const Lesson *l) {
    const float whole = (float)l->whole, two = 2.0f / whole;
    for (int64_t s = 0; s < w->S8; ++s) w->dq[s] = 0.0f;
    for (int64_t s = 0; s < w->S; ++s) {
        const float target = l->returns[s] + l->discounts[s] * w->later[s], error = w->q[s] - target;
        const float size = error < 0.0f ? -error : error;
        if (!l->huber) {
            l->losses[s] = error * error;
            w->dq[s] = two * error;
        } else {
            l->losses[s] = size <= 1.0f ? 0.5f * error * error : size - 0.5f;
            w->dq[s] = (error < -1.0f ? -1.0f : error > 1.0f ? 1.0f : error) / whole;
        }
    }
}

/* Losses and gradient of a minibatch, in room of lk_lesson_room bytes, at a cache line; 1: a score is NaN. */
int64_t lk_lesson(const Lesson *l, char *room) {
    Work w;
    lay_out(&w, room, l->net, l->world, l->sample);
    lay_states(&w);
    if (!l->before->code) make_codes(&w, l->before, l->after);
    make_inputs(&w, l->after, l->after->code ? l->after->code : w.code[1]);
    if (next_values(&w, l)) return 1;
    make_inputs(&w, l->before, l->before->code ? l->before->code : w.code[0]);
    embed(&w, l->weights, 1);
    chosen_values(&w, l->weights, l->nodes);
    td_loss(&w, l);
    head_back(&w, l->weights, l->gradient);
    embed_back(&w, l->weights);
    embed_close(&w, l->weights, l->gradient);
    return 0;
}

static void score_states(Work *w, const Look *look, const float *weights, float *score) {
    lay_states(w);
    make_inputs(w, look, look->code);
    embed(w, weights, w->net->theta7a < 0);
    local_scores(w, weights, score);
}

/* Scores [rows] of states with given codes, and which rows are candidates (app/rl/agent.py: score_environments). */
void lk_lesson_scores(const Network *net, const World *world, Sample *sample, const Look *look, const float *weights,
                      char *room, float *score, uint8_t *candidate) {
    Work w;
    lay_out(&w, room, net, world, sample);
    score_states(&w, look, weights, score);
    memcpy(candidate, w.is_candidate, (size_t)w.R);
}

/* The best candidate of every such state, -1 where there is none; 1 where its score is NaN. */
int64_t lk_lesson_best(const Network *net, const World *world, Sample *sample, const Look *look, const float *weights,
                       char *room, int64_t *node) {
    Work w;
    lay_out(&w, room, net, world, sample);
    score_states(&w, look, weights, w.score);
    return best_of_states(&w, node);
}

/* The same of a draw from the softmax of the scores: of Gumbel noise on top of them (draw_nodes of app/rl/softmax.py). */
int64_t lk_lesson_draw(const Network *net, const World *world, Sample *sample, const Look *look, const float *weights,
                       char *room, uint64_t key, int64_t *node) {
    Work w;
    lay_out(&w, room, net, world, sample);
    score_states(&w, look, weights, w.score);
    for (int64_t s = 0; s < w.S; ++s)
        lk_gumbel(w.n[s], key, (uint64_t)s, w.is_candidate + w.at[s], w.score + w.at[s]);
    return best_of_states(&w, node);
}

/* How many addends a gradient has. */
int64_t lk_policy_addends(const Network *net, const World *world, Sample *sample, int64_t has_value) {
    Work w;
    lay_out(&w, 0, net, world, sample);
    return lay_addends(&w, has_value != 0, 0);
}

/* log pi of the choices, entropies and values of some states; what was worked out stays in the room for the next call. 1: a
 * score is NaN. */
int64_t lk_policy_play(const PolicyLesson *l, char *room) {
    Work w;
    lay_out(&w, room, l->net, l->world, l->sample);
    lay_states(&w);
    if (!l->look->code) make_codes(&w, l->look, 0);
    make_inputs(&w, l->look, l->look->code ? l->look->code : w.code[0]);
    embed(&w, l->weights, l->value || l->net->theta7a < 0);
    if (draw_probabilities(&w, l)) return 1;
    *w.kept = w;
    return 0;
}

/* The addends of these states' part of a gradient. */
void lk_policy_back(const PolicyLesson *l, char *room) {
    Work w;
    lay_out(&w, room, l->net, l->world, l->sample);
    w = *w.kept;
    lay_addends(&w, l->value != 0, l->addends);
    policy_back(&w, l);
}

/* The gradient, once the addends of all parts were added up. The room is that of one of them. */
void lk_policy_close(const PolicyLesson *l, char *room) {
    Work w;
    lay_out(&w, room, l->net, l->world, l->sample);
    w = *w.kept;
    lay_addends(&w, l->value != 0, l->addends);
    policy_close(&w, l);
}
