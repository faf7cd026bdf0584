"""What proves that every balanced partition of a whole graph cuts at least so much, in whole numbers.

Let some nodes weigh W together, c_u each. In blocks of at most `most` the squares of what blocks hold of them
add up to at most M = q most^2 + r^2, with W = q most + r: the more uneven, the more, and none can hold more
than most.

Eigenvalue   Let L be the Laplacian of the edges between these nodes, and x'Lx > t x'Cx, C = Diag(c), wherever
             c'x = 0. With S = L - tC + (t/W) cc', S1 = 0, so S is positive semidefinite, and with the
             indicator z of a block z'Lz >= t c'z - (t/W) (c'z)^2. Twice the cut is the sum of z'Lz over
             blocks: at least t(W - M/W). It is enough that  x'(L - tC)x + tau * sum over i of (y_i - y_(i-1)
             - c_i x_i)^2 + sigma * y_n^2  is positive definite in x and y: y may be the sums of c_i x_i, the
             last one of which is 0. In the order of a narrow band that is a matrix of a narrow band.
             (Donath and Hoffman 1973; Fiedler 1973; the last step is ours.)
Pairs        With x_uv = 1 where u and v are in one block, the cut is all weight less the sum of w_uv x_uv
             over pairs. With at most k blocks x - 1/k is positive semidefinite; so for S positive
             semidefinite, a >= 0 and multipliers g >= 0 of triangles the sum of w_uv x_uv over ordered pairs
             is at most the sum of max(0, w_uv + S_uv - a c_u c_v - what g adds to x_uv), plus
             trace(S) - sum(S)/k + a (M - sum of c_u^2) + twice the sum of g (less that of g where 1 is a
             least sum). (Karisch and Rendl 1998; triangles: Grötschel and Wakabayashi 1990.)
Trees        Nodes that edges connect, of weight W, are in at least W/most blocks, and one edge less is cut.

Source   as named; what is proved of disjoint sets of nodes adds up
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.certificate import BadCertificate
from app.bounds.factor import ROOM, banded_factor, banded_share
from app.bounds.pairs.program import KINDS, MOST, taken_off
from app.bounds.pairs.whole import FULL, LARGEST, MOST_PLACES, check_semidefinite
from app.graphs.balance import Balance
from app.graphs.contracted import WeightedRows

SIZES = (
    1 << 20
)  # of what nodes weigh together: larger weights are rounded down, and so is what a block may weigh


@dataclass(frozen=True, eq=False)
class Part:
    """The question for some nodes.

    rows    of these alone     sizes   [k] int64, their weights, rounded down to multiples
    most    of such units in a block; parts: blocks
    """

    rows: WeightedRows
    sizes: np.ndarray
    most: int
    parts: int

    @property
    def total(self) -> int:
        """What the nodes weigh."""
        return int(self.sizes.sum())

    @property
    def squares(self) -> int:
        """The largest sum of squares of what blocks hold."""
        full, rest = divmod(self.total, max(self.most, 1))
        return full * self.most**2 + rest**2

    @property
    def edges(self) -> int:
        """The weight of all edges."""
        return int(self.rows.weights.sum()) // 2


def part_of(balance: Balance, nodes: np.ndarray) -> Part:
    """The question for nodes [k]."""
    rows = balance.rows.induced(nodes, np.full(balance.rows.n, -1, dtype=np.int32))
    shift = max(int(rows.size.sum()).bit_length() - SIZES.bit_length(), 0)
    return Part(rows, rows.size >> shift, int(balance.limits.max(initial=0)) >> shift, balance.parts)


@dataclass(frozen=True, eq=False)
class PartitionBound:
    """Every partition cuts at least `lower` between some nodes.

    nodes    [k] int64, different ones, in the order of a narrow band where there is an eigenvalue
    least    t, in multiples of 2^-places; 0: pairs prove it
    matrix   [k, k] int64, S in the same multiples; [0, 0]: there is none      over   a, likewise
    triangles   [m, 4] int64: i < j < l, places in `nodes`, and which of KINDS; g [m] int64, likewise
    """

    lower: int
    nodes: np.ndarray
    places: int
    least: int
    matrix: np.ndarray
    over: int
    triangles: np.ndarray
    g: np.ndarray

    def check(self, balance: Balance) -> None:
        """Prove it. Raises BadCertificate."""
        nodes, k = self.nodes, len(self.nodes)
        if k and not 0 <= nodes.min() <= nodes.max() < balance.rows.n:
            raise BadCertificate("partition: a node of a part is not in the graph")
        if len(np.unique(nodes)) < k:
            raise BadCertificate("partition: a part names a node twice")
        proved = self.proved(part_of(balance, nodes))
        if proved < self.lower:
            raise BadCertificate(f"partition: the witness proves {proved}, not {self.lower}")

    def proved(self, part: Part) -> int:
        """What is proved of these nodes. Raises BadCertificate."""
        if not 0 <= self.places <= MOST_PLACES or 4 * part.edges << self.places > FULL:
            raise BadCertificate(f"partition: values in multiples of 2^-{self.places}")
        return self._by_eigenvalue(part) if self.least else self._by_pairs(part)

    # ---- the eigenvalue ------------------------------------------------------------------------------------

    def _by_eigenvalue(self, part: Part) -> int:
        least, total = self.least, part.total
        if least < 0 or not total or part.squares >= total**2:
            return 0
        if not above(part, least, self.places):
            raise BadCertificate("partition: an eigenvalue is not proved")
        return max(math.ceil(Fraction(least * (total**2 - part.squares), total << self.places + 1)), 0)

    # ---- pairs ---------------------------------------------------------------------------------------------

    def _by_pairs(self, part: Part) -> int:
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


def above(part: Part, least: int, places: int) -> bool:
    """True only where x'Lx >= least * 2^-places * x'Cx is proved wherever c'x = 0: see above."""
    matrix = lifted(part, least, places)
    if matrix is None:
        return False
    less = matrix.astype(np.float64)
    less[0] *= 1 - banded_share(len(matrix) - 1)
    return bool((matrix[0] > 0).all()) and banded_factor(less)


