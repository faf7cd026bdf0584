"""Engine: the operations that layers are made of, on arrays of which every rank holds its rows.

A layer's forward and backward passes call these methods and nothing else, so that the same code runs without
numbers to learn what an epoch needs (`Programs.dry`), and then in the buffers that were planned from it.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from app.comm.ordered import sum_tree
from app.comm.tree import owned_roots, owned_spans
from app.gnn.by_pieces import ByPieces
from app.gnn.edges import EdgeInputs
from app.gnn.features import DenseFeatures, Features
from app.gnn.neighbours import Neighbours
from app.gnn.parameters import Parameters
from app.gnn.pieces import FeatureStore, PiecedFeatures
from app.gnn.programs import Rows
from app.gnn.reach import BACKWARD, FORWARD, Narrow
from app.memory.slow_rows import SlowRows
from app.memory.tiers import TierBudget
from app.numerics.products import PLAIN, Finish, Operand, merge_rows
from app.partition.rows import RowPartition

Array = Any
NO_NUMBERS: Array = object()  # stands for an array in a dry run
KEPT_COLUMNS = 64  # of the features that are multiplied at a time where their product is kept
PRODUCT_ARRAYS = 3  # that making such a product holds at once
SPREAD_COLUMNS = 64  # of rows that are multiplied by A where they lie
NORM_EPSILON = 1e-5  # of layer normalisation: added to the variance of a row
# P = diag(left) (A, or A+I) diag(right), right of A^T
PRODUCTS = {
    "symmetric": ("symmetric", True, "symmetric"),
    "in_degree": ("in_degree", True, ""),
    "symmetric_alone": ("symmetric_alone", False, "symmetric_alone"),
    "mean": ("mean", False, ""),
    "sum": ("", False, ""),
}


class Engine(ByPieces):
    """Operations on rows, in the buffers of one plan (app/gnn/programs.py).

    neighbours_of   the product with the adjacency matrix A, on rows partitioned over ranks
    adjoint         the product with A^T, by which gradients go back; of an undirected graph the same
    params          replicated weights; `gradient` [params.size] is complete after `reduce_gradients`
    kept            columns of the products of the features that are made once, by their normalisation
    training        a backward pass follows the forward pass under way
    way             FORWARD or BACKWARD, of a pass whose products leave out what the loss does not depend on
                    (gnn/reach.py); "": they make all rows
    products        (layer, way) of all such products, as a dry run saw them
    narrow          what they leave out, by layer
    pooling         the products with the matrix R of a readout and with R^T; None: scores are of nodes
    places          [n_own] float32, how many nodes of its graph come before each node; -1 in other rows
    edges           the features of edges, by the entries of A and of A^T; None: no layer reads any
    counted         [n_own] float32, 1 for the rows that statistics of columns are over, else 0; None: no
                    layer asks for any
    counted_rows    how many these are on all ranks, at least 1
    measures        passes without a backward pass make such statistics too, and keep them; False: they go by
                    those kept
    traces          backward passes are of the network as it is applied, for who asks what its scores came
                    from (gnn/explain): statistics of columns are those kept, and gradients go back through
                    each product in turn
    """

    traces = False

    def __init__(
        self, neighbours: Neighbours, rows: RowPartition, params: Parameters, direct: int,
        adjoint: Neighbours | None = None,
    ) -> None:  # fmt: skip
        """direct   how many of the first parameters have gradients that arrive whole, not by row blocks."""
        group, block = neighbours.group, neighbours.block
        super().__init__(group.device, block.n_own)
        self.group, self.neighbours_of, self.adjoint = group, neighbours, adjoint or neighbours
        self.params, self.direct, self.cuts = params, direct, rows.cuts
        self.blocks = len(rows.starts) - 1
        self.first_row = block.lo
        self.starts = block.block_starts[None]
        first, last = (int(cut) for cut in rows.cuts[group.rank : group.rank + 2])
        self.spans = owned_spans(self.blocks, first, last)
        self.own_roots = owned_roots(self.blocks, first, last)
        self.kept: dict[str, int] = {}
        self.training, self.way = True, ""
        self.products: set[tuple[int, str]] = set()
        self.narrow: dict[int, Narrow] = {}
        self.pooling: tuple[Neighbours, Neighbours] | None = None
        self.places: Array | None = None
        self.edges: EdgeInputs | None = None
        self.counted: Array | None = None
        self.counted_rows = 1.0
        self.measures = False
        self.gradient: Array = None
        self._parts: Array = None
        self._nodes: Array = None

    def allocate(self, budget: TierBudget | None = None, inputs: FeatureStore | None = None) -> None:
        """Make the planned buffers (Programs.allocate) and the gradients."""
        super().allocate(budget, inputs)
        self.gradient = self.device.zeros((self.params.size,))
        self._parts = self.device.zeros((len(self.own_roots), self.params.size - self.direct))

    def bytes_of_row(self, X: Features, dropped: bool) -> int:
        """What a row takes where there is no limit: its buffers, of dense features its share of them too.

        dropped   whether some of the features are dropped, from a copy of them
        """
        copies = 1 + len(self.kept) + dropped if isinstance(X, DenseFeatures) else 0
        return 4 * (self.plan.columns + X.width * copies)

    # ---- products ---------------------------------------------------------------------------------------

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

    # ---- gradients --------------------------------------------------------------------------------------

    def gram(
        self,
        name: str,
        X: Rows | Features,
        D: Rows,
        scale: Array | None = None,
        pick: Array | None = None,
    ) -> None:
        """The gradient of parameter `name` is X^T D, a sum over nodes; rows of X are multiplied by scale.

        pick    which entries of X^T D, row-major, are the parameter's; None: all
        Ranks   all call (features whose gradient arrives whole exchange D)
        """
        into = self.params.slices[name]
        if isinstance(X, PiecedFeatures):
            return self._gram_pieces(name, X, D, scale, pick)
        if isinstance(X, Features) and into.stop <= self.direct:
            work = lambda: X.gradient(D.array, self.gradient[into], scale)  # noqa: E731
            counts = {"shape": (X.stored, D.width), "sparse": True}
            self._run("gram", name, [D], [], work, 2 * X.stored * D.width, **counts)
            return
        rows = [] if isinstance(X, Features) else [X]

        def tree() -> None:
            part = Operand(X.array, scale=scale)
            found = self.device.gram_roots([part], D.array, self.starts, self.spans)
            self._part(name)[...] = found if pick is None else found[:, pick]

        self._run("gram", name, [*rows, D], [], tree, 2 * X.width * D.width, shape=(X.width, D.width))

    def column_sums(self, name: str, D: Rows) -> None:
        """The gradient of parameter `name` [1, width] is the sum of the rows of D."""

        def work() -> None:
            self._part(name)[...] = self.device.column_roots(D.array, self.starts, self.spans)

        self._run("elementwise", name, [D], [], work, D.width, shape=(0, D.width))

    def count_rows(self, flags_own: np.ndarray) -> None:
        """Let statistics of columns be over some rows, [n_own] bool. Ranks: all call."""
        self.counted = self.device.put(flags_own.astype(np.float32))
        self.counted_rows = float(
            np.float32(max(int(self.group.sum_integers(np.array([flags_own.sum()]))[0]), 1))
        )

    def counted_mean(self, Z: Array, mean: Array | None = None) -> Array:
        """[width] the mean of the rows of Z [n_own, width] that are counted, or of squares of what is above a
        mean [width], within an operation. Ranks: all call."""
        sums = self.device.counted_sums(Z, self.counted, mean, self.starts[0])
        return self._sum_of(self.device.merge_roots(sums, self.spans)) / np.float32(self.counted_rows)

    def norm_gradients(
        self, names: tuple[str, str], D: Array, Z: Array, mean: Array, inverse: Array
    ) -> Array:
        """[2 width] the gradients by beta and gamma, whose names are given, of columns normalised by mean and
        inverse, within an operation; each over the rows that are counted. Ranks: all call."""
        roots, width = self._norm_roots(D, Z, mean, inverse), D.shape[1]
        for name, columns in zip(names, (slice(width), slice(width, None))):
            self._part(name)[...] = roots[:, columns]
        return self._sum_of(roots) / np.float32(self.counted_rows)

    def norm_means(self, D: Array, Z: Array, mean: Array, inverse: Array) -> Array:
        """[2 width] what `norm_gradients` returns, of columns without beta and gamma. Ranks: all call."""
        return self._sum_of(self._norm_roots(D, Z, mean, inverse)) / np.float32(self.counted_rows)

    def _norm_roots(self, D: Array, Z: Array, mean: Array, inverse: Array) -> Array:
        """[own roots, 2 width] the addends of sums of d and of d x (Elementwise.norm_sums)."""
        return self.device.merge_roots(self.device.norm_sums(D, Z, mean, inverse, self.starts[0]), self.spans)

    def mean_grams(self, pairs: list[tuple[Array, Array]]) -> list[Array]:
        """[k, m] X^T Y of pairs of rows X [n_own, k], Y [n_own, m], over the number of rows that are counted,
        within an operation; other rows are zero in X or Y. Ranks: all call (one sum)."""
        parts = [self.device.gram_roots([Operand(X)], Y, self.starts, self.spans) for X, Y in pairs]
        counted, shapes = np.float32(self.counted_rows), [(X.shape[1], Y.shape[1]) for X, Y in pairs]
        return [(each / counted).reshape(shape) for each, shape in zip(self.add_up(parts), shapes)]

    def add_up(self, parts: list[Array]) -> list[Array]:
        """[k] each, the sums of parts [own roots, k] over all ranks, within an operation.

        Ranks   all call (one sum)
        """
        sums, ends = self._sum_of(self.device.xp.concatenate(parts, axis=1)), [0]
        for part in parts:
            ends.append(ends[-1] + part.shape[1])
        return [sums[lo:hi] for lo, hi in pairwise(ends)]

    def nodes(self) -> Array:
        """[n_own] float32, 1 for the rows that are nodes, neither padding nor the own rows of graphs, else
        0."""
        if self._nodes is None:
            if self.pooling is None:
                found = np.arange(self.n_own) < self.neighbours_of.block.n_real
            else:
                found = self.device.get(self.pooling[1].scale("mean")) > 0
            self._nodes = self.device.put(found.astype(np.float32))
        return self._nodes

    def _sum_of(self, roots: Array) -> Array:
        """[width] the sum of all ranks' roots. Ranks: all call."""
        return sum_tree(self.group, roots, self.cuts, self.blocks)

    def dot(self, name: str, X: Rows, D: Rows, at: int = 0) -> None:
        """The gradient of entry `at` of parameter `name` [1, k] is the sum of all elements of X * D, row by
        row."""

        def work() -> None:
            dots = self.device.row_dots(X.array, D.array)
            self._part(name)[:, at : at + 1] = self.device.column_roots(
                dots[:, None], self.starts, self.spans
            )

        self._run("elementwise", name, [X, D], [], work, 2 * D.width, shape=(0, D.width))

    def give_addends(self, names: tuple[str, ...], sums: Array) -> None:
        """The gradients of parameters are the sums over all row blocks of `sums`, within an operation.

        sums    [own blocks, at least the sizes of `names`] the parameters side by side, row-major each
        """
        roots, at = [merge_rows(self.device.xp, sums[lo:hi]) for lo, hi, _ in self.spans], 0
        found = self.device.xp.concatenate(roots) if roots else sums[:0]
        for name in names:
            size = self.params[name].size
            self._part(name)[...] = found[:, at : at + size]
            at += size

    def _part(self, name: str) -> Array:
        """[own roots, size] the addends of a parameter's gradient."""
        into = self.params.slices[name]
        return self._parts[:, into.start - self.direct : into.stop - self.direct]

    def reduce_gradients(self) -> None:
        """Sum the addends of all parameters over blocks and ranks, in one message. Ranks: all call."""

        def work() -> None:
            self.gradient[self.direct :] = self._sum_of(self._parts)

        self._run("reduce", "gradients", [], [], work)

    # ---- elementwise ------------------------------------------------------------------------------------

    def activate(
        self,
        Z: Rows,
        scale: Array | None = None,
        bias: Array | None = None,
        add: Rows | None = None,
        relu: bool = False,
        drop: Any = None,
    ) -> None:
        """In place: Z = drop(relu(scale * Z + bias + add)), each only where given."""
        if scale is None and bias is None and add is None and not relu and drop is None:
            return
        flat = None if bias is None else bias.reshape(-1)

        def work() -> None:
            self.device.activate(Z.array, scale, flat, None if add is None else add.array, relu, drop)

        name = "activate" if drop is None else "activate, drop"
        self._run("elementwise", name, [Z, add], [Z], work, 4 * Z.width, shape=(0, Z.width))

    def deactivate(
        self, D: Rows, H: Rows | None = None, scale: Array | None = None, drop: Any = None, relu: bool = False
    ) -> None:
        """In place, the gradient through `activate` whose output was H: D = scale * (kept and active) D."""

        def work() -> None:
            self.device.deactivate(D.array, None if H is None else H.array, scale, drop, relu)

        self._run("elementwise", "deactivate", [D, H], [D], work, 2 * D.width, shape=(0, D.width))

    def copy(self, X: Rows | Features, name: str, scale: Array | None = None) -> Rows:
        """New rows scale * X."""
        if isinstance(X, PiecedFeatures):
            return self._copy_pieces(X, name, scale)
        Y = self.take(name, X.width)

        def work() -> None:
            Y.array[...] = X.array
            self.device.activate(Y.array, scale)

        self._run("elementwise", name, [X], [Y], work, X.width, shape=(0, X.width))
        return Y

    def add_into(self, Y: Rows, X: Rows | Features, factor: float = 1.0) -> None:
        """Y += factor * X."""
        work = lambda: self.device.add_into(Y.array, X.array, factor)  # noqa: E731
        self._run("elementwise", "add", [Y, X], [Y], work, 2 * Y.width, shape=(0, Y.width))

    def combine(self, X: DenseFeatures, factor: Array, Y: DenseFeatures, name: str) -> Rows:
        """New rows factor * X + Y, factor [1, 1]."""
        if isinstance(X, PiecedFeatures):
            return self._combine_pieces(X, factor, Y, name)
        Z = self.take(name, X.width)

        def work() -> None:
            self.device.xp.multiply(X.array, factor, out=Z.array)
            self.device.add_into(Z.array, Y.array)

        self._run("elementwise", name, [X, Y], [Z], work, 2 * X.width, shape=(0, X.width))
        return Z

    def normalise(self, Z: Rows, gamma: Array, beta: Array, name: str = "N") -> tuple[Rows, Any]:
        """New rows, those of Z normalised (layer normalisation), and what `normalise_back` needs beside Z."""
        N = self.take(name, Z.width)

        def work() -> tuple[Array, Array]:
            flat = gamma.reshape(-1), beta.reshape(-1)
            return self.device.normalise_rows(Z.array, *flat, NORM_EPSILON, N.array)[1:]

        return N, self._run("elementwise", name, [Z], [N], work, 8 * Z.width, shape=(0, Z.width))

    def normalise_back(self, D: Rows, Z: Rows, kept: Any, gamma: Array, names: tuple[str, str]) -> None:
        """In place, the gradient through `normalise`; names: the parameters gamma and beta, whose gradients
        go to the engine."""
        self.column_sums(names[1], D)
        product = self.take("DX", D.width)

        def work() -> None:
            self.device.normalise_rows_back(D.array, Z.array, *kept, gamma.reshape(-1), product.array)

        reads, writes, shape = [D, Z], [D, product], (0, D.width)
        self._run("elementwise", "normalise_back", reads, writes, work, 12 * D.width, shape=shape)
        self.column_sums(names[0], product)
        self.free(product)

    # ---- attention to all nodes -------------------------------------------------------------------------

    def over_all(
        self, name: str, reads: list[Rows], writes: list[Rows], work: Callable[[], Any],
        shape: tuple[int, int], exchanges: tuple[int, ...] = (),
    ) -> Any:  # fmt: skip
        """An operation of attention over all nodes (layers/all_nodes.py): `work` touches the arrays of the
        rows that it names and no others.

        shape   (k, m) of a product, (0, columns) of one that goes through rows     exchanges   as of `apply`
        """
        flops = 2 * shape[0] * shape[1]
        return self._run("global", name, reads, writes, work, flops, shape=shape, exchanges=exchanges)

    # ---- anything else ----------------------------------------------------------------------------------

    def apply(
        self,
        kind: str,
        name: str,
        reads: list[Any],
        writes: list[Any],
        work: Callable[[], Any],
        exchanges: tuple[int, ...] = (),
    ) -> Any:
        """An operation of a layer's own: `work` touches the arrays of the rows it names and no others.

        exchanges   columns of the rows that it exchanges, one number for each exchange
        """
        columns = max((each.width for each in (*reads, *writes) if each is not None), default=0)
        return self._run(kind, name, reads, writes, work, shape=(0, columns), exchanges=exchanges)


def power_name(kind: str, hops: int) -> str:
    """What a product P^hops X of the features is kept as, P of a name of PRODUCTS."""
    return kind if hops == 1 else f"{kind}^{hops}"


def power_of(kind: str) -> tuple[str, int]:
    """The name of PRODUCTS and the power that `power_name` put together."""
    name, _, hops = kind.partition("^")
    return name, int(hops or 1)
