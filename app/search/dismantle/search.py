"""Search for light sets that dismantle a graph: simulated annealing of what they leave.

The components of what is left are kept by number and size. A proposal draws a node that is taken; it is left
instead, and where the components next to it are too large together, it is kept apart from some of them: from
a drawn one, now and then, then from those whose nodes next to it weigh least for their size, these nodes are
taken. It is made if the set becomes no heavier by it, else with probability exp(-coldness loss / median
weight); those of them that fit again go back at once. One proposal in 16 draws a node that is left, and takes
it. The coldness rises linearly from hot to cold in a cycle of steps, and a cycle takes twice as many as the
one before. Between two cycles the best set loses the nodes that it does not need.

Source   of the annealing of sets of nodes: Qin and Zhou, Simulated annealing approach to the undirected
         feedback vertex set problem, European Physical Journal B 2014
"""

import ctypes

import numpy as np

from app.graphs.sized import SizedGraph
from app.native.library import function
from app.search.annealed_set import AnnealedSet, struct_of
from app.search.annealing import CONSTANTS
from app.search.dismantle import plain

GIVEN = ("indptr", "size", "weight", "indices", "hot", "escape")
ARRAYS = ("best_left", "order", "place", "moved", "label", "spare", "met", "out", "queue", "total", "contact")
NUMBERS = ("taken", "cost", "best", "steps", "found_at", "moved_size", "cycle", "at", "spares")
STRUCT = struct_of((*GIVEN, *ARRAYS), (*NUMBERS, "most", *CONSTANTS))
RUN = function("lk_dismantle_anneal", ctypes.POINTER(STRUCT), ctypes.c_int64)
RETURN = function("lk_dismantle_return", ctypes.POINTER(STRUCT))


class DismantleSearch(AnnealedSet):
    """A search for a set of least weight that leaves no component that is too large.

    order, place     the `taken` nodes of the set, then those that are left
    label            [n] int32, the component of a node that is left; -1 of another
    total            [n] int64, sizes of components           spare  [n] int32, `spares` numbers of none
    size             [n] int64 of nodes, None: all one        met, out, queue, contact   scratch
    """

    record, arrays, constants = STRUCT, (*GIVEN, *ARRAYS), ("most", *CONSTANTS)
    numbers = (*NUMBERS, "random")
    kernels, twin = (RUN, RETURN), plain

    def __init__(self, core: SizedGraph, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        super().__init__(core, start, seed, compiled)
        self.size, self.most = None if (core.size == 1).all() else np.ascontiguousarray(core.size), core.most
        self.label, self.spare, self.met, self.out, self.queue = (
            np.zeros(core.n, dtype=np.int32) for _ in range(5)
        )
        self.total, self.contact = (np.zeros(core.n, dtype=np.int64) for _ in range(2))
        self.taken = self.spares = 0
        self._begin(core.weights, 0 if core.apart(compiled) else int(core.weights.min()))
