"""Facility location among very many points: costs are computed from coordinates when they are asked for.

Points are numbered anew along a curve that fills the plane (Morton 1966), so that those with near numbers are
near each other, mostly.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from app.errors import Halted
from app.graphs.facility import (
    CENTER,
    Demands,
    Distances,
    ManySites,
    Question,
    Sites,
    nearest_by_tree,
    priced,
)
from app.graphs.lengths import PLANE, rounded_length
from app.graphs.metric import Metric

CELLS = 16  # bits of a coordinate in the number of a cell
NEVER = 1 << 31  # longer than any distance that there may be
LISTED = 1 << 23  # pairs of a place and a customer, of whose costs a table is made for searches
MOST_FIRST = 1 << 25  # pairs that the farthest first looks at


@dataclass(frozen=True, eq=False)
class PointSites(ManySites):
    """A question like Sites, of points in the plane; places and customers in the order of the curve.

    place     [m, 2] float64     customer  [n, 2]     kind  one of lengths.PLANE
    demand    [n] int64, at least 1: a customer costs its demand times the distance to the nearest facility
    opening   [m] int64          forced    [m] bool   most  facilities, at most
    radius    of `within`: a customer costs 1 where that is `radius` or more, else 0
    never     longer than any distance
    """

    place: np.ndarray
    customer: np.ndarray
    kind: str
    demand: np.ndarray
    opening: np.ndarray
    forced: np.ndarray
    most: int
    largest: bool = False
    radius: int = 0
    never: int = NEVER

    @property
    def far(self) -> int:
        """More than any solution is worth."""
        return (
            self.n + 1 if self.radius else self.never * int(self.demand.sum()) + int(self.opening.sum()) + 1
        )

    def away(self, nodes: np.ndarray, customers: np.ndarray) -> np.ndarray:
        """[...] int64, distances between places and customers, index arrays that broadcast."""
        step = self.customer[customers] - self.place[nodes]
        return rounded_length(self.kind, step[..., 0], step[..., 1])

    def costs(self, away: np.ndarray) -> np.ndarray:
        """[..., n] int64, what customers cost at distances."""
        found = away * self.demand
        return (found >= self.radius).astype(np.int64) if self.radius else found

    def least(self, chosen: np.ndarray) -> np.ndarray:
        """[n] int64, what customers cost with the facilities of a mask [m] bool; `far` with none."""
        nodes = np.flatnonzero(chosen)
        if not len(nodes):
            return np.full(self.n, self.far, dtype=np.int64)
        near = nearest_by_tree(self.place[nodes], self.customer)
        away = self.away(nodes[near], np.arange(self.n)[:, None]).min(axis=1)
        return self.costs(away)

    def within(self, radius: int) -> "PointSites":
        """The question how many customers cost `radius` or more."""
        none = np.zeros(self.m, dtype=np.int64)
        found = replace(self, opening=none, largest=False, radius=radius)
        found.__dict__["beside"] = self.beside
        return found

    def table(self, heard: Callable[[], bool] | None = None) -> Sites:
        """The same question with a table of all pairs.

        heard   asked again and again; Halted is raised where it is true
        """
        cost = np.empty((self.m, self.n), dtype=np.int64)
        for f in range(self.m):
            if heard is not None and heard():
                raise Halted("asked to stop")
            cost[f] = self.away(np.int64(f), np.arange(self.n)) * self.demand
        return Sites(cost, self.opening, self.forced, self.most, int(cost.max(initial=0)) + 1, self.largest)

    @cached_property
    def tree(self) -> Any:
        """A k-d tree of the places."""
        from scipy.spatial import cKDTree  # a fair share of a program's start, for few runs

        return cKDTree(self.place)

    @cached_property
    def beside(self) -> np.ndarray:
        """[n] int32, the place nearest to each customer, or one of them."""
        return nearest_by_tree(self.place, self.customer, 1)[:, 0].astype(np.int32)


def along_curve(points: np.ndarray) -> np.ndarray:
    """[n] int64, the numbers of points [n, 2] in the order of the curve."""
    if not len(points):
        return np.zeros(0, dtype=np.int64)
    low, span = points.min(axis=0), max(float(np.ptp(points, axis=0).max()), 1e-300)
    cells = np.minimum((points - low) / span * (1 << CELLS), (1 << CELLS) - 1).astype(np.uint64)
    spread = [np.zeros(len(points), dtype=np.uint64) for _ in range(2)]
    for axis in range(2):
        for bit in range(CELLS):
            here = (cells[:, axis] >> np.uint64(bit)) & np.uint64(1)
            spread[axis] |= here << np.uint64(2 * bit + axis)
    return np.argsort(spread[0] | spread[1], kind="stable")


def without_table(metric: Metric | None, pairs: int, pair_bytes: int, most_bytes: float) -> bool:
    """Whether so many pairs are too many for a table, and points or the paths of a graph can do without."""
    can = metric is None or metric.kind in PLANE
    return can and (pairs > LISTED or pairs * pair_bytes > most_bytes)


def question_of_points(
    name: str, kind: str, distances: Distances, demands: Demands, opening: Demands | None, most: int,
    inside: np.ndarray, barred: np.ndarray,
) -> Question:  # fmt: skip
    """What is asked of an instance, as question_of, without a table. Raises GraphError of `priced`."""
    points = distances.metric.points
    order = along_curve(points)
    places, customers = order[~barred[order]], order[demands.amounts[order] > 0]
    span = np.ptp(points, axis=0) if len(points) else np.zeros(2)
    longest = int(rounded_length(distances.metric.kind, span[0], span[1])) + 1
    prices = priced(name, distances, demands, opening, (places, customers), longest, False)
    forced = np.zeros(distances.n, dtype=bool)
    forced[inside] = True
    sites = PointSites(
        np.ascontiguousarray(points[places]), np.ascontiguousarray(points[customers]),
        distances.metric.kind, prices.demand[customers], prices.fees[places], forced[places],
        min(most, len(places)), kind == CENTER, never=longest + 1,
    )  # fmt: skip
    return Question(sites, places, customers, prices.demand, prices.fees, prices.unit)


# ---- plain choices -----------------------------------------------------------------------------------------


def along(sites: PointSites) -> np.ndarray:
    """[m] bool: after the forced facilities, places beside customers that are equally far apart on the curve.

    Where opening costs something there are as many as cost least, of powers of two and `most`.
    """
    counts = [sites.most] if not sites.opening.any() else [1 << k for k in range(sites.most.bit_length())]
    return min((_along(sites, min(count, sites.most)) for count in counts), key=sites.value)


def _along(sites: PointSites, count: int) -> np.ndarray:
    chosen = sites.forced.copy()
    left = count - int(np.count_nonzero(chosen))
    if sites.n and left > 0:
        middle = (2 * np.arange(left) + 1) * sites.n // (2 * left)
        chosen[sites.beside[middle]] = True
    if sites.m and not chosen.any():
        chosen[0] = True
    spare = np.flatnonzero(~chosen)[: max(count - int(np.count_nonzero(chosen)), 0)]
    if not sites.opening.any():
        chosen[spare] = True
    return chosen


def farthest_points_first(sites: PointSites) -> np.ndarray:
    """[m] bool: the place nearest to the customer that costs most, again and again (Gonzalez 1985)."""
    chosen, count = sites.forced.copy(), int(np.count_nonzero(sites.forced))
    if not sites.n:
        return chosen
    if not count:
        chosen[sites.beside[0]], count = True, 1
    every, least = np.arange(sites.n), sites.least(chosen)
    while count < sites.most and least.max() > 0:
        f = int(sites.beside[least.argmax()])
        if chosen[f]:
            break
        chosen[f], count = True, count + 1
        np.minimum(least, sites.costs(sites.away(np.int64(f), every)), out=least)
    return chosen
