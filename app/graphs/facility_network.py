"""Facility location in a large network: paths are searched when they are asked for.

Nodes are numbered anew in the order of a depth-first walk over shortest paths, so that those with near
numbers are near each other, mostly.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from app.errors import GraphError, Halted
from app.graphs.facility import CENTER, PIECE, Demands, Distances, ManySites, Question, Sites, priced
from app.graphs.joined import components
from app.graphs.lists import ranges
from app.graphs.orders import places_of
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
NEAREST = function(
    "lk_network_nearest", Long, *[Pointer] * 3, Long, Pointer, *[Long] * 3, *[Pointer] * 3, returns=Long
)
LONGEST = 1 << 20  # of an edge, or as many as there are nodes: rings of so many lists are gone through
LOOKS = 32  # of these for each node and entry, before a heap is quicker
LARGE = 1 << 19  # nodes of a network whose walk takes the lowest node of several before each
ROOM = 1 << 62  # of numbers of a path and a node, and of what customers cost that no facility reaches


@dataclass(frozen=True, eq=False)
class NetworkSites(ManySites):
    """A question like Sites, of a network; nodes in the order of the walk.

    indptr [nodes + 1], indices [entries], lengths [entries]   int64, int32, int64, at least 0; symmetric
    places     [m] int32, nodes that may be facilities, ascending    customers  [n] int32, likewise
    demand     [n] int64, at least 1: a customer costs its demand times the length of a shortest path
    opening    [m] int64     forced  [m] bool     most  facilities, at most
    never      longer than any path      far   what a customer costs that no path leads to
    radius     of `within`: a customer costs 1 where that is `radius` or more, else 0
    compiled   False: the same without the compiled kernel
    """

    indptr: np.ndarray
    indices: np.ndarray
    lengths: np.ndarray
    places: np.ndarray
    customers: np.ndarray
    demand: np.ndarray
    opening: np.ndarray
    forced: np.ndarray
    most: int
    never: int
    far: int
    largest: bool = False
    radius: int = 0
    compiled: bool = True

    @property
    def nodes(self) -> int:
        """Nodes of the network."""
        return len(self.indptr) - 1

    @cached_property
    def network(self) -> sp.csr_array:
        """The lengths, exact in float64."""
        return sp.csr_array(
            (self.lengths.astype(np.float64), self.indices, self.indptr), shape=(self.nodes, self.nodes)
        )

    def away(self, nodes: np.ndarray) -> np.ndarray:
        """[k, nodes] int64, from nodes [k] to all; `never` where there is no path."""
        from scipy.sparse.csgraph import dijkstra  # a fair share of a program's start, for few runs

        found = dijkstra(self.network, directed=True, indices=nodes)
        return np.where(np.isfinite(found), found, self.never).astype(np.int64)

    def nearest(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nearest of nodes [k] to each, [nodes] int64, -1: none; and how far that is, else `never`."""
        from scipy.sparse.csgraph import dijkstra  # as above

        if not len(chosen):
            return np.full(self.nodes, -1), np.full(self.nodes, self.never)
        found, _, source = dijkstra(
            self.network, directed=True, indices=chosen, min_only=True, return_predecessors=True
        )
        there = np.isfinite(found)
        return np.where(there, source, -1), np.where(there, found, self.never).astype(np.int64)

    def lengths_to(self, chosen: np.ndarray) -> np.ndarray:
        """[nodes] int64, how far the nearest of different nodes [k] is from each, else `never`."""
        arrays = self.indptr, self.indices, self.lengths
        found = by_ring(*arrays, chosen, self.never) if self.compiled else None
        return self.nearest(chosen)[1] if found is None else found[0]

    def costs(self, away: np.ndarray) -> np.ndarray:
        """[..., n] int64, what customers cost at distances."""
        lost = away >= self.never
        found = np.where(lost, 0, away) * self.demand
        if self.radius:
            return (lost | (found >= self.radius)).astype(np.int64)
        return np.where(lost, self.far, found)

    def least(self, chosen: np.ndarray) -> np.ndarray:
        """[n] int64, what customers cost with the facilities of a mask [m] bool; `far` with none. What was
        told last is kept: of one choice several things are asked.
        """
        if not self._last or not np.array_equal(self._last[0], chosen):
            self._last[:] = chosen.copy(), self.costs(self.lengths_to(self.places[chosen])[self.customers])
        return self._last[1].copy()

    @cached_property
    def _last(self) -> list[np.ndarray]:
        """A mask, and what `least` told of it; empty: it was not asked."""
        return []

    def within(self, radius: int) -> "NetworkSites":
        """The question how many customers cost `radius` or more."""
        none = np.zeros(self.m, dtype=np.int64)
        found = replace(self, opening=none, largest=False, radius=radius)
        found.__dict__.update(beside=self.beside, network=self.network)
        return found

    def table(self, heard: Callable[[], bool] | None = None) -> Sites:
        """The same question with a table of all pairs.

        heard   asked again and again; Halted is raised where it is true
        """
        cost, size = np.empty((self.m, self.n), dtype=np.int64), max(1, PIECE // self.nodes)
        for at in range(0, self.m, size):
            if heard is not None and heard():
                raise Halted("asked to stop")
            cost[at : at + size] = self.costs(self.away(self.places[at : at + size])[:, self.customers])
        return Sites(cost, self.opening, self.forced, self.most, self.far, self.largest)

    @cached_property
    def part(self) -> np.ndarray:
        """[nodes] int64, the connected part of each node, numbered by their lowest nodes."""
        return components(self.indptr, self.indices)

    @cached_property
    def beside(self) -> np.ndarray:
        """[n] int32, for each customer the number of the place nearest to it; -1: there is none."""
        if self.m == self.nodes:  # each is its own
            return self.customers.astype(np.int32)
        node = self.nearest(self.places)[0][self.customers]
        found = np.searchsorted(self.places, np.maximum(node, 0)).astype(np.int32)
        found[node < 0] = -1
        return found


def question_of_network(
    name: str, kind: str, distances: Distances, demands: Demands, opening: Demands | None, most: int,
    inside: np.ndarray, barred: np.ndarray,
) -> Question:  # fmt: skip
    """What is asked of an instance, as question_of, without a table. Raises GraphError, also of `priced`."""
    graph, n = distances.graph, distances.n
    network = sp.csr_array((distances.lengths, graph.indices, graph.indptr), shape=(n, n))
    order, longest, apart = _walk(network, distances.compiled)
    places, customers = order[~barred[order]], order[demands.amounts[order] > 0]
    prices = priced(name, distances, demands, opening, (places, customers), longest, apart, ROOM)
    if (longest + 2) * max(n, 1) > ROOM:
        raise GraphError(f"{name}: paths are too long to be counted; lengths of fewer digits would be right")
    number = places_of(order)
    renumbered = _renumbered(network, order, number)
    # No shortest path has an edge longer than `longest`. So none needs to be: then what a search tries is
    # twice that at most, and the number of such a path and a node, below 2 ROOM, fits into 63 bits.
    lengths = np.minimum(renumbered.data, longest + 1)
    forced = np.zeros(n, dtype=bool)
    forced[inside] = True
    sites = NetworkSites(
        renumbered.indptr.astype(np.int64), renumbered.indices.astype(np.int32), lengths,
        number[places].astype(np.int32), number[customers].astype(np.int32), prices.demand[customers],
        prices.fees[places], forced[places], min(most, len(places)), longest + 1, prices.far, kind == CENTER,
        compiled=distances.compiled,
    )  # fmt: skip
    none = np.zeros(n, dtype=np.int64)
    found = components(sites.indptr, sites.indices, compiled=distances.compiled) if apart else none
    sites.__dict__["part"] = found
    return Question(sites, places, customers, prices.demand, prices.fees, prices.unit)


def _renumbered(network: sp.csr_array, order: np.ndarray, number: np.ndarray) -> sp.csr_array:
    """The network with node order[i] as i, neighbours ascending."""
    counts = np.diff(network.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    entries = ranges(network.indptr[order], counts)
    found = sp.csr_array((network.data[entries], number[network.indices[entries]], indptr), network.shape)
    found.sort_indices()
    return found


def by_ring(
    ptr: np.ndarray, near: np.ndarray, lengths: np.ndarray, chosen: np.ndarray, never: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """[nodes] int64, how far the nearest of different nodes [k] is from each, `never`: there is none; [nodes]
    int32, the node before each on the way from there, of several the lowest, where no length is 0; -1: none.
    None where there is no kernel, or lengths are so large that a heap is quicker.
    """
    n, longest = len(ptr) - 1, int(lengths.max(initial=0))
    if NEAREST is None or longest > max(LONGEST, n):
        return None
    away, before = np.full(n, never, dtype=np.int64), np.full(n, -1, dtype=np.int32)
    room, chosen = np.empty(2 * n + longest + 1, np.int32), np.ascontiguousarray(chosen, np.int64)
    late = NEAREST(
        n, *map(address, (ptr, near, lengths)), len(chosen), address(chosen), longest,
        LOOKS * (n + len(near)), never, *map(address, (away, room, before)),
    )  # fmt: skip
    return None if late else (away, before)


def _walk(network: sp.csr_array, compiled: bool) -> tuple[np.ndarray, int, bool]:
    """Nodes in the order of a depth-first walk over shortest paths from the first node of each part; a length
    that no path exceeds, twice the longest of these; whether there are several parts.
    """
    from scipy.sparse.csgraph import depth_first_order  # as above

    n = network.shape[0]
    if not n:
        return np.zeros(0, dtype=np.int64), 0, False
    roots = np.unique(components(network.indptr, network.indices, compiled=compiled), return_index=True)[1]
    away, before = _paths(network, roots, compiled)
    before = np.where(before < 0, n, before)  # a node more, from which all parts begin
    tree = sp.csr_array((np.ones(n), (before, np.arange(n))), shape=(n + 1, n + 1))
    order = depth_first_order(tree, n, directed=True, return_predecessors=False)[1:]
    return order.astype(np.int64), 2 * int(away.max()), len(roots) > 1


def _paths(network: sp.csr_array, roots: np.ndarray, compiled: bool) -> tuple[np.ndarray, np.ndarray]:
    """[n] how far the nearest root is, which all nodes have, and [n] the node before each, below 0: none."""
    from scipy.sparse.csgraph import dijkstra  # as above

    lengths = network.data.astype(np.int64)
    lowest = network.shape[0] >= LARGE and lengths.min(initial=1) > 0
    if lowest and compiled:
        ptr, near = network.indptr.astype(np.int64), network.indices.astype(np.int32)
        found = by_ring(ptr, near, lengths, roots, 1 << 62)
        if found is not None:
            return found
    away, before, _ = dijkstra(
        network.astype(np.float64), directed=True, indices=roots, min_only=True, return_predecessors=True
    )
    return away, _lowest_before(network, away) if lowest else before


def _lowest_before(network: sp.csr_array, away: np.ndarray) -> np.ndarray:
    """[n] int64, as by_ring tells, of lengths above 0: the lowest neighbour that is nearer by the length."""
    tails = np.repeat(np.arange(len(away)), np.diff(network.indptr))
    last = np.flatnonzero(away[tails] + network.data == away[network.indices])[::-1]
    before = np.full(len(away), -1)
    before[network.indices[last]] = tails[last]  # what is written last stays: the lowest tail
    return before


# ---- plain choices -----------------------------------------------------------------------------------------


def along_walk(sites: NetworkSites) -> np.ndarray:
    """[m] bool: after the forced facilities one for each part of the network, then places beside customers
    that are equally far apart on the walk.

    Where opening costs something there are as many as cost least, of powers of two and `most`, which alone
    may be enough for all parts.
    """
    powers = [1 << k for k in range(sites.most.bit_length())] if sites.opening.any() else []
    return min((_along(sites, count) for count in [*powers, sites.most]), key=sites.value)


def _along(sites: NetworkSites, count: int) -> np.ndarray:
    chosen, beside = sites.forced.copy(), sites.beside[sites.beside >= 0]
    part = sites.part[sites.places]
    first = beside[np.unique(part[beside], return_index=True)[1]]
    first = first[~np.isin(part[first], part[chosen])]
    chosen[first[: max(count - int(np.count_nonzero(chosen)), 0)]] = True
    left = count - int(np.count_nonzero(chosen))
    if len(beside) and left > 0:
        chosen[beside[(2 * np.arange(left) + 1) * len(beside) // (2 * left)]] = True
    if sites.m and not chosen.any():
        chosen[0] = True
    spare = np.flatnonzero(~chosen)[: max(count - int(np.count_nonzero(chosen)), 0)]
    if not sites.opening.any():
        chosen[spare] = True
    return chosen
