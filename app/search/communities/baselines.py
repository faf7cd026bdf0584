"""Plain heuristics for communities: what searches have to beat, and where they begin.

Each returns `(label, name)`: label [n] int64, and the name to print beside the result. Ties go to the lowest
node number.
"""

from heapq import heapify, heappop, heappush

import numpy as np

from app.graphs.contracted import numbered
from app.graphs.graph import Graph
from app.graphs.quality import Quality, quality_of
from app.search.communities.moves import Mover
from app.toolbox import Look, never

MOST_MERGED = 1 << 14  # entries of a graph that `greedy` merges
LOOKED_AT = 1 << 16  # nodes between two looks at a clock, some hundredths of a second
LOUVAIN = "Louvain"


def louvain(
    graph: Graph, compiled: bool = True, null: str = "degrees", resolution: float = 1.0
) -> tuple[np.ndarray, str]:
    """Nodes in order move to the best community near them until none gains; then the communities do, and so
    on.

    Source   Blondel et al., Journal of Statistical Mechanics 2008
    """
    return by_moves(quality_of(graph, null, resolution).quality, compiled)[0], LOUVAIN


def by_moves(quality: Quality, compiled: bool = True, look: Look = never) -> tuple[np.ndarray, bool]:
    """[n] int64, the communities of `louvain`, True; or of what had moved when `look` was true, and False."""
    found, late = np.arange(quality.n), False
    while True:
        every = np.arange(quality.n)
        mover = Mover(quality, every, every, compiled)
        while mover.waiting and not late:
            mover.run(LOOKED_AT)
            late = look()
        label = numbered(mover.label)
        found = label[found].astype(np.int64)
        if late or mover.gain == 0:
            return found, not late
        quality = quality.contracted(label, compiled)


def greedy(
    graph: Graph, compiled: bool = True, null: str = "degrees", resolution: float = 1.0
) -> tuple[np.ndarray, str]:
    """Of all pairs of communities next to each other the one that gains most by it is joined, while one
    gains.

    Source   Clauset, Newman and Moore, Physical Review E 2004
    """
    quality = quality_of(graph, null, resolution).quality
    size, near, far = quality.size.tolist(), quality.near, quality.far
    ends, columns, weights = quality.indptr.tolist(), quality.indices.tolist(), quality.weights.tolist()
    joined = [
        dict(zip(columns[ends[v] : ends[v + 1]], weights[ends[v] : ends[v + 1]])) for v in range(quality.n)
    ]
    heap = [
        (far * size[u] * size[v] - near * weight, u, v)
        for u in range(quality.n)
        for v, weight in joined[u].items()
        if u < v and near * weight > far * size[u] * size[v]
    ]
    heapify(heap)
    into = list(range(quality.n))
    while heap:
        worth, u, v = heappop(heap)
        if into[u] != u or into[v] != v or -worth != near * joined[u].get(v, 0) - far * size[u] * size[v]:
            continue  # an older one
        if len(joined[u]) < len(joined[v]):
            u, v = v, u
        into[v] = u
        size[u] += size[v]
        for other, weight in joined[v].items():
            del joined[other][v]
            if other != u:
                joined[u][other] = joined[other][u] = joined[u].get(other, 0) + weight
        joined[v] = {}
        for other, weight in joined[u].items():
            if (gain := near * weight - far * size[u] * size[other]) > 0:
                heappush(heap, (-gain, min(u, other), max(u, other)))
    return numbered(np.array([_end(into, v) for v in range(quality.n)], dtype=np.int64)).astype(
        np.int64
    ), "greedy merges"


def _end(into: list[int], node: int) -> int:
    """The community that a node's has become; paths are cut short."""
    path = []
    while into[node] != node:
        path.append(node)
        node = into[node]
    for each in path:
        into[each] = node
    return node


COMMUNITY_BASELINES = {"louvain": louvain, "greedy": greedy}
