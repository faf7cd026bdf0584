"""Layers whose products with the adjacency matrix follow each other without weights between them."""

from dataclasses import replace
from typing import Any

import numpy as np

from app.gnn.engine import Engine
from app.gnn.features import DenseFeatures, Features
from app.gnn.layers.gcn import GCN
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
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
        return self._through(engine, H, dS)

    def _through(self, engine: Engine, H: Rows | Features, dS: Rows) -> Rows | None:
        """The gradients by W and, where H has one, by H, from that by S = H W, which is freed."""
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


class GPRGNN(Hops):
    """Z = gamma_0 S_0 + gamma_1 P S_0 + ... + gamma_K P^K S_0, S_0 = H W: a polynomial of P that is learned.

    Source    Chien et al. 2021 (GPR-GNN), section 3; below it layers that hear no neighbours
    Weights   gamma_k, of either sign, begin as those of APPNP: alpha (1 - alpha)^k, and (1 - alpha)^K for
              k = K (the paper's initialisation by personalised PageRank); they do not decay
    Forward   Horner's rule: U_K = gamma_K S_0     U_k = s * (A+I) (t * U_{k+1}) + gamma_k S_0     Z = U_0
    Shapes    H [n_own, f_in]   W [f_in, f_out]   S_0, U_k, Z [n_own, f_out]   gamma [1, K+1]
    Backward  D = dZ comes in. dU_0 = D     dU_{k+1} = t * (A+I)^T (s * dU_k)
              dgamma_k = <S_0, dU_k>        dS_0 = sum over k of gamma_k dU_k
              dW = H^T dS_0     dH = dS_0 W^T
              S_0 alone is kept, as <P^k S_0, D> = <S_0, (P^T)^k D>. Every product's own error is s * dU_k, so
              that it is the same where these are asked for (Engine.traces).
    Ranks     rows partitioned, W and gamma replicated; K exchanges forward, K backward, addends of dW and of
              the K + 1 products of rows
    Differs   The authors' program drops entries of S_0 before it is propagated; here dropout is of what
              layers hear.
    """

    reads = ("hops", "alpha")
    usual = 10

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        super().__init__(name, spec, f_in, f_out, settings)
        self.gamma = f"{name}.hop_weights"

    def shapes(self) -> Shapes:
        """W [f_in, f_out] and gamma [1, K+1]."""
        return {**super().shapes(), self.gamma: (1, self.hops + 1)}

    def begins(self) -> dict[str, np.ndarray]:
        """gamma [1, K+1] before it has learned."""
        alpha = float(np.float32(self.settings.alpha))
        shares = [alpha * (1 - alpha) ** k for k in range(self.hops)] + [(1 - alpha) ** self.hops]
        return {self.gamma: np.array([shares], dtype=np.float32)}

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z; see Convolution.forward. Keeps S_0."""
        self._kept = S0 = engine.dense(H, engine.params[f"{self.name}.W"], name="S0")
        U, T = engine.take("U", S0.width), engine.take("gamma S0", S0.width)
        self._share(engine, S0, self.hops, U)
        left, right = engine.scale_of(self._kind), self._input_scale(engine)
        for k in range(self.hops - 1, -1, -1):
            engine.activate(U, right)
            U = engine.spread(U, own=self.settings.own_loops)
            self._share(engine, S0, k, T)
            engine.activate(U, left, add=T)
        engine.free(T)
        return U

    def _share(self, engine: Engine, X: Rows, k: int, out: Rows) -> None:
        """out = gamma_k X."""
        share = engine.params[self.gamma][:, k : k + 1]
        work = lambda: engine.device.xp.multiply(X.array, share, out=out.array)  # noqa: E731
        engine.apply("elementwise", "share", [X], [out], work)

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = dZ; see Convolution.backward."""
        S0, self._kept = self._kept, None
        dS, T = engine.take("dS0", D.width), engine.take("gamma dU", D.width)
        self._share(engine, D, 0, dS)
        engine.dot(self.gamma, S0, D)
        left, right = self._input_scale(engine), engine.scale_of(self._kind)
        for k in range(1, self.hops + 1):
            engine.activate(D, right)
            D = engine.spread(D, own=self.settings.own_loops)
            engine.activate(D, left)
            engine.dot(self.gamma, S0, D, k)
            self._share(engine, D, k, T)
            engine.add_into(dS, T)
        engine.free(S0, T, D)
        return self._through(engine, H, dS)


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
