"""ByPieces: an engine's operations on features that lie in the slow tier, a piece of the rows at a time.

Every operation here makes the bits of its counterpart on whole features (products.py, sums.py, engine.py):
rows are worked on alone, and sums over rows are trees over row blocks, of which a piece has whole subtrees.
An operation on a piece is one of the program's operations, so that the plan of memory sees the pieces as
tensors, may keep some of them, and brings the next one while one is worked on.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from app.comm.tree import finish_tree
from app.gnn.pieces import PiecedFeatures
from app.gnn.programs import Programs, Rows
from app.numerics.products import PLAIN, Finish, Operand

Array = Any
Work = Callable[..., None]


class ByPieces(Programs):
    """What Engine does with PiecedFeatures; its attributes are the engine's."""

    def each_piece(
        self, kind: str, name: str, features: list[PiecedFeatures], reads: list[Rows], writes: list[Rows],
        work: Work, flops: int,
    ) -> None:  # fmt: skip
        """An operation for each piece of features.

        work   called with (number of the piece, its rows, the array of each of the features)
        Every other pass over the pieces goes backwards: what was last in the fast tier is read first.
        """
        count = len(features[0].pieces)
        order = range(count)[::-1] if self._backwards else range(count)
        self._backwards = not self._backwards
        for step, i in enumerate(order):
            pieces = [X.pieces[i] for X in features]
            room = [self._room(X, i) for X in features]
            scratch = [each for each in room if each is not None]
            made = writes if step else []  # by the pieces before
            self._run(
                kind, f"{name}, piece {i + 1}", [*pieces, *reads, *made], [*writes, *scratch],
                partial(self._work_on, i, features, room, work), flops // count,
            )  # fmt: skip
            self.free(*scratch)

    def _work_on(self, i: int, features: list[PiecedFeatures], room: list[Rows | None], work: Work) -> None:
        arrays = [self._read(X, space, i) for X, space in zip(features, room)]
        work(i, features[0].cut.rows[i], *arrays)

    def _room(self, X: PiecedFeatures, i: int) -> Rows | None:
        """Rows for a copy of a piece from which something is dropped."""
        return self.take(f"dropped {X.name}", X.width, X.pieces[i].rows) if X.drop else None

    def _read(self, X: PiecedFeatures, room: Rows | None, i: int) -> Array:
        """What an operation reads of a piece."""
        array = X.pieces[i].array
        if room is None:
            return array
        room.array[...] = array
        drop = replace(X.drop, first_row=X.drop.first_row + X.cut.rows[i].start)
        self.device.activate(room.array, drop=drop)
        return room.array

    def _dense_pieces(self, X: PiecedFeatures, W: Array, scale: Array | None, name: str) -> Rows:
        """New rows scale * (X W)."""
        Z = self.take(name, W.shape[1])

        def work(_: int, rows: slice, X: Array) -> None:
            then = PLAIN if scale is None else Finish(scale=scale[rows])
            self.device.dense([Operand(X)], W, then, Z.array[rows])

        self.each_piece("dense", name, [X], [], [Z], work, 2 * X.width * W.shape[1])
        return Z

    def _dense_sum_pieces(self, terms: list[tuple[Any, Array]], W: Array, name: str) -> Rows:
        """New rows X W + X' W' + ..., W all weights in turn; some of the terms are features."""
        Z = self.take(name, W.shape[1])
        features = [X for X, _ in terms if isinstance(X, PiecedFeatures)]
        others = [X for X, _ in terms if not isinstance(X, PiecedFeatures)]

        def work(_: int, rows: slice, *arrays: Array) -> None:
            pieces = iter(arrays)
            parts = [Operand(next(pieces) if X in features else X.array[rows]) for X, _ in terms]
            self.device.dense(parts, W, PLAIN, Z.array[rows])

        self.each_piece("dense", name, features, others, [Z], work, 2 * W.shape[0] * W.shape[1])
        return Z

    def _copy_pieces(self, X: PiecedFeatures, name: str, scale: Array | None) -> Rows:
        """New rows scale * X."""
        Y = self.take(name, X.width)

        def work(_: int, rows: slice, X: Array) -> None:
            Y.array[rows] = X
            self.device.activate(Y.array[rows], None if scale is None else scale[rows])

        self.each_piece("elementwise", name, [X], [], [Y], work, X.width)
        return Y

    def _combine_pieces(self, X: PiecedFeatures, factor: Array, Y: PiecedFeatures, name: str) -> Rows:
        """New rows factor * X + Y."""
        Z = self.take(name, X.width)

        def work(_: int, rows: slice, X: Array, Y: Array) -> None:
            self.device.xp.multiply(X, factor, out=Z.array[rows])
            self.device.add_into(Z.array[rows], Y)

        self.each_piece("elementwise", name, [X, Y], [], [Z], work, 2 * X.width)
        return Z

    def _gram_pieces(
        self, name: str, X: PiecedFeatures, D: Rows, scale: Array | None, pick: Array | None
    ) -> None:
        """The addends of X^T (scale * D), of which the parameter `name` has the entries `pick`; None: all."""
        sums: list[Array] = [None] * len(X.pieces)
        whole, device, cut = X, self.device, X.cut

        def work(i: int, rows: slice, X: Array) -> None:
            part = Operand(X, scale=None if scale is None else scale[rows])
            sums[i] = device.gram_roots([part], D.array[rows], cut.starts[i], cut.spans[i])

        def finish() -> None:
            rows = [each[k] for each in sums for k in range(each.shape[0])]
            for at, node in enumerate(self.own_roots):
                total = finish_tree(rows, cut.roots, self.blocks, node, device.plus)
                self._part(name)[at] = total if pick is None else total[pick]

        self.each_piece("gram", name, [whole], [D], [], work, 2 * whole.width * D.width)
        self._run("gram", f"{name}, sum of the pieces", [], [], finish)
