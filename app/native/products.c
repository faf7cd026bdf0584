/* Products of app/device.py. One output element is one left-to-right chain; registers hold different outputs. */
#include "products.h"

/* ---- sparse times dense, by states ------------------------------------------------------------------------ */

/* z where the gate is open, else 0 times it. */
INLINE v16 gated(v16 z, v16 gate) {
    return z * (v16)((i16)(gate > 0.0f) & (i16)((v16){0} + 1.0f));
}

/* Which of at most STATES neighbouring rows are live. A row that is not is zero where `first`, else as it is. */
enum { STATES = 64 };
INLINE int live_states(const float *live, int64_t states, int64_t f, const int first, float *y, int32_t *held) {
    int count = 0;
    for (int64_t s = 0; s < states; ++s) {
        held[count] = (int32_t)s;
        count += nonzero(live + s);
    }
    if (first) /* all of them: which ones are live cannot be predicted */
        for (int64_t j = 0; j < states * f; j += 16) STORE16(y + j, (v16){0});
    return count;
}

/* N of the live states of a node, 16 columns of each: one pass over the entries of the node's row. */
#define GROUP(N, ROW)                                                                                         \
    {                                                                                                         \
        v16 a[N];                                                                                             \
        int64_t to[N];                                                                                        \
        for (int q = 0; q < N; ++q) to[q] = held[q] * f + at, a[q] = START(v16, y + to[q]);                   \
        for (int64_t j = begin; j < end; ++j) ROW(N)                                                          \
        for (int q = 0; q < N; ++q) {                                                                         \
            if (gate) a[q] = gated(a[q], LOAD16(gate_row(gate, f, i * states + held[q]) + at));               \
            STORE16(y + to[q], a[q]);                                                                         \
        }                                                                                                     \
    }
#define GROUPS(ROW)                                                                                           \
    for (; count > 0; count -= 4, held += 4)                                                                  \
        for (int64_t at = 0; at < f; at += 16) switch (count) {                                               \
            case 1: GROUP(1, ROW) break;                                                                      \
            case 2: GROUP(2, ROW) break;                                                                      \
            case 3: GROUP(3, ROW) break;                                                                      \
            default: GROUP(4, ROW)                                                                            \
        }

INLINE const float *gate_row(const Gate *gate, int64_t f, int64_t r) {
    return gate->values + (gate->index ? (int64_t)gate->index[r] : r) * f;
}

/* Rows of several states side by side, f columns each (a multiple of 16): those of states that are not live are zero
 * where `first`, else left as they are. */
#define SIDE_BY_SIDE(T, N)                                                                                    \
    {                                                                                                         \
        const float *x = X + (size_t)indices[j] * ld;                                                         \
        if (j + 12 < last) {                                                                                  \
            const float *next = X + (size_t)indices[j + 12] * ld;                                             \
            for (int q = 0; q < N; ++q) __builtin_prefetch(next + to[q], 0, 3);                               \
        }                                                                                                     \
        for (int q = 0; q < N; ++q) a[q] += T(LOAD16(x + to[q]));                                             \
    }
#define SUM_ONES(N) SIDE_BY_SIDE(ONE, N)
#define SUM_DATA(N) SIDE_BY_SIDE(VALUED, N)
#define LIVE(tag, INDEX, ROW)                                                                                 \
    WIDE static void live_##tag(int64_t n, const INDEX *indptr, const INDEX *indices, const float *data,      \
                                int64_t ld, int64_t f, const float *X, float *Y, const float *live,           \
                                const int first, const Gate *gate) {                                          \
        const int64_t last = n ? (int64_t)indptr[n] : 0, states = ld / f;                                     \
        (void)data;                                                                                           \
        for (int64_t i = 0; i < n; ++i, live += states) {                                                     \
            const int64_t begin = indptr[i], end = indptr[i + 1];                                             \
            int32_t list[STATES], *held = list;                                                               \
            float *y = Y + i * ld;                                                                            \
            if (!first && begin == end) continue;                                                             \
            int count = live_states(live, states, f, first, y, list);                                         \
            GROUPS(ROW)                                                                                       \
        }                                                                                                     \
    }
