/* Maximum coverage: greedy choices, and the exchange search; app/search/coverage/search.py describes the search and
 * its arrays, app/search/coverage/plain.py has the same functions with the same results. */
#include "random.h"

enum { PAIRS = 7 };                      /* two sets leave where these bits of a draw are 0 */

typedef struct {
    int64_t m, n;
    const int64_t *set_ptr, *element_ptr;   /* [m+1], [n+1] */
    const int32_t *elements, *sets;         /* [k] */
    const int64_t *weight;                  /* [n] */
    const int64_t *cost;                    /* [m], or null: all one */
    uint8_t *chosen, *best_chosen;          /* [m] */
    int32_t *times, *who;                   /* [n] by how many chosen sets an element is held; their numbers xored */
    int64_t *score, *free_at;               /* [m] */
    int32_t *inside, *place;                /* [m] the chosen sets as a list; places in it */
    int64_t budget, size, spent, value, best, steps, found_at, unsaved, sample, tenure;
    uint64_t random;
} Search;

INLINE int64_t cost(const Search *s, int32_t a) { return s->cost ? s->cost[a] : 1; }

/* ---- sets come and go ------------------------------------------------------------------------------------------ */

INLINE void add(Search *s, int32_t a) {
    for (int64_t j = s->set_ptr[a]; j < s->set_ptr[a + 1]; ++j) {
        const int32_t v = s->elements[j];
        const int64_t w = s->weight[v];
        const int32_t before = s->times[v]++;
        if (before == 0) {
            for (int64_t i = s->element_ptr[v]; i < s->element_ptr[v + 1]; ++i) s->score[s->sets[i]] -= w;
            s->score[a] += w;
        } else if (before == 1) {
            s->score[s->who[v]] -= w;
        }
        s->who[v] ^= a;
    }
    s->chosen[a] = 1;
    s->place[a] = (int32_t)s->size;
    s->inside[s->size++] = a;
    s->spent += cost(s, a);
    s->value += s->score[a];
}

INLINE void take_out(Search *s, int32_t a) {
    for (int64_t j = s->set_ptr[a]; j < s->set_ptr[a + 1]; ++j) {
        const int32_t v = s->elements[j];
        const int64_t w = s->weight[v];
        const int32_t left = --s->times[v];
        s->who[v] ^= a;
        if (left == 0) {
            for (int64_t i = s->element_ptr[v]; i < s->element_ptr[v + 1]; ++i) s->score[s->sets[i]] += w;
            s->score[a] -= w;
        } else if (left == 1) {
            s->score[s->who[v]] += w;
        }
    }
    const int32_t last = s->inside[--s->size];
    s->inside[s->place[a]] = last;
    s->place[last] = s->place[a];
    s->chosen[a] = 0;
    s->spent -= cost(s, a);
    s->value -= s->score[a];
}

INLINE void save(Search *s) {
    memset(s->best_chosen, 0, (size_t)s->m);
    for (int64_t i = 0; i < s->size; ++i) s->best_chosen[s->inside[i]] = 1;
    s->unsaved = 0;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

/* Of some chosen sets drawn the one whose loss, for its cost, is least; of equal ones that which may move since
 * longest, of these the first drawn. */
INLINE int32_t leaving(Search *s) {
    int32_t found = -1;
    double least = 0;
    for (int64_t i = 0; i < s->sample; ++i) {
        const int32_t a = s->inside[random_below(&s->random, (uint32_t)s->size)];
        const double loss = s->cost ? (double)s->score[a] / (double)s->cost[a] : (double)s->score[a];
        if (found < 0 || loss < least || (loss == least && s->free_at[a] < s->free_at[found])) {
            found = a;
            least = loss;
        }
    }
    return found;
}

/* Of the sets outside that may move, and that the budget has room for, the one of the largest gain, or of the largest
 * for its cost; of equal ones that which may move since longest, of these the first. -1: none gains. */
INLINE int32_t coming(const Search *s, int dense) {
    const int64_t room = s->budget - s->spent;
    int32_t found = -1;
    if (s->cost && dense) {
        double most = 0;
        for (int32_t a = 0; a < s->m; ++a) {
            if (s->chosen[a] || s->score[a] <= 0 || s->free_at[a] > s->steps || s->cost[a] > room) continue;
            const double gain = (double)s->score[a] / (double)s->cost[a];
            if (gain > most || (gain == most && s->free_at[a] < s->free_at[found])) {
                found = a;
                most = gain;
            }
        }
        return found;
    }
    int64_t most = 0;
    for (int32_t a = 0; a < s->m; ++a) {
        const int64_t gain = s->score[a];
        if (gain < most || gain == 0 || s->chosen[a] || s->free_at[a] > s->steps || cost(s, a) > room) continue;
        if (gain > most || s->free_at[a] < s->free_at[found]) {
            found = a;
            most = gain;
        }
    }
    return found;
}

/* One or two sets leave, and others come as long as the budget has room. */
INLINE void exchange(Search *s) {
    ++s->steps;
    const uint64_t draw = random_bits(&s->random);
    int64_t gone = draw >> 32 & PAIRS ? 1 : 2;
    if (s->unsaved && s->size) save(s);
    for (; gone && s->size; --gone) {
        const int32_t a = leaving(s);
        take_out(s, a);
        s->free_at[a] = s->steps + 1 + (int64_t)random_below(&s->random, (uint32_t)s->tenure);
    }
    const int dense = (int)(draw & 1);
    while (s->spent < s->budget) {
        const int32_t a = coming(s, dense);
        if (a < 0) break;
        add(s, a);
        s->free_at[a] = s->steps;
    }
    if (s->value > s->best) {
        s->best = s->value;
        s->found_at = s->steps;
        s->unsaved = 1;
    }
}

void lk_coverage_exchange(Search *s, int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) exchange(s);
    if (s->unsaved) save(s);
}

