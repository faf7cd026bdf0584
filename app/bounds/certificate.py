"""Certificate: a lower bound on the size of any vertex cover, with the witness that proves it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.errors import LockstepError
from app.graphs.graph import Graph

WEAK_GAP = 0.10  # above this the bound says little, and the result says so


class BadCertificate(LockstepError):
    """The witness does not prove the bound; the message says what is wrong with it."""


class Proof(ABC):
    """How a bound was found, and a witness that `check` proves it from.

    checked   False where a part of the bound rests on a finished search, which has no witness
    """

    method: str
    checked: bool = True

    @abstractmethod
    def check(self, graph: Graph) -> None:
        """Prove the bound from the witness and the graph alone; raises BadCertificate where that fails."""


class Bound(Proof):
    """A lower bound with its proof."""

    lower: int

    def gap(self, objective: int) -> float:
        """By how much a cover of `objective` nodes may exceed the optimum: objective / lower - 1."""
        if objective == self.lower:
            return 0.0
        return (objective - self.lower) / self.lower if self.lower else math.inf

    def weak(self, objective: int) -> bool:
        """True when the gap of a cover of `objective` nodes is above 10 %."""
        return self.gap(objective) > WEAK_GAP


def exact_sum(values: np.ndarray) -> int:
    """The sum of int64 values, which may leave 63 bits."""
    return (int((values >> 31).sum()) << 31) + int((values & 0x7FFFFFFF).sum())


def cuts_up(ptr: np.ndarray, entries: int) -> bool:
    """Whether ptr [k+1] int64 says where lists begin that make up so many entries, one behind the other.

    Differences of numbers that do not ascend may leave 63 bits, so they are compared.
    """
    return bool(len(ptr) and ptr[0] == 0 and ptr[-1] == entries and (ptr[1:] >= ptr[:-1]).all())


@dataclass(frozen=True, eq=False)
class Certificate(Bound):
    """No vertex cover has fewer than `lower` nodes; `method` says how the bound was found.

    The witness is a half-integral fractional matching: edge u[i]-v[i] has the value halves[i]/2, and at no
    node do the values add up to more than 1. A cover C pays for every edge at one of its ends, so the values
    of all edges add up to at most |C|. The edges of the witness fall into connected pieces without common
    nodes; C pays for each piece with whole nodes, so each piece's value may be rounded up.

    u, v     [k] node numbers     halves   [k] 1 or 2
    """

    lower: int
    method: str
    u: np.ndarray
    v: np.ndarray
    halves: np.ndarray

    def check(self, graph: Graph) -> None:
        """Prove the bound from the edges and their values."""
        u, v, halves = self.u, self.v, self.halves
        if not (u.ndim == 1 and u.shape == v.shape == halves.shape):
            raise BadCertificate(
                f"{self.method}: the witness's arrays have shapes {u.shape} {v.shape} {halves.shape}"
            )
        absent = np.flatnonzero(~has_edges(graph, u, v))
        if len(absent):
            raise BadCertificate(
                f"{self.method}: {u[absent[0]]}-{v[absent[0]]} is not an edge of {graph.name}"
            )
        if not np.isin(halves, (1, 2)).all():
            raise BadCertificate(f"{self.method}: an edge's value is not 1/2 or 1")
        load = np.zeros(graph.n, dtype=np.int64)
        np.add.at(load, u, halves)
        np.add.at(load, v, halves)
        if (load > 2).any():
            node = int(load.argmax())
            raise BadCertificate(
                f"{self.method}: the values at node {node} add up to {load[node] / 2}, above 1"
            )
        proved = _proved(graph.n, u, v, halves)
        if proved != self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.lower}"
            )


def has_edges(graph: Graph, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """[k] bool: u[i]-v[i] is an edge of the whole graph."""
    return edge_table(graph)(u, v)


def edge_table(graph: Graph) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """has_edges of one graph, to be asked often."""
    stored = graph.row_of() * graph.n + graph.indices  # ascending: rows in order, columns ascending

    def has(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        inside = (u >= 0) & (u < graph.n) & (v >= 0) & (v < graph.n)
        wanted = np.where(inside, u, 0) * np.int64(graph.n) + np.where(inside, v, 0)
        place = np.searchsorted(stored, wanted)
        found = np.zeros(len(u), dtype=bool)
        found[place < len(stored)] = stored[place[place < len(stored)]] == wanted[place < len(stored)]
        return inside & found

    return has


def _proved(n: int, u: np.ndarray, v: np.ndarray, halves: np.ndarray) -> int:
    """The sum over the connected pieces of the witness of its value, rounded up."""
    pieces, piece = connected_components(
        sp.coo_array((np.ones(len(u)), (u, v)), shape=(n, n)), directed=False
    )
    value = np.bincount(piece[u], weights=halves, minlength=pieces).astype(np.int64)
    return int(((value + 1) // 2).sum())
