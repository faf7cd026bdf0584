"""Cuts that a point of the linear program violates: what no tour does, found by heuristics and minimum cuts.

A point x [m] on edges u-v has degree 2 at every city. Its support graph has the edges with x > 0.

Sources  subtours: components; intervals of a tour and minimum cuts (Applegate, Bixby, Chvatal and Cook 2006,
         chapter 6; contractions: Padberg and Rinaldi 1990; minimum cuts: Stoer and Wagner 1997)
         blossoms: odd components of the fractional edges (Padberg and Hong 1980)
         combs: the same after sets that a point enters once were contracted (Padberg and Rinaldi 1990)
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.tour.cuts import Cuts
from app.native import tour as native

ZERO = 1e-6  # smaller values of x are none
VIOLATED = 0.02  # cuts that miss less are not worth a row
MOST_CONTRACTED = 1500  # cities left by contractions: phases of more take too long
FEW = 3  # subtours of intervals: with fewer, minimum cuts are looked for
ENOUGH = 10  # blossoms: with fewer, combs are looked for
THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.4)  # edges that are nearer to 0 or 1 do not join handles
CONTRACTIONS = 6  # ways to contract
MOST_TIGHT = 400  # sets that are tried for one
ONE = 1 << 30  # values of x as whole numbers


@dataclass(frozen=True, eq=False)
class Point:
    """A point on the edges where it is not 0: u < v, x [m]."""

    n: int
    u: np.ndarray
    v: np.ndarray
    x: np.ndarray

    @staticmethod
    def of(n: int, u: np.ndarray, v: np.ndarray, x: np.ndarray) -> "Point":
        """The support of x."""
        kept = np.flatnonzero(x > ZERO)
        return Point(n, u[kept], v[kept], x[kept])

    def contracted(self, label: np.ndarray) -> "Point":
        """Cities of one label (0, 1, ..) as one, edges between the same two labels added up."""
        n = int(label.max()) + 1
        a, b = label[self.u], label[self.v]
        apart = a != b
        keys = np.minimum(a, b)[apart] * np.int64(n) + np.maximum(a, b)[apart]
        keys, place = np.unique(keys, return_inverse=True)
        return Point(n, keys // n, keys % n, np.bincount(place, self.x[apart], len(keys)))

    def degrees(self) -> np.ndarray:
        """[n] what the edges at each city add up to."""
        return np.bincount(self.u, self.x, self.n) + np.bincount(self.v, self.x, self.n)


def separate(
    cuts: Cuts,
    point: Point,
    order: np.ndarray | None,
    random: np.random.Generator,
    compiled: bool = True,
) -> tuple[list[int], bool]:
    """Numbers of violated cuts: components; of a connected point subtours, known cuts and combs.

    order     [n] a short tour, where one is known
    returns   (cuts, whether the point is connected)
    """
    if found := components(point):
        return sorted({cuts.subtour(members) for members in found}), False
    found = subtours(cuts, point, order, compiled and native.available())
    boundary = cuts.boundary(point.u, point.v, point.x)
    return sorted({*found, *violated(cuts, boundary), *combs(cuts, point, boundary, random)}), True


def subtours(cuts: Cuts, point: Point, order: np.ndarray | None, compiled: bool) -> list[int]:
    """Sets entered less than twice: intervals of a tour, and where these are few minimum cuts."""
    found = intervals(point, order, compiled) if order is not None else []
    if len(found) < FEW:
        found += minimum_cuts(point, compiled)
    return sorted({cuts.subtour(members) for members in found})


def components(point: Point) -> list[np.ndarray]:
    """The components of the support graph, none where it is connected."""
    count, label = _components(point.n, point.u, point.v)
    return [] if count == 1 else _groups(label)


def intervals(point: Point, order: np.ndarray, compiled: bool = True) -> list[np.ndarray]:
    """For each city the interval of a tour that begins there and is violated most, where one is."""
    n, place = point.n, np.empty(point.n, dtype=np.int64)
    place[order] = np.arange(n)
    first, last = np.minimum(place[point.u], place[point.v]), np.maximum(place[point.u], place[point.v])
    by_first = np.argsort(first, kind="stable")
    start = np.searchsorted(first[by_first], np.arange(n + 1)).astype(np.int64)
    weight = np.rint(point.x[by_first] * ONE).astype(np.int64)
    find = native.intervals if compiled and native.available() else plain_intervals
    excess, end = find(start, last[by_first].astype(np.int32), weight, ONE)
    begins = np.flatnonzero(excess > VIOLATED / 2 * ONE)
    return [order[i : end[i] + 1] for i in begins.tolist()]


def plain_intervals(
    start: np.ndarray, last: np.ndarray, weight: np.ndarray, one: int
) -> tuple[np.ndarray, np.ndarray]:
    """What lk_intervals of tour_cuts.c finds: (excess, end) of the best interval from each place on."""
    n = len(start) - 1
    inside = np.zeros(n, dtype=np.int64)  # what edges between i and each place add up to, both included
    excess, end = np.empty(n - 1, dtype=np.int64), np.empty(n - 1, dtype=np.int32)
    for i in range(n - 2, -1, -1):
        edges = slice(start[i], start[i + 1])
        for to, value in zip(last[edges].tolist(), weight[edges].tolist()):
            inside[to:] += value
        of = inside[i + 1 : n - (i == 0)] - one * np.arange(1, n - i - (i == 0))  # x(E(S)) <= |S| - 1
        end[i] = i + 1 + int(of.argmax())
        excess[i] = of.max()
    return excess, end


def minimum_cuts(point: Point, compiled: bool = True) -> list[np.ndarray]:
    """Sets entered less than twice, one at least where there is one; by Stoer and Wagner's phases.

    None where too many cities are left after contractions.
    """
    label = _safely_contracted(point)
    small = point.contracted(label)
    members = _groups(label)
    if not 3 <= small.n <= MOST_CONTRACTED:
        return []
    joined = np.zeros((small.n, small.n))
    joined[small.u, small.v] = joined[small.v, small.u] = small.x
    find = native.cut_phases if compiled and native.available() else plain_cut_phases
    groups, found = [[city] for city in range(small.n)], []
    for before, last, value in zip(*(array.tolist() for array in find(joined))):
        if value < 2 - VIOLATED:
            found.append(np.concatenate([members[city] for city in groups[last]]))
        groups[before] += groups[last]
    return found


def plain_cut_phases(joined: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What lk_cut_phases of tour_cuts.c finds: (before, last, value) of each phase; `joined` is merged."""
    n, found = len(joined), []
    alive = np.ones(n, dtype=bool)
    for left in range(n, 2, -1):
        before, last, value = _phase(joined, alive, left)
        found.append((before, last, value))
        joined[before] += joined[last]
        joined[:, before] = joined[before]
        joined[before, before] = 0
        alive[last] = False
    before, last, value = zip(*found)
    return np.array(before), np.array(last), np.array(value)


