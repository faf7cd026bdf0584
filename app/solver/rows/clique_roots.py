"""The heaviest clique of a graph on row partitions: root by root, many of them at once on each rank.

In any order of the nodes a clique has a first one, its root, and lies among the root's later neighbours. In
an order in which nodes of low loads come first these are few, however large the graph. So some roots that
follow each other and all their later neighbours are a small graph, whose rows go to one rank, which searches
these roots there by branch and bound, with so much work at most. A root is closed once nothing heavier than
the clique that is known can have it; when all are, that is a heaviest clique.

Parts of a round and the clique that is known then follow from their number alone, never from the rank that
works on them: so the same number of parts gives the same bits on any number of ranks. Roots go from the last
of the order, where the graph is dense, to the first; those that a part has left open come again, with more
work.

Source   Rossi, Gleich, Gebremedhin and Patwary 2014 (PMC); San Segundo, Lopez and Pardalos 2016
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from app.bounds.clique.roots import GROWTH as MORE
from app.bounds.clique.roots import MOST, RootSearch
from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.graph import from_edges, index_type
from app.graphs.keys import sorted_set, union
from app.graphs.lists import starts
from app.solver.rows.cliques import GROWTH, SLOW, loads_of
from app.solver.rows.own import OwnRows, Rounds, everywhere, row_sums
from app.solver.rows.regions import COUNT, dealt, packed, row_entries

WORK = 1 << 24  # words of bit sets that a part costs at most, at first
MOST_WORK = 1 << 40
ORDER_ROUNDS = 512  # of peeling, for an order
ROOM = 4  # a round whose parts all have so many times fewer entries than they may is followed by larger ones


def load_order(
    group: Group, rows: OwnRows, weights: np.ndarray | None, least: int, rounds: Rounds
) -> np.ndarray:
    """[k] int64, the nodes of all ranks' rows: those that weigh least with the neighbours that they have
    left, again and again; about a degeneracy order.

    least    nodes up to this load go at once
    Ranks    all call; the same on any number of them
    """
    found, gone, level = [], np.zeros(rows.n, dtype=bool), least
    while alive := rows.count(group)[0]:
        loads, last = loads_of(rows, weights), not rounds.another()
        low = -group.max_integer(-int(loads.min(initial=np.iinfo(np.int64).max)))
        level = max(level, low)
        goes = (loads <= level) | last
        nodes, loads = (everywhere(group, each[goes]) for each in (rows.nodes, loads))
        found.append(nodes[np.lexsort((nodes, loads))])
        if len(nodes) == alive:
            break
        gone[nodes] = True
        rows = rows.among(~gone)
        if len(nodes) <= SLOW * alive:
            level = int(GROWTH * level)
    return np.concatenate([np.empty(0, dtype=np.int64), *found])


@dataclass
class RootCourse:
    """How far the search of roots has come: with the order and the clique all that a checkpoint needs.

    bound   [k] int64, by places: no clique with this root weighs more than this, or than the one known
    left    [j] int64, places of the roots that this pass has not seen before the round, from the last one
    cuts    [COUNT+1] int64, the parts of the round, in `left`
    made    parts so far     better   of them, those that found a heavier clique
    work    what a part may cost
    known   the weight of the clique known before the round
    size    later neighbours of the roots of a part, with these, at most
    """

    bound: np.ndarray
    left: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    cuts: np.ndarray = field(default_factory=lambda: np.zeros(COUNT + 1, dtype=np.int64))
    made: int = 0
    better: int = 0
    work: int = WORK
    known: int = 0
    size: int = 0


class RowRoots:
    """Roots of cliques on rows.

    rows      own rows of what no rule has ruled out     order   [k] int64, its nodes
    clique    [c] int64, ascending, the heaviest one known, of weight `best`
    entries   of a part at most
    """

    def __init__(
        self, group: Group, rows: OwnRows, weights: np.ndarray | None, order: np.ndarray, clique: np.ndarray,
        entries: int, compiled: bool, course: RootCourse | None = None,
    ) -> None:  # fmt: skip
        self.group, self.order, self.clique, self.compiled = group, order, clique, compiled
        self.weights, self.entries = weights, entries
        self.best = self._weight(clique)
        place = np.full(rows.n, -1, dtype=index_type(rows.n + 1))
        place[order] = np.arange(len(order))
        self._later = _later_rows(rows, place)
        self.counts = self._all(self._later.degrees())
        first = self._all(self._first_bounds())
        self._closable = self.counts * (self.counts + 1) // 2 <= entries
        self._closable &= self.counts <= MOST
        self.course = RootCourse(first) if course is None else course
        self._members: list[np.ndarray] = []  # of the parts of the round

    def _weight(self, nodes: np.ndarray) -> int:
        return len(nodes) if self.weights is None else int(self.weights[nodes].sum())

    def _all(self, values_own: np.ndarray) -> np.ndarray:
        """[k] int64, by places, from those of own ones. Ranks: all call."""
        found = np.zeros(len(self.order), dtype=np.int64)
        found[everywhere(self.group, self._later.nodes)] = everywhere(self.group, values_own)
        return found

    def _first_bounds(self) -> np.ndarray:
        """[k_own] what own nodes weigh with their later neighbours."""
        if self.weights is None:
            return self._later.degrees() + 1
        prices = self.weights[self.order]
        return prices[self._later.nodes] + row_sums(self._later.indptr, prices[self._later.indices])

    @property
    def upper(self) -> int:
        """No clique weighs more."""
        return max(int(self.course.bound.max(initial=0)), self.best)

    @property
    def open(self) -> np.ndarray:
        """[j] int64, places of the roots that are still to be searched, from the last one."""
        return np.flatnonzero((self.course.bound > self.best) & self._closable)[::-1]

    @property
    def done(self) -> bool:
        """Whether there is nothing left to search: all is closed, or too large for a rank."""
        return not len(self.open)

    # ---- parts ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A round: what is left of the pass, or a new one of all that is open, in parts. Ranks: all call."""
        course = self.course
        seen = int(course.cuts[-1])
        left = course.left[seen:]
        left = left[course.bound[left] > self.best]
        if not len(left):
            course.work = course.work if not course.made else min(MORE * course.work, MOST_WORK)
            left = self.open
        course.left, course.known = left, self.best
        most = int(self.counts[left].max(initial=1))
        course.size = max(course.size, self.entries // most)
        while True:
            self._cut()
            entries = self.tell_members()
            if entries.max() <= self.entries or (np.diff(course.cuts) <= 1).all():
                break
            course.size //= 2
        if entries.max() * ROOM < self.entries:
            course.size *= 2

    def _cut(self) -> None:
        """Parts of roots with so many later neighbours, at least one root each."""
        course = self.course
        until = np.concatenate([[0], np.cumsum(self.counts[course.left] + 1)])
        at = 0
        for part in range(COUNT):
            last = int(np.searchsorted(until, until[at] + course.size, side="right")) - 1
            course.cuts[part] = at
            at = min(max(last, at + 1), len(course.left))
        course.cuts[COUNT] = at

    def tell_members(self) -> np.ndarray:
        """[COUNT] int64, the entries of the round's parts, of which all are told the members. Ranks: all
        call.
        """
        course, later = self.course, self._later
        parts = [course.left[a:b] for a, b in zip(course.cuts, course.cuts[1:])]
        told = []
        for part, roots in enumerate(parts):
            _, entries = row_entries(later, _places(later, roots))
            told.append(sorted_set(later.indices[entries].astype(np.int64)) * COUNT + part)
        told = everywhere(self.group, np.concatenate(told))
        self._members = [union(roots, told[told % COUNT == i] // COUNT) for i, roots in enumerate(parts)]
        sizes = [len(self._edges(part)) for part in range(COUNT)]
        return self.group.sum_integers(np.array(sizes, dtype=np.int64))

    def _edges(self, part: int) -> np.ndarray:
        """[m, 2] places, the own edges among the members of a part."""
        later, members = self._later, self._members[part]
        inside = np.zeros(len(self.order), dtype=bool)
        inside[members] = True
        at = _places(later, members)
        of, entries = row_entries(later, at)
        ends = later.indices[entries]
        some = inside[ends]
        return packed(len(self.order), later.nodes[at][of[some]], ends[some])

    def turn(self, todo: range) -> None:
        """Search some parts of the round, one for a rank at most. Ranks: all call; identical on all."""
        group, course = self.group, self.course
        edges = dealt(group, [self._edges(part) for part in todo])
        clique = closed = np.empty((0, 2), dtype=np.int64)
        with raise_together(group, "searching cliques"):
            if group.rank < len(todo):
                clique, closed = self._search(todo[group.rank], edges.astype(np.int64))
        cliques, closed = everywhere(group, clique), everywhere(group, closed)
        course.bound[closed[:, 0]] = closed[:, 1]
        for part in todo:
            nodes = np.sort(cliques[cliques[:, 0] == part, 1])
            if self._weight(nodes) > self.best:
                self.clique, self.best = nodes, self._weight(nodes)
                course.better += 1
        course.made += len(todo)

    def _search(self, part: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A heavier clique: [c, 2] the part and its nodes; [j, 2] places of roots, and their bounds."""
        course, members = self.course, self._members[part]
        roots = np.sort(course.left[course.cuts[part] : course.cuts[part + 1]])
        if not len(roots):
            return np.empty((0, 2), dtype=np.int64), np.empty((0, 2), dtype=np.int64)
        mine, places = np.isin(members, roots), np.arange(len(members), dtype=np.int32)
        graph = from_edges(len(members), *np.searchsorted(members, edges).T, name="roots of cliques")
        weights = None if self.weights is None else self.weights[self.order[members]]
        search = RootSearch(graph, weights, course.known, compiled=self.compiled, order=places, roots=mine)
        search.run(course.work)
        found = search.found()
        nodes = np.empty(0, dtype=np.int64) if found is None else self.order[members[found]]
        bounds = np.minimum(search.bound[mine], course.bound[roots])
        return np.stack([np.full(len(nodes), part), nodes], axis=1), np.stack([roots, bounds], axis=1)


def search_roots(group: Group, roots: RowRoots, most: int, look: Callable[[], bool]) -> None:
    """Search parts until so `most` were made, or all roots are closed.

    look    asked before every turn, in which each rank has a part: whether the time is up, the same on all
    Ranks   all call; the same parts and cliques on any number of them
    """
    course = roots.course
    begun = course.made % COUNT == 0
    if not begun:
        roots.tell_members()
    while course.made < most and not (begun and roots.done):
        first = course.made % COUNT
        for turn in range(first, COUNT, group.size):
            if look():
                return
            if turn == 0:
                roots.begin()
            todo = range(turn, min(turn + group.size, COUNT, turn + most - course.made))
            roots.turn(todo)
            if course.made == most:
                return
        begun = True


def _later_rows(rows: OwnRows, place: np.ndarray) -> OwnRows:
    """Own rows by places [n], ascending, with the neighbours of later ones alone."""
    mine = place[rows.nodes].astype(np.int64)
    columns = place[rows.indices]
    order = np.argsort(mine)
    of, entries = row_entries(rows, order)
    columns = columns[entries]
    later = columns > mine[order][of]
    indptr = starts(of[later], len(order))
    return OwnRows(rows.n, mine[order], indptr.astype(np.int64), columns[later])


def _places(rows: OwnRows, nodes: np.ndarray) -> np.ndarray:
    """[j] the rows of those of nodes [k] that are here."""
    place = np.searchsorted(rows.nodes, nodes)
    here = place < len(rows.nodes)
    here[here] = rows.nodes[place[here]] == nodes[here]
    return place[here]
