"""The bound of odd cycles on the cut, from the side of its dual: a packing of cycles."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from app.bounds.cover.kernels import Rows, cut_cycles
from app.bounds.cover.packing import ONE, Columns, denominator, keys_of, repaired
from app.bounds.cut.cycles import CycleCertificate, heads_of
from app.bounds.cut.greedy import Found, GreedyPacking
from app.bounds.first_order import PackingProgram
from app.graphs.graph import Graph, narrow

METHOD = "packing of odd cycles"
STEPS = 50  # of the first-order method between two separations, at least
MOST_LONGER = 6  # times as many, at most
SLICE = 10_000_000  # entries of the program that one slice goes through, at most
SLICE_SECONDS = 0.1  # that the searches of a slice are to take
PARTS, LEAST_ROOTS = 32, 64  # of the nodes, which searches start from; of a part
REACH = 100  # states that one search settles at first
SHARE = 3  # a node that lies on so many new cycles starts no search of its own
MARGIN, LEAST_MARGIN = ONE // 50, ONE // 2000  # cycles violated by less are not looked for
FEW = 0.02  # of the cycles: where fewer are new, searches go further and take those that are violated less
EVEN = 1e-3  # a price that is no reason to pay for one edge rather than another
IDLE = 1e-4  # cycles with smaller values are dropped, in units of the mean weight
PATIENCE = 24  # rounds without a better bound
LARGE = 100_000  # edges: from here on a greedy packing comes first, and searches do not wait for all roots
LONGER = 2.0  # there: times what the last program took, that the searches between two may take


@dataclass(frozen=True, eq=False)
class Cycles(Columns):
    """Cycles as columns over the edges: `nodes` are numbers of edges, each cycle is needed once.

    path [ptr[k]] int32   the node where each edge is gone along from
    """

    path: np.ndarray

    @property
    def need(self) -> np.ndarray:
        """[k] ones: of the edges of a cycle every cut pays for one at least."""
        return np.ones(len(self), dtype=np.int64)

    def taken(self, keep: np.ndarray) -> "Cycles":
        """The cycles of `keep` [k] bool."""
        kept = Columns(self.ptr, self.nodes, self.clique).taken(keep)
        return Cycles(kept.ptr, kept.nodes, kept.clique, self.path[np.repeat(keep, self.sizes)])


class CutPacking:
    """Cutting planes for maximum cut, from the side of their dual.

    A cut pays |w| for each edge of positive weight that it leaves inside a side and for each of negative
    weight that lies across: it is worth the sum of the positive weights less what it pays. On a cycle with an
    odd number of positive edges it pays for one edge at least, for it has an even number of edges across. So
    with values y >= 0 of such cycles that add up to at most |w| on every edge, no cut is worth more than the
    sum of the positive weights less that of the values. The best such packing is as good as the program of
    all inequalities of odd cycles (cycles.py), since prices that obey those of such cycles, and no lower
    ones do, obey the others, too.

    Rounds of: values and prices by a first-order method, the values made exact, which is a bound; then the
    cycles whose edges have prices below 1 together, by shortest paths between the two sides of a node
    (Barahona and Mahjoub 1986).

    Prices near 0 say what the best cuts do with an edge: a tree of the cheapest edges, none of which it pays
    for, is a cut, the better the nearer prices are to the optimum.

    best    the best certificate so far, None at first
    sides   [n] bool, the cut of the last prices, None at first
    """

    def __init__(self, graph: Graph, weights: np.ndarray, compiled: bool = True) -> None:
        """graph: whole; weights [nnz] int64 of its entries."""
        self._graph, self._compiled = graph, compiled
        self._rows, self._columns = Rows(graph), EdgeNumbers(graph)
        once = self._columns.entries
        self._size, self._above = np.abs(weights[once]), weights[once] > 0
        self._most = int(weights[once][self._above].sum())
        self._one = denominator(self._size)
        self._mean = max(float(self._size.mean()) if len(once) else 1.0, 1e-300)
        none = np.zeros(0, dtype=np.int32)
        self._cycles = Cycles(np.zeros(1, dtype=np.int64), none, np.zeros(0, dtype=bool), none)
        self._keys = np.zeros(0, dtype=np.uint64)
        self._x, self._y = np.zeros(len(once)), np.zeros(0)
        self._roots, self._margin, self._reach, self._searched = 1, MARGIN, REACH, 0.0
        self._at, self._solved = 0, 0.0  # the next root; seconds of the last program
        self.best: CycleCertificate | None = None
        self.sides: np.ndarray | None = None

    def slices(self) -> Iterator[None]:
        """The work, cut into slices; ends when nothing more is found or gained."""
        idle = 0
        if self._graph.edges >= LARGE:
            yield from self._pack_greedily()
        while idle < PATIENCE:
            before, found = self.best, (yield from self._separate())
            if not len(self._cycles):
                return
            yield from self._solve(STEPS << idle // 6)
            idle = 0 if self.best is not before else idle + 1
            if found < FEW * len(self._cycles):
                self._margin = max(self._margin // 2, LEAST_MARGIN)
                self._reach = min(4 * self._reach, 2 * self._graph.n)

    def _pack_greedily(self) -> Iterator[None]:
        """Cycles whose values are a bound at once, and the program of these."""
        greedy = GreedyPacking(self._rows, self._columns.edge, self._above, self._size, self._compiled)
        for found in greedy.slices():
            if found is not None and len(found.value):
                self._know(found)
            yield
        if len(self._cycles):
            yield from self._solve(STEPS)

    def _know(self, found: Found) -> None:
        """Cycles that nobody knew, with values that fit."""
        edges = self._columns.between(found.path, heads_of(found.ptr, found.path)).astype(np.int32)
        new = Cycles(found.ptr, edges, np.zeros(len(found.value), dtype=bool), found.path)
        self._keys = np.concatenate([self._keys, keys_of(new)])
        self._cycles = _joined(self._cycles, new)
        self._y = np.concatenate([self._y, found.value / self._mean])
        self._bound(self._y)

    def _separate(self) -> Iterator[None]:
        """Add cycles that the prices violate; returns how many.

        Prices are raised first where those of a known cycle are below 1 together, and then along the cycles
        that are found, so that each search finds others. Of a large graph not all nodes are roots each time.
        """
        price, added, at = self._x.copy(), 0, 0
        self._searched, n = 0.0, self._graph.n
        _raise(price, self._cycles)
        used = np.zeros(n, dtype=np.int32)
        while at < n and not (added and self._solved and self._searched > LONGER * self._solved):
            roots = np.arange(at, min(at + self._roots, n), dtype=np.int32)
            roots = (roots + self._at) % n
            begun = time.perf_counter()
            whole = np.clip(np.rint(price * ONE), 0, ONE).astype(np.int64)
            # An edge of positive weight is paid for where it stays on a side, which no cycle may cross.
            other, same = (
                np.where(each, whole, ONE)[self._columns.edge] for each in (self._above, ~self._above)
            )
            found, done = cut_cycles(
                self._rows,
                same,
                other,
                ONE,
                roots,
                used,
                SHARE,
                self._margin,
                self._reach,
                compiled=self._compiled,
            )
            at += done
            if found:
                new = self._columns_of([nodes for nodes, _ in found])
                _raise(price, new)
                added += self._extend(new)
            spent = max(time.perf_counter() - begun, 1e-9)
            self._searched += spent
            most = min(4 * len(roots), max(n // PARTS, LEAST_ROOTS))
            self._roots = max(1, min(int(len(roots) * SLICE_SECONDS / spent), most))
            yield
        self._at = (self._at + at) % n
        return added

    def _columns_of(self, paths: list[np.ndarray]) -> Cycles:
        """Cycles, each a list of its nodes, as columns."""
        ptr, path = np.cumsum([0, *map(len, paths)], dtype=np.int64), np.concatenate(paths)
        edges = self._columns.between(path, heads_of(ptr, path)).astype(np.int32)
        return Cycles(ptr, edges, np.zeros(len(paths), dtype=bool), path)

    def _extend(self, found: Cycles) -> int:
        """Add the cycles that are new; returns how many."""
        keys, first = np.unique(keys_of(found), return_index=True)
        first = first[~np.isin(keys, self._keys)]
        new = np.zeros(len(found), dtype=bool)
        new[first] = True
        self._keys = np.concatenate([self._keys, keys_of(found)[new]])
        self._cycles = _joined(self._cycles, found.taken(new))
        self._y = np.concatenate([self._y, np.zeros(len(first))])
        return len(first)

    def _solve(self, steps: int) -> Iterator[None]:
        """Steps of the first-order method, more where searches took longer; bounds from where they led.

        Cycles of no use are dropped.
        """
        columns = self._cycles.matrix(len(self._size)), self._cycles.need
        program = PackingProgram(*columns, self._size, self._x, self._y)
        at_once = min(max(SLICE // (2 * program.entries + 1), 1), steps)
        made, spent = 0, 0.0
        while made < steps or (made < MOST_LONGER * steps and spent < self._searched):
            begun = time.perf_counter()
            program.run(at_once)
            made, spent = made + at_once, spent + time.perf_counter() - begun
            yield
        self._solved = spent if self._graph.edges >= LARGE else 0.0
        last = program.y
        self._bound(last)
        yield
        program.restart()
        self._x, self._y = program.x, program.y
        self._bound(self._y)
        yield
        self.sides = self._rounded()
        keep = np.maximum(last, self._y) > IDLE
        self._cycles, self._y, self._keys = self._cycles.taken(keep), self._y[keep], self._keys[keep]

    def _rounded(self) -> np.ndarray:
        """[n] bool, the cut that pays for no edge of a cheapest tree; of equal prices heavy edges first."""
        n, entries = self._graph.n, self._columns.entries
        u, v = self._graph.row_of()[entries], self._graph.indices[entries]
        cost = np.maximum(self._x, 0.0) + EVEN / (1.0 + self._size / self._mean)
        matrix = sp.csr_array((cost, (u, v)), shape=(n + 1, n + 1))
        _, part = connected_components(matrix, directed=False)
        roots = np.unique(part[:n], return_index=True)[1]  # of each part, joined to one node more
        joined = sp.csr_array((np.ones(len(roots)), (np.full(len(roots), n), roots)), shape=(n + 1, n + 1))
        tree = minimum_spanning_tree(narrow(sp.csr_array(matrix + joined)))
        order, above = breadth_first_order(tree, n, directed=False)
        child, parent = order[1:], np.full(n + 1, n)
        parent[child] = above[child]
        apart, inner = np.zeros(n + 1, dtype=bool), child[above[child] < n]
        apart[inner] = self._above[self._columns.between(inner.astype(np.int64), parent[inner])]
        while (parent < n).any():  # what leads to the parent's parent, and so on
            apart ^= apart[parent]
            parent = parent[parent]
        return apart[:n]

    def _bound(self, y: np.ndarray) -> None:
        """The bound of values y [k] in units of the mean weight, made exact."""
        value = repaired(self._cycles, y * self._mean, self._size, self._one, self._compiled)
        upper = (self._most * self._one - int(value.sum())) // self._one
        if self.best is None or upper < self.best.upper:
            kept = self._cycles.taken(value > 0)
            over, places = self._above[kept.nodes].astype(np.uint8), self._one.bit_length() - 1
            self.best = CycleCertificate(upper, METHOD, kept.ptr, kept.path, over, value[value > 0], places)


class EdgeNumbers:
    """The edges of a whole graph, numbered by their entries (u, v) with u < v.

    entries [m] int64   those entries
    edge [nnz] int64    the edge of each entry
    """

    def __init__(self, graph: Graph) -> None:
        rows, columns, self._n = graph.row_of(), graph.indices, graph.n
        upper = rows < columns
        self.entries = np.flatnonzero(upper)
        u, v = rows[self.entries], columns[self.entries]
        self._keys = u * self._n + v
        numbers = np.arange(len(u))
        self.edge = np.empty(len(rows), dtype=np.int64)
        self.edge[upper] = numbers
        # Entries (v, u) in the order of the rows: those of the transposed matrix.
        self.edge[~upper] = sp.csr_array((numbers, (u, v)), shape=(graph.n, graph.n)).T.tocsr().data

    def between(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """[k] the edges u[i]-v[i], all of which there are."""
        return self._keys.searchsorted(np.minimum(u, v) * np.int64(self._n) + np.maximum(u, v))


def _raise(price: np.ndarray, cycles: Cycles) -> None:
    """Raise prices [m] where those of a cycle are below 1 together, each in proportion: then none are."""
    if not len(cycles):
        return
    edges, sizes = cycles.nodes, cycles.sizes
    paid = np.repeat(np.add.reduceat(price[edges], cycles.ptr[:-1]), sizes)
    even = np.repeat(1.0 / sizes, sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.where(paid > 0, price[edges] / np.minimum(paid, 1.0), even)
    np.maximum.at(price, edges, wanted)


def _joined(a: Cycles, b: Cycles) -> Cycles:
    """The cycles of both."""
    return Cycles(
        np.concatenate([a.ptr, a.ptr[-1] + b.ptr[1:]]),
        np.concatenate([a.nodes, b.nodes]),
        np.concatenate([a.clique, b.clique]),
        np.concatenate([a.path, b.path]),
    )
