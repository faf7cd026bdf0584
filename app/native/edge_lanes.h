/* Messages along stored entries that have rows of numbers, as in app/numerics/edges.py: the same operations in the same
 * order. Entries are taken in groups, of which a panel of columns is made at a time: E W in registers, for some entries
 * together, then what it is added to, the sums of a row in registers too. */
#include "vectors.h"

/* Entries whose rows of W are read once; entries of a group, such that what they read of X stays in the first-level cache. */
enum { EDGES_TOGETHER = LANES == 16 ? 8 : 6, EDGE_ROOM = 4096, LEAST_EDGES = 24, MOST_EDGES = 48 };
INLINE int64_t edges_of(int64_t f) { return EDGE_ROOM / f < MOST_EDGES ? LEAST_EDGES : MOST_EDGES; }

/* A group: its first entry and how many they are, of each its row, and the row of X that its column numbers. */
typedef struct {
    int64_t first, count, row[MOST_EDGES];
    const float *x[MOST_EDGES];
} Group;

/* The next entries from p on, before `last`; *row is that of p, or one before it without further entries. */
INLINE void take_group(const Edges *a, int64_t p, int64_t last, int64_t f, const float *X, int64_t *row, Group *group) {
    const int64_t most = edges_of(f), count = last - p < most ? last - p : most;
    int64_t i = *row, end = number(a->indptr, a->wide, i + 1);
    group->first = p;
    group->count = count > 0 ? count : 0;
    for (int64_t q = 0; q < count; ++q) {
        while (p + q >= end) end = number(a->indptr, a->wide, ++i + 1);
        group->row[q] = i;
        group->x[q] = X + number(a->indices, a->wide, p + q) * f;
    }
    *row = i;
}

/* z[i] = LANES * HELD columns from `at` on of E W + b, of `together` entries from p on. */
#define EDGE_PANEL(R)                                                                                         \
    INLINE void edge_panel_##R(const Edges *a, const Message *to, int64_t p, int64_t at, const vec b[HELD],   \
                               vec z[R][HELD]) {                                                              \
        for (int i = 0; i < R; ++i)                                                                           \
            for (int v = 0; v < HELD; ++v) z[i][v] = (vec){0};                                                \
        const float *e = a->E + p * a->k, *w = to->W + at;                                                    \
        for (int64_t j = 0; j < a->k; ++j, w += to->mp) {                                                     \
            vec row[HELD];                                                                                    \
            for (int v = 0; v < HELD; ++v) row[v] = LOAD(w + v * LANES);                                      \
            for (int i = 0; i < R; ++i) {                                                                     \
                const vec one = e[i * a->k + j] - (vec){0};                                                   \
                for (int v = 0; v < HELD; ++v) z[i][v] = fused(one, row[v], z[i][v]);                         \
            }                                                                                                 \
        }                                                                                                     \
        for (int i = 0; i < R; ++i)                                                                           \
            for (int v = 0; v < HELD; ++v) z[i][v] += b[v];                                                   \
    }

/* Columns `at` .. of a row, `width` of them, to and from registers. */
INLINE void load_columns(const float *x, int64_t at, int64_t f, const int whole, vec to[HELD]) {
    for (int v = 0; v < HELD; ++v)
        if (whole) to[v] = LOAD(x + at + v * LANES);
        else to[v] = load_part(x + at + v * LANES, within(f, at + v * LANES));
}

INLINE void store_columns(float *x, int64_t at, int64_t f, const int whole, const vec from[HELD]) {
    for (int v = 0; v < HELD; ++v)
        if (whole) STORE(x + at + v * LANES, from[v]);
        else store_part(x + at + v * LANES, within(f, at + v * LANES), from[v]);
}

#if LANES == 16
EDGE_PANEL(8)
#define PANEL_TOGETHER edge_panel_8
#else
EDGE_PANEL(6)
#define PANEL_TOGETHER edge_panel_6
#endif
EDGE_PANEL(1)

/* ---- forward -------------------------------------------------------------------------------------------------------- */

/* Y and its row whose sums are in y. */
typedef struct {
    float *Y;
    int64_t ld, row;
} Sums;

