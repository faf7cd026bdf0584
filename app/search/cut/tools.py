"""The toolbox of maximum cut: two sides of all nodes, and the weight of the edges between them."""

import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from app.bounds.cut.bounds import CutBounds
from app.graphs.fixed_point import integer_weights, vanished_words
from app.graphs.graph import Graph
from app.proofs.kinds import CutProof
from app.reductions.cover import verify_compiled
from app.reductions.cut.reducer import CutKernel, CutReducer, fixed_sides, kernel_of, unit_places
from app.reductions.cut.verify import verify_log
from app.search.core_bounds import CoreBounds
from app.search.cut.baselines import greedy_descent
from app.search.cut.search import CutSearch
from app.search.cut.tree import CutTree, suits
from app.toolbox import Baseline, Bounds, Instance, Search, Toolbox, Tree, rule_of

LARGE = 1 << 20  # entries
FEW = 3  # neighbours of a node that a rule asks for; else for nodes with the same neighbours
REDUCE_SECONDS = 4e-7  # of reductions, for each node and entry
SEARCH_SECONDS = 1.5e-7  # of what a search begins with, likewise
POLISH_SWEEPS, POLISH_SHARE = 50, 0.25  # of a search from a cut of prices; of the time of bounds
LEAD = 0.1  # of what is open between the best cut and the bound
LOG_SECONDS = 5e-6  # of the plain check of reductions, for each word of their log


def step_of_cuts(graph: Graph, weights: np.ndarray) -> int:
    """A whole number of which the weights of all cuts are multiples, at least 1.

    Where a node changes sides, the cut changes by its whole weight less twice what is across. So that all of
    them are multiples of whatever divides the weights at every node, and all weights doubled: in graphs whose
    degrees are even all cuts are.

    weights   [nnz] int64, in units
    """
    return max(int(np.gcd(np.gcd.reduce(at_nodes(graph, weights)), np.gcd.reduce(2 * weights))), 1)


def at_nodes(graph: Graph, weights: np.ndarray) -> np.ndarray:
    """[n] int64, the sum of the weights [nnz] int64 at each node."""
    return np.add.reduceat(np.append(weights, 0), graph.indptr[:-1]) * (graph.degrees() > 0)


