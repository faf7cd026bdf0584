"""Lower bounds of widths by minors: contractions until the least bag of a node is as heavy as may be.

In every tree decomposition some node has all its neighbours in one bag. A minor has no larger width, so the
least bag of a node of any minor is a lower bound: N[v] for the node v where it is least. A branch set, the
nodes contracted into one, weighs as its lightest node: a bag that holds some of it holds that much. Where
the minor is not complete, two of its nodes that are not adjacent have all neighbours in one bag each (the
leaves of a chordal completion), so that the heavier of two such bags counts (Ramachandramurthi 1997).

Source   minor-min-width: Gogate and Dechter, UAI 2004; MMD+ with the neighbour of the fewest common ones
         (least-c): Bodlaender, Koster and Wolle, Contraction and treewidth lower bounds, ESA 2004
"""

import ctypes
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from app.bounds.certificate import BadCertificate
from app.bounds.treewidth.orders import rows_of
from app.bounds.treewidth.plain_minors import PlainMinor
from app.graphs.graph import Graph, from_edges
from app.graphs.keys import sorted_set
from app.graphs.orders import places_of
from app.native.library import address, function
from app.rng import SplitMix
from app.toolbox import never

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
NEW = function("lk_minor_new", Long, *[Pointer] * 4, Long, returns=Pointer)
RUN = function("lk_minor_run", Pointer, Long, *[Pointer] * 3, returns=Long)
PARTS = function("lk_minor_parts", Long, Long, *[Pointer] * 3)
FREE = function("lk_minor_free", Pointer)
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
        pairs = sorted_set(rows[apart] * size + columns[apart])
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
        if len(sorted_set(pieces[held])) != size:
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
    late: Callable[[], bool] = never, compiled: bool = True,
) -> tuple[int, np.ndarray]:  # fmt: skip
    """The heaviest least bag of a node on the way of contractions, and the minor [n] that has it.

    late   asked now and then: where it is true the best until then counts
    """
    made = Contractions(graph, weights, rule, seed, compiled)
    made.run(late)
    return made.best, made.after(made.kept)


class Contractions:
    """The node of the least bag goes into a neighbour, again and again.

    rule    LEAST_COMMON: the neighbour with the fewest common ones, LEAST_DEGREE: with the fewest neighbours
    seed    tells equal nodes apart; None: numbers do
    best    the heaviest least bag on the way, which was there after `kept` of the `made` contractions
    """

    def __init__(
        self, graph: Graph, weights: np.ndarray | None, rule: str, seed: int | None, compiled: bool = True
    ) -> None:
        self.graph, self.compiled = graph, bool(compiled and RUN)
        self.made = self.best = self.kept = 0
        tie = np.arange(graph.n)
        if seed is not None:
            draws = SplitMix(seed)
            tie = np.array([draws.bits() >> 32 for _ in range(graph.n)], dtype=np.int64)
        self._steps, self._into = (np.zeros(graph.n, dtype=np.int32) for _ in range(2))
        self._told = np.zeros(3, dtype=np.int64)
        self._course: Iterator[None] | None = None
        self._minor: int | None = None
        if not self.compiled:
            plain = PlainMinor(graph, weights, rule == LEAST_DEGREE, tie.tolist())
            self._course = plain.run(LOOKS, self._steps, self._into, self._told)
            return
        rank = places_of(np.argsort(tie, kind="stable")).astype(np.int32)
        weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.int64)
        arrays = *rows_of(graph), weights, rank
        self._minor = NEW(graph.n, *map(address, arrays), int(rule == LEAST_DEGREE))
        if not self._minor:
            raise MemoryError("contractions")
        weakref.finalize(self, FREE, self._minor)

    def run(self, late: Callable[[], bool] = never) -> bool:
        """Go on, as far as there is time; whether that was all."""
        while self._slice():
            if late():
                return False
        return True

    def after(self, count: int) -> np.ndarray:
        """[n] int64, the minor after so many contractions: its nodes from 0 on, -1 for what it lacks."""
        label = parts_after(self._steps[:count], self._into, self.compiled)
        left = label >= 0
        label[left] = np.unique(label[left], return_inverse=True)[1].reshape(-1)
        return label

    def _slice(self) -> bool:
        """The next LOOKS contractions; whether there are more."""
        if self.compiled:
            more = RUN(self._minor, LOOKS, *map(address, (self._steps, self._into, self._told)))
        else:
            more = int(next(self._course, True) is None)
        if more < 0:
            raise MemoryError("contractions")
        self.made, self.best, self.kept = self._told.tolist()
        return more > 0


def minor_of(graph: Graph, label: np.ndarray, weights: np.ndarray | None) -> tuple[Graph, np.ndarray | None]:
    """The minor itself, and the weights of its nodes."""
    size = int(label.max(initial=-1)) + 1
    rows, columns = label[graph.row_of()], label[graph.indices]
    apart = (rows >= 0) & (rows < columns)
    minor = from_edges(size, rows[apart], columns[apart], name=graph.name)
    return minor, None if weights is None else lightest(label, weights, size)


def parts_after(steps: np.ndarray, into: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[n] int64, into which of the nodes that are left each node went, -1 for none.

    steps   the nodes that went, in order     into   [n], into which node each of them went, n for none
    """
    label = np.arange(len(into))
    if compiled and PARTS:
        steps = np.ascontiguousarray(steps, dtype=np.int32)
        PARTS(len(into), len(steps), *map(address, (steps, into, label)))
        return label
    for v in reversed(steps.tolist()):  # what v went into was there later than v
        label[v] = -1 if into[v] >= len(into) else label[into[v]]
    return label
