/* Graph colouring: tabu search over colourings with conflicts, DSATUR and recursive largest first.
   app/search/coloring/plain.py does the same without kernels, draw by draw. */
#include <stdint.h>
#include <stdlib.h>

#include "common.h"
#include "heap.h"
#include "random.h"

#define NONE (INT32_C(1) << 29) /* a colour or a node that has no move; more than there are neighbours */

enum { BLOCK = 128 };    /* places of the list of nodes in conflict that are looked at together; also walk.py */
enum { LANES = 16 };     /* colours of a dense graph that a vector holds */
enum { TOGETHER = 64 };  /* nodes of a dense graph of which one is looked for where one of them is met */
enum { MOST_DENSE = 1 << 13 }; /* nodes of a dense graph; also walk.py */

typedef struct {
    int64_t n, k, ring, across, width; /* across: k, of dense graphs a multiple of LANES; width: n, of dense graphs an
                                            odd multiple of TOGETHER, so that what all colours have of one node is
                                            not in few sets of the cache */
    const int64_t *indptr;
    const int32_t *indices;
    const uint8_t *beside; /* [n, width] 1: an edge. Of dense graphs alone, as the next two; else null */
    int16_t *short_color;  /* [width] color */
    int16_t *shut;         /* [n, across] INT16_MAX: a colour that may not be taken; else 0 */
    int32_t *color;   /* [n] */
    void *near;       /* [k, width] int32, of dense graphs int16: neighbours of each colour. A move changes two rows,
                         which stay in the cache */
    void *row;        /* [n, across] the same by nodes, of those in conflict alone; at their own colour more than there
                         are */
    int32_t *until;   /* [n, k] moves of this walk before which a colour is not taken again */
    int32_t *list, *place; /* [n] nodes in conflict, places in it; place -1: in none */
    int32_t *own, *least, *least_open; /* [n] by places in the list: neighbours of the node's colour, and the fewest
                                          of another one, and of another one that may be taken; NONE: there is none */
    int32_t *times, *times_open;       /* [n] how many colours have so few */
    int32_t *of_block, *open_of_block; /* [n / BLOCK + 1] the least change of conflicts by a move of a node of these */
    int32_t *moves_of_block, *open_moves_of_block; /* places, and how many moves have it; of all colours, and of those */
    int32_t *stale;        /* that may be taken. Blocks in which something has changed since: `stales` of them */
    uint8_t *is_stale;     /* [n / BLOCK + 1] */
    int32_t *best_color;   /* [n] of the fewest conflicts of this walk */
    int32_t *journal;      /* [n] nodes that have moved since best_color was written: `moved` of them, n: all may have */
    int32_t *first, *next; /* [ring] by moves: the last of those before that forbade a colour until this one, and the
                              one before that in the same list; -1: none */
    int64_t *forbidden;    /* [ring] what a move forbade, a place in `until` */
    int64_t conflicts, edges, best_edges, moves, fresh, stales, moved; /* fresh: best_color is not written yet */
    uint64_t random;
} Walk;

/* What is kept of the block of place i holds no longer. */
INLINE void touch(Walk *w, int64_t i) {
    const int32_t b = (int32_t)(i / BLOCK);
    if (w->is_stale[b]) return;
    w->is_stale[b] = 1;
    w->stale[w->stales++] = b;
}

/* The neighbours of v of colour c. */
INLINE int32_t near_of(const Walk *w, int64_t c, int64_t v) {
    const int64_t at = c * w->width + v;
    return w->beside ? ((const int16_t *)w->near)[at] : ((const int32_t *)w->near)[at];
}

/* The same of a node in conflict, at = v across + c. */
INLINE int32_t row_of(const Walk *w, int64_t at) {
    return w->beside ? ((const int16_t *)w->row)[at] : ((const int32_t *)w->row)[at];
}

INLINE void set_row(Walk *w, int64_t at, int32_t value) {
    if (w->beside) ((int16_t *)w->row)[at] = (int16_t)value;
    else ((int32_t *)w->row)[at] = value;
}

/* What it is at their own colour. */
INLINE int32_t no_move(const Walk *w) {
    return w->beside ? INT16_MAX : NONE;
}

/* The fewest neighbours of another colour, of any and of one that may be taken, and how many colours have so few; `none`:
 * more than there are; `bar`: none for a colour that may not be taken, else 0. */
