"""The replay of logs of reductions by app/native/check_cover.c and check_cut.c.

verify.py and ../cut/verify.py do the same with sets and dictionaries. None stands for a log that is not
proved, and for want of kernels, memory, or int32 indices.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from app.graphs.graph import Graph
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
NEW = function("lk_check_new", Long, Pointer, Pointer, Pointer, returns=Pointer)
FREE = function("lk_check_free", Pointer)
COVER = function("lk_check_cover", Pointer, Pointer, Long)
RUN = function("lk_check_run", Pointer, Pointer, Long, Long, Long, returns=Long)
REST = function("lk_check_rest", Pointer, Pointer)
KERNEL = function("lk_check_kernel", Pointer, Pointer, Pointer, Pointer, Pointer)
CUT_NEW = function("lk_check_cut_new", Long, Pointer, Pointer, Pointer, returns=Pointer)
CUT_FREE = function("lk_check_cut_free", Pointer)
CUT_EXPECT = function("lk_check_cut_expect", Pointer, Long, Long, Long)
CUT_RUN = function("lk_check_cut_run", Pointer, Pointer, Long, Long, Long, returns=Long)
CUT_REST = function("lk_check_cut_rest", Pointer, Pointer)
CUT_KERNEL = function("lk_check_cut_kernel", Pointer, Pointer, Pointer, Pointer, Pointer)

STEPS = 50_000  # of a log in one call: signals are heard in between


def available(graph: Graph) -> bool:
    """True where the library was built, and holds such a graph."""
    return None not in (NEW, CUT_NEW) and graph.indices.dtype == np.int32


class Replayed(NamedTuple):
    """What a log leaves: its nodes [k], indptr [k+1] and indices of their graph, and the offset.

    weights   [k] of the nodes (covers), [nnz] of the entries (cuts)
    """

    offset: int
    indptr: np.ndarray
    indices: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray


def replay(graph: Graph, weight: np.ndarray, covered: np.ndarray, log: np.ndarray) -> Replayed | None:
    """Replay a log [words] int64 of a vertex cover, from the graph without the nodes covered [c].

    weight    [n] int64, positive
    """
    with _check(NEW, FREE, graph, weight) as state:
        if state is None:
            return None
        covered = np.ascontiguousarray(covered, dtype=np.int64)
        COVER(state, address(covered), len(covered))
        if not _run(RUN, state, log):
            return None
        counts = np.empty(3, dtype=np.int64)
        REST(state, address(counts))
        offset, k, entries = counts.tolist()
        indptr, indices = np.empty(k + 1, dtype=np.int64), np.empty(entries, dtype=np.int32)
        nodes, weights = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
        KERNEL(state, address(indptr), address(indices), address(nodes), address(weights))
        return Replayed(offset, indptr, indices, nodes, weights)


def replay_cut(
    graph: Graph, weights: np.ndarray, ties: dict[int, tuple[int, bool]], log: np.ndarray
) -> Replayed | None:
    """Replay a log [words] int64 of a maximum cut.

    weights   [nnz] int64 in the log's unit
    ties      for nodes that are to be tied: to which, and whether apart from it
    """
    with _check(CUT_NEW, CUT_FREE, graph, weights) as state:
        if state is None:
            return None
        for u, (v, apart) in ties.items():
            CUT_EXPECT(state, u, v, apart)
        if not _run(CUT_RUN, state, log):
            return None
        counts = np.empty(4, dtype=np.int64)
        CUT_REST(state, address(counts))
        offset, k, entries, untied = counts.tolist()
        indptr, indices = np.empty(k + 1, dtype=np.int64), np.empty(entries, dtype=np.int32)
        nodes, rest = np.empty(k, dtype=np.int64), np.empty(entries, dtype=np.int64)
        CUT_KERNEL(state, address(indptr), address(indices), address(rest), address(nodes))
        return None if untied else Replayed(offset, indptr, indices, nodes, rest)


@contextmanager
def _check(new: Any, free: Any, graph: Graph, weights: np.ndarray) -> Iterator[int | None]:
    """The state of a check that has just begun, or None."""
    if not available(graph):
        yield None
        return
    indptr, indices, weights = (
        np.ascontiguousarray(array, dtype=dtype)
        for array, dtype in ((graph.indptr, np.int64), (graph.indices, np.int32), (weights, np.int64))
    )
    state = new(graph.n, address(indptr), address(indices), address(weights))
    try:
        yield state
    finally:
        if state:
            free(state)


def _run(run: Callable[[int, int, int, int, int], int], state: int, log: np.ndarray) -> bool:
    """Whether all of a log is proved."""
    log, at = np.ascontiguousarray(log, dtype=np.int64), 0
    while 0 <= at < len(log):
        at = run(state, address(log), len(log), at, STEPS)
    return at >= 0
