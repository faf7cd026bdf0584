"""R-GCN: relational graph convolution for entity classification, its layers and their gradients.

Source   Schlichtkrull et al. 2018, eqs. 2 and 3; partitioned by relations after Kibata et al. 2020

Differences from the paper's first layer: weights exist only for the (relation, node) rows that an edge uses, and
for nodes within reach of the ones that are classified; nothing else has an influence.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.ordered import sum_blocks
from app.gnn.basis import ShareSums, compose, node_gradient
from app.graphs.relational import RelationalGraph, nodes_by_layer
from app.partition.relations import Placement
from app.rng import stream
from app.sparse.relational import HiddenProducts, OneHotProducts, octets
from app.sparse.remote import Fetch, Held, RemoteProduct

Array = Any
Gradient = tuple[str, slice, Array]  # of rows `slice` of the weights of a name
CHUNK_ELEMENTS = 1 << 17  # of node weights whose gradient exists at a time: what a core's cache holds


class Shard:
    """A weight array of which each rank has some rows.

    array   [rows, ...] on the device      keys   [k] the global numbers of its first k rows; more are padding
    Rows of one key are the same on all ranks that have it.
    """

    def __init__(self, array: Array, keys: np.ndarray) -> None:
        self.array, self.keys = array, np.asarray(keys, dtype=np.int64)

    def whole(self, group: Group) -> np.ndarray:
        """All rows in the order of keys, on the host of every rank. Ranks: all call."""
        host = np.ascontiguousarray(group.device.get(self.array)[: len(self.keys)])
        counts = group.gather_integers(np.array([len(self.keys)]))[:, 0].tolist()
        keys, rows = group.gather_host(self.keys, counts), group.gather_host(host, counts)
        return rows[np.unique(keys, return_index=True)[1]]


def draw_rows(
    seed: int, name: str, keys: np.ndarray, held: np.ndarray, block_of: np.ndarray, shape: tuple[int, ...],
    limit: float,
) -> np.ndarray:  # fmt: skip
    """Uniform numbers in +-limit for some of the rows of an array, each a function of its place among all rows.

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
    """First-layer weights without decomposition: one row for each source row, on the rank that holds it."""

    def __init__(
        self, group: Group, products: OneHotProducts, placement: Placement, hidden: int, seed: int
    ) -> None:
        edges = products.edges
        keys = np.unique(edges.source_row)
        blocks = np.searchsorted(placement.rows.starts, keys // edges.R, side="right")
        limit = glorot_limit(placement.rows.n, hidden)
        self.device, self._products, self.weights = group.device, products, {}
        for k, turn in enumerate(products.turns):
            rows = draw_rows(seed, "first/W", keys, turn.source_rows, blocks, (hidden,), limit)
            self.weights[f"first/W{k}"] = Shard(group.device.put(rows), turn.source_rows)

    def rows(self, turn: int) -> Array:
        """[source rows of the turn, h]. Ranks: all call."""
        return self.weights[f"first/W{turn}"].array

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
    The gradient of V is made for some nodes at a time, and is used before the next ones are.
    """

    def __init__(
        self, group: Group, products: OneHotProducts, placement: Placement, bases: int, hidden: int, seed: int
    ) -> None:
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
            "first/V": Shard(self.device.put(V), self._nodes),
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
            index = put(self._node[at]), put(self._relation[at])
            self._turns.append((put(at), index, to_holders, to_owners))

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
            sums = ShareSums(self.device, starts, addend[p:q], self._blocks[self.group.rank] * self.R)
            self._parts.append((slice(lo, hi), slice(p, q), starts, sums))

    def rows(self, turn: int) -> Array:
        """[source rows of the turn, h], composed by the owners of nodes. Ranks: all call."""
        _, (node, relation), to_holders, _ = self._turns[turn]
        V, a = self.weights["first/V"].array, self.weights["first/a"].array
        return to_holders.ordered(compose(self.device, V, a, node, relation))

    def gradients(self, dZ_own: Array) -> Iterator[Gradient]:
        """Gradients of V, some nodes at a time, then of a. Ranks: all call, and take all."""
        V, a = self.weights["first/V"].array, self.weights["first/a"].array
        dW_own = self.device.zeros((len(self._own), V.shape[2]))
        for turn, (at, _, _, to_owners) in zip(self._products.turns, self._turns):
            dW_own[at] = to_owners.ordered(turn.gradients.times(dZ_own))
        da_part = self.device.zeros((self._blocks[self.group.rank] * self.R, self.bases))
        for nodes, rows, starts, sums in self._parts:
            dW = dW_own[rows]
            sums.add(V[nodes], dW, da_part)
            yield "first/V", nodes, node_gradient(self.device, dW, a, starts, self._own_relation[rows])
        part = da_part.reshape(self._blocks[self.group.rank], self.R * self.bases)
        yield "first/a", slice(None), sum_blocks(self.group, part, self._blocks).reshape(a.shape)


# ---- layers ---------------------------------------------------------------------------------------------


class OneHotLayer:
    """Relational convolution of one-hot inputs: a node's features are its number.

    Forward   Z_i = sum_r (1 / c_ir) sum_j W_jr + W_i0      W_jr = row j of W_r, W_i0 of the self-loop's W_0
    Shapes    Z [n_out, h]   W_jr, W_i0 [h]
    Backward  dW_jr = sum_i dZ_i / c_ir                     over the edges (i, r, j)
              dW_i0 = dZ_i
    Ranks     rows of W lie with the holders of (j, r), those of W_0 with the owners of rows. Forward: P_ir =
              sum_j W_jr on the holder of (i, r), P to the owner of i; backward: dZ to the holders of (j, r).
    """

    def __init__(
        self, group: Group, placement: Placement, graph: RelationalGraph, outputs: np.ndarray, hidden: int,
        bases: int, seed: int,
    ) -> None:  # fmt: skip
        self.device = group.device
        self.products = products = OneHotProducts(group, placement, graph, outputs)
        if bases:
            self.relations: Any = BasisRows(group, products, placement, bases, hidden, seed)
        else:
            self.relations = FreeRows(group, products, placement, hidden, seed)
        own, padded = products.out.nodes, products.out.padded
        blocks = np.searchsorted(placement.rows.starts, outputs, side="right")
        limit = glorot_limit(graph.nodes, hidden)
        W0 = np.zeros((padded, hidden), dtype=np.float32)
        W0[: len(own)] = draw_rows(seed, "first/self", outputs, own, blocks, (hidden,), limit)
        self.weights = {**self.relations.weights, "first/self": Shard(self.device.put(W0), own)}
        self.hidden = hidden

    def forward(self) -> Array:
        """Z_own. Ranks: all call."""
        products = self.products
        P = self.device.zeros((products.pairs[-1], self.hidden))
        for k, turn in enumerate(products.turns):
            turn.sums.add(self.relations.rows(k), P[products.pairs[k] : products.pairs[k + 1]])
        Z_own = products.add.times(P)
        Z_own += self.weights["first/self"].array
        return Z_own

    def gradients(self, dZ_own: Array) -> Iterator[Gradient]:
        """Gradients of all weights. Ranks: all call, and take all."""
        yield from self.relations.gradients(dZ_own)
        yield "first/self", slice(None), dZ_own


class RelationalLayer:
    """Relational convolution of dense inputs (Schlichtkrull et al. 2018, eq. 2).

    Forward   M_ir = (1 / c_ir) sum_j H_j      Z_i = sum_r M_ir W_r + H_i W_0
              W_r = sum_b a_rb V_b, or free
    Shapes    H [n_in, f]   W_r, V_b, W_0 [f, m]   a [R, B]   Z [n_out, m]
    Backward  dW_r = sum_i M_ir^T dZ_i         by row blocks, then over blocks
              da_rb = <V_b, dW_r>   dV_b = sum_r a_rb dW_r   dW_0 = H^T dZ
              dM_ir = dZ_i W_r^T    Q_jr = sum_i dM_ir / c_ir    dH_j = sum_r Q_jr + dZ_j W_0^T
    Ranks     M, P_ir = M_ir W_r and dM on the holder of (i, r), Q on that of (j, r), H and Z on owners of rows.
              A free W_r lies with its group alone; V and a are replicated, and small: B f m + R B numbers.
    """

    def __init__(
        self, group: Group, placement: Placement, graph: RelationalGraph, inputs: np.ndarray,
        outputs: np.ndarray, width: tuple[int, int], bases: int, seed: int, name: str,
    ) -> None:  # fmt: skip
        self.group, self.device, self.name = group, group.device, name
        self.width, self.bases, self.R = width, bases, graph.relations
        self.products = products = HiddenProducts(group, placement, graph, inputs, outputs)
        self._blocks = placement.rows.block_counts
        self._draw(products.relations, seed)
        if bases:
            self._to_all(placement)

    def _draw(self, relations: np.ndarray, seed: int) -> None:
        (f, m), put, name = self.width, self.device.put, self.name
        limit = glorot_limit(f, m)

        def uniform(purpose: str, limit: float, *shape: int, step: int = 0) -> np.ndarray:
            drawn = stream(seed, f"initial/{name}/{purpose}", step).uniform(-limit, limit, shape)
            return drawn.astype(np.float32)

        self.weights = {f"{name}/self": Shard(put(uniform("self", limit, f, m)), np.arange(f))}
        if self.bases:
            V = uniform("V", limit, self.bases, f * m)
            a = np.zeros((octets(self.R), self.bases), dtype=np.float32)
            a[: self.R] = uniform("a", glorot_limit(self.R, self.bases), self.R, self.bases)
            self.weights[f"{name}/V"] = Shard(put(V), np.arange(self.bases))
            self.weights[f"{name}/a"] = Shard(put(a), np.arange(self.R))
        else:
            W = np.zeros((octets(len(relations)), f * m), dtype=np.float32)
            for k, r in enumerate(relations.tolist()):
                W[k] = uniform("W", limit, f * m, step=r)
            self.weights[f"{name}/W"] = Shard(put(W), relations)

    def _to_all(self, placement: Placement) -> None:
        """The own relations' rows of a; and the exchange that brings gradients of all W_r to every rank."""
        relations = self.products.relations
        index = np.full(octets(len(relations)), octets(self.R) - 1 if self.R % 8 else 0)
        index[: len(relations)] = relations
        self._own_rows = self.device.put(index)
        held = Held(relations, octets(len(relations)))
        every = np.arange(self.R)
        self._gather = RemoteProduct(
            self.group, held, lambda r: placement.group_of[r], octets(self.R), every, every
        )

    def _compose(self) -> Array:
        """[own relations, f, m]: W_r of the relations of this rank."""
        f, m = self.width
        if not self.bases:
            return self.weights[f"{self.name}/W"].array.reshape(-1, f, m)
        V, a = self.weights[f"{self.name}/V"].array, self.weights[f"{self.name}/a"].array
        own = self.device.xp.take(a, self._own_rows, axis=0)
        return self.device.row_product(own, V).reshape(-1, f, m)

    def forward(self, H_own: Array) -> Array:
        """Z_own [n_out, m] from H_own [n_in, f]. Ranks: all call."""
        products, device = self.products, self.device
        M, W = products.gather.times(H_own), self._compose()
        P = device.zeros((products.rows, self.width[1]))
        for k, lo, hi in products.segments:
            P[lo:hi] = device.row_product(M[lo:hi], W[k])
        H_self = products.self_of.times(H_own)
        self.saved = M, W, H_self
        Z_own = products.add.times(P)
        Z_own += device.row_product(H_self, self.weights[f"{self.name}/self"].array)
        return Z_own

    def backward(self, dZ_own: Array) -> Array:
        """dH_own [n_in, f]; keeps what `gradients` needs. Ranks: all call."""
        products, device, xp = self.products, self.device, self.device.xp
        M, W, H_self = self.saved
        dP = products.spread.times(dZ_own)
        dM = device.zeros(M.shape)
        for k, lo, hi in products.segments:
            dM[lo:hi] = device.row_product(dP[lo:hi], xp.ascontiguousarray(W[k].T))
        dH_own = products.collect.times(products.scatter.times(dM))
        W0 = self.weights[f"{self.name}/self"].array
        products.self_to.add(device.row_product(dZ_own, xp.ascontiguousarray(W0.T)), dH_own)
        self.saved = M, dP, H_self, dZ_own
        return dH_own

    def gradients(self) -> Iterator[Gradient]:
        """Gradients of all weights, after backward. Ranks: all call, and take all."""
        name, products, device, xp = self.name, self.products, self.device, self.device.xp
        M, dP, H_self, dZ_own = self.saved
        dW_own = products.fold.times(device.block_gram(M, dP, products.block_starts))
        part = device.block_gram(H_self, dZ_own, products.out.starts[None, :])
        yield f"{name}/self", slice(None), sum_blocks(self.group, part, self._blocks).reshape(self.width)
        if not self.bases:
            yield f"{name}/W", slice(None), dW_own
            return
        dW = self._gather.times(dW_own)
        V, a = self.weights[f"{name}/V"].array, self.weights[f"{name}/a"].array
        da = device.row_product(dW, xp.ascontiguousarray(V.T))
        dV = device.block_gram(a, dW, np.array([[0, dW.shape[0]]])).reshape(V.shape)
        yield f"{name}/a", slice(None), da
        yield f"{name}/V", slice(None), dV


# ---- the network ----------------------------------------------------------------------------------------


class RGCN:
    """A one-hot layer, then relational layers, relu between them.

    widths    of the layers' outputs: (hidden, ..., classes)
    wanted    nodes whose outputs are read
    weights   every weight array by name
    out       the rows of the output that this rank owns
    """

    def __init__(
        self, group: Group, placement: Placement, graph: RelationalGraph, wanted: np.ndarray,
        widths: list[int], bases: int, seed: int, prune: bool = True,
    ) -> None:  # fmt: skip
        self.device = group.device
        nodes = nodes_by_layer(graph, wanted, len(widths), prune)
        self.first = OneHotLayer(group, placement, graph, nodes[1], widths[0], bases, seed)
        self.rest = [
            RelationalLayer(
                group, placement, graph, nodes[k], nodes[k + 1], (widths[k - 1], widths[k]), bases, seed,
                f"layer{k}",
            )
            for k in range(1, len(widths))
        ]  # fmt: skip
        self.layers = [self.first, *self.rest]
        self.out = self.layers[-1].products.out
        self.weights = {name: shard for layer in self.layers for name, shard in layer.weights.items()}

    def forward(self) -> Array:
        """Logits of the owned output rows, [n_own, classes]; padding rows are zero. Ranks: all call."""
        X = self.first.forward()
        self._active = []
        for layer in self.rest:
            H = self.device.xp.maximum(X, 0)
            self._active.append(H)
            X = layer.forward(H)
        return X

    def gradients(self, dZ_own: Array) -> Iterator[Gradient]:
        """(name, rows, gradient) of all weights, from the gradient by the logits, after forward.

        A gradient must be used before the next one is taken: weights may then change. Ranks: all call, and
        take all.
        """
        D = dZ_own
        for layer, H in zip(reversed(self.rest), reversed(self._active)):
            dH = layer.backward(D)
            yield from layer.gradients()
            D = dH * (H > 0)
        yield from self.first.gradients(D)

    def replicated(self) -> dict[str, np.ndarray]:
        """The weights that every rank holds alike, on the host."""
        names = [name for name in self.weights if name.endswith(("/a", "/V", "/self")) and name != "first/V"]
        return {name: self.device.get(self.weights[name].array) for name in names if name != "first/self"}

    def whole_weights(self, group: Group) -> dict[str, np.ndarray]:
        """All weights by name on the host, the same for any placement; turns of the first layer as one array.

        Ranks   all call
        """
        shards = dict(self.weights)
        turns = [shards.pop(name) for name in list(shards) if name.startswith("first/W")]
        if turns:
            rows = [self.device.get(shard.array) for shard in turns]
            keys = np.concatenate([shard.keys for shard in turns])
            shards["first/W"] = Shard(self.device.put(np.concatenate(rows)), keys)
        return {name: shard.whole(group) for name, shard in shards.items()}
