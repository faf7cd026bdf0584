"""What GraphSAGE-mean and CommNet share: own rows and the mean over the neighbours, each with its weights."""

from typing import Any

from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.layers.layer import LayerSpec, Settings, Shapes, product_order
from app.gnn.programs import Rows

Array = Any
MEAN = "mean"


class OwnAndMean:
    """Z = H W_own + M H W_mean, M H the mean over the neighbours, 0 for a node that has none.

    Forward   M = diag(s) A with s = 1/d, 0 where d = 0.
              weights first   S = H W_mean     Z = s * (A S) + H W_own
              product first   N = s * (A H)    Z = [H | N] [W_own; W_mean]      where H is narrower than Z
    Shapes    H, N [n_own, f_in]   W_own, W_mean [f_in, f_out]   S, Z [n_own, f_out]
    Backward  M^T = A^T diag(s), of an undirected graph A diag(s); D = dZ:
              dW_own = H^T D
              weights first   dS = A^T (s * D)  dW_mean = H^T dS  dH = [D | dS] [W_own^T; W_mean^T]
              product first   dW_mean = N^T D                     dH = D W_own^T + A^T (s * (D W_mean^T))
    Ranks     rows partitioned, weights replicated; 1 exchange forward, 1 backward (none for features whose
              product comes first), addends of dW_own, dW_mean
    First     Dense features are multiplied first where that pays, and their product is kept where nothing is
              dropped from them (layer.py: product_order).

    own, mean   last parts of the names of W_own, W_mean
    """

    own, mean = "W_own", "W_mean"

    row_by_row = True
    leaves = ("heads", "normalisation", "own_loops")

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        self.name, self.f_in, self.f_out, self.settings = name, f_in, f_out, settings
        self.names = f"{name}.{self.own}", f"{name}.{self.mean}"
        self.meets_input = self.names
        self._kept: Rows | None = None

    def shapes(self) -> Shapes:
        """Both weights [f_in, f_out]."""
        return dict.fromkeys(self.names, (self.f_in, self.f_out))

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z; see Convolution.forward."""
        W_own, W_mean = (engine.params[name] for name in self.names)
        order = self.order(H)
        if order == "cached":
            return engine.dense_sum([(H, W_own), (engine.product_of(H, MEAN), W_mean)])
        if order == "product":
            self._kept = engine.neighbours(H, own=False, name="MH")
            engine.activate(self._kept, engine.scale_of(MEAN))
            return engine.dense_sum([(H, W_own), (self._kept, W_mean)])
        Z = engine.spread(engine.dense(H, W_mean), own=False)
        T = engine.dense(H, W_own, name="HW_own")
        engine.activate(Z, engine.scale_of(MEAN), add=T)
        engine.free(T)
        return Z

    def output_scale(self, engine: Engine, H: Rows | Features) -> Array | None:
        """None: Z is whole."""
        return None

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = dZ; see Convolution.backward."""
        own, mean = self.names
        order, first = self.order(H), not isinstance(H, Rows)
        engine.gram(own, H, D)
        if order == "weights":
            return self._weights_back(engine, H, D)
        engine.gram(mean, engine.product_of(H, MEAN) if order == "cached" else self._kept, D)
        self.release(engine)
        dH = None if first else self._product_back(engine, D)
        engine.free(D)
        return dH

    def _weights_back(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """dW_mean and dH where the weights came first; frees D."""
        scaled = engine.copy(D, "sD", engine.scale_of(MEAN))
        dS = engine.spread(scaled, own=False)
        engine.gram(self.names[1], H, dS)
        dH = None
        if isinstance(H, Rows):
            W_own, W_mean = (engine.transposed(name) for name in self.names)
            dH = engine.dense_through([(D, W_own), (dS, W_mean)], H)
        engine.free(dS, D)
        return dH

    def _product_back(self, engine: Engine, D: Rows) -> Rows:
        """dH where the product came first."""
        W_own, W_mean = (engine.params[name] for name in self.names)
        G = engine.dense_back(D, W_mean, engine.scale_of(MEAN), name="dMH")
        dH = engine.dense_back(D, W_own)
        engine.neighbours_into(dH, G)
        engine.free(G)
        return dH

    def release(self, engine: Engine) -> None:
        """Free N where the product came first."""
        engine.free(self._kept)
        self._kept = None

    def order(self, H: Rows | Features | None) -> str:
        """ "cached", "product" (first) or "weights" (first); see layer.py."""
        return product_order(H, self.f_in, self.f_out, self.settings)
