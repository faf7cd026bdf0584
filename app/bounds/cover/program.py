"""The cheapest columns of a table that hit all its rows, by HiGHS: minimise price x, T x >= 1, x in {0, 1}.

A row may want to be hit more than once, T x >= need.

Where all columns have one price, one more row says that the cost is at most that of the best choice known,
which takes a half to two thirds off the time. With prices that differ it takes up to ten times as long, and
the presolve of HiGHS 1.16 loses choices by that row, all of them in one small program of a hundred, which
it then calls infeasible. There the cost is told as a bound of the objective. HiGHS's own searches for choices
are off, as a local search is better at that: they took most of the time where it is short, and interrupt
nobody for seconds.

It asks whether it may go on between its linear programs, and never within one: of HiGHS's callbacks those of
its simplex and interior point methods are not called under branch and cut. So the first program, the largest,
is solved by an interior point method: 0.3 s for 18,000 entries, 1.7 to 2.5 for 29,000, 1 to 5 for 60,000,
where the simplex method took 4, 28 and over a minute. On larger ones that method heeds no time limit.

HiGHS computes in floating point, so nothing here is a proof that could be checked; its tolerances are kept
far from deciding. Prices are divided by their greatest common divisor. Where a choice costs at most EXACT of
such units, rounding its bound up, less a margin, gives a whole number beyond doubt: optima are recognised.
Where prices are finer the bound stays below the optimum by about the margin, and none is.

Source   HiGHS, Huangfu and Hall 2018: branch and cut
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.bounds.certificate import BadCertificate
from app.bounds.highs import BRANCHING, branch, new_solver, set_rows
from app.reductions.domination.reducer import Component

METHOD = "branch and cut (HiGHS)"
EXACT = 1 << 20  # units; their sums have no rounding errors near 1e-6, HiGHS's tolerance
INTERIOR = 1 << 16  # entries of a table whose first linear program an interior point method solves
MARGIN, SHARE = 1e-4, 2.0**-22  # of a bound, in units; and of the cost of a choice


@dataclass
class Program:
    """One part's program, and what is known of it.

    part     its rows and columns
    taken    [c] bool, the best choice known       cost    what that costs
    lower    no choice costs less                  done    nothing more is to be had
    need     [r] int64, the columns that each row wants at least, or None: one
    simplex  the first linear program is left to the simplex method, whatever its size
    """

    part: Component
    taken: np.ndarray
    cost: int
    lower: int = 0
    done: bool = False
    need: np.ndarray | None = None
    simplex: bool = False

    @classmethod
    def of(cls, part: Component) -> "Program":
        """With the cheapest column of each row for a choice."""
        first = part.table.indptr[:-1]
        price = part.price[part.table.indices]
        least = np.minimum.reduceat(price, first)
        row = np.repeat(np.arange(len(first)), np.diff(part.table.indptr))
        place = np.where(price == least[row], part.table.indices, len(part.price))
        taken = np.zeros(len(part.price), dtype=bool)
        taken[np.minimum.reduceat(place, first)] = True
        return cls(part, taken, int(part.price[taken].sum()))

    @property
    def solved(self) -> bool:
        """Whether the choice is optimal."""
        return self.cost == self.lower

    def hits(self, taken: np.ndarray) -> bool:
        """Whether the columns taken [c] bool hit every row as often as it needs."""
        return bool(
            (self.part.table @ taken.astype(np.int32) >= (1 if self.need is None else self.need)).all()
        )

    def offer(self, taken: np.ndarray | None) -> None:
        """A choice [c] bool that hits all rows, or None."""
        if taken is not None and (cost := int(self.part.price[taken].sum())) < self.cost:
            self.taken, self.cost = taken, cost
            if cost < self.lower:
                raise BadCertificate(f"{METHOD}: says at least {self.lower}, where a choice costs {cost}")

    def run(self, seconds: float, look: Callable[[], bool]) -> None:
        """HiGHS, so long at most, until its bound reaches the best choice.

        `look`, asked between linear programs, is True where it has to end. The choice is no start for HiGHS:
        version 1.16 counts the costs of some starts wrongly once it has reduced the program, and then stops
        at a value that no choice has.
        """
        import highspy  # not needed by those who start the program for something else

        units = _Units(self.part.price, self.cost)
        solver = new_solver(**BRANCHING, time_limit=seconds)
        if units.step > 1:
            solver.setOptionValue("mip_rel_gap", SHARE)
        if not units.even:
            solver.setOptionValue("objective_bound", units.most)
        if self.part.table.nnz <= INTERIOR and not self.simplex:
            solver.setOptionValue("mip_lp_solver", "ipx")
        if solver.passModel(_model(highspy, self, units)) == highspy.HighsStatus.kError:
            self.done = True
            return

        def heard(bound: float) -> bool:
            self._raise(units.whole(bound))
            return look() or self.solved

        branch(solver, heard)
        self._take(solver, highspy.HighsModelStatus, units)

    def _take(self, solver: Any, status: Any, units: "_Units") -> None:
        """What HiGHS has found when it ends."""
        ended = solver.getModelStatus()
        self.done = ended not in (status.kTimeLimit, status.kInterrupt)
        values = np.asarray(solver.getSolution().col_value, dtype=np.float64)
        if len(values) == len(self.taken) and self.hits(values > 0.5):
            self.offer(values > 0.5)
        bound = units.whole(solver.getInfo().mip_dual_bound)
        if ended == status.kOptimal and units.step == 1 and bound != self.cost:
            return  # an optimum that no choice attains is none
        if ended in (status.kOptimal, status.kTimeLimit, status.kInterrupt):
            self._raise(bound)

    def _raise(self, bound: int) -> None:
        """A bound of HiGHS; no more than the cost of a choice is believed."""
        self.lower = max(self.lower, min(bound, self.cost))


class _Units:
    """Prices as HiGHS gets them.

    unit     greatest common divisor of the prices     step   of the costs, in units
    cost     [c] float64; no column dearer than the known choice is in a better one
    most     what HiGHS's choices may cost: as much as the known one, and half a unit for rounding
    even     whether all prices are the same
    """

    def __init__(self, price: np.ndarray, known: int) -> None:
        self.unit = math.gcd(*price.tolist())
        self._known = known // self.unit
        self.step = max(1.0, self._known / EXACT)
        self.free = price <= known
        self.most = self._known / self.step + 0.5
        self.cost = np.where(self.free, price, known) // self.unit / self.step
        self.even = bool((price == self.unit).all())

    def whole(self, bound: float) -> int:
        """A bound on costs as a price, rounded up; 0: none."""
        if not math.isfinite(bound):
            return 0
        return self.unit * max(0, math.ceil(bound * self.step - MARGIN - SHARE * self._known))


def _model(highspy: Any, program: Program, units: _Units) -> Any:
    """The program of one part, in HiGHS's terms."""
    table, (rows, columns) = program.part.table, program.part.table.shape
    model = highspy.HighsLp()
    lower, upper = np.ones(rows), np.full(rows, highspy.kHighsInf)
    if program.need is not None:
        lower = program.need.astype(np.float64)
    if units.even:
        table = sp.vstack([table, sp.csr_array(units.cost[None, :])], format="csr")
        lower, upper = np.append(lower, 1.0), np.append(upper, units.most)
    model.num_row_, model.num_col_ = len(upper), columns
    model.col_cost_, model.col_lower_ = units.cost, np.zeros(columns)
    model.col_upper_ = units.free.astype(np.float64)
    model.row_lower_, model.row_upper_ = lower, upper
    set_rows(model, table)
    model.integrality_ = [highspy.HighsVarType.kInteger] * columns
    return model
