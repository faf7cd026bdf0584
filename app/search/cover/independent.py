"""What the searches over independent sets share: the set as part of an ordered list, and the best one found.

An independent set is the complement of a vertex cover. `order` holds the set, then the free nodes, which have
no neighbour in it, then the others: to draw from one of the three, or to move a node, takes a few steps.
"""

import ctypes
from typing import Any

import numpy as np

from app.graphs.graph import Graph
from app.native.state import KernelState

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GRAPH_ARRAYS = ("indptr", "node_weight", "indices")
SHARED_ARRAYS = ("best_set", "order", "place", "moved")
SHARED_NUMBERS = ("size", "free_size", "value", "best", "steps", "found_at", "moved_size", "work")


class SharedFields(ctypes.Structure):
    """The struct of independent.h; those of the searches begin with it."""

    _fields_ = (
        ("n", Long),
        *((name, Pointer) for name in (*GRAPH_ARRAYS, *SHARED_ARRAYS)),
        *((name, Long) for name in SHARED_NUMBERS),
        ("random", ctypes.c_uint64),
    )


class IndependentSet(KernelState):
    """The state of a search; the arrays are those of independent.h. A search adds arrays and numbers to them.

    order       [n] int32, the set, then the `free_size` nodes without neighbours in it, then the others
    place       [n] int32, where each node is in `order`
    moved       [n] int32, the `moved_size` nodes that entered or left since the best set was saved; -1: any
    work        int, nanoseconds that all steps took, roughly: counted, not measured
    value       int, weight of the set; best: of the best one, best_set [n] uint8
    """

    FIELDS: type[SharedFields]
    CONSTANTS: tuple[str, ...] = ()  # numbers that a search sets once
    ARRAYS: tuple[str, ...] = ()  # what changes besides the shared ones
    SCRATCH: tuple[str, ...] = ()  # arrays that mean nothing between calls
    KERNELS: tuple[Any, ...] = ()

    def __init__(self, graph: Graph, weights: np.ndarray | None, random: int, compiled: bool) -> None:
        n = self.n = graph.n
        self.compiled = compiled and None not in self.KERNELS
        self.indptr = np.ascontiguousarray(graph.indptr, dtype=np.int64)
        self.indices = np.ascontiguousarray(graph.indices, dtype=np.int32)
        self.node_weight = weights
        # The mean weight, rounded up.
        self.unit = 1 if weights is None else -(-int(weights.sum()) // max(n, 1))
        self.best_set = np.zeros(n, dtype=np.uint8)
        self.order, self.place, self.moved = (np.zeros(n, dtype=np.int32) for _ in range(3))
        self.size = self.free_size = self.value = self.steps = self.found_at = 0
        self.moved_size = self.work = 0
        self.best, self.random = -1, random

    def _bind(self) -> None:
        """Give the kernels the addresses of the arrays, and what never changes."""
        arrays = (*GRAPH_ARRAYS, *SHARED_ARRAYS, *self.ARRAYS, *self.SCRATCH)
        self._hold(self.FIELDS(), arrays, ("n", *self.CONSTANTS))

    def take_best(self, in_cover: np.ndarray) -> bool:
        """Make the complement of a cover [n] bool the best set, if it is better."""
        outside = ~in_cover
        value = int(outside.sum() if self.node_weight is None else self.node_weight[outside].sum())
        if value <= self.best:
            return False
        self.best, self.found_at, self.moved_size = value, self.steps, -1
        self.best_set[:] = outside
        return True

    def solution(self) -> np.ndarray:
        """[n] bool, the cover that the best set leaves."""
        return self.best_set == 0

    def state(self) -> dict[str, Any]:
        """Copies of all that changes."""
        arrays = {name: getattr(self, name) for name in (*SHARED_ARRAYS, *self.ARRAYS)}
        arrays = {name: array.copy() for name, array in arrays.items() if array is not None}
        return arrays | {name: int(getattr(self, name)) for name in self.numbers}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of the same graph."""
        for name in (*SHARED_ARRAYS, *self.ARRAYS):
            if name in state:
                getattr(self, name)[:] = state[name]
        for name in self.numbers:
            setattr(self, name, int(state[name]))
