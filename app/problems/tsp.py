"""Travelling salesman problem: a shortest closed tour, grown by insertion (S2V-DQN, Khalil et al. 2017)."""

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from app.graphs.metric import DIRECTED
from app.numerics.elementary import log
from app.problems.problem import FIRST_ALIVE, FIXED_POINT, coarse, room_for_features
from app.search.solution_text import order_text, read_order
from app.search.tour.directed import DirectedTools
from app.search.tour.insertion import InsertionState
from app.search.tour.tools import TourTools
from app.toolbox import Instance

Array = Any
GAINS, DISTANCES, DETOURS = 32, 4, 2  # buckets of what a city would gain, of its distance, of its detour
NEIGHBOURS = 10.0  # what sums over neighbours are divided by


class TourTotals(NamedTuple):
    """The totals of a tour that grows. Lengths are whole numbers, those of the metric.

    alive      cities: each has an embedding, on the tour or not
    outside    cities that are not on the tour yet
    length     of the closed tour
    cost       sum over outside cities of what their insertion would cost now
    near       sum over outside cities of the distance to the nearest city of the tour
    farthest   the largest such distance
    spacing    sum over all cities of the distance to the nearest other one
    """

    alive: int
    outside: int
    length: int
    cost: int
    near: int
    farthest: int
    spacing: int

    @property
    def candidates(self) -> int:
        """Every city outside may be inserted."""
        return self.outside


def _steps(levels: int, roots: int) -> np.ndarray:
    """[levels-1] int64 ascending, floor(2^30 * q^j), j = levels-1 .. 1; q: 1/2, its root taken `roots` times.

    By square roots, which round alike everywhere.
    """
    step = 0.5
    for _ in range(roots):
        step = math.sqrt(step)
    powers = [1.0]
    for _ in range(1, levels):
        powers.append(powers[-1] * step)
    return np.array([int(FIXED_POINT * p) for p in powers[:0:-1]], dtype=np.int64)


GAIN_STEPS = _steps(GAINS, 4)  # by 2^(-1/16)
DISTANCE_STEPS = _steps(DISTANCES, 0)  # by halves


