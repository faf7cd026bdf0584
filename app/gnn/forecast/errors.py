"""How far forecasts are from what came, in the units of the data, by step of the horizon."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.exact import sum_exactly
from app.comm.group import Group

Array = Any


@dataclass(frozen=True, eq=False)
class Errors:
    """Mean absolute and root mean squared errors over nodes and windows, [H, C] float64; NaN of none.

    count   [H, C] int64 of known values that they are over
    """

    mae: np.ndarray
    rmse: np.ndarray
    count: np.ndarray

    @property
    def by_step(self) -> tuple[np.ndarray, np.ndarray]:
        """Both of each step of the horizon, over all channels: [H] each."""
        total = self.count.sum(axis=1)
        absolute, squares = self._sums()
        return _mean(absolute.sum(axis=1), total), np.sqrt(_mean(squares.sum(axis=1), total))

    @property
    def whole(self) -> tuple[float, float]:
        """Both over all steps and channels."""
        total = np.array([self.count.sum()])
        mae, square = (_mean(np.array([each.sum()]), total) for each in self._sums())
        return float(mae[0]), float(np.sqrt(square[0]))

    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """[H, C] each, sums of absolute errors and of squares."""
        return np.nan_to_num(self.mae) * self.count, np.nan_to_num(self.rmse) ** 2 * self.count

    def told(self) -> dict[str, Any]:
        """For result.json: over all steps, and step by step."""
        (mae, rmse), (maes, rmses) = self.whole, self.by_step
        known = lambda x: None if np.isnan(x) else float(x)  # noqa: E731
        return {
            "mae": known(mae), "rmse": known(rmse), "mae_by_step": [known(x) for x in maes],
            "rmse_by_step": [known(x) for x in rmses],
        }  # fmt: skip


def _mean(sums: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


class ErrorSums:
    """Errors of several rules, added up batch after batch.

    deviation   [n_own or 1, C] of the series, in which forecasts are measured
    """

    def __init__(self, horizon: int, deviation: np.ndarray, n_own: int) -> None:
        self.shape = horizon, deviation.shape[1]
        self._deviation = deviation.astype(np.float64)[:, None]
        self._n_own = n_own
        self._sums: dict[str, list[np.ndarray]] = {}

    def add(self, rule: str, Z: np.ndarray, target: np.ndarray, known: np.ndarray) -> None:
        """Forecasts of a batch, all [n_own * B, H * C] on the host, by windows of a node in turn."""
        windows = len(known) // max(self._n_own, 1)  # a rank may own no rows
        away = ((Z - target) * known).reshape(self._n_own, windows, *self.shape)
        weight = known.reshape(away.shape)
        if rule not in self._sums:
            self._sums[rule] = [np.zeros((self._n_own, *self.shape)) for _ in range(3)]
        absolute, squares, count = self._sums[rule]
        for window in range(windows):
            error = away[:, window].astype(np.float64) * self._deviation
            absolute += np.abs(error)
            squares += error * error
            count += weight[:, window]

    def over_nodes(self, group: Group, n_real: int) -> dict[str, Errors]:
        """By rule, the same bits on any number of ranks. Ranks: all call."""
        found, width = {}, self.shape[0] * self.shape[1]
        for rule, sums in self._sums.items():
            rows = np.concatenate([each[:n_real].reshape(n_real, width) for each in sums], axis=1)
            totals = sum_exactly(group, lambda rows=rows: [rows], rows.shape[1])
            absolute, squares, count = (each.reshape(self.shape) for each in np.split(totals, 3))
            mae, mean_square = _mean(absolute, count), _mean(squares, count)
            found[rule] = Errors(mae, np.sqrt(mean_square), count.astype(np.int64))
        return found


def skill(errors: Errors, reference: Errors) -> float | None:
    """1 - MAE / MAE of the reference: 0 as good, 1 perfect; None where that makes no errors."""
    mae, other = errors.whole[0], reference.whole[0]
    return float(1 - mae / other) if other > 0 and mae == mae else None
