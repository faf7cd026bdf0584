/* Local search for linear arrangements, and programs over all subsets of small ones. app/search/arrangement/plain.py and
   app/bounds/arrangement/exact.py have the same without kernels, with the same results; search.py there says what the parts
   are. */
#include <stdlib.h>

#include "common.h"
#include "heap.h"
#include "random.h"

enum { CUT, FRONT, SPAN };
#define WINDOW 8
#define EVERY 128
#define NEAR_MOVE 8
#define REACH 512
#define DRAWS 4096
#define MOST_DOUBLED 32

typedef struct {
    int64_t n, gap, largest;
    const int64_t *ptr;
    const int32_t *near;
    const int64_t *weight, *escape, *heats, *shares;
    const int32_t *low, *high;
    int32_t *at, *place;
    int64_t *value, *fresh;
    int32_t *critical, *where, *journal, *best_order;
    int64_t *table;
    int64_t criticals, entries, known, whole, cost, limit, soft, best, steps, found_at, turn, turns, round;
    uint64_t random;
} Search;

INLINE int64_t penalty(const Search *s, int64_t x) {
    if (!s->largest) return x;
    return x > s->soft ? x - s->soft : 0;
}

/* ---- what is critical: gaps above the limit, or nodes with an edge that is longer */

static void critical_set(Search *s, int32_t i, int is) {
    const int32_t at = s->where[i];
    if (is == (at >= 0)) return;
    if (is) {
        s->where[i] = (int32_t)s->criticals;
        s->critical[s->criticals++] = i;
        return;
    }
    const int32_t last = s->critical[--s->criticals];
    s->critical[at] = last;
    s->where[last] = at;
    s->where[i] = -1;
}

static int64_t span_at(const Search *s, int32_t v, int64_t p) {
    int64_t most = 0;
    for (int64_t e = s->ptr[v]; e < s->ptr[v + 1]; e++) {
        const int64_t d = p - s->place[s->near[e]];
        if (d > most) most = d;
        if (-d > most) most = -d;
    }
    return most;
}

/* ---- the state from its order */

static void gaps(Search *s) {
    const int64_t n = s->n;
    int64_t now = 0;
    memset(s->value, 0, (size_t)n * sizeof *s->value);
    if (s->gap == CUT) {
        for (int64_t g = 0; g < n; g++) {
            const int32_t v = s->at[g];
            for (int64_t e = s->ptr[v]; e < s->ptr[v + 1]; e++)
                now += s->place[s->near[e]] > g ? s->weight[e] : -s->weight[e];
            s->value[g] = now;
        }
        return;
    }
    for (int64_t g = 0; g < n; g++) {
        const int32_t v = s->at[g];
        int64_t last = g;
        for (int64_t e = s->ptr[v]; e < s->ptr[v + 1]; e++)
            if (s->place[s->near[e]] > last) last = s->place[s->near[e]];
        s->value[g] += 1;
        s->value[last] -= 1;
    }
    for (int64_t g = 0; g < n; g++) s->value[g] = now += s->value[g];
}

/* What the order pays above the limit, and what is critical. */
static void weigh(Search *s) {
    s->cost = s->criticals = 0;
    s->soft = s->limit - (s->limit * s->shares[s->round & 3] >> 8);
    for (int64_t i = 0; i < s->n; i++) s->where[i] = -1;
    for (int64_t i = 0; i < s->n; i++) {
        if (s->gap == SPAN) {
            for (int64_t e = s->ptr[i]; e < s->ptr[i + 1]; e++)
                if (s->place[s->near[e]] > s->place[i]) s->cost += penalty(s, s->place[s->near[e]] - s->place[i]);
            if (span_at(s, (int32_t)i, s->place[i]) > s->limit) critical_set(s, (int32_t)i, 1);
        } else {
            s->cost += penalty(s, s->value[i]);
            if (s->largest && s->value[i] > s->limit) critical_set(s, (int32_t)i, 1);
        }
    }
}

static int64_t largest(const Search *s) {
    int64_t most = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t each = s->gap == SPAN ? span_at(s, (int32_t)i, s->place[i]) : s->value[i];
        if (each > most) most = each;
    }
    return most;
}

/* ---- the best order, by the moves that lead to it */

