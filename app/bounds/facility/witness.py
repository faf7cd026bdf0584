"""Lower bounds on facility location with a witness: multipliers of customers, and cases of facilities."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.bounds.certificate import BadCertificate, Proof, cuts_up, exact_sum
from app.bounds.facility.reach import Covers, covers_of
from app.graphs.facility import Sites
from app.graphs.facility_lists import lists_within

LARGEST = 1 << 61  # of all multipliers, and of opening all facilities, in parts
FINEST = 1 << 20  # parts of a unit, at most
HALF = (1 << 30) - 1


@dataclass(frozen=True, eq=False)
class FacilityBound(Proof):
    """No solution is worth less than `lower`.

    Multipliers v_i of the customers, from 0 to the most that one may cost, prove a bound: each customer is
    served by an open facility, so that a solution with the open facilities X costs at least

        sum over j in X of f_j  +  sum over i of (v_i + min over j in X of min(0, c_ij - v_i))
          >=  sum of v_i  +  sum over j in X of r_j,      r_j = f_j + sum over i of min(0, c_ij - v_i),

    and the least of that over all X which may be opened takes the facilities of the smallest r_j below 0, as
    many as may be, after those that have to be open. This is Lagrangian relaxation of the assignment of
    customers (Cornuejols, Fisher and Nemhauser 1977). Where the same sum with facility j open, or closed, is
    `lower` or more, every solution that is worth less has it closed, or open: it is fixed.

    Cases are a tree of nodes in preorder. A node has rows of multipliers, each of which fixes facilities, and
    begins with the last row of the node above; then the bound is `lower` or more, or it goes on in two
    nodes: with the facility `branch` open, and closed. Of the largest cost of a customer (p-centre) the bound
    is that of how many customers cost `lower` or more: 1 at least.

    rows    [k, n] int64, multipliers in parts of `one`        one   parts of a unit
    ptr     [nodes + 1] int64, where the rows of a node begin  branch  [nodes] int64, -1: none
    """

    lower: int
    method: str
    one: int
    rows: np.ndarray
    ptr: np.ndarray
    branch: np.ndarray

    def check(self, sites: Any) -> None:
        """Prove the bound from the question alone; raises BadCertificate."""
        lower = self.lower
        if lower <= 0:
            return
        if lower > size_of(sites):
            raise BadCertificate(f"{self.method}: {lower} is more than any solution is worth")
        if sites.largest:
            sites, lower = sites.within(lower), 1
        self._refuse_damaged(sites)
        todo = [(sites.forced.copy(), np.zeros(sites.m, dtype=bool), None)]
        for node in range(len(self.branch)):
            if not todo:
                raise BadCertificate(f"{self.method}: has cases beside its tree")
            open_, closed, row = todo.pop()
            rows = [] if row is None else [row]
            rows += list(self.rows[self.ptr[node] : self.ptr[node + 1]])
            done = fixed_by(sites, rows, self.one, lower, open_, closed)
            j = int(self.branch[node])
            if j < 0 and not done:
                raise BadCertificate(f"{self.method}: case {node} does not prove {self.lower}")
            if j >= 0:
                last = rows[-1] if rows else None
                todo += [(open_, _with(closed, j), last), (_with(open_, j), closed, last)]
        if todo:
            raise BadCertificate(f"{self.method}: cases are missing")

    def _refuse_damaged(self, sites: Any) -> None:
        """Raises BadCertificate for what is no tree of multipliers of these customers."""
        nodes = len(self.branch)
        if not (nodes and len(self.ptr) == nodes + 1 and cuts_up(self.ptr, len(self.rows))):
            raise BadCertificate(f"{self.method}: rows and cases do not fit")
        if self.rows.ndim != 2 or self.rows.shape[1] != sites.n or self.rows.dtype != np.int64:
            raise BadCertificate(f"{self.method}: needs rows of {sites.n} whole numbers")
        if not ((self.branch >= -1) & (self.branch < sites.m)).all():
            raise BadCertificate(f"{self.method}: found a case of what is no facility")
        if not 0 < self.one <= FINEST or self.one * size_of(sites) > LARGEST:
            raise BadCertificate(f"{self.method}: multipliers over {self.one} are not exact")
        if (self.rows < 0).any() or (self.rows > self.one * sites.worst).any():
            raise BadCertificate(f"{self.method}: a multiplier is below 0 or above all costs of its customer")


@dataclass(frozen=True, eq=False)
class CenterBound(Proof):
    """No solution has all customers below `lower`, as none has the few that are named.

    customers   [k] int64, ascending     cases   that of these 1 at least costs `lower` or more
    """

    lower: int
    method: str
    customers: np.ndarray
    cases: FacilityBound

    def check(self, sites: Any) -> None:
        """Prove the bound from the question alone; raises BadCertificate."""
        if self.lower <= 0:
            return
        found = self.customers
        if len(found) and not (found[0] >= 0 and found[-1] < sites.n and (found[1:] > found[:-1]).all()):
            raise BadCertificate(f"{self.method}: its customers are not ascending")
        if self.lower > size_of(sites) + 1:  # which is the cost of not being reached
            raise BadCertificate(f"{self.method}: {self.lower} is more than any solution is worth")
        if not sites.largest or self.cases.lower != 1:
            raise BadCertificate(f"{self.method}: proves nothing of this question")
        self.cases.check(covers_of(sites, found, self.lower))


def _with(mask: np.ndarray, j: int) -> np.ndarray:
    found = mask.copy()
    found[j] = True
    return found


def size_of(sites: Any) -> int:
    """What all customers at their worst places and all openings cost together."""
    return exact_sum(sites.worst) + exact_sum(sites.opening)


def unit_of(sites: Any) -> int:
    """Parts of a unit that multipliers have: a power of two."""
    return min(FINEST, 1 << max((LARGEST // max(size_of(sites), 1)).bit_length() - 1, 0))


def fixed_by(
    sites: Any, rows: list[np.ndarray], one: int, lower: int, open_: np.ndarray, closed: np.ndarray
) -> bool:
    """Whether rows of multipliers prove a case; what they fix is added to the masks [m] on the way."""
    for v in rows:
        if _empty(sites, open_, closed):
            return True
        reduced = sites.opening * one + reduced_costs(sites, v, one)
        if fix(sites, exact_sum(v), reduced, (lower - 1) * one, open_, closed):
            return True
    return _empty(sites, open_, closed)


def _empty(sites: Sites, open_: np.ndarray, closed: np.ndarray) -> bool:
    """Whether no solution is like a case: one facility at least is open."""
    return bool((open_ & closed).any() or closed.all() or np.count_nonzero(open_) > sites.most)


def fix(
    sites: Sites, total: int, reduced: np.ndarray, least: int, open_: np.ndarray, closed: np.ndarray
) -> bool:
    """Whether the bound is above `least`, in parts; else the masks get what it fixes of the free facilities.

    total   of the multipliers      reduced   [m] int64, r_j, from -LARGEST to LARGEST
    """
    free, room = np.flatnonzero(~(open_ | closed)), sites.most - int(np.count_nonzero(open_))
    free = free[np.argsort(reduced[free], kind="stable")]
    costs = reduced[free]
    taken = min(room, int(np.searchsorted(costs, 0)))
    bound = total + exact_sum(reduced[open_]) + exact_sum(costs[:taken])
    if bound > least:
        return True
    bound = max(bound, -2 * LARGEST)  # below that nothing is fixed, and all below fits into 63 bits
    after = min(int(costs[taken]), 0) if taken < len(costs) else 0
    left_out = bound - costs[:taken] + after > least
    gone = 0 if taken < room or not taken else int(costs[taken - 1])
    taken_in = bound + costs[taken:] - gone > least if room else np.ones(len(costs), dtype=bool)
    open_[free[:taken][left_out]] = True
    closed[free[taken:][taken_in]] = True
    return False


def reduced_costs(sites: Any, v: np.ndarray, one: int) -> np.ndarray:
    """[m] int64, of each facility the sum over customers of min(0, one cost - v)."""
    if isinstance(sites, Covers):
        return -sites.held_by(v)
    if not isinstance(sites, Sites):
        return _without_table(sites, v, one)
    used, width = np.flatnonzero(v), min(8, sites.m)
    v, near, ordered = v[used], sites.near[used], sites.ordered[used]
    while width < sites.m and (one * ordered[:, width - 1] < v).any():
        width = min(2 * width, sites.m)
    less = v[:, None] - one * ordered[:, :width]
    inside = less > 0
    return -summed(near[:, :width][inside], less[inside], sites.m)


def summed(at: np.ndarray, values: np.ndarray, m: int) -> np.ndarray:
    """[m] int64, sums of values [k] below 2^61 by where they belong [k].

    Sums of float64 are exact up to 2^53, and there are fewer than 2^22 customers.
    """
    high = np.bincount(at, weights=values >> 30, minlength=m).astype(np.int64)
    low = np.bincount(at, weights=values & HALF, minlength=m).astype(np.int64)
    return (high << 30) + low


def _without_table(sites: Any, v: np.ndarray, one: int) -> np.ndarray:
    """The same of points and networks, of lists of the nearest places."""
    found, used = np.zeros(sites.m, dtype=np.int64), np.flatnonzero(v)
    for part, lists, inside in lists_within(sites, used, v[used], one):
        less = v[part, None] - one * sites.demand[part, None] * lists.away
        found -= summed(lists.near[inside], less[inside], sites.m)
    return found
