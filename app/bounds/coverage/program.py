"""A first-order method for the linear program of maximum coverage, whose duals are prices of elements."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse import _sparsetools

from app.graphs.family import Family

NEWTON_STEPS, EXACT = 40, 1e-10  # of the projection on what the budget pays for; of the budget, to be left
SMOOTH = 0.5  # by how much a restart moves the balance of both steps towards what they have done


class CoverProgram:
    """Primal-dual hybrid gradient steps for the saddle point

        min over 0 <= p <= w, max over x in X of
            sum of (w_v - p_v) + sum over S of x_S (sum of p_v over v in S)

    with X = {x: 0 <= x <= 1, cost x <= budget}: x a fractional choice of sets, p prices of elements in units
    of the mean weight. For fixed p the best x is a fractional knapsack; for fixed x it is v's share that is
    held, min(1, sum of x_S), which counts.

    Source   Chambolle and Pock 2011, Algorithm 1; step sizes of each row and column: Pock and Chambolle 2011
             (alpha = 1); restarts from the average, balance of the steps: Applegate et al. 2021 (PDLP)
    A step's point x is projected on X in the norm of the step sizes: x = clip(y - t step cost, 0, 1), where
    t >= 0 is found by Newton's method between bounds.
    """

    def __init__(self, family: Family) -> None:
        ones = np.ones(family.entries)
        shape = family.m, family.n
        self._rows = sp.csr_array((ones, family.elements, family.set_ptr), shape=shape)
        self._cols = sp.csr_array((ones, family.sets, family.element_ptr), shape=shape[::-1])
        self.mean = float(family.weight.mean())
        self._weight = family.weight / self.mean
        self._cost, self._budget = family.cost.astype(np.float64), float(family.budget)
        self._step_x = 1.0 / np.maximum(np.diff(family.set_ptr), 1)
        self._step_p = 1.0 / np.maximum(np.diff(family.element_ptr), 1)
        self.balance = 1.0
        share = self._budget / max(float(self._cost.sum()), 1.0)
        self.x = np.full(family.m, min(share, 1.0))
        self.p = 0.5 * self._weight
        self._begun = self.x, self.p
        self._sum_x, self._sum_p, self.steps = np.zeros_like(self.x), np.zeros_like(self.p), 0

    def run(self, steps: int) -> None:
        """Take steps and add them to the average."""
        step_x, step_p = self._step_x / self.balance, self._step_p * self.balance
        for _ in range(steps):
            x = self._paid(self.x + step_x * _times(self._rows, self.p), step_x * self._cost)
            ahead = _times(self._cols, 2 * x - self.x)
            self.p = np.clip(self.p - step_p * (ahead - 1.0), 0.0, self._weight)
            self.x = x
            self._sum_x += x
            self._sum_p += self.p
        self.steps += steps

    def _paid(self, y: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """The point of X nearest to y: clip(y - t slope, 0, 1) with the least t that the budget pays for."""
        x = np.clip(y, 0.0, 1.0)
        over = float(self._cost @ x) - self._budget
        if over <= 0:
            return x
        low, high, t = 0.0, float((y / slope).max()), 0.0
        for _ in range(NEWTON_STEPS):
            low, high = (t, high) if over > 0 else (low, t)
            free = (x > 0) & (x < 1)
            falls = float(self._cost[free] @ slope[free])
            t = t + over / falls if falls > 0 else high
            t = t if low < t < high else 0.5 * (low + high)
            x = np.clip(y - t * slope, 0.0, 1.0)
            over = float(self._cost @ x) - self._budget
            if abs(over) <= EXACT * self._budget:
                break
        return x

    def average(self) -> tuple[np.ndarray, np.ndarray]:
        """x and p averaged over the steps since the last restart."""
        return self._sum_x / self.steps, self._sum_p / self.steps

    def restart(self) -> None:
        """Go on from the average; the steps are balanced by how far both have come."""
        self.x, self.p = self.average()
        far_x, far_p = (float(np.linalg.norm(a - b)) for a, b in zip((self.x, self.p), self._begun))
        if far_x > 0 and far_p > 0:
            self.balance = self.balance ** (1 - SMOOTH) * (far_p / far_x) ** SMOOTH
        self._begun = self.x, self.p
        self._sum_x, self._sum_p, self.steps = np.zeros_like(self.x), np.zeros_like(self.p), 0

    def held(self, x: np.ndarray) -> float:
        """The weight, in mean weights, that a fractional choice holds: at most the optimum of the program."""
        return float(self._weight @ np.minimum(_times(self._cols, x), 1.0))

    def dual(self, p: np.ndarray) -> float:
        """What prices prove, in mean weights: at least that optimum."""
        values, cost = _times(self._rows, p), self._cost
        order = np.argsort(-values / cost, kind="stable")
        spent = np.cumsum(cost[order])
        share = np.clip(1.0 - (spent - self._budget) / cost[order], 0.0, 1.0)
        return float((self._weight - p).sum() + share @ values[order])


def _times(A: sp.csr_array, x: np.ndarray) -> np.ndarray:
    """A x, both of float64: the sum of A @ x."""
    out = np.zeros(A.shape[0])
    _sparsetools.csr_matvec(*A.shape, A.indptr, A.indices, A.data, x, out)
    return out
