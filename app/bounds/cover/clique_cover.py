"""The clique-cover bound: a cover leaves out at most one node of each clique."""

from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate, Bound
from app.bounds.cover.kernels import Rows, iterate_cover
from app.bounds.cover.packing import Columns
from app.graphs.graph import Graph
from app.graphs.keys import first_of_runs
from app.graphs.lists import ranges
from app.rng import SplitMix

ROUNDS = 30  # of iterated greedy in `clique_cover`, from each start
ENTRIES = 5_000_000  # stored entries that these rounds go through, at most


@dataclass(frozen=True, eq=False)
class CliqueCover(Bound):
    """No vertex cover has fewer than `lower` nodes: n minus the number of cliques the nodes fall into.

    clique   [n] int64   the clique of each node; an independent set has at most one node of each
    """

    lower: int
    method: str
    clique: np.ndarray

    def check(self, graph: Graph) -> None:
        """Prove the bound: every two nodes of a clique are joined by an edge. Raises BadCertificate."""
        if self.clique.shape != (graph.n,) or (graph.n and self.clique.min() < 0):
            raise BadCertificate(f"{self.method}: not every node of {graph.name} has a clique")
        rows = graph.row_of()
        inside = self.clique[rows] == self.clique[graph.indices]
        joined = np.bincount(rows[inside], minlength=graph.n)
        size = np.bincount(self.clique, minlength=1)
        short = np.flatnonzero(joined != size[self.clique] - 1)
        if len(short):
            raise BadCertificate(f"{self.method}: node {short[0]} is not joined to all of its clique")
        proved = graph.n - np.count_nonzero(size) if graph.n else 0
        if proved != self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.lower}"
            )


class CliqueSearch:
    """Covers of the nodes by cliques, better and better ones.

    A cover leaves out at most one node of each clique, so what it leaves out weighs at most the sum over the
    cliques of the heaviest node: `left_out`, of the best cover so far.

    Starts    each node joins the largest clique that it is joined to entirely, or opens one: first in the
              order of the node numbers (structured graphs often list their cliques), then those of low degree
              first (with weights: the heavy ones first)
    Source    greedy colouring of the complement (Welsh and Powell 1967), on the edges of the graph itself;
              iterated greedy (Culberson 1992): the same again with the nodes of each clique next to each
              other never needs more cliques

    rows, weights   the graph; weights [n] int64     seed   of the orders of cliques
    clique          [n] int32, the best cover
    """

    def __init__(self, rows: Rows, weights: np.ndarray, seed: int = 0, compiled: bool = True) -> None:
        self._rows, self._weights, self._compiled = rows, weights, compiled
        self._random = SplitMix(seed)
        self.clique, self.left_out = np.zeros(rows.n, dtype=np.int32), -1
        degree = np.diff(rows.indptr)
        self._starts = [np.arange(rows.n), np.lexsort((degree, -weights))]
        self._orders = []

    def run(self, rounds: int) -> bool:
        """The starts, or rounds of iterated greedy from each of them; True where the cover became better."""
        before = self.left_out
        if self._starts:
            order = self._starts.pop(0).astype(np.int32)
            self._iterate(order, 0)
            self._orders.append(order)
        else:
            for order in self._orders:
                self._iterate(order, rounds)
        return before < 0 or self.left_out < before

    def _iterate(self, order: np.ndarray, rounds: int) -> None:
        self.left_out = iterate_cover(
            self._rows, self._weights, order, self.clique, self.left_out, rounds, self._random, self._compiled
        )

    def columns(self) -> tuple[Columns, np.ndarray]:
        """The cover as a packing: columns and their values [k] int64, which keep to the weights.

        Of a clique with the weights r1 <= r2 <= ..., all its nodes get r1, all but the first r2 - r1, and so
        on: together all weights but the largest.
        """
        order = np.lexsort((self._weights, self.clique))
        first = first_of_runs(self.clique[order])
        weights = self._weights[order].astype(np.int64)
        more = np.diff(weights, prepend=0)  # than the node before it in its clique
        more[first] = weights[first]
        ends = np.append(np.flatnonzero(first)[1:], len(order))[np.cumsum(first) - 1]
        starts = np.flatnonzero((more > 0) & (np.arange(len(order)) < ends - 1))
        sizes = ends[starts] - starts
        ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        nodes = order[ranges(starts, sizes)]
        return Columns(ptr, nodes.astype(np.int32), np.ones(len(starts), dtype=bool)), more[starts]


def clique_cover(graph: Graph, compiled: bool = True) -> CliqueCover:
    """The clique-cover bound after a fixed number of rounds.

    graph    whole
    returns  n minus the number of cliques; strong on dense graphs, where the LP bound is n/2
    """
    if not graph.n:
        return CliqueCover(0, "clique cover", np.zeros(0, dtype=np.int64))
    search = CliqueSearch(Rows(graph), np.ones(graph.n, dtype=np.int64), compiled=compiled)
    for _ in range(3):
        search.run(min(ROUNDS, ENTRIES // max(len(graph.indices), 1)))
    return CliqueCover(graph.n - search.left_out, "clique cover", search.clique.astype(np.int64))