def band_of(part: Part) -> int:
    """How far from the diagonal the matrix of `above` has entries."""
    rows = part.rows
    return 2 * int(np.abs(rows.row_of() - rows.indices).max(initial=0)) + 3


def lifted(part: Part, least: int, places: int) -> np.ndarray | None:
    """[band + 1, 2k] int64: the matrix in x_1, y_1, x_2, y_2, ... by its diagonals; None: it is too large,
    or nodes weigh nothing.

    With s = least/total, rounded up, sigma is 3s and tau 3sk: more than 2s and 2sk would do. Numbers are
    in units of 2^-places.
    """
    rows, c, k = part.rows, part.sizes, part.rows.n
    if not part.total:  # weights of so many nodes may all be rounded down to nothing
        return None
    band = band_of(part)
    sigma = 3 * -(-least // part.total)
    tau = sigma * k
    heaviest = int(c.max(initial=0))
    degrees = np.zeros(k, dtype=np.int64)
    np.add.at(degrees, rows.row_of(), rows.weights << places)
    most = int(degrees.max(initial=0)) + least * heaviest + 2 * tau * max(heaviest, 1) ** 2 + sigma
    if (band + 1) * 2 * k > ROOM or most >= LARGEST:
        return None
    found = np.zeros((band + 1, 2 * k), dtype=np.int64)
    row, lower = rows.row_of(), rows.indices.astype(np.int64)
    below = row > lower
    found[2 * (row - lower)[below], 2 * lower[below]] = -(rows.weights[below] << places)
    x, y = np.arange(k) * 2, np.arange(k) * 2 + 1
    found[0, x] = degrees - least * c + tau * c * c
    found[0, y] = tau * np.append(np.full(k - 1, 2), 1)
    found[0, y[-1]] += sigma
    found[1, x] = -tau * c  # y_i with x_i
    found[1, y[:-1]] = tau * c[1:]  # x_(i+1) with y_i
    found[2, y[:-1]] = -tau  # y_(i+1) with y_i
    return found


@dataclass(frozen=True, eq=False)
class PartitionProof:
    """Of all partitions of a graph.

    parts     no node is in two of them; of the other nodes what edges connect is looked at
    checked   whether that is all that the bound rests on
    """

    parts: tuple[PartitionBound, ...]
    checked: bool

    def proved(self, balance: Balance) -> int:
        """No partition cuts less. Raises BadCertificate."""
        nodes = np.concatenate([np.zeros(0, dtype=np.int64), *(part.nodes for part in self.parts)])
        for part in self.parts:
            part.check(balance)
        if len(np.unique(nodes)) < len(nodes):
            raise BadCertificate("partition: a node is in two parts")
        others = np.setdiff1d(np.arange(balance.rows.n), nodes)
        return sum(part.lower for part in self.parts) + sum(of_trees(balance, others).tolist())


def of_trees(balance: Balance, nodes: np.ndarray, label: np.ndarray | None = None) -> np.ndarray:
    """[components] int64, what is cut at least of what edges between nodes [k] connect.

    label   [k], the components; None: they are found
    """
    rows = balance.rows.induced(nodes, np.full(balance.rows.n, -1, dtype=np.int32))
    label = components(rows) if label is None else label
    most = int(balance.limits.max(initial=0))
    weight = np.zeros(int(label.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(weight, label, rows.size)
    needed = np.maximum(-(-weight // max(most, 1)) - 1, 0)
    row = rows.row_of()
    once = row < rows.indices
    where, inside = label[row[once]], rows.weights[once]
    order = np.lexsort((inside, where))  # the lightest edges of each component first
    where, inside = where[order], inside[order]
    begin = np.append(0, np.cumsum(np.bincount(where, minlength=len(weight))))
    counted = np.arange(len(where)) - begin[where] < needed[where]
    found = np.zeros(len(weight), dtype=np.int64)
    np.add.at(found, where[counted], inside[counted])
    return found


def components(rows: WeightedRows) -> np.ndarray:
    """[n] int32, which nodes edges connect."""
    ones = np.ones(len(rows.indices), dtype=np.int8)
    matrix = sp.csr_array((ones, rows.indices, rows.indptr), shape=(rows.n, rows.n))
    return connected_components(matrix, directed=False)[1]
