/* Choosing nodes by integer keys (app/rl/select.py). A maximum of integers is the same in any order, so these, and only
 * these, are taken with atomics. */
#include "common.cuh"

/* keys [states], zero before: the largest key over the candidates of each state, of scores raised to `least`. Rows are
 * those of a batch: graph g has `nodes[g]` nodes, count[g] states from first[g] on, rows from at[g] on. A thread goes
 * through every (threads per state)-th node of a state. */
KERNEL best_rows(const i64 states, const i64 threads, const int* member, const i64* nodes, const i64* count,
                 const i64* first, const i64* at, const float* score, const unsigned char* candidate,
                 const float least, u64* keys) {
    const i64 t = thread_number(), state = t % states, begin = t / states;
    if (begin >= threads) return;
    const i64 g = member[state], row0 = at[g] + state - first[g];
    u64 best = 0;
    for (i64 node = begin; node < nodes[g]; node += threads) {
        const i64 row = row0 + node * count[g];
        if (!candidate[row]) continue;
        const float z = score[row];
        const u64 key = key_of(z < least ? least : z, node);
        if (key > best) best = key;
    }
    if (best) atomicMax(keys + state, best);
}

/* top[place] = the largest of keys [n] below top[place - 1]; top[0 .. place] are zero before the first call. */
KERNEL next_key(const i64 n, const i64 threads, const u64* keys, const int place, u64* top) {
    const i64 t = thread_number();
    if (t >= threads) return;
    u64 best = 0;
    for (i64 i = t; i < n; i += threads)
        if ((!place || keys[i] < top[place - 1]) && keys[i] > best) best = keys[i];
    if (best) atomicMax(top + place, best);
}
