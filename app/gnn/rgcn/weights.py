"""Weights of the relations in a layer with one-hot inputs: free rows, combinations of bases, or blocks.

Source   Schlichtkrull et al. 2018, eqs. 3 and 4
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.ordered import sum_blocks
from app.gnn.rgcn.basis import ShareSums, compose, node_gradient
from app.gnn.rgcn.shards import Shard, draw_rows, glorot_limit
from app.graphs.keys import sorted_set
from app.memory.slow_rows import SlowRows
from app.memory.tiers import TierBudget
from app.partition.relations import Placement
from app.rng import stream
from app.sparse.relational import LayerEdges, OneHotProducts
from app.sparse.remote import Held, OrderedFetch

Array = Any
Gradient = tuple[str, slice, Array]  # of rows `slice` of the weights of a name
CHUNK_ELEMENTS = 1 << 17  # of node weights whose gradient exists at a time: what a core's cache holds


# ---- weights of the first layer -------------------------------------------------------------------------


class FreeRows:
    """First-layer weights without decomposition: one row for each source row, on the rank that holds it.

    slow   weights lie in the slow tier of this budget, and those of one turn at a time are brought near
    """

    def __init__(
        self, group: Group, products: OneHotProducts, edges: LayerEdges, hidden: int, seed: int,
        slow: TierBudget | None,
    ) -> None:  # fmt: skip
        rows_of, keys = edges.placement.rows, edges.source_rows()
        blocks = np.searchsorted(rows_of.starts, keys // edges.R, side="right")
        limit = self._limit(rows_of.n, hidden)
        self.device, self._products, self.weights = group.device, products, {}
        for k in range(len(products.turns)):
            own = edges.own_source_rows(group.rank, k)
            out = new_rows(group.device, slow, len(own), hidden)
            rows = draw_rows(seed, "first/W", keys, own, blocks, limit, out)
            self.weights[f"first/W{k}"] = Shard(rows if slow else group.device.put(rows), own)

    def _limit(self, nodes: int, hidden: int) -> float:
        """What weights are drawn below."""
        return glorot_limit(nodes, hidden)

    def rows(self, turn: int) -> Array:
        """[source rows of the turn, h], valid until `done`. Ranks: all call."""
        return self.weights[f"first/W{turn}"].near(self.device, slice(None))

    def done(self, turn: int) -> None:
        """The rows of a turn are not needed for now."""
        self.weights[f"first/W{turn}"].done(slice(None))

    def gradients(self, dZ_own: Array) -> Iterator[Gradient]:
        """dW_jr = sum_i dZ_i / c_ir, turn after turn. Ranks: all call, and take all."""
        for k, turn in enumerate(self._products.turns):
            yield f"first/W{k}", slice(None), turn.gradients.times(dZ_own)
            self.done(k)


class BlockRows(FreeRows):
    """First-layer weights W_r of B blocks on the diagonal, else zero (Schlichtkrull et al. 2018, eq. 4).

    Forward   W_jr = (0, ..., Q_jr, ..., 0), Q_jr in the columns of node j's block
    Shapes    Q_jr [h / B]     W_jr [h]
    Backward  dQ_jr = those columns of dW_jr
    Ranks     as FreeRows
    The rows of a block are nodes: node j is in block j mod B, so that any number of nodes has equal blocks.
    Which nodes share one is left open by the paper.
    """

    def __init__(
        self, group: Group, products: OneHotProducts, edges: LayerEdges, blocks: int, hidden: int, seed: int,
        slow: TierBudget | None,
    ) -> None:  # fmt: skip
        self.blocks = blocks
        super().__init__(group, products, edges, hidden // blocks, seed, slow)
        put, rank, turns = group.device.put, group.rank, range(len(products.turns))
        own = [edges.own_source_rows(rank, turn) // edges.R % blocks for turn in turns]
        self._at = [(put(np.arange(len(each))), put(each)) for each in own]

    def _limit(self, nodes: int, hidden: int) -> float:
        return glorot_limit(max(nodes // self.blocks, 1), hidden)

    def rows(self, turn: int) -> Array:
        """[source rows of the turn, h]. Ranks: all call."""
        Q = super().rows(turn)
        W = self.device.zeros((len(Q), self.blocks, Q.shape[1]))
        W[self._at[turn]] = Q
        return W.reshape(len(Q), self.blocks * Q.shape[1])

    def gradients(self, dZ_own: Array) -> Iterator[Gradient]:
        """dQ, turn after turn. Ranks: all call, and take all."""
        for turn, (name, rows, dW) in enumerate(super().gradients(dZ_own)):
            yield name, rows, dW.reshape(len(dW), self.blocks, dW.shape[1] // self.blocks)[self._at[turn]]


def new_rows(device: Any, slow: TierBudget | None, *shape: int) -> np.ndarray | SlowRows:
    """Zeros on the host, or in the slow tier of a budget."""
    return SlowRows(shape, device, slow) if slow else np.zeros(shape, dtype=np.float32)


class BasisRows:
    """First-layer weights as combinations of bases: W_r = sum_b a_rb V_b (Schlichtkrull et al. 2018, eq. 3).

    Forward   W_jr = sum_b a_rb V_jb           only for source rows (j, r) that an edge uses
    Shapes    V [nodes, B, h]   a [R, B]   W_jr, V_jb [h]
    Backward  dV_jb = sum_r a_rb dW_jr         in the order of relations
              da_rb = sum_j <V_jb, dW_jr>      by row blocks of j, then over blocks
    Ranks     V_j lies with the owner of node j and is nowhere else (the paper copies V to every device); a is
              replicated. Rows of W travel to the holders of (j, r), and their gradients back; the sum for da
              is over blocks. So the bits do not depend on who holds which relation.
    The gradient of V is made for some nodes at a time, and is used before the next ones are; so V may lie
    in the slow tier of a budget (`slow`), and that of some nodes at a time is brought near.
    """

    def __init__(
        self, group: Group, products: OneHotProducts, edges: LayerEdges, bases: int, hidden: int, seed: int,
        slow: TierBudget | None,
    ) -> None:  # fmt: skip
        self.group, self.device, self._products = group, group.device, products
        self.R, self.bases = edges.R, bases
        self._list_rows(edges)
        self._draw(edges.placement, (bases, hidden), seed, slow)
        self._exchanges(edges)
        self._chunks(edges.placement, bases * hidden)
        del self._own

    def _list_rows(self, edges: LayerEdges) -> None:
        """Source rows of own nodes, in the order (node, relation)."""
        whole = edges.source_rows()
        nodes = whole // self.R
        self._own = whole[edges.placement.owner(nodes) == self.group.rank]
        self._all_nodes = sorted_set(nodes)
        self._nodes, first, node = np.unique(self._own // self.R, return_index=True, return_inverse=True)
        self._rows, self._starts = len(self._own), np.append(first, len(self._own)).astype(np.int64)
        self._node, self._relation = node.astype(np.int32), (self._own % self.R).astype(np.int32)

    def _draw(self, placement: Placement, shape: tuple[int, int], seed: int, slow: TierBudget | None) -> None:
        bases, hidden = shape
        blocks = np.searchsorted(placement.rows.starts, self._all_nodes, side="right")
        limit = glorot_limit(placement.rows.n, hidden)
        out = new_rows(self.device, slow, len(self._nodes), bases, hidden)
        V = draw_rows(seed, "first/V", self._all_nodes, self._nodes, blocks, limit, out)
        limit = glorot_limit(self.R, bases)
        a = stream(seed, "initial/first/a").uniform(-limit, limit, (self.R, bases)).astype(np.float32)
        self.weights = {
            "first/V": Shard(V if slow else self.device.put(V), self._nodes),
            "first/a": Shard(self.device.put(a), np.arange(self.R)),
        }

    def _exchanges(self, edges: LayerEdges) -> None:
        """For each turn: its rows among the own ones, and the exchanges between owners and holders."""
        put, self._turns = self.device.put, []
        self._own_relation = put(self._relation)
        for number in range(edges.placement.turns):
            at = np.flatnonzero(edges.placement.turn_of[self._relation] == number)
            own, held = self._own[at], edges.own_source_rows(self.group.rank, number)
            to_holders = OrderedFetch(self.group, Held(own), held, edges.placement.owner(held // self.R))
            to_owners = OrderedFetch(self.group, Held(held), own, edges.holder(own))
            self._turns.append((at, put(at), to_holders, to_owners))

    def _chunks(self, placement: Placement, width: int) -> None:
        """Nodes whose gradient is made at a time, and the sums over their rows by (row block, relation)."""
        rows = placement.rows
        first = int(rows.cuts[self.group.rank])
        self._blocks = rows.block_counts
        block = np.searchsorted(rows.starts, self._nodes, side="right") - 1 - first
        addend = block[self._node].astype(np.int64) * self.R + self._relation
        step = max(CHUNK_ELEMENTS // width, 1)
        self._parts = []
        for lo in range(0, len(self._nodes), step):
            hi = min(lo + step, len(self._nodes))
            p, q = int(self._starts[lo]), int(self._starts[hi])
            starts = self._starts[lo : hi + 1] - p
            below, above = int(block[lo]) * self.R, (int(block[hi - 1]) + 1) * self.R
            sums = ShareSums(self.device, starts, addend[p:q] - below, above - below)
            self._parts.append((slice(lo, hi), slice(p, q), starts, slice(below, above), sums))

    def rows(self, turn: int) -> Array:
        """[source rows of the turn, h], composed by the owners of nodes. Ranks: all call."""
        at, _, to_holders, _ = self._turns[turn]
        V, a, put = self.weights["first/V"], self.weights["first/a"].array, self.device.put
        W = self.device.zeros((len(at), V.array.shape[2]))
        for nodes, rows in self._pieces():
            part = slice(*np.searchsorted(at, [rows.start, rows.stop]))
            mine = at[part]
            if len(mine):
                node, relation = put(self._node[mine] - np.int32(nodes.start)), put(self._relation[mine])
                W[part] = compose(self.device, V.near(self.device, nodes), a, node, relation)
                V.done(nodes)
        return to_holders.rows(W)

    def done(self, turn: int) -> None:
        """What `rows` returned is not needed any longer: nothing stays of it."""

    def _pieces(self) -> list[tuple[slice, slice]]:
        """Nodes whose weights are near together, and their rows: all, unless V is slow."""
        if self.weights["first/V"].slow:
            return [(nodes, rows) for nodes, rows, *_ in self._parts]
        return [(slice(0, len(self._nodes)), slice(0, self._rows))]

    def gradients(self, dZ_own: Array) -> Iterator[Gradient]:
        """Gradients of V, some nodes at a time, then of a. Ranks: all call, and take all."""
        V, a, device = self.weights["first/V"], self.weights["first/a"].array, self.device
        dW_own = device.zeros((self._rows, dZ_own.shape[1]))
        for turn, (_, at, _, to_owners) in zip(self._products.turns, self._turns):
            dW_own[at] = to_owners.rows(turn.gradients.times(dZ_own))
        da_part = device.zeros((self._blocks[self.group.rank] * self.R, self.bases))
        for nodes, rows, starts, into, sums in self._parts:
            dW = dW_own[rows]
            sums.add(V.near(device, nodes), dW, da_part[into])
            yield "first/V", nodes, node_gradient(device, dW, a, starts, self._own_relation[rows])
            V.done(nodes)
        part = da_part.reshape(self._blocks[self.group.rank], self.R * self.bases)
        yield "first/a", slice(None), sum_blocks(self.group, part, self._blocks).reshape(a.shape)
