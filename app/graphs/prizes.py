"""Prizes of nodes: trees that pay their edges, and the prizes of the nodes that they leave out.

A question of prizes is asked as one of terminals alone: the Steiner tree of a graph with more nodes. Let a
node r be in the tree. Each node i with a prize p gets a node i' beside it, a terminal, with an edge i-i' of
length a and an edge r-i' of length a + p. A tree with i takes the first, one without i the second; so every
tree of the graph that holds r is one of the larger graph, longer by the sum of all a than it costs. That
alone makes bounds of the larger graph bounds of the question, whatever the a are.

The larger graph has no shorter trees besides where a + p is large enough: a tree that goes through i' has
both its edges, and in the place of r-i' a path that joins its parts is no longer. A shortest path from i to r
does; so does the longest of the paths from i to the nearest terminal and of those that join all terminals.
Hence a = d - p, where d is the lesser of both, or 1 where the prize is larger. A node that is joined to any
tree with r without loss is a terminal, too, and has no node beside it.

Where no node is known to be in the tree, some are told of which one is, the entries: trees without them may
be joined to one without loss, or leave out prizes of as much as a tree that is known costs. Of one entry that
is r. Of several r is a node of its own and a terminal, and
beside it another terminal s; both have edges of length R to all entries. Trees use one edge of each where
R is as long as what a second one could spare: a path between two parts of a tree, or a part of it.

Sources  Goemans and Williamson, A general approximation technique for constrained forest problems, SIAM
         Journal on Computing 1995 (prize-collecting Steiner trees); as Steiner arborescences: Ljubic et al.,
         An algorithmic framework for the exact solution of the prize-collecting Steiner tree problem,
         Mathematical Programming 2006; Rehfeldt and Koch, Transformations for the prize-collecting Steiner
         tree problem and the maximum-weight connected subgraph problem to SAP, Journal of Computational
         Mathematics 2018
Differs  edges without directions, short enough for the reductions, searches and bounds of Steiner trees
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree

from app.errors import GraphError
from app.graphs.fixed_point import LARGEST, refuse_vanished, whole_numbers
from app.graphs.graph import Graph, narrow
from app.graphs.keys import sorted_set
from app.graphs.lists import starts
from app.graphs.prize_ways import Ways, best_within
from app.graphs.steiner import SteinerCore, refuse_apart, refuse_lengths

NEAR = 200  # nodes that are looked at around one that may be sure


class Prized(NamedTuple):
    """What a caller asks of a graph, in whole numbers: cost = (lengths + prizes left out) * unit.

    core      the graph; its terminals are in every tree, there may be none
    prizes    [n] int64, 0 of terminals
    compiled  whether kernels may be used; the answers are equal
    worth     of heaviest connected subgraphs: the nodes of a tree weigh so much less what it costs
    """

    core: SteinerCore
    prizes: np.ndarray
    unit: float
    compiled: bool = True
    worth: int = 0

    def ways(self) -> Ways:
        """Paths that prizes pay for."""
        return Ways(self.core, self.prizes, self.compiled)

    def cost(self, parent: np.ndarray) -> tuple[int, int]:
        """The length of a tree, by its parents [n], and the prizes that it leaves out."""
        return self.core.length(parent), int(self.prizes[parent < 0].sum())

    def single(self) -> int:
        """The node that is the best tree without edges: the terminal, or the largest prize, the first."""
        terminals = self.core.terminals
        return int(terminals[0]) if len(terminals) else int(self.prizes.argmax())


class Gadgets(NamedTuple):
    """A question of prizes as one of terminals: trees of `core` are longer by `more` than they cost.

    core      nodes of the graph first, then a terminal for each of `nodes`, then r and s where they are new
    nodes     [k] int64, the nodes of prizes that trees can reach, and need not hold
    entries   [m] int64, nodes of which trees hold one; none where there are terminals
    hub       r
    fresh     whether r and s are new
    """

    core: SteinerCore
    nodes: np.ndarray
    entries: np.ndarray
    hub: int
    fresh: bool
    more: int

    def inside(self, parent: np.ndarray) -> np.ndarray:
        """[k] int64, the nodes of the core that stand for a tree of the graph, by its parents [n]."""
        n = len(parent)
        taken = parent >= 0
        return np.concatenate([np.flatnonzero(taken), np.arange(n, self.core.n)])


def prized_of(
    graph: Graph, terminals: np.ndarray, prizes: np.ndarray, compiled: bool = True, heaviest: bool = False
) -> Prized:
    """What a caller asks of a whole graph: terminals [k] rows, prizes [n] float32. Raises GraphError.

    heaviest   prizes are weights of any sign, and the nodes of a tree are to weigh as much as may be
    """
    if not graph.n:
        raise GraphError(f"{graph.name}: found no nodes; one or more would be right")
    if not heaviest:
        refuse_prizes(graph, prizes)
    terminals, largest = sorted_set(np.asarray(terminals, dtype=np.int64)), LARGEST
    while True:
        numbered = _shifted if heaviest else _numbered
        lengths, own, least, unit = numbered(graph, prizes, largest)
        step = max(int(np.gcd.reduce(np.concatenate([lengths, own, [least]]))), 1)
        own, worth = own // step, (int(own.sum()) + least) // step
        own[terminals] = 0
        indptr, indices = np.asarray(graph.indptr, np.int64), np.asarray(graph.indices, np.int32)
        core = SteinerCore(*map(np.ascontiguousarray, (indptr, indices, lengths // step, terminals)))
        refuse_apart(graph, core)
        asked = Prized(core, own, unit * step, compiled, worth)
        times = -(-_most_length(asked) * step // LARGEST)
        if times <= 1:
            return asked
        largest //= 2 * times


def _numbered(graph: Graph, prizes: np.ndarray, largest: int) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Lengths [nnz] and prizes [n] in units, 0, and the unit. Raises GraphError."""
    weights = np.ones(len(graph.indices), dtype=np.float32) if graph.weights is None else graph.weights
    both = np.concatenate([weights, prizes])
    numbers, unit = whole_numbers(both, f"{graph.name}: a length or a prize", largest)
    lengths, own = np.split(numbers, [len(weights)])
    refuse_lengths(graph, lengths, float(prizes.max()))
    if largest == LARGEST:  # in the coarser units of large graphs the least ones may count as 0
        row = len(weights)
        refuse_vanished(numbers, both, lambda i: f"{graph.name}: the prize of node {graph.called(i - row)}")
    return lengths, own, 0, unit


