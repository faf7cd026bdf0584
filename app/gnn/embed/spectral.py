"""Eigenvectors of a graph, which read no features: what vectors of small graphs stand beside."""

from inspect import signature

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.comm.guard import raise_together
from app.rng import stream
from app.sparse.rowblock import RowBlock

MOST_NODES, MOST_ENTRIES = 1 << 15, 1 << 22  # of a graph that one rank holds for it
COLUMNS = 64  # at most
RESTARTS = 100  # of the Lanczos method, at most: on long paths and large grids it would go on for hours


def spectral_rows(group: Group, block: RowBlock, dimension: int) -> np.ndarray | None:
    """[n_own, k] float32, a row of leading eigenvectors for each node, k at most `dimension` and COLUMNS;
    None of graphs that are too large, have too few nodes, or whose eigenvectors lie too close together.

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
            found = leading(counts, columns, k)
            vectors[...] = 0 if found is None else found
    vectors = group.broadcast(vectors)
    if not vectors.any():  # columns have length 1
        return None
    own = np.zeros((block.n_own, k), dtype=np.float32)
    own[: block.n_real] = vectors[block.lo : block.lo + block.n_real]
    return own


def leading(counts: np.ndarray, columns: np.ndarray, k: int) -> np.ndarray | None:
    """[n, k] float64, the eigenvectors, those of the largest eigenvalues first; the largest entry of each is
    positive. None where they are not all found.

    counts   [n] stored entries of each row     columns   [nnz] their columns
    """
    from scipy.sparse.linalg import ArpackError, eigsh

    n = len(counts)
    A = sp.csr_array((np.ones(len(columns)), columns, np.concatenate([[0], np.cumsum(counts)])), shape=(n, n))
    factor = sp.diags_array(1 / np.sqrt(counts + counts.mean()))
    # From no eigenvector, as ones are of regular graphs; SciPy from 1.17 on also draws where it begins anew.
    draws = stream(0, "embed/eigenvectors")
    begin = {"v0": draws.uniform(-1, 1, n)} | ({"rng": draws} if "rng" in signature(eigsh).parameters else {})
    try:
        values, found = eigsh(factor @ A @ factor, k=k, which="LA", maxiter=RESTARTS, **begin)
    except ArpackError:
        return None
    found = found[:, np.argsort(-values, kind="stable")]
    return found * np.sign(found[np.abs(found).argmax(axis=0), np.arange(k)])
