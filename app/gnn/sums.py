"""Sums: an engine's sums over nodes, which gradients of weights and statistics of columns are.

Every one of them is a tree over row blocks, so that its bits are the same on any number of ranks.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from app.comm.ordered import sum_tree
from app.gnn.by_pieces import ByPieces
from app.gnn.features import Features
from app.gnn.pieces import PiecedFeatures
from app.gnn.programs import Rows
from app.numerics.products import Operand, merge_rows

Array = Any


class Sums(ByPieces):
    """What Engine sums over nodes; its attributes are the engine's."""

    # ---- gradients of parameters ------------------------------------------------------------------------

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

    # ---- statistics of columns --------------------------------------------------------------------------

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

    # ---- over all ranks ---------------------------------------------------------------------------------

    def add_up(self, parts: list[Array]) -> list[Array]:
        """[k] each, the sums of parts [own roots, k] over all ranks, within an operation.

        Ranks   all call (one sum)
        """
        sums, ends = self._sum_of(self.device.xp.concatenate(parts, axis=1)), [0]
        for part in parts:
            ends.append(ends[-1] + part.shape[1])
        return [sums[lo:hi] for lo, hi in pairwise(ends)]

    def _sum_of(self, roots: Array) -> Array:
        """[width] the sum of all ranks' roots. Ranks: all call."""
        return sum_tree(self.group, roots, self.cuts, self.blocks)
