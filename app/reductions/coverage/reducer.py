"""Exact reductions of maximum coverage: sets that another one makes up for, and elements that are alike.

The log has two words for each set that goes: the set A, and a set B that is there, is no dearer, and holds
all elements of A. A choice with A and without B is worth no more with B in its place; one with both is worth
as much without A. Sets without elements, and those dearer than the budget, go without a word; elements that
the same sets hold become one with the weight of all of them.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from app.graphs.family import Family

LOOK = 256  # sets between two looks at the clock


class CoverageReducer:
    """What is left of a family.

    alive   [m] bool, sets that are there     log   of those that went
    steps   sets looked at
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        sizes = np.diff(family.set_ptr)
        self.alive = (sizes > 0) & (family.cost <= family.budget)
        self.log: list[int] = []
        self.steps = 0

    def reduce(self, look: Callable[[], Any], most: int = 0) -> None:
        """Take out sets that others make up for; all of them are looked at, or as many as there is time for.

        A set that holds all elements of another is among the sets of each of these: those of the rarest
        elements are intersected until none is left.
        """
        family = self.family
        ptr, sizes = family.set_ptr.tolist(), np.diff(family.set_ptr).tolist()
        cost, degree, alive = family.cost.tolist(), np.diff(family.element_ptr), self.alive.tolist()
        near = _Members(family)
        for a in np.flatnonzero(self.alive).tolist():
            if (most and self.steps == most) or (self.steps % LOOK == LOOK - 1 and look()):
                return
            self.steps += 1
            held = family.elements[ptr[a] : ptr[a + 1]]
            held = held[np.argsort(degree[held], kind="stable")].tolist()
            others = {
                b for b in near.of(held[0])
                if b != a and sizes[b] >= sizes[a] and cost[b] <= cost[a] and alive[b]
            }  # fmt: skip
            for v in held[1:]:
                if not others:
                    break
                others &= near.of(v)
            if others:
                self.alive[a] = alive[a] = False
                self.log += [a, min(others)]

    def kernel(self) -> tuple[Family, np.ndarray, np.ndarray]:
        """The family that is left; [m'] its sets by their numbers; and [n] the place of each element in it,
        -1 of those that no set holds.
        """
        family, sets = self.family, np.flatnonzero(self.alive)
        left = family.part(sets, np.arange(family.n))
        place = _alike(left)
        first = np.flatnonzero(place >= 0)
        weight = np.zeros(int(place.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(weight, place[first], family.weight[first])
        _, first_of = np.unique(place[first], return_index=True)
        core = left.part(np.arange(left.m), first[first_of])
        cost, budget = core.cost, min(core.budget, int(core.cost.sum()))
        unit = max(math.gcd(*cost.tolist()), 1)
        cost, budget = cost // unit, budget // unit
        core = Family(core.set_ptr, core.elements, core.element_ptr, core.sets, weight, cost, budget)
        return core, sets, place

    def stands_for(self) -> np.ndarray:
        """[m] int64, the set that is there in the place of each; -1: none has to be."""
        found = np.where(self.alive, np.arange(self.family.m), -1)
        for i in range(len(self.log) - 2, -1, -2):
            found[self.log[i]] = found[self.log[i + 1]]
        return found


class _Members:
    """The sets of elements as Python's sets, made when they are asked for."""

    def __init__(self, family: Family) -> None:
        self._family, self._known = family, {}

    def of(self, v: int) -> set[int]:
        """Those of an element."""
        found = self._known.get(v)
        if found is None:
            family = self._family
            found = set(family.sets[family.element_ptr[v] : family.element_ptr[v + 1]].tolist())
            self._known[v] = found
        return found


def _alike(family: Family) -> np.ndarray:
    """[n] int64, numbers of elements, the same of those that the same sets hold, in the order of the first of
    each; -1 where none does.
    """
    ptr, sets = family.element_ptr.tolist(), family.sets
    known: dict[bytes, int] = {}
    found = np.full(family.n, -1, dtype=np.int64)
    for v in range(family.n):
        if ptr[v] < ptr[v + 1]:
            found[v] = known.setdefault(sets[ptr[v] : ptr[v + 1]].tobytes(), len(known))
    return found
