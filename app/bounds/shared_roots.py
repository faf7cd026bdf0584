"""Branch and bound by roots, shared by all ranks of a group: each root is searched by one rank at a time.

What a rank finds out about a root is a number: no clique with this root weighs more. Such numbers are brought
together by a maximum over ranks, and the roots that are left are dealt anew: a rank without a root waits
for the next exchange, no longer. A root that is being searched stays where it is.

Source   the roots of app/bounds/clique/roots.py; dealing by levels of work, as passes there
Differs  which rank searches which root depends on the clock; what is proved in the end does not
"""

import math
import time

import numpy as np

from app.bounds.clique.forecast import Forecast
from app.bounds.clique.roots import FIRST_LIMIT, GROWTH, Roots
from app.graphs.graph import Graph

CHUNK, PLAIN_CHUNK = 1 << 18, 1 << 11  # words of bit sets between looks at the clock: some milliseconds
MICRO = 1e6


class SharedRoots(Roots):
    """One rank's part of the search; `best`, `bound` and `tries` are the same on all ranks after `learn_all`.

    rank, ranks   of the group
    tries         [n], of open roots: levels of work they were given; level t is FIRST_LIMIT * GROWTH^t words
    seconds       that this rank has worked
    hurried       True: roots that are begun from now on are searched to their end, not put off
    """

    def __init__(
        self, graph: Graph, weights: np.ndarray | None, best: int, rank: int = 0, ranks: int = 1,
        compiled: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(graph, weights, best, compiled)
        self.rank, self.ranks, self.seconds, self.hurried = rank, ranks, 0.0, False
        self._chunk = CHUNK if compiled else PLAIN_CHUNK
        self.tries = np.zeros(graph.n, dtype=np.int64)
        self.rate = 0.0  # words a second, of all ranks
        self._forecast = Forecast(self)
        self._shared = self.open()  # the roots of an exchange
        self._deal(np.zeros(ranks, dtype=np.int64))

    # ---- one rank ------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Work for about so long, less where this rank has no root left."""
        begun = now = time.perf_counter()
        while self._roots is not None and now < begun + seconds:
            if self._seen(self._run(self.work + self._chunk)):
                self._next()
            now = time.perf_counter()
        self.seconds += now - begun

    def _seen(self, all_of_them: bool) -> bool:
        """Count the tries of the roots that were passed."""
        at = self._inner.at
        self.tries[self._roots[self._counted : at]] += 1
        self._counted = at
        return all_of_them

    def _next(self) -> None:
        """Begin the next roots dealt to this rank: those of one level."""
        if not self._groups:
            self._roots = None
            return
        self._roots, level, kept = self._groups.pop()
        self._counted = 0
        each = 0 if self.hurried else FIRST_LIMIT * GROWTH ** min(level, 12)
        self._inner.begin(np.ascontiguousarray(self._roots, dtype=np.int32), each, kept)

    @property
    def _active(self) -> int:
        """The root that this rank is searching, or -1."""
        searching = self._roots is not None and self._inner.active
        return int(self._roots[self._inner.at]) if searching else -1

    # ---- all ranks -----------------------------------------------------------------------------------------

    def told(self) -> np.ndarray:
        """What this rank has found out, [k] int64: an element-wise maximum over ranks brings it together."""
        k, ranks = len(self._shared), self.ranks
        words = np.zeros(2 * k + 3 * ranks, dtype=np.int64)
        words[:k], words[k : 2 * k] = -self.bound[self._shared], self.tries[self._shared]
        mine = words[2 * k :].reshape(3, ranks)
        mine[:, self.rank] = self._active + 1, self.work, int(MICRO * self.seconds)
        return words

    def learn_all(self, words: np.ndarray, best: int) -> None:
        """Take what all ranks have found out; the weight of the heaviest clique that any of them knows."""
        k, shared, active = len(self._shared), self._shared, self._active
        self.learn(best)
        self.bound[shared], self.tries[shared] = -words[:k], words[k : 2 * k]
        searched, work, spent = words[2 * k :].reshape(3, self.ranks)
        self.rate = float((work / np.maximum(spent / MICRO, 1e-6)).sum())
        self._shared = self.open()
        self._deal(searched, active)

    def _deal(self, searched: np.ndarray, active: int = -1) -> None:
        """Roots for this rank: what it is searching, then its share of those that nobody is, by level.

        searched   [ranks] the root that each rank is searching, plus 1; 0: none
        """
        free = self._shared[~np.isin(self._shared, searched - 1)][::-1]
        free = free[np.argsort(self.tries[free], kind="stable")][self.rank :: self.ranks]
        levels = self.tries[free]
        cuts = np.flatnonzero(np.diff(levels)) + 1
        groups = [(part, int(self.tries[part[0]]), False) for part in np.split(free, cuts) if len(part)]
        if active >= 0:
            groups.insert(0, (np.array([active]), int(self.tries[active]), True))
        self._groups = groups[::-1]
        self._next()

    @property
    def stuck(self) -> bool:
        """Whether nothing that any rank could search is left."""
        return not len(self._shared)

    def left_seconds(self) -> float:
        """About how long all ranks together need for the open roots; infinite where none can tell."""
        if self.done:
            return 0.0
        words, rate = self._forecast.words(), max(self.rate, self._forecast.speed * self.ranks)
        return words / rate if rate else math.inf
