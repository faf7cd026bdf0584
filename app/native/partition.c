/* Balanced partitions: groups of nodes for coarser graphs, and local searches that begin where blocks meet.
   app/blocks/plain.py does the same without kernels, move by move. */
#include <stdint.h>
#include <stdlib.h>

#include "sift.h"

/* Nodes in `order` [n] that are alone still join the group next to them with the largest weight^2 / size, so that no
   group is larger than `most` or holds nodes of two numbers in `within` [n]. group [n] 0..n-1 and total [n], the sizes,
   at the start; alone [n] ones, joined [n] zeros, met [n] room. */
void lk_partition_cluster(
    int64_t n, int64_t most, const int64_t *indptr, const int32_t *indices, const int64_t *weights, const int64_t *size,
    const int32_t *order, const int32_t *within, int32_t *group, int64_t *total, uint8_t *alone, int64_t *joined,
    int32_t *met
) {
    for (int64_t i = 0; i < n; i++) {
        const int32_t v = order[i];
        if (!alone[v]) continue;
        int32_t count = 0;
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) {
            const int32_t u = indices[e], g = group[u];
            if (within[u] != within[v] || total[g] + size[v] > most) continue;
            if (joined[g] == 0) met[count++] = g;
            joined[g] += weights[e];
        }
        double best = 0.0;
        int32_t into = -1;
        for (int32_t j = 0; j < count; j++) {
            const int32_t g = met[j];
            const double weight = (double)joined[g], rating = weight * weight / (double)(total[g] > 1 ? total[g] : 1);
            if (rating > best || (rating == best && into >= 0 && g < into)) {
                best = rating;
                into = g;
            }
            joined[g] = 0;
        }
        if (into < 0) continue;
        group[v] = into;
        total[into] += size[v];
        alone[v] = alone[into] = 0; /* `into` is the first node of its group */
    }
}

/* Nodes go, in order [n], to the group near them that they have the most weight to, so that no group is larger than
   `most` or holds nodes of two numbers in `within` [n]; ties by a hash of the group and `salt`. group [n] and total [n],
   the sizes of groups; joined [n] zeros, met [n] room. Returns how many went. */
int64_t lk_partition_spread(
    int64_t n, int64_t most, uint64_t salt, const int64_t *indptr, const int32_t *indices, const int64_t *weights,
    const int64_t *size, const int32_t *order, const int32_t *within, int32_t *group, int64_t *total, int64_t *joined,
    int32_t *met
) {
    int64_t moved = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t v = order[i], own = group[v];
        int32_t count = 0;
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) {
            const int32_t u = indices[e], g = group[u];
            if (within[u] != within[v] || (g != own && total[g] + size[v] > most)) continue;
            if (joined[g] == 0) met[count++] = g;
            joined[g] += weights[e];
        }
        int64_t best = 0;
        uint64_t tie = 0;
        int32_t into = own;
        for (int32_t j = 0; j < count; j++) {
            const int32_t g = met[j];
            const uint64_t hash = ((uint64_t)(uint32_t)g + 1) * salt;
            if (joined[g] > best || (joined[g] == best && hash > tie)) {
                best = joined[g];
                tie = hash;
                into = g;
            }
            joined[g] = 0;
        }
        if (into == own) continue;
        group[v] = into;
        total[own] -= size[v];
        total[into] += size[v];
        moved += 1;
    }
    return moved;
}

typedef struct {
    int64_t gain, tick;
    int32_t node, spare;
} Entry;

