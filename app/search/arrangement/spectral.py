"""Spectral orders: nodes by the second eigenvector of a random walk on the graph, in whole numbers.

An averaging, x(v) <- (x(v) + mean of x over the neighbours of v) / 2 less the mean of all by degree, leaves
of any x what changes least along edges: Fiedler's vector. It is slow on large graphs, unless it begins near
it: the graph is made coarser by matching nodes with the neighbour of the heaviest edge, level by level, and
each level begins with what the coarser one has found. Numbers are whole, so that they are the same
everywhere.

Where two eigenvalues are nearly the same, as of a square grid, any mixture of their vectors may be found, and
orders along mixtures differ: a grid's rows cut fewer edges than its diagonals. So a second x is averaged
beside the first, less its part along it, and orders by several mixtures of the two are offered.

Source   Fiedler 1973; Juvan and Mohar, Optimal linear labelings and eigenvalues of graphs, Discrete Applied
         Mathematics 1992; levels: Barnard and Simon 1994
"""

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from app.graphs.arrangement import Arrangement
from app.graphs.orders import places_of
from app.toolbox import Look, never

LARGEST = 1 << 30  # of a coordinate
MOST_WEIGHT = 1 << 20  # of the weights of a node: products are below 2^52
COARSEST, ROUNDS, COARSEST_ROUNDS = 40, 30, 400
STALLED_ROUNDS = 100  # of the coarsest level where matching leaves more nodes: a few are as good there
TRIES = 4  # at a matching
MIXTURES = (
    (1, 0), (0, 1), (1, 1), (1, -1), (2, 1), (1, 2), (-1, 2), (-2, 1), (5, 1), (5, -1), (1, 5), (-1, 5),
    (3, 2), (2, 3), (-2, 3), (-3, 2),
)  # fmt: skip  # of both vectors


