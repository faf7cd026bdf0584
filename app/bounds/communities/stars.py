"""Stars that a relaxed solution breaks: sum over t in T of x_st - sum over pairs of T of x_tt' > 1.

Those with two nodes in T, triangles, are all looked for, larger ones greedily.
"""

import numpy as np

LEAST = 0.02  # by which one is broken
OPEN = 0.02  # from 0 and from 1, of pairs in larger stars
STARTS = 12  # of larger stars around a node
MOST_MEMBERS = 24


def triangles(x: np.ndarray, most: int) -> np.ndarray:
    """[r, 3] int64, a centre s and a pair T; those broken most, up to `most` of each centre.

    x   [k, k] float64 in [0, 1], symmetric, zeros on its diagonal
    """
    found = [np.zeros((0, 3), dtype=np.int64)]
    for s in range(len(x)):
        near = np.flatnonzero(x[s] > LEAST)
        over = np.triu(x[s, near][:, None] + x[s, near] - x[np.ix_(near, near)], 1) - 1
        i, j = np.nonzero(over > LEAST)
        if len(i) > most:
            kept = np.sort(np.argpartition(-over[i, j], most)[:most])
            i, j = i[kept], j[kept]
        found.append(np.stack([np.full(len(i), s), near[i], near[j]], axis=1))
    return np.concatenate(found)


def larger(x: np.ndarray) -> list[np.ndarray]:
    """Stars of three and more nodes around a centre, which comes first; the others ascending.

    From each of the STARTS nodes that are most with the centre on, the node that adds most is taken, while
    one adds something.
    """
    found = []
    for s in range(len(x)):
        near = np.flatnonzero((x[s] > OPEN) & (x[s] < 1 - OPEN))
        if len(near) > 2:
            found += _around(s, near[np.argsort(-x[s, near], kind="stable")], x)
    return found


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
