"""The functions of open_list.h without the library: the open facilities as a list.

`s` is a search for facilities throughout: `slot` has the place of an open one in the list, -1 of others, and
`inside` the list, of `size` of them.
"""

from typing import Any

import numpy as np

Search = Any


def relist(s: Search, out: int, in_: int) -> int:
    """One closes, one opens; -1: none. What opens takes the place of what closes, or the last one; where
    nothing opens, the last of the list does. Returns that place.
    """
    place = int(s.slot[out]) if out >= 0 else s.size
    s.size += (in_ >= 0) - (out >= 0)
    f = in_ if in_ >= 0 else int(s.inside[s.size])
    s.inside[place], s.slot[f] = f, place
    if out >= 0:
        s.slot[out] = -1
        s.value -= int(s.opening[out])
    if in_ >= 0:
        s.value += int(s.opening[in_])
    return place


def save_open(s: Search) -> None:
    """The open facilities are the best ones."""
    s.best_open[:] = s.slot >= 0


def load_open(s: Search) -> None:
    """The best facilities are the open ones."""
    found = np.flatnonzero(s.best_open)
    s.slot[:], s.size = -1, len(found)
    s.slot[found], s.inside[: s.size] = np.arange(s.size), found
