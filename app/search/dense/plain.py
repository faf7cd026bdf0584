"""The exchanges of app/native/dense_size.c in Python: the same results, step by step."""

from typing import Any

import numpy as np

from app.rng import SplitMix


def run(search: Any, steps: int) -> None:
    """So many exchanges of a SwapSearch."""
    draws = SplitMix(search.random)
    for _ in range(steps):
        _swap(search, draws)
    if search.unsaved:
        _keep(search)
    search.random = draws.state


def load(search: Any) -> None:
    """From nothing to the best set."""
    inner = np.flatnonzero(search.best_chosen)
    search.list[:] = np.concatenate([inner, np.flatnonzero(search.best_chosen == 0)])
    search.place[search.list] = np.arange(len(search.list))
    search.gain[:], search.value = 0, 0
    for v in inner.tolist():
        _turn(search, v, 1)
    search.chosen[:] = search.best_chosen


def shake(search: Any, count: int) -> None:
    """So many drawn nodes leave, and others, drawn too, come; fixed ones stay."""
    draws, n = SplitMix(search.random), len(search.list)
    for _ in range(count):
        gone = int(search.list[draws.below(search.size)])
        come = int(search.list[search.size + draws.below(n - search.size)])
        if not (search.fixed[gone] or search.fixed[come]):
            _turn(search, gone, -1)
            _turn(search, come, 1)
            _trade(search, gone, come)
    search.random = draws.state


def regrow(search: Any, entries: int) -> None:
    """Fixed nodes alone, then an end of a drawn entry, then those of most gain, one by one."""
    draws, count = SplitMix(search.random), search.size
    v = int(search.indices[draws.below(entries)])
    search.free_at[:] = 0
    for u in search.list[: search.size][::-1].tolist():
        if not search.fixed[u]:
            count -= 1
            _turn(search, u, -1)
            _trade(search, u, int(search.list[count]))
    u = -1 if search.fixed[v] else v
    while count < search.size:
        u = _most(search, count, len(search.list), 1) if u < 0 else u
        _turn(search, u, 1)
        _trade(search, u, int(search.list[count]))
        count, u = count + 1, -1
    search.random = draws.state


def _swap(search: Any, draws: SplitMix) -> None:
    """The chosen node that loses least leaves, the one outside that gains most comes."""
    search.steps += 1
    gone = _most(search, 0, search.size, -1)
    if gone < 0:
        return
    if search.unsaved:
        _keep(search)
    _turn(search, gone, -1)
    come = _most(search, search.size, len(search.list), 1)
    come = gone if come < 0 else come
    _turn(search, come, 1)
    if come != gone:
        _trade(search, gone, come)
    search.free_at[gone] = search.steps + 1 + draws.below(search.tenure)
    search.free_at[come] = search.steps + 1 + draws.below(search.tenure) // 2
    if search.value > search.best:
        search.best, search.found_at, search.unsaved = search.value, search.steps, 1


def _most(search: Any, first: int, end: int, sign: int) -> int:
    """Of the nodes of a part of the list that may move the one of most sign * gain, see dense_size.c."""
    nodes = search.list[first:end]
    nodes = nodes[(search.fixed[nodes] == 0) & (search.free_at[nodes] <= search.steps)]
    if not len(nodes):
        return -1
    order = np.lexsort((np.arange(len(nodes)), search.free_at[nodes], -sign * search.gain[nodes]))
    return int(nodes[order[0]])


def _turn(search: Any, v: int, sign: int) -> None:
    row = slice(search.indptr[v], search.indptr[v + 1])
    search.chosen[v] = sign > 0
    search.value += sign * int(search.gain[v])
    search.gain[search.indices[row]] += sign * search.weight[row]


def _trade(search: Any, a: int, b: int) -> None:
    i, j = int(search.place[a]), int(search.place[b])
    search.list[i], search.list[j] = b, a
    search.place[a], search.place[b] = j, i


def _keep(search: Any) -> None:
    search.best_chosen[:] = search.chosen
    search.unsaved = 0