def _phase(joined: np.ndarray, alive: np.ndarray, left: int) -> tuple[int, int, float]:
    """Cities in the order of what joins them to those before: the last but one, the last, its degree."""
    at = int(alive.argmax())
    joins = np.where(alive, joined[at], -np.inf)
    joins[at] = -np.inf
    before, value = at, 0.0
    for _ in range(left - 1):
        before, at = at, int(joins.argmax())
        value = float(joins[at])
        joins += joined[at]
        joins[at] = -np.inf
    return before, at, value


def _safely_contracted(point: Point) -> np.ndarray:
    """[n] labels: no set entered less than twice parts cities joined by half of what one of them has."""
    label = np.arange(point.n)
    while True:
        small = point.contracted(label)
        degree = small.degrees()
        pairs = np.flatnonzero(small.x >= np.minimum(degree[small.u], degree[small.v]) / 2 - ZERO)
        matched = _matching(small.n, small.u[pairs], small.v[pairs])
        if small.n - len(matched) < 2 or not len(matched):
            return label
        pairs = pairs[matched]
        label = _components(small.n, small.u[pairs], small.v[pairs])[1][label]


def _matching(n: int, u: np.ndarray, v: np.ndarray) -> list[int]:
    """Edges no two of which meet, the first ones first."""
    taken, found = [False] * n, []
    for place, (a, b) in enumerate(zip(u.tolist(), v.tolist())):
        if not (taken[a] or taken[b]):
            taken[a] = taken[b] = True
            found.append(place)
    return found


def combs(cuts: Cuts, point: Point, boundary: np.ndarray, random: np.random.Generator) -> list[int]:
    """Blossoms, and where these are few, blossoms of contracted points.

    boundary   of the sets of `cuts`, see Cuts.boundary
    """
    found = set(blossoms(cuts, point, np.arange(point.n)))
    if len(found) < ENOUGH:
        for label in contractions(cuts, point, boundary, random):
            found.update(blossoms(cuts, point, label))
    return sorted(found)


