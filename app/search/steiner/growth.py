"""Growth of clusters by their prizes: a tree with prizes, whose best part costs at most (2 - 1/(n-1)) times
what is best, but for rounding times down to ticks.

Every node with a prize begins as a cluster, and clusters grow at equal speed. Where two meet along an edge
they become one; one that has grown by all its prizes sleeps till another meets it. Clusters of terminals
never sleep.

Source   Goemans and Williamson, SIAM Journal on Computing 1995; edges that are looked at when they may be
         full: Hegde, Indyk and Schmidt, A fast, adaptive variant of the Goemans-Williamson scheme for the
         prize-collecting Steiner tree problem, DIMACS challenge 2014
Differs  one heap of all edges; an edge is looked at again once a cluster that slept is met; no root
"""

import ctypes

import numpy as np

from app.graphs.prizes import Prized
from app.graphs.steiner import SteinerCore
from app.native.library import address, function
from app.search.steiner.plain_growth import Clusters

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GROWTH = function("lk_prize_growth", Long, *[Pointer] * 6, returns=Long)
WIDEST, FINEST = 1 << 58, 1 << 20  # of times in ticks; ticks of a unit, at most


def grown_edges(asked: Prized, compiled: bool = True) -> np.ndarray:
    """[m] int64, entries of the core whose edges join the clusters: a forest, in the order of the joins."""
    core = asked.core
    total = int(asked.prizes.sum()) + int(core.lengths.sum()) + 1
    ticks = min(FINEST, 1 << max((WIDEST // (total * (len(core.terminals) + 1))).bit_length() - 1, 0))
    prizes, lengths = asked.prizes * ticks, core.lengths * ticks
    prizes[core.terminals] = total * ticks  # longer than any growth: terminals never sleep
    if not compiled or GROWTH is None:
        return np.array(Clusters(core, lengths, prizes).joined(), dtype=np.int64)
    return _compiled(core, lengths, prizes)


def _compiled(core: SteinerCore, lengths: np.ndarray, prizes: np.ndarray) -> np.ndarray:
    joined = np.empty(max(core.n, 1), dtype=np.int64)
    indices, row = np.ascontiguousarray(core.indices, np.int32), core.row_of().astype(np.int32)
    arrays = map(address, (core.indptr, indices, row, lengths, prizes, joined))
    count = GROWTH(core.n, *arrays)
    if count < 0:
        raise MemoryError("growth by prizes")
    return joined[:count].copy()
