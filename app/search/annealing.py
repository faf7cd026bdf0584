"""The course of an annealing: coldness that rises from hot to cold in cycles, each twice as long as the one
before, and the loops around the proposals of the plain twins. Kernels have the same numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.numerics.elementary import log

ONE = 1 << 16  # of the whole numbers that stand for coldnesses and logarithms
COLD = 10.0  # at the end of all cycles
LEAST = 64  # steps of the first cycle, or half the nodes
PROPOSALS = 32  # of a step
DRAWS = 4096  # random numbers told apart when a loss is let pass or not
LONGEST = 30  # doublings of a cycle
CONSTANTS = ("unit", "largest", "first", "cold")

Search = Any
Part = Callable[[Search], None]


def set_course(s: Search, hot: tuple[float, ...]) -> None:
    """Give a search of n nodes its course, before the first step. A loss of its `unit` is let pass with
    probability exp(-coldness).

    hot    coldness at the start of even cycles, of odd ones

    escape            [DRAWS] int64, -log of the random number that a draw stands for, times ONE
    largest           no loss above it can pass
    first, cycle, at  steps of the first cycle, cycles that have ended, steps made of this one
    """
    s.hot, s.cold = np.array([int(coldness * ONE) for coldness in hot]), int(COLD * ONE)
    passing = (np.arange(DRAWS, dtype=np.float64) + 0.5) / DRAWS
    s.escape = (-log(np, passing) * ONE).astype(np.int64)
    s.largest = int(s.escape.max()) * s.unit // int(s.hot.min())
    s.first, s.cycle, s.at = max(LEAST, s.n // 2), 0, 0


def escapes(one: int) -> np.ndarray:
    """[DRAWS] int64, -log of evenly spaced numbers of (0, 1), times `one`: by what losses, in temperatures,
    a draw lets pass.
    """
    spaced = ((np.arange(DRAWS) + 0.5) / DRAWS).astype(np.float32)
    return np.rint(-log(np, spaced).astype(np.float64) * one).astype(np.int64)


def passes(s: Search, loss: int, coldness: int, draw: int) -> bool:
    """Whether a draw lets a loss above 0 pass."""
    return loss <= s.largest and loss * coldness <= int(s.escape[draw % DRAWS]) * s.unit


def anneal(s: Search, steps: int, propose: Callable[[Search, int], None], turn: Part, keep: Part) -> None:
    """So many steps of proposals at a coldness; `turn` stands between two cycles, `keep` behind each step."""
    for _ in range(steps):
        s.steps += 1
        length = s.first << min(s.cycle, LONGEST)
        if s.at == length:
            turn(s)
            s.cycle, s.at = s.cycle + 1, 0
            length = s.first << min(s.cycle, LONGEST)
        hot = int(s.hot[s.cycle % len(s.hot)])
        risen = float(s.cold - hot) * float(s.at) / float(length)
        for _ in range(PROPOSALS):
            propose(s, hot + int(risen))
        s.at += 1
        keep(s)
