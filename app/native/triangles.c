/* Triangle inequalities that a relaxed cut violates (app/bounds/triangles.py): additions of three float64, in the
 * order of app/bounds/plain_triangles.py, so that both find the same. */
#include <stdint.h>

#define BUCKETS 256

/* By how much x_ij, x_ik and x_jk violate one of the four inequalities, of which no two can be violated at once; `kind`
 * says which: 0 for x_ij + x_ik + x_jk >= -1, 1, 2, 3 for that with the sign of x_ij, of x_ik, of x_jk kept and both
 * others changed. */
static inline double violated(double ij, double ik, double jk, int32_t *kind) {
    const double sum[4] = {-(ij + ik + jk), ik + jk - ij, ij + jk - ik, ij + ik - jk};
    int32_t most = 0;
    for (int32_t k = 1; k < 4; ++k)
        if (sum[k] > sum[most]) most = k;
    *kind = most;
    return sum[most] - 1.0;
}

/* The bucket of a violation above `margin`, most violated last; none exceeds 2 by more than rounding. */
static inline int64_t bucket(double by, double margin, double width) {
    const int64_t at = (int64_t)((by - margin) / width);
    return at < BUCKETS ? at : BUCKETS - 1;
}

/* The triangles i < j < k of x [n, n] violated by more than `margin`, of which `most` at most: the most violated, by
 * buckets, and of the last bucket that has room the first. Returns how many were written to out [most, 4]: i, j, k and
 * the kind. */
int64_t lk_triangles(int64_t n, const double *x, double margin, int64_t most, int32_t *out) {
    const double width = (2.0 - margin) / BUCKETS;
    int64_t count[BUCKETS] = {0}, left = most, least = BUCKETS, found = 0;
    int32_t kind;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = i + 1; j < n; ++j)
            for (int64_t k = j + 1; k < n; ++k) {
                const double by = violated(x[i * n + j], x[i * n + k], x[j * n + k], &kind);
                if (by > margin) ++count[bucket(by, margin, width)];
            }
    while (least > 0 && left > 0) left -= count[--least];
    const int64_t in_last = least < BUCKETS ? count[least] + (left < 0 ? left : 0) : 0;
    int64_t taken = 0; /* of the last bucket */
    for (int64_t i = 0; i < n && found < most; ++i)
        for (int64_t j = i + 1; j < n; ++j)
            for (int64_t k = j + 1; k < n; ++k) {
                const double by = violated(x[i * n + j], x[i * n + k], x[j * n + k], &kind);
                if (!(by > margin)) continue;
                const int64_t at = bucket(by, margin, width);
                if (at < least || (at == least && taken++ >= in_last)) continue;
                int32_t *to = out + 4 * found++;
                to[0] = (int32_t)i, to[1] = (int32_t)j, to[2] = (int32_t)k, to[3] = kind;
            }
    return found;
}
