/* Quadratic assignment: tabu search of swaps by a table of all their gains, annealing of swaps by neighbours, linear
 * assignments, dual ascent. app/search/assignment/search.py describes the searches and their arrays,
 * app/search/assignment/plain.py has the same functions with the same results; app/bounds/assignment/dual.py and
 * plain.py those of the bounds. */
#include <stdlib.h>

#include "random.h"

/* ---- tabu search ----------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t n;
    const int64_t *a, *b, *linear;            /* [n, n] */
    int64_t *delta;                           /* [n, n] above the diagonal: what a swap adds to the cost */
    int64_t *free_at;                         /* [n, n] the step from which on node i may be back at j */
    int64_t *ea, *eb, *fa, *fb;               /* [n] room */
    int64_t *pool_cost;                       /* [elites] */
    int32_t *p, *best_p, *phase_p, *used;     /* [n] */
    int32_t *pool;                            /* [elites, n] */
    int64_t symmetric, low, width, span, elites, shake;
    int64_t cost, best, phase_best, phase_end, steps, found_at, filled;
    uint64_t random;
} Tabu;

/* What swapping the places of i and j adds to the cost. */
static int64_t gain_of(const Tabu *s, int64_t i, int64_t j) {
    const int64_t n = s->n, x = s->p[i], y = s->p[j];
    const int64_t *ai = s->a + i * n, *aj = s->a + j * n, *bx = s->b + x * n, *by = s->b + y * n;
    int64_t sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += (ai[k] - aj[k]) * (by[s->p[k]] - bx[s->p[k]]);
    sum += aj[i] * by[x] + ai[j] * bx[y];
    if (s->symmetric) sum *= 2;
    else {
        for (int64_t k = 0; k < n; ++k) {
            const int64_t q = s->p[k];
            sum += (s->a[k * n + i] - s->a[k * n + j]) * (s->b[q * n + y] - s->b[q * n + x]);
        }
        sum += ai[j] * bx[y] + aj[i] * by[x];
        sum += (ai[j] - aj[i]) * (by[x] - bx[y]);
    }
    return sum + s->linear[i * n + y] - s->linear[i * n + x] + s->linear[j * n + x] - s->linear[j * n + y];
}

static void fill(Tabu *s) {
    for (int64_t i = 0; i < s->n; ++i)
        for (int64_t j = i + 1; j < s->n; ++j) s->delta[i * s->n + j] = gain_of(s, i, j);
}

/* The differences that a swap of r and s, already made, has at each node. */
INLINE void differences(Tabu *s, int64_t r, int64_t t) {
    const int64_t n = s->n, x = s->p[r], y = s->p[t];
    for (int64_t i = 0; i < n; ++i) {
        const int64_t q = s->p[i];
        s->ea[i] = s->a[i * n + r] - s->a[i * n + t];
        s->eb[i] = s->b[q * n + x] - s->b[q * n + y];
        if (s->symmetric) continue;
        s->fa[i] = s->a[r * n + i] - s->a[t * n + i];
        s->fb[i] = s->b[x * n + q] - s->b[y * n + q];
    }
}

WIDE static void update_row(int64_t *row, const int64_t *ea, const int64_t *eb, int64_t i, int64_t n, int64_t times) {
    const int64_t a = ea[i], b = eb[i];
    for (int64_t j = i + 1; j < n; ++j) row[j] += times * (a - ea[j]) * (eb[j] - b);
}

/* Swap the places of r and t, and follow it in the table. */
static void swap(Tabu *s, int64_t r, int64_t t) {
    const int64_t n = s->n;
    const int32_t x = s->p[r];
    s->cost += s->delta[r < t ? r * n + t : t * n + r];
    s->p[r] = s->p[t];
    s->p[t] = x;
    differences(s, r, t);
    for (int64_t i = 0; i < n; ++i) {
        if (i == r || i == t) continue;
        update_row(s->delta + i * n, s->ea, s->eb, i, n, s->symmetric ? 2 : 1);
        if (!s->symmetric) update_row(s->delta + i * n, s->fa, s->fb, i, n, 1);
    }
    for (int64_t k = 0; k < n; ++k) {
        if (k != r) s->delta[k < r ? k * n + r : r * n + k] = gain_of(s, k < r ? k : r, k < r ? r : k);
        if (k != t) s->delta[k < t ? k * n + t : t * n + k] = gain_of(s, k < t ? k : t, k < t ? t : k);
    }
}

