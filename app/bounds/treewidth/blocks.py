"""Whether a graph has a tree decomposition without a heavy bag, found from its blocks upward.

A block is a connected set C of nodes with the nodes N(C) around it; it is feasible where C and N(C) have a
tree decomposition without a heavy bag, one of whose bags holds N(C). A bag B and the components of the graph
without it make blocks feasible. Let P be one of the components, N(P) not all of B, and let all components
that are not known to be feasible be outside: their neighbours lie in N(P). Then the component C of the graph
without P and N(P) that holds the rest of B is feasible: below B hang the components that are part of C. Where
all components are feasible, B is the root of a decomposition of the graph.

Some decomposition of the least heaviest bag has bags that are potential maximal cliques: every two nodes of
B are adjacent, or near one component. Take v in B that is not near P. A node u of B that is not a neighbour
of v shares a component with it, which is not P. So

    B = (N[v] with the nodes around the components near v) without these components.

A cluster are some feasible blocks, apart from each other, that are all near some nodes; each of these is v.
Where v is near none, B = N[v]. So all bags that matter follow from clusters, and blocks found early make
clusters for later ones. A bag waits for components that are not known to be feasible yet. The root is a bag
that holds node 0, hence no block does. What is feasible is all that is ever looked at, which is little where
no decomposition is: the work grows with the blocks that are feasible, not with all minimal separators.

Source   potential maximal cliques: Bouchitte and Todinca, SIAM Journal on Computing 2001; from feasible
         blocks upward: Tamaki, Positive-instance driven dynamic programming for treewidth, ESA 2017. There,
         all unions of blocks whose neighbours fit one bag are kept; clusters share a node, and components
         that no cluster has are looked up.
"""

import ctypes
import math

import numpy as np

from app.bounds.treewidth import plain_blocks as plain
from app.bounds.treewidth.exact import Found, words_of
from app.graphs.graph import Graph
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
BLOCKS = function("lk_block_seek", Long, Long, Pointer, Pointer, *[Long] * 3, Pointer, Pointer, returns=Long)
MOST_NODES = 512  # eight words
MOST_SECONDS = 1e9  # of a clock
PLAIN_ROW_BYTES = 400  # numbers, tuples and lists of Python, but for the nodes of the sets


def _words(n: int) -> int:
    """Words of a set: 1, 2, 4 or 8."""
    return 1 << max(-(-n // 64) - 1, 0).bit_length()


def row_bytes(n: int, compiled: bool = True) -> int:
    """What each row takes that a search may hold."""
    return 40 * _words(n) + (56 if compiled and BLOCKS else PLAIN_ROW_BYTES)


def _nanoseconds(seconds: float) -> int:
    """For the kernel; -1 where there are more than it could count."""
    return int(max(seconds, 0.0) * 1e9) if seconds < MOST_SECONDS else -1


def seek_blocks(
    graph: Graph, most: int, limit: int, weights: np.ndarray | None = None, compiled: bool = True,
    seconds: float = math.inf,
) -> Found:  # fmt: skip
    """Whether a graph of up to MOST_NODES nodes has an order without a bag heavier than `most`.

    limit     rows that may be held: components, bags, clusters, waiting ones; comparisons count a little
    weights   [n] int64, above 0; None: all one
    seconds   that it may take, but for the last rows; then nothing is known
    """
    if not graph.n:
        return Found(np.zeros(0, dtype=np.int64), True, 0)
    near = words_of(graph)
    if not (compiled and BLOCKS):
        order, known, held = plain.seek_blocks(near, most, limit, weights, seconds)
        return Found(None if order is None else np.array(order, dtype=np.int64), known, held)
    words = _words(graph.n)
    sets = np.frombuffer(b"".join(each.to_bytes(8 * words, "little") for each in near), dtype="<u8")
    weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.int64)
    found, told = np.empty(graph.n, dtype=np.int32), np.zeros(1, dtype=np.int64)
    given, made = (sets, weights), (found, told)
    limits = most, limit, _nanoseconds(seconds)
    end = BLOCKS(graph.n, words, *map(address, given), *limits, *map(address, made))
    if end < -1:
        raise MemoryError("blocks of tree decompositions")
    return Found(found.astype(np.int64) if end == 1 else None, end >= 0, int(told[0]))