static void shift(const Search *s, int32_t *order, int64_t i, int64_t j) {
    const int32_t v = order[i];
    if (s->gap == SPAN) {
        order[i] = order[j];
        order[j] = v;
        return;
    }
    if (i < j) memmove(order + i, order + i + 1, (size_t)(j - i) * sizeof *order);
    if (i > j) memmove(order + j + 1, order + j, (size_t)(i - j) * sizeof *order);
    order[j] = v;
}

/* The best order is up to date, and the journal has what came after it. */
void lk_arrange_settle(Search *s) {
    for (int64_t k = 0; k < s->known; k++) shift(s, s->best_order, s->journal[2 * k], s->journal[2 * k + 1]);
    s->entries -= s->known;
    memmove(s->journal, s->journal + 2 * s->known, (size_t)(2 * s->entries) * sizeof *s->journal);
    s->known = 0;
}

static void note(Search *s, int64_t i, int64_t j) {
    if (!s->whole) return;
    if (s->entries == s->n) {
        lk_arrange_settle(s);
        if (s->entries == s->n) {
            s->whole = s->entries = 0;
            return;
        }
    }
    s->journal[2 * s->entries] = (int32_t)i;
    s->journal[2 * s->entries++ + 1] = (int32_t)j;
}

/* The order now is the best one. */
static void keep(Search *s) {
    s->found_at = s->steps;
    if (s->whole) {
        s->known = s->entries;
        return;
    }
    memcpy(s->best_order, s->at, (size_t)s->n * sizeof *s->at);
    s->entries = s->known = 0;
    s->whole = 1;
}

static void judge(Search *s) {
    if (!s->largest) {
        if (s->cost < s->best) {
            s->best = s->cost;
            keep(s);
        }
        return;
    }
    while (!s->criticals && s->best > 0) {
        s->best = largest(s);
        s->limit = s->best - 1;
        keep(s);
        weigh(s);
    }
}

/* The state is that of `at`. */
void lk_arrange_load(Search *s) {
    for (int64_t i = 0; i < s->n; i++) s->place[s->at[i]] = (int32_t)i;
    if (s->gap != SPAN) gaps(s);
    weigh(s);
}

/* ---- moves */

static int64_t last_but(const Search *s, int32_t x, int32_t v) {
    int64_t last = s->place[x];
    for (int64_t e = s->ptr[x]; e < s->ptr[x + 1]; e++) {
        const int32_t u = s->near[e];
        if (u != v && s->place[u] > last) last = s->place[u];
    }
    return last;
}

/* fresh[k]: what gap min(i, j) + k is worth where v goes from place i to j. */
static void foresee(Search *s, int32_t v, int64_t i, int64_t j) {
    const int64_t first = i < j ? i : j, end = i < j ? j : i, size = end - first;
    int64_t *fresh = s->fresh, now = 0;
    memset(fresh, 0, (size_t)(size + 1) * sizeof *fresh);
#define FROM(g, amount) \
    do { \
        const int64_t from_ = (g) < first ? first : (g); \
        if (from_ < end) fresh[from_ - first] += (amount); \
    } while (0)
    if (s->gap == CUT) {
        int64_t all = 0;
        for (int64_t e = s->ptr[v]; e < s->ptr[v + 1]; e++) {
            const int64_t w = s->weight[e], p = s->place[s->near[e]];
            all += w;
            if (i < j)
                FROM(p - 1, 2 * w);
            else
                FROM(p + 1, -2 * w);
        }
        now = i < j ? -all : all;
    } else {
        int64_t last = -1;
        for (int64_t e = s->ptr[v]; e < s->ptr[v + 1]; e++) {
            const int32_t x = s->near[e];
            const int64_t p = s->place[x];
            if (p > last) last = p;
            if (i < j) {
                if (p > end) continue;
                const int64_t to = last_but(s, x, v);
                FROM(to - 1, 1);
            } else {
                if (p >= end) continue;
                const int64_t to = last_but(s, x, v);
                FROM(to + 1, -1);
            }
        }
        if (i < j) {
            if (last > i + 1) {
                now = -1;
                FROM(last - 1, 1);
            }
        } else {
            now = last >= first;
            if (last >= first) FROM(last + 1, -1);
        }
    }
#undef FROM
    for (int64_t k = 0; k < size; k++) {
        const int64_t beside = first + k + (i < j ? 1 : -1);
        now += fresh[k];
        fresh[k] = (beside < 0 ? 0 : s->value[beside]) + now;
    }
}

