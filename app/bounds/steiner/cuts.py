"""Cuts between the root of a Steiner tree and its terminals that a point of a linear program violates.

Source   back cuts, creep flow and nested cuts: Koch and Martin 1998
"""

import ctypes
from dataclasses import dataclass

import numpy as np

from app.bounds.steiner import plain
from app.bounds.steiner.net import Net
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
CUTS = function(
    "lk_directed_cuts", Long, *[Pointer] * 4, Long, Long, Pointer, *[Long] * 4, *[Pointer] * 4, returns=Long
)  # fmt: skip
ONE, CREEP = 1 << 40, 1 << 14  # the capacity of an arc with x = 1, and what every arc has besides
ENOUGH = ONE - ONE // 1000  # a flow of so much is one of 1
EACH = 8  # cuts of a terminal at once
SLOTS, SPACE = 1 << 10, 1 << 22  # cuts of one call, and their nodes


@dataclass(frozen=True, eq=False)
class Cut:
    """The nodes [k] around a terminal, in the numbers of a net."""

    terminal: int
    nodes: np.ndarray


def violated(net: Net, x: np.ndarray, terminals: np.ndarray, most: int = SLOTS) -> list[Cut]:
    """Cuts into which x [nnz], 0 where there is no arc, brings less than 1; arcs of one are 1 for the next.

    The terminals are looked at in this order, until there are `most` cuts, or no room for another.
    """
    capacity = np.where(net.alive, (np.clip(x, 0.0, 1.0) * ONE).astype(np.int64) + CREEP, 0)
    if not net.compiled or CUTS is None:
        found = plain.cuts(net, capacity, terminals.tolist(), ENOUGH, EACH, most, room_for(net))
        return [Cut(t, np.array(nodes, dtype=np.int64)) for t, nodes in found]
    return _compiled(net, capacity, np.ascontiguousarray(terminals, np.int64), most)


def _compiled(net: Net, capacity: np.ndarray, terminals: np.ndarray, most: int) -> list[Cut]:
    terminal, ptr = np.empty(most, np.int64), np.empty(most + 1, np.int64)
    nodes, at = np.empty(room_for(net), np.int32), np.zeros(1, np.int64)
    arrays = map(address, (net.indptr, net.indices, net.back, capacity))
    numbers = len(terminals), address(terminals), ENOUGH, EACH, most, len(nodes)
    count = CUTS(net.n, *arrays, net.root, *numbers, *map(address, (terminal, ptr, nodes, at)))
    if count < 0:
        raise MemoryError("cuts by flows")
    return [Cut(int(terminal[i]), nodes[ptr[i] : ptr[i + 1]].astype(np.int64)) for i in range(count)]


def room_for(net: Net) -> int:
    """Of how many nodes cuts are told at most."""
    return max(SPACE, 2 * net.n)
