"""A solution on row partitions made better region by region, all ranks at once: large neighbourhood search.

In a round some regions are grown, breadth first from nodes that are drawn; no two share a node. What lies
around a region stays as it is, and so a region is a small instance of the problem: its rows go to one rank,
which answers it by the problem's own toolbox, reductions first and then a search of so many steps, without a
message. A solution that is no worse takes the place of the old one; as good ones are taken, too, since they
are other ones: they lead the rounds that come across plateaus.

The regions of a round and their seeds follow from (seed, round, number of the region) and from the solution
before the round, never from the rank that works on them: so the same number of regions gives the same bits on
any number of ranks.

Source   Shaw 1998 (large neighbourhood search)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.graph import Graph, from_edges, index_type
from app.rng import stream
from app.solver.rows.own import OwnRows, entries_of, everywhere
from app.toolbox import Instance, never

COUNT = 16  # regions of a round
LEAST_SIZE, MOST_SIZE = 1 << 14, 1 << 18  # nodes and entries of one: at first a COUNTth of all
FEW = 4  # of a round, better ones: with fewer regions grow
MOST_EFFORT = 4
SIZE_BYTES = 100  # of work on a region, for each of its nodes and entries (app/model/memory.py)
HUB = 8  # of a region's size, the part that the row of a node in it may be
NONE, BEYOND = -1, np.int8(127)  # no region, below and above all others
EFFORT = 16  # steps of a search for each node of its core, at first
MOST_BURST = 1 << 16  # nodes that are drawn at once for a region that comes to an end, before it is full
FREE, NEEDED = 1, 2  # of a node of a region: it may change; it has to be dominated


class Regions(ABC):
    """A solution as its rows see it, and what a region of it may change.

    rows       own rows of the nodes that count; `nodes` [k] int64, those of all ranks, ascending
    degrees    [n] int64, their entries
    solution   [n] bool, of those nodes
    steps      of a search for each node of its core, at first
    """

    rows: OwnRows
    solution: np.ndarray
    steps = EFFORT

    def __init__(self, group: Group, rows: OwnRows, solution: np.ndarray) -> None:
        self.group, self.rows, self.solution = group, rows, solution.copy()
        self.nodes = everywhere(group, rows.nodes)
        self.degrees = np.zeros(rows.n, dtype=np.int64)
        self.degrees[self.nodes] = everywhere(group, rows.degrees())

    @abstractmethod
    def open(self) -> np.ndarray:
        """[k] int64, nodes that regions grow by; each but hubs may be drawn."""

    @abstractmethod
    def near(self, v: np.ndarray, label: np.ndarray, closed: np.ndarray) -> np.ndarray:
        """[k, 2] int64, nodes that are to join next, and the regions that they are for, some nodes several
        times; nodes [j] have just joined theirs. Ranks: all call; identical on all.

        label    [n] int8, the region of each node, NONE: of no one
        closed   [n] bool, nodes that may not join
        """

    @abstractmethod
    def settle(self, solution: np.ndarray, draws: np.random.Generator, size: int) -> None:
        """The regions of a round (`grow`), and what each may change, whatever the others do. Ranks: all call.

        solution   [n] bool, the one before the round     size   as of search_regions
        """

    @abstractmethod
    def part(self, region: int) -> tuple[np.ndarray, np.ndarray]:
        """This rank's part of a region: [k, 2] nodes, ascending, and whether they are FREE, NEEDED; [m, 2]
        edges, with weights [m, 3].
        """

    def kinds(self, told: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nodes [k] of a region, ascending, and of what kinds [k] they are, from what all ranks tell."""
        return told[:, 0], told[:, 1]

    def graph(self, nodes: np.ndarray, edges: np.ndarray) -> Graph:
        """Of nodes [k], ascending, and what all ranks tell of their edges."""
        return from_edges(len(nodes), *np.searchsorted(nodes, edges).T, name="a region")

    @abstractmethod
    def instance(self, graph: Graph, nodes: np.ndarray, kinds: np.ndarray) -> Instance:
        """The instance that a region is: `nodes` [k] of which each is so."""


