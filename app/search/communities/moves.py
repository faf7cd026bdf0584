"""Mover: nodes go, one at a time, to the community near them that they add most to, until none gains.

Source   Louvain: Blondel et al., Journal of Statistical Mechanics 2008; a queue of the nodes whose neighbours
         have moved: Traag, Waltman and van Eck, Scientific Reports 2019
"""

import ctypes

import numpy as np

from app.graphs.contracted import numbered
from app.graphs.quality import Quality
from app.native.library import function, give_arrays
from app.native.state import KernelState
from app.search.communities import plain as plain

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ROWS = ("indptr", "indices", "weights", "size")
ARRAYS = ("label", "total", "count", "spare", "queue", "queued", "joined", "met")
NUMBERS = ("first", "waiting", "spares", "gain")


class _Mover(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("n", "near", "far")),
        *((name, Pointer) for name in (*ROWS, *ARRAYS)),
        *((name, Long) for name in NUMBERS),
    )


MOVE = function("lk_communities_move", ctypes.POINTER(_Mover), Long, returns=Long)


class Mover(KernelState):
    """Communities of the nodes of a Quality, and a queue of nodes to look at.

    label    [n] int32, the community of each node, numbers below n
    gain     by which the value has grown
    waiting  nodes in the queue

    total [n] int64 sizes, count [n] int32 nodes of communities; spare [n] int32 labels of none, the first
    `spares`; queue [n] int32 a ring from `first` on, queued [n] uint8; joined, met: of the kernel alone
    """

    numbers = NUMBERS

    def __init__(self, quality: Quality, label: np.ndarray, queue: np.ndarray, compiled: bool = True) -> None:
        """label   [n] communities to begin with     queue   [k] nodes to look at first, in order"""
        n, self.quality, self.compiled = quality.n, quality, compiled and MOVE is not None
        self.label = numbered(label)
        self.total, self.joined = np.zeros((2, n), dtype=np.int64)
        np.add.at(self.total, self.label, quality.size)
        self.count = np.bincount(self.label, minlength=n).astype(np.int32)
        used = int(self.label.max(initial=-1)) + 1
        self.spare, self.queue, self.met = np.zeros((3, n), dtype=np.int32)
        self.spares = n - used
        self.spare[: self.spares] = np.arange(n - 1, used - 1, -1)
        self.queued = np.zeros(n, dtype=np.uint8)
        self.queue[: len(queue)], self.queued[queue] = queue, 1
        self.first, self.waiting, self.gain = 0, len(queue), 0
        if self.compiled:
            self._hold(_Mover(n, quality.near, quality.far), ARRAYS)
            give_arrays(quality, self._record, ROWS)

    def run(self, most: int) -> int:
        """Look at so many nodes, fewer where none is left; returns how many."""
        return self._call(MOVE, most) if self.compiled else plain.move(self, most)
