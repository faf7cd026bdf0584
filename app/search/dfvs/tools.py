"""The toolbox of minimum directed feedback vertex sets: reductions, a greedy start, a search, bounds."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.dfvs.bounds import DirectedFeedbackBounds
from app.bounds.dfvs.feasible import SHOWN, cycle_left
from app.errors import FixedNodesError
from app.graphs.digraph import Digraph, digraph_of, from_arcs
from app.graphs.graph import from_edges
from app.proofs.kinds import DirectedFeedbackProof
from app.reductions.dfvs.log import NAMES
from app.reductions.dfvs.reducer import DirectedFeedbackReducer
from app.reductions.dfvs.verify import ARC_SECONDS, verify_log
from app.search.core_bounds import LoggedBounds
from app.search.cover.tools import CoverTools
from app.search.dfvs.baselines import (
    BACKWARD_SECONDS,
    FEEDBACK_BASELINES,
    MOST_WAYS,
    WAYS_SECONDS,
    greedy,
    most_ways,
    needed,
)
from app.search.dfvs.search import DirectedFeedbackSearch, order_without
from app.search.node_tools import NodeTools
from app.toolbox import Baseline, Bounds, Instance, Search

REDUCE_SECONDS = 2e-5  # for each node and arc, about
STEPS = 2_000_000  # of a search, or so many for each node:
STEPS_PER_NODE = 2_000


class Covers:
    """What the toolbox of vertex covers asks its problem for."""

    sense, solution = "minimise", "cover"
    baselines: ClassVar = {}
    bounds: ClassVar = {}


class DirectedFeedbackTools(NodeTools):
    """Sets of nodes without which a digraph has no directed cycle, of least total weight.

    A solution is [n] bool. Nodes with an arc to themselves, and those of weight 0, are in the set from the
    start; nodes that must not be are bypassed: arcs in and out are joined. What is left is `asked`, whose
    nodes are `names` of the graph. Where reductions leave mutual arcs alone the core is one of vertex covers.

    inner, places   the digraph of the core, and its nodes by the numbers of `asked`
    cover           the tools of those vertex covers, or None
    """

    bounds_follow = True
    start_share = 0.8

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        digraph, loops = digraph_of(self.graph)
        self.forced = _forced(digraph, loops, self.weightless(), instance.inside, instance.outside)
        digraph = _bypassed(digraph, self.forced, instance.outside)
        self.names = np.flatnonzero((np.diff(digraph.out_ptr) > 0) | (np.diff(digraph.in_ptr) > 0))
        self.asked = digraph.part(self.names)
        weights = np.ones(self.graph.n, dtype=np.int64) if self.weights is None else self.weights
        self.price = weights[self.names]
        self.reducer: DirectedFeedbackReducer | None = None
        self.cover: CoverTools | None = None
        self._take(self.asked, np.arange(self.asked.n), np.zeros(self.asked.n, dtype=bool))

    def _take(self, inner: Digraph, places: np.ndarray, chosen: np.ndarray) -> None:
        """The core: `chosen` [n of asked] bool is in the set beside it."""
        self.inner, self.places, self.chosen = inner, places, chosen
        self.own_price = self.price[places]
        self._begun: np.ndarray | None = None  # the greedy set of `inner`
        self.core = inner.pattern(self.graph.name)
        forced = self.forced.copy()
        forced[self.names[chosen]] = True
        self.offset = self.value(forced)

    @property
    def uniform(self) -> bool:
        """Whether all nodes of the core weigh one."""
        return bool((self.own_price == 1).all())

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def usual_steps(self) -> int:
        """Of a search where a case sets no limit."""
        return self.cover.usual_steps if self.cover else max(STEPS, STEPS_PER_NODE * self.inner.n)

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes."""
        return REDUCE_SECONDS * (self.asked.n + self.asked.arcs)

    @property
    def reduction_steps(self) -> int:
        """Of the reductions so far."""
        beside = self.cover.reduction_steps if self.cover else 0
        return beside + (self.reducer.steps if self.reducer else 0)

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Apply exact reductions, all or as many as there is time for."""
        self.reducer = reducer = DirectedFeedbackReducer(self.asked, self.price)
        reducer.reduce(look, most)
        self._take(*reducer.kernel(), reducer.chosen)
        if self.inner.n and not reducer.over and self.inner.mutual.all():
            self._take_covers(look, most - reducer.steps if most else 0)
        used = [f"{name} {count}" for name, count in zip(NAMES, reducer.counts) if count]
        used += ["vertex covers"] if self.cover else []
        return (
            f"reduced to {self.core.n} of {self.graph.n} nodes, {self.inner.arcs} of {self.asked.arcs} arcs"
            f" ({', '.join(used) or 'no rule applies'})"
        )

    def _take_covers(self, look: Callable[[], Any], most: int) -> None:
        """All arcs are mutual: a set is a vertex cover of the pairs."""
        tails, heads = self.inner.tails(), self.inner.out
        pairs = from_edges(self.inner.n, tails, heads, name=self.graph.name)
        price = None if self.uniform else self.own_price
        asked = Instance(pairs, None, compiled=self.instance.compiled, whole_weights=price,
                         most_bytes=self.instance.most_bytes)  # fmt: skip
        self.cover = CoverTools(asked, Covers())
        self.cover.reduce(look, most)
        self.core = self.cover.core

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, with the nodes that are in the set beside the core."""
        inner = core_solution if self.cover is None else self.cover.lift(core_solution)
        solution = self.forced.copy()
        solution[self.names[self.chosen]] = True
        solution[self.names[self.places[inner]]] = True
        return solution

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A core solution that follows a set [n] bool; cycles that it leaves are broken greedily."""
        asked = solution[self.names]
        if self.reducer is not None:
            asked = self.reducer.moved(asked)
        inner = self._completed(asked[self.places])
        return inner if self.cover is None else self.cover.restrict(inner)

    def _completed(self, chosen: np.ndarray) -> np.ndarray:
        compiled = self.instance.compiled
        if len(order_without(self.inner, chosen, compiled)) < np.count_nonzero(~chosen):
            chosen = greedy(self.inner, self.own_price, chosen, compiled=compiled)
        return needed(self.inner, self.own_price, chosen, compiled)

    def value_of_core(self, value: int) -> int:
        """The instance's value for the value (bound) of a core solution."""
        return self.offset + (value if self.cover is None else self.cover.value_of_core(value))

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        own = value - self.offset
        return own if self.cover is None else self.cover.core_value(own)

    def fault(self, solution: np.ndarray) -> str | None:
        """A directed cycle that a set leaves, or a fixed node on the wrong side."""
        wrong = super().fault(solution)
        if wrong is not None or (cycle := cycle_left(self.graph, solution)) is None:
            return wrong
        shown = self.graph.called(*cycle[:SHOWN], *(cycle[:1] if len(cycle) <= SHOWN else ()))
        more = "" if len(cycle) <= SHOWN else f"-... of {len(cycle)} nodes"
        return f"the {self.words} leaves the directed cycle {shown}{more}"

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """The greedy set, without the nodes that are not needed."""
        if self.cover is not None:
            return self.cover.start()
        if self._begun is None:
            self._begun = most_ways(self.inner, self.own_price, self.instance.compiled, self.look)[0]
        return self._begun.copy()

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Annealing of orders; of vertex covers their own search; none where nothing is left."""
        if self.cover is not None:
            return self.cover.search(seed, start)
        if not self.inner.n:
            return None
        price = None if self.uniform else self.own_price
        return DirectedFeedbackSearch(self.inner, start, seed, price, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Packed cycles, the linear program of cycles, branch and bound; or those of vertex covers."""
        return CycleBounds(self)

    def prove(self, proof: DirectedFeedbackProof) -> int:
        """Check the reductions step by step, and the witness of what they leave."""
        left, places, paid = verify_log(self.asked, self.price, proof.log)
        price, lower = self.price[places], 0
        if proof.cover is not None:
            if proof.parts or not left.mutual.all():
                raise BadCertificate("vertex covers: not all arcs that are left are mutual")
            pairs = from_edges(left.n, left.tails(), left.out)
            own = None if (price == 1).all() else price
            asked = Instance(pairs, None, compiled=self.instance.compiled, whole_weights=own)
            lower = CoverTools(asked, Covers()).prove(proof.cover)
        seen = np.zeros(left.n, dtype=bool)
        for part in proof.parts:
            part.check(left, price)
            if seen[part.nodes].any():
                raise BadCertificate(f"{part.method}: two parts have a node in common")
            seen[part.nodes] = True
            lower += part.lower
        return self.value(self.forced) + paid + lower

    @property
    def baseline_seconds(self) -> Mapping[str, float]:
        """Estimates of what they take, by name; a start of the whole graph is known."""
        size, known = self.asked.n + self.asked.arcs, self._begun is not None and self.inner is self.asked
        return {"most_ways": 0.0 if known else WAYS_SECONDS * size, "least_backward": BACKWARD_SECONDS * size}

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name, on the whole graph."""
        rules = FEEDBACK_BASELINES | {"most_ways": self._most_ways}
        return {name: partial(self._plain, rule) for name, rule in rules.items()}

    def _most_ways(self, digraph: Digraph, price: np.ndarray, compiled: bool) -> tuple[np.ndarray, str]:
        """That of the whole graph, where no reduction has been made the start."""
        if self._begun is not None and self.inner is self.asked:
            return self._begun, MOST_WAYS
        return most_ways(digraph, price, compiled)

    def _plain(self, rule: Callable[..., Any]) -> tuple[np.ndarray, str]:
        found, label = rule(self.asked, self.price, self.instance.compiled)
        solution = self.forced.copy()
        solution[self.names[found]] = True
        return solution, label


class CycleBounds(LoggedBounds):
    """Lower bounds of the core's sets, with the reductions that prove them of the graph's."""

    def __init__(self, tools: DirectedFeedbackTools) -> None:
        self.tools, cover = tools, tools.cover
        inner = DirectedFeedbackBounds(tools.inner, tools.own_price) if cover is None else cover.bounds()
        super().__init__(inner, tools.reducer, "" if tools.core.n else "no cycles")

    @property
    def check_seconds(self) -> float:
        """The reductions are replayed."""
        asked = self.tools.asked
        return ARC_SECONDS * (asked.n + asked.arcs + len(self.log)) + self.inner.check_seconds

    def proof(self) -> DirectedFeedbackProof:
        """The log of the reductions, and the witness of the core's bound."""
        if self.tools.cover is not None:
            return DirectedFeedbackProof(self.log, (), self.inner.proof())
        return DirectedFeedbackProof(self.log, self.inner.witness())


