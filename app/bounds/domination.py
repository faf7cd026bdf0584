"""Lower bounds on dominating sets: fractional packings of closed neighbourhoods, and the exact search."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.certificate import BadCertificate, Bound
from app.bounds.domination_exact import ExactDomination, fits
from app.bounds.first_order import PackingProgram
from app.graphs.graph import Graph

ONE, LARGEST = 1 << 30, 1 << 61  # what numerators are over at most; and their sum
LARGEST_PROGRAM = 30_000  # nodes and stored entries of a linear program that is solved: about a second
PROGRAM_SECONDS, BEGIN_SHARE = 5e-5, 0.125  # of it, for each; of what is left of a time limit, for it
STEPS, RESTART, MOST = 20, 8, 2_000  # of the first-order method: in a slice; slices between restarts; slices
CHECK_SECONDS = 1e-7  # of a packing, for each node and entry
MARGIN = 1e-9  # of a packing's values: more than rounding can add up to
CLOSE = 2e-4  # of the optimum: nearer it is not improved
FIRST_SHARE = 0.01  # of a time limit, for packings before the exact search
SHARE = 0.3  # of all time, for packings beside it
TURN = 0.05  # s: of the exact search
NEAR, FAR = 0.01, 0.1  # gaps from which its end can be expected; where it has little left


@dataclass(frozen=True, eq=False)
class Packing(Bound):
    """No dominating set costs less than `lower`.

    The witness gives every node a value y of at least 0 such that the values in each closed neighbourhood add
    up to at most the price of the node in its middle. Each node has a dominator in its closed neighbourhood,
    so a dominating set pays at least the sum of all values; prices are whole numbers, so in each component of
    the graph the sum there may be rounded up.

    numerators   [n] int64, y = numerator / one     weights   [n] int64 prices, or None: all one
    """

    lower: int
    method: str
    numerators: np.ndarray
    one: int = ONE
    weights: np.ndarray | None = None

    def check(self, graph: Graph) -> None:
        """Prove the bound from the values and the graph alone; raises BadCertificate."""
        y = self.numerators
        if y.shape != (graph.n,) or y.dtype != np.int64 or (y < 0).any():
            raise BadCertificate(f"{self.method}: needs [{graph.n}] whole numbers of at least 0")
        w = self.weights
        if w is not None and (w.shape != (graph.n,) or w.dtype != np.int64 or (w <= 0).any()):
            raise BadCertificate(f"{self.method}: needs [{graph.n}] prices above 0")
        if not 0 < self.one * total_weight(graph, self.weights) <= LARGEST:
            raise BadCertificate(f"{self.method}: values over {self.one} are not exact")
        room = np.full(graph.n, self.one) if self.weights is None else self.one * self.weights
        load = np.minimum(y, room + 1)  # one value too large is enough: sums stay exact
        np.add.at(load, graph.row_of(), load[graph.indices])
        over = np.flatnonzero(load > room)
        if len(over):
            price = "1" if self.weights is None else "its price"
            raise BadCertificate(
                f"{self.method}: the values around node {over[0]} add up to more than {price}"
            )
        proved = Components(graph).rounded(y, self.one)
        if proved != self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.lower}"
            )


class Components:
    """The nodes of a graph, component by component."""

    def __init__(self, graph: Graph) -> None:
        ones = np.ones(len(graph.indices), dtype=np.int8)
        matrix = sp.csr_array((ones, graph.indices, graph.indptr), shape=(graph.n, graph.n))
        count, label = connected_components(matrix, directed=False) if graph.n else (0, np.zeros(0, np.int32))
        self._order = np.argsort(label, kind="stable")
        self._first = np.cumsum(np.bincount(label, minlength=count)) - np.bincount(label, minlength=count)

    def rounded(self, values: np.ndarray, one: int) -> int:
        """The sum over components of values [n] over `one`, rounded up in each."""
        if not len(self._order):
            return 0
        sums = np.add.reduceat(values[self._order], self._first)
        return int((-(-sums // one)).sum())


def total_weight(graph: Graph, weights: np.ndarray | None) -> int:
    """Of all nodes, at least 1."""
    return max(graph.n if weights is None else int(weights.sum()), 1)


def denominator(graph: Graph, weights: np.ndarray | None) -> int:
    """The power of two that numerators are over."""
    return min(ONE, 1 << (LARGEST // total_weight(graph, weights)).bit_length() - 1)


def disjoint_neighbourhoods(graph: Graph) -> Packing:
    """Nodes whose closed neighbourhoods are disjoint, those of low degree first, each of value 1."""
    y = np.zeros(graph.n, dtype=np.int64)
    order = np.argsort(graph.degrees(), kind="stable")
    return _filled(graph, y, order, "disjoint neighbourhoods")


def linear_program(graph: Graph, weights: np.ndarray | None = None) -> Packing:
    """The optimum of the fractional packing, which is that of the relaxation (strong duality).

    Graphs beyond LARGEST_PROGRAM get the best of `improving_packings`.
    """
    found = _solve_program(graph, weights) if 0 < _entries(graph) <= LARGEST_PROGRAM else None
    return packed_neighbourhoods(graph, weights) if found is None else found


def _entries(graph: Graph) -> int:
    """Nodes and stored entries."""
    return graph.n + len(graph.indices)


def _solve_program(graph: Graph, weights: np.ndarray | None, seconds: float = math.inf) -> Packing | None:
    """The packing of the linear program; None where the solver has no values after so long.

    Its values are cut to whole numerators, scaled until they fit and filled up: whatever they are, the
    packing is feasible. By an interior point method, which takes 0.1 to 0.5 s for 16,000 entries; the simplex
    method takes up to 18 s (a grid).
    """
    from scipy.optimize import linprog  # a fair share of a program's start, for few runs

    closed, one = _closed(graph), denominator(graph, weights)
    price = np.ones(graph.n) if weights is None else weights / weights.mean()
    limit = {"time_limit": seconds} if math.isfinite(seconds) else {}
    solved = linprog(
        -np.ones(graph.n), A_ub=closed, b_ub=price, bounds=(0, None), method="highs-ipm", options=limit
    )
    if solved.x is None:
        return None
    values = np.clip(solved.x, 0, None)
    values /= max(float((closed @ values / price).max()), 1.0) * (1 + MARGIN)
    scale = one * (1.0 if weights is None else weights.mean())
    y = np.floor(values * scale).astype(np.int64)
    order = np.argsort(-y, kind="stable")
    return _filled(graph, y, order, "linear program", weights)


def _closed(graph: Graph) -> sp.csr_array:
    """A + I with entries one."""
    ones = np.ones(len(graph.indices))
    matrix = sp.csr_array((ones, graph.indices, graph.indptr), shape=(graph.n, graph.n))
    return (matrix + sp.eye_array(graph.n)).tocsr()


def _filled(
    graph: Graph, y: np.ndarray, order: np.ndarray, method: str, weights: np.ndarray | None = None
) -> Packing:
    """The packing with every value raised, in some order, as far as the neighbourhoods allow."""
    one = denominator(graph, weights)
    left = np.full(graph.n, one) if weights is None else one * weights
    left = left - y
    np.subtract.at(left, graph.row_of(), y[graph.indices])
    for v in order.tolist():
        near = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        room = min(int(left[v]), int(left[near].min(initial=left[v])))
        if room > 0:
            y[v] += room
            left[v] -= room
            left[near] -= room
    return Packing(Components(graph).rounded(y, one), method, y, one, weights)


class DominationBounds:
    """Bounds of one graph, ever better ones; the protocol is Bounds of app/search/toolbox.py.

    A first-order method comes within a few thousandths of the linear program's optimum soon, on graphs of any
    size (3,000 nodes, mean degree 9: in 0.1 s as high as the simplex method in 23 s); small programs are
    solved exactly after it, where there is time. Under a time limit there is an exact search beside them
    (domination_exact.py), whose bound stands where it is higher than that of the packings, and which knows of
    fixed nodes.

    best   the best Packing so far
    """

    least_seconds = 0.0

    def __init__(
        self, graph: Graph, weights: np.ndarray | None = None, inside: np.ndarray | None = None,
        outside: np.ndarray | None = None, most_bytes: float = math.inf,
    ) -> None:  # fmt: skip
        """weights   [n] int64 prices above 0, or None: all one

        inside, outside   [n] bool, nodes that have to be, must not be in the set; None: there are none
        most_bytes        what the exact search may take
        """
        self.graph, self.weights, self.best = graph, weights, nothing(graph)
        none = np.zeros(graph.n, dtype=bool)
        self._fixed = none if inside is None else inside, none if outside is None else outside
        self._most_bytes, self._end = most_bytes, math.inf
        self.check_seconds = CHECK_SECONDS * _entries(graph)
        self._slices = self._work()
        self._exact: ExactDomination | None = None

    @property
    def value(self) -> int:
        """The best bound, 0 before the first."""
        return self._exact.lower if self._claimed else self.best.lower

    @property
    def method(self) -> str:
        """How it was found."""
        return self._exact.method if self._claimed else self.best.method

    @property
    def closing(self) -> bool:
        """Whether branch and cut is at work."""
        return self._exact is not None and bool(self._exact.method) and not self._exact.done

    @property
    def near(self) -> float:
        """The gap from which its end can be expected."""
        return NEAR if self._exact is None or self._exact.wide else FAR

    @property
    def _claimed(self) -> bool:
        """Whether the bound rests on the exact search."""
        return self._exact is not None and self._exact.lower > self.best.lower

    def expect(self, seconds: float) -> None:
        """Under a time limit there is an exact search too, where memory and time are enough to begin it."""
        self._end = time.perf_counter() + seconds
        if not fits(self.graph, seconds, self._most_bytes):
            return
        price = np.ones(self.graph.n, dtype=np.int64) if self.weights is None else self.weights
        self._exact = ExactDomination(self.graph, price, *self._fixed, seconds)
        self._turns = _Turns(self.graph, self.weights, FIRST_SHARE * seconds, self._end)

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """One slice of the work, and more while there is time; False when nothing better is to come."""
        begun = time.perf_counter()
        for found in self._slices if self._exact is None else self._turns.work(self._exact, solution):
            if found is not None and (not self.best.method or found.lower > self.best.lower):
                self.best = found
            if self.value >= best:
                return False
            if time.perf_counter() - begun >= seconds:
                return True
        return False

    def optimum(self) -> np.ndarray | None:
        """[n] bool, a set that costs `value`, which the exact search has found; or None."""
        return None if self._exact is None else self._exact.optimum()

    def close(self) -> None:
        """Work no more; what is known stays."""
        if self._exact is not None:
            self._exact.close()

    def verify(self) -> bool:
        """Check the witness; False where the bound rests on the exact search, which has none."""
        if self._claimed:
            return False
        self.best.check(self.graph)
        return True

    def _work(self) -> Iterator[Packing]:
        yield from improving_packings(self.graph, self.weights)
        yield from solved_program(self.graph, self.weights, self._end)


class _Turns:
    """Packings and the exact search by turns: first packings, for a while, as they can be checked."""

    def __init__(self, graph: Graph, weights: np.ndarray | None, first: float, end: float) -> None:
        """first   seconds that packings have for themselves     end   of the run's time limit"""
        self._left = [improving_packings(graph, weights), solved_program(graph, weights, end)]
        self._first, self._packed, self._searched = first, 0.0, 0.0
        self._known: np.ndarray | None = None

    def work(self, exact: ExactDomination, solution: np.ndarray | None) -> Iterator[Packing | None]:
        """Turn after turn, each item a packing or None, until nothing is left."""
        self._known = self._known if solution is None else solution
        while exact.optimum() is None and (self._left or not exact.done):
            begun = time.perf_counter()
            if exact.done or self._packings_turn():
                found = next(self._left[0], None)
                if found is None:
                    del self._left[0]
                self._packed += time.perf_counter() - begun
                yield found
            else:
                exact.run(TURN, self._known)
                self._searched += time.perf_counter() - begun
                yield None

    def _packings_turn(self) -> bool:
        """Whether packings have had less than their share of the time, or their first seconds."""
        if not self._packed or (len(self._left) > 1 and self._packed < self._first):
            return True
        return bool(self._left) and self._packed < SHARE * (self._packed + self._searched)


