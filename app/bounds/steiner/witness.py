"""What proves that no Steiner tree of a core is shorter than so much: heights, told apart by cases.

Of a case (some nodes are gone, others are terminals too) let one terminal be the root. A tree without a node
to spare leads from the root to every terminal along arcs. Let h be any function of the nodes. The way to a
terminal t has arcs u -> v with max(0, h(u) - h(v)) adding up to h(root) - h(t) at least. So where several h,
each of a terminal, take max(0, h(u) - h(v)) of an arc's length and never more than there is, all trees are
as long as the sum S of h(root) - h(t). And a tree with an arc u -> v is as long as S and the shortest way,
by what is left of lengths, from the root to u, along the arc, and on to some terminal: its leaves are such.
Arcs that no tree shorter than `lower` can have by this count no more for the heights that follow, also those
of another root, where an edge is gone if both its arcs are. Leaves that are no terminals go with them.

A case is proved where S reaches `lower`, or a terminal is too far from the root; else a node tells two cases
apart, which have to be proved: trees without it, and trees with it, of which it is a terminal.

Sources  Wong 1984; Duin 1993 (reduced costs); branching on nodes: Polzin and Daneshmand 2001
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from app.bounds.certificate import BadCertificate, Bound, cuts_up
from app.graphs.lists import ranges

MOST_PLACES = 52
LARGEST = 1 << 53  # of lengths in multiples of 2^-places, that floating-point numbers hold
PIECE = 1 << 21  # entries looked at together
MOST_WAITING = 1 << 30  # bytes of cases that wait for others


class Core(Protocol):
    """As app/graphs/steiner.py has it."""

    indptr: np.ndarray
    indices: np.ndarray
    lengths: np.ndarray
    terminals: np.ndarray


@dataclass(frozen=True, eq=False)
class Heights:
    """h of each terminal: `totals` at the root, and everywhere but at nodes[ptr[i]:ptr[i+1]].

    root       a terminal                       places     all is in multiples of 2^-places
    terminals, totals   [k] int64               ptr        [k+1] int64
    nodes, heights      [ptr[k]] int64, h at these nodes
    """

    root: int
    terminals: np.ndarray
    totals: np.ndarray
    ptr: np.ndarray
    nodes: np.ndarray
    heights: np.ndarray
    places: int = 0

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        arrays = (self.terminals, self.totals, self.ptr, self.nodes, self.heights)
        return sum(each.nbytes for each in arrays)


@dataclass(frozen=True, eq=False)
class Case:
    """The heights of a case, one after the other, and the node that tells two others apart; -1: none does."""

    heights: Sequence[Heights]
    split: int = -1


@dataclass(frozen=True, eq=False)
class SteinerBound(Bound):
    """No tree of the core is shorter than `lower`.

    cases     from the whole on; behind a case that is divided that without its node, with all that is below,
              and that with it
    checked   False where a finished search has proved more than the cases do
    """

    lower: int
    method: str
    cases: Sequence[Case] = (Case(()),)
    checked: bool = True

    def check(self, core: Core) -> None:
        """Prove it from the core alone. Raises BadCertificate."""
        if self.lower > 0:
            _Proof(self, core).run()

    def refuse(self, what: str) -> BadCertificate:
        """The error that says what is wrong."""
        return BadCertificate(f"{self.method}: {what}")


@dataclass(frozen=True, eq=False)
class _State:
    """What a case begins with: arcs of interest, away from the root; terminals. As bits."""

    arcs: np.ndarray
    wanted: np.ndarray
    root: int

    @property
    def nbytes(self) -> int:
        return self.arcs.nbytes + self.wanted.nbytes


class _Proof:
    """The work of a check."""

    def __init__(self, bound: SteinerBound, core: Core) -> None:
        self.bound, self.n = bound, len(core.indptr) - 1
        self.indptr, self.indices = core.indptr, np.asarray(core.indices, dtype=np.int64)
        self.row = np.repeat(np.arange(self.n), np.diff(core.indptr))
        self.length = np.asarray(core.lengths, dtype=np.int64)
        self.back = np.searchsorted(self.row * self.n + self.indices, self.indices * self.n + self.row)
        self.longest = int(self.length.max(initial=1))
        self.first = np.zeros(self.n, dtype=bool)
        self.first[core.terminals] = True

    def run(self) -> None:
        """All cases. Raises BadCertificate."""
        arcs = np.ones(len(self.row), dtype=bool)
        waiting: list[_State | None] = [_State(np.packbits(arcs), np.packbits(self.first), -1)]
        held = waiting[0].nbytes
        for case in self.bound.cases:
            if not waiting:
                raise self.bound.refuse("more cases than the nodes tell apart")
            state = waiting.pop()
            below = [] if state is None else self._below(case, state)
            if not below and case.split >= 0:  # proved before it is divided
                below = [None, None]
            waiting += below
            if held * len(waiting) > MOST_WAITING:
                raise self.bound.refuse("cases inside cases, too many to hold")
        if waiting:
            raise self.bound.refuse("a case is missing")

    def _below(self, case: Case, state: _State) -> list[_State]:
        """The cases that are left to prove, the next one last: none, or two."""
        arcs = np.unpackbits(state.arcs, count=len(self.row)).astype(bool)
        wanted, root = np.unpackbits(state.wanted, count=self.n).astype(bool), state.root
        arcs = self._without_leaves(arcs, wanted)
        for heights in case.heights:
            self._look_at(heights, wanted)
            if heights.root != root:
                arcs, root = arcs | arcs[self.back], heights.root
            left = self._left(heights, arcs, wanted)
            if left is None:
                return []
            arcs = left
        if case.split < 0:
            raise self.bound.refuse(f"a case is not proved: no tree below {self.bound.lower} would be right")
        if case.split >= self.n or wanted[case.split]:
            raise self.bound.refuse("cases are told apart by a node that is none, or a terminal")
        at = (self.row == case.split) | (self.indices == case.split)
        more = wanted.copy()
        more[case.split] = True
        without = _State(np.packbits(arcs & ~at), np.packbits(wanted), root)
        return [_State(np.packbits(arcs), np.packbits(more), root), without]

    def _look_at(self, heights: Heights, wanted: np.ndarray) -> None:
        """Whether numbers name what is there, and cannot leave 63 bits."""
        k, terminals = len(heights.terminals), heights.terminals
        refuse = self.bound.refuse
        if not 0 <= heights.places <= MOST_PLACES or self.longest << heights.places > LARGEST:
            raise refuse(f"lengths in multiples of 2^-{heights.places}")
        shapes = (heights.totals.shape, (len(heights.ptr) - 1,), heights.nodes.shape)
        if shapes != ((k,), (k,), heights.heights.shape) or not cuts_up(heights.ptr, len(heights.nodes)):
            raise refuse("heights that are not those of terminals and nodes")
        for numbers, most in (
            (terminals, self.n - 1), (heights.nodes, self.n - 1),
            (heights.totals, LARGEST), (heights.heights, LARGEST),
        ):  # fmt: skip
            if len(numbers) and not 0 <= numbers.min() <= numbers.max() <= most:
                raise refuse("an unknown node, or a height below 0 or too large")
        if not 0 <= heights.root < self.n or not wanted[heights.root] or not wanted[terminals].all():
            raise refuse("heights of a node that is no terminal")

    def _left(self, heights: Heights, arcs: np.ndarray, wanted: np.ndarray) -> np.ndarray | None:
        """[nnz] bool, the arcs that shorter trees than `lower` may have; None: there is no such tree."""
        room = np.where(arcs, self.length << heights.places, 0)
        proved = 0
        for which, entries, taken, gained in self._taken(heights):
            entries, taken = entries[arcs[entries]], taken[arcs[entries]]
            about = np.bincount(entries, weights=taken, minlength=1)  # could leave 63 bits
            if about.max() <= 2 * LARGEST:
                np.subtract.at(room, entries, taken)
            if about.max() > 2 * LARGEST or room.min(initial=0) < 0:
                raise self.bound.refuse(f"the heights of terminals {which} take more than an edge's length")
            proved += gained
        gap = ((self.bound.lower - 1) << heights.places) - proved
        if gap < 0:
            return None
        if gap >= LARGEST >> 1:
            return self._without_leaves(arcs, wanted)
        from_root, to_terminal = self._distances(room, arcs, wanted, heights.root, gap)
        if (from_root[wanted] > gap).any():
            return None
        way = from_root[self.indices] + np.minimum(room, gap + 1) + to_terminal[self.row]
        return self._without_leaves(arcs & (way <= gap), wanted)

    def _taken(self, heights: Heights) -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
        """Some terminals at a time: which, entries of arcs into nodes of their cuts, what is taken of each
        arc, and what these terminals prove.
        """
        degree = np.diff(self.indptr)
        work = np.append(0, np.cumsum(degree[heights.nodes] + 1))[heights.ptr] + np.arange(len(heights.ptr))
        first, k = 0, len(heights.terminals)
        while first < k:
            end = max(int(np.searchsorted(work, work[first] + PIECE)), first + 2) - 1
            end = min(end, k)
            yield f"{first} to {end - 1}", *self._taken_by(heights, first, end)
            first = end

    def _taken_by(self, heights: Heights, first: int, end: int) -> tuple[np.ndarray, np.ndarray, int]:
        part = slice(heights.ptr[first], heights.ptr[end])
        owner = np.repeat(np.arange(first, end), np.diff(heights.ptr[first : end + 1]))
        keys, place = np.unique(owner * self.n + heights.nodes[part], return_index=True)
        owner, node, height = owner[place], heights.nodes[part][place], heights.heights[part][place]
        counts = self.indptr[node + 1] - self.indptr[node]
        entries = ranges(self.indptr[node], counts)

        def h(owners: np.ndarray, nodes: np.ndarray) -> np.ndarray:
            if not len(keys):
                return heights.totals[owners]
            wanted = owners * self.n + nodes
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            return np.where(keys[at] == wanted, height[at], heights.totals[owners])

        fall = h(np.repeat(owner, counts), self.indices[entries]) - np.repeat(height, counts)
        of = np.arange(first, end)
        gained = h(of, np.full(len(of), heights.root)) - h(of, heights.terminals[first:end])
        kept = fall > 0
        # Nodes without a number have h = total; should one be higher, arcs lead down to them as well.
        if (height > heights.totals[owner]).any():
            raise self.bound.refuse("a height above that of the root")
        return entries[kept], fall[kept], sum(gained.tolist())

    def _distances(
        self, room: np.ndarray, arcs: np.ndarray, wanted: np.ndarray, root: int, gap: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """[n] float64, whole numbers: from the root, and to the nearest other terminal; gap + 1: beyond."""
        kept = arcs & (room <= gap)
        cost = np.minimum(room, gap + 1)[kept].astype(np.float64)
        shape, head, tail = (self.n, self.n), self.row[kept], self.indices[kept]
        away = sp.csr_array((cost, (tail, head)), shape=shape)
        back = sp.csr_array((cost, (head, tail)), shape=shape)
        others = np.flatnonzero(wanted)
        others = others[others != root]
        found = [dijkstra(away, indices=root, limit=gap)]
        if len(others):
            found.append(dijkstra(back, indices=others, limit=gap, min_only=True))
        else:
            found.append(np.full(self.n, np.inf))
        return tuple(np.where(np.isfinite(each), each, gap + 1) for each in found)

    def _without_leaves(self, arcs: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Arcs whose edges are on no dead end: what is left when leaves that are no terminals are gone."""
        edges = arcs | arcs[self.back]
        while True:
            degree = np.bincount(self.row[edges], minlength=self.n)
            leaf = (degree == 1) & ~wanted
            if not leaf.any():
                return arcs & edges
            edges &= ~(leaf[self.row] | leaf[self.indices])
