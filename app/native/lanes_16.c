/* The kernels for registers of 16 numbers, 32 of them: AVX-512. */
#include "lanes.h"

#ifdef HAS_WIDER_LANES
#pragma GCC target("arch=x86-64-v4")
#define LANES 16
#define LANES_TABLE lk_lanes_16
#include "all_lanes.h"
#endif