def _shifted(graph: Graph, weights: np.ndarray, largest: int) -> tuple[np.ndarray, np.ndarray, int, float]:
    """The same of weights w [n] of any sign: with m below 0, no larger than any, edges have the length -m and
    nodes the prizes w - m; and m. Raises GraphError.

    A tree of k nodes then costs -(k-1) m and all prizes but its own: sum(w - m) + m, less what its nodes
    weigh.

    Source   Rehfeldt and Koch 2018, as above
    """
    numbers, unit = whole_numbers(weights, f"{graph.name}: a node weight", largest)
    if largest == LARGEST:
        refuse_vanished(numbers, weights, lambda i: f"{graph.name}: the weight of node {graph.called(i)}")
    least = int(numbers.min())
    if least >= 0:
        least = -max(int(numbers.max()), 1)
    return np.full(len(graph.indices), -least, dtype=np.int64), numbers - least, least, unit


def refuse_prizes(graph: Graph, prizes: np.ndarray) -> None:
    """Refuse prizes [n] below 0. Raises GraphError."""
    wrong = np.flatnonzero(~(prizes >= 0))
    if len(wrong):
        node = int(wrong[0])
        told = f"node {graph.called(node)} has the prize {float(prizes[node]):g}"
        raise GraphError(f"{graph.name}: {told}; a number from 0 on would be right")


def _most_length(asked: Prized) -> int:
    """No less than all lengths of a gadget graph together, whatever its entries are."""
    core, prizes = asked.core, asked.prizes
    count, total, part = np.count_nonzero(prizes), int(prizes.sum()), core.parts(asked.compiled)
    first = np.unique(part, return_index=True)[1]
    far = int(distances(core, first).max(initial=0))
    widest = max(4 * far, total) + total + 1
    return int(core.lengths.sum()) + 8 * (count + 1) * widest


