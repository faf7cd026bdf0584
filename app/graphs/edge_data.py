"""What is known of a graph's edges, for learning on it: a row of numbers for each entry of its matrix."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """Rows of numbers of the stored entries of this rank's rows of a matrix.

    counts   [n_own] int64, the entries of each row; padding has none
    values   [nnz, k] float32, by rows and in a row by ascending column
    """

    counts: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class EdgeData:
    """Edge features by the entries of A, whose rows have what a node hears, and of A^T: who hears it.

    hearing   of an undirected graph the very same rows     columns   names of the columns, or none
    """

    heard: EdgeRows
    hearing: EdgeRows
    columns: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Columns."""
        return self.heard.values.shape[1]

    @property
    def directed(self) -> bool:
        """Whether there are two of them."""
        return self.hearing is not self.heard