#define LOOK_THROUGH(type, none, bar)                                                                         \
    do {                                                                                                      \
        const type *row = (const type *)w->row + at;                                                          \
        type fewest = none, fewest_open = none, count = 0, count_open = 0;                                    \
        for (int32_t c = 0; c < all; c++) {                                                                   \
            const type value = row[c], shut = bar, open = value > shut ? value : shut;                        \
            fewest = value < fewest ? value : fewest;                                                         \
            fewest_open = open < fewest_open ? open : fewest_open;                                            \
        }                                                                                                     \
        for (int32_t c = 0; c < all; c++) {                                                                   \
            const type value = row[c], shut = bar, open = value > shut ? value : shut;                        \
            count -= value == fewest ? -1 : 0;                                                                \
            count_open -= open == fewest_open ? -1 : 0;                                                       \
        }                                                                                                     \
        least = fewest == none ? NONE : fewest;                                                               \
        least_open = fewest_open == none ? NONE : fewest_open;                                                \
        times = fewest == none ? 0 : count;                                                                   \
        times_open = fewest_open == none ? 0 : count_open;                                                    \
    } while (0)

WIDE static void look_through(Walk *w, int64_t i) {
    const int64_t v = w->list[i], at = v * w->across;
    int32_t least, least_open, times, times_open;
    if (w->beside) {
        const int32_t all = (int32_t)w->across / LANES * LANES;
        const int16_t *bars = w->shut + at;
        LOOK_THROUGH(int16_t, INT16_MAX, bars[c]);
    } else {
        const int32_t all = (int32_t)w->k, now = (int32_t)w->moves, *until = w->until + at;
        LOOK_THROUGH(int32_t, NONE, until[c] > now ? NONE : 0);
    }
    w->own[i] = near_of(w, w->color[v], v);
    w->least[i] = least;
    w->least_open[i] = least_open;
    w->times[i] = times;
    w->times_open[i] = times_open;
    touch(w, i);
}

INLINE void conflict_in(Walk *w, int32_t v) {
    const int64_t i = w->conflicts++;
    w->place[v] = (int32_t)i;
    w->list[i] = v;
    for (int64_t c = 0; c < w->k; c++) set_row(w, v * w->across + c, near_of(w, c, v));
    for (int64_t c = w->k; c < w->across; c++) set_row(w, v * w->across + c, INT16_MAX);
    set_row(w, v * w->across + w->color[v], no_move(w));
    look_through(w, i);
}

INLINE void conflict_out(Walk *w, int32_t v) {
    const int32_t i = w->place[v], end = (int32_t)--w->conflicts, last = w->list[end];
    w->list[i] = last;
    w->own[i] = w->own[end];
    w->least[i] = w->least[end];
    w->least_open[i] = w->least_open[end];
    w->times[i] = w->times[end];
    w->times_open[i] = w->times_open[end];
    w->place[last] = i;
    w->place[v] = -1;
    touch(w, i);
    touch(w, end);
}

/* One colour more has `value` neighbours, in the place of value + 1. */
INLINE void fewer(int32_t *least, int32_t *times, int32_t value) {
    if (value < *least) {
        *least = value;
        *times = 1;
    } else if (value == *least) {
        *times += 1;
    }
}

/* A neighbour of the node in conflict at place i went from colour a to c: what the node has fewest of is looked for again
 * only where c was the only one. */
INLINE void tell(Walk *w, int64_t i, int32_t a, int32_t left, int32_t c, int32_t more) {
    const int32_t v = w->list[i], of = w->color[v];
    const int64_t at = v * w->across, until = v * w->k;
    if (of != a) set_row(w, at + a, left);
    if (of != c) set_row(w, at + c, more);
    touch(w, i);
    if (of == a) {
        w->own[i] = left;
    } else if (left <= w->least_open[i]) { /* which is no less than the least */
        fewer(w->least + i, w->times + i, left);
        if (w->until[until + a] <= w->moves) fewer(w->least_open + i, w->times_open + i, left);
    }
    if (of == c) {
        w->own[i] = more;
        return;
    }
    if (more - 1 > w->least_open[i]) return;
    if (more - 1 == w->least[i]) w->times[i] -= 1;
    if (more - 1 == w->least_open[i] && w->until[until + c] <= w->moves) w->times_open[i] -= 1;
    if (!w->times[i] || !w->times_open[i]) look_through(w, i);
}

