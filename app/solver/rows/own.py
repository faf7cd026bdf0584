"""What reductions on row partitions share: the rows of this rank that are left, and when their rounds end."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph, index_type
from app.graphs.lists import ranges
from app.numerics.pieces import row_pieces

MOST_ROUNDS = 64
LEAST_SHARE = 1e-3  # of the nodes left, gone in a round, for there to be another
PIECE = 1 << 22  # entries that are worked on at a time
KEY_BITS, LARGEST_RANK = np.uint64(44), (1 << 20) - 2
LOW = np.uint64((1 << 44) - 1)
MIX, STRIDE = np.uint64(0x9E3779B97F4A7C15), 0x94D049BB133111EB
UNMIX = np.uint64(pow(int(MIX), -1, 1 << 44))
NO_KEY = np.uint64((1 << 64) - 1)


class Rounds:
    """The rounds of a reduction, and when they are to end.

    made       rounds so far
    cut_short  whether `look` has ended them
    """

    def __init__(self, look: Callable[[], Any] = lambda: False, most: int = 0) -> None:
        """look   called before every round; where it is true the time is up: the same on all ranks
        most   rounds; 0: MOST_ROUNDS
        """
        self._look, self._most = look, most or MOST_ROUNDS
        self.made, self.cut_short = 0, False

    @property
    def ended(self) -> bool:
        """Whether there is to be no other."""
        return self.cut_short or self.made >= self._most

    def late(self) -> bool:
        """Within a round that may end early: whether the time is up. Ranks: all call; identical on all."""
        self.cut_short = self.cut_short or bool(self._look())
        return self.cut_short

    def another(self) -> bool:
        """Whether there is to be one more round, which is counted. Ranks: all call; identical on all."""
        if self.ended:
            return False
        self.cut_short = bool(self._look()) and self.made > 0  # a replay has at least one
        self.made += not self.cut_short
        return not self.cut_short


class OwnRows:
    """The own rows of nodes that are left, with columns of such nodes.

    nodes    [k] int64, ascending numbers of the graph
    indptr   [k+1] int64; indices [m]: their rows, columns in numbers of the graph
    n        nodes of the graph
    """

    def __init__(self, n: int, nodes: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> None:
        self.n, self.nodes, self.indptr, self.indices = n, nodes, indptr, indices

    @classmethod
    def of(cls, graph: Graph) -> "OwnRows":
        """All rows that this rank holds of a graph."""
        return cls(graph.n, np.arange(graph.lo, graph.hi), graph.indptr, graph.indices)

    def degrees(self) -> np.ndarray:
        """[k] int64, the columns of each row."""
        return np.diff(self.indptr)

    def among(self, kept: np.ndarray) -> "OwnRows":
        """The rows and columns of the nodes that are kept [n] bool."""
        stays = kept[self.indices]
        own = kept[self.nodes]
        stays &= np.repeat(own, self.degrees())
        degrees = row_counts(self.indptr, stays)[own]
        indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
        return OwnRows(self.n, self.nodes[own], indptr, self.indices[stays])

    def least(self, keys: np.ndarray) -> np.ndarray:
        """[k] uint64, the least of the keys [n] of the columns of each row; NO_KEY of none."""
        found = np.full(len(self.nodes), NO_KEY)
        for first, last in pieces(self.indptr):
            low, high = self.indptr[[first, last]]
            ends = self.indptr[first : last + 1] - low
            found[first:last] = row_least(ends, keys[self.indices[low:high]], NO_KEY)
        return found

    def sums(self, values: np.ndarray) -> np.ndarray:
        """[k] int64, the sums of values [n] int64 of the columns of each row, a piece of them at a time."""
        found = np.zeros(len(self.nodes), dtype=np.int64)
        for first, last in pieces(self.indptr):
            low, high = self.indptr[[first, last]]
            ends = self.indptr[first : last + 1] - low
            found[first:last] = row_sums(ends, values[self.indices[low:high]])
        return found

    def count(self, group: Group) -> tuple[int, int]:
        """Nodes and edges left on all ranks. Ranks: all call."""
        nodes, entries = group.sum_integers(np.array([len(self.nodes), len(self.indices)])).tolist()
        return nodes, entries // 2

    def whole(self, group: Group, name: str) -> tuple[Graph, np.ndarray]:
        """What all ranks have left as a graph of its own, and [k] int64 its nodes. Ranks: all call."""
        nodes = everywhere(group, self.nodes)
        return gathered(group, name, self.n, nodes, self.indptr, self.indices), nodes


def pieces(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """All rows, from one to before another, a piece of the entries at a time, at least one row."""
    return row_pieces(indptr, PIECE)


def entries_of(indptr: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entries of rows `at` [j]: [m] which of these each is of, and [m] where it is."""
    lengths = indptr[at + 1] - indptr[at]
    return np.repeat(np.arange(len(at)), lengths), ranges(indptr[at], lengths)


