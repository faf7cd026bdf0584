/* Messages along stored entries that have rows of their own, as in app/numerics/edges.py: the same operations in the same
 * order. Numbers: see edge_lanes.h. A category is a column that is 1: its row of W is added, which a fused multiply by 1 does,
 * too. Whole rows of few entries are made at a time, since what is added to one place again and again should be wide. */
#include "edge_window.h"

/* Entries of a group: so many that their rows stay in the first-level cache. */
enum { ROOM = 4096, LEAST = 24, MOST = 48 };
INLINE int64_t group_of(int64_t f) { return ROOM / f < MOST ? LEAST : MOST; }

/* Q[q] = the rows of W that entry q names, added up. */
WIDE static void add_kinds(int64_t count, int64_t each, int64_t f, int64_t mp, const int32_t *C, const float *W,
                           const float *none, float *restrict Q) {
    for (int64_t q = 0; q < count; ++q, C += each, Q += f) {
        int64_t j = each % 3;
        const float *one = j > 0 && C[0] >= 0 ? W + C[0] * mp : none, *two = j > 1 && C[1] >= 0 ? W + C[1] * mp : none;
        for (int64_t c = 0; c < f; ++c) Q[c] = one[c] + two[c];
        for (; j < each; j += 3) {
            const float *a = C[j] < 0 ? none : W + C[j] * mp, *b = C[j + 1] < 0 ? none : W + C[j + 1] * mp,
                        *d = C[j + 2] < 0 ? none : W + C[j + 2] * mp;
            for (int64_t c = 0; c < f; ++c) Q[c] = ((Q[c] + a[c]) + b[c]) + d[c];
        }
    }
}

void lk_edge_rows(const Edges *a, int64_t p, int64_t count, const Message *to, float *Q) {
    if (a->kinds) add_kinds(count, a->each, to->f, to->mp, a->C + p * a->each, to->W, to->none, Q);
    else lk_lanes()->edge_rows(a, p, count, to, Q);
}

/* Fetch the rows of X that the columns of a group's entries number, before `last`. */
INLINE void fetch(const Edges *a, int64_t p, int64_t last, int64_t f, const float *X) {
    const int64_t most = group_of(f), count = last - p < most ? last - p : most;
    for (int64_t q = 0; q < count; ++q) {
        const float *x = X + number(a->indices, a->wide, p + q) * f;
        for (int64_t c = 0; c < f; c += 16) __builtin_prefetch(x + c);
    }
}

/* The messages of a group of entries to their rows of Y, from row *row on. */
WIDE static void add_group(const Edges *a, int64_t p, int64_t count, const Message *to, const float *X, float *Y,
                           int64_t ldy, int64_t *row) {
    const int64_t f = to->f;
    const float *b = to->b;
    int64_t i = *row, end = number(a->indptr, a->wide, i + 1);
    for (int64_t q = 0; q < count; ++q) {
        while (p + q >= end) end = number(a->indptr, a->wide, ++i + 1);
        const float *x = X + number(a->indices, a->wide, p + q) * f, *add = to->Q + q * f;
        float *restrict y = Y + i * ldy;
        for (int64_t c = 0; c < f; ++c) {
            const float m = x[c] + (add[c] + b[c]);
            y[c] += m <= 0.0f ? 0.0f : m;
        }
    }
    *row = i;
}

/* Y_i += relu(X_j + E_ij W + b) for every entry, in order.  X [*, f], Y [n, f], rows ldy apart. */
void lk_edge_add(const Edges *a, const Message *to, const float *X, float *Y, int64_t ldy) {
    const int64_t first = number(a->indptr, a->wide, 0), last = number(a->indptr, a->wide, a->n), most = group_of(to->f);
    int64_t row = 0;
    if (!a->kinds) {
        lk_lanes()->edge_add(a, to, X, Y, ldy);
        return;
    }
    fetch(a, first, last, to->f, X);
    for (int64_t p = first; p < last; p += most) {
        const int64_t count = last - p < most ? last - p : most;
        fetch(a, p + most, last, to->f, X);
        lk_edge_rows(a, p, count, to, to->Q);
        add_group(a, p, count, to, X, Y, ldy, &row);
    }
}

/* Q becomes G, which is added to dH and db. */
WIDE static void back_group(const Edges *a, int64_t p, int64_t count, const Message *to, const float *H, int64_t ldh,
                            const float *D, float *dH, int64_t ldd, float *restrict db, int64_t *row) {
    const int64_t f = to->f;
    const float *b = to->b;
    int64_t i = *row, end = number(a->indptr, a->wide, i + 1);
    for (int64_t q = 0; q < count; ++q) {
        while (p + q >= end) end = number(a->indptr, a->wide, ++i + 1);
        const float *h = H + i * ldh, *d = D + number(a->indices, a->wide, p + q) * f;
        float *restrict g = to->Q + q * f, *restrict dh = dH + i * ldd;
        for (int64_t c = 0; c < f; ++c) {
            const float m = h[c] + (g[c] + b[c]), v = m > 0.0f ? d[c] : 0.0f;
            g[c] = v;
            dh[c] += v;
            db[c] += v;
        }
    }
    *row = i;
}

WIDE static void back_kinds(int64_t count, int64_t each, int64_t f, const int32_t *C, const float *G, float *restrict dW) {
    for (int64_t q = 0; q < count; ++q, C += each, G += f)
        for (int64_t j = 0; j < each; ++j) {
            if (C[j] < 0) continue;
            float *sum = dW + C[j] * f;
            for (int64_t c = 0; c < f; ++c) sum[c] += G[c];
        }
}

void lk_edge_gram(const Edges *a, int64_t p, int64_t count, int64_t f, const float *G, float *dW) {
    if (a->kinds) back_kinds(count, a->each, f, a->C + p * a->each, G, dW);
    else lk_lanes()->edge_gram(a, p, count, f, G, dW);
}

/* Of a matrix whose rows are the messages' origins: with G_ij = D_j where H_i + E_ij W + b > 0, else 0, dH_i += G_ij for
 * every entry, in order; out [blocks][(k + 1) f] = sums of E^T G and of G over the entries of each block's rows.
 * H, dH [n, f], rows ldh and ldd apart, D [*, f]; block i is rows starts[i] .. starts[i + 1] - 1. */
void lk_edge_back(const Edges *a, const Message *to, const float *H, int64_t ldh, const float *D, float *dH, int64_t ldd,
                  int64_t blocks, const int64_t *starts, float *out) {
    const int64_t most = group_of(to->f), size = (a->k + 1) * to->f;
    if (!a->kinds) {
        lk_lanes()->edge_back(a, to, H, ldh, D, dH, ldd, blocks, starts, out);
        return;
    }
    for (int64_t i = 0; i < blocks; ++i, out += size) {
        int64_t row = starts[i];
        memset(out, 0, (size_t)size * 4);
        if (starts[i + 1] <= row) continue;
        const int64_t first = number(a->indptr, a->wide, row), last = number(a->indptr, a->wide, starts[i + 1]);
        fetch(a, first, last, to->f, D);
        for (int64_t p = first; p < last; p += most) {
            const int64_t count = last - p < most ? last - p : most;
            fetch(a, p + most, last, to->f, D);
            lk_edge_rows(a, p, count, to, to->Q);
            back_group(a, p, count, to, H, ldh, D, dH, ldd, out + a->k * to->f, &row);
            back_kinds(count, a->each, to->f, a->C + p * a->each, to->Q, out);
        }
    }
}
