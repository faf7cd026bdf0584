"""Graph convolution (Kipf and Welling 2017, eq. 2; MG-GCN, eqs. 5-11)."""

from typing import Any

from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.layers.layer import LayerSpec, Settings, Shapes, product_order
from app.gnn.programs import Rows

Array = Any


class GCN:
    """Z = P H W with the normalised adjacency matrix P.

    A         A_ij is the weight of the edge by which i hears j: MG-GCN's A^T (eq. 1) where a node hears the
              tails of the edges into it (graph.neighbours = "in")
    Source    Kipf and Welling 2017, eq. 2: P = D^-1/2 (A+I) D^-1/2, D the row sums of A+I ("symmetric"); of a
              directed graph D_r^-1/2 (A+I) D_c^-1/2 with the row and the column sums, which keeps the norm
              of P at most one
              MG-GCN, eq. 2: divided by in-degrees, which in the order of the product Z = P H W is
              P = D_r^-1 (A+I) ("in_degree"); the paper's matrix has no own loops (own_loops = false):
              A in place of A+I here and below, factors of nodes without neighbours zero
    Forward   Both are P = diag(s) (A+I) diag(t) with s = D_r^-1/2 and t = D_c^-1/2, or s = D_r^-1 and t = 1.
              weights first   S = t * (H W)       Y = (A+I) S      Z = s * Y
              product first   Y = (A+I) (t * H)   Z = s * (Y W)    where H is narrower than Z
    Shapes    H [n_own, f_in]   W [f_in, f_out]   S, Z [n_own, f_out]   Y as S or as H
    Backward  D = s * dZ comes in; of an undirected graph (A+I)^T = A+I:
              weights first   dS = t * (A+I)^T D   dW = H^T dS     dH = dS W^T
              product first   dW = Y^T D           dH = t * (A+I)^T (D W^T)
    Ranks     rows partitioned, W replicated; 1 exchange forward, 1 backward (none for features whose product
              comes first), addends of dW
    First     The features need no gradient. Dense ones are multiplied first where their product can be kept
              ("cached": exact, as long as no input dropout changes them) or where it is at most as wide as
              the two products it saves ("live"). MG-GCN saves the backward product of a first layer that
              does not widen (section 4.4) by the identity in place of P^T: dS = dZ, which is not the
              gradient; first_product = "mg_gcn" does that.
    """

    row_by_row = True
    leaves = ("heads",)

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        self.name, self.f_in, self.f_out, self.settings = name, f_in, f_out, settings
        self.meets_input = (f"{name}.W",)
        self._kept: Rows | None = None

    def shapes(self) -> Shapes:
        """W [f_in, f_out]."""
        return {f"{self.name}.W": (self.f_in, self.f_out)}

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z without its factors s; see Convolution.forward."""
        W, t = engine.params[f"{self.name}.W"], self._input_scale(engine)
        order = self.order(H)
        if order == "cached":
            return engine.dense(engine.product_of(H, self._kind), W)
        if order == "product":
            scaled = H if t is None else engine.copy(H, "tH", t)
            if scaled is H:
                self._kept = engine.neighbours(H, own=self.settings.own_loops, name="AH")
            else:
                self._kept = engine.spread(scaled, own=self.settings.own_loops)
            return engine.dense(self._kept, W)
        Z = engine.spread(engine.dense(H, W, t), own=self.settings.own_loops)
        if self._shortcut(H):
            engine.activate(Z, engine.scale_of(self._kind))
        return Z

    def output_scale(self, engine: Engine, H: Rows | Features) -> Array | None:
        """s; none where the product is kept whole, or where the gradient does without P and Z has it."""
        if self.order(H) == "cached" or self._shortcut(H):
            return None
        return engine.scale_of(self._kind)

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = s * dZ; see Convolution.backward."""
        name, W = f"{self.name}.W", engine.params[f"{self.name}.W"]
        t, order, first = self._input_scale(engine), self.order(H), not isinstance(H, Rows)
        if self._shortcut(H):
            engine.gram(name, H, D)
            engine.free(D)
            return None
        if order == "cached":
            engine.gram(name, engine.product_of(H, self._kind), D)
            engine.free(D)
            return None
        if order == "product":
            engine.gram(name, self._kept, D)
            self.release(engine)
            if first:
                engine.free(D)
                return None
            G = engine.dense_back(D, W)
            engine.free(D)
            dH = engine.spread(G, own=self.settings.own_loops)
            engine.activate(dH, t)
            return dH
        dS = engine.spread(D, own=self.settings.own_loops)
        engine.activate(dS, t)
        engine.gram(name, H, dS)
        dH = None if first else engine.dense_through([(dS, engine.transposed(name))], H)
        engine.free(dS)
        return dH

    def release(self, engine: Engine) -> None:
        """Free Y where the product came first."""
        engine.free(self._kept)
        self._kept = None

    def _input_scale(self, engine: Engine) -> Array | None:
        """t."""
        symmetric = self.settings.normalisation == "symmetric"
        return engine.scale_of(self._kind, columns=True) if symmetric else None

    @property
    def _kind(self) -> str:
        """Which of Neighbours.scale the factors s are."""
        kind = self.settings.normalisation
        if self.settings.own_loops:
            return kind
        return "symmetric_alone" if kind == "symmetric" else "mean"

    def _shortcut(self, H: Rows | Features) -> bool:
        """Whether the gradient is MG-GCN's, with the identity in place of P^T."""
        asked = not isinstance(H, Rows) and self.settings.first_product == "mg_gcn"
        return asked and self.order(H) == "weights"

    def order(self, H: Rows | Features | None) -> str:
        """ "cached", "product" (first) or "weights" (first); see layer.py."""
        return product_order(H, self.f_in, self.f_out, self.settings)
