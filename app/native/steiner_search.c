/* Steiner trees: growth by shortest paths, spanning trees of chosen nodes, and local search by key paths, key nodes and
 * nodes from outside. app/search/steiner/plain.py has the same. Trees have a terminal as root; their leaves are terminals. */
#include <stdint.h>
#include <stdlib.h>

#include "common.h"
#include "links.h"

typedef struct {
    int64_t n, terminals;
    const int64_t *indptr;
    const int32_t *indices;
    const int64_t *weights; /* [nnz] what a search goes by, below 2^62 together */
    const uint8_t *terminal;
    int32_t *parent;               /* of nodes in the tree, its own number at the root; -1 outside */
    int32_t *degree;               /* in the tree */
    int32_t *child, *next, *before; /* lists of children; -1 ends them */
    int64_t *up;                   /* the weight of the edge to the parent */
    int64_t *dist;
    int32_t *pred, *label;  /* label: the part whose region a node is in; -1 */
    uint8_t *state;         /* GONE, SETTLED, CHOSEN */
    int32_t *nodes;         /* [n] */
    int64_t root, total, work, part; /* part: nodes that a part begins with, at most */
} Steiner;

enum { GONE = 1, SETTLED = 2, CHOSEN = 4, OTHER = 8 };

typedef struct {
    Links heap, found;
    int32_t *part; /* [2n+1]: roots of parts; then parts that are joined */
    int32_t *removed, *rest; /* rest: nodes that are known to be in no part */
    int64_t *note; /* ends, weight, kind of edges */
    int64_t removals, rests, notes, notes_room;
} Room;

static int compare(const void *a, const void *b) {
    const Link x = *(const Link *)a, y = *(const Link *)b;
    return before(x, y) ? -1 : before(y, x);
}

static int add(Links *l, int64_t cost, int32_t x, int32_t y) {
    if (grown(l)) return -1;
    l->item[l->count++] = (Link){cost, x, y};
    return 0;
}

/* ---- the tree ------------------------------------------------------------------------------------------------------ */

static void hang(Steiner *s, int32_t x, int32_t p, int64_t weight) {
    s->parent[x] = p;
    s->up[x] = weight;
    s->before[x] = -1;
    s->next[x] = s->child[p];
    if (s->child[p] >= 0) s->before[s->child[p]] = x;
    s->child[p] = x;
    s->degree[x] += 1;
    s->degree[p] += 1;
    s->total += weight;
}

/* x becomes the root of what hangs on it. */
static void cut(Steiner *s, int32_t x) {
    const int32_t p = s->parent[x], a = s->before[x], b = s->next[x];
    if (a >= 0)
        s->next[a] = b;
    else
        s->child[p] = b;
    if (b >= 0) s->before[b] = a;
    s->parent[x] = x;
    s->degree[x] -= 1;
    s->degree[p] -= 1;
    s->total -= s->up[x];
}

/* Make a the root of its tree. */
static void evert(Steiner *s, int32_t a) {
    int32_t x = a, p = s->parent[a];
    int64_t weight = s->up[a];
    if (p == a) return;
    cut(s, a);
    while (1) {
        const int32_t above = s->parent[p];
        const int64_t next = s->up[p];
        if (above != p) cut(s, p);
        hang(s, p, x, weight);
        s->work += 1;
        if (above == p) return;
        x = p;
        p = above;
        weight = next;
    }
}

/* Join two trees by an edge; the root stays one. */
static void join(Steiner *s, int32_t a, int32_t b, int64_t weight) {
    int32_t x = a, y = b;
    while (s->parent[x] != x && s->parent[y] != y) { /* the end that is nearer to its root tells */
        x = s->parent[x];
        y = s->parent[y];
        s->work += 1;
    }
    if (s->parent[x] == x ? x == s->root : y != s->root) {
        const int32_t t = a;
        a = b;
        b = t;
    }
    evert(s, a);
    hang(s, a, b, weight);
}

