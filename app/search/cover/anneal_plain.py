"""The functions of cover_anneal.c without the library: the same draws, numbers and order of the nodes.

`s` is an app.search.cover.anneal.Anneal throughout.
"""

from typing import Any

from app.search.annealing import PROPOSALS, anneal, passes
from app.search.cover.independent_plain import (
    DRAW,
    bind,
    chosen,
    enlist,
    keep_best,
    row,
    set_free,
    strike,
    take_up,
    weight_against,
    worth,
)  # fmt: skip
from app.search.set_plain import bits

Search = Any


# ---- the set -----------------------------------------------------------------------------------------------


def _join(s: Search, v: int) -> None:
    weight = worth(s, v)
    enlist(s, v)
    for u in row(s, v):
        if s.against[u] == 0:
            bind(s, u)
        s.against[u] += weight


def _leave(s: Search, v: int) -> None:
    weight = worth(s, v)
    strike(s, v)
    for u in row(s, v):
        s.against[u] -= weight
        if s.against[u] == 0:
            set_free(s, u)


def _clear(s: Search, v: int) -> None:
    """The neighbours of v in the set leave."""
    for u in row(s, v):
        if chosen(s, u):
            _leave(s, u)


def go_back(s: Search) -> None:
    """Go on from the best set."""
    s.against[:] = weight_against(s)
    take_up(s, s.against)


# ---- steps -------------------------------------------------------------------------------------------------


def _propose(s: Search, coldness: int) -> None:
    """A free node enters; else any node outside is drawn, and enters if what it loses is let pass."""
    draw = bits(s)
    among = s.free_size or s.n - s.size
    if among == 0:
        return
    v = int(s.order[s.size + ((draw >> 32) * among >> 32)])
    if s.free_size == 0:
        loss = int(s.against[v]) - worth(s, v)
        if loss > 0:
            if not passes(s, loss, coldness, draw):
                return
            keep_best(s)
        _clear(s, v)
    _join(s, v)


def _end_step(s: Search) -> None:
    s.work += PROPOSALS * DRAW
    keep_best(s)


def run(s: Search, steps: int) -> None:
    """So many steps."""
    anneal(s, steps, _propose, go_back, _end_step)
