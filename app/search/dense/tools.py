"""The toolboxes of dense subgraphs: what both kinds share, and the densest subgraph."""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from app.bounds.clique.degeneracy import core_order
from app.bounds.dense.balance import Balance
from app.bounds.dense.bounds import LoadBounds, round_seconds
from app.bounds.dense.witness import LoadBound, shares_of
from app.errors import FixedNodesError
from app.graphs.dense import (
    ROOM,
    DenseGraph,
    dense_graph,
    refuse_negative,
    row_sums,
    sizes_of,
    weights_of,
)
from app.graphs.fixed_point import rounded_words, vanished_words
from app.graphs.graph import Graph, index_type
from app.graphs.lists import entries_of
from app.graphs.orders import places_of
from app.search.dense.baselines import BASELINES, Rule, densest_head, peeled
from app.search.dense.search import DensestSearch
from app.search.node_tools import fault_of_set
from app.toolbox import Baseline, Bounds, Instance, Look, Search, Toolbox

ENTRY_SECONDS = 3e-7  # of a round of peeling and a cut, for each entry, about
PEEL_SECONDS, START_SHARE = 2e-7, 0.8  # of a start, for each node and entry, about; of a time limit
MORE_ROUNDS = 3  # on a core, after which it is cut again where they have found a denser set


