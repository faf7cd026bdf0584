"""Whether so many facilities have all customers within a radius: a fractional packing of customers, no cover.

Values of customers, of which no facility within the radius has more than 1, add up to no more than any cover
has facilities. The best are found by first-order steps on the lists of who is near whom, without a linear
program in full: primal-dual hybrid gradient (app/bounds/first_order.py), from where a radius before came to
rest. Where prices of facilities, scaled so that all customers are covered, add up to no more than may be
opened no values can prove the radius, and it is given up. What values prove is summed in whole numbers, as
the certificate is (witness.py): it takes what the facilities of the largest sums have, not the scaling.

Source   as named there; the relaxation: Kariv and Hakimi, An algorithmic approach to network location
         problems I: the p-centers, 1979
"""

from typing import Any

import numpy as np

from app.bounds.certificate import exact_sum
from app.bounds.facility.reach import ListReach
from app.bounds.facility.witness import FINEST, CenterBound, FacilityBound, fix
from app.bounds.first_order import PackingProgram

METHOD = "packing of customers"
FIRST, BATCH, MOST_BATCHES = 10, 20, 30  # steps before the first look, and between looks; looks
RESTART = 4  # looks


class CoverPacking:
    """Steps for one radius.

    lower   1: no choice has all customers below the radius     nodes   0, of cases
    x, y    [m], [n] prices and values where it came to rest
    """

    solved, nodes, value = False, 0, 1 << 62
    found: np.ndarray | None = None

    def __init__(
        self, sites: Any, radius: int, reach: ListReach, start: tuple[np.ndarray, np.ndarray] | None
    ) -> None:
        """start   x, y of another radius"""
        self.sites, self.radius = sites, radius
        self._near, self.lower = reach.near, 0
        m, n = sites.m, sites.n
        self.x, self.y = (np.zeros(m), np.zeros(n)) if start is None else start
        self._program = PackingProgram(self._near, np.ones(n), np.ones(m), self.x.copy(), self.y.copy())
        self._sizes = np.diff(self._near.indptr)
        self._open = self._sizes < m  # others cost nothing anywhere
        self._v = np.zeros(n, dtype=np.int64)
        self._looks = 0

    def improve(self, steps: int) -> bool:
        """So many batches; False: nothing better is to come."""
        return not any(self._done or self._batch() for _ in range(steps))

    @property
    def _done(self) -> bool:
        return bool(self.lower) or self._looks >= MOST_BATCHES

    def _batch(self) -> bool:
        """Steps, and what they prove; True where the radius is decided, or cannot be."""
        alone = np.flatnonzero(self._sizes == 0)
        if len(alone):
            return self._proves(np.isin(np.arange(self.sites.n), alone[:1]).astype(np.float64))
        program = self._program
        program.run(BATCH if self._looks else FIRST)
        self._looks += 1
        x, y = program.average()
        if self._looks % RESTART == 0:
            program.restart()
        self.x, self.y = x, y
        if self._proves(self._packed(y)) or self._proves(self._packed(program.y)):
            return True
        return any(self._covered(each) <= self.sites.most for each in (x, program.x))

    def _packed(self, y: np.ndarray) -> np.ndarray:
        """[n] values of which no facility has more than 1: each over the largest sum that it is in."""
        load = self._near.T @ y
        largest = np.maximum.reduceat(load[self._near.indices], self._near.indptr[:-1])
        return np.divide(y, largest, out=np.zeros_like(y), where=largest > 0)

    def _covered(self, x: np.ndarray) -> float:
        """What prices [m] add up to once all customers are covered."""
        least = float((self._near @ x).min())
        return float(x.sum()) / least if least > 0 else np.inf

    def _proves(self, y: np.ndarray) -> bool:
        sites = self.sites
        v = np.where(self._open, np.rint(np.clip(y, 0, 1) * FINEST), 0.0)
        reduced = -(self._near.T @ v).astype(np.int64)  # sums of whole numbers below 2^53
        open_, closed = sites.forced.copy(), np.zeros(sites.m, dtype=bool)
        self._v = v.astype(np.int64)
        if fix(sites, exact_sum(self._v), reduced, 0, open_, closed):
            self.lower = 1
        return bool(self.lower)

    def certificate(self, radius: int) -> CenterBound:
        """The proof that no solution is worth less than the radius."""
        customers = np.flatnonzero(self._v)
        rows = self._v[customers][None, :]
        cases = FacilityBound(1, METHOD, FINEST, rows, np.array([0, 1]), np.array([-1]))
        return CenterBound(radius, METHOD, customers, cases)
