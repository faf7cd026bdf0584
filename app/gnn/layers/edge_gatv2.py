"""Graph attention with dynamic scores that read the features of edges (Brody, Alon and Yahav 2022)."""

from typing import Any

from app.gnn.edges import EdgeInputs
from app.gnn.engine import Engine
from app.gnn.layers.gatv2 import GATv2
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.programs import Rows

Array = Any


class EdgeGATv2(GATv2):
    """GATv2 whose scores read a row E_ij of numbers or categories of each edge: layers/gatv2.py, another s.

    Source    Brody et al. 2022, eq. 7, as PyG's GATv2Conv with edge_dim has it: a LeakyReLU(T_i + S_j +
              E_ij W_e), W_e the layer's own; edges have a part in scores alone, and the loop of a node has
              the mean of the features of the edges that it hears
    Forward   Q_ij = E_ij W_e     s_ij = (T_i + S_j) + Q_ij, and all else as there
    Shapes    E [entries, k], and a row for each loop   W_e [k, h k']   Q_ij [h k']
    Backward  ds_ij = g_ij a slope_ij by columns, in the notation there:
              dT_i = sum_j ds_ij     dS_j = sum_i alpha_ij D_i + sum_i ds_ij
              dW_e = sum over all i, j of E_ij^T ds_ij
              ds is made twice: on the rank of i, where dT, da and dW_e are summed, and on the rank of j, for
              dS, from its rows of E by A^T. The chain of dW_e goes over the entries of a row block of A in
              order; that of loops is another, and both are added block by block.
    Ranks     as there, and addends of dW_e; a rank holds E for the entries of its rows of A, of a directed
              graph for those of A^T too
    Differs   As there. Not with staged broadcasts: the chain of dW_e goes through whole rows of A.
    """

    reads_edges = reads_loops = True

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        super().__init__(name, spec, f_in, f_out, settings)
        self.W_edge, self.edge_width = f"{name}.W_edge", settings.edge_width

    def shapes(self) -> Shapes:
        """Those of GATv2, and W_edge."""
        return super().shapes() | {self.W_edge: (self.edge_width, self.width)}

    def _attend(self, engine: Engine, S: Rows, T: Rows) -> tuple[Rows, Rows]:
        """(m, u) and Z of all heads."""
        device, a, W = engine.device, engine.params[self.a], engine.params[self.W_edge]
        M, V = engine.take("mu", 2 * self.heads), engine.take("V", self.width)

        def work(edges: EdgeInputs) -> None:
            def add(entries: Any, X: Array) -> None:
                device.edge_dynamic_add(entries, W, X, T.array, a, M.array, V.array)

            device.dynamic_begin(M.array, V.array)
            add(edges.loops, S.array)
            engine.neighbours_of.columns(S.array, (self.width,), lambda X, _: add(edges.heard, X))
            device.dynamic_finish(M.array, V.array)

        engine.attend("attend edges", [S, T], [M, V], work, self.width, self.width)
        return M, V

    def _back_rows(self, engine: Engine, S: Rows, F: Rows) -> tuple[Rows, Rows]:
        """dT, and rows whose sum is da; the gradient of W_e goes to the engine."""
        device, a, W = engine.device, engine.params[self.a], engine.params[self.W_edge]
        dT, G = engine.take("dT", self.width), engine.take("da", self.width)

        def work(edges: EdgeInputs) -> None:
            sums: list[Array] = []

            def add(entries: Any, X: Array) -> None:
                operands = X, F.array, a, dT.array, G.array
                sums.append(device.edge_dynamic_back_rows(entries, W, *operands, engine.starts[0]))

            dT.array[...] = G.array[...] = 0
            add(edges.loops, S.array)
            engine.neighbours_of.columns(S.array, (self.width,), lambda X, _: add(edges.heard, X))
            engine.give_addends((self.W_edge,), sums[0] + sums[1])

        engine.attend("attend_back edges, weights", [S, F], [dT, G], work, self.width, self.width)
        return dT, G

    def _back_columns(self, engine: Engine, F: Rows, S: Rows) -> Rows:
        """dS."""
        device, a, W = engine.device, engine.params[self.a], engine.params[self.W_edge]
        dS = engine.take("dS", self.width)

        def work(edges: EdgeInputs) -> None:
            def add(entries: Any, X: Array) -> None:
                device.edge_dynamic_back_columns(entries, W, X, S.array, a, dS.array)

            dS.array[...] = 0
            add(edges.loops, F.array)
            engine.adjoint.columns(F.array, (F.width,), lambda X, _: add(edges.hearing, X))

        engine.attend("attend_back edges", [F, S], [dS], work, F.width, self.width)
        return dS
