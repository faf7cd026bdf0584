/* Components of rows that hold both directions of each edge; app/graphs/joined.py. */
#include "common.h"

/* The component of each node in label [n], numbered by their lowest nodes; queue [n] is scratch. Returns how many. */
int64_t lk_components(int64_t n, const int64_t *ptr, const int32_t *near, int32_t *label, int32_t *queue) {
    int32_t count = 0;
    for (int64_t v = 0; v < n; ++v) label[v] = -1;
    for (int64_t first = 0; first < n; ++first) {
        if (label[first] >= 0) continue;
        int64_t filled = 0;
        label[first] = count;
        queue[filled++] = (int32_t)first;
        for (int64_t read = 0; read < filled; ++read) {
            const int32_t v = queue[read];
            for (int64_t j = ptr[v]; j < ptr[v + 1]; ++j) {
                if (label[near[j]] >= 0) continue;
                label[near[j]] = count;
                queue[filled++] = near[j];
            }
        }
        ++count;
    }
    return count;
}
