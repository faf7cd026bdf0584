"""Minimum dominating sets of graphs too large for one rank: nodes with one neighbour left first."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.proofs.kinds import DominationProof
from app.reductions.domination.reducer import COLUMNS, Step
from app.solver.rows.domination_bound import DominationRowBound, bound_dominations
from app.solver.rows.domination_check import check_dominations
from app.solver.rows.domination_regions import DominationRegions
from app.solver.rows.dominations import DominationsReduced, reduce_dominations, reduce_further
from app.solver.rows.exchanges import drop_dominators
from app.solver.rows.kinds import RowKind
from app.solver.rows.own import OwnRows, Rounds


class DominationRows(RowKind):
    """See app/solver/rows/dominations.py."""

    rows: DominationsReduced
    proved: DominationsReduced  # before a policy chose
    peels = True

    def reduce(self, group: Group, graph: Graph, rounds: Rounds) -> None:
        """Leaves, and what they leave."""
        self.rows = self.proved = reduce_dominations(group, graph, self.weights, rounds)
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
        check_dominations(group, graph, self.weights, self.proved)

    def value(self, group: Group, graph: Graph, solution: np.ndarray) -> int:
        """The weight of its nodes."""
        return self._weight(solution)

    def proof(self, proof: DominationProof) -> DominationProof:
        """All steps in order."""
        later = (Step(each.rule, self.nodes[each.nodes], self.nodes[each.by]) for each in proof.steps)
        return replace(proof, steps=(*self.rows.steps, *later))

    @property
    def own(self) -> OwnRows:
        """This rank's rows of what is left."""
        return self.rows.own

    def marks(self) -> np.ndarray:
        """One for nodes that are still to be dominated."""
        return self.rows.needed[self.nodes].astype(np.int32)

    def size(self, totals: Any) -> tuple[int, int]:
        """Nodes that gain something, and at most the edges by which they do."""
        return totals.alive, totals.gain_sum

    def take(self, group: Group, nodes: np.ndarray, rounds: Rounds) -> None:
        """Themselves, or for those that reductions have left out the nodes that stand for them."""
        self.rows = reduce_further(group, self.rows, self.weights, self.allowed(nodes), rounds)
        self.nodes, self.edges = self.rows.nodes, self.rows.edges

    def allowed(self, nodes: np.ndarray) -> np.ndarray:
        """Nodes that reductions have left out dominate no more than others that have taken their place."""
        for step in self.rows.steps:
            if step.rule == COLUMNS:
                self._by[step.nodes] = step.by
        while not self.rows.allowed[nodes].all():
            nodes = np.where(self.rows.allowed[nodes], nodes, self._by[nodes])
        return sorted_set(nodes)

    @cached_property
    def _by(self) -> np.ndarray:
        """[n] int64, for nodes that reductions have left out one that dominates as much."""
        return np.arange(len(self.rows.chosen))

    def bound(self, group: Group, rounds: Rounds) -> DominationRowBound:
        """A packing of neighbourhoods by dual ascent."""
        return bound_dominations(group, self.proved, self.weights, rounds)

    def improve(self, group: Group, graph: Graph, solution: np.ndarray, rounds: Rounds) -> np.ndarray:
        """Without nodes that it does not need."""
        return drop_dominators(group, graph, self.weights, solution, rounds)

    def regions(self, group: Group, solution: np.ndarray) -> DominationRegions:
        """Without the nodes that reductions choose: all others are among those that they allow."""
        chosen = solution & self.proved.allowed
        return DominationRegions(group, self.proved, chosen, self.weights, self.compiled)

    def joined(self, regions: DominationRegions) -> np.ndarray:
        """[n] bool, with the nodes that reductions choose."""
        return self.proved.chosen | regions.solution
