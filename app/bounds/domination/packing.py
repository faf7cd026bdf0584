"""Lower bounds on dominating sets with a witness: fractional packings of closed neighbourhoods.

Everywhere `needed` [n] bool are the nodes that have to be dominated, `allowed` [n] bool those that may be
chosen for that; None: all nodes.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.certificate import BadCertificate, Bound
from app.bounds.first_order import PackingProgram
from app.graphs.graph import Graph

ONE, LARGEST = 1 << 30, 1 << 61  # what numerators are over at most; and their sum
LARGEST_PROGRAM = 30_000  # nodes and stored entries of a linear program that is solved: about a second
PROGRAM_SECONDS, BEGIN_SHARE = 5e-5, 0.125  # of it, for each; of what is left of a time limit, for it
# Of a larger one with prices: its rows, or columns, whose cube takes the time; of entries; of what is left.
DENSE_SIDE, SIDE_SECONDS, PAIR_SECONDS, DENSE_SHARE = 1000, 3e-9, 1e-6, 0.25
MOST_SECONDS = 1.5  # without a time limit
STEPS, RESTART, MOST = 20, 8, 2_000  # of the first-order method: in a slice; slices between restarts; slices
MARGIN = 1e-9  # of a packing's values: more than rounding can add up to
CLOSE = 2e-4  # of the optimum: nearer it is not improved

Mask = np.ndarray | None


@dataclass(frozen=True, eq=False)
class Packing(Bound):
    """No dominating set costs less than `lower`.

    The witness gives every node a value y of at least 0 such that the values in each closed neighbourhood add
    up to at most the price of the node in its middle, where that is allowed; only nodes that are needed have
    values. Each of these has a dominator in its closed neighbourhood, so a dominating set pays at least the
    sum of all values; prices are whole numbers, so in each component of the graph the sum there may be
    rounded up. `lower` may be less than that: where no rank knows the components all is rounded up once.

    numerators   [n] int64, y = numerator / one     weights   [n] int64 prices, or None: all one
    """

    lower: int
    method: str
    numerators: np.ndarray
    one: int = ONE
    weights: np.ndarray | None = None
    needed: Mask = None
    allowed: Mask = None

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
        if self.needed is not None and y[~self.needed].any():
            raise BadCertificate(f"{self.method}: nodes that need not be dominated have values")
        if float(y.sum(dtype=np.float64)) > 2.0 * self.one * total_weight(graph, self.weights):
            raise BadCertificate(f"{self.method}: the values add up to more than its prices do")
        room = np.full(graph.n, self.one) if self.weights is None else self.one * self.weights
        load = y.copy()  # sums are exact: all values together are below 2^63
        np.add.at(load, graph.row_of(), y[graph.indices])
        over = np.flatnonzero(load > room if self.allowed is None else (load > room) & self.allowed)
        if len(over):
            price = "1" if self.weights is None else "its price"
            raise BadCertificate(
                f"{self.method}: the values around node {over[0]} add up to more than {price}"
            )
        proved = Components(graph).rounded(y, self.one)
        if proved < self.lower:
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


def linear_program(
    graph: Graph, weights: np.ndarray | None = None, needed: Mask = None, allowed: Mask = None
) -> Packing:
    """The optimum of the fractional packing, which is that of the relaxation (strong duality).

    Graphs beyond LARGEST_PROGRAM get the best of `improving_packings`.
    """
    found = next(solved_program(graph, weights, needed, allowed), None)
    return packed_neighbourhoods(graph, weights, needed, allowed) if found is None else found


def solved_program(
    graph: Graph, weights: np.ndarray | None, needed: Mask = None, allowed: Mask = None,
    end: Callable[[], float] = lambda: math.inf,
) -> Iterator[Packing]:  # fmt: skip
    """The packing of the linear program, where that is small and takes little of the time until `end`.

    The solver's values are cut to whole numerators, scaled until they fit and filled up: whatever they are,
    the packing is feasible. By an interior point method, which takes 0.1 to 0.5 s for 16,000 entries; the
    simplex method takes up to 18 s (a grid). Nothing is heard meanwhile.
    """
    left = end() - time.perf_counter()
    share = BEGIN_SHARE if graph.n + len(graph.indices) <= LARGEST_PROGRAM else DENSE_SHARE
    most = share * left if math.isfinite(left) else MOST_SECONDS
    if program_seconds(graph, weights, needed, allowed) > most:
        return
    from scipy.optimize import linprog  # a fair share of a program's start, for few runs

    table, one = _Table(graph, weights, needed, allowed), denominator(graph, weights)
    ones, columns = -np.ones(len(table.rows)), table.table.T
    limit = {"time_limit": left} if math.isfinite(left) else {}
    solved = linprog(
        ones, A_ub=columns, b_ub=table.price, bounds=(0, None), method="highs-ipm", options=limit
    )
    if solved.x is None:
        return
    values = np.clip(solved.x, 0, None)
    values /= max(float((columns @ values / table.price).max()), 1.0) * (1 + MARGIN)
    y = table.whole(values * one)
    order = np.argsort(-y, kind="stable")
    yield _filled(graph, y, order, "linear program", weights, needed, allowed)


def program_seconds(graph: Graph, weights: np.ndarray | None, needed: Mask, allowed: Mask) -> float:
    """About what the linear program takes; infinite where it is too large, or without prices, as the
    first-order method comes as near then.

    500 rows, 5,000 columns and 250,000 entries take 0.5 s, and the first-order method 15 s for as much.
    """
    entries = graph.n + len(graph.indices)
    if entries <= LARGEST_PROGRAM:
        return PROGRAM_SECONDS * entries if entries else math.inf
    side = min(graph.n if mask is None else np.count_nonzero(mask) for mask in (needed, allowed))
    if weights is None or side > DENSE_SIDE:
        return math.inf
    return PAIR_SECONDS * entries + SIDE_SECONDS * side**3


class _Table:
    """Rows of nodes that are needed, columns of those that are allowed.

    rows, columns   their nodes     table   [r, c] CSR of ones
    price           [c] over `mean`, their mean: PackingProgram has values in units of that
    """

    def __init__(self, graph: Graph, weights: np.ndarray | None, needed: Mask, allowed: Mask) -> None:
        every = np.arange(graph.n)
        self.rows = every if needed is None else np.flatnonzero(needed)
        self.columns = every if allowed is None else np.flatnonzero(allowed)
        ones = np.ones(len(graph.indices))
        matrix = sp.csr_array((ones, graph.indices, graph.indptr), shape=(graph.n, graph.n))
        closed = (matrix + sp.eye_array(graph.n)).tocsr()
        if needed is not None or allowed is not None:
            closed = closed[self.rows][:, self.columns].tocsr()
        self.table, self._n = closed, graph.n
        self.mean = 1.0 if weights is None else float(weights[self.columns].mean())
        self.price = np.ones(len(self.columns)) if weights is None else weights[self.columns] / self.mean

    def whole(self, values: np.ndarray) -> np.ndarray:
        """[n] int64, values [r] in units of the mean price, cut to whole numbers."""
        y = np.zeros(self._n, dtype=np.int64)
        y[self.rows] = np.floor(values * self.mean)
        return y


def _filled(
    graph: Graph, y: np.ndarray, order: np.ndarray, method: str, weights: np.ndarray | None = None,
    needed: Mask = None, allowed: Mask = None,
) -> Packing:  # fmt: skip
    """The packing with every value raised, in some order, as far as the neighbourhoods allow."""
    one = denominator(graph, weights)
    left = np.full(graph.n, one) if weights is None else one * weights
    left = left - y
    np.subtract.at(left, graph.row_of(), y[graph.indices])
    if allowed is not None:
        left[~allowed] = LARGEST
    for v in (order if needed is None else order[needed[order]]).tolist():
        near = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        room = min(int(left[v]), int(left[near].min(initial=left[v])))
        if room > 0:
            y[v] += room
            left[v] -= room
            left[near] -= room
    return Packing(Components(graph).rounded(y, one), method, y, one, weights, needed, allowed)


def shared_prices(
    graph: Graph, weights: np.ndarray | None = None, needed: Mask = None, allowed: Mask = None
) -> Packing:
    """Every node shares its price among those that it would dominate; each of them takes the least offer."""
    one, n = denominator(graph, weights), graph.n
    counts = np.ones(n, dtype=np.int64) if needed is None else needed.astype(np.int64)
    dominates = counts.copy()
    filled = np.flatnonzero(np.diff(graph.indptr))
    starts = graph.indptr[filled]
    if len(filled):
        dominates[filled] += np.add.reduceat(counts[graph.indices], starts)
    share = (np.full(n, one) if weights is None else one * weights) // np.maximum(dominates, 1)
    if allowed is not None:
        share[~allowed] = LARGEST
    y = share.copy()
    if len(filled):
        y[filled] = np.minimum(y[filled], np.minimum.reduceat(share[graph.indices], starts))
    y[y == LARGEST] = 0  # nobody may dominate these
    y *= counts
    lower = Components(graph).rounded(y, one)
    return Packing(lower, "packing of neighbourhoods", y, one, weights, needed, allowed)


def improving_packings(
    graph: Graph, weights: np.ndarray | None = None, needed: Mask = None, allowed: Mask = None
) -> Iterator[Packing]:
    """A packing at once, then those from iterates of a first-order method, until it has converged.

    Iterates of the method, which is about the linear program, overload some neighbourhoods: each value is
    divided by the largest load, over the price, among those that it is in, and cut to a whole numerator.
    """
    if not graph.n:
        return
    yield shared_prices(graph, weights, needed, allowed)
    question = _Table(graph, weights, needed, allowed)
    table, price = question.table, question.price
    columns = table.T.tocsr()
    components, one = Components(graph), denominator(graph, weights)
    starts, each = table.indptr[:-1], 1.0 / np.diff(columns.indptr).max()
    begin = np.full(len(price), each), np.full(len(question.rows), each * price.min())
    program = PackingProgram(table, np.ones(len(question.rows)), price, *begin)
    best = 0.0
    for block in range(1, MOST + 1):
        program.run(STEPS)
        x, y = program.average()
        for values in (y, program.y):
            load = columns @ values / price
            fits = values / np.maximum(np.maximum.reduceat(load[table.indices], starts), 1.0)
            best = max(best, float(fits.sum()))
            y_whole = question.whole(fits * (one * (1 - MARGIN)))
            lower = components.rounded(y_whole, one)
            yield Packing(lower, "packing of neighbourhoods", y_whole, one, weights, needed, allowed)
        cover = float((price * x).sum() / max((table @ x).min(), 1e-9))  # no packing has more
        if best >= (1 - CLOSE) * cover:
            return
        if block % RESTART == 0:
            program.restart()


def packed_neighbourhoods(
    graph: Graph, weights: np.ndarray | None = None, needed: Mask = None, allowed: Mask = None
) -> Packing:
    """The best of `improving_packings`."""
    found = improving_packings(graph, weights, needed, allowed)
    return max(found, key=lambda packing: packing.lower, default=nothing(graph))


def nothing(graph: Graph) -> Packing:
    """The packing of value 0, which is an answer where there are no nodes."""
    return Packing(0, "" if graph.n else "no nodes", np.zeros(graph.n, dtype=np.int64))


DOMINATION_BOUNDS = {
    "neighbourhoods": disjoint_neighbourhoods, "packing": packed_neighbourhoods,
    "linear_program": linear_program,
}  # fmt: skip
