"""The toolbox of network dismantling: reductions, a greedy start, a search, bounds, the course of a set."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from app.bounds.dismantle.bounds import DismantleBounds
from app.bounds.dismantle.witness import DismantleBound
from app.bounds.feasible import node_of_large_component
from app.errors import FixedNodesError
from app.graphs.ids import plain_ids
from app.graphs.sized import SizedGraph, largest_component, sized_of
from app.proofs.kinds import DismantleProof
from app.reductions.dismantle.reducer import DismantleReducer
from app.reductions.dismantle.verify import verify_log
from app.search.dismantle.baselines import (
    DISMANTLE_BASELINES,
    core_hd,
    influence_seconds,
    reinserted,
)
from app.search.dismantle.course import curve_of, removal_order
from app.search.dismantle.search import DismantleSearch
from app.search.kernel_tools import KernelSetTools, ReducedBounds
from app.toolbox import Baseline, Bounds, Instance, Search

SEARCH_SECONDS = 1.2e-7  # of making a search, for each node and entry of the core, about
REDUCE_SECONDS = 4e-6  # for each node and entry, about
REDUCE_BYTES = 250  # the same of memory
# Of the order of a set, about; and of the nodes that go back one by one, for each node, and at most: only so
# many are looked at again.
NODE_SECONDS, ENTRY_SECONDS = 8e-7, 5e-8
BACK_SECONDS, MOST_BACK = 2.5e-5, 2.5
BACK_SHARE = 0.3  # of a time limit, that an order with nodes put back and all that follows may take
CORE_SECONDS, DEGREE_SECONDS = 2e-7, 4e-7  # of the plain heuristics by 2-cores and degrees, likewise
LARGEST_DRAWN = 1 << 21  # nodes and entries of graphs whose curves are made
COURSE = ("removed", "node", "weight", "largest")  # the columns of a course


class DismantleTools(KernelSetTools):
    """Sets of nodes without which one graph has no component of more than `most` nodes.

    The core is a graph whose nodes stand for several of the given one (app/graphs/sized.py).
    """

    def __init__(self, instance: Instance, problem: Any) -> None:
        graph = instance.graph
        self.most = largest_component(graph.n, instance.asked.component)
        super().__init__(instance, problem.limited(self.most))
        if self.outside.any() and (found := node_of_large_component(graph, ~self.outside, self.most)):
            words = f"a component of {found[1]} nodes with {{}} is to be outside: at most {self.most} may be"
            raise FixedNodesError(words, found[0])
        self._ask(sized_of(graph, self._prices(), self.most))
        # The set that was ordered last, its order, nodes of the largest component as its nodes leave.
        self._looked: tuple[SizedGraph, bool] | None = None
        self._ordered: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def fault(self, solution: np.ndarray) -> str | None:
        """A component that is too large, or a fixed node on the wrong side."""
        wrong = super().fault(solution)
        if wrong is None or (found := node_of_large_component(self.graph, solution, self.most)) is None:
            return wrong
        node, size = found
        left = f"leaves a component of {size} nodes, that of node {self.graph.called(node)}"
        return f"the {self.words} {left}; at most {self.most} would be right"

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def played(self) -> Any:
        """Of the core components are as large as of the graph, whatever its nodes."""
        return self.problem

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes."""
        return REDUCE_SECONDS * self.entries

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Apply exact reductions, all or as many as there is time for, where memory is enough for them."""
        if REDUCE_BYTES * self.entries > self.instance.most_bytes:
            return ""
        self._reduce(DismantleReducer(self.asked), look, most)
        said = self._reduced(len(self.inner.indices) // 2)
        return f"components of at most {self.most} nodes; {said}"

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A core solution that follows a set [n] bool; nodes that are needed join it, others leave."""
        own = self._followed(solution)
        left, nodes = self.inner.without(own)
        if not left.apart(self.instance.compiled):
            own = own.copy()
            own[nodes[core_hd(left, self.instance.compiled)[0]]] = True
        return self._pruned(own)

    def _pruned(self, chosen: np.ndarray) -> np.ndarray:
        """[k] bool, a core solution without nodes that it does not need; a node outside, which a greedy set
        may have for its many edges, gives way to others.
        """
        kept = self.core_outside
        if chosen[kept].any():
            chosen = ~kept
        return reinserted(self.inner, chosen, self.instance.compiled)

    # ---- tools ---------------------------------------------------------------------------------------------

    @cached_property
    def _start(self) -> np.ndarray:
        own = core_hd(self.inner, self.instance.compiled)[0]  # no node of it may go back
        if own[self.core_outside].any():
            own = self._pruned(own)
        if self.kernel is None:
            return own
        other = self.restrict(self._with_inside(core_hd(self.asked, self.instance.compiled)[0]))
        weights = self.inner.weights
        return other if weights[other].sum() < weights[own].sum() else own

    @property
    def search_seconds(self) -> float:
        """An estimate of what making a search takes."""
        return SEARCH_SECONDS * (self.inner.n + len(self.inner.indices))

    @property
    def _apart(self) -> bool:
        """Whether nothing of the core is too large; looked up once."""
        if self._looked is None or self._looked[0] is not self.inner:
            self._looked = self.inner, self.inner.apart(self.instance.compiled)
        return self._looked[1]

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Annealing; none where nothing is too large."""
        if self._apart:
            return None
        return DismantleSearch(self.inner, start, seed, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Packed trees, a linear program of them, cases."""
        compiled = self.instance.compiled
        decided = "small components" if self._apart else ""
        inner = DismantleBounds(self.inner, compiled)
        return ReducedBounds(self, inner, decided, DismantleProof, DismantleBound)

    def prove(self, proof: DismantleProof) -> int:
        """Check the reductions entry by entry, and the witness of what they leave."""
        return self._proved(proof, verify_log)

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name, on the whole graph; none where nodes are fixed."""
        return self._by_rules(DISMANTLE_BASELINES)

    @property
    def baseline_seconds(self) -> Mapping[str, float]:
        """Estimates of what those that take long do, by name."""
        size = self.entries
        known = {"core_hd": CORE_SECONDS * size, "high_degree": DEGREE_SECONDS * size}
        return known | {"influence": influence_seconds(self.asked)}

    # ---- the course of a set -------------------------------------------------------------------------------

    @property
    def closing_seconds(self) -> float:
        """An estimate of what the order of the answer takes, of which its course and its curve are made."""
        return self._quick_seconds + (0.0 if self._hurried else self._back_seconds)

    @property
    def _quick_seconds(self) -> float:
        """The same where the order goes by degrees."""
        order = NODE_SECONDS * self.graph.n + ENTRY_SECONDS * len(self.graph.indices)
        return super().closing_seconds + order

    @property
    def _back_seconds(self) -> float:
        """An estimate of what it takes to put nodes back one by one."""
        return min(BACK_SECONDS * self.graph.n, MOST_BACK)

    @property
    def _hurried(self) -> bool:
        """Whether that, with all else that comes after a search, is too much of a time limit."""
        return self._quick_seconds + self._back_seconds > BACK_SHARE * self.instance.seconds

    @property
    def curve_seconds(self) -> float:
        """The same of another set."""
        return self.closing_seconds

    def course(self, solution: np.ndarray, ids: np.ndarray) -> str:
        """A line for each node of a set [n] bool, in the order of `dismantling_order`: how many have been
        taken out, its id, its weight, nodes of the largest component then; first a line of the whole graph.
        """
        order = self.dismantling_order(solution)
        weights = (
            np.ones(self.graph.n, np.int64) if self.graph.node_weights is None else self.graph.node_weights
        )
        node = plain_ids(ids[order])
        node = list(map(quoted, node)) if node and isinstance(node[0], str) else node
        sizes = self._ordered[2].tolist()
        told = [None] * (4 * len(order))
        told[::4], told[1::4], told[3::4] = range(1, len(order) + 1), node, sizes[1:]
        told[2::4] = weights[order].tolist()
        lines = "%d,%s,%.9g,%d\n" * len(order) % tuple(told)
        return ",".join(COURSE) + f"\n0,,0,{sizes[0]}\n" + lines

    def dismantling_order(self, solution: np.ndarray) -> np.ndarray:
        """[k] int64, the nodes of a set [n] bool in the order in which they are best taken out; by their
        degrees where there is no time for more.
        """
        if self._ordered is None or not np.array_equal(self._ordered[0], solution):
            found = removal_order(self._plain(), solution, self.instance.compiled, self._hurried)
            self._ordered = solution.copy(), *found
        return self._ordered[1]

    @property
    def curve(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """[n + 1] int64 of a set [n] bool, see curve_of; of very large graphs it is not asked for."""
        return self._curve if self.graph.n + len(self.graph.indices) <= LARGEST_DRAWN else None

    def _curve(self, solution: np.ndarray) -> np.ndarray:
        order = self.dismantling_order(solution)
        return curve_of(self._plain(), solution, order, self.instance.compiled)

    def _plain(self) -> SizedGraph:
        """The whole graph, without weights and limit."""
        return sized_of(self.graph, np.ones(self.graph.n, dtype=np.int64), max(self.graph.n, 1))


def quoted(name: str) -> str:
    """A field of a table with commas between."""
    return '"' + name.replace('"', '""') + '"' if any(mark in name for mark in ',"\r\n') else name
