"""The toolbox of maximum coverage: reductions, greedy choices, an exchange search, bounds by prices."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from app.bounds.coverage.bounds import CoverageBounds
from app.bounds.coverage.prices import PriceBound, proved_by, spread
from app.errors import CaseError, FixedNodesError
from app.graphs.covering import count_candidates
from app.graphs.family import Family, ascending_family
from app.graphs.fixed_point import refuse_vanished, whole_numbers
from app.graphs.graph import Graph
from app.graphs.ids import one_id
from app.graphs.lists import rows_with
from app.graphs.weights import decimals_of
from app.proofs.kinds import CoverageProof
from app.reductions.coverage.reducer import CoverageReducer
from app.reductions.coverage.verify import PAIR_SECONDS, left_by
from app.search.core_bounds import InnerBounds
from app.search.coverage.baselines import COVERAGE_BASELINES, by_gain, greedy
from app.search.coverage.search import CoverageSearch
from app.toolbox import Baseline, Bounds, Instance, Search, Toolbox

LARGEST = 2**52  # of the costs of all sets together, in units
REDUCE_SECONDS = 4e-6  # for each pair of a set and an element, about


class CoverageTools(Toolbox):
    """Choices of sets that the budget pays for, worth the weight of the elements that they hold.

    The graph is that of app/graphs/covering.py; a solution is a mask [n] of its nodes, which has sets alone.
    Sets that are to be inside, and those that cost nothing, are chosen from the start; `asked` is what they
    leave: the other sets that may be chosen, and elements of weight above 0 that are not held yet and are in
    one of these that can be paid for, so that the elements of `inner` weigh as much: its prices prove bounds
    of both. A core solution is a mask [m] of the sets of `inner`, which reductions leave of that.

    names    [a] the sets of `asked` by their nodes       held   the elements of `asked`, likewise
    places   [m] the sets of `inner` by their numbers in `asked`
    merged   [.] for each element of `asked` its number in `inner`, or -1
    """

    bounds_follow = True
    usual_steps = 20_000

    def __init__(self, instance: Instance, problem: Any) -> None:
        graph = self.graph = instance.graph
        self.instance, self.problem = instance, problem
        self.sense, self.words = problem.sense, problem.solution
        self.count = count_candidates(graph)
        self._refuse_elements(instance)
        self._take_weights(graph)
        self.budget = self._whole_budget(instance.asked.budget)
        self.forced = self._forced(instance)
        self._ask()
        self.reducer: CoverageReducer | None = None
        every = np.arange(self.asked.m)
        self._take(self.asked, every, np.arange(self.asked.n))

    # ---- the question --------------------------------------------------------------------------------------

    def _refuse_elements(self, instance: Instance) -> None:
        """Raises FixedNodesError where what is fixed is no set."""
        for nodes in (instance.inside, instance.outside):
            if (nodes >= self.count).any():
                found = one_id(self.graph.held_ids(), nodes.max()).replace("{", "{{").replace("}", "}}")
                right = f"{self.problem.candidate}s would be right"
                raise FixedNodesError(f"{found} is no {self.problem.candidate}; {right}")

    def _take_weights(self, graph: Graph) -> None:
        """Weights of elements in their unit, costs of sets in theirs. Raises CaseError, GraphError."""
        given = graph.node_weights
        given = np.ones(graph.n, dtype=np.float32) if given is None else given
        costs, weights = given[: self.count], given[self.count : -1]
        for what, of, first in ((self.problem.candidate, costs, 0), ("element", weights, self.count)):
            if (of < 0).any():
                name = self._called(first + int((of < 0).argmax()))
                kind = "cost" if first == 0 else "weight"
                right = "0 or more would be right"
                raise CaseError(f"{graph.name}: the {kind} of {what} {name} is below 0; {right}")
        self.weights, self.unit = whole_numbers(weights, f"{graph.name}: an element's weight")
        named = f"{graph.name}: the weight of element"
        refuse_vanished(self.weights, weights, lambda i: f"{named} {self._called(self.count + i)}")
        self.scale, self.costs = whole_costs(costs, graph.name)

    def _called(self, node: int) -> str:
        return self.problem.called(self.graph, node)

    def _whole_budget(self, budget: float) -> int:
        """The budget in the unit of the costs, rounded down: sums of costs are whole numbers there."""
        return int(Fraction(repr(float(budget))) * self.scale)

    def _forced(self, instance: Instance) -> np.ndarray:
        """[sets] bool, chosen in any case. Raises FixedNodesError where the budget does not pay for them."""
        forced, self.barred = (np.zeros(self.count, dtype=bool) for _ in range(2))
        forced[instance.inside] = self.barred[instance.outside] = True
        if (cost := int(self.costs[forced].sum())) > self.budget:
            spent = f"what is to be inside costs {shown_cost(cost, self.scale)}"
            raise FixedNodesError(
                f"{spent}, more than problem.budget = {shown_cost(self.budget, self.scale)}"
            )
        return forced | ((self.costs == 0) & ~self.barred)

    def _ask(self) -> None:
        """What the sets that are chosen in any case leave."""
        graph, count = self.graph, self.count
        ends = graph.indptr[: count + 1]
        u = np.repeat(np.arange(count), np.diff(ends))
        v = graph.indices[: ends[-1]].astype(np.int64) - count
        inside = v < len(self.weights)  # the last node is next to all sets
        whole = ascending_family(u[inside], v[inside], self.weights, self.costs, self.budget)
        self.whole = whole
        left = self.budget - int(self.costs[self.forced].sum())
        free = ~(self.forced | self.barred)
        open_ = whole.covered(free & (self.costs <= left)) & ~whole.covered(self.forced) & (self.weights > 0)
        self.names, self.held = np.flatnonzero(free), np.flatnonzero(open_)
        self.asked = whole.part(self.names, self.held, left)
        self.offset = whole.value(self.forced)

    def _take(self, inner: Family, places: np.ndarray, merged: np.ndarray) -> None:
        """The core."""
        self.inner, self.places, self.merged = inner, places, merged
        self.core = inner.pattern(self.graph.name)
        self._begun: np.ndarray | None = None

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes."""
        return REDUCE_SECONDS * self.asked.entries

    @property
    def reduction_steps(self) -> int:
        """Sets that the reductions have looked at."""
        return 0 if self.reducer is None else self.reducer.steps

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Take out sets that others make up for, and join elements that are alike."""
        self.reducer = CoverageReducer(self.asked)
        self.reducer.reduce(look, most)
        self._take(*self.reducer.kernel())
        inner, one = self.inner, self.problem.candidate
        sets = f"reduced to {inner.m} of {self.count} {one}s"
        return f"{sets}, {inner.n} of {len(self.weights)} elements"

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, with the sets that are chosen beside the core."""
        return self._whole_mask(self._of_asked(core_solution))

    def _of_asked(self, core_solution: np.ndarray) -> np.ndarray:
        asked = np.zeros(self.asked.m, dtype=bool)
        asked[self.places[core_solution]] = True
        return asked

    def _whole_mask(self, asked: np.ndarray) -> np.ndarray:
        """[n] bool, of a choice [a] of what is asked."""
        solution = np.zeros(self.graph.n, dtype=bool)
        solution[: self.count] = self.forced
        solution[self.names[asked]] = True
        return solution

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A core solution that follows a set [n] bool: sets that have gone are those that make up for them;
        what the budget does not pay for leaves, the least loss for the cost first, and the rest is spent.
        """
        asked = np.flatnonzero(solution[: self.count][self.names])
        if self.reducer is not None:
            asked = self.reducer.stands_for()[asked]
        chosen = np.zeros(self.inner.m, dtype=bool)
        chosen[np.flatnonzero(np.isin(self.places, asked[asked >= 0]))] = True
        return by_gain(self.inner, False, self.instance.compiled, paid(self.inner, chosen))

    def value_of_core(self, value: int) -> int:
        """The instance's value for the value (bound) of a core solution."""
        return self.offset + value

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value - self.offset

    def value(self, solution: np.ndarray) -> int:
        """The weight of the elements that have a chosen set, by their rows of the graph."""
        ends = self.graph.indptr[self.count : -1]
        held = rows_with(solution[self.graph.indices[ends[0] : ends[-1]]], ends - ends[0])
        return int(self.weights[held].sum())

    def fault(self, solution: np.ndarray) -> str | None:
        """What is no set, what is fixed on the wrong side, or costs above the budget."""
        wrong = self.problem.violation(self.graph, solution)
        if wrong is not None:
            return f"the {self.words} {wrong}"
        if (lost := self.instance.misplaced(solution)) is not None:
            return f"{self.problem.candidate} {self._called(lost[0])} is fixed {lost[1]}"
        cost = sum(self.costs[np.flatnonzero(solution)].tolist())
        return above_budget(self.words, cost, self.budget, self.scale)

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """The greedy choice."""
        if self._begun is None:
            self._begun = greedy(self.inner, self.instance.compiled)
        return self._begun.copy()

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Exchanges; none where nothing is left."""
        if not self.inner.m:
            return None
        return CoverageSearch(self.inner, start, seed, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Prices of elements, and branch and cut."""
        return PricedBounds(self)

    def prove(self, proof: CoverageProof) -> int:
        """Check the reductions entry by entry, then the prices on the sets that they leave."""
        there = np.flatnonzero(left_by(self.asked, proof.log))
        left = self.asked.part(there, np.arange(self.asked.n))
        bound = proof.bound
        return self.offset + proved_by(left, bound.prices, bound.price, bound.one, bound.method)

    def baselines(self) -> dict[str, Baseline]:
        """Plain choices of what is asked."""
        return {name: partial(self._plain, rule, label) for name, (rule, label) in COVERAGE_BASELINES.items()}

    def _plain(self, rule: Callable[..., np.ndarray], label: str) -> tuple[np.ndarray, str]:
        return self._whole_mask(rule(self.asked, self.instance.compiled)), label