typedef struct {
    int64_t n, parts, slack;
    int64_t hub; /* entries of a row beyond which it is not looked at again when a neighbour moves */
    const int64_t *indptr;
    const int32_t *indices;
    const int64_t *weights; /* [nnz] */
    const int64_t *size;    /* [n] */
    int32_t *block;         /* [n] */
    int64_t *total;         /* [parts] */
    const int64_t *limit;   /* [parts] what a block may weigh; in the middle of a search `slack` more */
    const int32_t *order;   /* [seeds] nodes where searches begin */
    uint8_t *moved;         /* [n] whether a node has moved since the round began */
    int64_t *gain;          /* [n] that a node waits with; NONE: it does not wait */
    int64_t *joined;        /* [parts] zeros: weight between a node and each block */
    int32_t *met;           /* [parts] */
    int32_t *place;         /* [n] of -1: of a node in a corridor */
    const int32_t *pair;    /* [2 pairs] blocks that meet */
    const int64_t *begin;   /* [pairs + 1] of their nodes in `meet` */
    const int64_t *width;   /* [pairs] of corridors */
    const int32_t *meet;    /* nodes where two blocks met */
    uint8_t *changed;       /* [parts] whether a flow made less of what a block cuts */
    int64_t pairs, next_pair;
    int64_t seeds, next, patience, repair; /* repair: blocks only get rid of what is too much; HASTY */
    int64_t cut, over;      /* what is cut, and by how much blocks are too heavy */
} Blocks;

#define NONE INT64_MIN
enum { HASTY = 2 }; /* a repair after which nodes that gain more by a neighbour's move than before wait as they did */

typedef struct {
    Entry *entry;
    int64_t count, room, tick;
    int32_t *node, *from; /* what has been moved, from which block */
    int64_t moves, space;
} Course;

INLINE int before(Entry a, Entry b) { return a.gain > b.gain || (a.gain == b.gain && a.tick > b.tick); }

SIFTS(Entry, before, rise, sink)

/* Both return -1 without memory. */
INLINE int wait_with(Blocks *s, Course *c, int32_t v, int64_t gain) {
    if (c->count == c->room) {
        const int64_t room = c->room ? 2 * c->room : 64;
        Entry *more = realloc(c->entry, (size_t)room * sizeof *more);
        if (!more) return -1;
        c->entry = more;
        c->room = room;
    }
    rise(c->entry, c->count++, (Entry){gain, c->tick++, v, 0});
    s->gain[v] = gain;
    return 0;
}

INLINE int remember(Course *c, int32_t v, int32_t from) {
    if (c->moves == c->space) {
        const int64_t space = c->space ? 2 * c->space : 64;
        int32_t *node = realloc(c->node, (size_t)space * sizeof *node);
        if (node) c->node = node;
        int32_t *block = realloc(c->from, (size_t)space * sizeof *block);
        if (block) c->from = block;
        if (!node || !block) return -1;
        c->space = space;
    }
    c->node[c->moves] = v;
    c->from[c->moves++] = from;
    return 0;
}

INLINE Entry first_of(Course *c) {
    const Entry top = c->entry[0];
    c->count -= 1;
    sink(c->entry, c->count, 0, c->entry[c->count]);
    return top;
}

/* The block that node v does best to go to, -1: there is none. Ties go to the lighter block, then to the lower number. */
INLINE int32_t best_block(Blocks *s, int32_t v, int64_t *gained) {
    const int32_t own = s->block[v];
    const int64_t size = s->size[v];
    int32_t met = 0, best = -1;
    if (s->repair && s->total[own] <= s->limit[own]) return -1;
    for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
        const int32_t b = s->block[s->indices[e]];
        if (s->joined[b] == 0) s->met[met++] = b;
        s->joined[b] += s->weights[e];
    }
    const int64_t stays = s->joined[own], slack = s->repair ? 0 : s->slack;
    const int32_t count = s->repair ? (int32_t)s->parts : met;
    int64_t most_joined = -1;
    for (int32_t i = 0; i < count; i++) {
        const int32_t b = s->repair ? i : s->met[i];
        if (b == own || s->total[b] + size > s->limit[b] + slack) continue;
        const int64_t joined = s->joined[b];
        if (joined > most_joined
            || (joined == most_joined
                && (s->total[b] < s->total[best] || (s->total[b] == s->total[best] && b < best)))) {
            most_joined = joined;
            best = b;
        }
    }
    for (int32_t i = 0; i < met; i++) s->joined[s->met[i]] = 0;
    *gained = most_joined - stays;
    return best;
}

