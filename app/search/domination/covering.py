"""The toolbox of set covers and hitting sets: that of the dominating sets that stand for them."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from app.errors import FixedNodesError
from app.graphs.covering import count_candidates
from app.graphs.graph import Graph
from app.graphs.ids import one_id
from app.graphs.lists import rows_with
from app.search.domination.baselines import greedy_order, needed
from app.search.domination.tools import DominationTools
from app.toolbox import Baseline, Instance


def unmet_demand(graph_rows: Graph, chosen_all: np.ndarray) -> int | None:
    """The first demand of the held rows next to no chosen candidate [n] bool; None: there is none."""
    met = candidates_of(graph_rows)
    if graph_rows.hi == graph_rows.n > graph_rows.lo:
        met[-1] = True  # the reference
    met |= rows_with(chosen_all[graph_rows.indices], graph_rows.indptr)
    return None if met.all() else int(met.argmin()) + graph_rows.lo


def candidates_of(graph_rows: Graph) -> np.ndarray:
    """[held rows] bool, which are candidates: those next to the reference, the last node."""
    if not graph_rows.whole or not graph_rows.n:
        return rows_with(graph_rows.indices == graph_rows.n - 1, graph_rows.indptr)
    near = np.zeros(graph_rows.n, dtype=bool)  # the edges of its own row, which is the last one
    near[graph_rows.indices[graph_rows.indptr[-2] :]] = True
    return near


def most_gain_of_family(
    graph: Graph, compiled: bool = True, price: np.ndarray | None = None, pruned: bool = False
) -> tuple[np.ndarray, str]:
    """Take the candidate that meets most demands that are left, for its price, until none is left.

    price    [candidates] or [n] positive whole numbers, or None: all one
    pruned   then without those that are not needed, the latest first
    Source   Chvátal 1979
    """
    candidate = candidates_of(graph)
    chosen, dominated = np.zeros(graph.n, dtype=bool), candidate.copy()
    dominated[-1] = True
    order = greedy_order(graph, price, chosen, ~candidate, compiled, dominated)
    chosen[order] = True
    if pruned:
        chosen = needed(graph, chosen, order, compiled, dominated)
    return chosen, "most gain, pruned" if pruned else "most gain"


FAMILY_BASELINES = {
    "most_gain": most_gain_of_family, "most_gain_pruned": partial(most_gain_of_family, pruned=True),
}  # fmt: skip


class CoveringTools(DominationTools):
    """Choices of candidates that meet all demands: dominating sets with the reference, the last node, and
    without demands. Solutions leave the reference out.
    """

    def __init__(self, instance: Instance, problem: Any) -> None:
        graph, count = instance.graph, count_candidates(instance.graph)
        self.candidates, self.given, self.problem = count, instance, problem
        for nodes in (instance.inside, instance.outside):
            if (nodes >= count).any():
                found = one_id(graph.held_ids(), nodes.max()).replace("{", "{{").replace("}", "}}")
                raise FixedNodesError(
                    f"{found} is no {problem.candidate}; {problem.candidate}s would be right"
                )
        self._refuse_unmet(graph, instance.outside)
        inside = np.append(instance.inside, graph.n - 1)
        outside = np.append(instance.outside, np.arange(count, graph.n - 1))
        super().__init__(replace(instance, inside=inside, outside=outside), problem)

    def _refuse_unmet(self, graph: Graph, outside: np.ndarray) -> None:
        """Raises FixedNodesError where the candidates that may be chosen leave a demand."""
        allowed = np.ones(graph.n, dtype=bool)
        allowed[outside] = False
        if (demand := unmet_demand(graph, allowed)) is not None:
            raise FixedNodesError(f"what is to be outside leaves {self.problem.met}", demand)

    def _reduced(self, needed: int, columns: int, chosen: int) -> str:
        """The same in sets and elements."""
        one, other = self.problem.candidate, self.problem.demand
        demands = self.graph.n - 1 - self.candidates
        text = f"reduced to {needed} of {demands} {other}s, by {columns} of {self.candidates} {one}s"
        return f"{text}; {chosen - 1} are chosen"

    @property
    def shown(self) -> Graph:
        """The core, with what its candidates cost."""
        price = None if self.price is None else self.price.astype(np.float32)
        return replace(self.core, node_weights=price)

    # ---- solutions without the reference -------------------------------------------------------------------

    def value(self, solution: np.ndarray) -> int:
        """The number (cost) of the chosen candidates."""
        return super().value(self._without(solution))

    def fault(self, solution: np.ndarray) -> str | None:
        """A demand that is left, a node that is no candidate, or a fixed one on the wrong side."""
        wrong = np.flatnonzero(solution[self.candidates :])
        if len(wrong):
            return f"the {self.words} holds what is no {self.problem.candidate}"
        whole = solution.copy()
        whole[-1] = True
        return super().fault(whole)

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, the chosen candidates."""
        return self._without(super().lift(core_solution))

    @staticmethod
    def _without(solution: np.ndarray) -> np.ndarray:
        """A set [n] bool without the reference."""
        if not solution[-1]:
            return solution
        solution = solution.copy()
        solution[-1] = False
        return solution

    # ---- plain heuristics ----------------------------------------------------------------------------------

    def baselines(self) -> dict[str, Baseline]:
        """The greedy choice, and what of it is needed; none where candidates are fixed."""
        if len(self.given.inside) or len(self.given.outside):
            return {}
        return {"most_gain": self._most_gain, "most_gain_pruned": partial(self._most_gain, pruned=True)}

    def _most_gain(self, pruned: bool = False) -> tuple[np.ndarray, str]:
        """Take the candidate that meets most demands that are left, for its cost (Chvátal 1979)."""
        price = None if self.weights is None else self._baseline_price()
        return most_gain_of_family(self.graph, self.instance.compiled, price, pruned)

    def _baseline_price(self) -> np.ndarray:
        """[n] int64, above 0; candidates of cost 0 have next to none."""
        costly = self.weights[: self.candidates].all()
        return np.maximum(self.weights if costly else self.weights * (2 * self.graph.n), 1)
