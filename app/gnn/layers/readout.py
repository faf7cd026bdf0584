"""Readout: what a network says of a whole graph, from the rows of its nodes."""

from typing import Any

from app.gnn.engine import Engine
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.programs import Rows

Array = Any


class Readout:
    """Z = s * R (H W): the row of a graph is the sum, or the mean, of its nodes' rows times weights.

    Source    Xu et al. 2019, section 2 and eq. 4.2 (READOUT; sums tell more multisets apart than means)
    Forward   R holds a 1 for each graph and each of its nodes (graphs/members.py); s = 1 for sums, 1/size for
              means, 0 for a graph without nodes
              S = H W     Z = s * (R S)     weights first: Z has as many columns as there are classes
    Shapes    H [n_own, f_in]   W [f_in, classes]   S, Z [n_own, classes], of which the graphs' rows count
    Backward  D = s * dZ, 0 but in the rows of training graphs:
              dS = R^T D     dW = H^T dS     dH = dS W^T
    Ranks     rows partitioned, W replicated; 1 exchange forward, 1 backward, addends of dW
    Differs   of GIN, which reads out every layer; here the last one alone.
    """

    row_by_row = True
    leaves = ("heads", "normalisation", "own_loops", "edge_weights")
    scale = ""

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        self.weights, self.f_in, self.f_out = f"{name}.W", f_in, f_out
        self.meets_input = (self.weights,)

    def shapes(self) -> Shapes:
        """W [f_in, f_out]."""
        return {self.weights: (self.f_in, self.f_out)}

    def forward(self, engine: Engine, H: Rows) -> Rows:
        """R (H W); see Convolution.forward."""
        S = engine.dense(H, engine.params[self.weights])
        Z = engine.pool(S)
        engine.free(S)
        return Z

    def output_scale(self, engine: Engine, H: Rows) -> Array | None:
        """[n_own] one over the sizes of graphs, of means."""
        return engine.pool_scale(self.scale) if self.scale else None

    def backward(self, engine: Engine, H: Rows, D: Rows) -> Rows:
        """The gradient by H from D = s * dZ; see Convolution.backward."""
        dS = engine.pool(D)
        engine.free(D)
        engine.gram(self.weights, H, dS)
        dH = engine.dense_through([(dS, engine.transposed(self.weights))], H)
        engine.free(dS)
        return dH

    def release(self, engine: Engine) -> None:
        """Nothing is kept."""

    def embed(self, engine: Engine, H: Rows) -> Rows:
        """s * R H, what is known of a graph before the weights; frees H."""
        P = engine.pool(H)
        engine.free(H)
        if self.scale:
            engine.activate(P, engine.pool_scale(self.scale))
        return P


class MeanReadout(Readout):
    """The mean over the nodes of a graph; see Readout."""

    scale = "mean"
