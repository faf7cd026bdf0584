"""Minimum set cover and minimum hitting set: dominating sets in disguise (app/graphs/covering.py)."""

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from app.graphs.covering import demand_called
from app.graphs.graph import Graph
from app.numerics.elementary import log
from app.problems.mds import MinimumDominatingSet
from app.problems.problem import FIRST_ALIVE, FIXED_POINT, coarse, room_for_features
from app.search.domination.covering import FAMILY_BASELINES, CoveringTools, candidates_of, unmet_demand
from app.toolbox import Instance

Array = Any
UNIT_BITS = 8  # one, in the fixed point of how cheap a candidate is; as in family.h
EXACT_BITS = 5  # binary digits of a level after the first one
LEVELS = 768  # levels that are told apart, up to 2^28
SPENT_ONE = 1 << 20  # the mean cost, in the fixed point of FamilyTotals.spent


def levels(xp: Any, numbers: Array) -> Array:
    """[k] int64: whole numbers from 0 up by six leading binary digits, ascending; 0 to 63 are themselves."""
    shift = numbers * 0
    for bits in range((LEVELS >> EXACT_BITS) - 1):
        shift = shift + (numbers >= 2 << EXACT_BITS + bits)
    return xp.minimum((shift << EXACT_BITS) + (numbers >> shift), LEVELS - 1)


def _level_values() -> np.ndarray:
    """[LEVELS] float32, the least number of each level, in units."""
    level = np.arange(LEVELS)
    shift = np.maximum((level >> EXACT_BITS) - 1, 0)
    return (((level - (shift << EXACT_BITS)) << shift) / (1 << UNIT_BITS)).astype(np.float32)


VALUES = _level_values()


class FamilyTotals(NamedTuple):
    """The totals of a state.

    alive      candidates that meet a demand which is left, and these demands
    worth      sum over demands that are left of how cheap their candidates are together, in units
    undone     demands that are left
    price      sum over these of an estimate of what meeting them costs, in 2^-30 mean costs
    spent      what the chosen candidates cost, in 2^-20 mean costs
    """

    alive: int
    worth: int
    undone: int
    price: int
    spent: int

    @property
    def candidates(self) -> int:
        """What may be chosen."""
        return self.alive - self.undone


