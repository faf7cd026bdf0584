"""The bound of odd cycles on the cut: a linear program whose rows are found as they are violated."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from app.bounds.certificate import BadCertificate
from app.bounds.kernels import Rows, cut_cycles
from app.graphs.fixed_point import integer_weights
from app.graphs.graph import Graph

METHOD = "odd cycles"
ONE = 1 << 20  # units of a relaxed edge
MARGIN = ONE >> 10  # cycles violated by less are not looked for
SHARE = 64  # a node that lies on so many new cycles starts no search of its own
ROOTS = 256  # searches in one slice at most
SLICE_SECONDS = 0.1  # that the searches of a slice are to take
SLACK = 1e-3  # rows with more are dropped
SLOW = 3e-3  # where the bound falls by a smaller share, points between x and the earlier ones are cut off
BETTER = 1e-6  # a bound that falls by a smaller share has not moved
MOST_VALUE = 1 << 61  # multiples of the values of all cycles together: no sum overflows
PATIENCE = 12  # rounds without a better bound
FIRST_SECONDS = 1e-9  # of the first program, for the square of its size
LEAST_SECONDS = 0.5  # that a program may always take
MOST_LONGER = 4.0  # a program that takes so many times the estimate is put off, now estimated at twice that
TIME_LIMIT = 1  # status of SciPy's linprog
PLACES = 20  # binary ones of a certificate's values


@dataclass(frozen=True, eq=False)
class CycleCertificate:
    """No cut weighs more than `upper`, in the units of integer_weights.

    A cut has an even number of the edges of a cycle C, so that for a set F of an odd number of them
        x(F) - x(C - F) <= |F| - 1        (Barahona and Mahjoub 1986)
    holds for x_e = 1 on the cut's edges, 0 elsewhere. With values y >= 0 of such inequalities a cut weighs at
    most
        sum of y (|F| - 1) + sum over edges of max(0, w_e - sum over cycles of +-y),    + on F, - on C - F
    the dual of the program that maximises w x over all such inequalities and 0 <= x <= 1.

    ptr     [k+1] int64       where each cycle begins among the nodes
    nodes   [ptr[k]] int32    its nodes in order
    over    [ptr[k]] uint8    whether the edge to the next node (of the last: to the first) is in F
    values  [k] int64 y, at least 0, multiples of 2^-places
    """

    upper: int
    method: str
    ptr: np.ndarray
    nodes: np.ndarray
    over: np.ndarray
    values: np.ndarray
    places: int

    def check(self, graph: Graph) -> None:
        """Prove the bound from the cycles and the graph alone; raises BadCertificate where that fails."""
        if (self.values < 0).any() or sum(self.values.tolist()) >= MOST_VALUE:
            raise BadCertificate(f"{self.method}: a cycle has a negative value, or all have too much")
        sizes, heads = np.diff(self.ptr), _heads(self.ptr, self.nodes)
        cycle = np.repeat(np.arange(len(sizes)), sizes)
        if len(sizes) and (sizes.min() < 3 or self.nodes.min() < 0 or self.nodes.max() >= graph.n):
            raise BadCertificate(f"{self.method}: a cycle has fewer than 3 nodes, or unknown ones")
        if len(np.unique(cycle * graph.n + self.nodes)) < len(cycle):
            raise BadCertificate(f"{self.method}: a cycle meets a node twice")
        if (_counts(self.ptr, self.over) % 2 == 0).any():
            raise BadCertificate(f"{self.method}: a cycle has an even number of edges in F")
        entries = entry_of(graph, self.nodes, heads)
        if (entries < 0).any():
            raise BadCertificate(f"{self.method}: a cycle has an edge that the graph has not")
        weights, _ = integer_weights(graph)
        proved = _dual(graph, weights, self.ptr, entries, self.over, self.values, self.places)
        if proved > self.upper:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.upper}"
            )


class CutCycles:
    """Rounds of the linear program (HiGHS, by SciPy), its bound made exact, and inequalities it violates.

    Cycles are separated by shortest paths between the two sides of a node in two copies of the graph, where
    an edge leads to the same side for x and to the other for 1 - x (Barahona and Mahjoub 1986). Once the
    bound falls slowly, points half way between the optimum and those before are cut off instead, which takes
    far fewer rounds (the in-out separation of Ben-Ameur and Neto 2007).

    best          the best certificate so far, None at first
    next_seconds  an estimate of the next slice, where it may be long
    """

    def __init__(self, graph: Graph, weights: np.ndarray, compiled: bool = True) -> None:
        """graph: whole; weights [nnz] int64 of its entries."""
        self._graph, self._weights, self._compiled = graph, weights, compiled
        self._rows = Rows(graph)
        rows = graph.row_of()
        self._upper = np.flatnonzero(rows < graph.indices)  # the entry that stands for an edge
        self._edge = np.empty(len(rows), dtype=np.int64)  # the edge of each entry
        self._edge[self._upper] = np.arange(len(self._upper))
        lower = np.flatnonzero(rows > graph.indices)
        self._edge[lower] = self._edge[entry_of(graph, graph.indices[lower], rows[lower])]
        self._unit = float(np.abs(weights).max(initial=1))
        self._w = weights[self._upper] / self._unit
        self._x = (self._w > 0).astype(np.float64)
        self._cycles: list[tuple[np.ndarray, np.ndarray]] = []
        self._keys: set[bytes] = set()
        self._places = min(PLACES, 56 - int(np.abs(weights).sum()).bit_length())
        self.best: CycleCertificate | None = None
        self._spent: tuple[float, int] | None = None  # seconds and size of the last program
        self.next_seconds = 0.0
        self._roots = 1  # searches of the next slice
        self._late = False  # the last program was put off

    def slices(self) -> Iterator[None]:
        """The work, cut into slices; ends when nothing more is found or gained."""
        idle, value, centre = 0, float(np.abs(self._w).sum()), None
        while idle < PATIENCE:
            found = 0
            if centre is not None:
                centre = (centre + self._x) / 2
                found = yield from self._separate(centre)
            if not found:
                found = yield from self._separate(self._x)
            if not found:
                return
            reached = None
            while reached is None:
                self.next_seconds = self._estimate()
                yield
                reached = self._solve()
                if reached is None and not self._late:
                    return
            yield
            if centre is None and reached > value - SLOW * abs(value):
                centre = self._x
            better = reached < value - BETTER * abs(value)
            idle, value = (0, reached) if better else (idle + 1, value)
            if better:
                self._drop()

    def _separate(self, point: np.ndarray) -> Iterator[None]:
        """Add cycles that a point [m] violates; returns how many."""
        value = np.clip(np.rint(point * ONE), 0, ONE).astype(np.int64)[self._edge]
        used, at, added = np.zeros(self._graph.n, dtype=np.int32), 0, 0
        while at < self._graph.n:
            roots = np.arange(at, min(at + self._roots, self._graph.n), dtype=np.int32)
            begun = time.perf_counter()
            found, done = cut_cycles(
                self._rows, value, ONE, roots, used, SHARE, MARGIN, compiled=self._compiled
            )
            at += done
            self._roots = _next_count(len(roots), time.perf_counter() - begun)
            for nodes, over in found:
                key = _key(nodes, over)
                if key not in self._keys:
                    self._keys.add(key)
                    self._cycles.append((nodes, over))
                    added += 1
            yield
        return added

    def _solve(self) -> float | None:
        """The optimum over the known cycles, and its bound; None: not solved, where `_late` in time."""
        from scipy.optimize import linprog  # a fair share of a program's start, for few runs

        ptr, nodes, over = _joined(self._cycles)
        entries = entry_of(self._graph, nodes, _heads(ptr, nodes))
        signs = np.where(over, 1.0, -1.0)
        matrix = sp.csr_array((signs, self._edge[entries], ptr), shape=(len(ptr) - 1, len(self._w)))
        most = _counts(ptr, over) - 1
        begun, limit = time.perf_counter(), LEAST_SECONDS + MOST_LONGER * self._estimate()
        solved = linprog(
            -self._w, A_ub=matrix, b_ub=most, bounds=(0, 1), method="highs-ipm", options={"time_limit": limit}
        )
        self._late = solved.status == TIME_LIMIT
        spent = (2 if self._late else 1) * (time.perf_counter() - begun)
        self._spent, self.next_seconds = (spent, self._size()), 0.0
        if solved.status != 0:
            return None
        self._x, self._slack = solved.x, most - matrix @ solved.x
        y = np.maximum(-solved.ineqlin.marginals, 0)
        found = np.rint(np.ldexp(y * self._unit, self._places))
        if found.sum() >= MOST_VALUE:
            return None
        values, self._y = found.astype(np.int64), y
        upper = _dual(self._graph, self._weights, ptr, entries, over, values, self._places)
        if self.best is None or upper < self.best.upper:
            kept = values > 0
            ptr, nodes, over = _joined([each for each, keep in zip(self._cycles, kept) if keep])
            self.best = CycleCertificate(upper, METHOD, ptr, nodes, over, values[kept], self._places)
        return -float(solved.fun)

    def _size(self) -> int:
        """Rows and columns of the program."""
        return len(self._cycles) + len(self._w)

    def _estimate(self) -> float:
        """Seconds that the program will take, about."""
        if self._spent is None:
            return FIRST_SECONDS * self._size() ** 2
        seconds, size = self._spent
        return seconds * (self._size() / size) ** 2

    def _drop(self) -> None:
        """Forget the cycles that do not bind."""
        keep = (self._slack < SLACK) | (self._y > 0)
        self._cycles = [each for each, kept in zip(self._cycles, keep) if kept]
        self._keys = {_key(*each) for each in self._cycles}


def entry_of(graph: Graph, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """[k] the place of each entry (row, column) of a whole graph, -1 where there is none."""
    keys = graph.row_of() * graph.n + graph.indices
    wanted = rows.astype(np.int64) * graph.n + columns
    if not len(keys):
        return np.full(len(wanted), -1)
    at = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, -1)


def _next_count(count: int, seconds: float) -> int:
    """Searches of the next slice, where `count` took so many seconds: one may pass the whole graph."""
    fit = int(count * SLICE_SECONDS / max(seconds, 1e-9))
    return max(1, min(fit, 4 * count, ROOTS))


def _key(nodes: np.ndarray, over: np.ndarray) -> bytes:
    """The same for a cycle wherever it begins and whichever way it runs."""
    ends = np.sort(np.stack([nodes, np.roll(nodes, -1)]), axis=0)
    order = np.lexsort(ends)
    return np.concatenate([ends[0][order], ends[1][order], over[order]]).astype(np.int32).tobytes()


def _joined(cycles: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ptr, nodes, over of cycles one after the other."""
    ptr = np.cumsum([0, *(len(nodes) for nodes, _ in cycles)], dtype=np.int64)
    nodes = np.concatenate([np.empty(0, np.int32), *(nodes for nodes, _ in cycles)])
    return ptr, nodes, np.concatenate([np.empty(0, np.uint8), *(over for _, over in cycles)])


