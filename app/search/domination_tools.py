"""The toolbox of minimum dominating set: the graph as it is, a greedy start, a local search."""

from functools import partial
from typing import Any

import numpy as np

from app.bounds.domination import DominationBounds
from app.errors import CaseError
from app.search.domination import greedy_order, near_any, needed
from app.search.domination_search import INSIDE, OUTSIDE, DominationSearch
from app.search.node_tools import NodeTools
from app.search.toolbox import Baseline, Bounds, Instance, Search


class DominationTools(NodeTools):
    """Dominating sets of one graph, of least total weight where nodes have weights."""

    bounds_follow = True  # the exact search begins from the best set

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        graph = self.graph
        self.fixed = np.zeros(graph.n, dtype=np.uint8)
        self.fixed[instance.outside] = OUTSIDE
        self.fixed[instance.inside] = INSIDE
        allowed = self.fixed != OUTSIDE
        lost = np.flatnonzero(~(allowed | near_any(graph, allowed)))
        if len(lost):
            raise CaseError(
                f"{graph.name}: node {lost[0]} and all its neighbours are to be outside the dominating set: "
                "nothing would dominate it"
            )

    def _price(self) -> np.ndarray | None:
        """[n] node weights, or None: all one. Raises CaseError."""
        self.require_weights()
        return self.weights

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A dominating set that holds to the fixed nodes: what is left undominated is dominated greedily."""
        chosen = (solution | (self.fixed == INSIDE)) & (self.fixed != OUTSIDE)
        if (chosen | near_any(self.graph, chosen)).all():
            return chosen
        chosen[self._greedy(chosen)] = True
        return chosen

    def start(self) -> np.ndarray:
        """The greedy set, without the nodes that are not needed."""
        chosen = self.fixed == INSIDE
        order = self._greedy(chosen)
        chosen[order] = True
        return needed(self.graph, chosen, order, self.instance.compiled)

    def _greedy(self, chosen: np.ndarray) -> np.ndarray:
        """[k] nodes that dominate, beside the chosen ones, all; see greedy_order."""
        return greedy_order(self.graph, self._price(), chosen, self.fixed == OUTSIDE, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Packings of neighbourhoods, under a time limit an exact search too (app/bounds/domination.py)."""
        fixed = self.fixed == INSIDE, self.fixed == OUTSIDE
        return DominationBounds(self.graph, self._price(), *fixed, self.instance.most_bytes)

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics, by gain for the price; none where nodes are fixed."""
        named = super().baselines()
        if self.weights is None:
            return named
        return {name: partial(rule, price=self._price()) for name, rule in named.items()}

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Exchange search (app/search/domination_search.py)."""
        compiled = self.instance.compiled
        return DominationSearch(self.graph, start, seed, self._price(), self.fixed, compiled)
