"""The heaviest clique of a sparse graph: one small search for each node, among its later neighbours.

In a degeneracy order every node has at most as many later neighbours as the degeneracy, and every clique has
a first node, its root. A root that its neighbours' weights, its core in the neighbourhood, or a colouring
rules out costs little; others are searched by branch and bound on bit sets, with one best clique for all of
them. Roots go from the last of the order, where the graph is dense, to the first. What a root may still hold
is known at every time, hence a bound on all cliques. The search is exact, and a function of the work done.

Source   San Segundo, Lopez and Pardalos 2016 (BBMCSP); Rossi, Gleich, Gebremedhin and Patwary 2014 (PMC);
         colouring bounds with bit sets: Tomita and Kameda 2007, San Segundo et al. 2011
Differs  roots that cost more than a limit are put off, and come again with a limit that is eight times larger
"""

import ctypes

import numpy as np

from app.bounds.clique.degeneracy import core_order
from app.bounds.clique.plain import PlainRoots
from app.graphs.graph import Graph
from app.graphs.lists import starts
from app.graphs.orders import places_of
from app.native.library import function, give_arrays
from app.rng import SplitMix

Long, Pointer, Double = ctypes.c_int64, ctypes.c_void_p, ctypes.c_double
NUMBERS = ("n", "n_roots", "each", "at", "active", "begun", "best", "n_found", "found_at", "work")
ARRAYS = (
    "later_ptr", "later", "weight", "roots", "bound", "found", "place", "node", "order", "load",
)  # fmt: skip


class _Roots(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in NUMBERS),
        *((name, Pointer) for name in (*ARRAYS, "dense")),
    )


ROOM = function("lk_roots_room", Long, returns=Pointer)
RUN = function("lk_roots_run", ctypes.POINTER(_Roots), Long, returns=Long)
PROBE = function("lk_roots_probe", ctypes.POINTER(_Roots), Long, Long, ctypes.c_uint64, returns=Double)
FREE = function("lk_roots_free", Pointer)

METHOD = "branch and bound by degeneracy order"
MOST = 20_000  # later neighbours of a root that is searched: bit sets of them take 150 MB
FIRST_LIMIT, GROWTH = 1 << 15, 8  # work on one root in the first pass; from pass to pass


