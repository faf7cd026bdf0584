"""Which facilities have which customers below a radius: by a table of all pairs, or by lists."""

import math
import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from app.bounds.certificate import BadCertificate
from app.graphs.facility import Sites
from app.graphs.facility_lists import lists_of, lists_within
from app.graphs.keys import sorted_set

MOST_ENTRIES = 1 << 27  # of customers and facilities that have them, without a table
ASKED = 32  # customers that tell how many there are
ENTRY_BYTES = 64  # of one, at most, while they are sorted


class Reach(Protocol):
    """Facilities [m] and customers [n] of one radius."""

    def of(self, u: int) -> np.ndarray:
        """[k] the facilities that have a customer, ascending."""
        ...

    def alone(self) -> np.ndarray:
        """[k] customers that no facility has, ascending."""
        ...

    def held(self, x: np.ndarray) -> np.ndarray:
        """[n] float64, of each customer the sum of x [m] over the facilities that have it."""
        ...

    def sharing(self, u: int, others: np.ndarray) -> np.ndarray:
        """[k] bool, which of customers [k] one facility has together with u."""
        ...

    def spread(self, count: int) -> list[int]:
        """As many customers, or fewer, where a cover begins: far from each other."""
        ...


class TableReach:
    """By a table."""

    def __init__(self, sites: Sites, radius: int) -> None:
        self.sites, self.radius, self.near = sites, radius, sites.cost < radius

    def of(self, u: int) -> np.ndarray:
        """[k] the facilities that have a customer, ascending."""
        return np.flatnonzero(self.near[:, u])

    def alone(self) -> np.ndarray:
        """[k] customers that no facility has, ascending."""
        return np.flatnonzero(~self.near.any(axis=0))

    def held(self, x: np.ndarray) -> np.ndarray:
        """[n] float64, of each customer the sum of x [m] over the facilities that have it."""
        used = np.flatnonzero(x)
        return x[used] @ self.near[used]

    def sharing(self, u: int, others: np.ndarray) -> np.ndarray:
        """[k] bool, which of customers [k] one facility has together with u."""
        return self.near[np.ix_(self.near[:, u], others)].any(axis=0)

    def spread(self, count: int) -> list[int]:
        """Customers that are far from each other's nearest facilities."""
        sites, found = self.sites, []
        least = sites.least(sites.forced)
        for _ in range(count):
            u = int(least.argmax())
            if found and least[u] < self.radius:
                break
            found.append(u)
            np.minimum(least, sites.cost[sites.cost[:, u].argmin()], out=least)
        return found


def costs_within(
    sites: Any, customers: np.ndarray, radius: int, compiled: bool = True, most: int = MOST_ENTRIES,
    end: float = math.inf,
) -> sp.csr_array:  # fmt: skip
    """[k, m] int64, 1 more than what customers [k] cost at places, where that is less than a radius.

    Raises MemoryError where these are more than `most`, TimeoutError after `end`, by time.perf_counter()
    """
    entries = 0
    number = np.zeros(sites.n, dtype=np.int64)
    number[customers] = np.arange(len(customers))
    rows, places, costs, limit = [], [], [], np.minimum(radius, sites.worst[customers] + 1)
    for part, lists, inside in lists_within(sites, customers, limit, 1, compiled):
        at, k = np.nonzero(inside)
        rows.append(number[part[at]])
        places.append(lists.near[at, k])
        costs.append(sites.demand[part[at]] * lists.away[at, k] + 1)
        entries += len(at)
        if entries > most:
            raise MemoryError
        if time.perf_counter() > end:
            raise TimeoutError
    told = (np.concatenate(costs), (np.concatenate(rows), np.concatenate(places)))
    return sp.csr_array(told, shape=(len(customers), sites.m))


def _refuse_many(sites: Any, radius: int, compiled: bool, most: int) -> None:
    """Raises MemoryError where some customers say that pairs within a radius are more than `most`: lists are
    made longer and longer before they reach what is far.
    """
    asked = sorted_set(np.linspace(0, sites.n - 1, ASKED).astype(np.int64))
    each = most // sites.n
    lists = lists_of(sites, asked, min(4 * each + 1, sites.m), compiled)
    near = lists.held & (sites.demand[asked, None] * lists.away < radius)
    if np.count_nonzero(near) > each * len(asked):
        raise MemoryError


