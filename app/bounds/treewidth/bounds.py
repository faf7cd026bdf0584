"""Lower bounds of widths and of fill-in that improve in slices of time."""

import math
import time
from dataclasses import dataclass

import numpy as np

from app.bounds.orders import OrderBounds, OrderPart
from app.bounds.treewidth import cycles, minors
from app.bounds.treewidth.atoms import atoms_of, joined
from app.bounds.treewidth.exact import MOST_SOUGHT, Found, seek
from app.bounds.treewidth.orders import BY_FILL, greedy, tree_of
from app.graphs.derived import induced
from app.graphs.graph import Graph

MINOR, CYCLES, SOUGHT = "minor", "chordless cycles", "exhaustive search"
FIRST_SETS, MORE = 1 << 12, 4  # that a search looks at, and times that where they do not suffice
SET_BYTES = 32  # of a set that was looked at
STATE_SECONDS, PLAIN_STATE_SECONDS = 4e-6, 4e-4  # of one that is looked at, at first
TRIES = 32  # contractions, where steps decide and nothing else is left to try
CUT_SECONDS = 1e-6  # of cutting a graph, for each node times entry; of the first bound for each entry


@dataclass(eq=False)
class Atom(OrderPart):
    """An atom of a core; `lower` is of fill-in alone.

    graph, weights   of these nodes alone     fill, compiled   as of EliminationBounds
    sets             that the next search may look at
    """

    nodes: np.ndarray
    graph: Graph
    weights: np.ndarray | None
    fill: bool
    compiled: bool
    order: np.ndarray | None = None
    upper: float = math.inf
    lower: int = 0
    sets: int = FIRST_SETS

    def worth(self, order: np.ndarray) -> int:
        """The heaviest bag, or the fill-in."""
        bag = tree_of(self.graph, order, self.weights, self.compiled).bag
        return int((bag - 1).sum()) - self.graph.edges if self.fill else int(bag.max(initial=0))


