/* Dense rows times a small matrix:
 * Z = [part_0 | part_1 | ...] W, a chain over all columns in order; a part may be read through an index (row r is
 * X[index[r]]) and scaled by a number per row. Then, in this order and each only where given:
 *   Z = base * base_scale + Z;  Z = max(Z, 0);  Z *= scale;  Z *= (gate > 0);  Z = through <= 0 ? 0 : Z * factor. */

#include <stdlib.h>

#include "vectors.h"

/* What follows the product, for one row and LANES columns. `form`, a constant where this is called: SIMPLE, only relu
 * and scale, and whole vectors; WHOLE, whole vectors. */
enum { SIMPLE, WHOLE, ANY };
INLINE reg finish(const Dense *d, const int form, int64_t r, int64_t at, int64_t width, reg z) {
    if (form != SIMPLE && d->base) {
        vec b = load_part(d->base + r * d->ldbase + at, width);
        if (d->base_scale) b *= d->base_scale[r];
        z = b + z;
    }
    if (d->relu) z = (vec)((bits)z & ~(bits)(z < 0.0f));
    if (d->scale) z *= d->scale[r];
    if (form != SIMPLE && d->gate) {
        const int64_t row = d->gate_index ? (int64_t)d->gate_index[r] : r;
        z = gated(z, load_part(d->gate + row * d->ldgate + at, width));
    }
    if (form != SIMPLE && d->through) {
        const vec h = load_part(d->through + r * d->ldthrough + at, width);
        z = (vec)((bits)(z * d->factor) & ~(bits)(h <= 0.0f));
    }
    return z;
}

enum { MOST_HIDDEN = 4096, CHUNK = 192 }; /* a chunk's operands stay in the first-level cache */

/* Rows that are made together: for each of their elements one vector is read, and their sums must be enough to hide how
 * long one takes. */
enum { TOGETHER = LANES == 16 ? 8 : 6, WIDEST = 2 * LANES }; /* and columns */

/* z[i] += (elements of row i) times rows of W, H vectors of columns; `factor` [R], or null for ones. Scaled elements are
 * made by whole vectors first: one at a time they cost as much as the sum. */
#define ADD_ROW(R, H, element)                                                                                \
    {                                                                                                         \
        vec row[H];                                                                                           \
        for (int v = 0; v < H; ++v) row[v] = LOAD(w + v * LANES);                                             \
        for (int i = 0; i < R; ++i) {                                                                         \
            const vec x_ij = (element) - (vec){0};                                                            \
            for (int v = 0; v < H; ++v) z[i][v] = fused(x_ij, row[v], z[i][v]);                               \
        }                                                                                                     \
    }
#define ADD_PART(R, H)                                                                                        \
    INLINE void add_part_##R##_##H(vec z[R][H], const float *const *x, const float *factor, int64_t k,        \
                                   const float *w, int64_t ldw) {                                             \
        float scaled[R][LANES];                                                                               \
        if (!factor)                                                                                          \
            for (int64_t j = 0; j < k; ++j, w += ldw) ADD_ROW(R, H, x[i][j])                                  \
        else                                                                                                  \
            for (int64_t k0 = 0; k0 < k; k0 += LANES) {                                                       \
                const int64_t width = within(k, k0);                                                          \
                for (int i = 0; i < R; ++i) STORE(scaled[i], load_part(x[i] + k0, width) * factor[i]);        \
                for (int64_t j = 0; j < width; ++j, w += ldw) ADD_ROW(R, H, scaled[i][j])                     \
            }                                                                                                 \
    }

/* What the chains of a row begin with. */
INLINE const float *start_of(const Dense *d, int64_t r) {
    return d->start + (int64_t)d->start_index[r] * d->mp;
}

