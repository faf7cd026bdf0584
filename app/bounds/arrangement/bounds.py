"""Lower bounds of linear arrangements that improve in slices of time, component by component."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.csgraph import breadth_first_order

from app.bounds.arrangement import witness
from app.bounds.arrangement.exact import MOST_EXACT, MOST_FIT, SET_BYTES, fitting, least
from app.bounds.arrangement.witness import ArrangementPart, part_of
from app.bounds.orders import OrderBounds, OrderPart
from app.bounds.partition.lanczos import smallest
from app.bounds.partition.rank_one import MOST_UPDATES, elimination
from app.bounds.treewidth import cycles, minors
from app.graphs.arrangement import (
    BANDWIDTH,
    CUTWIDTH,
    LENGTH,
    PROFILE,
    SEPARATION,
    SUMS,
    Arrangement,
)
from app.graphs.contracted import WeightedRows
from app.graphs.orders import order_within, places_of
from app.rng import stream

MOST_PARTS = 4096  # components that are looked at one by one
MOST_CYCLES = 50_000  # entries of a component whose chordless cycles are packed
CYCLE_SHARE, CYCLE_SECONDS = 0.1, 10.0  # of what time is left, for that; at most
MOST_DENSE = 1200  # nodes whose eigenvalue is that of a dense matrix
MOST_SPARSE = 200_000  # entries of others
PLACES = 24  # binary, of eigenvalues
SLACKS = (1e-6, 1e-4, 1e-3, 1e-2, 0.1)  # parts of an eigenvalue that are given up until it is proved
TRIES = 16  # minors
LEVELS = 24  # cores whose degrees are looked at
CENTRES = 64  # of balls
FIRST_BEGINNINGS, MORE, MOST_BEGINNINGS = 1 << 12, 4, 1 << 30
SET_SECONDS, PLAIN_SET_SECONDS = 4e-9, 6e-8  # of a subset, for each node
BEGINNING_SECONDS, PLAIN_BEGINNING_SECONDS = 4e-7, 1e-4
FIRST_SECONDS = 4e-8  # for each node times entry
SPLIT_SECONDS, CHECK_SECONDS = 2e-6, 4e-7  # for each node and entry: of components, of a check of degrees
MOST_MARKS = 1 << 28  # nodes times components
CHECKS = 4.0  # a check takes so many times what finding takes, about


@dataclass(eq=False)
class Component(OrderPart):
    """A connected part of the core; `lower` may be of a search that leaves no witness.

    part   the question on its nodes     best   the best witness     work   what is left to try
    """

    nodes: np.ndarray
    part: Arrangement
    best: ArrangementPart
    lower: int
    order: np.ndarray
    upper: float
    work: Iterator[float] = field(default_factory=lambda: iter(()))
    next: float = math.inf

    def worth(self, order: np.ndarray) -> int:
        """As the question says."""
        return self.part.value(order)


class ArrangementBounds(OrderBounds):
    """Lower bounds of one question of which each node has an edge.

    proved   whether the witness proves all of it
    """

    _parts: list[Component]

    def __init__(self, asked: Arrangement, most_bytes: float = math.inf, compiled: bool = True) -> None:
        super().__init__()
        self._asked, self._compiled = asked, compiled
        self._most_sets = most_bytes / SET_BYTES
        self.check_seconds = 0.0
        self._whole: ArrangementPart | None = None
        self._split = False  # whether all components are made
        self._making = self._make_parts()

    @property
    def least_seconds(self) -> float:
        """An estimate of the first call."""
        return 0.0 if self.method else CHECK_SECONDS * self._entries

    @property
    def _sums(self) -> bool:
        return self._asked.kind in SUMS

    @property
    def gaining(self) -> bool:
        """Whether what is tried next may raise the bound by far: a program over all subsets, or orders."""
        chosen = self._next() if self.method else None
        return chosen is not None and chosen.part.n <= MOST_FIT

    @property
    def closing(self) -> bool:
        """Whether it may prove the best order optimal."""
        return self.gaining

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing an order of value `best`; True while there is more to try."""
        begun = time.perf_counter()
        if not self._asked.n:
            self.method = witness.DEGREES  # no edge: 0
            return False
        first = not self.method
        if first:
            self._begin()
        self._hear(best, solution)
        if first and time.perf_counter() - begun >= seconds > 0:
            return self.value < self._known and self._more
        while self.value < self._known:
            if self._splits:
                next(self._making, None)
            elif (chosen := self._next()) is not None:
                self._advance(chosen)
                self._weigh()
            else:
                return False
            if time.perf_counter() - begun >= seconds:
                self._weigh()
                return self.value < self._known and self._more
        return False

    @property
    def _more(self) -> bool:
        return self._splits or self._next() is not None

    def witness(self) -> list[ArrangementPart]:
        """What proves the bound, or most of it."""
        whole = [] if self._whole is None else [self._whole]
        if not self._sums and self._asked.n:
            return [max([*whole, *(each.best for each in self._parts)], key=lambda part: part.lower)]
        parts = [each.best for each in self._parts]
        return parts if sum(each.lower for each in parts) >= sum(each.lower for each in whole) else whole

    @property
    def proved(self) -> bool:
        """Whether that is all of it."""
        lowers = [each.lower for each in self.witness()]
        return (sum(lowers) if self._sums else max(lowers, default=0)) >= self.value

    # ---- the work ------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Degrees of all nodes."""
        lower = witness.by_degrees(self._asked)
        self._whole = part_of(np.arange(self._asked.n), witness.DEGREES, lower)
        self.value, self.method = lower, witness.DEGREES
        self.check_seconds += CHECK_SECONDS * self._entries

    @property
    def _entries(self) -> int:
        return self._asked.n + len(self._asked.indices)

    @property
    def _splits(self) -> bool:
        """Whether components are still to be made, and there is time for it."""
        return not self._split and SPLIT_SECONDS * self._entries <= self._end - time.perf_counter()

    def _make_parts(self) -> Iterator[None]:
        """Components one by one, large ones first, each with a bound by its degrees."""
        asked = self._asked
        label = asked.parts(self._compiled)
        order = np.argsort(label, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(label))[:-1])
        if len(groups) > MOST_PARTS or len(groups) * asked.n > MOST_MARKS:
            self._split = True
            return
        for nodes in sorted(groups, key=len, reverse=True):
            part = asked if len(groups) == 1 else asked.induced(nodes)
            best = part_of(nodes, witness.DEGREES, witness.by_degrees(part))
            first = np.arange(len(nodes))
            own = Component(nodes, part, best, best.lower, first, part.value(first))
            own.work = self._ways(own)
            if self._heard is not None:
                own.hear(order_within(self._heard, nodes))
            self._parts.append(own)
            self._advance(own)
            self._split = len(self._parts) == len(groups)
            if self._split:
                self._weigh()
            yield

    def _upper(self) -> float:
        uppers = [each.upper for each in self._parts] if self._split else []
        return (sum(uppers) if self._sums else max(uppers)) if uppers else math.inf

    def _joined(self) -> np.ndarray:
        return np.concatenate([each.nodes[each.order] for each in self._parts])

    def _weigh(self) -> None:
        """The bound that all parts give together."""
        lowers = [each.lower for each in self._parts]
        found = sum(lowers) if self._sums else max(lowers, default=0)
        if found >= self.value and self._parts:
            own = {each.best.method for each in self._parts if self._sums or each.lower == found}
            sought = any(each.lower > each.best.lower for each in self._parts)
            own |= {witness.ALL} if sought else set()
            self.value, self.method = found, ", ".join(sorted(own))
        if self._whole is not None and self._whole.lower > self.value:
            self.value, self.method = self._whole.lower, witness.DEGREES

    def _next(self) -> Component | None:
        """The component that is worked on next, the cheapest work first; None: there is none."""
        left = self._end - time.perf_counter()
        able = [
            each
            for each in self._parts
            if each.lower < each.upper
            and each.next <= left
            and math.isfinite(each.next)
            and (self._sums or each.upper > self.value)
        ]
        return min(able, key=lambda each: each.next, default=None)

    def _advance(self, own: Component) -> None:
        """What the component has next, and an estimate of what comes after it."""
        begun = time.perf_counter()
        own.next = next(own.work, math.inf)
        self.check_seconds += CHECKS * (time.perf_counter() - begun)

    def _learn(
        self, own: Component, method: str, lower: int, numbers: object = (), more: object = ()
    ) -> None:
        """A bound of the component with its witness."""
        if lower > own.best.lower:
            own.best = part_of(own.nodes, method, lower, numbers, more)
            own.lower = max(own.lower, lower)

    def _ways(self, own: Component) -> Iterator[float]:
        """All that can be tried, one after the other; each says first what it takes, about."""
        part, kind = own.part, own.part.kind
        if kind != BANDWIDTH and part.n <= min(MOST_EXACT, math.log2(max(self._most_sets, 1))):
            each = SET_SECONDS if self._compiled else PLAIN_SET_SECONDS
            yield each * part.n * 2.0**part.n
            value, order = least(part, self._compiled)
            own.hear(order)
            self._learn(own, witness.ALL, value)
            return
        ways: dict[str, tuple[Callable[[Component], Iterator[float]], ...]] = {
            LENGTH: (self._eigenvalue,), CUTWIDTH: (self._cores, self._eigenvalue),
            BANDWIDTH: (self._balls, self._cores, self._first, self._fit),
            SEPARATION: (self._cores, self._minors), PROFILE: (self._cycles,),
        }  # fmt: skip
        for way in ways[kind]:
            yield from way(own)

    def _cores(self, own: Component) -> Iterator[float]:
        """Degrees of nodes that have many of each other: peeled by degree."""
        part = own.part
        yield 1e-5 * len(part.indices)
        inside = np.arange(part.n)
        for _ in range(LEVELS):
            inner = part.induced(inside)
            degree = np.diff(inner.indptr)
            if len(inside) < part.n and (lower := witness.by_degrees(inner)) > own.best.lower:
                own.best = part_of(own.nodes[inside], witness.DEGREES, lower)
                own.lower = max(own.lower, lower)
            least_one = int(degree.min())
            while len(inside) and (degree <= least_one).any():
                inside = inside[degree > least_one]
                degree = np.diff(part.induced(inside).indptr) if len(inside) else degree[:0]
            if not len(inside):
                return

    def _eigenvalue(self, own: Component) -> Iterator[float]:
        """Cuts by the second eigenvalue of the Laplacian."""
        part = own.part
        if part.n < 3 or (part.n > MOST_DENSE and len(part.indices) > MOST_SPARSE):
            return
        yield 1e-9 * part.n**3 if part.n <= MOST_DENSE else 1e-5 * len(part.indices)
        one = np.ones(part.n, dtype=np.int64)
        way = elimination(WeightedRows(part.indptr, part.indices, part.weights, one), MOST_UPDATES)
        if not way.fits:
            return
        value = _second(part)
        for slack in SLACKS:
            places = PLACES
            while places and value * 2.0**places >= 2.0**51:
                places -= 1
            number = math.floor(value * (1 - slack) * 2.0**places)
            lower = witness.by_gaps(part, number, places) if number > 0 else 0
            if lower <= own.best.lower:
                return
            if witness.proved_eigenvalue(part, number, places):
                self._learn(own, witness.EIGENVALUE, lower, [number, places])
                return

    def _balls(self, own: Component) -> Iterator[float]:
        """Nodes around one; a drawn node, those of most neighbours, and between far ends."""
        part = own.part
        yield 2e-8 * CENTRES * len(part.indices)
        matrix, degree = part.matrix(), np.diff(part.indptr)
        centres = np.argsort(-degree, kind="stable")[: CENTRES // 2].tolist()
        centres += (np.arange(CENTRES // 2) * part.n // (CENTRES // 2)).tolist()
        for v in dict.fromkeys([*centres, *_middles(part)]):
            order, above = breadth_first_order(matrix, v, directed=False)
            count = np.cumsum(np.bincount(_levels_of(order, above)))[1:] - 1
            need = -(-count // (2 * np.arange(1, len(count) + 1)))
            if len(need) and need.max() > own.best.lower:
                lower = int(need.max())
                own.best = part_of(own.nodes[[v]], witness.BALL, lower, int(need.argmax()) + 1)
                own.lower = max(own.lower, lower)

    def _first(self, own: Component) -> Iterator[float]:
        """Whichever node comes first."""
        part = own.part
        if part.n <= witness.MOST_FIRST:
            yield FIRST_SECONDS * part.n * (part.n + len(part.indices))
            self._learn(own, witness.FIRST, witness.by_first(part))

    def _fit(self, own: Component) -> Iterator[float]:
        """Whether there is an order of less bandwidth, for one after the other."""
        part, most = own.part, FIRST_BEGINNINGS
        if part.n > MOST_FIT:
            return
        each = BEGINNING_SECONDS if self._compiled else PLAIN_BEGINNING_SECONDS
        while own.lower < own.upper and most < MOST_BEGINNINGS:
            yield each * most
            order, known, looked = fitting(part, own.lower, most, self._compiled)
            if order is not None:
                own.hear(order)
                return
            if not known:
                most *= MORE
            elif looked <= witness.MOST_BEGINNINGS:
                own.lower += 1
                self._learn(own, witness.ALL, own.lower)
            else:
                own.lower += 1

    def _minors(self, own: Component) -> Iterator[float]:
        """Treewidth's minors."""
        graph = own.part.pattern("part")
        for number in range(TRIES):
            yield 2e-5 * len(graph.indices)
            rule = minors.LEAST_DEGREE if number % 3 == 1 else minors.LEAST_COMMON
            _, label = minors.contracted(graph, None, rule, number or None, self._late, self._compiled)
            lower = minors.MinorProof(label, True).lower(graph) - 1
            self._learn(own, witness.MINOR, lower, label)

    def _late(self) -> bool:
        return time.perf_counter() > self._end

    def _cycles(self, own: Component) -> Iterator[float]:
        """Edges and chordless cycles, where these are packed in time."""
        part = own.part
        if len(part.indices) > MOST_CYCLES:
            return
        yield 1e-4 * len(part.indices)
        begun = time.perf_counter()
        end = begun + min(CYCLE_SHARE * (self._end - begun), CYCLE_SECONDS)
        ptr, nodes = cycles.packed(part.pattern("part"), lambda: time.perf_counter() > end)
        lower = len(part.indices) // 2 + len(nodes) - 3 * (len(ptr) - 1)
        self._learn(own, witness.CYCLES, lower, ptr, nodes)


def _second(part: Arrangement) -> float:
    """The second eigenvalue of the Laplacian of a connected part, about."""
    n = part.n
    degree = np.bincount(part.row_of(), part.weights.astype(np.float64), n)
    adjacent = part.matrix().astype(np.float64)
    adjacent.data = part.weights.astype(np.float64)
    if n <= MOST_DENSE:
        dense = np.diag(degree) - adjacent.toarray()
        return float(eigh(dense, eigvals_only=True, subset_by_index=[1, 1])[0])
    start = stream(0, "arrangement eigenvalue").standard_normal(n)
    start -= start.mean()
    push = 2 * float(degree.max())  # on the vector of ones

    def times(x: np.ndarray) -> np.ndarray:
        return degree * x - adjacent @ x + push * x.mean()

    return smallest(times, start, min(n, 240))[0]


def _levels_of(order: np.ndarray, above: np.ndarray) -> np.ndarray:
    """[n] int64, how far nodes are from the root of a search by breadth, from the nodes that they hang on."""
    up = places_of(order)[above[order[1:]]]
    far, begin, level = np.zeros(len(order), dtype=np.int64), 1, 0
    while begin < len(order):  # those that hang on places before `begin` are the next level
        level += 1
        end = 1 + int(np.searchsorted(up, begin))
        far[order[begin:end]] = level
        begin = end
    return far


def _middles(part: Arrangement) -> list[int]:
    """Nodes half way between far ends."""
    matrix, found, root = part.matrix(), [], 0
    for _ in range(4):
        order, above = breadth_first_order(matrix, root, directed=False)
        path = [int(order[-1])]
        while path[-1] != root:
            path.append(int(above[path[-1]]))
        found += [path[len(path) // 2], path[len(path) // 4]]
        root = int(order[-1])
    return found