static void enter(Steiner *s, int32_t x) {
    s->parent[x] = x;
    s->degree[x] = 0;
    s->child[x] = s->next[x] = s->before[x] = -1;
}

static void drop(Steiner *s, int32_t x) {
    if (s->parent[x] != x) cut(s, x);
    s->parent[x] = -1;
}

INLINE int crucial(const Steiner *s, int32_t x) {
    return s->terminal[x] || s->degree[x] >= 3;
}

static int64_t weight_of(Steiner *s, int32_t x, int32_t y) {
    for (int64_t e = s->indptr[x]; e < s->indptr[x + 1]; e++) {
        s->work += 1;
        if (s->indices[e] == y) return s->weights[e];
    }
    return -1;
}

/* Take away leaves that are no terminals, from x on. */
static void prune(Steiner *s, int32_t x) {
    while (s->parent[x] >= 0 && s->degree[x] == 1 && !s->terminal[x] && s->child[x] < 0) {
        const int32_t p = s->parent[x];
        drop(s, x);
        s->work += 1;
        x = p;
    }
}

/* The lists and weights of the tree that `parent` tells. */
void lk_steiner_load(Steiner *s) {
    s->total = 0;
    for (int64_t x = 0; x < s->n; x++) {
        s->child[x] = s->next[x] = s->before[x] = -1;
        s->degree[x] = 0;
    }
    for (int64_t x = 0; x < s->n; x++) {
        const int32_t p = s->parent[x];
        if (p == x) s->root = x;
        if (p >= 0 && p != x) hang(s, (int32_t)x, p, weight_of(s, (int32_t)x, p));
    }
}

/* ---- whole trees ---------------------------------------------------------------------------------------------------- */

static void none(Steiner *s, int64_t root) {
    for (int64_t x = 0; x < s->n; x++) s->parent[x] = s->label[x] = -1;
    s->total = 0;
    s->root = root;
    enter(s, (int32_t)root);
    s->dist[root] = 0;
}

/* The shortest path from the tree to x becomes part of it: s->nodes has it, from x on. Returns its nodes. */
static int64_t take_path(Steiner *s, int32_t x) {
    int64_t k = 0;
    for (; s->parent[x] < 0; x = s->pred[x]) s->nodes[k++] = x;
    for (int64_t i = k - 1; i >= 0; i--) {
        const int32_t y = s->nodes[i], p = i == k - 1 ? x : s->nodes[i + 1];
        enter(s, y);
        hang(s, y, p, weight_of(s, y, p));
    }
    return k;
}

/* From the root on the nearest terminal is joined by a shortest path, and so on. Returns the terminals joined, -1
   without memory. */
int64_t lk_steiner_grow(Steiner *s, int64_t root) {
    Links heap = {0};
    int64_t joined = s->terminal[root];
    none(s, root);
    int failed = push(&heap, 0, (int32_t)root);
    while (heap.count && joined < s->terminals && !failed) {
        const Link least = pop(&heap);
        const int32_t x = least.x;
        if (least.cost > s->dist[x]) continue;
        if (s->terminal[x] && s->parent[x] < 0) {
            const int64_t k = take_path(s, x);
            joined += 1;
            for (int64_t i = 0; i < k; i++) {
                s->dist[s->nodes[i]] = 0;
                failed |= push(&heap, 0, s->nodes[i]);
            }
            continue;
        }
        for (int64_t e = s->indptr[x]; e < s->indptr[x + 1]; e++) {
            const int32_t y = s->indices[e];
            const int64_t d = s->dist[x] + s->weights[e];
            s->work += 1;
            if (s->parent[y] >= 0 || (s->label[y] >= 0 && s->dist[y] <= d)) continue;
            s->label[y] = 0;
            s->dist[y] = d;
            s->pred[y] = x;
            failed |= push(&heap, d, y);
        }
    }
    free(heap.item);
    return failed ? -1 : joined;
}

