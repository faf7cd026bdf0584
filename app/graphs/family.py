"""Family: sets of weighted elements with costs, of which some may be chosen for a budget."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from app.graphs.graph import Graph, index_type
from app.graphs.lists import starts


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
        if len(sets) == self.m and len(elements) == self.n:
            return self if budget is None else replace(self, budget=int(budget))
        place = np.full(self.n, -1, dtype=np.int64)
        place[elements] = np.arange(len(elements))
        number = np.full(self.m, -1, dtype=np.int64)
        number[sets] = np.arange(len(sets))
        u, v = number[self.set_of()], place[self.elements]
        kept = (u >= 0) & (v >= 0)
        left = self.budget if budget is None else budget
        return ascending_family(u[kept], v[kept], self.weight[elements], self.cost[sets], left)

    def pattern(self, name: str) -> Graph:
        """The graph of which set holds which element: sets 0..m-1, then elements."""
        count = self.m + self.n
        indptr = np.append(self.set_ptr, self.set_ptr[-1] + self.element_ptr[1:])
        indices = np.concatenate([self.m + self.elements.astype(np.int64), self.sets])
        return Graph(name, count, 0, count, indptr, indices.astype(index_type(count)), self.entries)


def family_of(u: np.ndarray, v: np.ndarray, weight: np.ndarray, cost: np.ndarray, budget: int) -> Family:
    """The family of distinct pairs: set u[i] holds element v[i]; [k] numbers in any order."""
    order = np.lexsort((v, u))
    return ascending_family(u[order], v[order], weight, cost, budget)


def ascending_family(
    u: np.ndarray, v: np.ndarray, weight: np.ndarray, cost: np.ndarray, budget: int
) -> Family:
    """The same family of pairs in ascending order."""
    m, n = len(cost), len(weight)
    set_ptr = starts(u, m)
    elements = v.astype(np.int32)
    by_set = sp.csr_array((u.astype(np.int32), elements, set_ptr), shape=(m, n))
    by_element = by_set.tocsc()  # within an element sets stay in their order
    return Family(
        set_ptr, elements, by_element.indptr.astype(np.int64), by_element.data, weight, cost, int(budget)
    )
