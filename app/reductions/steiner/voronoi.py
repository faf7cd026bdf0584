"""The nearest of some nodes to every node of a graph of whole lengths, and the way there."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from app.graphs.graph import narrow
from app.graphs.keys import sorted_set
from app.graphs.steiner import SteinerCore


def nearest(core: SteinerCore, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The way of each node to the nearest of some [k]: how long it is [n] int64, the next node on it, the
    last.

    Where no way is, the length is -1 and a node is its own next and last one. Of equal ways the next node
    is the smallest.
    """
    matrix = narrow(
        sp.csr_array((core.lengths.astype(float), core.indices, core.indptr), shape=(core.n,) * 2)
    )
    found = dijkstra(matrix, indices=sorted_set(nodes), min_only=True)  # whole numbers below 2^53: exact
    distance = np.where(np.isfinite(found), found, -1).astype(np.int64)
    rows, columns = core.row_of(), core.indices.astype(np.int64)
    on_way = (distance[columns] >= 0) & (distance[columns] + core.lengths == distance[rows])
    before = np.full(core.n, core.n, dtype=np.int64)
    np.minimum.at(before, rows[on_way], columns[on_way])
    before = np.where(before == core.n, np.arange(core.n), before)
    last = before
    while (last[last] != last).any():
        last = last[last]
    return distance, before, last
