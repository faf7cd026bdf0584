"""The functions of independent.h without the library. `s` is an IndependentSet of independent.py."""

from typing import Any

import numpy as np

from app.search.set_plain import changed, note, put

# Nanoseconds, roughly: of a change of sides, of an entry of a row, of a draw among nodes.
CHANGE, ENTRY, DRAW = 16, 3, 8

Search = Any


def worth(s: Search, v: int) -> int:
    """The weight of a node."""
    return 1 if s.node_weight is None else int(s.node_weight[v])


def row(s: Search, v: int) -> list[int]:
    """The neighbours of a node."""
    return s.indices[s.indptr[v] : s.indptr[v + 1]].tolist()


def degree(s: Search, v: int) -> int:
    """Neighbours of a node."""
    return int(s.indptr[v + 1] - s.indptr[v])


def chosen(s: Search, v: int) -> bool:
    """Whether a node is in the set."""
    return bool(s.place[v] < s.size)


def set_free(s: Search, u: int) -> None:
    """A node has lost its last neighbour in the set."""
    put(s, s.size + s.free_size, u)
    s.free_size += 1


def bind(s: Search, u: int) -> None:
    """A free node has got a neighbour in the set."""
    s.free_size -= 1
    put(s, s.size + s.free_size, u)


def _note(s: Search, v: int) -> None:
    s.work += CHANGE + ENTRY * degree(s, v)
    note(s, v)


def enlist(s: Search, v: int) -> None:
    """A free node enters. What its neighbours are told is up to the search."""
    put(s, s.size, v)
    s.size += 1
    s.free_size -= 1
    s.value += worth(s, v)
    _note(s, v)


def strike(s: Search, v: int) -> None:
    """A node of the set leaves, and is free."""
    s.size -= 1
    put(s, s.size, v)
    s.free_size += 1
    s.value -= worth(s, v)
    _note(s, v)


def keep_best(s: Search) -> None:
    """Save the set if none of its weight was found before."""
    if s.value <= s.best:
        return
    s.best, s.found_at = s.value, s.steps
    moved = changed(s)
    s.best_set[moved] = s.place[moved] < s.size


def weight_against(s: Search) -> np.ndarray:
    """[n] int64, weight of each node's neighbours in the best set."""
    rows = np.repeat(np.arange(s.n), np.diff(s.indptr))
    weights = np.ones(s.n, dtype=np.int64) if s.node_weight is None else s.node_weight
    against = np.zeros(s.n, dtype=np.int64)
    np.add.at(against, rows, np.where(s.best_set[s.indices] == 1, weights[s.indices], 0))
    return against


def take_up(s: Search, against: np.ndarray) -> None:
    """The set becomes the best one; `against` is what weight_against() says of it."""
    nodes = np.flatnonzero(s.best_set)
    free = np.flatnonzero((s.best_set == 0) & (against == 0))
    s.order[:] = np.concatenate([nodes, free, np.flatnonzero(against)])
    s.place[s.order] = np.arange(s.n)
    s.size, s.free_size, s.value, s.moved_size = len(nodes), len(free), s.best, 0