/* Node v went from colour a to c, of which it has so many neighbours. */
INLINE void settle(Walk *w, int32_t v, int32_t a, int32_t left, int32_t c, int32_t more) {
    if (w->place[v] < 0) {
        if (more > 0) conflict_in(w, v);
    } else if (more > 0) {
        set_row(w, v * w->across + a, left);
        set_row(w, v * w->across + c, no_move(w)); /* `forbid` looks through it */
    } else {
        conflict_out(w, v);
    }
}

/* The colour of v becomes c. */
static void recolor(Walk *w, int32_t v, int32_t c) {
    const int32_t a = w->color[v];
    int32_t *near_a = (int32_t *)w->near + a * w->n, *near_c = (int32_t *)w->near + c * w->n;
    w->edges += near_c[v] - near_a[v];
    w->color[v] = c;
    const int32_t *nodes = w->indices + w->indptr[v], *color = w->color, *place = w->place;
    const int64_t degree = w->indptr[v + 1] - w->indptr[v];
    for (int64_t e = 0; e < degree; e++) {
        near_a[nodes[e]] -= 1;
        near_c[nodes[e]] += 1;
    }
    for (int64_t e = 0; e < degree; e++) {
        const int32_t u = nodes[e], of = color[u];
        if (place[u] >= 0) tell(w, place[u], a, near_a[u], c, near_c[u]);
        if (of == a && near_a[u] == 0) conflict_out(w, u);
        if (of == c && near_c[u] == 1) conflict_in(w, u);
    }
    settle(w, v, a, near_a[v], c, near_c[v]);
}

/* One neighbour less of colour a and one more of c for those of TOGETHER nodes that `beside` has. Marks those that are in
 * conflict no longer, or are from now on; returns whether there are any. */
INLINE int shift(int16_t *restrict near_a, int16_t *restrict near_c, const uint8_t *restrict beside,
                 const int16_t *restrict color, int16_t a, int16_t c, uint8_t *restrict marks) {
    uint8_t any = 0;
    for (int64_t u = 0; u < TOGETHER; u++) {
        const int16_t edge = beside[u], left = (int16_t)(near_a[u] - edge), more = (int16_t)(near_c[u] + edge);
        const uint8_t met = edge & (((color[u] == a) & (left == 0)) | ((color[u] == c) & (more == 1)));
        near_a[u] = left;
        near_c[u] = more;
        marks[u] = met;
        any |= met;
    }
    return any;
}

/* The same as `recolor`, by rows of bytes: nodes by vectors, those in conflict by their list. */
WIDE static void recolor_dense(Walk *w, int32_t v, int32_t c) {
    const int64_t width = w->width;
    const int32_t a = w->color[v];
    int16_t *near_a = (int16_t *)w->near + a * width, *near_c = (int16_t *)w->near + c * width;
    const uint8_t *beside = w->beside + v * width;
    int32_t told[MOST_DENSE], met[MOST_DENSE];
    uint8_t marks[TOGETHER];
    int64_t count = 0, changed = 0;
    w->edges += near_c[v] - near_a[v];
    w->color[v] = c;
    w->short_color[v] = (int16_t)c;
    for (int64_t u = 0; u < width; u += TOGETHER) {
        if (!shift(near_a + u, near_c + u, beside + u, w->short_color + u, (int16_t)a, (int16_t)c, marks)) continue;
        for (int64_t i = 0; i < TOGETHER; i += 8) {
            uint64_t eight;
            memcpy(&eight, marks + i, sizeof eight);
            for (int64_t j = i; eight && j < i + 8; j++)
                if (marks[j]) met[changed++] = (int32_t)(u + j);
        }
    }
    for (int64_t i = 0; i < w->conflicts; i++) {
        told[count] = (int32_t)i;
        count += beside[w->list[i]];
    }
    for (int64_t j = 0; j < count; j++) {
        const int32_t u = w->list[told[j]];
        tell(w, told[j], a, near_a[u], c, near_c[u]);
    }
    for (int64_t j = 0; j < changed; j++) {
        if (w->place[met[j]] >= 0) conflict_out(w, met[j]);
        else conflict_in(w, met[j]);
    }
    settle(w, v, a, near_a[v], c, near_c[v]);
}