@dataclass(frozen=True, eq=False)
class Covers:
    """The question how many of some customers cost a radius or more, like Sites.within.

    near   [k, m] bool, sparse: which facilities have which customer
    """

    near: sp.csr_array
    forced: np.ndarray
    most: int
    largest: bool = False

    @property
    def m(self) -> int:
        """Facilities."""
        return self.near.shape[1]

    @property
    def n(self) -> int:
        """Customers."""
        return self.near.shape[0]

    @property
    def opening(self) -> np.ndarray:
        """[m] int64, nothing."""
        return np.zeros(self.m, dtype=np.int64)

    @property
    def worst(self) -> np.ndarray:
        """[n] int64, 1 where some facility does not have a customer."""
        return (np.diff(self.near.indptr) < self.m).astype(np.int64)

    def held_by(self, v: np.ndarray) -> np.ndarray:
        """[m] int64, of each facility the sum of multipliers [n] over the customers that it has."""
        return self.near.T.astype(np.int64) @ v


def covers_of(sites: Any, customers: np.ndarray, radius: int) -> Any:
    """The question how many of customers [k] cost a radius or more."""
    if isinstance(sites, Sites):
        return sites.of(customers).within(radius)
    try:
        near = costs_within(sites, customers, radius)
    except MemoryError:
        raise BadCertificate(f"names more than {MOST_ENTRIES} pairs of a customer and a facility") from None
    return Covers(near.astype(bool), sites.forced, sites.most)


class ListReach:
    """By lists; a smaller radius takes what it needs of them."""

    def __init__(
        self, sites: Any, radius: int, compiled: bool = True, most: int = MOST_ENTRIES, end: float = math.inf
    ) -> None:
        """Raises MemoryError, TimeoutError as costs_within."""
        self._m, self.radius = sites.m, radius
        _refuse_many(sites, radius, compiled, most)
        self._made = costs_within(sites, np.arange(sites.n), radius, compiled, most, end)
        self._take(radius)

    def _take(self, radius: int) -> None:
        """The pairs of a radius, of those that there are."""
        kept = self._made.data <= radius
        ptr = np.concatenate([[0], np.cumsum(kept)])[self._made.indptr]
        self._near = sp.csr_array((np.ones(ptr[-1]), self._made.indices[kept], ptr), self._made.shape)
        self._near.sort_indices()

    def smaller(self, radius: int) -> "ListReach":
        """The same of a smaller radius."""
        found = object.__new__(ListReach)
        found._m, found.radius, found._made = self._m, radius, self._made
        found._take(radius)
        return found

    def entries_of(self, customers: np.ndarray) -> int:
        """How many facilities customers [k] have, at the largest radius."""
        return int(np.diff(self._made.indptr)[customers].sum())

    @property
    def near(self) -> sp.csr_array:
        """[n, m] float64, 1 where a facility has a customer."""
        return self._near

    def of(self, u: int) -> np.ndarray:
        """[k] the facilities that have a customer, ascending."""
        return self._near.indices[self._near.indptr[u] : self._near.indptr[u + 1]]

    def alone(self) -> np.ndarray:
        """[k] customers that no facility has, ascending."""
        return np.flatnonzero(np.diff(self._near.indptr) == 0)

    def held(self, x: np.ndarray) -> np.ndarray:
        """[n] float64, of each customer the sum of x [m] over the facilities that have it."""
        return self._near @ x

    def sharing(self, u: int, others: np.ndarray) -> np.ndarray:
        """[k] bool, which of customers [k] one facility has together with u."""
        return self._near[others] @ np.isin(np.arange(self._m), self.of(u)).astype(np.float64) > 0

    def spread(self, count: int) -> list[int]:
        """Customers of which no two share a facility, those of few facilities first."""
        near, used, found = self._near, np.zeros(self._m, dtype=bool), []
        for u in np.argsort(np.diff(near.indptr), kind="stable").tolist():
            places = self.of(u)
            if used[places].any():
                continue
            found.append(u)
            used[places] = True
            if len(found) == count:
                break
        return found
