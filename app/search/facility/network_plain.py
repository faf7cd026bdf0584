"""The functions of facility_network.c without the library: the same draws, moves and numbers.

`s` is an app.search.facility.network.NetworkSearch throughout. Paths are searched to their ends, from open
facilities once each: what the kernel finds from node to node is the same by definition.
"""

from typing import Any

import numpy as np

from app.search.facility.open_list import load_open, relist

Search = Any


def _costs(s: Search, away: np.ndarray) -> np.ndarray:
    """[nodes] int64, what nodes cost at distances [nodes]; 0 where nothing is needed."""
    found = np.zeros(s.nodes, dtype=np.int64)
    found[s.customers] = s.sites.costs(away[s.customers])
    return found


def _locate(s: Search) -> None:
    """The two nearest facilities of all nodes, and the sums."""
    open_ = np.sort(s.inside[: s.size])
    s.rows = {f: s.rows[f] if f in s.rows else s.sites.away(np.array([f]))[0] for f in open_.tolist()}
    away = np.stack([*s.rows.values(), *(np.full(s.nodes, s.never) for _ in range(2))])
    called = np.array([*s.rows, s.nodes, s.nodes])
    order, every = np.argsort(away, axis=0, kind="stable")[:2], np.arange(s.nodes)
    for far, near, k in ((s.d1, s.first, order[0]), (s.d2, s.second, order[1])):
        far[:] = away[k, every]
        near[:] = np.where(far < s.never, called[k], s.nodes)
    before, after = _costs(s, s.d1), _costs(s, s.d2)
    s.value = int(before.sum()) + int(s.opening[open_].sum())
    has = s.first < s.nodes
    s.loss[: s.size] = 0
    np.add.at(s.loss, s.slot[s.first[has]], (after - before)[has])


def open_farthest(s: Search, beside: np.ndarray) -> None:
    """Facilities more, each beside the customer that costs most."""
    while s.size < s.most:
        costs = np.where(beside < 0, 0, served(s))
        f = int(beside[costs.argmax()])
        if not costs.max() or s.slot[f] >= 0:
            break
        move(s, -1, f)


def move(s: Search, out: int, in_: int) -> None:
    """Close one, open one; -1: none."""
    relist(s, out, in_)
    _locate(s)


def saved_by(s: Search, f: int) -> int:
    """What opening a place saves, and in `extra` how much less closing a facility costs then."""
    away = s.sites.away(np.array([f]))[0]
    before, here, after = _costs(s, s.d1), _costs(s, away), _costs(s, s.d2)
    nearer = away < s.d1
    hit = (away < s.d2) & (s.first < s.nodes)
    s.extra[:] = 0
    np.add.at(s.extra, s.slot[s.first[hit]], (after - np.where(nearer, before, here))[hit])
    return int((before - here)[nearer].sum()) - int(s.opening[f])


def place_at(s: Search, k: Any) -> Any:
    """Places of the window."""
    return s.places[k] if s.width == s.m else s.window[k]


def served(s: Search) -> np.ndarray:
    """[n] int64, what customers cost."""
    return s.sites.costs(s.d1[s.customers])


def look_near(s: Search, u: int) -> None:
    """The window is of the places nearest to a customer, fewer where its part of the network has no more."""
    if s.width == s.m:
        return
    away = s.sites.away(s.customers[u : u + 1])[0][s.places]
    near = s.places[np.argsort(away, kind="stable")][: np.count_nonzero(away < s.never)][: s.width]
    s.window[: len(near)] = near
    s.width = len(near) or s.m


def load(s: Search) -> None:
    """From nothing to the open facilities of the best solution."""
    load_open(s)
    s.rows = {}
    _locate(s)
