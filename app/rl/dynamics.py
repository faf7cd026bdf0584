"""Names of dynamics: a new kind of environment is one new file and one line here."""

import numpy as np

from app.comm.group import Group
from app.problems.problem import Problem
from app.rl.core_env import CoreEnv
from app.rl.env import Environment, GraphEnv
from app.rl.family_env import FamilyEnv
from app.rl.field import FieldEnv
from app.rl.parts_env import PartsEnv
from app.rl.sides import SidesEnv
from app.rl.tour_env import TourEnv
from app.sparse.rowblock import RowBlock

DYNAMICS: dict[str, type] = {
    "residual": GraphEnv,
    "field": FieldEnv,
    "family": FamilyEnv,
    "core": CoreEnv,
    "parts": PartsEnv,
    "sides": SidesEnv,
    "tour": TourEnv,
}


def follows_compiled(problem: Problem) -> bool:
    """Whether steps of one node and the scores that follow them are compiled, on one rank of a CPU."""
    if problem.dynamics == "field":
        return bool(problem.compiled_field)
    return bool(getattr(DYNAMICS[problem.dynamics], "compiled", ""))


def begin_environment(
    group: Group, block: RowBlock, problem: Problem, scan: bool = False, mark_own: np.ndarray | None = None
) -> Environment:
    """The first state of an episode. Ranks: all call.

    mark_own   [n_own] int32, marks to begin with, where the dynamics is "field" or "family"; None: the usual
    """
    if mark_own is not None:
        return DYNAMICS[problem.dynamics](group, block, problem, scan, mark_own)
    return DYNAMICS[problem.dynamics](group, block, problem, scan)
