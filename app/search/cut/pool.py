"""A pool of good cuts, and the recombination of two of them."""

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.rng import SplitMix


class Recombiner:
    """Combines two cuts: each connected piece of what they differ in is decided by itself.

    Flipping one piece of the difference changes no edge of another piece, so the best of the 2^k combinations
    of k pieces is found piece by piece (the partition crossover of Whitley, Hains and Howe 2009 for tours;
    for spin glasses the cluster move of Houdayer 2001 swaps one such piece).

    weights  [nnz] int64, aligned with graph.indices; frozen [n] bool, nodes whose side is given
    """

    def __init__(self, graph: Graph, weights: np.ndarray, frozen: np.ndarray) -> None:
        self._rows, self._cols, self._weights = graph.row_of(), graph.indices, weights
        self._free = ~frozen

    @cached_property
    def _whole(self) -> tuple[int, np.ndarray, np.ndarray]:
        """The number of connected parts of the free nodes, [n] each node's, and which of them are turnable.

        Turning over a whole part changes nothing where no neighbour is frozen. Not asked for before the end
        of a first round, which large graphs may have no time for.
        """
        count, part = self._pieces(self._free[self._rows] & self._free[self._cols])
        bound = np.zeros(count, dtype=bool)
        bound[part[self._rows[~self._free[self._cols]]]] = True
        return count, part, ~bound

    def _pieces(self, kept: np.ndarray) -> tuple[int, np.ndarray]:
        """Number of connected pieces, and [n] each node's piece, of the entries `kept`."""
        n = len(self._free)
        ones = np.ones(int(kept.sum()), dtype=np.int8)
        graph = sp.csr_array((ones, (self._rows[kept], self._cols[kept])), shape=(n, n))
        return connected_components(graph, directed=False)

    def difference(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """[n] bool: where a and b differ, each part of b turned over where that makes it nearer to a."""
        differs, (parts, part, turnable) = a != b, self._whole
        size, count = np.bincount(part, minlength=parts), np.bincount(part[differs], minlength=parts)
        turned = turnable & (2 * count > size)
        return (differs ^ turned[part]) & self._free

    def combine(self, a: np.ndarray, b: np.ndarray, random: SplitMix) -> np.ndarray:
        """[n] bool, the best combination of a and b [n] bool; pieces that make no difference at random."""
        differs = self.difference(a, b)
        rows, cols = self._rows, self._cols
        count, piece = self._pieces(differs[rows] & differs[cols])
        leaving = differs[rows] & ~differs[cols]
        change = np.where(a[rows[leaving]] == a[cols[leaving]], 1, -1) * self._weights[leaving]
        gain = np.zeros(count, dtype=np.int64)
        np.add.at(gain, piece[rows[leaving]], change)
        taken = gain > 0
        for k in sorted_set(piece[differs & (gain[piece] == 0)]).tolist():
            taken[k] = random.below(2)
        return a ^ (differs & taken[piece])


class Pool:
    """The best distinct cuts seen, best first.

    values [k] list of int, sides [k] list of [n] bool
    """

    def __init__(self, size: int, recombiner: Recombiner) -> None:
        self.size = size
        self.values: list[int] = []
        self.sides: list[np.ndarray] = []
        self._recombiner = recombiner

    def add(self, value: int, sides: np.ndarray, near: int) -> bool:
        """Keep a cut unless one at least as good is within `near` flips; drop what it replaces."""
        distance = [int(self._recombiner.difference(sides, other).sum()) for other in self.sides]
        close = [k for k, d in enumerate(distance) if d <= near]
        if any(self.values[k] >= value for k in close):
            return False
        for k in reversed(close):
            del self.values[k], self.sides[k]
        place = sum(v >= value for v in self.values)
        self.values.insert(place, value)
        self.sides.insert(place, sides)
        dropped = len(self.values) > self.size
        del self.values[self.size :], self.sides[self.size :]
        return not (dropped and place == self.size)