/* The cost of the places, the table, and no node barred from anywhere. */
void lk_assignment_load(Tabu *s) {
    const int64_t n = s->n;
    int64_t cost = 0;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t *b = s->b + s->p[i] * n, *a = s->a + i * n;
        for (int64_t j = 0; j < n; ++j) cost += a[j] * b[s->p[j]];
        cost += s->linear[i * n + s->p[i]];
    }
    s->cost = cost;
    for (int64_t i = 0; i < n * n; ++i) s->free_at[i] = 0;
    fill(s);
    s->phase_best = cost;
    memcpy(s->phase_p, s->p, (size_t)n * sizeof(int32_t));
    s->phase_end = s->steps + s->span;
    if (cost < s->best) {
        s->best = cost;
        s->found_at = s->steps;
        memcpy(s->best_p, s->p, (size_t)n * sizeof(int32_t));
    }
}

/* Put the best of a phase among the elites: in the place of the worst, where it is better and not there yet. */
static void enter(Tabu *s) {
    const int64_t n = s->n;
    int64_t at = s->filled;
    for (int64_t e = 0; e < s->filled; ++e)
        if (s->pool_cost[e] == s->phase_best && !memcmp(s->pool + e * n, s->phase_p, (size_t)n * sizeof(int32_t)))
            return;
    if (s->filled < s->elites) ++s->filled;
    else {
        at = 0;
        for (int64_t e = 1; e < s->elites; ++e)
            if (s->pool_cost[e] > s->pool_cost[at]) at = e;
        if (s->pool_cost[at] <= s->phase_best) return;
    }
    s->pool_cost[at] = s->phase_best;
    memcpy(s->pool + at * n, s->phase_p, (size_t)n * sizeof(int32_t));
}

/* Swap so many drawn pairs of places. */
static void shake(Tabu *s, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const uint32_t r = random_below(&s->random, (uint32_t)s->n), t = random_below(&s->random, (uint32_t)s->n);
        const int32_t x = s->p[r];
        s->p[r] = s->p[t];
        s->p[t] = x;
    }
}

/* Places that two elites agree on, of others those of either where they are free; the rest in a drawn order. */
static void cross(Tabu *s, const int32_t *one, const int32_t *other) {
    const int64_t n = s->n;
    int64_t spare = 0;
    for (int64_t i = 0; i < n; ++i) s->used[i] = 0;
    for (int64_t i = 0; i < n; ++i) {
        s->p[i] = one[i] == other[i] ? one[i] : -1;
        if (s->p[i] >= 0) s->used[s->p[i]] = 1;
    }
    for (int64_t i = 0; i < n; ++i) {
        if (s->p[i] >= 0) continue;
        const int first = (int)(random_bits(&s->random) >> 63);
        const int32_t x = first ? one[i] : other[i], y = first ? other[i] : one[i];
        const int32_t to = !s->used[x] ? x : !s->used[y] ? y : -1;
        s->p[i] = to;
        if (to >= 0) s->used[to] = 1;
    }
    for (int64_t i = 0; i < n; ++i)
        if (!s->used[i]) s->used[spare++] = (int32_t)i; /* spare <= i: what is overwritten was read */
    for (int64_t i = 0; i < n; ++i) {
        if (s->p[i] >= 0) continue;
        const uint32_t at = random_below(&s->random, (uint32_t)spare);
        s->p[i] = s->used[at];
        s->used[at] = s->used[--spare];
    }
}

/* Where the next phase begins: one in eight times anywhere, else at two crossed elites, or where there are too few, or
 * these are alike, shaken. */
static void next_phase(Tabu *s) {
    const int64_t n = s->n;
    enter(s);
    memcpy(s->p, s->best_p, (size_t)n * sizeof(int32_t));
    if (!(random_bits(&s->random) >> 61)) shake(s, 2 * n);
    else if (s->filled == s->elites) {
        const uint32_t e = random_below(&s->random, (uint32_t)s->elites);
        const uint32_t f = random_below(&s->random, (uint32_t)s->elites - 1);
        const int32_t *one = s->pool + e * n, *other = s->pool + (f + (f >= e)) * n;
        cross(s, one, other);
        if (!memcmp(s->p, one, (size_t)n * sizeof(int32_t)) || !memcmp(s->p, other, (size_t)n * sizeof(int32_t)))
            shake(s, s->shake);
    } else shake(s, s->shake * (1 + random_below(&s->random, 4)));
    lk_assignment_load(s);
}

