"""native/coloring_branch.c in Python, step by step: same branches, colours and work, no compiler."""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from app.bounds.cover.kernels import Rows

OPEN, PUT_OFF = -1, -2  # in the place of colours


class PlainColouring:
    """The search for a colouring, which may stop after any amount of work.

    rows   the graph     most   colours, at most
    """

    def __init__(self, rows: "Rows", most: int) -> None:
        self.near = [rows.indices[a:b].tolist() for a, b in pairwise(rows.indptr.tolist())]
        self.n, self.most, self.branches, self.work = rows.n, most, 0, 0
        self.colour, self.failed = [OPEN] * rows.n, [0] * rows.n
        self.hard = [len(row) for row in self.near]  # neighbours that are open
        self.count = [[0] * most for _ in self.near]  # neighbours of each colour
        self.seen = [0] * rows.n  # colours among them
        self.trail: list[int] = []
        self.levels: list[list[int]] = []  # node, its last colour; the trail, the colours in use before it
        self.used, self.fresh = 0, True

    def begin(self, clique: np.ndarray) -> bool:
        """Colour a clique [k]; False where there is no colouring."""
        for node in clique.tolist():
            if self.colour[node] != OPEN:
                continue  # put off: of colours it has enough
            if self.used >= self.most or not self._give(node, self.used):
                return False
            self.used += 1
        at = len(self.trail)
        self._put_off(range(self.n))
        self._follow(at)
        return True

    def run(self, until: int) -> int:
        """Work until `work` has reached a number. Returns 0: there is more to do, 1: there is a colouring,
        nodes that were put off aside, 2: there is none.
        """
        while self.work < until:
            if self.fresh:
                node = self._choose()
                if node < 0:
                    return 1
                self.levels.append([node, -1, len(self.trail), self.used])
                self.fresh = False
            node, tried, mark, self.used = level = self.levels[-1]
            self._take_back(mark)
            colour = self._next_colour(node, tried)
            if colour < 0:
                if len(self.levels) == 1:
                    return 2
                self.levels.pop()
                continue
            level[1] = colour
            self.branches += 1
            self.used = max(self.used, colour + 1)
            self.fresh = self._give(node, colour)
        return 0

    def found(self) -> tuple[np.ndarray, np.ndarray]:
        """The colours [n], PUT_OFF where a node was put off, and the trail [n]."""
        return np.array(self.colour, dtype=np.int32), np.array(self.trail, dtype=np.int64)

    def forget(self) -> None:
        """No more calls of `run` will come."""

    def _give(self, node: int, colour: int) -> bool:
        """A node gets a colour; False where an open node is left without one."""
        stuck = False
        self.colour[node] = colour
        self.trail.append(node)
        self.work += len(self.near[node])
        for other in self.near[node]:
            self.hard[other] -= 1
            self.count[other][colour] += 1
            if self.count[other][colour] > 1:
                continue
            self.seen[other] += 1
            if self.colour[other] == OPEN and self.seen[other] == self.most:
                self.failed[other] += 1
                self.failed[node] += 1
                stuck = True
        if not stuck:
            at = len(self.trail)
            self._ease(node)
            self._follow(at)
        return not stuck

    def _ease(self, node: int) -> None:
        """Put off the neighbours of a node that now have colours enough."""
        self._put_off(self.near[node])
        self.work += len(self.near[node])

    def _put_off(self, nodes: "list[int] | range") -> None:
        for node in nodes:
            if self.colour[node] == OPEN and self.seen[node] + self.hard[node] < self.most:
                self.colour[node] = PUT_OFF
                self.trail.append(node)

    def _follow(self, at: int) -> None:
        """What follows from the nodes that were put off, from a place of the trail on."""
        while at < len(self.trail):
            for other in self.near[self.trail[at]]:
                self.hard[other] -= 1
            self._ease(self.trail[at])
            at += 1

    def _take_back(self, mark: int) -> None:
        """Make the trail as short as it was."""
        while len(self.trail) > mark:
            node = self.trail.pop()
            colour, self.colour[node] = self.colour[node], OPEN
            self.work += len(self.near[node])
            for other in self.near[node]:
                self.hard[other] += 1
                if colour < 0:
                    continue
                self.count[other][colour] -= 1
                self.seen[other] -= not self.count[other][colour]

    def _choose(self) -> int:
        """The next node, of equal ones the first; -1 where none is open."""
        chosen, above, below = -1, 0, 1  # its open neighbours and failures, its free colours
        self.work += self.n
        for node in range(self.n):
            if self.colour[node] != OPEN:
                continue
            key, free = self.failed[node] + self.hard[node], self.most - self.seen[node]
            if free == 1:
                return node
            if chosen < 0 or key * below > above * free:
                chosen, above, below = node, key, free
        return chosen

    def _next_colour(self, node: int, colour: int) -> int:
        """The next free colour after one, in use or the first that is not; -1: there is none."""
        counts = self.count[node]
        free = (c for c in range(colour + 1, min(self.used + 1, self.most)) if not counts[c])
        return next(free, -1)