static void put(Search *s, int64_t i, int64_t j) {
    shift(s, s->at, i, j);
    const int64_t first = i < j ? i : j, end = i < j ? j : i;
    for (int64_t k = first; k <= end; k++) s->place[s->at[k]] = (int32_t)k;
    note(s, i, j);
}

static void set_value(Search *s, int64_t g, int64_t value) {
    s->cost += penalty(s, value) - penalty(s, s->value[g]);
    s->value[g] = value;
    if (s->largest) critical_set(s, (int32_t)g, value > s->limit);
}

/* By how much a move may be worse. */
static int64_t slack(Search *s) {
    const int64_t heat = s->heats[s->round & 3], cool = ((s->turns - s->turn) << 10) / s->turns;
    const int64_t draw = s->escape[random_bits(&s->random) % DRAWS];
    return ((heat * cool * cool) >> 20) * draw >> 24;
}

static void insert(Search *s, int32_t v, int64_t j) {
    const int64_t i = s->place[v], first = i < j ? i : j, size = i < j ? j - i : i - j;
    foresee(s, v, i, j);
    int64_t change = 0, least = 0, stop = 0;
    for (int64_t k = 0; k < size; k++) {
        const int64_t g = i < j ? i + k : i - 1 - k;
        change += penalty(s, s->fresh[g - first]) - penalty(s, s->value[g]);
        if (change < least) {
            least = change;
            stop = k + 1;
        }
    }
    if (!stop) {
        if (change > slack(s)) return;
        stop = size;
    }
    for (int64_t k = 0; k < stop; k++) {
        const int64_t g = i < j ? i + k : i - 1 - k;
        set_value(s, g, s->fresh[g - first]);
    }
    put(s, i, i < j ? i + stop : i - stop);
    judge(s);
}

static int64_t moved(const Search *s, int32_t v, int64_t i, int64_t j, int32_t but) {
    int64_t change = 0;
    for (int64_t e = s->ptr[v]; e < s->ptr[v + 1]; e++) {
        const int32_t x = s->near[e];
        if (x == but) continue;
        const int64_t p = s->place[x];
        change += penalty(s, j < p ? p - j : j - p) - penalty(s, i < p ? p - i : i - p);
    }
    return change;
}

static void refresh(Search *s, int32_t v) {
    critical_set(s, v, span_at(s, v, s->place[v]) > s->limit);
    for (int64_t e = s->ptr[v]; e < s->ptr[v + 1]; e++) {
        const int32_t x = s->near[e];
        critical_set(s, x, span_at(s, x, s->place[x]) > s->limit);
    }
}

static void swap(Search *s, int32_t v, int64_t j) {
    const int64_t i = s->place[v];
    const int32_t u = s->at[j];
    const int64_t change = moved(s, v, i, j, u) + moved(s, u, j, i, v);
    if (change > 0 && change > slack(s)) return;
    s->cost += change;
    s->at[i] = u, s->at[j] = v;
    s->place[u] = (int32_t)i, s->place[v] = (int32_t)j;
    note(s, i, j);
    refresh(s, v);
    refresh(s, u);
    judge(s);
}

/* ---- windows: the best order of some nodes that follow each other, by a program over their subsets */

