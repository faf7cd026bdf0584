"""What native/cut_greedy.c does, step by step, in Python: slow, and with the same results."""

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from app.bounds.cover.kernels import Rows


def _take(room: np.ndarray, edges: list[int]) -> int:
    """Takes the least room of the edges from all of them, and returns it."""
    least = int(room[edges].min())
    room[edges] -= least
    return least


def triangles(
    later: tuple, odd: np.ndarray, room: np.ndarray, most: int, at: int, end: int
) -> tuple[list[tuple[list[int], int]], int]:
    """As lk_cut_triangles: ([v, a, b], value) of each, and the first node that was not done."""
    start, ends, edge = (each.tolist() for each in later)
    found = []
    while at < end and len(found) < most:
        row = range(start[at], start[at + 1])
        seen = {ends[i]: edge[i] for i in row}
        for i in row:
            for j in range(start[ends[i]], start[ends[i] + 1]):
                third = seen.get(ends[j], -1)
                edges = [edge[i], edge[j], third]
                if len(found) == most or third < 0 or not room[edges].all() or not odd[edges].sum() & 1:
                    continue
                found.append(([at, ends[i], ends[j]], _take(room, edges)))
        if len(found) == most:  # this node again: it may have more
            break
        at += 1
    return found, at


def short_cycles(
    rows: "Rows", edge: np.ndarray, odd: np.ndarray, room: np.ndarray, most: int, slots: int, space: int,
    at: int, end: int,
) -> tuple[list[tuple[list[int], int]], int]:  # fmt: skip
    """As lk_cut_short_cycles: (nodes, value) of each, and the first node that was not done."""
    entries = list(zip(rows.indices.tolist(), edge.tolist()))
    near = [entries[a:b] for a, b in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist())]
    found, used = [], 0
    while at < end:
        met = _meet(near, odd, room, most, at)
        if met is None:
            at += 1
            continue
        states, edges = _simple_part(*_walk(*met))
        used += len(states)
        if len(found) == slots or used > space:
            break
        found.append(([state >> 1 for state in states], _take(room, edges)))
    return found, at


def _meet(near: list, odd: np.ndarray, room: np.ndarray, most: int, root: int) -> tuple | None:
    """The tree {state: (edges from the root, state before, edge)}, and the edge where its halves meet."""
    tree, queue = {2 * root: (0, -1, -1)}, deque([2 * root])
    best, met, scanned = None, None, 0
    while queue:
        state = queue.popleft()
        d = tree[state][0]
        if best is not None and 2 * d + 1 >= best:
            break
        for u, e in near[state >> 1]:
            if scanned >= most:
                return met
            scanned += 1
            if room[e] <= 0:
                continue
            following = 2 * u + ((state & 1) ^ int(odd[e]))
            other = tree.get(following ^ 1)
            if other is not None and (best is None or d + 1 + other[0] < best):
                best, met = d + 1 + other[0], (tree, state, following, e)
            if following not in tree:
                tree[following] = (d + 1, state, e)
                queue.append(following)
    return met


def _walk(tree: dict, state: int, following: int, between: int) -> tuple[list[int], list[int]]:
    """States from the root to its other side, and the edges along them."""
    states, edges = [state], []
    while tree[states[-1]][1] >= 0:
        edges.append(tree[states[-1]][2])
        states.append(tree[states[-1]][1])
    states, edges = states[::-1], [*edges[::-1], between]
    state = following ^ 1
    states.append(following)
    while tree[state][1] >= 0:
        edges.append(tree[state][2])
        state = tree[state][1]
        states.append(state ^ 1)
    return states, edges


def _simple_part(states: list[int], edges: list[int]) -> tuple[list[int], list[int]]:
    """Between the first two visits of a node on different sides, without detours to the same side."""
    stack: list[tuple[int, int]] = []
    place: dict[int, int] = {}
    for state, e in zip(states, [*edges, -1]):
        at = place.get(state >> 1, -1)
        if at >= 0 and stack[at][0] != state:
            return [s for s, _ in stack[at:]], [along for _, along in stack[at:]]
        while at >= 0 and len(stack) > at:
            del place[stack.pop()[0] >> 1]
        place[state >> 1] = len(stack)
        stack.append((state, e))
    raise AssertionError("a walk to the root's other side visits it on both")
