"""Reverse reachable sets of a diffusion, and cascades forward: functions of a key and a number.

A reverse reachable set has the nodes from which a random node is reached along live arcs, so that n times the
share of the sets that hold a seed is the expected spread of the seeds (Borgs, Brautbar, Chayes and Lucier
2014). Set i of a key is the same whoever makes it: ranks deal the numbers among them and have one collection.

A world, likewise of a key and a number, says of every arc whether it is live (of every node which
threshold it has): seeds are compared in the same worlds.
"""

import ctypes

import numpy as np

from app.graphs.diffusion import Diffusion
from app.native.library import address, function, give_arrays
from app.search.influence import plain

Long, Key, Pointer = ctypes.c_int64, ctypes.c_uint64, ctypes.c_void_p
ARRAYS = "in_ptr", "out_ptr", "into", "out", "limit", "share", "table", "table_ptr", "odds"
ROOM = 1 << 20  # nodes of sets that a call has room for, at least


class _Diffusion(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("n", "threshold", "rooted")),
        *((name, Pointer) for name in ARRAYS),
    )


D = ctypes.POINTER(_Diffusion)
SETS = function("lk_influence_sets", D, Key, Long, Long, *(Pointer,) * 4, Long, returns=Long)
HITS = function("lk_influence_hits", D, Key, Long, Long, *(Pointer,) * 3, returns=Long)
WORLDS = function("lk_influence_worlds", D, Key, Long, Long, Pointer, Long, *(Pointer,) * 5)


def available() -> bool:
    """True where the library was built."""
    return None not in (SETS, HITS, WORLDS)


class Sampler:
    """What is drawn of one diffusion.

    rooted     set i begins at node i, not at a random one: where all arcs are certain n sets tell all
    compiled   False: the same without the compiled kernels
    """

    def __init__(self, diffusion: Diffusion, rooted: bool = False, compiled: bool = True) -> None:
        self.diffusion, self.rooted = diffusion, rooted
        self.compiled = compiled and available()
        if self.compiled:
            d = diffusion
            self._held = {name: np.ascontiguousarray(getattr(d, name)) for name in ARRAYS}
            self._struct = _Diffusion(d.n, int(d.threshold), int(rooted))
            give_arrays(_Named(self._held), self._struct, ARRAYS)
            self._queue = np.empty(d.n, dtype=np.int32)

    def _refuse(self, first: int, count: int) -> None:
        """Raises IndexError where set i has no node i to begin at."""
        if min(first, count) < 0 or (self.rooted and first + count > self.diffusion.n):
            raise IndexError(f"sets {first} to {first + count} of {self.diffusion.n} nodes")

    def sizes(self, key: int, first: int, count: int) -> np.ndarray:
        """[count] int64, how many nodes sets first .. first + count - 1 have."""
        self._refuse(first, count)
        if not self.compiled:
            return plain.sets(self.diffusion, key, first, count, self.rooted)[0]
        found, seen = np.empty(count, dtype=np.int64), self._seen()
        at = address(seen), address(self._queue), address(found)
        SETS(self._struct, key, first, count, *at, None, 0)
        return found

    def sets(self, key: int, first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Sizes [count] int64 of these sets, and their nodes [.] int32 one behind the other."""
        self._refuse(first, count)
        if not self.compiled:
            return plain.sets(self.diffusion, key, first, count, self.rooted)
        sizes, parts, made = np.empty(count, dtype=np.int64), [], 0
        seen, room = self._seen(), max(ROOM, self.diffusion.n)
        while made < count:
            nodes = np.empty(room, dtype=np.int32)
            at = address(seen), address(self._queue), address(sizes[made:]), address(nodes)
            more = SETS(self._struct, key, first + made, count - made, *at, room)
            parts.append(nodes[: int(sizes[made : made + more].sum())].copy())
            made += more
        return sizes, np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)

    def hits(self, key: int, first: int, count: int, wanted: np.ndarray) -> int:
        """How many of these sets hold a wanted node, [n] bool."""
        self._refuse(first, count)
        if not self.compiled:
            return plain.hits(self.diffusion, key, first, count, self.rooted, wanted)
        held, seen = np.ascontiguousarray(wanted, dtype=np.uint8), self._seen()
        at = address(seen), address(self._queue), address(held)
        return HITS(self._struct, key, first, count, *at)

    def worlds(self, key: int, first: int, count: int, seeds: np.ndarray) -> np.ndarray:
        """[count] int64, nodes that become active in worlds first .. first + count - 1 when seeds [k] do."""
        if not self.compiled:
            return plain.worlds(self.diffusion, key, first, count, seeds.tolist())
        active, given = np.empty(count, dtype=np.int64), np.ascontiguousarray(seeds, dtype=np.int32)
        thresholds = self.diffusion.n if self.diffusion.threshold else 0
        heard, filled = np.zeros(thresholds, dtype=np.int64), np.zeros(thresholds, dtype=np.uint64)
        seen = self._seen()
        at = address(seen), address(self._queue), address(heard), address(filled), address(active)
        WORLDS(self._struct, key, first, count, address(given), len(given), *at)
        return active

    def _seen(self) -> np.ndarray:
        """[n] int64 marks of a call: numbers of sets and worlds are above them all."""
        return np.zeros(self.diffusion.n, dtype=np.int64)


class _Named:
    """Arrays as attributes."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.__dict__.update(arrays)
