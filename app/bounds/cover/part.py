"""The bounds of one component of a graph on its vertex covers: methods that take turns."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import exact_sum
from app.bounds.cover.branch import METHOD as BRANCHED
from app.bounds.cover.branch import search_for
from app.bounds.cover.clique_cover import CliqueSearch
from app.bounds.cover.cycles import CyclePacking
from app.bounds.cover.integer import METHOD as CUT
from app.bounds.cover.integer import CoverProgram, Prospects
from app.bounds.cover.kernels import Rows
from app.bounds.cover.lp import relaxed
from app.bounds.cover.packing import Columns, Packing, nothing, packing
from app.bounds.cover.selection import ENTRY_SECONDS, MOST_ENTRIES, Selection, available
from app.bounds.cover.theta import Theta
from app.bounds.cover.theta_verify import ThetaCertificate
from app.bounds.cover.witness import ThetaPart
from app.graphs.graph import Graph

NONE, CLIQUES = "none yet", "clique cover"
SLICE_S = 0.05  # aim of one slice of a search
RELAX_SECONDS = 3e-7  # of the relaxation, for each node and entry
PAIRED_SECONDS = 1e-6  # of the relaxation, for each node, where a matching is known
FIRST_SECONDS, FIRST_ENTRY_SECONDS = 1e-6, 5e-9  # of the first clique cover, for each node, for each entry
ROUNDS, ROUND_ENTRIES = (
    25,
    1 << 18,
)  # of iterated greedy in a slice of the clique cover; fewer with more entries
PACKING_SECONDS = 6e-7  # of the beginning of packings, for each node and entry
SEARCHABLE = 1 << 17  # nodes of a part up to which a search tree is tried
SEARCHED = 3000  # nodes of a part up to which a search tree has a large share of the time
STALE = 40  # slices without a better clique cover; where other bounds are better,
HOPELESS = 4  # so many
THETA_SHARE = 20.0  # of the time of bounds, for the theta function; others have 1 to 8
SPARSE = 4.5  # edges for each node: with fewer, packings are better, and the theta function has
SPARSE_SHARE = 1.0  # this share
UNLIMITED = 8.0  # s: a time limit that leaves bounds about what they have without one
PROGRAM_HEAD = 1e-6  # s for each entry, and each share of other methods, before an integer program begins
PROGRAM_SLICE = 0.05  # s
# So near the best cover has to be, before it is asked whether one attains the bound of the cliques.
NEAR = 0.01
SELECTIONS = 25  # slices of that


def _within(nodes: np.ndarray, partner: np.ndarray) -> np.ndarray:
    """[k] the partners of some nodes, ascending, which no edge leaves, in their own numbers."""
    mine = partner[nodes]
    return np.where(mine < 0, -1, np.searchsorted(nodes, mine))


@dataclass
class Turn:
    """A method that works in slices, its share of the time, and the seconds it has had.

    begin_seconds   an estimate of the first slice, where it may be long
    each_seconds    the same of whichever is next, where all may be
    due             its share, where that changes
    """

    slices: Iterator[bool]
    share: float
    begin_seconds: float = 0.0
    each_seconds: Callable[[], float] | None = None
    due: Callable[[], float] | None = None
    spent: float = 0.0

    @property
    def next_seconds(self) -> float:
        """An estimate of the next slice, where it may be long."""
        if self.each_seconds is not None:
            return self.each_seconds()
        return 0.0 if self.spent else self.begin_seconds

    @property
    def rank(self) -> float:
        """The method with the least is next. What is long waits until the others have had their shares of
        the time that it will take: it may never fit.
        """
        return max(self.spent, self.next_seconds) / (self.share if self.due is None else self.due())

    def step(self) -> bool:
        """One slice; False when the method has ended."""
        begun = time.perf_counter()
        more = next(self.slices, None) is not None
        self.spent += time.perf_counter() - begun
        return more


class CoverPart:
    """The bounds of one component, or of small ones together.

    nodes [k]      in the whole graph, ascending
    best           Packing on the part's own numbers, the best so far
    next_seconds   an estimate of the next slice, where it may be long
    theta          what the theta function proves, where that is more; else None
    claimed        the bound rests on a search, or on an integer program
    gaining        that is at work on a dense part
    leading        an integer program is near its end, or likely to be soon
    selects        covers that attain the bound of the cliques may be looked for
    selecting      one is
    optimum        [k] bool or None
    """

    def __init__(
        self, graph: Graph, nodes: np.ndarray, weights: np.ndarray | None, compiled: bool,
        partner: np.ndarray | None, search: bool, theta: bool, program: bool = False,
    ) -> None:  # fmt: skip
        self.nodes, self._compiled, self._searches = nodes, compiled, search
        self._graph = graph
        self._given = None if weights is None else weights[nodes]
        self._weights = np.ones(len(nodes), dtype=np.int64) if weights is None else self._given
        self._total = exact_sum(self._weights)
        self._rows = Rows(self._graph)
        self.best = nothing(self._given, NONE)
        self.lower, self.method = 0, self.best.method
        self._shown = 0  # what has a witness of the bound
        self.claimed, self.optimum = False, None
        self.theta: ThetaPart | None = None
        self.gaining = self.selects = self.selecting = self.leading = False
        self._prospects = Prospects(graph) if program and search else None
        self._program: CoverProgram | None = None
        self._limit = UNLIMITED
        self._stale = 0  # slices since the last better clique cover
        self._with_theta, self._dense = theta, graph.edges > SPARSE * len(nodes)
        self._known: tuple[int, np.ndarray] | None = None  # cost and cover that the caller knows
        entries = len(self._graph.indices)
        self._partner = None if partner is None or weights is not None else _within(nodes, partner)
        self._first_seconds = FIRST_SECONDS * len(nodes) + FIRST_ENTRY_SECONDS * entries
        self.next_seconds = self._first_seconds if self._partner is None else PAIRED_SECONDS * len(nodes)
        self._relax_seconds = RELAX_SECONDS * (len(nodes) + entries)
        self._rounds = max(1, min(ROUNDS, ROUNDS * ROUND_ENTRIES // max(entries, 1)))
        self._slices = self._methods()

    def step(self) -> bool:
        """One slice; False when nothing is left to try."""
        return next(self._slices, None) is not None

    @property
    def cover(self) -> np.ndarray | None:
        """[k] bool, the best cover that is known, or None."""
        if self.optimum is not None or self._known is None:
            return self.optimum
        return self._known[1]

    @property
    def cost(self) -> int | None:
        """What that costs."""
        if self.optimum is not None or self._known is None:
            return None if self.optimum is None else self.lower
        return self._known[0]

    def expect(self, seconds: float) -> None:
        """The time limit of the run: covers that attain a bound may be looked for, too, as the caller takes
        them.
        """
        self.selects, self._limit = True, seconds
        self.allow(seconds)

    def allow(self, seconds: float) -> None:
        """An integer program may be worked on for so long, where that is enough to get somewhere."""
        if self._prospects is not None and self._prospects.promising(seconds):
            self._program = CoverProgram(self._graph, self._weights, time.perf_counter() + seconds)

    def close(self) -> None:
        """Work no more; what is known stays."""
        if self._program is not None:
            self._program.close()

    def offer(self, cover: np.ndarray) -> None:
        """The caller's cover [k] bool of this part."""
        cost = int(self._weights[cover].sum())
        if self._known is None or cost < self._known[0]:
            self._known = cost, cover.copy()
            self._close()

    def _close(self) -> None:
        if self.optimum is None and self._known is not None and self._known[0] <= self.lower:
            self.optimum = self._known[1]

    def _take(self, found: Packing) -> None:
        """A packing, where it is better than what there is."""
        if found.lower > self._shown:
            self.best, self.theta = found, None
            self._show(found.lower, found.method)

    def _show(self, lower: int, method: str) -> None:
        """A better bound that has a witness; of equal ones it stands before one that has none."""
        self._shown = lower
        if lower >= self.lower:
            self.lower, self.method, self.claimed = lower, method, False
            self._close()

    def _methods(self) -> Iterator[bool]:
        """A first clique cover, the relaxation (first of all where its matching is known), better clique
        covers, then packings, a search, still more clique covers and the theta function, by shares of time.
        """
        if self._partner is not None:
            self._take(relaxed(self._graph, None, self._partner))
            self.next_seconds = self._first_seconds
            yield True
        cliques = CliqueSearch(self._rows, self._weights, compiled=self._compiled)
        cliques.run(self._rounds)
        self._take(self._clique_bound(cliques))
        if self._partner is None:
            self.next_seconds = self._relax_seconds
            yield True
            self._take(relaxed(self._graph, self._given))
        self.next_seconds = 0.0
        yield True
        for _ in range(2):
            self._stale = 0 if cliques.run(self._rounds) else self._stale + 1
            yield True
        self._take(self._clique_bound(cliques))
        turns = self._turns(cliques)
        asked: list[int] = []
        while turns and self.optimum is None:
            if cliques.left_out not in asked and self._selectable(1 << len(asked)):
                asked.append(cliques.left_out)
                turns.append(Turn(self._selections(cliques), 8.0, ENTRY_SECONDS * len(self._rows.indices)))
            turn = min(turns, key=lambda each: each.rank)
            self.next_seconds = turn.next_seconds
            if self.next_seconds:
                yield True
            self.next_seconds = 0.0
            if not turn.step():
                turns.remove(turn)
            yield True

    def _turns(self, cliques: CliqueSearch) -> list[Turn]:
        """Packings, a search, still more clique covers, and the theta function."""
        n, entries = len(self.nodes), len(self._graph.indices)
        searched = 4.0 if n <= SEARCHED else 0.5
        turns = [
            Turn(self._packings(cliques), 4.0, PACKING_SECONDS * (n + entries)),
            Turn(self._search(), searched),
            Turn(self._more_cliques(cliques), 1.0),
        ]
        if self._with_theta:
            theta = Theta(self._graph, self._given, self._total - self.lower, self._limit)
            share = THETA_SHARE if self._dense else SPARSE_SHARE
            turns.append(Turn(self._thetas(theta), share, each_seconds=lambda: theta.next_seconds))
        if self._program is not None:
            slices, prospects = self._program_slices(self._program), self._prospects
            share, head = prospects.share, PROGRAM_HEAD * entries
            turns.append(Turn(slices, share, due=lambda: prospects.share, spent=head * share))
        return turns

    def _clique_bound(self, cliques: CliqueSearch) -> Packing:
        columns, value = cliques.columns()
        return packing(len(self.nodes), columns, value, 1, self._given, CLIQUES)

    def _more_cliques(self, cliques: CliqueSearch) -> Iterator[bool]:
        while self._stale < (STALE if self.method == CLIQUES else HOPELESS):
            self._stale = 0 if cliques.run(self._rounds) else self._stale + 1
            if self._stale == 0:
                self._take(self._clique_bound(cliques))
            yield True

    def _selectable(self, patience: int) -> bool:
        """Whether it is worth a question if a cover attains the bound of the cliques.

        patience   slices that have to have passed without a better one
        """
        if not self.selects or self.method != CLIQUES or self._known is None or self._stale < patience:
            return False
        missing = self._known[0] - self.lower
        near = 0 < missing <= max(1, NEAR * self.lower)
        return near and not self.selecting and len(self._rows.indices) <= MOST_ENTRIES and available()

    def _selections(self, cliques: CliqueSearch) -> Iterator[bool]:
        """Look for a cover that attains the bound of the cliques, until another bound is better."""
        selection, bound = Selection(self._rows, self._weights, cliques.clique), self.lower
        self.selecting = True
        try:
            for _ in range(SELECTIONS):
                if selection.done or self.lower > bound:
                    break
                yield True
                selection.run()
        finally:  # also where the part is done meanwhile
            self.selecting = False
            selection.close()
        if selection.found is not None:
            self.offer(~selection.found)

    def _packings(self, cliques: CliqueSearch) -> Iterator[bool]:
        search = CyclePacking(self._graph, self._given, self._compiled)
        search.add(cliques.columns()[0])
        for _ in search.slices():
            self._take(search.best)
            yield True
        self._take(search.best)

    def _thetas(self, theta: Theta) -> Iterator[bool]:
        """The theta function, until it gains no more, or too little to overtake a better bound."""
        taken = None
        try:
            for _ in theta.slices():
                self.gaining = self._dense
                if theta.best is not taken:
                    taken = theta.best
                    self._take_theta(taken)
                theta.rival(self._total - self.lower)
                yield True
        finally:  # also where the part is done meanwhile
            self.gaining = False

    def _take_theta(self, found: ThetaCertificate) -> None:
        """A bound of the theta function, where it is better than what there is."""
        cost = self._total - found.upper
        if cost > self._shown:
            self.theta = ThetaPart(self.nodes, cost, found)
            self._show(cost, found.method)

    def _program_slices(self, program: CoverProgram) -> Iterator[bool]:
        """Branch and cut, until it ends, or is far behind other bounds."""
        prospects = self._prospects
        try:
            while not program.done:
                program.run(PROGRAM_SLICE, self._known)
                self._take_program(program)
                prospects.judge(program, self._total if self._known is None else self._known[0], self._shown)
                self.leading = prospects.leading
                if not prospects.share:
                    return
                yield True
        finally:  # also where the part is done meanwhile
            self.leading = False
            program.close()

    def _take_program(self, program: CoverProgram) -> None:
        """What an integer program has come to."""
        if program.cover is not None:
            self.offer(program.cover)
        if program.lower > self.lower:
            self.lower, self.method, self.claimed = program.lower, CUT, True
            self._close()

    def _search(self) -> Iterator[bool]:
        """Branch and reduce; for dense parts on bit sets."""
        if len(self.nodes) > SEARCHABLE or not self._searches:
            return
        known = self._known
        limit = self._total + 1 if known is None else known[0]
        search, nodes = search_for(self._rows, self._weights, limit, self._compiled), 1
        yield True
        done = False
        while not done:
            start = time.perf_counter()
            try:
                done = search.run(nodes)
            except MemoryError:  # the tree is too deep for a graph of this size; what is proved stays
                return
            spent = time.perf_counter() - start
            nodes = max(1, nodes * 2 if spent < SLICE_S / 2 else nodes // 2 if spent > 2 * SLICE_S else nodes)
            yield True
        if search.cost is not None:
            self.lower, self.optimum = search.cost, search.cover
        else:
            self.lower, self.optimum = known[0], known[1]
        self.claimed, self.method = True, BRANCHED

    def whole_columns(self) -> Columns:
        """The packing's columns in the numbers of the whole graph."""
        columns = self.best.columns
        return Columns(columns.ptr, self.nodes[columns.nodes].astype(np.int32), columns.clique)
