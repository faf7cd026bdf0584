"""The functions of cover_exchange.c without the library: the same choices, numbers and order of lists.

`s` is an app.search.cover.exchange.Exchange throughout.
"""

from typing import Any

import numpy as np

from app.rng import SplitMix

BLOCK, BARRED = 64, -(1 << 30)
MOST, DRAWN = 1 << 28, 50

Search = Any


# ---- the cover and its scores ------------------------------------------------------------------------------


def _price(s: Search, v: int) -> int:
    return 1 if s.node_weight is None else int(s.node_weight[v])


def _turn(s: Search, v: int, sign: int) -> None:
    """Scores and uncovered edges when v enters (sign 1) or leaves (sign -1) the cover."""
    row = slice(s.indptr[v], s.indptr[v + 1])
    near, weight = s.indices[row], s.weight[row]
    inside = s.in_cover[near] == 1
    s.score[near] += np.where(inside, sign * weight, -sign * weight)
    s.fresh[near[~inside]] = 1
    for j in (np.flatnonzero(~inside) + row.start).tolist():
        edge = j if v < s.indices[j] else int(s.mirror[j])
        if sign < 0:
            _open_edge(s, edge)
        else:
            _close_edge(s, edge)
    s.score[v] = -s.score[v]


def _open_edge(s: Search, edge: int) -> None:
    s.open_at[edge] = s.open_size
    s.open[s.open_size] = edge
    s.open_size += 1


def _close_edge(s: Search, edge: int) -> None:
    s.open_size -= 1
    last, at = s.open[s.open_size], s.open_at[edge]
    s.open[at] = last
    s.open_at[last] = at


def _add(s: Search, v: int) -> None:
    _turn(s, v, 1)
    s.in_cover[v], s.bar[v] = 1, 0
    s.cover_at[v] = s.cover_size
    s.cover[s.cover_size] = v
    s.cover_size += 1
    s.cost += _price(s, v)


def _take_out(s: Search, v: int) -> None:
    _turn(s, v, -1)
    s.cover_size -= 1
    last, at = s.cover[s.cover_size], s.cover_at[v]
    s.cover[at] = last
    s.cover_at[last] = at
    s.in_cover[v], s.bar[v], s.fresh[v] = 0, BARRED, 0
    s.cost -= _price(s, v)


def rescore(s: Search) -> None:
    """Scores and uncovered edges from the cover and the weights."""
    rows = np.repeat(np.arange(s.n), np.diff(s.indptr))
    outside = s.in_cover[s.indices] == 0
    # Sums below 2^53 are exact in float64.
    sums = np.bincount(rows, weights=s.weight * outside, minlength=s.n).astype(np.int32)
    s.score[: s.n] = np.where(s.in_cover == 1, -sums, sums)
    edges = np.flatnonzero(outside & (s.in_cover[rows] == 0) & (rows < s.indices))
    s.open_size = len(edges)
    s.open[: len(edges)] = edges
    s.open_at[edges] = np.arange(len(edges))


# ---- choices -----------------------------------------------------------------------------------------------


def _better(s: Search, a: int, b: int) -> bool:
    """Whether moving a is better than moving b: the score by node weight, then the age, then the number."""
    x, y = int(s.score[a]) * _price(s, b), int(s.score[b]) * _price(s, a)
    if x != y:
        return x > y
    return (s.stamp[a], a) < (s.stamp[b], b)


def _best_of(s: Search, nodes: list[int]) -> int:
    """The best node to take out among `nodes`, -1 if all are barred."""
    best = -1
    for v in nodes:
        if s.bar[v] == 0 and (best < 0 or _better(s, v, best)):
            best = v
    return best


def _sampled(s: Search) -> list[int]:
    """Nodes of the cover, drawn with repetition."""
    draws = SplitMix(s.random)
    nodes = [int(s.cover[draws.below(s.cover_size)]) for _ in range(s.samples)]
    s.random = draws.state
    return nodes