/* One swap: the best of those that are free, or better than all of the phase. */
static void move(Tabu *s) {
    const int64_t n = s->n;
    int64_t best = INT64_MAX, r = -1, t = -1;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t *row = s->delta + i * n, *at = s->free_at + i * n, x = s->p[i];
        for (int64_t j = i + 1; j < n; ++j) {
            if (row[j] >= best) continue;
            if (at[s->p[j]] > s->steps && s->free_at[j * n + x] > s->steps && s->cost + row[j] >= s->phase_best)
                continue;
            best = row[j];
            r = i;
            t = j;
        }
    }
    if (r < 0) return;
    s->free_at[r * n + s->p[r]] = s->steps + s->low + random_below(&s->random, (uint32_t)s->width);
    s->free_at[t * n + s->p[t]] = s->steps + s->low + random_below(&s->random, (uint32_t)s->width);
    swap(s, r, t);
    if (s->cost >= s->phase_best) return;
    s->phase_best = s->cost;
    memcpy(s->phase_p, s->p, (size_t)n * sizeof(int32_t));
    s->phase_end = s->steps + s->span;
    if (s->cost >= s->best) return;
    s->best = s->cost;
    s->found_at = s->steps;
    memcpy(s->best_p, s->p, (size_t)n * sizeof(int32_t));
}

void lk_assignment_tabu(Tabu *s, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        ++s->steps;
        move(s);
        if (s->steps >= s->phase_end) next_phase(s);
    }
}

/* ---- annealing ------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t n;
    const int64_t *a_ptr, *b_ptr, *at_ptr, *bt_ptr, *linear_ptr; /* [n+1] rows; columns */
    const int64_t *a_data, *b_data, *at_data, *bt_data, *linear_data;
    const int64_t *hot, *escape;                                 /* [KINDS]; [DRAWS] */
    int64_t *mark_x, *mark_y;                                    /* [n] 0 */
    const int32_t *a_near, *b_near, *at_near, *bt_near, *linear_near;
    int32_t *p, *q, *best_p;                                     /* [n] places, nodes at them; the best places */
    int64_t symmetric, cost, best, steps, found_at, cycle, at, unit, largest, first, cold;
    uint64_t random;
} Search;

#include "annealing.h"

INLINE int64_t linear_of(const Search *s, int64_t i, int32_t x) {
    int64_t low = s->linear_ptr[i], high = s->linear_ptr[i + 1];
    const int64_t end = high;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (s->linear_near[middle] < x) low = middle + 1;
        else high = middle;
    }
    return low < end && s->linear_near[low] == x ? s->linear_data[low] : 0;
}

/* What swapping the places x, y of r and t adds to the cost by entries of these rows of a and b; those of the two nodes
 * with each other count where `pair` is set. */
INLINE int64_t by_rows(const Search *s, const int64_t *ptr, const int32_t *near, const int64_t *data, const int64_t *bptr,
                       const int32_t *bnear, const int64_t *bdata, int32_t r, int32_t t, int64_t pair) {
    const int32_t x = s->p[r], y = s->p[t];
    int64_t sum = 0;
    for (int64_t j = bptr[x]; j < bptr[x + 1]; ++j) s->mark_x[bnear[j]] = bdata[j];
    for (int64_t j = bptr[y]; j < bptr[y + 1]; ++j) s->mark_y[bnear[j]] = bdata[j];
    const int64_t turned = pair ? s->mark_y[x] - s->mark_x[y] : 0;
    for (int64_t j = ptr[r]; j < ptr[r + 1]; ++j) {
        const int32_t z = s->p[near[j]];
        sum += data[j] * (near[j] == t ? turned : s->mark_y[z] - s->mark_x[z]);
    }
    for (int64_t j = ptr[t]; j < ptr[t + 1]; ++j) {
        const int32_t z = s->p[near[j]];
        sum -= data[j] * (near[j] == r ? turned : s->mark_y[z] - s->mark_x[z]);
    }
    for (int64_t j = bptr[x]; j < bptr[x + 1]; ++j) s->mark_x[bnear[j]] = 0;
    for (int64_t j = bptr[y]; j < bptr[y + 1]; ++j) s->mark_y[bnear[j]] = 0;
    return sum;
}

