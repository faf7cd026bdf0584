"""The operations on windows of series that networks are made of; every rank holds its rows.

A batch of B windows of n nodes are n_own * B rows on a rank: row i * B + b is node i in window b. Products
with weights work on these rows, products with A on the same memory as [n_own, B * w]: one product for all
windows.
"""

from typing import Any

from app.comm.group import Group
from app.comm.ordered import sum_tree
from app.comm.tree import owned_spans
from app.gnn.forecast.hops import Hops
from app.gnn.parameters import Parameters
from app.numerics.products import PLAIN, Operand
from app.sparse.rowblock import RowBlock

Array = Any


class Steps:
    """Products, random walks and gradients on the rows of a batch of windows.

    gradient   [params.size] of all weights, complete after `reduce`
    """

    def __init__(self, group: Group, block: RowBlock, hops: Hops, params: Parameters) -> None:
        self.group, self.device, self.hops, self.params = group, group.device, hops, params
        rows, rank = block.rows, group.rank
        self.n_own, self.cuts, self.blocks = block.n_own, rows.cuts, len(rows.starts) - 1
        first, last = int(rows.cuts[rank]), int(rows.cuts[rank + 1])
        self.spans = owned_spans(self.blocks, first, last)
        self._starts = block.block_starts[None]
        self._parts = self.device.zeros((last - first, params.size))
        self.gradient = self.device.zeros((params.size,))
        self.windows = 1

    def begin(self, windows: int) -> None:
        """A batch of so many windows; no gradient has been added yet."""
        self.windows = windows
        self._parts[...] = 0

    @property
    def rows(self) -> int:
        """Rows of the batch on this rank."""
        return self.n_own * self.windows

    def empty(self, width: int) -> Array:
        """Unset rows [rows, width]."""
        return self.device.empty((self.rows, width))

    def zeros(self, width: int) -> Array:
        """Rows [rows, width] of zeros."""
        return self.device.zeros((self.rows, width))

    def dense(self, parts: list[Array], W: Array, out: Array | None = None) -> Array:
        """[parts] W, parts [rows, k] side by side."""
        return self.device.dense([Operand(each) for each in parts], W, PLAIN, out)

    def transposed(self, W: Array) -> Array:
        """W^T, row-major."""
        return self.device.xp.ascontiguousarray(W.T)

    def walk(self, X: Array) -> list[Array]:
        """The random walks of rows X [rows, w] (Hops.forward), [rows, w] each. Ranks: all call."""
        shape = self.n_own, self.windows * X.shape[1]
        return [each.reshape(X.shape) for each in self.hops.forward(X.reshape(shape))]

    def walk_back(self, gradients: list[Array], dX: Array) -> None:
        """Add to dX [rows, w] what gradients by `walk` come to; they are used up. Ranks: all call."""
        shape = self.n_own, self.windows * dX.shape[1]
        self.hops.backward([each.reshape(shape) for each in gradients], dX.reshape(shape))

    # ---- gradients --------------------------------------------------------------------------------------

    def gram(self, name: str, parts: list[Array], D: Array) -> None:
        """Add [parts]^T D to the gradient of a parameter, by row blocks.

        A block's addends of several steps of time are one chain; only then are blocks added up (`reduce`), so
        that the order is the same wherever the blocks are.
        """
        operands = [Operand(each) for each in parts]
        found = self.device.gram(operands, D, self._starts * self.windows)
        self._parts[:, self.params.slices[name]] += found

    def gram_roots(self, parts: list[Array], D: Array) -> Array:
        """[own roots, k * m] the addends of [parts]^T D."""
        starts = self._starts * self.windows
        return self.device.gram_roots([Operand(each) for each in parts], D, starts, self.spans)

    def column_sums(self, name: str, D: Array) -> None:
        """Add the sums of the columns of D [rows, m] to the gradient of a parameter."""
        found = self.device.fold(self._starts[0] * self.windows, D)
        self._parts[:, self.params.slices[name]] += found

    def column_roots(self, D: Array) -> Array:
        """[own roots, m] the addends of the sums of the columns of D [rows, m]."""
        return self.device.column_roots(D, self._starts * self.windows, self.spans)

    def sum(self, roots: Array) -> Array:
        """[w] the sum of all ranks' addends. Ranks: all call."""
        return sum_tree(self.group, roots, self.cuts, self.blocks)

    def reduce(self) -> None:
        """The gradient, in one message. Ranks: all call."""
        self.gradient[...] = self.sum(self.device.merge_roots(self._parts, self.spans))
