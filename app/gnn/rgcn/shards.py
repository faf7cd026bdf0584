"""Weight arrays of which ranks hold rows: first values, whole arrays, and their digest."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.keys import sorted_set
from app.memory.slow_rows import SlowRows
from app.rng import stream

Array = Any
DRAWN_AT_ONCE = 1 << 12  # rows
GATHERED_AT_ONCE = 1 << 21  # elements of a whole array that exist at a time


class Shard:
    """A weight array of which each rank has some rows.

    array   [rows, ...] on the device, or in the slow tier, where its steps are made too
    keys    [k] the global numbers of its first k rows, ascending; more are padding
    slow    the slow tier's rows that `array` shows, or None
    Rows of one key are the same on all ranks that have it.
    """

    def __init__(self, array: "Array | SlowRows", keys: np.ndarray) -> None:
        self.slow = array if isinstance(array, SlowRows) else None
        self.array: Array = array.array if self.slow else array
        self.keys = np.asarray(keys, dtype=np.int64)

    def near(self, device: Any, rows: slice) -> Array:
        """Some rows on the device; those of the slow tier until `done`."""
        return device.put(self.array[rows]) if self.slow else self.array[rows]

    def done(self, rows: slice) -> None:
        """Some rows are not needed for now."""
        if self.slow:
            self.slow.done(rows)

    def host(self, device: Any, rows: slice) -> np.ndarray:
        """A copy of some rows, on the host."""
        if self.slow is None:
            return np.array(device.get(self.array[rows]))
        out = self.array[rows].copy()
        self.slow.done(rows)
        return out


def draw_rows(
    seed: int, name: str, keys: np.ndarray, held: np.ndarray, block_of: np.ndarray, limit: float,
    out: np.ndarray | SlowRows,
) -> Any:  # fmt: skip
    """Uniform numbers in +-limit for some of the rows of an array, functions of their place among all rows.

    keys      [k] all rows, ascending      held   [m] those that are wanted, ascending
    block_of  [k] ascending: rows of a block come from one random stream
    out       [m or more, ...] float32, whose first m rows are set; it is returned
    """
    array = out.array if isinstance(out, SlowRows) else out
    shape, place = array.shape[1:], np.searchsorted(keys, held)
    for block in sorted_set(block_of[place]):
        lo, hi = np.searchsorted(block_of, [block, block + 1])
        mine = slice(*np.searchsorted(place, [lo, hi]))
        draws = stream(seed, f"initial/{name}", int(block))
        # Some rows at a time: a stream's numbers do not depend on how they are asked for.
        for first in range(lo, hi, DRAWN_AT_ONCE):
            last = min(first + DRAWN_AT_ONCE, hi)
            drawn = draws.uniform(-limit, limit, (last - first, *shape))
            own = slice(*(mine.start + np.searchsorted(place[mine], [first, last])))
            array[own] = drawn[place[own] - first]
        if isinstance(out, SlowRows):
            out.done(mine)
    return out


def glorot_limit(inputs: int, outputs: int) -> float:
    """Of the uniform initialisation of Glorot and Bengio 2010, eq. 16."""
    return float(np.sqrt(6.0 / (inputs + outputs)))


# ---- whole arrays --------------------------------------------------------------------------------------


class Whole:
    """An array of which every rank holds some rows, in one shard or several: whole, or piece by piece.

    keys    [n] int64 of all rows, ascending      shape   of the whole array
    """

    def __init__(self, group: Group, shards: Iterable[Shard]) -> None:
        """Ranks: all call."""
        self.group, self._shards = group, list(shards)
        held = np.concatenate([shard.keys for shard in self._shards])
        self.keys = sorted_set(group.gather_host(held, _counts(group, len(held))))
        self.shape = (len(self.keys), *self._shards[0].array.shape[1:])

    def pieces(self) -> Iterator[np.ndarray]:
        """Consecutive rows, float32 on the host of every rank. Ranks: all call, and take all."""
        step = max(GATHERED_AT_ONCE // max(int(np.prod(self.shape[1:])), 1), 1)
        for lo in range(0, len(self.keys), step):
            last = self.keys[min(lo + step, len(self.keys)) - 1]
            yield self._between(int(self.keys[lo]), int(last))

    def whole(self) -> np.ndarray:
        """All rows. Ranks: all call."""
        return np.concatenate([*self.pieces(), np.zeros((0, *self.shape[1:]), dtype=np.float32)])

    def set(self, rows: np.ndarray) -> None:
        """Put rows, one for each key, where they belong."""
        device = self.group.device
        for shard in self._shards:
            own = np.ascontiguousarray(rows[np.searchsorted(self.keys, shard.keys)])
            shard.array[: len(own)] = own if shard.slow else device.put(own)
            shard.done(slice(None))

    def _between(self, first: int, last: int) -> np.ndarray:
        """The rows of the keys first .. last, in their order. Ranks: all call."""
        keys, rows = [], []
        for shard in self._shards:
            part = slice(*np.searchsorted(shard.keys, [first, last + 1]))
            keys.append(shard.keys[part])
            rows.append(shard.host(self.group.device, part))
        own, mine = np.concatenate(keys), np.concatenate(rows)
        counts = _counts(self.group, len(own))
        every, found = self.group.gather_host(own, counts), self.group.gather_host(mine, counts)
        return found[np.unique(every, return_index=True)[1]]


def _counts(group: Group, own: int) -> list[int]:
    return group.gather_integers(np.array([own]))[:, 0].tolist()
