"""What proves that routes are no shorter than so much: values of customers and sets, and the tree of cases.

With x_e how often the routes use the edge e = u-v (of the depot up to 2 times, of others once), pi of points
and y of sets of customers, any whole numbers, the reduced cost
    r_e = c_e - pi_u - pi_v - sum of y over the sets S that e leaves
multiplied by x_e and added up over the edges of the routes, where every customer has degree 2, says
    length = 2 sum pi + sum y_S x(delta(S)) + sum r_e x_e
pi of the depot is 0. Of x(delta(S)) it is known that it is even, at least 2 and 2 ceil(demand(S) / capacity),
and of all customers at most twice the number of vehicles; a case knows more. So y_S takes the least that is
known where it is positive, and the most where it is negative. What is left, sum r_e x_e, is bounded in one of
two ways:
    edges     sum over edges of the least of r_e x_e
    routes    k times the least sum of r_e over an ng-route, k being as many routes as there can be where that
              is negative, and as few otherwise
An ng-route goes from the depot to the depot, its customers' demands adding up to the capacity at most, and
comes back to a customer c only if one in between has not c among its neighbours. All routes are such. Where
customers have time windows it comes to all within them, loads being counted in parts, rounded down.
An edge whose use costs so much that no routes shorter than a known length have it is left out; then two cases
are told apart by x(delta(S)): at most 2k, or at least 2k + 2. Of two customers S the latter, with k = 1, says
that no route has the edge between them, and the former that one has it.

Nothing here is shared with what finds the bound.

Sources  Laporte and Nobert 1983; Baldacci, Mingozzi and Roberti 2011 (ng-routes); Fukasawa et al. 2006 (both)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from app.bounds.certificate import BadCertificate, Bound, cuts_up, exact_sum
from app.bounds.routing.paths import FAR, Paths, coarse_for, fits_times, positive_times, whole_loads
from app.bounds.routing.timed_paths import MOST_PARTS, TimedPaths, TooMany
from app.graphs.deliveries import Deliveries
from app.graphs.keys import sorted_set
from app.graphs.metric import MOST_TABLE_POINTS, Metric

LARGEST = 1 << 50  # of a value, of the sum of those of sets, and of a reduced cost
MOST_SUM = 1 << 61  # of the reduced costs of a route
MOST_PLACES = 20
MOST_WIDTH = 12  # neighbours that a customer remembers, itself included
MOST_KEPT = 4000  # edges for each point that are not left out
MOST_STATES = 1 << 26  # customers, times sets of neighbours, or times loads
PIECE = 1 << 20  # pairs of points looked at together

Split = tuple[tuple[int, int], int]  # of a divided case: its set and k, the number of its first child


@dataclass(frozen=True, eq=False)
class Values:
    """In multiples of 2^-places: pi [n] int64 of points, y [k] int64 of `sets` [k].

    width   0: they bound by edges; else by ng-routes whose customers have so many neighbours
    """

    pi: np.ndarray
    sets: np.ndarray
    y: np.ndarray
    width: int


@dataclass(frozen=True, eq=False)
class RoutingBound(Bound):
    """No routes are shorter than `lower`.

    set_ptr, set_nodes   sets of customers     [s+1], [set_ptr[s]] int64
    near                 [n, width] int64, the neighbours of each point, itself first; not read of the depot
    left_out_by          a length: edges that no shorter routes have are left out; None: none is
    whole                values of the whole: each bounds, and leaves out edges for the next
    splits               of each case what tells its children apart, and the number of the child where
                         x(delta) is at most 2k, the next one being the other; None where it is not divided
    values               of each case that is not divided
    """

    lower: int
    method: str
    places: int
    set_ptr: np.ndarray
    set_nodes: np.ndarray
    near: np.ndarray
    left_out_by: int | None
    whole: Sequence[Values]
    splits: Sequence[Split | None] = ()
    values: Sequence[Values | None] = ()

    @staticmethod
    def of(
        lower: int, method: str, places: int, members: Sequence[np.ndarray], near: np.ndarray,
        left_out_by: int | None, whole: Sequence[Values], splits: Sequence[Split | None] = (),
        values: Sequence[Values | None] = (),
    ) -> "RoutingBound":  # fmt: skip
        """With those sets alone that are named somewhere."""
        named = [each.sets for each in (*whole, *values) if each is not None]
        named.append(np.array([split[0][0] for split in splits if split is not None], dtype=np.int64))
        used = sorted_set(np.concatenate(named)).astype(np.int64)
        lists = [np.asarray(members[number], dtype=np.int64) for number in used.tolist()]
        ptr = np.append(0, np.cumsum([len(each) for each in lists])).astype(np.int64)
        nodes = np.concatenate([np.zeros(0, dtype=np.int64), *lists])

        def among(each: Values | None) -> Values | None:
            return None if each is None else replace(each, sets=np.searchsorted(used, each.sets))

        parted = [
            None if split is None else ((int(np.searchsorted(used, split[0][0])), split[0][1]), split[1])
            for split in splits
        ]
        near = np.ascontiguousarray(near, dtype=np.int64)
        proofs = [among(each) for each in whole], parted, [among(each) for each in values]
        return RoutingBound(lower, method, places, ptr, nodes, near, left_out_by, *proofs)

    def check(self, metric: Metric, deliveries: Deliveries) -> None:
        """Prove the bound from distances and demands alone. Raises BadCertificate."""
        if self.lower <= 0:
            return
        proved = _Proof(self, metric, deliveries).value()
        if proved < self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.lower}"
            )

    def refuse(self, what: str) -> BadCertificate:
        """The error that says what is wrong."""
        return BadCertificate(f"{self.method}: {what}")


@dataclass(frozen=True, eq=False)
class _Case:
    """What is known of a case: least and most of half x(delta) by sets, over what all routes satisfy."""

    least: dict[int, int]
    most: dict[int, int]


class _Proof:
    """The work of a check."""

    def __init__(self, bound: RoutingBound, metric: Metric, deliveries: Deliveries) -> None:
        self.bound, self.metric, self.deliveries, self.n = bound, metric, deliveries, metric.n
        if metric.n > MOST_TABLE_POINTS:
            raise bound.refuse(f"{metric.n} points have too many edges")
        if not 0 <= bound.places <= MOST_PLACES:
            raise bound.refuse(f"values in multiples of 2^-{bound.places}")
        self.depot = deliveries.depot
        self.member = self._sets()
        self.needed = self._needed()
        self.loads, self.capacity = whole_loads(deliveries)
        self.longest = self.capacity // max(
            1, int(np.delete(self.loads, self.depot).min(initial=self.capacity))
        )
        self.near = self._neighbours()
        self.few = max(1, deliveries.fewest)  # routes
        self.many = min(deliveries.vehicles or self.n - 1, self.n - 1)

    def value(self) -> int:
        """The length that no routes fall below."""
        bound, one = self.bound, 1 << self.bound.places
        if self.n < 2:
            return 0
        if not bound.whole:
            raise bound.refuse("no values")
        everything = _Case({}, {})
        if bound.whole[0].width:
            raise bound.refuse("the first values are not of edges")
        best = self._over_all(bound.whole[0], everything)
        if bound.left_out_by is None:
            if len(bound.whole) > 1 or bound.splits:
                raise bound.refuse("cases, or more values, without a length that leaves out edges")
            return -(-best // one)
        best = self._leave_out(best, everything)
        if not bound.splits:
            return min(bound.left_out_by, -(-best // one))
        least, seen = bound.left_out_by, 0
        waiting = [(0, everything)]
        while waiting:
            number, case = waiting.pop()
            seen += 1
            if seen > len(bound.splits) or len(bound.values) != len(bound.splits):
                raise bound.refuse("a case that two others have below them")
            if bound.splits[number] is None:
                values = bound.values[number]
                if values is None:
                    raise bound.refuse(f"case {number} has no values")
                least = min(least, -(-self._with(values, case, False)[0] // one))
            else:
                waiting += self._below(number, case)
        return least

    # ---- what the certificate says -------------------------------------------------------------------------

    def _sets(self) -> sp.csr_array:
        """[s, n] int64: 1 where a customer is a member."""
        bound = self.bound
        ptr, nodes = bound.set_ptr, bound.set_nodes
        if not cuts_up(ptr, len(nodes)) or (np.diff(ptr) <= 0).any():
            raise bound.refuse("an empty set")
        if (nodes < 0).any() or (nodes >= self.n).any() or (nodes == self.depot).any():
            raise bound.refuse("a set of others than customers")
        ones, shape = np.ones(len(nodes), dtype=np.int64), (len(ptr) - 1, self.n)
        matrix = sp.csr_array((ones, nodes, ptr), shape=shape, copy=True)
        matrix.sum_duplicates()
        if matrix.nnz < len(nodes):
            raise bound.refuse("a set names a customer twice")
        return matrix

    def _needed(self) -> list[int]:
        """Vehicles that each set needs."""
        ptr, nodes, demand = self.bound.set_ptr, self.bound.set_nodes, self.deliveries.demand
        needs = [int(demand[nodes[a:b]].sum()) for a, b in pairwise(ptr)]
        return [max(1, -(-each // self.deliveries.capacity)) for each in needs]

    def _neighbours(self) -> np.ndarray:
        """[n, width], looked at: each customer itself comes first, and no other one twice."""
        near, bound = self.bound.near, self.bound
        fits = near.ndim == 2 and len(near) == self.n and 0 <= near.shape[1] <= MOST_WIDTH
        if not fits or (near < 0).any() or (near >= self.n).any():
            raise bound.refuse("neighbours that are none")
        customers = np.delete(near, self.depot, axis=0)
        if near.shape[1]:
            itself = customers[:, 0] == np.delete(np.arange(self.n), self.depot)
            ordered = np.sort(customers, axis=1)
            if not itself.all() or (np.diff(ordered, axis=1) == 0).any():
                raise bound.refuse("a customer is not the first of its neighbours, or has one twice")
        return near

    def _set_values(self, values: Values) -> dict[int, int]:
        """y of each set; the values are looked at."""
        bound, known = self.bound, self.member.shape[0]
        pi, sets, y = values.pi, values.sets, values.y
        if pi.shape != (self.n,) or (np.abs(pi.clip(-FAR, FAR)) > LARGEST).any():
            raise bound.refuse("not every customer has a value, or one too large")
        if pi[self.depot]:
            raise bound.refuse("the depot has a value")
        if y.shape != sets.shape or (sets < 0).any() or (sets >= known).any():
            raise bound.refuse("a value of an unknown set")
        if len(sorted_set(sets)) < len(sets):
            raise bound.refuse("two values of a set")
        if sum(map(abs, y.tolist())) > LARGEST:
            raise bound.refuse("values of sets that are too large")
        if not 0 <= values.width <= self.near.shape[1]:
            raise bound.refuse("more neighbours than there are")
        return dict(zip(sets.tolist(), y.tolist()))

    def _below(self, number: int, case: _Case) -> list[tuple[int, _Case]]:
        """The two cases of a set."""
        (chosen, k), child = self.bound.splits[number]
        inside = 0 <= chosen < self.member.shape[0] and 0 <= k < self.n
        if not inside or not number < child < len(self.bound.splits) - 1:
            raise self.bound.refuse(f"case {number} has no two cases below it")
        most = min(k, case.most.get(chosen, k))
        least = max(k + 1, case.least.get(chosen, k + 1))
        under = _Case(case.least, {**case.most, chosen: most})
        over = _Case({**case.least, chosen: least}, case.most)
        return [(child, under), (child + 1, over)]

    # ---- bounds --------------------------------------------------------------------------------------------

    def _constant(self, values: Values, case: _Case) -> int:
        """2 sum pi + sum y x(delta), the least that it can be."""
        total = 2 * sum(values.pi.tolist())
        for number, y in self._set_values(values).items():
            least = max(self.needed[number], case.least.get(number, 0))
            everyone = self.bound.set_ptr[number + 1] - self.bound.set_ptr[number] == self.n - 1
            size = int(self.bound.set_ptr[number + 1] - self.bound.set_ptr[number])
            most = min(size, case.most.get(number, size), self.many if everyone else size)
            total += 2 * y * (least if y > 0 else most)
        return total

    def _reduced(self, values: Values, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Reduced costs of edges i-j."""
        weight = np.zeros(self.member.shape[0], dtype=np.int64)
        weight[values.sets] = values.y
        used = np.flatnonzero(weight)
        around = sp.csr_array(self.member[used].T)
        of_point = values.pi + around @ weight[used]
        both = np.asarray(around[i].multiply(around[j]) @ weight[used]).ravel()
        cost = self.metric.between(i, j) << self.bound.places
        return cost - of_point[i] - of_point[j] + 2 * both

    def _pieces(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All edges i < j that routes can have, some at a time."""
        rows, demand = max(1, PIECE // self.n), self.deliveries.demand
        for first in range(0, self.n, rows):
            at = np.arange(first, min(first + rows, self.n))
            i, j = np.nonzero(np.arange(self.n) > at[:, None])
            i = at[i]
            fits = (demand[i] + demand[j] <= self.deliveries.capacity) & self._timely(i, j)
            yield i[fits], j[fits]

    def _timely(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Whether a vehicle that begins with one of both as early as can be comes in time to the other."""
        times = self.deliveries.times
        if times is None:
            return np.ones(len(i), dtype=bool)
        way = self.metric.between(i, j)
        late_at_j = times.opens[i] + times.service[i] + way > times.closes[j]
        return ~(late_at_j & (times.opens[j] + times.service[j] + way > times.closes[i]))

    def _over_all(self, values: Values, case: _Case) -> int:
        """The bound by edges, all of them."""
        total = self._constant(values, case)
        for i, j in self._pieces():
            total += exact_sum(np.minimum(self._reduced(values, i, j), 0) * self._times(i, j))
        return total

    def _times(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """How often routes can use edges."""
        return 1 + ((i == self.depot) | (j == self.depot)).astype(np.int64)

    def _leave_out(self, first: int, case: _Case) -> int:
        """Leave out edges by the values of the whole, whose first ones prove `first`; returns the best bound.

        It holds for routes shorter than left_out_by, as do the edges that are left.
        """
        bound, kept, best = self.bound, [], first
        short = (bound.left_out_by - 1) << bound.places
        for i, j in self._pieces():
            stays = self._reduced(bound.whole[0], i, j) <= short - first
            kept.append(np.column_stack([i[stays], j[stays]]))
            if sum(map(len, kept)) > MOST_KEPT * self.n:
                raise bound.refuse(f"a length of {bound.left_out_by} leaves out too few edges")
        self.i, self.j = np.concatenate(kept).T
        for number, values in enumerate(bound.whole[1:], 2):
            total, through = self._with(values, case, number < len(bound.whole) or bool(bound.splits))
            best, stays = max(best, total), through <= short
            self.i, self.j = self.i[stays], self.j[stays]
        return best

    def _with(self, values: Values, case: _Case, told: bool) -> tuple[int, np.ndarray]:
        """The bound with the edges that are left, and with each of them [edges] in use; told: False where the
        latter counts for nothing.
        """
        self._set_values(values)
        if values.width:
            absent = self._decided(case)[1]
            left = np.delete(self.i, absent), np.delete(self.j, absent)
            total, through = self._routes(values, case, *left, told)
            return total, np.insert(through, absent - np.arange(len(absent)), FAR)
        total = self._constant(values, case)
        reduced = self._reduced(values, self.i, self.j)
        counted = np.minimum(reduced, 0) * self._times(self.i, self.j)
        used, unused = self._decided(case)
        counted[used], counted[unused] = reduced[used], 0
        total += exact_sum(counted)
        return total, total + np.maximum(reduced, 0)

    def _decided(self, case: _Case) -> tuple[np.ndarray, np.ndarray]:
        """Places of edges between customers that a case's routes have, and of those they have not."""
        used = [number for number, k in case.most.items() if k == 1]
        unused = [number for number, k in case.least.items() if k > 1]
        return self._pairs(used), self._pairs(unused)

    def _pairs(self, sets: list[int]) -> np.ndarray:
        """Places of the edges between the customers of those sets that have two."""
        pairs = [self._members(number) for number in sets]
        keys = [min(pair) * self.n + max(pair) for pair in pairs if len(pair) == 2]
        return np.flatnonzero(np.isin(self.i * self.n + self.j, keys))

    def _members(self, number: int) -> list[int]:
        return self.bound.set_nodes[self.bound.set_ptr[number] : self.bound.set_ptr[number + 1]].tolist()

    # ---- ng-routes -----------------------------------------------------------------------------------------

    def _routes(
        self, values: Values, case: _Case, i: np.ndarray, j: np.ndarray, told: bool
    ) -> tuple[int, np.ndarray]:
        """The bound by ng-routes over edges i-j, and with each of them in use, if that is to be told."""
        self._fits_routes(values.width)
        total, reduced = self._constant(values, case), self._reduced(values, i, j)
        if self.deliveries.times is not None:
            least, through = self._in_time(values.width, i, j, reduced, told)
        else:
            least, through = self._by_loads(values.width, i, j, reduced)
        if least >= FAR:  # there is no route
            return FAR, np.full(len(i), FAR)
        few, many = self._numbers(case)
        times = many if least < 0 else few
        return total + least * times, np.where(through < FAR, total + through + least * (times - 1), FAR)

    def _by_loads(
        self, width: int, i: np.ndarray, j: np.ndarray, reduced: np.ndarray
    ) -> tuple[int, np.ndarray]:
        """The least cost of an ng-route whose load is within the limit, and of one with each edge."""
        if int(np.abs(reduced).max(initial=0)) * (self.longest + 2) > MOST_SUM:
            raise self.bound.refuse("reduced costs that are too large")
        paths = Paths(self.near[:, :width], self.loads, self.capacity, self.depot, i, j, reduced)
        return paths.least, paths.through()

    def _in_time(
        self, width: int, i: np.ndarray, j: np.ndarray, reduced: np.ndarray, told: bool
    ) -> tuple[int, np.ndarray]:
        """The least cost of an ng-route whose load and times are within limits, and of one with each edge."""
        if not fits_times(self.metric, self.deliveries):
            raise self.bound.refuse("times that are too large")
        hours, coarse = positive_times(self.metric, self.deliveries), coarse_for(self.n, width, self.capacity)
        stops = min(int(hours.closes.max()) // int(hours.way(i, j).min(initial=1 << 40)), MOST_PARTS) + 2
        stops = min(stops, self.longest) if coarse == 1 else stops
        if int(np.abs(reduced).max(initial=0)) * (stops + 2) > MOST_SUM:
            raise self.bound.refuse("reduced costs that are too large")
        given = self.near[:, :width], self.loads // coarse, self.capacity // coarse, self.depot
        try:
            paths = TimedPaths(*given, hours, i, j, reduced)
            if not told or paths.least >= FAR:
                return paths.least, np.full(len(i), -FAR)  # any edge may stay
            back = TimedPaths(*given, hours.backwards(self.depot), i, j, reduced)
        except TooMany:
            raise self.bound.refuse("too many paths in time") from None
        return paths.least, paths.through(back)

    def _fits_routes(self, width: int) -> None:
        if self.deliveries.times is not None and self.n << width <= MOST_STATES:
            return
        if self.n << width > MOST_STATES or self.n * (self.capacity + 1) > MOST_STATES:
            raise self.bound.refuse("too many loads, or neighbours")

    def _numbers(self, case: _Case) -> tuple[int, int]:
        """Least and most number of routes."""
        few, many = self.few, self.many
        for number in np.flatnonzero(np.diff(self.bound.set_ptr) == self.n - 1).tolist():
            few, many = max(few, case.least.get(number, few)), min(many, case.most.get(number, many))
        return few, max(many, 0)