def _choose_loss(s: Search, kept: int) -> int:
    """The node to remove, never `kept` unless it is the only one; -1 from an empty cover."""
    if s.cover_size == 0:
        return -1
    if s.cover_size == 1:
        return int(s.cover[0])
    barring = kept >= 0 and s.in_cover[kept] == 1
    if barring:
        s.bar[kept] = BARRED
    v = _best_of(s, _sampled(s)) if s.samples else -1
    if v < 0:
        v = _best_of(s, s.cover[: s.cover_size].tolist())
    if barring:
        s.bar[kept] = 0
    return v


def _choose_end(s: Search, edge: int) -> int:
    """The end of an edge that may enter and gains more."""
    u, v = int(s.indices[s.mirror[edge]]), int(s.indices[edge])
    if not s.fresh[u]:
        return v
    if not s.fresh[v]:
        return u
    return u if _better(s, u, v) else v


def _drawn_edge(s: Search) -> int:
    draws = SplitMix(s.random)
    edge = int(s.open[draws.below(s.open_size)])
    s.random = draws.state
    return edge


def _choose_weighted_gain(s: Search) -> int:
    """The best end of as many draws as there are uncovered edges, at most DRAWN."""
    best = -1
    for _ in range(min(s.open_size, DRAWN)):
        v = _choose_end(s, _drawn_edge(s))
        if best < 0 or _better(s, v, best):
            best = v
    return best


# ---- edge weights ------------------------------------------------------------------------------------------


def _forget(s: Search) -> None:
    s.heavy = 0
    s.weight[:] = s.weight.astype(np.int64) * 3 // 10
    rows = np.repeat(np.arange(s.n), np.diff(s.indptr))
    s.weighted_degree[:] = np.bincount(rows, weights=s.weight, minlength=s.n)
    s.total_weight = int(s.weight.sum(dtype=np.int64)) // 2
    rescore(s)


def _weigh(s: Search) -> None:
    """One more for every uncovered edge; all weights shrink when the mean has reached the ceiling."""
    if s.ceiling == 0:
        return
    edges = s.open[: s.open_size]
    for entries in (edges, s.mirror[edges]):
        s.weight[entries] += 1
        ends = s.indices[entries]
        np.add.at(s.score, ends, 1)
        np.add.at(s.weighted_degree, ends, 1)
        s.heavy |= int((s.weighted_degree[ends] >= MOST).any())
    s.total_weight += s.open_size
    if s.heavy or s.total_weight >= s.ceiling * (s.nnz // 2):
        _forget(s)


# ---- steps -------------------------------------------------------------------------------------------------


def shrink(s: Search) -> None:
    """Save a cover, then remove nodes until an edge is uncovered and the cost is below `best`."""
    while s.cover_size and (s.open_size == 0 or s.cost >= s.best):
        if s.open_size == 0 and s.cost < s.best:
            s.best, s.found_at = s.cost, s.steps
            s.best_cover[:] = s.in_cover
        _take_out(s, _choose_loss(s, -1))


def _exchange(s: Search) -> None:
    out = _choose_loss(s, s.last_in)
    if out < 0:
        return
    _take_out(s, out)
    into = _choose_end(s, _drawn_edge(s))
    _add(s, into)
    s.stamp[out] = s.stamp[into] = s.steps
    s.last_in = into
    _weigh(s)
    if s.open_size == 0:
        shrink(s)


def _weighted_exchange(s: Search) -> None:
    for _ in range(2):
        out = _choose_loss(s, s.last_in)
        if out < 0:
            break
        _take_out(s, out)
        s.stamp[out] = s.steps
    added = False
    while s.open_size:
        into = _choose_weighted_gain(s)
        if s.cost + _price(s, into) >= s.best:
            break
        _add(s, into)
        s.stamp[into] = s.steps
        s.last_in = into
        _weigh(s)
        added = True
    if s.open_size == 0:
        shrink(s)
    elif not added:
        _weigh(s)


def run(s: Search, steps: int) -> None:
    """`steps` exchanges."""
    step = _exchange if s.node_weight is None else _weighted_exchange
    for _ in range(steps):
        s.steps += 1
        step(s)
