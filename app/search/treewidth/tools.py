"""The toolbox of elimination orders: reductions, greedy starts, a search, bounds, tree decompositions."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.treewidth.bounds import FillBounds, WidthBounds
from app.bounds.treewidth.cycles import CycleProof
from app.bounds.treewidth.feasible import Decomposition, fault_of
from app.bounds.treewidth.minors import MinorProof
from app.bounds.treewidth.orders import BY_DEGREE, BY_FILL, Tree, greedy, tree_of
from app.bounds.treewidth.quotients import least_degree
from app.errors import CaseError
from app.graphs.graph import Graph
from app.search.core_bounds import InnerBounds
from app.search.node_tools import refuse_small_weights, weights_of
from app.search.order_tools import OrderTools
from app.search.treewidth.baselines import ELIMINATION_BASELINES, is_large
from app.search.treewidth.decomposition import decomposition_of, read_td, text_of
from app.search.treewidth.dissection import dissected
from app.search.treewidth.kernel import EliminationKernel
from app.search.treewidth.plain import MOST_NODES
from app.search.treewidth.search import TreeSearch
from app.search.treewidth.sweeps import swept
from app.toolbox import Baseline, Bounds, Instance, Search, rule_of

WIDTH, FILL = "width", "fill"
REDUCE_SECONDS, CLOSING_SECONDS = 1.2e-5, 1e-5  # for each node and entry; of checks and files
DEGREE_WORK, FILL_WORK = 1 << 29, 1 << 27  # of greedy orders that searches begin with, some seconds
LISTED_BYTES = 24  # of an entry of a bag in a search


class EliminationTools(OrderTools):
    """Elimination orders of one graph.

    The width of one is the weight of its heaviest bag; without weights its nodes less one. Its fill-in are
    the edges that eliminations make.
    """

    every = "an order has all nodes, none is inside or outside"
    usual_steps = 2_000
    start_share = 0.5
    baseline_costs: ClassVar = {"min_degree": 1e-5, "min_fill": 5e-5, "max_cardinality": 4e-6}

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        self.weights, self.unit = weights_of(instance)
        self.fill = instance.asked.eliminate == FILL
        if self.fill and self.weights is not None:
            right = 'a graph without them, or problem.eliminate = "width", would be right'
            raise CaseError(f"{self.graph.name}: fill-in counts edges, and nodes have weights; {right}")
        refuse_small_weights(instance, self.weights, self.words)
        self.kernel = EliminationKernel(self.graph, self.weights, self.fill)
        self.reduced = False
        self._valued: tuple[np.ndarray, int, Tree] | None = None  # the order valued last, its value, its tree
        self._decomposed: tuple[np.ndarray, Decomposition | None] | None = None  # likewise

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def core(self) -> Graph:
        """What reductions leave."""
        return self.kernel.core

    @property
    def nodes(self) -> np.ndarray:
        """[k], the core's nodes by their numbers in the graph."""
        return self.kernel.nodes

    @property
    def own_weights(self) -> np.ndarray | None:
        """[k] int64, those of the core's nodes."""
        return None if self.weights is None else self.weights[self.kernel.nodes]

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes."""
        return REDUCE_SECONDS * self._size

    @property
    def closing_seconds(self) -> float:
        """An estimate of what is made of an answer: a check of its bags, and their file."""
        return CLOSING_SECONDS * self._size

    @property
    def reduction_steps(self) -> int:
        """Nodes that were eliminated."""
        return len(self.kernel.gone)

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Eliminate what loses nothing."""
        kernel, self.reduced = self.kernel, True
        kernel.reduce(look, most)
        used = ", ".join(f"{kind} {count}" for kind, count in kernel.counts.items() if count)
        return (
            f"reduced to {kernel.core.n} of {self.graph.n} nodes, {kernel.core.edges} edges, of"
            f" {self.graph.edges} ({used or 'no node goes'})"
        )

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] int64, first what reductions have eliminated."""
        gone = np.array(self.kernel.gone, dtype=np.int64)
        return np.concatenate([gone, self.kernel.nodes[core_solution]])

    @property
    def _lightest(self) -> int:
        """What heaviest bags weigh more than widths."""
        return int(self.weights is None)

    def _width(self, heaviest: int) -> int:
        """The width for the weight of the heaviest bag."""
        return max(heaviest, self._lightest) - self._lightest

    def value_of_core(self, value: int) -> int:
        """The width for the weight of the heaviest bag of the core; the fill-in for all its edges."""
        if self.fill:
            return value - self.core.edges
        return self._width(max(value, self.kernel.low))

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value + (self.core.edges if self.fill else self._lightest)

    def value(self, solution: np.ndarray) -> int:
        """The width, or the fill-in, of an order of the graph."""
        if self._valued is None or not np.array_equal(self._valued[0], solution):
            tree = tree_of(self.graph, solution, self.weights, self.instance.compiled)
            self._valued = solution.copy(), self._value(tree.bag), tree
        return self._valued[1]

    def _value(self, bag: np.ndarray) -> int:
        if self.fill:
            return int((bag - 1).sum()) - self.graph.edges
        return self._width(int(bag.max(initial=0)))

    def fault(self, solution: np.ndarray) -> str | None:
        """What is no order of the nodes, or what is wrong with its tree decomposition."""
        if (wrong := self.problem.violation(self.graph, solution)) is not None:
            return f"the {self.words} {wrong}"
        made = self._decomposition(solution)
        if made is None:
            return None
        if (wrong := fault_of(self.graph, made)) is not None:
            return f"the tree decomposition {wrong}"
        if not self.fill and self._width(made.heaviest(self.weights)) != self.value(solution):
            return "the tree decomposition has another width than the order"
        return None

    def _decomposition(self, solution: np.ndarray) -> Decomposition | None:
        """That of an order, which is made once: what is checked is what is written."""
        if self._decomposed is None or not np.array_equal(self._decomposed[0], solution):
            self.value(solution)
            tree = self._valued[2] if self.weights is None else None
            made = decomposition_of(self.graph, solution, self.instance.compiled, tree)
            self._decomposed = solution.copy(), made
        return self._decomposed[1]

    def course(self, solution: np.ndarray, ids: np.ndarray) -> str:
        """The .td file; empty where bags are too large together."""
        made = self._decomposition(solution)
        return "" if made is None else text_of(made, self.graph.n, ids)

    def untrue(self, path: str, solution: np.ndarray) -> str | None:
        """What is wrong with the .td file beside a solution's file, if there is one."""
        beside = Path(path).with_suffix(".td")
        if beside == Path(path) or not beside.is_file():
            return None
        made = read_td(str(beside), self.graph.held_ids())
        if (wrong := fault_of(self.graph, made)) is not None:
            return f"the tree decomposition of {beside.name} {wrong}"
        worth = self._width(made.heaviest(self.weights))
        known = int(tree_of(self.graph, solution, self.weights, self.instance.compiled).bag.max(initial=0))
        if worth != self._width(known):
            return f"the tree decomposition of {beside.name} has width {worth}, the order another"
        return None

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """The best of some orders, as far as there is time: by degree, of small cores also by new edges; by a
        sweep; by separators.
        """
        core, compiled = self.core, self.instance.compiled
        rules: tuple[Callable[[], np.ndarray], ...] = (
            lambda: least_degree(core, self.look, compiled)[0],
            lambda: least_degree(core, self.look, compiled, own=True)[0],
            lambda: swept(core, compiled),
        )
        if not is_large(core):
            first = greedy(core, BY_DEGREE, None, compiled, DEGREE_WORK)
            rules = (lambda: first, lambda: greedy(core, BY_FILL, None, compiled, FILL_WORK), *rules)
        best = rules[0]()
        for rule in rules[1:]:
            best = best if self.look() else self._better(best, rule())
        return best if self.look() else self._better(best, self._dissected(best))

    def _better(self, best: np.ndarray, other: np.ndarray | None) -> np.ndarray:
        return best if other is None else min(best, other, key=self._worth)

    def _dissected(self, best: np.ndarray) -> np.ndarray | None:
        """An order by separators, where the first one is no larger than the largest bag of the best order."""
        core, compiled = self.core, self.instance.compiled
        most = int(tree_of(core, best, None, compiled).bag.max(initial=0))
        return dissected(core, self._worth, self.look, compiled, most=most)

    def _worth(self, order: np.ndarray) -> int:
        """The value of the core's order."""
        return self.value(self.lift(order))

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Pieces made anew; none where nothing is left, or bags are too large for pieces, or memory."""
        core, compiled = self.core, self.instance.compiled
        if not core.edges:
            return None
        bag = tree_of(core, start, None, compiled).bag
        if bag.max() > MOST_NODES or LISTED_BYTES * int(bag.sum()) > self.instance.most_bytes:
            return None
        return TreeSearch(core, start, seed, self.own_weights, self.fill, compiled)

    def bounds(self) -> Bounds | None:
        """Minors or chordless cycles, exhaustive searches."""
        kind = FillBounds if self.fill else WidthBounds
        return KernelBounds(
            self, kind(self.core, self.own_weights, self.instance.compiled, self.instance.most_bytes)
        )

    def prove(self, proof: MinorProof | CycleProof) -> int:
        """Check a minor of the whole graph, or chordless cycles in it."""
        if type(proof) is not (CycleProof if self.fill else MinorProof):
            raise BadCertificate(
                f"{self.graph.name}: proves nothing of the {'fill-in' if self.fill else 'width'}"
            )
        if self.fill:
            return proof.lower(self.graph)
        return self._width(proof.lower(self.graph, self.weights))

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name."""
        return {name: rule_of(self.instance, rule) for name, rule in ELIMINATION_BASELINES.items()}


