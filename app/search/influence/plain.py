"""The functions of influence.c without the library: the same draws and numbers.

`d` is an app.graphs.diffusion.Diffusion throughout, `rooted` whether set i begins at node i.
"""

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from app.graphs.diffusion import Diffusion
from app.rng import MASK, SplitMix

GAMMA = 0x9E3779B97F4A7C15
Arcs = tuple[list[int], list[int], list[int]]


def drawn(key: int, i: int) -> int:
    """What is drawn for number i of a key: the output i of its stream."""
    return SplitMix((key + i * GAMMA) & MASK).bits()


def _live(d: Diffusion, v: int, arcs: Arcs, draws: SplitMix) -> Iterator[int]:
    """The tails of live arcs into a node, as they are found; one may come again."""
    ptr, into, limit = arcs
    first, end = ptr[v], ptr[v + 1]
    if first == end:
        return
    if d.threshold:
        at = bisect_right(limit, draws.bits() >> 32, first, end)
        if at < end:
            yield into[at]
    elif d.table[v] >= 0:
        begin, last = d.table_ptr[d.table[v] : d.table[v] + 2].tolist()
        live = bisect_right(d.odds[begin:last].tolist(), draws.bits() >> 11)
        chosen: set[int] = set()
        while len(chosen) < live:
            at = (draws.bits() * (end - first)) >> 64
            if at not in chosen:
                chosen.add(at)
                yield into[first + at]
    else:
        for j in range(first, end):
            if draws.bits() >> 32 < limit[j]:
                yield into[j]


def _reverse(d: Diffusion, arcs: Arcs, key: int, i: int, rooted: bool, wanted: list[int] | None) -> list[int]:
    """The nodes from which a random node is reached; where some are wanted, up to the first of these."""
    draws = SplitMix(drawn(key, i))
    queue = [i if rooted else (draws.bits() * d.n) >> 64]
    seen = set(queue)
    if wanted is not None and wanted[queue[0]]:
        return queue
    for v in queue:
        for u in _live(d, v, arcs, draws):
            if u not in seen:
                seen.add(u)
                queue.append(u)
                if wanted is not None and wanted[u]:
                    return queue
    return queue


def _arcs(d: Diffusion) -> Arcs:
    return d.in_ptr.tolist(), d.into.tolist(), d.limit.tolist()


def sets(d: Diffusion, key: int, first: int, count: int, rooted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Sizes [count] int64 of sets, and their nodes [.] int32 one behind the other."""
    arcs = _arcs(d)
    made = [_reverse(d, arcs, key, i, rooted, None) for i in range(first, first + count)]
    nodes = [v for each in made for v in each]
    return np.array([len(each) for each in made], dtype=np.int64), np.array(nodes, dtype=np.int32)


def hits(d: Diffusion, key: int, first: int, count: int, rooted: bool, wanted: np.ndarray) -> int:
    """How many of these sets hold a wanted node, [n] bool."""
    arcs, held = _arcs(d), wanted.tolist()
    made = (_reverse(d, arcs, key, i, rooted, held) for i in range(first, first + count))
    return sum(held[each[-1]] for each in made)


def worlds(d: Diffusion, key: int, first: int, count: int, seeds: list[int]) -> np.ndarray:
    """[count] int64, nodes that become active in each world when the seeds do."""
    ptr, out, share = d.out_ptr.tolist(), d.out.tolist(), d.share.tolist()
    return np.array([_active(d, ptr, out, share, drawn(key, i), seeds) for i in range(first, first + count)],
                    dtype=np.int64)  # fmt: skip


def _active(
    d: Diffusion, ptr: list[int], out: list[int], share: list[int], world: int, seeds: list[int]
) -> int:
    queue = list(dict.fromkeys(seeds))
    seen, heard = set(queue), {}
    for u in queue:
        for j in range(ptr[u], ptr[u + 1]):
            v = out[j]
            if v in seen:
                continue
            if d.threshold:
                heard[v] = heard.get(v, 0) + share[j]
                active = heard[v] > drawn(world, v) >> 32
            else:
                active = drawn(world, j) >> 32 < share[j]
            if active:
                seen.add(v)
                queue.append(v)
    return len(queue)