LIVE(ones, int32_t, SUM_ONES)
LIVE(data, int32_t, SUM_DATA)

/* Y [n, c] *= (live != 0) * (gate > 0): what live_* do as they go. */
WIDE static void gate_rows(int64_t rows, int64_t f, float *Y, const float *live, const Gate *gate) {
    for (int64_t r = 0; r < rows; ++r) {
        const float *g = gate_row(gate, f, r);
        float *y = Y + r * f;
        if (live && live[r] == 0.0f) memset(y, 0, (size_t)f * 4);
        else
            for (int64_t j = 0; j < f; ++j) y[j] *= g[j] > 0.0f ? 1.0f : 0.0f;
    }
}

/* Y [n, c] += A X as lk_spmm. Rows are those of c / f states side by side. live [n][c / f], or null: rows of Y where it
 * is 0 may be left out, and where `first` be zero; with a gate they are. gate, or null (needs first): the sums times
 * (gate > 0). */
void lk_spmm_live(int64_t n, int64_t m, int wide, const void *indptr, const void *indices, const float *data, int64_t c,
                  int64_t f, const float *X, float *Y, const float *live, int first, const Gate *gate, int64_t tile) {
    if (!live || wide || f % 16 || is_far(m, c) || c > STATES * f) {
        lk_spmm(n, m, wide, indptr, indices, data, c, X, Y, c, first, tile);
        if (gate) gate_rows(n * (c / f), f, Y, live, gate);
    } else if (data) live_data(n, indptr, indices, data, c, f, X, Y, live, first, gate);
    else live_ones(n, indptr, indices, data, c, f, X, Y, live, first, gate);
}

/* One product for each graph of a batch: `table` [members][9] holds n, m, wide, indptr, indices, data (addresses),
 * the first row of the graph in X and in Y, and how many rows of f columns stand side by side for a node. */
void lk_spmm_members(int64_t members, const int64_t *table, int64_t f, const float *X, float *Y, const float *live,
                     int first, const Gate *gate, int64_t tile) {
    for (const int64_t *t = table; t < table + 9 * members; t += 9) {
        Gate own = {0};
        if (gate)
            own = (Gate){gate->values + (gate->index ? 0 : t[7] * f), gate->index ? gate->index + t[7] : 0};
        lk_spmm_live(t[0], t[1], (int)t[2], (const void *)(intptr_t)t[3], (const void *)(intptr_t)t[4],
                     (const float *)(intptr_t)t[5], t[8] * f, f, X + t[6] * f, Y + t[7] * f, live ? live + t[7] : 0,
                     first, gate ? &own : 0, tile);
    }
}

/* Y += A X where X[u, s] = table[code[u, s]]: rows that repeat are read from a table that stays in the cache. Members,
 * live and first as above; f columns in a row of the table. */
#define LOOKUP(type)                                                                                          \
    {                                                                                                         \
        type a = START(type, y + at);                                                                         \
        for (int64_t j = begin; j < end; ++j)                                                                 \
            a += *(const type *)(table + (int64_t)code[(int64_t)indices[j] * states + s] * f + at);           \
        *(type *)(y + at) = a;                                                                                \
    }
#define SUM_LOOKUP(N)                                                                                         \
    {                                                                                                         \
        const int32_t *from = code + (int64_t)indices[j] * states;                                            \
        if (states > 1 && j + 12 < last) __builtin_prefetch(code + (int64_t)indices[j + 12] * states, 0, 3);  \
        for (int q = 0; q < N; ++q) a[q] += LOAD16(table + (int64_t)from[held[q]] * f + at);                  \
    }
