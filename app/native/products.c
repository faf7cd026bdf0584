/* Products of app/device.py. One output element is one left-to-right chain; registers hold different outputs. */
#include "products.h"

/* The first `width` of 16 columns; the others are zero, and are not written. */
INLINE v16 load_part(const float *x, int64_t width) {
    float pad[16];
    if (width == 16) return LOAD16(x);
    memset(pad, 0, sizeof pad);
    memcpy(pad, x, (size_t)width * 4);
    return LOAD16(pad);
}

INLINE void store_part(float *x, int64_t width, v16 v) {
    float pad[16];
    if (width == 16) {
        STORE16(x, v);
        return;
    }
    STORE16(pad, v);
    memcpy(x, pad, (size_t)width * 4);
}

/* ---- sparse times dense ----------------------------------------------------------------------------------
 * Y += A X. A row of X is fetched some entries before its use: into an outer cache where rows are long
 * and X is larger than the caches, else into the first. */

#define FETCH(index, ahead, lines, hint)                                                                      \
    if (j + (ahead) < last) {                                                                                 \
        const char *next = (const char *)(X + (size_t)(index)[j + (ahead)] * ld);                             \
        _Pragma("GCC unroll 4") for (int line = 0; line < (lines); ++line)                                    \
            __builtin_prefetch(next + 64 * line, 0, hint);                                                    \
    }

#define ONE(v) (v)
#define VALUED(v) (data[j] * (v))

/* One row, one tile of columns that X and y point at. */
#define CHAIN64(T, hint, ahead)                                                                               \
    {                                                                                                         \
        v16 a = LOAD16(y), b = LOAD16(y + 16), c = LOAD16(y + 32), d = LOAD16(y + 48);                        \
        for (int64_t j = begin; j < end; ++j) {                                                               \
            FETCH(indices, ahead, 4, hint)                                                                    \
            const float *x = X + (size_t)indices[j] * ld;                                                     \
            a += T(LOAD16(x));                                                                                \
            b += T(LOAD16(x + 16));                                                                           \
            c += T(LOAD16(x + 32));                                                                           \
            d += T(LOAD16(x + 48));                                                                           \
        }                                                                                                     \
        STORE16(y, a);                                                                                        \
        STORE16(y + 16, b);                                                                                   \
        STORE16(y + 32, c);                                                                                   \
        STORE16(y + 48, d);                                                                                   \
    }
#define CHAIN(type, T)                                                                                        \
    {                                                                                                         \
        type a = *(const type *)y;                                                                            \
        for (int64_t j = begin; j < end; ++j) {                                                               \
            FETCH(indices, 16, 1, 3)                                                                          \
            a += T(*(const type *)(X + (size_t)indices[j] * ld));                                             \
        }                                                                                                     \
        *(type *)y = a;                                                                                       \
    }
#define ROWS(columns, BODY)                                                                                   \
    for (; at + (columns) <= ld; at += (columns)) {                                                           \
        for (int64_t i = 0; i < n; ++i) {                                                                     \
            const int64_t begin = indptr[i], end = indptr[i + 1];                                             \
            const float *X = X_ + at;                                                                         \
            float *y = Y + i * ld + at;                                                                       \
            if (begin < end) BODY                                                                             \
        }                                                                                                     \
    }

#define WIDTHS(tag, INDEX, T)                                                                                 \
    WIDE static void spmm_##tag(int64_t n, const INDEX *indptr, const INDEX *indices, const float *data,      \
                                int64_t ld, const float *X_, float *Y, int far) {                             \
        const int64_t last = n ? (int64_t)indptr[n] : 0, tiles = ld / 64 * 64;                                \
        (void)data;                                                                                           \
        for (int64_t i = 0; i < n; ++i) {                                                                     \
            const int64_t begin = indptr[i], end = indptr[i + 1];                                             \
            if (begin < end)                                                                                  \
                for (int64_t tile = 0; tile < tiles; tile += 64) {                                            \
                    const float *X = X_ + tile;                                                               \
                    float *y = Y + i * ld + tile;                                                             \
                    if (far) CHAIN64(T, 1, 48)                                                                \
                    else CHAIN64(T, 3, 24)                                                                    \
                }                                                                                             \
        }                                                                                                     \
        int64_t at = tiles;                                                                                   \
        ROWS(16, CHAIN(v16, T))                                                                               \
        ROWS(4, CHAIN(v4, T))                                                                                 \
        ROWS(1, CHAIN(float, T))                                                                              \
    }