def solved_program(graph: Graph, weights: np.ndarray | None, end: float) -> Iterator[Packing]:
    """The packing of the linear program, where that is small and takes little of the time until `end`.

    Nothing is heard while it is solved.
    """
    entries, left = _entries(graph), end - time.perf_counter()
    if 0 < entries <= LARGEST_PROGRAM and PROGRAM_SECONDS * entries <= BEGIN_SHARE * left:
        found = _solve_program(graph, weights, left)
        if found is not None:
            yield found


def improving_packings(graph: Graph, weights: np.ndarray | None = None) -> Iterator[Packing]:
    """Packings from the iterates of a first-order method for the linear program, until it has converged.

    Iterates overload some neighbourhoods: each value is divided by the largest load, over the price, among
    those that it is in, and cut to a whole numerator.
    """
    if not graph.n:
        return
    closed, components, one = _closed(graph), Components(graph), denominator(graph, weights)
    mean = 1.0 if weights is None else float(weights.mean())
    price = np.ones(graph.n) if weights is None else weights / mean
    starts, each = closed.indptr[:-1], 1.0 / np.diff(closed.indptr).max()
    begin = np.full(graph.n, each), np.full(graph.n, each * price.min())
    program = PackingProgram(closed, np.ones(graph.n), price, *begin)
    best = 0.0
    for block in range(1, MOST + 1):
        program.run(STEPS)
        x, y = program.average()
        for values in (y, program.y):
            load = closed @ values / price
            fits = values / np.maximum(np.maximum.reduceat(load[closed.indices], starts), 1.0)
            best = max(best, float(fits.sum()))
            y_whole = np.floor(fits * (mean * one * (1 - MARGIN))).astype(np.int64)
            lower = components.rounded(y_whole, one)
            yield Packing(lower, "packing of neighbourhoods", y_whole, one, weights)
        cover = float((price * x).sum() / max((closed @ x).min(), 1e-9))  # no packing has more
        if best >= (1 - CLOSE) * cover:
            return
        if block % RESTART == 0:
            program.restart()


def packed_neighbourhoods(graph: Graph, weights: np.ndarray | None = None) -> Packing:
    """The best of `improving_packings`."""
    return max(improving_packings(graph, weights), key=lambda packing: packing.lower, default=nothing(graph))


def nothing(graph: Graph) -> Packing:
    """The packing of value 0, which is an answer where there are no nodes."""
    return Packing(0, "" if graph.n else "no nodes", np.zeros(graph.n, dtype=np.int64))


DOMINATION_BOUNDS = {
    "neighbourhoods": disjoint_neighbourhoods, "packing": packed_neighbourhoods,
    "linear_program": linear_program,
}  # fmt: skip
