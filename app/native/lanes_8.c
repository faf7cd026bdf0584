/* The kernels for registers of 8 numbers: AVX2. */
#include "lanes.h"

#ifdef HAS_WIDER_LANES
#pragma GCC target("arch=x86-64-v3")
#define LANES 8
#define LANES_TABLE lk_lanes_8
#include "all_lanes.h"
#endif
