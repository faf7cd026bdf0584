"""Minimum dominating sets of graphs too large for one rank: nodes with one neighbour left first."""

from dataclasses import replace
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.proofs.kinds import DominationProof
from app.reductions.domination.reducer import Step
from app.solver.rows.domination_check import check_dominations
from app.solver.rows.dominations import DominationsReduced, reduce_dominations
from app.solver.rows.kinds import RowKind
from app.solver.rows.own import Rounds


class DominationRows(RowKind):
    """See app/solver/rows/dominations.py."""

    rows: DominationsReduced

    def reduce(self, group: Group, graph: Graph, rounds: Rounds) -> None:
        """Leaves, and what they leave."""
        self.rows = reduce_dominations(group, graph, self.weights, rounds)
        self.nodes, self.edges = self.rows.nodes, self.rows.edges

    @property
    def words(self) -> str:
        """What is in the set, and what is left to do."""
        chosen, needed = np.count_nonzero(self.rows.chosen), np.count_nonzero(self.rows.needed)
        return f"{chosen} chosen, {needed} to dominate"

    def rest(self, group: Group, name: str) -> Graph:
        """Nodes that have to be dominated, and that may be chosen for that."""
        return self.rows.own.whole(group, name)[0]

    def instance(self) -> dict[str, Any]:
        """What the chosen nodes cost, and what the others are."""
        rows = self.rows
        return {
            "granted": self._weight(rows.chosen), "needed": rows.needed[self.nodes],
            "outside": np.flatnonzero(~rows.allowed[self.nodes]),
            "whole_weights": None if self.weights is None else self.weights[self.nodes],
        }  # fmt: skip

    def lift(self, solution_rest: np.ndarray) -> np.ndarray:
        """[n] bool, with the chosen nodes."""
        solution = self.rows.chosen.copy()
        solution[self.nodes[solution_rest]] = True
        return solution

    def check(self, group: Group, graph: Graph) -> None:
        """Step by step."""
        check_dominations(group, graph, self.weights, self.rows)

    def value(self, group: Group, graph: Graph, solution: np.ndarray) -> int:
        """The weight of its nodes."""
        return self._weight(solution)

    def proof(self, proof: DominationProof) -> DominationProof:
        """All steps in order."""
        later = (Step(each.rule, self.nodes[each.nodes], self.nodes[each.by]) for each in proof.steps)
        return replace(proof, steps=(*self.rows.steps, *later))
