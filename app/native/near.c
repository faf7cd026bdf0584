/* Points in the plane by a k-d tree (Bentley 1975): cells that cannot hold what is looked for are passed over. */
#include "tour.h"

enum { LEAF = 8 }; /* points of a cell without cells of its own, at most */

INLINE int64_t half(int64_t lo, int64_t hi) { return lo + (hi - lo) / 2; }

INLINE double beyond(double x, double low, double high) { return x < low ? low - x : x > high ? x - high : 0.0; }

/* ---- the cells ---------------------------------------------------------------------------------------------- */

/* Puts the points of places lo..hi-1 in order of coordinate `axis`, as far as the middle one tells them apart. */
static void split(const double *points, int axis, int32_t *order, int64_t lo, int64_t hi) {
    const int64_t middle = half(lo, hi);
    while (hi - lo > 1) {
        const double pivot = points[2 * order[half(lo, hi)] + axis];
        int64_t i = lo, j = hi - 1;
        while (i <= j) {
            while (points[2 * order[i] + axis] < pivot) ++i;
            while (points[2 * order[j] + axis] > pivot) --j;
            if (i > j) break;
            const int32_t other = order[i];
            order[i++] = order[j];
            order[j--] = other;
        }
        if (middle <= j) hi = j + 1;
        else if (middle >= i) lo = i;
        else return;
    }
}

static void make_cell(const double *points, int64_t cell, int64_t first_leaf, int64_t lo, int64_t hi, int32_t *order,
                      double *box, int32_t *lowest) {
    double *b = box + 4 * cell;
    lowest[cell] = order[lo];
    for (int64_t p = lo; p < hi; ++p) lowest[cell] = order[p] < lowest[cell] ? order[p] : lowest[cell];
    for (int axis = 0; axis < 2; ++axis) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t p = lo; p < hi; ++p) {
            const double x = points[2 * order[p] + axis];
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        b[axis] = low;
        b[2 + axis] = high;
    }
    if (cell >= first_leaf) return;
    split(points, b[3] - b[1] > b[2] - b[0], order, lo, hi);
    make_cell(points, 2 * cell + 1, first_leaf, lo, half(lo, hi), order, box, lowest);
    make_cell(points, 2 * cell + 2, first_leaf, half(lo, hi), hi, order, box, lowest);
}

/* Sorts order [count] into the cells of a k-d tree, and fills box [cells][4], cells = 2 first_leaf + 1, and with the
 * lowest number of a point lowest [cells]. */
void lk_near_cells(const double *points, int64_t count, int64_t first_leaf, int32_t *order, double *box, int32_t *lowest) {
    make_cell(points, 0, first_leaf, 0, count, order, box, lowest);
}

/* ---- the nearest points in each quadrant -------------------------------------------------------------------- */

typedef struct {
    const double *points, *box;
    const int32_t *order;
    int64_t first_leaf, count; /* of the points found in a quadrant */
    int32_t i, *found;         /* [4][count] */
    double held[16];           /* their squared distances, ascending in each quadrant */
} Around;

INLINE int nearer(const Around *s, double square, int32_t j, int64_t e) {
    return square < s->held[e] || (square == s->held[e] && s->found[e] >= 0 && j < s->found[e]);
}

/* Whether a cell may hold a point that is nearer than one found in its quadrant. */
static int concerns(const Around *s, int64_t cell) {
    const double *b = s->box + 4 * cell, *p = s->points + 2 * s->i;
    if (b[0] == p[0] && b[2] == p[0] && b[1] == p[1] && b[3] == p[1]) return 0; /* equal points */
    for (int q = 0; q < 4; ++q) {
        const int left = q & 1, below = q >> 1;
        if (left ? b[0] >= p[0] : b[2] < p[0]) continue;
        if (below ? b[1] >= p[1] : b[3] < p[1]) continue;
        const double x = beyond(p[0], b[0], b[2]), y = beyond(p[1], b[1], b[3]);
        if (x * x + y * y <= s->held[(q + 1) * s->count - 1]) return 1;
    }
    return 0;
}

static void offer(Around *s, int32_t j) {
    const double x = s->points[2 * j] - s->points[2 * s->i], y = s->points[2 * j + 1] - s->points[2 * s->i + 1];
    const double square = x * x + y * y;
    const int64_t first = ((x < 0) + 2 * (y < 0)) * s->count;
    int64_t e = first + s->count - 1;
    if (square == 0 || !nearer(s, square, j, e)) return;
    for (; e > first && nearer(s, square, j, e - 1); --e) {
        s->held[e] = s->held[e - 1];
        s->found[e] = s->found[e - 1];
    }
    s->held[e] = square;
    s->found[e] = j;
}

