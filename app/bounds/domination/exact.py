"""Smallest and cheapest dominating sets: reductions, then branch and cut on what they leave, part by part."""

import time
from collections.abc import Callable

import numpy as np

from app.bounds.cover.program import METHOD, Program
from app.bounds.domination.packing import Mask
from app.bounds.feasible import undominated_node
from app.bounds.highs import available
from app.bounds.paced import Paced
from app.graphs.graph import Graph
from app.reductions.domination.reducer import ENTRY_BYTES, Kernel, estimate_seconds

MOST_ENTRIES = 1 << 23  # nodes and stored entries of a graph that is reduced, and of
MOST_PROGRAM = 1 << 19  # the table that branch and cut gets
BEGIN_SHARE = 0.125  # of a time limit, for reductions
LONG = 10_000  # columns left: with more the end is far even where the gap is not
REDUCED = "reductions"  # the method where they leave nothing


def fits(graph: Graph, seconds: float, most_bytes: float) -> bool:
    """Whether it is begun: HiGHS can be called, memory and the time limit are enough for reductions."""
    entries = graph.n + len(graph.indices)
    room = entries <= MOST_ENTRIES and ENTRY_BYTES * entries <= most_bytes
    return room and estimate_seconds(entries) <= BEGIN_SHARE * seconds and bool(graph.n) and available()


class ExactDomination:
    """The search for one graph's optimum; it works while `run` waits, and what it tells changes there alone.

    lower    no dominating set costs less; 0: nothing is known yet
    method   how that was found
    done     it has ended, with the optimum or without
    wide     what is left is so large that its end cannot be expected
    """

    def __init__(self, graph: Graph, price: np.ndarray, needed: Mask, allowed: Mask, seconds: float) -> None:
        """price [n] int64, above 0     seconds   until the end

        needed, allowed   [n] bool, nodes that have to be dominated, that may be chosen; None: all
        """
        every = np.ones(graph.n, dtype=bool)
        question = every if needed is None else needed, every if allowed is None else allowed
        self.lower, self.method, self.done = 0, "", False
        self.wide = int(np.count_nonzero(question[1])) > LONG  # what is left is told once it is known
        self._optimum: np.ndarray | None = None
        self._pieces: tuple[np.ndarray | None, int] = None, 0  # None: what was made does not dominate
        self._course = _Course(graph, price, *question, time.perf_counter() + seconds)
        self._paced = Paced(self._course.run)

    def optimum(self) -> np.ndarray | None:
        """[n] bool, a dominating set that costs `lower`, once there is one."""
        return self._optimum

    def pieces(self, price: int) -> np.ndarray | None:
        """[n] bool, a dominating set below a price, of the best choices known of all parts; or None.

        The same array until there is a better one.
        """
        cost = self._course.cost()
        if cost is None or cost >= price:
            return None
        if self._pieces[1] != cost:
            self._pieces = self._course.checked(), cost
        return self._pieces[0]

    def run(self, seconds: float, solution: np.ndarray | None = None) -> None:
        """Work for about so long, knowing maybe a dominating set [n] bool."""
        course = self._course
        if solution is not None:
            course.known = solution.astype(bool)
        self._paced.run(seconds)
        self.done = self._paced.done  # the thread may end later than the call: what it leaves is taken first
        if course.programs is None:
            return
        self.wide = course.wide
        if course.optimum is not None:
            self._optimum, self.lower = course.optimum
        elif self._optimum is None:
            self.lower = max(self.lower, course.lower())
        self.method = METHOD if course.programs else REDUCED

    def close(self) -> None:
        """Work no more; what is known stays."""
        self._paced.close()


class _Course:
    """What the thread does.

    programs   of the parts that are left, None before reductions have ended
    optimum    a dominating set and its price, once it is checked
    known      [n] bool, the caller's best dominating set
    """

    def __init__(
        self, graph: Graph, price: np.ndarray, needed: np.ndarray, allowed: np.ndarray, end: float
    ) -> None:
        self._graph, self._price, self._needed, self._allowed = graph, price, needed, allowed
        self._end = end
        self.programs: list[Program] | None = None
        self.optimum: tuple[np.ndarray, int] | None = None
        self.known: np.ndarray | None = None
        self.wide = True
        self._paid = 0

    def lower(self) -> int:
        """No dominating set costs less."""
        return self._paid + sum(program.lower for program in self.programs)

    def cost(self) -> int | None:
        """What the best choices known of all parts cost; None before reductions have ended."""
        if self.programs is None:
            return None
        return self._paid + sum(program.cost for program in self.programs)

    def run(self, look: Callable[[], bool]) -> None:
        """Reductions, every part in a share of the time that is left, then those without a proof again."""
        try:
            none = np.zeros(self._graph.n, dtype=bool)
            self._kernel = kernel = Kernel(self._graph, self._price, none, ~self._allowed, look, self._needed)
            if look():
                return
            self._paid, self.programs = kernel.paid, [Program.of(part) for part in kernel.parts()]
            self.wide = len(kernel.columns) > LONG
            while (left := self._open()) and not look() and time.perf_counter() < self._end:
                entries = sum(program.part.table.nnz for program in left)
                for program in left:
                    self._solve(kernel, program, program.part.table.nnz / entries, look)
                    entries -= program.part.table.nnz
        except MemoryError:  # what is known stays
            return
        if all(program.solved for program in self.programs):
            self._finish()

    def _open(self) -> list[Program]:
        return [
            each for each in self.programs
            if not (each.done or each.solved) and each.part.table.nnz <= MOST_PROGRAM
        ]  # fmt: skip

    def _solve(self, kernel: Kernel, program: Program, share: float, look: Callable[[], bool]) -> None:
        """One part, in its share, by entries, of the time for all that are left."""
        seconds = self._end - time.perf_counter()
        if seconds <= 0 or look():
            return
        if self.known is not None:
            program.offer(kernel.followed(program.part, self.known))
        program.run(max(seconds * share, min(seconds, 1.0)), look)

    def checked(self) -> np.ndarray | None:
        """The best choices of all parts, if independent code finds that they dominate and are allowed."""
        chosen = self._kernel.chosen.copy()
        for program in self.programs:
            chosen[program.part.columns[program.taken]] = True
        dominates = undominated_node(self._graph, chosen, self._needed) is None
        return chosen if dominates and not (chosen & ~self._allowed).any() else None

    def _finish(self) -> None:
        """The optimum, if it is one."""
        chosen = self.checked()
        if chosen is not None and (cost := int(self._price[chosen].sum())) == self.lower():
            self.optimum = chosen, cost
