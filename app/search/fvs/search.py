"""Search for small feedback vertex sets: simulated annealing of the forest that they leave.

The forest is kept as a list in which every node has at most one neighbour before it, so that a cycle cannot
close. A proposal draws a node from outside; it enters behind the first of its neighbours in the list, and
those leave that have two neighbours before them then. It is made if the forest loses no weight by it, else
with probability exp(-coldness loss / median weight). The coldness rises linearly from hot to cold in a cycle
of steps, and a cycle takes twice as many as the one before. Between two cycles the best forest takes all
nodes that close no cycle with it, however they stand in the list, and its trees get new roots.

Source   Qin and Zhou, Simulated annealing approach to the undirected feedback vertex set problem, European
         Physical Journal B 2014; lists: Galinier, Lemamou and Bouzidi, Journal of Heuristics 2013
"""

import ctypes

import numpy as np

from app.graphs.multigraph import Multigraph
from app.native.library import function
from app.search.annealed_set import AnnealedSet, struct_of
from app.search.annealing import CONSTANTS
from app.search.fvs import plain

GIVEN = ("indptr", "weight", "indices", "twice", "hot", "escape")
ARRAYS = ("best_left", "order", "place", "moved", "next", "before", "earlier", "part", "seen", "label")
NUMBERS = ("taken", "cost", "best", "steps", "found_at", "moved_size", "cycle", "at")
STRUCT = struct_of((*GIVEN, *ARRAYS), (*NUMBERS, *CONSTANTS))
RUN = function("lk_feedback_anneal", ctypes.POINTER(STRUCT), ctypes.c_int64)
RETURN = function("lk_feedback_return", ctypes.POINTER(STRUCT))


class FeedbackSearch(AnnealedSet):
    """A search for a feedback vertex set of least weight.

    order, place            the `taken` nodes that are not in the forest, then those that are
    next, before            [n+1] int32, the list as a ring; n stands before the first
    label                   [n+1] int64, ascending along the list; -1 outside
    earlier                 [n] int32, of a node of the list: neighbours before it, 0 or 1
    part, seen              [n] int32, scratch
    """

    record, arrays, constants = STRUCT, (*GIVEN, *ARRAYS), CONSTANTS
    numbers = (*NUMBERS, "random")
    kernels, twin = (RUN, RETURN), plain

    def __init__(self, core: Multigraph, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        super().__init__(core, start, seed, compiled)
        n = core.n
        self.twice = core.twice if core.twice.any() else None
        self.earlier, self.part, self.seen = (np.zeros(n, dtype=np.int32) for _ in range(3))
        self.next, self.before = (np.zeros(n + 1, dtype=np.int32) for _ in range(2))
        self.label, self.taken = np.zeros(n + 1, dtype=np.int64), 0
        self._begin(core.weights, int(core.weights.min()) if core.cycles(compiled) else 0)
