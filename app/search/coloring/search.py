"""Local search for graph colouring: a pair of walks, and what both have in common.

With one colour less than the best colouring has, two states are improved by walks (walk.py). Two children
are made of them, each with the largest colour classes of both by turns, and improved in their place, until
one has no conflict. Two states that have become alike are replaced: one by the best of an earlier cycle, the
other by a random one. The next number of colours begins with the colouring found, the nodes of its smallest
class dealt to the others.

Source   HEAD: Moalic and Gondran, Journal of Heuristics 2018; crossover GPX: Galinier and Hao 1999
Differs  walks are of several lengths, from cycle to cycle 1, 1, 2, 1, 1, 2, 4, ... times the shortest (Luby,
         Sinclair and Zuckerman 1993), as nothing is known of how long they should be: for hidden colourings
         short ones are best, on dense random graphs long ones
"""

import numpy as np

from app.graphs.graph import Graph
from app.rng import SplitMix
from app.search.coloring.walk import Walk
from app.toolbox import ALWAYS, Search

MOVES = 16  # of the shortest walk for each node
LEAST_MOVES = 2000
CYCLE = 10  # generations
CROSSED = 30_000  # nodes of a graph, up to which states are crossed: else there is one walk
LONG = 1 << 27  # nodes times nodes times colours, from which the beginning of a walk is slow
PROBE = 64  # moves that tell how slow


class ColoringSearch(Search):
    """A search for a colouring with few colours; a function of graph, start, seed and steps made.

    graph      whole
    start      [n] a colouring with colours 0..k-1
    least      no colouring has fewer colours
    steps      moves made so far
    best       colours of the best colouring, found_at the step it was found in
    done       True when there is none with fewer colours
    """

    hears = True

    def __init__(self, graph: Graph, start: np.ndarray, seed: int, least: int, compiled: bool = True) -> None:
        self.graph, self.least = graph, least
        self._random, self._walk = SplitMix(seed), Walk(graph, compiled)
        self.steps = self.found_at = 0
        self._take(start)

    @property
    def done(self) -> bool:
        """True when no colouring has fewer colours."""
        return self.best <= self.least

    @property
    def even_steps(self) -> int:
        """Moves that cost about what the last ones did: the rest of this walk.

        A move costs more where more nodes are in conflict, of which a walk has most where it begins: there a
        few moves, which tell what they cost.
        """
        if self.done or self.graph.n**2 * self._colors < LONG:
            return ALWAYS
        return self._left if self._walk.moves else PROBE

    def solution(self) -> np.ndarray:
        """[n] int64, the best colouring, a copy."""
        return self._found.copy()

    def hear(self, solution: np.ndarray) -> None:
        """A colouring from elsewhere, to go on from where it is better."""
        if int(solution.max(initial=-1)) + 1 < self.best:
            self._take(solution)

    def run(self, steps: int) -> None:
        """`steps` moves, fewer only when done."""
        while steps > 0 and not self.done:
            made = self._walk.run(min(steps, self._left))
            self.steps += made
            self._left -= made
            steps -= made
            if self._walk.edges == 0:
                self.found_at = self.steps
                self._random.state = self._walk.random
                self._take(self._walk.color)
            elif not self._left:
                self._random.state = self._walk.random
                self._next()

    # ---- one number of colours -----------------------------------------------------------------------------

    def _take(self, coloring: np.ndarray) -> None:
        """The best colouring is this one; begin to look for one with a colour less."""
        self._found = np.array(coloring, dtype=np.int64)
        self.best = int(self._found.max(initial=-1)) + 1
        self._generation, self._cycle = 0, 1
        self._crossed = self.graph.n <= CROSSED
        self._pair: list[np.ndarray] = []  # states improved
        self._worth: list[int] = []  # and their conflicts
        self._elite: list[tuple[int, np.ndarray] | None] = [None, None]  # of this cycle and the one before
        if not self.done:
            self._waiting = [self._dealt()]
            if self._crossed:
                self._waiting.append(self._drawn(self.graph.n))
            self._begin()

    @property
    def _colors(self) -> int:
        return self.best - 1

    def _begin(self) -> None:
        """Walk from the next of the states that wait."""
        self._walk.begin(self._colors, self._waiting.pop(0), self._random.state)
        self._left = max(LEAST_MOVES, MOVES * self.graph.n) * times_of_cycle(self._cycle)

    def _next(self) -> None:
        """A walk has ended: go on with the next state of this generation, or make the next generation."""
        self._pair.append(self._walk.best_color)
        self._worth.append(self._walk.best_edges)
        if not self._waiting:
            if self._crossed:
                self._next_generation()
            else:
                self._waiting, self._pair, self._worth = [self._pair[0]], [], []
                self._cycle += 1
        self._begin()

    def _next_generation(self) -> None:
        """Children of the pair, which wait to be improved."""
        first, second = self._pair
        better = int(self._worth[1] < self._worth[0])
        elite = self._elite[0]
        if elite is None or self._worth[better] < elite[0]:
            self._elite[0] = self._worth[better], self._pair[better].copy()
        self._generation += 1
        if self._generation % CYCLE == 0:
            first = first if self._elite[1] is None else self._elite[1][1]
            self._elite = [None, self._elite[0]]
            self._cycle += 1
        if alike(first, second, self._colors):
            second = self._drawn(self.graph.n)
        self._waiting = [self._crossing(first, second), self._crossing(second, first)]
        self._pair, self._worth = [], []

    # ---- states --------------------------------------------------------------------------------------------

    def _drawn(self, count: int) -> np.ndarray:
        """[count] int32 colours, drawn."""
        return np.array([self._random.below(self._colors) for _ in range(count)], dtype=np.int32)

    def _dealt(self) -> np.ndarray:
        """[n] int32: the best colouring, the nodes of its smallest class in others, drawn."""
        sizes = np.bincount(self._found, minlength=self.best)
        smallest = int(sizes[::-1].argmin())
        smallest = self.best - 1 - smallest
        state = self._found.astype(np.int32)
        nodes = np.flatnonzero(state == smallest)
        state[state == self.best - 1] = smallest
        state[nodes] = self._drawn(len(nodes))
        return state

    def _crossing(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """[n] int32: the largest class of what is left of each by turns, the rest drawn."""
        colors, parents = self._colors, (first, second)
        child = np.full(self.graph.n, -1, dtype=np.int32)
        sizes = [np.bincount(each, minlength=colors) for each in parents]
        for color in range(colors):
            turn = color % 2
            nodes = np.flatnonzero((parents[turn] == int(sizes[turn].argmax())) & (child < 0))
            child[nodes] = color
            for each, size in zip(parents, sizes):
                size -= np.bincount(each[nodes], minlength=colors)
        rest = np.flatnonzero(child < 0)
        child[rest] = self._drawn(len(rest))
        return child


ALIKE = 0.02  # of the nodes, that are in other classes


def times_of_cycle(number: int) -> int:
    """1, 1, 2, 1, 1, 2, 4, 1, ...: how many times as long as the shortest walks of cycle 1, 2, ... are."""
    while number & (number + 1):  # no power of two less one: the sequence begins anew after the last one
        number -= (1 << number.bit_length() - 1) - 1
    return number + 1 >> 1


def alike(first: np.ndarray, second: np.ndarray, colors: int) -> bool:
    """Whether two states [n] put nearly the same nodes together: each class of one against its largest part
    in the other."""
    both = np.zeros((colors, colors), dtype=np.int64)
    np.add.at(both, (first, second), 1)
    apart = len(first) - int(both.max(axis=1, initial=0).sum())
    return apart <= ALIKE * len(first)