/* The lightest spanning tree of the nodes that are CHOSEN and hang on the root, without leaves that are no terminals.
   Returns the terminals in it, -1 without memory. */
int64_t lk_steiner_span(Steiner *s, int64_t root) {
    Links heap = {0};
    int64_t k = 0, joined = 0;
    none(s, root);
    s->label[root] = 0;
    int failed = push(&heap, 0, (int32_t)root);
    while (heap.count && !failed) {
        const int32_t x = pop(&heap).x;
        if (s->label[x] == 1) continue;
        s->label[x] = 1;
        if (x != root) {
            enter(s, x);
            hang(s, x, s->pred[x], s->dist[x]);
        }
        s->nodes[k++] = x;
        joined += s->terminal[x];
        for (int64_t e = s->indptr[x]; e < s->indptr[x + 1]; e++) {
            const int32_t y = s->indices[e];
            s->work += 1;
            if (!(s->state[y] & CHOSEN) || s->label[y] == 1 || (s->label[y] == 0 && s->dist[y] <= s->weights[e]))
                continue;
            s->label[y] = 0;
            s->dist[y] = s->weights[e];
            s->pred[y] = x;
            failed |= push(&heap, s->weights[e], y);
        }
    }
    for (int64_t i = k - 1; i >= 0; i--) prune(s, s->nodes[i]);
    free(heap.item);
    return failed ? -1 : joined;
}

/* ---- local search --------------------------------------------------------------------------------------------------- */

/* The nodes that hang on x, x too, become those of a part, the first s->part of them; others where they are met.
   Returns the end of s->nodes [.., end). */
static int64_t take_part(Steiner *s, int32_t x, int32_t part, int64_t end) {
    int64_t at = end;
    const int64_t most = end + s->part;
    s->nodes[end++] = x;
    for (; at < end; at++) {
        const int32_t y = s->nodes[at];
        s->label[y] = part;
        s->dist[y] = 0;
        s->pred[y] = -1;
        s->state[y] |= SETTLED;
        s->work += 1;
        for (int32_t c = s->child[y]; c >= 0 && end < most; c = s->next[c]) s->nodes[end++] = c;
    }
    return end;
}

/* The part that a node of the tree is in; -1: the rest, as far as some steps upwards tell. */
static int32_t part_of(Steiner *s, Room *r, int32_t y) {
    int32_t x = y;
    if (s->part >= s->n) return -1;
    for (int64_t i = 0; i < s->part && s->label[x] < 0 && !(s->state[x] & OTHER) && s->parent[x] != x; i++) {
        x = s->parent[x];
        s->work += 1;
    }
    if (s->label[x] >= 0) return s->label[x];
    for (int32_t z = y; !(s->state[z] & OTHER); z = s->parent[z]) {
        s->state[z] |= OTHER;
        r->rest[r->rests++] = z;
        if (z == x) break;
    }
    return -1;
}

static int32_t find(int32_t *part, int32_t i) {
    while (part[i] != i) i = part[i] = part[part[i]];
    return i;
}

/* Whether a node is free to be on a new path. */
INLINE int is_free(const Steiner *s, int32_t y) {
    return s->parent[y] < 0 || (s->state[y] & GONE);
}

