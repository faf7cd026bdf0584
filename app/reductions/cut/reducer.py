"""CutReducer: a graph made smaller without losing the maximum cut."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from app.graphs.graph import Graph
from app.reductions.cut import compiled as cut_compiled
from app.reductions.cut import log as cut_log
from app.reductions.cut.compiled import MOST_EDGES, CompiledCutResidual
from app.reductions.cut.log import LARGEST, PLACES
from app.reductions.cut.plain import PlainCutResidual

Nodes = Sequence[int] | np.ndarray


class CutKernel(NamedTuple):
    """What reductions leave: a cut of the graph is worth (offset + value * factor) >> places, in its units.

    graph     renumbered in ascending order; weights [nnz] float64, whole numbers: sums of 32-bit numbers
    nodes     [k] int64, the numbers of its nodes in the graph
    value     of a cut of the kernel. Lifted cuts are worth whole units; of a bound the fraction is dropped.
    """

    graph: Graph
    nodes: np.ndarray
    offset: int
    factor: int
    places: int

    def value_of(self, value: int) -> int:
        """The worth of a lifted cut, or the bound, for that of a cut of the kernel."""
        return (self.offset + value * self.factor) >> self.places

    def value_in(self, value: int) -> int:
        """The inverse for cuts; of a bound from below the smallest worth of a cut that reaches it."""
        return -((self.offset - (value << self.places)) // self.factor)


class CutReducer:
    """Exact reductions of maximum cut with weighted, signed edges; log.py lists them.

    The result is a function of the graph, with or without the compiled kernels.

    graph            whole, of fewer than MOST_EDGES edges
    weights          [nnz] int64, whole numbers of a unit, as integer_weights has them
    inside, outside  numbers of nodes on side 1 and on side 0
    counts           how often each rule of cut_log.RULES was applied
    """

    def __init__(
        self, graph: Graph, weights: np.ndarray, inside: Nodes = (), outside: Nodes = (),
        compiled: bool = True, places: int | None = None,
    ) -> None:  # fmt: skip
        """places   of the unit; None: as unit_places says"""
        self.graph = graph
        self._compiled = compiled and cut_compiled.available() and graph.edges < MOST_EDGES
        self.places = unit_places(weights) if places is None else places
        kind = CompiledCutResidual if self._compiled else PlainCutResidual
        rows = graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
        self._residual = kind(*map(np.ascontiguousarray, rows), weights << self.places)
        self.fixed = fixed_sides(inside, outside)
        for v, side in self.fixed[1:]:
            self._residual.tie(v, self.fixed[0][0], side != self.fixed[0][1])

    @property
    def steps(self) -> int:
        """Of `reduce` so far: looks at a node, and passes over all."""
        return self._residual.steps

    def reduce(self, look: Callable[[], Any] = lambda: False, most: int = 0) -> None:
        """Apply all rules until none does.

        look   called every now and then, after the same work on all ranks; where it is true that is the end,
               and what has been reduced by then counts
        most   end when `steps` are so many; 0: as many as there are
        """
        self._residual.reduce(look, most)

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule was applied."""
        return dict(self._residual.counts)

    @cached_property
    def log(self) -> np.ndarray:
        """[words] int64, the reductions in order; verify.verify_log checks them. After `reduce`."""
        return self._residual.log()

    def kernel(self) -> CutKernel:
        """What is left."""
        rows = self._residual.kernel()
        return kernel_of(self.graph.name, rows, self._residual.offset, self.places)

    def lift(self, kernel: CutKernel, sides: np.ndarray) -> np.ndarray:
        """[n] bool, the cut of the whole graph that belongs to a cut of the kernel, [k] bool."""
        found = np.zeros(self.graph.n, dtype=bool)
        found[kernel.nodes] = sides
        if self._compiled:
            cut_compiled.lift(self.log, sum(self.counts.values()), found)
        else:
            cut_log.lift(self.log, found)
        return turned(found, self.fixed)


def unit_places(weights: np.ndarray) -> int:
    """The binary places of the unit in which reductions count weights [nnz] int64."""
    return places_of(int(np.abs(weights).sum()))


def places_of(total: int) -> int:
    """The same for the sum of |weights| of both directions of every edge."""
    total = max(total, 1)
    return max(0, min(PLACES, LARGEST.bit_length() - 1 - total.bit_length()))


def fixed_sides(inside: Nodes, outside: Nodes) -> list[tuple[int, int]]:
    """(node, side) of the nodes that the caller has given sides, ascending: all are tied to the first."""
    return sorted([*((int(v), 1) for v in inside), *((int(v), 0) for v in outside)])


def turned(sides: np.ndarray, fixed: list[tuple[int, int]]) -> np.ndarray:
    """The same cut, turned over where the first node with a given side is not on it."""
    return ~sides if fixed and sides[fixed[0][0]] != fixed[0][1] else sides


def kernel_of(
    name: str, rows: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], offset: int, places: int
) -> CutKernel:
    """A kernel of indptr, indices, weights in the small unit, nodes; its own unit is as large as can be."""
    indptr, indices, weights, nodes = rows
    factor = int(np.bitwise_or.reduce(weights, initial=0))
    factor = factor & -factor or 1
    k, whole = len(nodes), (weights // factor).astype(np.float64)
    graph = Graph(f"{name} (kernel)", k, 0, k, indptr, indices, len(indices) // 2, whole)
    return CutKernel(graph, nodes, offset, factor, places)
