"""What proves lower bounds of linear arrangements, again in whole numbers.

A part are some nodes, and the graph on them: in an order of all, they have an order of their own in which no
edge is longer, and no cut, front or first neighbour further, so none of the five is larger there. Of parts
that have no node in common, lengths and profiles add up; of the others the largest counts. What a part's
value is at least, by methods:

degrees      A set of k nodes cuts off at least the sum, over its nodes, of the weight of their edges but the
             k - 1 heaviest: so the k smallest of these sums do, and those of the n - k on the other side.
             Every gap of a connected part has at least the lightest edge. Lengths are sums of cuts; or half
             of the sum over nodes of their edges on the nearest places, two each at 1, 2, ..., the heaviest
             first. Cutwidths are at least half of what a node's edges weigh, bandwidths half its degree.
             A node of k or more neighbours is in the front of any k nodes it is one of: these have a front of
             at least k less the nodes of fewer neighbours. A profile is at least the number of edges, too,
             as the neighbours before a node have places between it and the first of them.
eigenvalue   x'Lx >= l |x|^2 for all x whose entries add up to 0, L the Laplacian: cut(S) >= l k (n - k)/n.
             `numbers` are l in multiples of 2^-places, and places; L - l + s 11' is proved positive
             semidefinite for some s > 0 (Juvan and Mohar 1992; app/bounds/partition/rank_one.py).
ball         All nodes at most r edges from one are within r bandwidths on either side of it, on fewer than
             2 r b + 2 places (Chvatal 1970, Chinn et al. 1982). `numbers` are r.
first node   Some node comes first: all at most r edges from it are on the r b places behind it. So the
             least, over nodes, of the largest of these is a bound (Caprara and Salazar-Gonzalez 2005).
minor        The separation is the pathwidth, at least the treewidth (app/bounds/treewidth/minors.py).
cycles       The profile is at least edges and fill-in (app/bounds/treewidth/cycles.py): an interval graph is
             chordal.
all orders   A program over all subsets, or of bandwidths a search of all orders, is made again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import dijkstra

from app.bounds.arrangement.exact import MOST_EXACT, MOST_FIT, fitting, least
from app.bounds.certificate import BadCertificate
from app.bounds.partition.rank_one import elimination, semidefinite
from app.bounds.treewidth.cycles import CycleProof
from app.bounds.treewidth.minors import MinorProof
from app.graphs.arrangement import (
    BANDWIDTH,
    CUTWIDTH,
    LENGTH,
    PROFILE,
    SEPARATION,
    SUMS,
    Arrangement,
)
from app.graphs.contracted import WeightedRows
from app.graphs.keys import sorted_set

DEGREES, EIGENVALUE, BALL, FIRST, MINOR, CYCLES, ALL = (
    "degrees", "eigenvalue", "ball", "first node", "minor", "cycles", "all orders",
)  # fmt: skip
OF = {
    LENGTH: (DEGREES, EIGENVALUE, ALL), CUTWIDTH: (DEGREES, EIGENVALUE, ALL),
    BANDWIDTH: (DEGREES, BALL, FIRST, ALL), SEPARATION: (DEGREES, MINOR, ALL),
    PROFILE: (DEGREES, CYCLES, ALL),
}  # fmt: skip
MOST_FIRST = 4000  # nodes of a part of which each may come first
MOST_BEGINNINGS = 20_000  # of orders that are looked at again
MOST_PLACES = 40


@dataclass(frozen=True, eq=False)
class ArrangementPart:
    """A bound of one part.

    nodes     [k] int64     method   as above     lower   in units, at least
    numbers, more   int64, what the method needs; of minors `numbers` is which node of the minor each of
                    `nodes` is part of, of cycles they are where each begins in `more`, and its nodes by
                    their places in `nodes`
    """

    nodes: np.ndarray
    method: str
    lower: int
    numbers: np.ndarray
    more: np.ndarray

    def moved(self, nodes: np.ndarray) -> "ArrangementPart":
        """The same of a graph in which the nodes have other numbers [n]."""
        return replace(self, nodes=nodes[self.nodes])

    def check(self, asked: Arrangement) -> None:
        """Raises BadCertificate where the part is worth less, as far as can be seen."""
        nodes = self.nodes
        if not len(nodes) or not 0 <= nodes.min() <= nodes.max() < asked.n:
            raise BadCertificate("arrangement: a part has no node of the graph, or one that is not in it")
        if len(sorted_set(nodes)) < len(nodes):
            raise BadCertificate("arrangement: a part has a node twice")
        if self.method not in OF[asked.kind]:
            raise BadCertificate(f"arrangement: {self.method!r} proves nothing of the {asked.kind}")
        if self.method == BALL:
            proved = in_ball(asked, int(nodes[0]), self._one())
        else:
            proved = self._proved(asked.induced(nodes))
        if self.lower > proved:
            raise BadCertificate(f"arrangement: {self.method} prove {proved}, not {self.lower}")

    def _one(self) -> int:
        if self.numbers.shape != (1,) or len(self.more):
            raise BadCertificate(f"arrangement: {self.method} takes one number")
        return int(self.numbers[0])

    def _proved(self, part: Arrangement) -> int:
        if self.method == DEGREES:
            return by_degrees(part)
        if self.method == EIGENVALUE:
            return self._by_eigenvalue(part)
        if self.method == FIRST:
            return by_first(part)
        if self.method == MINOR:
            return max(MinorProof(self.numbers, False).lower(part.pattern("part")) - 1, 0)
        if self.method == CYCLES:
            edges = len(part.indices) // 2
            return edges + CycleProof(self.numbers, self.more, False).lower(part.pattern("part"))
        return self._by_all(part)

    def _by_eigenvalue(self, part: Arrangement) -> int:
        if self.numbers.shape != (2,):
            raise BadCertificate("arrangement: an eigenvalue is two numbers")
        value, places = self.numbers.tolist()
        if not 0 <= places <= MOST_PLACES or value <= 0 or not proved_eigenvalue(part, value, places):
            raise BadCertificate("arrangement: a matrix is not proved positive semidefinite")
        return by_gaps(part, value, places)

    def _by_all(self, part: Arrangement) -> int:
        if part.kind != BANDWIDTH:
            if part.n > MOST_EXACT:
                raise BadCertificate("arrangement: too many nodes to look at all orders")
            return least(part, compiled=False)[0]
        width = self.lower - 1
        if part.n > MOST_FIT or part.parts().max(initial=0) or width < 1:
            raise BadCertificate("arrangement: too many nodes to look at all orders, or not connected")
        order, known, _ = fitting(part, width, MOST_BEGINNINGS, compiled=False)
        return self.lower if known and order is None else 0


@dataclass(frozen=True, eq=False)
class ArrangementProof:
    """Parts that prove a bound together.

    checked   False where a search that leaves no witness has found a better bound
    """

    parts: Sequence[ArrangementPart]
    checked: bool

    def proved(self, asked: Arrangement) -> int:
        """The bound, in units. Raises BadCertificate."""
        for part in self.parts:
            part.check(asked)
        lowers = [part.lower for part in self.parts]
        if asked.kind not in SUMS:
            return max(lowers, default=0)
        nodes = np.concatenate([part.nodes for part in self.parts] or [np.zeros(0, dtype=np.int64)])
        if len(sorted_set(nodes)) < len(nodes):
            raise BadCertificate("arrangement: two parts have a node in common")
        return sum(max(each, 0) for each in lowers)


# ---- what is proved ----------------------------------------------------------------------------------------


def by_degrees(part: Arrangement) -> int:
    """By the edges of nodes alone."""
    n, degree = part.n, np.diff(part.indptr)
    if not len(part.indices):
        return 0
    if part.kind == BANDWIDTH:
        return int(degree.max() + 1) // 2
    if part.kind in (SEPARATION, PROFILE):
        fewer = np.cumsum(np.bincount(degree, minlength=n))[: n - 1]  # [k-1]: of fewer than k neighbours
        fronts = np.maximum(np.arange(1, n) - fewer, int(not part.parts().max(initial=0)))
        if part.kind == SEPARATION:
            return int(max(fronts.max(initial=0), 1))
        return max(int(fronts.sum()), len(part.indices) // 2)
    gaps = _cuts(part)
    if part.kind == CUTWIDTH:
        whole = int(np.bincount(part.row_of(), part.weights.astype(np.float64)).max())  # exact: below 2^53
        return max(int(gaps.max(initial=0)), -(-whole // 2))
    return max(int(gaps.sum()), -(-_nearest(part) // 2))


def _ranks(part: Arrangement) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, weights and ranks [nnz] of entries, the heaviest of each row first."""
    rows = part.row_of()
    rank = np.arange(len(rows)) - np.repeat(part.indptr[:-1], np.diff(part.indptr))
    if (part.weights == part.weights[:1]).all():
        return rows, part.weights, rank
    return rows, part.weights[np.lexsort((-part.weights, rows))], rank