def _forced(
    digraph: Digraph, loops: np.ndarray, free: np.ndarray, inside: np.ndarray, outside: np.ndarray
) -> np.ndarray:
    """[n] bool, nodes that are in the set whatever else is. Raises FixedNodesError."""
    kept = np.zeros(digraph.n, dtype=bool)
    kept[outside] = True
    if (lost := np.flatnonzero(loops & kept)).size:
        raise FixedNodesError("{} has an arc to itself and is to be outside the feedback vertex set", lost[0])
    forced = loops | (free & ~kept)
    forced[inside] = True
    if len(order_without(digraph, ~kept)) < len(outside):
        label = digraph.part(np.flatnonzero(kept)).components()
        lost = np.flatnonzero(kept)[np.flatnonzero(np.bincount(label)[label] > 1)]
        raise FixedNodesError("{} and others that are to be outside the set have a directed cycle", lost[0])
    return forced


def _bypassed(digraph: Digraph, forced: np.ndarray, outside: np.ndarray) -> Digraph:
    """What is left without the forced nodes [n] bool, and with arcs joined at those outside [k]; nodes that
    have loops by that are forced from then on, and go too.
    """
    if not (forced.any() or len(outside)):
        return digraph
    tails, heads = digraph.tails(), digraph.out.astype(np.int64)
    while True:
        kept = ~forced[tails] & ~forced[heads]
        left, _ = from_arcs(digraph.n, tails[kept], heads[kept])
        if not len(outside):
            return left
        left, loops = _joined(left, outside)
        if not loops.any():
            return left
        forced |= loops


def _joined(digraph: Digraph, outside: np.ndarray) -> tuple[Digraph, np.ndarray]:
    """Without the nodes [k], whose arcs in and out are joined; and [n] bool, nodes with loops by that."""
    succ = {
        v: set(digraph.out[digraph.out_ptr[v] : digraph.out_ptr[v + 1]].tolist()) for v in range(digraph.n)
    }
    pred = {
        v: set(digraph.into[digraph.in_ptr[v] : digraph.in_ptr[v + 1]].tolist()) for v in range(digraph.n)
    }
    for v in outside.tolist():
        heads, tails = succ.pop(v), pred.pop(v)
        for u in tails:
            succ[u].discard(v)
            succ[u] |= heads
        for w in heads:
            pred[w].discard(v)
            pred[w] |= tails
    ends = np.array([(u, w) for u, heads in succ.items() for w in heads], dtype=np.int64).reshape(-1, 2)
    return from_arcs(digraph.n, ends[:, 0], ends[:, 1])
