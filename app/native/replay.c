/* Minibatches from a memory of episodes: what EpisodeReplay of app/rl/replay.py collects of its transitions. */
#include "common.h"

/* One episode; totals has `width` numbers of each state passed, one state more than steps. */
typedef struct {
    int64_t graph, finished, steps;
    const int64_t *actions;
    const double *rewards;
    const int64_t *totals;
} Episode;

/* powers [n_step + 1] of the discount. */
typedef struct {
    int64_t n_step, width;
    const double *powers;
} Returns;

/* order [count]: transitions by graph and step, equal ones as they come. */
static void sort_picks(int64_t count, const int32_t *pick, const Episode *episode, int64_t *order) {
    for (int64_t i = 0; i < count; ++i) {
        const int64_t graph = episode[i].graph;
        int64_t at = i;
        for (; at; --at) {
            const int64_t before = order[at - 1], other = episode[before].graph;
            if (other < graph || (other == graph && pick[2 * before + 1] <= pick[2 * i + 1])) break;
            order[at] = before;
        }
        order[at] = i;
    }
}

/* pick [count][2]: (any, step) of each episode. integers: order, graphs, nodes, begin, before, after [count] each, totals
 * [2][count][width] of the states before and after, and the choices that led to the latter, end to end from `begin` on, of which
 * the first `before` led to the former. values: discounted rewards of up to n_step steps [count], and the factors of the value
 * after them. Returns the choices, or -1 where a transition is no step of its episode. */
int64_t lk_replay_collect(int64_t count, const int32_t *pick, const Episode *episode, const Returns *r, int64_t *integers,
                          float *values) {
    int64_t *order = integers, *graphs = order + count, *nodes = graphs + count, *begin = nodes + count, *before = begin + count;
    int64_t *after = before + count, *totals = after + count, *chosen = totals + 2 * count * r->width, at = 0;
    const size_t state = (size_t)r->width * sizeof *totals;
    for (int64_t i = 0; i < count; ++i)
        if (pick[2 * i + 1] < 0 || pick[2 * i + 1] >= episode[i].steps) return -1;
    sort_picks(count, pick, episode, order);
    for (int64_t i = 0; i < count; ++i) {
        const Episode *e = episode + order[i];
        const int64_t t = pick[2 * order[i] + 1], end = t + r->n_step < e->steps ? t + r->n_step : e->steps;
        double sum = 0.0;
        for (int64_t j = t; j < end; ++j) sum += e->rewards[j] * r->powers[j - t];
        graphs[i] = e->graph, nodes[i] = e->actions[t];
        values[i] = (float)sum;
        values[count + i] = e->finished && end == e->steps ? 0.0f : (float)r->powers[end - t];
        memcpy(chosen + at, e->actions, (size_t)end * sizeof *chosen);
        begin[i] = at, before[i] = t, after[i] = end;
        at += end;
        memcpy(totals + i * r->width, e->totals + t * r->width, state);
        memcpy(totals + (count + i) * r->width, e->totals + end * r->width, state);
    }
    return at;
}