def row_counts(indptr: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """[k] int64, how many entries of each row have a mark; marks [m] bool."""
    found = np.zeros(len(indptr) - 1, dtype=np.int64)
    for first, last in pieces(indptr):
        low, high = indptr[[first, last]]
        until = np.zeros(high - low + 1, dtype=np.int64)
        np.cumsum(marks[low:high], out=until[1:])
        found[first:last] = np.diff(until[indptr[first : last + 1] - low])
    return found


def row_sums(indptr: np.ndarray, values: np.ndarray) -> np.ndarray:
    """[k] int64, the sums of the values [m] int64 of each row."""
    found, some = np.zeros(len(indptr) - 1, dtype=np.int64), np.diff(indptr) > 0
    if some.any():
        found[some] = np.add.reduceat(values, indptr[:-1][some], dtype=np.int64)
    return found


def row_any(indptr: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """[k] bool, whether an entry of each row has a mark; marks [m] bool."""
    found, some = np.zeros(len(indptr) - 1, dtype=bool), np.diff(indptr) > 0
    if some.any():
        found[some] = np.logical_or.reduceat(marks, indptr[:-1][some])
    return found


def row_least(indptr: np.ndarray, values: np.ndarray, none: Any) -> np.ndarray:
    """[k] the least of the values [m] of each row; `none` of an empty one."""
    found, some = np.full(len(indptr) - 1, none, dtype=values.dtype), np.diff(indptr) > 0
    if some.any():
        found[some] = np.minimum.reduceat(values, indptr[:-1][some])
    return found


def keyed(nodes: np.ndarray, rank: np.ndarray | int, salt: int) -> np.ndarray:
    """[k] uint64, keys of nodes [k] below 2^44: by rank [k] of at least 0, then in an order without a
    pattern, another one for each salt. `keyed_node` is the way back.
    """
    mixed = (nodes.astype(np.uint64) * MIX + _shift(salt)) & LOW
    return (np.minimum(rank, LARGEST_RANK).astype(np.uint64) << KEY_BITS) | mixed


def keyed_node(keys: np.ndarray, salt: int) -> np.ndarray:
    """[k] int64, the nodes of keys."""
    return (((keys & LOW) - _shift(salt)) * UNMIX & LOW).astype(np.int64)


def _shift(salt: int) -> np.uint64:
    return np.uint64(salt * STRIDE % (1 << 44))


def renumbered(rows: "OwnRows", nodes: np.ndarray) -> "OwnRows":
    """The rows in numbers among `nodes` [k], which are all that are left, ascending."""
    number = np.zeros(rows.n, dtype=index_type(len(nodes)))
    number[nodes] = np.arange(len(nodes))
    return OwnRows(len(nodes), number[rows.nodes].astype(np.int64), rows.indptr, number[rows.indices])


def gathered(
    group: Group, name: str, n: int, nodes: np.ndarray, indptr_own: np.ndarray, indices_own: np.ndarray
) -> Graph:
    """The graph of `nodes` [k], in order, on every rank, from each rank's rows, whose columns have numbers of
    the graph of n nodes. Ranks: all call.
    """
    k, degrees = len(nodes), everywhere(group, np.diff(indptr_own))
    number = np.zeros(n, dtype=index_type(k))
    number[nodes] = np.arange(k)
    indices = everywhere(group, number[indices_own])
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    return Graph(name, k, 0, k, indptr, indices, len(indices) // 2)


def everywhere(group: Group, part: np.ndarray) -> np.ndarray:
    """The rows of all ranks' arrays [k_own, ...], in the order of the ranks. Ranks: all call."""
    counts = group.gather_integers(np.array([len(part)]))[:, 0].tolist()
    return group.gather_host(np.ascontiguousarray(part), counts)
