"""Lagrangian duals of facility location, improved by subgradients, and branch and bound on facilities.

Source   Cornuejols, Fisher and Nemhauser, Location of bank accounts to optimize float, 1977; steps: Held,
         Wolfe and Crowder 1974; fixing by reduced costs and branching: Beasley, A note on solving large
         p-median problems, 1985
"""

import ctypes
import heapq
from collections.abc import Iterator

import numpy as np

from app.bounds.certificate import exact_sum
from app.bounds.facility.witness import LARGEST, FacilityBound, fix, reduced_costs, unit_of
from app.graphs.facility import Sites
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
REDUCED = function("lk_facility_reduced", Long, Long, *(Pointer,) * 3, Long, Pointer)
SERVED = function("lk_facility_served", Long, Long, *(Pointer,) * 3, Long, *(Pointer,) * 2)
STEP, LEAST_STEP = 1.5, 1e-3  # of the way to a known value, at first and at the end
CASE_STEP, CASE_LEAST = 0.4, 0.05  # the same in cases
PATIENCE, CASE_PATIENCE = 12, 5  # steps without a better bound, before they are halved
KEPT = 0.4  # of the last direction
ABOVE = 1.02  # times a known value: what steps aim at
SMOOTH = 0.1  # of the latest choice, in the mean that says where to branch
TURN = 8  # steps between two looks
AGAIN = 0.1  # share of free facilities that a row fixes, for which another one is looked for at the root
MOST_BYTES = 1 << 28  # of multipliers that are kept
NOTHING = "no cost below 0"  # before there are any
DUALS, CASES = "Lagrangian duals", "branch and bound by Lagrangian duals"


class _Node:
    """A case: what is open and closed, its rows of multipliers, its bound in parts, and its two cases."""

    def __init__(self, open_: np.ndarray, closed: np.ndarray, v: np.ndarray, bound: int) -> None:
        self.open, self.closed, self.v, self.bound = open_, closed, v, bound
        self.begin = v  # where better ones are looked for
        self.rows: list[np.ndarray] = []
        self.branch, self.cases = -1, ()