def contractions(
    cuts: Cuts, point: Point, boundary: np.ndarray, random: np.random.Generator
) -> Iterator[np.ndarray]:
    """Labels [n]: disjoint sets entered once are one city each; then paths of edges of value 1 as well."""
    sizes = np.array([len(members) for members in cuts.members[: len(boundary)]])
    tight = np.flatnonzero((boundary < 2 + ZERO) & (sizes > 1) & (sizes <= point.n // 2))
    by_size = tight[np.argsort(sizes[tight], kind="stable")]
    for way in range(CONTRACTIONS):
        sets = (by_size, by_size[::-1])[way] if way < 2 else random.permutation(tight)
        label = np.arange(point.n)
        taken = np.zeros(point.n, dtype=bool)
        for number in sets[:MOST_TIGHT].tolist():
            members = cuts.members[number]
            if not taken[members].any():
                taken[members], label[members] = True, members[0]
        label = np.unique(label, return_inverse=True)[1]
        yield label
        yield _paths_contracted(point, label)


def _paths_contracted(point: Point, label: np.ndarray) -> np.ndarray:
    """Labels where the inner edges of paths of value 1 are contracted too: those at the ends may be teeth."""
    small = point.contracted(label)
    one = small.x > 1 - ZERO
    a, b = small.u[one], small.v[one]
    degree = np.bincount(np.append(a, b), minlength=small.n)
    inner = (degree[a] == 2) & (degree[b] == 2)
    return _components(small.n, a[inner], b[inner])[1][label]


def blossoms(cuts: Cuts, point: Point, label: np.ndarray) -> list[int]:
    """Combs whose teeth are edges of the contracted point: handles are components of fractional edges."""
    small, found = point.contracted(label), []
    members, seen = _groups(label), np.zeros(0, dtype=bool)
    ends = list(zip(small.u.tolist(), small.v.tolist()))
    for threshold in THRESHOLDS:
        low, high = threshold + ZERO, 1 - threshold - ZERO
        fractional = (small.x > low) & (small.x < high)
        if np.array_equal(fractional, seen):
            continue
        seen = fractional
        _, piece = _components(small.n, small.u[fractional], small.v[fractional])
        for number in np.flatnonzero(np.bincount(piece) > 2).tolist():
            teeth = Teeth(small, ends, piece == number, high)
            if teeth.make() and teeth.violation() > VIOLATED:
                handle = np.concatenate([members[city] for city in np.flatnonzero(teeth.handle)])
                pairs = [np.append(members[a], members[b]) for a, b in (ends[edge] for edge in teeth.edges)]
                found.append(cuts.comb(handle, pairs))
    return found


class Teeth:
    """A handle [n] bool, and edges of high value that leave it, by their numbers: teeth of a blossom."""

    def __init__(self, point: Point, ends: list[tuple[int, int]], handle: np.ndarray, high: float) -> None:
        """ends   the cities of each edge of the point"""
        self.point, self.ends, self.handle = point, ends, handle
        leaving = self._leaving()
        self.edges = leaving[point.x[leaving] >= high].tolist()

    def make(self) -> bool:
        """Make the teeth disjoint and their number odd; False: there are too few."""
        self._part()
        if len(self.edges) % 2 == 0:
            self._make_odd()
        return len(self.edges) % 2 == 1 and len(self.edges) >= 3

    def violation(self) -> float:
        """What the inequality misses, where every city has degree 2: a tooth has 4 - 2 x."""
        x = self.point.x
        left = x[self._leaving()].sum() + (4 - 2 * x[self.edges]).sum()
        return 3 * len(self.edges) + 1 - float(left)

    def _leaving(self) -> np.ndarray:
        return np.flatnonzero(self.handle[self.point.u] != self.handle[self.point.v])

    def _part(self) -> None:
        """A city where teeth meet changes sides, after which they are inside the handle, or outside it."""
        at: dict[int, list[int]] = {}
        for edge in self.edges:
            for city in self.ends[edge]:
                at.setdefault(city, []).append(edge)
        teeth = set(self.edges)
        for city in sorted(at):
            here = teeth.intersection(at[city])
            if len(here) > 1:
                self.handle[city] = not self.handle[city]
                teeth -= here
        self.edges = sorted(teeth)

    def _make_odd(self) -> None:
        """One more tooth, or one less, whichever costs less."""
        u, v, x = self.point.u, self.point.v, self.point.x
        leaving = self._leaving()
        met = np.zeros(self.point.n, dtype=bool)
        met[u[self.edges]] = met[v[self.edges]] = True
        free = leaving[~(met[u[leaving]] | met[v[leaving]])]
        more = int(free[x[free].argmax()]) if len(free) else None
        less = min(self.edges, key=lambda edge: x[edge], default=None)
        if more is not None and (less is None or 1 - 2 * x[more] < 2 * x[less] - 1):
            self.edges.append(more)
        elif less is not None:
            self.edges.remove(less)


def violated(cuts: Cuts, boundary: np.ndarray) -> list[int]:
    """Known cuts that the point violates."""
    return np.flatnonzero(cuts.excess(boundary) < -VIOLATED).tolist()


def _components(n: int, u: np.ndarray, v: np.ndarray) -> tuple[int, np.ndarray]:
    edges = sp.csr_array((np.ones(len(u), dtype=np.int8), (u, v)), shape=(n, n))
    return connected_components(edges, directed=False)


def _groups(label: np.ndarray) -> list[np.ndarray]:
    """The members of each label, ascending."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
