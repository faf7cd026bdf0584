"""Node weights for the 1-trees of large problems: steps on few edges, in units that fit clusters of points.

Most 1-trees are made of candidate edges alone, which takes a hundredth of the time; their values
are no bounds. Now and then the best weights are tried on all edges:
that value is a bound, and edges that were missing become candidates.

Where points lie in clusters, the weights of a whole cluster have to change together, by far more than the
distances inside it. So beside the weight of each node there is one for each cluster, a change of which moves
all its nodes; every such variable is measured in units of the distance to what lies outside. The steps are
subgradient steps in these variables.

Sources  Held and Karp 1971; length of a step: Polyak 1969, Held, Wolfe and Crowder 1974; 1-trees of few
         candidate edges: Helsgaun 2000; clusters: components of the shortest spanning tree (Gower, Ross 1969)
"""

import heapq

import numpy as np

from app.bounds.tour import near_tree
from app.bounds.tour.near_tree import NearTrees
from app.bounds.tour.one_tree import LARGEST_PI, METHOD, SCALE, OneTree, OneTrees, rounded_up
from app.graphs.curve import WORTH_ORDERING
from app.graphs.keys import union
from app.graphs.lengths import PLANE
from app.graphs.metric import Metric
from app.graphs.orders import places_of
from app.native import tour as native

NEAREST, IN_QUADRANT = 8, 2  # candidates of a point: nearest ones, and nearest ones in each quadrant
APART = 2  # a cluster is this many times as far from the rest as its parts are from each other
SPREAD = 10  # units of nodes differ from their mean by at most this factor
FIRST_ROUND, MEMORY = 100, 0.3
FIRST_STEP, LAST_STEP = 2.0, 0.002  # a round's first step in Polyak's lengths, and what its last is of that
MISSING = 0.05  # of the value: what is missing where no tour is known
LEAST_MISSING = 1e-4
DECAY = 0.7  # of the first step, from round to round
CHECK_AFTER, CHECK_POINTS = 25, 30  # steps between tries on all edges: so many, and one for so many points,
NEAR_AFTER = 75  # or so many more where a try takes no longer than a few steps; there
FIRST_TRY = 12  # the first try comes after so many, and each next one after twice as many


class SparseAscent:
    """Node weights that make the bound grow; see Ascent (app/bounds/tour/one_tree.py) for the attributes.

    A round is a sequence of ever shorter steps from the best weights; the next one is twice as long and
    begins with a shorter one. Many points are numbered along a curve here: what is near in the plane is near
    in memory then, which halves the time of a step on 200,000 and takes a third of it on a million.
    """

    def __init__(self, metric: Metric, compiled: bool = True) -> None:
        self.steps, self.closed, self.lower = 0, False, -1
        self._near = near_tree.applies(metric)
        self._place = np.arange(metric.n)  # of the caller's nodes here
        self._along = self._place  # the caller's nodes in the order that they have here
        if self._near and metric.n > WORTH_ORDERING:
            self._along = metric.along.astype(np.int64)
            self._place = np.argsort(self._along)
            metric = metric.restrict(self._along)
        self.metric, self._compiled = metric, compiled
        self._special = 0
        self._proved = np.zeros(metric.n, dtype=np.int64)  # the weights that prove `lower`
        self._tree: np.ndarray | None = None  # and their tree
        self._all = (NearTrees if self._near else OneTrees)(metric, self._special, compiled)
        self._next, self._best, self._value = self._proved, self._proved, None
        self._change: np.ndarray | None = None  # the last one
        self._made, self._length, self._step, self._unchecked = 0, FIRST_ROUND, FIRST_STEP, 0
        self._checked, self._tries = True, 0
        self._edges: CandidateEdges | None = None

    def step(self, upper: int | None = None) -> None:
        """One 1-tree, and the weights of the next; `upper` is a known length."""
        self.steps += 1
        if self._value is None:
            self._prove()
        elif self._edges is None:
            self._begin()
        elif not self._checked and (self._made >= self._length or self._unchecked >= self._patience):
            self._check()
        else:
            self._climb(upper)

    def certificate(self) -> OneTree:
        """The bound with the weights that prove it."""
        if self.lower < 0:
            self.step()
        tree = None if self._tree is None else self._along[self._tree]
        return OneTree(self.lower, METHOD, self.pi, int(self._along[self._special]), tree)

    @property
    def pi(self) -> np.ndarray:
        """[n] int64, the weights that prove `lower`."""
        return self._proved[self._place]

    @property
    def _patience(self) -> int:
        """Steps on candidates between two tries on all edges."""
        if not self._near:
            return CHECK_AFTER + self.metric.n // CHECK_POINTS
        return min(CHECK_AFTER + NEAR_AFTER, FIRST_TRY << self._tries)

    def _begin(self) -> None:
        """The edges of the 1-tree without weights are candidates, and show the clusters."""
        edges = self._all.edges(self._best)
        self._edges = CandidateEdges(self.metric, self._special, edges, self._compiled)
        self._units = Units(self.metric, self._special, self._all.tree)

    def _prove(self) -> None:
        """Try the best weights on all edges."""
        self._value = self._all.find(self._best)
        self.closed = not (self._all.degree != 2).any()
        if rounded_up(self._value) > self.lower:
            self.lower, self._proved = rounded_up(self._value), self._best
            self._tree = self._all.tree if self._near else None
        self._checked, self._unchecked = True, 0

    def _check(self) -> None:
        self._prove()
        self._tries += 1
        self._edges.add(self._all.edges(self._best))

    def _climb(self, upper: int | None) -> None:
        """A 1-tree of candidates."""
        if self._made >= self._length:
            self._made, self._length, self._step = 0, 2 * self._length, DECAY * self._step
            self._next, self._change = self._best, None
        value = self._edges.find(self._next)
        self._made, self._unchecked = self._made + 1, self._unchecked + 1
        if value > self._value:
            self._value, self._best, self._checked = value, self._next, False
        excess = self._edges.degree.astype(np.int64) - 2
        if not excess.any():  # a tour of candidates: is it one of all edges, too?
            self._made = self._length
            return
        direction = self._units.direction(excess)
        self._change = direction if self._change is None else self._change
        size = self._step * LAST_STEP ** (self._made / self._length) * self._missing(value, upper)
        change = np.floor(size * ((1 - MEMORY) * direction + MEMORY * self._change) + 0.5)
        self._next = np.clip(self._next + change.astype(np.int64), -LARGEST_PI, LARGEST_PI)
        self._change = direction

    def _missing(self, value: int, upper: int | None) -> float:
        """What the value is believed to fall short of the best."""
        goal = (1 + MISSING) * self._value if upper is None else float(SCALE * upper)
        return max(goal - value, LEAST_MISSING * abs(value), 1.0)