INLINE void move_to(Sums *sums, int64_t row, int64_t at, int64_t f, const int whole, vec y[HELD]) {
    store_columns(sums->Y + sums->row * sums->ld, at, f, whole, y);
    sums->row = row;
    load_columns(sums->Y + row * sums->ld, at, f, whole, y);
}

INLINE void add_entry(const Group *group, int64_t q, Sums *sums, int64_t at, int64_t f, const int whole,
                      const vec z[HELD], vec y[HELD]) {
    vec m[HELD];
    if (group->row[q] != sums->row) move_to(sums, group->row[q], at, f, whole, y);
    load_columns(group->x[q], at, f, whole, m);
    for (int v = 0; v < HELD; ++v) {
        m[v] += z[v];
        y[v] += (vec)((bits)m[v] & ~(bits)(m[v] <= 0.0f));
    }
}

/* Columns from `at` on of a group; what the next one reads of them is fetched meanwhile. */
INLINE void add_panel(const Edges *a, const Message *to, const Group *group, const Group *next, float *Y, int64_t ldy,
                      int64_t at, const int whole) {
    const int64_t f = to->f;
    Sums sums = {Y, ldy, group->row[0]};
    vec b[HELD], y[HELD];
    for (int v = 0; v < HELD; ++v) b[v] = LOAD(to->b + at + v * LANES);
    load_columns(Y + sums.row * ldy, at, f, whole, y);
    int64_t q = 0;
    for (; q + EDGES_TOGETHER <= group->count; q += EDGES_TOGETHER) {
        vec z[EDGES_TOGETHER][HELD];
        for (int i = 0; i < EDGES_TOGETHER; ++i) __builtin_prefetch(next->x[q + i] + at);
        PANEL_TOGETHER(a, to, group->first + q, at, b, z);
        for (int i = 0; i < EDGES_TOGETHER; ++i) add_entry(group, q + i, &sums, at, f, whole, z[i], y);
    }
    for (; q < group->count; ++q) {
        vec z[1][HELD];
        __builtin_prefetch(next->x[q] + at);
        edge_panel_1(a, to, group->first + q, at, b, z);
        add_entry(group, q, &sums, at, f, whole, z[0], y);
    }
    store_columns(Y + sums.row * ldy, at, f, whole, y);
}

/* Fetch all that a group reads. */
INLINE void fetch_group(const Group *group, int64_t f) {
    for (int64_t q = 0; q < group->count; ++q)
        for (int64_t c = 0; c < f; c += 16) __builtin_prefetch(group->x[q] + c);
}

/* Places where a group has no entry are those of the last group, which may be fetched again. */
INLINE void begin_groups(Group groups[2], const float *X) {
    for (int g = 0; g < 2; ++g)
        for (int q = 0; q < MOST_EDGES; ++q) groups[g].x[q] = X;
}

/* Y_i += relu(X_j + E_ij W + b) for every entry, in order.  X [*, f], Y [n, f], rows ldy apart. */
static void edge_add(const Edges *a, const Message *to, const float *X, float *Y, int64_t ldy) {
    const int64_t f = to->f, first = number(a->indptr, a->wide, 0), last = number(a->indptr, a->wide, a->n);
    Group groups[2];
    int64_t row = 0;
    if (first >= last) return;
    begin_groups(groups, X);
    take_group(a, first, last, f, X, &row, groups);
    fetch_group(groups, f);
    for (int now = 0; groups[now].count; now ^= 1) {
        const Group *group = groups + now;
        Group *next = groups + (now ^ 1);
        take_group(a, group->first + group->count, last, f, X, &row, next);
        int64_t at = 0;
        for (; at + COLUMNS <= f; at += COLUMNS) add_panel(a, to, group, next, Y, ldy, at, 1);
        if (at < f) add_panel(a, to, group, next, Y, ldy, at, 0);
    }
}

/* ---- backward ------------------------------------------------------------------------------------------------------- */

/* What a group gives a panel of dW: columns of G. */
typedef float Given[MOST_EDGES][COLUMNS];

/* Rows of H and dH, and the row of both that is in registers. */
typedef struct {
    const float *H;
    float *dH;
    int64_t ldh, ldd, row;
} Back;

