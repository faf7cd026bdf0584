"""Greedy vertex covers without learning: what a learned policy has to beat.

Each works on the whole graph on the host and returns `(in_cover, label)`: in_cover [n] bool, and the name to
print beside the result. All are exact in their tie rule, the lowest node number, hence deterministic; those
that app/native/greedy.c and cover_start.c have are the same with `compiled` and without.
"""

import ctypes
import heapq
from collections.abc import Callable

import numpy as np

from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.native.library import address, function
from app.search.cover.start import most_edges, rows_of_kernels

BLOCK = 512  # nodes per block of the two-level maximum
DENSE = 10  # a graph is dense with more entries than n^2 / DENSE
WORK = 1e9  # additions of the one-hop formula, above which it takes many nodes at once
ONE_IN = 100  # a round of the fast form takes one in so many of the nodes that have edges left

Baseline = Callable[..., tuple[np.ndarray, str]]
Long, Pointer = ctypes.c_int64, ctypes.c_void_p
LEAST = function("lk_cover_least", Long, *(Pointer,) * 5)
SINGLE = function("lk_cover_one_hop_single", Long, *(Pointer,) * 6)
ROUNDS = function("lk_cover_one_hop_rounds", Long, Pointer, Pointer, Long, Pointer, returns=ctypes.c_int)


