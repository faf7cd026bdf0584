"""Branch and reduce for minimum (weight) vertex cover: compiled (native/branch.c), else a plain recursion.

Both find a cover of the same, smallest cost; which of several such covers may differ.
"""

import ctypes
from collections.abc import Iterator

import numpy as np

from app.bounds.cover.kernels import Rows
from app.bounds.cover.plain import neighbours
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
NEW = function("lk_branch_new", Long, *[Pointer] * 3, Long, returns=Pointer)
RUN = function("lk_branch_run", Pointer, Long, returns=Long)
RESULT = function("lk_branch_result", Pointer, Pointer, Pointer, returns=Long)
FREE = function("lk_branch_free", Pointer)
DENSE_NEW = function("lk_dense_new", Long, *[Pointer] * 4, Long, Long, returns=Pointer)
DENSE_RUN = function("lk_dense_run", Pointer, Long, returns=Long)
DENSE_RESULT = function("lk_dense_result", Pointer, Pointer, Pointer, returns=Long)
DENSE_FREE = function("lk_dense_free", Pointer)

METHOD = "branch and reduce"
DENSE = 0.08  # share of the pairs that are edges, from which on bit sets pay
LARGEST_DENSE = 3000  # nodes: bit sets take n^2 / 2 bytes


class BranchSearch:
    """The search for the cheapest cover that costs less than `limit`.

    rows, weights   the graph; weights [n] int64, at least 0
    done            True once the tree is empty; then cost and cover are the optimum, or cost is None: every
                    cover costs at least `limit`
    nodes           tree nodes so far
    """

    def __init__(self, rows: Rows, weights: np.ndarray, limit: int, compiled: bool = True) -> None:
        self.done, self.nodes, self.cost, self.cover = False, 0, None, None
        self._handle, self._plain, self._n = None, None, rows.n
        if compiled and None not in (NEW, RUN, RESULT, FREE):
            arrays = map(address, (rows.indptr, rows.indices, weights))
            self._handle = NEW(rows.n, *arrays, limit)
            if not self._handle:
                raise MemoryError("branch and reduce")
        else:
            self._plain = _PlainSearch(rows, weights, limit)
            self._steps = self._plain.steps()

    def __del__(self) -> None:
        if self._handle:
            FREE(self._handle)
            self._handle = None

    def run(self, nodes: int) -> bool:
        """Work on at most `nodes` tree nodes; returns `done`. Raises MemoryError."""
        if self.done:
            return True
        if self._handle:
            self._run_compiled(nodes)
        else:
            self._run_plain(nodes)
        return self.done

    def _run_compiled(self, nodes: int) -> None:
        status = RUN(self._handle, nodes)
        if status < 0:
            raise MemoryError("branch and reduce")
        cover, count = np.zeros(max(self._n, 1), dtype=np.uint8), np.zeros(1, dtype=np.int64)
        cost = RESULT(self._handle, address(cover), address(count))
        self.nodes, self.done = int(count[0]), status == 1
        if self.done and cost >= 0:
            self.cost, self.cover = cost, cover[: self._n].astype(bool)
        if self.done:
            FREE(self._handle)
            self._handle = None
            self._steps = iter(())

    def _run_plain(self, nodes: int) -> None:
        for _ in range(nodes):
            if next(self._steps, None) is None:
                self.done = True
                break
            self.nodes += 1
        if self.done and self._plain.best is not None:
            self.cost, self.cover = self._plain.limit, self._plain.best


class _PlainSearch:
    """Depth first: leaves' neighbours and the heaviest degree first, a matching as the bound.

    limit   the cost of the best cover [n] bool found, or the given limit while there is none
    """

    def __init__(self, rows: Rows, weights: np.ndarray, limit: int) -> None:
        self.near, self.weight = [set(row) for row in neighbours(rows)], weights.tolist()
        self.n, self.limit, self.best = rows.n, limit, None

    def steps(self) -> Iterator[bool]:
        """One tree node an item."""
        stack = [(set(range(self.n)), frozenset())]
        while stack:
            alive, cover = stack.pop()
            yield True
            edges = {v: self.near[v] & alive for v in alive}
            cost = sum(self.weight[v] for v in cover)
            if cost + self._matching(edges) >= self.limit:
                continue
            node = max(sorted(alive), key=lambda v: len(edges[v]), default=None)
            if node is None or not edges[node]:
                self.limit, self.best = cost, np.isin(np.arange(self.n), list(cover))
                continue
            stack.append((alive - edges[node] - {node}, cover | edges[node]))
            stack.append((alive - {node}, cover | {node}))

    def _matching(self, edges: dict[int, set[int]]) -> int:
        """The local-ratio bound: each edge takes the lesser remaining weight off both its ends."""
        rest, bound = {v: self.weight[v] for v in edges}, 0
        for v in sorted(edges):
            for u in sorted(edges[v]):
                least = min(rest[u], rest[v])
                rest[u] -= least
                rest[v] -= least
                bound += least
        return bound


class DenseSearch:
    """As BranchSearch, for dense graphs: the heaviest independent set on bit sets (native/clique.c)."""

    def __init__(self, rows: Rows, weights: np.ndarray, limit: int) -> None:
        self.done, self.nodes, self.cost, self.cover = False, 0, None, None
        self._n, self._weights, total = rows.n, weights, int(weights.sum())
        order = dense_order(rows, weights)
        arrays = map(address, (rows.indptr, rows.indices, weights, order))
        # A cover that costs less than `limit` leaves out more than total - limit.
        self._handle = DENSE_NEW(rows.n, *arrays, max(total - limit, -1), total)
        if not self._handle:
            raise MemoryError("dense search")

    @staticmethod
    def available() -> bool:
        """True where the library was built."""
        return None not in (DENSE_NEW, DENSE_RUN, DENSE_RESULT, DENSE_FREE)

    def __del__(self) -> None:
        if self._handle:
            DENSE_FREE(self._handle)
            self._handle = None

    def run(self, nodes: int) -> bool:
        """Work on at most `nodes` tree nodes; returns `done`. Raises MemoryError."""
        if self.done:
            return True
        status = DENSE_RUN(self._handle, nodes)
        if status < 0:
            raise MemoryError("dense search")
        cover, count = np.zeros(max(self._n, 1), dtype=np.uint8), np.zeros(1, dtype=np.int64)
        found = DENSE_RESULT(self._handle, address(cover), address(count))
        self.nodes, self.done = int(count[0]), status == 1
        if self.done and found:
            self.cover = cover[: self._n].astype(bool)
            self.cost = int(self._weights[self.cover].sum())
        return self.done


def dense_order(rows: Rows, weights: np.ndarray) -> np.ndarray:
    """[n] int32: heavy nodes first; of equal ones those of many neighbours last, taken off one by one."""
    degree = np.diff(rows.indptr)
    out = np.empty(rows.n, dtype=np.int32)
    for place in range(rows.n - 1, -1, -1):
        node = int(degree.argmax())
        out[place] = node
        degree[rows.indices[rows.indptr[node] : rows.indptr[node + 1]]] -= 1
        degree[node] = -(1 << 40)
    return out[np.argsort(-weights[out], kind="stable")]


def search_for(
    rows: Rows, weights: np.ndarray, limit: int, compiled: bool = True
) -> BranchSearch | DenseSearch:
    """The search that suits the density of the graph."""
    dense = len(rows.indices) > DENSE * rows.n * (rows.n - 1) and 0 < rows.n <= LARGEST_DENSE
    if dense and compiled and DenseSearch.available():
        return DenseSearch(rows, weights, limit)
    return BranchSearch(rows, weights, limit, compiled)
