"""Rollouts on tours: the policy chooses the cities that come in next, several at once on large instances."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from app.comm.group import Group
from app.rl.incremental import FullScores
from app.rl.select import top_nodes
from app.rl.tour_env import TourEnv
from app.sparse.rowblock import RowBlock

MOST_EVALUATIONS = 150  # planned; more where good cities lie close together
FRACTIONS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3)  # of the cities outside, taken at once
LARGEST = 20_000  # cities: insertion takes time in the square of their number,
INSERT_SECONDS = 1.2e-8  # about, for each pair of them


def insert_tour(
    group: Group,
    net: Any,
    params: Any,
    block: RowBlock,
    least: float,
    seconds: float,
    look: Callable[[int, int], bool] = lambda evaluations, planned: False,
) -> tuple[np.ndarray | None, int, float]:
    """A tour by learned insertion.

    block     rows of the nearest-neighbour graph, with its metric, split over ranks of the group
    least     at least this fraction of the cities outside is taken at once
    seconds   infinite, or a limit: what an evaluation costs, after what all insertions do, decides how many
              cities each has to choose
    look      called after each evaluation with those made and the number expected; where it returns true, the
              same on all ranks, the tour is given up
    returns   order [n] int64 (None: too large, not even a few evaluations fit, or given up), the evaluations
              made, the fraction taken at once
    Ranks     all call; identical on all
    """
    fraction, n = _planned(block.n, MOST_EVALUATIONS, least), block.n
    seconds -= INSERT_SECONDS * n * n
    if n > LARGEST or fraction is None or not group.first_number(seconds > 0):
        return None, 0, least
    env = TourEnv(block.group, block, net.problem)
    scores, evaluations = FullScores(block.group, net, params, env), 0
    if np.isfinite(seconds):
        scores.keys_own()
        begun = time.perf_counter()  # of an evaluation whose code and data are warm
        scores.keys_own()
        fraction, evaluations = _affordable(group, n, fraction, time.perf_counter() - begun, seconds), 2
    stop = fraction is None
    planned = 0 if stop else evaluations + evaluations_of(n, fraction)
    while not env.done and not stop:
        scores.remove(choose_cities(block.group, scores.keys_own(), env, fraction))
        evaluations += 1
        stop = look(evaluations, planned)
    return (env.tour.order.astype(np.int64) if env.done else None), evaluations, fraction or least


def choose_cities(group: Group, keys_own: Any, env: TourEnv, fraction: float) -> np.ndarray:
    """Of the best `fraction` of the cities outside, at least one, those far apart, best first.

    A city that lies nearer to a better one taken than to the tour waits: its insertion will look different.
    (Taking worse ones instead saves a tenth of the evaluations and lengthens tours of 1,000 cities by 1 %.)
    Ranks     all call
    """
    wanted = max(1, int(fraction * env.totals.candidates))
    taken: list[int] = []
    near, metric = env.tour.nearest_out, env.tour.metric
    for city in top_nodes(group, group.device, keys_own, wanted).tolist():
        if not taken or metric.between(np.array(taken), city).min() >= near[city]:
            taken.append(city)
    return np.array(taken, dtype=np.int64)


def evaluations_of(n: int, fraction: float) -> int:
    """Evaluations until n cities are in, where each takes that fraction of those outside, at least one."""
    left, count = max(n - 2, 0), 0
    while left > 0:
        left -= max(1, int(fraction * left))
        count += 1
    return count


def within_evaluations(n: int, least: float, most: int) -> float:
    """A fraction from `least` on that takes at most so many evaluations (0: any number), else the largest."""
    if not most or evaluations_of(n, least) <= most:
        return least
    found = _planned(n, most, least)
    return max(least, FRACTIONS[-1]) if found is None else found


def _planned(n: int, most: float, least: float = 0.0) -> float | None:
    """The smallest fraction from `least` on that takes at most so many evaluations; None: none does."""
    return next((f for f in FRACTIONS if f >= least and evaluations_of(n, f) <= most), None)


def _affordable(group: Group, n: int, fraction: float, each: float, seconds: float) -> float | None:
    """A fraction whose evaluations, `each` s long, fit the time by rank 0's clock. Ranks: all call."""
    fits = _planned(n, seconds / max(each, 1e-9), fraction)
    found = group.first_number(-1.0 if fits is None else fits)
    return None if found < 0 else found
