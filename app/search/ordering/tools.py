"""The toolbox of orders of little weight backward: reductions, a greedy start, a search, bounds."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.ordering.bounds import OrderingBounds
from app.graphs.fixed_point import vanished_words
from app.graphs.ordering import NetArcs, canonical_order, ordering_of
from app.graphs.orders import with_the_rest
from app.proofs.kinds import OrderingProof
from app.reductions.ordering.log import NAMES
from app.reductions.ordering.reducer import OrderingReducer
from app.reductions.ordering.verify import ARC_SECONDS, verify_log
from app.search.core_bounds import LoggedBounds
from app.search.order_tools import OrderTools
from app.search.ordering.baselines import (
    MOST_QUOTIENTS,
    MOST_WORK,
    ORDERING_BASELINES,
    QUOTIENT_SECONDS,
    SECONDS,
    eades_lin_smyth,
    net_weight,
)
from app.search.ordering.search import OrderingSearch
from app.toolbox import Baseline, Bounds, Instance, Search

REDUCE_SECONDS = 6e-6  # for each node and arc, about
STEPS, STEPS_PER_NODE = 3_000_000, 200  # of a search, or so many for each node
DESCENT = 30  # steps for each node from an order that a linear program leads to
SEARCH_SECONDS = 2e-7  # of making a search, for each node and arc, about


class OrderingTools(OrderTools):
    """Orders of the nodes of one digraph, worth the weight of arcs that lead backward.

    asked   the question (app/graphs/ordering.py)     inner   the net arcs of the core
    """

    start_share = 0.8

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        self.asked = ordering_of(instance.graph)
        self.unit, self.weights = self.asked.unit, self.asked.weights
        self.remark = vanished_words(self.graph.weights, self.unit)
        net = self.asked.net
        self.reducer: OrderingReducer | None = None
        self._valued: tuple[np.ndarray, int] | None = None  # the order that was valued last, and its value
        self._take(net.part(net.ends), net.ends)

    def _take(self, inner: NetArcs, nodes: np.ndarray) -> None:
        self.inner, self.nodes = inner, nodes
        self.core = inner.pattern(self.graph.name)

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def _entries(self) -> int:
        """Nodes and net arcs."""
        return self.asked.net.n + self.asked.net.arcs

    @property
    def usual_steps(self) -> int:
        """Of a search where a case sets no limit."""
        return max(STEPS, STEPS_PER_NODE * self.inner.n)

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes."""
        return REDUCE_SECONDS * self._entries

    @property
    def search_seconds(self) -> float:
        """An estimate of what making a search takes."""
        return SEARCH_SECONDS * (self.inner.n + self.inner.arcs)

    @property
    def reduction_steps(self) -> int:
        """Looks at the clock of the reductions so far."""
        return self.reducer.steps if self.reducer else 0

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Apply exact reductions, all or as many as there is time for."""
        self.reducer = reducer = OrderingReducer(self.asked.net)
        reducer.reduce(look, most)
        self._take(*reducer.kernel())
        used = [f"{name} {count}" for name, count in zip(NAMES, reducer.counts) if count]
        return (
            f"reduced to {self.inner.n} of {self.graph.n} nodes, {self.inner.arcs} of {self.asked.net.arcs}"
            f" net arcs ({', '.join(used) or 'no rule applies'})"
        )

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] int64, the canonical order of those that are the same answer."""
        if self.reducer is None:
            order = with_the_rest(self.nodes[core_solution], self.graph.n)
        else:
            order = self.reducer.lift(core_solution)
        return canonical_order(self.asked.net, order, self.instance.compiled)

    @property
    def _beside(self) -> int:
        """What every order pays beside the core."""
        return self.asked.paid + (self.reducer.paid if self.reducer else 0)

    def value_of_core(self, value: int) -> int:
        """The instance's value for the value (bound) of a core solution."""
        return value + self._beside

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value - self._beside

    def value(self, solution: np.ndarray) -> int:
        """The weight of all arcs that lead backward."""
        if self._valued is None or not np.array_equal(self._valued[0], solution):
            self._valued = solution.copy(), self.asked.value(solution)
        return self._valued[1]

    def split(self, solution: np.ndarray) -> dict[str, int]:
        """What is kept: the weight of all arcs that lead forward."""
        return {"kept": self.asked.total - self.value(solution)}

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """The greedy order of the core; by the weight of arcs where the time is up already."""
        if self.look():
            return net_weight(self.inner, self.instance.compiled)[0]
        return eades_lin_smyth(self.inner, self.instance.compiled)[0]

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Iterated local search; none where nothing is left."""
        return OrderingSearch(self.inner, start, seed, self.instance.compiled) if self.inner.n else None

    def bounds(self) -> Bounds | None:
        """Packed cycles, the linear program of cycles, branch and bound."""
        return CycleBounds(self)

    def prove(self, proof: OrderingProof) -> int:
        """Check the reductions step by step, and the witness of what they leave."""
        net, paid = self.asked.net, 0
        if len(proof.log):
            net, _, paid = verify_log(net, proof.log)
        else:
            net = net.part(net.ends)
        used, lower = np.zeros(net.arcs, dtype=bool), 0
        for part in proof.parts:
            part.check(net)
            inside = np.zeros(net.n, dtype=bool)
            inside[part.nodes] = True
            own = inside[net.tails] & inside[net.heads]
            if used[own].any():
                raise BadCertificate(f"{part.method}: two parts have an arc in common")
            used |= own
            lower += part.lower
        return self.asked.paid + paid + lower

    @property
    def baseline_seconds(self) -> Mapping[str, float]:
        """Estimates of what they take, by name."""
        known = {name: each * self._entries for name, each in SECONDS.items()}
        return known | {"quotients": QUOTIENT_SECONDS * self.graph.n**2}

    @property
    def left_out(self) -> str:
        """Quotients, of large graphs."""
        n = self.graph.n
        return "" if n <= MOST_QUOTIENTS or n * self.asked.net.arcs <= MOST_WORK else "quotients"

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name, on the whole graph."""
        rules = {name: rule for name, rule in ORDERING_BASELINES.items() if name != self.left_out}
        return {name: partial(self._plain, rule) for name, rule in rules.items()}

    def _plain(self, rule: Callable[..., Any]) -> tuple[np.ndarray, str]:
        order, label = rule(self.asked.net, self.instance.compiled)
        return canonical_order(self.asked.net, order, self.instance.compiled), label


def _descended(compiled: bool, net: NetArcs, order: np.ndarray) -> np.ndarray:
    """A local optimum near an order of net arcs, or better."""
    search = OrderingSearch(net, order, 0, compiled)
    search.run(DESCENT * net.n)
    return search.solution()


class CycleBounds(LoggedBounds):
    """Lower bounds of the core's orders, with the reductions that prove them of the graph's."""

    def __init__(self, tools: OrderingTools) -> None:
        self.tools, compiled = tools, tools.instance.compiled
        inner = OrderingBounds(tools.inner, compiled, partial(_descended, compiled))
        super().__init__(inner, tools.reducer, "" if tools.core.n else "no cycles")

    @property
    def check_seconds(self) -> float:
        """The reductions are replayed."""
        replayed = self.tools._entries + len(self.log) if len(self.log) else 0
        return ARC_SECONDS * replayed + self.inner.check_seconds

    def proof(self) -> OrderingProof:
        """The log of the reductions, and the witness of the core's bound."""
        return OrderingProof(self.log, self.inner.witness())