INLINE int64_t change(const Search *s, int32_t r, int32_t t) {
    const int32_t x = s->p[r], y = s->p[t];
    int64_t sum = by_rows(s, s->a_ptr, s->a_near, s->a_data, s->b_ptr, s->b_near, s->b_data, r, t, !s->symmetric);
    if (s->symmetric) sum *= 2;
    else sum += by_rows(s, s->at_ptr, s->at_near, s->at_data, s->bt_ptr, s->bt_near, s->bt_data, r, t, 0);
    if (s->linear_ptr[s->n])
        sum += linear_of(s, r, y) - linear_of(s, r, x) + linear_of(s, t, x) - linear_of(s, t, y);
    return sum;
}

/* The node at a place that is next to that of a neighbour of r; -1: there is none. */
INLINE int32_t guided(Search *s, int32_t r) {
    const int64_t out = s->a_ptr[r + 1] - s->a_ptr[r];
    if (!out) return -1;
    const int32_t near = s->a_near[s->a_ptr[r] + random_below(&s->random, (uint32_t)out)];
    const int32_t z = s->p[near];
    const int64_t in = s->bt_ptr[z + 1] - s->bt_ptr[z];
    if (!in) return -1;
    return s->q[s->bt_near[s->bt_ptr[z] + random_below(&s->random, (uint32_t)in)]];
}

INLINE void keep(Search *s) {
    if (s->cost >= s->best) return;
    s->best = s->cost;
    s->found_at = s->steps;
    memcpy(s->best_p, s->p, (size_t)s->n * sizeof(int32_t));
}

INLINE void propose(Search *s, int64_t coldness) {
    const uint64_t draw = random_bits(&s->random);
    const int32_t r = (int32_t)(((draw >> 32) * (uint64_t)s->n) >> 32);
    int32_t t = draw >> 12 & 3 ? guided(s, r) : -1;
    if (t < 0) t = (int32_t)random_below(&s->random, (uint32_t)s->n);
    if (t == r) return;
    const int64_t loss = change(s, r, t);
    if (loss > 0) {
        if (!passes(s, loss, coldness, draw)) return;
        keep(s);
    }
    const int32_t x = s->p[r];
    s->p[r] = s->p[t];
    s->p[t] = x;
    s->q[s->p[r]] = r;
    s->q[x] = t;
    s->cost += loss;
}

static void go_back(Search *s) {
    memcpy(s->p, s->best_p, (size_t)s->n * sizeof(int32_t));
    for (int64_t i = 0; i < s->n; ++i) s->q[s->p[i]] = (int32_t)i;
    s->cost = s->best;
}

void lk_assignment_return(Search *s) { go_back(s); }

void lk_assignment_anneal(Search *s, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        ++s->steps;
        step(s);
    }
}

/* ---- linear assignment and dual ascent --------------------------------------------------------------------------- */

#define FAR INT64_MAX

/* Multipliers to begin with: v_j the least of each column, u_i the least that these leave of each row; a row gets the
 * first free column that is least for it. placed [n]: whether it has one. */
static void reduce(int64_t n, const int64_t *cost, int64_t stride, int64_t *u, int64_t *v, int64_t *row_of,
                   int64_t *placed) {
    for (int64_t j = 0; j < n; ++j) {
        v[j] = cost[j];
        row_of[j] = -1;
    }
    for (int64_t i = 1; i < n; ++i) {
        const int64_t *line = cost + i * stride;
        for (int64_t j = 0; j < n; ++j) v[j] = line[j] < v[j] ? line[j] : v[j];
    }
    for (int64_t i = 0; i < n; ++i) {
        const int64_t *line = cost + i * stride;
        int64_t least = FAR;
        for (int64_t j = 0; j < n; ++j) least = line[j] - v[j] < least ? line[j] - v[j] : least;
        u[i] = least;
        placed[i] = 0;
        for (int64_t j = 0; j < n && !placed[i]; ++j)
            if (row_of[j] < 0 && line[j] - v[j] == least) {
                row_of[j] = i;
                placed[i] = 1;
            }
    }
}

