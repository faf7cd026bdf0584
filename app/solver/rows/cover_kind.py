"""Vertex covers and independent sets of graphs too large for one rank: leaves and triangles first."""

from dataclasses import replace
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.proofs.kinds import CoverProof
from app.reductions.cover.log import renumbered
from app.solver.rows.cover_bound import CoverRowBound, bound_covers
from app.solver.rows.cover_check import check_rows
from app.solver.rows.cover_regions import CoverRegions
from app.solver.rows.covers import RowsReduced, reduce_further, reduce_rows
from app.solver.rows.exchanges import exchange
from app.solver.rows.kinds import RowKind
from app.solver.rows.own import OwnRows, Rounds, everywhere, row_counts


class CoverRows(RowKind):
    """See app/solver/rows/covers.py."""

    rows: RowsReduced
    proved: RowsReduced  # before a policy chose
    peels = True

    def reduce(self, group: Group, graph: Graph, rounds: Rounds) -> None:
        """Leaves and triangles."""
        self.rows = self.proved = reduce_rows(group, graph, self.weights, rounds)
        self.nodes, self.edges = self.rows.nodes, self.rows.edges

    @property
    def words(self) -> str:
        """Nodes whose neighbours are in the cover."""
        return f"neighbours {sum(map(len, self.rows.steps))}"

    def rest(self, group: Group, name: str) -> Graph:
        """Without the nodes that are decided."""
        return self.rows.rest(group, name)

    def instance(self) -> dict[str, Any]:
        """What the decided nodes are worth."""
        gone = np.ones(len(self.rows.covered), dtype=bool)
        gone[self.nodes] = False
        outside = self.sense == "maximise"
        granted = self._weight(gone & ~self.rows.covered) if outside else self.rows.taken
        weights = None if self.weights is None else self.weights[self.nodes]
        return {"granted": granted, "whole_weights": weights}

    def lift(self, solution_rest: np.ndarray) -> np.ndarray:
        """[n] bool, a cover, or what no edge joins."""
        outside = self.sense == "maximise"
        cover = self.rows.lift(~solution_rest if outside else solution_rest)
        return ~cover if outside else cover

    def check(self, group: Group, graph: Graph) -> None:
        """By cliques that share no node."""
        check_rows(group, graph, self.proved)

    def value(self, group: Group, graph: Graph, solution: np.ndarray) -> int:
        """The weight of its nodes."""
        return self._weight(solution)

    def proof(self, proof: CoverProof) -> CoverProof:
        """One log of all reductions."""
        return replace(proof, log=np.concatenate([self.rows.log(), renumbered(proof.log, self.nodes)]))

    def chosen(self) -> np.ndarray:
        """Neighbours, or the nodes whose they are."""
        minimise = self.sense == "minimise"
        each = (nodes[:, 1:] if minimise else nodes[:, :1] for nodes in self.rows.steps)
        return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *(nodes.reshape(-1) for nodes in each)]))

    @property
    def own(self) -> OwnRows:
        """This rank's rows of what is left."""
        return self.rows.own

    def size(self, totals: Any) -> tuple[int, int]:
        """Of a residual graph."""
        return totals.alive, totals.degree_sum // 2

    def take(self, group: Group, nodes: np.ndarray, rounds: Rounds) -> None:
        """Into the cover, or their neighbours."""
        covered = np.zeros(len(self.rows.covered), dtype=bool)
        covered[nodes] = True
        if self.sense == "maximise":
            own = self.own
            near = own.nodes[row_counts(own.indptr, covered[own.indices]) > 0]
            covered[:] = False
            covered[everywhere(group, near)] = True
        self.rows = reduce_further(group, self.rows, covered, rounds)
        self.nodes, self.edges = self.rows.nodes, self.rows.edges

    def bound(self, group: Group, rounds: Rounds) -> CoverRowBound:
        """Edges and triangles that share no node, beside the cliques of the reductions."""
        return bound_covers(group, self.proved, self.sense, rounds)

    def improve(self, group: Group, graph: Graph, solution: np.ndarray, rounds: Rounds) -> np.ndarray:
        """By exchanges of one node of the set for two of the cover, or a heavier one."""
        outside = self.sense == "maximise"
        found = exchange(group, graph, self.weights, solution if outside else ~solution, rounds)
        return found if outside else ~found

    def regions(self, group: Group, solution: np.ndarray) -> CoverRegions:
        """Where the reductions decide they lead to a cover no heavier than any with these nodes."""
        outside = self.sense == "maximise"
        return CoverRegions(group, self.proved.own, solution, self.weights, outside, self.compiled)

    def joined(self, regions: CoverRegions) -> np.ndarray:
        """[n] bool, a cover, or what no edge joins."""
        outside = self.sense == "maximise"
        chosen = regions.solution[self.proved.nodes]
        cover = self.proved.lift(~chosen if outside else chosen)
        return ~cover if outside else cover
