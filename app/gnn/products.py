"""Products: an engine's products of rows, with weights and with the matrix of a graph.

Those with the graph's matrix are where ranks exchange rows. A pass makes the rows that the loss depends on
(gnn/reach.py); what is made of all rows, once, is kept with the features (`product_of`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.gnn.by_pieces import ByPieces
from app.gnn.edges import EdgeInputs
from app.gnn.features import DenseFeatures, Features
from app.gnn.pieces import PiecedFeatures
from app.gnn.programs import Rows
from app.gnn.reach import BACKWARD, FORWARD
from app.memory.slow_rows import SlowRows
from app.numerics.products import PLAIN, Finish, Operand

Array = Any
NO_NUMBERS: Array = object()  # stands for an array in a dry run
KEPT_COLUMNS = 64  # of the features that are multiplied at a time where their product is kept
PRODUCT_ARRAYS = 3  # that making such a product holds at once
SPREAD_COLUMNS = 64  # of rows that are multiplied by A where they lie
# P = diag(left) (A, or A+I) diag(right), right of A^T
PRODUCTS = {
    "symmetric": ("symmetric", True, "symmetric"),
    "in_degree": ("in_degree", True, ""),
    "symmetric_alone": ("symmetric_alone", False, "symmetric_alone"),
    "mean": ("mean", False, ""),
    "sum": ("", False, ""),
}


class Products(ByPieces):
    """What Engine multiplies; its attributes are the engine's."""

    # ---- with weights -----------------------------------------------------------------------------------

    def dense(self, X: Rows | Features, W: Array, scale: Array | None = None, name: str = "HW") -> Rows:
        """New rows X W, each multiplied by scale [n_own] where given.

        X   rows or features [n_own, k]     W [k, m] replicated
        """
        if isinstance(X, PiecedFeatures):
            return self._dense_pieces(X, W, scale, name)
        Z = self.take(name, W.shape[1])
        if isinstance(X, Features):
            times = lambda: X.times(W, Z.array, scale)  # noqa: E731
            counts = {"shape": (X.stored, W.shape[1]), "sparse": X.whole_gradient}
            self._run("dense", name, [], [Z], times, 2 * X.stored * W.shape[1], **counts)
            return Z
        then = PLAIN if scale is None else Finish(scale=scale)
        times = lambda: self.device.dense([Operand(X.array)], W, then, Z.array)  # noqa: E731
        self._run("dense", name, [X], [Z], times, 2 * X.width * W.shape[1], shape=W.shape)
        return Z

    def dense_back(self, D: Rows, W: Array, scale: Array | None = None, name: str = "dH") -> Rows:
        """New rows D W^T: the gradient by the left operand of a product with W."""
        return self.dense(D, self.device.xp.ascontiguousarray(W.T), scale, name)

    def transposed(self, name: str) -> Array:
        """A parameter's transpose, row-major."""
        return self.device.xp.ascontiguousarray(self.params[name].T)

    def dense_sum(self, terms: list[tuple[Rows | DenseFeatures, Array]], name: str = "HW") -> Rows:
        """New rows X W + X' W' + ...: an element is one chain over the columns of all operands in turn."""
        W = self.device.xp.concatenate([W for _, W in terms])
        if any(isinstance(X, PiecedFeatures) for X, _ in terms):
            return self._dense_sum_pieces(terms, W, name)
        Z = self.take(name, W.shape[1])

        def work() -> None:
            self.device.dense([Operand(X.array) for X, _ in terms], W, PLAIN, Z.array)

        self._run("dense", name, [X for X, _ in terms], [Z], work, 2 * W.shape[0] * W.shape[1], shape=W.shape)
        return Z

    def dense_through(self, terms: list[tuple[Rows, Array]], H: Rows) -> Rows:
        """The gradient by H, X W + X' W' + ...: new rows, or, for H = drop(relu(U)) that nobody else needs
        (Rows.relu), the gradient by U in the place of H, whose values say which elements it goes through."""
        if not H.relu:
            return self.dense_sum(terms, name="dH")
        W = self.device.xp.concatenate([W for _, W in terms])

        def work() -> None:
            self.device.dense_through([Operand(X.array) for X, _ in terms], W, H.array, H.drop)

        reads, columns = [X for X, _ in terms] + [H], 2 * W.shape[0] * W.shape[1]
        self._run("dense", H.name, reads, [H], work, columns, shape=W.shape)
        return H

    # ---- with the graph ---------------------------------------------------------------------------------

    def neighbours(
        self, X: Rows | Features, own: bool, name: str = "AH", factor: Array | None = None
    ) -> Rows:
        """New rows A X, or (A + I) X where `own`, or (A + factor I) X with factor [1, 1].

        In a backward pass A stands for A^T, here and in the other products.
        Ranks   all call (one exchange; of features in pieces as `spread`)
        """
        if isinstance(X, PiecedFeatures):
            return self.spread(self._copy_pieces(X, name, None), own, factor)
        Y = self.take(name, X.width)

        def work() -> None:
            rows = X.array
            if factor is not None:
                self.device.xp.multiply(rows, factor, out=Y.array)
            elif own:
                Y.array[...] = rows
            else:
                Y.array[...] = 0
            self._accumulate(rows, Y.array)

        self._product(name, [X], [Y], work, (X.width,))
        return Y

    def spread(self, X: Rows, own: bool, factor: Array | None = None) -> Rows:
        """What `neighbours` gives, in the place of X, whose values are lost: some columns at a time.

        Beside X there are rows of SPREAD_COLUMNS columns instead of as many as X has.
        Ranks   all call (one exchange for each piece of the columns)
        """
        widths = [min(SPREAD_COLUMNS, X.width - lo) for lo in range(0, X.width, SPREAD_COLUMNS)]
        T = self.take(f"part of {X.name}", widths[0])

        def work() -> None:
            if len(widths) == 1:
                self._spread_columns(X.array, T.array, own, factor)
                return
            flat = T.array.reshape(-1)
            for i, width in enumerate(widths):
                rows = flat[: self.n_own * width].reshape(self.n_own, width)
                lo = i * SPREAD_COLUMNS
                self._spread_columns(X.array[:, lo : lo + width], rows, own, factor)

        self._product(X.name, [X], [X, T], work, tuple(widths))
        self.free(T)
        return X

    def _product(
        self,
        name: str,
        reads: list[Any],
        writes: list[Rows],
        work: Callable[[], None],
        widths: tuple[int, ...],
    ) -> None:
        """The operation of a product with A that makes the rows that the pass needs, by exchanges."""
        layer, flops = self.layer if self.way else -1, 2 * sum(widths)
        if self.way and not self.numeric:
            self.products.add((layer, self.way))
        self._run("spmm", name, reads, writes, work, flops, exchanges=widths, layer=layer, way=self.way)

    def messages(
        self, name: str, reads: list[Rows], writes: list[Rows], work: Callable[[EdgeInputs], None],
        widths: tuple[int, ...],
    ) -> None:  # fmt: skip
        """The operation of a layer that reads features of edges, by exchanges.

        work   is told those of the entries that the pass needs
        """
        layer = self.layer if self.way else -1
        if self.way == FORWARD and not self.numeric:
            self.products.add((layer, self.way))

        def with_edges() -> None:
            narrow = self.narrow.get(layer) if layer >= 0 else None
            work((narrow and narrow.edges) or self.edges)

        self._run("spmm", name, reads, writes, with_edges, exchanges=widths, layer=layer, way=self.way)

    def attend(
        self, name: str, reads: list[Rows], writes: list[Rows], work: Callable[[EdgeInputs], None],
        exchange: int, columns: int,
    ) -> None:  # fmt: skip
        """The operation of attention that reads features of edges.

        work       is told these
        exchange   columns of the rows that it exchanges     columns   of E W, made for every entry
        """
        shape = 0, columns
        self._run("spmm", name, reads, writes, lambda: work(self.edges), shape=shape, exchanges=(exchange,))

    def _accumulate(self, X: Array, Y: Array) -> None:
        """Y += A X, or in a backward pass A^T X, on the rows that the pass needs."""
        narrow = self.narrow.get(self.layer) if self.way else None
        if self.way == BACKWARD:
            self.adjoint.accumulate(X, Y, None, narrow and narrow.matrix)
        else:
            self.neighbours_of.accumulate(X, Y, narrow and narrow.rows)

    def _spread_columns(self, X: Array, rows: Array, own: bool, factor: Array | None) -> None:
        """`spread` of columns X [n_own, k] of an array; rows [n_own, k]: room for their values."""
        self.device.copy_into(rows, X)
        if factor is not None:
            X *= factor
        elif not own:
            X[...] = 0
        if self.device.adds_into_columns or X.flags.c_contiguous:
            self._accumulate(rows, X)
            return
        sums = self.device.xp.ascontiguousarray(X)
        self._accumulate(rows, sums)
        X[...] = sums

    def neighbours_into(self, Y: Rows, X: Rows) -> None:
        """Y += A X; the chain of a row goes on from what Y holds. Ranks: all call (one exchange)."""
        work = lambda: self._accumulate(X.array, Y.array)  # noqa: E731
        self._product(Y.name, [Y, X], [Y], work, (X.width,))

    def pool(self, X: Rows) -> Rows:
        """New rows R X, backward R^T X, R as in layers/readout.py. Ranks: all call (one exchange)."""
        Y = self.take("RX", X.width)

        def work() -> None:
            Y.array[...] = 0
            self.pooling[self.way == BACKWARD].accumulate(X.array, Y.array)

        self._run("pool", "RX", [X], [Y], work, shape=(0, X.width), exchanges=(X.width,))
        return Y

    def put_columns(self, Y: Rows, X: Rows, lo: int, hi: int) -> None:
        """Columns lo..hi-1 of Y are X."""

        def work() -> None:
            Y.array[:, lo:hi] = X.array

        self._run("elementwise", "columns", [Y, X], [Y], work, shape=(0, X.width))

    # ---- factors of rows --------------------------------------------------------------------------------

    def pool_scale(self, kind: str) -> Array | None:
        """[n_own] factors of the rows of R (Neighbours.scale)."""
        return self.pooling[0].scale(kind) if self.numeric else NO_NUMBERS

    def constant(self, factor: float) -> Array:
        """[n_own] one factor for all rows."""
        return self.device.zeros((self.n_own,)) + np.float32(factor) if self.numeric else NO_NUMBERS

    def scale_of(self, kind: str, columns: bool = False) -> Array | None:
        """[n_own] the factors of rows, or of columns, of a normalisation (Neighbours.scale)."""
        side = self.adjoint if columns else self.neighbours_of
        return side.scale(kind) if self.numeric else NO_NUMBERS

    def times(self, factor: float, scale: Array | None) -> Array | None:
        """[n_own] factor * scale; None where that is 1."""
        if scale is None:
            return None if factor == 1 else self.constant(factor)
        return scale * np.float32(factor) if self.numeric and factor != 1 else scale

    # ---- of the features, kept --------------------------------------------------------------------------

    def product_of(self, X: DenseFeatures, kind: str, hops: int = 1) -> DenseFeatures:
        """Features P^hops X, made once and kept: P as Neighbours.scale says: PRODUCTS.

        Exact as long as nothing is dropped from X. Ranks: all call (the first time, `hops` exchanges)
        """
        kind = power_name(kind, hops)
        if not self.numeric:
            self.kept[kind] = X.width
        if isinstance(X, PiecedFeatures):
            return X.product(kind)  # made by `product_into`
        if not self.numeric:
            return X
        if kind not in X.products:
            way, self.way = self.way, ""  # all rows
            X.products[kind] = DenseFeatures(self.device, self._product_of(X.array, kind))
            self.way = way
        return X.products[kind]

    def product_into(self, X: SlowRows, kind: str, out: SlowRows, pieces: list[slice], limit: int) -> None:
        """P X or P^K X of features in the slow tier, as many columns at a time as fit a limit in bytes, at
        least one.

        pieces   of the rows, which are brought in one after the other
        Ranks    all call (an exchange for each piece of the columns)
        """
        longest = int(np.diff(self.neighbours_of.block.rows.offsets).max())  # the same on all ranks
        step = min(max(limit // (PRODUCT_ARRAYS * 4 * max(longest, 1)), 1), KEPT_COLUMNS)
        step = step // 4 * 4 or step  # columns that a GPU reads by fours, without arrays that pad them
        way, self.way = self.way, ""  # all rows
        for lo in range(0, X.array.shape[1], step):
            columns = slice(lo, lo + step)
            host = np.empty((self.n_own, X.array[:, columns].shape[1]), dtype=np.float32)
            for rows in pieces:
                host[rows] = X.array[rows, columns]
                X.done(rows)
            host = self.device.get(self._product_of(self.device.put(host), kind))
            for rows in pieces:
                out.array[rows, columns] = host[rows]
                out.done(rows)
        self.way = way

    def _product_of(self, X: Array, kind: str) -> Array:
        """P X of a name of PRODUCTS, or P^K X, some columns at a time: little memory beside the result."""
        name, hops = power_of(kind)
        left, own, right = PRODUCTS[name]
        out = self.device.empty(X.shape)
        for lo in range(0, X.shape[1], KEPT_COLUMNS):
            columns = slice(lo, lo + KEPT_COLUMNS)
            rows = X[:, columns].copy()
            for hop in range(hops):
                if hop:
                    rows[...] = out[:, columns]
                    if left:
                        self.device.activate(rows, self.scale_of(left))
                if right:
                    self.device.activate(rows, self.scale_of(right, columns=True))
                out[:, columns] = rows
                self._spread_columns(out[:, columns], rows, own, None)
        if left:
            self.device.activate(out, self.scale_of(left))
        return out


def power_name(kind: str, hops: int) -> str:
    """What a product P^hops X of the features is kept as, P of a name of PRODUCTS."""
    return kind if hops == 1 else f"{kind}^{hops}"


def power_of(kind: str) -> tuple[str, int]:
    """The name of PRODUCTS and the power that `power_name` put together."""
    name, _, hops = kind.partition("^")
    return name, int(hops or 1)