static void look_around(Around *s, int64_t cell, int64_t lo, int64_t hi) {
    if (!concerns(s, cell)) return;
    if (cell >= s->first_leaf) {
        for (int64_t p = lo; p < hi; ++p) offer(s, s->order[p]);
        return;
    }
    const double *a = s->box + 4 * (2 * cell + 1), *b = a + 4, *p = s->points + 2 * s->i;
    const double ax = beyond(p[0], a[0], a[2]), ay = beyond(p[1], a[1], a[3]);
    const double bx = beyond(p[0], b[0], b[2]), by = beyond(p[1], b[1], b[3]);
    const int second = ax * ax + ay * ay > bx * bx + by * by;
    if (second) look_around(s, 2 * cell + 2, half(lo, hi), hi);
    look_around(s, 2 * cell + 1, lo, half(lo, hi));
    if (!second) look_around(s, 2 * cell + 2, half(lo, hi), hi);
}

/* The nearest `count` points (at most 4) of each point in each of its four quadrants, nearest first, ties to the
 * lowest number, -1 for none: near [n][4][count]. A point that lies on an axis belongs to one quadrant, an equal point
 * to none. order [n] and box as lk_near_cells left them. */
void lk_quadrants(int64_t n, const double *points, int64_t first_leaf, const int32_t *order, const double *box,
                  int64_t count, int32_t *near) {
    for (int64_t i = 0; i < n; ++i) {
        Around s = {points, box, order, first_leaf, count, (int32_t)i, near + i * 4 * count, {0}};
        for (int64_t e = 0; e < 4 * count; ++e) {
            s.held[e] = INFINITY;
            s.found[e] = -1;
        }
        look_around(&s, 0, 0, n);
    }
}

/* ---- minimum spanning trees ---------------------------------------------------------------------------------
 * Over all edges, without looking at all of them (app/bounds/tour/near_tree.py); the weight of i-j is scale * distance +
 * pi[i] + pi[j]. Boruvka's rounds (1926), each of which joins every component to another by its lightest edge: cells are
 * passed over where all their points are of the component, or too far.
 *
 * Edges are ordered by weight, then by their lower and their higher end: so the tree is unique, however it is found. */

static const int32_t MIXED = -1;

typedef struct {
    int64_t weight;
    int32_t i, j; /* i < j; j < 0: none */
} Edge;

typedef struct {
    const Metric *metric;
    const int64_t *pi;
    int64_t scale, count, first_leaf;
    const int32_t *order; /* [count] the points, those of a cell side by side */
    const double *box;    /* [cells][4] lowest x, y, highest x, y */
    const int32_t *lowest; /* [cells] number of a point */
    int64_t *least;       /* [cells] smallest pi */
    int32_t *label;       /* [cells] the component of all its points, or MIXED */
    int32_t *component;   /* [n] */
    Edge *best;           /* [n] of a component */
    Edge *near;           /* [n] of a point: its lightest edge out of its component, or (j < 0) what none is below */
} Near;

INLINE int lighter(const Edge *a, const Edge *b) {
    if (b->j < 0 || a->weight != b->weight) return a->weight < b->weight || (a->weight == b->weight && b->j < 0);
    return a->i < b->i || (a->i == b->i && a->j < b->j);
}

/* What a search needs of a cell in a round; with `weights` also the smallest pi. */
static void mark_cell(Near *s, int64_t cell, int64_t lo, int64_t hi, int weights) {
    if (cell < s->first_leaf) {
        const int64_t a = 2 * cell + 1, b = a + 1;
        mark_cell(s, a, lo, half(lo, hi), weights);
        mark_cell(s, b, half(lo, hi), hi, weights);
        s->label[cell] = s->label[a] == s->label[b] ? s->label[a] : MIXED;
        s->least[cell] = s->least[a] < s->least[b] ? s->least[a] : s->least[b];
        return;
    }
    int32_t label = s->component[s->order[lo]];
    int64_t least = INT64_MAX;
    for (int64_t p = lo; p < hi; ++p) {
        const int32_t i = s->order[p];
        if (s->component[i] != label) label = MIXED;
        if (s->pi[i] < least) least = s->pi[i];
    }
    s->label[cell] = label;
    if (weights) s->least[cell] = least;
}