@dataclass
class Course:
    """What is made of a solution, round by round.

    size, most_size  nodes and entries that a region has, at most; and at the end
    made, better     regions so far, and those of them that came to a better solution
    effort           the steps of a search, as multiples of the usual ones
    rounds           that have begun
    before           [n] bool, the solution before the round under way; `earlier`: `better` before it
    """

    size: int
    most_size: int
    made: int = 0
    better: int = 0
    effort: int = 1
    rounds: int = 0
    before: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    earlier: int = 0

    def begin(self, solution: np.ndarray) -> None:
        """A round, of a solution [n] bool. Where few of the last one's regions came to anything these are
        twice as large, then searched twice as long.
        """
        if self.made and self.better - self.earlier < FEW:
            if self.size < self.most_size:
                self.size = min(2 * self.size, self.most_size)
            else:
                self.effort = min(2 * self.effort, MOST_EFFORT)
        self.before, self.earlier = solution.copy(), self.better
        self.rounds += 1

    @property
    def work(self) -> int:
        """What a region takes, in proportion."""
        return self.size * self.effort

    def numbers(self) -> dict[str, int]:
        """All but the solutions, for a checkpoint."""
        names = ("size", "most_size", "made", "better", "effort", "rounds", "earlier")
        return {name: getattr(self, name) for name in names}


