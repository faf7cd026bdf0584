"""What a graph network reads of the nodes: features as they are given, scaled, or none at all."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from app.graphs.nodedata import NodeData
from app.sparse.rowblock import RowBlock

Array = Any


def input_rows(data: NodeData, block: RowBlock, feature_rows: str) -> np.ndarray | sp.csr_array:
    """[n_own, F] float32 host: the features of this rank's padded rows.

    feature_rows   "sum_to_one": each row is divided by the sum of its absolute values (Kipf and Welling 2017
                   divide by the sum, of entries that are not negative); "as_given"
    Without features every node has one of its own, the identity matrix: a model that learned on that can be
    applied to the same nodes only.
    """
    if data.features is None:
        return _identity(block)
    if feature_rows == "as_given":
        return data.features
    X = data.features
    sums = np.asarray(abs(X).sum(axis=1, dtype=np.float64)).reshape(-1)
    factors = (1 / np.where(sums > 0, sums, 1)).astype(np.float32)
    if isinstance(X, np.ndarray):
        return X * factors[:, None]
    values = X.data * np.repeat(factors, np.diff(X.indptr))
    return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)


def _identity(block: RowBlock) -> sp.csr_array:
    ones = np.ones(block.n_real, dtype=np.float32)
    indptr = np.minimum(np.arange(block.n_own + 1), block.n_real)
    columns = np.arange(block.lo, block.lo + block.n_real)
    return sp.csr_array((ones, columns, indptr), shape=(block.n_own, block.n))
