"""What the plain twins of searches for sets of nodes share: draws, the order of the nodes, changes noted.

`s` has random, the state of its draws; order and place [n], so that a node of the first ones may be drawn;
and moved, the moved_size nodes that changed sides since the best set was saved, or -1: any may have.
"""

from typing import Any

from app.rng import SplitMix

Search = Any


def bits(s: Search) -> int:
    """The next 64 random bits."""
    draws = SplitMix(s.random)
    value = draws.bits()
    s.random = draws.state
    return value


def below(s: Search, bound: int) -> int:
    """A random whole number in [0, bound)."""
    return (bits(s) >> 32) * bound >> 32


def put(s: Search, i: int, v: int) -> None:
    """Exchange the node in place i with v."""
    other, at = s.order[i], s.place[v]
    s.order[i], s.place[v] = v, i
    s.order[at], s.place[other] = other, at


def note(s: Search, v: int) -> None:
    """v changes sides: one more change. More than n of them are not told apart."""
    if s.moved_size < 0:
        return
    if s.moved_size == s.n:
        s.moved_size = -1
        return
    s.moved[s.moved_size] = v
    s.moved_size += 1


def changed(s: Search) -> Any:
    """Which nodes may have changed sides; from now on they are counted anew."""
    nodes = slice(None) if s.moved_size < 0 else s.moved[: s.moved_size]
    s.moved_size = 0
    return nodes


def worth(s: Search, v: int) -> int:
    """What a node weighs."""
    return 1 if s.weight is None else int(s.weight[v])


# ---- the set as the first `taken` nodes (app/search/annealed_set.py) ---------------------------------------


def into_set(s: Search, v: int) -> None:
    """v comes into the set."""
    put(s, s.taken, v)
    s.taken += 1
    s.cost += worth(s, v)
    note(s, v)


def out_of_set(s: Search, v: int) -> None:
    """v leaves the set."""
    s.taken -= 1
    put(s, s.taken, v)
    s.cost -= worth(s, v)
    note(s, v)


def keep_best(s: Search) -> None:
    """Save the set where it is better than the best one; `label` is below 0 of nodes in the set."""
    if s.cost >= s.best:
        return
    s.best, s.found_at = s.cost, s.steps
    moved = changed(s)
    s.best_left[moved] = s.label[: s.n][moved] >= 0
