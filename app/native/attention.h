/* What the kernels of both attentions (attention.c, dynamic.c) share. */
#ifndef LOCKSTEP_ATTENTION_H
#define LOCKSTEP_ATTENTION_H

#include "elementary.h"
#include "pattern.h"

/* Numbers at a time, entries times heads; chains that run beside each other; numbers that fill registers. */
enum { GROUP = 256, TOGETHER = 4, FULL = 16 };

static const float SLOPE = 0.2f; /* of leaky relu below 0 */

/* x where s is positive, else SLOPE x. */
INLINE float sloped(float s, float x) {
    const float below = x * SLOPE;
    return s > 0.0f ? x : below;
}

INLINE float leaky(float s) { return sloped(s, s); }

/* out[q * h + i] = row q of D times S by heads, each a chain from 0; rows[q] are `count` <= TOGETHER rows of D. */
INLINE void dots(int64_t count, int64_t h, int64_t k, const float *const *rows, const float *S, float *out) {
    if (count == TOGETHER) {
        for (int64_t i = 0; i < h; ++i) {
            float sum[TOGETHER] = {0};
            for (int64_t c = i * k; c < (i + 1) * k; ++c)
                for (int64_t q = 0; q < TOGETHER; ++q) sum[q] += rows[q][c] * S[c];
            for (int64_t q = 0; q < TOGETHER; ++q) out[q * h + i] = sum[q];
        }
        return;
    }
    for (int64_t q = 0; q < count; ++q)
        for (int64_t i = 0; i < h; ++i) {
            float sum = 0.0f;
            for (int64_t c = i * k; c < (i + 1) * k; ++c) sum += rows[q][c] * S[c];
            out[q * h + i] = sum;
        }
}

#endif
