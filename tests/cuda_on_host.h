// CUDA C kernels compiled for the host: every thread of every block runs, one after the other, with the same rounding.
//
// Kernels of a file that has barriers run as fibers, one for each thread of a block, which are switched at barriers. A
// barrier that only some threads of a block, or of a warp, reach ends the process: on a GPU it would hang.
#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct uint3 {
    unsigned x, y, z;
};
struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
};
static uint3 threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static

static inline float4 make_float4(float x, float y, float z, float w) { return float4{x, y, z, w}; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline int __float_as_int(float a) {
    int out;
    memcpy(&out, &a, 4);
    return out;
}
static inline float __int_as_float(int a) {
    float out;
    memcpy(&out, &a, 4);
    return out;
}
static inline unsigned long long atomicMax(unsigned long long *at, unsigned long long value) {
    const unsigned long long old = *at;
    if (value > old) *at = value;
    return old;
}

struct Body {
    virtual void run() = 0;
};

struct Fiber {
    ucontext_t start;
    jmp_buf at;
    bool made, alive, in_warp; // in_warp: waits for its warp alone
};

enum { MOST_THREADS = 1024, STACK = 64 << 10, WARP_SIZE = 32 };
static Fiber fibers[MOST_THREADS];
static jmp_buf scheduler;
static Body *job;
static volatile unsigned current;

static void give_way() {
    if (!_setjmp(fibers[current].at)) _longjmp(scheduler, 1);
}

[[maybe_unused]] static void __syncthreads() {
    fibers[current].in_warp = false;
    give_way();
}

[[maybe_unused]] static void __syncwarp() {
    fibers[current].in_warp = true;
    give_way();
}

static void fiber_main() {
    for (;;) {
        job->run();
        fibers[current].alive = false;
        give_way();
    }
}

static void resume(unsigned i) {
    Fiber *fiber = &fibers[i];
    current = i;
    threadIdx = uint3{i, 0, 0};
    if (_setjmp(scheduler)) return;
    if (fiber->made) _longjmp(fiber->at, 1);
    fiber->made = true;
    getcontext(&fiber->start);
    fiber->start.uc_stack.ss_sp = malloc(STACK);
    fiber->start.uc_stack.ss_size = STACK;
    fiber->start.uc_link = nullptr;
    makecontext(&fiber->start, fiber_main, 0);
    setcontext(&fiber->start);
}

// The threads from `first` on that are alive, and of them those that wait for their warp alone.
static void count_fibers(unsigned first, unsigned count, unsigned *alive, unsigned *in_warp) {
    *alive = *in_warp = 0;
    for (unsigned i = first; i < first + count; ++i) {
        *alive += fibers[i].alive;
        *in_warp += fibers[i].alive && fibers[i].in_warp;
    }
}

static void refuse(unsigned some, unsigned all, const char *what) {
    fprintf(stderr, "a barrier that %u of %u threads of a %s reach\n", some, all, what);
    abort();
}

// From barrier to barrier, the threads of a warp together: those warps first that wait for themselves.
static void run_fibers(unsigned threads) {
    static volatile unsigned i, first;
    unsigned alive = threads, waiting = threads, some, inner;
    for (i = 0; i < threads; ++i) fibers[i].alive = fibers[i].in_warp = true;
    while (alive) {
        for (first = 0; first < threads; first += WARP_SIZE) {
            const unsigned size = threads - first < WARP_SIZE ? threads - first : WARP_SIZE;
            count_fibers(first, size, &some, &inner);
            if (!some || (waiting && !inner)) continue;
            for (i = first; i < first + size; ++i)
                if (fibers[i].alive) resume(i);
            count_fibers(first, size, &some, &inner);
            if (inner && inner != size) refuse(inner, size, "warp");
        }
        count_fibers(0, threads, &alive, &waiting);
        if (alive && !waiting && alive != threads) refuse(alive, threads, "block");
    }
}

static void run_grid(unsigned blocks, unsigned across, unsigned threads, Body *body, bool barriers) {
    gridDim = uint3{blocks, across, 1};
    blockDim = uint3{threads, 1, 1};
    job = body;
    for (unsigned y = 0; y < across; ++y)
        for (unsigned x = 0; x < blocks; ++x) {
            blockIdx = uint3{x, y, 0};
            if (barriers) run_fibers(threads);
            else
                for (unsigned i = 0; i < threads; ++i) {
                    threadIdx = uint3{i, 0, 0};
                    body->run();
                }
        }
}