def distances(core: SteinerCore, nodes: np.ndarray) -> np.ndarray:
    """[n] int64, how far each node is from the nearest of some [k]; -1: no path leads there."""
    if not core.n or not len(nodes):
        return np.full(core.n, -1, dtype=np.int64)
    matrix = sp.csr_array((core.lengths.astype(float), core.indices, core.indptr), shape=(core.n,) * 2)
    found = dijkstra(narrow(matrix), indices=nodes, min_only=True)  # whole numbers below 2^53: exact
    return np.where(np.isfinite(found), found, -1).astype(np.int64)


# ---- entries -----------------------------------------------------------------------------------------------


def entries_of(asked: Prized, known: int) -> np.ndarray:
    """[m] int64, nodes of which a best tree holds one, or a tree costs as much as one that is known: the
    largest prizes, each outside the reach of those before; none where there are terminals.
    """
    if len(asked.core.terminals):
        return np.empty(0, dtype=np.int64)
    order = np.argsort(-asked.prizes, kind="stable")
    found, reached, paid, ways = [], np.zeros(asked.core.n, dtype=bool), 0, asked.ways()
    for node in order[: max(np.count_nonzero(asked.prizes), 1)].tolist():
        if not reached[node]:
            found.append(node)
            paid += _reach_more(asked, ways, reached, node)
            if paid >= known:
                break
    return np.array(sorted(found), dtype=np.int64)


def _reach_more(asked: Prized, ways: Ways, reached: np.ndarray, node: int) -> int:
    """Add the reach of a node to what is reached [n] bool; the prizes that are new there."""
    nodes = ways.reached(node)
    new = nodes[~reached[nodes]]
    reached[new] = True
    return int(asked.prizes[new].sum())


def reach(asked: Prized, node: int) -> np.ndarray:
    """[n] bool, nodes from which some path leads to a node without loss: a tree that holds one of them, but
    not the node, may be joined to it and costs no more.

    On the way from the node the prizes so far, without that of the last one, are at least the lengths so far,
    all along; so the path up to the first node of a tree pays for itself. The path that has most left goes
    on first, and no node is on two ways; not all such paths are found.
    """
    reached = np.zeros(asked.core.n, dtype=bool)
    reached[asked.ways().reached(node)] = True
    return reached


def sure_nodes(asked: Prized, first: np.ndarray) -> np.ndarray:
    """[k] int64, ascending: nodes that some best one of all trees with the first [j] holds, these too, as
    they are joined to such trees without loss, one after the other.
    """
    sure, before, ways = set(first.tolist()), 0, asked.ways()
    ways.goal[first] = True
    far = distances(asked.core, first)
    waiting = [v for v in np.argsort(far, kind="stable").tolist() if asked.prizes[v] > 0 and far[v] >= 0]
    while len(sure) > before and waiting:
        before, left = len(sure), []
        for node in waiting:
            if node in sure:
                continue
            if ways.meets(node, NEAR):
                sure.add(node)
                ways.goal[node] = True
            else:
                left.append(node)
        waiting = left
    return np.array(sorted(sure), dtype=np.int64)


def cost_without(asked: Prized, entries: np.ndarray) -> int | None:
    """What trees without any of some nodes [m] cost at least; None: no less than some tree with one.

    A tree that holds a node of their reach is no better than one that holds one of them, too; any other
    leaves out all prizes there.
    """
    if len(asked.core.terminals):
        return None
    reached, paid, ways = np.zeros(asked.core.n, dtype=bool), 0, asked.ways()
    for node in sorted_set(entries).tolist():
        if not reached[node]:
            paid += _reach_more(asked, ways, reached, node)
    return None if paid == int(asked.prizes.sum()) else paid


# ---- the larger graph --------------------------------------------------------------------------------------