static void window(Search *s) {
    const int64_t first = random_below(&s->random, (uint32_t)s->n), high = s->high[s->at[first]];
    const int64_t k = high - first < WINDOW ? high - first : WINDOW, end = first + k;
    if (k < 3) return;
    int64_t *worth = s->table, *least = s->table + (1 << WINDOW), own[WINDOW], inner[WINDOW][WINDOW];
    const int64_t base = first ? s->value[first - 1] : 0, all = (int64_t)1 << k;
    int32_t node[WINDOW];
    for (int64_t a = 0; a < k; a++) node[a] = s->at[first + a];
    if (s->gap == CUT) {
        memset(inner, 0, sizeof inner);
        for (int64_t a = 0; a < k; a++) {
            own[a] = 0;
            for (int64_t e = s->ptr[node[a]]; e < s->ptr[node[a] + 1]; e++) {
                const int64_t p = s->place[s->near[e]];
                own[a] += p < first ? -s->weight[e] : s->weight[e];
                if (p >= first && p < end) inner[a][p - first] = s->weight[e];
            }
        }
        worth[0] = base;
        for (int64_t set = 1; set < all; set++) {
            int64_t a = 0;
            while (!(set >> a & 1)) a++;
            worth[set] = worth[set & (set - 1)] + own[a];
            for (int64_t b = a + 1; b < k; b++)
                if (set >> b & 1) worth[set] -= 2 * inner[a][b];
        }
    } else {
        int64_t near[WINDOW], beyond[WINDOW];
        for (int64_t set = 0; set < all; set++) worth[set] = 0;
        for (int64_t a = 0; a < k; a++) {
            near[a] = beyond[a] = 0;
            for (int64_t e = s->ptr[node[a]]; e < s->ptr[node[a] + 1]; e++) {
                const int32_t x = s->near[e];
                const int64_t p = s->place[x];
                if (p >= end) beyond[a] = 1;
                if (p >= first && p < end) near[a] |= (int64_t)1 << (p - first);
                if (p >= first) continue;
                int64_t seen = 0; /* x is before the window: what it has there, from its first one on */
                for (int64_t f = s->ptr[x]; f < s->ptr[x + 1]; f++) {
                    const int64_t q = s->place[s->near[f]];
                    if (q >= end) seen |= all;
                    if (q >= first && q < end) seen |= (int64_t)1 << (q - first);
                }
                if (seen < all && !(seen & (((int64_t)1 << a) - 1))) worth[seen] -= 1;
            }
        }
        for (int64_t a = 0; a < k; a++)
            for (int64_t set = 0; set < all; set++)
                if (set >> a & 1) worth[set] += worth[set ^ (int64_t)1 << a];
        for (int64_t set = 0; set < all; set++) {
            worth[set] += base;
            for (int64_t a = 0; a < k; a++)
                if (set >> a & 1) worth[set] += beyond[a] || (near[a] & ~set);
        }
    }
    least[0] = 0;
    for (int64_t set = 1; set < all; set++) {
        int64_t best = INT64_MAX;
        for (int64_t a = 0; a < k; a++)
            if (set >> a & 1 && least[set ^ (int64_t)1 << a] < best) best = least[set ^ (int64_t)1 << a];
        least[set] = best + penalty(s, worth[set]);
    }
    int64_t now = 0;
    for (int64_t g = first; g < end; g++) now += penalty(s, s->value[g]);
    if (least[all - 1] >= now) return;
    int32_t wanted[WINDOW];
    for (int64_t set = all - 1, g = end - 1; set; g--) {
        int64_t a = 0;
        while (!(set >> a & 1) || least[set] != least[set ^ (int64_t)1 << a] + penalty(s, worth[set])) a++;
        wanted[g - first] = node[a];
        set_value(s, g, worth[set]);
        set ^= (int64_t)1 << a;
    }
    for (int64_t g = first; g < end; g++)
        if (s->place[wanted[g - first]] != g) put(s, s->place[wanted[g - first]], g);
    judge(s);
}

/* ---- steps */

static int64_t clamped(int64_t j, int64_t low, int64_t high) { return j < low ? low : j > high ? high : j; }

static int64_t beside(Search *s, int32_t v) {
    const uint32_t degree = (uint32_t)(s->ptr[v + 1] - s->ptr[v]);
    return s->place[s->near[s->ptr[v] + random_below(&s->random, degree)]];
}

/* A place for v: near its own, near a neighbour, or between two. */
static int64_t aim(Search *s, int32_t v, uint64_t way) {
    const int64_t i = s->place[v];
    if (way == 0) {
        const uint32_t d = random_below(&s->random, 2 * NEAR_MOVE);
        return d < NEAR_MOVE ? i - 1 - d : i + 1 + d - NEAR_MOVE;
    }
    int64_t j = beside(s, v);
    if (way == 1) j = (j + beside(s, v)) >> 1;
    return j + random_below(&s->random, 5) - 2;
}

