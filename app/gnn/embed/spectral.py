"""Eigenvectors of a graph, which read no features: what vectors of small graphs stand beside."""

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.comm.guard import raise_together
from app.sparse.rowblock import RowBlock

MOST_NODES, MOST_ENTRIES = 1 << 15, 1 << 22  # of a graph that one rank holds for it
COLUMNS = 64  # at most


def spectral_rows(group: Group, block: RowBlock, dimension: int) -> np.ndarray | None:
    """[n_own, k] float32, a row of leading eigenvectors for each node, k at most `dimension` and COLUMNS;
    None of graphs that are too large, or have too few nodes.

    Source   Qin and Rohe 2013 (regularised spectral clustering): those of the largest eigenvalues of
             (D + tau)^-1/2 A (D + tau)^-1/2, tau the mean degree, so that small components do not come first
    Ranks    all call; rank 0 makes them, and all have its bits
    """
    k = min(dimension, COLUMNS, block.n - 2)
    counts, columns = block.global_rows(np.arange(block.n_real))
    sizes = group.gather_integers(np.array([len(columns)]))[:, 0].tolist()
    if k < 1 or block.n > MOST_NODES or not 0 < sum(sizes) <= MOST_ENTRIES:
        return None
    counts = group.gather_host(np.ascontiguousarray(counts, dtype=np.int64), block.rows.row_counts())
    columns = group.gather_host(np.ascontiguousarray(columns, dtype=np.int64), sizes)
    vectors = np.zeros((block.n, k), dtype=np.float32)
    with raise_together(group, "finding eigenvectors of the graph"):
        if group.rank == 0:
            vectors[...] = leading(counts, columns, k)
    own = np.zeros((block.n_own, k), dtype=np.float32)
    own[: block.n_real] = group.broadcast(vectors)[block.lo : block.lo + block.n_real]
    return own


def leading(counts: np.ndarray, columns: np.ndarray, k: int) -> np.ndarray:
    """[n, k] float64, the eigenvectors, those of the largest eigenvalues first; the largest entry of each is
    positive.

    counts   [n] stored entries of each row     columns   [nnz] their columns
    """
    from scipy.sparse.linalg import eigsh

    n = len(counts)
    A = sp.csr_array((np.ones(len(columns)), columns, np.concatenate([[0], np.cumsum(counts)])), shape=(n, n))
    factor = sp.diags_array(1 / np.sqrt(counts + counts.mean()))
    values, found = eigsh(factor @ A @ factor, k=k, which="LA", v0=np.ones(n))
    found = found[:, np.argsort(-values, kind="stable")]
    return found * np.sign(found[np.abs(found).argmax(axis=0), np.arange(k)])