/* Rows of several states side by side, f columns each (a multiple of 16): those of states that are not live are left
 * as they are. Four neighbouring vectors go together where most of them are live. */
#define LIVE(tag, INDEX, T)                                                                                   \
    WIDE static void live_##tag(int64_t n, const INDEX *indptr, const INDEX *indices, const float *data,      \
                                int64_t ld, int64_t f, const float *X_, float *Y, const float *live) {        \
        const int64_t last = n ? (int64_t)indptr[n] : 0, states = ld / f;                                     \
        (void)data;                                                                                           \
        for (int64_t i = 0; i < n; ++i, live += states) {                                                     \
            const int64_t begin = indptr[i], end = indptr[i + 1];                                             \
            if (begin == end) continue;                                                                       \
            for (int64_t tile = 0; tile < ld; tile += 64) {                                                   \
                const int64_t most = ld - tile < 64 ? ld - tile : 64;                                         \
                int held = 0;                                                                                 \
                for (int64_t at = 0; at < most; at += 16) held += live[(tile + at) / f] != 0.0f;              \
                if (held > 2 && most == 64) {                                                                 \
                    const float *X = X_ + tile;                                                               \
                    float *y = Y + i * ld + tile;                                                             \
                    CHAIN64(T, 3, 12)                                                                         \
                } else if (held)                                                                              \
                    for (int64_t at = tile; at < tile + most; at += 16) {                                     \
                        const float *X = X_ + at;                                                             \
                        float *y = Y + i * ld + at;                                                           \
                        if (live[at / f] != 0.0f) CHAIN(v16, T)                                               \
                    }                                                                                         \
            }                                                                                                 \
        }                                                                                                     \
    }
LIVE(ones, int32_t, ONE)
LIVE(data, int32_t, VALUED)

WIDTHS(narrow_ones, int32_t, ONE)
WIDTHS(narrow_data, int32_t, VALUED)
WIDTHS(long_ones, int64_t, ONE)
WIDTHS(long_data, int64_t, VALUED)

enum { FAR_BYTES = 8 << 20 };

/* Y [n, c] += A X; X [m, c]; `wide`: indptr and indices are 64-bit; data may be null: all values one. */
void lk_spmm_add(int64_t n, int64_t m, int wide, const void *indptr, const void *indices, const float *data,
                 int64_t c, const float *X, float *Y) {
    const int far = c > 64 && m * c * 4 > FAR_BYTES;
    if (wide && data) spmm_long_data(n, indptr, indices, data, c, X, Y, far);
    else if (wide) spmm_long_ones(n, indptr, indices, data, c, X, Y, far);
    else if (data) spmm_narrow_data(n, indptr, indices, data, c, X, Y, far);
    else spmm_narrow_ones(n, indptr, indices, data, c, X, Y, far);
}

/* lk_spmm_add for rows of c / f states side by side, of which those with live [n][c / f] = 0 may be left out. */
void lk_spmm_live(int64_t n, int64_t m, int wide, const void *indptr, const void *indices, const float *data, int64_t c,
                  int64_t f, const float *X, float *Y, const float *live) {
    const int far = c > 64 && m * c * 4 > FAR_BYTES;
    if (!live || wide || f % 16 || far) lk_spmm_add(n, m, wide, indptr, indices, data, c, X, Y);
    else if (data) live_data(n, indptr, indices, data, c, f, X, Y, live);
    else live_ones(n, indptr, indices, data, c, f, X, Y, live);
}

/* One product for each graph of a batch: `table` [members][9] holds n, m, wide, indptr, indices, data (addresses),
 * the first row of the graph in X and in Y, and how many rows of f columns stand side by side for a node. */
void lk_spmm_members(int64_t members, const int64_t *table, int64_t f, const float *X, float *Y, const float *live) {
    for (const int64_t *t = table; t < table + 9 * members; t += 9)
        lk_spmm_live(t[0], t[1], (int)t[2], (const void *)(intptr_t)t[3], (const void *)(intptr_t)t[4],
                     (const float *)(intptr_t)t[5], t[8] * f, f, X + t[6] * f, Y + t[7] * f, live ? live + t[7] : 0);
}

