"""R-GCN: relational graph convolution for entity classification, its layers and their gradients.

Source   Schlichtkrull et al. 2018, eqs. 2 to 4; partitioned by relations after Kibata et al. 2020

Differences from the paper's first layer: weights exist only for the (relation, node) rows that an edge uses,
and for nodes within reach of the ones that are classified; nothing else has an influence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.case.rgcn import RgcnCase
from app.comm.group import Group
from app.comm.guard import digest_pieces
from app.comm.ordered import sum_blocks
from app.errors import CaseError
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.shards import Shard, Whole, draw_rows, glorot_limit
from app.gnn.rgcn.weights import BasisRows, BlockRows, FreeRows, Gradient
from app.gnn.stopwatch import Stopwatch
from app.graphs.triples.relational import RelationalGraph, nodes_by_layer
from app.memory.slow_rows import SlowRows
from app.memory.tiers import TierBudget
from app.numerics.elementwise import Dropout
from app.partition.relations import Placement
from app.rng import key_of, stream
from app.sparse.relational import HiddenProducts, LayerEdges, OneHotProducts, octets, own_rows
from app.sparse.remote import Held, RemoteProduct

Array = Any


# ---- layers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NetShape:
    """What layers of a relational network are made of.

    widths   of the layers' outputs: (hidden, ..., classes)
    bases    that relations' weights are sums of, or blocks on their diagonals in place of these; 0: none
    seed     of the first weights
    """

    widths: Sequence[int]
    bases: int
    seed: int
    blocks: int = 0


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
        self, group: Group, placement: Placement, graph: RelationalGraph, outputs: np.ndarray,
        shape: NetShape, slow: TierBudget | None = None,
    ) -> None:  # fmt: skip
        self.device, hidden, seed = group.device, shape.widths[0], shape.seed
        edges = LayerEdges(placement, graph, outputs)
        self.products = products = OneHotProducts(group, edges, outputs)
        if shape.bases:
            self.relations: Any = BasisRows(group, products, edges, shape.bases, hidden, seed, slow)
        elif shape.blocks:
            self.relations = BlockRows(group, products, edges, shape.blocks, hidden, seed, slow)
        else:
            self.relations = FreeRows(group, products, edges, hidden, seed, slow)
        own, padded = products.out.nodes, products.out.padded
        blocks = np.searchsorted(placement.rows.starts, outputs, side="right")
        limit = glorot_limit(graph.nodes, hidden)
        W0 = np.zeros((padded, hidden), dtype=np.float32)
        draw_rows(seed, "first/self", outputs, own, blocks, limit, W0)
        self.weights = {**self.relations.weights, "first/self": Shard(self.device.put(W0), own)}
        self.replicated = ("first/a",) if shape.bases else ()
        self.hidden = hidden

    def forward(self) -> Array:
        """Z_own [n_own, hidden] float32. Ranks: all call."""
        products = self.products
        P = self.device.zeros((products.pairs[-1], self.hidden))
        for k, turn in enumerate(products.turns):
            turn.sums.add(self.relations.rows(k), P[products.pairs[k] : products.pairs[k + 1]])
            self.relations.done(k)
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
              W_r = sum_b a_rb V_b, or free, or of B blocks Q_br on the diagonal, zeros elsewhere (eq. 4):
              then columns b of M_ir W_r are those of M_ir times Q_br
    Shapes    H [n_in, f]   W_r, V_b, W_0 [f, m]   a [R, B]   Z [n_out, m]   Q_br [f_b, m_b], sizes that
              differ by at most one
    Backward  dW_r = sum_i M_ir^T dZ_i         by row blocks, then over blocks
              dQ_br likewise, of columns b of M_i and of dZ_i
              da_rb = <V_b, dW_r>   dV_b = sum_r a_rb dW_r   dW_0 = H^T dZ
              dM_ir = dZ_i W_r^T    Q_jr = sum_i dM_ir / c_ir    dH_j = sum_r Q_jr + dZ_j W_0^T
    Ranks     M, P_ir = M_ir W_r and dM on the holder of (i, r), Q_jr on that of (j, r), H, Z on owners of
              rows. A free W_r, or its blocks, lies with its group alone; V and a are replicated, and small: B
              f m + R B numbers.
    """

    def __init__(
        self, group: Group, placement: Placement, graph: RelationalGraph, inputs: np.ndarray,
        outputs: np.ndarray, width: tuple[int, int], shape: NetShape, name: str,
    ) -> None:  # fmt: skip
        self.group, self.device, self.name = group, group.device, name
        self.width, self.bases, self.R = width, shape.bases, graph.relations
        self.parts = diagonal(width, max(shape.blocks, 1))
        self.products = products = HiddenProducts(group, placement, graph, inputs, outputs)
        self._blocks = placement.rows.block_counts
        self._draw(products.relations, shape.seed)
        self.replicated = tuple(f"{name}/{key}" for key in (("self", "V", "a") if self.bases else ("self",)))
        if self.bases:
            self._to_all(placement)

    def _draw(self, relations: np.ndarray, seed: int) -> None:
        (f, m), put, name = self.width, self.device.put, self.name
        limit = glorot_limit(f, m)

        def uniform(purpose: str, limit: Any, *shape: int, step: int = 0) -> np.ndarray:
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
            limits = [glorot_limit(rows, columns) for rows, columns in map(shape_of, self.parts)]
            sizes = [rows * columns for rows, columns in map(shape_of, self.parts)]
            W = np.zeros((octets(len(relations)), sum(sizes)), dtype=np.float32)
            for k, r in enumerate(relations.tolist()):
                below = np.repeat(limits, sizes) if len(sizes) > 1 else limit
                W[k] = uniform("W", below, sum(sizes), step=r)
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

    def _compose(self) -> list[Array]:
        """[own relations, f_b, m_b] for each block b: W_r of the relations of this rank; or one of all."""
        if not self.bases:
            W, found, at = self.weights[f"{self.name}/W"].array, [], 0
            for rows, columns in map(shape_of, self.parts):
                found.append(W[:, at : at + rows * columns].reshape(-1, rows, columns))
                at += rows * columns
            return found
        V, a = self.weights[f"{self.name}/V"].array, self.weights[f"{self.name}/a"].array
        own = self.device.xp.take(a, self._own_rows, axis=0)
        return [self.device.row_product(own, V).reshape(-1, *self.width)]

    def _times(self, X: Array, W: list[Array], back: bool = False) -> Array:
        """[pairs, m] rows X of pairs times W_r of their relations; back: [pairs, f], times W_r^T."""
        device, xp = self.device, self.device.xp
        out = device.zeros((len(X), self.width[not back]))
        for into, (rows, columns) in zip(W, self.parts):
            given, made = (columns, rows) if back else (rows, columns)
            some, product = self._columns(X, given), out
            if len(W) > 1:
                product = device.zeros((len(X), made.stop - made.start))
            for k, lo, hi in self.products.segments:
                each = xp.ascontiguousarray(into[k].T) if back else into[k]
                product[lo:hi] = device.row_product(some[lo:hi], each)
            if len(W) > 1:
                out[:, made] = product
        return out

    def _columns(self, X: Array, some: slice) -> Array:
        """Columns of X, row-major; X itself where those are all."""
        return X if X.shape[1] == some.stop - some.start else self.device.xp.ascontiguousarray(X[:, some])

    def forward(self, H_own: Array) -> Array:
        """Z_own [n_out, m] from H_own [n_in, f]. Ranks: all call."""
        return self._combine(self.products.gather.times(H_own), self.products.self_of.times(H_own))

    def _combine(self, M: Array, H_self: Array) -> Array:
        """Z_own from rows of pairs and the own rows of outputs. Ranks: all call."""
        products, device = self.products, self.device
        W = self._compose()
        P = self._times(M, W)
        self.saved = M, W, H_self
        Z_own = products.add.times(P)
        Z_own += device.row_product(H_self, self.weights[f"{self.name}/self"].array)
        return Z_own

    def backward(self, dZ_own: Array) -> Array:
        """dH_own [n_in, f]; keeps what `gradients` needs. Ranks: all call."""
        products, device, xp = self.products, self.device, self.device.xp
        W = self.saved[1]
        dP = self._spread(dZ_own)
        dM = self._times(dP, W, back=True)
        dH_own = products.collect.times(products.scatter.times(dM))
        W0 = self.weights[f"{self.name}/self"].array
        products.self_to.add(device.row_product(dZ_own, xp.ascontiguousarray(W0.T)), dH_own)
        return dH_own

    def _spread(self, dZ_own: Array) -> Array:
        """dP on the holders of pairs; keeps what `gradients` needs. Ranks: all call."""
        M, _, H_self = self.saved
        dP = self.products.spread.times(dZ_own)
        self.saved = M, dP, H_self, dZ_own
        return dP

    def gradients(self) -> Iterator[Gradient]:
        """Gradients of all weights, after backward. Ranks: all call, and take all."""
        name, products, device, xp = self.name, self.products, self.device, self.device.xp
        M, dP, H_self, dZ_own = self.saved
        self.saved = None
        grams = [
            _gram(device, self._columns(M, rows), self._columns(dP, columns), products.block_starts)
            for rows, columns in self.parts
        ]
        dW_own = products.fold.times(grams[0] if len(grams) == 1 else xp.concatenate(grams, axis=1))
        part = _gram(device, H_self, dZ_own, products.out.starts[None, :])
        del M, dP, H_self
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


