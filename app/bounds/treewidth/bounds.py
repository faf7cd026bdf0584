"""Lower bounds of widths and of fill-in that improve in slices of time."""

import math
import time
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from app.bounds.orders import OrderBounds, OrderPart
from app.bounds.treewidth import blocks, cycles, exact, minors
from app.bounds.treewidth.atoms import MOST_CUT, atoms_of, joined
from app.bounds.treewidth.exact import Found
from app.bounds.treewidth.orders import BY_DEGREE, BY_FILL, greedy, tree_of
from app.graphs.derived import induced
from app.graphs.graph import Graph

MINOR, CYCLES, SOUGHT = "minor", "chordless cycles", "exhaustive search"
PROBE = "search of a minor"
FIRST_SETS, MORE = 1 << 12, 4  # that a search looks at, and times that where they do not suffice
SET_BYTES = 32  # of a set of nodes that was looked at
STATE_SECONDS, PLAIN_STATE_SECONDS = 4e-6, 4e-4  # of one that is looked at, at first
TRIES = 32  # contractions, where steps decide and nothing else is left to try
PROBES = 32, 48, 64, 96, 128  # nodes of minors that are searched
TURNS = 8  # of all of these by both rules, each with more sets; one without a clock
MOST_SETS, WITHOUT_CLOCK, PLAIN_WITHOUT_CLOCK = 1 << 24, 1 << 18, 1 << 12  # of one search of many nodes
FEW_NODES = 64
BOUND_SECONDS = 1e-6  # of the first bound, for each entry
CUT_SECONDS = 3e-7  # of cutting a graph, for each node times entry
GREEDY_WORK = 1 << 24  # of an order of a part of many nodes: less than a tenth of a second


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
    most_nodes: int  # of parts that are searched
    _parts: list[Atom]

    def __init__(
        self, graph: Graph, weights: np.ndarray | None = None, compiled: bool = True,
        most_bytes: float = math.inf,
    ) -> None:  # fmt: skip
        super().__init__()
        self._graph, self._weights, self._compiled = graph, weights, compiled
        self._most_bytes = most_bytes
        self._rate = STATE_SECONDS if compiled else PLAIN_STATE_SECONDS

    @property
    def least_seconds(self) -> float:
        """An estimate of the first call."""
        return 0.0 if self.method else BOUND_SECONDS * len(self._graph.indices)

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
            if part.graph.n <= self.most_nodes:
                self._start(part)
            self._parts.append(part)

    def _start(self, part: Atom) -> None:
        """The first order of a part; by new edges it takes long in dense graphs, and without kernels."""
        few = part.graph.n <= FEW_NODES
        if not few:
            part.hear(greedy(part.graph, BY_DEGREE, None, self._compiled))
        if few or self._compiled:
            part.hear(greedy(part.graph, BY_FILL, None, self._compiled, GREEDY_WORK))

    @property
    def _cuts(self) -> bool:
        """Whether there is time to cut the graph."""
        work = self._graph.n * len(self._graph.indices)
        seconds = CUT_SECONDS * work if work <= MOST_CUT else 0.0
        return time.perf_counter() + seconds < self._end

    def _fits(self, part: Atom) -> bool:
        """Whether there is room and time for the next search of a part."""
        n = part.graph.n
        return n <= self.most_nodes and self._affords(n, min(part.sets, 1 << n), part.sets)

    def _affords(self, n: int, looked: int, held: int) -> bool:
        """Whether there is time to look at so many sets of n nodes, and room to hold so many."""
        most = MOST_SETS
        if math.isinf(self._end) and n > FEW_NODES:
            most = WITHOUT_CLOCK if self._compiled else PLAIN_WITHOUT_CLOCK
        if held > min(self._most_bytes / self._set_bytes(n), most):
            return False
        return self._rate * looked < self._end - time.perf_counter()

    def _seek(self, part: Atom, most: int) -> Found:
        """Search a part, with more sets the next time where these do not suffice."""
        found = self._timed(part.graph, most, part.sets, part.weights)
        if not found.known:
            part.sets *= MORE
        if found.order is not None:
            part.hear(found.order)
        return found

    def _timed(self, graph: Graph, most: int, limit: int, weights: np.ndarray | None) -> Found:
        """A search, whose rate is that of the next ones."""
        begun = time.perf_counter()
        found = self._search(graph, most, limit, weights)
        if found.states > FIRST_SETS // 2:
            self._rate = (time.perf_counter() - begun) / found.states
        return found

    def _joined(self) -> np.ndarray:
        nodes, orders = zip(*((part.nodes, part.order) for part in self._parts))
        return joined(self._graph, nodes, orders, self._compiled)

    def _more(self) -> bool:
        return self._next() is not None

    @abstractmethod
    def _begin(self, end: float) -> None:
        """The first bound."""

    @abstractmethod
    def _search(self, graph: Graph, most: int, limit: int, weights: np.ndarray | None) -> Found:
        """Whether a graph has an order worth no more than `most`."""

    @abstractmethod
    def _set_bytes(self, n: int) -> int:
        """What a set takes that a search of n nodes holds."""

    @abstractmethod
    def _step(self) -> bool:
        """Some work; False where nothing is left to try."""

    @abstractmethod
    def _next(self) -> Atom | None:
        """The part that is searched next; None: none can be."""


