"""Compiled steps on residual graphs that one rank holds whole; see residual.c."""

import ctypes

import numpy as np

from app.errors import NumericsError
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p


class _Graph(ctypes.Structure):
    _fields_ = (
        ("wide", Long),
        *((name, Pointer) for name in ("indptr", "indices", "degree", "chosen_at", "worth")),
        ("change", Long * 4),
    )  # fmt: skip


CORE = function("lk_core_step", ctypes.POINTER(_Graph), Pointer, *(Long,) * 3, *(Pointer,) * 3, returns=Long)
STEP = function("lk_residual_step", ctypes.POINTER(_Graph), Pointer, Long, Long, Long, Pointer, returns=Long)


class _Fleet(ctypes.Structure):
    _fields_ = (
        *((name, Pointer) for name in ("starts", "first", "graph", "worth", "near", "degree", "chosen_at")),
        ("width", Long), ("closed", Long), ("removed", Pointer),
    )  # fmt: skip


FLEET_STEP = function("lk_fleet_step", ctypes.POINTER(_Fleet), Long, *(Pointer,) * 4)


def available() -> bool:
    """True where the library was built."""
    return None not in (STEP, CORE)


class ResidualSteps:
    """What a step changes of one environment; the arrays must stay where they are.

    indptr, indices     rows of the whole graph, both int32 or both int64
    degree, chosen_at   [rows] int32, of which each step changes some
    worth               [largest degree + 1] int64, what a node adds to the third of the totals
    """

    def __init__(
        self, indptr: np.ndarray, indices: np.ndarray, degree: np.ndarray, chosen_at: np.ndarray,
        worth: np.ndarray,
    ) -> None:  # fmt: skip
        self.degree, self._before = degree, None
        self._indptr, self._held = indptr, (indices, degree, chosen_at, worth)
        if indptr.dtype != indices.dtype or indptr.dtype not in (np.int32, np.int64):
            raise NumericsError("residual graph: row offsets and columns must have one type, int32 or int64")
        self._graph = _Graph(int(indptr.itemsize == 8), address(indptr), *map(address, self._held))

    def step(self, nodes: np.ndarray, chosen: int, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Nodes [k] int64 leave: the first `chosen` of them chosen in a transition, the others ruled out.

        returns   [4] int64, the change of nodes with live edges, of degrees, of worth, of nodes without live
                  edges that are still in; the nodes [m] that lost an edge, each as often as it did
        """
        room = int((self._indptr[nodes + 1] - self._indptr[nodes]).sum())
        touched = np.empty(room, dtype=np.int64)
        self._graph.change[:] = (0, 0, 0, 0)
        losses = STEP(self._graph, address(nodes), len(nodes), chosen, step, address(touched))
        return np.array(self._graph.change[:], dtype=np.int64), touched[:losses]

    def core_step(self, nodes: np.ndarray, step: int, least: int) -> tuple[np.ndarray, np.ndarray]:
        """Nodes [k] int64 are chosen in a transition, and all fall that have fewer than `least` neighbours.

        returns   [3] int64, the change of nodes with live edges, of degrees, of worth; the nodes [m] int64
                  that left or lost an edge, each once
        """
        if self._before is None:
            self._before = np.full(len(self.degree), -1, dtype=np.int32)
            self._falling, self._listed = np.empty((2, len(self.degree)), dtype=np.int64)
        self._graph.change[:] = (0, 0, 0, 0)
        room = map(address, (self._before, self._falling, self._listed))
        listed = CORE(self._graph, address(nodes), len(nodes), step, least, *room)
        return np.array(self._graph.change[:3], dtype=np.int64), self._listed[:listed].copy()


class FleetSteps:
    """Steps of many environments of several graphs in one call; the arrays must stay where they are.

    starts, near        rows of all graphs, one behind the other, int64 and int32
    first               [graphs] int64, with which row each begins
    graph               [places] int64     worth as in ResidualSteps
    degree, chosen_at   [places * width] int32; node v of place i is at i * width + v
    closed              True: neighbours are ruled out
    """

    def __init__(
        self, starts: np.ndarray, first: np.ndarray, graph: np.ndarray, worth: np.ndarray, near: np.ndarray,
        degree: np.ndarray, chosen_at: np.ndarray, width: int, closed: bool,
    ) -> None:  # fmt: skip
        removed = np.empty(1 + int(np.diff(starts).max(initial=0)), dtype=np.int64)
        self._held = starts, first, graph, worth, near, degree, chosen_at, removed
        *arrays, room = map(address, self._held)
        self._fleet = _Fleet(*arrays, width, int(closed), room)

    def step(self, places: np.ndarray, nodes: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Choose nodes[i] in places[i], in its transition steps[i]; all [k] int64.

        returns   [k, 4] int64, the changes of `ResidualSteps.step`
        """
        change = np.empty((len(places), 4), dtype=np.int64)
        each = map(address, (places, nodes, steps, change))
        FLEET_STEP(self._fleet, len(places), *each)
        return change
