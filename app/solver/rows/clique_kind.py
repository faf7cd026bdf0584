"""Maximum cliques of graphs too large for one rank: what no heavier clique can hold goes first."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.bounds.clique.degeneracy import CORES, CliqueBound
from app.comm.group import Group
from app.graphs.graph import Graph
from app.proofs.kinds import CliqueProof
from app.solver.rows.clique_check import check_cliques, check_core_bound
from app.solver.rows.clique_roots import RootCourse, RowRoots, load_order
from app.solver.rows.cliques import (
    PART_ENTRIES,
    CliquesReduced,
    CoreBound,
    bound_by_cores,
    reduce_cliques,
)
from app.solver.rows.kinds import Alone, RowKind
from app.solver.rows.own import Rounds

GREEDY = "greedy"  # the source of a clique
ENTRY_BYTES = 60  # of a whole graph, with what works on it


class CliqueRows(RowKind):
    """See app/solver/rows/cliques.py."""

    rows: CliquesReduced
    method = CORES

    def reduce(self, group: Group, graph: Graph, rounds: Rounds) -> None:
        """A clique, and core numbers."""
        entries = self._entries = int(min(PART_ENTRIES, self.most_bytes / ENTRY_BYTES))
        self.rows = reduce_cliques(group, graph, self.weights, rounds, self.fits, self.compiled, entries)
        self.nodes, self.edges = self.rows.nodes, self.rows.edges

    @property
    def words(self) -> str:
        """The clique that is known."""
        return f"{CORES}; a clique of {self.rows.best}"

    def rest(self, group: Group, name: str) -> Graph:
        """The nodes that heavier cliques may hold, and those of the known one."""
        return self.rows.own.whole(group, name)[0]

    def instance(self) -> dict[str, Any]:
        """The known clique."""
        weights = None if self.weights is None else self.weights[self.nodes]
        return {"known": np.searchsorted(self.nodes, self.rows.clique), "whole_weights": weights}

    def lift(self, solution_rest: np.ndarray) -> np.ndarray:
        """[n] bool, the same clique."""
        found = np.zeros(self.rows.own.n, dtype=bool)
        found[self.nodes[solution_rest]] = True
        return found

    def check(self, group: Group, graph: Graph) -> None:
        """Node by node in the order in which they went."""
        check_cliques(group, graph, self.rows)

    def value(self, group: Group, graph: Graph, solution: np.ndarray) -> int:
        """The weight of its nodes."""
        return self._weight(solution)

    def proof(self, proof: CliqueProof) -> CliqueProof:
        """One order of all that was peeled off. Nodes are numbered without those of weight 0."""
        peeled = np.concatenate([*self.rows.peeled, self.nodes[proof.peeled]])
        least = max(proof.least, self.rows.best) if len(peeled) else proof.least
        return replace(proof, least=least, peeled=self._number(peeled))

    def alone(self, group: Group, rounds: Rounds) -> "CliqueAlone":
        """The known clique, and a bound by core numbers."""
        bound = bound_by_cores(group, self.rows, rounds)
        none = np.empty(0, dtype=np.int64)
        rest = CliqueBound(0, CORES, none, 0, none, none.astype(np.int32))
        proof = CliqueProof(bound.upper, self._number(bound.peeled), rest, True)
        solution = np.zeros(self.rows.own.n, dtype=bool)
        solution[self.rows.clique] = True
        return CliqueAlone(solution, bound.upper, proof, bound, self.weights)

    def order(self, group: Group, rounds: Rounds) -> np.ndarray:
        """[k] int64, the nodes left, about in degeneracy order. Ranks: all call."""
        return load_order(group, self.rows.own, self.weights, self.rows.best, rounds)

    def roots(
        self, group: Group, order: np.ndarray, clique: np.ndarray, course: RootCourse | None
    ) -> RowRoots:
        """The search of what is left root by root, from a clique, with the course of an earlier part of a
        run. Ranks: all call.
        """
        return RowRoots(
            group, self.rows.own, self.weights, order, clique, self._entries, self.compiled, course
        )

    def _number(self, nodes: np.ndarray) -> np.ndarray:
        """[k] int64, nodes [k] by their place among those above weight 0."""
        return nodes if self.weights is None else np.cumsum(self.weights > 0)[nodes] - 1


@dataclass(frozen=True, eq=False)
class CliqueAlone(Alone):
    """A known clique, and a bound."""

    solution: np.ndarray
    bound: int
    proof: CliqueProof
    cores: CoreBound
    weights: np.ndarray | None
    source: str = GREEDY
    method: str = CORES

    def check(self, group: Group, graph: Graph) -> None:
        """By the order in which nodes were peeled off."""
        check_core_bound(group, graph, self.weights, self.cores)