class CutTools(Toolbox):
    """Cuts of one graph with weighted, signed edges."""

    words, sense = "cut", "maximise"
    bounds_find = "odd cycles"
    start_share = 0.5
    usual_steps = 10_000_000  # trials of a flip
    baseline_costs: ClassVar = {"descent": 9e-8, "restarts": 1.2e-7, "greedy": 1.4e-7, "tabu": 1.8e-7}

    def __init__(self, instance: Instance, problem: Any) -> None:
        self.problem = problem
        self.instance, self.graph, self.core = instance, instance.graph, instance.graph
        self.cut_weights, unit = integer_weights(self.graph)
        self.unit = unit * instance.whole_unit
        self.weights = self.cut_weights
        self.remark = vanished_words(self.graph.weights, unit)
        self.step = step_of_cuts(self.graph, self.cut_weights)
        self.fixed = None
        self.kernel: CutKernel | None = None  # None: the core is the graph
        if len(instance.inside) or len(instance.outside):
            self.fixed = np.full(self.graph.n, -1, dtype=np.int8)
            self.fixed[instance.inside], self.fixed[instance.outside] = 1, 0

    @property
    def hopeless_seconds(self) -> float:
        """Most rules ask for nodes with few neighbours, the others for nodes that share all neighbours."""
        graph = self.graph
        return self.reduce_seconds if graph.n and graph.degrees().min() > FEW else 0.0

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes."""
        return REDUCE_SECONDS * (self.graph.n + len(self.graph.indices))

    @property
    def search_seconds(self) -> float:
        """An estimate of what a search of a large core begins with."""
        entries = len(self.core.indices)
        return SEARCH_SECONDS * (self.core.n + entries) if entries >= LARGE else 0.0

    @property
    def reduction_steps(self) -> int:
        """Of the reductions so far."""
        return self.reducer.steps

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Apply exact reductions; of nodes with given sides the core has one, on either side."""
        given = self.instance
        self.reducer = CutReducer(
            self.graph, self.cut_weights, given.inside, given.outside, given.compiled, given.places
        )
        self.reducer.reduce(look, most)
        used = ", ".join(f"{name} {count}" for name, count in self.reducer.counts.items() if count)
        if not used and self.graph.degrees().all() and given.places is None:
            return "no reduction applies"
        self.kernel = self.reducer.kernel()
        self.core = core = self.kernel.graph
        return (
            f"reduced to {core.n} of {self.graph.n} nodes, {core.edges} of {self.graph.edges} edges"
            f" ({used or 'nodes without edges'})"
        )

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, the cut that a cut of the core stands for."""
        return core_solution if self.kernel is None else self.reducer.lift(self.kernel, core_solution)

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """The sides of the core's nodes, where fixed nodes are on theirs."""
        sides = solution.copy()
        if self.fixed is not None:
            sides[self.fixed >= 0] = self.fixed[self.fixed >= 0]
        return sides if self.kernel is None else sides[self.kernel.nodes]

    def cut_of_core(self, weight: int) -> int:
        """What a lifted cut weighs, for the weight (bound) of a cut of the core."""
        granted = self.instance.granted
        return granted + (weight if self.kernel is None else self.kernel.value_of(weight))

    def core_of_cut(self, weight: int) -> int:
        """The inverse of cut_of_core."""
        weight -= self.instance.granted
        return weight if self.kernel is None else self.kernel.value_in(weight)

    def value_of_core(self, value: int) -> int:
        """A cut is worth its weight."""
        return self.cut_of_core(value)

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return self.core_of_cut(value)

    @property
    def _core_fixed(self) -> np.ndarray | None:
        """[n of the core] the given sides, -1: none; or None."""
        return self.fixed if self.kernel is None else None

    def value(self, solution: np.ndarray) -> int:
        """The weight between the sides, in units, and what is granted."""
        crossing = solution[self.graph.row_of()] != solution[self.graph.indices]
        return int(self.cut_weights[crossing].sum()) // 2 + self.instance.granted

    def fault(self, solution: np.ndarray) -> str | None:
        """Every split is a cut; a fixed node may be on the wrong side."""
        if solution.shape != (self.graph.n,) or solution.dtype != bool:
            return f"{solution.shape} {solution.dtype} is not one side for each of {self.graph.n} nodes"
        wrong = [] if self.fixed is None else np.flatnonzero((self.fixed >= 0) & (self.fixed != solution))
        return f"node {self.graph.called(wrong[0])} is fixed on the other side" if len(wrong) else None

    def start(self) -> np.ndarray:
        """What the search itself starts from; of a large graph a greedy cut, which that is far from."""
        if len(self.core.indices) >= LARGE:
            sides, fixed = greedy_descent(self.core, self.instance.compiled, self.look), self._core_fixed
            return sides if fixed is None else np.where(fixed >= 0, fixed == 1, sides)
        return CutSearch(self.core, 0, None, self._core_fixed, compiled=self.instance.compiled).solution()

    def search(self, seed: int, start: np.ndarray | None) -> Search | None:
        """Annealing and combination; none of a core without nodes."""
        if not self.core.n:
            return None
        return CutSearch(self.core, seed, start, self._core_fixed, compiled=self.instance.compiled)

    def tree(self, rank: int, ranks: int) -> Tree | None:
        """The exact search of a small core, for all ranks together."""
        weights, _ = integer_weights(self.core)
        if not suits(self.core, weights):
            return None
        reduced = "" if self.kernel is None or not len(self.reducer.log) else "reductions"
        return CutTree(
            self.core,
            weights,
            self._core_fixed,
            self.better,
            rank,
            ranks,
            reduced,
            self.instance.compiled,
            self.tightened,
        )

    def prove(self, proof: CutProof) -> int:
        """Check the reductions step by step, and the witness of the kernel's bound."""
        witness = proof.witness
        if proof.log is None:
            witness.check(self.graph)
            return self.attainable(witness.upper + self.instance.granted)
        given = self.instance
        places = unit_places(self.cut_weights) if given.places is None else given.places
        fixed = fixed_sides(given.inside, given.outside)
        offset, rows = verify_log(self.graph, self.cut_weights, proof.log, places, fixed, given.compiled)
        kernel = kernel_of(self.graph.name, rows, offset, places)
        witness.check(kernel.graph)
        upper = witness.upper - witness.upper % step_of_cuts(kernel.graph, integer_weights(kernel.graph)[0])
        return self.attainable(kernel.value_of(upper) + given.granted)

    def attainable(self, weight: int) -> int:
        """The largest weight up to this one that a cut of the graph may have."""
        return weight - (weight - self.instance.granted) % self.step

    def tightened(self, bound: int) -> int:
        """A bound of the core's cuts, less what no cut of the graph can weigh."""
        return self.core_of_cut(self.attainable(self.cut_of_core(bound)))

    def better(self, value: int) -> int:
        """The core value of the next better cut: the core's unit may be half of the graph's."""
        return self.core_of_cut(self.attainable(self.cut_of_core(value)) + self.step)

    def bounds(self) -> Bounds | None:
        """Upper bounds by eigenvalues, semidefinite programming and odd cycles."""
        return CutToolBounds(self)

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics of max cut; none where nodes are fixed."""
        if self.fixed is not None:
            return {}
        return {name: rule_of(self.instance, rule) for name, rule in self.problem.baselines.items()}


class CutToolBounds(CoreBounds):
    """Upper bounds on cuts of the core, whose unit may be half of the graph's, and cuts by their prices."""

    def __init__(self, tools: CutTools) -> None:
        super().__init__(CutBounds(tools.core, tools.instance.compiled), "upper")
        self.tools, self.kernel = tools, tools.kernel
        self._offers = False
        self._seen: np.ndarray | None = None  # the last cut of the prices
        self._found: np.ndarray | None = None  # the best cut that came of one
        self._value, self._known = -1, -1  # of that, and of the best cut that the caller knows
        self._worked = self._polished = 0.0  # s, in all and on cuts

    @property
    def value(self) -> int:
        """The best bound so far, less what no cut can be worth."""
        return self.tools.tightened(self.inner.upper)

    @property
    def method(self) -> str:
        """How the bound was found, reductions included."""
        if not self.tools.core.n:
            return "reductions"
        reduced = self.kernel is not None and len(self.tools.reducer.log)
        return f"reductions, {self.inner.method}" if reduced else self.inner.method

    def expect(self, seconds: float) -> None:
        """Under a time limit cuts are looked for, too: then the caller takes them."""
        self._offers = True
        super().expect(seconds)

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """As CoreBounds; a bound less than one unit of the graph above the best cut is as good as equal."""
        if not self.tools.core.n:
            return False
        begun, self._known = time.perf_counter(), best
        more = self.inner.improve(seconds, max(best, self.tools.better(best) - 1))
        self._worked += time.perf_counter() - begun
        if self._offers and self._polished <= POLISH_SHARE * self._worked:
            self._polish()
        return more

    def _polish(self) -> None:
        """A short search from the cut of the last prices."""
        begun, sides = time.perf_counter(), self.inner.sides
        if sides is None or sides is self._seen:
            return
        self._seen, search = sides, self.tools.search(0, sides)
        search.run(POLISH_SWEEPS * self.tools.core.n)
        if search.best > self._value:
            self._value, self._found = search.best, search.solution()
        spent = time.perf_counter() - begun
        self._worked, self._polished = self._worked + spent, self._polished + spent

    @property
    def leads(self) -> bool:
        """Whether the best cut came of the prices, or nearly: their work is then worth more than a search."""
        behind, left = self._known - self._value, self.inner.upper - self._known
        return self._found is not None and behind <= LEAD * left

    def pieces(self) -> np.ndarray | None:
        """[n] bool, a cut that is better than those that the caller knows, or None."""
        return self._found if self._value > self._known else None

    @property
    def check_seconds(self) -> float:
        """The reductions are replayed."""
        tools = self.tools
        if self.kernel is None:
            return super().check_seconds
        words, graph = len(tools.reducer.log), tools.graph
        if verify_compiled.available(graph):
            return super().check_seconds + 1.5e-7 * (graph.n + len(graph.indices)) + 2e-7 * words
        return super().check_seconds + LOG_SECONDS * words + tools.reduce_seconds

    def proof(self) -> CutProof:
        """The reductions, and the witness of the kernel's bound."""
        log = None if self.kernel is None else self.tools.reducer.log
        return CutProof(log, self.inner.certificate())