class WidthBounds(EliminationBounds):
    """Of the weight of the heaviest bag; minor [n] proves the best bound of minors, `minors`.

    Minors by contractions alone have a bound with a witness; minors of few nodes, and the atoms themselves,
    are searched. Of these three what has taken the least time is next.
    """

    most_nodes = blocks.MOST_NODES

    def _begin(self, end: float) -> None:
        self._tries, self._probed = 0, 0
        self._under_way: minors.Contractions | None = None
        self._spent = {SOUGHT: 0.0, PROBE: 0.0, MINOR: 0.0}  # seconds
        self.minors, self.minor = 0, np.full(self._graph.n, -1, dtype=np.int64)
        self.method = MINOR
        self._contract(end)
        if self._cuts:
            self._cut()

    def _search(self, graph: Graph, most: int, limit: int, weights: np.ndarray | None) -> Found:
        left = self._end - time.perf_counter()
        return blocks.seek_blocks(graph, most, limit, weights, self._compiled, left)

    def _set_bytes(self, n: int) -> int:
        return blocks.row_bytes(n, self._compiled)

    def _contractions(self) -> minors.Contractions:
        """Those that are under way, or the next ones: by either rule, equal nodes told apart by a seed."""
        if self._under_way is None:
            number, self._tries = self._tries, self._tries + 1
            rule = minors.LEAST_DEGREE if number % 3 == 1 else minors.LEAST_COMMON
            self._under_way = minors.Contractions(
                self._graph, self._weights, rule, number or None, self._compiled
            )
        return self._under_way

    def _contract(self, end: float) -> None:
        """One more minor, or as much of it as there is time for: the rest comes later."""
        made, end = self._contractions(), min(end, self._end)
        if made.run(lambda: time.perf_counter() > end):
            self._under_way = None
        elif self.minors:
            return
        if made.best < self.minors:
            return
        label = made.after(made.kept)
        exact = minors.MinorProof(label, True).lower(self._graph, self._weights)
        if exact > self.minors:
            self.minors, self.minor = exact, label
        if self.minors > self.value:
            self.value, self.method = self.minors, MINOR

    # ---- minors of few nodes -------------------------------------------------------------------------------

    @property
    def _probe_limit(self) -> int:
        """Sets that the next probe may look at."""
        return FIRST_SETS * MORE ** (1 + self._probed // (2 * len(PROBES)))

    def _probes(self) -> bool:
        """Whether there is room and time for one more, and a minor that is smaller than the graph."""
        most = 2 * len(PROBES) * (1 if math.isinf(self._end) else TURNS)
        if self._probed >= most or self._graph.n <= PROBES[0]:
            return False
        return self._affords(PROBES[-1], self._probe_limit, self._probe_limit)

    def _probe(self) -> None:
        """Search a minor of few nodes: it has no larger width than the graph."""
        limit, number, self._probed = self._probe_limit, self._probed, self._probed + 1
        turn, at = divmod(number, 2 * len(PROBES))
        rule = minors.LEAST_DEGREE if at % 2 else minors.LEAST_COMMON
        made = minors.Contractions(self._graph, self._weights, rule, turn or None, self._compiled)
        if not made.run(self._late):
            return
        label = made.after(max(self._graph.n - PROBES[at // 2], 0))
        graph, weights = minors.minor_of(self._graph, label, self._weights)
        step = 1
        while self.value < self._known and not self._late():
            most = min(self.value + step, self._known) - 1
            found = self._timed(graph, most, limit, weights)
            if found.known and found.order is None:
                self.value, self.method = most + 1, PROBE
                step *= 2
            elif step == 1:
                return
            else:
                step //= 2

    def _late(self) -> bool:
        return time.perf_counter() > self._end

    # ---- the atoms themselves ------------------------------------------------------------------------------

    def _next(self) -> Atom | None:
        able = [part for part in self._parts if part.upper > self.value and self._fits(part)]
        return min(able, key=lambda part: (part.sets, part.graph.n), default=None)

    def _seek_next(self) -> None:
        """Search the atom that comes next."""
        part = self._next()
        most = self.value if self._weights is None else min(self._known, int(min(part.upper, 1 << 62))) - 1
        found = self._seek(part, most)
        if found.known and found.order is None:
            self.value, self.method = most + 1, SOUGHT

    def _able(self) -> list[str]:
        """What there is to do."""
        able = [SOUGHT] if self._next() is not None else []
        if self._probes():
            able.append(PROBE)
        tries = TRIES if able or math.isinf(self._end) else 8 * TRIES
        if self._under_way is not None or self._tries < tries:
            able.append(MINOR)
        return able

    def _step(self) -> bool:
        able, begun = self._able(), time.perf_counter()
        if not able or begun >= self._end:
            return False
        kind = min(able, key=self._spent.__getitem__)
        if kind == MINOR:
            self._contract(self._end)
        elif kind == PROBE:
            self._probe()
        else:
            self._seek_next()
        self._spent[kind] += time.perf_counter() - begun
        return True

    def _more(self) -> bool:
        return bool(self._able())

    def _upper(self) -> float:
        return max((part.upper for part in self._parts), default=math.inf)


class FillBounds(EliminationBounds):
    """Of the edges of chordal completions, the graph's included; cycles (ptr, nodes) prove a bound."""

    fill = True
    most_nodes = exact.MOST_SOUGHT

    def _search(self, graph: Graph, most: int, limit: int, weights: np.ndarray | None) -> Found:
        return exact.seek(graph, most, limit, self._compiled)

    def _set_bytes(self, n: int) -> int:
        return SET_BYTES

    def _begin(self, end: float) -> None:
        end = min(end, self._end)
        self.ptr, self.nodes = cycles.packed(self._graph, lambda: time.perf_counter() > end)
        self.value = self._graph.edges + self.packed
        self.method = CYCLES
        if self._cuts:
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