static void step_gap(Search *s) {
    const uint64_t draw = random_bits(&s->random);
    int32_t v;
    if (s->largest && s->criticals && draw & 3) {
        const int64_t g = s->critical[random_below(&s->random, (uint32_t)s->criticals)];
        const int64_t low = s->low[s->at[g]], high = s->high[s->at[g]] - 1;
        const uint32_t d = random_below(&s->random, 2 * NEAR_MOVE);
        v = s->at[clamped(d < NEAR_MOVE ? g - d : g + 1 + d - NEAR_MOVE, low, high)];
    } else
        v = (int32_t)random_below(&s->random, (uint32_t)s->n);
    const int64_t i = s->place[v];
    int64_t j = clamped(aim(s, v, draw >> 2 & 3), s->low[v], s->high[v] - 1);
    j = clamped(j, i - REACH, i + REACH);
    if (i != j) insert(s, v, j);
}

static void step_span(Search *s) {
    const uint64_t draw = random_bits(&s->random);
    int32_t v;
    if (s->criticals && draw & 7)
        v = s->critical[random_below(&s->random, (uint32_t)s->criticals)];
    else
        v = (int32_t)random_below(&s->random, (uint32_t)s->n);
    int64_t first = s->n, last = -1;
    for (int64_t e = s->ptr[v]; e < s->ptr[v + 1]; e++) {
        const int64_t p = s->place[s->near[e]];
        if (p < first) first = p;
        if (p > last) last = p;
    }
    const int64_t from = last - s->limit, to = first + s->limit;
    int64_t j;
    if (from <= to && draw >> 3 & 3)
        j = from + random_below(&s->random, (uint32_t)(to - from + 1));
    else
        j = ((first + last) >> 1) + random_below(&s->random, 2 * NEAR_MOVE + 1) - NEAR_MOVE;
    j = clamped(j, s->low[v], s->high[v] - 1);
    if (j != s->place[v]) swap(s, v, j);
}

/* A round ends: the next begins from the best order, and is twice as long, up to a limit. */
static void end_round(Search *s) {
    if (s->whole) {
        lk_arrange_settle(s);
        s->entries = 0;
    }
    memcpy(s->at, s->best_order, (size_t)s->n * sizeof *s->at);
    s->entries = s->known = 0;
    s->whole = 1;
    s->turn = 0;
    s->round++;
    if (s->round <= MOST_DOUBLED && (s->round & 3) == 0) s->turns *= 2;
    lk_arrange_load(s);
}

/* Make so many steps. */
void lk_arrange_run(Search *s, int64_t steps) {
    for (int64_t k = 0; k < steps && s->best > 0; k++) {
        s->steps++;
        if (s->gap == SPAN)
            step_span(s);
        else if (s->steps % EVERY == 0)
            window(s);
        else
            step_gap(s);
        if (++s->turn == s->turns) end_round(s);
    }
}

/* ---- small graphs */

/* The least value of all orders, by a program over subsets, n at most 30; order [n] is one of them, nodes from last to first.
   near [n]: neighbours as bits; weight [n, n]; least, worth [2^n], worth for cuts alone. */
int64_t lk_arrange_exact(int64_t n, int64_t gap, int64_t largest_one, const uint64_t *near, const int64_t *weight,
                         int64_t *least, int64_t *worth, int32_t *order) {
    const int64_t all = (int64_t)1 << n;
    least[0] = 0;
    if (gap == CUT) worth[0] = 0;
    for (int64_t set = 1; set < all; set++) {
        int64_t value = 0, best = INT64_MAX;
        if (gap == CUT) {
            int64_t a = 0;
            while (!(set >> a & 1)) a++;
            value = worth[set & (set - 1)];
            for (int64_t b = 0; b < n; b++) value += set >> b & 1 ? -weight[a * n + b] : weight[a * n + b];
            worth[set] = value;
        } else
            for (int64_t a = 0; a < n; a++) value += set >> a & 1 && near[a] & ~(uint64_t)set;
        for (int64_t a = 0; a < n; a++)
            if (set >> a & 1 && least[set ^ (int64_t)1 << a] < best) best = least[set ^ (int64_t)1 << a];
        least[set] = largest_one ? (best > value ? best : value) : best + value;
    }
    for (int64_t set = all - 1, k = 0; set; k++) {
        int64_t a = -1, best = INT64_MAX;
        for (int64_t b = 0; b < n; b++)
            if (set >> b & 1 && least[set ^ (int64_t)1 << b] < best) {
                best = least[set ^ (int64_t)1 << b];
                a = b;
            }
        order[k] = (int32_t)a;
        set ^= (int64_t)1 << a;
    }
    return least[all - 1];
}

