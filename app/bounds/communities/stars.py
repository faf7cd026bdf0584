"""Stars that a relaxed solution breaks: sum over t in T of x_st - sum over pairs of T of x_tt' > 1.

Those with two nodes in T, triangles, are all looked for, larger ones greedily.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from app.graphs.keys import sorted_set

LEAST = 0.02  # by which one is broken
OPEN = 0.02  # from 0 and from 1, of pairs in larger stars
STARTS = 12  # of larger stars around a node
MOST_MEMBERS = 24


@dataclass(frozen=True, eq=False)
class Stars:
    """r stars: star i has the nodes members[ptr[i] : ptr[i+1]], its centre first, the others ascending.

    ptr [r+1] int64, members [m] int64
    keys   [r] uint64, that tell them apart
    """

    ptr: np.ndarray
    members: np.ndarray
    keys: np.ndarray

    @classmethod
    def of(cls, tables: list[np.ndarray]) -> "Stars":
        """Those of tables [r, size], one after the other."""
        sizes = np.concatenate([np.zeros(0, np.int64), *(np.full(len(t), t.shape[1]) for t in tables)])
        members = np.concatenate([np.zeros(0, np.int64), *(table.reshape(-1) for table in tables)])
        keys = np.concatenate([np.zeros(0, np.uint64), *map(_keys, tables)])
        return cls(np.cumsum(np.append(0, sizes)), members, keys)

    def __len__(self) -> int:
        return len(self.keys)

    def kept(self, which: np.ndarray) -> "Stars":
        """Some of them, [r] bool."""
        sizes = np.diff(self.ptr)
        ptr = np.cumsum(np.append(0, sizes[which]))
        return Stars(ptr, self.members[np.repeat(which, sizes)], self.keys[which])

    def joined(self, other: "Stars") -> "Stars":
        """These and others behind them."""
        ptr = np.append(self.ptr, self.ptr[-1] + other.ptr[1:])
        members, keys = np.append(self.members, other.members), np.append(self.keys, other.keys)
        return Stars(ptr, members, keys)

    def rows(self, column: np.ndarray, columns: int) -> sp.csr_array:
        """[r, columns] float64, what they add up; column [k, k] int32, the place of each pair."""
        sizes = np.diff(self.ptr)
        row, place, data = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
        for size in sorted_set(sizes).tolist():
            which = np.flatnonzero(sizes == size)
            star = self.members[self.ptr[which][:, None] + np.arange(size)]
            for i in range(1, size):
                for j in range(i):
                    row.append(which)
                    place.append(column[star[:, i], star[:, j]])
                    data.append(np.full(len(which), 1.0 if j == 0 else -1.0))
        entries = np.concatenate(data), (np.concatenate(row), np.concatenate(place))
        return sp.csr_array(entries, shape=(len(self), columns))


def _keys(table: np.ndarray) -> np.ndarray:
    """[r] uint64, of stars [r, size]: two of one key are taken for one star, which makes no bound wrong."""
    keys = np.full(len(table), table.shape[1], dtype=np.uint64)
    for column in table.T.astype(np.uint64):
        keys = (keys ^ column) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys


def triangles(x: np.ndarray, most: int) -> np.ndarray:
    """[r, 3] int64, a centre s and a pair T; those broken most, up to `most` of each centre.

    x   [k, k] float64 in [0, 1], symmetric, zeros on its diagonal
    """
    found = [np.zeros((0, 3), dtype=np.int64)]
    for s in range(len(x)):
        near, strong = np.flatnonzero(x[s] > LEAST), np.flatnonzero(x[s] > (1 + LEAST) / 2)
        over = x[s, strong][:, None] + x[s, near] - x[np.ix_(strong, near)] - 1
        over[(strong[:, None] >= near) & (x[s, near] > (1 + LEAST) / 2)] = 0  # once, and no node twice
        i, j = np.nonzero(over > LEAST)
        if len(i) > most:
            kept = np.sort(np.argpartition(-over[i, j], most)[:most])
            i, j = i[kept], j[kept]
        pair = np.sort(np.stack([strong[i], near[j]], axis=1), axis=1)
        found.append(np.column_stack([np.full(len(i), s), pair]))
    return np.concatenate(found)


def larger(x: np.ndarray) -> list[np.ndarray]:
    """Tables [r, size] of stars of three and more nodes around a centre.

    From each of the STARTS nodes that are most with the centre on, the node that adds most is taken, while
    one adds something.
    """
    found = []
    for s in range(len(x)):
        near = np.flatnonzero((x[s] > OPEN) & (x[s] < 1 - OPEN))
        if len(near) > 2:
            found += _around(s, near[np.argsort(-x[s, near], kind="stable")], x)
    sizes = sorted({len(star) for star in found})
    return [np.array([star for star in found if len(star) == size]) for size in sizes]


def _around(s: int, near: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    between, with_centre = x[np.ix_(near, near)], x[s, near]
    count = min(len(near), STARTS)
    every = np.arange(count)
    taken = np.zeros((count, len(near)), dtype=bool)
    gains = np.tile(with_centre, (count, 1))
    value, place, more = np.zeros(count), every, np.ones(count, dtype=bool)
    for _ in range(MOST_MEMBERS):
        value = value + np.where(more, gains[every, place], 0.0)
        taken[every[more], place[more]] = True
        gains = gains - np.where(more[:, None], between[place], 0.0)
        gains[taken] = -np.inf
        place = gains.argmax(axis=1)
        more = more & (gains[every, place] > 1e-3)
        if not more.any():
            break
    good = np.flatnonzero((value > 1 + LEAST) & (taken.sum(axis=1) > 2))
    return [np.append(s, np.sort(near[taken[i]])) for i in good]
