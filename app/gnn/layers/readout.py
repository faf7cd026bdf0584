"""Readout: what a network says of a whole graph, from the rows of its nodes."""

from itertools import pairwise
from typing import Any

import numpy as np

from app.gnn.engine import Engine
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.programs import Rows

Array = Any


class Readout:
    """Z = s * R (H_1 W_1 + ... + H_k W_k): sums, or means, of the rows of a graph's nodes, times weights.

    Source    Xu et al. 2019, section 2 (READOUT) and eq. 4.2: of all layers, side by side; or of the last one
    Forward   R holds a 1 for each graph and each of its nodes (graphs/members.py); s = 1 for sums, 1/size for
              means, 0 for a graph without nodes
              S = H_1 W_1 + ...     Z = s * (R S)     weights first: Z has a column for each class
    Shapes    H_l [n_own, f_l], what layer l gives   W_l [f_l, classes]
              S, Z [n_own, classes], of which the rows of graphs count
    Backward  D = s * dZ, 0 but in the rows of training graphs:
              dS = R^T D     dW_l = H_l^T dS     dH_l = dS W_l^T, of all but the last layer beside what comes
              back from the next one (`add_back`)
    Ranks     rows partitioned, weights replicated; 1 exchange forward, 1 backward, addends of dW_l
    Differs   Xu et al. read out the features too.

    held      what the layers before the last give, of a readout of all
    """

    row_by_row = True
    leaves = ("heads", "normalisation", "own_loops", "edge_weights")
    scale = ""

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        self.widths, self.f_out = settings.read_out or (f_in,), f_out
        self.names = [f"{name}.W_{i}" for i in range(1, len(self.widths) + 1)]
        self.meets_input = tuple(self.names)
        self.held: list[Rows] = []
        self._dS: Rows | None = None

    def shapes(self) -> Shapes:
        """W_l [f_l, classes] of each layer that is read out."""
        return {name: (width, self.f_out) for name, width in zip(self.names, self.widths)}

    def forward(self, engine: Engine, H: Rows) -> Rows:
        """R S; see Convolution.forward."""
        terms = [(each, engine.params[name]) for each, name in zip([*self.held, H], self.names)]
        S = engine.dense_sum(terms, name="S")
        Z = engine.pool(S)
        engine.free(S)
        return Z

    def output_scale(self, engine: Engine, H: Rows) -> Array | None:
        """[n_own] one over the sizes of graphs, of means."""
        return engine.pool_scale(self.scale) if self.scale else None

    def backward(self, engine: Engine, H: Rows, D: Rows) -> Rows:
        """The gradient by H from D = s * dZ; see Convolution.backward. `add_back` has those by the others."""
        dS = engine.pool(D)
        engine.free(D)
        for name, each in zip(self.names, [*self.held, H]):
            engine.gram(name, each, dS)
        dH = engine.dense_through([(dS, engine.transposed(self.names[-1]))], H)
        if self.held:
            self._dS, self.held = dS, []
        else:
            engine.free(dS)
        return dH

    def add_back(self, engine: Engine, D: Rows, layer: int) -> None:
        """D += dS W_l^T, the readout's part of the gradient by what layer `layer`, from 0, gives.

        The last call is for layer 0, after which dS is free.
        """
        if self._dS is None:
            return
        T = engine.dense_back(self._dS, engine.params[self.names[layer]])
        engine.add_into(D, T)
        engine.free(T)
        if not layer:
            engine.free(self._dS)
            self._dS = None

    def release(self, engine: Engine) -> None:
        """Free what was held for a readout of all layers."""
        engine.free(*self.held)
        self.held = []

    def embed(self, engine: Engine, H: Rows) -> Rows:
        """s * R [H_1 ... H_k], what is known of a graph before the weights; frees H."""
        cuts = np.cumsum([0, *self.widths]).tolist()
        P = engine.take("P", cuts[-1])
        for (lo, hi), each in zip(pairwise(cuts), [*self.held, H]):
            T = self._pooled(engine, each)
            engine.put_columns(P, T, lo, hi)
            engine.free(T)
        engine.free(H)
        self.release(engine)
        if self.scale:
            engine.activate(P, engine.pool_scale(self.scale))
        return P

    def _pooled(self, engine: Engine, X: Rows) -> Rows:
        """New rows R X of what a layer gives, before they are scaled. Ranks: all call (one exchange)."""
        return engine.pool(X)


class MeanReadout(Readout):
    """The mean over the nodes of a graph; see Readout."""

    scale = "mean"
