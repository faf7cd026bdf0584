/* What all kernels share. Where a product rounds before it is added is said by name, and an output element is one
 * left-to-right chain in one thread, so its bits are those of the CPU path (docs/architecture.md). No kernel has a
 * float atomic or adds across threads: registers, shared memory and lanes hold different outputs or copies of inputs.
 *
 * Pointers that may be null say so. Sizes of rows are 64-bit, of columns 32-bit. */
#ifndef LOCKSTEP_COMMON_CUH
#define LOCKSTEP_COMMON_CUH

typedef long long i64;
typedef unsigned long long u64;

#define DEVICE static __device__ __forceinline__
#define KERNEL extern "C" __global__ void

/* The thread's number in the grid: threads of a block lie in x, blocks in x. */
DEVICE i64 thread_number() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }

enum { WARP = 32 };

/* ---- copies into shared memory that the thread does not wait for: BYTES, 4 or 16, both sides aligned to them --------
 * GPUs before sm_80 have none, nor has the host: the thread copies by itself. */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define COPIES_APART
#endif

template <int BYTES> DEVICE void copy_ahead(float* shared, const float* global) {
#ifdef COPIES_APART
    const unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(global) : "memory");
#else
    for (int i = 0; i < BYTES / 4; ++i) shared[i] = global[i];
#endif
}

/* The same, or zeros, for which nothing is read. */
template <int BYTES> DEVICE void copy_or_clear(float* shared, const float* global, bool here) {
#ifdef COPIES_APART
    const unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    const int bytes = here ? BYTES : 0;
    if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
#else
    for (int i = 0; i < BYTES / 4; ++i) shared[i] = here ? global[i] : 0.0f;
#endif
}

/* Ends a group of copies. */
DEVICE void close_copies() {
#ifdef COPIES_APART
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until all but the latest LEFT groups of this thread are done. */
template <int LEFT> DEVICE void await_copies() {
#ifdef COPIES_APART
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

DEVICE float add(float a, float b) { return __fadd_rn(a, b); }
DEVICE float sub(float a, float b) { return __fsub_rn(a, b); }
DEVICE float mul(float a, float b) { return __fmul_rn(a, b); }

/* sum + a b, rounded once: the next link of a chain of a dense product. */
DEVICE float fused(float sum, float a, float b) { return __fmaf_rn(a, b, sum); }

/* sum + a b, rounded twice: the next link of other chains. */
DEVICE float link(float sum, float a, float b) { return __fadd_rn(sum, __fmul_rn(a, b)); }

DEVICE float4 add4(float4 a, float4 b) {
    return make_float4(add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w));
}

DEVICE float4 link4(float4 sum, float a, float4 b) {
    return make_float4(link(sum.x, a, b.x), link(sum.y, a, b.y), link(sum.z, a, b.z), link(sum.w, a, b.w));
}

DEVICE float open_gate(float z, float gate) { return mul(z, gate > 0.0f ? 1.0f : 0.0f); }

/* ---- exp and log of app/numerics/elementary.py: the same exact operations in the same order ------------------------ */

DEVICE float power_of_two(int n) { return __int_as_float((n + 127) << 23); }

DEVICE float exp_float(float x) {
    const bool inside = x > -87.0f && x < 88.7228f;
    const float t = inside ? x : 0.0f;
    const float n = floorf(add(mul(t, (float)(1 / 0.6931471805599453)), 0.5f));
    const float r = sub(sub(t, mul(n, 0.693359375f)), mul(n, -2.1219444005469057e-4f));
    const int e = (int)n, half = e >> 1;
    float p = (float)(1.0 / 5040);
    p = add(mul(p, r), (float)(1.0 / 720));
    p = add(mul(p, r), (float)(1.0 / 120));
    p = add(mul(p, r), (float)(1.0 / 24));
    p = add(mul(p, r), (float)(1.0 / 6));
    p = add(mul(p, r), 0.5f);
    p = add(mul(p, r), 1.0f);
    p = add(mul(p, r), 1.0f);
    p = mul(mul(p, power_of_two(half)), power_of_two(e - half));
    return inside ? p : x <= -87.0f ? 0.0f : x >= 88.7228f ? __int_as_float(0x7F800000) : x;
}

/* Of a normal number, or NaN. */
DEVICE float log_float(float x) {
    const int bits = __float_as_int(x), low_bits = (bits & 0x7FFFFF) | 0x3F000000;
    float m = __int_as_float(low_bits);
    const bool low = m < (float)0.7071067811865476;
    m = low ? add(m, m) : m;
    const int e = (bits >> 23) - 126 - (low ? 1 : 0);
    const float s = __fdiv_rn(sub(m, 1.0f), add(m, 1.0f)), t = mul(s, s);
    float series = add(mul(t, (float)(1.0 / 9)), (float)(1.0 / 7));
    series = add(mul(series, t), (float)(1.0 / 5));
    series = add(mul(series, t), (float)(1.0 / 3));
    const float tail = mul(mul(2.0f, s), add(1.0f, mul(t, series)));
    const float out = add(mul((float)e, (float)0.6931471805599453), tail);
    return x == x ? out : x;
}

/* Integers in the order of scores; -0 equals 0, NaN is above all. */
DEVICE u64 order_bits(float score) {
    const unsigned bits = (unsigned)__float_as_int(add(score, 0.0f));
    if (score != score) return 0xFFFFFFFFu;
    return bits >= 0x80000000u ? 0xFFFFFFFFu - bits : bits + 0x80000000u;
}

/* The order-preserving bits of a score above 2^32 - 1 - node: of equal scores the lowest node has the largest key. */
DEVICE u64 key_of(float score, i64 node) { return order_bits(score) << 32 | (0xFFFFFFFFull - (u64)node); }

#endif
