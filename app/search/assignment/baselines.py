"""Plain assignments of a Quadratic: what searches have to beat, and where they begin.

Each returns a permutation [k] int64; the same bits on every machine: sums are those of sparse products,
chains from left to right, and of whole numbers.
"""

import numpy as np
import scipy.sparse as sp

from app.graphs.lists import ranges
from app.graphs.pairing import Quadratic, is_symmetric
from app.toolbox import Look, never

MOST_FAQ = 2000  # nodes: beyond, its matrices and linear assignments take too long
MOST_PROFILES = 2500  # nodes: beyond, a table of all pairs takes too much memory
FULL = 800  # nodes of graphs that are nearly full, at most: products then take k^3
ROUNDS, LEAST_STEP = 30, 1e-4  # of FAQ: steps at most; and the shortest that is worth another
ROUNDS_OF_LABELS = 4  # of refinement: what differs beyond is seldom needed
LEVELS = 16  # of a profile: quantiles of the degrees of neighbours


def by_order(core: Quadratic, look: Look = never) -> np.ndarray:
    """Every node at the place of its own number among those left."""
    return np.arange(core.k)


def by_degree(core: Quadratic, look: Look = never) -> np.ndarray:
    """The nodes of the largest degrees on those of the largest, of equal ones those whose neighbours have the
    largest; where edges on edges cost something on those of the smallest.
    """
    return _rest_by_degree(core, np.full(core.k, -1, dtype=np.int64))


def greedy(core: Quadratic, look: Look = never) -> np.ndarray:
    """The pair of least linear cost, below 0, of nodes and places that are left, again and again; of the rest
    by degree. Similarities are such costs, and so is what edges to seeds are worth.
    """
    linear = sp.coo_array(core.linear)
    found, used = np.full(core.k, -1, dtype=np.int64), np.zeros(core.k, dtype=bool)
    order = np.lexsort((linear.col, linear.row, linear.data))
    order = order[linear.data[order] < 0]
    for i, x in zip(linear.row[order].tolist(), linear.col[order].tolist()):
        if found[i] < 0 and not used[x]:
            found[i], used[x] = x, True
    return _rest_by_degree(core, found)


def _rest_by_degree(core: Quadratic, found: np.ndarray) -> np.ndarray:
    """Places [k], those below 0 filled in by degree."""
    nodes, free = np.flatnonzero(found < 0), np.ones(core.k, dtype=bool)
    if not len(nodes):
        return found.copy()
    free[found[found >= 0]] = False
    places = np.flatnonzero(free)
    first, second = _ranking(core.a)[nodes], _ranking(core.b)[places]
    turned = -1 if int(core.a.data.sum()) * int(core.b.data.sum()) > 0 else 1
    found = found.copy()
    found[nodes[np.argsort(-first, kind="stable")]] = places[np.argsort(-turned * second, kind="stable")]
    return found


