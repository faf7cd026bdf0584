"""Lower bounds on colours that improve in slices of time: cliques, exact searches, fractional colourings."""

import math
import time

import numpy as np

from app.bounds.coloring import branch, fractional
from app.bounds.coloring.cliques import Cliques
from app.bounds.coloring.fractional import Fractions
from app.bounds.coloring.parts import Colouring, Part
from app.bounds.coloring.trees import Trees
from app.graphs.graph import Graph
from app.toolbox import Bounds

CLIQUE = "clique"
FIRST_SECONDS, CLIQUE_SECONDS = 2e-7, 5e-7  # of the first calls, for each node and entry
CLIQUE_FIRST = 0.1  # s, for cliques before all others
SHARES = {CLIQUE: 0.25, branch.METHOD: 1.0, fractional.METHOD: 1.0}  # of the time, by turns
NEAR = 2  # colours that are left open,
FAR_SHARE = 0.25  # of exact searches that were overtaken where more are


class ColoringBounds(Bounds):
    """Bounds on the chromatic number of one graph, ever better ones: the solver's Bounds, not SlicedBounds.

    First greedy cliques and a greedy colouring, then by turns the search for the largest clique, exact
    searches of the parts that may need more colours, which leave no witness, and fractional colourings of
    them.

    value    no colouring has fewer colours: 0 for a graph without nodes, 1 before the first call
    method   how that was found, "" before the first call
    """

    near = math.inf  # a bound of one colour less is near, however few there are

    def __init__(self, graph: Graph, compiled: bool = True, most_bytes: float = math.inf) -> None:
        """graph: whole     most_bytes: what each of the searches may take"""
        self._graph, self._compiled, self._most_bytes = graph, compiled, most_bytes
        self.value, self.method = min(graph.n, 1), ""
        self._known = graph.n  # colours of the caller's best colouring
        self._colouring: Colouring | None = None
        self._parts: list[Part] = []
        self._found: np.ndarray | None = None  # the colouring, as it was handed out
        self._heard: np.ndarray | None = None

    @property
    def least_seconds(self) -> float:
        """An estimate of the first call, and of the one that begins the search for cliques."""
        share = FIRST_SECONDS if not self.method else 0.0 if self._cliques.begun else CLIQUE_SECONDS
        return share * (self._graph.n + len(self._graph.indices))

    @property
    def closing(self) -> bool:
        """Whether the work under way may prove the best colouring optimal."""
        return bool(self._parts) and self.value + 1 == self._best and self._next() != CLIQUE

    @property
    def gaining(self) -> bool:
        """Whether something is left to try: all of it may raise the bound by far."""
        return bool(self._parts)

    @property
    def checked(self) -> bool:
        """Whether the bound is the size of `witness`."""
        return self.value == len(self.witness())

    def witness(self) -> np.ndarray:
        """[k] nodes, ascending, of the largest clique known."""
        return self._cliques.nodes if self.method else np.arange(self.value)

    def values(self) -> tuple[np.ndarray, np.ndarray, int] | None:
        """Those of the best fractional colouring; see Fractions.proof."""
        return self._fractions.proof if self.method else None

    def optimum(self) -> np.ndarray | None:
        """[n] int64, a colouring with `value` colours 0, 1, ...; None while there is none."""
        return self._colours() if self.method and self._colouring.upper == self.value else None

    def pieces(self) -> np.ndarray | None:
        """[n] int64, a colouring with fewer colours than the caller's; None: there is none."""
        return self._colours() if self.method and self._colouring.upper < self._known else None

    def improve(self, seconds: float, known: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing that `known` colours are enough; True while there is more to try.

        solution   [n] such a colouring, or None
        """
        end = time.perf_counter() + seconds
        made = not self.method
        if made:
            self._begin()
        self._hear(known, solution)
        while self.value < known and (method := self._next()):
            if (begun := time.perf_counter()) >= end and made:
                return True
            self._step(method)
            self._spent[method] += time.perf_counter() - begun
            made = True
        return False

    # ---- the work ------------------------------------------------------------------------------------------

    @property
    def _best(self) -> int:
        """So many colours are enough."""
        return min(self._known, self._colouring.upper)

    def _begin(self) -> None:
        graph = self._graph
        self._colouring = Colouring(graph, self._compiled)
        core, place = self._colouring.core, self._colouring.place
        self._cliques = Cliques(graph, core, place, self._compiled, self._most_bytes)
        self._trees = Trees(self._compiled, self._most_bytes)
        self._fractions = Fractions(self._compiled)
        self._spent = dict.fromkeys(SHARES, 0.0)
        self.value, self.method = len(self._cliques.nodes), CLIQUE
        self._cut()

    def _hear(self, known: int, solution: np.ndarray | None) -> None:
        """What the caller knows; a colouring counts once."""
        best, self._known = self._best, known
        if solution is not None and solution is not self._heard:
            self._heard = solution
            self._colouring.hear(solution)
            self._settle()
        elif self._best < best:
            self._settle()

    def _next(self) -> str | None:
        """The method whose turn it is; None where nothing is left to try."""
        if not self._parts:
            return None
        done = (self._cliques.done, self._trees.done, self._fractions.done)
        open_ = [method for method, ended in zip(SHARES, done) if not ended]
        if CLIQUE in open_ and self._spent[CLIQUE] < CLIQUE_FIRST:
            return CLIQUE
        return min(open_, key=lambda method: self._spent[method] / self._share(method), default=None)

    def _share(self, method: str) -> float:
        """Of the time: exact searches that were overtaken far from the optimum have little to say."""
        overtaken = method == branch.METHOD and self.method == fractional.METHOD
        far = self._best - self.value > NEAR and not self._fractions.done
        return FAR_SHARE if overtaken and far else SHARES[method]

    def _step(self, method: str) -> None:
        if method == CLIQUE:
            self._cliques.step()
            self._raise(len(self._cliques.nodes), method)
        elif method == fractional.METHOD:
            self._raise(self._fractions.step(self.value, self._colouring), method)
        else:
            self._search()

    def _search(self) -> None:
        """A slice of exact searches."""
        best = self._best
        lower, part = self._trees.step(self._colouring)
        self._raise(lower, branch.METHOD)
        if part is None:
            return
        if self._best < best:
            self._settle()
        elif part.upper <= self.value:
            self._parts.remove(part)
        if not self._parts and self._colouring.waiting:
            self._cut()

    def _raise(self, lower: int, method: str) -> None:
        """A bound that a method has found."""
        if lower > self.value:
            self.value, self.method = lower, method
            self._cut()

    def _cut(self) -> None:
        """The parts that may need more colours than `value`; one that stays as it was is the same object."""
        before = {int(part.nodes[0]): part for part in self._parts}
        self._parts = self._colouring.parts(self.value) if self.value else []
        for i, part in enumerate(self._parts):
            old = before.get(int(part.nodes[0]))
            if old is not None and np.array_equal(old.nodes, part.nodes):
                self._parts[i] = old
        self._settle()

    def _settle(self) -> None:
        """Leave out what has no more colours than `value`, and go on with the rest."""
        for part in self._parts:
            part.upper = self._colouring.count(part)
        self._parts = [part for part in self._parts if part.upper > self.value]
        if not self._parts and self._colouring.waiting:
            self._cut()
            return
        self._trees.begin(self._parts, self.value, self._best)
        self._fractions.begin(self._parts)

    def _colours(self) -> np.ndarray:
        """The best colouring, the same array until there is a better one."""
        if self._found is None or int(self._found.max(initial=-1)) + 1 > self._colouring.upper:
            self._found = self._colouring.colours().astype(np.int64)
        return self._found