class DenseTools(Toolbox):
    """Sets of nodes with much weight inside; a solution is [n] bool.

    asked    the graph of the nodes that may be chosen      names   [a] these
    inner    what reductions leave of it, the core          places  [m] its nodes among those of `asked`

    """

    bounds_follow = True
    baseline_costs: ClassVar = {"peeling": 2e-7, "adding": 2e-7, "core": 2e-7, "random": 5e-8}

    def __init__(self, instance: Instance, problem: Any) -> None:
        graph = self.graph = instance.graph
        self.instance, self.problem = instance, problem
        self.sense, self.words = problem.sense, problem.solution
        self._refuse(graph)
        self.size, self.size_unit = self._sizes(graph)
        room = (1 << ROOM) // max(int(self.size.sum()), 1)
        self.weight, self.weight_unit = weights_of(graph, min(room, 1 << 52))
        self.remark = vanished_words(graph.weights, self.weight_unit)
        self.whole = dense_graph(graph.indptr, graph.indices, self.weight, self.size)
        barred = np.zeros(graph.n, dtype=bool)
        barred[instance.outside] = True
        self.names = np.flatnonzero(~barred)
        self.asked = self.whole.part(self.names) if barred.any() else self.whole
        self._valued: tuple[np.ndarray, tuple[int, int]] | None = None  # the last set, its weight and size
        self._take(self.asked, np.arange(self.asked.n))

    def _refuse(self, graph: Graph) -> None:
        """Raises CaseError for weights that a kind has no use for."""

    def _sizes(self, graph: Graph) -> tuple[np.ndarray, float]:
        """[n] int64, what nodes count, and the unit of that."""
        return np.ones(graph.n, dtype=np.int64), 1.0

    def _take(self, inner: DenseGraph, places: np.ndarray) -> None:
        """The core."""
        self.inner, self.places = inner, places
        self.core = Graph(
            self.graph.name, inner.n, 0, inner.n, inner.indptr, inner.indices.astype(index_type(inner.n)),
            len(inner.indices) // 2,
        )  # fmt: skip

    # ---- core and instance ---------------------------------------------------------------------------------

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, of a set [m] of the core."""
        solution = np.zeros(self.graph.n, dtype=bool)
        solution[self.names[self.places[core_solution]]] = True
        return solution

    def _inside(self, solution: np.ndarray) -> tuple[int, int]:
        """The weight of the edges in a set, and its size, by the rows of the whole graph."""
        if self._valued is None or not np.array_equal(self._valued[0], solution):
            graph = self.graph
            entries = entries_of(graph.indptr, np.flatnonzero(solution))
            inner = entries[solution[graph.indices[entries]]]
            found = int(self.weight[inner].sum()) // 2, int(self.size[solution].sum())
            self._valued = solution.copy(), found
        return self._valued[1]

    def measures(self, solution: np.ndarray) -> dict[str, float | int]:
        """How many nodes and edges are inside, what these weigh, and how dense that is."""
        weight, size = self._inside(solution)
        count, graph = int(np.count_nonzero(solution)), self.graph
        both = solution[graph.indices] & np.repeat(solution, np.diff(graph.indptr))
        edges = int(np.count_nonzero(both)) // 2
        return {
            "nodes": count, "edges": edges, "weight": _told(weight, self.weight_unit),
            "average": weight * self.weight_unit / (size * self.size_unit) if size else 0.0,
            "density": 2 * edges / (count * (count - 1)) if count > 1 else 0.0,
        }  # fmt: skip

    # ---- tools ---------------------------------------------------------------------------------------------

    def baselines(self) -> dict[str, Baseline]:
        """Plain sets."""
        if not self.asked.n:
            return {}
        return {name: partial(self._plain, rule, label) for name, (rule, label) in BASELINES.items()}

    def _plain(self, rule: Rule, label: str) -> tuple[np.ndarray, str]:
        solution = np.zeros(self.graph.n, dtype=bool)
        solution[self.names[self._of_order(rule(self.asked, self.instance.compiled))]] = True
        return solution, label

    @abstractmethod
    def _of_order(self, order: np.ndarray) -> np.ndarray:
        """[a] bool, what the kind takes of an order of the nodes of `asked`."""


class AverageTools(DenseTools):
    """The densest subgraph: most weight of inner edges for each node, or for the sizes of the nodes.

    Values are codes of ratios (app/graphs/dense.py). A node goes that has, beside the nodes that are left,
    less weight for its size than the best density p/q that is known: without it a set would be denser. The
    cut nodes take all of what they have left, which is below p/q too: loads of the core prove bounds of the
    graph.

    gone   [a] int64, when a node was cut; those of the core last

    """

    usual_steps, first_steps = 10_000, 1  # each goes over the whole core

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        if len(instance.inside):
            raise FixedNodesError("the densest subgraph takes no nodes inside; outside alone would be right")
        if not len(self.names) and self.graph.n:
            raise FixedNodesError("no node may be chosen; one or more outside less would be right")
        rounded = rounded_words(self.size, self.graph.node_weights, self.size_unit, "sizes of nodes")
        self.remark = "; ".join(filter(None, (self.remark, rounded)))
        self.scale = ROOM - 1 - math.frexp(self._upper())[1]
        self.unit = self.weight_unit / self.size_unit * 2.0**-self.scale
        self.gone = np.full(self.asked.n, self.asked.n, dtype=np.int64)
        self.known = np.zeros(self.asked.n, dtype=bool)  # the densest set that reductions have met
        self.reduction_steps = 0

    def _refuse(self, graph: Graph) -> None:
        refuse_negative(graph)

    def _sizes(self, graph: Graph) -> tuple[np.ndarray, float]:
        return sizes_of(graph)

    def _upper(self) -> float:
        """What no density of allowed nodes exceeds: each edge goes to its end of less weight for its size."""
        graph = self.asked
        rank = places_of(np.argsort(graph.degree() / graph.size, kind="stable")).astype(np.int32)
        lower = np.repeat(rank, np.diff(graph.indptr)) < rank[graph.indices]
        load = row_sums(np.where(lower, graph.weight, 0), graph.indptr)
        return float((load / graph.size).max(initial=0)) * (1 + 1e-9)

    def code(self, weight: int, size: int) -> int:
        """The code of a ratio."""
        return (weight << self.scale) // size

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def reduce_seconds(self) -> float:
        """An estimate of the first step of `reduce`, which ends in time after each."""
        return ENTRY_SECONDS * len(self.asked.indices)

    def reduce(self, look: Look, most: int = 0) -> str:
        """Cut nodes of too little weight, as long as rounds of peeling find denser sets; steps are rounds."""
        more = partial(self._has_step, look, most)
        while self.inner.n and more() and self._cut(more):
            pass
        return f"{self.inner.n} of {self.graph.n} nodes, {self.core.edges} of {self.graph.edges} edges left"

    def _has_step(self, look: Look, most: int) -> bool:
        """Whether there is room for one step more, which is counted."""
        if (most and self.reduction_steps >= most) or look():
            return False
        self.reduction_steps += 1
        return True

    def _cut(self, more: Callable[[], bool]) -> bool:
        """Cut once, by a first round, then make some more; True where another cut may be worth its time."""
        inner, places = self.inner, self.places
        balance = Balance(inner, None, self.instance.compiled)
        balance.know(self.known[places])
        balance.round()
        p, q = balance.best.reduced()
        first, order = balance.load[balance.order], balance.order
        short = first * q < p * inner.size[order]
        count = int(short.argmin()) if not short.all() else 0
        met, left = balance.best, MORE_ROUNDS
        while left and more():
            balance.round()
            left -= 1
        self.known[:] = False
        self.known[places[balance.chosen]] = True
        self.gone[places[order[:count]]] = np.arange(count) + int((self.gone < self.asked.n).sum())
        kept = np.sort(order[count:])
        if count:
            self._take(inner.part(kept), places[kept])
        return not left and balance.best != met

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """[m] bool, what of a set the core has; the start where that is nothing."""
        found = solution.astype(bool)[self.names[self.places]]
        return found if found.any() or not len(found) else self.start()

    def value(self, solution: np.ndarray) -> int:
        """The code of its density."""
        weight, size = self._inside(solution)
        return self.code(weight, size) if size else 0

    def fault(self, solution: np.ndarray) -> str | None:
        """What is no mask, fixed on the wrong side, or empty."""
        if (wrong := fault_of_set(self, solution)) is not None:
            return wrong
        if self.graph.n and not solution.any():
            return f"the {self.words} has no node"
        return None

    # ---- tools ---------------------------------------------------------------------------------------------

    @property
    def unready(self) -> bool:
        """Whether there is no time for a round of peeling by weights."""
        late = PEEL_SECONDS * (self.inner.n + len(self.inner.indices)) > START_SHARE * self.instance.seconds
        return late and not self.known.any()

    def start(self) -> np.ndarray:
        """The densest set that reductions have met, or peeling: by weights, where there is time for that."""
        return self._begun.copy()

    @cached_property
    def _begun(self) -> np.ndarray:
        if not self.inner.n:
            return np.zeros(0, dtype=bool)
        found = self.known[self.places]
        if found.any():
            return found
        compiled = self.instance.compiled
        if self.unready:  # the node of fewest neighbours goes, whatever edges and nodes weigh: in linear time
            return densest_head(self.inner, core_order(self.core, compiled)[0][::-1])
        return densest_head(self.inner, peeled(self.inner, compiled))

    @cached_property
    def search_seconds(self) -> float:
        """An estimate of making a search of a large core, with its first round."""
        begun = self._begin_seconds
        return begun + round_seconds(self.inner) if begun else 0.0

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Rounds of peeling and flows; none where there is no node."""
        if not self.inner.n:
            return None
        return DensestSearch(self.inner, self.code, start, seed, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Balanced loads."""
        if not self.inner.n:
            return None
        return LoadBounds(self.inner, self.code, self._shares, self.instance.compiled)

    def _shares(self, held: np.ndarray, one: int) -> np.ndarray:
        """The shares of the edges of `asked`, of what rows of the core hold; the first end to go has all."""
        asked, last = self.asked, self.asked.n
        rows = asked.rows()
        mine, other = self.gone[rows], self.gone[asked.indices]
        whole = np.where(mine < other, one * asked.weight, 0)
        whole[(mine == last) & (other == last)] = held
        return shares_of(asked, whole)

    def prove(self, proof: LoadBound) -> int:
        """Check the shares on the edges of the nodes that may be chosen."""
        return proof.proved(self.asked, self.scale)

    def _of_order(self, order: np.ndarray) -> np.ndarray:
        return densest_head(self.asked, order)


def _told(value: int, unit: float) -> float | int:
    """A value in its unit."""
    return value if unit == 1 else value * unit