/* Y += A X where X[u, s] = table[code[u, s]]: rows that repeat are read from a table that stays in the cache. Members,
 * live as above; f columns in a row of the table. */
#define LOOKUP(type)                                                                                          \
    {                                                                                                         \
        type a = *(const type *)(y + at);                                                                     \
        for (int64_t j = begin; j < end; ++j)                                                                 \
            a += *(const type *)(table + (int64_t)code[(int64_t)indices[j] * states + s] * f + at);           \
        *(type *)(y + at) = a;                                                                                \
    }
#define LOOKUPS(tag, INDEX)                                                                                   \
    WIDE static void lookup_##tag(int64_t n, const INDEX *indptr, const INDEX *indices, int64_t states,       \
                                  int64_t f, const float *table, const int32_t *code, float *Y,               \
                                  const float *live) {                                                        \
        for (int64_t i = 0; i < n; ++i) {                                                                     \
            const int64_t begin = indptr[i], end = indptr[i + 1];                                             \
            if (begin == end) continue;                                                                       \
            for (int64_t s = 0; s < states; ++s) {                                                            \
                float *y = Y + (i * states + s) * f;                                                          \
                int64_t at = 0;                                                                               \
                if (live && live[i * states + s] == 0.0f) continue;                                           \
                for (; at + 16 <= f; at += 16) LOOKUP(v16)                                                    \
                for (; at + 4 <= f; at += 4) LOOKUP(v4)                                                       \
                for (; at < f; ++at) LOOKUP(float)                                                            \
            }                                                                                                 \
        }                                                                                                     \
    }
LOOKUPS(narrow, int32_t)
LOOKUPS(wide, int64_t)

void lk_lookup_members(int64_t members, const int64_t *graphs, int64_t f, const float *table, const int32_t *code,
                       float *Y, const float *live) {
    for (const int64_t *t = graphs; t < graphs + 9 * members; t += 9) {
        const void *indptr = (const void *)(intptr_t)t[3], *indices = (const void *)(intptr_t)t[4];
        const int32_t *c = code + t[6];
        float *y = Y + t[7] * f;
        const float *l = live ? live + t[7] : 0;
        if (t[2]) lookup_wide(t[0], indptr, indices, t[8], f, table, c, y, l);
        else lookup_narrow(t[0], indptr, indices, t[8], f, table, c, y, l);
    }
}

/* ---- dense rows times a small matrix ----------------------------------------------------------------------
 * Z = [part_0 | part_1 | ...] W, a chain over all columns in order; a part may be read through an index (row r is
 * X[index[r]]) and scaled by a number per row. Then, in this order and each only where given:
 *   Z = base * base_scale + Z;  Z = max(Z, 0);  Z *= scale;  Z *= (gate > 0). */

/* What follows the product, for one row and 16 columns. `simple`, a constant where this is called: only relu and
 * scale, and all 16 columns. */
INLINE v16 finish(const Dense *d, const int simple, int64_t r, int64_t at, int64_t width, v16 z) {
    if (!simple && d->base) {
        v16 b = load_part(d->base + r * d->ldbase + at, width);
        if (d->base_scale) b *= d->base_scale[r];
        z = b + z;
    }
    if (d->relu) z = (v16)((i16)z & ~(i16)(z < 0.0f));
    if (d->scale) z *= d->scale[r];
    if (!simple && d->gate) {
        const int64_t row = d->gate_index ? (int64_t)d->gate_index[r] : r;
        const i16 open = load_part(d->gate + row * d->ldgate + at, width) > 0.0f;
        z = z * (v16)(open & (i16)((v16){} + 1.0f));
    }
    return z;
}

enum { MOST_HIDDEN = 4096, CHUNK = 126 }; /* rows handled together: their operands stay in the first-level cache */