/* x is final: its entries reach free nodes, other regions, or the rest of the tree, whose number is `rest`. */
static int reach(Steiner *s, Room *r, int32_t x, int64_t most, int64_t *end) {
    int failed = 0;
    for (int64_t e = s->indptr[x]; e < s->indptr[x + 1]; e++) {
        const int32_t y = s->indices[e];
        const int64_t d = s->dist[x] + s->weights[e];
        s->work += 1;
        if (d >= most) continue;
        const int32_t part = s->label[y] < 0 && !is_free(s, y) ? part_of(s, r, y) : -2;
        if (part == -1) {
            failed |= add(&r->found, d, x, y);
        } else if (part >= 0) {
            s->nodes[(*end)++] = y;
            s->label[y] = part;
            s->dist[y] = 0;
            failed |= push(&r->heap, 0, y);
        } else if (s->label[y] >= 0 && (s->state[y] & SETTLED)) {
            if (s->label[y] != s->label[x] && d + s->dist[y] < most) failed |= add(&r->found, d + s->dist[y], x, y);
        } else if (s->label[y] < 0 || d < s->dist[y]) {
            if (s->label[y] < 0) s->nodes[(*end)++] = y;
            s->label[y] = s->label[x];
            s->dist[y] = d;
            s->pred[y] = x;
            failed |= push(&r->heap, d, y);
        }
    }
    return failed;
}

/* The way back from x to the tree enters it. */
static void build(Steiner *s, int32_t x) {
    int32_t last = -1;
    for (; s->parent[x] < 0; x = s->pred[x]) {
        enter(s, x);
        if (last >= 0) hang(s, last, x, weight_of(s, last, x));
        last = x;
    }
    if (last >= 0) hang(s, last, x, weight_of(s, last, x));
}

/* Whether a node is in no part. */
static int in_rest(Steiner *s, int32_t y) {
    for (; s->label[y] < 0 && s->parent[y] != y; y = s->parent[y]) s->work += 1;
    return s->label[y] < 0;
}

/* Take out the path above v (node 0), or v and the paths at it, and join the parts in the cheapest way that shortest
   paths between them give. The tree changes only where it gets lighter. Returns -1 without memory. */
static int exchange(Steiner *s, Room *r, int32_t v, int whole) {
    int64_t end = 0, removed = 0, longest = 0, second = 0, path;
    int32_t parts = 0, x;
    int failed = 0;
    r->removals = r->rests = 0;
    r->heap.count = r->found.count = 0;
    if (whole) { /* down to the next crucial nodes */
        for (int32_t c = s->child[v]; c >= 0; c = s->next[c]) {
            path = s->up[c];
            for (x = c; !crucial(s, x); x = s->child[x]) {
                s->state[x] |= GONE;
                r->removed[r->removals++] = x;
                path += s->up[s->child[x]];
                s->work += 1;
            }
            removed += path;
            second = path > longest ? longest : path > second ? path : second;
            longest = path > longest ? path : longest;
            end = take_part(s, x, parts, end);
            r->part[parts++] = x;
        }
        s->state[v] |= GONE;
        r->removed[r->removals++] = v;
    } else {
        end = take_part(s, v, parts, end);
        r->part[parts++] = v;
    }
    path = s->up[v];
    for (x = s->parent[v]; !crucial(s, x); x = s->parent[x]) {
        s->state[x] |= GONE;
        r->removed[r->removals++] = x;
        path += s->up[x];
        s->work += 1;
    }
    removed += path;
    second = path > longest ? longest : path > second ? path : second;
    longest = path > longest ? path : longest;
    /* no part is farther from the others than by v */
    const int64_t most = whole && longest + second + 1 < removed ? longest + second + 1 : removed, first = end;
    for (int64_t i = 0; i < first; i++) failed |= reach(s, r, s->nodes[i], most, &end);
    int64_t best = most;
    for (int64_t i = 0; i < r->found.count && parts == 1; i++)
        if (r->found.item[i].cost < best) best = r->found.item[i].cost;
    int64_t seen = r->found.count;
    while (r->heap.count && !failed) {
        const Link least = pop(&r->heap);
        if (least.cost > s->dist[least.x] || (s->state[least.x] & SETTLED)) continue;
        if (least.cost >= best) break;
        s->state[least.x] |= SETTLED;
        failed |= reach(s, r, least.x, most, &end);
        for (; parts == 1 && seen < r->found.count; seen++)
            if (r->found.item[seen].cost < best) best = r->found.item[seen].cost;
    }
    /* Kruskal; the number of the rest is `parts` */
    int64_t sum = 0, chosen = 0;
    int32_t *of = r->part + s->n;
    for (int32_t i = 0; i <= parts; i++) of[i] = i;
    if (!failed && r->found.count) qsort(r->found.item, (size_t)r->found.count, sizeof(Link), compare);
    for (int64_t i = 0; i < r->found.count && chosen < parts && sum < removed; i++) {
        const Link it = r->found.item[i];
        const int32_t a = find(of, s->label[it.x]);
        const int32_t b = find(of, s->label[it.y] < 0 ? parts : s->label[it.y]);
        s->work += 1;
        if (a == b) continue;
        of[a] = b;
        sum += it.cost;
        r->found.item[chosen++] = it;
    }
    int better = !failed && chosen == parts && sum < removed;
    for (int64_t i = 0; i < chosen && better && s->part < s->n; i++) {
        const int32_t y = r->found.item[i].y;
        if (s->label[y] < 0) better = in_rest(s, y);
    }
    for (int64_t i = 0; i < end; i++) { /* as before */
        s->label[s->nodes[i]] = -1;
        s->state[s->nodes[i]] &= (uint8_t)~SETTLED;
    }
    for (int64_t i = 0; i < r->removals; i++) s->state[r->removed[i]] &= (uint8_t)~GONE;
    for (int64_t i = 0; i < r->rests; i++) s->state[r->rest[i]] &= (uint8_t)~OTHER;
    if (!better) return failed ? -1 : 0;
    for (int32_t i = 0; i < parts; i++) cut(s, r->part[i]);
    for (int64_t i = 0; i < r->removals; i++) {
        const int32_t y = r->removed[i];
        while (s->child[y] >= 0) cut(s, s->child[y]);
        drop(s, y);
    }
    for (int64_t i = 0; i < chosen; i++) {
        const Link it = r->found.item[i];
        build(s, it.x);
        build(s, it.y);
        join(s, it.x, it.y, weight_of(s, it.x, it.y));
    }
    return 0;
}

