/* The kernels for registers of 16 numbers, 32 of them: AVX-512. All that is included is compiled for them,
 * whatever the command line says. The condition is that of HAS_WIDER_LANES. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("arch=x86-64-v4")
#define LANES 16
#define LANES_TABLE lk_lanes_16
#include "all_lanes.h"
#endif
