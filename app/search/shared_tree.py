"""Exact searches that the ranks of a group share, for the solver's rounds: cliques and covers of a core."""

import numpy as np

from app.bounds.clique.roots import METHOD, RUN
from app.bounds.cover.bounds import soon_reached
from app.bounds.cover.branch import DENSE, LARGEST_DENSE, DenseSearch
from app.bounds.shared_roots import SharedRoots
from app.graphs.derived import complement
from app.graphs.graph import Graph
from app.toolbox import Tree

COVER_METHOD = "branch and bound of the complement's cliques"
PAIR_SECONDS, ENTRY_SECONDS = 1e-8, 6e-8  # of a complement, each pair of nodes; of beginning, each entry
FORECAST_SECONDS = 5e-7  # for each pair of a root's later neighbours


class CliqueTree(Tree):
    """Cliques of a core: core values are weights, to be as large as possible.

    core         whole     weights [n] int64 or None: all one
    rank, ranks  of the group
    before       how the core was made, for `method`
    roots        None before `begin`
    """

    name = METHOD

    def __init__(
        self, core: Graph, weights: np.ndarray | None, rank: int, ranks: int, before: str = "",
        compiled: bool = True,
    ) -> None:  # fmt: skip
        self.core, self.weights, self.rank, self.ranks = core, weights, rank, ranks
        self._compiled = compiled
        self.method = f"{before}, {self.name}" if before else self.name
        self.roots: SharedRoots | None = None

    # ---- what cliques are to the core ----------------------------------------------------------------------

    def _graph(self) -> Graph:
        """The graph whose cliques are searched."""
        return self.core

    def _weight(self, value: int) -> int:
        """The weight of the clique that a core solution of this value is, and the reverse."""
        return value

    def _solution(self, clique: np.ndarray) -> np.ndarray:
        """[n] bool, the core solution that a clique [n] bool is."""
        return clique

    @property
    def begin_seconds(self) -> float:
        """About what `begin` takes."""
        return ENTRY_SECONDS * (self.core.n + len(self.core.indices))

    # ---- the search ----------------------------------------------------------------------------------------

    def begin(self, best: int) -> None:
        """Make ready, knowing a core solution of value `best`. Ranks: all, with the same value."""
        graph, best = self._graph(), self._weight(best)
        self.roots = SharedRoots(graph, self.weights, best, self.rank, self.ranks, self._compiled)

    @property
    def more(self) -> bool:
        """Whether there is more to search, as far as all ranks know."""
        return not (self.roots.done or self.roots.stuck)

    def run(self, seconds: float) -> None:
        """This rank's part, for about so long."""
        self.roots.run(seconds)

    @property
    def best(self) -> int:
        """Value of the best core solution that this rank knows."""
        return self._weight(self.roots.best)

    def solution(self) -> np.ndarray | None:
        """[n] bool of value `best`; None where the one given stands."""
        found = self.roots.found()
        if found is None:
            return None
        clique = np.zeros(self.core.n, dtype=bool)
        clique[found] = True
        return self._solution(clique)

    def told(self) -> np.ndarray:
        """[k] int64 for an element-wise maximum over ranks."""
        return self.roots.told()

    def take(self, words: np.ndarray, best: int) -> None:
        """That maximum, and the value of the best core solution that any rank knows."""
        self.roots.learn_all(words, self._weight(best))

    @property
    def value(self) -> int:
        """No core solution is better."""
        return self._weight(self.roots.upper)

    @property
    def forecast_seconds(self) -> float:
        """About what `left_seconds` takes where it draws anew."""
        return FORECAST_SECONDS * float(self.roots.counts.max(initial=0)) ** 2

    def left_seconds(self) -> float:
        """About how long all ranks together need; infinite where none can tell."""
        return self.roots.left_seconds()

    def hurry(self, wanted: bool) -> None:
        """Roots that are begun are not put off."""
        self.roots.hurried = wanted

    @property
    def left(self) -> tuple[int, int]:
        """Roots that are open, and all."""
        return len(self.roots.open()), self.roots.n


class CoverTree(CliqueTree):
    """Covers of a dense core, which leave out the cliques of its complement: core values are costs."""

    name = COVER_METHOD

    def __init__(
        self, core: Graph, weights: np.ndarray | None, rank: int, ranks: int, before: str = "",
        compiled: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(core, weights, rank, ranks, before, compiled)
        self.total = core.n if weights is None else int(weights.sum())

    def _graph(self) -> Graph:
        return complement(self.core)

    def _weight(self, value: int) -> int:
        return self.total - value

    def _solution(self, clique: np.ndarray) -> np.ndarray:
        return ~clique

    @property
    def begin_seconds(self) -> float:
        pairs = self.core.n * self.core.n
        return PAIR_SECONDS * pairs + ENTRY_SECONDS * max(pairs - len(self.core.indices), 0)


def suits(core: Graph) -> bool:
    """Whether covers of a core are best found as cliques of its complement: it is dense and connected."""
    pairs = core.n * (core.n - 1)
    dense = 0 < core.n <= LARGEST_DENSE and len(core.indices) > DENSE * pairs
    return dense and RUN is not None and DenseSearch.available() and soon_reached(core)