class EliminationBounds(OrderBounds):
    """What width and fill-in have in common: the atoms, and exhaustive searches of them."""

    fill = False
    _parts: list[Atom]

    def __init__(
        self, graph: Graph, weights: np.ndarray | None = None, compiled: bool = True,
        most_bytes: float = math.inf,
    ) -> None:  # fmt: skip
        super().__init__()
        self._graph, self._weights, self._compiled = graph, weights, compiled
        self._most_sets = int(min(most_bytes / SET_BYTES, 1 << 24))
        self._rate = STATE_SECONDS if compiled else PLAIN_STATE_SECONDS

    @property
    def least_seconds(self) -> float:
        """An estimate of the first call."""
        return 0.0 if self.method else CUT_SECONDS * len(self._graph.indices)

    @property
    def gaining(self) -> bool:
        """Whether a search is under way: it may raise the bound by far."""
        return bool(self.method) and self._next() is not None

    @property
    def closing(self) -> bool:
        """Whether it may prove the best order optimal."""
        return self.gaining and self._next().upper <= self._known

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing an order of value `best`; True while there is more to try."""
        begun = time.perf_counter()
        if not self._graph.n:
            return False
        first = not self.method
        if first:
            self._begin(begun + max(seconds, 0.05))
        self._hear(best, solution)
        while self.value < self._known:
            if time.perf_counter() - begun >= seconds:
                return self._more()
            if not self._step():
                return False
        return False

    # ---- the work ------------------------------------------------------------------------------------------

    def _cut(self) -> None:
        """The atoms, as parts."""
        for nodes in atoms_of(self._graph):
            weights = None if self._weights is None else self._weights[nodes]
            part = Atom(nodes, induced(self._graph, nodes), weights, self.fill, self._compiled)
            if part.graph.n <= MOST_SOUGHT:
                part.hear(greedy(part.graph, BY_FILL, None, self._compiled))
            self._parts.append(part)

    def _fits(self, part: Atom) -> bool:
        """Whether there is room and time for the next search of a part."""
        if part.graph.n > MOST_SOUGHT or part.sets > self._most_sets:
            return False
        return self._rate * min(part.sets, 1 << part.graph.n) < self._end - time.perf_counter()

    def _seek(self, part: Atom, most: int) -> Found:
        """Search a part, with more sets the next time where these do not suffice."""
        begun = time.perf_counter()
        found = seek(part.graph, most, part.sets, part.weights, self.fill, self._compiled)
        if found.states > FIRST_SETS // 2:
            self._rate = (time.perf_counter() - begun) / found.states
        if not found.known:
            part.sets *= MORE
        if found.order is not None:
            part.hear(found.order)
        return found

    def _joined(self) -> np.ndarray:
        return joined(self._graph, [part.nodes for part in self._parts], [part.order for part in self._parts])

    def _more(self) -> bool:
        return self._next() is not None

    def _begin(self, end: float) -> None:
        """The first bound."""
        raise NotImplementedError

    def _step(self) -> bool:
        """Some work; False where nothing is left to try."""
        raise NotImplementedError

    def _next(self) -> Atom | None:
        """The part that is searched next; None: none can be."""
        raise NotImplementedError


class WidthBounds(EliminationBounds):
    """Of the weight of the heaviest bag; minor [n] proves the best bound of minors, `minors`."""

    def _begin(self, end: float) -> None:
        self._tries, self._spent = 0, [0.0, 0.0]  # contractions; seconds of these, of searches
        self.minors, self.minor = 0, np.full(self._graph.n, -1, dtype=np.int64)
        self.method = MINOR
        self._contract(end)
        if time.perf_counter() < end:
            self._cut()

    def _contract(self, end: float) -> None:
        """One more minor."""
        number, self._tries = self._tries, self._tries + 1
        rule = minors.LEAST_DEGREE if number % 3 == 1 else minors.LEAST_COMMON
        begun, end = time.perf_counter(), min(end, self._end)
        worth, label = minors.contracted(
            self._graph, self._weights, rule, number or None, lambda: time.perf_counter() > end
        )
        if worth >= self.minors:
            exact = minors.MinorProof(label, True).lower(self._graph, self._weights)
            if exact > self.minors:
                self.minors, self.minor = exact, label
        if self.minors > self.value:
            self.value, self.method = self.minors, MINOR
        self._spent[0] += time.perf_counter() - begun

    def _next(self) -> Atom | None:
        able = [part for part in self._parts if part.upper > self.value and self._fits(part)]
        return min(able, key=lambda part: (part.sets, part.graph.n), default=None)

    def _step(self) -> bool:
        part = self._next()
        if part is None or (self._spent[0] < self._spent[1] / 4 and self._tries < TRIES):
            if part is None and self._tries >= TRIES and not math.isfinite(self._end):
                return False
            if time.perf_counter() >= self._end or (part is None and self._tries >= 8 * TRIES):
                return False
            self._contract(self._end)
            return True
        begun = time.perf_counter()
        most = self.value if self._weights is None else min(self._known, int(min(part.upper, 1 << 62))) - 1
        found = self._seek(part, most)
        if found.known and found.order is None:
            self.value, self.method = most + 1, SOUGHT
        self._spent[1] += time.perf_counter() - begun
        return True

    def _more(self) -> bool:
        return self._next() is not None or self._tries < TRIES

    def _upper(self) -> float:
        return max((part.upper for part in self._parts), default=math.inf)


class FillBounds(EliminationBounds):
    """Of the edges of chordal completions, the graph's included; cycles (ptr, nodes) prove a bound."""

    fill = True

    def _begin(self, end: float) -> None:
        end = min(end, self._end)
        self.ptr, self.nodes = cycles.packed(self._graph, lambda: time.perf_counter() > end)
        self.value = self._graph.edges + self.packed
        self.method = CYCLES
        self._cut()
        bound = self.nodes[self.ptr[:-1]], np.diff(self.ptr) - 3
        for part in self._parts:
            inside = np.isin(self.nodes, part.nodes)
            whole = np.add.reduceat(inside, self.ptr[:-1]) == np.diff(self.ptr) if len(self.nodes) else inside
            part.lower = int(bound[1][whole].sum())

    @property
    def packed(self) -> int:
        """What the cycles prove."""
        return len(self.nodes) - 3 * (len(self.ptr) - 1)

    def _next(self) -> Atom | None:
        able = [
            part
            for part in self._parts
            if part.order is not None and part.upper > part.lower and self._fits(part)
        ]
        return min(able, key=lambda part: (part.sets, part.graph.n), default=None)

    def _step(self) -> bool:
        part = self._next()
        if part is None:
            return False
        found = self._seek(part, int(part.upper) - 1)
        if found.known and found.order is None:
            part.lower = int(part.upper)
            worth = self._graph.edges + sum(each.lower for each in self._parts)
            if worth > self.value:
                self.value, self.method = worth, SOUGHT
        return True

    def _upper(self) -> float:
        return self._graph.edges + sum(part.upper for part in self._parts) if self._parts else math.inf
