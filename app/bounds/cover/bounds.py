"""Certified lower bounds for minimum vertex cover, improved in slices of time, component by component."""

import math
import time

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.cover.integer import fits
from app.bounds.cover.packing import joined, packing
from app.bounds.cover.part import NONE, CoverPart
from app.bounds.cover.theta import PROOF, bytes_of
from app.bounds.cover.witness import Claim, CoverBound
from app.bounds.sliced import SlicedBounds
from app.graphs.derived import closed_parts
from app.graphs.graph import Graph
from app.memory.room import memory_room, resident_bytes

MOST_GROUPS = 2000  # of small components
MOST_PROGRAMS = 16  # parts with an integer program
SMALL = 100  # components of fewer nodes are worked on together, some of them
MOST_BYTES = 1e9  # of matrices of the theta function,
LITTLE, ROOM_SHARE = 3e7, 0.25  # and where they take more than a little, of the memory that is left
STEPS, FRONT = 3, 300  # from the first node, and nodes of a step that are followed, to see that all is joined


class CoverBounds(SlicedBounds):
    """The best lower bound so far on the cost of a vertex cover, and the means to improve it.

    graph     whole     weights [n] int64, at least 0, or None: all one
    partner   [n] a largest matching of the double cover (lp.py), where one is known and no weights are
              given: the bound of the relaxation then comes first
    search    False: without branch and reduce, which the caller does otherwise
    most_bytes  what matrices of the theta function may take
    lower     no cover costs less     method   how that was found
    optimum   [n] bool, a cover that costs `lower`, once one is known by branch and reduce, because one was
              found that attains the bound of the cliques (selection.py), or because the caller's own
              cover reached the bound in every component; else None
    """

    def __init__(
        self, graph: Graph, weights: np.ndarray | None = None, compiled: bool = True,
        partner: np.ndarray | None = None, search: bool = True, most_bytes: float = math.inf,
    ) -> None:  # fmt: skip
        if weights is not None:
            weights = np.ascontiguousarray(weights, dtype=np.int64)
            if weights.shape != (graph.n,) or (weights < 0).any():
                raise ValueError(f"weights: needs [{graph.n}] whole numbers of at least 0")
        self._n, self._weights = graph.n, weights
        groups, single = _groups(graph)
        thetas = _room(groups, single, most_bytes)
        programs = set(_largest(groups) if weights is not None and weights.min(initial=1) > 0 else ())
        self._parts = [
            CoverPart(part, nodes, weights, compiled, partner, search, theta, i in programs and fits(part))
            for i, (nodes, part, theta) in enumerate(zip(groups, closed_parts(graph, groups), thetas))
        ]
        self._turns = list(range(len(self._parts)))  # parts that have more to try
        self._turn, self.lower = 0, 0
        self._upper: int | None = None  # the cost of the best cover that the caller knows
        self._pieces: tuple[int, np.ndarray] | None = None

    def expect(self, seconds: float) -> None:
        """The time limit of the run."""
        for part in self._parts:
            part.expect(seconds)

    def allow(self, seconds: float) -> None:
        """Where there is no time limit: what all calls may take, or more."""
        for part in self._parts:
            part.allow(seconds)

    def close(self) -> None:
        """Work no more; what is known stays."""
        for part in self._parts:
            part.close()

    @property
    def least_seconds(self) -> float:
        """An estimate of the next slice of the part whose turn it is, where it may be long."""
        return self._parts[self._turns[self._turn % len(self._turns)]].next_seconds if self._turns else 0.0

    @property
    def check_seconds(self) -> float:
        """An estimate of a check of what the theta function proves."""
        return sum(PROOF * len(part.nodes) ** 3 for part in self._parts if part.theta is not None)

    @property
    def method(self) -> str:
        """How the bound was found: the methods of the parts, in the order of what they prove; "": not yet."""
        share: dict[str, int] = {}
        for part in self._parts:
            share[part.method] = share.get(part.method, 0) + part.lower
        share.pop(NONE, None)
        if self._parts and not share:
            return ""
        return " + ".join(sorted(share, key=lambda name: -share[name])) or "no edges"

    @property
    def closing(self) -> bool:
        """Whether the work under way looks for a cover that costs `lower`."""
        return any(part.selecting or part.leading for part in self._parts)

    @property
    def leads(self) -> bool:
        """Whether an integer program is near its end: the best cover of its part."""
        return any(part.leading for part in self._parts)

    @property
    def gaining(self) -> bool:
        """Whether the theta function is at work on a dense part, and has not come to its end."""
        return any(part.gaining for part in self._parts)

    @property
    def optimum(self) -> np.ndarray | None:
        """[n] bool, a cover that costs `lower`, or None while there is none."""
        cover = np.zeros(self._n, dtype=bool)
        for part in self._parts:
            if part.optimum is None:
                return None
            cover[part.nodes] = part.optimum
        return cover

    def pieces(self) -> np.ndarray | None:
        """[n] bool, a cover that costs less than the caller's best: in each component the best that is known.

        None: there is none. The same array until there is a better one.
        """
        costs = [part.cost for part in self._parts]
        if self._upper is None or None in costs or sum(costs) >= self._upper:
            return None
        if self._pieces is None or self._pieces[0] > sum(costs):
            cover = np.zeros(self._n, dtype=bool)
            for part in self._parts:
                cover[part.nodes] = part.cover
            self._pieces = sum(costs), cover
        return self._pieces[1]

    def improve(
        self, seconds: float, upper: int | None = None, upper_solution: np.ndarray | None = None
    ) -> bool:
        """Work for about that long, less where the bound is proved or nothing is left to try.

        upper            the cost of the best cover that the caller knows
        upper_solution   [n] bool, such a cover; each component is then done once its bound reaches its share
        returns          True where there is more to try
        """
        if upper_solution is not None:
            for part in self._parts:
                part.offer(upper_solution[part.nodes])
        self._upper = upper
        end, made = time.perf_counter() + seconds, 0
        while self._turns:
            if upper is not None and self.lower >= upper:
                return False
            # What is long begins a call, so that the caller has seen `least_seconds` before.
            if time.perf_counter() + (self.least_seconds if made else 0.0) >= end:
                return True
            self._turn, made = self._turn % len(self._turns), made + 1
            part = self._parts[self._turns[self._turn]]
            before, more = part.lower, part.step()
            self.lower += part.lower - before
            if more:
                self._turn += 1
            else:
                del self._turns[self._turn]
        return False

    @property
    def checked(self) -> bool:
        """False where a part of the bound rests on a finished search."""
        return not any(part.claimed for part in self._parts)

    def certificate(self) -> CoverBound:
        """The bound with its witness, and the claims of finished searches."""
        return self._joined(claims=True)

    def witnessed(self) -> CoverBound:
        """The best bound without claims: of parts that a search has finished what was proved before it."""
        return self._joined(claims=False)

    def _joined(self, claims: bool) -> CoverBound:
        claimed = [part for part in self._parts if part.claimed and claims]
        rest = [part for part in self._parts if not (part.claimed and claims)]
        thetas = tuple(part.theta for part in rest if part.theta is not None)
        proved = [part for part in rest if part.theta is None]
        one = max((part.best.one for part in proved), default=1)  # powers of two
        columns = joined([part.whole_columns() for part in proved])
        value = np.concatenate([part.best.value * (one // part.best.one) for part in proved] or [np.zeros(0)])
        whole = packing(self._n, columns, value.astype(np.int64), one, self._weights, self.method)
        finished = tuple(Claim(part.nodes, part.lower) for part in claimed)
        lower = whole.lower + sum(part.cost for part in (*finished, *thetas))
        return CoverBound(lower, self.method, whole, finished, thetas)


def _groups(graph: Graph) -> tuple[list[np.ndarray], list[bool]]:
    """The nodes of each part, ascending: components, small ones a few together; no nodes without edges.

    returns   also of each whether it is one component that is not small
    """
    if not graph.edges:
        return [], []
    if soon_reached(graph):
        return [np.arange(graph.n)], [True]
    matrix = sp.csr_array(
        (np.ones(len(graph.indices), dtype=np.int8), graph.indices, graph.indptr), shape=(graph.n, graph.n)
    )
    count, label = connected_components(matrix, directed=False)
    size = np.bincount(label, minlength=count)
    small = size < SMALL
    counted = np.where(small & (size > 1), size, 0)
    together = np.cumsum(counted) // max(SMALL, -(-int(counted.sum()) // MOST_GROUPS))
    group = np.where(small, count + together, np.arange(count))
    group = np.where(size == 1, -1, group)[label]
    order = np.argsort(group, kind="stable")
    cuts = np.flatnonzero(np.diff(group[order])) + 1
    found = [nodes for nodes in np.split(order, cuts) if len(nodes) and group[nodes[0]] >= 0]
    return found, [bool(group[nodes[0]] < count) for nodes in found]


def _largest(groups: list[np.ndarray]) -> list[int]:
    """The largest groups of nodes, MOST_PROGRAMS at most."""
    return sorted(range(len(groups)), key=lambda i: -len(groups[i]))[:MOST_PROGRAMS]


def soon_reached(graph: Graph) -> bool:
    """True where a few steps from the first node lead to all others, as in dense graphs; costs less than all
    components do.
    """
    reached, front = np.zeros(graph.n, dtype=bool), np.zeros(1, dtype=np.int64)
    reached[0] = True
    for _ in range(STEPS):
        before, rows = reached.copy(), [graph.indices[graph.indptr[v] : graph.indptr[v + 1]] for v in front]
        reached[np.concatenate(rows)] = True
        if reached.all():
            return True
        front = np.flatnonzero(reached & ~before)[:FRONT]
        if not len(front):
            return False
    return False


def _room(groups: list[np.ndarray], single: list[bool], most_bytes: float) -> np.ndarray:
    """[k] bool, the components for whose matrices of the theta function there is room, small ones first.

    Of several together it would be rounded only once.
    """
    needs = np.array([bytes_of(len(nodes)) if one else math.inf for nodes, one in zip(groups, single)])
    most_bytes = min(most_bytes, MOST_BYTES)
    if needs[np.isfinite(needs)].sum() > LITTLE:
        most_bytes = min(most_bytes, ROOM_SHARE * max(memory_room()[0] - resident_bytes(), 0))
    order = np.argsort(needs, kind="stable")
    room = np.zeros(len(groups), dtype=bool)
    room[order] = np.cumsum(needs[order]) <= most_bytes
    return room