class CandidateEdges:
    """Minimum 1-trees of few edges: the nearest points of each, those in its quadrants, and edges added.

    degree   [n] int32 of the last 1-tree
    """

    def __init__(self, metric: Metric, special: int, edges: list, compiled: bool) -> None:
        self.metric, self.special = metric, special
        self.compiled = compiled and native.available()
        self.degree, self.parent = np.zeros(metric.n, dtype=np.int32), np.empty(metric.n, dtype=np.int32)
        self._known = np.zeros(0, dtype=np.int64)  # lower end * n + higher end, ascending
        near = metric.neighbours(NEAREST)
        if metric.kind in PLANE:
            find = native.quadrants if self.compiled else plain_quadrants
            near = np.hstack([near, find(metric.points, IN_QUADRANT).reshape(metric.n, -1)])
        i = np.repeat(np.arange(metric.n, dtype=np.int64), near.shape[1])
        j = near.ravel().astype(np.int64)
        self.add(np.concatenate([np.column_stack([i, j])[j >= 0], np.array(edges, dtype=np.int64)]))

    def add(self, edges: np.ndarray | list) -> None:
        """More edges [k, 2]."""
        n = self.metric.n
        ends = np.sort(np.asarray(edges, dtype=np.int64), axis=1)
        known = union(self._known, ends[:, 0] * n + ends[:, 1])
        if len(known) == len(self._known):
            return
        self._known = known
        u, v = known // n, known % n
        key = np.sort(np.concatenate([u * n + v, v * n + u]))
        i, j = key // n, key % n
        start = np.searchsorted(i, np.arange(n + 1)).astype(np.int64)
        self._rows = start, j.astype(np.int32), self.metric.between(i, j).astype(np.int32)

    def find(self, pi: np.ndarray) -> int:
        """The weight of a minimum 1-tree of these edges less 2 sum(pi), times SCALE; no bound."""
        find = native.sparse_one_tree if self.compiled else plain_sparse_one_tree
        return find(self._rows, pi, SCALE, self.special, self.degree, self.parent) - 2 * int(pi.sum())


def plain_sparse_one_tree(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray], pi: np.ndarray, scale: int, special: int,
    degree: np.ndarray, parent: np.ndarray,
) -> int:  # fmt: skip
    """What lk_sparse_one_tree of one_tree.c finds, ties included; fills degree and parent [n] int32."""
    n, (start, ends, distance) = len(pi), rows
    parent[:], degree[:] = -1, 0
    lightest: list[int | None] = [None] * n
    joined = [False] * n
    last = 1 if special == 0 else 0
    joined[special] = joined[last] = True
    total, heap = 0, []
    for _ in range(n - 2):
        row = slice(int(start[last]), int(start[last + 1]))
        weight = scale * distance[row].astype(np.int64) + pi[last] + pi[ends[row]]
        for j, offered in zip(ends[row].tolist(), weight.tolist()):
            if not joined[j] and (lightest[j] is None or offered < lightest[j]):
                lightest[j], parent[j] = offered, last
                heapq.heappush(heap, (offered, j))
        while joined[heap[0][1]]:
            heapq.heappop(heap)
        offered, last = heapq.heappop(heap)
        total += offered
        joined[last] = True
        degree[[last, parent[last]]] += 1
    row = slice(int(start[special]), int(start[special + 1]))
    spokes = scale * distance[row].astype(np.int64) + pi[special] + pi[ends[row]]
    two = np.argsort(spokes, kind="stable")[:2]
    degree[special] = 2
    degree[ends[row][two]] += 1
    return total + int(spokes[two].sum())


