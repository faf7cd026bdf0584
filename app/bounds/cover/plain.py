"""The kernels of native/cover_bounds.c in Python, step by step: same integers, no compiler."""

import heapq
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from app.rng import SplitMix

if TYPE_CHECKING:
    from app.bounds.cover.kernels import Rows
    from app.bounds.cover.packing import Columns


# ---- clique covers ---------------------------------------------------------------------------------------


def _greedy_cover(near: list[list[int]], order: list[int]) -> tuple[list[int], list[int]]:
    """Each node joins the largest clique that it is wholly joined to. Returns cliques [n], their sizes."""
    clique, size = [-1] * len(order), []
    for node in order:
        met: dict[int, int] = {}
        for other in near[node]:
            k = clique[other]
            if k >= 0:
                met[k] = met.get(k, 0) + 1
        whole = [(-size[k], k) for k, count in met.items() if count == size[k]]
        best = min(whole)[1] if whole else len(size)
        if not whole:
            size.append(0)
        clique[node] = best
        size[best] += 1
    return clique, size


def _ranked(size: list[int], random: SplitMix) -> list[int]:
    """A new order of the cliques: by turns at random reversed, largest first, shuffled."""
    k, kind = len(size), random.below(4)
    if kind == 0:
        return list(range(k - 1, -1, -1))
    if kind == 1:
        return sorted(range(k), key=lambda i: -size[i])
    out = list(range(k))
    for i in range(k - 1, 0, -1):
        j = random.below(i + 1)
        out[i], out[j] = out[j], out[i]
    return out


def _left_out(clique: list[int], weights: list[int]) -> int:
    peak: dict[int, int] = {}
    for k, weight in zip(clique, weights):
        peak[k] = max(peak.get(k, 0), weight)
    return sum(peak.values())


def iterate_cover(
    rows: "Rows",
    weights: np.ndarray,
    order: np.ndarray,
    best: np.ndarray,
    value: int,
    rounds: int,
    random: SplitMix,
) -> int:
    """As kernels.iterate_cover."""
    near, weight, now = neighbours(rows), weights.tolist(), order.tolist()
    clique, size = [], []
    for turn in range(rounds + 1):
        if turn:
            rank = {k: i for i, k in enumerate(_ranked(size, random))}
            now.sort(key=lambda node: rank[clique[node]])
        clique, size = _greedy_cover(near, now)
        found = _left_out(clique, weight)
        if value < 0 or found < value:
            value, best[:] = found, clique
    order[:] = now
    return value


def neighbours(rows: "Rows") -> list[list[int]]:
    """The neighbours of each node."""
    indptr, indices = rows.indptr.tolist(), rows.indices.tolist()
    return [indices[a:b] for a, b in pairwise(indptr)]


# ---- violated odd cycles and cliques ----------------------------------------------------------------------


def _closest(
    near: list[list[int]], price: list[int], one: int, hop: int, limit: int, most: int, root: int
) -> tuple[int, int, dict[int, int]] | None:
    """The shortest odd closed walk met from the root: its two last states and the state before each state."""
    dist, parent, done = {2 * root: 0}, {2 * root: -1}, set()
    heap, best, ends = [(0, 2 * root)], limit, None
    while heap and len(done) < most:
        d, state = heapq.heappop(heap)
        if 2 * d + hop >= best:
            break
        if state in done:
            continue
        done.add(state)
        u, parity = state >> 1, state & 1
        for v in near[u]:
            same, other = 2 * v + parity, 2 * v + 1 - parity
            far = d + max(price[u] + price[v] - one, 0) + hop
            if same in done and far + dist[same] < best:
                best, ends = far + dist[same], (state, same)
            if 2 * far >= best + hop or other in done or dist.get(other, far + 1) <= far:
                continue
            dist[other], parent[other] = far, state
            heapq.heappush(heap, (far, other))
    return None if ends is None else (*ends, parent)


def _simple_cycle(end: int, other: int, parent: dict[int, int]) -> list[int]:
    """A simple odd cycle out of the closed walk from `end` to the root and back to `other`."""
    walk, back = [], []
    while end >= 0:
        walk.append(end >> 1)
        end = parent[end]
    while parent[other] >= 0:
        back.append(other >> 1)
        other = parent[other]
    at, stack = {}, []
    for node in [*walk, *reversed(back), walk[0]]:
        if node not in at:
            at[node] = len(stack)
            stack.append(node)
        elif (len(stack) - at[node]) % 2:
            return stack[at[node] :]
        else:
            while len(stack) > at[node] + 1:
                del at[stack.pop()]
    return []


