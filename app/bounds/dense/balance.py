"""Loads of the densest subgraph problem, balanced until the densest set is proved.

The linear program of the density (Charikar 2000) has a dual that shares the weight w_e of each edge between
its ends: any sharing proves that no set is denser than the largest load of a node for its size, because a set
S has

    W(S)  <=  sum over v of S of load(v)  <=  s(S) max over v of load(v) / s(v),

for the edges in S give all of their weight to nodes of S. Rounds of Greedy++ (Boob et al. 2020) make such
loads: in each of them nodes go one by one, that of the least load and rest of weight for its size first, and
it takes the edges that it still has. The mean of the rounds is a sharing, and what is left on the way are
sets, of which the densest counts; the first round is Charikar's peeling.

What is left to the optimum a flow decides (after Goldberg 1984, on the graph itself). With p/q the density of
the densest set that is known, each edge has q w_e units to give, and a node room for p s(v). Loads above the
room move along edges to nodes that have some (Dinic 1970). Either all loads fit: then they prove that p/q is
the largest density there is. Or the nodes that are reached from those with too much, R, have no room left:
they hold all of what the edges in R give and nothing of others, so that q W(R) = load(R) > p s(R), a denser
set, from which it goes on (Dinkelbach 1967). All numbers are whole.
"""

import ctypes
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np

from app.bounds.dense import plain
from app.bounds.dense.plain import BALANCED, DENSER
from app.graphs.dense import DenseGraph, row_sums
from app.native.library import address, function
from app.rng import stream

ROUNDS = 24  # of Greedy++, before flows
Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ROUND = function("lk_dense_round", Long, *[Pointer] * 10, returns=Long)
GROW = function("lk_dense_grow", Long, *[Pointer] * 7, returns=Long)
SCALE = function("lk_dense_scale", Long, *[Pointer] * 5, Long, Long)
PHASE = function("lk_dense_phase", Long, *[Pointer] * 10, returns=Long)


def available() -> bool:
    """True where the library was built."""
    return None not in (ROUND, GROW, SCALE, PHASE)


def ranks_of(n: int, seed: int | None) -> np.ndarray:
    """[n] int32, how ties go: by number, or as drawn."""
    if seed is None:
        return np.arange(n, dtype=np.int32)
    return stream(seed, "dense").permutation(n).astype(np.int32)


@dataclass(frozen=True)
class Ratio:
    """A density: the weight of the inner edges of a set, and its size."""

    weight: int
    size: int

    def reduced(self) -> tuple[int, int]:
        """The same in lowest terms."""
        common = gcd(self.weight, self.size)
        return self.weight // common, self.size // common


