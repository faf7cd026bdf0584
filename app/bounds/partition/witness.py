"""What proves that every balanced partition of a whole graph cuts at least so much, in whole numbers.

Let some nodes weigh W together, c_u each. In blocks of at most `most` the squares of what blocks hold of them
add up to at most M = q most^2 + r^2, with W = q most + r: the more uneven, the more, and none can hold more
than most.

Diagonal     Let L be the Laplacian of the edges between these nodes, and S = L - Diag(y) + sigma cc' positive
             semidefinite. With X the sum of zz' over the indicators z of blocks, X_uu = 1 and c'Xc <= M; with
             at most k blocks X - J/k is semidefinite, J all ones. Twice the cut is <L, X>, at least sum(y) -
             sigma M + <S, X>, and <S, X> >= <S, J>/k = (sigma W^2 - sum(y))/k.
             (Donath and Hoffman 1973; Boppana 1987; rank_one.py proves S semidefinite.)
Trees        Let T be a tree of edges from a node u to all of a set of nodes of weight c(T). All of them but
             at most `most` are in other blocks than u, and on the way to each an edge is cut. So edges e
             are cut of which t_e add up to c(T) - most or more, t_e what hangs on e: the sum of g times
             that over trees is cut, where at no edge the sum of g t_e is more than its weight.
             (Even, Naor, Rao and Schieber 1999, spreading metrics: this is their dual.)
Pairs        With x_uv = 1 where u and v are in one block, the cut is all weight less the sum of w_uv x_uv
             over pairs. With at most k blocks x - 1/k is positive semidefinite; so for S positive
             semidefinite, a >= 0 and multipliers g >= 0 of triangles the sum of w_uv x_uv over ordered pairs
             is at most the sum of max(0, w_uv + S_uv - a c_u c_v - what g adds to x_uv), plus
             trace(S) - sum(S)/k + a (M - sum of c_u^2) + twice the sum of g (less that of g where 1 is a
             least sum). (Karisch and Rendl 1998; triangles: Grötschel and Wakabayashi 1990.)
Connected    Nodes that edges connect, of weight W, are in at least W/most blocks, and one edge less is cut.

Source   as named; what is proved of disjoint sets of nodes adds up
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.factor import ROOM
from app.bounds.pairs.program import KINDS, MOST, taken_off
from app.bounds.pairs.whole import FULL, MOST_PLACES, check_semidefinite
from app.bounds.partition.part import Part, part_of
from app.bounds.partition.rank_one import Elimination, elimination, semidefinite
from app.bounds.partition.spread import Trees
from app.graphs import joined
from app.graphs.balance import Balance
from app.graphs.contracted import WeightedRows
from app.graphs.keys import sorted_set
from app.graphs.lists import starts


@dataclass(frozen=True, eq=False)
class PartBound(ABC):
    """Every partition cuts at least `lower` between some nodes.

    nodes    [k] int64, different ones
    """

    lower: int
    nodes: np.ndarray

    def check(self, balance: Balance) -> None:
        """Prove it. Raises BadCertificate."""
        nodes, k = self.nodes, len(self.nodes)
        if k and not 0 <= nodes.min() <= nodes.max() < balance.rows.n:
            raise BadCertificate("partition: a node of a part is not in the graph")
        if len(sorted_set(nodes)) < k:
            raise BadCertificate("partition: a part names a node twice")
        proved = self.proved(part_of(balance, nodes))
        if proved < self.lower:
            raise BadCertificate(f"partition: the witness proves {proved}, not {self.lower}")

    @abstractmethod
    def proved(self, part: Part) -> int:
        """What is proved of these nodes. Raises BadCertificate."""


@dataclass(frozen=True, eq=False)
class DiagonalBound(PartBound):
    """By a diagonal y [k] int64 and sigma > 0, in multiples of 2^-places."""

    places: int
    y: np.ndarray
    sigma: int

    def proved(self, part: Part) -> int:
        """By S."""
        if not 0 <= self.places <= MOST_PLACES or self.y.shape != self.nodes.shape:
            raise BadCertificate("partition: not a diagonal")
        if self.lower > 0 and not self.semidefinite(part, elimination(part.rows)):
            raise BadCertificate("partition: a matrix is not proved positive semidefinite")
        return self.value(part) if self.lower > 0 else 0

    def value(self, part: Part) -> int:
        """What S proves if it is semidefinite."""
        total, all_y = part.total, sum(self.y.tolist())
        shared = Fraction(self.sigma * total**2 - all_y, part.parts)
        twice = all_y - self.sigma * part.squares + shared
        return max(math.ceil(twice / (2 << self.places)), 0)

    def semidefinite(self, part: Part, way: Elimination) -> bool:
        """True only where S is proved to be."""
        degrees, one = part.degrees(), 1 << self.places
        sizes = int(degrees.max(initial=0)) * one, max(map(abs, self.y.tolist()), default=0)
        if max(sizes) >= FULL:
            return False
        diagonal = degrees * one - self.y
        return semidefinite(part.rows, part.rows.weights * one, diagonal, part.sizes, self.sigma, way)


@dataclass(frozen=True, eq=False)
class TreeBound(PartBound):
    """By trees of shortest paths, which are grown again for the proof; nothing is believed of them.

    level        [t, edges] uint8, of the lengths of edges (spread.py)
    roots, g     [t, b] int64, of trees with these lengths, and how often each counts; 0: there is none
    """

    level: np.ndarray
    roots: np.ndarray
    g: np.ndarray

    def proved(self, part: Part) -> int:
        """By all trees."""
        trees, n = Trees(part), part.rows.n
        edges = len(trees.edge) // 2
        batches = len(self.level)
        shapes = self.level.shape == (batches, edges) and self.roots.shape == self.g.shape
        if not shapes or len(self.roots) != batches or not trees.fits:
            raise BadCertificate("partition: not trees of a part's edges")
        if ((self.roots < 0) | (self.roots >= max(n, 1)) | (self.g < 0)).any():
            raise BadCertificate("partition: not roots of trees")
        if sum(self.g.reshape(-1).tolist()) * max(part.total, 1) >= FULL:
            raise BadCertificate("partition: trees count too often")
        load, value = np.zeros(edges, dtype=np.int64), 0
        for level, roots, g in zip(self.level, self.roots.tolist(), self.g.tolist()):
            trees.measure(level)
            for root, much in zip(roots, g):
                if much:
                    value += much * loaded(part, trees, root, much, load)
        return packed(value, load, edge_weights(part, trees.edge))


def loaded(part: Part, trees: Trees, root: int, much: int, load: np.ndarray) -> int:
    """c(T) - most of a tree, for what hangs on its edges `load` [edges] grows. Raises BadCertificate where it
    is not one: this trusts no tree that is grown.
    """
    count, rows = trees.grow(root), part.rows
    if not count:
        return 0
    nodes, parent, entry = trees.order[:count], trees.parent[:count], trees.entry[1:count]
    inside = nodes[0] == root and ((nodes >= 0) & (nodes < rows.n)).all()
    if not inside or ((parent[1:] < 0) | (parent[1:] >= np.arange(1, count))).any():
        raise BadCertificate("partition: not a tree")
    met = np.zeros(rows.n, dtype=bool)
    met[nodes] = True
    if np.count_nonzero(met) < count:
        raise BadCertificate("partition: a tree has a node twice")
    above = nodes[parent[1:]]
    right = (entry >= rows.indptr[above]) & (entry < rows.indptr[above + 1])
    if not right.all() or (rows.indices[entry] != nodes[1:]).any():
        raise BadCertificate("partition: a tree has an edge that is not in the graph")
    hangs = hanging(part, trees, count)
    load[trees.edge[entry]] += much * hangs[1:]  # every edge once
    return max(int(hangs[0]) - part.most, 0)


def hanging(part: Part, trees: Trees, count: int) -> np.ndarray:
    """[count] int64, the weight of all that hangs on each node of a tree, itself too. Raises BadCertificate.

    Parents come first, so there is one answer that adds up.
    """
    trees.load(count, 0, np.zeros(len(trees.edge) // 2, dtype=np.int64))
    found, sums = trees.below[:count], part.sizes[trees.order[:count]]
    np.add.at(sums, trees.parent[1:count], found[1:])
    if (sums != found).any():
        raise BadCertificate("partition: the weights of a tree do not add up")
    return found


def edge_weights(part: Part, edge: np.ndarray) -> np.ndarray:
    """[edges] int64; edge [nnz], which one an entry is of."""
    found = np.zeros(len(edge) // 2, dtype=np.int64)
    found[edge] = part.rows.weights
    return found


def packed(value: int, load: np.ndarray, weights: np.ndarray) -> int:
    """What a value is worth, rounded up, once no load [edges] is more than its weight [edges], exact."""
    used = np.flatnonzero(load)
    if not len(used):
        return 0
    share = weights[used] / load[used]
    least = used[share <= share.min() * (1 + 1e-9)]
    exact = min(Fraction(w, x) for w, x in zip(weights[least].tolist(), load[least].tolist()))
    return math.ceil(value * exact)


@dataclass(frozen=True, eq=False)
class PairBound(PartBound):
    """By pairs, in multiples of 2^-places.

    matrix   [k, k] int64, S; [0, 0]: there is none      over   a
    triangles   [m, 4] int64: i < j < l, places in `nodes`, and which of KINDS; g [m] int64
    """

    places: int
    matrix: np.ndarray
    over: int
    triangles: np.ndarray
    g: np.ndarray

    def proved(self, part: Part) -> int:
        """By the program over pairs."""
        if not 0 <= self.places <= MOST_PLACES or 4 * part.edges << self.places > FULL:
            raise BadCertificate(f"partition: values in multiples of 2^-{self.places}")
        k, sizes = part.rows.n, part.sizes
        if k * k > ROOM or self.over < 0 or self.over * part.total**2 > FULL:
            raise BadCertificate("partition: a part or a multiplier is too large")
        rest = np.zeros((k, k), dtype=np.int64)
        rest[part.rows.row_of(), part.rows.indices] = part.rows.weights << self.places
        rest -= self.over * np.outer(sizes, sizes)
        twice = self.over * (part.squares - int((sizes * sizes).sum())) + self._of_triangles(rest, part.parts)
        if self.matrix.size:
            check_semidefinite(self.matrix, k, "partition")
            rest += self.matrix
            twice += int(np.trace(self.matrix)) - Fraction(int(self.matrix.sum()), part.parts)
        np.fill_diagonal(rest, 0)
        twice += int(np.maximum(rest, 0).sum())
        return max(math.ceil((Fraction(2 * part.edges << self.places) - twice) / (2 << self.places)), 0)

    def _of_triangles(self, rest: np.ndarray, parts: int) -> int:
        """What they add; what they take is taken off `rest` [k, k]."""
        table, g, k = self.triangles, self.g, len(rest)
        if table.shape != (len(g), 4):
            raise BadCertificate("partition: not triangles of a part's nodes")
        i, j, last, kind = table.T
        kinds = len(KINDS) if parts <= 2 else len(KINDS) - 1
        if ((i < 0) | (i >= j) | (j >= last) | (last >= k) | (kind < 0) | (kind >= kinds)).any():
            raise BadCertificate("partition: not triangles of a part's nodes")
        if (g < 0).any() or (g > FULL).any() or 6 * sum(g.tolist()) > FULL:
            raise BadCertificate("partition: multipliers are negative, or too large")
        rest -= taken_off(k, table[:, :3], kind, g)
        return 2 * sum((g * np.array(MOST, dtype=np.int64)[kind]).tolist())


@dataclass(frozen=True, eq=False)
class PartitionProof:
    """Of all partitions of a graph.

    parts     no node is in two of them; of the other nodes what edges connect is looked at
    checked   whether that is all that the bound rests on
    """

    parts: tuple[PairBound | DiagonalBound | TreeBound, ...]
    checked: bool

    def proved(self, balance: Balance, compiled: bool = True) -> int:
        """No partition cuts less. Raises BadCertificate."""
        nodes = np.concatenate([np.zeros(0, dtype=np.int64), *(part.nodes for part in self.parts)])
        for part in self.parts:
            part.check(balance)
        if len(sorted_set(nodes)) < len(nodes):
            raise BadCertificate("partition: a node is in two parts")
        others = np.ones(balance.rows.n, dtype=bool)
        others[nodes] = False
        connected = of_trees(balance, np.flatnonzero(others), compiled=compiled)
        return sum(part.lower for part in self.parts) + sum(connected.tolist())


def of_trees(
    balance: Balance, nodes: np.ndarray, label: np.ndarray | None = None, compiled: bool = True
) -> np.ndarray:
    """[components] int64, what is cut at least of what edges between nodes [k] connect.

    label   [k], the components; None: they are found
    """
    rows = balance.rows
    if len(nodes) < rows.n:
        rows = rows.induced(nodes, np.full(rows.n, -1, dtype=np.int32))
    label = components(rows, compiled) if label is None else label
    most = int(balance.limits.max(initial=0))
    weight = np.zeros(int(label.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(weight, label, rows.size)
    needed = np.maximum(-(-weight // max(most, 1)) - 1, 0)
    row = rows.row_of()
    once = row < rows.indices
    where, inside = label[row[once]], rows.weights[once]
    found = np.zeros(len(weight), dtype=np.int64)
    large = np.flatnonzero(needed)
    if len(large) == 1:
        inside, count = inside[where == large[0]], int(needed[large[0]])
        found[large] = np.partition(inside, count - 1)[:count].sum() if count < len(inside) else inside.sum()
        return found
    order = np.lexsort((inside, where))  # the lightest edges of each component first
    where, inside = where[order], inside[order]
    begin = starts(where, len(weight))
    counted = np.arange(len(where)) - begin[where] < needed[where]
    np.add.at(found, where[counted], inside[counted])
    return found


def components(rows: WeightedRows, compiled: bool = True) -> np.ndarray:
    """[n] int64, which nodes edges connect, numbered by their lowest nodes."""
    return joined.components(rows.indptr, rows.indices, compiled=compiled)
