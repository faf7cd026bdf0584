"""Layers whose products with the adjacency matrix follow each other without weights between them."""

from dataclasses import replace
from typing import Any

import numpy as np

from app.gnn.engine import Engine
from app.gnn.features import DenseFeatures, Features
from app.gnn.layers.gcn import GCN
from app.gnn.layers.layer import LayerSpec, Settings
from app.gnn.programs import Rows

Array = Any


class Hops(GCN):
    """Z = c S_K, S_k = a P S_{k-1} + b S_0, S_0 = H W, P as in GCN: a polynomial of P between Z and H W.

    a, b, c   what a kind of layer has (below)     K   gnn.hops, or `usual`
    Forward   S_0 = H W     K times S = a s * (A+I) (t * S) + b S_0     Z = c S
    Shapes    H [n_own, f_in]   W [f_in, f_out]   S, S_0, Z [n_own, f_out]
    Backward  D = c dZ comes in. Powers of P commute, so that the transpose of the polynomial is the same one
              of P^T: G_0 = D     K times G = a t * (A+I)^T (s * G) + b D     dS_0 = G
              dW = H^T dS_0     dH = dS_0 W^T
    In turn   where every product's own error is asked for (Engine.traces): dS_K = D, and for k = K .. 1
              dY_k = a s * dS_k is the error of the product (A+I) (t * S_{k-1}), dS_{k-1} = t * (A+I)^T dY_k;
              dS_0 = dS_0 + b (dS_1 + ... + dS_K)
    Ranks     rows partitioned, W replicated; K exchanges forward, K backward, addends of dW
    """

    row_by_row = False
    leaves: tuple[str, ...] = ("heads", "first_product")
    reads: tuple[str, ...] = ("hops",)
    usual = 2

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        super().__init__(name, spec, f_in, f_out, settings)
        self.hops = settings.hops or self.usual
        self.makes = self.hops * f_out

    @property
    def shares(self) -> tuple[float, float, float]:
        """a, b and c: here a power of P alone."""
        return 1.0, 0.0, 1.0

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z without c; see Convolution.forward."""
        S = engine.dense(H, engine.params[f"{self.name}.W"])
        left, right = engine.scale_of(self._kind), self._input_scale(engine)
        return self._propagate(engine, S, left, right)

    def output_scale(self, engine: Engine, H: Rows | Features) -> Array | None:
        """c; None: it is 1."""
        share = self.shares[2]
        return None if share == 1 else engine.constant(share)

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = c dZ; see Convolution.backward."""
        left, right = self._input_scale(engine), engine.scale_of(self._kind)
        dS = (self._in_turn if engine.traces else self._propagate)(engine, D, left, right)
        engine.gram(f"{self.name}.W", H, dS)
        dH = None
        if isinstance(H, Rows):
            dH = engine.dense_through([(dS, engine.transposed(f"{self.name}.W"))], H)
        engine.free(dS)
        return dH

    def order(self, H: Rows | Features | None) -> str:
        """Weights come first."""
        return "weights"

    def _propagate(self, engine: Engine, S: Rows, left: Array | None, right: Array | None) -> Rows:
        """In the place of S what the polynomial makes of it; left and right [n_own] are P's factors (None:
        1). Ranks: all call (K exchanges)."""
        a, b, _ = self.shares
        begun = engine.copy(S, "S0", None if b == 1 else engine.constant(b)) if b else None
        left = engine.times(a, left)
        for _ in range(self.hops):
            engine.activate(S, right)
            S = engine.spread(S, own=self.settings.own_loops)
            engine.activate(S, left, add=begun)
        engine.free(begun)
        return S

    def _in_turn(self, engine: Engine, D: Rows, left: Array | None, right: Array | None) -> Rows:
        """In the place of D the gradient by S_0, through one product after the other; left and right as of
        `_propagate`, the factors of P^T. Ranks: all call (K exchanges)."""
        a, b, _ = self.shares
        right, begun = engine.times(a, right), None
        for _ in range(self.hops):
            if b and begun is None:
                begun = engine.copy(D, "bD", None if b == 1 else engine.constant(b))
            elif b:
                engine.add_into(begun, D, b)
            engine.activate(D, right)
            D = engine.spread(D, own=self.settings.own_loops)
            engine.activate(D, left)
        if begun is not None:
            engine.add_into(D, begun)
        engine.free(begun)
        return D


class APPNP(Hops):
    """Z = alpha (I - (1 - alpha) P)^-1 H W, by K steps of a power iteration.

    Source    Gasteiger et al. 2019 (predict then propagate), eq. 5: a = 1 - alpha, b = alpha, c = 1; below it
              layers that hear no neighbours
    Differs   Dropout is of what layers hear; the authors' program drops entries of P, too.
    """

    reads = ("hops", "alpha")
    usual = 10

    @property
    def shares(self) -> tuple[float, float, float]:
        """1 - alpha, alpha, 1."""
        alpha = float(np.float32(self.settings.alpha))
        return 1 - alpha, alpha, 1.0


class LightGCN(Hops):
    """Z = (I + P + ... + P^K) H W / (K + 1), P without own loops.

    Source    He et al. 2020, eqs. 7 and 8: a = b = 1, c = 1 / (K + 1); W has a row for each node where
              features are one column for each
    """

    leaves = ("heads", "first_product", "own_loops")
    usual = 3

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        super().__init__(name, spec, f_in, f_out, replace(settings, own_loops=False))

    @property
    def shares(self) -> tuple[float, float, float]:
        """1, 1, 1 / (K + 1)."""
        return 1.0, 1.0, 1 / (self.hops + 1)


class SGC(Hops):
    """Z = P^K H W.

    Source    Wu et al. 2019, eq. 8: a = c = 1, b = 0
    First     Of dense features P^K X is made once and kept, where no dropout changes them; an epoch then has
              no product with A and no exchange.
    """

    leaves = ("heads",)

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z; see Convolution.forward."""
        if self.order(H) == "weights":
            return super().forward(engine, H)
        return engine.dense(engine.product_of(H, self._kind, self.hops), engine.params[f"{self.name}.W"])

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = dZ; see Convolution.backward."""
        if self.order(H) == "weights":
            return super().backward(engine, H, D)
        engine.gram(f"{self.name}.W", engine.product_of(H, self._kind, self.hops), D)
        engine.free(D)
        return None

    def order(self, H: Rows | Features | None) -> str:
        """ "cached" of features that do not change, else "weights"."""
        asked = self.settings.first_product
        kept = asked == "cached" or (asked == "auto" and not self.settings.input_dropout)
        return "cached" if kept and isinstance(H, DenseFeatures) else "weights"
