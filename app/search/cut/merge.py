"""Annealing of what several cuts leave open: a node for each piece on which all of them agree."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.graphs.graph import Graph
from app.search.cut.plain import Annealer

FREE_TARGET = 1 << 62  # no cut: a round goes on to its end
ARRAYS = ("sides", "best_sides", "gain", "number")  # of an annealer


def pieces_of(graph: Graph, cuts: list[np.ndarray]) -> np.ndarray:
    """[n] int64, each node's piece: it is connected by edges that all cuts [n] bool cut, or none of them.

    Each of the cuts is the first one with some whole pieces turned over. At most 63 cuts.
    """
    name, rows, cols = np.zeros(graph.n, dtype=np.int64), graph.row_of(), graph.indices
    for place, sides in enumerate(cuts[1:]):
        name |= (sides ^ cuts[0]).astype(np.int64) << place
    kept = name[rows] == name[cols]
    ones = np.ones(int(kept.sum()), dtype=np.int8)
    alike = sp.csr_array((ones, (rows[kept], cols[kept])), shape=(graph.n, graph.n))
    return connected_components(alike, directed=False)[1].astype(np.int64)


class Merge:
    """A round of annealing that turns over whole pieces of a cut.

    An edge inside a piece stays as it is. One of weight w between two pieces weighs -w if it is cut now, else
    w, in the cut of a graph with a node for each piece, which says what is turned over: the gain is that
    cut's weight. Cuts of a pool are combined in all ways at once so, and what many flips would have to change
    together is one flip (Houdayer and Martin 1999, "Renormalization for discrete optimization").

    weights   [nnz] int64, aligned with graph.indices; frozen [n] bool, nodes whose side is given
    sides     [n] bool, the cut that is turned; pieces [n] int64 from 0, none left out
    hottest   the first temperature, in units of cut
    """

    def __init__(
        self,
        graph: Graph,
        weights: np.ndarray,
        frozen: np.ndarray,
        sides: np.ndarray,
        pieces: np.ndarray,
        hottest: float,
        seed: int,
        compiled: bool,
    ) -> None:
        self.given, self.pieces = sides, pieces
        count = int(pieces.max(initial=-1)) + 1
        rows, cols = graph.row_of(), graph.indices
        between = pieces[rows] != pieces[cols]
        rows, cols, kept = rows[between], cols[between], weights[between]
        turned = np.where(sides[rows] != sides[cols], -kept, kept)
        small = sp.coo_array((turned, (pieces[rows], pieces[cols])), shape=(count, count)).tocsr()
        small.eliminate_zeros()
        small.sort_indices()
        given = np.zeros(count, dtype=bool)
        given[pieces[frozen]] = True
        own = small.indptr.astype(np.int64), small.indices.astype(np.int32), small.data.astype(np.int64)
        self._hottest, self._none = hottest, np.zeros(count, dtype=bool)
        self._annealer = Annealer(own, given, hottest, FREE_TARGET, seed, compiled)

    def begin(self, sweeps: int) -> None:
        """Cool in so many sweeps, from nothing turned over."""
        self._annealer.begin(self._none, sweeps, self._hottest)

    def run(self, steps: int) -> int:
        """Up to `steps` trials; returns those made."""
        return self._annealer.run(steps)

    @property
    def over(self) -> bool:
        """The round has come to its end."""
        return self._annealer.over

    @property
    def left(self) -> int:
        """Trials that the round still has."""
        return self._annealer.left

    def solution(self) -> np.ndarray:
        """[n] bool, the best cut of the round: never worse than the one that is turned."""
        return self.given ^ self._annealer.best_sides()[self.pieces]

    def state(self) -> dict[str, Any]:
        """All that `restore` needs on a merge of the same sides and pieces."""
        return {name: array.copy() for name, array in self._annealer.arrays.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        for name, array in self._annealer.arrays.items():
            array[...] = state[name]
