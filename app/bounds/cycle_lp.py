"""The bound of packings of edges, odd cycles and cliques, whose columns are found as they are needed."""

from collections.abc import Iterator

import numpy as np

from app.bounds.first_order import PackingProgram
from app.bounds.kernels import Rows, cliques, odd_cycles
from app.bounds.packing import (
    ONE,
    Columns,
    Packing,
    columns_of,
    denominator,
    edge_columns,
    joined,
    nothing,
    packing,
    repaired,
)
from app.graphs.graph import Graph

METHOD = "packing of edges, odd cycles and cliques"
STEPS = 300  # of the first-order method between two separations; twice as many after some rounds in vain
MANY = 60  # edges a node, from which on edges too are columns only when violated
SLICE = 30_000_000  # entries of the program that one slice goes through, at most
ROOTS = {True: 512, False: 64}  # searches in one slice, compiled or not
SHARE = 3  # a node that lies on so many new columns starts no search of its own
MARGIN = ONE // 50  # columns violated by less are not looked for
IDLE = 1e-4  # columns with smaller values are dropped
PATIENCE = {True: 24, False: 2}  # rounds in vain, while many columns are found or few
FEW = 0.02  # of the number of nodes: so many columns are few


class CyclePacking:
    """Cutting planes for vertex cover, from the side of their dual.

    Every cover x satisfies x(C) >= k-1 for a clique C of k nodes and x(C) >= (L+1)/2 for an odd cycle of
    length L (Padberg 1973, Nemhauser and Trotter 1974). Rounds of: values and prices of the columns by a
    first-order method, the values made exact, which is a bound; then columns that the prices violate, odd
    cycles by shortest paths in the bipartite double cover with the lengths x_u + x_v - 1 (Grötschel, Lovász
    and Schrijver 1988), cliques greedily.

    best   the best Packing so far
    """

    def __init__(self, graph: Graph, weights: np.ndarray | None, compiled: bool = True) -> None:
        """graph: whole, with edges; weights [n] int64 or None: all one."""
        self._n, self._rows, self._compiled = graph.n, Rows(graph), compiled
        self._given = weights
        self._weights = np.ones(graph.n, dtype=np.int64) if weights is None else weights
        self._one = denominator(self._weights)
        self._columns, self._lazy = edge_columns(graph), None
        if graph.edges > MANY * graph.n:
            self._lazy, self._columns = self._columns.nodes.reshape(-1, 2), columns_of([], True)
        self._edges = len(self._columns)  # the first columns, which stay
        self._x, self._y = np.full(graph.n, 0.5), np.zeros(self._edges)
        self._keys: list[bytes] = []  # of the columns after the edges
        self.best = nothing(weights, METHOD)

    def add(self, columns: Columns) -> None:
        """Columns to begin with, such as a clique cover's."""
        lists = np.split(columns.nodes, columns.ptr[1:-1]) if len(columns) else []
        self._extend([(nodes, clique) for nodes, clique in zip(lists, columns.clique) if len(nodes) > 2])

    def slices(self) -> Iterator[None]:
        """The work, cut into slices; ends when nothing more is found."""
        idle = 0
        many = True
        while idle < PATIENCE[many]:
            before = self.best.lower
            many = (yield from self._separate()) > FEW * self._n
            yield from self._solve(STEPS << idle // 8)
            idle = 0 if self.best.lower > before else idle + 1

    def _separate(self) -> Iterator[None]:
        """Add columns that the prices violate; returns how many."""
        price = np.clip(np.rint(self._x * ONE), 0, ONE).astype(np.int64)
        degree = max(len(self._rows.indices) // max(self._n, 1), 1)
        most = min(3000, max(60, 100_000 // degree))
        added = 0 if self._lazy is None else self._add_edges(price)
        for search, extra in ((cliques, ()), (odd_cycles, (most,))):
            used, at = np.zeros(self._n, dtype=np.int32), 0
            while at < self._n:
                roots = np.arange(at, min(at + ROOTS[self._compiled], self._n), dtype=np.int32)
                found, done = search(
                    self._rows, price, ONE, roots, used, SHARE, MARGIN, *extra, compiled=self._compiled
                )
                at += done
                added += self._extend([(nodes, search is cliques) for nodes in found])
                yield
        return added

    def _add_edges(self, price: np.ndarray) -> int:
        """Add the most violated edges, at most two a node; returns how many."""
        short = ONE - price[self._lazy].sum(axis=1)
        worst = np.argsort(-short, kind="stable")[: 2 * self._n]
        return self._extend([(self._lazy[k], True) for k in worst if short[k] > MARGIN])

    def _extend(self, found: list[tuple[np.ndarray, bool]]) -> int:
        """Add the columns that are new; returns how many."""
        known, new = set(self._keys), []
        for nodes, clique in found:
            key = np.sort(nodes.astype(np.int32)).tobytes()
            if key not in known:
                known.add(key)
                self._keys.append(key)
                new.append((nodes, clique))
        if new:
            more = columns_of([nodes for nodes, _ in new], np.array([clique for _, clique in new]))
            self._columns = joined([self._columns, more])
            self._y = np.concatenate([self._y, np.zeros(len(new))])
        return len(new)

    def _solve(self, steps: int) -> Iterator[None]:
        """Steps of the first-order method, bounds from where they led, and the columns of no use dropped."""
        columns = self._columns.matrix(self._n), self._columns.need
        program = PackingProgram(*columns, self._weights, self._x, self._y)
        at_once = min(max(SLICE // (2 * program.entries + 1), 1), steps)
        for _ in range(-(-steps // at_once)):
            program.run(at_once)
            yield
        last = program.y
        self._bound(last)
        yield
        program.restart()
        self._x, self._y = program.x, program.y
        self._bound(self._y)
        yield
        keep = np.maximum(last, self._y) > IDLE
        keep[: self._edges] = True
        self._columns, self._y = self._columns.taken(keep), self._y[keep]
        self._keys = [key for key, kept in zip(self._keys, keep[self._edges :]) if kept]

    def _bound(self, y: np.ndarray) -> None:
        """The bound of values y [k] in units of the mean weight, made exact."""
        scale = max(self._weights.mean(), 1e-300)
        value = repaired(self._columns, y * scale, self._weights, self._one, self._compiled)
        found = packing(self._n, self._columns, value, self._one, self._given, METHOD)
        if found.lower > self.best.lower:
            self.best = found


def cycle_packing(graph: Graph, weights: np.ndarray | None = None, compiled: bool = True) -> Packing:
    """The packing bound, worked out to the end: seconds for thousands of nodes."""
    search = CyclePacking(graph, weights, compiled)
    for _ in search.slices():
        pass
    return search.best
