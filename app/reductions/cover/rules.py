"""The rules that look at one node and its neighbours, on a PlainResidual; log.py states them.

Each takes the residual graph and a node that has an edge, and returns whether it applied.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from app.reductions.cover.log import (
    CLIQUE,
    FOLD,
    LARGEST_CLIQUE,
    LARGEST_FOLD,
    LARGEST_TWIN,
    NEIGHBOURS,
    TRANSFER,
    TWIN,
    TWIN_SCAN,
)

if TYPE_CHECKING:
    from app.reductions.cover.plain import PlainResidual


def take_neighbours(r: PlainResidual, v: int) -> bool:
    """NEIGHBOURS."""
    if not _outweighs(r, v):
        return False
    near = list(r.row[v])
    r.record(NEIGHBOURS, [v, *near])
    for u in near:
        r.cover(u)
    return True


def _outweighs(r: PlainResidual, v: int) -> bool:
    """Whether v is as heavy as its neighbours, or, of at most three, as the independent sets of them."""
    near = r.row[v]
    small = len(near) <= LARGEST_FOLD
    if r.unit and not small:
        return False
    if sum(r.weight[u] for u in near) <= r.weight[v]:
        return True
    return small and all(
        sum(r.weight[u] for u in part) <= r.weight[v]
        for size in range(1, len(near) + 1)
        for part in combinations(near, size)
        if _independent(r, part)
    )


def _independent(r: PlainResidual, nodes: tuple[int, ...] | list[int]) -> bool:
    return not any(r.adjacent(u, w) for u, w in combinations(nodes, 2))


def clique(r: PlainResidual, v: int) -> bool:
    """CLIQUE, then TRANSFER for the neighbours that are heavier than v."""
    near = r.row[v]
    if len(near) > LARGEST_CLIQUE or not all(r.adjacent(u, w) for u, w in combinations(near, 2)):
        return False
    light = [u for u in near if r.weight[u] <= r.weight[v]]
    heavy = [u for u in near if r.weight[u] > r.weight[v]]
    if light:
        r.record(CLIQUE, [v, *light])
        for u in light:
            r.cover(u)
    if heavy:
        r.record(TRANSFER, [v, *heavy])
        r.drop(v)
        r.offset += len(heavy) * r.weight[v]
        for u in heavy:
            r.set_weight(u, r.weight[u] - r.weight[v])
    return True


def fold(r: PlainResidual, v: int) -> bool:
    """FOLD; the neighbour of largest degree, of equal ones the first, stands for all."""
    near = list(r.row[v])
    if not 2 <= len(near) <= LARGEST_FOLD or not _independent(r, near):
        return False
    weights = [r.weight[u] for u in near]
    if r.weight[v] < sum(weights) - min(weights):
        return False
    x = max(near, key=lambda u: len(r.row[u]))
    others = [u for u in near if u != x]
    r.record(FOLD, [v, x, *others])
    r.offset += r.weight[v]
    r.drop(v)
    for y in others:
        r.merge(x, y)
    r.set_weight(x, sum(weights) - r.weight[v])
    return True


def twin(r: PlainResidual, v: int) -> bool:
    """TWIN. With unit weights only where NEIGHBOURS or FOLD then removes v, so that weights stay one."""
    degree = len(r.row[v])
    if (degree != LARGEST_FOLD) if r.unit else (degree > LARGEST_TWIN):
        return False
    u = _twin_of(r, v)
    if u is None:
        return False
    r.record(TWIN, [v, u])
    r.drop(u)
    r.set_weight(v, r.weight[v] + r.weight[u])
    return take_neighbours(r, v) or fold(r, v) if r.unit else True


def _twin_of(r: PlainResidual, v: int) -> int | None:
    """The first other node with the neighbours of v."""
    via = min(r.row[v], key=lambda u: len(r.row[u]))
    if len(r.row[via]) > TWIN_SCAN:
        return None
    return next((u for u in r.row[via] if u != v and r.row[u] == r.row[v]), None)


CHEAP = (take_neighbours, clique, fold, twin)
