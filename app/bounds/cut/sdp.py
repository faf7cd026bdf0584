"""The semidefinite relaxation of the maximum cut in low rank, and the diagonal entries of its dual."""

import math

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from app.graphs.graph import Graph
from app.rng import stream

MOST = 1 << 25  # float64 of all vectors: 256 MB; larger graphs get vectors of lower rank
ERRORS, RESTARTS = (1e-7, 1e-6, 1e-5), 25  # of an eigenvalue, in units of the size; of a search for each
DENSE = 400  # up to so many rows the smallest eigenvalue comes from a dense solver


class MixingMethod:
    """min sum W[i, j] <v_i, v_j> over unit vectors, one at a time: v_i = -g/|g|, g = sum_j W[i, j] v_j.

    Source   Wang and Kolter 2017, "The Mixing method"; rank sqrt(2n) suffices (Barvinok 1995, Pataki 1998;
             Burer and Monteiro 2003)
    The norms |g| are the dual's diagonal entries: W + Diag(|g|) is positive semidefinite at the optimum.
    Nodes of one colour have no edge in common, so a colour is one sparse product and nothing else changes.

    matrix  [n, n] CSR float64
    y       [n] float64, the norms |g| of the last sweep
    """

    def __init__(self, matrix: sp.csr_array, graph: Graph) -> None:
        rank = min(math.isqrt(2 * graph.n) + 2, max(MOST // graph.n, 2))
        V = stream(0, "cut bound").standard_normal((graph.n, rank))
        self._V = V / np.sqrt(np.square(V).sum(axis=1, keepdims=True))
        self._colours = [(nodes, matrix[nodes]) for nodes in colour_classes(graph.indptr, graph.indices)]
        self.y = np.zeros(graph.n)

    def sweep(self) -> float:
        """Every vector once; returns the sum of y, which grows to its limit."""
        for nodes, rows in self._colours:
            G = rows @ self._V
            norm = np.sqrt(np.square(G).sum(axis=1))
            self.y[nodes] = norm
            moved = norm > 0
            self._V[nodes[moved]] = -G[moved] / norm[moved, None]
        return float(self.y.sum())


def colour_classes(ptr: np.ndarray, columns: np.ndarray) -> list[np.ndarray]:
    """Nodes of each colour of a greedy colouring in order of falling degree, ties to the lowest number."""
    indptr, indices = ptr.tolist(), columns.tolist()
    colour = [-1] * (len(ptr) - 1)
    for v in np.argsort(-np.diff(ptr), kind="stable").tolist():
        used = {colour[u] for u in indices[indptr[v] : indptr[v + 1]]}
        colour[v] = next(c for c in range(len(used) + 1) if c not in used)
    found = np.array(colour, dtype=np.int64)
    return [np.flatnonzero(found == c) for c in range(int(found.max(initial=-1)) + 1)]


def smallest_eigenvalue(matrix: sp.csr_array, y: np.ndarray) -> float:
    """An estimate of the smallest eigenvalue of W + Diag(y): not a proof, and never far above it.

    Where y is nearly the best many eigenvalues are near 0, and the error that is asked for is of the matrix's
    size, not of the eigenvalue's: beside 0 that would never be small.
    """
    n = len(y)
    if n <= DENSE:
        shifted = matrix + sp.diags_array(y)
        return float(eigvalsh(shifted.toarray(), subset_by_index=[0, 0])[0])
    norm = float(np.abs(matrix).sum(axis=1).max())
    size = norm + float(np.abs(y).max())
    shifted = sp.csr_array(matrix + sp.diags_array(y - size))  # no eigenvalue of it is above 0
    start = stream(0, "cut eigenvalue").standard_normal(n)
    for error in ERRORS:
        try:
            found = eigsh(
                shifted, 1, which="SA", v0=start, tol=error, maxiter=RESTARTS, ncv=40,
                return_eigenvectors=False,
            )  # fmt: skip
        except ArpackNoConvergence:
            continue
        return float(found[0]) + size
    return float(y.min()) - norm  # none is below
