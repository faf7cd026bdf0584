"""Lagrangian duals of facility location without a table of all pairs: customers know their nearest places.

A multiplier v_i reaches only facilities that cost customer i less (witness.py), and good multipliers are
little more than what the second nearest open facility costs. So lists of the nearest places of each customer
are enough: a multiplier stays below what the first place costs that is not in the list.
"""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from app.bounds.facility.dual import AGAIN, CASE_STEP, LEAST_STEP, PATIENCE, STEP, Cases
from app.bounds.facility.witness import summed
from app.graphs.facility_lists import Lists, lists_of
from app.graphs.facility_network import NetworkSites
from app.graphs.facility_points import PointSites
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
REDUCED = function("lk_lists_reduced", Long, Long, *(Pointer,) * 5, Long, Pointer)
SERVED = function("lk_lists_served", Long, Long, *(Pointer,) * 5, Long, *(Pointer,) * 2)
TIMES, MORE = 4, 32  # places in a list for each that there is to a facility, and beside these
MOST_ENTRIES, ENTRY_BYTES = 1 << 27, 12  # of all lists, at most; of one
ENTRY_SECONDS = 1.5e-7  # of making an entry, about


def width_of(sites: Any, facilities: int, most_bytes: float) -> int:
    """Places in a list, where so many facilities are open; 0: there is no room for lists that are of use."""
    wanted = min(TIMES * -(-sites.m // max(facilities, 1)) + MORE, sites.m)
    most = int(min(MOST_ENTRIES, most_bytes // ENTRY_BYTES)) // max(sites.n, 1)
    return min(wanted, most) if 2 * most >= wanted else 0


class ListCases(Cases):
    """Cases of a question whose customers have lists; multipliers stay below what these leave out.

    They begin halfway between what the nearest and the second nearest facility of a solution cost.
    """

    def __init__(
        self, sites: NetworkSites | PointSites, start: np.ndarray, width: int, compiled: bool = True,
        heard: Callable[[], bool] | None = None,
    ) -> None:  # fmt: skip
        """start   [m] bool, the solution     width   of the lists     heard   see lists_of. Raises Halted"""
        self.lists: Lists = lists_of(sites, np.arange(sites.n), width, compiled, heard)
        self._listed = compiled and None not in (REDUCED, SERVED)
        super().__init__(sites, np.zeros(sites.n, dtype=np.int64), compiled)
        self._highest = np.minimum(self._highest, self.one * sites.demand * self.lists.limit)
        v = self.one * sites.demand * self._halfway(start)
        self.root.v = self.root.begin = np.minimum(v, self._highest)

    def _halfway(self, start: np.ndarray) -> np.ndarray:
        """[n] int64, the mean distance of the first two open places in the lists; those that lack are just
        beyond.
        """
        lists, every = self.lists, np.arange(self.sites.n)
        open_ = start[lists.near] & lists.held
        found = np.zeros(self.sites.n, dtype=np.int64)
        for _ in range(2):
            k = open_.argmax(axis=1)
            found += np.where(open_[every, k], lists.away[every, k], lists.limit)
            open_[every, k] = False
        return found // 2

    def _given(self) -> tuple[Any, ...]:
        lists = self.lists
        arrays = (lists.near, lists.away, lists.counts, self.sites.demand)
        return (*lists.near.shape, *(address(each) for each in arrays))

    def _costs(self) -> np.ndarray:
        """[n, width] int64, what customers cost at the places of their lists, in parts."""
        return self.one * self.sites.demand[:, None] * self.lists.away

    def _reduced(self, v: np.ndarray) -> np.ndarray:
        """[m] int64, r_j of FacilityBound."""
        found = self.sites.opening * self.one
        if self._listed:
            REDUCED(*self._given(), address(v), self.one, address(found))
            return found
        less = v[:, None] - self._costs()
        inside = (less > 0) & self.lists.held
        return found - summed(self.lists.near[inside], less[inside], self.sites.m)

    def _served(self, v: np.ndarray, taken: np.ndarray) -> np.ndarray:
        """[n] int64, how many facilities of a mask [m] cost less than multipliers say."""
        if self._listed:
            found, mask = np.empty(self.sites.n, dtype=np.int64), taken.astype(np.uint8)
            SERVED(*self._given(), address(v), self.one, address(mask), address(found))
            return found
        inside = (self._costs() < v[:, None]) & self.lists.held
        return np.count_nonzero(inside & taken[self.lists.near], axis=1).astype(np.int64)

    def _course(self) -> Iterator[bool]:
        """Multipliers of the question, and of what they leave open, while that fixes many facilities."""
        node, before, step = self.root, 0, STEP
        while True:
            yield from self._ascend(node, step, LEAST_STEP, PATIENCE)
            self._keep(node)
            if self._fixes(node, node.v) or node.closed.all():
                self._raise(self.upper * self.one)
                return
            now = int(np.count_nonzero(node.open | node.closed))
            if np.count_nonzero(node.open) == self.sites.most:
                self._offer(node.open)
                return
            if now - before <= AGAIN * (self.sites.m - before):
                return
            before, step = now, CASE_STEP