INLINE void back_to(Back *back, int64_t row, int64_t at, int64_t f, const int whole, vec h[HELD], vec dh[HELD]) {
    store_columns(back->dH + back->row * back->ldd, at, f, whole, dh);
    back->row = row;
    load_columns(back->H + row * back->ldh, at, f, whole, h);
    load_columns(back->dH + row * back->ldd, at, f, whole, dh);
}

INLINE void back_entry(const Group *group, int64_t q, Back *back, int64_t at, int64_t f, const int whole,
                       const vec z[HELD], vec h[HELD], vec dh[HELD], vec db[HELD], float *G) {
    vec d[HELD];
    if (group->row[q] != back->row) back_to(back, group->row[q], at, f, whole, h, dh);
    load_columns(group->x[q], at, f, whole, d);
    for (int v = 0; v < HELD; ++v) {
        const vec g = (vec)((bits)d[v] & (bits)(h[v] + z[v] > 0.0f));
        STORE(G + v * LANES, g);
        dh[v] += g;
        db[v] += g;
    }
}

/* dW [k][f], columns from `at` on, += E^T G of a group: each element a chain that goes on. */
#define EDGE_GRAM(N)                                                                                          \
    INLINE void edge_gram_##N(const Edges *a, const Group *group, int64_t j, int64_t at, int64_t f,           \
                              const int whole, float *dW, Given G) {                                          \
        const float *e = a->E + group->first * a->k + j;                                                      \
        vec sum[N][HELD];                                                                                     \
        for (int i = 0; i < N; ++i) load_columns(dW + (j + i) * f, at, f, whole, sum[i]);                     \
        for (int64_t q = 0; q < group->count; ++q, e += a->k)                                                 \
            for (int i = 0; i < N; ++i) {                                                                     \
                const vec one = e[i] - (vec){0};                                                              \
                for (int v = 0; v < HELD; ++v) sum[i][v] = fused(one, LOAD(G[q] + v * LANES), sum[i][v]);     \
            }                                                                                                 \
        for (int i = 0; i < N; ++i) store_columns(dW + (j + i) * f, at, f, whole, sum[i]);                    \
    }
EDGE_GRAM(4)
EDGE_GRAM(2)
EDGE_GRAM(1)

INLINE void group_gram(const Edges *a, const Group *group, int64_t at, int64_t f, const int whole, float *dW, Given G) {
    int64_t j = 0;
    for (; j + 4 <= a->k; j += 4) edge_gram_4(a, group, j, at, f, whole, dW, G);
    if (j + 2 <= a->k) edge_gram_2(a, group, j, at, f, whole, dW, G), j += 2;
    if (j < a->k) edge_gram_1(a, group, j, at, f, whole, dW, G);
}

INLINE void back_panel(const Edges *a, const Message *to, const Group *group, const Group *next, Back back, int64_t at,
                       const int whole, float *dW) {
    const int64_t f = to->f;
    float *bias = dW + a->k * f;
    Given G;
    vec b[HELD], h[HELD], dh[HELD], db[HELD];
    for (int v = 0; v < HELD; ++v) b[v] = LOAD(to->b + at + v * LANES);
    load_columns(back.H + back.row * back.ldh, at, f, whole, h);
    load_columns(back.dH + back.row * back.ldd, at, f, whole, dh);
    load_columns(bias, at, f, whole, db);
    int64_t q = 0;
    for (; q + EDGES_TOGETHER <= group->count; q += EDGES_TOGETHER) {
        vec z[EDGES_TOGETHER][HELD];
        for (int i = 0; i < EDGES_TOGETHER; ++i) __builtin_prefetch(next->x[q + i] + at);
        PANEL_TOGETHER(a, to, group->first + q, at, b, z);
        for (int i = 0; i < EDGES_TOGETHER; ++i)
            back_entry(group, q + i, &back, at, f, whole, z[i], h, dh, db, G[q + i]);
    }
    for (; q < group->count; ++q) {
        vec z[1][HELD];
        __builtin_prefetch(next->x[q] + at);
        edge_panel_1(a, to, group->first + q, at, b, z);
        back_entry(group, q, &back, at, f, whole, z[0], h, dh, db, G[q]);
    }
    store_columns(back.dH + back.row * back.ldd, at, f, whole, dh);
    store_columns(bias, at, f, whole, db);
    group_gram(a, group, at, f, whole, dW, G);
}