class Cases:
    """Bounds of one question, ever better ones, a function of what `improve` was told and how often.

    lower    no solution is worth less
    found    [m] bool, the best solution that was met, and value, what it is worth; None: none
    done     every case is proved, or no more may be kept
    nodes    cases that were looked at
    """

    def __init__(self, sites: Sites, v: np.ndarray, compiled: bool = True) -> None:
        """v   [n] int64, multipliers in units, to begin with"""
        self.sites, self.compiled = sites, compiled and None not in (REDUCED, SERVED)
        self.one = unit_of(sites)
        self.root = _Node(sites.forced.copy(), np.zeros(sites.m, dtype=bool), v * self.one, 0)
        self.known, self.upper = 0, 0
        self.found: np.ndarray | None = None
        self.value = 1 << 62
        self.lower, self.done, self.nodes = 0, False, 1
        self._highest = self.one * sites.worst
        self._counts = sites.far == 2 and not sites.opening.any()  # Sites.within
        self._rows = 0
        self._mean = np.zeros(sites.m)
        self._work = self._course()

    def improve(self, upper: int) -> bool:
        """A few steps, knowing a solution of that value; False: nothing better is to come."""
        self.upper = min(upper, self.value)
        if not self.done and next(self._work, None) is None:
            self.done = True
        return not self.done

    @property
    def solved(self) -> bool:
        """Whether the best solution that was met costs nothing, which of a radius is all that is asked."""
        return self.value == 0

    @property
    def method(self) -> str:
        """How the bound was found."""
        if not self._rows:
            return NOTHING
        return DUALS if self.nodes == 1 else CASES

    # ---- the course ----------------------------------------------------------------------------------------

    def _course(self) -> Iterator[bool]:
        """The root, then cases, the one of the least bound first."""
        yield from self._solve(self.root, STEP, LEAST_STEP, PATIENCE)
        heap, number = [], 0
        if self.root.cases:
            heap = [(each.bound, -1 - i, each) for i, each in enumerate(self.root.cases)]
            heapq.heapify(heap)
        number = len(heap) + 1
        while heap and 8 * self._rows * self.sites.n < MOST_BYTES:
            self._raise(heap[0][0])
            if self.lower >= self.upper:
                return
            _, _, node = heapq.heappop(heap)
            self.nodes += 1
            yield from self._solve(node, CASE_STEP, CASE_LEAST, CASE_PATIENCE)
            for each in node.cases:
                number += 1
                heapq.heappush(heap, (each.bound, -number, each))
        self._raise(heap[0][0] if heap else (self.upper * self.one))

    def _raise(self, bound: int) -> None:
        """The least bound of what is open, in parts."""
        self.lower = max(self.lower, min(-(-bound // self.one), self.upper))

    def _solve(self, node: _Node, step: float, least: float, patience: int) -> Iterator[bool]:
        """Multipliers of a node, what they fix, and the cases where that is not enough."""
        while True:
            yield from self._ascend(node, step, least, patience)
            self._keep(node)
            before = np.count_nonzero(node.open | node.closed)
            if self._fixes(node, node.v):
                return
            now = int(np.count_nonzero(node.open | node.closed))
            if node.closed.all():  # no solution is like that
                return
            if now == self.sites.m or np.count_nonzero(node.open) == self.sites.most:
                self._settle(node)
                return
            if now - before < AGAIN * (self.sites.m - before) or now == before:
                break
            step = min(step, CASE_STEP)
        self._branch(node)

    def _keep(self, node: _Node) -> None:
        node.rows.append(node.v)
        self._rows += 1

    def _fixes(self, node: _Node, v: np.ndarray) -> bool:
        """Whether multipliers prove a node; else it gets what they fix."""
        least = (self.upper - 1) * self.one
        return fix(self.sites, exact_sum(v), self._reduced(v), least, node.open, node.closed)

    def _settle(self, node: _Node) -> None:
        """A node in which one solution is left: what customers cost there proves what it is worth."""
        self._offer(node.open)
        node.v = self.sites.least(node.open) * self.one
        if (node.v <= self._highest).all():
            self._keep(node)
            self.upper = min(self.upper, self.value)

    def _branch(self, node: _Node) -> None:
        """Two cases of a facility: of a sum the one of which choices have been least certain; where customers
        are counted one that the customer of fewest choices may have.
        """
        free = np.flatnonzero(~(node.open | node.closed))
        j = (
            self._of_rarest(node, free)
            if self._counts
            else int(free[np.abs(self._mean[free] - 0.5).argmin()])
        )
        node.branch = j
        opened, closed = node.open.copy(), node.closed.copy()
        opened[j] = closed[j] = True
        total, reduced, cases = exact_sum(node.v), self._reduced(node.v), []
        for open_, shut in ((opened, node.closed.copy()), (node.open.copy(), closed)):
            bound, _ = self._chosen(total, reduced, open_, shut)
            cases.append(_Node(open_, shut, node.v, max(bound, node.bound)))
            cases[-1].begin = node.begin
        node.cases = tuple(cases)

    def _of_rarest(self, node: _Node, free: np.ndarray) -> int:
        """Of the free facilities that cost the customer of fewest such nothing, of those whom no open one
        costs nothing, that of most such customers.
        """
        cost = self.sites.cost
        left = np.flatnonzero(cost[node.open].all(axis=0))
        near = cost[np.ix_(free, left)] == 0
        times = near.sum(axis=0)
        if not times.any():
            return int(free[0])
        rarest = int(np.where(times > 0, times, self.sites.m + 1).argmin())
        here = free[near[:, rarest]]
        return int(here[near[near[:, rarest]].sum(axis=1).argmax()])

    # ---- multipliers ---------------------------------------------------------------------------------------

    def _reduced(self, v: np.ndarray) -> np.ndarray:
        """[m] int64, r_j of FacilityBound."""
        sites = self.sites
        if not self.compiled:
            return sites.opening * self.one + reduced_costs(sites, v, self.one)
        found = np.empty(sites.m, dtype=np.int64)
        near, ordered = address(sites.near), address(sites.ordered)
        REDUCED(sites.m, sites.n, near, ordered, address(v), self.one, address(found))
        return sites.opening * self.one + found

    def _served(self, v: np.ndarray, taken: np.ndarray) -> np.ndarray:
        """[n] int64, how many facilities of a mask [m] cost less than multipliers say."""
        sites = self.sites
        if not self.compiled:
            cost = sites.cost[taken] * self.one
            return np.count_nonzero(cost < v, axis=0).astype(np.int64)
        found, mask = np.empty(sites.n, dtype=np.int64), taken.astype(np.uint8)
        near, ordered = address(sites.near), address(sites.ordered)
        SERVED(sites.m, sites.n, near, ordered, address(v), self.one, address(mask), address(found))
        return found

    def _chosen(
        self, total: int, reduced: np.ndarray, open_: np.ndarray, closed: np.ndarray
    ) -> tuple[int, np.ndarray]:
        """The bound in parts, and the mask [m] of the facilities that it opens."""
        free, room = np.flatnonzero(~(open_ | closed)), self.sites.most - int(np.count_nonzero(open_))
        best = free[np.argsort(reduced[free], kind="stable")[: max(room, 0)]]
        taken = open_.copy()
        taken[best[reduced[best] < 0]] = True
        return total + exact_sum(reduced[taken]), taken

    def _ascend(self, node: _Node, step: float, least: float, patience: int) -> Iterator[bool]:
        """Better multipliers of a node, as long as steps are long enough; yields now and then."""
        v, way, stale, best = node.begin, None, 0, None
        for turn in range(1 << 30):
            bound, taken = self._chosen(exact_sum(v), self._reduced(v), node.open, node.closed)
            self._mean += SMOOTH * (taken - self._mean)
            stale += 1
            if best is None or bound > best:
                best, node.v, stale = bound, v, 0
                node.bound, choice = max(node.bound, bound), taken
            if node is self.root:
                self._rows += not self._rows
                self._raise(node.bound)
            if best > (self.upper - 1) * self.one:
                return
            if stale >= patience:
                self._offer(choice)
                step, stale, v, way = step / 2, 0, node.v, None
                if step < least:
                    return
                bound, taken = self._chosen(exact_sum(v), self._reduced(v), node.open, node.closed)
            slope = 1.0 - self._served(v, taken)
            way = slope if way is None else slope + KEPT * way
            length = float(way @ way)
            if length == 0:
                return
            aim = max(ABOVE * self.upper * self.one, bound + self.one)
            more = np.rint(step * (aim - bound) / length * way).clip(-LARGEST, LARGEST).astype(np.int64)
            v = np.clip(v + more, 0, self._highest)
            node.begin = v if self._counts else node.v
            if turn % TURN == TURN - 1:
                yield True

    def _offer(self, chosen: np.ndarray) -> None:
        """A choice of facilities, which may be a better solution than those known."""
        sites = self.sites
        if not 0 < np.count_nonzero(chosen) <= sites.most:
            return
        value = sites.value(chosen)
        if value < self.value:
            self.value, self.found = value, chosen.copy()

    # ---- what proves it ------------------------------------------------------------------------------------

    def certificate(self, lower: int | None = None) -> FacilityBound:
        """The bound `lower`, or another that it implies, with the tree that proves it."""
        rows, ptr, branch, todo = [], [0], [], [self.root]
        while todo:
            node = todo.pop()
            rows += node.rows
            if node is self.root and not node.cases:
                rows.append(node.v)
            ptr.append(len(rows))
            branch.append(node.branch)
            todo += node.cases[::-1]
        told = np.array(rows, dtype=np.int64).reshape(len(rows), self.sites.n)
        return FacilityBound(
            self.lower if lower is None else lower, self.method, self.one, told,
            np.array(ptr, dtype=np.int64), np.array(branch, dtype=np.int64),
        )  # fmt: skip
