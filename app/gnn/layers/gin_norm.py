"""Graph isomorphism networks whose perceptrons normalise what their hidden layers hear."""

from typing import Any

from app.gnn.engine import Engine
from app.gnn.layers.gin import GIN
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.norms import BatchNorm, LayerNorm
from app.gnn.programs import Rows

Array = Any


class NormedGIN(GIN):
    """Z = relu(N) W2, N = gamma * (V - mean) / deviation + beta of each row of V = Y W1 + b1, Y as in GIN.

    Source    Xu et al. 2019, section 7, normalise every hidden layer over a batch; here rows are normalised,
              in the last layer too
    Why       Y is a sum over neighbours, so its rows are as large as the degrees differ. Rows of a hub drown
              all others in the gradients, and units die. A normalised row does not tell its length.
    Shapes    V, N [n_own, h]     hidden_gamma, hidden_beta [1, h]; all else as in GIN
    Backward  dN = (D W2^T) * [N > 0]; G = dV, dgamma, dbeta as in norms.py; from G on as in GIN
    Ranks     as GIN and its norm
    """

    norm_kind: type = LayerNorm

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        super().__init__(name, spec, f_in, f_out, settings)
        self.norm: LayerNorm | BatchNorm = self.norm_kind(f"{name}.hidden_", self.hidden)
        self.row_by_row = self.norm.row_by_row

    def shapes(self) -> Shapes:
        """GIN's, and those of its norm."""
        return super().shapes() | self.norm.shapes()

    def _hidden(self, engine: Engine, U: Rows) -> Rows:
        """relu(N)."""
        engine.activate(U, bias=self._bias(engine))
        N = self.norm.forward(engine, U, engine.training)
        engine.activate(N, relu=True)
        return N

    def _hidden_back(self, engine: Engine, G: Rows, U: Rows) -> None:
        """In place, the gradient by V from that by relu(N) = U; frees U and V."""
        super()._hidden_back(engine, G, U)
        self.norm.backward(engine, G)


class BatchNormedGIN(NormedGIN):
    """NormedGIN whose hidden columns are normalised over all nodes, as Xu et al. 2019, section 7, do."""

    norm_kind = BatchNorm
