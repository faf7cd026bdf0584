"""Which part of a quadratic assignment is bounded by rows and which by eigenvalues: ascent, then tangents.

The bound of a split A1, g (spectral.py) without its convex part is concave in both. At a least assignment X
of what is linear, and at the matrices XBX' that its rows and its eigenvalues would have at best, their
difference says how the bound grows: to A1 goes what rows would have dearer. Steps are Polyak's, towards the
cost of the best assignment that is known, along a mean of the last directions; where they gain nothing for a
while they get shorter and begin again at the best split. The matrix whose entries are the more uneven is the
one that is split. From time to time the convex part of the best split is minimised over doubly stochastic
matrices by steps of Frank and Wolfe's method, and what a tangent proves in whole numbers is kept.

Source   Polyak, Minimization of unsmooth functionals, 1969; Frank and Wolfe, An algorithm for quadratic
         programming, 1956
"""

import math
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from app.bounds.assignment.dual import least_assignment
from app.bounds.assignment.spectral import (
    LEAST_NODES,
    METHOD,
    NEAR_PARTS,
    Spectrum,
    SplitBound,
    costs_of,
    fits,
    multipliers,
    second_of,
    spectrum_of,
    turned,
)
from app.bounds.assignment.witness import EXACT_FLOAT
from app.bounds.certificate import BadCertificate
from app.graphs.pairing import Quadratic

MOST_PARTS = 1 << 20
KEPT = 0.7  # of the last direction
SHORTER, PATIENCE = 0.7, 15  # steps are so much shorter after so many that gain nothing
SHORTEST = 1e-4  # of the first, at least
GAIN = 1e-5  # of the bound, that is one
FIRST_STEPS, LAST_STEPS = 10, 2560  # before the first tangent, and before the last; each time twice as many
TANGENTS = 40  # at most, four times as many at last
ROUNDING, TINY = 1e-9, 2.0**-900


