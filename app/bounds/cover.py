"""Certified lower bounds for minimum vertex cover, improved in slices of time, component by component."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.branch import METHOD as BRANCHED
from app.bounds.branch import search_for
from app.bounds.certificate import BadCertificate, Bound
from app.bounds.cliques import CliqueSearch
from app.bounds.cycle_lp import CyclePacking
from app.bounds.kernels import Rows
from app.bounds.lp import relaxed
from app.bounds.packing import Columns, Packing, joined, nothing, packing
from app.bounds.selection import ENTRY_SECONDS, MOST_ENTRIES, Selection, available
from app.graphs.graph import Graph, index_type

NONE, CLIQUES = "none yet", "clique cover"
MOST_GROUPS = 2000  # of small components
SMALL = 100  # components of fewer nodes are worked on together, some of them
SLICE_S = 0.05  # aim of one slice of a search
RELAX_SECONDS = 3e-7  # of the relaxation, for each node and entry
PAIRED_SECONDS = 1e-6  # of the relaxation, for each node, where a matching is known
FIRST_SECONDS, FIRST_ENTRY_SECONDS = 1e-6, 5e-9  # of the first clique cover, for each node, for each entry
STEPS, FRONT = 3, 300  # from the first node, and nodes of a step that are followed, to see that all is joined
ROUNDS, ROUND_ENTRIES = (
    25,
    1 << 18,
)  # of iterated greedy in a slice of the clique cover; fewer with more entries
PACKING_SECONDS = 6e-7  # of the beginning of packings, for each node and entry
SEARCHABLE = 1 << 17  # nodes of a part up to which a search tree is tried
SEARCHED = 3000  # nodes of a part up to which a search tree has a large share of the time
STALE = 40  # slices without a better clique cover; where other bounds are better,
HOPELESS = 4  # so many
# So near the best cover has to be, before it is asked whether one attains the bound of the cliques.
NEAR = 0.01
SELECTIONS = 25  # slices of that


@dataclass(frozen=True, eq=False)
class Claim:
    """What a finished search says: no cover of the part of the graph that `nodes` [k] span costs less."""

    nodes: np.ndarray
    cost: int


@dataclass(frozen=True, eq=False)
class CoverBound(Bound):
    """A packing for one part of the graph, claims of finished searches for others, without common nodes.

    A search has no witness short enough to keep: `checked` is False where there are claims. `check` proves
    the packing and that the claims' nodes are apart from it and from each other; the claims' costs it takes
    as said.
    """

    lower: int
    method: str
    packing: Packing
    claims: tuple[Claim, ...] = ()

    @property
    def checked(self) -> bool:
        """True where `check` proves all of the bound."""
        return not self.claims

    def check(self, graph: Graph) -> None:
        """Prove what has a witness. Raises BadCertificate."""
        self.packing.check(graph)
        times = np.zeros(graph.n, dtype=np.int64)
        times[np.unique(self.packing.columns.nodes)] = 1
        for claim in self.claims:
            if len(claim.nodes) and not 0 <= claim.nodes.min() <= claim.nodes.max() < graph.n:
                raise BadCertificate(f"{self.method}: a claim's node is not in {graph.name}")
            np.add.at(times, claim.nodes, 1)
        if (times > 1).any():
            raise BadCertificate(f"{self.method}: node {int(times.argmax())} is paid for twice")
        said = self.packing.lower + sum(claim.cost for claim in self.claims)
        if said != self.lower:
            raise BadCertificate(
                f"{self.method}: the parts add up to {said}, the certificate says {self.lower}"
            )


class CoverBounds:
    """The best lower bound so far on the cost of a vertex cover, and the means to improve it.

    graph     whole     weights [n] int64, at least 0, or None: all one
    partner   [n] a largest matching of the double cover (bounds/lp.py), where one is known and no weights are
              given: the bound of the relaxation then comes first
    search    False: without branch and reduce, which the caller does otherwise
    lower     no cover costs less     method   how that was found
    optimum   [n] bool, a cover that costs `lower`, once one is known by branch and reduce, because one was
              found that attains the bound of the cliques (bounds/selection.py), or because the caller's own
              cover reached the bound in every component; else None
    """

    def __init__(
        self, graph: Graph, weights: np.ndarray | None = None, compiled: bool = True,
        partner: np.ndarray | None = None, search: bool = True,
    ) -> None:  # fmt: skip
        if weights is not None:
            weights = np.ascontiguousarray(weights, dtype=np.int64)
            if weights.shape != (graph.n,) or (weights < 0).any():
                raise ValueError(f"weights: needs [{graph.n}] whole numbers of at least 0")
        self._n, self._weights = graph.n, weights
        groups = _groups(graph)
        self._parts = [
            _Part(part, nodes, weights, compiled, partner, search)
            for nodes, part in zip(groups, _cut(graph, groups))
        ]
        self._turns = list(range(len(self._parts)))  # parts that have more to try
        self._turn, self.lower = 0, 0
        self._upper: int | None = None  # the cost of the best cover that the caller knows
        self._pieces: tuple[int, np.ndarray] | None = None

    def expect(self, seconds: float) -> None:
        """Covers that attain a bound may be looked for, too: under a time limit the caller takes them."""
        for part in self._parts:
            part.selects = True

    @property
    def least_seconds(self) -> float:
        """An estimate of the next slice of the part whose turn it is, where it may be long."""
        return self._parts[self._turns[self._turn % len(self._turns)]].next_seconds if self._turns else 0.0

    @property
    def method(self) -> str:
        """How the bound was found: the methods of the parts, in the order of what they prove; "": not yet."""
        share: dict[str, int] = {}
        for part in self._parts:
            share[part.method] = share.get(part.method, 0) + part.lower
        share.pop(NONE, None)
        if self._parts and not share:
            return ""
        return " + ".join(sorted(share, key=lambda name: -share[name])) or "no edges"

    @property
    def closing(self) -> bool:
        """Whether the work under way looks for a cover that costs `lower`."""
        return any(part.selecting for part in self._parts)

    @property
    def optimum(self) -> np.ndarray | None:
        """[n] bool, a cover that costs `lower`, or None while there is none."""
        cover = np.zeros(self._n, dtype=bool)
        for part in self._parts:
            if part.optimum is None:
                return None
            cover[part.nodes] = part.optimum
        return cover

    def pieces(self) -> np.ndarray | None:
        """[n] bool, a cover that costs less than the caller's best: in each component the best that is known.

        None: there is none. The same array until there is a better one.
        """
        costs = [part.cost for part in self._parts]
        if self._upper is None or None in costs or sum(costs) >= self._upper:
            return None
        if self._pieces is None or self._pieces[0] > sum(costs):
            cover = np.zeros(self._n, dtype=bool)
            for part in self._parts:
                cover[part.nodes] = part.cover
            self._pieces = sum(costs), cover
        return self._pieces[1]

    def improve(
        self, seconds: float, upper: int | None = None, upper_solution: np.ndarray | None = None
    ) -> bool:
        """Work for about that long, less where the bound is proved or nothing is left to try.

        upper            the cost of the best cover that the caller knows
        upper_solution   [n] bool, such a cover; each component is then done once its bound reaches its share
        returns          True where there is more to try
        """
        if upper_solution is not None:
            for part in self._parts:
                part.offer(upper_solution[part.nodes])
        self._upper = upper
        end, made = time.perf_counter() + seconds, 0
        while self._turns:
            if upper is not None and self.lower >= upper:
                return False
            # What is long begins a call, so that the caller has seen `least_seconds` before.
            if time.perf_counter() + (self.least_seconds if made else 0.0) >= end:
                return True
            self._turn, made = self._turn % len(self._turns), made + 1
            part = self._parts[self._turns[self._turn]]
            before, more = part.lower, part.step()
            self.lower += part.lower - before
            if more:
                self._turn += 1
            else:
                del self._turns[self._turn]
        return False

    def certificate(self) -> CoverBound:
        """The bound with its witness."""
        claimed = [part for part in self._parts if part.claimed]
        proved = [part for part in self._parts if not part.claimed]
        one = max((part.best.one for part in proved), default=1)  # powers of two
        columns = joined([part.whole_columns() for part in proved])
        value = np.concatenate([part.best.value * (one // part.best.one) for part in proved] or [np.zeros(0)])
        whole = packing(self._n, columns, value.astype(np.int64), one, self._weights, self.method)
        claims = tuple(Claim(part.nodes, part.lower) for part in claimed)
        return CoverBound(whole.lower + sum(claim.cost for claim in claims), self.method, whole, claims)


def _groups(graph: Graph) -> list[np.ndarray]:
    """The nodes of each part, ascending: components, small ones a few together; no nodes without edges."""
    if not graph.edges:
        return []
    if soon_reached(graph):
        return [np.arange(graph.n)]
    matrix = sp.csr_array(
        (np.ones(len(graph.indices), dtype=np.int8), graph.indices, graph.indptr), shape=(graph.n, graph.n)
    )
    count, label = connected_components(matrix, directed=False)
    size = np.bincount(label, minlength=count)
    small = size < SMALL
    counted = np.where(small & (size > 1), size, 0)
    together = np.cumsum(counted) // max(SMALL, -(-int(counted.sum()) // MOST_GROUPS))
    group = np.where(small, count + together, np.arange(count))
    group = np.where(size == 1, -1, group)[label]
    order = np.argsort(group, kind="stable")
    cuts = np.flatnonzero(np.diff(group[order])) + 1
    return [nodes for nodes in np.split(order, cuts) if len(nodes) and group[nodes[0]] >= 0]


def soon_reached(graph: Graph) -> bool:
    """True where a few steps from the first node lead to all others, as in dense graphs; costs less than all
    components do.
    """
    reached, front = np.zeros(graph.n, dtype=bool), np.zeros(1, dtype=np.int64)
    reached[0] = True
    for _ in range(STEPS):
        before, rows = reached.copy(), [graph.indices[graph.indptr[v] : graph.indptr[v + 1]] for v in front]
        reached[np.concatenate(rows)] = True
        if reached.all():
            return True
        front = np.flatnonzero(reached & ~before)[:FRONT]
        if not len(front):
            return False
    return False


def _cut(graph: Graph, groups: list[np.ndarray]) -> Iterator[Graph]:
    """The graphs on groups of nodes [k], each ascending, which no edge leaves."""
    number, degree = np.zeros(graph.n, dtype=np.int64), np.diff(graph.indptr)
    for nodes in groups:
        number[nodes] = np.arange(len(nodes))
    for nodes in groups:
        if len(nodes) == graph.n:
            yield graph
            continue
        counts = degree[nodes]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        stored = np.arange(indptr[-1]) + np.repeat(graph.indptr[nodes] - indptr[:-1], counts)
        indices = number[graph.indices[stored]].astype(index_type(len(nodes)))
        yield Graph(graph.name, len(nodes), 0, len(nodes), indptr, indices, edges=len(indices) // 2)


def _within(nodes: np.ndarray, partner: np.ndarray) -> np.ndarray:
    """[k] the partners of some nodes, ascending, which no edge leaves, in their own numbers."""
    mine = partner[nodes]
    return np.where(mine < 0, -1, np.searchsorted(nodes, mine))


@dataclass
class _Turn:
    """A method that works in slices, its share of the time, an estimate of its first slice where that may be
    long, and the seconds it has had.
    """

    slices: Iterator[bool]
    share: float
    begin_seconds: float = 0.0
    spent: float = 0.0

    def step(self) -> bool:
        """One slice; False when the method has ended."""
        begun = time.perf_counter()
        more = next(self.slices, None) is not None
        self.spent += time.perf_counter() - begun
        return more


class _Part:
    """The bounds of one component, or of small ones together.

    nodes [k]      in the whole graph, ascending
    best           Packing on the part's own numbers
    next_seconds   an estimate of the next slice, where it may be long
    claimed        the bound rests on a finished search instead
    selects        covers that attain the bound of the cliques may be looked for
    selecting      one is
    optimum        [k] bool or None
    """

    def __init__(
        self, graph: Graph, nodes: np.ndarray, weights: np.ndarray | None, compiled: bool,
        partner: np.ndarray | None, search: bool,
    ) -> None:  # fmt: skip
        self.nodes, self._compiled, self._searches = nodes, compiled, search
        self._graph = graph
        self._given = None if weights is None else weights[nodes]
        self._weights = np.ones(len(nodes), dtype=np.int64) if weights is None else self._given
        self._rows = Rows(self._graph)
        self.best = nothing(self._given, NONE)
        self.lower, self.method = 0, self.best.method
        self.claimed, self.optimum = False, None
        self.selects, self.selecting, self._stale = (
            False,
            False,
            0,
        )  # slices since the last better clique cover
        self._known: tuple[int, np.ndarray] | None = None  # cost and cover that the caller knows
        entries = len(self._graph.indices)
        self._partner = None if partner is None or weights is not None else _within(nodes, partner)
        self._first_seconds = FIRST_SECONDS * len(nodes) + FIRST_ENTRY_SECONDS * entries
        self.next_seconds = self._first_seconds if self._partner is None else PAIRED_SECONDS * len(nodes)
        self._relax_seconds = RELAX_SECONDS * (len(nodes) + entries)
        self._begin_seconds = PACKING_SECONDS * (len(nodes) + entries)  # of packings
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
        if not self.claimed and found.lower > self.lower:
            self.best, self.lower, self.method = found, found.lower, found.method
            self._close()

    def _methods(self) -> Iterator[bool]:
        """A first clique cover, the relaxation (first of all where its matching is known), better clique
        covers, then packings, a search and still more clique covers, by shares of time.
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
        turns = [
            _Turn(self._packings(cliques), 4.0, self._begin_seconds),
            _Turn(self._search(), 4.0 if len(self.nodes) <= SEARCHED else 0.5),
            _Turn(self._more_cliques(cliques), 1.0),
        ]
        asked: list[int] = []
        while turns and self.optimum is None:
            if cliques.left_out not in asked and self._selectable(1 << len(asked)):
                asked.append(cliques.left_out)
                begin = ENTRY_SECONDS * len(self._rows.indices)
                turns.append(_Turn(self._selections(cliques), 8.0, begin))
            # What is long to begin waits until the others have had as much: it may never fit.
            turn = min(turns, key=lambda each: (each.spent or each.begin_seconds) / each.share)
            if not turn.spent and turn.begin_seconds:
                self.next_seconds = turn.begin_seconds
                yield True
            self.next_seconds = 0.0
            if not turn.step():
                turns.remove(turn)
            yield True

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

    def _search(self) -> Iterator[bool]:
        """Branch and reduce; for dense parts on bit sets."""
        if len(self.nodes) > SEARCHABLE or not self._searches:
            return
        known = self._known
        total = int(self._weights.sum())
        limit = total + 1 if known is None else known[0]
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