/* R rows `at_row`, all tiles of 16 columns. */
#define DENSE_ROWS(R)                                                                                         \
    INLINE void dense_##R(const Dense *d, const int simple, const int64_t *at_row, float *hidden) {           \
        for (int64_t at = 0; at < d->mp; at += 16) {                                                          \
            const int64_t width = simple || d->m - at >= 16 ? 16 : d->m - at;                                 \
            v16 z[R];                                                                                         \
            for (int i = 0; i < R; ++i)                                                                       \
                z[i] = d->start ? LOAD16(d->start + (int64_t)d->start_index[at_row[i]] * d->mp + at) : (v16){};\
            const float *w = d->W + at;                                                                       \
            for (int64_t p = 0; p < d->parts; ++p) {                                                          \
                const Part *part = d->part + p;                                                               \
                const float *x[R];                                                                            \
                float s[R];                                                                                   \
                for (int i = 0; i < R; ++i) {                                                                 \
                    const int64_t r = at_row[i];                                                              \
                    x[i] = part->X + (part->index ? (int64_t)part->index[r] : r) * part->ld;                  \
                    s[i] = part->scale ? part->scale[r] : 1.0f;                                               \
                }                                                                                             \
                if (part->scale)                                                                              \
                    for (int64_t k = 0; k < part->k; ++k, w += d->mp) {                                       \
                        const v16 row = LOAD16(w);                                                            \
                        for (int i = 0; i < R; ++i) z[i] += (x[i][k] * s[i]) * row;                           \
                    }                                                                                         \
                else                                                                                          \
                    for (int64_t k = 0; k < part->k; ++k, w += d->mp) {                                       \
                        const v16 row = LOAD16(w);                                                            \
                        for (int i = 0; i < R; ++i) z[i] += x[i][k] * row;                                    \
                    }                                                                                         \
            }                                                                                                 \
            for (int i = 0; i < R; ++i) {                                                                     \
                z[i] = finish(d, simple, at_row[i], at, width, z[i]);                                         \
                if (!simple && d->w)                                                                          \
                    STORE16(hidden + i * d->mp + at, z[i] * load_part(d->w + at, width));                     \
                else store_part(d->Z + at_row[i] * d->ldz + at, width, z[i]);                                 \
            }                                                                                                 \
        }                                                                                                     \
        if (!simple && d->w) {                                                                                \
            float score[R];                                                                                   \
            for (int i = 0; i < R; ++i) score[i] = 0.0f;                                                      \
            for (int64_t j = 0; j < d->m; ++j)                                                                \
                for (int i = 0; i < R; ++i) score[i] += hidden[i * d->mp + j];                      \
            for (int i = 0; i < R; ++i) d->out[at_row[i]] = score[i];                                         \
        }                                                                                                     \
    }
DENSE_ROWS(6)
DENSE_ROWS(1)

/* A row whose `scale` is 0 is 0: it is not computed. Where every part has a scale (the same for all) and that is 0 for a
 * row, the row is what its chain starts with. The rows of a chunk are listed without a branch, since which they are
 * cannot be predicted. */
WIDE void lk_dense(const Dense *given) {
    int64_t rows[CHUNK], others[CHUNK], none[CHUNK];
    float hidden[6 * MOST_HIDDEN];
    Part part[4] = {{0}};
    Dense copy = *given; /* not reachable through the pointers that are written: it can stay in registers */
    const Dense *d = &copy;
    for (int64_t p = 0; p < copy.parts; ++p) part[p] = given->part[p];
    copy.part = part;
    const float *met = copy.parts ? part[0].scale : 0;
    for (int64_t p = 1; p < copy.parts; ++p)
        if (part[p].scale != met) met = 0;
    const int simple = !copy.base && !copy.gate && !copy.w && copy.m % 16 == 0;
    Dense bare = copy;
    bare.parts = 0;
    for (int64_t lo = 0; lo < d->rows; lo += CHUNK) {
        const int64_t hi = lo + CHUNK < d->rows ? lo + CHUNK : d->rows;
        int64_t held = 0, plain = 0, dead = 0, i = 0;
        for (int64_t r = lo; r < hi; ++r) {
            const int live = !d->scale || d->scale[r] != 0.0f, full = !met || met[r] != 0.0f;
            rows[held] = r;
            held += live & full;
            others[plain] = r;
            plain += live & !full;
            none[dead] = r;
            dead += !live;
        }
        for (int64_t k = 0; k < plain; ++k)
            if (simple) dense_1(&bare, 1, others + k, hidden);
            else dense_1(&bare, 0, others + k, hidden);
        for (int64_t k = 0; k < dead; ++k) {
            if (d->w) d->out[none[k]] = 0.0f;
            else
                for (int64_t at = 0; at < d->m; at += 16)
                    store_part(d->Z + none[k] * d->ldz + at, d->m - at < 16 ? d->m - at : 16, (v16){});
        }
        if (simple)
            for (; i + 6 <= held; i += 6) dense_6(d, 1, rows + i, hidden);
        else
            for (; i + 6 <= held; i += 6) dense_6(d, 0, rows + i, hidden);
        for (; i < held; ++i) dense_1(d, 0, rows + i, hidden);
    }
}

