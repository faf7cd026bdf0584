"""Fractional colourings as bounds on colours: column generation, with bounds that hold exactly.

    minimise sum of x_S over independent sets S, those that hold a node adding up to at least 1

and its dual: maximise sum of pi_v, no set's nodes adding up to more than 1. HiGHS solves the dual over the
sets that are known, in floating point, which nothing is proved by: values are rounded down to multiples of
1/ONE, whole numbers w, and an exact search for the heaviest clique of the complement says that no set weighs
more than U. Every colouring then has sum(w) / U colours at least.

The point that is looked at lies between the dual's optimum and the best point known that breaks no set, near
the latter, which takes far fewer programs, and the search ends where it shows as much as one colour more than
is known.

Source   Mehrotra and Trick 1996; exact bounds: Held, Cook and Sewell 2012; bounds before the end: Farley
         1990; points between: Ben-Ameur and Neto 2007
"""

from collections import deque
from collections.abc import Iterator

import numpy as np

from app.bounds.clique.roots import RootSearch
from app.bounds.coloring.heavy_sets import HeavySets
from app.bounds.coloring.parts import Colouring, Part
from app.bounds.highs import SIMPLEX, available, ints, new_solver
from app.graphs.derived import complement, induced
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set

METHOD = "fractional colouring"
ONE = 1 << 20  # of node values
LEAST, MOST = 5, 1000  # nodes of a part,
SMALL, DENSE = 300, 0.1  # which has so many at most, or such a share of the pairs of nodes as edges
INWARD = 0.85  # of the way from the program's optimum to the best point that breaks no set
NEW, ROUNDS = 30, 40  # sets, at most, that exchanges add at once; rounds of these from each node on
SLICE, PLAIN_SLICE = 1 << 18, 1 << 12  # words of bit sets of the search, with the kernel and without
LITTLE, ALL = 64, 1 << 62  # words, by pairs of nodes, on a search that is not the last resort; no limit
PIVOTS = 100_000  # of the simplex method in a slice, times nodes


def fits(graph: Graph) -> bool:
    """Whether a part may be worked on: HiGHS can be called, and independent sets of the part are small."""
    dense = graph.n <= SMALL or len(graph.indices) >= DENSE * graph.n * graph.n
    return LEAST <= graph.n <= MOST and dense and available()


