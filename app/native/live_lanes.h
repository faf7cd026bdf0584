/* Sparse times dense where each row stands for several states of a graph, of which some are left out. */
#include "vectors.h"

/* Which of at most STATES neighbouring rows are live. A row that is not is zero where `first`, else as it is. */
INLINE int live_states(const float *live, int64_t states, int64_t f, const int first, float *y, int32_t *held) {
    int count = 0;
    for (int64_t s = 0; s < states; ++s) {
        held[count] = (int32_t)s;
        count += nonzero(live + s);
    }
    if (first) /* all of them: which ones are live cannot be predicted */
        for (int64_t j = 0; j < states * f; j += LANES) STORE(y + j, (vec){0});
    return count;
}

/* N of the live states of a node, COLUMNS columns of each: one pass over the entries of the node's row. */
#define GROUP(N, ROW)                                                                                         \
    {                                                                                                         \
        vec a[N][HELD];                                                                                       \
        int64_t to[N];                                                                                        \
        for (int q = 0; q < N; ++q) {                                                                         \
            to[q] = held[q] * f + at;                                                                         \
            for (int v = 0; v < HELD; ++v) a[q][v] = START(vec, y + to[q] + v * LANES);                       \
        }                                                                                                     \
        for (int64_t j = begin; j < end; ++j) ROW(N)                                                          \
        for (int q = 0; q < N; ++q)                                                                           \
            for (int v = 0; v < HELD; ++v) {                                                                  \
                const int64_t by = at + v * LANES;                                                            \
                if (gate) a[q][v] = gated(a[q][v], LOAD(gate_row(gate, f, i * states + held[q]) + by));       \
                STORE(y + to[q] + v * LANES, a[q][v]);                                                        \
            }                                                                                                 \
    }
#define GROUPS(ROW)                                                                                           \
    for (; count > 0; count -= 4, held += 4)                                                                  \
        for (int64_t at = 0; at < f; at += COLUMNS) switch (count) {                                          \
            case 1: GROUP(1, ROW) break;                                                                      \
            case 2: GROUP(2, ROW) break;                                                                      \
            case 3: GROUP(3, ROW) break;                                                                      \
            default: GROUP(4, ROW)                                                                            \
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
        for (int q = 0; q < N; ++q)                                                                           \
            for (int v = 0; v < HELD; ++v) a[q][v] += T(LOAD(x + to[q] + v * LANES));                         \
    }
#define SUM_ONES(N) SIDE_BY_SIDE(ONE, N)
#define SUM_DATA(N) SIDE_BY_SIDE(VALUED, N)
#define LIVE(tag, INDEX, ROW)                                                                                 \
    static void live_##tag(int64_t n, const INDEX *indptr, const INDEX *indices, const float *data,           \
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

static void live(int64_t n, const int32_t *indptr, const int32_t *indices, const float *data, int64_t ld, int64_t f,
                 const float *X, float *Y, const float *live, int first, const Gate *gate) {
    if (data) live_data(n, indptr, indices, data, ld, f, X, Y, live, first, gate);
    else live_ones(n, indptr, indices, data, ld, f, X, Y, live, first, gate);
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
        for (int q = 0; q < N; ++q)                                                                           \
            for (int v = 0; v < HELD; ++v)                                                                    \
                a[q][v] += LOAD(table + (int64_t)from[held[q]] * f + at + v * LANES);                         \
    }
#define LOOKUPS(tag, INDEX)                                                                                   \
    static void lookup_##tag(int64_t n, const INDEX *indptr, const INDEX *indices, int64_t states,            \
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
                for (; at + LANES <= f; at += LANES) LOOKUP(vec)                                              \
                for (; at + 4 <= f; at += 4) LOOKUP(v4)                                                       \
                for (; at < f; ++at) LOOKUP(float)                                                            \
            }                                                                                                 \
        }                                                                                                     \
    }
LOOKUPS(narrow, int32_t)
LOOKUPS(wide, int64_t)

static void lookup(int64_t n, int wide, const void *indptr, const void *indices, int64_t states, int64_t f,
                   const float *table, const int32_t *code, float *Y, const float *live, int first) {
    if (wide) lookup_wide(n, indptr, indices, states, f, table, code, Y, live, first);
    else lookup_narrow(n, indptr, indices, states, f, table, code, Y, live, first);
}

/* The rows of nodes lo..end-1. */
static void lookup_rows(const Lookup *l, int64_t lo, int64_t end) {
    const int64_t *t = l->graph, states = t[8], row = t[7] + lo * states;
    const int wide = t[2] != 0;
    const char *indptr = (const char *)(intptr_t)t[3] + lo * (wide ? 8 : 4);
    lookup(end - lo, wide, indptr, (const void *)(intptr_t)t[4], states, l->f, l->table, l->code + t[6],
           l->Y + row * l->f, l->live ? l->live + row : 0, 1);
}