def gadgets_of(asked: Prized, entries: np.ndarray) -> Gadgets:
    """The question of terminals that a question of prizes is, for trees that hold an entry."""
    core, n, terminals = asked.core, asked.core.n, asked.core.terminals
    fresh = not len(terminals) and len(entries) > 1
    inner = entries if fresh or not len(terminals) else terminals[:1]
    far = distances(core, inner)
    free = (asked.prizes > 0) & (far >= 0)
    if not fresh:
        terminals = sure_nodes(asked, terminals if len(terminals) else entries)
        far = np.where(far < 0, far, np.minimum(far, _apart(core, terminals)))
        free[terminals] = False
    nodes = np.flatnonzero(free)
    prizes, k = asked.prizes[nodes], len(nodes)
    hub = n + k if fresh else int(inner[0])
    wide = _width(asked, entries) if fresh else 0
    spared = np.maximum((wide if fresh else far[nodes]) - prizes, 1)
    beside, rows = n + np.arange(k), core.row_of()
    one = np.flatnonzero(rows < core.indices)
    ends = [(rows[one], core.indices[one], core.lengths[one]), (nodes, beside, spared)]
    ends.append((beside, np.full(k, hub), spared + prizes))
    for new in (hub, hub + 1) if fresh else ():
        ends.append((entries, np.full(len(entries), new), np.full(len(entries), wide)))
    wanted = np.concatenate([terminals, beside, [hub], [hub + 1] if fresh else []]).astype(np.int64)
    u, v, length = (np.concatenate(parts).astype(np.int64) for parts in zip(*ends))
    count = n + k + (2 if fresh else 0)
    unreached = int(asked.prizes[far < 0].sum())
    larger = _assembled(count, u, v, length, sorted_set(wanted))
    return Gadgets(larger, nodes, entries, hub, fresh, int(spared.sum()) + 2 * wide - unreached)


def _apart(core: SteinerCore, terminals: np.ndarray) -> np.ndarray:
    """[n] int64, the longest of the paths from a node to the nearest terminal [k] and of those that join all
    terminals, by a shortest spanning tree of their distances.

    Source   Mehlhorn, A faster approximation algorithm for the Steiner problem in graphs, Information
             Processing Letters 1988
    """
    matrix = sp.csr_array((core.lengths.astype(float), core.indices, core.indptr), shape=(core.n,) * 2)
    found, _, base = dijkstra(narrow(matrix), indices=terminals, min_only=True, return_predecessors=True)
    far = np.where(np.isfinite(found), found, 0).astype(np.int64)
    rows, columns = core.row_of(), core.indices.astype(np.int64)
    across = np.flatnonzero((base[rows] < base[columns]) & (base[rows] >= 0))
    if not len(across):
        return far
    length = far[rows[across]] + core.lengths[across] + far[columns[across]]
    pair = base[rows[across]].astype(np.int64) * core.n + base[columns[across]]
    order = np.lexsort((length, pair))
    first = order[np.append(True, np.diff(pair[order]) != 0)]
    ends = base[rows[across[first]]], base[columns[across[first]]]
    joined = minimum_spanning_tree(sp.csr_array((length[first].astype(float), ends), shape=(core.n,) * 2))
    return np.maximum(far, int(joined.data.max(initial=0)))


def _width(asked: Prized, entries: np.ndarray) -> int:
    """R: no second edge to an entry spares as much.

    Two parts of a tree that lie in one component are joined by a path, of at most twice the farthest distance
    from one node, or one of them is left out for its prizes; of two that lie in different ones one is left.
    """
    part = asked.core.parts(asked.compiled)
    told = sorted_set(part[entries])
    prizes = np.bincount(part, weights=asked.prizes, minlength=int(part.max()) + 1).astype(np.int64)[told]
    first = entries[np.unique(part[entries], return_index=True)[1]]
    far = distances(asked.core, first)
    far[asked.prizes == 0] = 0
    widest = [2 * int(far[part == each].max(initial=0)) for each in told.tolist()]
    within = [min(path, prize) for path, prize in zip(widest, prizes.tolist())]
    second = int(np.sort(prizes)[-2]) if len(prizes) > 1 else 0
    return max(*within, second, 1)


def _assembled(
    n: int, u: np.ndarray, v: np.ndarray, length: np.ndarray, terminals: np.ndarray
) -> SteinerCore:
    """The graph of edges u[i]-v[i] [m], each pair once."""
    rows, columns = np.concatenate([u, v]), np.concatenate([v, u])
    order = np.lexsort((columns, rows))
    indptr = starts(rows, n)
    lengths = np.concatenate([length, length])[order]
    return SteinerCore(indptr, columns[order].astype(np.int32), lengths, terminals)


# ---- the best part of a tree -------------------------------------------------------------------------------


def best_part(asked: Prized, parent: np.ndarray) -> tuple[np.ndarray, int]:
    """The best tree within a tree, by its parents [n], as parents [n], and what it costs.

    parent   of a tree that holds all terminals, the first of them its root where there are some
    """
    found, gain = best_within(asked.core, asked.prizes, parent, asked.compiled)
    return found, int(asked.prizes.sum()) - gain
