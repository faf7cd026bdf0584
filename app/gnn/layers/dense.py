"""A layer that hears no neighbours: what features say without the graph, and the ends of deep networks."""

from typing import Any

from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.programs import Rows

Array = Any


class Dense:
    """Z = H W, of each node alone; a model of such layers is a multilayer perceptron.

    Shapes    H [n_own, f_in]   W [f_in, f_out]   Z [n_own, f_out]
    Backward  D = dZ comes in: dW = H^T D     dH = D W^T
    Ranks     rows partitioned, W replicated; no exchange, addends of dW
    """

    row_by_row = True
    leaves = ("heads", "normalisation", "own_loops", "edge_weights", "first_product")
    makes = 0  # columns that a product with A reads

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        self.W, self.f_in, self.f_out = f"{name}.W", f_in, f_out
        self.meets_input = (self.W,)

    def shapes(self) -> Shapes:
        """W [f_in, f_out]."""
        return {self.W: (self.f_in, self.f_out)}

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z; see Convolution.forward."""
        return engine.dense(H, engine.params[self.W])

    def output_scale(self, engine: Engine, H: Rows | Features) -> Array | None:
        """None: Z is whole."""
        return None

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = dZ; see Convolution.backward."""
        engine.gram(self.W, H, D)
        dH = engine.dense_through([(D, engine.transposed(self.W))], H) if isinstance(H, Rows) else None
        engine.free(D)
        return dH

    def release(self, engine: Engine) -> None:
        """Nothing is kept."""