/* Node v does not take colour c again before move `until`. */
static void forbid(Walk *w, int64_t v, int64_t c, int64_t until) {
    const int64_t slot = w->moves % w->ring, end = until % w->ring;
    w->until[v * w->k + c] = (int32_t)until;
    if (w->beside) w->shut[v * w->across + c] = INT16_MAX;
    w->forbidden[slot] = v * w->k + c;
    w->next[slot] = w->first[end];
    w->first[end] = (int32_t)slot;
    if (w->place[v] >= 0) look_through(w, w->place[v]);
}

/* The colours that may be taken from this move on. */
static void allow(Walk *w) {
    const int64_t end = w->moves % w->ring;
    for (int32_t slot = w->first[end]; slot >= 0; slot = w->next[slot]) {
        const int64_t at = w->forbidden[slot], v = at / w->k, c = at % w->k, i = w->place[v];
        if (w->until[at] > w->moves) continue;
        if (w->beside) w->shut[v * w->across + c] = 0;
        if (i < 0 || c == w->color[v]) continue;
        if (row_of(w, v * w->across + c) <= w->least_open[i]) look_through(w, i); /* the same colour may be met more than once */
    }
    w->first[end] = -1;
}

/* The least change of conflicts by a move of a node of places start..end-1, and how many moves have it. */
INLINE void look_at(const int32_t *own, const int32_t *least, const int32_t *times, int64_t start, int64_t end,
                    int32_t *change, int32_t *moves) {
    int32_t best = NONE, count = 0;
    for (int64_t i = start; i < end; i++) {
        const int32_t each = least[i] - own[i];
        best = each < best ? each : best;
    }
    for (int64_t i = start; i < end; i++) count += least[i] - own[i] == best ? times[i] : 0;
    *change = best;
    *moves = count;
}

/* What is kept of blocks holds again. */
WIDE static void look_again(Walk *w) {
    for (int64_t j = 0; j < w->stales; j++) {
        const int32_t b = w->stale[j];
        const int64_t start = (int64_t)b * BLOCK;
        const int64_t end = start + BLOCK < w->conflicts ? start + BLOCK : w->conflicts;
        w->is_stale[b] = 0;
        look_at(w->own, w->least, w->times, start, end, w->of_block + b, w->moves_of_block + b);
        look_at(w->own, w->least_open, w->times_open, start, end, w->open_of_block + b, w->open_moves_of_block + b);
    }
    w->stales = 0;
}

/* The least of what blocks have; NONE or nearly so: there is no move. */
WIDE static int32_t least_of(const int32_t *change, int64_t blocks) {
    int32_t best = NONE;
    for (int64_t b = 0; b < blocks; b++) best = change[b] < best ? change[b] : best;
    return best;
}

/* How many moves have this change. */
WIDE static int64_t count_moves(const int32_t *change, const int32_t *moves, int64_t blocks, int32_t wanted) {
    int64_t count = 0;
    for (int64_t b = 0; b < blocks; b++) count += change[b] == wanted ? moves[b] : 0;
    return count;
}

/* The move numbered `wanted`, from 0 on, of those with this change, of all or of those that may be made, in the order of
 * the list and then of colours: its node and its colour. */
static void find_move(const Walk *w, int32_t change, int any, int64_t wanted, int32_t *v, int32_t *c) {
    const int32_t *of_block = any ? w->of_block : w->open_of_block;
    const int32_t *moves = any ? w->moves_of_block : w->open_moves_of_block;
    const int32_t *least = any ? w->least : w->least_open, *times = any ? w->times : w->times_open;
    int64_t b = 0;
    for (; of_block[b] != change || wanted >= moves[b]; b++) wanted -= of_block[b] == change ? moves[b] : 0;
    int64_t i = b * BLOCK;
    for (; least[i] - w->own[i] != change || wanted >= times[i]; i++)
        wanted -= least[i] - w->own[i] == change ? times[i] : 0;
    *v = w->list[i];
    const int64_t at = *v * w->across;
    const int32_t *until = w->until + *v * w->k;
    const int32_t now = any ? INT32_MAX : (int32_t)w->moves;
    for (*c = 0;; ++*c)
        if (row_of(w, at + *c) == least[i] && until[*c] <= now && wanted-- == 0) return;
}

static void write_best(Walk *w) {
    if (w->moved < w->n) {
        for (int64_t i = 0; i < w->moved; i++) w->best_color[w->journal[i]] = w->color[w->journal[i]];
    } else {
        memcpy(w->best_color, w->color, (size_t)w->n * sizeof *w->color);
    }
    w->moved = 0;
    w->fresh = 0;
}

