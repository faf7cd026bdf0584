"""Proofs that a sparse matrix and a multiple of cc' are positive semidefinite together.

The matrix alone may have one negative eigenvalue, so it has no Cholesky factor; and with cc' it is dense.
Therefore rows of few entries are eliminated first, beside a further row and column: with k = 1/sigma

    M = [A  c; c' -k]     has the Schur complements     A + cc'/k of -k, and [A2 c2; c2' -b] of rows F,

so that A + cc'/k is positive definite where the pivots of F are positive, b > 0 and A2 + c2 c2'/b, which is
dense but small, has a Cholesky factor: all are congruences, and M has one negative eigenvalue either way.

Rounding. What is computed belongs to M + E, |E_ij| <= g (sqrt(h_i h_j) + |A2_ij|), with h_i the sum of what
is taken off the diagonal at i, with the pivot itself, and g = N u/(1 - N u) for sums of fewer than N terms
(as in app/bounds/factor.py). Let H be the sum of the h_i of A, e the error of c, h that of the corner. For
any s > 0, (c + e)(c + e)' <= (1 + s) cc' + (1 + 1/s) ee'; so with k = (1 + 4s)/sigma, where the corner's own
error is at most s k, A + sigma cc' is semidefinite if each diagonal entry had more than

    g (H + |A2|) + (1 + 1/s) |e|^2/(k (1 - s)),   |e|^2 <= 2 g^2 (h H + |c2|^2)

taken off before. All of it is taken twice, for the rounding of these formulas.

Source   Higham, Accuracy and Stability of Numerical Algorithms, 2002, theorem 9.3; the order: minimum degree
         (Tinney and Walker 1967); the further row is ours
"""

import heapq
import math
from dataclasses import dataclass

import numpy as np

from app.bounds.factor import ROOM, ROUNDOFF, dense_factor, margin
from app.graphs.contracted import WeightedRows

MOST_DEGREE = 60  # of a row that is eliminated on its own
LEAST_CORE = 200  # rows that are left: among the last ones may be the one that has no pivot without cc'
MOST_UPDATES = 1 << 25  # of entries by such rows: some seconds
SHARE = 2.0**-20  # s
TAKEN = 64.0  # of g times the trace, that is taken off at first; whether it is enough shows in the end
LARGEST = 1 << 52  # below this, whole numbers are exact in float64


@dataclass(frozen=True, eq=False)
class Elimination:
    """In which order rows are eliminated.

    order    nodes, one after the other     core   [m] int64, those that are left
    updates  of entries     fits   whether memory and patience hold it
    """

    order: list[int]
    core: np.ndarray
    updates: int
    fits: bool


def elimination(rows: WeightedRows, most: float = MOST_UPDATES) -> Elimination:
    """Rows of fewest entries first, ties to the lowest number; with `most` updates it does not fit."""
    ptr, columns = rows.indptr.tolist(), rows.indices.tolist()
    near = [set(columns[ptr[v] : ptr[v + 1]]) for v in range(rows.n)]
    heap = [(len(each), v) for v, each in enumerate(near)]
    heapq.heapify(heap)
    order: list[int] = []
    gone, updates = np.zeros(rows.n, dtype=bool), 0
    while len(order) < rows.n - LEAST_CORE and updates < most:
        degree, v = heapq.heappop(heap)
        if gone[v] or degree != len(near[v]):
            continue
        if degree > MOST_DEGREE:
            break
        gone[v] = True
        order.append(v)
        updates += degree * degree
        around, near[v] = near[v], set()
        for u in around:
            near[u] |= around
            near[u] -= {u, v}
            heapq.heappush(heap, (len(near[u]), u))
    core = np.flatnonzero(~gone)
    return Elimination(order, core, updates, len(core) ** 2 <= ROOM and updates < most)