class Balance:
    """Loads of a graph with at least one node, and the densest set that they have led to, step by step.

    best        the density of that set       chosen   [n] bool, the set
    held, one   [nnz] int64, what the row of each entry holds of its edge, and the units to one of weight:
                0 before the first round
    steps       made so far: rounds, then phases of flows
    flows       whether rounds are over and flows at work
    done        the set is the densest

    """

    def __init__(self, graph: DenseGraph, seed: int | None = None, compiled: bool = True) -> None:
        """seed   how ties go; None: by number     compiled   False: the same without the compiled kernels"""
        n = graph.n
        self.graph, self.compiled = graph, compiled and available()
        self.rank = ranks_of(n, seed)
        self.chosen = np.zeros(n, dtype=bool)
        self.chosen[int(graph.size.argmin())] = True
        self.best = Ratio(0, int(graph.size.min()))
        self.held, self.one = np.zeros(len(graph.indices), dtype=np.int64), 0
        self.load = np.zeros(n, dtype=np.int64)
        self.steps, self.done, self.order = 0, False, np.zeros(n, dtype=np.int32)
        self.flows = False

    def know(self, chosen: np.ndarray) -> bool:
        """A set [n] bool from elsewhere; True where it is denser than all before."""
        weight, size = self.graph.inside(chosen)
        if weight * self.best.size <= self.best.weight * size:
            return False
        self.best, self.chosen = Ratio(weight, size), chosen.copy()
        if self.flows:
            self._aim()
        return True

    def step(self) -> None:
        """A round, or a phase of a flow."""
        self.steps += 1
        if self.flows:
            self._phase()
        else:
            self.round()
            self.flows = self.one >= ROUNDS
            if self.largest() == Fraction(*self.best.reduced()):
                self.done = True
            elif self.flows:
                self._aim()

    def largest(self) -> Fraction:
        """The largest load of a node for its size: no set is denser."""
        return largest_ratio(self.load, self.graph.size) / self.one

    # ---- rounds --------------------------------------------------------------------------------------------

    def round(self) -> None:
        """A round of Greedy++."""
        graph, best = self.graph, [self.best.weight, self.best.size]
        if self.compiled:
            order, start = self._run_round(best)
        else:
            load, held = self.load.tolist(), self.held.tolist()
            listed, start = plain.run_round(
                listed_rows(graph), graph.size.tolist(), self.rank.tolist(), load, held, best
            )
            self.load[:], self.held[:], order = load, held, np.array(listed, dtype=np.int32)
        self.one, self.order = self.one + 1, order
        if start < graph.n:
            self.best = Ratio(*best)
            self.chosen = np.zeros(graph.n, dtype=bool)
            self.chosen[order[start:]] = True

    def _run_round(self, best: list[int]) -> tuple[np.ndarray, int]:
        graph, rest = self.graph, self.graph.degree()
        order, known = np.zeros(graph.n, dtype=np.int32), np.array(best, dtype=np.int64)
        start = ROUND(
            graph.n, address(graph.indptr), address(graph.indices), address(graph.weight),
            address(graph.size), address(self.rank), address(rest), address(self.load), address(self.held),
            address(order), address(known),
        )  # fmt: skip
        if start < 0:
            raise MemoryError("peeling")
        best[:] = known.tolist()
        return order, start

    # ---- flows ---------------------------------------------------------------------------------------------

    def _aim(self) -> None:
        """Loads in the unit of the best density, and room for it."""
        graph = self.graph
        p, q = self.best.reduced()
        arrays = graph.indptr, graph.indices, graph.weight, graph.twin, self.held
        if self.compiled:
            SCALE(graph.n, *map(address, arrays), self.one, q)
        else:
            plain.scale(*arrays, self.one, q)
        self.one, self.load = q, row_sums(self.held, graph.indptr)
        self.cap = p * graph.size

    def _phase(self) -> None:
        """A phase; where nothing more can move the set is the densest, or there is a denser one."""
        level, found = self._run_phase()
        if found == BALANCED:
            self.done = True
        elif found == DENSER:
            self.know(level >= 0)

    def _run_phase(self) -> tuple[np.ndarray, int]:
        graph, n = self.graph, self.graph.n
        level = np.zeros(n, dtype=np.int32)
        arrays = graph.indptr, graph.indices, graph.twin, self.held, self.load, self.cap, level
        if not self.compiled:
            return level, plain.phase(*arrays)
        room = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        return level, PHASE(n, *map(address, (*arrays, *room)))


def listed_rows(graph: DenseGraph) -> list[list[tuple[int, int, int]]]:
    """Of each node (entry, neighbour, weight)."""
    ptr, near, weight = graph.indptr.tolist(), graph.indices.tolist(), graph.weight.tolist()
    return [[(j, near[j], weight[j]) for j in range(ptr[v], ptr[v + 1])] for v in range(graph.n)]


def largest_ratio(load: np.ndarray, size: np.ndarray) -> Fraction:
    """The largest of the ratios load / size of nodes [n] int64, exactly; sizes are above 0."""
    if not len(load):
        return Fraction(0)
    about = load / size
    # What is within the rounding of the largest is compared exactly, one of each size: many nodes may be so.
    near = np.flatnonzero(about >= about.max() - 1e-12 * abs(about.max()))
    sizes, which = np.unique(size[near], return_inverse=True)
    most = np.full(len(sizes), np.iinfo(np.int64).min)
    np.maximum.at(most, which, load[near])
    return max(map(Fraction, most.tolist(), sizes.tolist()))


def grown(graph: DenseGraph, compiled: bool = True) -> np.ndarray:
    """[n] int32, the nodes in the order in which greedy adding takes them."""
    order, rank = np.zeros(graph.n, dtype=np.int32), ranks_of(graph.n, None)
    if not (compiled and available()):
        listed = plain.grow(listed_rows(graph), graph.size.tolist(), rank.tolist())
        return np.array(listed, dtype=np.int32)
    arrays = graph.indptr, graph.indices, graph.weight, graph.size, rank, graph.degree(), order
    if GROW(graph.n, *map(address, arrays)) < 0:
        raise MemoryError("greedy adding")
    return order
