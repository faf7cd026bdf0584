"""Iterated local search for maximum independent sets, the complements of vertex covers.

The set stays independent, and one to which no node can be added. A step forces a node in, and its neighbours
in the set leave; then free nodes enter, and two nodes enter for one where it is their only neighbour in the
set (with node weights also one for all its neighbours), while that gains weight. A set that has lost weight
is taken back, but once in 1 + loss times distance to the best; with node weights both are in units of a part
(1/FINER) of their mean: losses are parts of it, and a search that lets them all pass stays far below its
best set.

The node that is forced in is, of four drawn among those with at most two neighbours in the set, the one that
left first; once in sixteen steps of any drawn. Each node knows how many neighbours it has in the set, and the
exclusive or of their names: the only one's name, where there is one.

Source  Andrade, Resende and Werneck, J. Heuristics 18, 2012. With node weights: the two kinds of swaps of
        Nogueira, Pinheiro and Subramanian, Optimization Letters 12, 2018
"""

import ctypes

import numpy as np

from app.graphs.graph import Graph
from app.native.library import function
from app.search.cover import swap_plain as plain
from app.search.cover.independent import SHARED_NUMBERS, IndependentSet, Long, Pointer, SharedFields

ARRAYS = ("tight", "owner", "against", "since")
SCRATCH = ("mark", "queue", "journal", "queued")
NUMBERS = ("queue_size", "journal_size")
FINER = 32


class _Fields(SharedFields):
    _fields_ = (
        *((name, Pointer) for name in (*ARRAYS, *SCRATCH)),
        *((name, Long) for name in ("unit", *NUMBERS, "epoch")),
    )


RUN = function("lk_cover_swap", ctypes.POINTER(_Fields), Long)
RETURN = function("lk_cover_swap_return", ctypes.POINTER(_Fields))


class Swap(IndependentSet):
    """The state of one iterated local search; the arrays are those of cover_swap.c.

    tight     [n] int32, neighbours in the set; owner [n] int32, the exclusive or of their names
    against   [n] int64, their weight, or None: all weigh one
    since     [n] int64, the step in which a node left the set for the last time
    unit      int, of losses and distances: one node, a part of the mean weight
    """

    FIELDS = _Fields
    CONSTANTS = ("unit",)
    ARRAYS = ARRAYS
    numbers = (*SHARED_NUMBERS, *NUMBERS, "random")
    SCRATCH = SCRATCH
    KERNELS = (RUN, RETURN)

    def __init__(
        self, graph: Graph, start: np.ndarray, weights: np.ndarray | None, random: int, compiled: bool
    ) -> None:
        super().__init__(graph, weights, random, compiled)
        n, self.unit = self.n, -(-self.unit // FINER)
        self.tight, self.owner, self.queue, self.journal = (np.zeros(n, dtype=np.int32) for _ in range(4))
        self.against = None if weights is None else np.zeros(n, dtype=np.int64)
        self.since, self.mark = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self.queued = np.zeros(n, dtype=np.uint8)
        self.queue_size = self.journal_size = 0
        self._bind()
        self.load(start)

    def load(self, in_cover: np.ndarray) -> None:
        """Go on from the complement of a cover [n] bool, if it is better than the best set."""
        if not self.take_best(in_cover):
            return
        if self.compiled:
            self._call(RETURN)
        else:
            plain.go_back(self)

    def run(self, steps: int) -> None:
        """So many steps."""
        if self.compiled:
            self._call(RUN, steps)
        else:
            plain.run(self, steps)