INLINE int64_t excess(const Blocks *s, int32_t b) {
    return s->total[b] > s->limit[b] ? s->total[b] - s->limit[b] : 0;
}

INLINE void move_to(Blocks *s, int32_t v, int32_t b) {
    const int32_t own = s->block[v];
    s->over -= excess(s, own) + excess(s, b);
    s->total[own] -= s->size[v];
    s->total[b] += s->size[v];
    s->over += excess(s, own) + excess(s, b);
    s->block[v] = b;
}

/* One search from what waits on; all that did not end in a state as good, or better, is undone. Returns the nodes looked at, -1
   without memory. */
static int64_t search_on(Blocks *s, Course *c) {
    int64_t looked = 0, since = 0, kept = 0;
    int64_t best_cut = s->cut, best_over = s->over;
    while (c->count && since <= s->patience && !(s->repair && s->over == 0)) {
        const Entry top = first_of(c);
        const int32_t v = top.node;
        if (s->gain[v] != top.gain || s->moved[v]) continue; /* it waits with another gain, or has moved */
        int64_t gained;
        const int32_t b = best_block(s, v, &gained);
        looked += 1;
        s->gain[v] = NONE;
        if (b < 0) continue;
        if (gained < top.gain) {
            if (wait_with(s, c, v, gained)) return -1;
            continue;
        }
        if (remember(c, v, s->block[v])) return -1;
        move_to(s, v, b);
        s->moved[v] = 1;
        s->cut -= gained;
        since += 1;
        if (s->over < best_over || (s->over == best_over && s->cut <= best_cut)) {
            best_over = s->over;
            best_cut = s->cut;
            kept = c->moves;
            since = 0;
        }
        if (s->repair == HASTY) continue;
        for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
            const int32_t u = s->indices[e];
            if (s->moved[u] || s->indptr[u + 1] - s->indptr[u] > s->hub) continue;
            const int32_t to = best_block(s, u, &gained);
            looked += 1;
            if (to < 0)
                s->gain[u] = NONE;
            else if (gained != s->gain[u] && wait_with(s, c, u, gained))
                return -1;
        }
    }
    while (c->moves > kept) {
        c->moves -= 1;
        move_to(s, c->node[c->moves], c->from[c->moves]);
    }
    s->cut = best_cut;
    return looked;
}

/* Searches from the next nodes of `order` on, each from one of them, to repair from all of them, until so many nodes
   were looked at. Returns how many were, -1 without memory. */
int64_t lk_partition_refine(Blocks *s, int64_t looks) {
    Course c = {0};
    int64_t looked = 0, made = 0;
    while (s->next < s->seeds && looked < looks && made >= 0) {
        c.moves = c.count = c.tick = 0;
        do {
            const int32_t v = s->order[s->next++];
            int64_t gained;
            if (s->moved[v]) continue;
            looked += 1;
            if (best_block(s, v, &gained) >= 0 && wait_with(s, &c, v, gained)) made = -1;
        } while (s->repair && s->next < s->seeds && made >= 0);
        if (!c.count) continue;
        if (made >= 0) made = search_on(s, &c);
        looked += made;
        for (int64_t i = 0; i < c.count; i++) s->gain[c.entry[i].node] = NONE;
    }
    free(c.entry), free(c.node), free(c.from);
    return made < 0 ? -1 : looked;
}

/* One sweep in which nodes go where they have most weight, however heavy blocks become (plain.stir).
   Nodes that are not locked [n] want the other block that they have most weight to, `quarters` / 4 of what they have in
   their own being lost at most. Each goes if it loses nothing by it once all that want more have gone, too; who went is
   locked. known [n] the blocks after the sweep before, at first none of them; near [n] nodes that may have had
   neighbours in other blocks then; wanted [n], gain [n] room. Returns the nodes that could have gone somewhere. */