/* From nothing chosen to `count` sets. */
void lk_coverage_load(Search *s, const int32_t *chosen, int64_t count) {
    memset(s->chosen, 0, (size_t)s->m);
    memset(s->times, 0, (size_t)s->n * sizeof *s->times);
    memset(s->who, 0, (size_t)s->n * sizeof *s->who);
    s->size = s->spent = s->value = 0;
    for (int64_t a = 0; a < s->m; ++a) {
        s->score[a] = 0;
        for (int64_t j = s->set_ptr[a]; j < s->set_ptr[a + 1]; ++j) s->score[a] += s->weight[s->elements[j]];
    }
    for (int64_t i = 0; i < count; ++i) add(s, chosen[i]);
}

/* ---- greedy choices -------------------------------------------------------------------------------------------- */

typedef struct {
    double *key;                         /* what a set gained, for its cost, when it was last looked at */
    int32_t *heap;                       /* the best on top: the largest key, of equal ones the lowest number */
    int64_t size;
} Lazy;

INLINE int before(const Lazy *h, int32_t a, int32_t b) {
    return h->key[a] > h->key[b] || (h->key[a] == h->key[b] && a < b);
}

static void sink(Lazy *h, int64_t at) {
    const int32_t a = h->heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= h->size) break;
        if (child + 1 < h->size && before(h, h->heap[child + 1], h->heap[child])) ++child;
        if (!before(h, h->heap[child], a)) break;
        h->heap[at] = h->heap[child];
        at = child;
    }
    h->heap[at] = a;
}

INLINE double gain_of(const int64_t *set_ptr, const int32_t *elements, const int64_t *weight, const int64_t *price,
                      const uint8_t *covered, int32_t a, int dense) {
    int64_t gain = 0;
    for (int64_t j = set_ptr[a]; j < set_ptr[a + 1]; ++j)
        if (!covered[elements[j]]) gain += weight[elements[j]];
    return price && dense ? (double)gain / (double)price[a] : (double)gain;
}

/* The set of the largest gain (dense: for its cost) that the budget has room for, again and again; gains only fall, so
 * that one which is still the largest when it is looked at again is the largest. covered [n] is what is held already,
 * key [m] and heap [m] are room. Returns how many are chosen, in `order`. */
int64_t lk_coverage_greedy(int64_t m, const int64_t *set_ptr, const int32_t *elements, const int64_t *weight,
                           const int64_t *price, int64_t budget, int64_t dense, uint8_t *covered, double *key,
                           int32_t *heap, int32_t *order) {
    Lazy h = {key, heap, 0};
    int64_t count = 0;
    for (int32_t a = 0; a < m; ++a) {
        key[a] = gain_of(set_ptr, elements, weight, price, covered, a, (int)dense);
        if (key[a] > 0) heap[h.size++] = a;
    }
    for (int64_t i = h.size / 2 - 1; i >= 0; --i) sink(&h, i);
    while (h.size) {
        const int32_t a = heap[0];
        const int fits = (price ? price[a] : 1) <= budget;
        const double gain = fits ? gain_of(set_ptr, elements, weight, price, covered, a, (int)dense) : 0;
        if (gain > 0 && gain < key[a]) {
            key[a] = gain;
            sink(&h, 0);
            continue;
        }
        heap[0] = heap[--h.size];
        if (h.size) sink(&h, 0);
        if (gain <= 0) continue;
        order[count++] = a;
        budget -= price ? price[a] : 1;
        for (int64_t j = set_ptr[a]; j < set_ptr[a + 1]; ++j) covered[elements[j]] = 1;
    }
    return count;
}