class Fractional:
    """The fractional colouring of one part, in slices.

    lower   no colouring has fewer colours; 0: nothing is known yet
    done    nothing better is to come
    sets    independent sets known
    proof   values [n] int64 of nodes, and what no set of them is worth more than: they show `lower`
    """

    def __init__(self, graph: Graph, colours: np.ndarray, compiled: bool = True) -> None:
        """colours [n]: a colouring, whose classes are the first sets"""
        self.lower, self.done, self.sets = 0, False, 0
        self.proof: tuple[np.ndarray, int] | None = None
        self._n, self._compiled = graph.n, compiled
        self._apart = complement(graph)
        self._sets = HeavySets(graph, ROUNDS, compiled)
        self._free = np.ones((graph.n, graph.n), dtype=bool)  # which nodes may join one in a set
        self._free[graph.row_of(), graph.indices] = False
        np.fill_diagonal(self._free, False)
        self._inside, self._worth = np.zeros(graph.n), 0.0  # a point that breaks no set, and its sum
        self._little = LITTLE * graph.n**2
        self._known = 0  # colours that the caller knows to be needed
        self._slices = self._work(colours)

    def step(self, lower: int) -> None:
        """A slice of the work, where `lower` colours are known to be needed."""
        self._known = max(lower, self.lower)
        self.done = next(self._slices, None) is None

    def _work(self, colours: np.ndarray) -> Iterator[bool]:
        """Slice after slice: the program, sets that are too heavy, exact searches where exchanges fail."""
        program, found = _Program(self._n), self._first(colours)
        yield from self._even(max(map(len, found)))
        while not found or program.add(found):
            self.sets = program.sets
            while not program.solve():
                if program.failed:
                    return
                yield True
            if program.value - 2 * self._n / ONE <= self._known:  # twice what rounding may take
                return
            weights = self._between(program.point)
            found = self._heavy(weights)
            total, heaviest = int(weights.sum()), int(weights[found[0]].sum()) if found else ONE
            if not found or 2 * heaviest <= ONE + (total - 1) // self._known:
                limit = max(self._limit(total, heaviest), ONE)
                found += yield from self._exact(weights, limit, self._little if found else ALL)
            yield True

    def _even(self, largest: int) -> Iterator[bool]:
        """What follows where all nodes count the same, while that costs little.

        largest   nodes of a set that is known
        """
        weights = np.ones(self._n, dtype=np.int64)
        for bold in (True, False):
            before = 0
            while self._known > before and (self._n - 1) // self._known >= largest:
                before = self._known
                limit = self._limit(self._n, largest) if bold else (self._n - 1) // before
                yield from self._exact(weights, limit, self._little)

    def _limit(self, total: int, heaviest: int) -> int:
        """What no set may exceed, so that weights with that total prove something new: half of the way to
        the heaviest set known, where that is more than one colour.
        """
        limit = (total - 1) // self._known
        half = (limit + heaviest) // 2
        return half if -(-total // half) > self._known + 1 else limit

    def _between(self, point: np.ndarray) -> np.ndarray:
        """[n] int64, a point [n] on its way to the best one that breaks no set, in units of 1/ONE."""
        if self._worth:
            point = INWARD * self._inside + (1 - INWARD) * point
        return np.floor(np.clip(point, 0.0, 1.0) * ONE).astype(np.int64)

    def _first(self, colours: np.ndarray) -> list[np.ndarray]:
        """Sets to begin with: those of a colouring, and heavy ones."""
        classes = [np.flatnonzero(colours == colour) for colour in sorted_set(colours).tolist()]
        degree = self._free.sum(axis=1)
        return [self._maximal(nodes, degree) for nodes in classes] + self._heavy(ONE // 2 + degree)

    def _heavy(self, weights: np.ndarray) -> list[np.ndarray]:
        """Sets heavier than ONE, heaviest first, by exchanges."""
        found = self._sets.heavier(weights, ONE)
        best = sorted(found, key=lambda members: -found[members])[:NEW]
        nodes = (np.flatnonzero(np.frombuffer(members, dtype=np.uint8)) for members in best)
        return [self._maximal(each, weights) for each in nodes]

    def _exact(self, weights: np.ndarray, limit: int, most: int) -> Iterator[bool]:
        """The search for a set heavier than a limit, beyond which the weights prove nothing new; returns it.

        Where there is none they do, or they are the best point, and no set is returned.

        most   words of bit sets, after which it is given up
        """
        nodes = np.flatnonzero(weights)
        search = RootSearch(induced(self._apart, nodes), weights[nodes], limit, compiled=self._compiled)
        while not search.done and search.best == limit and search.work < most:
            search.run(search.work + (SLICE if self._compiled else PLAIN_SLICE))
            yield True
        self._prove(weights, search.upper)
        heavy = search.found()
        return [] if heavy is None else [self._maximal(nodes[heavy], weights)]

    def _prove(self, weights: np.ndarray, most: int) -> None:
        """No set weighs more than `most`."""
        total = int(weights.sum())
        if -(-total // most) > self.lower:
            self.lower, self.proof = -(-total // most), (weights, most)
        self._known = max(self._known, self.lower)
        if total / most > self._worth:
            self._inside, self._worth = weights / most, total / most

    def _maximal(self, nodes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """[k] ascending, a set with all that may join it, the heaviest first."""
        free, members = self._free[nodes].all(axis=0), nodes.tolist()
        while free.any():
            members.append(int(np.where(free, weights, -1).argmax()))
            free &= self._free[members[-1]]
        return np.sort(np.array(members, dtype=np.int64))


class Fractions:
    """The fractional colourings of parts, by turns.

    proof   of the best bound so far: nodes [k] of the whole graph, their values [k], and what no set of them
            is worth more than; None: there is no bound
    """

    def __init__(self, compiled: bool) -> None:
        self._compiled, self._lower = compiled, 0
        self.proof: tuple[np.ndarray, np.ndarray, int] | None = None
        self._turns: deque[Part] = deque()
        self._begun: dict[Part, Fractional] = {}  # those that have ended, too: they are not begun again

    @property
    def done(self) -> bool:
        """Whether nothing better is to come."""
        return not self._turns

    def begin(self, parts: list[Part]) -> None:
        """The parts that are wanted now; those that are known go on."""
        self._begun = {part: self._begun[part] for part in parts if part in self._begun}
        self._turns = deque(part for part in parts if fits(part.graph) and not self._ended(part))

    def step(self, lower: int, colouring: Colouring) -> int:
        """A slice of the part whose turn it is, where `lower` colours are known to be needed; returns how
        many are now known to be.
        """
        part = self._turns.popleft()
        if part.upper <= lower:  # an exact search has found a better colouring
            return 0
        if part not in self._begun:
            self._begun[part] = Fractional(part.graph, colouring.of(part), self._compiled)
        begun = self._begun[part]
        begun.step(lower)
        if begun.lower > self._lower:
            (values, most), self._lower = begun.proof, begun.lower
            some = np.flatnonzero(values)
            self.proof = part.nodes[some], values[some], most
        if not self._ended(part):
            self._turns.append(part)
        return begun.lower

    def _ended(self, part: Part) -> bool:
        return part in self._begun and self._begun[part].done


class _Program:
    """The dual over the sets that are known.

    point, value   [n] the last optimum, and its sum
    failed         HiGHS has given up
    """

    def __init__(self, n: int) -> None:
        import highspy  # not needed by those who start the program for something else

        self._highs, self._seen, self.failed = highspy, set(), False
        self.point, self.value = np.zeros(n), 0.0
        self._solver = solver = new_solver(**SIMPLEX, simplex_iteration_limit=PIVOTS // n)
        none = ints([])
        solver.addCols(n, np.full(n, -1.0), np.zeros(n), np.ones(n), 0, ints(np.zeros(n)), none, np.zeros(0))

    @property
    def sets(self) -> int:
        """How many are known."""
        return len(self._seen)

    def add(self, sets: list[np.ndarray]) -> int:
        """More sets, each [k] ascending; returns how many of them were new."""
        new = {nodes.tobytes(): nodes for nodes in sets}
        rows = [nodes for key, nodes in new.items() if key not in self._seen]
        self._seen.update(new)
        if rows:
            k, ends = len(rows), np.cumsum([0, *map(len, rows)])
            entries = ints(np.concatenate(rows))
            least = np.full(k, -self._highs.kHighsInf)
            self._solver.addRows(
                k, least, np.ones(k), len(entries), ints(ends[:-1]), entries, np.ones(len(entries))
            )
        return len(rows)

    def solve(self) -> bool:
        """Some pivots; whether they have reached the optimum."""
        status = self._highs.HighsModelStatus
        self._solver.run()
        found = self._solver.getModelStatus()
        self.failed = found not in (status.kOptimal, status.kIterationLimit)
        if found == status.kOptimal:
            self.point = np.array(self._solver.getSolution().col_value)
            self.value = -self._solver.getInfo().objective_function_value
        return found == status.kOptimal
