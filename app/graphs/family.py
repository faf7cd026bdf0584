"""Family: sets of weighted elements with costs, of which some may be chosen for a budget."""

from dataclasses import dataclass

import numpy as np

from app.graphs.graph import Graph, from_edges


@dataclass(frozen=True, eq=False)
class Family:
    """Sets 0..m-1 of elements 0..n-1, each pair once; what is chosen of the sets costs at most the budget.

    set_ptr, elements    [m+1] int64, [k] int32: the elements of each set, ascending
    element_ptr, sets    [n+1] int64, [k] int32: the sets of each element, ascending
    weight   [n] int64, of the elements, at least 0      cost   [m] int64, of the sets, above 0
    """

    set_ptr: np.ndarray
    elements: np.ndarray
    element_ptr: np.ndarray
    sets: np.ndarray
    weight: np.ndarray
    cost: np.ndarray
    budget: int

    @property
    def m(self) -> int:
        """How many sets there are."""
        return len(self.cost)

    @property
    def n(self) -> int:
        """How many elements."""
        return len(self.weight)

    @property
    def entries(self) -> int:
        """Pairs of a set and one of its elements."""
        return len(self.elements)

    @property
    def uniform(self) -> bool:
        """Whether all sets cost one, so that the budget is their number."""
        return bool((self.cost == 1).all())

    def set_of(self) -> np.ndarray:
        """[k] int64, the set of each entry of `elements`."""
        return np.repeat(np.arange(self.m), np.diff(self.set_ptr))

    def covered(self, chosen: np.ndarray) -> np.ndarray:
        """[n] bool, the elements that sets chosen [m] bool hold."""
        found = np.zeros(self.n, dtype=bool)
        found[self.elements[np.repeat(chosen, np.diff(self.set_ptr))]] = True
        return found

    def value(self, chosen: np.ndarray) -> int:
        """The weight of these."""
        return int(self.weight[self.covered(chosen)].sum())

    def values(self, prices: np.ndarray) -> np.ndarray:
        """[m] int64, for each set the sum of prices [n] int64 of its elements."""
        total = np.append(0, np.cumsum(prices[self.elements]))
        return total[self.set_ptr[1:]] - total[self.set_ptr[:-1]]

    def part(self, sets: np.ndarray, elements: np.ndarray, budget: int | None = None) -> "Family":
        """The sets [a] and elements [b] named, ascending, numbered in their order."""
        place = np.full(self.n, -1, dtype=np.int64)
        place[elements] = np.arange(len(elements))
        number = np.full(self.m, -1, dtype=np.int64)
        number[sets] = np.arange(len(sets))
        u, v = number[self.set_of()], place[self.elements]
        kept = (u >= 0) & (v >= 0)
        left = self.budget if budget is None else budget
        return family_of(u[kept], v[kept], self.weight[elements], self.cost[sets], left)

    def pattern(self, name: str) -> Graph:
        """The graph of which set holds which element: sets 0..m-1, then elements."""
        return from_edges(self.m + self.n, self.set_of(), self.m + self.elements.astype(np.int64), name=name)


def family_of(u: np.ndarray, v: np.ndarray, weight: np.ndarray, cost: np.ndarray, budget: int) -> Family:
    """The family of distinct pairs: set u[i] holds element v[i]; [k] numbers in any order."""
    ptrs, columns = [], []
    for rows, others, count in ((u, v, len(cost)), (v, u, len(weight))):
        order = np.lexsort((others, rows))
        ptrs.append(np.append(0, np.cumsum(np.bincount(rows, minlength=count))).astype(np.int64))
        columns.append(others[order].astype(np.int32))
    return Family(ptrs[0], columns[0], ptrs[1], columns[1], weight, cost, int(budget))