/* An edge leaves the tree, or (kind 1) is new in it. */
static int note(Room *r, int32_t a, int32_t b, int64_t weight, int kind) {
    if (r->notes + 4 > r->notes_room) {
        const int64_t room = r->notes_room ? 2 * r->notes_room : 256;
        int64_t *more = realloc(r->note, (size_t)room * sizeof *more);
        if (!more) return -1;
        r->note = more;
        r->notes_room = room;
    }
    r->note[r->notes++] = a;
    r->note[r->notes++] = b;
    r->note[r->notes++] = weight;
    r->note[r->notes++] = kind;
    return 0;
}

/* As prune, noted. */
static int prune_noted(Steiner *s, Room *r, int32_t x) {
    int failed = 0;
    while (s->parent[x] >= 0 && s->degree[x] == 1 && !s->terminal[x]) {
        const int32_t p = s->parent[x];
        failed |= note(r, x, p, s->up[x], 0);
        drop(s, x);
        s->work += 1;
        x = p;
    }
    return failed;
}

/* The heaviest edge of the tree between v and y: the node below it; *far: whether it is on the side of y. */
static int32_t heaviest(Steiner *s, int32_t v, int32_t y, int *far) {
    int32_t a = v, b = y, met, found = y;
    int64_t most = -1;
    s->state[a] |= SETTLED;
    s->state[b] |= OTHER;
    while (!(s->state[b] & SETTLED)) { /* by turns up from both */
        a = s->parent[a];
        s->state[a] |= SETTLED;
        s->work += 1;
        if (s->state[a] & OTHER) break;
        b = s->parent[b];
        s->state[b] |= OTHER;
    }
    met = s->state[b] & SETTLED ? b : a;
    for (int32_t x = y; x != met; x = s->parent[x])
        if (s->up[x] > most) {
            most = s->up[x];
            found = x;
        }
    *far = 1;
    for (int32_t x = v; x != met; x = s->parent[x])
        if (s->up[x] > most) {
            most = s->up[x];
            found = x;
            *far = 0;
        }
    for (;; v = s->parent[v]) {
        s->state[v] &= (uint8_t)~SETTLED;
        if (v == a) break;
    }
    for (;; y = s->parent[y]) {
        s->state[y] &= (uint8_t)~OTHER;
        if (y == b) break;
    }
    return found;
}

