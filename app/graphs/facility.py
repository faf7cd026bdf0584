"""Facility location in whole numbers: what each place costs for each customer, and what opening it costs.

Distances are lengths of shortest paths of a graph, or those of a Metric. What a customer costs is its demand
times the distance to the nearest open facility, objective = number * unit.
"""

import ctypes
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.errors import CaseError, GraphError
from app.graphs.fixed_point import vanished_words, whole_numbers
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.graphs.lengths import PLANE
from app.graphs.weights import decimals_of
from app.native.library import address, function

MEDIAN, CENTER, UNCAPACITATED = "median", "center", "uncapacitated"
LARGEST = 1 << 54  # of what all customers cost at the worst places together, and of opening, in units
LARGEST_ROUNDED = 1 << 34  # of lengths of many digits together, in units
PIECE = 1 << 22  # distances at a time
TRIED = 4  # nearest points by a tree, of which the nearest by whole numbers is taken
PAIR_BYTES, RADIUS_BYTES = 28, 96  # for each place and customer, at most; the latter of centres
PAIR_SECONDS = 2e-7  # to sort them, and for paths, about

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
PATHS = function(
    "lk_facility_paths", Long, *(Pointer,) * 3, Long, Pointer, Long, Pointer, returns=Long
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Sites:
    """A question: open at most `most` facilities, the forced ones among them.

    The value is the sum over customers of the least cost of an open facility, and what the open ones cost to
    open; with `largest` the largest of those least costs, and opening costs nothing.

    cost     [m, n] int64, of each customer at each facility, at least 0; `far` where no path leads there
    opening  [m] int64, at least 0       forced  [m] bool
    far      more than any cost; where some is `far`, more than the value of every solution without one
    """

    cost: np.ndarray
    opening: np.ndarray
    forced: np.ndarray
    most: int
    far: int
    largest: bool = False

    @property
    def m(self) -> int:
        """Facilities."""
        return self.cost.shape[0]

    @property
    def n(self) -> int:
        """Customers."""
        return self.cost.shape[1]

    @cached_property
    def near(self) -> np.ndarray:
        """[n, m] int32, the facilities of each customer, the cheapest first, of equal ones the first."""
        found = np.empty((self.n, self.m), dtype=np.int32)
        size = max(1, PIECE // max(self.m, 1))
        for at in range(0, self.n, size):
            found[at : at + size] = np.argsort(self.cost[:, at : at + size].T, axis=1, kind="stable")
        return found

    @cached_property
    def ordered(self) -> np.ndarray:
        """[n, m] int64, their costs."""
        found = np.empty((self.n, self.m), dtype=np.int64)
        size = max(1, PIECE // max(self.m, 1))
        for at in range(0, self.n, size):
            part = self.cost[:, at : at + size].T
            found[at : at + size] = np.take_along_axis(
                part, self.near[at : at + size].astype(np.int64), axis=1
            )
        return found

    @cached_property
    def worst(self) -> np.ndarray:
        """[n] int64, the most that each customer may cost."""
        return self.ordered[:, -1].copy() if self.m else np.zeros(self.n, dtype=np.int64)

    def least(self, chosen: np.ndarray) -> np.ndarray:
        """[n] int64, what customers cost with the facilities of a mask [m] bool; `far` with none."""
        found, nodes = np.full(self.n, self.far, dtype=np.int64), np.flatnonzero(chosen)
        size = max(1, PIECE // max(self.n, 1))
        for at in range(0, len(nodes), size):
            np.minimum(found, self.cost[nodes[at : at + size]].min(axis=0), out=found)
        return found

    def value(self, chosen: np.ndarray) -> int:
        """What the facilities of a mask [m] bool are worth."""
        least = self.least(chosen)
        if self.largest:
            return int(least.max(initial=0))
        return int(least.sum()) + int(self.opening[chosen].sum())

    def of(self, customers: np.ndarray) -> "Sites":
        """The same question of some customers alone."""
        cost = np.ascontiguousarray(self.cost[:, customers])
        return Sites(cost, self.opening, self.forced, self.most, self.far, self.largest)

    def within(self, radius: int) -> "Sites":
        """The question how many customers cost `radius` or more, with the same order of facilities."""
        found = Sites(
            (self.cost >= radius).astype(np.int64), np.zeros(self.m, dtype=np.int64), self.forced, self.most,
            2,
        )  # fmt: skip
        found.__dict__["near"] = self.near  # equal costs may follow in any order
        found.__dict__["ordered"] = (self.ordered >= radius).astype(np.int64)
        return found

    @cached_property
    def cheapest(self) -> np.ndarray:
        """[n] int64, the least that each customer may cost."""
        return self.cost.min(axis=0) if self.m else np.zeros(self.n, dtype=np.int64)

    @cached_property
    def radii(self) -> np.ndarray:
        """The costs that there are, ascending, each once; `largest` alone asks."""
        return sorted_set(self.cost)


class ManySites:
    """What questions without a table of all pairs have in common."""

    demand: np.ndarray
    opening: np.ndarray
    forced: np.ndarray
    never: int
    largest: bool

    def least(self, chosen: np.ndarray) -> np.ndarray:
        """[n] int64, what customers cost with the facilities of a mask [m] bool."""
        raise NotImplementedError

    @property
    def m(self) -> int:
        """Facilities."""
        return len(self.forced)

    @property
    def n(self) -> int:
        """Customers."""
        return len(self.demand)

    def value(self, chosen: np.ndarray) -> int:
        """What the facilities of a mask [m] are worth."""
        least = self.least(chosen)
        if self.largest:
            return int(least.max(initial=0))
        return int(least.sum()) + int(self.opening[chosen].sum())

    @property
    def worst(self) -> np.ndarray:
        """[n] int64, no customer that some facility can serve costs more."""
        return self.demand * (self.never - 1)

    @cached_property
    def cheapest(self) -> np.ndarray:
        """[n] int64, the least that each customer may cost."""
        return self.least(np.ones(self.m, dtype=bool))


class Distances:
    """Distances between the nodes of an instance: whole numbers of a unit.

    unit     a Fraction
    remark   of lengths that count as 0, for the log; "": none does
    """

    remark = ""

    def __init__(self, graph: Graph, metric: Any, compiled: bool) -> None:
        """Raises GraphError for lengths below 0."""
        self.graph, self.metric, self.compiled = graph, metric, compiled
        self._nearest: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # a mask, what `nearest` told
        if metric is not None:
            self.n, self.unit = metric.n, Fraction(repr(float(metric.unit)))
            return
        self.n = graph.n
        lengths = np.ones(len(graph.indices), np.float32) if graph.weights is None else graph.weights
        wrong = np.flatnonzero(~(lengths >= 0))
        if len(wrong):
            found = f"edge {graph.called_entry(int(wrong[0]))} has the length {lengths[wrong[0]]:g}"
            raise GraphError(f"{graph.name}: {found}; 0 or more would be right")
        rounded = max(LARGEST_ROUNDED, 16 * len(lengths))
        self.lengths, self.unit = counted(lengths, f"{graph.name}: the length of an edge", rounded)
        self.remark = vanished_words(lengths, float(self.unit), "lengths of edges")

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """[k, n] int64, to nodes [k] from all; -1 where there is no path."""
        if self.metric is not None:
            return self._rows_of_metric(nodes)
        nodes = np.ascontiguousarray(nodes, dtype=np.int64)
        if self.compiled and PATHS is not None and (int(self.lengths.sum()) + 2) * self.n < 1 << 62:
            found = np.empty((len(nodes), self.n), dtype=np.int64)
            graph = self.graph
            ptr, near = (
                np.ascontiguousarray(graph.indptr, np.int64),
                np.ascontiguousarray(graph.indices, np.int32),
            )
            far = int(self.lengths.sum()) + 1
            given = address(ptr), address(near), address(self.lengths), len(nodes), address(nodes)
            if PATHS(self.n, *given, far, address(found)):
                raise MemoryError
            found[found == far] = -1
            return found
        return self._by_scipy(nodes)

    def _rows_of_metric(self, nodes: np.ndarray) -> np.ndarray:
        every, found = np.arange(self.n), np.empty((len(nodes), self.n), dtype=np.int64)
        size = max(1, PIECE // max(self.n, 1))
        for at in range(0, len(nodes), size):
            found[at : at + size] = self.metric.between(every[None, :], nodes[at : at + size, None])
        found[np.arange(len(nodes)), nodes] = 0  # GEO of a point to itself is 1 by the formula
        return found

    def _by_scipy(self, nodes: np.ndarray) -> np.ndarray:
        from scipy.sparse.csgraph import dijkstra  # a fair share of a program's start, for few runs

        if not (self.n and len(nodes)):
            return np.zeros((len(nodes), self.n), dtype=np.int64)
        away = dijkstra(self._matrix, directed=True, indices=nodes)
        return np.where(np.isfinite(away), away, -1).astype(np.int64)

    @cached_property
    def _matrix(self) -> sp.csr_array:
        """The lengths, exact in float64."""
        graph = self.graph
        return sp.csr_array(
            (self.lengths.astype(np.float64), graph.indices, graph.indptr), shape=(self.n, self.n)
        )

    def nearest(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[n] int64 the nearest node of a mask [n] bool to each node, and its distance; -1, -1: none.

        Of a graph by one search from all of them at once: no part of `rows`. What was told last is kept: of
        one solution several things are asked.
        """
        if self._nearest is None or not np.array_equal(self._nearest[0], chosen):
            self._nearest = chosen.copy(), *self._search_nearest(chosen)
        return self._nearest[1:]

    def _search_nearest(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nodes, at, away = (np.flatnonzero(chosen), *(np.full(self.n, -1, dtype=np.int64) for _ in range(2)))
        if not len(nodes):
            return at, away
        if self.metric is None:
            from scipy.sparse.csgraph import dijkstra  # as above

            far, _, source = dijkstra(
                self._matrix, directed=True, indices=nodes, min_only=True, return_predecessors=True
            )
            there = np.isfinite(far)
            at[there], away[there] = source[there], far[there].astype(np.int64)
            return at, away
        if self.metric.kind in PLANE and self.n * len(nodes) > PIECE:
            near = nodes[nearest_by_tree(self.metric.points[nodes], self.metric.points)]
            here = self.metric.between(np.arange(self.n)[:, None], near)
            best = np.lexsort((near, here), axis=1)[:, 0]
            every = np.arange(self.n)
            return near[every, best], here[every, best]
        size = max(1, PIECE // self.n)
        for first in range(0, len(nodes), size):
            part = nodes[first : first + size]
            here = self._rows_of_metric(part)
            best = here.argmin(axis=0)
            value = here[best, np.arange(self.n)]
            new = (away < 0) | (value < away)
            at[new], away[new] = part[best[new]], value[new]
        return at, away


def counted(values: np.ndarray, what: str, largest: int) -> tuple[np.ndarray, Fraction]:
    """Numbers [k] float32 as whole numbers (int64) of a unit: one of their last decimal, where they have at
    most 8; else a power of two (fixed_point.py), of which `largest` are at most all together.
    """
    values = np.asarray(values, dtype=np.float32)
    decimals = decimals_of(values.astype(np.float64))
    total = float(np.abs(values.astype(np.float64)).sum())
    if decimals is not None and total * 10.0**decimals <= max(largest, LARGEST >> 4):
        found = np.rint(values.astype(np.float64) * 10.0**decimals).astype(np.int64)
        return found, Fraction(1, 10**decimals)
    found, unit = whole_numbers(values, what, largest)
    return found, Fraction(unit)


@dataclass(frozen=True, eq=False)
class Demands:
    """What nodes need: amounts [n] int64, at least 0, of a unit, a Fraction."""

    amounts: np.ndarray
    unit: Fraction


def alike(n: int) -> Demands:
    """One of each node."""
    return Demands(np.ones(n, dtype=np.int64), Fraction(1))


@dataclass(frozen=True, eq=False)
class Question:
    """Sites of an instance.

    places     [m] int64, the node of each facility      customers  [k] int64, that of each customer
    demand     [n] int64, of all nodes, in units of which distance times demand is a value
    opening    [n] int64, of all nodes                   unit       objective = value * unit
    """

    sites: Sites
    places: np.ndarray
    customers: np.ndarray
    demand: np.ndarray
    opening: np.ndarray
    unit: Fraction


def pair_bytes(kind: str) -> int:
    """What tables take for each pair of a place and a customer, at most."""
    return RADIUS_BYTES if kind == CENTER else PAIR_BYTES


def question_of(
    name: str, kind: str, distances: Distances, demands: Demands, opening: Demands | None, most: int,
    inside: np.ndarray, barred: np.ndarray, most_bytes: float,
) -> Question:  # fmt: skip
    """What is asked of an instance.

    opening   what opening costs, of all nodes; None: nothing
    most      facilities, at most
    inside    nodes that are to be facilities      barred   [n] bool, those that are not
    Raises CaseError, GraphError
    """
    n, places = distances.n, np.flatnonzero(~barred)
    customers = np.flatnonzero(demands.amounts > 0)
    need = pair_bytes(kind) * len(places) * len(customers)
    if need > most_bytes:
        found = f"{len(places)} places for {len(customers)} customers take {need / 1e6:.0f} MB"
        right = f"memory.whole_graph_mb = {math.ceil(need / 1e6)} would be right"
        raise CaseError(f"{name}: {found} of tables; {right}, or fewer nodes")
    away = _between(distances, places, customers)
    prices = priced(
        name,
        distances,
        demands,
        opening,
        (places, customers),
        int(away.max(initial=0)),
        bool((away < 0).any()),
    )
    demand, fees, far = prices.demand, prices.fees, prices.far
    cost = np.where(away < 0, far, away * demand[customers])
    forced = np.zeros(n, dtype=bool)
    forced[inside] = True
    sites = Sites(
        np.ascontiguousarray(cost), fees[places], forced[places], min(most, len(places)), far, kind == CENTER
    )
    return Question(sites, places, customers, demand, fees, prices.unit)


@dataclass(frozen=True, eq=False)
class Prices:
    """demand, fees [n] int64 of all nodes, in a unit; far: more than any customer costs."""

    demand: np.ndarray
    fees: np.ndarray
    far: int
    unit: Fraction


def priced(
    name: str, distances: Distances, demands: Demands, opening: Demands | None,
    asked: tuple[np.ndarray, np.ndarray], longest: int, apart: bool, room: int = LARGEST,
) -> Prices:  # fmt: skip
    """What is needed and paid, in the coarsest exact unit that sums have room for.

    asked    places and customers        longest   no distance is longer
    apart    whether some places are not reached
    room     of what all customers cost together, those that no path leads to among them
    Raises GraphError
    """
    places, customers = asked
    fine = distances.unit * demands.unit
    none = np.zeros(distances.n, dtype=np.int64)
    for unit in _units(fine, opening):
        demand = _scaled(demands.amounts, fine / unit)
        fees = none if opening is None else _scaled(opening.amounts, opening.unit / unit)
        paid, needed, dearest = _total(fees[places]), _total(demand), int(demand.max(initial=0))
        far = 1 + (needed * longest + paid if apart else dearest * max(longest, 1))
        worst = needed * longest + paid if room > LARGEST else 0
        if far * max(len(customers), 1) + paid <= room and max(worst, _total(fees)) <= LARGEST:
            return Prices(demand.astype(np.int64), fees.astype(np.int64), far, unit)
    right = "fewer digits of lengths, demands and costs would be right"
    raise GraphError(f"{name}: costs are too large to be summed exactly; {right}")


def nearest_by_tree(points: np.ndarray, of: np.ndarray, count: int = TRIED) -> np.ndarray:
    """[n, min(count, k)] numbers of the nearest of points [k, 2] to each of [n, 2], by a k-d tree.

    Its squares may differ from ours in the last bit: the nearest by whole numbers is the best of a few.
    """
    from scipy.spatial import cKDTree  # a fair share of a program's start, for few runs

    tree, count = cKDTree(points), min(count, len(points))
    found, size = np.empty((len(of), count), dtype=np.int64), PIECE // TRIED
    for at in range(0, len(of), size):
        found[at : at + size] = tree.query(of[at : at + size], count)[1].reshape(-1, count)
    return found


def _units(fine: Fraction, opening: Demands | None) -> list[Fraction]:
    """Units of a value, the first that fits is to be taken: that of which distances times demands, `fine`,
    and costs of opening are both multiples; then `fine`, to which costs are rounded by that, where it is as
    exact as the largest of them, a float32 of 24 bits.
    """
    if opening is None:
        return [fine]
    largest = int(opening.amounts.max(initial=0)) * opening.unit
    return [_common(fine, opening.unit), *([fine] if fine * (1 << 24) <= largest else [])]


def _scaled(amounts: np.ndarray, times: Fraction) -> np.ndarray:
    """[n] amounts [n] int64, at least 0, times a number, rounded (ties to even), of any size."""
    if times.denominator == 1 and int(amounts.max(initial=0)) * times.numerator <= LARGEST:
        return amounts * np.int64(times.numerator)
    found = np.empty(len(amounts), dtype=object)
    found[:] = [round(each * times) for each in amounts.tolist()]
    return found


def _total(numbers: np.ndarray) -> int:
    """The sum of whole numbers [k], at least 0, exactly."""
    small = numbers.dtype != object and int(numbers.max(initial=0)) * len(numbers) <= LARGEST
    return int(numbers.sum()) if small else sum(numbers.tolist())


def _between(distances: Distances, places: np.ndarray, customers: np.ndarray) -> np.ndarray:
    """[m, k] int64, from customers to places; -1 where there is no path. Of a graph searches begin at the
    fewer of the two: its paths are as long in both directions.
    """
    turned = distances.metric is None and len(customers) < len(places)
    begin, end = (customers, places) if turned else (places, customers)
    found = np.empty((len(begin), len(end)), dtype=np.int64)
    size = max(1, PIECE // max(distances.n, 1))
    for at in range(0, len(begin), size):
        found[at : at + size] = distances.rows(begin[at : at + size])[:, end]
    return np.ascontiguousarray(found.T) if turned else found


def _common(a: Fraction, b: Fraction) -> Fraction:
    """The largest number of which both are multiples."""
    return Fraction(
        math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator
    )