#define LOOKUPS(tag, INDEX)                                                                                   \
    WIDE static void lookup_##tag(int64_t n, const INDEX *indptr, const INDEX *indices, int64_t states,       \
                                  int64_t f, const float *table, const int32_t *code, float *Y,               \
                                  const float *live, const int first) {                                       \
        const Gate *gate = 0;                                                                                 \
        const int64_t last = n ? (int64_t)indptr[n] : 0;                                                      \
        for (int64_t i = 0; i < n; ++i) {                                                                     \
            const int64_t begin = indptr[i], end = indptr[i + 1];                                             \
            int32_t list[STATES], *held = list;                                                               \
            float *y = Y + i * states * f;                                                                    \
            if (!first && begin == end) continue;                                                             \
            if (live && f % 16 == 0 && states <= STATES) {                                                    \
                int count = live_states(live + i * states, states, f, first, y, list);                        \
                GROUPS(SUM_LOOKUP)                                                                            \
                continue;                                                                                     \
            }                                                                                                 \
            for (int64_t s = 0; s < states; ++s, y += f) {                                                    \
                int64_t at = 0;                                                                               \
                if (live && live[i * states + s] == 0.0f) {                                                   \
                    if (first) memset(y, 0, (size_t)f * 4);                                                   \
                    continue;                                                                                 \
                }                                                                                             \
                for (; at + 16 <= f; at += 16) LOOKUP(v16)                                                    \
                for (; at + 4 <= f; at += 4) LOOKUP(v4)                                                       \
                for (; at < f; ++at) LOOKUP(float)                                                            \
            }                                                                                                 \
        }                                                                                                     \
    }
LOOKUPS(narrow, int32_t)
LOOKUPS(wide, int64_t)

void lk_lookup_members(int64_t members, const int64_t *graphs, int64_t f, const float *table, const int32_t *code,
                       float *Y, const float *live, int first) {
    for (const int64_t *t = graphs; t < graphs + 9 * members; t += 9) {
        const void *indptr = (const void *)(intptr_t)t[3], *indices = (const void *)(intptr_t)t[4];
        const int32_t *c = code + t[6];
        float *y = Y + t[7] * f;
        const float *l = live ? live + t[7] : 0;
        if (t[2]) lookup_wide(t[0], indptr, indices, t[8], f, table, c, y, l, first);
        else lookup_narrow(t[0], indptr, indices, t[8], f, table, c, y, l, first);
    }
}

/* The rows of nodes lo..end-1. */
static void lookup_rows(const Lookup *l, int64_t lo, int64_t end) {
    const int64_t *t = l->graph, states = t[8], row = t[7] + lo * states;
    const void *indices = (const void *)(intptr_t)t[4];
    const float *live = l->live ? l->live + row : 0;
    if (t[2])
        lookup_wide(end - lo, (const int64_t *)(intptr_t)t[3] + lo, indices, states, l->f, l->table, l->code + t[6],
                    l->Y + row * l->f, live, 1);
    else
        lookup_narrow(end - lo, (const int32_t *)(intptr_t)t[3] + lo, indices, states, l->f, l->table, l->code + t[6],
                      l->Y + row * l->f, live, 1);
}

/* ---- dense rows times a small matrix ----------------------------------------------------------------------
 * Z = [part_0 | part_1 | ...] W, a chain over all columns in order; a part may be read through an index (row r is
 * X[index[r]]) and scaled by a number per row. Then, in this order and each only where given:
 *   Z = base * base_scale + Z;  Z = max(Z, 0);  Z *= scale;  Z *= (gate > 0). */

/* What follows the product, for one row and 16 columns. `form`, a constant where this is called: SIMPLE, only relu and
 * scale, and all 16 columns; WHOLE, all 16 columns. */
enum { SIMPLE, WHOLE, ANY };
INLINE v16 finish(const Dense *d, const int form, int64_t r, int64_t at, int64_t width, v16 z) {
    if (form != SIMPLE && d->base) {
        v16 b = load_part(d->base + r * d->ldbase + at, width);
        if (d->base_scale) b *= d->base_scale[r];
        z = b + z;
    }
    if (d->relu) z = (v16)((i16)z & ~(i16)(z < 0.0f));
    if (d->scale) z *= d->scale[r];
    if (form != SIMPLE && d->gate) {
        const int64_t row = d->gate_index ? (int64_t)d->gate_index[r] : r;
        z = gated(z, load_part(d->gate + row * d->ldgate + at, width));
    }
    return z;
}

enum { MOST_HIDDEN = 4096, CHUNK = 192, TOGETHER = 6 }; /* a chunk's operands stay in the first-level cache */

