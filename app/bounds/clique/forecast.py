"""How much work an exact search by roots needs, before it is done: by random paths through some of the trees.

A path through a tree takes a random child at every node. What a node costs, times the number of children
at each node above it, is on the average over paths what all nodes of its depth cost (Knuth 1975). Roots with
more later neighbours cost more, by far: they are drawn the more often, and count for less each.

Source   Knuth 1975, "Estimating the efficiency of backtrack programs"
Differs  the first child of a path is not drawn but dealt, and so are the roots: the spread is smaller
"""

import time

import numpy as np

from app.bounds.clique.roots import Roots

LARGEST = 4_000  # later neighbours of a root, for a second set of bit sets beside the search's
FEW, DRAWS, PATHS = 8, 64, 16  # roots that are drawn at first, and where their trees are not hopeless; paths
HOPELESS = 1e14  # words: days of one rank; nobody wants to know more exactly
PLAIN_DRAWS, PLAIN_PATHS = 8, 2
POWER = 3  # a root is drawn in proportion to its later neighbours to this power
TRIED, PLAIN_TRIED = 1 << 20, 1 << 12  # work on a tree whose speed is taken: some milliseconds
AGAIN = 0.5  # share of the work left, at which the roots that are left are drawn anew


class Forecast:
    """Work that the open roots of a search need, words of bit sets. The same on all ranks where `roots` is.

    Roots are open as long as their bound says so: of one that was searched in part all counts.

    speed   words a second of this rank, in a tree as most of the work will be; 0 before anything was drawn
    """

    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        self._drawn, self._words = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._best, self._again, self._paths, self.speed = -1, 0.0, 0, 0.0
        self._inner = roots.another() if roots.counts.max(initial=0) <= LARGEST else None

    def words(self) -> float:
        """Of all roots that are open; infinite where their trees are too large to be looked at."""
        if self._inner is None:
            return np.inf
        if self.roots.best != self._best or self._left() <= self._again:
            self._draw()
            self._again = AGAIN * self._left()
        return self._left()

    def _left(self) -> float:
        """What was drawn and is still open."""
        return float(self._words[self.roots.bound[self._drawn] > self.roots.best].sum())

    def _draw(self) -> None:
        """Draw roots, and look into their trees."""
        self._best = self.roots.best
        self._inner.learn(self._best)
        found = self.roots.open()
        if not len(found):
            self._drawn, self._words = found, np.zeros(0)
            return
        found = found[np.argsort(self.roots.counts[found], kind="stable")]
        if self.roots.compiled:
            self._look_into(found, FEW, PATHS // FEW)
            if self._words.sum() < HOPELESS:
                self._look_into(found, DRAWS, PATHS)
        else:
            self._look_into(found, PLAIN_DRAWS, PLAIN_PATHS)
        self._take_speed()

    def _look_into(self, found: np.ndarray, draws: int, paths: int) -> None:
        """Draw so many of these roots, ascending by their later neighbours, for so many paths each."""
        ends = np.cumsum(np.maximum(self.roots.counts[found], 1.0) ** POWER)
        at = np.searchsorted(ends, (np.arange(draws) + 0.5) * (ends[-1] / draws))
        shares = np.diff(ends, prepend=0.0)[at] / ends[-1]
        self._drawn = found[at]
        costs = [self._inner.probe(root, paths, self._seed()) for root in self._drawn.tolist()]
        self._words = np.array(costs) / (draws * shares)

    def _seed(self) -> int:
        """Of the next root's paths."""
        self._paths += 1
        return self._paths

    def _take_speed(self) -> None:
        """Search the tree that stands for most of the work, for a moment."""
        root = self._drawn[int(np.argmax(self._words))]
        self._inner.begin(np.array([root], dtype=np.int32), 0)
        before, begun = self._inner.work, time.perf_counter()
        self._inner.run(before + (TRIED if self.roots.compiled else PLAIN_TRIED))
        self.speed = (self._inner.work - before) / max(time.perf_counter() - begun, 1e-9)
        self._inner.begin(np.zeros(0, dtype=np.int32), 0)