def _ranking(matrix: sp.csr_array) -> np.ndarray:
    """[k] int64, larger for a larger degree, and for an equal one where neighbours have larger ones."""
    degree = _degrees(matrix)
    size = abs(matrix)
    around = np.asarray(size @ degree + size.T @ degree).reshape(-1)
    width = int(around.max(initial=0)) + 1
    if int(around.min(initial=0)) >= 0 and int(degree.max(initial=0)) < (1 << 62) // width:
        return degree * width + around
    return np.unique(np.stack([degree, around], axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def by_refinement(core: Quadratic, look: Look = never) -> np.ndarray:
    """Nodes on places that look the same from all that is within ROUNDS_OF_LABELS steps, where there are as
    many of both; of the rest by degree. Graphs that are alike but for the order of their nodes are found to
    be so, but for what looks the same within.

    Source   colour refinement: Weisfeiler and Leman 1968; labels are hashes of what they stand for
    """
    first, second = (_labels(each, core.symmetric) for each in (core.a, core.b))
    one, other = np.argsort(first, kind="stable"), np.argsort(second, kind="stable")
    kinds, at, count = np.unique(first[one], return_index=True, return_counts=True)
    there, start = second[other], np.searchsorted(second[other], kinds)
    as_many = np.searchsorted(there, kinds, side="right") - start == count
    found = np.full(core.k, -1, dtype=np.int64)
    found[one[ranges(at[as_many], count[as_many])]] = other[ranges(start[as_many], count[as_many])]
    return _rest_by_degree(core, found)


def _labels(matrix: sp.csr_array, symmetric: bool) -> np.ndarray:
    """[k] uint64, the same for nodes that look the same from all that is within ROUNDS_OF_LABELS steps.

    symmetric   whether the matrix is known to be so
    """
    label, size = _degrees(matrix).astype(np.uint64), abs(matrix)
    both = (size,) if symmetric or is_symmetric(size) else (size, size.T.tocsr())
    weights = [_mixed(each.data.astype(np.uint64)) for each in both]
    for _ in range(ROUNDS_OF_LABELS):
        told = _mixed(label)
        for number, (each, weight) in enumerate(zip(both, weights)):
            sums = np.zeros(len(told) + 1, dtype=np.uint64)  # with one more, in which empty rows may begin
            if len(weight):
                heard = np.append(_mixed(told[each.indices] ^ weight), np.uint64(0))
                sums[:-1] = np.add.reduceat(heard, each.indptr[:-1].astype(np.int64))
                sums[:-1][np.diff(each.indptr) == 0] = 0
            label = _mixed(label + np.uint64(number + 1)) + sums[:-1]
    return label


def _mixed(x: np.ndarray) -> np.ndarray:
    """[k] uint64, a hash of each (the finaliser of SplitMix64: Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _degrees(matrix: sp.csr_array) -> np.ndarray:
    """[k] int64, the sums of |entries| in rows and columns."""
    size = abs(matrix)
    return np.asarray(size.sum(axis=0) + size.sum(axis=1)).reshape(-1).astype(np.int64)


def profiles(matrix: sp.csr_array) -> np.ndarray:
    """[k, LEVELS + 1] int64: the degree of each node, and quantiles of those of its neighbours, 0 without."""
    degree, k = _degrees(matrix), matrix.shape[0]
    pattern = matrix + matrix.T
    pattern.sum_duplicates()
    found = np.zeros((k, LEVELS + 1), dtype=np.int64)
    found[:, 0] = degree
    for i in range(k):
        near = np.sort(degree[pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]])
        if len(near):
            found[i, 1:] = near[np.arange(LEVELS) * len(near) // LEVELS]
    return found


def by_profiles(core: Quadratic, look: Look = never) -> np.ndarray:
    """The linear assignment whose nodes are most alike by their degree, and those of their neighbours.

    Where there are linear costs, these decide among the nodes first.
    """
    first, second = profiles(core.a), profiles(core.b)
    apart = np.zeros((core.k, core.k), dtype=np.int64)
    for level in range(first.shape[1]):
        apart += np.abs(first[:, [level]] - second[None, :, level])
    if core.linear.nnz:
        return assigned(apart + core.linear.toarray() * (1.0 + float(apart.max(initial=0))))
    return assigned(apart)


def assigned(costs: np.ndarray) -> np.ndarray:
    """[k] int64, the columns of a least assignment of the rows of costs [k, k]."""
    from scipy.optimize import linear_sum_assignment  # a fair share of a program's start, for few runs

    return linear_sum_assignment(costs)[1].astype(np.int64)


def faq_fits(core: Quadratic) -> bool:
    """Whether FAQ is soon done."""
    return core.k <= (FULL if min(core.a.nnz, core.b.nnz) > core.k**2 // 5 else MOST_FAQ)


def faq(core: Quadratic, look: Look = never, near: np.ndarray | None = None) -> np.ndarray:
    """Frank and Wolfe's method on doubly stochastic matrices, from the flat one, and the nearest permutation.

    near   [k] a permutation, halfway to which it begins; None: at the flat matrix

    The gradient of tr(A P B^T P^T) + tr(C^T P) at P is A P B^T + A^T P B + C; a step goes towards the
    permutation Q that is best along it, as far as the function, a parabola on the way, falls. The gradient is
    linear in P, so that only that at Q is made anew, a product of sparse matrices; that at the flat matrix is
    one of row sums.

    Source   FAQ: Vogelstein et al., Fast approximate quadratic programming for graph matching, 2015
    """
    k, (at, bt) = core.k, core.columnwise
    a, at, b, bt = (_scaled(each) for each in (core.a, at, core.b, bt))
    linear = core.linear.toarray() * (1.0 / (_size(core.a) * _size(core.b)))
    P = np.full((k, k), 1.0 / max(k, 1))
    slope = (np.outer(_row_sums(a), _row_sums(b)) + np.outer(_row_sums(at), _row_sums(bt))) * (
        1.0 / max(k, 1)
    )

    def gradient(q: np.ndarray) -> np.ndarray:
        found = (_at(a, q) @ bt).toarray()
        return 2 * found if core.symmetric else found + (_at(at, q) @ b).toarray()

    if near is not None:
        P, slope = 0.5 * P, 0.5 * (slope + gradient(near))
        P[np.arange(k), near] += 0.5
    for _ in range(ROUNDS):
        q = assigned(slope + linear)
        there = gradient(q)
        D = -P
        D[np.arange(k), q] += 1.0
        fall, curve = _sum(D * (slope + linear)), _sum(D * (there - slope)) / 2
        if fall >= 0 or look():
            break
        step = 1.0 if curve <= 0 else min(1.0, -fall / (2 * curve))
        P, slope = P + step * D, slope + step * (there - slope)
        if step < LEAST_STEP:
            break
    return assigned(-P)


def _at(matrix: sp.csr_array, q: np.ndarray) -> sp.csr_array:
    """A matrix times the permutation that has a one in row i and column q[i]."""
    return sp.csr_array((matrix.data, q[matrix.indices], matrix.indptr), shape=matrix.shape)


def _row_sums(matrix: sp.csr_array) -> np.ndarray:
    """[k] float64, each a chain from left to right."""
    return matrix @ np.ones(matrix.shape[1])


def _size(matrix: sp.csr_array) -> float:
    """The largest |entry|, or 1."""
    return float(np.abs(matrix.data).max(initial=0)) or 1.0


def _scaled(matrix: sp.csr_array) -> sp.csr_array:
    """A matrix of float64 whose entries are at most 1."""
    return matrix.astype(np.float64) * (1.0 / _size(matrix))


def _sum(X: np.ndarray) -> float:
    """The sum of all entries, one after the other."""
    return float(np.cumsum(X.reshape(-1))[-1]) if X.size else 0.0


def faq_from_profiles(core: Quadratic, look: Look = never) -> np.ndarray:
    """FAQ from halfway to the assignment by profiles: on graphs that are nearly alike far better than from
    the flat matrix, which knows nothing of the neighbours' degrees.
    """
    return faq(core, look, by_profiles(core))


BASELINES = {
    "order": (by_order, "in order"),
    "degree": (by_degree, "by degree"),
    "refinement": (by_refinement, "by refinement"),
    "greedy": (greedy, "greedy by pairs"),
    "profiles": (by_profiles, "by degree profiles"),
    "faq": (faq, "FAQ"),
    "profiles_faq": (faq_from_profiles, "FAQ from profiles"),
}