int64_t lk_partition_stir(
    Blocks *s, int64_t quarters, uint8_t *locked, int32_t *known, uint8_t *near, int32_t *wanted, int64_t *gain
) {
    int64_t looked = 0;
    for (int32_t v = 0; v < s->n; v++) {
        if (known[v] == s->block[v]) continue;
        known[v] = s->block[v];
        near[v] = 1;
        for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) near[s->indices[e]] = 1;
    }
    for (int32_t v = 0; v < s->n; v++) {
        wanted[v] = -1;
        if (locked[v] || !near[v]) continue;
        const int32_t own = s->block[v];
        int32_t met = 0, best = -1;
        for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
            const int32_t b = s->block[s->indices[e]];
            if (s->joined[b] == 0) s->met[met++] = b;
            s->joined[b] += s->weights[e];
        }
        const int64_t stays = s->joined[own];
        for (int32_t i = 0; i < met; i++) {
            const int32_t b = s->met[i];
            if (b == own) continue;
            if (best < 0 || s->joined[b] > s->joined[best]
                || (s->joined[b] == s->joined[best]
                    && (s->total[b] < s->total[best] || (s->total[b] == s->total[best] && b < best))))
                best = b;
        }
        if (best >= 0) {
            looked += 1;
            gain[v] = s->joined[best] - stays;
            if (gain[v] >= 0 || -gain[v] < stays / 4 * quarters + stays % 4 * quarters / 4) wanted[v] = best;
        } else
            near[v] = 0;
        for (int32_t i = 0; i < met; i++) s->joined[s->met[i]] = 0;
    }
    for (int32_t v = 0; v < s->n; v++) {
        locked[v] = 0;
        if (wanted[v] < 0) continue;
        const int32_t own = s->block[v], to = wanted[v];
        int64_t gained = 0;
        for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
            const int32_t u = s->indices[e];
            const int first = wanted[u] >= 0 && (gain[u] > gain[v] || (gain[u] == gain[v] && u < v));
            const int32_t b = first ? wanted[u] : s->block[u];
            gained += b == to ? s->weights[e] : b == own ? -s->weights[e] : 0;
        }
        locked[v] = gained >= 0;
    }
    for (int32_t v = 0; v < s->n; v++) {
        if (!locked[v]) continue;
        const int32_t own = s->block[v];
        for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
            const int32_t b = s->block[s->indices[e]];
            s->cut += b == own ? s->weights[e] : b == wanted[v] ? -s->weights[e] : 0;
        }
        move_to(s, v, wanted[v]);
    }
    return looked;
}

/* ---- flows between two blocks ---------------------------------------------------------------------------------- */

typedef struct {
    int64_t count, arcs; /* nodes of the corridor; arcs, i and i ^ 1 against each other */
    int32_t *node, *head, *level, *at, *stack;
    int32_t *next, *to;
    int64_t *left;       /* [arcs] what an arc may still carry */
    int64_t *from, *out; /* [count] the same from the source, to the sink */
} Corridor;

/* Take nodes of a block into the corridor, breadth first from where it meets the other block, up to a weight. */
static void widen(Blocks *s, Corridor *c, int32_t own, int32_t other, int64_t most) {
    int64_t weight = 0, first = c->count;
    for (int64_t i = s->begin[s->next_pair]; i < s->begin[s->next_pair + 1]; i++) {
        const int32_t v = s->meet[i];
        if (s->block[v] != own || s->place[v] >= 0 || weight + s->size[v] > most) continue;
        for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++)
            if (s->block[s->indices[e]] == other) {
                s->place[v] = (int32_t)c->count;
                c->node[c->count++] = v;
                weight += s->size[v];
                break;
            }
    }
    for (; first < c->count; first++) {
        const int32_t v = c->node[first];
        for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
            const int32_t u = s->indices[e];
            if (s->block[u] != own || s->place[u] >= 0 || weight + s->size[u] > most) continue;
            s->place[u] = (int32_t)c->count;
            c->node[c->count++] = u;
            weight += s->size[u];
        }
    }
}