/* No edge from point i into a cell is lighter. Rounding keeps the order of lengths, so that of the box will do. */
INLINE int64_t least_weight(const Near *s, int32_t i, int64_t cell) {
    const double *p = s->metric->points + 2 * i, *b = s->box + 4 * cell;
    const int64_t apart = rounded(s->metric, beyond(p[0], b[0], b[2]), beyond(p[1], b[1], b[3]));
    return s->scale * apart + s->pi[i] + s->least[cell];
}

/* The lightest edge from i to another component, if it is as light as `best`. */
static void look(const Near *s, int32_t i, int64_t cell, int64_t lo, int64_t hi, int64_t bound, Edge *best) {
    const int32_t own = s->component[i];
    if (s->label[cell] == own || bound > best->weight) return;
    const int32_t least = s->lowest[cell];
    const Edge at_best = {bound, i < least ? i : least, i < least ? least : i};
    if (!lighter(&at_best, best)) return;
    if (cell < s->first_leaf) {
        const int64_t a = 2 * cell + 1, b = a + 1, at_a = least_weight(s, i, a), at_b = least_weight(s, i, b);
        if (at_a <= at_b) look(s, i, a, lo, half(lo, hi), at_a, best);
        look(s, i, b, half(lo, hi), hi, at_b, best);
        if (at_a > at_b) look(s, i, a, lo, half(lo, hi), at_a, best);
        return;
    }
    for (int64_t p = lo; p < hi; ++p) {
        const int32_t j = s->order[p];
        if (s->component[j] == own) continue;
        const Edge edge = {s->scale * computed(s->metric, i, j) + s->pi[i] + s->pi[j], i < j ? i : j, i < j ? j : i};
        if (lighter(&edge, best)) *best = edge;
    }
}

INLINE int leaves(const Near *s, const Edge *edge) {
    return edge->j >= 0 && s->component[edge->i] != s->component[edge->j];
}

/* The lightest edge out of every component. What a point found, or found nothing below, holds in later rounds. */
static void find_best(Near *s) {
    for (int64_t p = 0; p < s->count; ++p) s->best[s->component[s->order[p]]] = (Edge){INT64_MAX, -1, -1};
    for (int64_t p = 0; p < s->count; ++p) {
        const int32_t i = s->order[p];
        Edge *best = s->best + s->component[i];
        if (leaves(s, s->near + i) && lighter(s->near + i, best)) *best = s->near[i];
    }
    for (int64_t p = 0; p < s->count; ++p) {
        const int32_t i = s->order[p];
        Edge *best = s->best + s->component[i], found = {best->weight, -1, -1};
        const Edge *known = s->near + i;
        if (leaves(s, known) || known->weight > best->weight || (known->j < 0 && known->weight == best->weight)) continue;
        look(s, i, 0, 0, s->count, INT64_MIN, &found);
        s->near[i] = found;
        if (found.j >= 0 && lighter(&found, best)) *best = found;
    }
}

static int32_t root_of(int32_t *root, int32_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
}

/* Points other than `special` are joined: edges [n-2][2], the lower end first; degree [n] of the tree. order, box,
 * lowest as lk_near_cells left them; room: longs [cells], labels [cells], components [2][n], edges [2][n] of 16 bytes.
 * Returns the weight. */
int64_t lk_near_tree(const Metric *m, const int64_t *pi, int64_t scale, int64_t special, int64_t first_leaf,
                     const int32_t *order, const double *box, const int32_t *lowest, int32_t *edges, int32_t *degree, int64_t *longs,
                     int32_t *labels, int32_t *components, void *room) {
    const int64_t n = m->n;
    int32_t *root = components + n;
    Near s = {m, pi, scale, n - 1, first_leaf, order, box, lowest, longs, labels, components, room, (Edge *)room + n};
    for (int64_t i = 0; i < n; ++i) {
        root[i] = (int32_t)i;
        degree[i] = 0;
        s.near[i] = (Edge){INT64_MIN, -1, -1};
    }
    int64_t total = 0, made = 0;
    for (int weights = 1; made < n - 2; weights = 0) {
        for (int64_t i = 0; i < n; ++i) components[i] = root_of(root, (int32_t)i);
        mark_cell(&s, 0, 0, s.count, weights);
        find_best(&s);
        for (int64_t i = 0; i < n; ++i) {
            if (i == special || components[i] != i) continue;
            const Edge *edge = s.best + i;
            const int32_t a = root_of(root, edge->i), b = root_of(root, edge->j);
            if (a == b) continue; /* the other component has chosen it too */
            root[a] = b;
            ++degree[edge->i];
            ++degree[edge->j];
            edges[2 * made] = edge->i;
            edges[2 * made++ + 1] = edge->j;
            total += edge->weight;
        }
    }
    return total;
}
