"""LayerEmbedding: the layers of node classification as the embedding of a Q-network."""

from typing import Any

from app.gnn.block import Block
from app.gnn.features import DenseFeatures
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.parameters import Parameters, constants_of
from app.gnn.programs import Rows
from app.gnn.state_engine import StateEngine
from app.gnn.structure2vec import NodeInputs
from app.sparse.batch import StateBatch

Array = Any


class LayerEmbedding:
    """`layers` layers of one kind, each `dimension` wide with relu, on the residual graphs of a batch.

    Offers what Structure2Vec does, for rl/qnet.py. Nodes that are not alive have no embedding, also where
    structure2vec gives them one (features = "paper").

    first_rows, later_rows   what the model of time and memory reckons with: those of structure2vec with own
                             weights, about as much work as these layers
    """

    def __init__(self, kind: str, layers: int, dimension: int, features: int) -> None:
        self.kind, self.layers, self.K, self.F = kind, layers, dimension, features
        self.first_rows, self.later_rows = features, features + 2 * dimension

    def _blocks(self) -> list[Block]:
        """Fresh layers, which keep what their backward pass needs."""
        settings = Settings(
            input_dropout=True
        )  # features differ from state to state: nothing is kept of them
        widths = [self.F] + [self.K] * self.layers
        return [
            Block(f"embed.layer{i + 1}", LayerSpec(self.kind, self.K), widths[i], self.K, settings, i == 0)
            for i in range(self.layers)
        ]

    def shapes(self) -> Shapes:
        """Parameter shapes by name."""
        return {name: shape for block in self._blocks() for name, shape in block.shapes().items()}

    def constants(self) -> dict[str, float]:
        """What parameters that are not drawn begin with, by name."""
        return constants_of(self.shapes())

    def embed(
        self, params: Parameters, batch: StateBatch, inputs: NodeInputs, *, pool: bool, keep: bool = True
    ) -> tuple[Array, Any, Array | None]:
        """H_own [rows, K], what backward needs (unless not `keep`) and, where asked, the sums of row blocks.

        Ranks   all call
        """
        device, blocks = batch.device, self._blocks()
        engine = StateEngine(params, batch, inputs.alive_own)
        x = device.xp.ascontiguousarray(inputs.x_own.rows())
        device.activate(x, inputs.alive_own)
        H: Any = DenseFeatures(device, x)
        for block in blocks:
            H = block.forward(engine, H, None, keep)
        sums = device.fold_members(batch.members, H.array) if pool else None
        return H.array, (engine, blocks), sums

    def backward(
        self, params: Parameters, batch: StateBatch, inputs: NodeInputs, saved: Any, dZ_own: Array
    ) -> dict[str, Array]:
        """Gradient addends [owned blocks, size] by parameter name.

        dZ_own   [rows, K], dH * [H > 0] of the last layer. Ranks: all call
        """
        engine, blocks = saved
        D: Rows | None = Rows("dH", self.K, 0, dZ_own)
        for block in reversed(blocks):
            D = block.backward(engine, D)
        return engine.parts

    def finish(self, params: Parameters, gradient: dict[str, Array]) -> dict[str, Array]:
        """Summed addends are the gradient."""
        return gradient
