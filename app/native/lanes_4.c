/* The kernels for registers of 4 numbers: SSE2, NEON, and whatever else there is. */
#define LANES 4
#define LANES_TABLE lk_lanes_4
#include "all_lanes.h"