/* z[i] += (elements k0.. of row i) times rows of W; `factor` [R], or null for ones. Scaled elements are made by whole
 * vectors first: one at a time they cost as much as the sum. */
#define ADD_PART(R)                                                                                           \
    INLINE void add_part_##R(v16 *z, const float *const *x, const float *factor, int64_t k, const float *w,   \
                             int64_t mp) {                                                                    \
        float scaled[R][16];                                                                                  \
        if (!factor)                                                                                          \
            for (int64_t j = 0; j < k; ++j, w += mp) {                                                        \
                const v16 row = LOAD16(w);                                                                    \
                for (int i = 0; i < R; ++i) z[i] += x[i][j] * row;                                            \
            }                                                                                                 \
        else                                                                                                  \
            for (int64_t k0 = 0; k0 < k; k0 += 16) {                                                          \
                const int64_t width = k - k0 < 16 ? k - k0 : 16;                                              \
                for (int i = 0; i < R; ++i) STORE16(scaled[i], load_part(x[i] + k0, width) * factor[i]);      \
                for (int64_t j = 0; j < width; ++j, w += mp) {                                                \
                    const v16 row = LOAD16(w);                                                                \
                    for (int i = 0; i < R; ++i) z[i] += scaled[i][j] * row;                                   \
                }                                                                                             \
            }                                                                                                 \
    }
ADD_PART(6)
ADD_PART(1)

/* R rows `at_row`, all tiles of 16 columns. */
#define DENSE_ROWS(R)                                                                                         \
    INLINE void dense_##R(const Dense *d, const int form, const int64_t *at_row, float *hidden) {             \
        for (int64_t at = 0; at < d->mp; at += 16) {                                                          \
            const int64_t width = form != ANY || d->m - at >= 16 ? 16 : d->m - at;                            \
            v16 z[R];                                                                                         \
            for (int i = 0; i < R; ++i)                                                                       \
                z[i] = d->start ? LOAD16(d->start + (int64_t)d->start_index[at_row[i]] * d->mp + at) : (v16){0}; \
            const float *w = d->W + at;                                                                       \
            for (int64_t p = 0; p < d->parts; ++p) {                                                          \
                const Part *part = d->part + p;                                                               \
                const float *x[R];                                                                            \
                float factor[R];                                                                              \
                int ones = 1;                                                                                 \
                for (int i = 0; i < R; ++i) {                                                                 \
                    const int64_t r = at_row[i];                                                              \
                    x[i] = part->X + (part->index ? (int64_t)part->index[r] : r) * part->ld;                  \
                    factor[i] = part->scale ? part->scale[r] : 1.0f;                                          \
                    ones &= factor[i] == 1.0f;                                                                \
                }                                                                                             \
                if (ones) add_part_##R(z, x, 0, part->k, w, d->mp);                                           \
                else add_part_##R(z, x, factor, part->k, w, d->mp);                                           \
                w += part->k * d->mp;                                                                         \
            }                                                                                                 \
            for (int i = 0; i < R; ++i) {                                                                     \
                z[i] = finish(d, form, at_row[i], at, width, z[i]);                                           \
                if (form != SIMPLE && d->w)                                                                   \
                    STORE16(hidden + i * d->mp + at, z[i] * load_part(d->w + at, width));                     \
                else store_part(d->Z + at_row[i] * d->ldz + at, width, z[i]);                                 \
            }                                                                                                 \
        }                                                                                                     \
        if (form != SIMPLE && d->w) {                                                                         \
            float score[R];                                                                                   \
            for (int i = 0; i < R; ++i) score[i] = 0.0f;                                                      \
            for (int64_t j = 0; j < d->m; ++j)                                                                \
                for (int i = 0; i < R; ++i) score[i] += hidden[i * d->mp + j];                                \
            for (int i = 0; i < R; ++i) d->out[at_row[i]] = score[i];                                         \
        }                                                                                                     \
    }
DENSE_ROWS(6)
DENSE_ROWS(1)

