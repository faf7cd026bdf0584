"""The bound of packings of edges, odd cycles and cliques, whose columns are found as they are needed."""

from collections.abc import Iterator

import numpy as np

from app.bounds.cover.kernels import Rows, cliques, odd_cycles
from app.bounds.cover.packing import (
    ONE,
    Columns,
    columns_of,
    denominator,
    edge_columns,
    joined,
    keys_of,
    nothing,
    packing,
    repaired,
)
from app.bounds.first_order import PackingProgram
from app.graphs.graph import Graph

METHOD = "packing of edges, odd cycles and cliques"
STEPS, MORE_STEPS = 100, 300  # of the first-order method between separations: where these find many, or fewer
DOUBLE = 6  # rounds in vain, after which they are twice as many
MANY = 60  # edges a node, from which on edges too are columns only when violated
SLICE = 30_000_000  # entries of the program that one slice goes through, at most
PARTS, LEAST_ROOTS = 16, 256  # of the nodes, which searches start from; of a part,
STATES = 200_000  # but fewer where they can settle more states than that together
REACH, LEAST_REACH, MOST_REACH = 100, 60, 3000  # states that one search settles: at first, at least, at most,
REACHED, ROUND_STATES = 100_000, 20_000_000  # within as many of their entries; those of a round
SHARE = 3  # a node that lies on so many new columns starts no search of its own
MARGIN, LEAST_MARGIN = ONE // 50, ONE // 2000  # columns violated by less are not looked for
# New columns of a round, over the number of nodes: where there are fewer, searches go further; margins become
# smaller; prices are not raised any more.
SOME, FEW, NONE = 0.05, 0.02, 0.005
IDLE = 1e-4  # columns with smaller values are dropped
PATIENCE = {True: 24, False: 12}  # rounds in vain, while many columns are found or few


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
        self._keys = np.zeros(0, dtype=np.uint64)  # of the columns after the edges
        degree = max(len(graph.indices) // graph.n, 1)
        self._most = max(min(MOST_REACH, REACHED // degree, ROUND_STATES // graph.n), LEAST_REACH)
        self._margin, self._reach = MARGIN, min(REACH, self._most)
        self.best = nothing(weights, METHOD)

    def add(self, columns: Columns) -> None:
        """Columns to begin with, such as a clique cover's."""
        self._extend(columns.taken(columns.sizes > 2))

    def slices(self) -> Iterator[None]:
        """The work, cut into slices; ends when nothing more is found or gained."""
        idle, many, raised, useful = 0, True, True, True
        while idle < PATIENCE[many]:
            before, found = self.best.lower, (yield from self._separate(raised))
            some, many = found >= SOME * self._n, found >= FEW * self._n
            yield from self._solve((STEPS if some and raised else MORE_STEPS) << idle // DOUBLE)
            idle = 0 if self.best.lower > before else idle + 1
            if not some:
                self._reach = min(2 * self._reach, self._most)
            if not many:
                self._margin = max(self._margin // 2, LEAST_MARGIN)
            # Where raised prices leave few columns to be found, every other round is without; where next to
            # none, all are: so it is where many cliques overlap.
            useful = useful and (found >= NONE * self._n or not raised)
            raised = useful and (many or not raised)

    def _separate(self, raised: bool) -> Iterator[None]:
        """Add columns that the prices violate; returns how many.

        raised   prices are raised first where they violate known columns, and then along those that are
                 found, so that each search finds others
        """
        left, added = 1.0 - np.clip(self._x, 0.0, 1.0), 0
        if raised:
            _obey(left, self._columns)
        if self._lazy is not None:
            added += self._take(self._violated_edges(left), left, raised)
        batch = min(max(self._n // PARTS, LEAST_ROOTS), max(STATES // self._reach, 1))
        for search, extra in ((cliques, ()), (odd_cycles, (self._reach,))):
            used, at = np.zeros(self._n, dtype=np.int32), 0
            while at < self._n:
                roots = np.arange(at, min(at + batch, self._n), dtype=np.int32)
                found, done = search(
                    self._rows, _whole(left), ONE, roots, used, SHARE, self._margin, *extra,
                    compiled=self._compiled,
                )  # fmt: skip
                at += done
                added += self._take(columns_of(found, search is cliques), left, raised)
                yield
        return added

    def _take(self, found: Columns, left: np.ndarray, raised: bool) -> int:
        """Add those that are new, and raise prices along all; returns how many are new."""
        if raised:
            _obey(left, found)
        return self._extend(found)

    def _violated_edges(self, left: np.ndarray) -> Columns:
        """The most violated edges, at most two a node."""
        short = ONE - _whole(left)[self._lazy].sum(axis=1)
        violated = np.flatnonzero(short > self._margin)
        worst = violated[np.argsort(-short[violated], kind="stable")[: 2 * self._n]]
        ptr = 2 * np.arange(len(worst) + 1, dtype=np.int64)
        return Columns(ptr, self._lazy[worst].reshape(-1), np.ones(len(worst), dtype=bool))

    def _extend(self, found: Columns) -> int:
        """Add the columns that are new; returns how many."""
        every = keys_of(found)
        keys, first = np.unique(every, return_index=True)
        new = np.zeros(len(found), dtype=bool)
        new[first[~np.isin(keys, self._keys)]] = True
        added = int(new.sum())
        if added:
            self._keys = np.concatenate([self._keys, every[new]])
            self._columns = joined([self._columns, found.taken(new)])
            self._y = np.concatenate([self._y, np.zeros(added)])
        return added

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
        self._keys = self._keys[keep[self._edges :]]

    def _bound(self, y: np.ndarray) -> None:
        """The bound of values y [k] in units of the mean weight, made exact."""
        scale = max(self._weights.mean(), 1e-300)
        value = repaired(self._columns, y * scale, self._weights, self._one, self._compiled)
        found = packing(self._n, self._columns, value, self._one, self._given, METHOD)
        if found.lower > self.best.lower:
            self.best = found


def _obey(left: np.ndarray, columns: Columns) -> None:
    """Raise prices where columns are violated: what a relaxed cover leaves out, left [n], becomes less on
    their nodes, in proportion, until it leaves out no more of a column than a cover can.
    """
    if not len(columns):
        return
    out, most = np.add.reduceat(left[columns.nodes], columns.ptr[:-1]), columns.sizes - columns.need
    share = np.where(out > most, most / np.maximum(out, most), 1.0)
    least = np.ones(len(left))
    np.minimum.at(least, columns.nodes, np.repeat(share, columns.sizes))
    left *= least


def _whole(left: np.ndarray) -> np.ndarray:
    """[n] int64, the prices 1 - left in units of 1/ONE."""
    return np.rint((1.0 - left) * ONE).astype(np.int64)
