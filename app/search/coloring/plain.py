"""Graph colouring without the compiled kernels: what native/coloring.c does, draw by draw."""

import heapq
from typing import Any

import numpy as np

from app.graphs.graph import Graph
from app.rng import SplitMix

NEVER = np.iinfo(np.int32).max


def begin(w: Any) -> None:
    """What belongs to the colouring at hand (walk.py), before any colour is forbidden."""
    w.near[:], w.until[:] = 0, 0
    rows = np.repeat(np.arange(w.n), np.diff(w.indptr))
    np.add.at(w.near, (w.color[w.indices], rows), 1)
    own = w.near[w.color, np.arange(w.n)]
    nodes = np.flatnonzero(own)
    w.list[: len(nodes)], w.place[:] = nodes, -1
    w.place[nodes] = np.arange(len(nodes))
    w.conflicts, w.edges = len(nodes), int(own.sum()) // 2
    w.best_edges = w.edges


def walk(w: Any, steps: int) -> int:
    """So many moves of a walk (walk.py), fewer where no conflict is left; returns the moves made."""
    random, made = SplitMix(w.random), 0
    while made < steps and w.edges > 0:
        nodes = w.list[: w.conflicts]
        change = w.near[:, nodes].T.astype(np.int32) - w.near[w.color[nodes], nodes][:, None]
        change[np.arange(len(nodes)), w.color[nodes]] = NEVER
        open_ = np.where(w.until[nodes] > w.moves, NEVER, change)
        least, free = int(change.min()), int(open_.min())
        any_ = least < NEVER and w.edges + least < w.best_edges
        wanted = least if any_ else free
        if wanted < NEVER:
            moves = np.flatnonzero((change if any_ else open_) == wanted)
            row, color = divmod(int(moves[random.below(len(moves))]), w.k)
            if w.fresh and wanted >= 0:
                write_best(w)
            node = int(nodes[row])
            left = int(w.color[node])
            recolor(w, node, color)
            w.until[node, left] = w.moves + 1 + random.below(10) + 6 * w.conflicts // 10
        w.moves += 1
        made += 1
        if w.edges < w.best_edges:
            w.best_edges, w.fresh = w.edges, 1
    if w.fresh:
        write_best(w)
    w.random = random.state
    return made


def write_best(w: Any) -> None:
    """The colouring at hand has the fewest conflicts of the walk."""
    w.best_color[:] = w.color
    w.fresh = 0


def recolor(w: Any, node: int, color: int) -> None:
    """The colour of a node becomes another one."""
    left = int(w.color[node])
    w.edges += int(w.near[color, node]) - int(w.near[left, node])
    w.color[node] = color
    near = w.indices[w.indptr[node] : w.indptr[node + 1]]
    w.near[left, near] -= 1
    w.near[color, near] += 1
    for other in near.tolist():
        if w.color[other] == left and w.near[left, other] == 0:
            _out(w, other)
        if w.color[other] == color and w.near[color, other] == 1:
            _in(w, other)
    inside, clashes = w.place[node] >= 0, w.near[color, node] > 0
    if inside and not clashes:
        _out(w, node)
    if clashes and not inside:
        _in(w, node)


def _in(w: Any, node: int) -> None:
    w.place[node] = w.conflicts
    w.list[w.conflicts] = node
    w.conflicts += 1


def _out(w: Any, node: int) -> None:
    w.conflicts -= 1
    last = w.list[w.conflicts]
    w.list[w.place[node]] = last
    w.place[last] = w.place[node]
    w.place[node] = -1


def dsatur(graph: Graph) -> np.ndarray:
    """[n] int32; see baselines.dsatur."""
    near = [row.tolist() for row in np.split(graph.indices, graph.indptr[1:-1])] if graph.n else []
    color, met, left = [-1] * graph.n, [set() for _ in near], [len(row) for row in near]
    heap = [(0, -left[v], v) for v in range(graph.n)]
    heapq.heapify(heap)
    while heap:
        missing, most, v = heapq.heappop(heap)
        if color[v] >= 0 or (missing, most) != (-len(met[v]), -left[v]):  # an older key
            continue
        color[v] = next(c for c in range(len(near[v]) + 1) if c not in met[v])
        for u in near[v]:
            if color[u] < 0:
                met[u].add(color[v])
                left[u] -= 1
                heapq.heappush(heap, (-len(met[u]), -left[u], u))
    return np.array(color, dtype=np.int32)


def largest_first(graph: Graph) -> np.ndarray:
    """[n] int32; see baselines.largest_first."""
    n, color = graph.n, np.full(graph.n, -1, dtype=np.int32)
    near, out = graph.degrees().astype(np.int64), np.zeros(n, dtype=np.int64)
    free, number = np.ones(n, dtype=bool), 0
    while (color < 0).any():
        first = True
        while free.any():
            # most neighbours; or most that are ruled out, then fewest others; then the first
            rank = near if first else out * (n + 1) - near
            v = int(np.where(free, rank, np.iinfo(np.int64).min).argmax())
            color[v], free[v], first = number, False, False
            row = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
            near[row] -= 1
            for u in row[free[row]].tolist():
                free[u] = False
                rows = graph.indices[graph.indptr[u] : graph.indptr[u + 1]]
                near[rows] -= 1
                out[rows] += 1
        near += out
        out[:] = 0
        free, number = color < 0, number + 1
    return color