/* Rows lo..hi-1 by what they need: `full`, all of the product; `bare`, only what the chain starts with and what follows
 * it; `none`, zero. Listed without a branch, since which rows they are cannot be predicted. */
typedef struct {
    int64_t full, bare, none;
    int64_t full_row[CHUNK + TOGETHER], bare_row[CHUNK], none_row[CHUNK];
} Kinds;

INLINE void list_kinds(int64_t lo, int64_t hi, const float *scale, const float *met, Kinds *to) {
    int64_t full = 0, bare = 0, none = 0;
    for (int64_t r = lo; r < hi; ++r) {
        const int live = !scale || nonzero(scale + r), meets = !met || nonzero(met + r);
        to->full_row[full] = r;
        full += live & meets;
        if (met) {
            to->bare_row[bare] = r;
            bare += live & !meets;
        }
        if (scale) {
            to->none_row[none] = r;
            none += !live;
        }
    }
    to->full = full;
    to->bare = bare;
    to->none = none;
}

/* The groups of TOGETHER are full: where rows are missing the last one is made again. */
INLINE void dense_full(const Dense *d, const int form, Kinds *kinds, float *hidden) {
    int64_t i = 0;
    if (!kinds->full) return;
    for (int k = 0; k < TOGETHER; ++k) kinds->full_row[kinds->full + k] = kinds->full_row[kinds->full - 1];
    for (; i + 1 < kinds->full; i += TOGETHER) dense_6(d, form, kinds->full_row + i, hidden);
    if (i < kinds->full) dense_1(d, form, kinds->full_row + i, hidden);
}

/* Add the rows of nodes lo..end-1 to the sums of their blocks; *block is where the nodes before them ended. */
INLINE void pool_rows(const Dense *d, const Pool *p, int64_t lo, int64_t end, int64_t *block) {
    while (lo < end) {
        while (*block < p->blocks && p->nodes[*block + 1] <= lo) ++*block;
        if (*block == p->blocks) return;
        const int64_t stop = p->nodes[*block + 1] < end ? p->nodes[*block + 1] : end;
        for (int64_t s = 0; s < p->states; ++s)
            for (int64_t at = 0; at < d->m; at += 16) {
                const int64_t width = d->m - at < 16 ? d->m - at : 16;
                float *out = p->out + (*block * p->states + s) * d->m + at;
                v16 sum = load_part(out, width);
                for (int64_t i = lo; i < stop; ++i) sum += load_part(d->Z + (i * p->states + s) * d->ldz + at, width);
                store_part(out, width, sum);
            }
        lo = stop;
    }
}

/* A row whose `scale` is 0 is 0: it is not computed. Where every part has a scale (the same for all) and that is 0 for a
 * row, the row is what its chain starts with. */
WIDE void lk_dense(const Dense *given) {
    Kinds kinds;
    float hidden[TOGETHER * MOST_HIDDEN];
    Part part[4] = {{0}};
    Dense copy = *given; /* not reachable through the pointers that are written: it can stay in registers */
    const Dense *d = &copy;
    for (int64_t p = 0; p < copy.parts; ++p) part[p] = given->part[p];
    copy.part = part;
    const float *met = copy.parts ? part[0].scale : 0;
    for (int64_t p = 1; p < copy.parts; ++p)
        if (part[p].scale != met) met = 0;
    const int form = copy.m % 16 ? ANY : copy.base || copy.gate || copy.w ? WHOLE : SIMPLE;
    Dense bare = copy;
    bare.parts = 0;
    const int64_t states = d->lookup ? d->lookup->graph[8] : d->pool ? d->pool->states : 1;
    const int64_t step = CHUNK / states * states; /* whole nodes */
    int64_t block = 0;
    for (int64_t lo = 0; lo < d->rows; lo += step) {
        const int64_t hi = lo + step < d->rows ? lo + step : d->rows;
        if (d->lookup) lookup_rows(d->lookup, lo / states, hi / states);
        if (d->scale && met) list_kinds(lo, hi, d->scale, met, &kinds);
        else if (d->scale) list_kinds(lo, hi, d->scale, 0, &kinds);
        else if (met) list_kinds(lo, hi, 0, met, &kinds);
        else list_kinds(lo, hi, 0, 0, &kinds);
        for (int64_t k = 0; k < kinds.bare; ++k)
            if (form == SIMPLE) dense_1(&bare, SIMPLE, kinds.bare_row + k, hidden);
            else dense_1(&bare, ANY, kinds.bare_row + k, hidden);
        for (int64_t k = 0; k < kinds.none; ++k) {
            if (d->w) d->out[kinds.none_row[k]] = 0.0f;
            else
                for (int64_t at = 0; at < d->m; at += 16)
                    store_part(d->Z + kinds.none_row[k] * d->ldz + at, d->m - at < 16 ? d->m - at : 16, (v16){0});
        }
        if (form == SIMPLE) dense_full(d, SIMPLE, &kinds, hidden);
        else if (form == WHOLE) dense_full(d, WHOLE, &kinds, hidden);
        else dense_full(d, ANY, &kinds, hidden);
        if (d->pool) pool_rows(d, d->pool, lo / states, hi / states, &block);
    }
}

