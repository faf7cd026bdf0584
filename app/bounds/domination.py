"""Lower bounds on dominating sets: fractional packings of closed neighbourhoods."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from app.bounds.certificate import BadCertificate, Bound
from app.graphs.graph import Graph

ONE = 1 << 30  # a packing's numerators are over this
LARGEST_PROGRAM = 400_000  # nodes and stored entries of a linear program that is solved


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
    are, the packing is feasible. Graphs beyond LARGEST_PROGRAM get the disjoint neighbourhoods.
    """
    if graph.n + len(graph.indices) > LARGEST_PROGRAM or not graph.n:
        return disjoint_neighbourhoods(graph)
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


DOMINATION_BOUNDS = {"neighbourhoods": disjoint_neighbourhoods, "linear_program": linear_program}
