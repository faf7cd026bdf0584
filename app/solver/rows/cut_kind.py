"""Maximum cuts of graphs too large for one rank: nodes with at most two neighbours first."""

from dataclasses import replace
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.proofs.kinds import CutProof
from app.reductions.cut.log import renumbered
from app.reductions.cut.reducer import places_of
from app.solver.rows.cut_check import check_cuts
from app.solver.rows.cuts import CutsReduced, reduce_cuts
from app.solver.rows.kinds import RowKind
from app.solver.rows.own import Rounds, everywhere, gathered
from app.sparse.whole_weights import common_unit


class CutRows(RowKind):
    """See app/solver/rows/cuts.py. The decimals of weights are not kept: values are multiples of `unit`."""

    rows: CutsReduced

    def reduce(self, group: Group, graph: Graph, rounds: Rounds) -> None:
        """Leaves and chains."""
        self._whole, self.unit = _whole_weights(group, graph)
        self._total = int(group.sum_integers(np.array([np.abs(self._whole).sum()]))[0])
        self.rows = reduce_cuts(group, graph, self._whole, rounds)
        self.nodes, self.edges = self.rows.nodes, self.rows.edges

    @property
    def words(self) -> str:
        """Nodes that went with a neighbour."""
        return f"merge {sum(map(len, self.rows.steps))}"

    def rest(self, group: Group, name: str) -> Graph:
        """With weights in units, as whole numbers."""
        rows = self.rows.rows
        indptr = np.append(rows.indptr[:-1][np.diff(rows.indptr) > 0], rows.indptr[-1]).astype(np.int64)
        graph = gathered(group, name, rows.shape[1], self.nodes, indptr, rows.indices)
        return replace(graph, weights=everywhere(group, rows.data).astype(np.float64))

    def instance(self) -> dict[str, Any]:
        """What lifted cuts gain, and the unit of reductions of the whole graph."""
        return {"granted": self.rows.gained, "places": places_of(self._total)}

    def lift(self, solution_rest: np.ndarray) -> np.ndarray:
        """[n] bool, the same cut."""
        return self.rows.lift(solution_rest)

    def check(self, group: Group, graph: Graph) -> None:
        """Round by round."""
        check_cuts(group, graph, self._whole, self.rows)

    def value(self, group: Group, graph: Graph, solution: np.ndarray) -> int:
        """The weight between the sides."""
        crossing = solution[graph.row_of()] != solution[graph.indices]
        return int(group.sum_integers(np.array([self._whole[crossing].sum()]))[0]) // 2

    def proof(self, proof: CutProof) -> CutProof | None:
        """One log of all reductions; None where the rest was not reduced: its unit is another then."""
        if proof.log is None:
            return None
        return replace(proof, log=np.concatenate([self.rows.log(), renumbered(proof.log, self.nodes)]))


def _whole_weights(group: Group, graph: Graph) -> tuple[np.ndarray, float]:
    """[nnz] int64 weights of own rows, and the unit of the whole graph. Ranks: all call."""
    if graph.weights is None:
        return np.ones(len(graph.indices), dtype=np.int64), 1.0
    unit = common_unit(group, graph.name, graph.weights)
    return np.rint(graph.weights.astype(np.float64) / unit).astype(np.int64), unit