/* The neighbours that each node has of each colour. */
static void count_sparse(Walk *w) {
    int32_t *near = w->near;
    memset(near, 0, (size_t)(w->k * w->n) * sizeof *near);
    for (int64_t v = 0; v < w->n; v++)
        for (int64_t e = w->indptr[v]; e < w->indptr[v + 1]; e++) near[w->color[w->indices[e]] * w->n + v] += 1;
}

WIDE static void count_dense(Walk *w) {
    memset(w->near, 0, (size_t)(w->k * w->width) * sizeof(int16_t));
    for (int64_t v = 0; v < w->n; v++) {
        int16_t *restrict near = (int16_t *)w->near + w->color[v] * w->width;
        const uint8_t *restrict beside = w->beside + v * w->width;
        w->short_color[v] = (int16_t)w->color[v];
        for (int64_t u = 0; u < w->width; u++) near[u] = (int16_t)(near[u] + beside[u]);
    }
}

/* What belongs to the colouring at hand, before any colour is forbidden. */
void lk_coloring_begin(Walk *w) {
    int64_t sum = 0;
    w->conflicts = w->moves = w->fresh = w->stales = w->moved = 0;
    memset(w->until, 0, (size_t)(w->k * w->n) * sizeof *w->until);
    if (w->beside) memset(w->shut, 0, (size_t)(w->across * w->n) * sizeof *w->shut);
    memset(w->is_stale, 0, (size_t)(w->n / BLOCK + 1) * sizeof *w->is_stale);
    memset(w->first, -1, (size_t)w->ring * sizeof *w->first);
    if (w->beside) count_dense(w);
    else count_sparse(w);
    for (int64_t v = 0; v < w->n; v++) {
        const int32_t own = near_of(w, w->color[v], v);
        w->place[v] = -1;
        sum += own;
        if (own) conflict_in(w, (int32_t)v);
    }
    w->edges = w->best_edges = sum / 2;
}

/* So many moves, fewer where no conflict is left; returns the moves made. */
int64_t lk_coloring_walk(Walk *w, int64_t steps) {
    int64_t made = 0;
    for (; made < steps && w->edges > 0; made++) {
        int32_t v, c;
        allow(w);
        look_again(w);
        const int64_t blocks = (w->conflicts + BLOCK - 1) / BLOCK;
        const int32_t all = least_of(w->of_block, blocks);
        const int any = all < NONE / 2 && w->edges + all < w->best_edges;
        const int32_t change = any ? all : least_of(w->open_of_block, blocks);
        if (change < NONE / 2) {
            const int64_t count = any ? count_moves(w->of_block, w->moves_of_block, blocks, change)
                                      : count_moves(w->open_of_block, w->open_moves_of_block, blocks, change);
            find_move(w, change, any, random_below(&w->random, (uint32_t)count), &v, &c);
            if (w->fresh && change >= 0) write_best(w);
            const int32_t a = w->color[v];
            if (w->moved < w->n) w->journal[w->moved++] = v;
            if (w->beside) recolor_dense(w, v, c);
            else recolor(w, v, c);
            const int64_t tenure = random_below(&w->random, 10) + 6 * w->conflicts / 10;
            forbid(w, v, a, w->moves + 1 + tenure);
        }
        w->moves += 1;
        if (w->edges < w->best_edges) {
            w->best_edges = w->edges;
            w->fresh = 1;
        }
    }
    if (w->fresh) write_best(w);
    return made;
}

/* A colouring: the node with most colours around it, of these the one with most neighbours left, of these the
   first, gets the least colour it can have. Returns -1 without memory. */
