/* The integer generator of the local searches; app/rng.py has the same one for the paths without kernels. */
#ifndef LOCKSTEP_RANDOM_H
#define LOCKSTEP_RANDOM_H

#include "common.h"

/* SplitMix64 (Steele, Lea and Flood 2014): the next 64 bits; *state is all there is to keep. */
INLINE uint64_t random_bits(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Output i of that generator from `state`, which is not moved. */
INLINE uint64_t splitmix(uint64_t state, uint64_t i) {
    uint64_t before = state + i * UINT64_C(0x9E3779B97F4A7C15);
    return random_bits(&before);
}

/* A whole number in [0, bound), bound < 2^32: the high half of a product, no division. */
INLINE uint32_t random_below(uint64_t *state, uint32_t bound) {
    return (uint32_t)(((random_bits(state) >> 32) * (uint64_t)bound) >> 32);
}

#endif
