"""Subgraphs without small cycles, of as many edges as may be; their inequalities: witness.py."""

import numpy as np

from app.graphs.sized import SizedGraph

DEEPEST = 5  # nodes of the components up to which they are looked for
MOST_LOOKED = 30_000_000  # nodes that are met on the way


def sparse_edges(core: SizedGraph) -> tuple[np.ndarray, np.ndarray] | None:
    """(u, v), [m] int64 each, edges that close no cycle of at most `most` nodes, each added while that was
    so, those of the least degrees first; None: there is too much to look at, or it is of no use.

    Source   greedy spanners: Althöfer, Das, Dobkin, Joseph and Soares, Discrete & Computational Geometry 1993
    """
    if core.most > DEEPEST:
        return None
    u, v = core.edges()
    degree = core.degrees()
    order = np.argsort(degree[u] + degree[v], kind="stable")
    u, v = u[order], v[order]
    if core.most < 3:
        return u, v
    near: list[set[int]] = [set() for _ in range(core.n)]
    first, second = (core.most - 1) // 2, core.most // 2  # a way of most - 1 steps closes a cycle of `most`
    kept = np.zeros(len(u), dtype=bool)
    looked = 0
    for i, (a, b) in enumerate(zip(u.tolist(), v.tolist())):
        if len(near[a]) > len(near[b]):
            a, b = b, a
        from_a, from_b = _ball(near, b, first), _ball(near, a, second)
        looked += len(from_a) + len(from_b)
        if looked > MOST_LOOKED:
            return None
        if from_a.isdisjoint(from_b):
            kept[i] = True
            near[a].add(b)
            near[b].add(a)
    return u[kept], v[kept]


def _ball(near: list[set[int]], root: int, radius: int) -> set[int]:
    """The nodes within so many steps."""
    met, edge = {root}, [root]
    for _ in range(radius):
        edge = [u for v in edge for u in near[v] if u not in met and not met.add(u)]
    return met