def max_degree(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Take the node of largest residual degree until no edge is left.

    Source   the greedy algorithm for set cover (Johnson 1974, Chvátal 1979) applied to vertex cover
    returns  in_cover [n] bool, label; at most n - sum over nodes of 1/(1 + degree) nodes (Griggs 1983), and
             at most H(largest degree) times the optimum
    """
    _require_whole(graph)
    return most_edges(graph, None, compiled), "max degree"


def min_degree(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Leave out the node of smallest residual degree, take its neighbours, and repeat on what is left.

    Source   the minimum-degree greedy algorithm for independent sets; it attains the Caro-Wei bound
             (Caro 1979, Wei 1981)
    returns  in_cover [n] bool, label; at most n - sum over nodes of 1/(1 + degree) nodes
    """
    _require_whole(graph)
    if not (compiled and LEAST):
        return _least(graph), "min degree"
    numbers, marks = np.empty(3 * graph.n, dtype=np.int32), np.zeros((2, graph.n), dtype=np.uint8)
    arrays = (*rows_of_kernels(graph), numbers, marks[0], marks[1])
    LEAST(graph.n, *(address(array) for array in arrays))
    return marks[1].astype(bool), "min degree"


def _least(graph: Graph) -> np.ndarray:
    """min_degree without the library."""
    # As lists: three times faster than arrays in loops over single entries.
    indptr, indices = graph.indptr.tolist(), graph.indices.tolist()
    degree = graph.degrees().tolist()
    live = [True] * graph.n
    in_cover = np.zeros(graph.n, dtype=bool)
    heap = [d * graph.n + v for v, d in enumerate(degree)]
    heapq.heapify(heap)
    while heap:
        d, v = divmod(heapq.heappop(heap), graph.n)
        if not live[v] or degree[v] != d:
            continue
        live[v] = False
        taken = [u for u in indices[indptr[v] : indptr[v + 1]] if live[u]]
        for u in taken:
            live[u] = False
        in_cover[taken] = True
        touched = set()
        for u in taken:
            for w in indices[indptr[u] : indptr[u + 1]]:
                if live[w]:
                    degree[w] -= 1
                    touched.add(w)
        # The order of a set does not matter here: a heap of distinct integers pops in one order.
        for w in touched:
            heapq.heappush(heap, degree[w] * graph.n + w)
    return in_cover


def one_hop_formula(graph: Graph, work_limit: float = WORK, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Take the node with the largest sum over its live neighbours u of 1/degree(u)^2, until no edge is left.

    Degrees are residual, sums float64 over neighbours in ascending order, so a score is a function of the
    residual graph alone. A neighbour of degree d needs this node with a weight that falls with d: one of
    degree 1 counts in full. The formula is ours; like Caro-Wei's 1/(1 + d) it looks one hop further than the
    degree.

    work_limit  in additions, about 10 ns each: where one node at a time may need more, a round takes the best
                1 % of the nodes that have edges, skipping neighbours of those taken, and the label says so
    returns     in_cover [n] bool, label
    """
    _require_whole(graph)
    label = "one-hop formula"
    if one_hop_work(graph) > work_limit:
        return one_hop_rounds(graph, compiled), f"{label} (1 % a round)"
    return one_hop_single(graph, compiled), label


def one_hop_single(graph: Graph, compiled: bool = True) -> np.ndarray:
    """[n] bool, the one-hop formula, exactly one node at a time."""
    return _one_hop_compiled(graph) if compiled and SINGLE else _one_hop_plain(graph)


def _one_hop_compiled(graph: Graph) -> np.ndarray:
    """one_hop_single by the kernel."""
    n = graph.n
    floats, numbers, marks = np.empty(2 * n), np.empty(4 * n, np.int32), np.zeros(3 * n, np.uint8)
    arrays = (*rows_of_kernels(graph), floats, numbers, marks[n:], marks[:n])
    SINGLE(n, *(address(array) for array in arrays))
    return marks[:n].astype(bool)


def one_hop_work(graph: Graph) -> float:
    """An upper bound on the additions of the one-hop formula, one node at a time.

    Removing v changes the scores within two hops, and a score is one addition for each entry of its row.
    """
    degree = graph.degrees().astype(np.float64)
    rows = graph.row_of()
    reach = degree
    for _ in range(2):
        reach = np.bincount(rows, weights=reach[graph.indices], minlength=graph.n)
    return float(np.minimum(reach + degree, len(graph.indices)).sum())


def _one_hop_plain(graph: Graph) -> np.ndarray:
    """one_hop_single without the library; scores within two hops are recomputed from scratch."""
    indptr, indices, n = graph.indptr, graph.indices, graph.n
    degree = graph.degrees().copy()
    live = np.ones(n, dtype=bool)
    in_cover = np.zeros(n, dtype=bool)
    weight = _inverse_squares(degree)
    # Two levels: the largest score of every block of nodes, so that a step reads only the blocks it changed.
    blocks = -(-n // BLOCK)
    score = np.zeros(blocks * BLOCK)
    score[:n] = _sums(indptr, indices, np.arange(n), weight)
    grid = score.reshape(blocks, BLOCK)
    largest = grid.max(axis=1)
    while n:
        block = int(largest.argmax())
        if largest[block] <= 0:
            break
        v = block * BLOCK + int(grid[block].argmax())
        in_cover[v] = True
        live[v] = False
        score[v] = weight[v] = 0
        near = indices[indptr[v] : indptr[v + 1]]
        near = near[live[near]]
        degree[near] -= 1
        weight[near] = _inverse_squares(degree[near])
        changed = sorted_set(np.concatenate([near, indices[_positions(indptr, near)[0]]]))
        changed = changed[live[changed]]
        score[changed] = _sums(indptr, indices, changed, weight)
        touched = sorted_set(np.append(changed, v) // BLOCK)
        largest[touched] = grid[touched].max(axis=1)
    return in_cover


def one_hop_rounds(graph: Graph, compiled: bool = True, one_in: int = ONE_IN) -> np.ndarray:
    """The one-hop formula, a round taking the best one in `one_in` of the nodes that have edges.

    No two of them are adjacent, unless what is left is dense: a round would then take one node.
    """
    if not (compiled and ROUNDS):
        return _rounds(graph, one_in)
    in_cover = np.zeros(graph.n, dtype=np.uint8)
    indptr, indices = rows_of_kernels(graph)
    if ROUNDS(graph.n, address(indptr), address(indices), one_in, address(in_cover)) < 0:
        raise MemoryError(f"no memory for the one-hop formula on {graph.n} nodes")
    return in_cover.astype(bool)


def _rounds(graph: Graph, one_in: int) -> np.ndarray:
    """one_hop_rounds without the library."""
    in_cover = np.zeros(graph.n, dtype=bool)
    names = np.arange(graph.n)
    rows, cols = graph.row_of(), graph.indices
    while len(cols):
        # Number the nodes that have edges 0..n-1, in the old order: late rounds then cost what is left.
        degree = np.bincount(rows, minlength=len(names))
        kept = degree > 0
        number = np.cumsum(kept) - 1
        rows, cols, names, degree = number[rows], number[cols], names[kept], degree[kept]
        n, apart = len(names), DENSE * len(cols) <= len(names) ** 2
        first = np.cumsum(degree) - degree

        score = np.bincount(rows, weights=_inverse_squares(degree)[cols], minlength=n)
        # A stable sort leaves equal scores in the order of their numbers.
        best = np.argsort(-score, kind="stable")[: -(-n // one_in)]
        taken, blocked = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        for v in best.tolist():
            if not blocked[v]:
                taken[v] = True
                blocked[cols[first[v] : first[v] + degree[v]]] = apart
        in_cover[names[taken]] = True
        keep = ~(taken[rows] | taken[cols])
        rows, cols = rows[keep], cols[keep]
    return in_cover


def _inverse_squares(degree: np.ndarray) -> np.ndarray:
    """1/degree^2 in float64, 0 for degree 0."""
    square = np.square(degree, dtype=np.float64)
    return np.divide(1.0, square, out=np.zeros(len(square)), where=square > 0)


def _positions(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the entries of `rows` [k] are stored, and for each of them which of the k rows it belongs to."""
    counts = indptr[rows + 1] - indptr[rows]
    owner = np.repeat(np.arange(len(rows)), counts)
    first = np.cumsum(counts) - counts
    return np.arange(len(owner)) + (indptr[rows] - first)[owner], owner


def _sums(indptr: np.ndarray, indices: np.ndarray, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """[k] float64, for each of `rows` [k] the sum of `weight` [n] over its neighbours in ascending order."""
    positions, owner = _positions(indptr, rows)
    # bincount adds in the order of its input: a chain for each row; dead neighbours add zero.
    return np.bincount(owner, weights=weight[indices[positions]], minlength=len(rows))


def _require_whole(graph: Graph) -> None:
    if not graph.whole:
        raise ValueError(
            f"{graph.name}: rows {graph.lo}..{graph.hi - 1} held, the baselines need all {graph.n}"
        )


BASELINES: dict[str, Baseline] = {
    "max_degree": max_degree,
    "min_degree": min_degree,
    "one_hop": one_hop_formula,
}
