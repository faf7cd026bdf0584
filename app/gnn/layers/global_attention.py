"""Attention of every node to all nodes, of linear cost, beside a graph convolution."""

from typing import Any

import numpy as np

from app.errors import CaseError
from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.layers.all_nodes import Heads, OfEachGraph, OfGraph, one_over
from app.gnn.layers.gcn import GCN
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.programs import Rows

Array = Any


class SGFormer(GCN):
    """Z = share D^-1 [V + Q (K^T V) / N] + (1 - share) P H W, P as in GCN, by heads; rows of Q, K of norm 1.

    Source    Wu et al. 2023 (SGFormer), simple global attention: D = diag(1 + Q (K^T 1) / N); share
              is 1 - their alpha
    Forward   Y = H W_q, Q_i = Y_i / |Y_i|     K = H W_k likewise     V = H W_v     S = t * (H W)
              R = [num | den] = Q (c K^T [V | 1]) + e [V | 1], c = 1/N (all_nodes.py), e = 1
              Z = share num / max(den, 0.01) + (1 - share) s * (A+I) S
    Shapes    H [n_own, f_in]   W_q, W_k, W_v, W [f_in, f_out]   Q, K, V, S, Z [n_own, f_out]
              R [n_own, h (k+1)], h heads of k columns: num has k of them, den one
    Backward  D = dZ comes in, by heads:
              dnum = share D / den     dden = -share <D, num> / den^2, 0 where den is below its least
              dR = [dnum | dden]: dQ, dK and the first part of dV as in all_nodes.py     dV += e dnum
              dY_i = (dQ_i - Q_i <Q_i, dQ_i>) / |Y_i|, of K alike
              dS = t * (A+I)^T ((1 - share) s * D)
              dW_q = H^T dQ     dW_k = H^T dK     dW_v = H^T dV     dW = H^T dS
              dH = dQ W_q^T + dK W_k^T + dV W_v^T + dS W^T
              R is made again: Q, K, V and 2 h norms are kept, and a matrix of f_out (f_out + h) numbers.
              Passes make up to 3 h + 4 numbers a row for a moment, which are in no buffer.
    Sets      of graphs: all sums are over the nodes of a node's own graph, N is its size. In a graph of one
              node Z has V.
    Ranks     rows partitioned, weights and sums replicated; 1 exchange and 1 sum forward, 1 and 1 backward,
              addends of all weights; memory of rows alone: what a rank holds falls as 1/P
    Differs   The paper divides Q and K by the norms of the whole matrices: a weight of another node is then
              about 1/N^2 beside 1 of the own row, and all others together 1/N. Here rows are divided by
              their own norms, as in PyTorch Geometric, so that others weigh as much as the own row. The
              paper's network has one such layer, and graph convolutions of their own beside it; here each
              layer has both, on the same input. No biases of Q, K and V. Heads lie side by side; the authors
              take their mean. Its residual connection is `residual`. den has a least value: it would be 0
              where all K are opposite to a Q.
    """

    row_by_row = False
    leaves = ("first_product",)
    reads = ("attention_share",)
    hears_all = True
    own = 1  # e
    least = 0.01  # of den

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        super().__init__(name, spec, f_in, f_out, settings)
        if f_out % spec.heads:
            raise CaseError(f"gnn: {name}: {spec.heads} heads do not share {f_out} columns equally")
        self.count, self.share = spec.heads, float(np.float32(settings.attention_share))
        self.W = f"{name}.W"
        self.maps = tuple(f"{name}.W_{part}" for part in ("query", "key", "value"))
        self.meets_input = (*self.maps, self.W)
        self._heads: Heads | None = None
        self._rows: tuple[Rows, ...] = ()
        self._norms: tuple[Rows | None, ...] = ()
        self._sums: Any = None

    def shapes(self) -> Shapes:
        """All four [f_in, f_out]."""
        return dict.fromkeys(self.meets_input, (self.f_in, self.f_out))

    def order(self, H: Rows | Features | None) -> str:
        """Weights come first."""
        return "weights"

    # ---- forward ----------------------------------------------------------------------------------------

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z; see Convolution.forward. Keeps Q, K, V and their sums."""
        names = zip(self.maps, "QKV")
        Q, K, V = (engine.dense(H, engine.params[each], name=name) for each, name in names)
        self._begin(engine, Q, K)
        R, Y = engine.take("R", self.f_out + self.count), engine.take("attention", self.f_out)
        self._sums = self._over(engine).forward(engine, Q, K, V, R)
        self._add_own(engine, V, R)
        self._rows = Q, K, V

        def work() -> None:
            num, den = self._parts(engine, R.array)
            den = den / np.float32(self.share)
            engine.device.xp.divide(num, den, out=self._heads.split(Y.array))

        engine.over_all("divide", [R], [Y], work, (0, R.width))
        engine.free(R)
        Z = engine.spread(engine.dense(H, engine.params[self.W], self._input_scale(engine), name="S"),
                          own=self.settings.own_loops)  # fmt: skip
        engine.activate(Z, engine.times(1 - self.share, engine.scale_of(self._kind)), add=Y)
        engine.free(Y)
        return Z

    def _over(self, engine: Engine) -> OfGraph | OfEachGraph:
        """The sums over all nodes of a graph."""
        kind = OfGraph if engine.pooling is None else OfEachGraph
        return kind(self._heads, bool(self.own))

    def _begin(self, engine: Engine, Q: Rows, K: Rows) -> None:
        """Make Q and K what is multiplied, zero where rows are no nodes."""
        if self._heads is None or self._heads.device is not engine.device:
            self._heads = Heads(engine.device, self.count, self.f_out // self.count)
        self._norms = tuple(self._map(engine, X) for X in (Q, K))

    def _map(self, engine: Engine, X: Rows) -> Rows | None:
        """In place, what is multiplied from H times weights; rows [n_own, h] of one over the norms."""
        T, inverse = engine.take("squares", X.width), engine.take("norms", self.count)

        def work() -> None:
            xp, each = engine.device.xp, self._heads.split(X.array)
            engine.device.activate(X.array, engine.nodes())
            xp.multiply(X.array, X.array, out=T.array)
            inverse.array[...] = one_over(xp, xp.sqrt(self._heads.dots(T.array)))
            each *= inverse.array[:, :, None]

        engine.over_all("begin", [X], [X, T, inverse], work, (0, X.width))
        engine.free(T)
        return inverse

    def _map_back(self, engine: Engine, X: Rows, dX: Rows, inverse: Rows | None) -> None:
        """In place, the gradient by H times weights from that by what is multiplied, X, which is lost."""
        T = engine.take("XdX", X.width)

        def work() -> None:
            each, back = (self._heads.split(rows.array) for rows in (X, dX))
            engine.device.xp.multiply(X.array, dX.array, out=T.array)
            each *= self._heads.dots(T.array)[:, :, None]
            back -= each
            back *= inverse.array[:, :, None]

        engine.over_all("begin_back", [X, dX, inverse], [X, dX, T], work, (0, X.width))
        engine.free(T, inverse)

    def _add_own(self, engine: Engine, V: Rows, R: Rows) -> None:
        """R += e [V | 1]."""

        def work() -> None:
            each = self._heads.split(R.array)
            each[:, :, :-1] += self._heads.split(V.array)
            each[:, :, -1] += np.float32(1)

        if self.own:
            engine.over_all("own", [V, R], [R], work, (0, R.width))

    def _parts(self, engine: Engine, R: Array) -> tuple[Array, Array]:
        """[n_own, h, k] num and [n_own, h, 1] den, which has a least value."""
        each = self._heads.split(R)
        num, den = each[:, :, :-1], each[:, :, -1:]
        return num, engine.device.xp.where(den > self.least, den, np.float32(self.least))

    def output_scale(self, engine: Engine, H: Rows | Features) -> None:
        """None: Z is whole."""
        return None

    # ---- backward ---------------------------------------------------------------------------------------

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H from D = dZ; see Convolution.backward."""
        (Q, K, V), norms, sums, over = self._rows, self._norms, self._sums, self._over(engine)
        self._rows, self._norms, self._sums = (), (), None
        R = engine.take("R", self.f_out + self.count)
        over.again(engine, Q, K, V, R, sums)
        self._add_own(engine, V, R)
        self._divide_back(engine, D, R)
        found = over.backward(engine, Q, K, V, R, sums)
        self._add_own_back(engine, R, found[2])
        for X, dX, inverse in zip((Q, K), found, norms):
            self._map_back(engine, X, dX, inverse)
        engine.free(Q, K, V, R)
        scale = engine.times(1 - self.share, engine.scale_of(self._kind))
        engine.activate(D, scale)
        dS = engine.spread(D, own=self.settings.own_loops)
        engine.activate(dS, self._input_scale(engine))
        terms = [*zip(self.maps, found), (self.W, dS)]
        for name, each in terms:
            engine.gram(name, H, each)
        dH = None
        if isinstance(H, Rows):
            dH = engine.dense_through([(each, engine.transposed(name)) for name, each in terms], H)
        engine.free(*found, dS)
        return dH

    def _divide_back(self, engine: Engine, D: Rows, R: Rows) -> None:
        """In the place of R = [num | den] the gradient by it from D."""
        T = engine.take("D num", D.width)

        def work() -> None:
            heads, share = self._heads, np.float32(self.share)
            num, den = self._parts(engine, R.array)
            by_heads = heads.split(D.array)
            engine.device.xp.multiply(by_heads, num, out=heads.split(T.array))
            found, last = (
                -share * heads.dots(T.array)[:, :, None] / den / den,  # den^2 may be 0 in float32
                heads.split(R.array)[:, :, -1:],
            )
            engine.device.xp.divide(by_heads, den / share, out=num)
            last[...] = engine.device.xp.where(last > self.least, found, np.float32(0))

        engine.over_all("divide_back", [D, R], [R, T], work, (0, R.width))
        engine.free(T)

    def _add_own_back(self, engine: Engine, dR: Rows, dV: Rows) -> None:
        """dV += e dnum."""

        def work() -> None:
            self._heads.split(dV.array)[...] += self._heads.split(dR.array)[:, :, :-1]

        if self.own:
            engine.over_all("own_back", [dR, dV], [dV], work, (0, dR.width))

    def release(self, engine: Engine) -> None:
        """Free what forward kept."""
        engine.free(*self._rows, *self._norms, self._sums)
        self._rows, self._norms, self._sums = (), (), None


