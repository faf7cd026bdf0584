"""FamilyEnv: choosing sets of a family until all elements are in one, on the two-sided graph of both."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.group import Group
from app.errors import CaseError
from app.problems.problem import FIXED_POINT, Problem
from app.problems.set_cover import SPENT_ONE, UNIT_BITS
from app.rl.env import NodeEnv
from app.rl.field import FieldEnv, sums_near, times_chosen
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

Array = Any
LEAST_COST = 2.0**-20  # what costs less in the unit of costs, or nothing, counts as this cheap
LOWEST_EXPONENT, EXPONENTS = -160, 320  # of costs
UNIT_EXPONENTS = 1, 7  # of the middle cost in the unit of costs: it is 1 to 128
FAR_BELOW = 2.0**-9  # of the power of two above the middle cost: what costs less is not in the mean
MOST_SPENT = 1 << 50
CHEAPEST = 1 << 16  # units: no candidate counts as cheaper than 2^8 times the mean
ROUNDS = 8  # of choosing sets without an element in common
INVERSE = 1 << 20  # one, in the fixed point of 1 / cost


@dataclass(frozen=True)
class Family:
    """What does not change of a family while it is covered, of the own rows [n_own].

    mark     int32, the first state: one on demands, elsewhere 0
    look     int64: of candidates how cheap they are, in units; of demands minus the sum of these over their
             candidates; 0 on the reference, on padding and on what no candidate can meet
    price    int64, of demands what meeting them costs by the potential, in 2^-30 mean costs; else 0
    cost     int64, of candidates their cost in 2^-20 mean costs; else 0
    mean     the mean cost, a harmonic mean of those that are not far below the middle one
    """

    mark: np.ndarray
    look: np.ndarray
    price: np.ndarray
    cost: np.ndarray
    mean: float

    def of_rows(self, rows: np.ndarray, room: int) -> "Family":
        """That of the own rows [k] alone, then zeros up to `room` rows."""
        parts = []
        for each in (self.mark, self.look, self.price, self.cost):
            part = np.zeros(room, dtype=each.dtype)
            part[: len(rows)] = each[rows]
            parts.append(part)
        return Family(*parts, self.mean)


def family_of(group: Group, block: RowBlock) -> Family:
    """The family that a graph of app/graphs/covering.py stands for; kept with the block. Ranks: all call.

    The last node is the reference, the first ones, as many as it has neighbours, are the candidates.
    """
    if "family" not in block.kept:
        last = block.n - 1 - block.lo
        degree = int(block.degrees_own()[last]) if 0 <= last < block.n_real else 0
        count = group.max_integer(degree)
        nodes = block.lo + np.arange(block.n_own)
        real = np.arange(block.n_own) < block.n_real
        demand = real & (nodes >= count) & (nodes < block.n - 1)
        block.kept["family"] = make_family(group, block, demand, real & (nodes < count))
    return block.kept["family"]


def make_family(group: Group, block: RowBlock, demand: np.ndarray, candidate: np.ndarray) -> Family:
    """The family of some demands and candidates [n_own] bool, with costs of the block's node weights.

    Ranks     all call; costs and sums are whole numbers, so no bit depends on their number
    """
    cost, unit, least = np.ones(block.n_own), 1.0, 0.0
    if block.node_weights is not None:
        cost[: block.n_real] = block.node_weights
        unit, least = _unit_of(group, cost[candidate])
        cost /= unit  # exact, a power of two
    inverse = np.floor(INVERSE / np.maximum(cost, LEAST_COST)).astype(np.int64)
    counted = candidate & (cost >= least)
    count, among, total = group.sum_integers(
        np.array([candidate.sum(), counted.sum(), inverse[counted].sum()], dtype=np.int64)
    ).tolist()
    mean = INVERSE * among / total if total else 1.0
    cheap = np.floor((1 << UNIT_BITS) * mean / np.maximum(cost, LEAST_COST))
    look = np.where(candidate, np.clip(cheap, 1, CHEAPEST), 0).astype(np.int64)
    near = sums_near(group, block, look, np.int64)
    demand = demand & (near > 0)
    look[demand] = -near[demand]
    paid = np.minimum(np.rint(cost * (SPENT_ONE / mean)), MOST_SPENT)
    return Family(
        demand.astype(np.int32), look, _prices(group, demand, near, count),
        np.where(candidate, paid, 0).astype(np.int64), mean * unit,
    )  # fmt: skip


def _unit_of(group: Group, cost: np.ndarray) -> tuple[float, float]:
    """A power of two in which costs [k] of own candidates are counted, and the least in it that is not far
    below the middle one: a set that is next to free makes no difference to how dear the others are. Both are
    told from how many costs have each binary exponent. Ranks: all call; identical on all.
    """
    exponent = np.frexp(cost[cost > 0])[1] - LOWEST_EXPONENT
    below = np.cumsum(group.sum_integers(np.bincount(exponent, minlength=EXPONENTS).astype(np.int64)))
    if not below[-1]:
        return 1.0, 0.0
    middle = int(np.searchsorted(2 * below, below[-1])) + LOWEST_EXPONENT
    inside = min(max(middle, UNIT_EXPONENTS[0]), UNIT_EXPONENTS[1])
    return 2.0 ** (middle - inside), FAR_BELOW * 2.0**inside


def _prices(group: Group, demand: np.ndarray, near: np.ndarray, count: int) -> np.ndarray:
    """[n_own] int64, (D / d)^(1/2) / E of demands in fixed point (SetCover). Ranks: all call."""
    sums = np.array([near[demand].sum(), np.count_nonzero(demand)], dtype=np.int64)
    worth, demands = group.sum_integers(sums).tolist()
    price = np.zeros(len(near))
    if worth:
        mean, efficiency = worth / demands, worth / (count << UNIT_BITS)
        price[demand] = np.floor(FIXED_POINT * np.sqrt(mean / near[demand]) / efficiency)
    return price.astype(np.int64)


class FamilyEnv(FieldEnv):
    """Marks of demands that are left, and how many of these each candidate meets (its field).

    A choice of a candidate takes the marks of its demands. Candidates without a demand that is left, demands
    that are met and the reference have no embedding.

    family   what does not change (Family); it goes along where rows are left out
    """

    compiled = "family"

    @property
    def unit(self) -> float:
        """What one of the problem's objective costs."""
        return self.family.mean

    def __init__(
        self,
        group: Group,
        block: RowBlock,
        problem: Problem,
        scan: bool = False,
        mark_own: np.ndarray | None = None,
        family: Family | None = None,
    ) -> None:
        if scan:
            raise CaseError('train.environment: "scan" finds isolated nodes, which "residual" dynamics have')
        NodeEnv.__init__(self, group, block, problem)
        if family is None and mark_own is not None:
            real = np.arange(block.n_own) < block.n_real
            family = make_family(group, block, mark_own > 0, real & (mark_own == 0))
        self.family = family_of(group, block) if family is None else family
        self.mark_own = self.family.mark.copy() if mark_own is None or family is None else mark_own
        self.field_own = sums_near(group, block, self.mark_own)
        self.totals = problem.totals(*group.sum_integers(self._shares(slice(None))).tolist())

    def _shares(self, rows: Any) -> np.ndarray:
        """[T] what own rows add to the totals."""
        look, price = self.family.look[rows], self.family.price[rows]
        return self.problem.shares(self.mark_own[rows], self.field_own[rows], look, price)

    def codes_own(self, rows: Any = slice(None)) -> np.ndarray:
        """int32 codes of own rows, those that a choice needs."""
        return self.problem.code(np, self.mark_own[rows], self.field_own[rows], self.family.look[rows])

    def all_codes_own(self) -> np.ndarray:
        """The same: features of the code alone, which ask for more, are not offered."""
        return self.codes_own()

    def apart(self, ordered: np.ndarray) -> np.ndarray:
        """Of candidates [k] (global), best first, those that share no demand that is left with an earlier
        one of these: a second set of the same elements is worth less than its score says.

        In each of ROUNDS rounds those go first that are the first ones of all their demands, and with them
        leave those that share one; what is undecided then waits for the next step.
        """
        rows, place = self.block.adjacent_own(ordered)
        left = self.mark_own[rows] > 0
        rows, place = rows[left], place[left]
        taken, waits = np.zeros(len(ordered), dtype=bool), np.ones(len(ordered), dtype=bool)
        for _ in range(ROUNDS if len(ordered) > 1 else 0):
            first = np.full(self.block.n_own, len(ordered), dtype=np.int64)
            np.minimum.at(first, rows, place)
            go = waits & ~self._any_place(place[first[rows] < place], len(ordered))
            met = np.zeros(self.block.n_own, dtype=bool)
            met[rows[go[place]]] = True
            taken |= go
            waits &= ~self._any_place(place[met[rows]], len(ordered))
            if not waits.any():
                break
            rows, place = rows[waits[place]], place[waits[place]]
        return ordered[taken] if len(ordered) > 1 else ordered

    def _any_place(self, places: np.ndarray, count: int) -> np.ndarray:
        """[count] bool, which of the places some rank has. Ranks: all call."""
        found = np.zeros(count, dtype=np.int64)
        found[places] = 1
        return self.group.sum_integers(found) > 0

    def choose_own(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Choose candidates [k] (global): the marks `reached` go, and what the choice costs is spent."""
        change = super().choose_own(nodes, reached)
        change[-1] += self.family.cost[self.owned(nodes)].sum()
        return change

    def ran(self, totals: tuple[int, ...], steps: int) -> None:
        """Close steps that were made compiled: what they cost is added here."""
        chosen = self.chosen_at >= self.steps
        super().ran(totals, steps)
        spent = self.totals.spent + int(self.family.cost[chosen].sum())
        self.totals = self.totals._replace(spent=spent)

    def smaller(self, group: Group, block: RowBlock, rows: np.ndarray) -> "FamilyEnv":
        """This state on the own rows `rows` [k] alone, with what is known of the family. Ranks: all call."""
        mark_own = np.zeros(block.n_own, dtype=np.int32)
        mark_own[: len(rows)] = self.mark_own[rows]
        family = self.family.of_rows(rows, block.n_own)
        env = FamilyEnv(group, block, self.problem, mark_own=mark_own, family=family)
        env.totals = env.totals._replace(spent=self.totals.spent)
        return env

    @staticmethod
    def replayed(
        problem: Problem, batch: StateBatch, before: list[np.ndarray], after: list[np.ndarray], every: bool
    ) -> tuple[Array, Array]:
        """[rows] int32 codes of the states before and after; see GraphEnv.replayed. Ranks: all call."""
        put, xp = batch.device.put, batch.device.xp
        families = [family_of(batch.group, block) for block in batch.blocks]
        look, mark = (
            put(np.concatenate([np.repeat(getattr(f, key), k) for f, k in zip(families, batch.counts)]))
            for key in ("look", "mark")
        )
        chosen = put(np.stack([times_chosen(batch, before), times_chosen(batch, after)], axis=1))
        marks = mark.astype(np.float32)[:, None] * (batch.times(chosen) == 0)
        field = batch.times(xp.ascontiguousarray(marks))
        return tuple(problem.code(xp, marks[:, i], field[:, i], look) for i in (0, 1))
