"""The kernels of app/native/dense.c in Python: the same results, step by step."""

import heapq

import numpy as np

BALANCED, MOVED, DENSER = range(3)  # what a phase comes to


def _ratio(top: int, bottom: int) -> float:
    """A quotient as C has it: both are rounded first."""
    return float(top) / float(bottom)


def run_round(
    rows: list[list[tuple[int, int, int]]], size: list[int], rank: list[int], load: list[int],
    held: list[int], best: list[int],
) -> tuple[list[int], int]:  # fmt: skip
    """A round of Greedy++: the order in which nodes go, and where in it the densest set begins (n: none).

    rows   of each node (entry, neighbour, weight); load, held and best are changed

    """
    n = len(size)
    rest = [sum(w for _, _, w in row) for row in rows]
    total, sizes, start = sum(rest) // 2, sum(size), n
    heap = [(_ratio(load[v] + rest[v], size[v]), rank[v], v) for v in range(n)]
    heapq.heapify(heap)
    gone, order = [False] * n, []
    while heap:
        key, _, v = heapq.heappop(heap)
        if gone[v] or key != _ratio(load[v] + rest[v], size[v]):
            continue
        if total * best[1] > best[0] * sizes:
            best[0], best[1], start = total, sizes, len(order)
        gone[v] = True
        order.append(v)
        load[v] += rest[v]
        total, sizes = total - rest[v], sizes - size[v]
        for j, u, w in rows[v]:
            if not gone[u]:
                held[j] += w
                rest[u] -= w
                heapq.heappush(heap, (_ratio(load[u] + rest[u], size[u]), rank[u], u))
    return order, start


def grow(rows: list[list[tuple[int, int, int]]], size: list[int], rank: list[int]) -> list[int]:
    """The order of lk_dense_grow."""
    n = len(size)
    near = [sum(w for _, _, w in row) for row in rows]
    key = [0.0] * n
    if n:
        key[min(range(n), key=lambda v: (-_ratio(near[v], size[v]), rank[v]))] = -1.0
    heap = [(key[v], rank[v], v) for v in range(n)]
    heapq.heapify(heap)
    gone, shared, order = [False] * n, [0] * n, []
    while heap:
        told, _, v = heapq.heappop(heap)
        if gone[v] or told != key[v]:
            continue
        gone[v] = True
        order.append(v)
        for _, u, w in rows[v]:
            if not gone[u]:
                shared[u] += w
                key[u] = -_ratio(shared[u], size[u])
                heapq.heappush(heap, (key[u], rank[u], u))
    return order


def scale(
    indptr: np.ndarray, indices: np.ndarray, weight: np.ndarray, twin: np.ndarray, held: np.ndarray,
    old: int, fresh: int,
) -> None:  # fmt: skip
    """What entries hold in another unit, in place."""
    for v in range(len(indptr) - 1):
        for j in range(indptr[v], indptr[v + 1]):
            if indices[j] > v:
                held[j] = int(held[j]) * fresh // old
                held[twin[j]] = fresh * int(weight[j]) - int(held[j])


def phase(
    indptr: np.ndarray, indices: np.ndarray, twin: np.ndarray, held: np.ndarray, load: np.ndarray,
    cap: np.ndarray, level: np.ndarray,
) -> int:  # fmt: skip
    """A phase of Dinic's algorithm; held, load and level are changed."""
    ptr, near, other = indptr.tolist(), indices.tolist(), twin.tolist()
    holds, loads, caps = held.tolist(), load.tolist(), cap.tolist()
    levels = [0 if loads[v] > caps[v] else -1 for v in range(len(loads))]
    queue = [v for v in range(len(loads)) if not levels[v]]
    sources, limit = len(queue), -1
    found = _levels(ptr, near, holds, loads, caps, levels, queue) if sources else BALANCED
    level[:] = levels
    if found != MOVED:
        return found
    limit = max(levels[v] for v in queue)
    at = {v: ptr[v] for v in queue}
    for s in queue[:sources]:
        _send(s, (ptr, near, other), holds, loads, caps, levels, at, limit)
    held[:], load[:] = holds, loads
    return MOVED


def _levels(
    ptr: list[int], near: list[int], holds: list[int], loads: list[int], caps: list[int],
    levels: list[int], queue: list[int],
) -> int:  # fmt: skip
    """How far nodes are from those with too much; the queue and levels are changed."""
    limit, head = 1 << 31, 0
    while head < len(queue):
        v = queue[head]
        head += 1
        if levels[v] >= limit:
            break
        for j in range(ptr[v], ptr[v + 1]):
            u = near[j]
            if levels[u] < 0 and holds[j]:
                levels[u] = levels[v] + 1
                queue.append(u)
                if loads[u] < caps[u]:
                    limit = levels[u]
    return DENSER if limit == 1 << 31 else MOVED


def _send(
    s: int, lists: tuple[list[int], list[int], list[int]], holds: list[int], loads: list[int],
    caps: list[int], levels: list[int], at: dict[int, int], limit: int,
) -> None:  # fmt: skip
    """What a node has too much, along shortest ways."""
    ptr, near, other = lists
    path: list[int] = []
    v = s
    while loads[s] > caps[s]:
        if loads[v] < caps[v]:
            amount = min(loads[s] - caps[s], caps[v] - loads[v], *(holds[j] for j in path))
            for j in path:
                holds[j] -= amount
                holds[other[j]] += amount
            loads[s] -= amount
            loads[v] += amount
            empty = [k for k, j in enumerate(path) if not holds[j]]
            if empty:
                v = near[other[path[empty[0]]]]
                del path[empty[0] :]
            elif loads[v] >= caps[v]:
                v = s
                path.clear()
            continue
        end = ptr[v + 1]
        if levels[v] < limit:
            while at[v] < end and not (holds[at[v]] and levels[near[at[v]]] == levels[v] + 1):
                at[v] += 1
        else:
            at[v] = end
        if at[v] < end:
            path.append(at[v])
            v = near[at[v]]
        elif path:
            v = near[other[path.pop()]]
            at[v] += 1
        else:
            break
