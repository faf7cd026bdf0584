"""Metric: whole-number distances between the points of a travelling salesman problem."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from app.errors import GraphError
from app.graphs.curve import along_curve
from app.graphs.graph import Graph, from_edges
from app.graphs.lengths import EUCLIDEAN, PLANE, TABLED, dimensions, largest_coordinate, lengths, squares
from app.graphs.orders import places_of
from app.rng import stream

TABLE_POINTS = 3000  # up to here all distances are kept: 36 MB
MOST_TABLE_POINTS = 20_000  # kinds that are never computed pair by pair: 1.6 GB
NEAREST = 10  # neighbours of a point, in the graph that a policy sees
PIECE = 1 << 22  # distances computed at a time
SAMPLE = 300  # points whose distances are looked at
LARGEST_DIGITS = 300  # of a scale


DIRECTED = "DIRECTED"
MOST_DIRECTED = MOST_TABLE_POINTS // 2  # points: a search makes two of each


@dataclass(frozen=True, eq=False)
class Metric:
    """Distances between n points, whole numbers from 0 to 2^31-1; symmetric but for the kind DIRECTED.

    kind     one of COORDINATE_KINDS: computed from points as TSPLIB says; EXPLICIT: the matrix; DIRECTED: the
             matrix, of distances from the point of the row to that of the column
    points   [n, 2] float64, in space [n, 3]; with a matrix alone what the file gives for display, or None
    matrix   [n, n] int32; of the kinds in PLANE up to TABLE_POINTS points, else None
    unit     what a distance of 1 stands for, where points were scaled
    """

    name: str
    n: int
    kind: str
    points: np.ndarray | None
    matrix: np.ndarray | None
    unit: float = 1.0

    def between(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Distances (int64) from i to j, index arrays that broadcast."""
        if self.matrix is not None:
            return self.matrix[i, j].astype(np.int64)
        return lengths(self.kind, self.points[i], self.points[j])

    def unrounded(self, i: np.ndarray, j: np.ndarray) -> np.ndarray | None:
        """Euclid's lengths (float64) of which the distances from i to j are rounded; None of other kinds."""
        if self.kind not in EUCLIDEAN:
            return None
        return np.sqrt(squares(self.points[i], self.points[j]))

    def length(self, order: np.ndarray) -> int:
        """The length of the closed tour order [n]."""
        order = np.asarray(order)
        return int(self.between(order, np.roll(order, -1)).sum())

    @property
    def plane(self) -> np.ndarray | None:
        """[n, 2] points to draw, or to lay a curve through; None where there are none, or only in space."""
        return None if self.points is None or self.points.shape[1] != 2 else self.points

    def neighbours(self, k: int) -> np.ndarray:
        """[n, min(k, n-1)] int32, the nearest points from each, nearest first, ties to the lowest number.

        Near is meant before rounding for kinds in PLANE, by the whole numbers for all others.
        """
        k = min(k, self.n - 1)
        if k <= 0:
            return np.zeros((self.n, 0), dtype=np.int32)
        return self._near_points(k) if self.kind in PLANE else self._scan(np.arange(self.n), k)

    def neighbour_graph(self, k: int) -> Graph:
        """The graph that joins each point to its k nearest, float32 weights = distances; may fall apart."""
        near = self.neighbours(k)
        u = np.repeat(np.arange(self.n, dtype=np.int64), near.shape[1])
        v = near.ravel().astype(np.int64)
        return from_edges(self.n, u, v, self.between(u, v).astype(np.float32), self.name)

    @cached_property
    def along(self) -> np.ndarray:
        """[n] int32, the points in the order of a curve through `plane`."""
        return along_curve(self.plane)

    @cached_property
    def nearest(self) -> np.ndarray:
        """[n, min(NEAREST, n-1)] int32, the `neighbours` in a policy's graph."""
        return self.neighbours(NEAREST)

    @cached_property
    def spacing(self) -> int:
        """The sum over points of the distance to the nearest other one; at least 1."""
        near = self.nearest[:, :1]
        return max(1, int(self.between(np.arange(self.n)[:, None], near).sum()))

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray] | None:
        """(firsts, place): the first of all equal points, ascending, and which of them each point [n] equals.

        None where no two points are equal, or the kind is none of PLANE: those of GEO are not 0 apart.
        """
        if self.kind not in PLANE:
            return None
        order = np.lexsort((self.points[:, 1], self.points[:, 0]))
        new = np.ones(self.n, dtype=bool)
        new[1:] = (np.diff(self.points[order], axis=0) != 0).any(axis=1)
        if new.all():
            return None
        firsts = order[new]  # lexsort is stable: the lowest number of each place
        rank = places_of(np.argsort(firsts))
        place = np.empty(self.n, dtype=np.int64)
        place[order] = rank[np.cumsum(new) - 1]
        return np.sort(firsts), place

    def restrict(self, chosen: np.ndarray) -> "Metric":
        """The same distances between the chosen points [k], renumbered in the order given."""
        chosen = np.asarray(chosen, dtype=np.int64)
        points = None if self.points is None else self.points[chosen]
        matrix = None if self.matrix is None else np.ascontiguousarray(self.matrix[np.ix_(chosen, chosen)])
        return Metric(self.name, len(chosen), self.kind, points, matrix, self.unit)

    def _scan(self, rows: np.ndarray, k: int) -> np.ndarray:
        """The k nearest of some points, every other point looked at."""
        everyone = np.arange(self.n)
        found = np.empty((len(rows), k), dtype=np.int32)
        size = max(1, PIECE // self.n)
        for at in range(0, len(rows), size):
            part = rows[at : at + size]
            far = self._nearness(part[:, None], everyone[None, :])
            far[np.arange(len(part)), part] = np.inf
            found[at : at + size] = np.argsort(far, axis=1, kind="stable")[:, :k]
        return found

    def _near_points(self, k: int) -> np.ndarray:
        """The k nearest by a k-d tree, which is asked for more where a tie may go on beyond its answer."""
        from scipy.spatial import cKDTree  # a fair share of a program's start, for few runs

        found, asked = np.empty((self.n, k), dtype=np.int32), min(self.n, k + 8)
        rows, tree = np.flatnonzero(~self._crowded(found, k)), cKDTree(self.points)
        while len(rows):
            size, unsure = max(1, PIECE // asked), []
            for at in range(0, len(rows), size):
                part = rows[at : at + size]
                near = tree.query(self.points[part], asked)[1]
                found[part], tied = self._nearest_of(part, near, k)
                unsure.append(part[tied] if asked < self.n else part[:0])
            rows, asked = np.concatenate(unsure), min(self.n, 4 * asked)
        return found

    def _nearest_of(self, rows: np.ndarray, near: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Of `near` [r, *] the k nearest to each row; [r] whether other points may be as near as the last."""
        far = self._nearness(rows[:, None], near)
        far[near == rows[:, None]] = np.inf
        order = np.lexsort((near, far), axis=1)[:, :k]
        # The tree's own squares may differ from these in the last bits.
        last = np.where(np.isinf(far), -1, far).max(axis=1)
        tied = last <= np.take_along_axis(far, order[:, -1:], axis=1)[:, 0] * (1 + 1e-12)
        return np.take_along_axis(near, order, axis=1).astype(np.int32), tied

    def _crowded(self, found: np.ndarray, k: int) -> np.ndarray:
        """[n], True where more than k points are equal: their neighbours in `found` are set."""
        crowded = np.zeros(self.n, dtype=bool)
        if self.places is None:
            return crowded
        place = self.places[1]
        by_place = np.argsort(place, kind="stable")
        sizes = np.bincount(place)
        for first, size in zip((np.cumsum(sizes) - sizes).tolist(), sizes.tolist()):
            if size <= k:
                continue
            here = by_place[first : first + size]
            crowded[here], found[here] = True, here[:k]
            for at in range(k):  # not its own neighbour
                found[here[at]] = np.delete(here[: k + 1], at)
        return crowded

    def _nearness(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """What `neighbours` compares, float64: squares of distances, or the distances themselves."""
        if self.kind not in PLANE:
            return self.between(i, j).astype(np.float64)
        return squares(self.points[i], self.points[j])


def explicit(name: str, matrix: np.ndarray, points: np.ndarray | None = None) -> Metric:
    """The metric of a symmetric matrix [n, n] of whole numbers with a zero diagonal."""
    return Metric(name, len(matrix), "EXPLICIT", points, np.ascontiguousarray(matrix, dtype=np.int32))


def directed(name: str, matrix: np.ndarray, points: np.ndarray | None = None) -> Metric:
    """The metric of distances [n, n] that differ by direction, whole numbers with a zero diagonal."""
    return replace(explicit(name, matrix, points), kind=DIRECTED)


def from_points(name: str, points: np.ndarray, kind: str = "EUC_2D") -> Metric:
    """The metric of points [n, dimensions(kind)] by one of COORDINATE_KINDS.

    Raises GraphError for what cannot be held.
    """
    points = np.ascontiguousarray(points, dtype=np.float64).reshape(-1, dimensions(kind))
    n, largest = len(points), largest_coordinate(kind)
    if not (np.abs(points) <= largest).all():
        raise GraphError(f"{name}: coordinates of at most {largest:.2g} would be right")
    if kind in TABLED and n > MOST_TABLE_POINTS:
        raise GraphError(f"{name}: {n} points of kind {kind}; at most {MOST_TABLE_POINTS} would be right")
    keep = n <= TABLE_POINTS or kind in TABLED
    return Metric(name, n, kind, points, _table(points, kind) if keep else None)


def scaled_points(name: str, points: np.ndarray) -> Metric:
    """EUC_2D of points whose distances are not meant to be rounded to whole numbers.

    Coordinates are counted in a power of ten that makes the longer side of the points 10^7 to 10^8 units.
    """
    span = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    if not 0 < span < np.inf:
        return from_points(name, points)
    digits = 7 - math.floor(math.log10(span))
    low = points.min(axis=0)
    fine = (points - low) * 10.0**digits if abs(digits) < LARGEST_DIGITS else (points - low) / span * 1e7
    unit = 10.0**-digits if abs(digits) < LARGEST_DIGITS else span / 1e7
    return replace(from_points(name, fine), unit=unit)


def rounds_badly(metric: Metric) -> bool:
    """Whether most distances between different points are rounded to 0 or 1."""
    if metric.kind in ("GEO", "EXPLICIT", DIRECTED) or metric.n < 2:
        return False
    step = max(1, metric.n // SAMPLE)
    i = np.arange(0, metric.n, step)
    a, b = i[:, None], i[None, :]
    apart = squares(metric.points[a], metric.points[b]) > 0
    return bool(apart.any() and (metric.between(a, b)[apart] <= 1).mean() > 0.5)


def uniform_points(n: int, seed: int, name: str = "uniform") -> Metric:
    """n points with whole coordinates drawn evenly from 0 to 10^6, EUC_2D."""
    points = stream(seed, "uniform points").integers(0, 10**6, (n, 2), endpoint=True)
    return from_points(name, points.astype(np.float64))


def _table(points: np.ndarray, kind: str) -> np.ndarray:
    """[n, n] int32, all distances."""
    n = len(points)
    table = np.empty((n, n), dtype=np.int32)
    size = max(1, PIECE // max(n, 1))
    for at in range(0, n, size):
        table[at : at + size] = lengths(kind, points[at : at + size, None], points[None, :])
    np.fill_diagonal(table, 0)  # GEO of a point to itself is 1 by the formula
    return table
