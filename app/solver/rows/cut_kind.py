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
from app.solver.rows.cut_regions import CutRegions
from app.solver.rows.cut_sweeps import CutSweeps
from app.solver.rows.cuts import CutsReduced, reduce_cuts
from app.solver.rows.exchanges import flip_sides
from app.solver.rows.kinds import RowKind
from app.solver.rows.own import OwnRows, Rounds, everywhere, gathered
from app.sparse.whole_weights import common_unit


class CutRows(RowKind):
    """See app/solver/rows/cuts.py. The decimals of weights are not kept: values are multiples of `unit`."""

    rows: CutsReduced
    follows = True

    def reduce(self, group: Group, graph: Graph, rounds: Rounds) -> None:
        """Leaves and chains."""
        self._whole, self.unit = _whole_weights(group, graph)
        self._lo = graph.lo
        self._total = int(group.sum_integers(np.array([np.abs(self._whole).sum()]))[0])
        self.rows = reduce_cuts(group, graph, self._whole, rounds)
        self.nodes, self.edges = self.rows.nodes, self.rows.edges

    @property
    def words(self) -> str:
        """Nodes that went with a neighbour."""
        return f"merge {sum(map(len, self.rows.steps))}"

    def rest(self, group: Group, name: str) -> Graph:
        """With weights in units, as whole numbers."""
        own = self.own
        graph = gathered(group, name, own.n, self.nodes, own.indptr, own.indices)
        return replace(graph, weights=everywhere(group, self.rows.rows.data).astype(np.float64))

    @property
    def own(self) -> OwnRows:
        """This rank's rows of what is left: of nodes that have an edge."""
        rows = self.rows.rows
        some = np.diff(rows.indptr) > 0
        indptr = np.append(rows.indptr[:-1][some], rows.indptr[-1]).astype(np.int64)
        return OwnRows(rows.shape[1], np.flatnonzero(some) + self._lo, indptr, rows.indices)

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

    def improve(self, group: Group, graph: Graph, solution: np.ndarray, rounds: Rounds) -> np.ndarray:
        """By nodes that change sides, from one side for all where that is better; where reductions decide no
        other sides are better.
        """
        if self.value(group, graph, solution) < 0:
            solution = np.zeros_like(solution)
        sides = flip_sides(group, self.own, self.rows.rows.data, solution, rounds)
        return self.lift(sides[self.nodes])

    def sweeps(self, group: Group, solution: np.ndarray, seed: int) -> CutSweeps:
        """Of what the reductions leave."""
        return CutSweeps(group, self.own, self.rows.rows.data, solution, seed, self.compiled)

    def annealed(self, sweeps: CutSweeps) -> np.ndarray:
        """[n] bool, the sides of all nodes. Ranks: all call."""
        return self.lift(sweeps.solution()[self.nodes])

    def regions(self, group: Group, solution: np.ndarray) -> CutRegions:
        """Of what the reductions leave."""
        return CutRegions(group, self.own, self.rows.rows.data, solution, self.compiled)

    def joined(self, regions: CutRegions) -> np.ndarray:
        """[n] bool, the sides of all nodes."""
        return self.lift(regions.solution[self.nodes])


def _whole_weights(group: Group, graph: Graph) -> tuple[np.ndarray, float]:
    """[nnz] int64 weights of own rows, and the unit of the whole graph. Ranks: all call."""
    if graph.weights is None:
        return np.ones(len(graph.indices), dtype=np.int64), 1.0
    unit = common_unit(group, graph.name, graph.weights)
    return np.rint(graph.weights.astype(np.float64) / unit).astype(np.int64), unit