typedef struct {
    int64_t n, width, left;
    const int64_t *far;
    int32_t *order;
    uint8_t *used;
} Fit;

/* due: the last place of each node that is not placed. */
static int64_t fit(Fit *f, int64_t p, const int64_t *due) {
    const int64_t n = f->n;
    if (p == n) return 1;
    if (f->left-- <= 0) return -1;
    int64_t count[64] = {0}, own[64];
    for (int64_t v = 0; v < n; v++)
        if (!f->used[v]) {
            if (due[v] < p) return 0;
            count[due[v] < n ? due[v] : n - 1]++;
        }
    for (int64_t t = p, sum = 0; t < n; t++)
        if ((sum += count[t]) > t - p + 1) return 0;
    uint8_t tried[64] = {0};
    for (;;) {
        int64_t v = -1;
        for (int64_t u = 0; u < n; u++)
            if (!f->used[u] && !tried[u] && (v < 0 || due[u] < due[v])) v = u;
        if (v < 0) return 0;
        tried[v] = 1;
        f->used[v] = 1;
        f->order[p] = (int32_t)v;
        for (int64_t u = 0; u < n; u++) {
            const int64_t most = p + f->width * f->far[v * n + u];
            own[u] = due[u] < most ? due[u] : most;
        }
        const int64_t found = fit(f, p + 1, own);
        if (found) return found;
        f->used[v] = 0;
    }
}

/* Whether a connected graph of up to 64 nodes has an order [n] in which no edge is longer than `width`: 1, 0, or -1 where
   more than `most` beginnings of orders would have to be looked at. far [n, n]: distances; used [n] of zeros. Returns what
   is left of `most` in left [1]. */
int64_t lk_arrange_fit(int64_t n, int64_t width, int64_t most, const int64_t *far, int32_t *order, uint8_t *used,
                       int64_t *left) {
    Fit f = {n, width, most, far, order, used};
    int64_t due[64];
    for (int64_t v = 0; v < n; v++) due[v] = n - 1;
    const int64_t found = fit(&f, 0, due);
    *left = f.left;
    return found;
}

/* ---- plain orders */

#define WALKS 3

/* A walk by breadth: level [n], -1 in the component before, and queue [n], its nodes; returns how many. */
static int64_t walk(const int64_t *ptr, const int32_t *near, int32_t root, int32_t *level, int32_t *queue) {
    int64_t all = 1;
    queue[0] = root;
    level[root] = 0;
    for (int64_t i = 0; i < all; i++)
        for (int64_t e = ptr[queue[i]]; e < ptr[queue[i] + 1]; e++)
            if (level[near[e]] < 0) {
                level[near[e]] = level[queue[i]] + 1;
                queue[all++] = near[e];
            }
    return all;
}

/* The last node of walks by breadth, each from the end of the one before: of the last level that of the least degree, then of
   the lowest number. level [n]: -1 in the component, before and after; queue [n]; count [1]: its nodes. */
static int32_t far_end(const int64_t *ptr, const int32_t *near, int32_t root, int32_t *level, int32_t *queue, int64_t *count) {
    for (int k = 0; k < WALKS; k++) {
        const int64_t all = walk(ptr, near, root, level, queue);
        int32_t end = queue[all - 1];
        const int32_t last = level[end];
        for (int64_t i = all - 1; i >= 0 && level[queue[i]] == last; i--) {
            const int32_t v = queue[i];
            const int64_t more = (ptr[v + 1] - ptr[v]) - (ptr[end + 1] - ptr[end]);
            if (more < 0 || (more == 0 && v < end)) end = v;
        }
        root = end;
        *count = all;
        for (int64_t i = 0; i < all; i++) level[queue[i]] = -1;
    }
    return root;
}

/* An order [n] by breadth; sorted: of nodes that are met at once those of lower degree first (Cuthill and McKee 1969).
   begin [n]: each component begins with its first node there, or, walks: with an end that walks from that find.
   level, queue [n] of -1 and anything. */
