"""The toolbox of sets of exactly k nodes with most weight inside (densest, or heaviest, k-subgraph)."""

import heapq
from functools import cached_property
from typing import Any

import numpy as np

from app.bounds.dense.split import SplitBounds
from app.bounds.dense.split_witness import SplitBound
from app.errors import CaseError, FixedNodesError
from app.search.dense.baselines import BASELINES
from app.search.dense.swaps import SwapSearch
from app.search.dense.tools import DenseTools
from app.search.node_tools import fault_of_set
from app.toolbox import Bounds, Instance, Search

UNREAD = "weights of nodes are not read: so many nodes are chosen, whatever they weigh"


class SizeTools(DenseTools):
    """Exactly problem.size nodes; weights of edges may have any sign. The core is the nodes that may be
    chosen.

    forced   [a] bool, of these the nodes that have to be chosen

    """

    usual_steps = 50_000

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        self.count, graph = instance.asked.size, self.graph
        if graph.node_weights is not None:
            self.remark = "; ".join(filter(None, (self.remark, UNREAD)))
        self.unit = self.weight_unit
        if self.unit != 1:
            self.weights = self.weight
        if self.count > graph.n:
            found = f"has {graph.n} nodes, fewer than problem.size = {self.count}"
            raise CaseError(f"{graph.name}: {found}; a smaller one would be right")
        if self.count > len(self.names):
            left = f"{len(self.names)} nodes may be chosen"
            raise FixedNodesError(f"{left}, fewer than problem.size = {self.count}")
        if self.count < len(instance.inside):
            spent = f"{len(instance.inside)} nodes are to be inside"
            raise FixedNodesError(f"{spent}, more than problem.size = {self.count}")
        self.forced = np.zeros(self.asked.n, dtype=bool)
        self.forced[np.searchsorted(self.names, instance.inside)] = True

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """[a] bool, what of a set may be chosen, with what has to be; those that lose least go, or those that
        gain most come.

        """
        asked = self.asked
        chosen = solution.astype(bool)[self.names] | self.forced
        near = np.zeros(asked.n, dtype=np.int64)
        both = chosen[asked.indices]
        np.add.at(near, asked.rows()[both], asked.weight[both])
        missing = self.count - int(np.count_nonzero(chosen))
        sign, open_ = (1, ~chosen) if missing > 0 else (-1, chosen & ~self.forced)
        # Keys of a heap are left where they are when they change: of a node's only the last counts.
        heap = [(-sign * int(near[v]), v) for v in np.flatnonzero(open_).tolist()]
        heapq.heapify(heap)
        while missing:
            key, v = heapq.heappop(heap)
            if not open_[v] or key != -sign * near[v]:
                continue
            open_[v], chosen[v] = False, missing > 0
            missing -= sign
            row = slice(asked.indptr[v], asked.indptr[v + 1])
            near[asked.indices[row]] += sign * asked.weight[row]
            for u in asked.indices[row][open_[asked.indices[row]]].tolist():
                heapq.heappush(heap, (-sign * int(near[u]), u))
        return chosen

    def value(self, solution: np.ndarray) -> int:
        """The weight of the edges inside."""
        return self._inside(solution)[0]

    def fault(self, solution: np.ndarray) -> str | None:
        """What is no mask, fixed on the wrong side, or of another number of nodes."""
        if (wrong := fault_of_set(self, solution)) is not None:
            return wrong
        count = int(np.count_nonzero(solution))
        if count != self.count:
            return f"the {self.words} has {count} nodes; problem.size = {self.count} have to be chosen"
        return None

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """The best of peeling and of greedy adding."""
        return self._begun.copy()

    @cached_property
    def _begun(self) -> np.ndarray:
        compiled = self.instance.compiled
        found = [self._of_order(BASELINES[name][0](self.asked, compiled)) for name in ("peeling", "adding")]
        return max(found, key=lambda chosen: self.asked.inside(chosen)[0])

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Exchanges."""
        return SwapSearch(self.asked, start, self.forced, seed, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Shares of edges, and cases."""
        return SplitBounds(self.asked, self.count, self.forced, self.instance.compiled)

    def prove(self, proof: SplitBound) -> int:
        """Check the shares and the cases on the edges of the nodes that may be chosen."""
        return proof.proved(self.asked, self.count, self.forced)

    def _of_order(self, order: np.ndarray) -> np.ndarray:
        """What has to be chosen, then the first nodes of the order."""
        order = np.concatenate([order[self.forced[order]], order[~self.forced[order]]])
        chosen = np.zeros(self.asked.n, dtype=bool)
        chosen[order[: self.count]] = True
        return chosen