class Roots:
    """The roots of a graph's cliques, what each may still hold, and the heaviest clique that is known.

    graph     whole     weights [n] int64, above 0, or None: all one
    best      weight of the heaviest clique known, of the search's own or of the caller
    compiled  False: the same without the kernels
    order     [n] the nodes by their places; None: the degeneracy order
    roots     [n] bool, by places, those that count; None: all

    nodes     [n] by their places
    bound     [n] int64, by place: no clique with this root weighs more than this, or than `best`
    counts    [n] int64, by place: later neighbours
    work      words of bit sets gone through
    done      no clique is heavier than `best`
    """

    def __init__(
        self, graph: Graph, weights: np.ndarray | None, best: int, compiled: bool = True,
        order: np.ndarray | None = None, roots: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self.n, self.best, self.work = graph.n, best, 0
        self.nodes = core_order(graph, compiled)[0] if order is None else order
        weights = np.ones(graph.n, dtype=np.int64) if weights is None else weights
        self._weight = np.ascontiguousarray(weights[self.nodes])
        self._later_ptr, self._later = later_neighbours(graph, self.nodes)
        ends = np.concatenate([[0], np.cumsum(self._weight[self._later])])[self._later_ptr]
        self.bound = self._weight + np.diff(ends)
        if roots is not None:
            self.bound[~roots] = 0
        self.counts = np.diff(self._later_ptr)
        self._most = int(self.counts[self.counts <= MOST].max(initial=0))
        self.compiled = compiled and None not in (ROOM, RUN, PROBE, FREE)
        self._inner = self.another()

    def another(self) -> "_CompiledRoots | PlainRoots":
        """A pass of its own over the roots, which knows the best clique's weight and shares `bound`."""
        kind = _CompiledRoots if self.compiled else PlainRoots
        return kind(self._later_ptr, self._later, self._weight, self.bound, self.best, self._most)

    def open(self) -> np.ndarray:
        """[k] ascending: the roots that may hold more than the best clique, and that are searched."""
        return np.flatnonzero((self.bound > self.best) & (self.counts <= MOST))

    def _run(self, until: int) -> bool:
        """Work on the roots begun until `work` has reached a number; True where all were seen."""
        seen = self._inner.run(until)
        self.work, self.best = self._inner.work, self._inner.best
        return seen

    @property
    def found_at(self) -> int:
        """The work done when the best clique was found."""
        return self._inner.found_at

    @property
    def upper(self) -> int:
        """No clique weighs more."""
        return max(int(self.bound.max(initial=0)), self.best)

    @property
    def done(self) -> bool:
        """Whether no clique is heavier than the best."""
        return self.upper <= self.best

    def found(self) -> np.ndarray | None:
        """[k] nodes of the heaviest clique, ascending; None where the caller's stands."""
        clique = self._inner.clique()
        return np.sort(self.nodes[clique]) if len(clique) else None

    def learn(self, best: int) -> None:
        """A clique of this weight is known: only heavier ones are searched for."""
        if best > self.best:
            self.best = best
            self._inner.learn(best)

    def open_nodes(self) -> np.ndarray:
        """[k] nodes, ascending, that the roots that are open and their later neighbours are."""
        roots = np.flatnonzero(self.bound > self.best)
        held = np.zeros(self.n, dtype=bool)
        held[roots] = True
        for root in roots.tolist():
            held[self._later[self._later_ptr[root] : self._later_ptr[root + 1]]] = True
        return np.sort(self.nodes[held])


class RootSearch(Roots):
    """The search for the heaviest clique of a graph that is heavier than one that is known, pass after pass.

    seed      of the order of roots after the first pass; None: always from the last to the first
    work      what the course is a function of
    """

    def __init__(
        self, graph: Graph, weights: np.ndarray | None, best: int, seed: int | None = None,
        compiled: bool = True, order: np.ndarray | None = None, roots: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        super().__init__(graph, weights, best, compiled, order, roots)
        self._random, self._each = None if seed is None else SplitMix(seed), FIRST_LIMIT
        self._begin(self.open()[::-1])

    def _begin(self, roots: np.ndarray) -> None:
        self._inner.begin(np.ascontiguousarray(roots, dtype=np.int32), self._each)
        self.seen = not len(roots)

    @property
    def stuck(self) -> bool:
        """Whether all that is left has too many later neighbours to be searched."""
        return self.seen and not len(self.open())

    def first_pass(self, until: int) -> bool:
        """Work until `work` has reached a number; True where every root was seen."""
        if not self.seen:
            self.seen = self._run(until)
        return self.seen

    def run(self, until: int) -> None:
        """Work until `work` has reached a number, pass after pass."""
        while self.work < until and not self.stuck:
            if self.first_pass(until) and len(roots := self.open()):
                self._each *= GROWTH
                self._begin(self._mixed(roots[::-1]))

    def _mixed(self, roots: np.ndarray) -> np.ndarray:
        """The roots, by turns in order and in an order of the seed."""
        if self._random is None or self._random.below(2):
            return roots
        draws = np.array([self._random.below(1 << 31) for _ in range(len(roots))], dtype=np.int64)
        return roots[np.argsort(draws, kind="stable")]


def later_neighbours(graph: Graph, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The neighbours of each place of an order [n] that come later, as places: offsets [n+1], places [m]."""
    place = places_of(order)
    rows, columns = place[graph.row_of()], place[graph.indices]
    forward = rows < columns
    rows, columns = rows[forward], columns[forward]
    sorted_pairs = np.sort(rows * max(graph.n, 1) + columns)
    later = (sorted_pairs % max(graph.n, 1)).astype(np.int32)
    offsets = starts(rows, graph.n)
    return offsets, later


class _CompiledRoots:
    """A pass over roots by native/clique_roots.c; PlainRoots states what it does."""

    def __init__(
        self, later_ptr: np.ndarray, later: np.ndarray, weight: np.ndarray, bound: np.ndarray, best: int,
        most: int,
    ) -> None:  # fmt: skip
        self.later_ptr, self.later, self.weight, self.bound = later_ptr, later, weight, bound
        self.found, self.place = np.zeros(most + 1, np.int32), np.full(len(weight), -1, np.int32)
        self.node, self.order = np.zeros(most, np.int32), np.zeros(most, np.int32)
        self.load = np.zeros(most, np.int64)
        self._state = _Roots(n=len(weight), best=best)
        self._state.dense = ROOM(most)
        if not self._state.dense:
            raise MemoryError("search for cliques")
        self.begin(np.zeros(0, np.int32), 0)

    def __del__(self) -> None:
        state = getattr(self, "_state", None)
        if state is not None and state.dense:
            FREE(state.dense)
            state.dense = None

    def begin(self, roots: np.ndarray, each: int, kept: bool = False) -> None:
        self.roots = roots
        give_arrays(self, self._state, ARRAYS)
        self._state.n_roots, self._state.each, self._state.at = len(roots), each, 0
        self._state.active &= kept

    def run(self, until: int) -> bool:
        status = RUN(self._state, until)
        if status < 0:
            raise MemoryError("search for cliques")
        return status == 1

    def probe(self, root: int, paths: int, seed: int) -> float:
        words = PROBE(self._state, root, paths, seed)
        if words < 0:
            raise MemoryError("search for cliques")
        return words

    @property
    def at(self) -> int:
        return self._state.at

    @property
    def active(self) -> bool:
        return bool(self._state.active)

    @property
    def work(self) -> int:
        return self._state.work

    @property
    def best(self) -> int:
        return self._state.best

    @property
    def found_at(self) -> int:
        return self._state.found_at

    def clique(self) -> np.ndarray:
        return self.found[: self._state.n_found]

    def learn(self, best: int) -> None:
        self._state.best, self._state.n_found = best, 0
