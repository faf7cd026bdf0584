"""Local search for facilities of a large network (app/search/facility/tableless.py).

Each node knows the two nearest open facilities, by length of path and then by number, and what is asked of a
place is asked along paths from it. They need not go on where they are no shorter than d2 of a node v: with
|f, v| >= d2(v) it is |f, u| = |f, v| + |v, u| >= d2(v) + |v, u| >= d2(u) for all u beyond v, so that nothing
changes for them. In the same way all nodes on a shortest path from a facility to one of the nodes that it is
among the two nearest of are such nodes, too, ties by numbers included: a facility that opens is told from
node to node, and where one closes, the second facility of its nodes is that of a neighbour, or its first.
"""

import ctypes

import numpy as np

from app.graphs.facility_network import NetworkSites
from app.native.library import address, function
from app.search.facility import network_plain
from app.search.facility.tableless import FIXED, NUMBERS, TablelessSearch

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ARRAYS = (
    "ptr", "near", "lengths", "places", "customers", "demand", "opening", "forced", "may",
    "best_open", "slot", "inside", "first", "second", "touched", "window", "journal", "d1", "d2",
    "away", "mark", "loss", "extra", "stamp",
)  # fmt: skip
GIVEN, OWN = (*FIXED, "far"), (*NUMBERS, "searches")


class _Network(ctypes.Structure):
    _fields_ = (
        ("nodes", Long),
        ("m", Long),
        ("n", Long),
        *((name, Pointer) for name in ARRAYS),
        *((name, Long) for name in (*GIVEN, *OWN)),
        ("random", ctypes.c_uint64),
        ("heap", Pointer),
        ("failed", Long),
    )


P = ctypes.POINTER(_Network)
SEARCH = function("lk_network_search", P, Long, returns=Long)
LOAD = function("lk_network_load", P, returns=Long)
FARTHEST = function("lk_network_farthest", P, Pointer, returns=Long)


class NetworkSearch(TablelessSearch):
    """A search of a network; facilities are told by their nodes.

    slot, may, best_open, opening, stamp   [nodes]     inside [slots]
    first, second, d1, d2                  [nodes]; `nodes` and `never`: there is none
    window                                 [m] int32, the places of a shake, by length of path
    away, mark                             [nodes] of one search of paths, and its number
    """

    arrays, fixed, kernels, plain = ARRAYS, GIVEN, (SEARCH, LOAD), network_plain
    numbers = (*OWN, "random")

    def __init__(self, sites: NetworkSites, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        nodes = self.nodes = sites.nodes
        self.ptr, self.near, self.lengths = sites.indptr, sites.indices, sites.lengths
        self.places, self.customers, self.far = sites.places, sites.customers, sites.far
        self.demand, self.opening = (np.zeros(nodes, dtype=np.int64) for _ in range(2))
        self.demand[sites.customers], self.opening[sites.places] = sites.demand, sites.opening
        self.forced, self.may, self.best_open = (np.zeros(nodes, dtype=np.uint8) for _ in range(3))
        self.forced[sites.places], self.may[sites.places] = sites.forced, 1
        self._set_best(start)
        slots = self.slots = max(sites.most, int(np.count_nonzero(start)), 1) + 1
        self.slot, self.inside = np.full(nodes, -1, dtype=np.int32), np.zeros(slots, dtype=np.int32)
        self.first, self.second, self.touched = (np.zeros(nodes, dtype=np.int32) for _ in range(3))
        self.window = np.zeros(sites.m, dtype=np.int32)
        self.d1, self.d2, self.away, self.mark, self.stamp = (
            np.zeros(nodes, dtype=np.int64) for _ in range(5)
        )
        self.loss, self.extra = (np.zeros(slots, dtype=np.int64) for _ in range(2))
        self.searches = 0
        self._make(sites, start, seed, compiled)
        self._begin(_Network(nodes, sites.m, sites.n))

    def _set_best(self, solution: np.ndarray) -> None:
        self.best_open[:] = 0
        self.best_open[self.places[solution.astype(bool)]] = 1

    def solution(self) -> np.ndarray:
        """[m] bool, the best solution, a copy."""
        return self.best_open[self.places].astype(bool)

    def open_farthest(self, beside: np.ndarray) -> None:
        """Facilities more, up to `most`, fewer where that is open: for a choice that is made step by step.

        Each is the node of beside [n] int32 (-1: none) of the customer that costs most; of equal ones
        it is the first.
        """
        if self.compiled:
            self._call(FARTHEST, address(beside))
        else:
            network_plain.open_farthest(self, beside)

    def opened(self) -> np.ndarray:
        """[m] bool, what is open."""
        return self.slot[self.places] >= 0


def farthest_nodes_first(sites: NetworkSites, compiled: bool = True) -> np.ndarray:
    """[m] bool: the place nearest to the customer that costs most, again and again (Gonzalez 1985).

    Parts of the network without a facility come first, so that all have one where that is possible.
    """
    chosen, served = sites.forced.copy(), np.flatnonzero(sites.beside >= 0)
    if not (len(served) and sites.most):
        return chosen
    if not chosen.any():
        chosen[sites.beside[served[0]]] = True
    told = NetworkSearch(sites, chosen, 0, compiled)
    told.open_farthest(np.where(sites.beside < 0, -1, sites.places[sites.beside]).astype(np.int32))
    return told.opened()
