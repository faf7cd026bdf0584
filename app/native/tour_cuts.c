/* Subtour elimination (app/bounds/tour/separation.py): violated intervals of a tour, phases of minimum cuts. */
#include "common.h"

#define NONE (INT64_MIN / 4) /* below every value; changes by edges keep it so */

/* Largest values below each vertex of a binary tree over places, with what was added to all of them. */
typedef struct {
    int64_t size, *most, *added; /* leaves: a power of 2; [2 size] */
} Places;

static void refresh(const Places *t, int64_t vertex) {
    for (; vertex; vertex /= 2) {
        const int64_t left = t->most[2 * vertex], right = t->most[2 * vertex + 1];
        t->most[vertex] = (left < right ? right : left) + t->added[vertex];
    }
}

static void set_place(const Places *t, int64_t place, int64_t value) {
    t->most[t->size + place] = value;
    refresh(t, (t->size + place) / 2);
}

/* Add to all places from `first` on. */
static void add_from(const Places *t, int64_t first, int64_t value) {
    int64_t vertex = t->size + first;
    t->most[vertex] += value;
    t->added[vertex] += value;
    for (; vertex > 1; vertex /= 2) {
        if (vertex % 2 == 0) {
            t->most[vertex + 1] += value;
            t->added[vertex + 1] += value;
        }
        const int64_t left = t->most[vertex & ~1], right = t->most[vertex | 1];
        t->most[vertex / 2] = (left < right ? right : left) + t->added[vertex / 2];
    }
}

/* The first place of the largest value. */
static int64_t first_most(const Places *t) {
    int64_t vertex = 1;
    while (vertex < t->size) vertex = 2 * vertex + (t->most[2 * vertex] < t->most[2 * vertex + 1]);
    return vertex - t->size;
}

/* For each place i of a tour the interval i..end[i], of two cities or more and not all, of the largest excess:
 * the weights of the edges inside it, in units of `one`, less its cities but one. Of equal ones the shortest.
 * start, last, weight: edges by their first place, their last places and weights; most, added [2 size]: scratch. */
void lk_intervals(int64_t n, const int64_t *start, const int32_t *last, const int64_t *weight, int64_t one,
                      int64_t size, int64_t *most, int64_t *added, int64_t *excess, int32_t *end) {
    const Places t = {size, most, added};
    for (int64_t v = 0; v < 2 * size; ++v) {
        most[v] = NONE;
        added[v] = 0;
    }
    for (int64_t i = n - 2; i >= 0; --i) {
        set_place(&t, i + 1, -(i + 1) * one);
        for (int64_t e = start[i]; e < start[i + 1]; ++e) add_from(&t, last[e], weight[e]);
        if (i == 0) set_place(&t, n - 1, NONE);
        end[i] = (int32_t)first_most(&t);
        excess[i] = most[1] + i * one;
    }
}

/* Stoer and Wagner's phases of a graph with weights joined [n, n], which it merges: of phase k the last two cities
 * before[k], last[k] and what joins the last one to all others. alive, taken, joins [n]: scratch. */
void lk_cut_phases(int64_t n, double *joined, int32_t *before, int32_t *last, double *value, int32_t *alive,
                       uint8_t *taken, double *joins) {
    for (int64_t c = 0; c < n; ++c) alive[c] = (int32_t)c;
    int64_t left = n;
    for (int64_t phase = 0; left > 2; ++phase, --left) {
        for (int64_t k = 0; k < left; ++k) {
            joins[alive[k]] = joined[alive[0] * n + alive[k]];
            taken[alive[k]] = 0;
        }
        int64_t at = alive[0], earlier = at;
        taken[at] = 1;
        for (int64_t step = 1; step < left; ++step) {
            int64_t next = -1;
            for (int64_t k = 0; k < left; ++k) {
                const int32_t c = alive[k];
                if (!taken[c] && (next < 0 || joins[c] > joins[next])) next = c;
            }
            earlier = at;
            at = next;
            taken[at] = 1;
            value[phase] = joins[at];
            for (int64_t k = 0; k < left; ++k) joins[alive[k]] += joined[at * n + alive[k]];
        }
        before[phase] = (int32_t)earlier;
        last[phase] = (int32_t)at;
        int64_t kept = 0;
        for (int64_t k = 0; k < left; ++k) {
            const int32_t c = alive[k];
            joined[earlier * n + c] += joined[at * n + c];
            joined[c * n + earlier] = joined[earlier * n + c];
            if (c != at) alive[kept++] = c;
        }
        joined[earlier * n + earlier] = 0;
    }
}
