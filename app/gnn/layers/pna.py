"""Principal neighbourhood aggregation (Corso et al. 2020)."""

from typing import Any

import numpy as np

from app.errors import CaseError
from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.products import NO_NUMBERS
from app.gnn.programs import Rows
from app.numerics.aggregation import BACK, MOST_ENTRIES, MOST_ROWS, PARTS

Array = Any
PATTERN = "aggregation_pattern"  # of Neighbours.visit


class PNA:
    """Z = H W_own + V W_same + (a V) W_more + (1/a V) W_less, V four aggregators of what a node hears.

    Source    Corso et al. 2020, eqs. 5-8: mean, largest, smallest, standard deviation, times the scalers
              identity, amplification a = log(d + 1) / delta and attenuation 1/a, delta the mean of log(d + 1)
    Forward   S = H W_in     V_i = [mean | max | min | dev] of S_j over the c neighbours j of i, by columns:
              dev = sqrt(mean of (S_j - mean)^2 + epsilon); 0 where c = 0. d = c, edges unweighted
              delta over the nodes that training hears (a graph: all; a set: those of its training graphs),
              kept among the parameters, with a gradient of zero, as weights are applied by it
    Shapes    H [n_own, f_in]   S [n_own, k]   V [n_own, 4k]   Z [n_own, f_out]   W_own [f_in, f_out]
              W_in [f_in, k]   W_same, W_more, W_less [4k, f_out]
    Backward  D = dZ comes in; a multiplies rows:
              dW_own = H^T D   dW_same = V^T D   dW_more = V^T (a D)   dW_less = V^T (D / a)
              dV = D W_same^T + (a D) W_more^T + (D / a) W_less^T = [G | X | N | Y] by the parts of V
              d mean_i / d S_j = 1/c            d dev_i / d S_j = (S_j - mean_i) / (c dev_i): with
              sum_j (S_j - mean_i) = 0, what comes through the mean vanishes
              d max_i / d S_j = 1 for the first j, in the order of the row, that has the maximum, else 0: a
              subgradient, its gradient where one has it; min alike
              dS_j = sum over the i that hear j of G_i / c_i + Y_i (S_j - mean_i) / (c_i dev_i)
                     + X_i [j is the first max of i] + N_i [j is the first min of i]
              dW_in = H^T dS     dH = D W_own^T + dS W_in^T
              The first ones are found by names of rows, which travel with S and, of those found, with dV.
    Ranks     rows partitioned, weights replicated; 1 exchange of k + 1 columns forward, 1 of 7 k backward (a
              row is summed on one rank over the pattern of A^T), addends of all weights
    Differs   One linear map of S_j for the messages, not of (S_i, S_j): H W_own has what a node is itself. No
              towers; variances are by Welford's updates, not by mean squares less squared means.
    """

    row_by_row = True
    leaves = ("heads", "normalisation", "own_loops", "first_product", "edge_weights")

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        self.name, self.f_in, self.f_out = name, f_in, f_out
        self.width = self.makes = settings.hidden or f_out
        parts = ("W_own", "W_in", "W_same", "W_more", "W_less", "mean_log_degree")
        self.W_own, self.W_in, *self.W_out, self.delta = (f"{name}.{part}" for part in parts)
        self.meets_input = (self.W_own, self.W_in)
        self._kept: tuple[Rows, ...] = ()

    def shapes(self) -> Shapes:
        """All weights, and delta."""
        wide = dict.fromkeys(self.W_out, (PARTS * self.width, self.f_out))
        own = {self.W_own: (self.f_in, self.f_out), self.W_in: (self.f_in, self.width)}
        return {**own, **wide, self.delta: (1, 1)}

    # ---- forward ----------------------------------------------------------------------------------------

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z; see Convolution.forward. Keeps S, V and what it has of their rows."""
        S = engine.dense(H, engine.params[self.W_in], name="S")
        V, T = self._hear(engine, S)
        self._kept = S, V, T
        Z = engine.dense(H, engine.params[self.W_own], name="HW_own")
        for name, scale in zip(self.W_out, self._scalers(engine)):
            part = engine.dense(V, engine.params[name], scale, name="VW")
            engine.add_into(Z, part)
            engine.free(part)
        return Z

    def _hear(self, engine: Engine, S: Rows) -> tuple[Rows, Rows]:
        """V, and names of the largest and the smallest with counts."""
        device, near, k = engine.device, engine.neighbours_of, self.width
        _refuse_large(near.block)
        V, T, E = engine.take("V", PARTS * k), engine.take("names", 2 * k + 1), engine.take("S name", k + 1)

        def work() -> None:
            E.array[:, :k], E.array[:, k] = S.array, near.names()
            device.aggregate_begin(V.array, T.array)
            add = lambda pattern, X: device.aggregate_add(pattern, X, V.array, T.array)  # noqa: E731
            near.visit(E.array, False, add, PATTERN)
            device.aggregate_finish(V.array, T.array)

        engine.apply("spmm", "aggregate", [S], [V, T, E], work, (k + 1,))
        engine.free(E)
        return V, T

    def _scalers(self, engine: Engine) -> tuple[Array | None, Array, Array]:
        """[n_own] the factors of rows; None: 1."""
        if not engine.numeric:
            return None, NO_NUMBERS, NO_NUMBERS
        xp, delta = engine.device.xp, engine.params[self.delta].reshape(-1)
        logs = engine.neighbours_of.scale("log_degree")
        some = xp.where(logs > 0, logs, np.float32(1))
        return None, logs / delta, xp.where(logs > 0, delta / some, np.float32(0))

    def output_scale(self, engine: Engine, H: Rows | Features) -> Array | None:
        """None: Z is whole."""
        return None

    # ---- backward ---------------------------------------------------------------------------------------

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = dZ; see Convolution.backward."""
        (S, V, T), self._kept = self._kept, ()
        dV = self._back_to_parts(engine, V, D)
        F = engine.take("F", BACK * self.width)
        pack = lambda: engine.device.aggregate_pack(dV.array, V.array, T.array, F.array)  # noqa: E731
        engine.apply("elementwise", "aggregate_pack", [dV, V, T], [F], pack)
        engine.free(dV, V, T)
        dS = self._hear_back(engine, F, S)
        engine.free(F, S)
        engine.gram(self.W_own, H, D)
        engine.gram(self.W_in, H, dS)
        dH = None
        if isinstance(H, Rows):
            terms = [(D, engine.transposed(self.W_own)), (dS, engine.transposed(self.W_in))]
            dH = engine.dense_through(terms, H)
        engine.free(dS, D)
        return dH

    def _back_to_parts(self, engine: Engine, V: Rows, D: Rows) -> Rows:
        """dV; the gradients of what V is multiplied by go to the engine."""
        scaled = [D if scale is None else engine.copy(D, "aD", scale) for scale in self._scalers(engine)]
        for name, each in zip(self.W_out, scaled):
            engine.gram(name, V, each)
        terms = [(each, engine.transposed(name)) for name, each in zip(self.W_out, scaled)]
        dV = engine.dense_sum(terms, name="dV")
        engine.free(*scaled[1:])
        return dV

    def _hear_back(self, engine: Engine, F: Rows, S: Rows) -> Rows:
        """dS."""
        device, back = engine.device, engine.adjoint
        dS = engine.take("dS", self.width)

        def work() -> None:
            names = back.names()
            dS.array[...] = 0
            add = lambda pattern, X: device.aggregate_back(  # noqa: E731
                pattern, X, S.array, names, dS.array
            )
            back.visit(F.array, False, add, PATTERN)

        engine.apply("spmm", "aggregate_back", [F, S], [dS], work, (F.width,))
        return dS

    def release(self, engine: Engine) -> None:
        """Free what forward kept."""
        engine.free(*self._kept)
        self._kept = ()


def _refuse_large(block: Any) -> None:
    """Refuse rows that have no names, or whose neighbours are not counted. Raises CaseError."""
    for what, found, most in (
        ("nodes", getattr(block, "n", 0), MOST_ROWS),
        ("neighbours of a node", getattr(block, "max_degree", 0), MOST_ENTRIES),
    ):
        if found > most:
            raise CaseError(f"gnn: pna: {found:,} {what}; at most {most:,} would be right")
