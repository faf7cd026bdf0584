"""The toolbox of linear arrangements: components apart, plain starts, a search, bounds."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from app.bounds.arrangement.bounds import ArrangementBounds
from app.bounds.arrangement.witness import ArrangementProof
from app.errors import NoneFound
from app.graphs.arrangement import (
    BANDWIDTH,
    MIRRORED,
    SEPARATION,
    WEIGHTED,
    Arrangement,
    arrangement_of,
)
from app.graphs.fixed_point import vanished_words
from app.graphs.keys import sorted_set
from app.graphs.orders import places_of, with_the_rest
from app.graphs.weights import decimals_of
from app.search.arrangement.baselines import LOOKING, RULES, SECONDS, better_way, breadth_first
from app.search.arrangement.search import ArrangementSearch
from app.search.core_bounds import InnerBounds
from app.search.order_tools import OrderTools
from app.toolbox import Baseline, Bounds, Instance, Search

STEPS, STEPS_PER_NODE = 3_000_000, 100  # of a search, or so many for each node
SEARCH_SECONDS = 1e-7  # of making a search, for each node and entry, about
CLOSING_SECONDS = 2e-7  # of a check and the five values, for each node and entry


class ArrangementTools(OrderTools):
    """Orders of the nodes of one graph, worth what problem.arrange says (app/graphs/arrangement.py).

    Nodes without edges pay nothing, wherever they stand, and the core has none. Components stand one after
    the other, in the order of their lowest nodes: nodes of others between those of one make no sum smaller
    and no width either. Of separation, a node that has several neighbours of degree one keeps one of them in
    the core. Proof: let l be the one that is kept, v its neighbour, m another.

        l behind v     m goes right before l. The front of the new gap is that of the one before l: v has l
                       behind it, and m itself none.
        l before v     l goes right behind v first. Between v and l the front is at most that behind v and v
                       itself, one more; before v it had l, which is one less: no gap passes what was there.

    asked   the question     inner   that of the core, whose `nodes` are grouped by components
    """

    start_share = 0.5

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        self.asked = arrangement_of(instance.graph, instance.asked.arrange)
        self.unit, self.weights = self.asked.unit, self.asked.weights
        if self.asked.kind in WEIGHTED:
            self.remark = vanished_words(self.graph.weights, self.unit)
        self.label = self.asked.parts(instance.compiled)
        self.leaves = np.zeros(0, dtype=np.int64)
        self._made: dict[str, np.ndarray] = {}  # plain orders of the start, those that came to their end
        self._valued: tuple[np.ndarray, int] | None = None  # the order that was valued last, and its value
        self._take(np.diff(self.asked.indptr) > 0)

    def _take(self, inside: np.ndarray) -> None:
        """The core has these nodes, component by component."""
        nodes = np.flatnonzero(inside)
        self.nodes = nodes[np.argsort(self.label[nodes], kind="stable")]
        self.inner: Arrangement = self.asked.induced(self.nodes)
        self.core = self.inner.pattern(self.graph.name)

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def usual_steps(self) -> int:
        """Of a search where a case sets no limit."""
        return max(STEPS, STEPS_PER_NODE * self.inner.n)

    @property
    def search_seconds(self) -> float:
        """An estimate of what making a search takes."""
        return SEARCH_SECONDS * (self.inner.n + len(self.inner.indices))

    @property
    def closing_seconds(self) -> float:
        """An estimate of what is made of an answer."""
        return CLOSING_SECONDS * self._size

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Take out nodes of degree one beside others, of separation."""
        asked = self.asked
        degree = np.diff(asked.indptr)
        parts = len(sorted_set(self.label[degree > 0]))
        if asked.kind == SEPARATION:
            lone = np.flatnonzero(degree == 1)
            _, first = np.unique(asked.indices[asked.indptr[lone]], return_index=True)
            more = np.ones(len(lone), dtype=bool)
            more[first] = False
            self.leaves = lone[more]
            inside = degree > 0
            inside[self.leaves] = False
            self._take(inside)
        used = {"no edge": int((degree == 0).sum()), "leaves": len(self.leaves)}
        told = ", ".join(f"{name} {count}" for name, count in used.items() if count) or "no node goes"
        words = "component" if parts == 1 else "components"
        given = self.graph.weights
        ignored = asked.kind not in WEIGHTED and given is not None and bool((given != 1).any())
        more = "; weights of edges are not counted" if ignored else ""
        return f"reduced to {self.inner.n} of {self.graph.n} nodes, {parts} {words} ({told}){more}"

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] int64, the canonical order: components by their lowest nodes, and of the two ways round, where
        both are worth the same, that which begins with the lower node; nodes without edges last.
        """
        order = self._with_leaves(self.nodes[core_solution])
        order = order[np.argsort(self.label[order], kind="stable")]
        if self.asked.kind in MIRRORED and len(order):
            label = self.label[order]
            first = np.flatnonzero(np.append(True, label[1:] != label[:-1]))
            last = np.append(first[1:], len(order)) - 1
            turned = np.repeat(order[last] < order[first], last - first + 1)
            place = np.arange(len(order))
            mirror = np.repeat(first + last, last - first + 1) - place
            order = order[np.where(turned, mirror, place)]
        return with_the_rest(order, self.graph.n)

    def _with_leaves(self, order: np.ndarray) -> np.ndarray:
        """An order of the core's nodes with those of degree one that went, as the class proves it."""
        if not len(self.leaves):
            return order
        asked, n = self.asked, self.graph.n
        at = asked.indices[asked.indptr[self.leaves]].astype(np.int64)
        held = np.ones(n, dtype=bool)
        held[self.leaves] = False
        lone = np.flatnonzero((np.diff(asked.indptr) == 1) & held)
        kept = np.full(n, -1, dtype=np.int64)
        kept[asked.indices[asked.indptr[lone]]] = lone
        place = np.full(n, -1, dtype=np.int64)
        place[order] = 4 * np.arange(len(order)) + 1
        own = sorted_set(at)
        place[kept[own]] = np.maximum(place[kept[own]], place[own] + 2)  # behind v, room before it
        place[self.leaves] = place[kept[at]] - 1
        order = np.concatenate([order, self.leaves])
        return order[np.argsort(place[order], kind="stable")]

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """The core's nodes as they stand in an order, component by component."""
        place = places_of(solution)
        return np.lexsort((place[self.nodes], self.label[self.nodes]))

    def value(self, solution: np.ndarray) -> int:
        """What an order is worth, in units."""
        if self._valued is None or not np.array_equal(self._valued[0], solution):
            self._valued = solution.copy(), self.asked.value(solution)
        return self._valued[1]

    def measures(self, solution: np.ndarray) -> dict[str, float | int]:
        """What it is worth by each of the five."""
        found: dict[str, float | int] = {}
        decimals = None if self.unit == 1 else decimals_of(self.weights * self.unit)
        for kind, value in self.asked.values(solution).items():
            scaled = kind in WEIGHTED and self.unit != 1
            worth = value * self.unit if scaled else value
            found[kind] = worth if not scaled or decimals is None else round(worth, decimals or None)
        return found

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """The best of the plain orders of the graph, as the core has them, as far as there is time.

        They are those that stand beside an answer, so none of them that was made in time is better than it.
        Where the time is up before the first one, or would be, it is the order by breadth.
        """
        inner, compiled = self.inner, self.instance.compiled
        # Cuthill and McKee's order is made for bandwidths; of the others Sloan's is better, the first.
        names = sorted(RULES, key=lambda each: inner.kind == BANDWIDTH and each != "cuthill_mckee")
        if self._late(names[:1]) or self.look():
            return self.restrict(breadth_first(self.asked, compiled))
        best = np.arange(inner.n)
        worth = inner.value(best)
        for made, name in enumerate(names, 1):
            rule = RULES[name][1]
            look = {"look": self.look} if name in LOOKING else {}
            whole = better_way(self.asked, rule(self.asked, compiled, **look))
            if name not in LOOKING:
                self._made[name] = whole
            order = self.restrict(whole)
            if (value := inner.value(order)) < worth:
                best, worth = order, value
            if self._late(names[: made + 1]) or self.look():
                break
            if name in LOOKING:
                self._made[name] = whole
        return best

    def _late(self, names: list[str]) -> bool:
        """Whether the last of some rules, one after the other, would not end in the time of a start, by their
        estimates: it is not begun then. A replay has no limit, and is told so by its looks.
        """
        most = self.start_share * self.instance.seconds
        deaf = [SECONDS[name] * self._size for name in names if name not in LOOKING]
        late = names[-1] not in LOOKING and 0 < most < sum(deaf)
        self.unready = self.unready or late
        return late

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Annealing in rounds; none where nothing is left."""
        return ArrangementSearch(self.inner, start, seed, self.instance.compiled) if self.inner.n else None

    def bounds(self) -> Bounds | None:
        """Of each component by itself."""
        given = self.instance
        return PartBounds(self, ArrangementBounds(self.inner, given.most_bytes, given.compiled))

    def prove(self, proof: ArrangementProof) -> int:
        """Check the witness of each part."""
        return proof.proved(self.asked)

    @property
    def baseline_seconds(self) -> Mapping[str, float]:
        """Estimates of what they take, by name; those of the start are there."""
        return {name: 0.0 if name in self._made else each * self._size for name, each in SECONDS.items()}

    def baselines(self) -> dict[str, Baseline]:
        """The plain orders by name, on the whole graph."""

        def late() -> bool:
            if self.look():
                raise NoneFound("no time")  # all of an order or none: replays have no clock
            return False

        def order_of(name: str) -> np.ndarray:
            if name in self._made:
                return self._made[name]
            look = {"look": late} if name in LOOKING else {}
            return better_way(self.asked, RULES[name][1](self.asked, self.instance.compiled, **look))

        def made(name: str) -> Baseline:
            return lambda: (order_of(name), RULES[name][0])

        return {name: made(name) for name in RULES}


class PartBounds(InnerBounds):
    """Bounds of the core, with what proves them of the graph."""

    def __init__(self, tools: ArrangementTools, inner: ArrangementBounds) -> None:
        super().__init__(inner)
        self.nodes = tools.nodes

    def proof(self) -> ArrangementProof:
        """The witness of each part."""
        return ArrangementProof([part.moved(self.nodes) for part in self.inner.witness()], self.inner.proved)
