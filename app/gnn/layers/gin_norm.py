"""Graph isomorphism network whose perceptron normalises what its hidden layer hears."""

from typing import Any

from app.gnn.engine import Engine
from app.gnn.layers.gin import GIN
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.programs import Rows

Array = Any


class NormedGIN(GIN):
    """Z = relu(N) W2, N = gamma * (V - mean) / deviation + beta of each row of V = Y W1 + b1, Y as in GIN.

    Source    Xu et al. 2019, section 7, normalise every hidden layer over a batch (batch normalisation); here
              rows are normalised (Ba, Kiros and Hinton 2016), in the last layer too
    Why       Y is a sum over neighbours, so its rows are as large as the degrees differ. Rows of a hub drown
              all others in the gradients, and units die. A normalised row does not tell its length.
    Shapes    V, N [n_own, h]     hidden_gamma, hidden_beta [1, h]; all else as in GIN
    Backward  dN = (D W2^T) * [N > 0]; G = dV, dgamma, dbeta by Elementwise.normalise_rows_back, which needs
              V; from G on as in GIN
    Ranks     as GIN: a row is normalised on one rank
    Differs   Batch normalisation would need sums over all nodes in the forward pass, and averages of them for
              graphs that were not trained on.
    """

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        super().__init__(name, spec, f_in, f_out, settings)
        self.norm = f"{name}.hidden_gamma", f"{name}.hidden_beta"
        self._normed: tuple[Rows, Any] | None = None

    def shapes(self) -> Shapes:
        """GIN's, gamma and beta."""
        return {**super().shapes(), **dict.fromkeys(self.norm, (1, self.hidden))}

    def _hidden(self, engine: Engine, U: Rows) -> Rows:
        """relu(N), new rows; keeps V, which U becomes."""
        engine.activate(U, bias=self._bias(engine))
        N, kept = engine.normalise(U, *(engine.params[name] for name in self.norm))
        engine.activate(N, relu=True)
        self._normed = U, kept
        return N

    def _hidden_back(self, engine: Engine, G: Rows, U: Rows) -> None:
        """In place, the gradient by V from that by relu(N) = U; frees U and V."""
        super()._hidden_back(engine, G, U)
        V, kept = self._normed
        self._normed = None
        engine.normalise_back(G, V, kept, engine.params[self.norm[0]], self.norm)
        engine.free(V)

    def release(self, engine: Engine) -> None:
        """Free S or Y, U and V."""
        super().release(engine)
        if self._normed is not None:
            engine.free(self._normed[0])
            self._normed = None
