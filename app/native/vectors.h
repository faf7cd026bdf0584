/* Vectors of LANES float32, a register each. */
#ifndef LOCKSTEP_VECTORS_H
#define LOCKSTEP_VECTORS_H

#include "lanes.h"
#if defined(__x86_64__) && LANES > 4
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias)); /* where LANES is 8 at least */
typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));
/* What functions take and return: GCC 14 for ARM ends in an internal error where that may lie anywhere in memory. */
typedef float reg __attribute__((vector_size(4 * LANES)));
typedef float reg_8 __attribute__((vector_size(32)));

#define LOAD(p) (*(const vec *)(p))
#define STORE(p, v) (*(vec *)(p) = (v))

/* Columns that a kernel makes together, and the registers that they fill: half of all 16 for two rows or states, of
 * which at least four are made at a time. */
enum { COLUMNS = LANES < 8 ? 8 : 16, HELD = COLUMNS / LANES };

/* What is added for an entry of value one, and for entry j; what a chain begins with. */
#define ONE(v) (v)
#define VALUED(v) (data[j] * (v))
#define START(type, y) (first ? (type){0} : *(const type *)(y))

/* How many of LANES columns lie below `width`, from column `at` on. */
INLINE int64_t within(int64_t width, int64_t at) {
    return width - at < 0 ? 0 : width - at < LANES ? width - at : LANES;
}

/* The first `width` of LANES columns; the others are zero, and are not written. */
INLINE reg load_part(const float *x, int64_t width) {
    float pad[LANES];
    if (width == LANES) return LOAD(x);
    memset(pad, 0, sizeof pad);
    memcpy(pad, x, (size_t)width * 4);
    return LOAD(pad);
}

INLINE void store_part(float *x, int64_t width, reg v) {
    float pad[LANES];
    if (width == LANES) {
        STORE(x, v);
        return;
    }
    STORE(pad, v);
    memcpy(x, pad, (size_t)width * 4);
}

/* a b + c, rounded once: the next link of a chain of a dense product. One instruction of the processors that the wider
 * kernels are for, and of most others; elsewhere the C library makes it. */
#if defined(__x86_64__) && LANES > 4
INLINE reg_8 fused_8(reg_8 a, reg_8 b, reg_8 c) { return (reg_8)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
#endif
#if defined(__x86_64__) && LANES == 16
INLINE reg fused(reg a, reg b, reg c) { return (reg)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
#elif defined(__x86_64__) && LANES == 8
INLINE reg fused(reg a, reg b, reg c) { return fused_8(a, b, c); }
#else
INLINE reg fused(reg a, reg b, reg c) {
    for (int i = 0; i < LANES; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
}
#endif

/* z where the gate is open, else 0 times it. */
INLINE reg gated(reg z, reg gate) {
    return z * (reg)((bits)(gate > 0.0f) & (bits)((reg){0} + 1.0f));
}

#endif