/* ---- sums of rows -----------------------------------------------------------------------------------------
 * out[i] = X[starts[i]] + X[starts[i]+1] + ... from the left; rows of `c` floats, `ldo` apart in out. */

WIDE static void fold_rows(int64_t k, const int64_t *starts, const float *X, int64_t c, float *out, int64_t ldo) {
    for (int64_t i = 0; i < k; ++i) {
        float *o = out + i * ldo;
        memset(o, 0, (size_t)c * 4);
        for (int64_t r = starts[i]; r < starts[i + 1]; ++r) {
            const float *x = X + r * c;
            for (int64_t j = 0; j < c; ++j) o[j] += x[j];
        }
    }
}

void lk_fold(int64_t k, const int64_t *starts, const float *X, int64_t c, float *out) {
    fold_rows(k, starts, X, c, out, c);
}

/* For each graph g its counts[g] states: out[b][first[g]*f ..] = sum over the rows of block b (starts as in Gram,
 * in rows of counts[g]*f floats counted from the graph's own first row at[g]). */
void lk_pool(int64_t graphs, int64_t blocks, const int64_t *starts, const int64_t *at, const int64_t *counts,
             const int64_t *first, int64_t states, int64_t f, const float *X, float *out) {
    for (int64_t g = 0; g < graphs; ++g)
        fold_rows(blocks, starts + g * (blocks + 1), X + at[g] * f, counts[g] * f, out + first[g] * f, states * f);
}

/* out [rows, m]: values[index[r]] where gate[r] > 0, else 0 times it. */
WIDE void lk_gated_spread(int64_t rows, int64_t m, const float *values, const int32_t *index, const float *gate,
                          float *out) {
    for (int64_t r = 0; r < rows; ++r) {
        const float *v = values + (int64_t)index[r] * m, *g = gate + r * m;
        float *o = out + r * m;
        for (int64_t j = 0; j < m; ++j) o[j] = v[j] * (g[j] > 0.0f ? 1.0f : 0.0f);
    }
}

/* For every state of every graph its best candidate: top [states] (LOWEST: none), where [states] its local row. The
 * first of equal scores wins, as in an argmax; a NaN is above all. */
void lk_best_rows(int64_t graphs, const int64_t *at, const int64_t *counts, const int64_t *first, const int64_t *rows,
                  const float *score, const uint8_t *candidate, float lowest, float least, float *top, int64_t *where) {
    for (int64_t g = 0; g < graphs; ++g) {
        const float *x = score + at[g];
        const uint8_t *c = candidate + at[g];
        float *best = top + first[g];
        int64_t *row = where + first[g];
        for (int64_t s = 0; s < counts[g]; ++s) best[s] = lowest, row[s] = 0;
        for (int64_t i = 0; i < rows[g]; ++i, x += counts[g], c += counts[g])
            for (int64_t s = 0; s < counts[g]; ++s) {
                if (!c[s]) continue;
                const float v = x[s] < least ? least : x[s];
                if (v > best[s] || (v != v && best[s] == best[s])) best[s] = v, row[s] = i;
            }
    }
}
