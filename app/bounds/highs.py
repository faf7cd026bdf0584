"""HiGHS as the bounds call it: quiet, of one thread, with one seed. Source: Huangfu and Hall 2018."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

QUIET = {"output_flag": False, "threads": 1, "parallel": "off", "random_seed": 0}
BRANCHING = {
    "mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "mip_heuristic_run_rins": False, "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
}  # fmt: skip
SIMPLEX = {"presolve": "off", "solver": "simplex", "simplex_strategy": 1}  # dual: programs grow by rows


@cache
def available() -> bool:
    """Whether HiGHS can be called."""
    return find_spec("highspy") is not None


def new_solver(**options: Any) -> Any:
    """A quiet solver; imports HiGHS, which those who start the program for something else do not need."""
    import highspy

    solver = highspy._Highs()  # Highs adds callbacks, and prints a line that no option silences
    for option, value in (QUIET | options).items():
        solver.setOptionValue(option, value)
    return solver


def ints(values: Any) -> np.ndarray:
    """As HiGHS wants whole numbers."""
    return np.asarray(values).astype(np.int32)


def set_rows(model: Any, table: sp.csr_array) -> None:
    """The matrix of a HighsLp, by rows: table [rows, columns]."""
    import highspy

    matrix = model.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_, matrix.index_ = ints(table.indptr), ints(table.indices)
    matrix.value_ = table.data.astype(np.float64)


def branch(solver: Any, heard: Callable[[float], bool]) -> None:
    """Branch and cut on the solver's model.

    heard    gets HiGHS's bound between its linear programs, and returns True where HiGHS has to end; what it
             raises does not pass through HiGHS: it is raised again when HiGHS has ended
    """
    import highspy

    raised: list[BaseException] = []

    def called(kind: int, message: str, found: Any, answer: Any, data: Any) -> None:
        try:
            stop = heard(found.mip_dual_bound)
        except BaseException as error:
            raised.append(error)
            stop = True
        if stop:
            answer.user_interrupt = True

    solver.setCallback(called, None)
    solver.startCallback(highspy.cb.HighsCallbackType.kCallbackMipInterrupt)
    solver.run()
    if raised:
        raise raised[0]