def _heads(ptr: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """[ptr[k]] the node after each in its cycle."""
    after = np.arange(1, len(nodes) + 1)
    after[ptr[1:] - 1] = ptr[:-1]
    return nodes[after]


def _counts(ptr: np.ndarray, over: np.ndarray) -> np.ndarray:
    """[k] int64 |F| of each cycle."""
    sums = np.concatenate([[0], np.cumsum(over, dtype=np.int64)])
    return sums[ptr[1:]] - sums[ptr[:-1]]


def _dual(
    graph: Graph, weights: np.ndarray, ptr: np.ndarray, entries: np.ndarray, over: np.ndarray,
    values: np.ndarray, places: int,
) -> int:  # fmt: skip
    """The whole number below the bound of values y [k], exactly.

    weights  [nnz] int64 of the entries of the graph     entries [ptr[k]] int64 of the cycles' edges
    """
    total = sum((values * (_counts(ptr, over) - 1)).tolist())  # Python's integers do not overflow
    each = np.repeat(values, np.diff(ptr))
    twins = entry_of(graph, graph.indices[entries], graph.row_of()[entries])
    loads = np.zeros(len(weights), dtype=np.int64)
    np.add.at(loads, np.minimum(entries, twins), np.where(over, each, -each))
    once = np.flatnonzero(graph.row_of() < graph.indices)
    left = np.maximum((weights[once] << places) - loads[once], 0)
    return (total + sum(left.tolist())) >> places