def plain_quadrants(points: np.ndarray, count: int) -> np.ndarray:
    """[n, 4, count] int32, what lk_quadrants of one_tree.c finds: the nearest other points, -1 for none."""
    near = np.full((len(points), 4, count), -1, dtype=np.int32)
    for i, point in enumerate(points):
        x, y = points[:, 0] - point[0], points[:, 1] - point[1]
        square, quadrant = x * x + y * y, (x < 0) + 2 * (y < 0)
        for q in range(4):
            there = np.flatnonzero((quadrant == q) & (square > 0))
            found = there[np.argsort(square[there], kind="stable")[:count]]
            near[i, q, : len(found)] = found
    return near


class Units:
    """Variables of the ascent: a weight for each node and each cluster, each in a unit of its own.

    A cluster's unit is the distance to the nearest point outside it, a node's the same within bounds. The
    cities of a cluster stand side by side in `order`, from `first` to before `end`.
    """

    def __init__(self, metric: Metric, special: int, tree: np.ndarray) -> None:
        """tree   [n-2, 2] edges of a shortest spanning tree of all points but `special`."""
        i, j = tree.T
        length = metric.between(i, j)
        by_length = np.lexsort((j, length))
        edges = zip(i[by_length].tolist(), j[by_length].tolist(), length[by_length].tolist())
        chains = _Chains(metric.n)
        for a, b, distance in edges:
            chains.join(a, b, distance)
        others = np.delete(np.arange(metric.n), special)
        chains.single[special] = int(metric.between(special, others).min())
        self.order = np.array([*chains.order(int(others[0])), special])
        place = places_of(self.order)
        clusters = np.array(chains.clusters, dtype=np.int64).reshape(-1, 3)
        self.first = place[clusters[:, 0]]
        self.end = self.first + clusters[:, 1]
        self.cluster = clusters[:, 2].astype(np.float64)
        single = np.array(chains.single, dtype=np.float64)
        mean = max(float(single.mean()), 1 / SCALE)
        self.node = np.clip(single, mean / SPREAD, mean * SPREAD)

    def direction(self, excess: np.ndarray) -> np.ndarray:
        """What a step adds to the weights [n] for each unit of missing value: nodes and clusters alike."""
        sums = np.concatenate([[0], np.cumsum(excess[self.order])])
        node, cluster = self.node * excess, self.cluster * (sums[self.end] - sums[self.first])
        steps = np.zeros(len(excess) + 1)
        part = self.cluster * cluster / max(float((cluster * cluster).sum()), 1e-300)
        np.add.at(steps, self.first, part)
        np.subtract.at(steps, self.end, part)
        direction = self.node * node / max(float((node * node).sum()), 1e-300)
        direction[self.order] += np.cumsum(steps)[:-1]
        return direction / 2


class _Chains:
    """Components of a spanning tree as its edges join them, the shortest first.

    clusters   (a city, cities, distance to the rest) of components that lie apart     single   of each city
    """

    def __init__(self, n: int) -> None:
        self._root, self._after = list(range(n)), [-1] * n
        self._head, self._tail = list(range(n)), list(range(n))
        self._size, self._longest = [1] * n, [0] * n
        self.clusters: list[tuple[int, int, int]] = []
        self.single = [0] * n

    def join(self, a: int, b: int, distance: int) -> None:
        """Put the component of b behind that of a."""
        a, b = self._find(a), self._find(b)
        for c in (a, b):
            if self._size[c] == 1:
                self.single[c] = distance
            elif distance > 0 and distance >= APART * self._longest[c]:
                self.clusters.append((self._head[c], self._size[c], distance))
        if self._size[a] < self._size[b]:
            a, b = b, a
        self._after[self._tail[a]], self._tail[a] = self._head[b], self._tail[b]
        self._size[a] += self._size[b]
        self._root[b], self._longest[a] = a, distance

    def order(self, city: int) -> list[int]:
        """The cities of a component, those of every component it was made of side by side."""
        at, found = self._head[self._find(city)], []
        while at >= 0:
            found.append(at)
            at = self._after[at]
        return found

    def _find(self, city: int) -> int:
        while self._root[city] != city:
            self._root[city] = self._root[self._root[city]]
            city = self._root[city]
        return city