/* The least assignment of rows to columns, by shortest augmenting paths: u_i + v_j <= cost_ij, equal where row i has
 * column j. cost [n, n] with rows `stride` apart; u, v [n]; row_of [n]; scratch [4 n]. Ties go to the first.
 * Returns the sum of u and v. */
static int64_t assign(int64_t n, const int64_t *cost, int64_t stride, int64_t *u, int64_t *v, int64_t *row_of,
                      int64_t *scratch) {
    int64_t *least = scratch, *before = scratch + n, *done = scratch + 2 * n, *placed = scratch + 3 * n, total = 0;
    reduce(n, cost, stride, u, v, row_of, placed);
    for (int64_t root = 0; root < n; ++root) {
        if (placed[root]) continue;
        int64_t row = root, last = -1, end = -1;
        for (int64_t j = 0; j < n; ++j) {
            least[j] = FAR;
            done[j] = 0;
        }
        int64_t shift = 0; /* what the reached rows and columns have been moved by so far */
        while (end < 0) {
            int64_t next = -1;
            const int64_t *line = cost + row * stride, base = shift - u[row];
            for (int64_t j = 0; j < n; ++j) {
                if (done[j]) continue;
                const int64_t here = line[j] - v[j] + base;
                if (here < least[j]) {
                    least[j] = here;
                    before[j] = last;
                }
                if (next < 0 || least[j] < least[next]) next = j;
            }
            shift = least[next];
            done[next] = 1;
            last = next;
            if (row_of[next] < 0) end = next;
            else row = row_of[next];
        }
        u[root] += shift;
        for (int64_t j = 0; j < n; ++j) {
            if (!done[j] || j == end) continue;
            u[row_of[j]] += shift - least[j];
            v[j] -= shift - least[j];
        }
        while (end >= 0) {
            const int64_t from = before[end];
            row_of[end] = from < 0 ? root : row_of[from];
            end = from;
        }
    }
    for (int64_t j = 0; j < n; ++j) total += u[j] + v[j];
    return total;
}

int64_t lk_assignment_linear(int64_t n, const int64_t *cost, int64_t *u, int64_t *v, int64_t *row_of) {
    int64_t *scratch = malloc((size_t)(4 * n + 1) * sizeof(int64_t));
    if (scratch == NULL) return FAR;
    const int64_t total = assign(n, cost, n, u, v, row_of, scratch);
    free(scratch);
    return total;
}

/* Share out what variables cost among the rows of their products. */
static void share_out(int64_t n, int64_t *linear, int64_t *square, int64_t *rows) {
    const int64_t m = n - 1;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t k = 0; k < n; ++k) {
            int64_t *own = square + (i * n + k) * n * n, share = linear[i * n + k] / m;
            if (share * m > linear[i * n + k]) --share; /* rounded down */
            linear[i * n + k] -= share * m;
            for (int64_t j = 0; j < n; ++j) {
                if (j == i) continue;
                rows[(i * n + k) * n + j] -= share;
                for (int64_t l = 0; l < n; ++l)
                    if (l != k) own[j * n + l] += share;
            }
        }
}

/* The end of a sweep: multipliers of a least assignment by the linear costs go from these to the bound; what it gains. */
static int64_t settle(int64_t n, int64_t *linear, int64_t *top, int64_t *u, int64_t *v, int64_t *row_of, int64_t *scratch) {
    const int64_t gained = assign(n, linear, n, u, v, row_of, scratch);
    for (int64_t i = 0; i < n; ++i) {
        top[i] += u[i];
        for (int64_t k = 0; k < n; ++k) linear[i * n + k] -= u[i] + v[k];
    }
    return gained;
}

/* One sweep of dual ascent: see app/bounds/assignment/dual.py. linear [n, n], square [n, n, n, n], rows, columns
 * [n, n, n], top [n]; turn 0: nothing is shared out or taken from mirror images, odd: from the first variable on, even:
 * from the last. Returns what the bound gains, FAR without memory. */
