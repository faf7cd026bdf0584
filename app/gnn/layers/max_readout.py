"""Readout by the largest: what a network says of a whole graph, column by column the largest of its nodes."""

from typing import Any

import numpy as np

from app.gnn.engine import Engine
from app.gnn.layers.layer import LayerSpec, Settings
from app.gnn.layers.readout import Readout
from app.gnn.programs import Rows

Array = Any
LOWEST = np.finfo(np.float32).min


class MaxReadout(Readout):
    """Z = P_1 W_1 + ... + P_k W_k: the largest rows of a graph's nodes, times weights.

    Source    Xu et al. 2019, section 5.3 (max-pooling); of all layers or of the last one as Readout
    Forward   P_l = max of the rows of H_l over the nodes of a graph, column by column; 0 for a graph without
              nodes, and in the rows of nodes     Z = P_1 W_1 + ...
    Shapes    H_l, P_l [n_own, f_l]   W_l [f_l, classes]   Z [n_own, classes]
    Backward  dW_l = P_l^T D     dP_l = D W_l^T
              dH_l[j, c] = dP_l[g, c] where j is the first node of its graph g, in the order of rows, with
              H_l[j, c] = P_l[g, c]; else 0: a subgradient of the maximum, its gradient where one node has it.
              Of that the last layer's is returned, and the others are added to what comes back (`add_back`)
    Ranks     rows partitioned, weights replicated; for each layer 1 exchange forward and 3 backward (P, which
              node is the first, and that with dP, to nodes and back). A maximum is exact, and the first node
              is one by its number: the same bits on any number of ranks.

    In the row of a node j, places hold how many nodes of its graph come before it; the first that has the
    maximum is the one of the largest -place among those.
    """

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        super().__init__(name, spec, f_in, f_out, settings)
        self._tops: list[Rows] = []
        self._backs: list[Rows] = []

    def forward(self, engine: Engine, H: Rows) -> Rows:
        """Z; see Convolution.forward. Keeps P_l."""
        self._tops = [self._pooled(engine, each) for each in (*self.held, H)]
        return engine.dense_sum([(P, engine.params[name]) for P, name in zip(self._tops, self.names)], "Z")

    def backward(self, engine: Engine, H: Rows, D: Rows) -> Rows:
        """The gradient by H from D = dZ; see Convolution.backward."""
        found = []
        for name, each, P in zip(self.names, [*self.held, H], self._tops):
            engine.gram(name, P, D)
            dP = engine.dense_back(D, engine.params[name], name="dP")
            found.append(self._back(engine, each, P, dP))
            engine.free(P, dP)
        engine.free(D)
        *self._backs, dH = found
        self._tops, self.held = [], []
        return dH

    def add_back(self, engine: Engine, D: Rows, layer: int) -> None:
        """D += dH_l, the readout's part of the gradient by what layer `layer`, from 0, gives."""
        if self._backs:
            dH = self._backs.pop()
            engine.add_into(D, dH)
            engine.free(dH)

    def release(self, engine: Engine) -> None:
        """Free what forward kept, and what was held for a readout of all layers."""
        engine.free(*self._tops)
        self._tops = []
        super().release(engine)

    def _pooled(self, engine: Engine, X: Rows) -> Rows:
        """New rows P of X = H_l. Ranks: all call (one exchange)."""
        T, P = engine.take("top", 3 * X.width), engine.take("P", X.width)
        filled = engine.pool_scale("mean")

        def work() -> None:
            top, xp = self._top(engine, X.array, T.array), engine.device.xp
            P.array[...] = xp.where(filled[:, None] > 0, top + np.float32(0), np.float32(0))  # -0 is 0

        engine.apply("pool", "top", [X], [T, P], work, (X.width,))
        engine.free(T)
        return P

    def _back(self, engine: Engine, X: Rows, P: Rows, dP: Rows) -> Rows:
        """New rows dH_l of X = H_l. Ranks: all call (three exchanges)."""
        width, xp = X.width, engine.device.xp
        M, G, T = (engine.take(*each) for each in (("M", width), ("dH", width), ("top", 3 * width)))
        U, V = engine.take("U", 2 * width), engine.take("V", 2 * width)

        def work() -> None:
            to_nodes, places = engine.pooling[1], engine.places[:, None]
            M.array[...] = 0
            to_nodes.accumulate(P.array, M.array)
            M.array[...] = xp.where((M.array == X.array) & (places >= 0), -places, LOWEST)
            U.array[:, :width] = self._top(engine, M.array, T.array)
            U.array[:, width:] = dP.array
            V.array[...] = 0
            to_nodes.accumulate(U.array, V.array)
            first = (V.array[:, :width] == M.array) & (M.array > LOWEST)
            G.array[...] = xp.where(first, V.array[:, width:], np.float32(0))

        engine.apply("pool", "top_back", [X, P, dP], [M, G, T, U, V], work, (width, width, 2 * width))
        engine.free(M, T, U, V)
        return G

    def _top(self, engine: Engine, X: Array, T: Array) -> Array:
        """[n_own, f] the largest of the rows of X over the nodes of each graph, in T [n_own, 3 f].

        Ranks   all call (one exchange)
        """
        T[...] = LOWEST
        engine.pooling[0].visit(X, False, lambda pattern, rows: engine.device.attention_top(pattern, rows, T))
        return T[:, : X.shape[1]]
