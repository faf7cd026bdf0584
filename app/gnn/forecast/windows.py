"""Batches of windows: what a network reads, what linear regressions read, and what is forecast."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.case.forecast import ForecastCase
from app.comm.group import Group
from app.gnn.forecast.covariates import (
    NO_COLUMNS,
    Covariates,
    ahead_columns,
    far_and_still,
    small_parts,
    step_columns,
)
from app.gnn.forecast.hops import Hops
from app.gnn.forecast.series import FARTHEST, Parts, SeriesScale, filled

Array = Any


@dataclass(frozen=True, eq=False)
class Batch:
    """Windows b = 0 .. B-1 of all own nodes, as rows i * B + b on the device.

    inputs    [L, rows, f + 1], of each step of time from the first on
    linear    [rows, k] what regressions read
    last      [rows, H * C] the last value, for each step of the horizon
    target    [rows, H * C] what is forecast, 0 where it is not known; None: nobody knows
    known     [rows, H * C] float32, 1 where the target is known, else 0; None as the target
    ahead     [rows, m] what networks read of the steps of the horizon: covariates; None: there are none
    """

    ends: np.ndarray
    inputs: Array
    linear: Array
    last: Array
    target: Array | None
    known: Array | None
    ahead: Array | None = None


@dataclass(frozen=True, eq=False)
class SeriesData:
    """The series of own nodes, what is known beforehand, and what both are measured in.

    S_own   [n_own, T, C] float32 as read, NaN where it is not known
    masks   networks read where values are known
    covariates        None: there are none
    covariate_scale   [1, a + b] of weights; None: that of the training part
    """

    S_own: np.ndarray
    scale: SeriesScale
    masks: bool
    covariates: Covariates | None = None
    covariate_scale: SeriesScale | None = None


class Windows:
    """The series of a graph on this rank, and the batches made of them.

    Columns of the input of a step: the C channels; their random walks of 1 .. K steps in either direction;
    with `masks` 1 where a value is known, for each channel; covariates of the step, those of the node, their
    walks, those of all nodes; of the period, and of each of the calendar, sine and cosine; a column of ones.
    Covariates of the steps of the horizon are read likewise (Batch.ahead). Columns of regressions,
    differences from the last value: ones; steps before the last one, by channel; with a period the values
    one or more periods before each step of the horizon; sine and cosine, as above; covariates of the steps
    of the window and of the horizon, as they are; from `own_columns` on the first random walks of all steps
    of the window, and those of covariates.
    """

    def __init__(
        self, group: Group, case: ForecastCase, data: SeriesData, hops: Hops, n_real: int,
        parts: Parts | None = None,
    ) -> None:  # fmt: skip
        """data   of own nodes, covariates with their scale     parts   of time; None: those of the case"""
        S_own, scale = data.S_own, data.scale
        self.group, self.device, self.case, self.scale = group, group.device, case, scale
        self.steps, self.channels, self.n_real = S_own.shape[1], S_own.shape[2], n_real
        self.masks = data.masks
        self.parts = parts or Parts.of(case, self.steps)
        small = scale.small(S_own)
        known = ~np.isnan(small)
        known[n_real:] = False
        far = np.count_nonzero(np.abs(small[:n_real]) >= FARTHEST)
        self.far = int(group.sum_integers(np.array([far], dtype=np.int64))[0])
        own = known.sum(axis=0, dtype=np.int64)
        self.known_at = group.sum_integers(own.reshape(-1)).reshape(own.shape)  # [T, C], over all nodes
        small = filled(small)
        small[n_real:] = 0
        put = group.device.put
        self._x = put(np.ascontiguousarray(small))
        self._known = put(known.astype(np.float32))
        n_own, flat = S_own.shape[0], (S_own.shape[0], self.steps * self.channels)
        walks = hops.forward(self._x.reshape(flat))
        self._walks = [each.reshape(n_own, self.steps, self.channels) for each in walks]
        firsts = range(0, hops.sides * hops.powers, max(hops.powers, 1))
        self._first_walks = [self._walks[first] for first in firsts]
        self.covariates, self._of_nodes, self._first_of_nodes = NO_COLUMNS, [], []
        self.far_known = self.still_known = 0
        self._shared = np.zeros((self.steps + case.horizon, 0), dtype=np.float32)
        if data.covariates is not None:
            self._read_covariates(data.covariates, data.covariate_scale, hops, firsts)

    def _read_covariates(self, given: Covariates, scale: SeriesScale, hops: Hops, firsts: range) -> None:
        """Bring them to the device, with their random walks. Ranks: all call."""
        self.covariates, (own, self._shared) = given.counts, small_parts(given, scale)
        found = far_and_still(self.group, own[: self.n_real], self._shared, self.parts.steps)
        self.far_known, self.still_known = found
        if not given.counts[0]:
            return
        own[self.n_real :] = 0
        flat = (own.shape[0], own.shape[1] * own.shape[2])
        put = self.device.put(np.ascontiguousarray(own))
        walks = [each.reshape(own.shape) for each in hops.forward(put.reshape(flat))]
        self._of_nodes = [put, *walks]
        self._first_of_nodes = [walks[first] for first in firsts]

    @property
    def f(self) -> int:
        """Columns of the input of a step, without that of ones."""
        return input_columns(self.case, self.channels, len(self._walks), self.masks, self.covariates)

    @property
    def ahead(self) -> int:
        """Columns of the steps of the horizon that networks read."""
        return ahead_columns(self.case.horizon, len(self._walks), self.covariates)

    @property
    def own_columns(self) -> int:
        """Columns of a regression on a node's own series."""
        return own_columns(self.case, self.channels, self.covariates)

    @property
    def outputs(self) -> int:
        """Numbers that come next of a node: channel by channel of each step."""
        return self.case.horizon * self.channels

    def known_in(self, ends: np.ndarray) -> int:
        """How many known values the windows that end at some steps [k] int64 forecast, over all nodes."""
        return int(sum(self.known_at[ends + h].sum() for h in range(1, self.case.horizon + 1)))

    def pieces(self, ends: np.ndarray) -> Iterator[np.ndarray]:
        """Ends of windows [k], a batch at a time: [B] each, fewer at last."""
        for at in range(0, len(ends), self.case.batch):
            yield ends[at : at + self.case.batch]

    def batch(self, ends: np.ndarray, targets: bool = True) -> Batch:
        """The windows that end at some steps, [B] int64; targets: with what is forecast."""
        back = range(self.case.window - 1, -1, -1)
        inputs = self.device.xp.stack([self._input(ends - each) for each in back])
        last = self._at(self._x, ends)
        linear = self._rows(self._linear(ends, last))
        horizon = range(1, self.case.horizon + 1)
        repeated = self._rows([last] * self.case.horizon)
        known_ahead = [each for h in horizon for each in self._covariates_at(ends + h)]
        ahead = self._rows(known_ahead) if known_ahead else None
        if not targets:
            return Batch(ends, inputs, linear, repeated, None, None, ahead)
        known = self._rows([self._at(self._known, ends + h) for h in horizon])
        target = self._rows([self._at(self._x, ends + h) for h in horizon]) * known
        return Batch(ends, inputs, linear, repeated, target, known, ahead)

    def season(self, ends: np.ndarray) -> Array:
        """[rows, H * C] the last known values that are whole periods before each step of the horizon."""
        steps = [season_before(ends, h, self.case.period) for h in range(1, self.case.horizon + 1)]
        return self._rows([self._at(self._x, each) for each in steps])

    def _at(self, series: Array, steps: np.ndarray) -> Array:
        """[n_own, B, C] a series at some steps of time."""
        return self.device.xp.take(series, self.device.put(steps), axis=1)

    def _rows(self, columns: list[Array]) -> Array:
        """[rows, w] of [n_own, B, *] side by side."""
        xp = self.device.xp
        found = xp.concatenate(columns, axis=2)
        return xp.ascontiguousarray(found.reshape(found.shape[0] * found.shape[1], found.shape[2]))

    def _phase(self, ends: np.ndarray) -> list[Array]:
        """[n_own, B, 2] each, sine and cosine of the place in each period."""
        found = []
        for period in cycles(self.case):
            angle = 2 * np.pi * (ends % period) / period
            both = np.round(np.stack([np.sin(angle), np.cos(angle)], axis=1), 6).astype(np.float32)
            found.append(self._alike(both))
        return found

    def _alike(self, values: np.ndarray) -> Array:
        """[n_own, B, k] values [B, k], the same of all nodes."""
        shape = self._x.shape[0], *values.shape
        return self.device.put(np.ascontiguousarray(np.broadcast_to(values, shape)))

    def _covariates_at(self, steps: np.ndarray) -> list[Array]:
        """[n_own, B, *] each, what networks read of the covariates of some steps of time."""
        found = [self._at(each, steps) for each in self._of_nodes]
        return found + self._shared_at(steps)

    def _shared_at(self, steps: np.ndarray) -> list[Array]:
        return [self._alike(self._shared[steps])] if self.covariates[1] else []

    def _ones(self, windows: int) -> Array:
        return self._alike(np.ones((windows, 1), dtype=np.float32))

    def _input(self, steps: np.ndarray) -> Array:
        """[rows, f + 1] what networks read of steps of time."""
        read = [self._at(each, steps) for each in (self._x, *self._walks)]
        masks = [self._at(self._known, steps)] if self.masks else []
        known = self._covariates_at(steps)
        return self._rows([*read, *masks, *known, *self._phase(steps), self._ones(len(steps))])

    def _linear(self, ends: np.ndarray, last: Array) -> list[Array]:
        """[n_own, B, *] each, what regressions read."""
        window, period = self.case.window, self.case.period
        columns = [self._ones(len(ends))]
        columns += [self._at(self._x, ends - back) - last for back in range(1, window)]
        if period:
            for h in range(1, self.case.horizon + 1):
                columns.append(self._at(self._x, season_before(ends, h, period)) - last)
        columns += self._phase(ends)
        known = [ends + h for h in range(1 - window, self.case.horizon + 1)]
        for steps in known:
            columns += [self._at(each, steps) for each in self._of_nodes[:1]] + self._shared_at(steps)
        for walk in self._first_walks:
            columns += [self._at(walk, ends - back) - last for back in range(window)]
        columns += [self._at(walk, steps) for walk in self._first_of_nodes for steps in known]
        return columns


