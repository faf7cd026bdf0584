"""Tours made by simple rules: what a search starts from, and what a policy must beat."""

from collections.abc import Callable

import numpy as np

from app.graphs.lengths import PLANE
from app.graphs.metric import Metric
from app.graphs.orders import places_of
from app.search.tour.insertion import InsertionState

Tour = tuple[np.ndarray, str]
CANDIDATES = 10
FARTHEST_POINTS, CHEAPEST_POINTS = 10_000, 5000  # above these insertions, of quadratic time, are left out
GREEDY_SECONDS, CURVE_SECONDS = 3e-5, 2e-6  # of these rules, for each city, about
SCANNED = 2000  # cities that are looked at one by one
ROUNDED = 4.0  # more than the lengths differ that are rounded to the same number: sqrt(10) for ATT


def nearest_neighbour(metric: Metric, compiled: bool = True) -> Tour:
    """From city 0 always to the nearest city not yet visited."""
    near = metric.neighbours(CANDIDATES).tolist()
    visited = np.zeros(metric.n, dtype=bool)
    order, city = [0], 0
    visited[0] = True
    rest = _Rest(metric, visited)
    while len(order) < metric.n:
        city = next((c for c in near[city] if not visited[c]), -1)
        if city < 0:
            city = rest.nearest(order[-1])
        visited[city] = True
        order.append(city)
    return np.array(order, dtype=np.int32), "nearest neighbour"


class _Rest:
    """The cities not yet visited, in a k-d tree of those that were not when it was made.

    visited   [n] bool, kept up by the caller
    """

    def __init__(self, metric: Metric, visited: np.ndarray) -> None:
        self.metric, self.visited = metric, visited
        self._cities, self._tree = np.arange(metric.n), None

    def nearest(self, city: int) -> int:
        """The nearest one, the lowest of equally near."""
        if not self._tree or 2 * int(self.visited[self._cities].sum()) > len(self._cities):
            self._cities, self._tree = self._cities[~self.visited[self._cities]], None
            if len(self._cities) > SCANNED and self.metric.kind in PLANE:
                from scipy.spatial import cKDTree  # as in app/graphs/metric.py

                self._tree = cKDTree(self.metric.points[self._cities])
        left = self._close(city) if self._tree else self._cities[~self.visited[self._cities]]
        return int(left[self.metric.between(city, left).argmin()])

    def _close(self, city: int) -> np.ndarray:
        """Ascending, all that may be nearest: lengths are rounded, equal ones differ by ROUNDED at most."""
        place, asked = self.metric.points[city], 8
        while True:
            far, found = self._tree.query(place, min(asked, len(self._cities)))
            far = far[~self.visited[self._cities[found]]]
            if len(far):
                break
            asked *= 4
        ball = self._cities[np.sort(self._tree.query_ball_point(place, far[0] + ROUNDED))]
        return ball[~self.visited[ball]]


def farthest_insertion(metric: Metric, compiled: bool = True) -> Tour:
    """Insert the city farthest from the tour where that costs least; begins with city 0."""
    state = InsertionState(metric, np.zeros(1), compiled)
    state.insert_farthest(metric.n - 1)
    return state.order.copy(), "farthest insertion"


def cheapest_insertion_tour(metric: Metric, compiled: bool = True) -> Tour:
    """Insert the city whose insertion costs least; begins with city 0."""
    state = InsertionState(metric, np.zeros(1), compiled)
    state.insert_cheapest(metric.n - 1)
    return state.order.copy(), "cheapest insertion"


def space_filling_curve(metric: Metric, compiled: bool = True) -> Tour:
    """The cities in the order of a closed space-filling curve (app/graphs/curve.py).

    Source   Platzman and Bartholdi 1989
    """
    if metric.plane is None:
        raise ValueError(f"{metric.name} has no points in the plane to lay a curve through")
    return metric.along.copy(), "space-filling curve"


def greedy_edge(metric: Metric, compiled: bool = True) -> Tour:
    """The shortest edge that joins two pieces at their ends, again and again.

    Edges come from the nearest neighbours of the pieces' ends; when these are used up, from those among the
    ends that are left. So the last few edges need not be in the order of all edges.
    """
    n = metric.n
    pieces = _Pieces(n)
    ends = np.arange(n)
    while pieces.count > 1:
        part = metric.restrict(ends)
        near = part.neighbours(CANDIDATES)
        u = np.repeat(np.arange(len(ends)), near.shape[1])
        v = near.ravel()
        order = np.lexsort((ends[v], ends[u], part.between(u, v)))
        for a, b in zip(ends[u[order]].tolist(), ends[v[order]].tolist()):
            pieces.join(a, b)
        ends = np.array([city for city in range(n) if len(pieces.links[city]) < 2], dtype=np.int64)
    return pieces.tour(), "greedy edge"


class _Pieces:
    """Paths through the cities: links of each city, and at the ends of a path its other end."""

    def __init__(self, n: int) -> None:
        self.links: list[list[int]] = [[] for _ in range(n)]
        self.other_end = list(range(n))
        self.count = n

    def join(self, a: int, b: int) -> None:
        """Add edge a-b where both are ends of different paths."""
        if len(self.links[a]) > 1 or len(self.links[b]) > 1 or self.other_end[a] == b:
            return
        self.links[a].append(b)
        self.links[b].append(a)
        far_a, far_b = self.other_end[a], self.other_end[b]
        self.other_end[far_a], self.other_end[far_b] = far_b, far_a
        self.count -= 1

    def tour(self) -> np.ndarray:
        """[n] int32, the cities of the one path from end to end."""
        city = next(c for c, links in enumerate(self.links) if len(links) < 2)
        order, before = [city], -1
        while len(order) < len(self.links):
            city, before = next(c for c in self.links[city] if c != before), city
            order.append(city)
        return np.array(order, dtype=np.int32)


def apart_from_equals(rule: Callable[[Metric], Tour], metric: Metric) -> Tour:
    """A rule's tour through one of all equal points, which the others follow at once: as long."""
    if metric.places is None:
        return rule(metric)
    firsts, place = metric.places
    order, label = rule(metric.restrict(firsts))
    rank = places_of(order)
    return np.argsort(rank[place], kind="stable").astype(np.int32), label


def seconds_of(metric: Metric) -> dict[str, float]:
    """Estimates of what the rules take, by name."""
    n = metric.n
    found = {"nearest_neighbour": 2.5e-5 * n, "greedy_edge": GREEDY_SECONDS * n}
    found |= {"farthest_insertion": 5.2e-9 * n * n, "cheapest_insertion": 9e-9 * n * n}
    return found | {"space_filling_curve": CURVE_SECONDS * n}


INSERTIONS = {
    "farthest_insertion": (farthest_insertion, FARTHEST_POINTS),
    "cheapest_insertion": (cheapest_insertion_tour, CHEAPEST_POINTS),
}


def too_large(metric: Metric) -> str:
    """The rules that are left out for the size of this metric, for the log; "" where there are none."""
    found = [(name, most) for name, (_, most) in INSERTIONS.items() if metric.n > most]
    return ", ".join(f"{name.replace('_', ' ')} (up to {most:,} cities)" for name, most in found)


def baselines(metric: Metric) -> dict[str, Callable[[Metric], Tour]]:
    """The rules that this metric allows, by name; insertions, of quadratic time, up to a size."""
    rules = {"nearest_neighbour": nearest_neighbour}
    rules |= {name: rule for name, (rule, most) in INSERTIONS.items() if metric.n <= most}
    rules["greedy_edge"] = greedy_edge
    if metric.plane is not None:
        rules["space_filling_curve"] = space_filling_curve
    return rules