def _nearest(part: Arrangement) -> int:
    """Twice a length, where each node has its own edges on the nearest places."""
    _, weights, rank = _ranks(part)
    return int((weights * (rank // 2 + 1)).sum())


def _cuts(part: Arrangement) -> np.ndarray:
    """[n-1] int64, what k nodes cut off at least, k = 1, ..., n - 1."""
    n = part.n
    rows, weights, rank = _ranks(part)
    lightest = int(weights.min()) if not part.parts().max(initial=0) else 0
    found = np.full(n - 1, lightest, dtype=np.int64)
    left = np.bincount(rows, weights.astype(np.float64), n).astype(np.int64)  # exact: below 2^53
    for k in range(1, n // 2 + 1):
        # `left` is what edges weigh but the k - 1 heaviest.
        if 2 * np.count_nonzero(left) < n:
            break
        own = int(np.partition(left, k - 1)[:k].sum())
        found[k - 1] = max(found[k - 1], own)
        found[n - k - 1] = max(found[n - k - 1], own)
        gone = rank == k - 1
        left[rows[gone]] -= weights[gone]
    return found


def by_gaps(part: Arrangement, value: int, places: int) -> int:
    """By an eigenvalue in multiples of 2^-places, and degrees."""
    n = part.n
    scale = n << places
    gaps = [max(own, -(-value * k * (n - k) // scale)) for k, own in enumerate(_cuts(part).tolist(), 1)]
    return sum(gaps) if part.kind == LENGTH else max(gaps, default=0)


def proved_eigenvalue(part: Arrangement, value: int, places: int) -> bool:
    """Whether the second eigenvalue of the Laplacian is proved to be so large."""
    one = np.ones(part.n, dtype=np.int64)
    rows = WeightedRows(part.indptr, part.indices, part.weights, one)
    degree = np.bincount(part.row_of(), part.weights.astype(np.float64), part.n)
    if part.n < 2 or degree.max() * 2.0**places >= 2.0**52 or value >= 1 << 52:
        return False
    whole = degree.astype(np.int64) << places
    way = elimination(rows)
    return semidefinite(rows, part.weights << places, whole - value, one, 4 * value // part.n + 1, way)


def in_ball(asked: Arrangement, node: int, radius: int) -> int:
    """By the nodes at most so many edges from one."""
    if not 1 <= radius <= asked.n:
        raise BadCertificate("arrangement: a ball has a radius from 1 on")
    far = dijkstra(asked.matrix(), directed=False, indices=node, unweighted=True, limit=radius)
    return -(-(int(np.isfinite(far).sum()) - 1) // (2 * radius))


def by_first(part: Arrangement) -> int:
    """By the node that comes first, whichever it is."""
    n = part.n
    if n > MOST_FIRST:
        raise BadCertificate("arrangement: too many nodes, each of which may come first")
    if part.parts().max(initial=0):
        raise BadCertificate("arrangement: nodes that are not connected")
    best = n
    matrix = part.matrix()
    for some in np.array_split(np.arange(n), max(n * n >> 20, 1)):
        far = dijkstra(matrix, directed=False, indices=some, unweighted=True).astype(np.int64)
        for each in far:
            count = np.cumsum(np.bincount(each))[1:] - 1
            need = -(-count // np.arange(1, len(count) + 1))
            best = min(best, int(need.max(initial=0)))
    return best


def part_of(
    nodes: np.ndarray, method: str, lower: int, numbers: object = (), more: object = ()
) -> ArrangementPart:  # fmt: skip
    """A part with its arrays as files have them."""
    arrays = (np.array(each, dtype=np.int64).reshape(-1) for each in (numbers, more))
    return ArrangementPart(np.asarray(nodes, dtype=np.int64), method, int(lower), *arrays)
