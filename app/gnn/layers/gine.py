"""Graph isomorphism network whose messages read the features of edges (GINE)."""

from typing import Any

from app.gnn.edges import EdgeInputs
from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.layers.gin import GIN
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.programs import Rows

Array = Any
COLUMNS = 64  # of rows that travel at a time


class GINE(GIN):
    """Z = relu(Y W1 + b1) W2, Y_v = (1 + eps) S_v + sum over neighbours u of relu(S_u + E_uv W_e + b_e).

    Source    Hu et al. 2020, "Strategies for pre-training graph neural networks", as OGB's networks and PyG's
              GINEConv have it: each message passes relu. eps is learned (Xu et al. 2019); a linear map of
              each layer's own brings edge features to the width of S
    Forward   S = H; of features (the first layer) S = H W_in, h columns wide
              Q_uv = E_uv W_e + b_e     Y as above     U = relu(Y W1 + b1)     Z = U W2
    Shapes    H, S, Y [n_own, f] (features: H [n_own, f_in], S, Y [n_own, h])   E [entries, k]   W_e [k, f]
              b_e [1, f]   W_in [f_in, h]   W1 [f, h]   W2 [h, f_out]   b1 [1, h]   eps [1, 1]
    Backward  D = dZ comes in; R_uv = 1 where S_u + Q_uv > 0, else 0, by elements:
              dW2 = U^T D     G = (D W2^T) * [U > 0]     db1 = sum of the rows of G
              dW1 = Y^T G     dY = G W1^T                deps = <S, dY>
              dQ_uv = R_uv * dY_v        dS_u = (1 + eps) dY_u + sum over the v that hear u of dQ_uv
              dW_e = sum over all u, v of E_uv^T dQ_uv   db_e = sum of all dQ_uv      dH = dS
              features   dW_in = H^T dS, no dH; rows in their place (Model.forward)   dH = dS W_in^T
              dQ is made on the rank of u, from its own S_u, its rows of E by A^T, and dY_v that travels: no
              entry is sent. The sums over u, v are chains over the entries of a row block of A^T in order.
    Ranks     rows partitioned, weights replicated; 1 exchange forward, 1 backward of f columns, addends of
              all parameters; a rank holds E for the entries of its rows of A, of a directed graph for those
              of A^T too. Messages and their gradients are made column by column: rows travel COLUMNS at a
              time, the next ones while some are worked on, and the rows of other ranks are never held whole.
              Not with staged broadcasts: the chain of dW_e goes through whole rows of A^T.
    Differs   Where the input are features, dense or sparse, they are multiplied by weights W_in first:
              messages are of S, h columns wide, whatever the features are
    """

    reads_edges = True
    leaves = ("heads", "normalisation", "own_loops", "first_product", "edge_weights")

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        super().__init__(name, spec, f_in, f_out, settings)
        self.W_in, self.W_edge, self.edge_bias = (f"{name}.{n}" for n in ("W_in", "W_edge", "edge_bias"))
        self.width = self.makes = self.hidden if settings.first else f_in
        self.pieces = tuple(min(COLUMNS, self.width - lo) for lo in range(0, self.width, COLUMNS))
        self.meets_input = (self.W_in,) if settings.first else (self.W1,)

    def shapes(self) -> Shapes:
        """W_in of features, W1, W2, W_edge, eps and, with biases, b1 and edge_bias."""
        settings, shapes = self.settings, {self.W_in: (self.f_in, self.width)} if self.settings.first else {}
        shapes |= {self.W1: (self.width, self.hidden), self.W2: (self.hidden, self.f_out)}
        shapes[self.W_edge] = settings.edge_width, self.width
        if settings.bias:
            shapes |= {self.b1: (1, self.hidden), self.edge_bias: (1, self.width)}
        return {**shapes, self.eps: (1, 1)}

    def order(self, H: Rows | Features | None) -> str:
        """ "weights" of features, "product" of any rows (or None): messages are as wide as they are."""
        return "weights" if isinstance(H, Features) else "product"

    # ---- forward ----------------------------------------------------------------------------------------

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z; see Convolution.forward. Keeps Y, U and, of the first layer, S."""
        S = engine.dense(H, engine.params[self.W_in], name="S") if self.settings.first else H
        Y = self._messages(engine, S)
        U = self._hidden(engine, engine.dense(Y, engine.params[self.W1], name="U"))
        self._kept = (Y, U) if S is H else (Y, U, S)
        return engine.dense(U, engine.params[self.W2], name="UW")

    def _messages(self, engine: Engine, S: Rows) -> Rows:
        """New rows Y."""
        device, own, Y = engine.device, engine.params[self.eps] + 1, engine.take("Y", self.width)

        def work(edges: EdgeInputs) -> None:
            def add(X: Array, first: int) -> None:
                some = slice(first, first + X.shape[1])
                device.edge_add(edges.heard, *self._edge_weights(engine, some), X, Y.array[:, some])

            device.xp.multiply(S.array, own, out=Y.array)
            engine.neighbours_of.columns(S.array, self.pieces, add)

        engine.messages("messages", [S], [Y], work, self.pieces)
        return Y

    def _edge_weights(self, engine: Engine, some: slice) -> tuple[Array, Array | None]:
        """Columns of W_e, and of b_e where there are biases."""
        bias = engine.params[self.edge_bias].reshape(-1)[some] if self.settings.bias else None
        return engine.params[self.W_edge][:, some], bias

    # ---- backward ---------------------------------------------------------------------------------------

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = dZ; see Convolution.backward."""
        Y, U, *made = self._kept
        self._kept = ()
        S = made[0] if made else H
        dY = self._perceptron_back(engine, Y, U, D)
        engine.dot(self.eps, S, dY)
        dS = self._messages_back(engine, S, dY)
        engine.free(dY)
        if not made:
            return dS
        engine.gram(self.W_in, H, dS)
        back = [(dS, engine.transposed(self.W_in))]
        dH = engine.dense_through(back, H) if isinstance(H, Rows) else None
        engine.free(S, dS)
        return dH

    def _perceptron_back(self, engine: Engine, Y: Rows, U: Rows, D: Rows) -> Rows:
        """dY; the gradients of W1, b1 and W2 go to the engine. Frees Y, U and D."""
        engine.gram(self.W2, U, D)
        G = engine.dense_back(D, engine.params[self.W2], name="G")
        engine.free(D)
        self._hidden_back(engine, G, U)
        if self.settings.bias:
            engine.column_sums(self.b1, G)
        engine.gram(self.W1, Y, G)
        engine.free(Y)
        dY = engine.dense_back(G, engine.params[self.W1], name="dY")
        engine.free(G)
        return dY

    def _messages_back(self, engine: Engine, S: Rows, dY: Rows) -> Rows:
        """New rows dS; the gradients of W_e and b_e go to the engine."""
        device, own, dS = engine.device, engine.params[self.eps] + 1, engine.take("dS", self.width)
        names = (self.W_edge, self.edge_bias) if self.settings.bias else (self.W_edge,)

        def work(edges: EdgeInputs) -> None:
            sums: list[Array] = []

            def add(D_ext: Array, first: int) -> None:
                some = slice(first, first + D_ext.shape[1])
                rows, edge = (S.array[:, some], D_ext, dS.array[:, some]), self._edge_weights(engine, some)
                sums.append(device.edge_back(edges.hearing, *edge, *rows, engine.starts[0]))

            device.xp.multiply(dY.array, own, out=dS.array)
            engine.adjoint.columns(dY.array, self.pieces, add)
            engine.give_addends(names, side_by_side(device.xp, sums, edges.hearing.width))

        engine.messages("messages_back", [S, dY], [dS], work, self.pieces)
        return dS


def side_by_side(xp: Any, sums: list[Array], width: int) -> Array:
    """[blocks, (width+1) f] of the same of some columns each (EdgeSums.edge_back)."""
    if len(sums) == 1:
        return sums[0]
    parts = [each.reshape(len(each), width + 1, -1) for each in sums]
    return xp.concatenate(parts, axis=2).reshape(len(sums[0]), -1)
