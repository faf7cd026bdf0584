"""The witness of the bound of odd cycles on the cut, and what is shared by those who look for cycles."""

from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate, Proof, cuts_up, exact_sum
from app.graphs.fixed_point import integer_weights
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set

MOST_VALUE = 1 << 61  # multiples of the values of all cycles together: no sum overflows


@dataclass(frozen=True, eq=False)
class CycleCertificate(Proof):
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
        weights, _ = integer_weights(graph)
        self._check_sizes(graph, weights)
        sizes, heads = np.diff(self.ptr), heads_of(self.ptr, self.nodes)
        cycle = np.repeat(np.arange(len(sizes)), sizes)
        if len(sizes) and (sizes.min() < 3 or self.nodes.min() < 0 or self.nodes.max() >= graph.n):
            raise BadCertificate(f"{self.method}: a cycle has fewer than 3 nodes, or unknown ones")
        if len(sorted_set(cycle * graph.n + self.nodes)) < len(cycle):
            raise BadCertificate(f"{self.method}: a cycle meets a node twice")
        if (_counts(self.ptr, self.over) % 2 == 0).any():
            raise BadCertificate(f"{self.method}: a cycle has an even number of edges in F")
        entries = entry_of(graph, self.nodes, heads)
        if (entries < 0).any():
            raise BadCertificate(f"{self.method}: a cycle has an edge that the graph has not")
        proved = _dual(graph, weights, self.ptr, entries, self.over, self.values, self.places)
        if proved > self.upper:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.upper}"
            )

    def _check_sizes(self, graph: Graph, weights: np.ndarray) -> None:
        """The arrays belong together, and no sum of them leaves 63 bits."""
        ptr, cycles = self.ptr, len(self.values)
        lengths = len(ptr) == cycles + 1 and len(self.nodes) == len(self.over)
        if not lengths or not cuts_up(ptr, len(self.nodes)) or (self.over > 1).any():
            raise BadCertificate(f"{self.method}: the witness's arrays do not belong together")
        if (self.values < 0).any() or exact_sum(self.values) >= MOST_VALUE:
            raise BadCertificate(f"{self.method}: a cycle has a negative value, or all have too much")
        largest = int(np.abs(weights).max(initial=0))
        if not 0 <= self.places < 62 or largest << self.places >= MOST_VALUE:
            raise BadCertificate(f"{self.method}: values in multiples of 2^-{self.places} are not exact")


def entry_of(graph: Graph, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """[k] the place of each entry (row, column) of a whole graph, -1 where there is none."""
    keys = graph.row_of() * graph.n + graph.indices
    wanted = rows.astype(np.int64) * graph.n + columns
    if not len(keys):
        return np.full(len(wanted), -1)
    at = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, -1)


def heads_of(ptr: np.ndarray, nodes: np.ndarray) -> np.ndarray:
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
    counts = (_counts(ptr, over) - 1).tolist()
    total = sum(y * count for y, count in zip(values.tolist(), counts))  # Python's integers do not overflow
    each = np.repeat(values, np.diff(ptr))
    twins = entry_of(graph, graph.indices[entries], graph.row_of()[entries])
    loads = np.zeros(len(weights), dtype=np.int64)
    np.add.at(loads, np.minimum(entries, twins), np.where(over, each, -each))
    once = np.flatnonzero(graph.row_of() < graph.indices)
    left = np.maximum((weights[once] << places) - loads[once], 0)
    return (total + sum(left.tolist())) >> places
