/* What a memory of episodes is to kernels (app/rl/replay.py). */
#ifndef LOCKSTEP_REPLAY_H
#define LOCKSTEP_REPLAY_H

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

int64_t lk_replay_collect(int64_t count, const int32_t *pick, const Episode *episode, const Returns *r, int64_t *integers,
                          float *values);

#endif
