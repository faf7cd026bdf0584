"""Exchange: how the rows of a batch reach the ranks that multiply by them, and the products themselves."""

from collections.abc import Callable, Iterator
from functools import partial
from math import gcd
from typing import Any

import numpy as np

from app.comm.group import Group
from app.numerics.products import LOOKUP_STATES, Finish, Lookup, Operand
from app.sparse.rowblock import RowBlock

Array = Any


class Exchange:
    """What a batch moves before a sparse product; made once for a batch.

    blocks, counts   row blocks of the graphs, and how many states each has
    at               [graphs+1] the first flat row of each graph: rows are (graph, node, state)
    unit             flat rows that always travel together: those of a node, where all graphs have equally
                     many states. Row numbers below are in units.
    Graphs whose rows are one matrix share one message and are multiplied with an array of extended rows; the
    tiles of "staged" graphs are multiplied one broadcast after the other. The bits are the same: either way a
    row is one chain in global column order.
    """

    def __init__(self, group: Group, blocks: list[RowBlock], counts: list[int], at: list[int]) -> None:
        self.group, self.device, self.blocks = group, group.device, blocks
        self.unit = max(gcd(*counts), 1)
        self.counts = [count // self.unit for count in counts]
        self.at = [row // self.unit for row in at]
        modes = [block.plan.mode for block in blocks]
        self.whole = [g for g, mode in enumerate(modes) if mode != "staged"]
        self.staged = [g for g, mode in enumerate(modes) if mode == "staged"]
        # [members, ranks] rows that come from each rank, own rows included
        self._table = self._received(self.whole)
        self._stages = self._received(self.staged)
        self._firsts = _starts(self._table.sum(axis=1))
        # The rows of the one graph with one state, all of them here, are the operand as they are.
        self._at_once = group.size == 1 and self.whole == [0] and counts == [1] and len(blocks) == 1
        self._gathers = all(modes[g] == "gather" for g in self.whole)
        self._sends: tuple[Array, list[int]] | None = None
        self._order: Array | None = None
        self._tables: dict[tuple[int, ...], Any] = {}

    def _received(self, members: list[int]) -> np.ndarray:
        """[members, ranks] int64, the rows of each member that come from each rank."""
        rows = [np.multiply(self.blocks[g].plan.recv_counts, self.counts[g]) for g in members]
        return np.array(rows, dtype=np.int64).reshape(len(members), self.group.size)

    # ---- products ---------------------------------------------------------------------------------------

    def multiply(
        self,
        X_own: Array,
        matrices: list[list[Any]],
        live_own: Array | None = None,
        gate_own: Operand | None = None,
    ) -> list[Array]:
        """One exchange of X, then for each graph the product with each of its matrices.

        X_own      [rows, f] row-major
        matrices   for each graph equally many: A or other values in its pattern (RowBlock.A), None for zero
        live_own   [rows] or None: rows of the products where this is zero may be left out
        gate_own   (with live_own) rows of f columns: products are multiplied by live_own * (gate_own > 0)
        returns    as many arrays [rows, f] as a graph has matrices, each output row one chain in global
                   column order
        Ranks      all call
        """
        writes = self._writes(matrices)
        options = {"write": True, "gate": gate_own} if writes else {}
        make = self.device.empty if writes else self.device.zeros
        products = [make(X_own.shape) for _ in matrices[0]]

        def add(members: list[int], X: Array, x_at: list[int], tiles: list[list[Any]]) -> None:
            for k, Y in enumerate(products):
                self._add_products(members, [own[k] for own in tiles], X, x_at, Y, live_own, options)

        self._for_rows(X_own, matrices, add)
        if gate_own is None or writes:
            return products
        none = X_own[:0]
        gates = {"base_scale": live_own, "gate": gate_own.X, "gate_index": gate_own.index}
        return [self.device.dense([], none, Finish(base=Y, **gates)) for Y in products]

    def accumulate(
        self, X_own: Array, matrices: list[Any], Y_own: Array, live_own: Array | None = None
    ) -> None:
        """Y += A X for each graph, one exchange of X; every row's chain goes on from what Y holds.

        X_own, Y_own   [rows, f] row-major
        matrices       one for each graph
        live_own       [rows] or None: rows of Y where this is zero may be left as they are
        Ranks          all call
        """

        if self._at_once and matrices[0] is not None:
            self.device.spmm_add(matrices[0], X_own, Y_own, live_own)
            return

        def add(members: list[int], X: Array, x_at: list[int], tiles: list[list[Any]]) -> None:
            self._add_products(members, [own[0] for own in tiles], X, x_at, Y_own, live_own, {})

        self._for_rows(X_own, [[A] for A in matrices], add)

    def visit(self, X_own: Array, tiles: Any, work: Callable[[Any, Array], None]) -> None:
        """One exchange of X for anything else than a product, of a batch of one graph with one state.

        X_own   [rows, f] row-major
        tiles   what stands for the matrix; staged: for each rank's tile
        work    called with what stands for each matrix, and the rows of X that its columns number, in turn
        Ranks   all call
        """

        def add(members: list[int], X: Array, x_at: list[int], found: list[list[Any]]) -> None:
            work(found[0][0], X)

        self._for_rows(X_own, [[tiles]], add)

    def visit_columns(
        self, X_own: Array, widths: tuple[int, ...], work: Callable[[Array, int], None]
    ) -> None:
        """The rows of X that a matrix's columns number, of a batch of one graph with one state that is not
        staged: some columns after the others, the next ones under way while work is done on some.

        X_own    [rows, f] row-major
        widths   of f columns, how many at a time; all at once on one rank
        work     called with the rows [*, width], and which column is their first
        Memory   two pieces of the columns of rows that are received, sent and, of own rows, copied
        Ranks    all call
        """
        if self.group.size == 1 or len(widths) == 1:
            work(self._extend(X_own), 0)
            return
        firsts, counts = _starts(widths), self._table.sum(axis=0).tolist()
        if not self._gathers and self._sends is None:
            self._sends = self._sent_rows()
        index, sizes = (None, None) if self._gathers else self._sends
        parts = [X_own[:, first : first + width] for first, width in zip(firsts, widths)]
        makes = [partial(self._some_columns, part, turn, index) for turn, part in enumerate(parts)]
        own_at = sum(counts[: self.group.rank])
        for part, first, received in zip(parts, firsts, self.group.rows_in_turns(makes, sizes, counts)):
            if index is not None:
                received[own_at : own_at + len(part)] = part
            work(received, first)

    def _some_columns(self, part: Array, turn: int, index: Array | None) -> Array:
        """Own rows of some columns, in an array of their own; index: of these the rows that are sent."""
        own = self.group.scratch(f"columns {turn % 2}", part.shape, part.dtype)
        self.device.copy_into(own, part)
        if index is None:
            return own
        sent = self.group.scratch(f"columns sent {turn % 2}", (len(index), part.shape[1]), part.dtype)
        return _take(self.device.xp, own, index, sent)

    def _writes(self, matrices: list[list[Any]]) -> bool:
        """True where one product after another covers all rows, and may write them."""
        covered = not self.staged and all(A is not None for own in matrices for A in own)
        return covered and self.device.writes_products

    def multiply_lookup(
        self, table: Array, code_own: Array, matrices: list[Any], live_own: Array | None = None
    ) -> Array:
        """multiply for rows that stand in a table: only their numbers travel, 4 bytes instead of a row.

        table      [t, f], the same on all ranks where rows of theirs are read
        code_own   [rows] int32, X[r] = table[code_own[r]]
        matrices   one for each graph
        returns    [rows, f]
        Ranks      all call
        """
        owned = [[A] for A in matrices]
        writes = self._writes(owned)
        options = {"write": True} if writes else {}
        Y = (self.device.empty if writes else self.device.zeros)((len(code_own), table.shape[1]))

        def add(members: list[int], code: Array, x_at: list[int], tiles: list[list[Any]]) -> None:
            self._add_lookups(members, [own[0] for own in tiles], table, code, x_at, Y, live_own, options)

        self._for_rows(code_own[:, None], owned, add)
        return Y

    def lookup_part(
        self, table: Array, code_own: Array, matrices: list[Any], live_own: Array, scale_own: Array
    ) -> Operand:
        """multiply_lookup as an operand of the next product, times scale_own by rows.

        The product makes the rows as it needs them where the device can, for one graph. It must come before
        the next exchange.

        table, code_own, matrices, live_own   as of multiply_lookup
        scale_own   [own rows] float32
        Ranks       all call
        """
        count = self.counts[0] * self.unit
        late = len(matrices) == 1 and count <= LOOKUP_STATES and self.device.makes_rows
        if not (late and self._writes([matrices])):
            return Operand(self.multiply_lookup(table, code_own, matrices, live_own), None, scale_own)
        (A,) = matrices
        code = self._extend(code_own.reshape(-1, self.unit)).reshape(A.shape[1], count)
        N = self.device.empty((len(code_own), table.shape[1]))
        return Operand(N, None, scale_own, Lookup(A, table, code, live_own))

    def _for_rows(self, X_own: Array, matrices: list[list[Any]], add: Callable[..., None]) -> None:
        """Bring rows [rows, f] to the graphs that need them.

        add     called with members, rows (in units of `unit`), where those of each member begin, and matrices
        Ranks   all call
        """
        rows, f = X_own.shape
        X = X_own.reshape(rows // self.unit, self.unit * f)
        if self.whole:
            add(self.whole, self._extend(X), self._firsts, [matrices[g] for g in self.whole])
        if self.staged:
            stages = self.group.stage_rows(self._pick(X, self.staged), self._stages.sum(axis=0).tolist())
            for rank, X_stage in stages:
                tiles = [[None if A is None else A[rank] for A in matrices[g]] for g in self.staged]
                add(self.staged, X_stage, _starts(self._stages[:, rank]), tiles)

    def _add_products(
        self,
        members: list[int],
        matrices: list[Any],
        X: Array,
        x_at: list[int],
        Y: Array,
        live_own: Array | None,
        options: dict[str, Any],
    ) -> None:
        """Y += A X for every member, whose rows begin at x_at in X; options of the device's spmm_add."""
        f = Y.shape[1]
        if len(members) > 1 and self.device.multiplies_members:
            table = self._member_table(members, matrices, x_at)
            self.device.spmm_members(table, X, Y, f, live_own, **options)
            return
        gate = options.get("gate")
        for A, x, own, count in self._each(members, matrices, x_at):
            live = None if live_own is None else live_own[own]
            X_g = X[x : x + A.shape[1] * count // self.unit].reshape(A.shape[1], count * f)
            if gate is not None:
                options = {**options, "gate": gate.of_rows(own)}
            self.device.spmm_add(A, X_g, Y[own].reshape(A.shape[0], count * f), live, **options)

    def _add_lookups(
        self,
        members: list[int],
        matrices: list[Any],
        table: Array,
        code: Array,
        x_at: list[int],
        Y: Array,
        live_own: Array | None,
        options: dict[str, Any],
    ) -> None:
        """Y += A X for every member, X[r] = table[code[r]]; options of the device's spmm_lookup."""
        f = Y.shape[1]
        if len(members) > 1 and self.device.multiplies_members:
            graphs = self._member_table(members, matrices, x_at)
            self.device.lookup_members(graphs, table, code, Y, live_own, **options)
            return
        for A, x, own, count in self._each(members, matrices, x_at):
            live = None if live_own is None else live_own[own]
            code_g = code[x : x + A.shape[1] * count // self.unit].reshape(A.shape[1], count)
            rows = Y[own].reshape(A.shape[0], count * f)
            self.device.spmm_lookup(A, table, code_g, rows, live, **options)

    def _each(self, members: list[int], matrices: list[Any], x_at: list[int]) -> Iterator[tuple[Any, ...]]:
        """For members with a matrix: it, where its rows begin in units, its own rows, its states."""
        for g, A, x in zip(members, matrices, x_at):
            if A is not None:
                own = slice(self.at[g] * self.unit, self.at[g + 1] * self.unit)
                yield A, x, own, self.counts[g] * self.unit

    def _member_table(self, members: list[int], matrices: list[Any], x_at: list[int]) -> Any:
        """What the device needs to multiply all members in one call; kept."""
        key = tuple(id(A) for A in matrices)
        if key not in self._tables:
            held = [i for i, A in enumerate(matrices) if A is not None]
            rows = [(x_at[i], self.at[members[i]], self.counts[members[i]]) for i in held]
            rows = (np.array(rows) * self.unit).tolist()
            self._tables[key] = self.device.member_table([matrices[i] for i in held], rows)
        return self._tables[key]

    # ---- extended rows ----------------------------------------------------------------------------------

    def _extend(self, X: Array) -> Array:
        """Own and received rows of the graphs of one matrix, graph by graph in global order.

        The array may be used again by the next call. Ranks: all call.
        """
        if self.group.size == 1:
            return self._pick(X, self.whole)
        received = self._receive(self._pick(X, self.whole))
        if len(self.whole) == 1:
            return received
        if self._order is None:
            self._order = self.device.put(self._graph_order())
        out = self.group.scratch("extended", received.shape, X.dtype)
        return _take(self.device.xp, received, self._order, out)

    def _receive(self, X: Array) -> Array:
        """The rows from rank 0, then from rank 1, ..., own rows in their place, each graph by graph."""
        group, counts = self.group, self._table.sum(axis=0).tolist()
        out = group.scratch("received", (sum(counts), X.shape[1]), X.dtype)
        if self._gathers:
            return group.gather_rows(X, counts, out)
        if self._sends is None:
            self._sends = self._sent_rows()
        index, sizes = self._sends
        sent = group.scratch("sent", (sum(sizes), X.shape[1]), X.dtype)
        received = group.exchange_rows(_take(self.device.xp, X, index, sent), sizes, counts, out)
        first = sum(counts[: group.rank])
        received[first : first + X.shape[0]] = X
        return received

    def _sent_rows(self) -> tuple[Array, list[int]]:
        """The own rows that each rank needs, rank by rank and graph by graph; how many go to each rank."""
        at = _starts([self.at[g + 1] - self.at[g] for g in self.whole])
        sizes, parts = [0] * self.group.size, [np.empty(0, dtype=np.int64)]
        for rank in range(self.group.size):
            for g, first in zip(self.whole, at):
                count = self.counts[g]
                rows = first + self.blocks[g].sent_rows(rank)[:, None] * count + np.arange(count)
                parts.append(rows.reshape(-1))
                sizes[rank] += rows.size
        return self.device.put(np.concatenate(parts)), sizes

    def _graph_order(self) -> np.ndarray:
        """[extended rows] int64, where the rows received rank by rank belong in the order of the graphs."""
        by_rank = np.array(_starts(self._table.T.reshape(-1))).reshape(self._table.T.shape).T
        sizes = self._table.reshape(-1)
        shift = by_rank.reshape(-1) - np.array(_starts(sizes))
        return np.repeat(shift, sizes) + np.arange(sizes.sum())

    def _pick(self, X: Array, members: list[int]) -> Array:
        """The own rows of some graphs, one after the other; X itself where those are all."""
        if len(members) == len(self.blocks):
            return X
        return self.device.xp.concatenate([X[self.at[g] : self.at[g + 1]] for g in members])


def _starts(sizes: Any) -> list[int]:
    """Where each of consecutive pieces begins."""
    return (np.cumsum(sizes) - sizes).tolist()


def _take(xp: Any, X: Array, index: Array, out: Array) -> Array:
    """out[i] = X[index[i]], in order."""
    if isinstance(X, np.ndarray):  # NumPy's default mode copies `out` first
        return np.take(X, index, axis=0, out=out, mode="clip")
    return xp.take(X, index, axis=0, out=out)
