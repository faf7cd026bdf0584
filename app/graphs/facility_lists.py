"""The places nearest to each customer, for questions without a table of all pairs."""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from app.errors import Halted
from app.graphs.facility_network import NetworkSites
from app.graphs.facility_points import PointSites
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
NETWORK = function(
    "lk_network_lists", Long, *(Pointer,) * 3, Long, *(Pointer,) * 2, Long, Long, *(Pointer,) * 4,
    returns=Long,
)  # fmt: skip
WIDTH, PIECE = 64, 1 << 20  # places in lists whose length is not known; distances at a time
HEARD = 1 << 17  # places in lists between two looks whether the run is to stop


@dataclass(frozen=True, eq=False)
class Lists:
    """The nearest places of each customer, the nearest first.

    near    [n, width] int32     away  [n, width] int64, how far they are     counts  [n] int64, how many
    limit   [n] int64, all places that are nearer are in the list
    """

    near: np.ndarray
    away: np.ndarray
    counts: np.ndarray
    limit: np.ndarray

    @property
    def held(self) -> np.ndarray:
        """[n, width] bool, where there is a place."""
        return np.arange(self.near.shape[1]) < self.counts[:, None]


def lists_of(
    sites: NetworkSites | PointSites, customers: np.ndarray, width: int, compiled: bool = True,
    heard: Callable[[], bool] | None = None,
) -> Lists:  # fmt: skip
    """Lists of `width` places, m at most, for customers [k] (their numbers).

    heard   asked again and again; Halted is raised where it is true
    Raises MemoryError
    """
    if isinstance(sites, PointSites):
        make, each = _of_points, width
    elif not compiled or NETWORK is None:
        make, each = _by_scipy, sites.nodes
    else:
        make, each = _of_network, width * (PIECE // HEARD)
    parts = []
    for piece in _pieces(customers, each):
        if heard is not None and heard():
            raise Halted("asked to stop")
        parts.append(make(sites, piece, width))
    return _joined(parts)


def _of_network(sites: NetworkSites, customers: np.ndarray, width: int) -> Lists:
    """By the kernel. Raises MemoryError."""
    n, near = len(customers), np.ascontiguousarray(sites.customers[customers])
    found, away = np.zeros((n, width), dtype=np.int32), np.zeros((n, width), dtype=np.int64)
    counts, limit = (np.empty(n, dtype=np.int64) for _ in range(2))
    number = np.full(sites.nodes, -1, dtype=np.int32)
    number[sites.places] = np.arange(sites.m)
    network = (address(each) for each in (sites.indptr, sites.indices, sites.lengths))
    made = (address(each) for each in (found, away, counts, limit))
    if NETWORK(sites.nodes, *network, n, address(near), address(number), width, sites.never, *made):
        raise MemoryError
    return Lists(found, away, counts, limit)


def lists_within(
    sites: NetworkSites | PointSites, customers: np.ndarray, costs: np.ndarray, one: int = 1,
    compiled: bool = True,
) -> Iterator[tuple[np.ndarray, Lists, np.ndarray]]:  # fmt: skip
    """Customers [k] part by part, each once, with lists, and a mask [part, width] of them. Parts may be
    empty, so that a caller can look at the clock.

    Masked are all places at which `one` times what they cost is below costs [k], one * worst + 1 at most.
    Raises MemoryError
    """
    left, width = np.arange(len(customers)), WIDTH
    while len(left):
        width = min(width, sites.m)
        size = max(1, PIECE // width)
        at, left = left[:size], left[size:]
        part = customers[at]
        lists, parts = lists_of(sites, part, width, compiled), one * sites.demand[part]
        reached = parts * lists.limit >= costs[at]
        inside = lists.held & (parts[:, None] * lists.away < costs[at, None])
        told = Lists(*(getattr(lists, name)[reached] for name in Lists.__annotations__))
        yield part[reached], told, inside[reached]
        left = np.concatenate([left, at[~reached]])
        width *= 1 + (not reached.any())


def _pieces(customers: np.ndarray, each: int) -> list[np.ndarray]:
    """Customers in parts of about PIECE numbers."""
    size = max(1, PIECE // max(each, 1))
    return [customers[at : at + size] for at in range(0, max(len(customers), 1), size)]


def _joined(parts: list[Lists]) -> Lists:
    """One after the other."""
    return Lists(*(np.concatenate([getattr(each, name) for each in parts]) for name in Lists.__annotations__))


def _by_scipy(sites: NetworkSites, customers: np.ndarray, width: int) -> Lists:
    """The same without the library; of places as far as the last others may be in the list."""
    away = sites.away(sites.customers[customers])[:, sites.places]
    order = np.argsort(away, axis=1, kind="stable")[:, : width + 1]
    far = np.take_along_axis(away, order, axis=1)
    limit = far[:, width] if far.shape[1] > width else np.full(len(away), sites.never)
    counts = np.count_nonzero(far[:, :width] < sites.never, axis=1)
    return Lists(order[:, :width].astype(np.int32), far[:, :width], counts, limit)


def _of_points(sites: PointSites, customers: np.ndarray, width: int) -> Lists:
    """By a k-d tree, whose squares may differ from ours in the last bit: so what is as far as the last, or a
    unit less, may lack.
    """
    near = sites.tree.query(sites.customer[customers], width)[1].reshape(len(customers), width)
    away = sites.away(near, customers[:, None])
    order = np.lexsort((near, away), axis=1)
    near, away = (np.take_along_axis(each, order, axis=1) for each in (near, away))
    limit = np.full(len(customers), sites.never)
    if width < sites.m:
        limit = np.maximum(away[:, -1] - 1, 0)
    return Lists(near.astype(np.int32), away, np.full(len(customers), width), limit)
