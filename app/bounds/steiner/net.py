"""Net: what is left of a Steiner tree problem, with arcs that some trees rooted at a terminal may use.

Entry i of row v is the arc from indices[i] to v. Where all solutions of interest are trees without a node to
spare (every leaf is a terminal), directed away from the root, arcs that none of them uses are left out.
"""

import ctypes
from dataclasses import dataclass, replace

import numpy as np

from app.bounds.steiner import plain
from app.graphs.keys import sorted_set
from app.graphs.lists import entries_of
from app.graphs.orders import places_of
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
DISTANCES = function(
    "lk_arc_distances", Long, *[Pointer] * 3, Long, Pointer, Long, Pointer, returns=Long
)  # fmt: skip
GROW = function("lk_tree_along", Long, *[Pointer] * 4, Long, Pointer, returns=Long)
CAP = 1 << 62  # of distances


@dataclass(frozen=True, eq=False)
class Net:
    """Rows of both directions of each edge.

    indptr [n+1] int64, indices [nnz] int32     back [nnz] int64, the entry of the other direction
    length     [nnz] int64, above 0             alive [nnz] bool: a tree of interest may use the arc
    node       [n] int64, the nodes' numbers in the core
    wanted     [n] bool, terminals
    root       a terminal; the arcs lead away from it
    """

    indptr: np.ndarray
    indices: np.ndarray
    back: np.ndarray
    length: np.ndarray
    alive: np.ndarray
    node: np.ndarray
    wanted: np.ndarray
    root: int
    compiled: bool = True

    @classmethod
    def of(
        cls, indptr: np.ndarray, indices: np.ndarray, lengths: np.ndarray, terminals: np.ndarray,
        root: int | None = None, compiled: bool = True,
    ) -> "Net":  # fmt: skip
        """The whole of a core; root: one of the terminals, the first by default."""
        n = len(indptr) - 1
        wanted = np.zeros(n, dtype=bool)
        wanted[terminals] = True
        ends = np.ascontiguousarray(indices, dtype=np.int32)
        row = np.repeat(np.arange(n), np.diff(indptr))
        back = places_of(np.lexsort((row, ends)))
        root = int(terminals[0]) if root is None else root
        begin, length = np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(lengths, np.int64)
        alive = np.ones(len(ends), dtype=bool)
        return cls(begin, ends, back, length, alive, np.arange(n), wanted, root, compiled)

    @property
    def n(self) -> int:
        """Nodes."""
        return len(self.node)

    @property
    def row(self) -> np.ndarray:
        """[nnz] int64, the row of each entry: the arc's head."""
        return np.repeat(np.arange(self.n), np.diff(self.indptr))

    @property
    def terminals(self) -> np.ndarray:
        """[k] int64, ascending."""
        return np.flatnonzero(self.wanted)

    def rooted_at(self, root: int) -> "Net":
        """With another root: an edge has both its arcs, or none."""
        if root == self.root:
            return self
        return replace(self, root=root, alive=self.alive | self.alive[self.back])

    def smaller(self, alive: np.ndarray) -> "Net":
        """What these arcs [nnz] make up, without edges whose both arcs are gone and without dead ends."""
        kept = alive | alive[self.back]
        kept, nodes = _without_dead_ends(self, kept)
        if kept.all() and nodes.all():
            return replace(self, alive=alive)
        place = np.cumsum(nodes) - 1
        at = np.cumsum(kept) - 1
        entries = np.flatnonzero(kept)
        counts = np.bincount(self.row[entries], minlength=self.n)[nodes]
        return replace(
            self,
            indptr=np.append(0, np.cumsum(counts)),
            indices=place[self.indices[entries]].astype(np.int32),
            back=at[self.back[entries]],
            length=self.length[entries],
            alive=alive[entries],
            node=self.node[nodes],
            wanted=self.wanted[nodes],
            root=int(place[self.root]),
        )

    def rooms(self, places: int = 0) -> np.ndarray:
        """[nnz] int64, lengths in multiples of 2^-places, -1 where there is no arc."""
        return np.where(self.alive, self.length << places, -1)

    def distances(self, room: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        """[n] int64 from the root to each node, and from each node to the nearest other terminal.

        room   [nnz] the lengths of arcs, below 0: none     most: more is told as most + 1
        """
        others = self.terminals
        others = others[others != self.root]
        root = np.array([self.root], dtype=np.int64)
        return self._distances(room[self.back], root, most), self._distances(room, others, most)

    def _distances(self, length: np.ndarray, sources: np.ndarray, most: int) -> np.ndarray:
        most = min(most, CAP)
        length = np.ascontiguousarray(length)
        if not self.compiled or DISTANCES is None:
            return plain.distances(self.indptr, self.indices, length, sources, most)
        far, sources = np.empty(self.n, dtype=np.int64), np.ascontiguousarray(sources, np.int64)
        arrays = map(address, (self.indptr, self.indices, length))
        if DISTANCES(self.n, *arrays, len(sources), address(sources), most, address(far)):
            raise MemoryError("distances along arcs")
        return far

    def useful(self, room: np.ndarray, gap: int) -> np.ndarray:
        """[nnz] bool: arcs on a way from the root to a terminal that is no longer than `gap`."""
        from_root, to_terminal = self.distances(room, gap)
        row = self.row
        near = (self.alive) & (from_root[self.indices] <= gap) & (to_terminal[row] <= gap)
        way = np.where(near, room, 0) + np.where(near, from_root[self.indices] + to_terminal[row], gap + 1)
        return near & (way <= gap) & (row != self.root)

    def tree(self, length: np.ndarray) -> np.ndarray | None:
        """[n] int64, the parents of a tree that holds all terminals, along arcs v -> u by the length [nnz] of
        v's entry u, below 0: none; the nearest terminal joins first. None: there is no such tree.
        """
        length = np.ascontiguousarray(length)
        if not self.compiled or GROW is None:
            parent, missing = plain.grown(self.indptr, self.indices, length, self.wanted, self.root)
        else:
            parent = np.empty(self.n, dtype=np.int64)
            wanted = self.wanted.astype(np.uint8)
            arrays = map(address, (self.indptr, self.indices, length, wanted))
            missing = GROW(self.n, *arrays, self.root, address(parent))
        if missing < 0:
            raise MemoryError("a tree along arcs")
        return None if missing else parent


def _without_dead_ends(net: Net, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of edges whose entries are `kept` [nnz] those that are left when other leaves than terminals are gone,
    again and again; and [n] bool the nodes that are left.
    """
    row, kept = net.row, kept.copy()
    degree = np.bincount(row[kept], minlength=net.n)
    loose = np.flatnonzero((degree == 1) & ~net.wanted)
    while len(loose):
        leaf = np.zeros(net.n, dtype=bool)
        leaf[loose] = True
        if len(loose) * 8 > net.n:
            entries = np.flatnonzero(kept & leaf[row])
        else:
            entries = entries_of(net.indptr, loose)
            entries = entries[kept[entries]]
        near = sorted_set(net.indices[entries])
        kept[entries] = kept[net.back[entries]] = False
        degree[loose] = 0
        ends = net.indices[entries]
        np.subtract.at(degree, ends[~leaf[ends]], 1)
        loose = near[(degree[near] == 1) & ~net.wanted[near] & ~leaf[near]]
    return kept, (degree > 0) | net.wanted
