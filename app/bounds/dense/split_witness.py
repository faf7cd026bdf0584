"""The witness of a bound on sets of so many nodes: shares of edges for each of some cases."""

from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate, Proof
from app.bounds.dense.rows import BARRED, FORCED, FREE, best_rows, row_values
from app.bounds.dense.witness import check_shape, entries_of_shares
from app.graphs.dense import DenseGraph

LARGEST = 1 << 62  # of what all shares at a node add up to
DEEPEST = 1 << 20  # cases


@dataclass(frozen=True, eq=False)
class SplitBound(Proof):
    """No set of so many nodes has more than `upper` inside (app/bounds/dense/split.py has the proof).

    one      units to one of weight
    shares   [leaves, edges] int64, of each case that is not divided, see entries_of_shares
    tree     the cases from the whole on: the node that one is divided at, then the cases with it, then those
             without; -1: not divided

    """

    upper: int
    method: str
    one: int
    shares: np.ndarray
    tree: np.ndarray

    def check(self, graph: DenseGraph) -> None:
        """Raises BadCertificate where the tree is none, or shares may leave 63 bits."""
        leaves = int((self.tree < 0).sum())
        if len(self.tree) != 2 * leaves - 1 or leaves > DEEPEST or self.shares.shape[0] != leaves:
            raise BadCertificate(
                f"{self.method}: {len(self.tree)} cases with {len(self.shares)} rows of shares"
            )
        if (self.tree >= graph.n).any():
            raise BadCertificate(f"{self.method}: divided at a node that there is not")
        for share in self.shares:
            check_shape(graph, share, self.one, self.method)
            if len(share) and max(int(share.max()), -int(share.min())) * graph.n >= LARGEST >> 2:
                raise BadCertificate(f"{self.method}: a share is too large")

    def proved(self, graph: DenseGraph, count: int, forced: np.ndarray) -> int:
        """The most that a case may hold. Raises BadCertificate."""
        self.check(graph)
        states, found, leaf = [forced.astype(np.uint8)], [], 0
        for node in self.tree.tolist():
            if not states:
                raise BadCertificate(f"{self.method}: more cases than the tree has")
            state = states.pop()
            if node < 0:
                found.append(self._of_case(graph, count, state, self.shares[leaf]))
                leaf += 1
                continue
            if state[node] != FREE:
                raise BadCertificate(f"{self.method}: divided at a node that is decided already")
            within, without = state.copy(), state
            within[node], without[node] = FORCED, BARRED
            states += [without, within]
        if states:
            raise BadCertificate(f"{self.method}: a case is missing")
        return max(found)

    def _of_case(self, graph: DenseGraph, count: int, state: np.ndarray, share: np.ndarray) -> int:
        held = entries_of_shares(graph, share, self.one)
        sums, _ = row_values(graph, held, state, count - 1)
        return best_rows(sums, state, count)[0] // self.one
