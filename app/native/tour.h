/* Distances between the points of a travelling salesman problem; app/graphs/metric.py defines them. */
#ifndef LOCKSTEP_TOUR_H
#define LOCKSTEP_TOUR_H

#include "common.h"
#include <math.h>

enum { TABLE, EUC_2D, CEIL_2D, ATT, FLOOR_2D }; /* as in app/native/tour.py */

typedef struct {
    int64_t n, kind;
    const int32_t *table; /* [n][n] for TABLE */
    const double *points; /* [n][2] for the others */
} Metric;

/* The length of a step in the plane. Square roots are exact to the last bit in IEEE arithmetic, so NumPy finds the same
 * integers. */
INLINE int64_t rounded(const Metric *m, double x, double y) {
    const double square = x * x + y * y;
    if (m->kind == EUC_2D) return (int64_t)(sqrt(square) + 0.5);
    if (m->kind == CEIL_2D) return (int64_t)ceil(sqrt(square));
    if (m->kind == FLOOR_2D) return (int64_t)sqrt(square);
    const double r = sqrt(square / 10.0);
    const int64_t t = (int64_t)(r + 0.5);
    return (double)t < r ? t + 1 : t;
}

INLINE int64_t computed(const Metric *m, int64_t i, int64_t j) {
    return rounded(m, m->points[2 * i] - m->points[2 * j], m->points[2 * i + 1] - m->points[2 * j + 1]);
}

INLINE int64_t between(const Metric *m, int64_t i, int64_t j) {
    return m->table ? m->table[i * m->n + j] : computed(m, i, j);
}

#endif
