/* A minibatch of the deep Q-learner from the memory of episodes to the gradient, in one call: what EpisodeReplay.sample
 * (app/rl/replay.py) and CompiledLessons.losses (app/rl/compiled_lesson.py) do one after the other. */
#include "lesson.h"
#include "replay.h"

int64_t lk_lesson_room(const Network *net, const World *world, Sample *sample);
int64_t lk_lesson(const Lesson *l, char *room);

/* States that are known by their totals: which feature table each has, over how many nodes embeddings are the mean, and its own
 * features. slot [slots] int32, a power of two and at least twice `room`: a state, or -1. */
typedef struct {
    int64_t slots, room, count, width, owns;
    int32_t *slot, *look;     /* [slots], [room] */
    int64_t *totals, *alive;  /* [room][width], [room] */
    float *own;               /* [room][owns] */
    uint64_t salt[2];
} KnownStates;

/* Where a minibatch is made. integers, values: as lk_replay_collect fills them; look, alive, own: of the states before and
 * then of those after. The last two are what a call lacks. */
typedef struct {
    const KnownStates *known;
    const Returns *returns;
    Lesson *lesson;
    Look *before, *after;
    int64_t *integers;
    float *values;
    int32_t *look;
    int64_t *alive;
    float *own;
    int64_t integers_room, bytes_room, integers_needed, bytes_needed;
} Minibatch;

enum { MADE, NOT_A_NUMBER, UNKNOWN, NO_ROOM, NO_STEP };
enum { INTEGERS = 6 }; /* of a transition beside totals and choices */

/* The slot of a state: its own, or the one where it would be. */
static int64_t slot_of(const KnownStates *k, const int64_t *totals) {
    uint64_t hash = 0;
    for (int64_t i = 0; i < k->width; ++i) hash = salted(hash ^ (uint64_t)totals[i], k->salt);
    for (int64_t at = (int64_t)(hash & (uint64_t)(k->slots - 1));; at = (at + 1) & (k->slots - 1)) {
        const int32_t state = k->slot[at];
        if (state < 0 || !memcmp(k->totals + state * k->width, totals, (size_t)k->width * sizeof *totals)) return at;
    }
}

/* Know states [count] from now on, of which some may be known; 0 where there is no room for all. */
int64_t lk_states_know(KnownStates *k, int64_t count, const int64_t *totals, const int32_t *look, const int64_t *alive,
                       const float *own) {
    for (int64_t i = 0; i < count; ++i) {
        const int64_t at = slot_of(k, totals + i * k->width), state = k->count;
        if (k->slot[at] >= 0) continue;
        if (state >= k->room) return 0;
        memcpy(k->totals + state * k->width, totals + i * k->width, (size_t)k->width * sizeof *totals);
        memcpy(k->own + state * k->owns, own + i * k->owns, (size_t)k->owns * sizeof *own);
        k->look[state] = look[i], k->alive[state] = alive[i];
        k->slot[at] = (int32_t)state;
        k->count = state + 1;
    }
    return 1;
}

/* How the states of a minibatch look, -1 of one that is unknown; 0 where there is one. */
static int look_up(const Minibatch *m, int64_t states, const int64_t *totals) {
    const KnownStates *k = m->known;
    int all = 1;
    for (int64_t i = 0; i < states; ++i) {
        const int32_t state = k->slot[slot_of(k, totals + i * k->width)];
        if (state < 0) {
            m->look[i] = -1, all = 0;
            continue;
        }
        m->look[i] = k->look[state], m->alive[i] = k->alive[state];
        memcpy(m->own + i * k->owns, k->own + state * k->owns, (size_t)k->owns * sizeof *m->own);
    }
    return all;
}

/* Integers that lk_replay_collect writes of transitions; -1 where one is no step of its episode. */
static int64_t integers_of(const Minibatch *m, int64_t count, const int32_t *pick, const Episode *episode) {
    int64_t steps = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (pick[2 * i + 1] < 0 || pick[2 * i + 1] >= episode[i].steps) return -1;
        steps += pick[2 * i + 1];
    }
    return (INTEGERS + 2 * m->returns->width + m->returns->n_step) * count + steps;
}

/* The transitions of pick [count][2] (any, step) of each episode: losses and gradient of m->lesson, whose weights, losses and
 * gradient are given. Returns MADE; or NOT_A_NUMBER, of a score; UNKNOWN, states whose look is -1 and whose totals m->integers has; NO_ROOM, of
 * what m says is needed; NO_STEP, of its episode. */
int64_t lk_minibatch(Minibatch *m, int64_t count, const int32_t *pick, const Episode *episode, char *room) {
    Lesson *l = m->lesson;
    m->integers_needed = integers_of(m, count, pick, episode);
    if (m->integers_needed < 0) return NO_STEP;
    if (m->integers_needed > m->integers_room) return NO_ROOM;
    lk_replay_collect(count, pick, episode, m->returns, m->integers, m->values);
    const int64_t *graphs = m->integers + count, *begin = graphs + 2 * count, *totals = graphs + 5 * count;
    const int64_t *chosen = totals + 2 * count * m->returns->width;
    if (!look_up(m, 2 * count, totals)) return UNKNOWN;
    *m->before = (Look){m->look, m->own, m->alive, 0, chosen, begin, begin + count};
    *m->after = (Look){m->look + count, m->own + count * m->known->owns, m->alive + count, 0, chosen, begin, begin + 2 * count};
    *l->sample = (Sample){.states = count, .every = l->net->paper, .graph = graphs};
    m->bytes_needed = lk_lesson_room(l->net, l->world, l->sample);
    if (m->bytes_needed > m->bytes_room) return NO_ROOM;
    l->nodes = graphs + count, l->returns = m->values, l->discounts = m->values + count, l->whole = count;
    return lk_lesson(l, room) ? NOT_A_NUMBER : MADE;
}