class LinearAttention(SGFormer):
    """Z = share Q (K^T V) / (Q (K^T 1)) + (1 - share) P H W, Q = phi(H W_q), K = phi(H W_k), by heads.

    Source    Katharopoulos et al. 2020 (transformers are RNNs), eqs. 5 and 7: phi(x) = elu(x) + 1, without
              the mask by which what comes later is not heard
    Forward   as SGFormer with c = 1/N, which cancels, and e = 0: what a node hears of others are means of
              their V with weights that are positive and may differ much. den is at least 1e-30, so that 1/den
              is a number where all weights of a row are about 0; below that a row hears less
    Backward  as there; phi'(x) = 1 where x > 0, else exp(x), which is the least of 1 and phi(x)
    """

    own = 0
    least = 1e-30

    def _map(self, engine: Engine, X: Rows) -> None:
        """In place phi, in rows that are nodes."""

        def work() -> None:
            engine.device.elu_plus_one(X.array)
            engine.device.activate(X.array, engine.nodes())

        engine.over_all("begin", [X], [X], work, (0, X.width))

    def _map_back(self, engine: Engine, X: Rows, dX: Rows, inverse: None) -> None:
        """In place, dX * phi'; X is lost."""

        def work() -> None:
            engine.device.xp.minimum(X.array, np.float32(1), out=X.array)
            dX.array[...] *= X.array

        engine.over_all("begin_back", [X, dX], [X, dX], work, (0, X.width))
