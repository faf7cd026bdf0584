"""Local search for graph colouring: a pair of walks, and what both have in common.

With one colour less than the best colouring has, two states are improved by walks (walk.py). Two children
are made of them, each with the largest colour classes of both by turns, and improved in their place, until
one has no conflict. Every ten generations one is replaced by the best of an earlier cycle; where two have
become alike, one by a random one. The next number of colours begins with the colouring found, the nodes of
its smallest class dealt to the others.

Source   HEAD: Moalic and Gondran, Journal of Heuristics 2018; crossover GPX: Galinier and Hao 1999
Differs  walks are of several lengths, as nothing is known of how long they should be: for hidden colourings
         short ones are best, on dense random graphs long ones. From cycle to cycle they are 1, 1, 2, 1, 1, 2,
         4, ... times the shortest (Luby, Sinclair and Zuckerman 1993). Those of dense graphs, whose states
         become alike sooner, are short at first, twice as long once states have become alike, or have not for
         long, and half as long for the next number of colours, which begins with both states of the pair
"""

import numpy as np

from app.graphs.graph import Graph
from app.rng import SplitMix
from app.search.coloring.walk import Walk, walk_bytes
from app.toolbox import ALWAYS, Search

MOVES, DENSE_MOVES = 16, 4  # of the shortest walk for each node; the same of a dense graph
LEAST_MOVES = 2000
DENSE = 4  # times the stored entries: at most so many pairs of nodes has a dense graph
DOUBLINGS = 10  # after which walks are short again
PATIENCE = 400  # generations in which states do not become alike, after which walks are longer
CYCLE = 10  # generations
CROSSED = 30_000  # nodes of a graph, up to which states are crossed: else there is one walk
LONG = 1 << 27  # nodes times nodes times colours, from which the beginning of a walk is slow
PROBE = 64  # moves that tell how slow


def search_bytes(graph: Graph, colors: int) -> int:
    """Bytes of a search: of its walk, and of the classes of one state against those of another."""
    return walk_bytes(graph, colors) + (8 * colors**2 if graph.n <= CROSSED else 0)


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
        self._grows = graph.n <= CROSSED and graph.n * graph.n <= DENSE * len(graph.indices)
        self._random, self._walk = SplitMix(seed), Walk(graph, compiled)
        self.steps = self.found_at = self._doublings = 0
        self._pair: list[np.ndarray] = []  # states improved
        self._worth: list[int] = []  # and their conflicts
        self._waiting: list[np.ndarray] = []  # states to improve
        self.best = 0
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
        others, colors = self._pair[-1:] or self._waiting[-1:], self.best - 1  # states of so many
        self._found = np.array(coloring, dtype=np.int64)
        self.best = int(self._found.max(initial=-1)) + 1
        self._generation, self._cycle, self._apart = 0, 1, 0
        self._doublings = max(self._doublings - 1, 0)
        self._crossed = self.graph.n <= CROSSED
        self._pair, self._worth = [], []
        self._elite: list[tuple[int, np.ndarray] | None] = [None, None]  # of this cycle and the one before
        if not self.done:
            self._waiting = [self._dealt(self._found)]
            if self._crossed:
                kept = self._grows and others and colors == self.best
                self._waiting.append(self._dealt(others[0]) if kept else self._drawn(self.graph.n))
            self._begin()

    @property
    def _colors(self) -> int:
        return self.best - 1

    def _begin(self) -> None:
        """Walk from the next of the states that wait."""
        self._walk.begin(self._colors, self._waiting.pop(0), self._random.state)
        moves, times = MOVES, times_of_cycle(self._cycle)
        if self._grows:
            moves, times = DENSE_MOVES, 1 << self._doublings
        self._left = max(LEAST_MOVES, moves * self.graph.n) * times

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
        same = alike(first, second, self._colors)
        self._apart = 0 if same else self._apart + 1
        if same:
            second = self._drawn(self.graph.n)
        if same or self._apart % PATIENCE == PATIENCE - 1:
            self._doublings = (self._doublings + 1) % (DOUBLINGS + 1)
        self._waiting = [self._crossing(first, second), self._crossing(second, first)]
        self._pair, self._worth = [], []

    # ---- states --------------------------------------------------------------------------------------------

    def _drawn(self, count: int) -> np.ndarray:
        """[count] int32 colours, drawn."""
        return np.array([self._random.below(self._colors) for _ in range(count)], dtype=np.int32)

    def _dealt(self, coloring: np.ndarray) -> np.ndarray:
        """[n] int32: a state [n] of one colour more, the nodes of its smallest class in others, drawn."""
        sizes = np.bincount(coloring, minlength=self.best)
        smallest = self.best - 1 - int(sizes[::-1].argmin())
        state = coloring.astype(np.int32)
        nodes = np.flatnonzero(state == smallest)
        state[state == self.best - 1] = smallest
        state[nodes] = self._drawn(len(nodes))
        return state

    def _crossing(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """[n] int32: the largest class of what is left of each by turns, the rest drawn."""
        colors = self._colors
        both = overlaps(first, second, colors)
        left, sizes = (both, both.T), (both.sum(axis=1), both.sum(axis=0))
        order = np.full((2, colors), colors, dtype=np.int32)  # the child's colour of each class that is taken
        for color in range(colors):
            turn = color % 2
            taken = int(sizes[turn].argmax())
            if sizes[turn][taken] == 0:
                break
            order[turn, taken] = color
            sizes[1 - turn][:] -= left[turn][taken]
            sizes[turn][taken] = 0
            left[turn][taken] = 0
        child = np.minimum(order[0, first], order[1, second])
        rest = np.flatnonzero(child == colors)
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
    apart = len(first) - int(overlaps(first, second, colors).max(axis=1, initial=0).sum())
    return apart <= ALIKE * len(first)


def overlaps(first: np.ndarray, second: np.ndarray, colors: int) -> np.ndarray:
    """[colors, colors] int64: the nodes that each class of one state [n] shares with each of another."""
    pairs = first.astype(np.int64) * colors + second
    return np.bincount(pairs, minlength=colors * colors).reshape(colors, colors)
