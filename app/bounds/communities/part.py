"""PartWork: ever better bounds on what pairs of one part of a core add, with what proves them."""

import math
import time
from dataclasses import replace

import numpy as np

from app.bounds.communities.program import StarProgram
from app.bounds.communities.semidefinite import PairMatrix
from app.bounds.communities.witness import FULL, LARGEST, MOST_PLACES, PartBound, pair_worths
from app.bounds.factor import margin
from app.graphs.quality import Quality

STARS, MATRIX = "star inequalities", "semidefinite relaxation"
MOST_MATRIX = 1200  # nodes of a part for which eigenvalues are computed
CHUNK = 1 << 22  # entries that are read between two looks at the clock
PERIOD, SLOW = 8, 0.05  # rounds of stars, and the share of the gap that they close where they are worth it
STILL = 1e-3  # a share below which nothing more is to be had
MATRIX_STEPS, MATRIX_SLOW = 200, 0.01  # of one matrix; the share of the gap that LOOKED steps close
LOOKED = 20
CHEAP = 300  # nodes of a part whose bounds are proved whenever they are asked for
CLOSED = 0.01  # of the gap, by which a bound has to be better in order to be proved in whole numbers


class PartWork:
    """Bounds of one part, by multipliers of stars and a semidefinite matrix by turns.

    bound    with its proof     method   how it was found
    done     nothing more is to be had
    """

    def __init__(self, core: Quality, nodes: np.ndarray, label: np.ndarray) -> None:
        """label   [k] communities of the part's nodes [k]"""
        self._worth = pair_worths(core, nodes)
        total = int(np.abs(self._worth).sum())
        self._places = min(MOST_PLACES, FULL.bit_length() - 1 - total.bit_length())
        self._scale = max(float(self._worth[self._worth > 0].sum()) / max((self._worth > 0).sum(), 1), 1.0)
        self._scaled = self._worth / self._scale
        self._same = (label[:, None] == label) & ~np.eye(len(nodes), dtype=bool)
        self._matrix = np.zeros_like(self._scaled)  # S in use
        self._shaping: PairMatrix | None = None
        self._program = StarProgram(self._scaled, self._same)
        self._tried, self._shapes = math.inf, 0  # total bound at the start of this period; matrices made
        self.done, self.method = self._places < 0, STARS
        empty = np.zeros((0, 0), dtype=np.int64)
        upper = int(self._worth[self._worth > 0].sum()) // 2
        none = np.zeros(0, dtype=np.int64)
        self.bound = PartBound(upper, nodes, np.zeros(1, dtype=np.int64), none, none, empty, 0)

    def run(self, end: float, known: int) -> None:
        """Work until the clock says `end`, knowing communities worth `known`."""
        while not self.done and self.bound.upper > known:
            if self._shaping is not None:
                self._shape(known)
            else:
                self._star(known)
            if time.perf_counter() >= end:
                break
        if self._total < self.bound.upper - 1 and (self.done or len(self._worth) <= CHEAP):
            self._prove()

    @property
    def _total(self) -> float:
        """The bound that multipliers and matrix in use prove, about."""
        return self._scale * (self._program.value + np.trace(self._matrix) / 2)

    def _gap(self, known: int) -> float:
        return max(self.bound.upper - known, 1.0)

    def _star(self, known: int) -> None:
        """Some steps of the program of stars."""
        program, before = self._program, self._program.rounds
        program.run(max(CHUNK // program.cost, 1))
        if program.rounds == before:
            return
        if self._total < known + 1 or self._total < self.bound.upper - CLOSED * self._gap(known):
            self._prove()
        if program.rounds % PERIOD:
            return
        slow = self._total > self._tried - SLOW * self._gap(known)
        if slow and (self._shapes < 2 and len(self._worth) <= MOST_MATRIX):
            worth = self._scaled - program.taken() if self._shapes else self._scaled
            self._shaping = PairMatrix(worth, self._same)
            self._shaped = math.inf
        elif program.settled and self._total > self._tried - STILL * self._gap(known):
            self.done = True
        self._tried = self._total

    def _shape(self, known: int) -> None:
        """A step of the matrix; what it comes to goes to the program of stars."""
        work = self._shaping
        work.step()
        if work.steps % LOOKED:
            return
        gain = self._scale * (self._shaped - work.value)
        self._shaped = work.value
        if gain > MATRIX_SLOW * self._gap(known) and work.steps < MATRIX_STEPS:
            return
        self._shaping, self._shapes = None, self._shapes + 1
        taken = float(self._program.multipliers.sum()) if self._shapes > 1 else 0.0
        if self._scale * (work.value + taken) < self._total:
            self._matrix = work.matrix
            self._program.change(self._scaled + work.matrix, fresh=self._shapes == 1)
            self._tried = math.inf
            self._prove()

    def _prove(self) -> None:
        """The bound in whole numbers."""
        ptr, members = self._program.stars.ptr, self._program.stars.members
        g, matrix = self._program.multipliers * self._scale, self._matrix * self._scale
        places = min(
            self._places,
            _room(FULL, float((g * np.diff(ptr) ** 2).sum())),
            _room(FULL, float(np.abs(matrix).sum())),
            _room(LARGEST, float(np.abs(matrix).max())),
        )
        if places < 0:
            return
        g = np.rint(np.ldexp(g, places)).astype(np.int64)
        found = PartBound(0, self.bound.nodes, ptr, members, g, _whole(np.ldexp(matrix, places)), places)
        upper = found.proved(self._worth)
        if upper < self.bound.upper:
            self.bound = replace(found, upper=upper)
            self.method = f"{MATRIX}, {STARS}" if found.matrix.size else STARS


def _room(most: int, size: float) -> int:
    """How many binary places sums of this size may have, below `most` with something to spare."""
    return most.bit_length() - 3 - math.frexp(size)[1] if size else MOST_PLACES


def _whole(matrix: np.ndarray) -> np.ndarray:
    """[k, k] int64, a semidefinite matrix in whole numbers, with enough on its diagonal that it is proved to
    be so; [0, 0] where it is zero."""
    k = len(matrix)
    if not matrix.any():
        return np.zeros((0, 0), dtype=np.int64)
    whole = np.rint((matrix + matrix.T) / 2).astype(np.int64)
    whole[np.diag_indices(k)] += k + math.ceil(2 * margin(k, float(np.trace(matrix)) + k * k))
    return whole
