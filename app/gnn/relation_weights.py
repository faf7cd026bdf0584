"""Weights of a relational network: arrays of which ranks hold rows; those of a layer with one-hot inputs.

Source   Schlichtkrull et al. 2018, eq. 3
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.ordered import sum_blocks
from app.gnn.basis import ShareSums, compose, node_gradient
from app.partition.relations import Placement
from app.rng import stream
from app.sparse.relational import OneHotProducts
from app.sparse.remote import Fetch, Held

Array = Any
Gradient = tuple[str, slice, Array]  # of rows `slice` of the weights of a name
CHUNK_ELEMENTS = 1 << 17  # of node weights whose gradient exists at a time: what a core's cache holds


class Shard:
    """A weight array of which each rank has some rows.

    array   [rows, ...] on the device; slow: on the host, where its steps are made too
    keys    [k] the global numbers of its first k rows; more are padding
    Rows of one key are the same on all ranks that have it.
    """

    def __init__(self, array: Array, keys: np.ndarray, slow: bool = False) -> None:
        self.array, self.keys, self.slow = array, np.asarray(keys, dtype=np.int64), slow

    def host(self, device: Any) -> np.ndarray:
        """The rows of this rank, padding included, on the host."""
        return self.array if self.slow else device.get(self.array)

    def whole(self, group: Group) -> np.ndarray:
        """All rows in the order of keys, on the host of every rank. Ranks: all call."""
        host = np.ascontiguousarray(self.host(group.device)[: len(self.keys)])
        counts = group.gather_integers(np.array([len(self.keys)]))[:, 0].tolist()
        keys, rows = group.gather_host(self.keys, counts), group.gather_host(host, counts)
        return rows[np.unique(keys, return_index=True)[1]]


def draw_rows(
    seed: int, name: str, keys: np.ndarray, held: np.ndarray, block_of: np.ndarray, shape: tuple[int, ...],
    limit: float,
) -> np.ndarray:  # fmt: skip
    """Uniform numbers in +-limit for some of the rows of an array, functions of their place among all rows.

    keys      [k] all rows, ascending      held   [m] those that are wanted, ascending
    block_of  [k] ascending: rows of a block come from one random stream
    returns   [m, *shape] float32
    """
    out = np.zeros((len(held), *shape), dtype=np.float32)
    place = np.searchsorted(keys, held)
    for block in np.unique(block_of[place]):
        lo, hi = np.searchsorted(block_of, [block, block + 1])
        mine = slice(*np.searchsorted(place, [lo, hi]))
        drawn = stream(seed, f"initial/{name}", int(block)).uniform(-limit, limit, (hi - lo, *shape))
        out[mine] = drawn[place[mine] - lo]
    return out


def glorot_limit(inputs: int, outputs: int) -> float:
    """Of the uniform initialisation of Glorot and Bengio 2010, eq. 16."""
    return float(np.sqrt(6.0 / (inputs + outputs)))


# ---- weights of the first layer -------------------------------------------------------------------------


class FreeRows:
    """First-layer weights without decomposition: one row for each source row, on the rank that holds it.

    slow   weights lie on the host, and those of one turn at a time are brought to the device
    """

    def __init__(
        self, group: Group, products: OneHotProducts, placement: Placement, hidden: int, seed: int, slow: bool
    ) -> None:
        edges = products.edges
        keys = np.unique(edges.source_row)
        blocks = np.searchsorted(placement.rows.starts, keys // edges.R, side="right")
        limit = glorot_limit(placement.rows.n, hidden)
        self.device, self._products, self.weights = group.device, products, {}
        put = (lambda rows: rows) if slow else group.device.put
        for k, turn in enumerate(products.turns):
            rows = draw_rows(seed, "first/W", keys, turn.source_rows, blocks, (hidden,), limit)
            self.weights[f"first/W{k}"] = Shard(put(rows), turn.source_rows, slow)

    def rows(self, turn: int) -> Array:
        """[source rows of the turn, h]. Ranks: all call."""
        shard = self.weights[f"first/W{turn}"]
        return self.device.put(shard.array) if shard.slow else shard.array

    def gradients(self, dZ_own: Array) -> Iterator[Gradient]:
        """dW_jr = sum_i dZ_i / c_ir, turn after turn. Ranks: all call, and take all."""
        for k, turn in enumerate(self._products.turns):
            yield f"first/W{k}", slice(None), turn.gradients.times(dZ_own)


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
    on the host (`slow`), and that of some nodes at a time is brought to the device.
    """

    def __init__(
        self, group: Group, products: OneHotProducts, placement: Placement, bases: int, hidden: int,
        seed: int, slow: bool,
    ) -> None:  # fmt: skip
        self.slow = slow
        self.group, self.device, self._products = group, group.device, products
        self.R, self.bases = products.edges.R, bases
        self._list_rows(products, placement)
        self._draw(products, placement, bases, hidden, seed)
        self._exchanges(placement)
        self._chunks(placement, bases * hidden)

    def _list_rows(self, products: OneHotProducts, placement: Placement) -> None:
        """Source rows of own nodes, in the order (node, relation)."""
        edges, rank = products.edges, self.group.rank
        whole = np.unique(edges.source_row)
        self._own = whole[edges.owner_of_row(whole) == rank]
        self._all_nodes = np.unique(whole // self.R)
        self._nodes, first, node = np.unique(self._own // self.R, return_index=True, return_inverse=True)
        self._starts = np.append(first, len(self._own)).astype(np.int64)
        self._node, self._relation = node.astype(np.int32), (self._own % self.R).astype(np.int32)

    def _draw(
        self, products: OneHotProducts, placement: Placement, bases: int, hidden: int, seed: int
    ) -> None:
        blocks = np.searchsorted(placement.rows.starts, self._all_nodes, side="right")
        limit = glorot_limit(placement.rows.n, hidden)
        V = draw_rows(seed, "first/V", self._all_nodes, self._nodes, blocks, (bases, hidden), limit)
        limit = glorot_limit(self.R, bases)
        a = stream(seed, "initial/first/a").uniform(-limit, limit, (self.R, bases)).astype(np.float32)
        self.weights = {
            "first/V": Shard(V if self.slow else self.device.put(V), self._nodes, self.slow),
            "first/a": Shard(self.device.put(a), np.arange(self.R)),
        }

    def _exchanges(self, placement: Placement) -> None:
        """For each turn: its rows among the own ones, and the exchanges between owners and holders."""
        put, self._turns = self.device.put, []
        self._own_relation = put(self._relation)
        for number, turn in enumerate(self._products.turns):
            at = np.flatnonzero(placement.turn_of[self._relation] == number)
            own = self._own[at]
            to_holders = Fetch(
                self.group, Held(own), turn.source_rows, placement.owner(turn.source_rows // self.R)
            )
            to_owners = Fetch(self.group, Held(turn.source_rows), own, self._products.edges.holder(own))
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
        a, rows = self.weights["first/a"].array, []
        for nodes, own in self._pieces():
            mine = at[slice(*np.searchsorted(at, [own.start, own.stop]))]
            index = self.device.put(self._node[mine] - np.int32(nodes.start))
            rows.append(
                compose(self.device, self._near(nodes), a, index, self.device.put(self._relation[mine]))
            )
        W = rows[0] if len(rows) == 1 else self.device.xp.concatenate(rows)
        return to_holders.ordered(W)

    def _pieces(self) -> list[tuple[slice, slice]]:
        """Nodes whose weights are on the device together, and their rows: all, unless V is slow."""
        if self.slow and self._parts:
            return [(nodes, rows) for nodes, rows, *_ in self._parts]
        return [(slice(0, len(self._nodes)), slice(0, len(self._own)))]

    def _near(self, nodes: slice) -> Array:
        """V of some nodes, on the device."""
        V = self.weights["first/V"].array[nodes]
        return self.device.put(V) if self.slow else V

    def gradients(self, dZ_own: Array) -> Iterator[Gradient]:
        """Gradients of V, some nodes at a time, then of a. Ranks: all call, and take all."""
        a, device = self.weights["first/a"].array, self.device
        dW_own = device.zeros((len(self._own), dZ_own.shape[1]))
        for turn, (_, at, _, to_owners) in zip(self._products.turns, self._turns):
            dW_own[at] = to_owners.ordered(turn.gradients.times(dZ_own))
        da_part = device.zeros((self._blocks[self.group.rank] * self.R, self.bases))
        for nodes, rows, starts, into, sums in self._parts:
            dW = dW_own[rows]
            sums.add(self._near(nodes), dW, da_part[into])
            yield "first/V", nodes, node_gradient(device, dW, a, starts, self._own_relation[rows])
        part = da_part.reshape(self._blocks[self.group.rank], self.R * self.bases)
        yield "first/a", slice(None), sum_blocks(self.group, part, self._blocks).reshape(a.shape)
