"""Upper bounds on dense subgraphs with a witness: how each edge shares its weight between its ends."""

from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate, Proof
from app.bounds.dense.balance import largest_ratio
from app.graphs.dense import DenseGraph, row_sums

LARGEST = 1 << 62  # of what all edges give, in units


def entries_of_shares(graph: DenseGraph, share: np.ndarray, one: int) -> np.ndarray:
    """[nnz] int64, what the row of each entry gets of its edge.

    share   [edges] int64, of the edges in the order of the entries whose column is above their row, what that
            row gets; the column gets the rest of one * weight

    """
    first = np.flatnonzero(graph.indices > graph.rows())
    held = np.zeros(len(graph.indices), dtype=np.int64)
    held[first] = share
    held[graph.twin[first]] = one * graph.weight[first] - share
    return held


def shares_of(graph: DenseGraph, held: np.ndarray) -> np.ndarray:
    """The inverse of entries_of_shares."""
    return held[graph.indices > graph.rows()]


def check_shape(graph: DenseGraph, share: np.ndarray, one: int, method: str) -> None:
    """Raises BadCertificate where there is not one share for each edge, or numbers may leave 63 bits."""
    if share.shape != (len(graph.indices) // 2,):
        raise BadCertificate(f"{method}: {len(share)} shares for {len(graph.indices) // 2} edges")
    total = sum(np.abs(graph.weight).tolist())
    if one < 1 or one * max(total, 1) >= LARGEST:
        raise BadCertificate(f"{method}: {one} units to one of weight are none, or too many")


@dataclass(frozen=True, eq=False)
class LoadBound(Proof):
    """No set of nodes is denser than floor(upper / 2^scale) says, of the codes of app/graphs/dense.py.

    The witness shares one * w_e units of each edge between its ends, none below 0. The largest load of a node
    for its size bounds the density of every set (app/bounds/dense/balance.py has the proof).
    Source   the dual of the linear program of Charikar 2000

    share   [edges] int64, see entries_of_shares

    """

    upper: int
    method: str
    one: int
    share: np.ndarray

    def check(self, graph: DenseGraph) -> None:
        """Raises BadCertificate where this is no sharing."""
        check_shape(graph, self.share, self.one, self.method)
        most = self.one * graph.weight[graph.indices > graph.rows()]
        if ((self.share < 0) | (self.share > most)).any():
            raise BadCertificate(f"{self.method}: an edge gives less than nothing, or more than it has")

    def proved(self, graph: DenseGraph, scale: int) -> int:
        """The code of the largest load for its size. Raises BadCertificate."""
        self.check(graph)
        load = row_sums(entries_of_shares(graph, self.share, self.one), graph.indptr)
        found = largest_ratio(load, graph.size) / self.one
        return (found.numerator << scale) // found.denominator
