"""Normalisation between a product and its activation: of rows (layer) or of columns (batch)."""

from typing import Any

import numpy as np

from app.gnn.engine import NORM_EPSILON, Engine
from app.gnn.layers.layer import Shapes
from app.gnn.programs import Rows

Array = Any


class LayerNorm:
    """N = gamma * (U - mean) / deviation + beta, mean and deviation of each row.

    Source    Ba, Kiros and Hinton 2016
    Shapes    U, N [n_own, width]     gamma, beta [1, width]
    Backward  dU, dgamma, dbeta by Elementwise.normalise_rows_back, which needs U
    Ranks     a row is normalised on one rank

    row_by_row   a row of N depends on that of U alone
    """

    row_by_row = True

    def __init__(self, prefix: str, width: int) -> None:
        """prefix   of the names of parameters."""
        self.gamma, self.beta, self.width = f"{prefix}gamma", f"{prefix}beta", width
        self._kept: tuple[Rows, Any] | None = None

    def shapes(self) -> Shapes:
        """gamma and beta."""
        return dict.fromkeys((self.gamma, self.beta), (1, self.width))

    def forward(self, engine: Engine, U: Rows, keep: bool) -> Rows:
        """N, new rows; U is freed unless `keep`, with which backward needs it."""
        N, kept = engine.normalise(U, engine.params[self.gamma], engine.params[self.beta])
        if keep:
            self._kept = U, kept
        else:
            engine.free(U)
        return N

    def backward(self, engine: Engine, D: Rows) -> None:
        """In place, the gradient by U from D by N; those of gamma and beta go to the engine; U is freed."""
        (U, kept), self._kept = self._kept, None
        engine.normalise_back(D, U, kept, engine.params[self.gamma], (self.gamma, self.beta))
        engine.free(U)

    def release(self, engine: Engine) -> None:
        """Free U, where no backward pass follows."""
        if self._kept is not None:
            engine.free(self._kept[0])
            self._kept = None


class BatchNorm:
    """N = gamma * x + beta, x = (U - mean) / sqrt(variance + epsilon), both of each column over many rows.

    Source    Ioffe and Szegedy 2015, algorithms 1 and 2; with the whole graph as the batch
    Forward   mean, variance over the rows that are counted (Engine.counted): in a graph all nodes, in a set
              of graphs the nodes of those that are trained on
    Shapes    U, N [n_own, width]     gamma, beta, mean, variance [1, width]
    Backward  dbeta = sum of the rows of D     dgamma = sum of the rows of D * x
              dU = gamma / deviation * (D - [counted] * (dbeta + x dgamma) / count)
    Ranks     rows partitioned, parameters and statistics replicated; 2 sums over all ranks forward, 1
              backward
    Without a backward pass   where weights are trained, statistics of the pass itself, in which nothing is
              dropped: a function of the weights alone. They are kept among the parameters, with gradients of
              zero, so that checkpoints and files of weights hold them; weights that are applied
              (Engine.measures is False) go by them.
    Bias      none: the mean would take it away
    Differs   PyTorch keeps a running mean over passes with dropout, in which variances are larger than where
              weights are applied, the more so the deeper the network (Li et al. 2019). One batch is the whole
              graph here, so that nothing has to be gathered over passes.
    """

    row_by_row = False

    def __init__(self, prefix: str, width: int) -> None:
        """prefix   of the names of parameters."""
        self.gamma, self.beta, self.width = f"{prefix}gamma", f"{prefix}beta", width
        self.mean, self.variance = f"{prefix}mean", f"{prefix}variance"
        self._kept: tuple[Rows, Any] | None = None

    def shapes(self) -> Shapes:
        """gamma and beta, mean and variance."""
        return dict.fromkeys((self.gamma, self.beta, self.mean, self.variance), (1, self.width))

    def forward(self, engine: Engine, U: Rows, keep: bool) -> Rows:
        """N: with `keep`, new rows, by statistics of U, which backward needs; else in the place of U, by its
        statistics, which are kept, or by those that were.

        Ranks   all call (two sums, but where weights are applied)
        """
        if keep:
            N = engine.take("N", U.width)
            make = self._by_kept if engine.traces else self._by_own
            work = lambda: make(engine, U.array, N.array)  # noqa: E731
            self._kept = U, engine.apply("batch_norm", "batch_norm_own", [U], [N], work)
            return N
        if engine.measures:
            work = lambda: self._store(engine, *self._by_own(engine, U.array, U.array))  # noqa: E731
            engine.apply("batch_norm", "batch_norm_own", [U], [U], work)
        else:
            work = lambda: self._by_kept(engine, U.array, U.array)  # noqa: E731
            engine.apply("batch_norm", "batch_norm", [U], [U], work)
        return U

    def backward(self, engine: Engine, D: Rows) -> None:
        """In place, the gradient by U from D by N; those of gamma and beta go to the engine; U is freed.

        Ranks   all call (one sum)
        """
        (U, kept), self._kept = self._kept, None
        work = lambda: self._back(engine, D.array, U.array, *kept)  # noqa: E731
        engine.apply("batch_norm", "batch_norm_back", [D, U], [D], work)
        engine.free(U)

    def release(self, engine: Engine) -> None:
        """Free U, where no backward pass follows."""
        if self._kept is not None:
            engine.free(self._kept[0])
            self._kept = None

    # ---- on arrays ---------------------------------------------------------------------------------------

    def _by_own(self, engine: Engine, U: Array, N: Array) -> tuple[Array, Array, Array]:
        """N, which may be U, by the statistics of U: mean, variance, 1 / deviation. Ranks: all call."""
        mean = engine.counted_mean(U)
        variance = engine.counted_mean(U, mean)
        return mean, variance, self._normalise(engine, U, mean, variance, N)

    def _by_kept(self, engine: Engine, U: Array, N: Array) -> tuple[Array, Array, Array]:
        """The same by the statistics that were kept."""
        mean, variance = (engine.params[name].reshape(-1) for name in (self.mean, self.variance))
        return mean, variance, self._normalise(engine, U, mean, variance, N)

    def _store(self, engine: Engine, mean: Array, variance: Array, inverse: Array) -> None:
        """Keep statistics for weights that are applied."""
        for name, found in ((self.mean, mean), (self.variance, variance)):
            engine.params[name][...] = found

    def _normalise(self, engine: Engine, U: Array, mean: Array, variance: Array, out: Array) -> Array:
        """out = N; returns 1 / deviation [width]."""
        gamma, beta = self._factors(engine)
        inverse = 1 / engine.device.xp.sqrt(variance + np.float32(NORM_EPSILON))
        engine.device.normalise_columns(U, mean, inverse, gamma, beta, out)
        return inverse

    def _back(self, engine: Engine, D: Array, U: Array, mean: Array, variance: Array, inverse: Array) -> None:
        if engine.traces:  # of statistics that do not depend on U
            D *= self._factors(engine)[0] * inverse
            return
        sums, width = engine.norm_gradients((self.beta, self.gamma), D, U, mean, inverse), self.width
        gamma, _ = self._factors(engine)
        statistics = mean, inverse, gamma, sums[:width], sums[width:]
        engine.device.normalise_columns_back(D, U, *statistics, engine.counted)

    def _factors(self, engine: Engine) -> tuple[Array, Array]:
        """gamma and beta [width]."""
        gamma, beta = (engine.params[name].reshape(-1) for name in (self.gamma, self.beta))
        return gamma, beta