class KernelBounds(InnerBounds):
    """Lower bounds of the core's orders, and what reductions know of the whole graph."""

    def __init__(self, tools: EliminationTools, inner: Bounds) -> None:
        super().__init__(inner)
        self.tools, self.kernel = tools, tools.kernel

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long; nothing is left to try where the best order is optimal."""
        if self.value >= best and self.method:
            return False
        more = self.inner.improve(seconds, best, solution)
        return more and self.value < best

    @property
    def value(self) -> int:
        """The best bound so far."""
        return max(self.inner.value, self._low)

    @property
    def _low(self) -> int:
        """What reductions prove, in units of the core's values."""
        return self.kernel.core.edges if self.tools.fill else self.kernel.low

    @property
    def method(self) -> str:
        """How it was found."""
        known = self.tools.reduced and self.inner.value <= self._low
        return "reductions" if known else self.inner.method

    def proof(self) -> MinorProof | CycleProof:
        """The minor, or the cycles, of the whole graph that prove most of it."""
        return self._cycles() if self.tools.fill else self._minor()

    def _minor(self) -> MinorProof:
        kernel, inner = self.kernel, self.inner
        known = getattr(inner, "minors", 0)
        label = kernel.minor(inner.minor) if known > kernel.low else kernel.low_minor()
        return replace(MinorProof(label, False), checked=max(known, kernel.low) >= self.value)

    def _cycles(self) -> CycleProof:
        kernel, inner = self.kernel, self.inner
        ptr = getattr(inner, "ptr", np.zeros(1, dtype=np.int64))
        nodes = kernel.nodes[getattr(inner, "nodes", np.zeros(0, dtype=np.int64))].astype(np.int64)
        proved = len(nodes) - 3 * (len(ptr) - 1)
        return CycleProof(ptr, nodes, proved >= self.value - kernel.core.edges)
