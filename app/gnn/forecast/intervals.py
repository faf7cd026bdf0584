"""Intervals around forecasts by split conformal prediction (gnn/conformal.py), node by node and step by step.

Of one forecast z a score is e = |y - z|: intervals z - Q .. z + Q have the same width at any time. Of a pair
of quantiles a <= b it is

    e = max(a - y, y - b)      at most Q where y is in  a - Q .. b + Q

below 0 within, so that quantiles too far apart come nearer: widths follow how uncertain an hour is. Q is that
score of the validation windows which at most a share of 1 - coverage exceeds.

Source   Romano, Patterson, Candes: Conformalized quantile regression, NeurIPS 2019, algorithm 1;
         any pair of quantiles may be taken: here those of the case that are nearest to what coverage leaves
Departs  An interval with no number in it, of quantiles that came too near, is the point in the middle.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from app.comm.exact import sum_exactly
from app.comm.group import Group
from app.gnn.conformal import place_of

if TYPE_CHECKING:
    from app.gnn.forecast.forecaster import Forecaster


@dataclass(frozen=True, eq=False)
class Held:
    """What some intervals are worth on the test windows.

    share   of the known values that they hold     width   mean of these, in the units of the data; None: of
    none, or infinite
    """

    share: float | None
    width: float | None

    def told(self) -> dict[str, Any]:
        """For result.json."""
        return {"test": self.share, "width": self.width}


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of the steps after the end, and what such are worth.

    low, high   [n_real, H, C] float64 in the units of the data, infinite where the validation windows are too
                few
    held        of these     constant, raw   of those of one width at all times, and of the quantiles as they
                are, where there are quantiles
    """

    low: np.ndarray
    high: np.ndarray
    held: Held
    constant: Held | None = None
    raw: Held | None = None

    @property
    def endless(self) -> bool:
        """Whether some are infinite."""
        return bool(np.isinf(self.low).any())


@dataclass(frozen=True, eq=False)
class Scored:
    """[n_real, w, H, C] float32 of windows in deviations, NaN where nothing is known: how far a forecast is
    away; how far a value is outside a pair of quantiles, below 0 within, and how far these are apart."""

    away: np.ndarray
    outside: np.ndarray | None = None
    apart: np.ndarray | None = None


def pair_of(levels: list[float], coverage: float) -> tuple[int, int]:
    """Places of the quantiles that are nearest to what coverage leaves below and above, of equally near ones
    the outer ones."""
    below, above = (1 - coverage) / 2, (1 + coverage) / 2
    low = min(range(len(levels)), key=lambda i: (round(abs(levels[i] - below), 9), i))
    high = min(range(len(levels)), key=lambda i: (round(abs(levels[i] - above), 9), -i))
    return min(low, high), max(low, high)


def bound_of(scores: np.ndarray, coverage: float) -> np.ndarray:
    """[n_real, H, C] float32 Q, from scores [n_real, w, H, C], NaN where nothing is known; infinite of too
    few."""
    errors = np.sort(scores, axis=1)  # NaN last
    count = (errors == errors).sum(axis=1)
    places = np.array([place_of(coverage, m) for m in range(errors.shape[1] + 1)])[count]
    enough = places <= count
    if not errors.shape[1]:
        return np.full(enough.shape, np.inf)
    at = np.where(enough, places - 1, 0)[:, None]
    return np.where(enough, np.take_along_axis(errors, at, axis=1)[:, 0], np.inf)


def share_within(group: Group, scores: np.ndarray, bound: np.ndarray) -> float | None:
    """The share of the known scores [n_real, w, H, C] that are at most a bound [n_real, H, C]; None of none.
    Ranks: all call."""
    own = [np.count_nonzero(scores == scores), np.count_nonzero(scores <= bound[:, None])]
    total, held = group.sum_integers(np.array(own, dtype=np.int64)).tolist()
    return held / total if total else None


def held_by(
    group: Group, scores: np.ndarray, bound: np.ndarray, apart: np.ndarray, deviation: np.ndarray
) -> Held:
    """What intervals are worth that hold the scores [n_real, w, H, C] up to a bound [n_real, H, C].

    apart       [n_real, w or 1, H, C] how far the pair is apart, without the bound
    deviation   [n_real or 1, C] of the series
    Ranks       all call; the same bits on any number of them
    """
    known = scores == scores
    count, finite = known.sum(axis=1), np.isfinite(bound)
    endless = np.array([np.count_nonzero(count[~finite])], dtype=np.int64)
    wide = apart.astype(np.float64) + 2 * np.where(finite, bound, 0).astype(np.float64)[:, None]
    wide = np.where(known, np.maximum(wide, 0), 0) * deviation.astype(np.float64)[:, None, None]
    each = np.zeros((len(wide), 1 + wide[:1].size))  # chains of one order, whatever rows a rank has
    each[:, 1:] = wide.reshape(len(wide), each.shape[1] - 1)
    sums = np.add.accumulate(each, axis=1)[:, -1]
    rows = np.stack([sums, count.sum(axis=(1, 2)).astype(np.float64)], axis=1)
    total, values = sum_exactly(group, lambda: [rows], 2)
    unbound = bool(group.sum_integers(endless)[0])
    return Held(share_within(group, scores, bound), None if unbound or not values else float(total / values))


def conformal(of: "Forecaster", coverage: float) -> Intervals:
    """Intervals of the steps after the end of the series, and what they are worth. Ranks: all call."""
    group, deviation = of.group, of.deviation()
    val, test = of.scored("val", coverage), of.scored("test", coverage)
    half, none = bound_of(val.away, coverage), np.zeros((len(val.away), 1, *val.away.shape[2:]))
    constant = held_by(group, test.away, half, none, deviation)
    if not of.levels:
        wide, ahead = of.wide(half), of.next()
        return Intervals(ahead - wide, ahead + wide, constant)
    bound = bound_of(val.outside, coverage)
    held = held_by(group, test.outside, bound, test.apart, deviation)
    raw = held_by(group, test.outside, np.zeros_like(bound), test.apart, deviation)
    levels, wide = of.next_each()[0], of.wide(bound)
    low, high = pair_of(of.levels, coverage)
    low, high = levels[:, low] - wide, levels[:, high] + wide
    crossed = low > high
    low[crossed] = high[crossed] = (low[crossed] + high[crossed]) / 2
    return Intervals(low, high, held, constant, raw)
