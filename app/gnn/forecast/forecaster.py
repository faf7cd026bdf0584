"""A network that forecasts the series of one graph: a training step, forecasts, and how good they are."""

from typing import Any

import numpy as np

from app.case.forecast import ForecastCase
from app.case.gnn import GnnCase
from app.comm.group import Group
from app.gnn.conformal import place_of
from app.gnn.forecast.errors import Errors, ErrorSums
from app.gnn.forecast.hops import Hops
from app.gnn.forecast.recurrent import Recurrent
from app.gnn.forecast.regression import Regression, regress
from app.gnn.forecast.series import PARTS, Parts, SeriesScale
from app.gnn.forecast.steps import Steps
from app.gnn.forecast.temporal import Temporal
from app.gnn.forecast.windows import Batch, Windows
from app.gnn.parameters import Parameters
from app.sparse.rowblock import RowBlock

Array = Any
LAST, SEASON, MEAN, OWN, NEIGHBOURS = "last_value", "last_season", "mean", "linear", "linear_neighbours"
NETWORK = "network"


def network_of(case: ForecastCase, gnn: GnnCase, f: int, outputs: int, walks: int) -> Recurrent | Temporal:
    """The network of a case. f: columns of the input of a step; walks: random walks of hidden rows."""
    if case.model == "temporal":
        return Temporal(f, case.window, gnn.hidden, gnn.depth, outputs, walks)
    return Recurrent(f, gnn.hidden, outputs, walks)


