"""Plain feedback vertex sets without learning: what searches have to beat, and where they begin.

Each works on a multigraph with node weights and returns `(chosen, name)`: chosen [n] bool, and the name to
print beside the result. Ties go to the lowest node number.
"""

import ctypes
import heapq

import numpy as np

from app.graphs.multigraph import Multigraph
from app.native.library import address, function
from app.search.fvs import plain

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GREEDY = function("lk_feedback_greedy", Long, *(Pointer,) * 7, returns=Long)
NEEDED = function("lk_feedback_needed", Long, *(Pointer,) * 3, Long, *(Pointer,) * 4)
PRICE = 1 << 30  # of the heaviest node
MOST_WHOLE = 1 << 62  # of products in 64 bits
LARGEST = 1 << 18  # nodes and entries up to which local ratios are followed


def core_hd(core: Multigraph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The node of the largest degree of the 2-core leaves, until there is none; with weights that of the
    least weight / (degree - 1). Nodes that no cycle needs go back, the last first.

    Source   CoreHD: Zdeborová, Zhang and Zhou, Fast and simple decycling and dismantling of networks, 2016
    """
    return pruned(core, greedy_order(core, compiled), compiled), LABELS["core_hd"]


def core_hd_bare(core: Multigraph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The same, nothing put back: beside a policy's choices as they are."""
    chosen = np.zeros(core.n, dtype=bool)
    chosen[greedy_order(core, compiled)] = True
    return chosen, LABELS["core_hd_bare"]


def greedy_order(core: Multigraph, compiled: bool = True) -> np.ndarray:
    """[k] int32, the nodes of that set in their order, before any goes back."""
    heaviest = int(core.weights.max(initial=1))
    if heaviest <= MOST_WHOLE // PRICE:
        price = np.maximum(core.weights * PRICE // heaviest, 1)
    else:
        price = np.array([(w * PRICE // heaviest) or 1 for w in core.weights.tolist()], dtype=np.int64)
    if not (compiled and GREEDY and core.n):
        return np.array(plain.greedy(core, price.tolist()), dtype=np.int32)
    order, scratch = np.empty(core.n, dtype=np.int32), np.empty(core.n, dtype=np.int32)
    given = core.indptr, core.indices, core.twice, price, core.degrees(), order, scratch
    count = GREEDY(core.n, *map(address, given))
    if count < 0:
        raise MemoryError
    return order[:count].copy()


def pruned(core: Multigraph, order: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[n] bool, a set named in some order [k] without those that no cycle needs, the last first."""
    chosen = np.zeros(core.n, dtype=bool)
    chosen[order] = True
    if not (compiled and NEEDED and core.n):
        return plain.needed(core, chosen, order.tolist())
    order, bytes_of = np.ascontiguousarray(order, dtype=np.int32), chosen.astype(np.uint8)
    scratch = np.empty(core.n, dtype=np.int32), np.empty(core.n, dtype=np.int32)
    given = map(address, (core.indptr, core.indices, core.twice))
    NEEDED(core.n, *given, len(order), address(order), address(bytes_of), *map(address, scratch))
    return bytes_of.astype(bool)


def local_ratio(core: Multigraph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Weights fall in proportion to degree - 1 in what is left, on a cycle of nodes of degree two (but one)
    evenly; a node that has none left is chosen. At most twice the lightest set.

    Source   Bafna, Berman and Fujito, A 2-approximation algorithm for the undirected feedback vertex set
             problem, SIAM Journal on Discrete Mathematics 1999
    """
    return pruned(core, np.array(LocalRatio(core).order, dtype=np.int32), compiled), LABELS["local_ratio"]


class LocalRatio:
    """The course of that algorithm.

    order   the nodes chosen, in their order
    near    of each node of the 2-core its neighbours there and how many edges lead there
    left    what is left of a node's weight as `since` says how far all had fallen; fallen: by how much for
            each degree beyond the first
    """

    def __init__(self, core: Multigraph) -> None:
        ptr, columns, twice = core.indptr.tolist(), core.indices.tolist(), core.twice.tolist()
        self.near = {v: {columns[j]: 1 + twice[j] for j in range(ptr[v], ptr[v + 1])} for v in range(core.n)}
        self.degree = core.degrees().tolist()
        self.left = core.weights.astype(np.float64).tolist()
        self.since = [0.0] * core.n
        self.fallen = 0.0
        self.order: list[int] = []
        self._heap: list[tuple[float, int]] = []
        self._changed = list(range(core.n))
        self._waits = [True] * core.n  # in that list
        while self._settled():
            at, v = heapq.heappop(self._heap)
            if v in self.near and at == self._zero(v):
                self.fallen = max(at, self.fallen)
                self._take(v)

    def _zero(self, v: int) -> float:
        """How far all have fallen when a node has nothing left."""
        return self.since[v] + self.left[v] / (self.degree[v] - 1)

    def _note(self, v: int) -> None:
        """A node's degree is about to change."""
        fall = (self.fallen - self.since[v]) * (self.degree[v] - 1)
        self.left[v], self.since[v] = max(self.left[v] - fall, 0.0), self.fallen
        self._wait(v)

    def _wait(self, v: int) -> None:
        if not self._waits[v]:
            self._waits[v] = True
            self._changed.append(v)

    def _take(self, v: int) -> None:
        self.order.append(v)
        self._leave(v)

    def _leave(self, v: int) -> None:
        for u, count in self.near.pop(v).items():
            self._note(u)
            del self.near[u][v]
            self.degree[u] -= count

    def _settled(self) -> bool:
        """No leaves, no cycle of nodes of degree two; whether a node is left."""
        while self._changed:
            v = self._changed.pop()
            self._waits[v] = False
            if v not in self.near:
                continue
            if self.degree[v] < 2:
                self._leave(v)
                continue
            if self.degree[v] == 2 and (cycle := self._cycle(v)):
                self._lower(cycle)
                self._wait(v)
                continue
            heapq.heappush(self._heap, (self._zero(v), v))
        return bool(self._heap)

    def _cycle(self, v: int) -> list[int]:
        """The nodes of a cycle through v whose degree is two, but for one at most; empty: there is none."""
        if len(self.near[v]) == 1:
            return [v, *self.near[v]]
        arms = []
        for first in self.near[v]:
            arm, before, at = [], v, first
            while True:
                arm.append(at)
                if at == v or self.degree[at] != 2 or len(self.near[at]) == 1:
                    break
                before, at = at, next(u for u in self.near[at] if u != before)
            if at == v:
                return arm
            arms.append(arm)
        return [v, *arms[0], *arms[1][:-1]] if arms[0][-1] == arms[1][-1] else []

    def _lower(self, cycle: list[int]) -> None:
        """The nodes of a cycle lose as much as the one that has the least."""
        for u in cycle:
            self._note(u)
        least = min(self.left[u] for u in cycle)
        empty = [u for u in cycle if self.left[u] <= least]
        for u in cycle:
            self.left[u] -= least
        self._take(min(empty))


LABELS = {"core_hd_bare": "CoreHD, bare", "core_hd": "CoreHD", "local_ratio": "local ratio"}
FEEDBACK_BASELINES = {"core_hd": core_hd, "local_ratio": local_ratio}
