"""Graph attention network (Velickovic et al. 2018)."""

from typing import Any

import numpy as np

from app.errors import CaseError
from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.programs import Rows

Array = Any
MOST_HEADS = 256
NUMBERS = 4  # of a head that travel beside its rows in the backward pass


class GAT:
    """Z_i = sum over j of alpha_ij S_j, S = H W, j the neighbours of i and i itself, for each of h heads.

    Source    Velickovic et al. 2018, eqs. 1-4: e_ij = LeakyReLU(a1 S_i + a2 S_j), alpha_i = softmax of e_i;
              heads side by side (eq. 5), of a layer without activation their mean (eq. 6)
    Forward   l = S a1     r = S a2 (by heads)     m_i = the largest e_ij     w_ij = exp(e_ij - m_i)
              u_i = 1 / sum_j w_ij     alpha = w u     Z = alpha S     P = (alpha * slope) S
              q_i = sum_j alpha_ij slope_ij, slope_ij the derivative of LeakyReLU: 1 or 0.2
    Shapes    H [n_own, f_in]   W [f_in, h k]   a1, a2 [h k, 1]
              S, Z, P [n_own, h k]   l, r, m, u, q, c [n_own, h]
    Backward  D = dZ comes in; the other layers' rule (a row is summed on one rank) holds with the roles of i
              and j exchanged, over the pattern of A^T (of an undirected graph the same):
              c_i = D_i Z_i     = sum_j alpha_ij (D_i S_j)
              dl_i = sum_j alpha_ij (D_i S_j - c_i) slope_ij = D_i P_i - c_i q_i
              dr_j = sum_i alpha_ij (D_i S_j - c_i) slope_ij
              dS_j = sum_i alpha_ij D_i + a1 dl_j + a2 dr_j
              da1 = S^T dl     da2 = S^T dr (by heads)     dW = H^T dS     dH = dS W^T
              alpha_ij is made anew on the rank of j from r_j and l_i, m_i, u_i, c_i, which travel with D_i:
              no entry of a matrix is sent, and P saves an exchange and a pass over the entries for dl.
    Ranks     rows partitioned, weights replicated; forward 1 exchange of h and 1 of h k + h columns, backward
              1 of h k + 4 h; addends of the gradients
    Differs   No dropout of alpha; edge weights are left aside.
    """

    row_by_row = True
    leaves = ("normalisation", "own_loops", "first_product", "edge_weights")

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        self.name, self.f_in, self.f_out, self.heads = name, f_in, f_out, spec.heads
        self.averages = spec.linear and spec.heads > 1
        if spec.heads > MOST_HEADS:
            raise CaseError(f"gnn: {name}: {spec.heads} heads; at most {MOST_HEADS} would be right")
        if f_out % spec.heads and not self.averages:
            raise CaseError(f"gnn: {name}: {spec.heads} heads do not share {f_out} columns equally")
        self.width = self.makes = f_out * (spec.heads if self.averages else 1)
        self.W, self.a1, self.a2 = (f"{name}.{part}" for part in ("W", "a1", "a2"))
        self.meets_input = (self.W,)
        self._kept: tuple[Rows, ...] = ()
        # Which entries of a row-major [h k, h] array are of their row's own head, as 0/1 and as places.
        self._mask: Array = None
        self._places: Array = None

    def shapes(self) -> Shapes:
        """W and both halves of the attention vector, of all heads one below the other."""
        return {self.W: (self.f_in, self.width), self.a1: (self.width, 1), self.a2: (self.width, 1)}

    # ---- forward ----------------------------------------------------------------------------------------

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z; see Convolution.forward. Keeps S, l, r, (m, u, q) and (Z, P)."""
        S = engine.dense(H, engine.params[self.W], name="S")
        L = engine.dense(S, self._by_heads(engine, self.a1), name="l")
        R = engine.dense(S, self._by_heads(engine, self.a2), name="r")
        T, V = self._attend(engine, S, L, R)
        self._kept = S, L, R, T, V
        return self._join(engine, V)

    def _attend(self, engine: Engine, S: Rows, L: Rows, R: Rows) -> tuple[Rows, Rows]:
        """(m, u, q) and (Z, P)."""
        device, near = engine.device, engine.neighbours_of
        T = engine.take("muq", 3 * self.heads)
        E = engine.take("Sr", self.width + self.heads)
        V = engine.take("ZP", 2 * self.width)

        def work() -> None:
            T.array[:, : self.heads] = R.array
            near.visit(R.array, False, lambda pattern, X: device.attention_top(pattern, X, T.array))
            device.attention_begin(L.array, T.array, V.array)
            E.array[:, : self.width], E.array[:, self.width :] = S.array, R.array
            add = lambda pattern, X: device.attention_add(pattern, X, L.array, T.array, V.array)  # noqa: E731
            near.visit(E.array, True, add)
            device.attention_finish(T.array, V.array)

        exchanges = (self.heads, self.width + self.heads)
        engine.apply("spmm", "attend", [S, L, R], [T, E, V], work, exchanges)
        engine.free(E)
        return T, V

    def _join(self, engine: Engine, V: Rows) -> Rows:
        """New rows: Z, or the mean of its heads."""
        Z = engine.take("Z", self.f_out)

        def work() -> None:
            Z.array[...] = V.array[:, : self.f_out]
            if self.averages:
                for first in range(self.f_out, self.width, self.f_out):
                    Z.array[...] += V.array[:, first : first + self.f_out]
                Z.array[...] *= np.float32(1 / self.heads)

        engine.apply("elementwise", "heads", [V], [Z], work)
        return Z

    def output_scale(self, engine: Engine, H: Rows | Features) -> Array | None:
        """None: Z is whole."""
        return None

    # ---- backward ---------------------------------------------------------------------------------------

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = dZ; see Convolution.backward."""
        S, L, R, T, V = self._kept
        self._kept = ()
        D = self._part(engine, D)
        F, dL = self._pack(engine, D, L, T, V)
        engine.free(D, L, T, V)
        dS, dR = self._attend_back(engine, F, S, R)
        engine.free(F, R)
        for name, G in ((self.a1, dL), (self.a2, dR)):
            engine.gram(name, S, G, pick=self._places)
            back = engine.dense_back(G, self._by_heads(engine, name), name="aG")
            engine.add_into(dS, back)
            engine.free(back, G)
        engine.free(S)
        engine.gram(self.W, H, dS)
        back = [(dS, engine.transposed(self.W))]
        dH = engine.dense_through(back, H) if isinstance(H, Rows) else None
        engine.free(dS)
        return dH

    def _part(self, engine: Engine, D: Rows) -> Rows:
        """The gradient by all heads from that by what `_join` made of them, which is freed."""
        if not self.averages:
            return D
        wide = engine.take("dZ", self.width)

        def work() -> None:
            for first in range(0, self.width, self.f_out):
                wide.array[:, first : first + self.f_out] = D.array
            wide.array[...] *= np.float32(1 / self.heads)

        engine.apply("elementwise", "heads", [D], [wide], work)
        engine.free(D)
        return wide

    def _pack(self, engine: Engine, D: Rows, L: Rows, T: Rows, V: Rows) -> tuple[Rows, Rows]:
        """(D, l, m, u, c) and dl."""
        F, dL = engine.take("Dlmuc", self.width + NUMBERS * self.heads), engine.take("dl", self.heads)
        work = lambda: engine.device.attention_pack(  # noqa: E731
            D.array, L.array, T.array, V.array, F.array, dL.array
        )
        engine.apply("elementwise", "attend_pack", [D, L, T, V], [F, dL], work)
        return F, dL

    def _attend_back(self, engine: Engine, F: Rows, S: Rows, R: Rows) -> tuple[Rows, Rows]:
        """dS without what comes through l and r, and dr."""
        device = engine.device
        dS, dR = engine.take("dS", self.width), engine.take("dr", self.heads)

        def work() -> None:
            dS.array[...] = 0
            dR.array[...] = 0
            add = lambda pattern, X: device.attention_back(  # noqa: E731
                pattern, X, S.array, R.array, dS.array, dR.array
            )
            engine.adjoint.visit(F.array, True, add)

        engine.apply("spmm", "attend_back", [F, S, R], [dS, dR], work, (F.width,))
        return dS, dR

    def release(self, engine: Engine) -> None:
        """Free what forward kept."""
        engine.free(*self._kept)
        self._kept = ()

    # ---- heads ------------------------------------------------------------------------------------------

    def _by_heads(self, engine: Engine, name: str) -> Array:
        """[h k, h], an attention vector of which each head's part stands in a column of its own."""
        if self._mask is None:
            head_of = np.arange(self.width) // (self.width // self.heads)
            own = head_of[:, None] == np.arange(self.heads)
            self._mask = engine.device.put(own.astype(np.float32))
            self._places = engine.device.put(np.flatnonzero(own))
        return self._mask * engine.params[name]