class Forecaster:
    """See above. Forecasts are of values in deviations (series.py), as differences from the last value.

    base     [k, H * C] float32 on the device, the regression that the network adds its part to; None: the
    last value
    plain    the regressions, which are plain rules too; None: weights are applied, or nothing is there to
    learn
    Ranks    all construct
    """

    def __init__(
        self, group: Group, gnn: GnnCase, case: ForecastCase, block: RowBlock, S_own: np.ndarray,
        scale: SeriesScale, masks: bool, seed: int, base: np.ndarray | None = None,
        parts: Parts | None = None,
    ) -> None:  # fmt: skip
        """S_own [n_own, T, C] float32 as read; base: of weights; masks: networks read where values are
        known; parts: of time, None: those of the case"""
        self.group, self.device, self.gnn, self.case, self.seed = group, group.device, gnn, case, seed
        self.block, self.scale, self.n_own = block, scale, block.n_own
        self.hops = Hops(group, block, case.hops, gnn.edge_weights)
        self.windows = Windows(group, case, S_own, scale, self.hops, block.n_real, masks, parts)
        self._node_mean = SeriesScale.of(group, S_own, self.windows.parts.steps, True, block.n_real).mean
        windows = self.windows
        self.network = network_of(case, gnn, windows.f, windows.outputs, self.hops.count)
        self.params = Parameters(self.device, self.network.shapes())
        zeros = {name: 0.0 for name in self.params.shapes if name.endswith("bias") or name == "head.W"}
        self.params.draw_glorot(seed, zeros)
        most = min(case.batch, max(len(windows.parts.ends(part)) for part in PARTS))
        self.steps = Steps(group, block, self.hops, self.params, max(most, 1))
        self.plain: Regression | None = None
        train = windows.parts.ends("train")
        if len(train):
            self.plain = regress(self.steps, windows, train, case.ridge)
        if base is None and case.base == "linear" and self.plain is not None:
            base = self.plain.best
        self.base = None if base is None or case.base == "last" else self.device.put(base)

    def known_ends(self, part: str) -> np.ndarray:
        """[w] the ends of the windows of a part of which some value is known that they forecast."""
        ends = self.windows.parts.ends(part)
        known = np.zeros(len(ends), dtype=np.int64)
        for h in range(1, self.case.horizon + 1):
            known += self.windows.known_at[ends + h].sum(axis=1)
        return ends[known > 0]

    # ---- learning ---------------------------------------------------------------------------------------

    def learn(self, ends: np.ndarray) -> float:
        """The loss of the windows that end at some steps, and its gradient in `steps.gradient`.

        The mean, over all known values of all nodes, of |e| or e^2 in deviations. Ranks: all call.
        """
        steps, batch = self.steps, self._begun(ends)
        Z = self.network.forward(steps, batch.inputs)
        losses, D = self._loss(Z, batch, self.windows.known_in(ends))
        self.network.backward(steps, D)
        steps.reduce()
        return self._sum(losses)

    def loss_of(self, ends: np.ndarray) -> float:
        """The mean loss of windows, some at a time; NaN where nothing is known. Ranks: all call."""
        total, count = 0.0, self.windows.known_in(ends)
        for piece in self.windows.pieces(ends):
            batch = self._begun(piece)
            Z = self.network.forward(self.steps, batch.inputs)
            total += self._sum(self._loss(Z, batch, 1)[0])
        return total / count if count else float("nan")

    def _begun(self, ends: np.ndarray, targets: bool = True) -> Batch:
        self.steps.begin(len(ends))
        return self.windows.batch(ends, targets)

    def _loss(self, Z: Array, batch: Batch, count: int) -> tuple[Array, Array]:
        """Addends [own roots, H C] of the sum over a count, and the gradient by Z in the place of Z."""
        xp = self.device.xp
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

    def _sum(self, losses: Array) -> float:
        """The loss from its addends. Ranks: all call."""
        return float(np.array(self.device.get(self.steps.sum(losses)), dtype=np.float64).sum())

    def _before(self, batch: Batch) -> Array:
        """[rows, H C] what the network adds its part to."""
        if self.base is None:
            return batch.last
        return self.steps.dense([batch.linear], self.base) + batch.last

    # ---- forecasts --------------------------------------------------------------------------------------

    def forecast(self, ends: np.ndarray) -> np.ndarray:
        """[n_own * B, H * C] float32 on the host, of windows of a node in turn, in deviations. Ranks: all
        call."""
        batch = self._begun(ends, targets=False)
        return self._forecast(batch)

    def _forecast(self, batch: Batch) -> np.ndarray:
        Z = self.network.forward(self.steps, batch.inputs)
        return np.array(self.device.get(Z + self._before(batch)))

    def next(self) -> np.ndarray:
        """[n_real, H, C] float64, the steps after the end of the series, in the units of the data. Ranks:
        all."""
        found = self.forecast(np.array([self.windows.steps - 1]))
        shape = self.n_own, self.case.horizon, self.windows.channels
        return self.scale.large(found.reshape(shape))[: self.block.n_real]

    def judge(self, part: str, plain: bool = True) -> dict[str, Errors]:
        """Errors in a part of time: of the network, and of plain rules. Ranks: all call."""
        sums = ErrorSums(self.case.horizon, self.scale.deviation, self.n_own)
        for piece in self.windows.pieces(self.windows.parts.ends(part)):
            batch = self._begun(piece)
            target, known = (np.array(self.device.get(each)) for each in (batch.target, batch.known))
            sums.add(NETWORK, self._forecast(batch), target, known)
            for rule, Z in self._plain_of(batch) if plain else ():
                sums.add(rule, Z, target, known)
        return sums.over_nodes(self.group, self.block.n_real)

    def _plain_of(self, batch: Batch) -> list[tuple[str, np.ndarray]]:
        """[n_own * B, H C] on the host, what plain rules forecast."""
        get, last = self.device.get, np.array(self.device.get(batch.last))
        found = [(LAST, last)]
        if self.case.period:
            found.append((SEASON, np.array(get(self.windows.season(batch.ends)))))
        mean = self.scale.small(self._node_mean[:, None])[:, 0]  # [n_own, C]
        rows = np.tile(mean, (1, self.case.horizon))
        found.append((MEAN, np.repeat(rows, len(batch.ends), axis=0)))
        if self.plain is not None:
            for rule, W in ((OWN, self.plain.own), (NEIGHBOURS, self.plain.neighbours)):
                if W is not None:
                    Z = self.steps.dense([batch.linear], self.device.put(W))
                    found.append((rule, np.array(get(Z)) + last))
        return found

    # ---- intervals --------------------------------------------------------------------------------------

    def intervals(self, coverage: float) -> tuple[np.ndarray, float | None]:
        """Half widths [n_real, H, C] float64 of intervals in the units of the data, infinite where the
        validation windows are too few; and the share of the test values that such intervals held, None of
        none.

        Split conformal prediction (gnn/conformal.py), node by node and step by step: half a width is that
        error of the validation windows which at most a share of 1 - coverage exceeds. Ranks: all call.
        """
        errors = np.sort(self._away("val"), axis=1)  # NaN last
        count = (errors == errors).sum(axis=1)
        places = np.array([place_of(coverage, m) for m in range(errors.shape[1] + 1)])[count]
        enough = places <= count
        at = np.where(enough, places - 1, 0)[:, None]
        half = np.full(enough.shape, np.inf)
        if errors.shape[1]:
            half = np.where(enough, np.take_along_axis(errors, at, axis=1)[:, 0], np.inf)
        tested = self._away("test")
        own = [np.count_nonzero(tested == tested), np.count_nonzero(tested <= half[:, None])]
        total, held = self.group.sum_integers(np.array(own, dtype=np.int64)).tolist()
        wide = half.astype(np.float64) * self.scale.deviation.astype(np.float64)[:, None][: self.block.n_real]
        return wide, held / total if total else None

    def _away(self, part: str) -> np.ndarray:
        """[n_real, w, H, C] float32 absolute errors of the windows of a part, NaN where nothing is known."""
        ends, n_real = self.windows.parts.ends(part), self.block.n_real
        shape = self.case.horizon, self.windows.channels
        found = np.full((n_real, len(ends), *shape), np.nan, dtype=np.float32)
        at = 0
        for piece in self.windows.pieces(ends):
            batch = self._begun(piece)
            target, known = (np.array(self.device.get(each)) for each in (batch.target, batch.known))
            away = np.where(known > 0, np.abs(self._forecast(batch) - target), np.float32(np.nan))
            found[:, at : at + len(piece)] = away.reshape(self.n_own, len(piece), *shape)[:n_real]
            at += len(piece)
        return found


def drawn_forecaster(
    group: Group, gnn: GnnCase, case: ForecastCase, block: RowBlock, S_own: np.ndarray, masks: bool,
    seed: int, parts: Parts | None = None,
) -> Forecaster:  # fmt: skip
    """A network with weights drawn for a seed, of series that the training part alone gives the scale; see
    Forecaster. Ranks: all call."""
    first = (parts or Parts.of(case, S_own.shape[1])).steps
    scale = SeriesScale.of(group, S_own, first, case.normalise == "node", block.n_real)
    return Forecaster(group, gnn, case, block, S_own, scale, masks, seed, None, parts)
