/* Weight gradients of a rank's blocks (gram_lanes.h), and sums of blocks as a fixed tree. */
#include "lanes.h"

static int64_t gram_size(const Gram *g) {
    int64_t k = 0;
    for (int64_t p = 0; p < g->parts; ++p) k += g->part[p].k;
    return k * g->m;
}

void lk_gram(const Gram *g) {
    const int64_t size = gram_size(g);
    for (int64_t b = 0; b < g->blocks; ++b) lk_lanes()->gram_block(g, b, g->out + b * size);
}

WIDE static void add_sums(int64_t size, float *to, const float *from) {
    for (int64_t i = 0; i < size; ++i) to[i] += from[i];
}

/* out = the subtree of `level` from block lo on, cut at hi: its left half plus its right half, if there is one.
 * spare: `level` times as much memory as out. */
static void gram_tree(const Gram *g, int64_t lo, int64_t hi, int64_t level, int64_t size, float *out, float *spare) {
    if (hi - lo == 1) {
        memset(out, 0, (size_t)size * 4);
        lk_lanes()->gram_block(g, lo, out);
        return;
    }
    const int64_t middle = lo + ((int64_t)1 << (level - 1));
    if (middle >= hi) {
        gram_tree(g, lo, hi, level - 1, size, out, spare);
        return;
    }
    gram_tree(g, lo, middle, level - 1, size, out, spare);
    gram_tree(g, middle, hi, level - 1, size, spare, spare + size);
    add_sums(size, out, spare);
}

/* Row i of g->out becomes the subtree spans[i] = (first block, last block + 1, level); spare: the highest level times
 * as much memory as a row. */
void lk_gram_roots(const Gram *g, int64_t count, const int64_t *spans, float *spare) {
    const int64_t size = gram_size(g);
    for (int64_t i = 0; i < count; ++i, spans += 3)
        gram_tree(g, spans[0], spans[1], spans[2], size, g->out + i * size, spare);
}
