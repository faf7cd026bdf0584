"""A network that forecasts the series of one graph: a training step, forecasts, and how good they are."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.case.forecast import ForecastCase
from app.case.gnn import GnnCase
from app.comm.group import Group
from app.gnn.forecast.covariates import Covariates, scale_of
from app.gnn.forecast.errors import Errors, ErrorSums, Judged, QuantileSums
from app.gnn.forecast.hops import Hops
from app.gnn.forecast.intervals import Scored, bound_of, pair_of, share_within
from app.gnn.forecast.recurrent import Recurrent
from app.gnn.forecast.regression import Regression, regress
from app.gnn.forecast.rules import plain_of
from app.gnn.forecast.series import PARTS, Parts, SeriesScale
from app.gnn.forecast.steps import Steps
from app.gnn.forecast.temporal import Temporal
from app.gnn.forecast.windows import Batch, SeriesData, Windows, output_columns
from app.gnn.parameters import Parameters
from app.sparse.rowblock import RowBlock

Array = Any
NETWORK, MEDIAN = "network", 0.5


def network_of(
    case: ForecastCase, gnn: GnnCase, f: int, outputs: int, walks: int, ahead: int = 0
) -> Recurrent | Temporal:
    """The network of a case. f: columns of the input of a step; walks: random walks of hidden rows; ahead:
    columns of covariates of the steps of the horizon."""
    if case.model == "temporal":
        return Temporal(f, case.window, gnn.hidden, gnn.depth, outputs, walks, ahead)
    return Recurrent(f, gnn.hidden, outputs, walks, ahead)


class Forecaster:
    """See above. Forecasts are of values in deviations (series.py), as differences from the last value.

    levels   of quantiles that are forecast; []: one forecast of each value
    members  weights of several networks, whose means forecasts are; []: those of `params` alone
    base     [k, H * C] float32 on the device, the regression that the network adds its part to; None: the
    last value
    plain    the regressions, which are plain rules too; None: weights are applied, or nothing is there to
    learn
    covariate_scale   [1, a + b] what covariates are measured in; None: there are none
    Ranks    all construct
    """

    def __init__(
        self, group: Group, gnn: GnnCase, case: ForecastCase, block: RowBlock, data: SeriesData, seed: int,
        base: np.ndarray | None = None, parts: Parts | None = None,
    ) -> None:  # fmt: skip
        """base: of weights; parts: of time, None: those of the case"""
        self.group, self.device, self.gnn, self.case, self.seed = group, group.device, gnn, case, seed
        self.block, self.scale, self.n_own, S_own = block, data.scale, block.n_own, data.S_own
        self.hops = Hops(group, block, case.hops, gnn.edge_weights)
        parts = parts or Parts.of(case, S_own.shape[1])
        if data.covariates is not None and data.covariate_scale is None:
            first = parts.steps or S_own.shape[1]
            data = replace(data, covariate_scale=scale_of(group, data.covariates, first, block.n_real))
        self.covariate_scale = None if data.covariates is None else data.covariate_scale
        self.windows = Windows(group, case, data, self.hops, block.n_real, parts)
        self.node_mean = SeriesScale.of(group, S_own, self.windows.parts.steps, True, block.n_real).mean
        windows = self.windows
        self.levels, self.members = list(case.quantiles), []
        outputs = output_columns(case, windows.channels)
        self.network = network_of(case, gnn, windows.f, outputs, self.hops.count, windows.ahead)
        self.params = Parameters(self.device, self.network.shapes())
        self.begin(seed)
        most = min(case.batch, max(len(windows.parts.ends(part)) for part in PARTS))
        self.steps = Steps(group, block, self.hops, self.params, max(most, 1))
        self.plain: Regression | None = None
        train = windows.parts.ends("train")
        if len(train):
            self.plain = regress(self.steps, windows, train, case.ridge)
        if base is None and case.base == "linear" and self.plain is not None:
            base = self.plain.best
        self.base = None if base is None or case.base == "last" else self.device.put(base)

    def begin(self, seed: int) -> None:
        """Draw the weights for a seed; those of the network's own part are zero where it ends."""
        self.seed = seed
        zeros = {name: 0.0 for name in self.params.shapes if name.endswith("bias") or name == "head.W"}
        self.params.draw_glorot(seed, zeros)

    def known_ends(self, part: str) -> np.ndarray:
        """[w] the ends of the windows of a part of which some value is known that they forecast."""
        ends = self.windows.parts.ends(part)
        known = np.zeros(len(ends), dtype=np.int64)
        for h in range(1, self.case.horizon + 1):
            known += self.windows.known_at[ends + h].sum(axis=1)
        return ends[known > 0]

    # ---- learning ---------------------------------------------------------------------------------------

    def learn(self, ends: np.ndarray) -> float:
        """The loss of the windows that end at some steps [B] int64, and its gradient in `steps.gradient`.

        The mean, over all known values of all nodes, of |e| or e^2 in deviations, or, over these and all
        quantiles, of the pinball loss. Ranks: all call.
        """
        steps, batch = self.steps, self._begun(ends)
        Z = self.network.forward(steps, batch.inputs, batch.ahead)
        losses, D = self._loss(Z, batch, self.windows.known_in(ends))
        self.network.backward(steps, D)
        steps.reduce()
        return self._sum(losses)

    def loss_of(self, ends: np.ndarray) -> float:
        """The mean loss of the windows that end at some steps [k] int64, a batch at a time; NaN
        where nothing is known. Ranks: all call.
        """
        total, count = 0.0, self.windows.known_in(ends)
        for piece in self.windows.pieces(ends):
            batch = self._begun(piece)
            Z = self.network.forward(self.steps, batch.inputs, batch.ahead)
            total += self._sum(self._loss(Z, batch, 1)[0])
        return total / count if count else float("nan")

    def _begun(self, ends: np.ndarray, targets: bool = True) -> Batch:
        self.steps.begin(len(ends))
        return self.windows.batch(ends, targets)

    def _loss(self, Z: Array, batch: Batch, count: int) -> tuple[Array, Array]:
        """Addends [own roots, H C] of the sum over a count, and the gradient by Z in the place of Z."""
        xp = self.device.xp
        if self.levels:
            return self._pinball(Z, batch, count)
        Z += self._before(batch)
        Z -= batch.target
        Z *= batch.known
        losses = xp.abs(Z) if self.case.loss == "absolute" else Z * Z
        share = np.float32(1 / max(count, 1))
        if self.case.loss == "absolute":
            Z[...] = xp.sign(Z) * share
        else:
            Z *= np.float32(2) * share
        return self.steps.column_roots(losses * share), Z

    def _pinball(self, Z: Array, batch: Batch, count: int) -> tuple[Array, Array]:
        """The same of quantiles, Z [rows, Q H C], those of a level side by side.

        With e = z - y of the forecast z of level q the loss is max((1 - q) e, -q e), and by z its slope is
        1 - q above y, -q below it (Koenker and Bassett 1978).
        """
        xp, outputs = self.device.xp, self.windows.outputs
        before, share = self._before(batch), np.float32(1 / (max(count, 1) * len(self.levels)))
        losses = xp.empty_like(Z)
        for place, level in enumerate(self.levels):
            columns = slice(place * outputs, (place + 1) * outputs)
            above, below = np.float32((1 - level) * share), np.float32(-level * share)
            E = (Z[:, columns] + before - batch.target) * batch.known
            losses[:, columns] = xp.maximum(E * above, E * below)
            Z[:, columns] = xp.where(E > 0, above, xp.where(E < 0, below, np.float32(0)))
        return self.steps.column_roots(losses), Z

    def _sum(self, losses: Array) -> float:
        """The loss from its addends. Ranks: all call."""
        return float(np.array(self.device.get(self.steps.sum(losses)), dtype=np.float64).sum())

    def _before(self, batch: Batch) -> Array:
        """[rows, H C] what the network adds its part to."""
        if self.base is None:
            return batch.last
        return self.steps.dense([batch.linear], self.base) + batch.last

    # ---- forecasts --------------------------------------------------------------------------------------

    def join(self, members: Sequence[dict[str, np.ndarray]]) -> None:
        """From here on forecasts are the means of those of several networks, by their weights; the first
        one's are those of the forecaster. Ranks: all call."""
        self.members = []
        for weights in reversed(members):
            self.params.set(weights)
            self.members.insert(0, self.params.flat.copy())

    def forecast(self, ends: np.ndarray) -> np.ndarray:
        """[n_own * B, H * C] float32 on the host, of windows of a node in turn, in deviations; the medians of
        quantiles. Ranks: all call."""
        return self._forecast(self._begun(ends, targets=False))

    def _forecast(self, batch: Batch) -> np.ndarray:
        return self._point(self._ahead(batch))

    def _point(self, ahead: np.ndarray) -> np.ndarray:
        """[rows, H C], of each value one forecast, of `_ahead`."""
        return ahead[:, self.levels.index(MEDIAN) if self.levels else 0]

    def _ahead(self, batch: Batch) -> np.ndarray:
        """[rows, Q, H C] float32 on the host, what is forecast: means over members, of quantiles in ascending
        order. Ranks: all call."""
        found = self._each(batch)
        return found[0] if len(found) == 1 else _mean(found)

    def _each(self, batch: Batch) -> list[np.ndarray]:
        """The same of each member. Sorted, quantiles do not cross (Chernozhukov, Fernandez-Val, Galichon
        2010): forecasts a > b of levels p < q have (q - p) (a - b) more pinball loss in all than b and a.
        Ranks: all call."""
        before, found = self._before(batch), []
        for flat in self.members or [None]:
            if flat is not None:
                self.params.flat[:] = flat
            Z = self.network.forward(self.steps, batch.inputs, batch.ahead)
            ahead = np.array(self.device.get(self._by_level(Z) + before[:, None]))
            found.append(np.sort(ahead, axis=1) if len(self.levels) > 1 else ahead)
        if self.members:
            self.params.flat[:] = self.members[0]
        return found

    def _by_level(self, Z: Array) -> Array:
        """[rows, Q, H C] of the columns of the network."""
        return Z.reshape(Z.shape[0], max(len(self.levels), 1), self.windows.outputs)

    def _large(self, Z: np.ndarray) -> np.ndarray:
        """[n_real, H, C] float64 in the units of the data, of one window of each node."""
        shape = self.n_own, self.case.horizon, self.windows.channels
        return self.scale.large(Z.reshape(shape))[: self.block.n_real]

    def next(self) -> np.ndarray:
        """[n_real, H, C] float64, the steps after the end of the series, in the units of the data. Ranks:
        all."""
        return self._large(self.forecast(np.array([self.windows.steps - 1])))

    def next_each(self) -> tuple[np.ndarray, np.ndarray]:
        """[n_real, Q, H, C] quantiles, none where there are none, and [n_real, members, H, C] what each
        member says; of the steps after the end, as `next`. Ranks: all call."""
        batch = self._begun(np.array([self.windows.steps - 1]), targets=False)
        ahead, each = self._ahead(batch), self._each(batch)
        levels = [self._large(ahead[:, q]) for q in range(len(self.levels))]
        members = [self._large(self._point(one)) for one in each]
        none = np.zeros((self.block.n_real, 0, self.case.horizon, self.windows.channels))
        return np.stack(levels, axis=1) if levels else none, np.stack(members, axis=1)

    # ---- how good they are ------------------------------------------------------------------------------

    def judge(self, part: str, plain: bool = True) -> dict[str, Errors]:
        """Errors in a part of time: of the network, and of plain rules. Ranks: all call."""
        return self.judged(part, plain).errors

    def judged(self, part: str, plain: bool = True) -> Judged:
        """The same, with errors of each of several members, and of quantiles. Ranks: all call."""
        sums = ErrorSums(self.case.horizon, self.scale.deviation, self.n_own)
        below = QuantileSums(self.levels, self.case.horizon, self.scale.deviation, self.n_own)
        for piece in self.windows.pieces(self.windows.parts.ends(part)):
            batch = self._begun(piece)
            target, known = (np.array(self.device.get(each)) for each in (batch.target, batch.known))
            each = self._each(batch)
            ahead = each[0] if len(each) == 1 else _mean(each)
            sums.add(NETWORK, self._point(ahead), target, known)
            for number, one in enumerate(each if len(each) > 1 else ()):
                sums.add(member_name(number), self._point(one), target, known)
            if self.levels:
                below.add(ahead, target, known)
            for rule, Z in plain_of(self, batch) if plain else ():
                sums.add(rule, Z, target, known)
        found, n_real = sums.over_nodes(self.group, self.block.n_real), self.block.n_real
        named = [member_name(number) for number in range(len(self.members))]
        members = [found.pop(name) for name in named if name in found]
        return Judged(found, members, below.over_nodes(self.group, n_real) if self.levels else None)

    # ---- intervals --------------------------------------------------------------------------------------

    def intervals(self, coverage: float) -> tuple[np.ndarray, float | None]:
        """Half widths [n_real, H, C] float64 of intervals of one width at all times, in the units of the
        data, infinite where the validation windows are too few; and the share of the test values that such
        intervals held, None of none (intervals.py). Ranks: all call.
        """
        half = bound_of(self.scored("val").away, coverage)
        return self.wide(half), share_within(self.group, self.scored("test").away, half)

    def deviation(self) -> np.ndarray:
        """[n_real or 1, C] float32 of the series."""
        by_node = self.case.normalise == "node"
        return self.scale.deviation[: self.block.n_real] if by_node else self.scale.deviation

    def wide(self, bound: np.ndarray) -> np.ndarray:
        """[n_real, H, C] float64 in the units of the data."""
        return bound.astype(np.float64) * self.deviation().astype(np.float64)[:, None]

    def scored(self, part: str, coverage: float = 0.0) -> Scored:
        """The scores of the windows of a part of time; coverage: of the pair of quantiles, 0: without one.
        Ranks: all call."""
        ends, n_real = self.windows.parts.ends(part), self.block.n_real
        shape = self.case.horizon, self.windows.channels
        pair = pair_of(self.levels, coverage) if self.levels and coverage else None
        found = [
            np.full((n_real, len(ends), *shape), np.nan, dtype=np.float32) for _ in range(3 if pair else 1)
        ]
        at = 0
        for piece in self.windows.pieces(ends):
            batch = self._begun(piece)
            target, known = (np.array(self.device.get(each)) for each in (batch.target, batch.known))
            ahead = self._ahead(batch)
            scores = [np.abs(self._point(ahead) - target)]
            if pair:
                low, high = (ahead[:, at] for at in pair)
                scores += [np.maximum(low - target, target - high), high - low]
            for rows, each in zip(found, scores):
                kept = np.where(known > 0, each, np.float32(np.nan))
                rows[:, at : at + len(piece)] = kept.reshape(self.n_own, len(piece), *shape)[:n_real]
            at += len(piece)
        return Scored(*found)


def member_name(number: int) -> str:
    """What a member is called among the rules."""
    return f"member {number + 1}"


def _mean(each: list[np.ndarray]) -> np.ndarray:
    """[...] float32, the mean of several arrays."""
    return np.mean(each, axis=0, dtype=np.float64).astype(np.float32)


def drawn_forecaster(
    group: Group, gnn: GnnCase, case: ForecastCase, block: RowBlock, S_own: np.ndarray, masks: bool,
    seed: int, parts: Parts | None = None, covariates: Covariates | None = None,
) -> Forecaster:  # fmt: skip
    """A network with weights drawn for a seed, of series that the training part alone gives the scale; see
    Forecaster. Ranks: all call."""
    first = (parts or Parts.of(case, S_own.shape[1])).steps
    scale = SeriesScale.of(group, S_own, first, case.normalise == "node", block.n_real)
    data = SeriesData(S_own, scale, masks, covariates)
    return Forecaster(group, gnn, case, block, data, seed, None, parts)
