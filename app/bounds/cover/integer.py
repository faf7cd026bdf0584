"""The cheapest cover of one part as an integer program, by branch and cut: rows of cliques in place of edges.

Of a clique of k nodes a cover has k-1, which says more to a linear program than the clique's edges. On graphs
of many small cliques, geometric and planar ones, and on growing ones of a thousand nodes or two this ends in
seconds, where branch and reduce needs hours; on random graphs of a few thousand nodes packings come closer.

Their first linear program takes the simplex method 1.3 s for 50,000 entries. After an interior point method
HiGHS took 15 s more where the bound had long reached the optimum, of a triangulated grid.

Source   HiGHS by program.py; greedy covers of edges by cliques: Kellerman 1973, Kou, Stockmeyer and Wong 1978
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import scipy.sparse as sp

from app.bounds.cover.kernels import Rows
from app.bounds.cover.packing import Columns, columns_of
from app.bounds.cover.plain import neighbours
from app.bounds.cover.program import INTERIOR, METHOD, Program
from app.bounds.cover.verify import uncovered_edge
from app.bounds.highs import available
from app.bounds.paced import Paced
from app.graphs.graph import Graph
from app.reductions.domination.reducer import Component

__all__ = ["METHOD", "CoverProgram", "Prospects", "fits"]

LEAST = 40  # nodes: smaller parts are left to branch and reduce
DEGREE = 32  # mean degree, up to which linear programs say much
MOST_ENTRIES = 1 << 18  # of a part whose edges are put together to cliques; their table has INTERIOR at most
ENTRY_SECONDS = 4e-5  # of the first linear programs, for each stored entry of the part, about;
BEGIN_SHARE = 0.15  # of a time limit that has to have room for them
CLIQUISH = 1.25  # edges for each clique that they are put together to: linear programs say nearly all
PATIENCE = 3  # times that time, for those, before their end has to be near
CLOSE = 0.003  # gap from which the end can be expected
STILL = 0.15  # of the time limit: a bound that has stood so long is not expected to move
# Of the time of bounds: where the end can be expected; not yet; where other bounds are better, though it has
# had the time of its first linear programs. Where these are nearer to the best cover by FAR it ends.
LEADING_SHARE, EVEN_SHARE, BEHIND_SHARE, FAR = 20.0, 1.0, 0.5, 2
OFTEN = 64  # nodes, after which the thread looks if it may go on


def fits(graph: Graph) -> bool:
    """Whether a part may be worked on: HiGHS can be called, and linear programs may soon be solved."""
    small = graph.n >= LEAST and len(graph.indices) <= min(DEGREE * graph.n, MOST_ENTRIES)
    return small and available()


class CoverProgram:
    """The search for one part's cheapest cover, in slices; what it tells changes in calls of `run` alone.

    lower    no cover costs less
    cover    [n] bool, what it ended with, and what that costs: `cost`; None before
    done     it has ended, with an optimum or without
    strong   rows of cliques are far fewer than edges, or are not known yet
    spent    seconds in `run`
    """

    def __init__(self, graph: Graph, weights: np.ndarray, end: float) -> None:
        """graph: a part, with edges     weights [n] int64, at least 1     end: of time.perf_counter()"""
        self.lower, self.done, self.strong, self.spent = 0, False, True, 0.0
        self.cover: np.ndarray | None = None
        self.cost = int(weights.sum())
        self._edges = graph.edges
        self._course = _Course(graph, weights, end)
        self._paced = Paced(self._course.run)

    def run(self, seconds: float, known: tuple[int, np.ndarray] | None) -> None:
        """Work for about so long.

        known   the cost of the best cover that the caller has, and that cover [n] bool; or None
        """
        course, begun = self._course, time.perf_counter()
        course.known = known
        self._paced.run(seconds)
        self.spent += time.perf_counter() - begun
        self.done = self._paced.done  # the thread may end later than the call: what it leaves is taken first
        if course.program is not None:
            self.lower = max(self.lower, course.program.lower)
            self.strong = self._edges >= CLIQUISH * len(course.program.need)
        if self.done and course.checked():
            self.cover, self.cost = course.program.taken, course.program.cost

    def close(self) -> None:
        """Work no more; what is known stays."""
        self._paced.close()


class Prospects:
    """What a program is likely to come to, judged from slice to slice.

    leading   its end, with the best cover, is near, or likely to be soon
    share     of the time of bounds that is due to it now; 0: it may as well end
    """

    def __init__(self, graph: Graph) -> None:
        """graph: the program's part"""
        self.leading, self.share = False, EVEN_SHARE
        self._first = ENTRY_SECONDS * len(graph.indices)  # s, of the first linear programs, about
        self._still = math.inf  # s that a bound may stand
        self._moved = 0, 0.0  # the last bound, and what it took

    def promising(self, seconds: float) -> bool:
        """Before the first slice: whether so much time is enough to get somewhere."""
        self._still = STILL * seconds
        return self._first <= BEGIN_SHARE * seconds

    def judge(self, program: CoverProgram, known: int, other: int) -> None:
        """After a slice. known: the cost of the best cover     other: the best of other bounds"""
        if program.lower > self._moved[0]:
            self._moved = program.lower, program.spent
        missing = known - program.lower
        near = missing <= CLOSE * known and program.spent - self._moved[1] <= self._still
        self.leading = near or (program.strong and program.spent < PATIENCE * self._first)
        if self.leading:
            self.share = LEADING_SHARE
        elif program.spent < self._first or program.lower >= other:
            self.share = EVEN_SHARE
        else:
            self.share = 0.0 if missing > FAR * (known - other) else BEHIND_SHARE


