"""The best choice of sets by HiGHS: maximise w y, y_v <= sum of x_S over S with v, cost x <= budget.

HiGHS computes in floating point, so nothing here is a proof that could be checked; its tolerances are kept
far from deciding: weights and costs are divided by their greatest common divisors, costs of too many digits
are not begun with, its bound is rounded down after a margin is added, and no bound below a choice that is
known is believed. It asks whether it may go on between its linear programs. Its own searches for choices are
off, as a local search is better at that, and the value of the best choice known is told as a bound of the
objective.

Source   HiGHS, Huangfu and Hall 2018: branch and cut
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.bounds.certificate import BadCertificate
from app.bounds.coverage.prices import payable
from app.bounds.highs import BRANCHING, available, branch, new_solver, set_rows
from app.bounds.paced import Paced
from app.graphs.family import Family

METHOD = "branch and cut (HiGHS)"
MOST_ENTRIES = 1 << 17  # entries, sets and elements of a program that is begun
MOST_COST = 1 << 40  # of all sets together, in units: HiGHS has said untrue bounds from 2^48 on
EXACT = 1 << 20  # of the weights together, in units: their sums have no errors near HiGHS's tolerance
MARGIN, SHARE = 1e-4, 2.0**-22  # of a bound, in units; and of all weights


def fits(family: Family) -> bool:
    """Whether it is begun: HiGHS can be called, and the program and its numbers are small enough."""
    size = family.entries + family.m + family.n
    return 0 < size <= MOST_ENTRIES and int(payable(family)[1].sum()) <= MOST_COST and available()


def _priced(family: Family) -> tuple[np.ndarray, int]:
    """[m] int64, costs of the sets, and the budget, in their unit; those of no use cost more than it."""
    sets, cost, budget = payable(family)
    budget = min(budget, int(cost.sum()))
    every = np.full(family.m, budget + 1)
    every[sets] = cost
    return every, budget


class ExactCoverage:
    """The search for the optimum; it works while `run` waits.

    upper    no choice is worth more; None: nothing is known yet
    known    [m] bool, the best choice, and value, what it is worth
    done     it has ended, with the optimum or without
    """

    method = METHOD

    def __init__(self, family: Family, known: np.ndarray, seconds: float) -> None:
        """known   [m] bool, a choice     seconds   until the end"""
        self._family, self._seconds = family, seconds
        self._unit = max(math.gcd(*family.weight.tolist()), 1)
        self._total = int(family.weight.sum()) // self._unit
        self.upper: int | None = None
        self.known, self.value = known, family.value(known)
        self.done = False
        self._paced = Paced(self._work)

    @property
    def solved(self) -> bool:
        """Whether the choice is optimal."""
        return self.upper is not None and self.value >= self.upper

    def offer(self, chosen: np.ndarray) -> None:
        """A choice [m] bool that the budget pays for."""
        if (value := self._family.value(chosen)) > self.value:
            self.known, self.value = chosen.astype(bool), value
            if self.upper is not None and value > self.upper:
                raise BadCertificate(f"{METHOD}: says at most {self.upper}, where a choice is worth {value}")

    def run(self, seconds: float) -> None:
        """Work for about so long."""
        self._paced.run(seconds)
        self.done = self._paced.done

    def close(self) -> None:
        """Work no more; what is known stays."""
        self._paced.close()

    def _work(self, look: Callable[[], bool]) -> None:
        """The thread: HiGHS, until its bound meets the best choice, or the time is up."""
        import highspy  # not needed by those who start the program for something else

        solver = new_solver(**BRANCHING, time_limit=self._seconds)
        solver.setOptionValue("objective_bound", 0.5 - self.value / self._unit)
        if self._total > EXACT:
            solver.setOptionValue("mip_rel_gap", SHARE)
        if solver.passModel(self._model(highspy)) == highspy.HighsStatus.kError:
            return

        def heard(bound: float) -> bool:
            self._lower(bound)
            return look() or self.solved

        branch(solver, heard)
        self._take(solver, highspy.HighsModelStatus)

    def _take(self, solver: Any, status: Any) -> None:
        """What HiGHS has found when it ends."""
        ended, family = solver.getModelStatus(), self._family
        values = np.asarray(solver.getSolution().col_value, dtype=np.float64)
        if len(values) == family.m + family.n:
            chosen = values[: family.m] > 0.5
            if int(family.cost[chosen].sum()) <= family.budget:
                self.offer(chosen)
        bound = self._whole(solver.getInfo().mip_dual_bound)
        if ended == status.kOptimal and self._total <= EXACT and bound is not None and bound < self.value:
            return  # an optimum below a choice is none
        if ended in (status.kOptimal, status.kTimeLimit, status.kInterrupt):
            self._lower(solver.getInfo().mip_dual_bound)

    def _lower(self, bound: float) -> None:
        """A bound of HiGHS; none below the value of a choice is believed."""
        whole = self._whole(bound)
        if whole is not None:
            whole = max(whole, self.value)
            self.upper = whole if self.upper is None else min(self.upper, whole)

    def _whole(self, bound: float) -> int | None:
        """What HiGHS's bound, of the least -w y, says of values; None: nothing."""
        if not math.isfinite(bound):
            return None
        return self._unit * math.floor(-bound + MARGIN + SHARE * max(self._total - EXACT, 0))

    def _model(self, highspy: Any) -> Any:
        """The program, in HiGHS's terms: a row for each element, one for the budget."""
        family, (m, n) = self._family, (self._family.m, self._family.n)
        held = sp.csr_array((-np.ones(family.entries), family.sets, family.element_ptr), shape=(n, m))
        cost, budget = _priced(family)
        spent = sp.csr_array(np.append(cost, np.zeros(n))[None, :].astype(np.float64))
        table = sp.vstack([sp.hstack([held, sp.eye_array(n)]), spent], format="csr")
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = n + 1, m + n
        model.col_cost_ = np.append(np.zeros(m), -(family.weight // self._unit).astype(np.float64))
        model.col_lower_, model.col_upper_ = np.zeros(m + n), np.ones(m + n)
        model.row_lower_ = np.full(n + 1, -highspy.kHighsInf)
        model.row_upper_ = np.append(np.zeros(n), float(budget))
        set_rows(model, table)
        kinds = highspy.HighsVarType
        model.integrality_ = [kinds.kInteger] * m + [kinds.kContinuous] * n
        return model
