"""PartWork: ever better bounds on what pairs of one part of a core add, with what proves them."""

import math
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.communities.program import StarProgram
from app.bounds.communities.witness import PartBound, pair_worths
from app.bounds.pairs.program import PairProgram
from app.bounds.pairs.whole import FULL, LARGEST, MOST_PLACES, room, semidefinite
from app.graphs.quality import Quality

STARS, MATRIX = "star inequalities", "semidefinite relaxation"
MOST_MATRIX = 1200  # nodes of a part for which eigenvalues are computed
CENTRE_FIRST = np.array([(0, 1, 2), (1, 0, 2), (2, 0, 1)])  # of a triangle of each kind, as a star
CHUNK = 1 << 22  # entries that are read between two looks at the clock
PERIOD, SLOW = 8, 0.05  # rounds of stars, and the share of the gap that they close where they are worth it
EARLY, MOST_EARLY = 4, 400  # rounds until the matrix of a part of so few nodes
STILL = 1e-3  # a share below which nothing more is to be had
LOOKED, MATRIX_SLOW = (
    100,
    0.005,
)  # steps of the matrix, and the share of the gap that they close where worth it
HOPELESS = 0.5  # of the gap, that either may be behind the other before it is given up
CHEAP = 300  # nodes of a part whose bounds are proved whenever they are asked for
CLOSED = 0.01  # of the gap, by which a bound has to be better in order to be proved in whole numbers


class PartWork:
    """Bounds of one part, by multipliers of stars, and by a semidefinite matrix with those of triangles: the
    better one counts.

    bound    with its proof     method   how it was found
    done     nothing more is to be had
    """

    def __init__(self, core: Quality, nodes: np.ndarray, label: np.ndarray) -> None:
        """label   [k] communities of the part's nodes [k]"""
        self._worth = pair_worths(core, nodes)
        total = int(np.abs(self._worth).sum())
        self._places = min(MOST_PLACES, FULL.bit_length() - 1 - total.bit_length())
        self._scale = max(float(self._worth[self._worth > 0].sum()) / max((self._worth > 0).sum(), 1), 1.0)
        scaled = self._worth / self._scale
        same = (label[:, None] == label) & ~np.eye(len(nodes), dtype=bool)
        self._stars, self._matrix = StarProgram(scaled, same), PairProgram(scaled, same)
        self._shaping, self._shaped = False, len(nodes) > MOST_MATRIX  # at work on the matrix; it is made
        self._before = self._gained = math.inf  # bounds when this period of stars, these steps began
        self.done, self.method = self._places < 0, STARS
        upper = int(self._worth[self._worth > 0].sum()) // 2
        none = np.zeros(0, dtype=np.int64)
        self.bound = PartBound(upper, nodes, np.zeros(1, np.int64), none, none, np.zeros((0, 0), np.int64), 0)

    def run(self, end: float, known: int) -> None:
        """Work until the clock says `end`, knowing communities worth `known`."""
        while not self.done and self.bound.upper > known:
            if self._shaping:
                self._shape(self._gap(known))
            else:
                self._star(self._gap(known), known)
            if time.perf_counter() >= end:
                break
        if self.done or len(self._worth) <= CHEAP:
            self._prove_stars()

    @property
    def _by_stars(self) -> float:
        """What multipliers of stars prove, about."""
        return self._scale * self._stars.value

    def _gap(self, known: int) -> float:
        return max(self.bound.upper - known, 1.0)

    def _star(self, gap: float, known: int) -> None:
        """Some steps of the program of stars."""
        stars, before = self._stars, self._stars.rounds
        stars.run(max(CHUNK // stars.cost, 1))
        if stars.rounds == before:
            return
        if self._by_stars < max(known + 1, self.bound.upper - CLOSED * gap):
            self._prove_stars()
        early = stars.rounds == EARLY and len(self._worth) <= MOST_EARLY
        if stars.rounds % PERIOD and not early:
            return
        gained, self._before = self._before - self._by_stars, self._by_stars
        if not self._shaped and (early or gained < SLOW * gap):
            self._shaping = True
            return
        behind = gained < SLOW * gap and self._by_stars > self.bound.upper + HOPELESS * gap
        self.done = behind or (gained < STILL * gap and stars.settled)

    def _shape(self, gap: float) -> None:
        """A step of the matrix, or its end."""
        matrix = self._matrix
        matrix.step()
        if matrix.steps % LOOKED:
            return
        value = self._scale * matrix.value
        gained, self._gained = self._gained - value, value
        if value < self.bound.upper - CLOSED * gap:
            self._prove_matrix()
        far = value > self._by_stars + HOPELESS * gap
        if gained > MATRIX_SLOW * gap and not far:
            return
        self._shaping, self._shaped = False, True
        if value < self.bound.upper:
            self._prove_matrix()

    # ---- in whole numbers ----------------------------------------------------------------------------------

    def _prove_stars(self) -> None:
        if self._by_stars >= self.bound.upper:
            return
        stars, g = self._stars.stars, self._stars.multipliers * self._scale
        places = min(self._places, room(FULL, float((g * np.diff(stars.ptr) ** 2).sum())))
        if places >= 0:
            g = np.rint(np.ldexp(g, places)).astype(np.int64)
            found = replace(self.bound, ptr=stars.ptr, members=stars.members, g=g, places=places)
            self._take(replace(found, matrix=np.zeros((0, 0), np.int64)), STARS)

    def _prove_matrix(self) -> None:
        program = self._matrix
        matrix, g = program.matrix * self._scale, program.g * self._scale
        sizes = float(np.abs(matrix).sum()), float(np.abs(matrix).max(initial=0))
        places = min(
            self._places, room(FULL, sizes[0]), room(LARGEST, sizes[1]), room(FULL, 9 * float(g.sum()))
        )
        if places >= 0:
            i = np.arange(len(g))[:, None]
            found = replace(
                self.bound, places=places, matrix=semidefinite(np.ldexp(matrix, places)),
                ptr=np.arange(len(g) + 1, dtype=np.int64) * 3,
                members=program.triangles[i, CENTRE_FIRST[program.kinds]].reshape(-1),
                g=np.rint(np.ldexp(g, places)).astype(np.int64),
            )  # fmt: skip
            with suppress(BadCertificate):  # where rounding has spoilt the matrix: the bound stays
                self._take(found, MATRIX)

    def _take(self, found: PartBound, method: str) -> None:
        """A better bound, where it is one. Raises BadCertificate where it is none at all."""
        upper = found.proved(self._worth)
        if upper < self.bound.upper:
            self.bound, self.method = replace(found, upper=upper), method