void lk_arrange_levels(int64_t n, const int64_t *ptr, const int32_t *near, int64_t sorted, const int32_t *begin, int64_t walks,
                       int32_t *level, int32_t *queue, int32_t *order) {
    int64_t made = 0, size;
    for (int64_t k = 0; k < n; k++) {
        if (level[begin[k]] == -2) continue;
        const int32_t root = walks ? far_end(ptr, near, begin[k], level, queue, &size) : begin[k];
        int64_t done = made;
        order[made++] = root;
        level[root] = -2;
        for (; done < made; done++) {
            const int32_t v = order[done];
            const int64_t first = made;
            for (int64_t e = ptr[v]; e < ptr[v + 1]; e++) {
                const int32_t u = near[e];
                if (level[u] == -2) continue;
                level[u] = -2;
                order[made++] = u;
            }
            if (sorted) { /* by degree, then number (Shell's sort) */
                for (int64_t gap = (made - first) / 2; gap > 0; gap /= 2)
                    for (int64_t i = first + gap; i < made; i++) {
                        const int32_t u = order[i];
                        const int64_t degree = ptr[u + 1] - ptr[u];
                        int64_t j = i;
                        for (; j >= first + gap; j -= gap) {
                            const int32_t w = order[j - gap];
                            const int64_t other = ptr[w + 1] - ptr[w];
                            if (other < degree || (other == degree && w < u)) break;
                            order[j] = w;
                        }
                        order[j] = u;
                    }
            }
        }
    }
}

enum { INACTIVE, PREACTIVE, ACTIVE, NUMBERED };

static int sloan_more(Heap *heap, int64_t *priority, uint8_t *state, int32_t v) {
    priority[v]++;
    if (state[v] == INACTIVE) state[v] = PREACTIVE;
    return heap_push(heap, -priority[v] * (INT64_C(1) << 32) + v);
}

/* Sloan's order [n], of weights 2 and 1. Returns -1 without memory. level, queue [n] as above; priority [n]; state [n] of 0. */
int64_t lk_arrange_sloan(int64_t n, const int64_t *ptr, const int32_t *near, int32_t *level, int32_t *queue,
                         int64_t *priority, uint8_t *state, int32_t *order) {
    int64_t made = 0, size;
    for (int32_t low = 0; low < n; low++) {
        if (state[low] == NUMBERED) continue;
        const int32_t root = far_end(ptr, near, low, level, queue, &size);
        int64_t all = walk(ptr, near, root, level, queue);
        const int32_t end = queue[all - 1];
        for (int64_t i = 0; i < all; i++) level[queue[i]] = -1;
        all = walk(ptr, near, end, level, queue);
        for (int64_t i = 0; i < all; i++) {
            const int32_t v = queue[i];
            priority[v] = 2 * (int64_t)level[v] - (ptr[v + 1] - ptr[v] + 1);
        }
        Heap heap = {malloc(64 * sizeof(int64_t)), 0, 64};
        if (!heap.key) return -1;
        state[root] = PREACTIVE;
        if (heap_push(&heap, -priority[root] * (INT64_C(1) << 32) + root) < 0) {
            free(heap.key);
            return -1;
        }
        while (heap.count) {
            const int64_t top = heap_pop(&heap);
            const int32_t v = (int32_t)(top & INT64_C(0xFFFFFFFF));
            if (state[v] == NUMBERED || -priority[v] * (INT64_C(1) << 32) + v != top) continue;
            int failed = 0;
            if (state[v] == PREACTIVE)
                for (int64_t e = ptr[v]; e < ptr[v + 1]; e++)
                    if (state[near[e]] != NUMBERED) failed |= sloan_more(&heap, priority, state, near[e]) < 0;
            order[made++] = v;
            state[v] = NUMBERED;
            for (int64_t e = ptr[v]; e < ptr[v + 1]; e++) {
                const int32_t u = near[e];
                if (state[u] != PREACTIVE) continue;
                state[u] = ACTIVE;
                failed |= sloan_more(&heap, priority, state, u) < 0;
                for (int64_t f = ptr[u]; f < ptr[u + 1]; f++)
                    if (state[near[f]] != NUMBERED) failed |= sloan_more(&heap, priority, state, near[f]) < 0;
            }
            if (failed) {
                free(heap.key);
                return -1;
            }
        }
        free(heap.key);
    }
    return made;
}