/* Of a matrix whose rows are the messages' origins: with G_ij = D_j where H_i + E_ij W + b > 0, else 0, dH_i += G_ij for
 * every entry, in order; out [blocks][(k + 1) f] = sums of E^T G and of G over the entries of each block's rows.
 * H, dH [n, f], rows ldh and ldd apart, D [*, f]; block i is rows starts[i] .. starts[i + 1] - 1. */
static void edge_back(const Edges *a, const Message *to, const float *H, int64_t ldh, const float *D, float *dH, int64_t ldd,
                      int64_t blocks, const int64_t *starts, float *out) {
    const int64_t f = to->f, size = (a->k + 1) * f;
    Group groups[2];
    begin_groups(groups, D);
    for (int64_t block = 0; block < blocks; ++block, out += size) {
        int64_t row = starts[block];
        memset(out, 0, (size_t)size * 4);
        if (starts[block + 1] <= row) continue;
        const int64_t first = number(a->indptr, a->wide, row), last = number(a->indptr, a->wide, starts[block + 1]);
        take_group(a, first, last, f, D, &row, groups);
        fetch_group(groups, f);
        for (int now = 0; groups[now].count; now ^= 1) {
            const Group *group = groups + now;
            Group *next = groups + (now ^ 1);
            const Back back = {H, dH, ldh, ldd, group->row[0]};
            take_group(a, group->first + group->count, last, f, D, &row, next);
            int64_t at = 0;
            for (; at + COLUMNS <= f; at += COLUMNS) back_panel(a, to, group, next, back, at, 1, out);
            if (at < f) back_panel(a, to, group, next, back, at, 0, out);
        }
    }
}

/* ---- for attention (edge_window.h) ----------------------------------------------------------------------------------- */

/* Columns from `at` on of rows of E W. */
INLINE void rows_panel(const Edges *a, int64_t p, int64_t count, const Message *to, int64_t at, const int whole,
                       float *Q) {
    const int64_t f = to->f;
    const vec none[HELD] = {{0}};
    int64_t q = 0;
    for (; q + EDGES_TOGETHER <= count; q += EDGES_TOGETHER) {
        vec z[EDGES_TOGETHER][HELD];
        PANEL_TOGETHER(a, to, p + q, at, none, z);
        for (int i = 0; i < EDGES_TOGETHER; ++i) store_columns(Q + (q + i) * f, at, f, whole, z[i]);
    }
    for (; q < count; ++q) {
        vec z[1][HELD];
        edge_panel_1(a, to, p + q, at, none, z);
        store_columns(Q + q * f, at, f, whole, z[0]);
    }
}

static void edge_rows(const Edges *a, int64_t p, int64_t count, const Message *to, float *Q) {
    int64_t at = 0;
    for (; at + COLUMNS <= to->f; at += COLUMNS) rows_panel(a, p, count, to, at, 1, Q);
    if (at < to->f) rows_panel(a, p, count, to, at, 0, Q);
}

/* A group's columns from `at` on, G [*, f], to the gradient of W. */
INLINE void gram_panel(const Edges *a, const Group *group, const float *G, int64_t f, int64_t at, const int whole,
                       float *dW) {
    Given panel;
    for (int64_t q = 0; q < group->count; ++q) {
        vec g[HELD];
        load_columns(G + q * f, at, f, whole, g);
        for (int v = 0; v < HELD; ++v) STORE(panel[q] + v * LANES, g[v]);
    }
    group_gram(a, group, at, f, whole, dW, panel);
}

static void edge_gram(const Edges *a, int64_t p, int64_t count, int64_t f, const float *G, float *dW) {
    Group group;
    for (int64_t q = 0; q < count; q += MOST_EDGES) {
        group.first = p + q;
        group.count = count - q < MOST_EDGES ? count - q : MOST_EDGES;
        int64_t at = 0;
        for (; at + COLUMNS <= f; at += COLUMNS) gram_panel(a, &group, G + q * f, f, at, 1, dW);
        if (at < f) gram_panel(a, &group, G + q * f, f, at, 0, dW);
    }
}
