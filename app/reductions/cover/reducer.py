"""CoverReducer: a graph made smaller without losing the minimum-weight vertex cover."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.graphs.graph import Graph
from app.reductions.cover import compiled as kernels
from app.reductions.cover.compiled import CompiledResidual
from app.reductions.cover.log import lift
from app.reductions.cover.plain import PlainResidual
from app.reductions.fixed import MOST_WEIGHT, forced_nodes, rows_without

__all__ = ["MOST_WEIGHT", "CoverReducer"]


class CoverReducer:
    """Exact reductions of minimum vertex cover, with and without node weights; log.py lists them.

    A cover of least weight is the complement of an independent set of largest weight, so this serves both.
    The result is a function of the graph and of the calls made, with or without the compiled kernels.

    graph            whole
    weights          [n] positive whole numbers, their sum at most MOST_WEIGHT, or None: all one
    inside, outside  numbers of nodes that the cover must and must not hold; ValueError if no cover can
    compiled         use app/native/reduce.c where it was built
    settled          no rule applies to the graph: it is a kernel that another reducer has left

    alive, edges     nodes that have an edge left, and edges left
    offset           weight already paid: cover of the graph = offset + cover of the kernel, also for optima
    steps            of `reduce` so far: nodes that came to the rules, and relaxations
    exact            False once take() has put a node into the cover: the optima may then differ
    counts           how often each rule of log.RULES was applied
    forced           [n] bool, nodes in the cover because of `inside` and `outside`
    """

    def __init__(
        self,
        graph: Graph,
        weights: np.ndarray | None = None,
        inside: np.ndarray | Sequence[int] = (),
        outside: np.ndarray | Sequence[int] = (),
        compiled: bool = True,
        settled: bool = False,
    ) -> None:
        self.graph = graph
        self.unit = weights is None
        weight, self.forced = forced_nodes(graph, weights, inside, outside)
        self._paid = int(weight[self.forced].sum())
        indptr, indices = rows_without(graph, self.forced)
        kind = CompiledResidual if compiled and kernels.available() else PlainResidual
        self._residual = kind(indptr, indices, weight, self.unit, settled)

    @property
    def alive(self) -> int:
        """Nodes that have an edge left."""
        return self._residual.alive

    @property
    def edges(self) -> int:
        """Edges left."""
        return self._residual.edges

    @property
    def offset(self) -> int:
        """Weight already paid."""
        return self._paid + self._residual.offset

    @property
    def exact(self) -> bool:
        """Whether no node was chosen by take()."""
        return self._residual.exact

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule was applied."""
        return dict(self._residual.counts)

    @property
    def steps(self) -> int:
        """Of `reduce` so far."""
        return self._residual.steps

    def reduce(self, look: Callable[[], Any] = lambda: False, most: int = 0) -> None:
        """Apply all rules to a fixed point; looks at what has changed since the last call.

        look   called every now and then, after the same work on all ranks; where it is true that is the end,
               and what has been reduced by then counts
        most   end when `steps` are so many; 0: as many as there are

        A sweep of the whole residual graph, with the relaxation (CROWN), ends it: no rule changes the kernel,
        within the limits of log.py. After take() the next sweep waits until a quarter of the nodes of the
        last one have gone, so that a call costs what has changed.
        """
        self._residual.reduce(look, most)

    def take(self, nodes: np.ndarray | Sequence[int]) -> None:
        """Put nodes [k] of the graph into the cover, in this order; one that has no edge left is skipped."""
        nodes = np.ascontiguousarray(nodes, dtype=np.int64).reshape(-1)
        if len(nodes) and (nodes.min() < 0 or nodes.max() >= self.graph.n):
            raise ValueError(f"take: node numbers must be 0..{self.graph.n - 1}")
        self._residual.take(nodes)

    def degrees(self) -> np.ndarray:
        """[n] int64, the degree of each node in the residual graph; 0 for nodes that are gone."""
        return self._residual.degrees()

    def log(self) -> np.ndarray:
        """[words] int64, the reductions in order; verify.verify_log checks them."""
        return self._residual.log()

    def kernel(self) -> tuple[Graph, np.ndarray, np.ndarray | None]:
        """The residual graph, renumbered in ascending order.

        returns  graph, numbers [k] int64 of its nodes here (a fold keeps the number of one of its nodes),
                 weights [k] int64, or None where all are one
        """
        indptr, indices, nodes, weight = self._residual.kernel()
        k = len(nodes)
        graph = replace(
            self.graph, name=f"{self.graph.name} (kernel)", n=k, lo=0, hi=k, indptr=indptr, indices=indices,
            edges=self.edges, weights=None, ids=None, first_id=0, node_weights=None,
        )  # fmt: skip
        return graph, nodes, None if self.unit else weight

    def partners(self) -> np.ndarray | None:
        """A largest matching of the kernel's bipartite double cover.

        returns  [k] int64, for the left copy of each node the node whose right copy it is joined to, or -1.
                 None where reductions have not found one: they do with unit weights, where their last look at
                 the relaxation decided nothing
        """
        return self._residual.partners() if self.unit else None

    def lift(self, in_cover_kernel: np.ndarray) -> np.ndarray:
        """The cover of the whole graph that belongs to a cover of the kernel as it is now.

        in_cover_kernel  [k] bool
        returns          [n] bool; a cover if that is one, of weight offset + the weight of the kernel's cover
        """
        in_cover_kernel = np.asarray(in_cover_kernel)
        if in_cover_kernel.shape != (self.alive,) or in_cover_kernel.dtype != bool:
            raise ValueError(
                f"lift: needs [{self.alive}] bool, got {in_cover_kernel.shape} {in_cover_kernel.dtype}"
            )
        in_cover = np.zeros(self.graph.n, dtype=bool)
        in_cover[self.degrees() > 0] = in_cover_kernel
        if isinstance(self._residual, CompiledResidual):
            self._residual.lift(in_cover)
        else:
            lift(self.log(), in_cover)
        return in_cover | self.forced