def odd_cycles(
    rows: "Rows",
    price: np.ndarray,
    one: int,
    hop: int,
    margin: int,
    most: int,
    share: int,
    roots: np.ndarray,
    used: np.ndarray,
) -> list[np.ndarray]:
    """As kernels.odd_cycles."""
    near, cost, out = neighbours(rows), price.tolist(), []
    for root in roots.tolist():
        if used[root] >= share:
            continue
        met = _closest(near, cost, one, hop, one - 2 * margin, most, root)
        if met is None:
            continue
        cycle = _simple_cycle(*met)
        if 2 * (sum(cost[v] for v in cycle) + margin) < (len(cycle) + 1) * one:
            out.append(np.array(cycle, dtype=np.int32))
            used[out[-1]] += 1
    return out


def cliques(
    rows: "Rows", price: np.ndarray, one: int, margin: int, share: int, roots: np.ndarray, used: np.ndarray
) -> list[np.ndarray]:
    """As kernels.cliques."""
    near, cost, out = neighbours(rows), price.tolist(), []
    for root in roots.tolist():
        if used[root] >= share:
            continue
        clique, common = [root], near[root]
        while common:
            best = min(common, key=lambda v: (cost[v], v))
            clique.append(best)
            joined = set(near[best])
            common = [v for v in common if v in joined]
        if len(clique) >= 3 and sum(cost[v] for v in clique) + margin < (len(clique) - 1) * one:
            out.append(np.array(clique, dtype=np.int32))
            used[out[-1]] += 1
    return out


# ---- violated cycles of cuts ------------------------------------------------------------------------------


def _closest_over(
    entries: list[list[tuple[int, int, int]]], hop: int, limit: int, most: int, root: int
) -> tuple[int, int, dict[int, int]] | None:
    """The shortest walk from the root to its other side: the states that meet, and the one before each."""
    dist, parent = {2 * root: 0}, {2 * root: -1}
    heap, best, ends, settled = [(0, 2 * root)], limit, None, 0
    while heap:
        d, state = heapq.heappop(heap)
        if 2 * d >= best:
            break
        if d != dist[state]:
            continue
        if settled >= most:
            break
        settled += 1
        for v, *lengths in entries[state >> 1]:
            for over in (0, 1):
                after = 2 * v + (state & 1) ^ over
                far = d + hop + lengths[over]
                if after ^ 1 in dist and far + dist[after ^ 1] < best:
                    best, ends = far + dist[after ^ 1], (state, after)
                if 2 * far >= best or dist.get(after, far + 1) <= far:
                    continue
                dist[after], parent[after] = far, state
                heapq.heappush(heap, (far, after))
    return None if ends is None else (*ends, parent)


def _cycle_over(end: int, after: int, parent: dict[int, int]) -> list[int]:
    """The states of a simple cycle, and its first node's other side, out of the closed walk that has met."""
    walk, back = [], parent[after ^ 1]
    while end >= 0:
        walk.append(end)
        end = parent[end]
    walk = [*reversed(walk), after]
    while back >= 0:
        walk.append(back ^ 1)
        back = parent[back]
    at, stack = {}, []
    for state in walk:
        first = at.get(state >> 1)
        if first is None:
            at[state >> 1] = len(stack)
            stack.append(state)
        elif stack[first] == state:
            while len(stack) > first + 1:
                del at[stack.pop() >> 1]
        else:
            return [*stack[first:], state]
    return []


def cut_cycles(
    rows: "Rows",
    lengths: tuple[np.ndarray, np.ndarray],
    one: int,
    hop: int,
    margin: int,
    most: int,
    share: int,
    roots: np.ndarray,
    used: np.ndarray,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """As kernels.cut_cycles; lengths: same, other."""
    entries = list(zip(rows.indices.tolist(), *(each.tolist() for each in lengths)))
    near, out = [entries[a:b] for a, b in pairwise(rows.indptr.tolist())], []
    for root in roots.tolist():
        met = None if used[root] >= share else _closest_over(near, hop, one - margin, most, root)
        if met is None:
            continue
        states = np.array(_cycle_over(*met), dtype=np.int64)
        out.append(((states[:-1] >> 1).astype(np.int32), (np.diff(states & 1) != 0).astype(np.uint8)))
        used[out[-1][0]] += 1
    return out


# ---- packings --------------------------------------------------------------------------------------------


def fill_packing(columns: "Columns", order: np.ndarray, slack: np.ndarray, value: np.ndarray) -> None:
    """As kernels.fill_packing."""
    ptr, nodes = columns.ptr.tolist(), columns.nodes
    for k in order.tolist():
        inside = nodes[ptr[k] : ptr[k + 1]]
        least = int(slack[inside].min(initial=0 if not len(inside) else np.iinfo(np.int64).max))
        if least > 0:
            slack[inside] -= least
            value[k] += least