class PricedBounds(InnerBounds):
    """Bounds of the core, and of what is asked by the same prices."""

    def __init__(self, tools: CoverageTools) -> None:
        super().__init__(CoverageBounds(tools.inner))
        self.tools = tools
        self.log = np.array(tools.reducer.log if tools.reducer else [], dtype=np.int64)

    @property
    def method(self) -> str:
        """How it was found, reductions included."""
        found = super().method
        if not len(self.log) or not found:
            return found
        return f"reductions, {found}" if self.tools.inner.m else "reductions"

    @property
    def check_seconds(self) -> float:
        """The reductions are replayed."""
        return PAIR_SECONDS * self.tools.asked.entries + self.inner.check_seconds

    def proof(self) -> CoverageProof:
        """The log of the reductions, and prices of the elements of what is asked: those of one in whose place
        the core has another add up to its price.
        """
        tools, best = self.tools, self.inner.best
        prices = spread(best.prices, tools.merged, tools.asked.weight, best.one)
        bound = PriceBound(best.upper, best.method, prices, best.price, best.one)
        return CoverageProof(self.log, bound, self.inner.checked)


def whole_costs(costs: np.ndarray, name: str) -> tuple[int, np.ndarray]:
    """Units to one, and costs [k] float32 in units: 10^d to one of costs of d decimals. Raises CaseError."""
    decimals = decimals_of(costs.astype(np.float64))
    scale = 10 ** (decimals or 0)
    if decimals is None or float(costs.astype(np.float64).sum()) * scale > LARGEST:
        right = "whole numbers, or up to 8 decimals, and a smaller sum would be right"
        raise CaseError(f"{name}: costs have more digits than are kept; {right}")
    return scale, np.rint(costs.astype(np.float64) * scale).astype(np.int64)


def shown_cost(cost: int, scale: int) -> str:
    """A cost in units as it was given."""
    return str(cost) if scale == 1 else f"{cost / scale:.10g}"


def above_budget(words: str, cost: int, budget: int, scale: int) -> str | None:
    """What is wrong with a solution that costs so much, in units; None: the budget pays for it."""
    if cost <= budget:
        return None
    spent = f"the {words} costs {shown_cost(cost, scale)}"
    return f"{spent}, more than problem.budget = {shown_cost(budget, scale)}"


def paid(family: Family, chosen: np.ndarray) -> np.ndarray:
    """[m] bool, a choice [m] without as many sets as it takes to be paid for."""
    left = chosen.copy()
    over = int(family.cost[left].sum()) - family.budget
    while over > 0:
        times = np.bincount(family.elements[np.repeat(left, np.diff(family.set_ptr))], minlength=family.n)
        loss = family.values(np.where(times == 1, family.weight, 0)) / family.cost
        gone = int(np.where(left, loss, np.inf).argmin())
        left[gone] = False
        over -= int(family.cost[gone])
    return left