/* R rows `at_row`, H vectors of columns from `at` on. */
#define DENSE_PANEL(R, H)                                                                                     \
    INLINE void panel_##R##_##H(const Dense *d, const int form, const int64_t *at_row, float *hidden, int64_t at) { \
        vec z[R][H];                                                                                          \
        for (int i = 0; i < R; ++i)                                                                           \
            for (int v = 0; v < H; ++v)                                                                       \
                z[i][v] = d->start ? LOAD(start_of(d, at_row[i]) + at + v * LANES) : (vec){0};                \
        const float *w = d->panels ? d->panels + at * d->k : d->W + at;                                       \
        const int64_t ldw = d->panels ? H * LANES : d->mp;                                                    \
        if (form != SIMPLE && d->through)                                                                     \
            for (int i = 0; i < R; ++i)                                                                       \
                __builtin_prefetch(d->through + at_row[i] * d->ldthrough + at, 1, 3);                         \
        for (int64_t p = 0; p < d->parts; ++p) {                                                              \
            const Part *part = d->part + p;                                                                   \
            const float *x[R];                                                                                \
            float factor[R];                                                                                  \
            int ones = 1;                                                                                     \
            for (int i = 0; i < R; ++i) {                                                                     \
                const int64_t r = at_row[i];                                                                  \
                x[i] = part->X + (part->index ? (int64_t)part->index[r] : r) * part->ld;                      \
                factor[i] = part->scale ? part->scale[r] : 1.0f;                                              \
                ones &= factor[i] == 1.0f;                                                                    \
            }                                                                                                 \
            if (ones) add_part_##R##_##H(z, x, 0, part->k, w, ldw);                                           \
            else add_part_##R##_##H(z, x, factor, part->k, w, ldw);                                           \
            w += part->k * ldw;                                                                               \
        }                                                                                                     \
        /* All before the first is stored: rows can be the same, and Z what their elements go through. */             \
        for (int i = 0; i < R; ++i)                                                                           \
            for (int v = 0; v < H; ++v) {                                                                     \
                const int64_t from = at + v * LANES, width = form != ANY ? LANES : within(d->m, from);        \
                z[i][v] = finish(d, form, at_row[i], from, width, z[i][v]);                                   \
            }                                                                                                 \
        for (int i = 0; i < R; ++i)                                                                           \
            for (int v = 0; v < H; ++v) {                                                                     \
                const int64_t from = at + v * LANES, width = form != ANY ? LANES : within(d->m, from);        \
                if (form != SIMPLE && d->w) STORE(hidden + i * d->mp + from, z[i][v]);                        \
                else store_part(d->Z + at_row[i] * d->ldz + from, width, z[i][v]);                            \
            }                                                                                                 \
    }

/* R rows `at_row`, all columns: H vectors at a time while there are as many, then HELD. */
#define DENSE_ROWS(R, H)                                                                                      \
    INLINE void dense_##R(const Dense *d, const int form, const int64_t *at_row, float *hidden) {             \
        int64_t at = 0;                                                                                       \
        for (; at + H * LANES <= d->mp; at += H * LANES) panel_##R##_##H(d, form, at_row, hidden, at);         \
        for (; at < d->mp; at += COLUMNS) PANEL_OF(R, HELD)(d, form, at_row, hidden, at);                     \
        if (form != SIMPLE && d->w) {                                                                         \
            float score[R];                                                                                   \
            for (int i = 0; i < R; ++i) score[i] = 0.0f;                                                      \
            for (int64_t j = 0; j < d->m; ++j)                                                                \
                for (int i = 0; i < R; ++i)                                                                   \
                    score[i] = __builtin_fmaf(hidden[i * d->mp + j], d->w[j], score[i]);                      \
            for (int i = 0; i < R; ++i) d->out[at_row[i]] = score[i];                                         \
        }                                                                                                     \
    }

#if LANES == 16 /* one vector is all columns of a narrow product; of wider ones two share what is read of X */
ADD_PART(8, 1)
ADD_PART(8, 2)
ADD_PART(1, 1)
ADD_PART(1, 2)
DENSE_PANEL(8, 1)
DENSE_PANEL(8, 2)
DENSE_PANEL(1, 1)
DENSE_PANEL(1, 2)
#define PANEL_OF(R, H) panel_##R##_1
DENSE_ROWS(8, 2)
DENSE_ROWS(1, 2)
#define DENSE_TOGETHER dense_8
#define WIDE_PANEL panel_8_2
#define LAST_PANEL panel_8_1
#define LAST_ONE panel_1_1
#else
ADD_PART(6, 2)
ADD_PART(1, 2)
DENSE_PANEL(6, 2)
DENSE_PANEL(1, 2)
#define PANEL_OF(R, H) panel_##R##_2
DENSE_ROWS(6, 2)
DENSE_ROWS(1, 2)
#define DENSE_TOGETHER dense_6
#define WIDE_PANEL panel_6_2
#define LAST_PANEL panel_6_2
#define LAST_ONE panel_1_2
#endif

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

/* PANEL columns of all rows from `at` on. */
#define ALL_ROWS(PANEL, ONE)                                                                                  \
    {                                                                                                         \
        int64_t i = 0;                                                                                        \
        for (; i + 1 < kinds->full; i += TOGETHER) PANEL(d, form, kinds->full_row + i, hidden, at);           \
        if (i < kinds->full) ONE(d, form, kinds->full_row + i, hidden, at);                                   \
    }

