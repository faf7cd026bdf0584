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


@dataclass(frozen=True, eq=False)
class QuantileErrors:
    """How good quantiles are over nodes and windows, in the units of the data; NaN where nothing is known.

    levels    [Q]     pinball   [Q, H, C] float64, mean pinball losses     below   [Q] the share of the known
    values that are not above each, which its level should be
    """

    levels: list[float]
    pinball: np.ndarray
    below: np.ndarray
    count: np.ndarray

    @property
    def crps(self) -> np.ndarray:
        """[H, C], the continuous ranked probability score, the integral over levels of twice the pinball loss
        (Gneiting and Ranjan 2011), each quantile for the levels nearest to it: what lies beyond the outer
        ones counts as they do. Of one quantile it is the absolute error."""
        cuts = np.concatenate([[0.0], (np.array(self.levels[1:]) + self.levels[:-1]) / 2, [1.0]])
        return 2 * np.tensordot(np.diff(cuts), self.pinball, axes=1)

    def told(self) -> dict[str, Any]:
        """For result.json."""
        total = self.count.sum(axis=1)
        whole = lambda x: _known(_mean(np.array((np.nan_to_num(x) * self.count).sum()), total.sum()))  # noqa: E731
        by_step = _mean((np.nan_to_num(self.crps) * self.count).sum(axis=1), total)
        return {
            "levels": self.levels, "pinball": [whole(each) for each in self.pinball],
            "below": [_known(each) for each in self.below], "crps": whole(self.crps),
            "crps_by_step": [_known(each) for each in by_step],
        }  # fmt: skip


def _known(x: Any) -> float | None:
    return None if np.isnan(x) else float(x)


@dataclass(frozen=True, eq=False)
class Judged:
    """Errors by rule, of each of several members, and of quantiles, None of none."""

    errors: dict[str, Errors]
    members: list[Errors]
    quantiles: QuantileErrors | None


class QuantileSums:
    """Errors of quantiles, added up batch after batch; as ErrorSums."""

    def __init__(self, levels: list[float], horizon: int, deviation: np.ndarray, n_own: int) -> None:
        self.levels, self.shape, self._n_own = levels, (horizon, deviation.shape[1]), n_own
        self._deviation = deviation.astype(np.float64)[:, None]
        self._losses = np.zeros((n_own, len(levels), *self.shape))
        self._below = np.zeros((n_own, len(levels)))
        self._count = np.zeros((n_own, *self.shape))

    def add(self, Z: np.ndarray, target: np.ndarray, known: np.ndarray) -> None:
        """Quantiles Z [n_own * B, Q, H * C] of a batch, target and known [n_own * B, H * C], on the host."""
        windows = len(known) // max(self._n_own, 1)
        split = lambda x: x.reshape(self._n_own, windows, *self.shape)  # noqa: E731
        weight = split(known)
        for q, level in enumerate(self.levels):
            away = split((Z[:, q] - target) * known)
            self._below[:, q] += ((away >= 0) & (weight > 0)).sum(axis=(1, 2, 3))
            for window in range(windows):
                error = away[:, window].astype(np.float64) * self._deviation
                self._losses[:, q] += np.maximum((1 - level) * error, -level * error)
        self._count += weight.sum(axis=1)

    def over_nodes(self, group: Group, n_real: int) -> QuantileErrors:
        """The same bits on any number of ranks. Ranks: all call."""
        of_step, levels = self.shape[0] * self.shape[1], len(self.levels)
        widths = levels * of_step, levels, of_step
        sums = self._losses, self._below, self._count
        rows = np.concatenate([x[:n_real].reshape(n_real, w) for x, w in zip(sums, widths)], axis=1)
        totals = sum_exactly(group, lambda: [rows], sum(widths))
        losses, below, count = np.split(totals, np.cumsum(widths[:2]))
        count = count.reshape(self.shape)
        pinball = _mean(losses.reshape(len(self.levels), *self.shape), count)
        share = _mean(below, np.full(len(self.levels), count.sum()))
        return QuantileErrors(self.levels, pinball, share, count.astype(np.int64))


def skill(errors: Errors, reference: Errors) -> float | None:
    """1 - MAE / MAE of the reference: 0 as good, 1 perfect; None where that makes no errors."""
    mae, other = errors.whole[0], reference.whole[0]
    return float(1 - mae / other) if other > 0 and mae == mae else None