def spectral(
    asked: Arrangement, begin: np.ndarray, look: Look = never, compiled: bool = True
) -> Iterator[np.ndarray]:
    """Orders [n] int64 by mixtures of two vectors, component by component; none where there is no time.

    Where the time is up once all levels are made, there is one, of what the vectors are by then.

    begin   [n] an order, which ties follow, and the coarsest level begins from
    look    asked now and then whether the time is up
    """
    weights = asked.weights
    rows = asked.row_of()
    degree = np.bincount(rows, weights.astype(np.float64), asked.n)
    over = int(degree.max(initial=1)) // MOST_WEIGHT + 1
    weights = np.maximum(weights // over, 1)
    matrix = sparse.csr_array((weights, asked.indices.astype(np.int64), asked.indptr), shape=(asked.n,) * 2)
    place = places_of(begin)
    label = asked.parts(compiled)
    pair = _vectors(matrix, label, place, look)
    if pair is not None:
        for a, b in MIXTURES:
            yield np.lexsort((place, a * pair[0] + b * pair[1], label))
            if look():
                return


def _vectors(matrix: sparse.csr_array, label: np.ndarray, place: np.ndarray, look: Look) -> np.ndarray | None:
    """[2, n] int64, both vectors; None: no time to make all levels."""
    n = matrix.shape[0]
    if look():
        return None
    group = _matched(matrix) if n > COARSEST else np.arange(n)
    count = int(group.max(initial=-1)) + 1
    if count >= 0.9 * n:
        other = np.argsort(np.arange(n) * 0x9E3779B1 % 0xFFFFFFFB, kind="stable")  # without a pattern
        pair = np.stack([_spread(each, label) for each in (place, other)])
        rounds = COARSEST_ROUNDS if n <= COARSEST else STALLED_ROUNDS
        return _smooth(matrix, label, pair, rounds, look)
    fold = sparse.csr_array((np.ones(n, dtype=np.int64), (np.arange(n), group)), shape=(n, count))
    coarse = sparse.csr_array(fold.T @ matrix @ fold)
    coarse.setdiag(0)
    coarse.eliminate_zeros()
    first = np.full(count, n, dtype=np.int64)
    np.minimum.at(first, group, place)
    kind = np.zeros(count, dtype=np.int64)
    kind[group] = label
    pair = _vectors(_light(coarse), kind, np.argsort(np.argsort(first)), look)
    return None if pair is None else _smooth(matrix, label, pair[:, group], ROUNDS, look)


def _light(matrix: sparse.csr_array) -> sparse.csr_array:
    """The same with weights of nodes that leave products exact."""
    most = int(matrix.sum(axis=1).max()) if matrix.nnz else 0
    if most > MOST_WEIGHT:
        matrix.data = np.maximum(matrix.data // (most // MOST_WEIGHT + 1), 1)
    return matrix


def _matched(matrix: sparse.csr_array) -> np.ndarray:
    """[n] int64, groups of one or two adjacent nodes: those that choose each other, of the heaviest edges."""
    n = matrix.shape[0]
    rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
    columns = matrix.indices.astype(np.int64)
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    mix = (low * 0x9E3779B1 + high * 0x85EBCA77) % 0xFFFFFFFB  # an order of edges without a pattern
    mate = np.full(n, -1, dtype=np.int64)
    for _ in range(TRIES):
        free = (mate[rows] < 0) & (mate[columns] < 0)
        some = np.flatnonzero(free)
        if not len(some):
            break
        some = some[np.lexsort((mix[some], -matrix.data[some], rows[some]))]
        first = some[np.append(True, rows[some][1:] != rows[some][:-1])]
        choice = np.full(n, -1, dtype=np.int64)
        choice[rows[first]] = columns[first]
        chosen = np.flatnonzero(choice >= 0)
        mutual = chosen[choice[choice[chosen]] == chosen]
        mate[mutual] = choice[mutual]
    leader = np.where(mate >= 0, np.minimum(mate, np.arange(n)), np.arange(n))
    return np.unique(leader, return_inverse=True)[1].reshape(-1)


def _spread(place: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Places within components, over the range of coordinates."""
    order = np.lexsort((place, label))
    size = np.bincount(label)
    start = np.cumsum(size) - size
    rank = np.empty(len(place), dtype=np.int64)
    rank[order] = np.arange(len(place)) - np.repeat(start, size)
    return (2 * rank - size[label] + 1) * LARGEST // np.maximum(size[label], 1)


def _smooth(
    matrix: sparse.csr_array, label: np.ndarray, pair: np.ndarray, rounds: int, look: Look
) -> np.ndarray:
    """[2, n] int64, both vectors after some averagings, fewer where the time is up: what is there counts.

    After each they are spread anew in each component, and the second loses its part along the first.
    """
    sums = _Sums(np.maximum(matrix.sum(axis=1).astype(np.int64), 1), label)
    x, y = pair
    for _ in range(rounds):
        if look():
            break
        x = sums.spread(sums.averaged(matrix, x))
        y = sums.spread(sums.beside(sums.averaged(matrix, y), x))
    return np.stack([x, y])


class _Sums:
    """Sums over the nodes of each component.

    degree   [n] int64, what the edges of a node weigh, below 2^21
    label    [n] int64, the component of each node
    """

    def __init__(self, degree: np.ndarray, label: np.ndarray) -> None:
        self.degree, self.label = degree, label
        parts = int(label.max(initial=-1)) + 1
        self.order = np.argsort(label, kind="stable")
        self.start = np.searchsorted(label[self.order], np.arange(parts))
        self.whole = self.over(np.add, degree)

    def over(self, rule: np.ufunc, each: np.ndarray) -> np.ndarray:
        """[parts] int64, of values [n]."""
        return rule.reduceat(each[self.order], self.start) if len(self.order) else each

    def averaged(self, matrix: sparse.csr_array, x: np.ndarray) -> np.ndarray:
        """[n] int64, half of x and half of the mean of its neighbours, less the mean of all by degree."""
        x = (x * self.degree + matrix @ x) // (2 * self.degree)
        # Means of high and low halves apart, so that sums of 2^32 nodes are exact.
        high, low = (self.over(np.add, part * self.degree) for part in (x >> 15, x & 0x7FFF))
        mean = ((high // self.whole) << 15) + ((high % self.whole << 15) + low) // self.whole
        return x - mean[self.label]

    def spread(self, x: np.ndarray) -> np.ndarray:
        """[n] int64, x over the range of coordinates: |x| is below 8 LARGEST, so products are below 2^63."""
        most = np.maximum(self.over(np.maximum, np.abs(x)), 1)
        return x * LARGEST // most[self.label]

    def beside(self, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        """[n] int64, y less its part along x, about: with the high bits of both, and four times x at most."""
        x_high, y_high = x >> 20, y >> 20  # below 2^11 and 2^12: sums of 2^40 are below 2^63
        along = self.over(np.add, x_high * y_high * self.degree)
        own = np.maximum(self.over(np.add, x_high * x_high * self.degree) >> 10, 1)
        share = np.clip(along // own, -4096, 4096)  # in 1024ths
        return y - (x * share[self.label] >> 10)
