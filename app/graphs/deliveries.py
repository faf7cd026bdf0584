"""Deliveries: what customers need, when, and what a vehicle carries, beside the distances of a Metric."""

from dataclasses import dataclass

import numpy as np

MOST_TIME = 2**53  # of all services and distances of a route, and of a window


@dataclass(frozen=True, eq=False)
class Times:
    """When customers are served. A vehicle takes a unit of time for each unit of length; it may wait.

    opens    [n] int64, when service may begin, at least 0; of the depot: when vehicles leave
    closes   [n] int64, when it has to have begun; of the depot: when vehicles have to be back
    service  [n] int64, how long it takes, at least 0; 0 at the depot
    given    [n] int64, `closes` as somebody gave them, MOST_TIME of what never does; None: these are they
    """

    opens: np.ndarray
    closes: np.ndarray
    service: np.ndarray
    given: np.ndarray | None = None

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What counts."""
        return self.opens, self.closes, self.service

    def both_ways(self, depot: int) -> bool:
        """Whether the depot's hours alone count: every route may then be driven backwards."""
        early, late = self.opens <= self.opens[depot], self.closes >= self.closes[depot]
        return bool((early & late).all())


@dataclass(frozen=True, eq=False)
class Deliveries:
    """What routes deliver: customers are all points but the depot.

    depot      the point where routes begin and end
    demand     [n] int64, at least 0; 0 of the depot
    capacity   what a vehicle carries, at least the largest demand
    vehicles   at most so many routes, 0: any number
    times      when customers are served; None: whenever
    """

    depot: int
    demand: np.ndarray
    capacity: int
    vehicles: int = 0
    times: Times | None = None

    @property
    def fewest(self) -> int:
        """Routes that the demand needs at least: its sum over the capacity, rounded up."""
        return -(-int(self.demand.sum()) // self.capacity)

    @property
    def both_ways(self) -> bool:
        """Whether routes may be driven backwards, too."""
        return self.times is None or self.times.both_ways(self.depot)


def limited(n: int, depot: int, most: int, service: np.ndarray) -> Times:
    """Times of routes that take at most so long, service [n] included; there are no other limits."""
    full = np.full(n, most, dtype=np.int64)
    return Times(np.zeros(n, dtype=np.int64), full, service)
