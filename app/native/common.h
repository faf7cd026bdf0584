/* What all kernel files share. Every sum is one left-to-right chain of float32: multiply, then add, but in dense
 * products, which multiply and add with one rounding (fused, in vectors.h). Lanes of a vector register are different
 * outputs, so the width of the registers changes no bit. */
#ifndef LOCKSTEP_COMMON_H
#define LOCKSTEP_COMMON_H

#include <stdint.h>
#include <string.h>

/* One binary for all x86-64 processors: the loader picks the widest registers there are. For loops that the compiler
 * makes vectors of; those that name their vectors are in *_lanes.h. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__)
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDE
#endif

#define INLINE static inline __attribute__((always_inline))

/* Element `at` of an array of numbers that have 8 bytes each (wide) or 4. */
INLINE int64_t number(const void *values, int64_t wide, int64_t at) {
    return wide ? ((const int64_t *)values)[at] : ((const int32_t *)values)[at];
}

/* A hash of x. Who does not know the salt finds no two numbers, or names, whose hashes are likely to be equal: no file
 * can be made to be slow to read. The second factor is the salt's own: what differs in the highest bit alone differs
 * after a factor that is known in that bit alone, whatever the salt. */
INLINE uint64_t salted(uint64_t x, const uint64_t *salt) {
    uint64_t h = (x ^ salt[0]) * 0xD6E8FEB86659FD93ull;
    h = (h ^ h >> 32) * (salt[1] | 1);
    return h ^ h >> 32;
}

#endif
