"""Deliveries: what customers need and what a vehicle carries, beside the distances of a Metric."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Deliveries:
    """What routes deliver: customers are all points but the depot.

    depot      the point where routes begin and end
    demand     [n] int64, at least 0; 0 of the depot
    capacity   what a vehicle carries, at least the largest demand
    vehicles   at most so many routes, 0: any number
    """

    depot: int
    demand: np.ndarray
    capacity: int
    vehicles: int = 0

    @property
    def fewest(self) -> int:
        """Routes that the demand needs at least: its sum over the capacity, rounded up."""
        return -(-int(self.demand.sum()) // self.capacity)