def season_before(ends: np.ndarray, h: int, period: int) -> np.ndarray:
    """[B] the last known step that is whole periods before step `ends + h`."""
    return ends + h - period * (-(-h // period))


def output_columns(case: ForecastCase, channels: int) -> int:
    """Columns that a network forecasts: those of each quantile side by side."""
    return max(len(case.quantiles), 1) * case.horizon * channels


def cycles(case: ForecastCase) -> list[int]:
    """The periods whose sine and cosine are read."""
    return [*([case.period] if case.period else []), *case.calendar]


def input_columns(
    case: ForecastCase, channels: int, walks: int, masks: bool, covariates: tuple[int, int] = NO_COLUMNS
) -> int:
    """Columns of the input of a step of time, without that of ones."""
    return channels * (1 + walks + masks) + step_columns(walks, covariates) + 2 * len(cycles(case))


def own_columns(case: ForecastCase, channels: int, covariates: tuple[int, int] = NO_COLUMNS) -> int:
    """Columns of a regression on a node's own series."""
    season = case.horizon * channels if case.period else 0
    known = (case.window + case.horizon) * sum(covariates)
    return 1 + (case.window - 1) * channels + season + 2 * len(cycles(case)) + known


def linear_columns(
    case: ForecastCase, channels: int, sides: int, covariates: tuple[int, int] = NO_COLUMNS
) -> int:
    """Columns of a regression that hears neighbours too; sides: directions."""
    heard = case.window * channels + (case.window + case.horizon) * covariates[0]
    return own_columns(case, channels, covariates) + (sides * heard if case.hops else 0)