def semidefinite(
    rows: WeightedRows, weights: np.ndarray, diagonal: np.ndarray, c: np.ndarray, sigma: int, way: Elimination
) -> bool:
    """True only where Diag(diagonal) - W + sigma cc' is proved positive semidefinite.

    weights [nnz] int64, of W, by the rows     diagonal, c [n] int64     way   of the same rows
    """
    n = rows.n
    sizes = [int(np.abs(each).max(initial=0)) for each in (weights, diagonal, c)]
    if max(sizes) >= LARGEST or not 0 < sigma < LARGEST or not way.fits or not n:
        return False
    g = (n + 64) * ROUNDOFF / (1 - (n + 64) * ROUNDOFF)
    taken = math.ceil(TAKEN * g * float(np.abs(diagonal).sum(dtype=np.float64))) + 1
    made = _Made(rows, weights, diagonal - taken, c, (1 + 4 * SHARE) / sigma)
    if not all(map(made.eliminate, way.order)):
        return False
    return made.needed(way.core, g) < taken and made.rest_is_definite(way.core)


class _Made:
    """What is left of M, row by row."""

    def __init__(
        self, rows: WeightedRows, weights: np.ndarray, diagonal: np.ndarray, c: np.ndarray, corner: float
    ) -> None:
        ptr, columns, values = rows.indptr.tolist(), rows.indices.tolist(), (-weights.astype(float)).tolist()
        self.rows = [
            dict(zip(columns[ptr[v] : ptr[v + 1]], values[ptr[v] : ptr[v + 1]])) for v in range(rows.n)
        ]
        self.diagonal, self.c = diagonal.astype(float).tolist(), c.astype(float).tolist()
        self.first, self.corner = corner, corner
        self.off = [0.0] * rows.n  # taken off the diagonal

    def eliminate(self, v: int) -> bool:
        """Row v; False where its pivot is not positive."""
        pivot, row, rows, at_v = self.diagonal[v], self.rows[v], self.rows, self.c[v]
        if not pivot > 0:
            return False
        self.off[v] += pivot
        self.corner += at_v * at_v / pivot
        entries = list(row.items())
        for place, (i, value) in enumerate(entries):
            share, at_i = value / pivot, rows[i]
            del at_i[v]
            lost = share * value
            self.diagonal[i] -= lost
            self.off[i] += lost
            self.c[i] -= share * at_v
            for j, other in entries[:place]:
                at_i[j] = rows[j][i] = at_i.get(j, 0.0) - share * other
        return True

    def needed(self, core: np.ndarray, g: float) -> float:
        """What has to be taken off the diagonal before; infinity where the corner is not sure."""
        h, first = 2 * self.corner, self.first
        if not (math.isfinite(self.corner) and 4 * g * h <= SHARE * first):
            return math.inf
        c = np.array([self.c[v] for v in core.tolist()])
        squares = sum(value * value for v in core.tolist() for value in self.rows[v].values())
        squares += sum(self.diagonal[v] ** 2 for v in core.tolist())
        total = sum(self.off)
        error = 2 * g * g * (h * total + float(c @ c))
        return 2 * (g * (total + math.sqrt(squares)) + (1 + 1 / SHARE) * error / (first * (1 - SHARE)))

    def rest_is_definite(self, core: np.ndarray) -> bool:
        """Whether A2 + c2 c2'/b is proved positive definite."""
        m, place = len(core), {v: i for i, v in enumerate(core.tolist())}
        if not m:
            return True
        matrix, c = np.zeros((m, m), order="F"), np.array([self.c[v] for v in core.tolist()])
        for v, i in place.items():
            row = self.rows[v]
            matrix[[place[u] for u in row], i] = list(row.values())
            matrix[i, i] = self.diagonal[v]
        size = float(np.linalg.norm(matrix)) + float(c @ c) / self.corner
        root = c / self.corner
        for i in range(m):
            matrix[:, i] += root * c[i]
        diagonal = np.diagonal(matrix)
        taken = margin(m, float(np.abs(diagonal).sum())) + 16 * ROUNDOFF * size
        matrix[np.diag_indices(m)] = diagonal - taken
        return bool((np.diagonal(matrix) > 0).all()) and dense_factor(matrix)