class SetCover(MinimumDominatingSet):
    """The fewest sets (or the cheapest) such that every element is in one of them.

    Solutions are masks of the nodes of the graph that stands for the family: of its sets, never of an
    element or of the reference.

    State: the marks of the demands that are left (app/rl/family_env.py). A candidate S of cost c is *cheap*
    by a(S) = m / c, m the harmonic mean of the costs (without those far below the middle one), so that a is
    one on the average and where costs are equal. Its code tells its *efficiency*, a(S) times the demands left
    that it meets, what a greedy goes by; that of a demand u how many candidates may meet it, each counted by
    how cheap it is, d(u) = sum of a(S). What is scarce has to be paid for in any case, and a greedy does not
    see it. Both are whole numbers of 2^-8, of which six leading binary digits are kept (`levels`): where
    costs are equal, counts below 64 are told exactly. Messages sum over neighbours: a candidate hears how
    scarce its demands are, and a demand how efficient its candidates.

    Reward     minus the costs of the chosen, by the mean m. To add, at the end of an episode, the costs of
               what its cover does not need was tried: learned on small families it misled on larger ones
    Shaping    "caro_wei": + Phi(s') - Phi(s), Phi = - sum over demands u left of (D / d(u))^(1/2) / E, D the
               mean of d over demands and E the mean efficiency, both at the beginning: if all candidates
               were as efficient as at first, -Phi would be about what is still to be spent, more for what is
               scarce. Choosing greedily by the sum of d(u)^(-1/2) over the demands met covers drawn families
               of 200 to 1,000 sets of equal costs with 1 to 8 % fewer sets than by their number
    """

    name = "set_cover"
    solution = "set cover"
    candidate, demand, met = "set", "element", "element {} uncovered"
    dynamics = "family"
    compiled_field = ""
    redundancy = "family"
    first_candidate = FIRST_ALIVE + LEVELS
    totals = FamilyTotals
    feature_counts: ClassVar = {"scale_free": 10}
    baselines: ClassVar = FAMILY_BASELINES
    bounds: ClassVar = {}
    sees_weights = True

    # ---- states ----------------------------------------------------------------------------------------

    def code(self, xp: Any, mark: Array, field: Array, look: Array | None = None) -> Array:
        """FIRST_ALIVE + level of demands that are left, first_candidate + level of candidates that meet some.

        mark   one on demands that are left, else 0     field   the marks of the neighbours, summed
        look   whole numbers: of candidates how cheap they are, of demands minus the sum of these; 0: neither
        """
        left = mark > 0
        worth = xp.where(left, -look, field.astype(np.int64) * look)
        code = levels(xp, xp.maximum(worth, 0)) + xp.where(left, FIRST_ALIVE, self.first_candidate)
        return (code * (worth > 0)).astype(np.int32)

    def shares(self, mark: np.ndarray, field: np.ndarray, look: np.ndarray, price: np.ndarray) -> np.ndarray:
        """Nodes with a code, worth, demands left, their prices; costs are of choices, not of nodes."""
        left = mark * (look < 0)
        alive = np.count_nonzero(np.where(look > 0, field, left))
        return np.array([alive, -(left * look).sum(), left.sum(), (left * price).sum(), 0], dtype=np.int64)

    def plain(self, code: np.ndarray) -> np.ndarray:
        """The demands that each would meet, for its cost: by levels."""
        return code - self.first_candidate

    def neighbours(self, code: np.ndarray) -> np.ndarray:
        """The demands left of a candidate of the mean cost, the candidates of a demand."""
        return VALUES[level_of(np.asarray(code).astype(np.int64))]

    def entries(self, max_degree: int) -> int:
        """Levels of demands and of candidates."""
        return FIRST_ALIVE + 2 * LEVELS

    def state(self, totals: FamilyTotals) -> tuple[float, ...]:
        """What neighbour sums are measured by, the mean efficiency, the mean d(u) of the demands left."""
        unit, (_, worth, undone, _, _) = 1 << UNIT_BITS, totals
        both = math.isqrt(totals.candidates * undone)
        return (
            coarse(worth, both * unit),
            coarse(worth, totals.candidates * unit),
            coarse(worth, undone * unit),
        )

    def features(self, kind: str, xp: Any, code: Array, state: Array) -> Array:
        """1; of candidates 1, log(1 + e/s), r = min(s/e, 8), r^2/4; of demands log(1 + d/t), min(t/d, 8),
        [d <= 1]; 1/s and 1/m, at most 8: e, d the value of a code, s and t their means, m what divides sums.
        """
        number = code.astype(np.int64)
        some = (number >= FIRST_ALIVE).astype(np.float32)
        chooses = (number >= self.first_candidate).astype(np.float32)
        value = xp.maximum(xp.asarray(VALUES)[level_of(number)], np.float32(1e-3))
        measure, efficiency, scarcity = state[..., 0:1], state[..., 1:2], state[..., 2:3]
        ratio, few = xp.minimum(efficiency / value, 8), xp.minimum(scarcity / value, 8)
        demands = some - chooses
        x = room_for_features(xp, code, state, 10)
        x[..., 0:1] = some
        x[..., 1:2] = chooses
        x[..., 2:3] = chooses * log(xp, 1 + value / efficiency)
        x[..., 3:4] = chooses * ratio
        x[..., 4:5] = chooses * ratio * ratio * 0.25
        x[..., 5:6] = demands * log(xp, 1 + value / scarcity)
        x[..., 6:7] = demands * few
        x[..., 7:8] = demands * (value <= 1)
        x[..., 8:9] = some * xp.minimum(1 / efficiency, 8)
        x[..., 9:10] = some * xp.minimum(1 / measure, 8)
        return x

    # ---- rewards ---------------------------------------------------------------------------------------

    def reward(self, before: FamilyTotals, after: FamilyTotals, chosen: int, shaping: str) -> float:
        """Minus what the choice costs, plus the gain of potential when shaped."""
        gain = self.potential(after) - self.potential(before) if shaping == "caro_wei" else 0.0
        return gain - (after.spent - before.spent) / SPENT_ONE

    def potential(self, totals: FamilyTotals) -> float:
        """Minus an estimate of what is still to be spent."""
        return -totals.price / FIXED_POINT

    def done(self, totals: FamilyTotals) -> bool:
        """True when every demand is met."""
        return totals.undone == 0

    def left(self, totals: FamilyTotals) -> tuple[int, str]:
        """Demands that are left."""
        return totals.undone, f"{self.demand}s left"

    def objective(self, chosen: int, totals: FamilyTotals) -> float:
        """The costs of the chosen candidates by the mean one: their number where costs are equal."""
        return totals.spent / SPENT_ONE

    # ---- solutions -------------------------------------------------------------------------------------

    def toolbox(self, instance: Instance) -> CoveringTools:
        """Those of dominating sets that hold the reference and no demand."""
        return CoveringTools(instance, self)

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """A demand that meets no chosen candidate, or what is chosen and none."""
        stray = solution_all[graph_rows.lo : graph_rows.hi] & ~candidates_of(graph_rows)
        if stray[: graph_rows.n - 1 - graph_rows.lo].any():  # the reference is the toolbox's to see
            return f"holds what is no {self.candidate}"
        if (demand := unmet_demand(graph_rows, solution_all)) is None:
            return None
        called = demand_called if graph_rows.whole else Graph.called
        return f"leaves {self.met.format(called(graph_rows, demand))}"


def level_of(code: Array) -> Array:
    """The level of a code; 0 of those of no embedding."""
    level = code - FIRST_ALIVE
    return (level - LEVELS * (level >= LEVELS)).clip(0, LEVELS - 1)


class HittingSet(SetCover):
    """The fewest elements (or the cheapest) such that every set has one of them."""

    name = "hitting_set"
    solution = "hitting set"
    candidate, demand, met = "element", "set", "set {} without one of its elements"
