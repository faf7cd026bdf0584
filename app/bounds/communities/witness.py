"""What proves a bound on the value of communities of a whole graph, in whole numbers.

With x_uv = 1 where u and v are in one community, and what the pair is worth, c_uv, the value is the sum of
c_uv x_uv. For any node s and any set T of others,

    sum over t in T of x_st - sum over pairs {t, t'} of T of x_tt' <= 1                        (a star)

as a of T are together with s, and so with each other, and a - a(a - 1)/2 <= 1. For any positive semidefinite
matrix S, sum over ordered pairs of S_uv x_uv >= -trace(S), u and v different, as x with ones on its diagonal
is the sum of z z' over the indicators z of communities. With multipliers g >= 0 of stars, then, value is at
most

    sum of g + trace(S)/2 + sum over pairs of max(0, c_uv + S_uv - what g adds to x_uv).

Source   Grötschel and Wakabayashi, A cutting plane algorithm for a clustering problem, Mathematical
Programming
         1989 (triangles, 2-partition inequalities); Brandes et al., On modularity clustering, IEEE TKDE 2008;
         semidefinite relaxation: Swamy 2004 (correlation clustering)
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.certificate import BadCertificate
from app.bounds.factor import ROOM
from app.bounds.pairs.whole import FULL, MOST_PLACES, check_semidefinite
from app.graphs.contracted import numbered
from app.graphs.keys import sorted_set
from app.graphs.quality import Quality


@dataclass(frozen=True, eq=False)
class PartBound:
    """Communities of some nodes of a core: what pairs of them add is at most `upper`.

    nodes    [k] int64, different ones
    ptr, members   [r+1], [m] int64: star i has the places (in `nodes`) members[ptr[i] : ptr[i+1]], s first
    g        [r] int64, multiples of 2^-places
    matrix   [k, k] int64, S in multiples of 2^-places, or [0, 0]: zero
    """

    upper: int
    nodes: np.ndarray
    ptr: np.ndarray
    members: np.ndarray
    g: np.ndarray
    matrix: np.ndarray
    places: int

    def check(self, core: Quality) -> None:
        """Prove it, for a core. Raises BadCertificate."""
        nodes, k = self.nodes, len(self.nodes)
        if k and not 0 <= nodes.min() <= nodes.max() < core.n:
            raise BadCertificate("communities: a node of a part is not in the graph")
        if len(sorted_set(nodes)) < k or k * k > ROOM:
            raise BadCertificate("communities: a part names a node twice, or is too large")
        worth = pair_worths(core, nodes)
        if not 0 <= self.places <= MOST_PLACES or (int(np.abs(worth).sum()) << self.places) > FULL:
            raise BadCertificate(f"communities: values in multiples of 2^-{self.places}")
        if (proved := self.proved(worth)) > self.upper:
            raise BadCertificate(f"communities: the witness proves {proved}, not {self.upper}")

    def proved(self, worth: np.ndarray) -> int:
        """What is proved, for worths [k, k] of pairs, each twice. Raises BadCertificate."""
        taken = self._of_stars(len(worth)) - self._semidefinite(len(worth))
        trace = 0 if not self.matrix.size else int(np.trace(self.matrix))
        rest = np.maximum((worth << self.places) - taken, 0)
        twice = 2 * sum(self.g.tolist()) + trace + int(rest.sum()) - int(np.trace(rest))
        return twice >> self.places + 1

    def _of_stars(self, k: int) -> np.ndarray:
        """[k, k] int64, what multipliers take off the worth of pairs."""
        ptr, members, g = self.ptr, self.members, self.g
        sizes = np.diff(ptr)
        whole = len(ptr) == len(g) + 1 and ptr[0] == 0 and ptr[-1] == len(members) and (sizes >= 2).all()
        if not whole or (len(members) and not 0 <= members.min() <= members.max() < k):
            raise BadCertificate("communities: not stars of a part's nodes")
        if (g < 0).any() or (g > FULL).any() or sum(g.astype(object) * sizes * sizes) > FULL:
            raise BadCertificate("communities: multipliers are negative, or too large")
        taken = np.zeros((k, k), dtype=np.int64)
        for size in sorted_set(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            star = members[ptr[rows][:, None] + np.arange(size)]
            if (np.diff(np.sort(star, axis=1), axis=1) == 0).any():
                raise BadCertificate("communities: a star names a node twice")
            for i in range(size):
                for j in range(i):
                    np.add.at(taken, (star[:, i], star[:, j]), g[rows] if j == 0 else -g[rows])
        return taken + taken.T

    def _semidefinite(self, k: int) -> np.ndarray | int:
        """The matrix, proved to be so."""
        if not self.matrix.size:
            return 0
        check_semidefinite(self.matrix, k, "communities")
        return self.matrix


def pair_worths(core: Quality, nodes: np.ndarray) -> np.ndarray:
    """[k, k] int64, what pairs of nodes [k] are worth in one community; 0 on the diagonal."""
    k = len(nodes)
    part = core.induced(nodes, np.full(core.n, -1, dtype=np.int32))
    worth = -part.far * part.size[:, None] * part.size
    worth[part.row_of(), part.indices] += part.near * part.weights
    worth[np.arange(k), np.arange(k)] = 0
    return worth


@dataclass(frozen=True, eq=False)
class CommunityProof:
    """Of communities of a graph.

    ptr, joined   [r+1] int64, [m, 2] int64: round i joins each node joined[ptr[i] : ptr[i+1], 0] to the other
    one,
                  nodes of the graph that the rounds before have left
    parts         of what all rounds leave, no node in two of them
    checked       whether that is all that the bound rests on
    """

    ptr: np.ndarray
    joined: np.ndarray
    parts: tuple[PartBound, ...]
    checked: bool

    def proved(self, quality: Quality) -> int:
        """No communities are worth more. Raises BadCertificate."""
        core, own = self._core(quality)
        nodes = np.concatenate([np.zeros(0, dtype=np.int64), *(part.nodes for part in self.parts)])
        for part in self.parts:
            part.check(core)
        if len(sorted_set(nodes)) < len(nodes):
            raise BadCertificate("communities: a node is in two parts")
        place = np.full(core.n, -1, dtype=np.int64)
        for i, part in enumerate(self.parts):
            place[part.nodes] = i
        rows, worths = core.row_of(), core.worths()
        alone = (place[rows] != place[core.indices]) | (place[rows] < 0)
        other = int(worths[alone & (worths > 0)].sum()) // 2
        return own + other + sum(part.upper for part in self.parts)

    def _core(self, quality: Quality) -> tuple[Quality, int]:
        """What the rounds leave, and what pairs are worth that they join."""
        ptr, joined = self.ptr, self.joined
        whole = len(ptr) and ptr[0] == 0 and ptr[-1] == len(joined) and (np.diff(ptr) >= 0).all()
        if not whole or (joined.size and joined.shape[1:] != (2,)):
            raise BadCertificate("communities: not rounds of joined nodes")
        core, own = quality, 0
        for begin, end in zip(ptr[:-1].tolist(), ptr[1:].tolist()):
            pairs = joined[begin:end]
            if len(pairs) and not 0 <= pairs.min() <= pairs.max() < core.n:
                raise BadCertificate("communities: a round joins what is not there")
            if not belong_together(core, pairs):
                raise BadCertificate("communities: two nodes may be better apart")
            ones = np.ones(len(pairs), dtype=np.int8)
            matrix = sp.csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(core.n, core.n))
            group = numbered(connected_components(matrix, directed=False)[1])
            own += core.value(group)
            core = core.contracted(group, compiled=False)
        return core, own


def belong_together(quality: Quality, pairs: np.ndarray) -> bool:
    """Whether in all best communities the nodes of each pair [k, 2] are together: to go over to the second
    one's community would gain the first one more than it can lose.

    It gains what the pair is worth, and loses at most what is positive elsewhere and what is negative there,
    within the nodes that pairs of positive worth connect: best communities are connected by such pairs.
    """
    n, rows, worths = quality.n, quality.row_of(), quality.worths()
    positive = worths > 0
    ones = np.ones(int(positive.sum()), dtype=np.int8)
    matrix = sp.csr_array((ones, (rows[positive], quality.indices[positive])), shape=(n, n))
    part = connected_components(matrix, directed=False)[1]
    inside = part[rows] == part[quality.indices]
    sizes = np.zeros(n, dtype=np.int64)
    np.add.at(sizes, part, quality.size)
    others = sizes[part] - quality.size  # of a node's part, less its neighbours: worth -far * size each
    np.subtract.at(others, rows[inside], quality.size[quality.indices[inside]])
    losses = quality.far * quality.size * others
    np.add.at(losses, rows[inside], np.abs(worths[inside]))
    keys, wanted = rows * n + quality.indices, pairs[:, 0] * n + pairs[:, 1]
    if (keys[1:] < keys[:-1]).any():  # else rows ascend: sorting would take most of the time
        order = np.argsort(keys)
        keys, worths = keys[order], worths[order]
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    if not len(keys) or (keys[place] != wanted).any():
        return not len(pairs)
    pair = worths[place]
    return bool((2 * pair > losses[pairs[:, 0]]).all() and (pair > 0).all())
