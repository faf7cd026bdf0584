"""Feedback vertex sets of graphs too large for one rank: leaves and chains first."""

from dataclasses import replace
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.proofs.kinds import FeedbackProof
from app.reductions.fvs.log import renumbered
from app.solver.rows.feedback import FeedbackReduced, reduce_feedback
from app.solver.rows.feedback_check import check_feedback
from app.solver.rows.kinds import RowKind
from app.solver.rows.own import Rounds


class FeedbackRows(RowKind):
    """See app/solver/rows/feedback.py. Nodes of weight 0 are in every set."""

    rows: FeedbackReduced

    def reduce(self, group: Group, graph: Graph, rounds: Rounds) -> None:
        """Leaves and chains."""
        self.rows = reduce_feedback(group, graph, self.weights, rounds)
        self.nodes, self.edges = self.rows.nodes, self.rows.edges

    @property
    def words(self) -> str:
        """Nodes that went."""
        return f"leaves and paths {sum(map(len, self.rows.steps))}"

    def rest(self, group: Group, name: str) -> Graph:
        """A simple graph: no two edges join the same nodes."""
        return self.rows.own.whole(group, name)[0]

    def instance(self) -> dict[str, Any]:
        """The weights of the nodes."""
        return {"whole_weights": None if self.weights is None else self.weights[self.nodes]}

    def lift(self, solution_rest: np.ndarray) -> np.ndarray:
        """[n] bool, the same set."""
        n = self.rows.own.n
        found = np.zeros(n, dtype=bool) if self.weights is None else self.weights == 0
        found[self.nodes[solution_rest]] = True
        return found

    def check(self, group: Group, graph: Graph) -> None:
        """Round by round."""
        check_feedback(group, graph, self.weights, self.rows)

    def value(self, group: Group, graph: Graph, solution: np.ndarray) -> int:
        """The weight of its nodes."""
        return self._weight(solution)

    def proof(self, proof: FeedbackProof) -> FeedbackProof:
        """One log of all reductions, which numbers the nodes without those of weight 0."""
        numbers = np.arange(self.rows.own.n)
        if self.weights is not None:
            numbers = np.cumsum(self.weights > 0) - 1
        logs = renumbered(self.rows.log(), numbers), renumbered(proof.log, numbers[self.nodes])
        return replace(proof, log=np.concatenate(logs))
