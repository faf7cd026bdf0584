"""Lower bounds on dominating sets: fractional packings of closed neighbourhoods."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from app.bounds.certificate import BadCertificate, Bound
from app.bounds.first_order import PackingProgram
from app.graphs.graph import Graph

ONE = 1 << 30  # a packing's numerators are over this
LARGEST_PROGRAM = 30_000  # nodes and stored entries of a linear program that is solved: a second or less
STEPS, RESTART, MOST = 20, 8, 2_000  # of the first-order method: in a slice; slices between restarts; slices
CHECK_SECONDS = 1e-7  # of a packing, for each node and entry
MARGIN = 1e-9  # of a packing's values: more than rounding can add up to
CLOSE = 2e-4  # of the optimum: nearer it is not improved


@dataclass(frozen=True, eq=False)
class Packing(Bound):
    """No dominating set has fewer than `lower` nodes.

    The witness gives every node a value y of at least 0 such that the values in each closed neighbourhood add
    up to at most 1. Each node has a dominator in its closed neighbourhood, so a dominating set pays at least
    the sum of all values.

    numerators   [n] int64, y = numerator / 2^30
    """

    lower: int
    method: str
    numerators: np.ndarray

    def check(self, graph: Graph) -> None:
        """Prove the bound from the values and the graph alone; raises BadCertificate."""
        y = self.numerators
        if y.shape != (graph.n,) or y.dtype != np.int64 or (y < 0).any():
            raise BadCertificate(f"{self.method}: needs [{graph.n}] whole numbers of at least 0")
        load = y.copy()
        np.add.at(load, graph.row_of(), y[graph.indices])
        if (load > ONE).any():
            node = int(load.argmax())
            raise BadCertificate(f"{self.method}: the values around node {node} add up to more than 1")
        proved = -(-int(y.sum()) // ONE)
        if proved != self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.lower}"
            )


def disjoint_neighbourhoods(graph: Graph) -> Packing:
    """Nodes whose closed neighbourhoods are disjoint, those of low degree first, each of value 1."""
    y = np.zeros(graph.n, dtype=np.int64)
    order = np.argsort(graph.degrees(), kind="stable")
    return _filled(graph, y, order, "disjoint neighbourhoods")


def linear_program(graph: Graph) -> Packing:
    """The optimum of the fractional packing, which is that of the relaxation (strong duality).

    The solver's values are cut to whole numerators, scaled until they fit and filled up: whatever they
    are, the packing is feasible. Graphs beyond LARGEST_PROGRAM get the best of `improving_packings`.
    """
    if graph.n + len(graph.indices) > LARGEST_PROGRAM or not graph.n:
        return packed_neighbourhoods(graph)
    from scipy.optimize import linprog  # a fair share of a program's start, for few runs

    closed = _closed(graph)
    solved = linprog(-np.ones(graph.n), A_ub=closed, b_ub=np.ones(graph.n), bounds=(0, 1), method="highs")
    if solved.x is None:
        return disjoint_neighbourhoods(graph)
    y = np.floor(np.clip(solved.x, 0, 1) * ONE).astype(np.int64)
    most = int((closed.astype(np.int64) @ y).max())
    if most > ONE:
        y = y * ONE // most  # below 2^60
    order = np.argsort(-y, kind="stable")
    return _filled(graph, y, order, "linear program")


def _closed(graph: Graph) -> sp.csr_array:
    """A + I with entries one."""
    ones = np.ones(len(graph.indices))
    matrix = sp.csr_array((ones, graph.indices, graph.indptr), shape=(graph.n, graph.n))
    return (matrix + sp.eye_array(graph.n)).tocsr()


def _filled(graph: Graph, y: np.ndarray, order: np.ndarray, method: str) -> Packing:
    """The packing with every value raised, in some order, as far as the neighbourhoods allow."""
    load = y.copy()
    np.add.at(load, graph.row_of(), y[graph.indices])
    for v in order.tolist():
        near = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        room = ONE - max(int(load[v]), int(load[near].max(initial=0)))
        if room > 0:
            y[v] += room
            load[v] += room
            load[near] += room
    return Packing(-(-int(y.sum()) // ONE), method, y)


class DominationBounds:
    """Packings of one graph, ever better ones; the protocol is Bounds of app/search/toolbox.py.

    A first-order method comes within a few thousandths of the linear program's optimum soon, on graphs of any
    size (3,000 nodes, mean degree 9: in 0.1 s as high as HiGHS in 23 s); small programs are solved exactly
    after it.

    best   the best Packing so far
    """

    least_seconds = 0.0

    def __init__(self, graph: Graph) -> None:
        self.graph, self.best = graph, nothing(graph)
        self.check_seconds = CHECK_SECONDS * (graph.n + len(graph.indices))
        self._slices = self._work()

    @property
    def value(self) -> int:
        """The best bound, 0 before the first."""
        return self.best.lower

    @property
    def method(self) -> str:
        """How it was found."""
        return self.best.method

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """One slice of the work, and more while there is time; False when nothing better is to come."""
        begun = time.perf_counter()
        for found in self._slices:
            if not self.method or found.lower > self.value:
                self.best = found
            if self.value >= best:
                return False
            if time.perf_counter() - begun >= seconds:
                return True
        return False

    def optimum(self) -> np.ndarray | None:
        """None: these bounds find no solutions."""
        return None

    def verify(self) -> bool:
        """Check the witness."""
        self.best.check(self.graph)
        return True

    def _work(self) -> Iterator[Packing]:
        yield from improving_packings(self.graph)
        if self.graph.n + len(self.graph.indices) <= LARGEST_PROGRAM:
            yield linear_program(self.graph)


def improving_packings(graph: Graph) -> Iterator[Packing]:
    """Packings from the iterates of a first-order method for the linear program, until it has converged.

    Iterates overload some neighbourhoods: each value is divided by the largest load among those that it is
    in, and cut to a whole numerator.
    """
    if not graph.n:
        return
    closed = _closed(graph)
    starts, ones = closed.indptr[:-1], np.ones(graph.n)
    each = 1.0 / np.diff(closed.indptr).max()
    program = PackingProgram(closed, ones, ones, np.full(graph.n, each), np.full(graph.n, each))
    best = 0.0
    for block in range(1, MOST + 1):
        program.run(STEPS)
        x, y = program.average()
        for values in (y, program.y):
            load = closed @ values
            fits = values / np.maximum(np.maximum.reduceat(load[closed.indices], starts), 1.0)
            best = max(best, float(fits.sum()))
            numerators = np.floor(fits * (ONE * (1 - MARGIN))).astype(np.int64)
            yield Packing(-(-int(numerators.sum()) // ONE), "packing of neighbourhoods", numerators)
        cover = float(x.sum() / max((closed @ x).min(), 1e-9))  # no packing has more
        if best >= (1 - CLOSE) * cover:
            return
        if block % RESTART == 0:
            program.restart()


def packed_neighbourhoods(graph: Graph) -> Packing:
    """The best of `improving_packings`."""
    return max(improving_packings(graph), key=lambda packing: packing.lower, default=nothing(graph))


def nothing(graph: Graph) -> Packing:
    """The packing of value 0."""
    return Packing(0, "", np.zeros(graph.n, dtype=np.int64))


DOMINATION_BOUNDS = {
    "neighbourhoods": disjoint_neighbourhoods, "packing": packed_neighbourhoods,
    "linear_program": linear_program,
}  # fmt: skip
