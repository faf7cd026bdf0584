"""HiGHS as the bounds call it: quiet, of one thread, with one seed. Source: Huangfu and Hall 2018."""

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

QUIET = {"output_flag": False, "threads": 1, "parallel": "off", "random_seed": 0}
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
