"""Sets of customers that routes enter and leave, and how often they have to.

With x_e how often the routes use the edge e, x(delta(S)) the sum over edges with one end in the set S:
whatever the routes are, x(delta(S)) is even, for every customer has degree 2, and
    rounded capacity inequality   x(delta(S)) >= 2 ceil(demand of S / capacity)
says how many vehicles S needs. The set of all customers tells the number of routes: x(delta) is twice that.

Source   Laporte and Nobert 1983
"""

import numpy as np

from app.bounds.node_sets import NodeSets
from app.graphs.deliveries import Deliveries


class Sets(NodeSets):
    """Sets of customers of one problem.

    fewest     vehicles that each needs: x(delta(S)) >= 2 fewest
    everyone   number of the set of all customers
    """

    def __init__(self, n: int, deliveries: Deliveries) -> None:
        super().__init__(n)
        self.deliveries, self.fewest = deliveries, list[int]()
        self.everyone = self.number(np.delete(np.arange(n), deliveries.depot))

    def number(self, members: np.ndarray) -> int:
        """The number of a set of customers."""
        number = super().number(members)
        if number == len(self.fewest):
            self.fewest.append(vehicles_for(self.deliveries, self.members[number]))
        return number


def vehicles_for(deliveries: Deliveries, members: np.ndarray) -> int:
    """Vehicles that customers need at least: one, and as many as carry their demand."""
    return max(1, -(-int(deliveries.demand[members].sum()) // deliveries.capacity))
