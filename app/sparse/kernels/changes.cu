/* What is kept of scores that follow the selections (app/rl/incremental.py): rows of embeddings and keys of candidates,
 * of which some are replaced. Rows of a list are distinct. */
#include "common.cuh"

/* to [*, c]: row rows[i] becomes row i of from [count, c]. */
KERNEL place_rows(const i64 count, const int c, const int* rows, const float* from, float* to) {
    const i64 t = thread_number(), i = t / c;
    if (i < count) to[(i64)rows[i] * c + t % c] = from[t];
}

/* X [layers][n, c]: the rows of a list become zero in all layers. */
KERNEL clear_rows(const i64 count, const int layers, const i64 n, const int c, const int* rows, float* X) {
    const i64 t = thread_number(), i = t / c / layers, layer = t / c % layers;
    if (i < count) X[(layer * n + rows[i]) * c + t % c] = 0.0f;
}

/* keys [n]: of a row whose code is at least `first` that of its score, of another, or without scores, 0. Row r is node
 * lo + r. */
KERNEL place_keys(const i64 count, const i64 lo, const int* rows, const int* code, const int first, const float* score,
                  u64* keys) {
    const i64 i = thread_number();
    if (i >= count) return;
    const i64 row = rows[i];
    keys[row] = score && code[i] >= first ? key_of(score[i], lo + row) : 0;
}
