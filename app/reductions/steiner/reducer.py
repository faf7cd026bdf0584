"""SteinerReducer: what is left of a Steiner tree problem once nodes and edges are decided that can be.

Source   Duin and Volgenant, Reduction tests for the Steiner problem in graphs, Networks 1989: degrees,
         nearest vertex, special distance; short links: Polzin and Vahdati Daneshmand, Improved algorithms
         for the Steiner problem in networks, Discrete Applied Mathematics 2001
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from app.graphs.keys import sorted_set
from app.graphs.steiner import SteinerCore, ends_of, tree_of_edges
from app.reductions.steiner.detours import Ways
from app.reductions.steiner.log import DROP, JOIN, LEAF, PATH
from app.reductions.steiner.voronoi import nearest
from app.reductions.woken import WokenReducer

ROUNDS = 20
LEAST = 0.01  # of the edges: a round that takes less is the last, once it has looked far
LOOKS = (40, 200, 1000)  # entries that a search around an edge looks at, round by round
MOST_REGION = 200  # nodes of a region whose shortest way out is looked at


class Kernel(NamedTuple):
    """What is left.

    core    its graph                     nodes   [k] int64, what its nodes are called
    edges   [nnz] int64, which of the reducer's edges each entry is
    paid    length of the edges that are part of the tree in any case
    """

    core: SteinerCore
    nodes: np.ndarray
    edges: np.ndarray
    paid: int


class SteinerReducer(WokenReducer):
    """Rules on a graph that changes.

    near     of each node that is left its edges: {node: edge}
    into     [n] the node that a node has become one with; itself, where it is called as before
    bought   edges of the tree; paid: their length     steps   nodes and edges looked at
    length, made   of edges: made of two others, else of the ends in the graph
    """

    def __init__(self, core: SteinerCore, compiled: bool = True) -> None:
        self.core, self.compiled = core, compiled
        super().__init__({node: {} for node in range(core.n)}, ("leaves", "paths", "joined", "edges"))
        rows, columns = core.row_of(), core.indices.astype(np.int64)
        one = np.flatnonzero(rows < columns)
        self.length: list[int] = core.lengths[one].tolist()
        self.made: list[tuple[bool, int, int]] = []  # (made of two edges, ...)
        for edge, (u, v) in enumerate(zip(rows[one].tolist(), columns[one].tolist())):
            self.near[u][v] = self.near[v][u] = edge
            self.made.append((False, u, v))
        self.terminals = set(core.terminals.tolist())
        self.into = list(range(core.n))
        self.bought: list[int] = []

    def _rules(self) -> None:
        """All rules in rounds, until little is gained."""
        self._nodes()
        for number in range(ROUNDS):
            before = self._edges()
            if len(self.terminals) < 2:
                return
            self._drop(LOOKS[min(number, len(LOOKS) - 1)])
            self._nodes()
            self._join()
            self._nodes()
            if number + 1 >= len(LOOKS) and before - self._edges() <= LEAST * before:
                return

    def _edges(self) -> int:
        return sum(map(len, self.near.values())) // 2

    # ---- degrees -------------------------------------------------------------------------------------------

    def _look_at(self, node: int) -> None:
        if node not in self.terminals:
            self._of_degree(node, len(self.near[node]))
        elif len(self.near[node]) == 1 and len(self.terminals) > 1:
            (other,) = self.near[node]
            self._bind([node], [node, other])

    def _of_degree(self, node: int, degree: int) -> None:
        """A node that is no terminal."""
        if degree > 2:
            return
        ends = list(self.near[node])
        edges = self._leave(node)
        self._wake(ends)
        if degree < 2:
            self.log += [LEAF, node]
            self.counts["leaves"] += 1
            return
        self.log += [PATH, node]
        self.counts["paths"] += 1
        length, (a, b) = self.length[edges[0]] + self.length[edges[1]], ends
        known = self.near[a].get(b)
        if known is None or self.length[known] > length:
            self.length.append(length)
            self.made.append((True, *edges))
            self.near[a][b] = self.near[b][a] = len(self.length) - 1

    def _leave(self, node: int) -> list[int]:
        """A node goes with its edges, which are returned."""
        edges = self.near.pop(node)
        for other in edges:
            del self.near[other][node]
        return list(edges.values())

    # ---- edges that trees do not need ----------------------------------------------------------------------

    def _drop(self, most: int) -> None:
        """Edges with a way around."""
        kernel = self.kernel(whole=True)
        if not len(kernel.core.indices):
            return
        names = kernel.nodes.tolist()
        ways = Ways(kernel.core, most, self.compiled)
        self._step(kernel.core.edges)
        for u, v, way in ways.around():
            u, v = names[u], names[v]
            del self.near[u][v], self.near[v][u]
            self.log += [DROP, u, v, len(way), *(names[node] for node in way)]
            self.counts["edges"] += 1
            self._wake((u, v))
            self._step()

    # ---- edges of the tree ---------------------------------------------------------------------------------

    def _join(self) -> None:
        """Edges that a terminal, or the region that is nearest to it, is left by in some shortest tree."""
        if len(self.terminals) < 2:
            return
        kernel = self.kernel(whole=True)
        names = kernel.nodes.tolist()
        for region, way in links(kernel.core):
            self._step(len(region))
            region = list(dict.fromkeys(self._now(names[node]) for node in region))
            way = [self._now(names[node]) for node in way]
            way = [node for i, node in enumerate(way) if not i or node != way[i - 1]]
            self._bind(region, way)

    def _now(self, node: int) -> int:
        """What a node is called now."""
        while self.into[node] != node:
            self.into[node] = self.into[self.into[node]]
            node = self.into[node]
        return node

    def _bind(self, region: list[int], way: list[int]) -> None:
        """The edge by which a way leaves a region becomes part of the tree, where the rule holds."""
        inside, steps = set(region), list(pairwise(way))
        out = [(u, v) for u, v in steps if (u in inside) != (v in inside)]
        if len(out) != 1 or any(v not in self.near.get(u, ()) for u, v in steps):
            return
        (u, v) = out[0]
        crossing = {edge for node in region for other, edge in self.near[node].items() if other not in inside}
        crossing.discard(self.near[u][v])
        if not self._sure(inside, way, crossing):
            return
        self.log += [JOIN, len(region), *region, len(way), *way]
        self.counts["joined"] += 1
        self._unite(min(u, v), max(u, v))

    def _sure(self, inside: set[int], way: list[int], crossing: set[int]) -> bool:
        """Whether some shortest tree leaves a region as a way does; crossing: other edges that leave it."""
        length = sum(self.length[self.near[u][v]] for u, v in pairwise(way))
        if {way[0], way[-1]} <= self.terminals and way[0] in inside:
            return way[-1] not in inside and all(self.length[edge] >= length for edge in crossing)
        return (
            len(way) == 2 and not crossing and bool(self.terminals & inside) and not self.terminals <= inside
        )

    def _unite(self, kept: int, gone: int) -> None:
        """Two nodes become one terminal."""
        self.bought.append(self.near[kept][gone])
        self.paid += self.length[self.bought[-1]]
        own = self.near[kept]
        del own[gone], self.near[gone][kept]
        others = dict(self.near[gone])
        self._leave(gone)
        for node, edge in others.items():
            if node not in own or self.length[edge] < self.length[own[node]]:
                own[node] = self.near[node][kept] = edge
        self.terminals.discard(gone)
        self.terminals.add(kept)
        self.into[gone] = kept
        self._wake([kept, *others])

    # ---- what is left --------------------------------------------------------------------------------------

    def kernel(self, whole: bool = False) -> Kernel:
        """What is left: the part with the terminals, nothing of one terminal; whole: all there is."""
        kept = sorted(self.near) if whole else sorted(self._part())
        names, row = np.array(kept, dtype=np.int64), [self.near[node] for node in kept]
        counts = np.array([len(each) for each in row], dtype=np.int64)
        place = np.zeros(self.core.n, dtype=np.int64)
        place[names] = np.arange(len(names))
        columns = place[np.array([node for each in row for node in each], dtype=np.int64)]
        edges = np.array([edge for each in row for edge in each.values()], dtype=np.int64)
        order = np.lexsort((columns, np.repeat(np.arange(len(names)), counts)))
        columns, edges = columns[order].astype(np.int32), edges[order]
        lengths = np.array(self.length, dtype=np.int64)[edges]
        terminals = np.array(sorted(self.terminals.intersection(kept)), dtype=np.int64)
        core = SteinerCore(np.append(0, np.cumsum(counts)), columns, lengths, place[terminals])
        return Kernel(core, names, edges, self.paid)

    def _part(self) -> set[int]:
        """The nodes that paths join to the terminals; none where there is one terminal."""
        if len(self.terminals) < 2:
            return set()
        first = min(self.terminals)
        met, waiting = {first}, [first]
        while waiting:
            new = [node for node in self.near[waiting.pop()] if node not in met]
            met.update(new)
            waiting += new
        return met

    def lift(self, kernel: Kernel, parent: np.ndarray) -> np.ndarray:
        """[n] int64, the tree of the graph that one of the kernel, [k] parents, stands for."""
        u, v = ends_of(parent)
        rows, columns = kernel.core.row_of(), kernel.core.indices
        keys = rows * kernel.core.n + columns
        chosen = kernel.edges[np.searchsorted(keys, u * kernel.core.n + v)].tolist()
        waiting, ends = [*chosen, *self.bought], []
        while waiting:
            of_two, a, b = self.made[waiting.pop()]
            if of_two:
                waiting += [a, b]
            else:
                ends.append((a, b))
        pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
        return tree_of_edges(self.core.n, pairs[:, 0], pairs[:, 1], int(self.core.terminals[0]))

    def places(self, kernel: Kernel, nodes: np.ndarray) -> np.ndarray:
        """[k] int64, the nodes of the kernel that some of the graph are now, without those that have gone."""
        now = np.array([self._now(node) for node in nodes.tolist()], dtype=np.int64)
        place = np.full(self.core.n, -1, dtype=np.int64)
        place[kernel.nodes] = np.arange(len(kernel.nodes))
        return sorted_set(place[now][place[now] >= 0])


class Untouched:
    """In the place of a SteinerReducer where there is no time for rules: the part with the terminals."""

    steps = 0

    def __init__(self, core: SteinerCore, near: np.ndarray | None = None) -> None:
        """near   the ways to the first terminal (SteinerCore.towards), where they are known"""
        self.core, self.log, self._near = core, [], near

    def kernel(self) -> Kernel:
        """The part that paths join to the terminals, as SteinerReducer.kernel; nothing of one terminal."""
        core, kept = self.core, np.zeros(self.core.n, dtype=bool)
        if len(core.terminals) > 1:
            near = core.towards(int(core.terminals[0])) if self._near is None else self._near
            kept = near >= 0
        number = np.cumsum(kept) - 1
        entries = np.flatnonzero(np.repeat(kept, np.diff(core.indptr)))
        indptr = np.append(0, np.cumsum(np.diff(core.indptr)[kept]))
        terminals = number[core.terminals[kept[core.terminals]]]
        columns = number[core.indices[entries]].astype(np.int32)
        left = SteinerCore(indptr, columns, core.lengths[entries], terminals)
        return Kernel(left, np.flatnonzero(kept), entries, 0)

    def lift(self, kernel: Kernel, parent: np.ndarray) -> np.ndarray:
        """[n] int64, the tree of the graph that one of the kernel, [k] parents, stands for."""
        u, v = (kernel.nodes[ends] for ends in ends_of(parent))
        return tree_of_edges(self.core.n, u, v, int(self.core.terminals[0]))

    def places(self, kernel: Kernel, nodes: np.ndarray) -> np.ndarray:
        """[k] int64, the nodes of the kernel that some of the graph are, without those that are not there."""
        place = np.full(self.core.n, -1, dtype=np.int64)
        place[kernel.nodes] = np.arange(len(kernel.nodes))
        return sorted_set(place[nodes][place[nodes] >= 0])


def links(core: SteinerCore) -> list[tuple[list[int], list[int]]]:
    """Regions, and ways from their terminal to another one, whose first edge out of the region may be sure:
    of the terminal alone, and of the nodes that are nearest to it.
    """
    distance, before, base = nearest(core, core.terminals)
    rows, columns = core.row_of(), core.indices.astype(np.int64)
    across = np.flatnonzero((base[rows] != base[columns]) & (distance[rows] >= 0))
    found = []
    length = distance[rows[across]] + core.lengths[across] + distance[columns[across]]
    order = np.lexsort((across, core.lengths[across], base[rows[across]]))
    size = np.bincount(base, minlength=core.n)
    members = np.argsort(base, kind="stable")
    begin = np.append(0, np.cumsum(size))
    entries, lengths = across[order], length[order]
    first = np.flatnonzero(np.diff(base[rows[entries]], prepend=-1))
    for at, end in zip(first.tolist(), [*first[1:].tolist(), len(entries)]):
        entry = int(entries[at])
        t = int(base[rows[entry]])
        second = int(core.lengths[entries[at + 1]]) if at + 1 < end else None
        if size[t] > MOST_REGION or (second is not None and second < lengths[at]):
            continue
        way = _back(before, int(rows[entry]))[::-1] + _back(before, int(columns[entry]))
        found.append((members[begin[t] : begin[t + 1]].tolist(), way))
    return found + _nearest_links(core, distance, before, base)


def _nearest_links(
    core: SteinerCore, distance: np.ndarray, before: np.ndarray, base: np.ndarray
) -> list[tuple[list[int], list[int]]]:
    """The same of terminals alone: by the shortest edge to the node beside, and on from there."""
    found = []
    for t in core.terminals.tolist():
        row = slice(int(core.indptr[t]), int(core.indptr[t + 1]))
        near, lengths = core.indices[row], core.lengths[row]
        if not len(near):
            continue
        shortest = int(lengths.argmin())
        v, beyond = int(near[shortest]), int(lengths[shortest])
        second = np.partition(lengths, 1)[1] if len(near) > 1 else None
        cut = slice(int(core.indptr[v]), int(core.indptr[v + 1]))
        others = np.append(core.indices[cut], v).astype(np.int64)
        more = np.append(core.lengths[cut], 0) + distance[others]
        good = np.flatnonzero((base[others] != t) & (distance[others] >= 0))
        if not len(good):
            continue
        best = int(good[more[good].argmin()])
        if second is not None and second < beyond + more[best]:
            continue
        w = int(others[best])
        found.append(([t], [t, v, *([] if w == v else [w]), *_back(before, w)[1:]]))
    return found


def _back(before: np.ndarray, node: int) -> list[int]:
    """The way of a node to its terminal."""
    found = [node]
    while before[found[-1]] != found[-1]:
        found.append(int(before[found[-1]]))
    return found