int64_t lk_coloring_dsatur(int64_t n, const int64_t *indptr, const int32_t *indices, int32_t *color) {
    int64_t most = 0;
    for (int64_t v = 0; v < n; v++) {
        const int64_t degree = indptr[v + 1] - indptr[v];
        most = degree > most ? degree : most;
    }
    int64_t around = 0; /* colours around a node, at most: every colour c has a node with c neighbours */
    while (around < most && around * (around + 1) / 2 <= indptr[n]) around++;
    const int64_t width = most + 1;
    if (width > INT64_MAX / (around + 1) / (n + 1)) return -1; /* keys: (colours missing, neighbours missing, node) */
    int32_t *met = malloc((size_t)(indptr[n] + 1) * sizeof *met), *count = calloc((size_t)n + 1, sizeof *count);
    int32_t *left = malloc((size_t)(n + 1) * sizeof *left), *used = calloc((size_t)width + 1, sizeof *used);
    Heap heap = {malloc((size_t)(n + 16) * sizeof *heap.key), 0, n + 16};
    int64_t status = met && count && left && used && heap.key ? 0 : -1;
    for (int64_t v = 0; v < n && !status; v++) {
        color[v] = -1;
        left[v] = (int32_t)(indptr[v + 1] - indptr[v]);
        status = heap_push(&heap, (around * width + most - left[v]) * n + v);
    }
    for (int64_t done = 0; done < n && !status;) {
        const int64_t key = heap_pop(&heap), v = key % n;
        if (color[v] >= 0 || key / n != (around - count[v]) * width + most - left[v]) continue; /* an older key */
        for (int32_t i = 0; i < count[v]; i++) used[met[indptr[v] + i]] = 1;
        int32_t c = 0;
        while (used[c]) c++;
        for (int32_t i = 0; i < count[v]; i++) used[met[indptr[v] + i]] = 0;
        color[v] = c;
        done += 1;
        for (int64_t e = indptr[v]; e < indptr[v + 1] && !status; e++) {
            const int64_t u = indices[e];
            if (color[u] >= 0) continue;
            int32_t i = 0;
            while (i < count[u] && met[indptr[u] + i] != c) i++;
            if (i == count[u]) met[indptr[u] + count[u]++] = c;
            left[u] -= 1;
            status = heap_push(&heap, ((around - count[u]) * width + most - left[u]) * n + u);
        }
    }
    free(met), free(count), free(left), free(used), free(heap.key);
    return status;
}

/* A colouring, class by class: the first node of a class has most neighbours left, each further one most
   neighbours among the nodes that the class rules out, of these fewest among the others, of these it is the
   first. Returns -1 without memory. */
int64_t lk_coloring_rlf(int64_t n, const int64_t *indptr, const int32_t *indices, int32_t *color) {
    int32_t *near = malloc((size_t)(2 * n + 1) * sizeof *near), *out = near + n; /* free, ruled out neighbours */
    uint8_t *state = malloc((size_t)n + 1); /* 0 has a colour, 1 free, 2 ruled out */
    if (!near || !state) {
        free(near), free(state);
        return -1;
    }
    for (int64_t v = 0; v < n; v++) {
        near[v] = (int32_t)(indptr[v + 1] - indptr[v]);
        out[v] = 0;
        state[v] = 1;
        color[v] = -1;
    }
    int64_t left = n;
    for (int32_t c = 0; left > 0; c++) {
        for (int first = 1;; first = 0) {
            int64_t best = -1;
            for (int64_t v = 0; v < n; v++) {
                if (state[v] != 1) continue;
                if (best < 0 || (first ? near[v] > near[best]
                                       : out[v] > out[best] || (out[v] == out[best] && near[v] < near[best])))
                    best = v;
            }
            if (best < 0) break;
            color[best] = c;
            state[best] = 0;
            left -= 1;
            for (int64_t e = indptr[best]; e < indptr[best + 1]; e++) {
                const int64_t u = indices[e];
                near[u] -= 1; /* best has a colour */
                if (state[u] != 1) continue;
                state[u] = 2;
                for (int64_t f = indptr[u]; f < indptr[u + 1]; f++) {
                    near[indices[f]] -= 1;
                    out[indices[f]] += 1;
                }
            }
        }
        for (int64_t v = 0; v < n; v++) {
            near[v] += out[v];
            out[v] = 0;
            state[v] = color[v] < 0;
        }
    }
    free(near), free(state);
    return 0;
}

/* Nodes in an order, each the least colour that no neighbour has; others keep theirs, -1 for none. Returns -1
   without memory. */
int64_t lk_coloring_extend(
    int64_t n, const int64_t *indptr, const int32_t *indices, int64_t count, const int32_t *order, int32_t *color
) {
    int64_t *met = calloc((size_t)n + 1, sizeof *met); /* the last node that met a colour, from 1 on */
    if (!met) return -1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t v = order[i];
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++)
            if (color[indices[e]] >= 0) met[color[indices[e]]] = i + 1;
        int32_t c = 0;
        while (met[c] == i + 1) c++;
        color[v] = c;
    }
    free(met);
    return 0;
}