def course_of(regions: Regions, most_bytes: float) -> Course:
    """The course of regions, work on each of which may take so many bytes."""
    whole = len(regions.nodes) + int(regions.degrees.sum())
    most = int(min(MOST_SIZE, most_bytes / SIZE_BYTES))
    return Course(min(max(whole // COUNT, LEAST_SIZE), most), most)


def search_regions(
    group: Group,
    regions: Regions,
    problem: Any,
    seed: int,
    course: Course,
    most: int,
    look: Callable[[], bool],
) -> None:
    """Search regions of `regions.solution`, which changes, until `course` has made `most`.

    look    asked before every turn, in which each rank has a region: whether the time is up, the same on all
    Ranks   all call; the same regions and solutions on any number of them
    """
    while course.made < most and len(regions.nodes):
        number, first = divmod(course.made, COUNT)
        if course.rounds == number:
            course.begin(regions.solution)
        draws = stream(seed, "regions", number)
        seeds = draws.integers(1 << 62, size=COUNT).tolist()
        for turn in range(first, COUNT, group.size):
            if look():
                return
            if turn == first:
                regions.settle(course.before, draws, course.size)
            todo = range(turn, min(turn + group.size, COUNT, turn + most - course.made))
            left, came, better = _searched(group, regions, problem, todo, seeds, course)
            regions.solution[left] = False
            regions.solution[came] = True
            course.better += better
            course.made += len(todo)
            if course.made == most:
                return


def _searched(
    group: Group, regions: Regions, problem: Any, todo: Sequence[int], seeds: list[int], course: Course
) -> tuple[np.ndarray, np.ndarray, int]:
    """Nodes [k] that leave the solution and those that come in by the search of some regions, one for a rank
    at most; and how many of these came to something better. Ranks: all call; identical on all.
    """
    told = [regions.part(region) for region in todo]
    nodes, edges = (dealt(group, [part[i] for part in told]) for i in (0, 1))
    left = came = np.empty(0, dtype=np.int64)
    better = False
    with raise_together(group, "searching a region"):
        if group.rank < len(todo) and len(nodes):
            given = nodes.astype(np.int64), edges.astype(np.int64)
            left, came, better = _answer(
                regions, problem, *given, course.before, seeds[todo[group.rank]], course.effort
            )
    count = int(group.sum_integers(np.array([better]))[0])
    return everywhere(group, left), everywhere(group, came), count


def dealt(group: Group, parts: list[np.ndarray]) -> np.ndarray:
    """Of arrays [k, f], one for each region, those that all ranks have for this one's, in their order. Ranks:
    all call (Alltoallv): region i of the turn is rank i's.
    """
    counts = [len(part) for part in parts] + [0] * (group.size - len(parts))
    send = np.ascontiguousarray(np.concatenate(parts))
    return group.exchange_host(send, counts, group.exchange_counts(counts))


def _answer(
    regions: Regions,
    problem: Any,
    told: np.ndarray,
    edges: np.ndarray,
    before: np.ndarray,
    seed: int,
    effort: int,
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Nodes that leave the solution and nodes that come in where a region is answered anew, and whether that
    is better than before.

    before   [n] bool, the solution before the round: what others have added since is theirs
    """
    nodes, kinds = regions.kinds(told, edges)
    graph = regions.graph(nodes, edges)
    toolbox, now = problem.toolbox(regions.instance(graph, nodes, kinds)), before[nodes]
    now &= (kinds & FREE) > 0  # what others may change is not this one's
    toolbox.reduce(never)
    core = toolbox.restrict(now)
    search = toolbox.search(seed, core)
    if search is not None:
        search.run(effort * regions.steps * toolbox.core.n)
        core = search.solution()
    found = toolbox.lift(core)
    value, earlier = toolbox.value(found), toolbox.value(now)
    if toolbox.improves(earlier, value):
        return nodes[:0], nodes[:0], False
    return nodes[now & ~found], nodes[found & ~now], value != earlier


# ---- where regions are -------------------------------------------------------------------------------------


def grow(group: Group, regions: Regions, draws: np.random.Generator, size: int) -> np.ndarray:
    """[n] int8, the region of each node that regions grow by, NONE: of no one. Ranks: all call; the same on
    any number.

    All grow at once, a level at a time. A region that cannot go on anywhere goes on from other nodes that are
    drawn, twice as many each time. A node whose row is no small part of a region is in none: a hub would
    bring all that is near it, and nothing of what lies around that could change.
    """
    nodes, degrees = regions.open(), regions.degrees
    label = np.full(regions.rows.n, NONE, dtype=np.int8)
    closed = np.ones(regions.rows.n, dtype=bool)
    closed[nodes] = degrees[nodes] > size // HUB
    used, burst = np.zeros(COUNT, dtype=np.int64), np.ones(COUNT, dtype=np.int64)
    full, idle = np.zeros(COUNT, dtype=bool), np.full(COUNT, len(nodes) > 0)
    level, near, most = 0, np.empty((0, 2), dtype=np.int64), min(MOST_BURST, len(nodes))
    while len(nodes) and not full.all():
        drawn = np.repeat(np.arange(COUNT), np.where(idle, burst, 0))
        fresh = np.stack([nodes[draws.integers(len(nodes), size=len(drawn))], drawn], axis=1)
        burst[idle] *= 2
        told = np.concatenate([near, fresh])
        v, region = _claimed(told[~closed[told[:, 0]]], level)
        fits = fitting(region, degrees[v] + 1, size - used)
        full[region[~fits]] = True
        full |= burst > most
        v, region = v[fits], region[fits]
        label[v], closed[v] = region, True
        used += np.bincount(region, weights=degrees[v] + 1, minlength=COUNT).astype(np.int64)
        idle = ~full & (np.bincount(region, minlength=COUNT) == 0)
        near = regions.near(v[~full[region]], label, closed)
        level += 1
    return label


def _claimed(told: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, each once, and the regions that have them, of pairs [k, 2]: in order of these, then of nodes. Of
    several regions another one comes first at each level.
    """
    turn = (told[:, 1] + level) % COUNT
    order = np.lexsort((turn, told[:, 0]))
    told = told[order]
    told = told[np.diff(told[:, 0], prepend=-1) != 0]
    told = told[np.argsort(told[:, 1], kind="stable")]
    return told[:, 0], told[:, 1]


def fitting(region: np.ndarray, sizes: np.ndarray, room: np.ndarray) -> np.ndarray:
    """[k] bool: of nodes of regions [k], ascending, which are so large, the first ones that have `room`
    [COUNT] together.
    """
    until = np.cumsum(sizes)
    first = np.searchsorted(region, np.arange(COUNT))
    before = np.concatenate([[0], until])[first]
    return until - before[region] <= room[region]


def own_places(rows: OwnRows, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[j] the rows of those of nodes [k] that are here, and [j] which these are."""
    place = np.searchsorted(rows.nodes, nodes)
    here = np.flatnonzero(place < len(rows.nodes))
    here = here[rows.nodes[place[here]] == nodes[here]]
    return place[here], here


def beside(rows: OwnRows, v: np.ndarray, label: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """[k, 2] int64, the neighbours `wanted` [n] bool of the own ones of nodes [j], and the region whose node
    each is next to; every pair once.
    """
    at, here = own_places(rows, v)
    of, entries = row_entries(rows, at)
    columns = rows.indices[entries].astype(np.int64)
    some = wanted[columns]
    pairs = np.sort(columns[some] * COUNT + label[v[here]][of[some]])
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    return np.stack([pairs // COUNT, pairs % COUNT], axis=1)


def row_entries(rows: OwnRows, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entries of rows `at` [j]: [m] which of these each is of, and [m] where it is in `indices`."""
    return entries_of(rows.indptr, at)


def packed(n: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[k, 2] of two arrays [k] of numbers of a graph of n nodes, in as few bytes as these take."""
    return np.stack([first, second], axis=1).astype(index_type(n))
