"""Lower bounds of widths by minors: contractions until the least bag of a node is as heavy as may be.

In every tree decomposition some node has all its neighbours in one bag. A minor has no larger width, so the
least bag of a node of any minor is a lower bound: N[v] for the node v where it is least. A branch set, the
nodes contracted into one, weighs as its lightest node: a bag that holds some of it holds that much. Where
the minor is not complete, two of its nodes that are not adjacent have all neighbours in one bag each (the
leaves of a chordal completion), so that the heavier of two such bags counts (Ramachandramurthi 1997).

Source   minor-min-width: Gogate and Dechter, UAI 2004; MMD+ with the neighbour of the fewest common ones
         (least-c): Bodlaender, Koster and Wolle, Contraction and treewidth lower bounds, ESA 2004
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from app.bounds.certificate import BadCertificate
from app.graphs.graph import Graph
from app.graphs.orders import places_of
from app.rng import SplitMix
from app.toolbox import never

LEAST_COMMON, LEAST_DEGREE = "least_c", "min_d"
LOOKS = 256  # contractions between two looks at the clock


@dataclass(frozen=True, eq=False)
class MinorProof:
    """A minor of a whole graph: no bag of the graph's tree decompositions is lighter than `lower` says.

    label     [n] int64, which node of the minor each node is part of, from 0 on; -1: none
    checked   False where a finished search has found a better bound
    """

    label: np.ndarray
    checked: bool

    def lower(self, graph: Graph, weights: np.ndarray | None = None) -> int:
        """The heaviest bag weighs so much at least. Raises BadCertificate where it is no minor."""
        label = self.label
        if len(label) != graph.n or (len(label) and label.min() < -1):
            raise BadCertificate(f"{graph.name}: a minor names each node once, by a number from -1 on")
        size = int(label.max(initial=-1)) + 1
        if size > graph.n or (np.bincount(label[label >= 0], minlength=size) == 0).any():
            raise BadCertificate(f"{graph.name}: a node of the minor has no nodes of the graph")
        rows, columns = label[graph.row_of()], label[graph.indices]
        self._check_whole(graph, size)
        apart = (rows >= 0) & (columns >= 0) & (rows != columns)
        pairs = np.unique(rows[apart] * size + columns[apart])
        weight = lightest(label, weights, size)
        bag = weight + _sums(pairs, weight, size)
        return two_apart(pairs, bag, int(weight.sum()))

    def _check_whole(self, graph: Graph, size: int) -> None:
        """Prove that the nodes of each part hang together. Raises BadCertificate."""
        rows, columns = graph.row_of(), graph.indices
        same = (self.label[rows] == self.label[columns]) & (self.label[rows] >= 0)
        inner = sparse.csr_array(
            (np.ones(int(same.sum()), dtype=np.int8), (rows[same], columns[same])), shape=(graph.n, graph.n)
        )
        pieces = connected_components(inner, directed=False)[1] if graph.n else np.zeros(0, dtype=np.int64)
        held = self.label >= 0
        if len(np.unique(pieces[held])) != size:
            raise BadCertificate(f"{graph.name}: nodes of one part of the minor do not hang together")


def lightest(label: np.ndarray, weights: np.ndarray | None, size: int) -> np.ndarray:
    """[size] int64, the weight of each part's lightest node."""
    if weights is None:
        return np.ones(size, dtype=np.int64)
    weight = np.full(size, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(weight, label[label >= 0], weights[label >= 0])
    return weight


def _sums(pairs: np.ndarray, weight: np.ndarray, size: int) -> np.ndarray:
    """[size] int64, exact sums of the weights of neighbours."""
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, pairs // max(size, 1), weight[pairs % max(size, 1)])
    return sums


def two_apart(pairs: np.ndarray, bag: np.ndarray, whole: int) -> int:
    """The least, over two nodes that are not adjacent, of the heavier of their bags; of a complete graph the
    weight of all.

    pairs   ascending, u size + v of all adjacent ones     bag   [size] int64
    """
    size, order = len(bag), np.argsort(bag, kind="stable")
    place = places_of(order)
    lower = place[pairs % max(size, 1)] < place[pairs // max(size, 1)]
    before = np.bincount((pairs // max(size, 1))[lower], minlength=size)  # neighbours of lighter bags
    apart = np.flatnonzero(before[order] < np.arange(size))
    return int(bag[order[apart[0]]]) if len(apart) else whole


def contracted(
    graph: Graph, weights: np.ndarray | None = None, rule: str = LEAST_COMMON, seed: int | None = None,
    late: Callable[[], bool] = never,
) -> tuple[int, np.ndarray]:  # fmt: skip
    """The heaviest least bag of a node on the way of contractions, and the minor [n] that has it.

    The node of the least bag goes into a neighbour: that with the fewest common ones, or with the fewest
    neighbours. Equal ones are told apart by number, or by a seed.

    late   asked now and then: where it is true the best until then counts
    """
    near = [set(graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()) for v in range(graph.n)]
    weight = [1] * graph.n if weights is None else weights.tolist()
    tie = list(range(graph.n))
    if seed is not None:
        draws = SplitMix(seed)
        tie = [draws.bits() >> 32 for _ in range(graph.n)]
    bag = [weight[v] + sum(weight[u] for u in near[v]) for v in range(graph.n)]
    heap = [(bag[v], tie[v], v) for v in range(graph.n)]
    heapq.heapify(heap)
    into, best, kept = [-1] * graph.n, 0, 0
    steps: list[int] = []
    while heap:
        worth, _, v = heapq.heappop(heap)
        if into[v] >= 0 or worth != bag[v]:
            continue
        if worth > best:
            best, kept = worth, len(steps)
        if len(steps) % LOOKS == LOOKS - 1 and late():
            break
        steps.append(v)
        own = near[v]
        u = _chosen(near, own, rule, tie)
        into[v] = graph.n if u < 0 else u
        changed = own if u >= 0 else set()
        for x in own:
            near[x].discard(v)
            bag[x] -= weight[v]
        if u >= 0:
            for x in own - near[u] - {u}:
                near[u].add(x)
                near[x].add(u)
                bag[u] += weight[x]
                bag[x] += weight[u]
            if weight[v] < weight[u]:
                lost, weight[u] = weight[u] - weight[v], weight[v]
                bag[u] -= lost
                for x in near[u]:
                    bag[x] -= lost
                changed = own | near[u]
        near[v] = set()
        for x in changed:
            heapq.heappush(heap, (bag[x], tie[x], x))
    return best, _parts(graph.n, into, steps[:kept])


def _chosen(near: list[set[int]], own: set[int], rule: str, tie: list[int]) -> int:
    """The neighbour that a node is contracted into, -1 where it has none."""
    if rule == LEAST_DEGREE:
        return min(own, key=lambda x: (len(near[x]), tie[x], x), default=-1)
    return min(own, key=lambda x: (len(near[x] & own), len(near[x]), tie[x], x), default=-1)


def _parts(n: int, into: list[int], steps: list[int]) -> np.ndarray:
    """[n] int64, the parts after some contractions; -1 for what went without any."""
    gone, label = set(steps), np.arange(n)
    for v in reversed(steps):  # what v went into was there later than v
        label[v] = -1 if into[v] >= n else label[into[v]] if into[v] in gone else into[v]
    left = label >= 0
    label[left] = np.unique(label[left], return_inverse=True)[1].reshape(-1)
    return label