int64_t lk_assignment_ascend(int64_t n, int64_t turn, int64_t *linear, int64_t *square, int64_t *rows, int64_t *columns,
                             int64_t *top) {
    const int64_t m = n - 1, nn = n * n;
    int64_t *part = malloc((size_t)(m * m + 7 * n + 1) * sizeof(int64_t));
    if (part == NULL) return FAR;
    int64_t *u = part + m * m, *v = u + n, *row_of = v + n, *scratch = row_of + n;
    if (turn && m) share_out(n, linear, square, rows);
    for (int64_t step = 0; step < (m ? nn : 0); ++step) {
        const int64_t at = turn % 2 || !turn ? step : nn - 1 - step, i = at / n, k = at % n;
        int64_t *own = square + at * nn;
        for (int64_t j = 0; j < m; ++j)
            for (int64_t l = 0; l < m; ++l) {
                const int64_t jj = j + (j >= i), ll = l + (l >= k), other = (jj * n + ll) * nn + at;
                part[j * m + l] = own[jj * n + ll];
                if (!turn) continue;
                part[j * m + l] += square[other];
                square[other] = 0;
            }
        linear[at] += assign(m, part, m, u, v, row_of, scratch);
        for (int64_t j = 0; j < m; ++j) {
            rows[at * n + j + (j >= i)] += u[j];
            columns[at * n + j + (j >= k)] += v[j];
            for (int64_t l = 0; l < m; ++l) own[(j + (j >= i)) * n + l + (l >= k)] = part[j * m + l] - u[j] - v[l];
        }
    }
    const int64_t gained = settle(n, linear, top, u, v, row_of, scratch); /* which are parts of `part` */
    free(part);
    return gained;
}

/* The same sweep where products are not kept: what is left of one is found from multipliers when it is needed.
 * a, b [n, n], a in parts; rows, columns [n, n, n], turned: rows [j, i, k] is the multiplier of row j of the products
 * with the variable (i, k), columns [l, i, k] that of place l. */
int64_t lk_assignment_lean(int64_t n, int64_t turn, const int64_t *a, const int64_t *b, int64_t *linear, int64_t *rows,
                           int64_t *columns, int64_t *top) {
    const int64_t m = n - 1, nn = n * n;
    int64_t *part = malloc((size_t)(m * m + 9 * n + 1) * sizeof(int64_t));
    if (part == NULL) return FAR;
    int64_t *u = part + m * m, *v = u + n, *row_of = v + n, *own_column = row_of + n, *scratch = own_column + n;
    if (turn && m)
        for (int64_t at = 0; at < nn; ++at) {
            int64_t share = linear[at] / m;
            if (share * m > linear[at]) --share; /* rounded down */
            linear[at] -= share * m;
            for (int64_t j = 0; j < n; ++j)
                if (j != at / n) rows[j * nn + at] -= share;
        }
    for (int64_t step = 0; step < (m ? nn : 0); ++step) {
        const int64_t at = turn % 2 || !turn ? step : nn - 1 - step, i = at / n, k = at % n;
        const int64_t *rows_of_i = rows + i * nn, *columns_of_k = columns + k * nn;
        for (int64_t l = 0; l < n; ++l) own_column[l] = columns[l * nn + at];
        for (int64_t j = 0; j < m; ++j) {
            const int64_t jj = j + (j >= i), one_way = a[i * n + jj], other = turn ? a[jj * n + i] : 0;
            const int64_t own = rows[jj * nn + at], *mirror_r = rows_of_i + jj * n, *mirror_c = columns_of_k + jj * n;
            const int64_t *b_row = b + k * n;
            int64_t *line = part + j * m;
            for (int64_t l = 0; l < m; ++l) {
                const int64_t ll = l + (l >= k);
                line[l] = one_way * b_row[ll] - own - own_column[ll];
                if (turn) line[l] += other * b[ll * n + k] - mirror_r[ll] - mirror_c[ll];
            }
        }
        linear[at] += assign(m, part, m, u, v, row_of, scratch);
        for (int64_t j = 0; j < m; ++j) {
            rows[(j + (j >= i)) * nn + at] += u[j];
            columns[(j + (j >= k)) * nn + at] += v[j];
        }
    }
    const int64_t gained = settle(n, linear, top, u, v, row_of, scratch); /* which are parts of `part` */
    free(part);
    return gained;
}