/* Arcs within the corridor; the rest of a is the source, that of b the sink. */
static void connect(Blocks *s, Corridor *c, int32_t a, int32_t b) {
    for (int32_t i = 0; i < c->count; i++) c->head[i] = -1;
    for (int32_t i = 0; i < c->count; i++) {
        const int32_t v = c->node[i];
        c->from[i] = c->out[i] = 0;
        for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
            const int32_t u = s->indices[e], j = s->place[u], block = s->block[u];
            if (j < 0) {
                if (block == a) c->from[i] += s->weights[e];
                if (block == b) c->out[i] += s->weights[e];
            } else if (i < j) {
                const int32_t ends[2] = {i, j};
                for (int side = 0; side < 2; side++) {
                    c->to[c->arcs] = ends[1 - side];
                    c->left[c->arcs] = s->weights[e];
                    c->next[c->arcs] = c->head[ends[side]];
                    c->head[ends[side]] = (int32_t)c->arcs++;
                }
            }
        }
    }
}

/* How far nodes are from the source, 0: not to be reached; whether the sink can be. */
static int reach(Corridor *c) {
    int64_t count = 0;
    int found = 0;
    for (int32_t i = 0; i < c->count; i++) {
        c->level[i] = c->from[i] > 0;
        if (c->level[i]) c->stack[count++] = i;
    }
    for (int64_t i = 0; i < count; i++) {
        const int32_t v = c->stack[i];
        found |= c->out[v] > 0;
        for (int32_t e = c->head[v]; e >= 0; e = c->next[e])
            if (c->left[e] > 0 && !c->level[c->to[e]]) {
                c->level[c->to[e]] = c->level[v] + 1;
                c->stack[count++] = c->to[e];
            }
    }
    return found;
}

/* Flows from the source through node `root` along ever larger levels, until there are none (Dinic 1970). */
static void push_from(Corridor *c, int32_t root) {
    int64_t depth = 0; /* stack: the arcs of the path */
    int32_t v = root;
    for (;;) {
        if (c->from[root] == 0) return;
        if (c->out[v] > 0) {
            int64_t flow = c->from[root] < c->out[v] ? c->from[root] : c->out[v];
            for (int64_t i = 0; i < depth; i++)
                if (c->left[c->stack[i]] < flow) flow = c->left[c->stack[i]];
            c->from[root] -= flow;
            c->out[v] -= flow;
            int64_t shortest = depth;
            for (int64_t i = depth - 1; i >= 0; i--) {
                c->left[c->stack[i]] -= flow;
                c->left[c->stack[i] ^ 1] += flow;
                if (c->left[c->stack[i]] == 0) shortest = i;
            }
            if (shortest < depth) {
                v = c->to[c->stack[shortest] ^ 1];
                depth = shortest;
            }
            continue;
        }
        int32_t e = c->at[v];
        while (e >= 0 && !(c->left[e] > 0 && c->level[c->to[e]] == c->level[v] + 1)) e = c->next[e];
        c->at[v] = e;
        if (e >= 0) {
            c->stack[depth++] = e;
            v = c->to[e];
        } else {
            c->level[v] = 0; /* a dead end */
            if (depth == 0) return;
            v = c->to[c->stack[--depth] ^ 1];
        }
    }
}

/* Nodes from which the sink can be reached get the level -1. */
static void reach_back(Corridor *c) {
    int64_t count = 0;
    for (int32_t i = 0; i < c->count; i++)
        if (c->out[i] > 0) {
            c->level[i] = -1;
            c->stack[count++] = i;
        }
    for (int64_t i = 0; i < count; i++)
        for (int32_t e = c->head[c->stack[i]]; e >= 0; e = c->next[e])
            if (c->left[e ^ 1] > 0 && c->level[c->to[e]] == 0) {
                c->level[c->to[e]] = -1;
                c->stack[count++] = c->to[e];
            }
}