/* Node v, which is outside, with its edges to the tree, each in the place of a heavier one; kept where the tree gets
   lighter. Returns -1 without memory. */
static int insert(Steiner *s, Room *r, int32_t v) {
    int failed = 0, far;
    Links *near = &r->found;
    near->count = r->notes = 0;
    for (int64_t e = s->indptr[v]; e < s->indptr[v + 1]; e++) {
        s->work += 1;
        if (s->parent[s->indices[e]] >= 0) failed |= add(near, s->weights[e], s->indices[e], 0);
    }
    if (near->count < 2 || failed) return failed ? -1 : 0;
    qsort(near->item, (size_t)near->count, sizeof(Link), compare);
    const int64_t total = s->total;
    enter(s, v);
    hang(s, v, near->item[0].x, near->item[0].cost);
    for (int64_t i = 1; i < near->count; i++) {
        const int32_t y = near->item[i].x, x = heaviest(s, v, y, &far);
        const int64_t weight = near->item[i].cost;
        if (s->up[x] <= weight) continue;
        failed |= note(r, x, s->parent[x], s->up[x], 0);
        failed |= note(r, v, y, weight, 1);
        cut(s, x);
        evert(s, far ? y : v);
        hang(s, far ? y : v, far ? v : y, weight);
    }
    if (failed) return -1;
    const int64_t swaps = r->notes;
    for (int64_t i = 0; i < swaps; i += 8) {
        failed |= prune_noted(s, r, (int32_t)r->note[i]);
        failed |= prune_noted(s, r, (int32_t)r->note[i + 1]);
    }
    if (failed) return -1;
    if (s->total < total) return 0;
    while (r->notes) {
        r->notes -= 4;
        const int32_t a = (int32_t)r->note[r->notes], b = (int32_t)r->note[r->notes + 1];
        if (r->note[r->notes + 3]) {
            cut(s, s->parent[a] == b ? a : b);
        } else {
            if (s->parent[a] < 0) enter(s, a);
            join(s, a, b, r->note[r->notes + 2]);
        }
    }
    drop(s, v);
    return 0;
}

/* Try the nodes order[from .. count), until so much work is done. Returns where it stopped, -1 without memory. */
int64_t lk_steiner_pass(Steiner *s, const int32_t *order, int64_t from, int64_t count, int64_t most) {
    Room r = {0};
    int failed = 0;
    r.part = malloc((size_t)(2 * s->n + 1) * sizeof *r.part);
    r.removed = malloc((size_t)(s->n + 1) * sizeof *r.removed);
    r.rest = malloc((size_t)(s->n + 1) * sizeof *r.rest);
    if (!r.part || !r.removed || !r.rest) failed = -1;
    for (int64_t x = 0; x < s->n; x++) {
        s->label[x] = -1;
        s->state[x] = 0;
    }
    const int64_t end = s->work + most;
    while (from < count && s->work < end && !failed) {
        const int32_t v = order[from++];
        if (s->parent[v] < 0) {
            failed = insert(s, &r, v);
        } else if (v != s->root && crucial(s, v)) {
            failed = exchange(s, &r, v, 0);
            if (!failed && !s->terminal[v] && s->parent[v] >= 0 && s->degree[v] >= 3) failed = exchange(s, &r, v, 1);
        }
    }
    free(r.part), free(r.removed), free(r.rest), free(r.note), free(r.heap.item), free(r.found.item);
    return failed ? -1 : from;
}