/* ---- weight gradients -------------------------------------------------------------------------------------
 * out[b] [sum k][m] += [parts]^T D over the rows of block b: for each graph g in turn rows
 * starts[g*stride + b] .. its next start - 1. `starts` has, per graph, stride = blocks + 1 entries. */

typedef struct {
    int64_t graphs, blocks, parts, m;
    const Part *part;
    const int64_t *starts;
    const float *D;
    const float *live; /* rows where this is 0 are left out, or null */
    float *out;
} Gram;

/* Some rows of a chunk: where they stand in D, and for one part their elements and scales. */
typedef struct {
    int64_t count, row[CHUNK];
    const float *x[CHUNK];
    float scale[CHUNK];
} Rows;

/* Rows k0..k0+n-1 and 16 columns of the gradient over the rows of a chunk; n is a constant where this is called. */
INLINE void gram_tile(const Gram *g, const Rows *rows, int scaled, int64_t k0, const int n, int64_t at, int64_t width,
                      float *out) {
    v16 acc[6];
    for (int i = 0; i < n; ++i) acc[i] = load_part(out + (k0 + i) * g->m + at, width);
    for (int64_t r = 0; r < rows->count; ++r) {
        const float *x = rows->x[r] + k0;
        const v16 d = load_part(g->D + rows->row[r] * g->m + at, width);
        if (scaled) {
            const float s = rows->scale[r];
            for (int i = 0; i < n; ++i) acc[i] += (x[i] * s) * d;
        } else
            for (int i = 0; i < n; ++i) acc[i] += x[i] * d;
    }
    for (int i = 0; i < n; ++i) store_part(out + (k0 + i) * g->m + at, width, acc[i]);
}

#define TILE(n)                                                                                               \
    case n:                                                                                                   \
        if (scaled) gram_tile(g, rows, 1, k0, n, at, width, out);                                             \
        else gram_tile(g, rows, 0, k0, n, at, width, out);                                                    \
        break;

INLINE void gram_tiles(const Gram *g, const Rows *rows, int scaled, int64_t k, int64_t at, int64_t width, float *out) {
    for (int64_t k0 = 0; k0 < k; k0 += 6)
        switch (k - k0 < 6 ? k - k0 : 6) { TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) }
}

INLINE void gram_chunk(const Gram *g, Rows *rows, int64_t lo, int64_t hi, float *out) {
    rows->count = 0;
    for (int64_t r = lo; r < hi; ++r) {
        rows->row[rows->count] = r;
        rows->count += !g->live || g->live[r] != 0.0f;
    }
    const Rows all = *rows;
    for (int64_t p = 0; p < g->parts; ++p) {
        const Part *part = g->part + p;
        rows->count = 0;
        for (int64_t i = 0; i < all.count; ++i) {
            const int64_t r = all.row[i], at = rows->count;
            rows->row[at] = r;
            rows->x[at] = part->X + (part->index ? (int64_t)part->index[r] : r) * part->ld;
            rows->scale[at] = part->scale ? part->scale[r] : 1.0f;
            rows->count += rows->scale[at] != 0.0f; /* a row times 0 adds nothing */
        }
        for (int64_t at = 0; at < g->m; at += 16) {
            if (g->m - at < 16) gram_tiles(g, rows, part->scale != 0, part->k, at, g->m - at, out);
            else gram_tiles(g, rows, part->scale != 0, part->k, at, 16, out);
        }
        out += part->k * g->m;
    }
}

WIDE void lk_gram(const Gram *g) {
    Rows rows;
    int64_t k_all = 0;
    for (int64_t p = 0; p < g->parts; ++p) k_all += g->part[p].k;
    for (int64_t b = 0; b < g->blocks; ++b)
        for (int64_t q = 0; q < g->graphs; ++q) {
            const int64_t *s = g->starts + q * (g->blocks + 1) + b;
            for (int64_t lo = s[0]; lo < s[1]; lo += CHUNK)
                gram_chunk(g, &rows, lo, lo + CHUNK < s[1] ? lo + CHUNK : s[1], g->out + b * k_all * g->m);
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
