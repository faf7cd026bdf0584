"""Series of the nodes of a graph as networks read them: by time in three parts, about 0, without holes, in
windows.

A window that ends at step t reads steps t - L + 1 .. t and forecasts t + 1 .. t + H. It belongs to the part
of time that all of its forecast steps are in: nothing that is learned has seen a step of a later part.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.case.forecast import ForecastCase
from app.comm.exact import sum_exactly
from app.comm.group import Group
from app.errors import CaseError, GraphError

Array = Any
FARTHEST = (
    1e6  # deviations from a mean: farther is no measurement, and squares of it are 32-bit numbers still
)
ROUNDING = 1e-6  # of a mean, in float32: less is what rounding leaves of series that stand still
PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Parts:
    """Steps of time 0 .. T-1 in three parts, one after the other: steps from `at[i]` to below `at[i + 1]`."""

    at: tuple[int, int, int, int]
    window: int
    horizon: int
    first: int  # the first step that a window may end at

    @classmethod
    def of(cls, case: ForecastCase, steps: int) -> "Parts":
        """Those of a case for a series of so many steps. Raises CaseError."""
        if case.train + case.val + case.test > 1 + 1e-9:
            total = case.train + case.val + case.test
            raise CaseError(f"forecast.train, val, test: found {total:g} in all; at most 1 would be right")
        ends = np.cumsum([case.train, case.val, case.test])
        at = (0, *(min(int(share * steps + 1e-6), steps) for share in ends))
        return cls(at, case.window, case.horizon, max(case.window, case.period) - 1)

    @property
    def steps(self) -> int:
        """Of the training part."""
        return self.at[1]

    def ends(self, part: str) -> np.ndarray:
        """[w] int64 ascending, the last steps of the windows that a part has."""
        lo, hi = self.at[PARTS.index(part)], self.at[PARTS.index(part) + 1]
        return np.arange(max(self.first, lo - 1), max(hi - self.horizon, 0))

    def check(self, name: str, steps: int, learns: bool) -> None:
        """Refuse series too short to learn from, or to forecast. Raises GraphError."""
        least = self.first + 1
        if steps < least:
            raise GraphError(
                f"{name}: has {steps} steps of time; at least {least} would be right for a window"
            )
        if learns and not len(self.ends("train")):
            needed = self.first + 1 + self.horizon
            found = f"has {self.steps} steps of time to learn from"
            raise GraphError(
                f"{name}: {found}; at least {needed} would be right for a window and its horizon"
            )


@dataclass(frozen=True, eq=False)
class SeriesScale:
    """What series are measured in: float32 [n_own, C] of own nodes, or [1, C] of all alike."""

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, group: Group, S_own: np.ndarray, steps: int, by_node: bool, n_real: int) -> "SeriesScale":
        """That of the first steps of time alone, NaN left out: the same bits on any ranks. Ranks: all call.

        S_own   [n_own, T, C] float32
        """
        count, mean = _mean_over_time(S_own[:, :steps])
        squares = _mean_over_time(S_own[:, :steps], mean)[1]
        if by_node:
            return cls._rounded(mean, np.sqrt(squares), count)
        sums = [count, count * mean]
        total, mean = _over_nodes(group, sums, n_real)
        mean = mean / np.maximum(total, 1)
        away = _mean_over_time(S_own[:, :steps], mean)[1] * count
        squares = _over_nodes(group, [away], n_real)[0] / np.maximum(total, 1)
        return cls._rounded(mean[None], np.sqrt(squares)[None], total[None])

    @classmethod
    def _rounded(cls, mean: np.ndarray, deviation: np.ndarray, count: np.ndarray) -> "SeriesScale":
        """Nothing known: 0 and 1; a deviation that is none but for rounding counts 1."""
        least = np.maximum(ROUNDING * np.abs(mean), np.finfo(np.float32).smallest_subnormal)
        moves = (deviation > least) & (count > 0)
        both = np.where(count > 0, mean, 0), np.where(moves, deviation, 1)
        return cls(*(each.astype(np.float32) for each in both))

    def small(self, S_own: np.ndarray) -> np.ndarray:
        """[n_own, T, C] float32 about 0, at most FARTHEST away; NaN stays. Steps are measured in float64: the
        square of a number, or a difference of two, may be no float32."""
        found = np.empty(S_own.shape, dtype=np.float32)
        for t in range(S_own.shape[1]):
            away = (S_own[:, t] - self.mean.astype(np.float64)) / self.deviation
            found[:, t] = np.clip(away, -FARTHEST, FARTHEST)
        return found

    def large(self, Z: np.ndarray) -> np.ndarray:
        """[n_own, H, C] float64 in the units of the data."""
        return Z.astype(np.float64) * self.deviation[:, None] + self.mean[:, None].astype(np.float64)


def _mean_over_time(S: np.ndarray, mean: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """[n_own, C] float64, how many values of [n_own, T, C] are known, and their mean or, where that is given,
    the mean of squared differences from it, 0 of none: step after step."""
    count, total = (np.zeros((S.shape[0], S.shape[2])) for _ in range(2))
    for t in range(S.shape[1]):
        known = ~np.isnan(S[:, t])
        count += known
        addend = np.where(known, S[:, t], np.float32(0) if mean is None else mean).astype(np.float64)
        total += addend if mean is None else (addend - mean) ** 2
    return count, total / np.maximum(count, 1)


def _over_nodes(group: Group, columns: list[np.ndarray], n_real: int) -> list[np.ndarray]:
    """[C] the sums over all nodes of columns [n_own, C] each. Ranks: all call."""
    rows = np.concatenate(columns, axis=1)[:n_real].astype(np.float64)
    found = sum_exactly(group, lambda: [rows], rows.shape[1])
    return np.split(found, len(columns))


def filled(S: np.ndarray) -> np.ndarray:
    """[n_own, T, C] with the last known value before in place of NaN, 0 where there is none."""
    out = np.where(np.isnan(S[:, :1]), np.float32(0), S[:, :1])
    out = np.concatenate([out, S[:, 1:]], axis=1)
    for t in range(1, out.shape[1]):
        holes = np.isnan(out[:, t])
        if holes.any():
            out[:, t][holes] = out[:, t - 1][holes]
    return out
