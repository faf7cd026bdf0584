"""A first-order method for packing programs: maximise need * y where A y <= weights, y >= 0."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse import _sparsetools


class PackingProgram:
    """Primal-dual hybrid gradient steps for the best packing by columns, and its prices.

    x [n] prices of the nodes: the relaxed cover, in [0, 1] at the optimum
    y [k] values of the columns, in units of the mean weight

    Source   Chambolle and Pock 2011, Algorithm 1; step sizes of each row and column from its entries: Pock
             and Chambolle 2011 (alpha = 1); restarts from the average: Applegate et al. 2021 (PDLP), here
             where the caller says
    Sums over a node's columns and a column's nodes are SciPy's sparse products: one order, on every machine.
    They are called without what SciPy looks at before, which of small graphs takes longer than they do.
    """

    def __init__(
        self, columns: sp.csr_array, need: np.ndarray, weights: np.ndarray, x: np.ndarray, y: np.ndarray
    ) -> None:
        """columns [k, n], one where a node is in a column; need [k]; weights [n]; x, y: where to start."""
        self._rows = columns.astype(np.float64, copy=False)
        self._cols = sp.csr_array(self._rows.T)
        self._need = need.astype(np.float64)
        self._weights = weights / max(weights.mean(), 1e-300)
        self._step_y = 1.0 / np.maximum(np.diff(columns.indptr), 1)
        self._step_x = 1.0 / np.maximum(np.diff(self._cols.indptr), 1)
        self.x, self.y = x, y
        self._sum_x, self._sum_y, self._steps = np.zeros_like(x), np.zeros_like(y), 0

    @property
    def entries(self) -> int:
        """Stored entries of A: a step costs two products with it."""
        return self._rows.nnz

    def run(self, steps: int) -> None:
        """Take steps and add them to the average."""
        for _ in range(steps):
            y = np.maximum(self.y + self._step_y * (self._need - _times(self._rows, self.x)), 0.0)
            ahead = _times(self._cols, 2 * y - self.y)
            self.x = np.maximum(self.x + self._step_x * (ahead - self._weights), 0.0)
            self.y = y
            self._sum_x += self.x
            self._sum_y += y
        self._steps += steps

    def average(self) -> tuple[np.ndarray, np.ndarray]:
        """x and y averaged over the steps since the last restart."""
        return self._sum_x / self._steps, self._sum_y / self._steps

    def restart(self) -> None:
        """Go on from the average."""
        self.x, self.y = self.average()
        self._sum_x, self._sum_y, self._steps = np.zeros_like(self.x), np.zeros_like(self.y), 0


def _times(A: sp.csr_array, x: np.ndarray) -> np.ndarray:
    """A x, both of float64: the sum of A @ x."""
    out = np.zeros(A.shape[0])
    _sparsetools.csr_matvec(*A.shape, A.indptr, A.indices, A.data, x, out)
    return out
