"""StateBatch: states of several graphs side by side, as one dense array with rows (graph, node, state).

A state is a graph from which nodes were removed. A masked copy of an adjacency matrix is M A M with M
diagonal 0/1, so all states of one graph share one product of the original A with an [n, states*K] array
whose rows were zeroed: nothing three-dimensional and sparse is ever built (RL4GO section 4.5 stacks masked
copies instead).
"""

from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.ordered import sum_blocks
from app.numerics.products import Members, Operand
from app.sparse.exchange import Exchange
from app.sparse.rowblock import RowBlock

Array = Any


class StateBatch:
    """The layout of a batch, and the operations that know it.

    members   (block, states): `states` states of each graph; all blocks of a batch share one number of row
              blocks and one set of cuts (partition/rows.py), so that sums over nodes can be cut alike
    rows      rows of the flat array on this rank, a multiple of 8
    kept      what others derive for the batch once, by name
    Rows of member g are at `at[g]`, node-major: row = at[g] + local_node*states[g] + state.
    """

    def __init__(self, group: Group, members: list[tuple[RowBlock, int]]) -> None:
        self.group, self.device = group, group.device
        self.blocks = [block for block, _ in members]
        self.counts = [count for _, count in members]
        self.at, self.first = [0], [0]
        for block, count in members:
            self.at.append(self.at[-1] + block.n_own * count)
            self.first.append(self.first[-1] + count)
        self.rows, self.states = self.at[-1], self.first[-1]
        self.exchange = Exchange(group, self.blocks, self.counts, self.at)
        self.kept: dict[str, Any] = {}
        self._state_of_row: Array | None = None
        self._node_of_row: Array | None = None
        self._members: Members | None = None
        self._whole: Array | None = None
        self._inverse_degrees: Array | None = None
        self._at, self._first = np.array(self.at), np.array(self.first)
        self._count = np.array(self.counts, dtype=np.int64)
        self._lo = np.array([b.lo for b in self.blocks], dtype=np.int64)
        self._n_real = np.array([b.n_real for b in self.blocks], dtype=np.int64)
        self.member_of_state = np.repeat(np.arange(len(members)), self._count)

    # ---- rows and states --------------------------------------------------------------------------------

    def row_of(self, states: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """[k] int64, the flat row of each (state, global node), -1 where another rank owns it."""
        if len(self.blocks) == 1:
            local = nodes - self.blocks[0].lo
            row = local * self.states + states
            return np.where((local >= 0) & (local < self.blocks[0].n_real), row, -1)
        member = self.member_of_state[states]
        local = nodes - self._lo[member]
        row = self._at[member] + local * self._count[member] + states - self._first[member]
        return np.where((local >= 0) & (local < self._n_real[member]), row, -1)

    def state_of_row(self) -> Array:
        """[rows] int32 on the device, the state each row belongs to."""
        if self._state_of_row is None:
            if len(self.blocks) == 1:
                states = np.tile(np.arange(self.states, dtype=np.int32), self.blocks[0].n_own)
            else:
                member = np.repeat(np.arange(len(self.blocks)), np.diff(self._at))
                inside = (np.arange(self.rows) - self._at[member]) % self._count[member]
                states = (self._first[member] + inside).astype(np.int32)
            self._state_of_row = self.device.put(states)
        return self._state_of_row

    def node_of_row(self) -> Array:
        """[rows] int64 on the device, the global node of each row; on padding numbers beyond the own ones."""
        if self._node_of_row is None:
            nodes = [
                np.repeat(np.arange(block.n_own) + block.lo, count)
                for block, count in zip(self.blocks, self.counts)
            ]
            self._node_of_row = self.device.put(np.concatenate(nodes))
        return self._node_of_row

    def spread(self, values: Array) -> Array:
        """[rows, ...] from one value or row per state: each row gets its state's."""
        if self.states == 1:
            return values
        if len(self.blocks) == 1 and values.ndim == 1:
            return self.device.xp.tile(values, self.blocks[0].n_own)
        return values[self.state_of_row()]

    @property
    def members(self) -> Members:
        """The graphs of the batch as the sums over nodes see them."""
        if self._members is None:
            nodes = np.stack([block.block_starts for block in self.blocks]).astype(np.int64)
            self._members = Members(nodes, self.counts, self.first[:-1], self.at[:-1], self.states)
        return self._members

    def whole_mask(self) -> Array:
        """[rows] float32 on the device, one for nodes, zero for padding (read only)."""
        if self._whole is None:
            mask = np.ones(self.rows, dtype=np.float32)
            for g, block in enumerate(self.blocks):
                mask[self.at[g] + block.n_real * self.counts[g] : self.at[g + 1]] = 0
            self._whole = self.device.put(mask)
        return self._whole

    def inverse_degrees(self) -> Array:
        """[rows] float32 on the device, one over the degree of each row's node in its graph (read only)."""
        if self._inverse_degrees is None:
            degrees = [np.repeat(b.degrees_own(), count) for b, count in zip(self.blocks, self.counts)]
            at_least_one = np.maximum(np.concatenate(degrees), 1).astype(np.float32)
            self._inverse_degrees = self.device.put(1 / at_least_one)
        return self._inverse_degrees

    def alive_mask(self, removed: list[np.ndarray], before: Array | None = None) -> Array:
        """[rows] float32, one for nodes that are still there, zero for removed nodes and padding.

        removed   for each state the global numbers of its removed nodes
        before    the mask of earlier states from which these were removed, or None: whole graphs
        """
        mask = np.array(self.device.get(self.whole_mask() if before is None else before))
        states = np.repeat(np.arange(self.states), [len(nodes) for nodes in removed])
        row = self.row_of(states, np.concatenate(removed))
        mask[row[row >= 0]] = 0
        return self.device.put(mask)

    @property
    def most_rows(self) -> int:
        """`rows` of the rank that has most, the same on all."""
        owned = (np.diff(block.rows.offsets) * count for block, count in zip(self.blocks, self.counts))
        return int(sum(owned).max())

    # ---- products ---------------------------------------------------------------------------------------

    def times(self, X_own: Array, live_own: Array | None = None, gate_own: Operand | None = None) -> Array:
        """A X for every state, each output row one chain in global column order.

        X_own     [rows, f] float32, rows of removed nodes zero
        live_own  [rows] or None: rows of the result where this is zero are not read, and may be left out
        gate_own  (with live_own) rows of f columns or None: the result is multiplied by
                  live_own * (gate_own > 0)
        returns   [rows, f]
        Ranks     all call; one exchange of rows. A is symmetric: this is also the adjoint.
        """
        return self.exchange.multiply(X_own, [[block.A] for block in self.blocks], live_own, gate_own)[0]

    def lookup_part(self, table: Array, code_own: Array, live_own: Array, scale_own: Array) -> Operand:
        """A X for rows that stand in a table, X[r] = table[code_own[r]]: only the numbers travel.

        It is an operand of the next product, which comes before any other exchange.

        table       [t, f], the same on all ranks     code_own [rows] int32
        scale_own   [rows] factors of the rows.   Ranks: all call
        """
        matrices = [block.A for block in self.blocks]
        return self.exchange.lookup_part(table, code_own, matrices, live_own, scale_own)

    def signed_times(self, X_own: Array, live_own: Array | None = None) -> list[Array]:
        """Two products like `times`, by the edges of weights from zero up and by the others.

        Ranks   all call; one exchange of rows
        """
        return self.exchange.multiply(X_own, self._signs(), live_own)

    def signed_lookup(
        self, table: Array, mirrored: Array, code_own: Array, live_own: Array, scale_own: Array
    ) -> Operand:
        """lookup_part by the sign of edges: rows of `mirrored` along negative ones, else of `table`.

        table, mirrored   [t, f]     code_own [rows] int32     scale_own [rows].   Ranks: all call
        """
        plus, minus = zip(*self._signs())
        sums = self.exchange.multiply_lookup(table, code_own, list(plus), live_own)
        sums += self.exchange.multiply_lookup(mirrored, code_own, list(minus), live_own)
        return Operand(sums, None, scale_own)

    def _signs(self) -> list[list[Any]]:
        """Of each graph the matrix of edges of weights from zero up, and that of the others or None."""
        return [block.signs(self.device) for block in self.blocks]

    def weight_sums(self, alive_own: Array) -> Array:
        """[rows, 2], sums of the positive and of the negated negative edge weights to live neighbours.

        alive_own   [rows, 1] float32
        Rank two is all that eq. 1's edge term needs:
        sum_u relu(theta2 w) = plus*relu(theta2) + minus*relu(-theta2).
        Ranks     all call
        """
        xp = self.device.xp
        if all(block.A_weights is None for block in self.blocks):
            plus = self.times(alive_own)
            return xp.concatenate([plus, xp.zeros_like(plus)], axis=1)
        parts = [block.A_weights or [block.A, None] for block in self.blocks]
        return xp.ascontiguousarray(xp.concatenate(self.exchange.multiply(alive_own, parts), axis=1))

    # ---- sums over nodes --------------------------------------------------------------------------------

    def pool(self, H_own: Array) -> Array:
        """Sum over the nodes of each state, chained in block order.

        H_own     [rows, f]
        returns   [states, f]
        Ranks     all call; identical on all
        """
        return self.sum_states(self.device.fold_members(self.members, H_own))

    def sum_states(self, part_own: Array) -> Array:
        """[states, f] from sums over the nodes of each block [owned blocks, states*f]. Ranks: all call."""
        return self.sum_blocks(part_own).reshape(self.states, -1)

    def gram_part(self, parts: list[Operand], D_own: Array, live_own: Array | None = None) -> Array:
        """[parts]^T D with one addend per row block: a chain over the block's rows, graph by graph.

        parts     columns of the left operand, [rows, k] together     D_own [rows, m]
        live_own  [rows] or None: D_own is zero where this is
        returns   [owned blocks, k*m], to be summed by sum_blocks
        """
        return self.device.gram(parts, D_own, self.members.rows, live_own)

    def sum_blocks(self, part_own: Array) -> Array:
        """The whole sum of block addends [owned blocks, w] -> [w]. Ranks: all call; identical on all."""
        return sum_blocks(self.group, part_own, self.blocks[0].rows.block_counts)