/* Of the two extreme smallest cuts the one that leaves less too heavy, then the more even one: what it cuts and where
   that goes, if it is not worse than what is there. Returns whether it leaves too much, so that it is not taken. */
static int take_cut(Blocks *s, Corridor *c, int32_t a, int32_t b) {
    int64_t into_a[2] = {0, 0}, best = -1, best_over = 0, best_apart = 0, flow = 0, before = 0;
    const int64_t total_a = s->total[a], total_b = s->total[b], others = s->over - excess(s, a) - excess(s, b);
    int64_t own = 0;
    for (int64_t i = 0; i < c->count; i++) {
        const int32_t v = c->node[i];
        const int64_t size = s->size[v];
        own += s->block[v] == a ? size : 0;
        into_a[0] += c->level[i] > 0 ? size : 0;
        into_a[1] += c->level[i] >= 0 ? size : 0;
        for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
            const int32_t u = s->indices[e], j = s->place[u], block = s->block[u];
            if (block != a && block != b) continue;
            const int twice = j >= 0; /* counted from both ends */
            const int side = c->level[i] > 0, there = j >= 0 ? c->level[j] > 0 : block == a;
            if (side != there) flow += twice ? s->weights[e] : 2 * s->weights[e];
            if ((s->block[v] == a) != (block == a)) before += twice ? s->weights[e] : 2 * s->weights[e];
        }
    }
    for (int k = 0; k < 2; k++) {
        const int64_t in_a = total_a - own + into_a[k], in_b = total_a + total_b - in_a;
        const int64_t over = (in_a > s->limit[a] ? in_a - s->limit[a] : 0) + (in_b > s->limit[b] ? in_b - s->limit[b] : 0);
        const int64_t apart = in_a > in_b ? in_a - in_b : in_b - in_a;
        if (best < 0 || over < best_over || (over == best_over && apart < best_apart)) {
            best = k;
            best_over = over;
            best_apart = apart;
        }
    }
    const int64_t cut = s->cut + (flow - before) / 2, over = others + best_over;
    if (over > s->over || (over == s->over && cut > s->cut)) return over > s->over;
    for (int64_t i = 0; i < c->count; i++) {
        const int32_t v = c->node[i], to = (best ? c->level[i] >= 0 : c->level[i] > 0) ? a : b;
        if (s->block[v] != to) move_to(s, v, to);
    }
    if (cut < s->cut) s->changed[a] = s->changed[b] = 1;
    s->cut = cut;
    return 0;
}

/* A smallest cut between the next two blocks, of which nodes near where they meet may change sides: up to so much
   weight of each. Returns the nodes that might, -1 without memory; missed: whether it leaves too much in a block. */
static int64_t flow(Blocks *s, int64_t from_a, int64_t from_b, int *missed) {
    Corridor c = {0};
    int64_t made = -1, arcs = 0;
    const int32_t a = s->pair[2 * s->next_pair], b = s->pair[2 * s->next_pair + 1];
    c.node = malloc((size_t)(s->n + 1) * sizeof *c.node);
    if (!c.node) return -1;
    widen(s, &c, a, b, from_a);
    widen(s, &c, b, a, from_b);
    for (int64_t i = 0; i < c.count; i++) arcs += s->indptr[c.node[i] + 1] - s->indptr[c.node[i]];
    const size_t nodes = (size_t)c.count + 1, room = (size_t)arcs + 1;
    int32_t *numbers = malloc(4 * nodes * sizeof *numbers), *ends = malloc(2 * room * sizeof *ends);
    int64_t *left = malloc((room + 2 * nodes) * sizeof *left);
    if (numbers && ends && left) {
        c.head = numbers, c.level = numbers + nodes, c.at = numbers + 2 * nodes, c.stack = numbers + 3 * nodes;
        c.next = ends, c.to = ends + room;
        c.left = left, c.from = left + room, c.out = left + room + nodes;
        connect(s, &c, a, b);
        while (reach(&c)) {
            memcpy(c.at, c.head, (size_t)c.count * sizeof *c.at);
            for (int32_t i = 0; i < c.count; i++)
                if (c.from[i] > 0) push_from(&c, i);
        }
        reach_back(&c);
        *missed = take_cut(s, &c, a, b);
        made = c.count;
    }
    for (int64_t i = 0; i < c.count; i++) s->place[c.node[i]] = -1;
    free(numbers), free(ends), free(left), free(c.node);
    return made;
}

