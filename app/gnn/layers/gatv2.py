"""Graph attention with dynamic scores (Brody, Alon and Yahav 2022)."""

from typing import Any

from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.layers.gat import GAT
from app.gnn.layers.layer import Shapes
from app.gnn.programs import Rows

Array = Any
NUMBERS = 3  # of a head that travel beside its rows in the backward pass


class GATv2(GAT):
    """Z_i = sum over j of alpha_ij S_j, S = H W_source, j the neighbours of i and i itself, for each head.

    Which neighbour counts most may differ from node to node, where GAT ranks them alike for all.

    Source    Brody et al. 2022, eq. 7: e_ij = a LeakyReLU(T_i + S_j), T = H W_target, alpha_i = softmax of
              e_i; h heads side by side, of a layer without activation their mean
    Forward   s_ij = T_i + S_j     e_ij = a LeakyReLU(s_ij) by heads     m_i = the largest e_ij
              w_ij = exp(e_ij - m_i)     u_i = 1 / sum_j w_ij     alpha = w u     Z = alpha S
    Shapes    H [n_own, f_in]   W_source, W_target [f_in, h k]   a [h k, 1]
              S, T, Z [n_own, h k]   m, u, c [n_own, h]
    Backward  D = dZ comes in; slope_ij the derivative of LeakyReLU at s_ij, in each column 1 or 0.2:
              c_i = D_i Z_i     g_ij = alpha_ij (D_i S_j - c_i), the gradient by e_ij
              dT_i = a sum_j g_ij slope_ij     da = sum_ij g_ij LeakyReLU(s_ij)
              dS_j = sum_i alpha_ij D_i + a sum_i g_ij slope_ij
              dW_source = H^T dS     dW_target = H^T dT     dH = dS W_source^T + dT W_target^T
              Sums over j are made on the rank of i, to which S travels once more; those over i on the rank of
              j, over the pattern of A^T, from D_i, T_i, m_i, u_i, c_i: no entry of a matrix is sent.
    Ranks     rows partitioned, weights replicated; forward 1 exchange of h k columns, backward 1 of h k and 1
              of 2 h k + 3 h; addends of the gradients
    Differs   No dropout of alpha; edge weights are left aside.
    """

    def __init__(self, name: str, *rest: Any) -> None:
        super().__init__(name, *rest)
        self.source, self.target, self.a = (f"{name}.{part}" for part in ("W_source", "W_target", "a"))
        self.meets_input = (self.source, self.target)

    def shapes(self) -> Shapes:
        """Both weights, and the attention vectors of all heads one below the other."""
        both = dict.fromkeys(self.meets_input, (self.f_in, self.width))
        return both | {self.a: (self.width, 1)}

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z; see Convolution.forward. Keeps S, T, (m, u) and Z of all heads."""
        S = engine.dense(H, engine.params[self.source], name="S")
        T = engine.dense(H, engine.params[self.target], name="T")
        M, V = self._attend(engine, S, T)
        self._kept = S, T, M, V
        return self._join(engine, V)

    def _attend(self, engine: Engine, S: Rows, T: Rows) -> tuple[Rows, Rows]:
        """(m, u) and Z of all heads."""
        device, near, a = engine.device, engine.neighbours_of, engine.params[self.a]
        M, V = engine.take("mu", 2 * self.heads), engine.take("V", self.width)

        def work() -> None:
            device.dynamic_begin(M.array, V.array)
            add = lambda pattern, X: device.dynamic_add(pattern, X, T.array, a, M.array, V.array)  # noqa: E731
            near.visit(S.array, True, add)
            device.dynamic_finish(M.array, V.array)

        engine.apply("spmm", "attend", [S, T], [M, V], work, (self.width,))
        return M, V

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = dZ; see Convolution.backward."""
        S, T, M, V = self._kept
        self._kept = ()
        D = self._part(engine, D)
        F = engine.take("DTmuc", 2 * self.width + NUMBERS * self.heads)
        pack = lambda: engine.device.dynamic_pack(D.array, T.array, M.array, V.array, F.array)  # noqa: E731
        engine.apply("elementwise", "attend_pack", [D, T, M, V], [F], pack)
        engine.free(D, T, M, V)
        dT, G = self._back_rows(engine, S, F)
        engine.column_sums(self.a, G)
        engine.free(G)
        dS = self._back_columns(engine, F, S)
        engine.free(F, S)
        terms = (self.source, dS), (self.target, dT)
        for name, dX in terms:
            engine.gram(name, H, dX)
        back = [(dX, engine.transposed(name)) for name, dX in terms]
        dH = engine.dense_through(back, H) if isinstance(H, Rows) else None
        engine.free(dS, dT)
        return dH

    def _back_rows(self, engine: Engine, S: Rows, F: Rows) -> tuple[Rows, Rows]:
        """dT, and rows whose sum is da."""
        device, near, a = engine.device, engine.neighbours_of, engine.params[self.a]
        dT, G = engine.take("dT", self.width), engine.take("da", self.width)

        def work() -> None:
            dT.array[...] = G.array[...] = 0
            add = lambda pattern, X: device.dynamic_back_rows(  # noqa: E731
                pattern, X, F.array, a, dT.array, G.array
            )
            near.visit(S.array, True, add)

        engine.apply("spmm", "attend_back", [S, F], [dT, G], work, (self.width,))
        return dT, G

    def _back_columns(self, engine: Engine, F: Rows, S: Rows) -> Rows:
        """dS."""
        device, a = engine.device, engine.params[self.a]
        dS = engine.take("dS", self.width)

        def work() -> None:
            dS.array[...] = 0
            add = lambda pattern, X: device.dynamic_back_columns(  # noqa: E731
                pattern, X, S.array, a, dS.array
            )
            engine.adjoint.visit(F.array, True, add)

        engine.apply("spmm", "attend_back", [F, S], [dS], work, (F.width,))
        return dS