class FeatureLayer(RelationalLayer):
    """Relational convolution of given features X: what RelationalLayer is, as the first layer.

    M = (1 / c_ir) sum_j X_j is the same in every epoch, so it is made once; nobody wants a gradient by X.
    """

    def __init__(self, *args: Any, X_own: Array) -> None:
        """As RelationalLayer; X_own [n_in, f] on the device. Ranks: all call."""
        super().__init__(*args)
        self._constant = self.products.gather.times(X_own), self.products.self_of.times(X_own)
        del self.products.gather, self.products.scatter, self.products.collect

    def forward(self) -> Array:
        """Z_own [n_out, m]. Ranks: all call."""
        return self._combine(*self._constant)

    def gradients(self, dZ_own: Array) -> Iterator[Gradient]:
        """Gradients of all weights. Ranks: all call, and take all."""
        self._spread(dZ_own)
        yield from super().gradients()


def diagonal(width: tuple[int, int], blocks: int) -> list[tuple[slice, slice]]:
    """Rows and columns of the blocks on the diagonal of an [f, m] matrix, as equal as can be."""
    ends = [[size * b // blocks for b in range(blocks + 1)] for size in width]
    return [tuple(slice(each[b], each[b + 1]) for each in ends) for b in range(blocks)]


def shape_of(part: tuple[slice, slice]) -> tuple[int, int]:
    """Rows and columns of a block."""
    return tuple(each.stop - each.start for each in part)


def refuse_blocks(blocks: int, widths: Sequence[int], inputs: int = 0) -> None:
    """Refuse blocks that some layer cannot have. Raises CaseError.

    widths   of the layers' outputs     inputs   columns of the features of nodes; 0: one-hot inputs
    """
    if not blocks:
        return
    if not inputs and widths[0] % blocks:
        said = f"do not share the {widths[0]} columns of the first layer equally"
        raise CaseError(f"rgcn.blocks: {blocks} blocks {said}; a divisor would be right")
    least = min([inputs] * bool(inputs) + [*widths])
    if blocks > least:
        raise CaseError(f"rgcn.blocks: {blocks} blocks of {least} columns; at most {least} would be right")


def _gram(device: Any, X: Array, D: Array, starts: np.ndarray) -> Array:
    """block_gram of the rows that the blocks cover: a rank without blocks has only padding."""
    rows = int(starts[0, -1])
    return device.block_gram(X[:rows], D[:rows], starts)


# ---- the network ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drops:
    """Dropout between the layers in one epoch: which elements is a function of (seed, layer, epoch, row of
    the layer's outputs, column), the same for any placement."""

    share: float
    seed: int
    epoch: int

    @staticmethod
    def of(case: RgcnCase, seed: int, epoch: int) -> "Drops | None":
        """What a case asks for in an epoch; None: nothing is dropped."""
        return Drops(case.dropout, seed, epoch) if case.dropout else None

    def after(self, layer: int, first_row: int) -> Dropout:
        """Of what a layer, from 1, gives to the next, on rows from first_row on."""
        return Dropout(key_of(self.seed, f"dropout/{layer}", self.epoch), self.share, first_row)


def whole_name(name: str) -> str:
    """The name of the whole array that a weight array of a rank is a part of."""
    return "first/W" if name.startswith("first/W") else name


class RGCN:
    """A one-hot layer, then relational layers; between them relu and, in training, dropout.

    wanted    nodes whose outputs are read
    prune     layers make the rows that these outputs depend on, no others
    inputs    features of the nodes; None: one-hot
    slow      the first layer's relation weights lie in the slow tier of this budget
    one_hot   whether the first layer has weights for each node
    weights   every weight array by name
    out       the rows of the output that this rank owns
    """

    def __init__(
        self, group: Group, placement: Placement, graph: RelationalGraph, wanted: np.ndarray,
        shape: NetShape, prune: bool = True, slow: TierBudget | None = None, inputs: Features | None = None,
    ) -> None:  # fmt: skip
        widths = shape.widths
        refuse_blocks(shape.blocks, widths, inputs.width if inputs else 0)
        self.device, self.clock = group.device, Stopwatch(group.device)
        nodes = nodes_by_layer(graph, wanted, len(widths), prune)
        self.one_hot = inputs is None
        if inputs is None:
            self.first: Any = OneHotLayer(group, placement, graph, nodes[1], shape, slow)
        else:
            X_own = group.device.put(inputs.rows(own_rows(placement, nodes[0], group.rank)))
            width = (inputs.width, widths[0])
            self.first = FeatureLayer(
                group, placement, graph, nodes[0], nodes[1], width, shape, "first", X_own=X_own
            )
        self.rest = [
            RelationalLayer(
                group, placement, graph, nodes[k], nodes[k + 1], (widths[k - 1], widths[k]), shape,
                f"layer{k}",
            )
            for k in range(1, len(widths))
        ]  # fmt: skip
        self.layers = [self.first, *self.rest]
        owned = (layer.products.out.nodes[:1] for layer in self.layers)
        self._first_rows = [int(np.searchsorted(made, own).sum()) for made, own in zip(nodes[1:], owned)]
        self.out = self.layers[-1].products.out
        self.weights = {name: shard for layer in self.layers for name, shard in layer.weights.items()}

    def forward(self, drops: Drops | None = None) -> Array:
        """Logits of the owned output rows, [n_own, classes]; padding rows are zero. Ranks: all call.

        drops   of a pass that trains
        """
        with self.clock("first layer, forward"):
            X = self.first.forward()
        self._active: list[tuple[Array, Dropout | None]] = []
        with self.clock("other layers, forward"):
            for number, layer in enumerate(self.rest, start=1):
                drop = drops and drops.after(number, self._first_rows[number - 1])
                self.device.activate(X, relu=True, drop=drop)
                self._active.append((X, drop))
                X = layer.forward(X)
        return X

    def gradients(self, dZ_own: Array) -> Iterator[Gradient]:
        """(name, rows, gradient) of all weights, from the gradient [n_own, classes] by the logits, after
        forward.

        A gradient must be used before the next one is taken: weights may then change. Ranks: all call, and
        take all.
        """
        D = dZ_own
        for layer, (H, drop) in zip(reversed(self.rest), reversed(self._active)):
            with self.clock("other layers, backward"):
                dH = layer.backward(D)
            yield from self.clock.over("other layers, backward", layer.gradients())
            self.device.deactivate(dH, H, drop=drop, relu=True)
            D = dH
        yield from self.clock.over("first layer, backward", self.first.gradients(D))

    def arrays(self) -> dict[str, Array]:
        """The rows of all weights that this rank has, by name."""
        return {name: shard.array for name, shard in self.weights.items()}

    def replicated(self) -> dict[str, np.ndarray]:
        """The weights that every rank holds alike, on the host."""
        names = [name for layer in self.layers for name in layer.replicated]
        return {name: self.device.get(self.weights[name].array) for name in names}

    def whole(self, group: Group, arrays: "dict[str, Array | SlowRows] | None" = None) -> dict[str, Whole]:
        """All weights by name, the same for any placement; turns of the first layer as one array.

        arrays  others with the rows of the weights, by the weights' names; None: the weights
        Ranks   all call
        """
        shards: dict[str, list[Shard]] = {}
        for name, own in self.weights.items():
            shard = own if arrays is None else Shard(arrays[name], own.keys)
            shards.setdefault(whole_name(name), []).append(shard)
        return {name: Whole(group, shards[name]) for name in sorted(shards)}

    def whole_weights(self, group: Group) -> dict[str, np.ndarray]:
        """All weights by name, on the host of every rank. Ranks: all call."""
        return {name: each.whole() for name, each in self.whole(group).items()}

    def weights_digest(self, group: Group) -> str:
        """The digest of whole_weights, of which only pieces exist at a time. Ranks: all call."""
        whole = self.whole(group)
        return digest_pieces((name, each.shape, each.pieces()) for name, each in whole.items())
