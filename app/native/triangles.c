/* Triangle inequalities that a relaxed cut violates (app/bounds/cut/relaxation.py): sums of float64 in the order of
 * app/bounds/cut/triangles_plain.py, so that both find the same. */
#include <math.h>
#include <stdint.h>

#define BUCKETS 256
#define CHUNK 32

/* How far x_ij, x_ik and x_jk violate the worst of four inequalities, of which no two can be violated at once: the sum
 * of all three is at least -1, and so it is with the signs of two of them changed. */
static inline double violated(double ij, double ik, double jk) {
    const double both = fabs(ik + jk) - ij, other = fabs(ik - jk) + ij;
    return (both > other ? both : other) - 1.0;
}

/* Which one: 0 where no sign changes, 1, 2, 3 where those of both but x_ij, x_ik, x_jk do. */
static inline int32_t kind_of(double ij, double ik, double jk) {
    if (fabs(ik + jk) - ij > fabs(ik - jk) + ij) return ik + jk > 0.0 ? 1 : 0;
    return jk > ik ? 2 : 3;
}

typedef struct {
    double margin, width;
    int64_t count[BUCKETS];
    int64_t least, in_last, taken, most, found; /* what is written: all above bucket `least`, and so many of it */
    int32_t *out;
} Sieve;

/* The bucket of a violation above the margin, most violated last; none exceeds 2 by more than rounding. */
static inline int64_t bucket(const Sieve *s, double by) {
    const int64_t at = (int64_t)((by - s->margin) / s->width);
    return at < BUCKETS ? at : BUCKETS - 1;
}

static void write(Sieve *s, int64_t i, int64_t j, int64_t k, double by, int32_t kind) {
    const int64_t at = bucket(s, by);
    if (at < s->least || s->found == s->most || (at == s->least && s->taken++ >= s->in_last)) return;
    int32_t *to = s->out + 4 * s->found++;
    to[0] = (int32_t)i, to[1] = (int32_t)j, to[2] = (int32_t)k, to[3] = kind;
}

/* All triangles i < j < k in ascending order, counted by bucket or written. */
static void pass(Sieve *s, int64_t n, const double *x) {
    double by[CHUNK];
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = i + 1; j < n; ++j) {
            const double ij = x[i * n + j], *row_i = x + i * n, *row_j = x + j * n;
            for (int64_t first = j + 1; first < n; first += CHUNK) {
                const int64_t size = n - first < CHUNK ? n - first : CHUNK;
                int any = 0;
                for (int64_t c = 0; c < size; ++c) by[c] = violated(ij, row_i[first + c], row_j[first + c]);
                for (int64_t c = 0; c < size; ++c) any |= by[c] > s->margin;
                if (!any) continue;
                for (int64_t c = 0; c < size; ++c) {
                    const int64_t k = first + c;
                    if (!(by[c] > s->margin)) continue;
                    if (s->out) write(s, i, j, k, by[c], kind_of(ij, row_i[k], row_j[k]));
                    else ++s->count[bucket(s, by[c])];
                }
            }
        }
}

/* The triangles i < j < k of x [n, n] violated by more than `margin`, of which `most` at most: the most violated, by
 * buckets, and of the last bucket that has room the first. Returns how many were written to out [most, 4]: i, j, k and
 * the kind. */
int64_t lk_triangles(int64_t n, const double *x, double margin, int64_t most, int32_t *out) {
    Sieve s = {.margin = margin, .width = (2.0 - margin) / BUCKETS, .least = BUCKETS, .most = most};
    int64_t left = most;
    pass(&s, n, x);
    while (s.least > 0 && left > 0) left -= s.count[--s.least];
    s.in_last = s.least < BUCKETS ? s.count[s.least] + (left < 0 ? left : 0) : 0;
    s.out = out;
    pass(&s, n, x);
    return s.found;
}