class Splitting:
    """Ascent, in steps.

    proof   the best so far; None: nothing is proved yet
    done    nothing is left to try
    """

    def __init__(self, core: Quadratic, compiled: bool = True) -> None:
        self._turned = _spread(core.b) > _spread(core.a)
        self.core = core = turned(core) if self._turned else core
        self._compiled = compiled
        self.proof: SplitBound | None = None
        self.done = False
        self._goal = 0.0
        a, b, linear = core.tables
        self._one = 1
        while self._one < MOST_PARTS and fits(a, b, linear, 64 * self._one):
            self._one *= 2
        if core.k < LEAST_NODES or not fits(a, b, linear, 32 * self._one):
            self.done = True
            return
        self._a, self._b, self._linear = (each.astype(np.float64) for each in (a, b, linear))
        self._off = ~np.eye(core.k, dtype=bool)
        self._steep = -np.sort(-self._b[self._off].reshape(core.k, -1), axis=1)
        self._even, self._size = core.symmetric, float(np.linalg.norm(self._b))
        self._second = second_of(core)
        self._work = self._course()

    def step(self, goal: int) -> None:
        """One, knowing an assignment of a cost."""
        self._goal = float(goal - self.core.constant)
        if not self.done and next(self._work, None) is None:
            self.done = True

    # ---- ascent --------------------------------------------------------------------------------------------

    def _course(self) -> Iterator[bool]:
        k = self.core.k
        at = np.zeros((k, k)), np.zeros(k)
        best, value, direction = at, -np.inf, None
        near = np.full((k, k), 1.0 / k)
        length, idle, steps, until = 1.0, 0, 0, FIRST_STEPS
        while length >= SHORTEST and until <= LAST_STEPS:
            found, slope = self._slope(*at)
            steps += 1
            idle += 1
            if found > value:
                idle = idle if found < value + GAIN * abs(value) else 0
                best, value = at, found
            if idle > PATIENCE:
                length, idle, at, direction = SHORTER * length, 0, best, None
            else:
                direction = slope if direction is None else _sum(slope, direction, KEPT)
                at = _sum(at, direction, self._length(found, direction, length))
            yield True
            if steps == until:
                near = yield from self._tangents(best, near, min(TANGENTS, until))
                until *= 2
        yield from self._tangents(best, near, 4 * TANGENTS)

    def _length(self, found: float, direction: tuple[np.ndarray, np.ndarray], length: float) -> float:
        """Of a step from a split that is worth `found`."""
        square = sum(float((each * each).sum()) for each in direction)
        if square <= (ROUNDING * self._size) ** 2:  # as good as none: no step says more
            return 0.0
        above = max(self._goal - found, ROUNDING * abs(found)) + 0.02 * abs(self._goal)
        return 0.5 * length * above / square

    def _slope(self, part: np.ndarray, diagonal: np.ndarray) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
        """What a split is worth, and how that grows with it."""
        k, second = self.core.k, self._second
        first = spectrum_of(self._rest(part, diagonal))
        rows = part[self._off].reshape(k, k - 1)
        order = np.argsort(rows, axis=1, kind="stable")
        costs = np.take_along_axis(rows, order, axis=1) @ self._steep.T + self._linear
        costs += (2 / k) * (np.outer(first.sums, second.sums.conj()).real) / 4
        place = self._least(costs)
        value = float((first.values * second.values[::-1]).sum()) - first.total * second.total / k**2
        value = value / 4 + float(costs[np.arange(k), place].sum())
        ordered, wanted = np.empty((k, k - 1)), np.zeros((k, k))
        np.put_along_axis(ordered, order, self._steep[place], axis=1)
        wanted[self._off] = ordered.reshape(-1)
        other = (first.vectors * second.values[::-1]) @ first.vectors.conj().T
        sums = second.sums[place] / k
        other = (other + sums[:, None] + sums.conj()[None, :] - second.total / k**2) / 2
        other = other.real + other.imag
        slope = wanted - other
        np.fill_diagonal(slope, 0.0)
        return value, (slope, np.diag(other).copy())

    def _rest(self, part: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        """2 H(A2 + Diag(g))."""
        rest = self._a - part + np.diag(diagonal)
        return rest + rest.T if self._even else (rest + rest.T) + 1j * (rest - rest.T)

    def _least(self, costs: np.ndarray) -> np.ndarray:
        """[k] the places of a least assignment by costs [k, k]."""
        largest = float(np.abs(costs).max()) * len(costs)
        scale = 2.0 ** np.floor(np.log2(2.0**50 / largest)) if largest > TINY else 0.0
        return least_assignment(np.rint(costs * scale).astype(np.int64), self._compiled)[2]

    # ---- tangents ------------------------------------------------------------------------------------------

    def _tangents(
        self, split: tuple[np.ndarray, np.ndarray], near: np.ndarray, steps: int
    ) -> Iterator[np.ndarray]:
        """Minimise the convex part of a split from X0 [k, k] on, and prove what its tangents say; its X0.

        The best of the tangents is proved in whole numbers; X0 is where it was.
        """
        k = self.core.k
        first, second = spectrum_of(self._rest(*split)), self._second
        d, e = first.values, second.values[::-1]
        P, U = first.vectors, second.vectors[:, ::-1]
        s, t = multipliers(d, e)
        w = np.maximum(np.outer(d, e) - s[:, None] - t[None, :], 0.0)
        rows = np.sort(split[0][self._off].reshape(k, k - 1), axis=1)
        flat = rows @ self._steep.T + self._linear
        flat += (2 / k) * np.outer(first.sums, second.sums.conj()).real / 4
        x, z, most, best = near, P.conj().T @ near @ U, -np.inf, near
        every = np.arange(k)
        for _ in range(steps):
            costs = flat + (P @ (w * z) @ U.conj().T).real / 2
            place = self._least(costs)
            value = float(costs[every, place].sum()) - float((w * np.abs(z) ** 2).sum()) / 4
            if value > most:
                most, best = value, x
            corner = np.zeros((k, k))
            corner[every, place] = 1.0
            turn = P.conj().T @ U[place] - z
            bent = float((w * np.abs(turn) ** 2).sum()) / 2
            fall = float((costs * x).sum()) - float(costs[every, place].sum())
            if fall <= ROUNDING * abs(value):
                break
            share = min(1.0, fall / bent) if bent > 0 else 1.0
            x, z = x + share * (corner - x), z + share * turn
            yield True
        self._prove(split, best, second)
        return best

    def _prove(self, split: tuple[np.ndarray, np.ndarray], near: np.ndarray, second: Spectrum) -> None:
        """In whole numbers, where the split has room."""
        core, one = self.core, self._one
        if not all(np.abs(each).max() * one < EXACT_FLOAT for each in split):
            return
        part, diagonal = (np.rint(each * one).astype(np.int64) for each in split)
        if not fits(*core.tables, one, (part, diagonal)):
            return
        whole = np.rint(near * NEAR_PARTS).astype(np.int64)
        try:
            costs, value, error = costs_of(core, one, part, diagonal, whole, second)
        except BadCertificate:
            return
        total, top, _ = least_assignment(costs, self._compiled)
        proved = math.floor(total + value - 2 * error) - core.k  # room for the rounding of other machines
        lower = -(-proved // (core.scale * one)) * core.scale
        if self.proof is None or lower > self.proof.lower:
            self.proof = SplitBound(lower, METHOD, self._turned, one, part, diagonal, whole, top)


def _sum(
    at: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray], share: float
) -> tuple[np.ndarray, np.ndarray]:
    """at + share * other."""
    return at[0] + share * other[0], at[1] + share * other[1]


def _spread(matrix: sp.csr_array) -> float:
    """How uneven entries are: the mean of their squares over the square of their mean."""
    data = matrix.data.astype(np.float64)
    mean = float(np.abs(data).sum())
    return float((data * data).sum()) * matrix.shape[0] ** 2 / mean**2 if mean > 0 else 0.0
