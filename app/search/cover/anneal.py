"""Simulated annealing for maximum independent sets, the complements of vertex covers.

The set stays independent. A proposal draws a node from outside; it enters, and its neighbours in the set
leave, if the set loses no weight by it, else with probability exp(-coldness loss / mean weight). A node that
has become free enters at once. The coldness rises linearly from `HOT` on in a cycle
(app/search/annealing.py); a cycle begins at the best set, and takes twice as many steps as the one before it:
at any time the longest one that has ended took a quarter of it or more.

Rising slowly from where one loss of a node in ten to a hundred passes, the set finds on sparse graphs what
searches by exchanges do not (docs/measurements/answers.md).

Source  Kirkpatrick, Gelatt and Vecchi, Science 220, 1983; moves that keep the set independent: as the forced
        insertions of Andrade, Resende and Werneck, J. Heuristics 18, 2012
"""

import ctypes

import numpy as np

from app.graphs.graph import Graph
from app.native.library import function
from app.search.annealing import CONSTANTS, set_course
from app.search.cover import anneal_plain as plain
from app.search.cover.independent import SHARED_NUMBERS, IndependentSet, Long, Pointer, SharedFields

HOT = (4.6, 2.3)  # at the start of even cycles, of odd ones: a loss of one node passes once in 100, in 10


class _Fields(SharedFields):
    _fields_ = (
        *((name, Pointer) for name in ("hot", "escape", "against")),
        *((name, Long) for name in (*CONSTANTS, "cycle", "at")),
    )


RUN = function("lk_cover_anneal", ctypes.POINTER(_Fields), Long)
RETURN = function("lk_cover_anneal_return", ctypes.POINTER(_Fields))


class Anneal(IndependentSet):
    """The state of one annealing search; the arrays are those of cover_anneal.c.

    against     [n] int64, weight of a node's neighbours in the set
    and what app/search/annealing.py has
    """

    FIELDS = _Fields
    CONSTANTS = CONSTANTS
    ARRAYS = ("against",)
    numbers = (*SHARED_NUMBERS, "cycle", "at", "random")
    SCRATCH = ("hot", "escape")
    KERNELS = (RUN, RETURN)

    def __init__(
        self, graph: Graph, start: np.ndarray, weights: np.ndarray | None, random: int, compiled: bool
    ) -> None:
        super().__init__(graph, weights, random, compiled)
        set_course(self, HOT)
        self.against = np.zeros(self.n, dtype=np.int64)
        self._bind()
        self.take_best(start)
        if self.compiled:
            self._call(RETURN)
        else:
            plain.go_back(self)

    def load(self, in_cover: np.ndarray) -> None:
        """Begin the next cycle at the complement of a cover [n] bool, if it is better than the best set."""
        self.take_best(in_cover)

    def run(self, steps: int) -> None:
        """So many steps."""
        if self.compiled:
            self._call(RUN, steps)
        else:
            plain.run(self, steps)
