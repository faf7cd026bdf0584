"""The toolbox of minimum dominating set: reductions, a greedy start, a local search, bounds."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from app.bounds.domination.bounds import DominationBounds
from app.bounds.domination.exact import REDUCED
from app.bounds.feasible import undominated_node
from app.errors import FixedNodesError
from app.proofs.kinds import DominationProof
from app.reductions.domination.check import CHECK_SECONDS, Proved, verify_steps
from app.reductions.domination.core import DominationCore, core_of, undominated
from app.reductions.domination.reducer import ENTRY_BYTES, Kernel, estimate_seconds
from app.search.domination.baselines import greedy_order, near_any, needed
from app.search.domination.search import FREE, OUTSIDE, DominationSearch
from app.search.node_tools import NodeTools
from app.toolbox import Baseline, Bounds, Instance, Search


class DominationTools(NodeTools):
    """Dominating sets of one graph, of least total weight where nodes have weights.

    The core is what fixed nodes and reductions leave (app/reductions/domination/core.py), a graph in which
    some nodes need not be dominated and some must not be chosen. Nodes of weight 0 are in the set from the
    start, as they cost nothing.

    question   the core with its masks     price   [k] int64 weights of its nodes, or None: all one
    offset     what the nodes cost that are in the set beside it
    """

    bounds_follow = True  # the exact search begins from the best set
    baseline_costs: ClassVar = {"most_gain": 1.2e-7, "most_gain_pruned": 1.6e-7}

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        graph = self.graph
        self.inside, self.outside = self.sides()
        self.asked = np.ones(graph.n, dtype=bool) if instance.needed is None else instance.needed
        lost = np.flatnonzero(self.asked & self.outside & ~near_any(graph, ~self.outside))
        if len(lost):
            words = "{} and all neighbours are to be outside the dominating set: nothing would dominate it"
            raise FixedNodesError(words, lost[0])
        self.kernel: Kernel | None = None
        self._take(self.inside, *self._without_reductions())

    def _without_reductions(self) -> tuple[np.ndarray, np.ndarray]:
        """[n] bool, what fixed nodes leave to be dominated, and the nodes that can help."""
        left = self.asked & ~(self.inside | near_any(self.graph, self.inside))
        return left, (left | near_any(self.graph, left)) & ~(self.inside | self.outside)

    def _take(self, chosen: np.ndarray, left: np.ndarray, allowed: np.ndarray) -> None:
        """The core: `chosen` [n] bool is in the set, `left` has to be dominated by nodes `allowed`."""
        self.chosen, self.offset = chosen, self.value(chosen)
        self.question: DominationCore = core_of(self.graph, left, allowed)
        self.core = self.question.graph
        self.price = None if self.weights is None else self.whole_price()[self.question.names]

    def whole_price(self) -> np.ndarray:
        """[n] int64, above 0: nodes of weight 0 are in the set, or must not be."""
        if self.weights is None:
            return np.ones(self.graph.n, dtype=np.int64)
        return np.maximum(self.weights, 1)

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes."""
        return estimate_seconds(self.graph.n + len(self.graph.indices), self.instance.compiled)

    @property
    def reduction_steps(self) -> int:
        """Pieces of the reductions so far."""
        return 0 if self.kernel is None else self.kernel.looks

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Apply exact reductions, all or as many as there is time for, where memory is enough for them."""
        graph = self.graph
        if ENTRY_BYTES * (graph.n + len(graph.indices)) > self.instance.most_bytes:
            return ""
        fixed = self.inside, self.outside
        asked, compiled = self.instance.needed, self.instance.compiled
        kernel = Kernel(graph, self.whole_price(), *fixed, look, asked, compiled, most)
        self.kernel = kernel
        left, allowed = (np.zeros(graph.n, dtype=bool) for _ in range(2))
        left[kernel.needed] = allowed[kernel.columns] = True
        self._take(kernel.chosen, left, allowed)
        return self._reduced(len(kernel.needed), len(kernel.columns), np.count_nonzero(kernel.chosen))

    def _reduced(self, needed: int, columns: int, chosen: int) -> str:
        """What reductions leave: so many nodes to dominate, nodes that may do it, and nodes in the set."""
        left = f"{needed} of {self.graph.n} nodes to dominate, by {columns} nodes"
        return f"reduced to {left}; {chosen} are chosen"

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, with the nodes that are in the set beside the core."""
        solution = self.chosen.copy()
        solution[self.question.names[core_solution]] = True
        return solution

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A core solution that follows a set [n] bool; what it leaves undominated is dominated greedily.

        Nodes that reductions have left out are replaced by those that took their places.
        """
        core = self.question
        moved = solution if self.kernel is None else self.kernel.moved(solution)
        chosen = moved[core.names] & core.allowed
        if undominated(core, chosen).any():
            chosen[self._greedy(chosen)] = True
        return needed(self.core, chosen, self._cheapest(chosen), self.instance.compiled, ~core.needed)

    def _cheapest(self, chosen: np.ndarray) -> np.ndarray:
        """The nodes of a set [k] bool, those of least price first."""
        nodes = np.flatnonzero(chosen)
        return nodes if self.price is None else nodes[np.argsort(self.price[nodes], kind="stable")]

    def value_of_core(self, value: int) -> int:
        """The instance's value for the value (bound) of a core solution."""
        return self.offset + value

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value - self.offset

    def fault(self, solution: np.ndarray) -> str | None:
        """As of any nodes; of what is left of a larger graph some need not be dominated."""
        if self.instance.needed is None:
            return super().fault(solution)
        node = undominated_node(self.graph, solution, self.asked)
        return None if node is None else f"the {self.words} leaves node {self.graph.called(node)} undominated"

    # ---- tools ---------------------------------------------------------------------------------------------

    @property
    def marks(self) -> np.ndarray | None:
        """[k] int32, one for nodes of the core that have to be dominated; None: all have to be."""
        return None if self.question.needed.all() else self.question.needed.astype(np.int32)

    def start(self) -> np.ndarray:
        """The greedy set, without the nodes that are not needed."""
        chosen = np.zeros(self.core.n, dtype=bool)
        order = self._greedy(chosen)
        chosen[order] = True
        return needed(self.core, chosen, order, self.instance.compiled, ~self.question.needed)

    def prove(self, proof: DominationProof) -> int:
        """Check the reductions step by step, and the witness of the kernel's bound."""
        price, fixed = self.whole_price(), (self.inside, self.outside)
        if proof.steps or self.inside.any() or self.outside.any():
            proved = verify_steps(self.graph, price, *fixed, proof.steps, self.instance.needed)
        else:
            proved = Proved(self.inside, *self._without_reductions())
        core = core_of(self.graph, proved.needed, proved.allowed)
        masks = (None if mask.all() else mask for mask in (core.needed, core.allowed))
        packing = proof.packing_with(None if self.weights is None else price[core.names], *masks)
        packing.check(core.graph)
        return self.value(proved.chosen) + packing.lower

    def _greedy(self, chosen: np.ndarray) -> np.ndarray:
        """[k] nodes of the core that dominate, beside the chosen ones, all; see greedy_order."""
        core = self.question
        masks = chosen, ~core.allowed, self.instance.compiled, ~core.needed
        return greedy_order(self.core, self.price, *masks)

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Exchange search (app/search/domination/search.py); none where nothing is left."""
        core = self.question
        if not self.core.n:
            return None
        fixed = np.where(core.allowed, FREE, OUTSIDE).astype(np.uint8)
        compiled = self.instance.compiled
        return DominationSearch(self.core, start, seed, self.price, fixed, compiled, ~core.needed)

    def bounds(self) -> Bounds | None:
        """Packings of neighbourhoods, and an exact search."""
        return KernelBounds(self)

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics, by gain for the price; none where nodes are fixed."""
        named = super().baselines()
        if self.weights is None:
            return named
        return {name: partial(rule, price=self._baseline_price()) for name, rule in named.items()}

    def _baseline_price(self) -> np.ndarray:
        """[n] int64, above 0; nodes of weight 0 have next to none."""
        return self.weights if self.weights.all() else np.maximum(self.weights * (2 * self.graph.n), 1)


class KernelBounds(DominationBounds):
    """Lower bounds on the dominating sets of what reductions leave."""

    def __init__(self, tools: DominationTools) -> None:
        core, most_bytes = tools.question, tools.instance.most_bytes
        masks = (None if mask.all() else mask for mask in (core.needed, core.allowed))
        super().__init__(core.graph, tools.price, *masks, most_bytes)
        self.tools = tools
        graph = tools.graph
        if core.graph is not graph:
            self.check_seconds += CHECK_SECONDS * (graph.n + len(graph.indices))

    @property
    def method(self) -> str:
        """How the bound was found, reductions included."""
        found, kernel = super().method, self.tools.kernel
        if kernel is None or not kernel.steps or not found:
            return found
        return REDUCED if found == REDUCED or not self.graph.n else f"{REDUCED}, {found}"

    def proof(self) -> DominationProof:
        """The reductions, and the best packing of what they leave."""
        kernel = self.tools.kernel
        return DominationProof(() if kernel is None else tuple(kernel.steps), self.best, self.checked)
