"""Spectral orders: nodes by the second eigenvector of a random walk on the graph, in whole numbers.

An averaging, x(v) <- (x(v) + mean of x over the neighbours of v) / 2 less the mean of all by degree, leaves
of any x what changes least along edges: Fiedler's vector. It is slow on large graphs, unless it begins near
it: the graph is made coarser by matching nodes with the neighbour of the heaviest edge, level by level, and
each level begins with what the coarser one has found. Numbers are whole, so that they are the same
everywhere.

Source   Fiedler 1973; Juvan and Mohar, Optimal linear labelings and eigenvalues of graphs, Discrete Applied
         Mathematics 1992; levels: Barnard and Simon 1994
"""

import numpy as np
from scipy import sparse

from app.graphs.arrangement import Arrangement
from app.toolbox import Look, never

LARGEST = 1 << 30  # of a coordinate
MOST_WEIGHT = 1 << 20  # of the weights of a node: products are below 2^52
COARSEST, ROUNDS, COARSEST_ROUNDS = 40, 30, 400
TRIES = 4  # at a matching


def spectral(asked: Arrangement, begin: np.ndarray, look: Look = never) -> np.ndarray | None:
    """[n] int64, an order by the vector, component by component; None where there is no time.

    begin   [n] an order, which ties follow, and the coarsest level begins from
    look    asked now and then whether the time is up
    """
    weights = asked.weights
    rows = asked.row_of()
    degree = np.bincount(rows, weights.astype(np.float64), asked.n)
    over = int(degree.max(initial=1)) // MOST_WEIGHT + 1
    weights = np.maximum(weights // over, 1)
    matrix = sparse.csr_array((weights, asked.indices.astype(np.int64), asked.indptr), shape=(asked.n,) * 2)
    place = np.empty(asked.n, dtype=np.int64)
    place[begin] = np.arange(asked.n)
    label = asked.parts()
    x = _vector(matrix, label, place, look)
    return None if x is None else np.lexsort((place, x, label))


def _vector(matrix: sparse.csr_array, label: np.ndarray, place: np.ndarray, look: Look) -> np.ndarray | None:
    n = matrix.shape[0]
    if look():
        return None
    group = _matched(matrix) if n > COARSEST else np.arange(n)
    count = int(group.max(initial=-1)) + 1
    if count > 0.9 * n:
        return _smooth(matrix, label, _spread(place, label), COARSEST_ROUNDS, look)
    fold = sparse.csr_array((np.ones(n, dtype=np.int64), (np.arange(n), group)), shape=(n, count))
    coarse = sparse.csr_array(fold.T @ matrix @ fold)
    coarse.setdiag(0)
    coarse.eliminate_zeros()
    first = np.full(count, n, dtype=np.int64)
    np.minimum.at(first, group, place)
    kind = np.zeros(count, dtype=np.int64)
    kind[group] = label
    x = _vector(_light(coarse), kind, np.argsort(np.argsort(first)), look)
    return None if x is None else _smooth(matrix, label, x[group], ROUNDS, look)


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
    matrix: sparse.csr_array, label: np.ndarray, x: np.ndarray, rounds: int, look: Look
) -> np.ndarray | None:
    """[n] int64, x after some averagings, spread anew in each component after each; None: no time."""
    degree = np.maximum(matrix.sum(axis=1).astype(np.int64), 1)
    parts = int(label.max(initial=-1)) + 1
    one = parts == 1
    order = np.argsort(label, kind="stable")
    start = np.searchsorted(label[order], np.arange(parts))
    whole = np.add.reduceat(degree[order], start) if len(order) else degree
    for _ in range(rounds):
        if look():
            return None
        x = (x * degree + matrix @ x) // (2 * degree)
        x = x - _means(x, degree, order, start, whole)[label]
        most = (
            np.maximum.reduceat(np.abs(x)[order], start) if not one else np.array([np.abs(x).max(initial=0)])
        )
        x = x * LARGEST // np.maximum(most, 1)[label]  # |x| is below 2 LARGEST: products are below 2^61
    return x


def _means(
    x: np.ndarray, degree: np.ndarray, order: np.ndarray, start: np.ndarray, whole: np.ndarray
) -> np.ndarray:
    """[parts] int64, means by degree: of high and low halves apart, so that sums of 2^32 nodes are exact."""
    high, low = x >> 15, x & 0x7FFF
    sums = [np.add.reduceat((part * degree)[order], start) for part in (high, low)]
    return ((sums[0] // whole) << 15) + ((sums[0] % whole << 15) + sums[1]) // whole
