"""The exact search of small cuts that the ranks of a group share, for the solver's rounds."""

from collections.abc import Callable

import numpy as np

from app.bounds.cut.branch import CutBranching, CutCase, whole_part
from app.bounds.cut.relaxation import round_seconds
from app.graphs.graph import Graph
from app.toolbox import Tree

METHOD = "branch and bound by semidefinite programming"
MOST = 250  # nodes: a round of the relaxation then takes some tenths of a second
LARGEST = 2.0**50  # of the sum of all weights, which floating point then holds with room to spare
ROOT_ROUNDS = 20  # of the first relaxation, about
HEAD = 6  # numbers that a rank tells of itself, before the part that it gives away
FEW = 10  # parts, whose shares of the tree say nothing yet
SHARES, MICRO = 2.0**40, 1e6


class CutTree(Tree):
    """Branch and bound of a core, each rank at work on parts of its own. A rank that has none gets one that
    another has to spare: all tell what they would give at each exchange, and all know who takes what.

    core         whole     weights [nnz] int64 of its entries     fixed [n] int8: sides, -1: none; or None
    better       core value -> the least one that counts as better
    rank, ranks  of the group     before   how the core was made, for `method`
    tightened    bound -> the largest weight up to it that a cut may have
    """

    units, closing = "parts", True

    def __init__(
        self, core: Graph, weights: np.ndarray, fixed: np.ndarray | None, better: Callable[[int], int],
        rank: int, ranks: int, before: str = "", compiled: bool = True,
        tightened: Callable[[int], int] = int,
    ) -> None:  # fmt: skip
        self.method = f"{before}, {METHOD}" if before else METHOD
        self._core, self._weights, self._fixed, self._better = core, weights, fixed, better
        self._rank, self._ranks, self._compiled = rank, ranks, compiled
        self._tightened = tightened
        self._seconds, self._spent, self._closed = 0.0, 0.0, 0.0
        self._searched, self._left = 0, 1
        self.search: CutBranching | None = None
        self.value, self.more = int(np.maximum(weights, 0).sum()) // 2, True
        self._least = int(np.minimum(weights, 0).sum()) // 2  # no cut weighs less
        self.least_seconds = round_seconds(core.n)

    def begin(self, best: int) -> None:
        """Make ready, knowing a cut of weight `best`; the first rank begins. Ranks: all, with the same."""
        core = self._core
        W = np.zeros((core.n, core.n))
        W[core.row_of(), core.indices] = self._weights
        root = whole_part(W, self._fixed) if self._rank == 0 else None
        self.search = CutBranching(W, best, self._better(best) - best, root, self._compiled)

    def run(self, seconds: float) -> None:
        """This rank's part, for about so long."""
        if self.search.left:
            self._seconds += self.search.run(seconds)

    @property
    def best(self) -> int:
        """Weight of the best cut that this rank knows."""
        return self.search.best

    def solution(self) -> np.ndarray | None:
        """[n] bool, that cut, where this rank has found it."""
        found = self.search.found
        if found is None or self._fixed is None:
            return found
        given = np.flatnonzero(self._fixed >= 0)  # all of them on their sides, or all across
        return found ^ bool(len(given) and found[given[0]] != self._fixed[given[0]])

    # ---- all ranks -----------------------------------------------------------------------------------------

    def told(self) -> np.ndarray:
        """Of each rank: its bound, what is open, the parts it has relaxed, its microseconds, the share of the
        tree that it has searched, the depth of what it can spare or 0, and that: its bound, and of each node
        the sign it has. Bounds are told above the least that a cut can weigh, and all numbers are larger by
        one: a zero is another rank's.
        """
        search, n = self.search, self._core.n
        words = np.zeros((self._ranks, HEAD + 1 + n), dtype=np.int64)
        mine, part = words[self._rank], search.offer()
        mine[:5] = (
            search.upper - self._least + 1, search.left + 1, search.parts + 1, MICRO * self._seconds + 1,
            SHARES * search.closed + 1,
        )  # fmt: skip
        if part is not None and search.left > 1:
            mine[5:7] = part.depth + 1, part.upper - self._least + 1
            mine[7:] = 2 * part.where + (part.sign > 0) + 1
        return words.ravel()

    def take(self, words: np.ndarray, best: int) -> None:
        """What all ranks have told, and the weight of the best cut that any of them knows."""
        told = words.reshape(self._ranks, -1)
        upper, left, parts, spent, closed = told[:, :5].T - 1
        idle = np.flatnonzero(left == 0)
        givers = np.flatnonzero(told[:, 5])
        givers = givers[np.lexsort((givers, -told[givers, 6]))]
        for giver, taker in zip(givers.tolist(), idle.tolist()):
            if giver == self._rank:
                self.search.give()
            if taker == self._rank:
                self.search.add(self._part_of(told[giver, HEAD - 1 :] - 1))
        self.search.learn(best)
        self.more, self.value = bool((left > 0).any()), max(best, self._bound(upper))
        self._left, self._searched = int(left.sum()), int(parts.sum())
        self._spent, self._closed = float(spent.sum()) / MICRO, float(closed.sum()) / SHARES

    def _bound(self, upper: np.ndarray) -> int:
        """No cut weighs more, by the bounds [ranks] that ranks have told of what is open."""
        return self._tightened(int(upper.max()) + self._least)

    def _part_of(self, words: np.ndarray) -> CutCase:
        """What was told of a part: its depth, its bound, its nodes."""
        depth, upper, nodes = int(words[0]), int(words[1]) + self._least, words[2:]
        return CutCase(nodes >> 1, 2 * (nodes & 1) - 1, upper, None, depth)

    def left_seconds(self) -> float:
        """About how long all ranks together need: as if what is open took as long as what is searched, each
        by its share of the tree; at first what the first relaxation may take, then for a while nobody knows.
        """
        if not self.more:
            return 0.0
        if self._searched < FEW or self._closed <= 0:
            first = ROOT_ROUNDS * self.least_seconds
            return first - self._spent if self._spent < first else np.inf
        return self._spent * max(1 - self._closed, 0.0) / self._closed / self._ranks

    @property
    def left(self) -> tuple[int, int]:
        """Parts that are open, and all that there were."""
        return self._left, self._left + self._searched


def suits(core: Graph, weights: np.ndarray) -> bool:
    """Whether a core is small enough."""
    return 1 < core.n <= MOST and core.edges > 0 and float(np.abs(weights).sum()) < LARGEST