class TravellingSalesman:
    """State: a closed tour of some cities. A choice inserts a city where that lengthens the tour least.

    The network works on the graph of nearest neighbours. A city's code is 2 on the tour. Outside
    it holds three buckets: logarithmic ones of what its insertion would gain, relative to the best city's,
    and of its distance d to the tour, relative to the farthest city's, and even ones of insertion cost / 2d,
    which is from 0 to 1 in a metric.

    Reward     minus the insertion cost in units of the mean distance between nearest cities
    Shaping    "caro_wei": + Phi(s') - Phi(s) with Phi = -half the sum, over the cities outside, of insertion
               cost and distance to the tour. Measured: greedily by the gain of potential the tours of 8 and 4
               instances of 100 and 200 uniform cities are 3.8 and 4.7 % above the best known; with insertion
               costs alone 7.1 and 9.0 %, with distances alone 7.8 and 5.2 %, farthest insertion 6.8 and 9.1 %
    Unit       of shaped rewards the farthest distance times cities / cities on the tour, about what a step
               can gain: in a fixed unit the first steps drown all others
    """

    name = "tsp"
    sense = "minimise"
    solution = "tour"
    dynamics = "tour"
    closed = False
    ordered = True
    adjacent = True
    redundancy = ""
    plays_on = sees_weights = False
    first_candidate = FIRST_ALIVE + 2
    degree_codes = sized_codes = False
    own_degree = False
    mirrors = False
    totals = TourTotals
    feature_counts: ClassVar = {"scale_free": 10}
    baselines: ClassVar = {}
    bounds: ClassVar = {}
    complemented = False
    known = False
    text, read = staticmethod(order_text), staticmethod(read_order)

    # ---- states -----------------------------------------------------------------------------------------

    def totals_of(self, state: InsertionState) -> TourTotals:
        """The totals of a state."""
        near = state.nearest_out
        return TourTotals(
            len(near), len(near) - len(state.order), state.length, int(state.cost_out.sum()),
            int(near.sum()), int(near.max(initial=0)), state.metric.spacing,
        )  # fmt: skip

    def codes(
        self, near: np.ndarray, cost: np.ndarray, gain: np.ndarray, farthest: Any, most: Any
    ) -> np.ndarray:
        """[k] int32 codes of some cities.

        near, cost   [k] int64 distances to the tour and insertion costs; near is -1 on the tour
        gain         [k] int64 what inserting them would gain (InsertionState.gains)
        farthest, most   the largest near and gain of the state, or [k] for cities of several states
        """
        level = GAIN_STEPS.searchsorted(_share(gain, most), side="right")
        distance = DISTANCE_STEPS.searchsorted(_share(near, farthest), side="right")
        detour = np.minimum(DETOURS * np.maximum(cost, 0) // np.maximum(2 * near, 1), DETOURS - 1)
        code = self.first_candidate + DETOURS * (DISTANCES * level + distance) + detour
        return np.where(near >= 0, code, FIRST_ALIVE).astype(np.int32)

    def entries(self, max_degree: int) -> int:
        """All codes, whatever the degrees."""
        return self.first_candidate + GAINS * DISTANCES * DETOURS

    def state(self, totals: TourTotals) -> tuple[float, ...]:
        """A constant for sums over neighbours, the share outside, the farthest distance in mean spacings."""
        far = coarse(totals.farthest * totals.alive, totals.spacing)
        return NEIGHBOURS, totals.outside / max(totals.alive, 1), far

    def features(self, kind: str, xp: Any, code: Array, state: Array) -> Array:
        """Node features [..., 10]: 1, [on the tour], g, g^3, [g = 1], d, r, r d, share left, log(1 + far).

        g, d and r are the buckets of gain, distance and detour, from 0 to 1.

        code    [..., 1]    state [..., 3]
        """
        outside = code >= self.first_candidate
        number = xp.maximum(code - self.first_candidate, 0)
        pair = xp.floor(number / DETOURS)
        level = xp.floor(pair / DISTANCES)
        g = outside * ((level + 1) / GAINS)
        d = outside * ((pair - DISTANCES * level + 1) / DISTANCES)
        r = outside * ((number - DETOURS * pair + 0.5) / DETOURS)
        x = room_for_features(xp, code, state, 10)
        x[..., 0:1] = 1
        x[..., 1:2] = code == FIRST_ALIVE
        x[..., 2:3] = g
        x[..., 3:4] = g * g * g
        x[..., 4:5] = g == 1
        x[..., 5:6] = d
        x[..., 6:7] = r
        x[..., 7:8] = r * d
        x[..., 8:9] = state[..., 1:2]
        x[..., 9:10] = log(xp, 1 + state[..., 2:3])
        x *= code > 0
        return x

    # ---- rewards ----------------------------------------------------------------------------------------

    def potential(self, totals: TourTotals) -> float:
        """Minus an estimate of what is still to pay."""
        return -0.5 * (totals.cost + totals.near)

    def reward(self, before: TourTotals, after: TourTotals, chosen: int, shaping: str) -> float:
        """Minus the growth of the tour in mean spacings; shaped: the gain in units of the state."""
        growth = after.length - before.length
        if shaping == "caro_wei":
            share = (before.alive - before.outside) / before.alive
            return (self.potential(after) - self.potential(before) - growth) * share / max(before.farthest, 1)
        return -growth * before.alive / before.spacing

    def done(self, totals: TourTotals) -> bool:
        """True when every city is on the tour."""
        return totals.outside == 0

    def left(self, totals: TourTotals) -> tuple[int, str]:
        """Cities outside."""
        return totals.outside, "cities outside"

    # ---- solutions --------------------------------------------------------------------------------------

    def objective(self, chosen: int, totals: TourTotals) -> int:
        """The length of the tour."""
        return totals.length

    def toolbox(self, instance: Instance) -> TourTools:
        """Local search, bounds and plain constructions of tours."""
        metric = instance.metric
        if metric is not None and metric.kind == DIRECTED:
            return DirectedTools(instance, self)
        return TourTools(instance, self)

    def bound(self, n: int, lower: int) -> int:
        """A lower bound."""
        return lower


def _share(part: np.ndarray, whole: Any) -> np.ndarray:
    """part / whole in fixed point, 0 where negative. Both are below 2^31 times the neighbours of a city."""
    return np.maximum(part, 0) * (FIXED_POINT >> 4) // np.maximum(whole, 1) << 4
