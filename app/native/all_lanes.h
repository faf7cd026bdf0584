/* All kernels of one width, and the table of them. */
#include "vectors.h"

#include "spmm_lanes.h"
#include "tiled_lanes.h"
#include "live_lanes.h"
#include "dense_lanes.h"
#include "gram_lanes.h"
#include "basis_lanes.h"
#include "incremental_lanes.h"
#include "edge_lanes.h"

const Lanes LANES_TABLE = {LANES,      spmm,       tiled,       live,         lookup,        dense,
                           gram_block, basis_rows, basis_nodes, basis_shares, neighbour_sums, edge_add, edge_back,
                           edge_rows,  edge_gram};
