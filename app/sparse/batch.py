"""StateBatch: states of several graphs side by side, as one dense array with rows (graph, node, state).

A state is a graph from which nodes were removed. A masked copy of an adjacency matrix is M A M with M
diagonal 0/1, so all states of one graph share one product of the original A with an [n, states*K] array
whose rows were zeroed: nothing three-dimensional and sparse is ever built (RL4GO section 4.5 stacks masked
copies instead).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.ordered import sum_blocks
from app.sparse.rowblock import RowBlock

Array = Any


class StateBatch:
    """The layout of a batch, and the operations that know it.

    members   (block, states): `states` states of each graph; all blocks of a batch share one number of row
              blocks and one set of cuts (partition/rows.py), so that sums over nodes can be cut alike
    rows      rows of the flat array on this rank, a multiple of 8
    Rows of member g are at `at[g]`, node-major: row = at[g] + local_node*states[g] + state.
    """

    def __init__(self, group: Group, members: list[tuple[RowBlock, int]]) -> None:
        self.group, self.device = group, group.device
        self.blocks = [block for block, _ in members]
        self.counts = [count for _, count in members]
        self.at, self.ext_at, self.first = [0], [0], [0]
        for block, count in members:
            self.at.append(self.at[-1] + block.n_own * count)
            self.ext_at.append(self.ext_at[-1] + block.n_ext * count)
            self.first.append(self.first[-1] + count)
        self.rows, self.states = self.at[-1], self.first[-1]
        self._state_of_row: Array | None = None
        self._starts: np.ndarray | None = None  # row blocks of all graphs, one after the other
        self._at, self._first = np.array(self.at), np.array(self.first)
        self._count = np.array(self.counts, dtype=np.int64)
        self._lo = np.array([b.lo for b in self.blocks], dtype=np.int64)
        self._n_real = np.array([b.n_real for b in self.blocks], dtype=np.int64)
        self.member_of_state = np.repeat(np.arange(len(members)), self._count)

    # ---- rows and states --------------------------------------------------------------------------------

    def row_of(self, states: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """[k] int64, the flat row of each (state, global node), -1 where another rank owns it."""
        member = self.member_of_state[states]
        local = nodes - self._lo[member]
        row = self._at[member] + local * self._count[member] + states - self._first[member]
        return np.where((local >= 0) & (local < self._n_real[member]), row, -1)

    def state_of_row(self) -> Array:
        """[rows] int64 on the device, the state each row belongs to."""
        if self._state_of_row is None:
            member = np.repeat(np.arange(len(self.blocks)), np.diff(self._at))
            inside = np.arange(self.rows) - self._at[member]
            self._state_of_row = self.device.put(self._first[member] + inside % self._count[member])
        return self._state_of_row

    def spread(self, values: Array) -> Array:
        """[rows, f] from one row [f] per state: each row gets its state's values."""
        if self.states == 1:
            return values
        return values[self.state_of_row()]

    def by_member(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """For each graph: its states, and the view [n_own, states, f] of its rows of X [rows, f]."""
        for g, block in enumerate(self.blocks):
            rows = X[self.at[g] : self.at[g + 1]]
            shape = (block.n_own, self.counts[g], X.shape[1])
            yield slice(self.first[g], self.first[g + 1]), rows.reshape(shape)

    def alive_mask(self, removed: list[np.ndarray]) -> Array:
        """[rows, 1] float32, one for nodes that are still there, zero for removed nodes and padding.

        removed   for each state the global numbers of its removed nodes
        """
        mask = np.ones((self.rows, 1), dtype=np.float32)
        for g, block in enumerate(self.blocks):
            mask[self.at[g] + block.n_real * self.counts[g] : self.at[g + 1]] = 0
        lengths = [len(r) for r in removed]
        states = np.repeat(np.arange(self.states), lengths)
        rows = self.row_of(states, np.concatenate(removed)) if sum(lengths) else np.empty(0, np.int64)
        mask[rows[rows >= 0]] = 0
        return self.device.put(mask)

    # ---- products ---------------------------------------------------------------------------------------

    def times(self, X_own: Array) -> Array:
        """A X for every state, each output row one chain in global column order.

        X_own     [rows, f] float32, rows of removed nodes zero
        returns   [rows, f]
        Ranks     all call; one exchange of rows. A is symmetric: this is also the adjoint.
        """
        return self._multiply(X_own, [[block.A] for block in self.blocks])[0]

    def weight_sums(self, alive_own: Array) -> Array:
        """[rows, 2], sums of the positive and of the negated negative edge weights to live neighbours.

        Rank two is all that eq. 1's edge term needs:
        sum_u relu(theta2 w) = plus*relu(theta2) + minus*relu(-theta2).
        Ranks     all call
        """
        xp = self.device.xp
        if all(block.A_weights is None for block in self.blocks):
            plus = self.times(alive_own)
            return xp.concatenate([plus, xp.zeros_like(plus)], axis=1)
        parts = [block.A_weights or [block.A, None] for block in self.blocks]
        return xp.ascontiguousarray(xp.concatenate(self._multiply(alive_own, parts), axis=1))

    def _multiply(self, X_own: Array, matrices: list[list[Any]]) -> list[Array]:
        """One exchange of X, then for each graph the product with each of its matrices (None: zero)."""
        xp, f = self.device.xp, X_own.shape[1]
        X_ext = self._extend(X_own)
        products = []
        for k in range(len(matrices[0])):
            Y = xp.zeros((self.rows, f), dtype=X_own.dtype)
            for g, block in enumerate(self.blocks):
                if matrices[g][k] is None:
                    continue
                width = self.counts[g] * f
                self.device.spmm_add(
                    matrices[g][k],
                    X_ext[self.ext_at[g] : self.ext_at[g + 1]].reshape(block.n_ext, width),
                    Y[self.at[g] : self.at[g + 1]].reshape(block.n_own, width),
                )
            products.append(Y)
        return products

    def _extend(self, X_own: Array) -> Array:
        """Own and ghost rows of every graph, in global order within a graph. Ranks: all call."""
        group = self.group
        if group.size == 1:
            return X_own
        if all(block.plan.mode == "gather" for block in self.blocks):
            return self._place(X_own, *self._gather_all(X_own), gathered=True)
        send, send_counts, recv_counts = self._pack(X_own)
        return self._place(X_own, group.exchange_rows(send, send_counts, recv_counts), recv_counts)

    def _gather_all(self, X_own: Array) -> tuple[Array, list[int]]:
        """All rows of all graphs, rank by rank."""
        own = np.array([b.own_counts for b in self.blocks]) * self._count[:, None]
        counts = own.sum(axis=0).tolist()
        return self.group.gather_rows(X_own, counts), counts

    def _pack(self, X_own: Array) -> tuple[Array, list[int], list[int]]:
        """The rows that each rank needs, rank by rank, and the row counts sent and received."""
        xp, size, rank = self.device.xp, self.group.size, self.group.rank
        f = X_own.shape[1]
        parts, send_counts, recv_counts = [], [0] * size, [0] * size
        for r in range(size):
            for g, block in enumerate(self.blocks):
                if r == rank:
                    continue
                count = self.counts[g]
                rows = X_own[self.at[g] : self.at[g + 1]]
                if block.plan.mode == "halo":
                    wanted = block.plan.send_rows[r]
                    rows = rows.reshape(block.n_own, count * f)[self.device.put(wanted)]
                    rows = rows.reshape(len(wanted) * count, f)
                    recv_counts[r] += block.plan.recv_counts[r] * count
                else:
                    recv_counts[r] += block.own_counts[r] * count
                parts.append(rows)
                send_counts[r] += rows.shape[0]
        send = xp.concatenate(parts) if parts else X_own[:0]
        return xp.ascontiguousarray(send), send_counts, recv_counts

    def _place(self, X_own: Array, received: Array, counts: list[int], gathered: bool = False) -> Array:
        """Received rows (rank-major) and own rows to their extended places (graph-major)."""
        if gathered and len(self.blocks) == 1:
            return received
        xp = self.device.xp
        X_ext = xp.empty((self.ext_at[-1], X_own.shape[1]), dtype=X_own.dtype)
        source = np.concatenate([[0], np.cumsum(counts)])[:-1].tolist()
        target = list(self.ext_at[:-1])
        for r in range(self.group.size):
            for g, block in enumerate(self.blocks):
                count = self.counts[g]
                own = r == self.group.rank
                halo = block.plan.mode == "halo" and not own
                rows = (block.plan.recv_counts[r] if halo else block.own_counts[r]) * count
                if own and not gathered:
                    piece = X_own[self.at[g] : self.at[g + 1]]
                else:
                    piece = received[source[r] : source[r] + rows]
                    source[r] += rows
                X_ext[target[g] : target[g] + rows] = piece
                target[g] += rows
        return X_ext

    # ---- sums over nodes --------------------------------------------------------------------------------

    def pool(self, H_own: Array) -> Array:
        """Sum over the nodes of each state, chained in block order.

        H_own     [rows, f]
        returns   [states, f]
        Ranks     all call; identical on all
        """
        f = H_own.shape[1]
        block_counts = self.blocks[0].rows.block_counts
        part_own = self.device.xp.zeros((block_counts[self.group.rank], self.states * f), dtype=H_own.dtype)
        for g, block in enumerate(self.blocks):
            rows = H_own[self.at[g] : self.at[g + 1]].reshape(block.n_own, self.counts[g] * f)
            columns = slice(self.first[g] * f, self.first[g + 1] * f)
            part_own[:, columns] = self.device.fold(block.block_starts, rows)
        return sum_blocks(self.group, part_own, block_counts).reshape(self.states, f)

    def gram_part(self, X_own: Array, D_own: Array) -> Array:
        """X^T D with one addend per row block, chained over the graphs of the batch within a block.

        X_own [rows, k]   D_own [rows, m]
        returns [owned blocks, k*m], to be summed by sum_blocks
        """
        graphs = len(self.blocks)
        if self._starts is None:
            shifted = [b.block_starts[:-1] * c + at for b, c, at in zip(self.blocks, self.counts, self.at)]
            self._starts = np.concatenate([*shifted, [self.rows]])
        addends = self.device.block_gram(X_own, D_own, self._starts)
        if graphs == 1:
            return addends
        own = len(self.blocks[0].block_starts) - 1
        width = addends.shape[1]
        by_block = addends.reshape(graphs, own, width).transpose(1, 0, 2)
        flat = self.device.xp.ascontiguousarray(by_block).reshape(own * graphs, width)
        return self.device.fold(np.arange(own + 1) * graphs, flat)

    def sum_blocks(self, part_own: Array) -> Array:
        """The whole sum of block addends [owned blocks, w] -> [w]. Ranks: all call; identical on all."""
        return sum_blocks(self.group, part_own, self.blocks[0].rows.block_counts)
