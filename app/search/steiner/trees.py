"""Trees: a Steiner tree that grows by shortest paths, spans chosen nodes, and gets lighter by local moves.

A move takes out a path between two crucial nodes (terminals, and nodes where the tree branches), or a node
where it branches with all paths at it, and joins the parts by the shortest paths between them; or it takes
in a node from outside, whose edges take the places of heavier ones. None makes the tree heavier.

Source   growth: Takahashi and Matsuyama 1980; moves: Uchoa and Werneck, Fast local search for the Steiner
         problem in graphs, ACM Journal of Experimental Algorithmics 2012
Differs  the parts of the tree are found again for each move, and distances in the region around them
"""

import ctypes
from typing import Any

import numpy as np

from app.graphs.steiner import SteinerCore
from app.native.library import address, function
from app.native.state import KernelState
from app.search.steiner import plain

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GIVEN = ("indptr", "indices", "weights", "terminal")
ARRAYS = ("parent", "degree", "child", "next", "before", "up", "dist", "pred", "label", "state", "nodes")
NUMBERS = ("root", "total", "work", "part")


class _Steiner(ctypes.Structure):
    _fields_ = (
        ("n", Long), ("terminals", Long),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS)),
        *((name, Long) for name in NUMBERS),
    )  # fmt: skip


STRUCT = ctypes.POINTER(_Steiner)
LOAD = function("lk_steiner_load", STRUCT)
GROW = function("lk_steiner_grow", STRUCT, Long, returns=Long)
SPAN = function("lk_steiner_span", STRUCT, Long, returns=Long)
PASS = function("lk_steiner_pass", STRUCT, Pointer, Long, Long, Long, returns=Long)


class Trees(KernelState):
    """One tree of a core, and the weights it goes by.

    weights  [nnz] int64, above 0, below 2^62 together: the lengths, or others
    parent   [n] int32, see app/graphs/steiner.py; `root` is a terminal
    total    what the tree weighs
    work     entries and nodes looked at so far
    part     nodes that a part of a tree begins with where it is taken apart: of a larger one those that are
             nearest to the break, and others where a search meets them

    degree [n] in the tree; child, next, before [n] lists of children; up [n] the weight to the parent;
    dist, pred, label, state, nodes [n]: of the moves
    """

    numbers = NUMBERS

    def __init__(self, core: SteinerCore, compiled: bool = True) -> None:
        n, self.core, self.compiled = core.n, core, compiled and PASS is not None
        self.n, self.terminals = n, len(core.terminals)
        self.indptr, self.indices = core.indptr, np.ascontiguousarray(core.indices, dtype=np.int32)
        self.weights = core.lengths.copy()
        self.terminal = np.zeros(n, dtype=np.uint8)
        self.terminal[core.terminals] = 1
        self.parent, self.degree, self.child, self.next = np.zeros((4, n), dtype=np.int32)
        self.before, self.pred, self.label, self.nodes = np.zeros((4, n), dtype=np.int32)
        self.up, self.dist = np.zeros((2, n), dtype=np.int64)
        self.state = np.zeros(n, dtype=np.uint8)
        self.parent -= 1
        self.root = self.total = self.work = 0
        self.part = n
        self._hold(_Steiner(n, self.terminals), (*GIVEN, *ARRAYS))

    def weigh(self, weights: np.ndarray) -> None:
        """Go by other weights [nnz]; a tree that is to stay is loaded again."""
        self.weights[:] = weights

    def load(self, parent: np.ndarray) -> None:
        """Take the tree of parents [n], whose root is a terminal."""
        self.parent[:] = parent
        self._do(LOAD, plain.load)

    def grow(self, root: int) -> bool:
        """Grow a tree from a terminal; whether it holds all of them."""
        return self._do(GROW, plain.grow, root) == self.terminals

    def span(self, chosen: np.ndarray, root: int) -> bool:
        """Take the lightest spanning tree of nodes, chosen [n] bool, that are connected with a terminal,
        without leaves that are none; whether it holds all terminals.
        """
        self.state[:] = np.where(chosen, plain.CHOSEN, 0)
        return self._do(SPAN, plain.span, root) == self.terminals

    def look(self, order: np.ndarray, first: int, most: int) -> int:
        """Try the moves at nodes order[first:] [k] int32, in that order, until so much work is done;
        returns the place of the next one.
        """
        if not self.compiled:
            return plain.look(self, order, first, most)
        return self._call(PASS, address(order), first, len(order), most)

    def _do(self, kernel: Any, slow: Any, *given: int) -> int:
        """A kernel on this tree, or what does the same without."""
        return self._call(kernel, *given) if self.compiled else slow(self, *given)

    def _call(self, kernel: Any, *given: int) -> int:
        """A kernel on this tree. Raises MemoryError."""
        found = super()._call(kernel, *given)
        if found is not None and found < 0:
            raise MemoryError("Steiner trees")
        return found
