"""Pairs: the ends of edges as they come, in one growing buffer of 8 bytes a pair."""

from collections.abc import Iterator

import numpy as np

from app.errors import GraphError
from app.graphs import kernels
from app.graphs.keys import sorted_set

STEP = 1 << 18  # pairs handled at a time
LARGEST_32 = (1 << 32) - 1


def check_ends(u: np.ndarray, v: np.ndarray) -> None:
    """Refuse negative node numbers [k], which no reader gives: kernels index by them."""
    if len(u) and min(u.min(), v.min()) < 0:
        raise GraphError("found a negative node number; numbers from 0 would be right")


class Pairs:
    """Undirected edges with their loops and repeats, as a file holds them.

    count     pairs held;   weights  [room] float32, or None
    loops     pairs of equal ends so far;   largest  the largest end so far, -1 without any
    wide      True: an end takes 8 bytes, because one does not fit 32 bits
    """

    def __init__(self, weighted: bool) -> None:
        self.memory = np.empty(0, dtype=np.uint32)
        self.weights = np.empty(0, dtype=np.float32) if weighted else None
        self.count = self.loops = 0
        self.largest, self.wide = -1, False

    @property
    def ends(self) -> np.ndarray:
        """[count, 2] uint32, or int64 where wide: a view that must not outlive the next change."""
        flat = self.memory.view(np.int64) if self.wide else self.memory
        return flat[: 2 * self.count].reshape(-1, 2)

    def append(self, u: np.ndarray, v: np.ndarray, w: np.ndarray | None) -> None:
        """Add edges u[i]-v[i].

        u, v   [k] integers from 0     w [k] float32, or None where there are no weights
        """
        if not len(u):
            return
        check_ends(u, v)
        self.largest = max(self.largest, int(u.max()), int(v.max()))
        if self.largest > LARGEST_32 and not self.wide:
            self.memory, self.wide = self.ends.astype(np.int64).reshape(-1).view(np.uint32).copy(), True
        at, self.count = self.count, self.count + len(u)
        self._make_room()
        self.ends[at:, 0] = u
        self.ends[at:, 1] = v
        if self.weights is not None:
            self.weights[at : self.count] = w
        self.loops += int(np.count_nonzero(u == v))

    def _make_room(self) -> None:
        """Grow the buffers where they are, by little: what is added is first cleared."""
        room = len(self.memory) // self._width
        if self.count > room:
            self._resize(max(self.count, room + room // 32, min(2 * room, STEP)))

    @property
    def _width(self) -> int:
        """Words of 4 bytes in a pair."""
        return 4 if self.wide else 2

    def _resize(self, room: int) -> None:
        self.memory.resize(room * self._width, refcheck=False)
        if self.weights is not None:
            self.weights.resize(room, refcheck=False)

    def pieces(self, step: int = STEP) -> Iterator[np.ndarray]:
        """`ends` in views [<= step, 2]."""
        for at in range(0, self.count, step):
            yield self.ends[at : at + step]

    def take(self, most: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Remove the last pairs, `most` at most, and give their memory back.

        returns   ends [k, 2], weights [k] or None
        """
        left = max(0, self.count - most)
        ends = self.ends[left:].copy()
        weights = None if self.weights is None else self.weights[left : self.count].copy()
        self.count = left
        self._resize(left)
        return ends, weights

    def number(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The ids [m] int64 that occur, ascending, and the places [m] in them of what ends now are.

        Without kernels ends stay as they are, and the places are None: see `renumber`.
        """
        if not kernels.NUMBER_IDS:
            return self._distinct(), None
        ids = kernels.number_ids(self.memory, 2 * self.count, self.wide)
        self.wide = False
        self._resize(self.count)
        order = np.argsort(ids)
        places = np.empty(len(ids), dtype=np.uint32)
        places[order] = np.arange(len(ids), dtype=np.uint32)
        return ids[order], places

    def _distinct(self) -> np.ndarray:
        """[m] int64, ascending: the ids that occur."""
        found, waiting = np.empty(0, np.int64), []
        for piece in self.pieces():
            waiting.append(sorted_set(piece.reshape(-1)).astype(np.int64))
            if sum(map(len, waiting)) > len(found):
                found, waiting = sorted_set(np.concatenate([found, *waiting])), []
        return sorted_set(np.concatenate([found, *waiting]))

    def become(self, ids: np.ndarray, places: np.ndarray | None, numbers: np.ndarray) -> None:
        """After `number`, what that returned: every end ids[i] becomes numbers[i], below 2^32."""
        if places is None:
            self.renumber(ids, numbers)
        else:
            kernels.renumber(np.ascontiguousarray(numbers, dtype=np.uint32)[places], self.ends)

    def renumber(self, ids: np.ndarray, numbers: np.ndarray) -> None:
        """Every end ids[i] becomes numbers[i]; an end then takes 4 bytes.

        ids   [m] ascending, all that occur     numbers [m] below 2^32
        """
        at = 0
        # What is written takes no more room than what was read: it never passes what is still to be read.
        for piece in self.pieces():
            found = numbers[np.searchsorted(ids, piece.reshape(-1))]
            self.memory[at : at + len(found)] = found
            at += len(found)
        self.wide = False
        self._resize(self.count)