/* Flows between the next pairs of blocks, through ever narrower corridors until what is found leaves enough in both
   blocks, until so many nodes were in them. Returns how many were, -1 without memory. */
int64_t lk_partition_flows(Blocks *s, int64_t looks) {
    int64_t looked = 0;
    for (; s->next_pair < s->pairs && looked < looks; s->next_pair++) {
        const int32_t a = s->pair[2 * s->next_pair], b = s->pair[2 * s->next_pair + 1];
        for (int64_t width = s->width[s->next_pair]; width > 0; width >>= 1) {
            const int64_t in_b = s->limit[b] > s->total[b] ? s->limit[b] - s->total[b] : 0;
            const int64_t in_a = s->limit[a] > s->total[a] ? s->limit[a] - s->total[a] : 0;
            int missed = 0;
            const int64_t made = flow(s, width > in_b ? width : in_b, width > in_a ? width : in_a, &missed);
            if (made < 0) return -1;
            looked += made;
            if (!missed || (width < in_a && width < in_b)) break;
        }
    }
    return looked;
}

/* Blocks [n] grow one after the other: see `grown` in app/blocks/plain.py. Returns -1 without memory. */
int64_t lk_partition_grow(
    int64_t n, int64_t parts, const int64_t *indptr, const int32_t *indices, const int64_t *weights, const int64_t *size,
    const int64_t *limit, const int32_t *order, int32_t *block
) {
    Course c = {0};
    uint8_t *refused = malloc((size_t)n + 1);
    int64_t *gain = malloc((size_t)(n + 1) * sizeof *gain), left = 0, at = 0;
    double room = 0.0; /* it may be more than int64_t holds */
    int made = gain && refused ? 0 : -1;
    Blocks s = {.gain = gain};
    for (int64_t v = 0; v < n; v++) left += size[v], block[v] = -1;
    for (int64_t b = 0; b < parts; b++) room += (double)limit[b];
    for (int32_t b = 0; b < parts - 1 && !made; b++) {
        const int64_t wanted = (int64_t)((double)left * ((double)limit[b] / room)) + 1;
        int64_t weight = 0;
        for (int64_t v = 0; v < n; v++) gain[v] = NONE;
        memset(refused, 0, (size_t)n);
        c.count = c.tick = 0;
        while (weight < wanted && !made) {
            if (!c.count) {
                while (at < n && block[order[at]] >= 0) at++;
                int64_t i = at;
                while (i < n && (block[order[i]] >= 0 || refused[order[i]])) i++;
                if (i == n) break;
                made = wait_with(&s, &c, order[i], 0);
            }
            const Entry top = first_of(&c);
            const int32_t v = top.node;
            if (block[v] >= 0 || refused[v] || gain[v] != top.gain) continue;
            if (weight + size[v] > limit[b]) {
                refused[v] = 1;
                continue;
            }
            block[v] = b;
            weight += size[v];
            for (int64_t e = indptr[v]; e < indptr[v + 1] && !made; e++) {
                const int32_t u = indices[e];
                if (block[u] >= 0 || refused[u]) continue;
                int64_t joined = gain[u];
                if (joined == NONE) {
                    joined = 0;
                    for (int64_t i = indptr[u]; i < indptr[u + 1]; i++) joined -= weights[i];
                }
                made = wait_with(&s, &c, u, joined + 2 * weights[e]);
            }
        }
        left -= weight;
        room -= (double)limit[b];
    }
    for (int64_t v = 0; v < n; v++)
        if (block[v] < 0) block[v] = (int32_t)parts - 1;
    free(c.entry), free(gain), free(refused);
    return made;
}
