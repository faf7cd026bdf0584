"""Graph attention network whose scores read the features of edges (Velickovic et al. 2018, as PyG has it)."""

from typing import Any

import numpy as np

from app.gnn.edges import EdgeInputs
from app.gnn.engine import Engine
from app.gnn.layers.gat import GAT
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.programs import Rows

Array = Any


class EdgeGAT(GAT):
    """GAT whose scores read a row E_ij of numbers or categories of each edge: layers/gat.py with another r.

    Source    PyG's GATConv with edge_dim: e_ij = LeakyReLU(a1 S_i + a2 S_j + a3 (E_ij W_e)), by heads, W_e
              and a3 the layer's own; edges have a part in scores alone, and the loop of a node has the mean
              of the features of the edges that it hears
    Forward   B = W_e a3 (by heads)     z_ij = E_ij B     r_ij = r_j + z_ij stands for r_j of gat.py, where
              all else is made of l_i + r_ij: the largest e_ij is that of the largest r_ij, as there
    Shapes    E [entries, k], and a row for each loop   W_e [k, h k']   a3 [h k', 1]   B [k, h]   z_ij [h]
    Backward  dz_ij = alpha_ij (D_i S_j - c_i) slope_ij, whose sum over i is dr_j and over j is dl_i
              dB = sum over all i, j of E_ij^T dz_ij     dW_e = dB a3^T     da3 = W_e^T dB (both by heads)
              dz is made on the rank of j, from its own S_j, r_j and rows of E by A^T, and what travels. The
              chain of dB goes over the entries of a row block of A^T in order; that of loops is another, and
              both are added block by block. dW_e and da3 are linear in dB, and made of it block by block.
    Ranks     as in gat.py, and addends of dW_e and da3; a rank holds E for the entries of its rows of A, of a
              directed graph for those of A^T too
    Differs   As in gat.py. Not with staged broadcasts: the chain of dB goes through whole rows of A^T.
    """

    reads_edges = reads_loops = True

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        super().__init__(name, spec, f_in, f_out, settings)
        self.W_edge, self.a3, self.edge_width = f"{name}.W_edge", f"{name}.a3", settings.edge_width

    def shapes(self) -> Shapes:
        """Those of GAT, W_edge, and the third part of the attention vector."""
        return super().shapes() | {self.W_edge: (self.edge_width, self.width), self.a3: (self.width, 1)}

    def _scores_of_edges(self, engine: Engine) -> Array:
        """B [k, h]: a chain over the columns of each head."""
        W = engine.params[self.W_edge]
        rows = engine.device.zeros((-(-W.shape[0] // 8) * 8, self.width))
        rows[: W.shape[0]] = W
        by_heads = engine.device.xp.ascontiguousarray(self._by_heads(engine, self.a3))
        return engine.device.row_product(rows, by_heads)[: W.shape[0]]

    def _attend(self, engine: Engine, S: Rows, L: Rows, R: Rows) -> tuple[Rows, Rows]:
        """(m, u, q) and (Z, P)."""
        device, near = engine.device, engine.neighbours_of
        T = engine.take("muq", 3 * self.heads)
        E = engine.take("Sr", self.width + self.heads)
        V = engine.take("ZP", 2 * self.width)

        def top(edges: EdgeInputs) -> None:
            B = self._scores_of_edges(engine)

            def most(entries: Any, X: Array) -> None:
                device.edge_attention_top(entries, B, X, T.array)

            T.array[...] = -np.inf
            most(edges.loops, R.array)
            near.columns(R.array, (self.heads,), lambda X, _: most(edges.heard, X))
            device.attention_begin(L.array, T.array, V.array)

        def add(edges: EdgeInputs) -> None:
            B = self._scores_of_edges(engine)

            def each(entries: Any, X: Array) -> None:
                device.edge_attention_add(entries, B, X, L.array, T.array, V.array)

            E.array[:, : self.width], E.array[:, self.width :] = S.array, R.array
            each(edges.loops, E.array)
            near.columns(E.array, (E.width,), lambda X, _: each(edges.heard, X))
            device.attention_finish(T.array, V.array)

        engine.attend("attend edges", [L, R], [T, V], top, self.heads, self.heads)
        engine.attend("attend edges", [S, L, R, T, V], [T, E, V], add, E.width, self.heads)
        engine.free(E)
        return T, V

    def _attend_back(self, engine: Engine, F: Rows, S: Rows, R: Rows) -> tuple[Rows, Rows]:
        """dS without what comes through l and r, and dr; the gradients of W_e and a3 go to the engine."""
        device = engine.device
        dS, dR = engine.take("dS", self.width), engine.take("dr", self.heads)

        def work(edges: EdgeInputs) -> None:
            B, sums = self._scores_of_edges(engine), []

            def add(entries: Any, X: Array) -> None:
                operands = X, S.array, R.array, dS.array, dR.array
                sums.append(device.edge_attention_back(entries, B, *operands, engine.starts[0]))

            dS.array[...] = 0
            dR.array[...] = 0
            add(edges.loops, F.array)
            engine.adjoint.columns(F.array, (F.width,), lambda X, _: add(edges.hearing, X))
            self._give(engine, sums[0] + sums[1])

        engine.attend("attend_back edges, weights", [F, S, R], [dS, dR], work, F.width, self.heads)
        return dS, dR

    def _give(self, engine: Engine, dB: Array) -> None:
        """The addends of W_e and a3 from those of B, [blocks, k h]."""
        xp, k, h = engine.device.xp, self.edge_width, self.heads
        dB, shape = dB.reshape(-1, k, h, 1), (k, h, self.width // h)
        dW = dB * engine.params[self.a3].reshape(1, 1, h, -1)
        W, da = engine.params[self.W_edge].reshape(shape), engine.device.zeros((len(dB), *shape[1:]))
        for row in range(k):
            da += dB[:, row] * W[row]
        parts = dW.reshape(len(dB), k * self.width), da.reshape(len(dB), self.width)
        engine.give_addends((self.W_edge, self.a3), xp.concatenate(parts, axis=1))
