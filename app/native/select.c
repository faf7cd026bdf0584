/* Choosing nodes that are not linked to each other; app/rl/select.py says of what. */
#include "common.h"

/* taken [count], all 1 at first: item i, in order, takes out the later items heads[starts[i]..starts[i + 1]). */
void lk_first_come(int64_t count, const int64_t *starts, const int64_t *heads, uint8_t *taken) {
    for (int64_t i = 0; i < count; ++i)
        for (int64_t e = starts[i]; taken[i] && e < starts[i + 1]; ++e) taken[heads[e]] = 0;
}