/* The groups of TOGETHER are full: where rows are missing the last one is made again. A panel of W stays in the
 * first-level cache while all rows go through it, where no row's columns are needed at once. */
INLINE void dense_full(const Dense *d, const int form, Kinds *kinds, float *hidden) {
    int64_t i = 0, at = 0;
    if (!kinds->full) return;
    for (int k = 0; k < TOGETHER; ++k) kinds->full_row[kinds->full + k] = kinds->full_row[kinds->full - 1];
    if (d->panels && (form == SIMPLE || !d->w)) {
        for (; at + WIDEST <= d->mp; at += WIDEST) ALL_ROWS(WIDE_PANEL, panel_1_2)
        for (; at < d->mp; at += COLUMNS) ALL_ROWS(LAST_PANEL, LAST_ONE)
        return;
    }
    for (; i + 1 < kinds->full; i += TOGETHER) DENSE_TOGETHER(d, form, kinds->full_row + i, hidden);
    if (i < kinds->full) dense_1(d, form, kinds->full_row + i, hidden);
}

/* Add the rows of nodes lo..end-1 to the sums of their blocks; *block is where the nodes before them ended. */
INLINE void pool_rows(const Dense *d, const Pool *p, int64_t lo, int64_t end, int64_t *block) {
    while (lo < end) {
        while (*block < p->blocks && p->nodes[*block + 1] <= lo) ++*block;
        if (*block == p->blocks) return;
        const int64_t stop = p->nodes[*block + 1] < end ? p->nodes[*block + 1] : end;
        for (int64_t s = 0; s < p->states; ++s)
            for (int64_t at = 0; at < d->m; at += LANES) {
                const int64_t width = within(d->m, at);
                float *out = p->out + (*block * p->states + s) * d->m + at;
                vec sum = load_part(out, width);
                for (int64_t i = lo; i < stop; ++i) sum += load_part(d->Z + (i * p->states + s) * d->ldz + at, width);
                store_part(out, width, sum);
            }
        lo = stop;
    }
}

/* W in panels of the columns that are made together, or null: its rows in a panel lie side by side then. Rows of a wide W
 * are powers of two apart, so that those of a panel would share a few sets of the first-level cache. The caller frees it. */
static float *cut_panels(const Dense *d) {
    float *panels = d->mp > WIDEST && d->rows >= 64 ? malloc((size_t)(d->k * d->mp) * 4) : 0;
    if (!panels) return 0;
    for (int64_t at = 0, width = WIDEST; at < d->mp; at += width) {
        if (at + width > d->mp) width = COLUMNS;
        for (int64_t j = 0; j < d->k; ++j)
            memcpy(panels + at * d->k + j * width, d->W + j * d->mp + at, (size_t)width * 4);
    }
    return panels;
}

/* A row whose `scale` is 0 is 0: it is not computed. Where every part has a scale (the same for all) and that is 0 for a
 * row, the row is what its chain starts with. */
static void dense(const Dense *given) {
    Kinds kinds;
    float hidden[TOGETHER * MOST_HIDDEN];
    Part part[MOST_PARTS];
    part[0] = (Part){0};
    Dense copy = *given; /* not reachable through the pointers that are written: it can stay in registers */
    const Dense *d = &copy;
    for (int64_t p = 0; p < copy.parts; ++p) part[p] = given->part[p];
    copy.part = part;
    const float *met = copy.parts ? part[0].scale : 0;
    for (int64_t p = 1; p < copy.parts; ++p)
        if (part[p].scale != met) met = 0;
    const int form = copy.m % 16 ? ANY : copy.base || copy.gate || copy.w || copy.through ? WHOLE : SIMPLE;
    Dense bare = copy;
    bare.parts = 0;
    for (int64_t p = 0; p < copy.parts; ++p) copy.k += part[p].k;
    float *panels = cut_panels(d);
    copy.panels = panels;
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
                for (int64_t at = 0; at < d->m; at += LANES)
                    store_part(d->Z + kinds.none_row[k] * d->ldz + at, within(d->m, at), (vec){0});
        }
        if (form == SIMPLE) dense_full(d, SIMPLE, &kinds, hidden);
        else if (form == WHOLE) dense_full(d, WHOLE, &kinds, hidden);
        else dense_full(d, ANY, &kinds, hidden);
        if (d->pool) pool_rows(d, d->pool, lo / states, hi / states, &block);
    }
    free(panels);
}

