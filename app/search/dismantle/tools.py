"""The toolbox of network dismantling: reductions, a greedy start, a search, bounds, the course of a set."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from app.bounds.dismantle.bounds import DismantleBounds
from app.bounds.dismantle.witness import DismantleBound
from app.bounds.feasible import node_of_large_component
from app.errors import CaseError, FixedNodesError
from app.graphs.graph import Graph
from app.graphs.ids import plain_ids
from app.graphs.sized import SizedGraph, largest_component, sized_of
from app.proofs.kinds import DismantleProof
from app.reductions.dismantle.reducer import DismantleReducer
from app.reductions.dismantle.verify import verify_log
from app.reductions.replay import CHECK_SECONDS, WORD_SECONDS
from app.reductions.woken import Kernel
from app.search.core_bounds import ReducedBounds
from app.search.dismantle.baselines import (
    DISMANTLE_BASELINES,
    core_hd,
    reinserted,
    reinsertions,
)
from app.search.dismantle.search import DismantleSearch
from app.search.node_tools import NodeTools
from app.toolbox import Baseline, Bounds, Instance, Search

REDUCE_SECONDS = 4e-6  # for each node and entry, about
REDUCE_BYTES = 250  # the same of memory
HEAVIEST = 1 << 60  # of all weights together
COURSE = ("removed", "node", "weight", "largest")  # the columns of a course


class DismantleTools(NodeTools):
    """Sets of nodes without which one graph has no component of more than `most` nodes, of least total weight
    where nodes have weights.

    The core is a graph whose nodes stand for several of the given one (app/graphs/sized.py). Nodes inside,
    and those of weight 0, are in the set from the start; nodes outside weigh more than all others together.

    asked    what the nodes that are not taken at the start leave      names   [k] int64, its nodes in the
             graph
    offset   what those weigh that are
    """

    bounds_follow = True
    usual_steps = 20_000

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        graph = self.graph
        self.most = largest_component(graph.n, instance.component)
        free = self.weightless()
        self.inside, self.outside = (np.zeros(graph.n, dtype=bool) for _ in range(2))
        self.inside[instance.inside] = self.outside[instance.outside] = True
        if self.outside.any() and (found := node_of_large_component(graph, ~self.outside, self.most)):
            words = f"a component of {found[1]} nodes with {{}} is to be outside: at most {self.most} may be"
            raise FixedNodesError(words, found[0])
        self.inside |= free & ~self.outside
        whole = sized_of(graph, self._prices(), self.most)
        self.asked, self.names = (
            whole.without(self.inside) if self.inside.any() else (whole, np.arange(graph.n))
        )
        self.offset = self.value(self.inside)
        self.reducer: DismantleReducer | None = None
        self.kernel: Kernel | None = None  # None: the core is what was asked

    def _prices(self) -> np.ndarray:
        """[n] int64, weights above 0; a node outside weighs more than all others together."""
        graph = self.graph
        weights = np.ones(graph.n, dtype=np.int64) if self.weights is None else np.maximum(self.weights, 1)
        if self.outside.any():
            dear = int(weights[~self.outside].sum()) + 1
            if dear * (np.count_nonzero(self.outside) + 1) > HEAVIEST:
                right = "smaller weights, or fewer nodes, would be right"
                raise CaseError(f"{graph.name}: weights are too large for nodes outside; {right}")
            weights = np.where(self.outside, dear, weights)
        return weights

    @property
    def inner(self) -> SizedGraph:
        """The core."""
        return self.asked if self.kernel is None else self.kernel.core

    def fault(self, solution: np.ndarray) -> str | None:
        """A component that is too large, or a fixed node on the wrong side."""
        if (found := node_of_large_component(self.graph, solution, self.most)) is not None:
            node, size = found
            left = f"leaves a component of {size} nodes, that of node {self.graph.called(node)}"
            return f"the {self.words} {left}; at most {self.most} would be right"
        return super().fault(solution)

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def core(self) -> Graph:
        """Which nodes of what is left are joined: see `inner`."""
        return self.inner.pattern(self.graph.name)

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes."""
        return REDUCE_SECONDS * (self.asked.n + len(self.asked.indices))

    @property
    def reduction_steps(self) -> int:
        """Nodes that the reductions have looked at so far."""
        return 0 if self.reducer is None else self.reducer.steps

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Apply exact reductions, all or as many as there is time for, where memory is enough for them."""
        asked = self.asked
        if REDUCE_BYTES * (asked.n + len(asked.indices)) > self.instance.most_bytes:
            return ""
        self.reducer = DismantleReducer(asked)
        self.reducer.reduce(look, most)
        self.kernel = self.reducer.kernel()
        core = self.inner
        return (
            f"components of at most {self.most} nodes; reduced to {core.n} of {self.graph.n} nodes, "
            f"{len(core.indices) // 2} of {self.graph.edges} edges ({self.reducer.used})"
        )

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, with the nodes that are in the set beside the core."""
        own = core_solution if self.kernel is None else self.reducer.lift(self.kernel, core_solution)
        return self._with_fixed(own)

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A core solution that follows a set [n] bool; nodes that are needed join it, others leave."""
        own = (solution & ~self.outside)[self.names]
        if self.kernel is not None:
            own = self.reducer.moved(self.kernel, own)
        left, nodes = self.inner.without(own)
        if not left.apart():
            own = own.copy()
            own[nodes[core_hd(left, self.instance.compiled)[0]]] = True
        return self._pruned(own)

    def _with_fixed(self, own: np.ndarray) -> np.ndarray:
        """[n] bool, the set that one of what was asked stands for."""
        solution = self.inside.copy()
        solution[self.names[own]] = True
        return solution

    def _pruned(self, chosen: np.ndarray) -> np.ndarray:
        """[k] bool, a core solution without nodes that it does not need; a node outside, which a greedy set
        may have for its many edges, gives way to others.
        """
        kept = self.outside[self.names if self.kernel is None else self.names[self.kernel.nodes]]
        if chosen[kept].any():
            chosen = ~kept
        return reinserted(self.inner, chosen, self.instance.compiled)

    def value_of_core(self, value: int) -> int:
        """The instance's value for the value (bound) of a core solution."""
        return value + self.offset + (0 if self.kernel is None else self.kernel.paid)

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value - self.value_of_core(0)

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """The greedy set."""
        return self._start.copy()

    @cached_property
    def _start(self) -> np.ndarray:
        own = self._pruned(core_hd(self.inner, self.instance.compiled)[0])
        if self.kernel is None:
            return own
        other = self.restrict(self._with_fixed(core_hd(self.asked, self.instance.compiled)[0]))
        weights = self.inner.weights
        return other if weights[other].sum() < weights[own].sum() else own

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Annealing; none where nothing is too large."""
        if self.inner.apart():
            return None
        return DismantleSearch(self.inner, start, seed, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Packed trees, a linear program of them, cases."""
        return KernelBounds(self)

    def prove(self, proof: DismantleProof) -> int:
        """Check the reductions entry by entry, and the witness of what they leave."""
        left, paid = verify_log(self.asked, proof.log)
        proof.bound.check(left)
        return self.offset + paid + proof.bound.lower

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name, on the whole graph; none where nodes are fixed."""
        if len(self.instance.inside) or len(self.instance.outside):
            return {}
        return {name: partial(self._whole, rule) for name, rule in DISMANTLE_BASELINES.items()}

    def _whole(self, rule: Callable[..., tuple[np.ndarray, str]]) -> tuple[np.ndarray, str]:
        """What a rule finds, with the nodes that weigh nothing."""
        own, name = rule(self.asked, self.instance.compiled)
        return self._with_fixed(own), name

    # ---- the course of a set -------------------------------------------------------------------------------

    def course(self, solution: np.ndarray, ids: np.ndarray) -> str:
        """A line for each node of a set [n] bool, in the order of `dismantling_order`: how many have been
        taken out, its id, its weight, nodes of the largest component then; first a line of the whole graph.
        """
        whole, order = self._plain(), self.dismantling_order(solution)
        weights = (
            np.ones(self.graph.n, np.int64) if self.graph.node_weights is None else self.graph.node_weights
        )
        named = [quoted(str(each)) for each in plain_ids(ids[order])]
        told = zip(named, weights[order].tolist(), largest_components(whole, order)[1:])
        lines = (f"{i},{node},{weight:.9g},{size}\n" for i, (node, weight, size) in enumerate(told, 1))
        largest = int(whole.sizes().max(initial=0))
        return "".join([",".join(COURSE) + "\n", f"0,,0,{largest}\n", *lines])

    def dismantling_order(self, solution: np.ndarray) -> np.ndarray:
        """[k] int32, the nodes of a set [n] bool in the order in which they are best taken out.

        It is that of greedy reinsertion backwards: last comes the node that makes the smallest component
        where it alone goes back, the lowest number of several, and so on (see reinsertions).
        """
        return reinsertions(self._plain(), solution, self.instance.compiled)[::-1]

    def _plain(self) -> SizedGraph:
        """The whole graph, without weights and limit."""
        return sized_of(self.graph, np.ones(self.graph.n, dtype=np.int64), max(self.graph.n, 1))


def quoted(name: str) -> str:
    """A field of a table with commas between."""
    return '"' + name.replace('"', '""') + '"' if any(mark in name for mark in ',"\r\n') else name


def largest_components(whole: SizedGraph, order: np.ndarray) -> list[int]:
    """Nodes of the largest component, then without each node of an order [k] and those before it; found by
    putting them back, the last first.
    """
    gone = np.zeros(whole.n, dtype=bool)
    gone[order] = True
    left, nodes = whole.without(gone)
    above, total = list(range(whole.n)), [1] * whole.n
    largest = 0
    if left.n:
        heads, part = np.unique(left.parts(), return_index=True, return_inverse=True)[1:]
        for v, head in zip(nodes.tolist(), nodes[heads][part].tolist()):
            above[v] = head
        for head, count in zip(nodes[heads].tolist(), np.bincount(part).tolist()):
            total[head], largest = count, max(largest, count)
    found, ptr = [largest], whole.indptr
    for v in order[::-1].tolist():
        gone[v] = False
        for u in whole.indices[ptr[v] : ptr[v + 1]].tolist():
            if not gone[u] and (head := _root(above, u)) != v:
                above[head] = v
                total[v] += total[head]
        found.append(max(found[-1], total[v]))
    return found[::-1]


def _root(above: list[int], node: int) -> int:
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node


class KernelBounds(ReducedBounds):
    """Lower bounds on the sets of what reductions leave, with the reductions that prove them of the
    graph's.
    """

    def __init__(self, tools: DismantleTools) -> None:
        log = [] if tools.reducer is None else tools.reducer.log
        replay = CHECK_SECONDS * (tools.asked.n + len(tools.asked.indices)) + WORD_SECONDS * len(log)
        decided = tools.inner.apart()
        super().__init__(DismantleBounds(tools.inner), log, decided, "small components", replay)

    def proof(self) -> DismantleProof:
        """The log of the reductions, and the witness of the core's bound."""
        bound = DismantleBound(0, self.method, ()) if self.decided else self.inner.proof()
        return DismantleProof(self.log, bound)
