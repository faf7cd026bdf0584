"""Graph isomorphism network (Xu et al. 2019)."""

from typing import Any

from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.layers.layer import LayerSpec, Settings, Shapes, product_order
from app.gnn.programs import Rows

Array = Any


class GIN:
    """Z = relu(Y W1 + b1) W2, Y = (1 + eps) H + A H: a perceptron of two layers on sums over neighbours.

    Source    Xu et al. 2019, eq. 4.1, eps learned (GIN-eps), a perceptron of one hidden layer of h columns,
              as Z has (of a last layer that predicts numbers gnn.hidden, if more); its last bias and the
              activation are those of the block
    Forward   B = A + (1 + eps) I
              weights first   S = H W1   U = relu(B S + b1)       Z = U W2
              product first   Y = B H    U = relu(Y W1 + b1)      Z = U W2      where H is narrower than Z
    Shapes    H, Y [n_own, f_in]   W1 [f_in, h]   W2 [h, f_out]   b1 [1, h]   eps [1, 1]
    Backward  D = dZ comes in; dB/deps = I, and of an undirected graph B^T = B:
              dW2 = U^T D     G = (D W2^T) * [U > 0]     db1 = sum of the rows of G
              weights first   deps = <S, G>    dS = B^T G  dW1 = H^T dS    dH = dS W1^T
              product first   dW1 = Y^T G      dY = G W1^T     deps = <H, dY>     dH = B^T dY
              for features (no dH, hence no dY)   deps = <H W1, G>
    Ranks     rows partitioned, weights replicated; 1 exchange forward, 1 backward (none for features whose
              product comes first), addends of all parameters
    First     Dense features are multiplied first where that pays; where nothing is dropped from them A H is
              kept, and Y = (1 + eps) H + A H made of it in every epoch (layer.py: product_order).
    """

    row_by_row = True
    leaves = ("heads", "normalisation", "own_loops")

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        self.name, self.f_in, self.f_out, self.settings = name, f_in, f_out, settings
        self.hidden = self.makes = settings.hidden or f_out
        self.W1, self.W2, self.b1, self.eps = (f"{name}.{n}" for n in ("W1", "W2", "hidden_bias", "eps"))
        self.meets_input = (self.W1,)
        self._kept: tuple[Rows, ...] = ()

    def shapes(self) -> Shapes:
        """W1, W2, eps and, with biases, b1."""
        shapes: Shapes = {self.W1: (self.f_in, self.hidden), self.W2: (self.hidden, self.f_out)}
        if self.settings.bias:
            shapes[self.b1] = (1, self.hidden)
        return {**shapes, self.eps: (1, 1)}

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z; see Convolution.forward. Keeps S or Y, and U."""
        W1, own = engine.params[self.W1], engine.params[self.eps] + 1
        order = self.order(H)
        if order == "weights":
            kept = engine.dense(H, W1)
            U = engine.neighbours(kept, own=True, name="U", factor=own)
        else:
            if order == "cached":
                kept = engine.combine(H, own, engine.product_of(H, "sum"), name="BH")
            else:
                kept = engine.neighbours(H, own=True, name="BH", factor=own)
            U = engine.dense(kept, W1, name="U")
        U = self._hidden(engine, U)
        self._kept = kept, U
        return engine.dense(U, engine.params[self.W2], name="UW")

    def _hidden(self, engine: Engine, U: Rows) -> Rows:
        """relu(U + b1), in place."""
        engine.activate(U, bias=self._bias(engine), relu=True)
        return U

    def _hidden_back(self, engine: Engine, G: Rows, U: Rows) -> None:
        """In place, the gradient through `_hidden`, which gave U; frees U."""
        engine.deactivate(G, U, relu=True)
        engine.free(U)

    def _bias(self, engine: Engine) -> Array | None:
        return engine.params[self.b1] if self.settings.bias else None

    def output_scale(self, engine: Engine, H: Rows | Features) -> Array | None:
        """None: Z is whole."""
        return None

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = dZ; see Convolution.backward."""
        kept, U = self._kept
        self._kept = ()
        engine.gram(self.W2, U, D)
        G = engine.dense_back(D, engine.params[self.W2], name="G")
        engine.free(D)
        self._hidden_back(engine, G, U)
        if self.settings.bias:
            engine.column_sums(self.b1, G)
        if self.order(H) == "weights":
            return self._weights_back(engine, H, kept, G)
        return self._product_back(engine, H, kept, G)

    def _weights_back(self, engine: Engine, H: Rows | Features, S: Rows, G: Rows) -> Rows | None:
        """deps, dW1 and dH where the weights came first; frees S and G."""
        engine.dot(self.eps, S, G)
        engine.free(S)
        dS = engine.spread(G, own=True, factor=engine.params[self.eps] + 1)
        engine.gram(self.W1, H, dS)
        back = [(dS, engine.transposed(self.W1))]
        dH = engine.dense_through(back, H) if isinstance(H, Rows) else None
        engine.free(dS)
        return dH

    def _product_back(self, engine: Engine, H: Rows | Features, Y: Rows, G: Rows) -> Rows | None:
        """deps, dW1 and dH where the product came first; frees Y and G."""
        W1 = engine.params[self.W1]
        engine.gram(self.W1, Y, G)
        engine.free(Y)
        if not isinstance(H, Rows):
            S = engine.dense(H, W1)
            engine.dot(self.eps, S, G)
            engine.free(S, G)
            return None
        dY = engine.dense_back(G, W1, name="dY")
        engine.free(G)
        engine.dot(self.eps, H, dY)
        return engine.spread(dY, own=True, factor=engine.params[self.eps] + 1)

    def release(self, engine: Engine) -> None:
        """Free S or Y, and U."""
        engine.free(*self._kept)
        self._kept = ()

    def order(self, H: Rows | Features | None) -> str:
        """ "cached", "product" (first) or "weights" (first); see layer.py."""
        return product_order(H, self.f_in, self.hidden, self.settings)
