"""The operations on windows of series that networks are made of; every rank holds its rows.

A batch of B windows of n nodes are n_own * B rows on a rank: row i * B + b is node i in window b. Products
with weights work on these rows, products with A on the same memory as [n_own, B * w]: one product for all
windows.
"""

from typing import Any

import numpy as np

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

    def __init__(self, group: Group, block: RowBlock, hops: Hops, params: Parameters, most: int = 1) -> None:
        """most   windows of a batch, for which there is room from the start"""
        self.group, self.device, self.hops, self.params = group, group.device, hops, params
        rows, rank = block.rows, group.rank
        self.n_own, self.cuts, self.blocks = block.n_own, rows.cuts, len(rows.starts) - 1
        first, last = int(rows.cuts[rank]), int(rows.cuts[rank + 1])
        self.spans = owned_spans(self.blocks, first, last)
        self._starts = block.block_starts[None]
        self._parts = self.device.zeros((last - first, params.size))
        self.gradient = self.device.zeros((params.size,))
        self.windows, self.most = 1, most
        self._rooms: dict[str, Array] = {}

    def begin(self, windows: int) -> None:
        """A batch of so many windows."""
        self.windows = windows

    @property
    def rows(self) -> int:
        """Rows of the batch on this rank."""
        return self.n_own * self.windows

    def room(self, name: str, width: int, times: int = 1) -> Array:
        """Unset rows [rows, width], or [times, rows, width] where there are several steps of time, under a
        name.

        The same memory for each batch: fresh arrays of this size cost more than the work on them.
        """
        size = times * self.rows * width
        held = self._rooms.get(name)
        if held is None or held.shape[0] < size:
            windows = max(self.windows, self.most)
            held = self._rooms[name] = self.device.empty((times * self.n_own * windows * width,))
        shape = (self.rows, width) if times == 1 else (times, self.rows, width)
        return held[:size].reshape(shape)

    def dense(self, parts: list[Array], W: Array, out: Array | None = None) -> Array:
        """[parts] W, parts [rows, k] side by side."""
        return self.device.dense([Operand(each) for each in parts], W, PLAIN, out)

    def below(self, W: Array, V: Array) -> Array:
        """Weights of operands side by side: the rows of W, then those of V."""
        return self.device.xp.concatenate([W, V])

    def transposed(self, W: Array) -> Array:
        """W^T, row-major."""
        return self.device.xp.ascontiguousarray(W.T)

    def walk(self, X: Array, out: list[Array]) -> list[Array]:
        """The random walks of rows X [rows, w] (Hops.forward) in `out`, [rows, w] each. Ranks: all call."""
        shape = self.n_own, self.windows * X.shape[1]
        self.hops.forward(X.reshape(shape), None, [each.reshape(shape) for each in out])
        return out

    def walk_back(self, gradients: list[Array], dX: Array) -> None:
        """Add to dX [rows, w] what gradients by `walk` come to; they are used up. Ranks: all call."""
        shape = self.n_own, self.windows * dX.shape[1]
        self.hops.backward([each.reshape(shape) for each in gradients], dX.reshape(shape))

    # ---- gradients --------------------------------------------------------------------------------------

    def gram(self, name: str, parts: list[Array], D: Array, pick: slice = slice(None)) -> None:
        """The gradient of a parameter is [parts]^T D, parts [rows, k], D [rows, m], or [times * rows, *] of
        several steps of time one after the other; pick: the columns of D.

        The addend of a row block is a chain over its rows, step after step of time. Only then are blocks
        added up (`reduce`), so that the order is the same wherever the blocks are.
        """
        times = D.shape[0] // self.rows if self.rows else 1  # a rank may own no rows
        starts = self._starts * self.windows + self.rows * np.arange(times)[:, None]
        found = self.device.gram([Operand(each) for each in parts], D, starts)
        if pick != slice(None):
            blocks, columns = found.shape[0], D.shape[1]
            found = found.reshape(blocks, found.shape[1] // columns, columns)[:, :, pick]
            found = found.reshape(blocks, found.shape[1] * found.shape[2])
        self._parts[:, self.params.slices[name]] = found

    def gram_roots(self, parts: list[Array], D: Array) -> Array:
        """[own roots, k * m] the addends of [parts]^T D."""
        starts = self._starts * self.windows
        return self.device.gram_roots([Operand(each) for each in parts], D, starts, self.spans)

    def clear(self, name: str) -> None:
        """The gradient of a parameter is zero: nothing depends on it."""
        self._parts[:, self.params.slices[name]] = 0

    def column_sums(self, name: str, D: Array) -> None:
        """The gradient of a parameter is the sums of the columns of D [rows, m]."""
        self._parts[:, self.params.slices[name]] = self.device.fold(self._starts[0] * self.windows, D)

    def column_roots(self, D: Array) -> Array:
        """[own roots, m] the addends of the sums of the columns of D [rows, m]."""
        return self.device.column_roots(D, self._starts * self.windows, self.spans)

    def sum(self, roots: Array) -> Array:
        """[w] the sum of all ranks' addends. Ranks: all call."""
        return sum_tree(self.group, roots, self.cuts, self.blocks)

    def reduce(self) -> None:
        """The gradient, in one message. Ranks: all call."""
        self.gradient[...] = self.sum(self.device.merge_roots(self._parts, self.spans))