class _Course:
    """What the thread does; it knows nothing of the CoverProgram, so that this can be forgotten.

    program   None before its rows are found     known   as told to `CoverProgram.run`
    """

    def __init__(self, graph: Graph, weights: np.ndarray, end: float) -> None:
        self._graph, self._weights, self._end = graph, weights, end
        self.program: Program | None = None
        self.known: tuple[int, np.ndarray] | None = None

    def run(self, look: Callable[[], bool]) -> None:
        """Rows, then branch and cut, where no linear program is so large that it keeps others waiting."""
        cliques = columns_of(list(edge_cliques(self._graph, look)), True)
        seconds = self._end - time.perf_counter()
        if look() or seconds <= 0 or len(cliques.nodes) > INTERIOR:
            return
        program = _program(cliques, self._weights)
        self._follow(program)
        self.program = program
        with suppress(MemoryError):  # what is known stays
            program.run(seconds, lambda: self._look(program, look))

    def _look(self, program: Program, look: Callable[[], bool]) -> bool:
        """As `look`; the program hears of better covers."""
        stop = look()
        self._follow(program)
        return stop

    def _follow(self, program: Program) -> None:
        known = self.known
        if known is not None and known[0] < program.cost:
            program.offer(known[1])

    def checked(self) -> bool:
        """Whether there is a choice, which independent code finds to be a cover."""
        return self.program is not None and uncovered_edge(self._graph, self.program.taken) is None


def _program(cliques: Columns, weights: np.ndarray) -> Program:
    """The program of covers that have all nodes but one of every clique, and all nodes for a choice."""
    n = len(weights)
    table = sp.csr_array(
        (np.ones(len(cliques.nodes), dtype=np.int32), cliques.nodes, cliques.ptr), shape=(len(cliques), n)
    )
    part = Component(table, weights, np.arange(n))
    return Program(part, np.ones(n, dtype=bool), int(weights.sum()), need=cliques.need, simplex=True)


def edge_cliques(graph: Graph, look: Callable[[], bool] = lambda: False) -> Iterator[np.ndarray]:
    """Cliques [k] int32, ascending, that have all edges of a whole graph, none within another.

    The first edge that is in none yet is joined by the common neighbour with the most neighbours among the
    others (ties: to the lowest), until none is left.

    look   called now and then; where it is True that is the end
    """
    near = [set(row) for row in neighbours(Rows(graph))]
    done = [set() for _ in near]  # of each node the greater neighbours that it has met in a clique
    for u, row in enumerate(near):
        if u % OFTEN == 0 and look():
            return
        for v in sorted(row):
            if v < u or v in done[u]:
                continue
            clique = _clique(near, u, v)
            for i, node in enumerate(clique):
                done[node].update(clique[i + 1 :])
            yield np.array(clique, dtype=np.int32)


def _clique(near: list[set[int]], u: int, v: int) -> list[int]:
    """A largest clique about an edge, as found greedily; ascending."""
    clique, common = [u, v], near[u] & near[v]
    while common:
        node = max(common, key=lambda w: (len(near[w] & common), -w))
        clique.append(node)
        common &= near[node]
    return sorted(clique)
