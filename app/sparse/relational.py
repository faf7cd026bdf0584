"""What one relational layer moves and multiplies on one rank, for any placement of relations and rows.

Notation: edge (i, r, j) brings row j to row i under relation r; c_ir is the number of j with an edge
(i, r, j). A *pair* is a (target, relation) that has an edge, a *source row* a (source, relation) that has
one. What belongs to a pair or source row is held by `Placement.holder` of it, what belongs to a node by its
owner.

Sums over relations are chains in the order of relations on the owner of the row, with one addend per pair
(per source row); an addend is one chain over the edges of the pair in the order of nodes, on its holder.
Neither depends on how relations are grouped or rows are cut.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.keys import distinct, first_of_runs, sorted_set
from app.graphs.triples.relational import RelationalGraph
from app.partition.relations import Placement
from app.partition.rows import OCTET
from app.sparse.remote import Held, RemoteProduct

Array = Any


@dataclass(frozen=True, eq=False)
class OwnRows:
    """The nodes of a layer that one rank owns.

    nodes    [k] int64 ascending     padded   rows of arrays, a multiple of 8, at least 8
    starts   [own blocks + 1] int64, the first local row of each block of the rank; padding is in the last one
    """

    nodes: np.ndarray
    padded: int
    starts: np.ndarray

    def held(self) -> Held:
        """The rows as others ask for them, by node."""
        return Held(self.nodes, self.padded)


def own_rows(placement: Placement, nodes: np.ndarray, rank: int) -> OwnRows:
    """The part of some nodes that a rank owns; nodes [k] global numbers, ascending."""
    rows = placement.rows
    borders = rows.starts[rows.cuts[rank] : rows.cuts[rank + 1] + 1]
    cuts = np.searchsorted(nodes, borders)
    own = nodes[cuts[0] : cuts[-1]].astype(np.int64)
    starts = (cuts - cuts[0]).astype(np.int64)
    padded = octets(len(own))
    if len(starts) > 1:
        starts[-1] = padded
    return OwnRows(own, padded, starts)


def octets(count: int) -> int:
    """`count` rounded up to a multiple of 8, at least 8."""
    return max(-(-count // OCTET), 1) * OCTET


class LayerEdges:
    """The edges into the rows that one layer makes, with their keys.

    target, relation, source   [m] int32, in this order
    pair        [m] int64 key of (target, relation): target * R + relation
    source_row  [m] int64 key of (source, relation)
    weight      [m] float32 1 / c_ir     turn   [m] int32 when the relation's group processes it
    at_pair, at_source   [m] int32, the ranks that hold the pair and the source row
    """

    def __init__(self, placement: Placement, graph: RelationalGraph, outputs: np.ndarray) -> None:
        edges = graph.of_targets(outputs)
        self.placement, self.R = placement, graph.relations
        self.target, self.relation, self.source = edges.target, edges.relation, edges.source
        self.pair = self.target.astype(np.int64) * self.R + self.relation
        self.source_row = self.source.astype(np.int64) * self.R + self.relation
        self.turn = placement.turn_of.astype(np.int32)[self.relation]
        self.at_pair, self.at_source = (
            placement.holder(self.relation, nodes).astype(np.int32) for nodes in (self.target, self.source)
        )
        # Edges of a pair stand side by side.
        first = np.flatnonzero(first_of_runs(self.pair))
        counts = np.diff(first, append=len(self.pair))
        self.weight = np.repeat(1 / counts.astype(np.float32), counts)

    def source_rows(self) -> np.ndarray:
        """[k] int64 keys of all source rows, ascending."""
        return sorted_set(self.source_row)

    def own_source_rows(self, rank: int, turn: int) -> np.ndarray:
        """[k] int64 keys of the source rows that a rank holds and uses in a turn, ascending."""
        return sorted_set(self.source_row[(self.turn == turn) & (self.at_source == rank)])

    def holder(self, keys: np.ndarray) -> np.ndarray:
        """[k] the ranks that hold pairs or source rows, by their keys [k] int64."""
        nodes, relations = np.divmod(keys, self.R)
        return self.placement.holder(relations, nodes)

    def owner_of_row(self, keys: np.ndarray) -> np.ndarray:
        """[k] the ranks that own the nodes of pairs or source rows, by their keys [k] int64."""
        return self.placement.owner(keys // self.R)

    def backward_order(self, chosen: np.ndarray) -> np.ndarray:
        """[k] the chosen edges, their places [k] in `source`, in the order (source, relation, target)."""
        return chosen[np.argsort(self.source_row[chosen], kind="stable")]


# ---- a layer whose input is one-hot ----------------------------------------------------------------------


class OneHotTurn:
    """The relations of one turn of this rank: source rows -> pairs, and back.

    pairs         keys of (target, relation) held here, ascending
    sums          source rows -> pairs: P_ir = sum_j W_jr, from rows as LayerEdges.own_source_rows lists them
    gradients     rows of outputs -> source rows: dW_jr = sum_i dZ_i / c_ir
    """

    def __init__(self, group: Group, edges: LayerEdges, out: OwnRows, turn: int) -> None:
        now = edges.turn == turn
        into = np.flatnonzero(now & (edges.at_pair == group.rank))
        self.pairs, row = distinct(edges.pair[into])
        rows = Held(edges.own_source_rows(group.rank, turn))
        self.sums = RemoteProduct(group, rows, edges.holder, len(self.pairs), row, edges.source_row[into])
        del into, row, rows
        out_of = edges.backward_order(np.flatnonzero(now & (edges.at_source == group.rank)))
        source_rows, row = distinct(edges.source_row[out_of])
        self.gradients = RemoteProduct(
            group, out.held(), edges.placement.owner, len(source_rows), row, edges.target[out_of],
            edges.weight[out_of],
        )  # fmt: skip


class OneHotProducts:
    """Everything that a layer with one-hot inputs needs on this rank.

    out     rows that the layer makes
    turns   parts of this rank's relations, processed one after the other
    pairs   [turns + 1] where the pairs of each turn begin in the array of all
    add     pairs -> rows: Z_i = sum_r P_ir / c_ir
    """

    def __init__(self, group: Group, edges: LayerEdges, outputs: np.ndarray) -> None:
        self.out = own_rows(edges.placement, outputs, group.rank)
        self.turns = [OneHotTurn(group, edges, self.out, turn) for turn in range(edges.placement.turns)]
        self.pairs = np.cumsum([0] + [len(turn.pairs) for turn in self.turns]).tolist()
        held = Held(np.concatenate([turn.pairs for turn in self.turns]))
        for turn in self.turns:
            del turn.pairs
        first = np.flatnonzero(first_of_runs(edges.pair))
        own = edges.pair[first]
        mine = edges.owner_of_row(own) == group.rank
        row = np.searchsorted(self.out.nodes, own[mine] // edges.R)
        self.add = RemoteProduct(
            group, held, edges.holder, self.out.padded, row, own[mine], edges.weight[first[mine]]
        )


# ---- a layer whose input is dense ------------------------------------------------------------------------


class HiddenProducts:
    """Everything that a layer with dense inputs needs on this rank.

    Pairs held here stand relation by relation, each relation padded to a multiple of 8 rows.
    inputs, out    rows that the layer reads and makes; out is part of inputs
    relations      [k] the relations of this rank's group; segments: (place in relations, first row, last + 1)
    rows           of arrays of pairs
    gather         inputs -> pairs: M_ir = sum_j H_j / c_ir      scatter   pairs -> source rows, its adjoint
    add            pairs -> out: Z_i = sum_r P_ir                spread    out -> pairs, its adjoint
    collect        source rows -> inputs: dH_j = sum_r Q_jr
    block_starts   [1, b+1] segments of pairs by relation and row block, each an addend of the gradient of W_r
    fold           addends -> gradients of the relations of this rank
    self_of, self_to   inputs -> out and its adjoint: each row itself
    """

    def __init__(
        self,
        group: Group,
        placement: Placement,
        graph: RelationalGraph,
        inputs: np.ndarray,
        outputs: np.ndarray,
    ) -> None:
        edges = LayerEdges(placement, graph, outputs)
        self.inputs = own_rows(placement, inputs, group.rank)
        self.out = own_rows(placement, outputs, group.rank)
        self.relations = np.flatnonzero(placement.group_of == group.rank % placement.groups)
        into = np.flatnonzero(edges.at_pair == group.rank)
        into = into[np.argsort(edges.relation[into], kind="stable")]
        at = self._place_pairs(edges, into)
        held = Held(self._pairs, self.rows, self._pair_at)
        self._to_out(group, edges, into, at, held)
        del into, at
        self._to_inputs(group, edges, held)
        self._to_weights(group, edges)
        self._self_loops(group)
        del self._pairs, self._pair_relation, self._pair_at

    def _place_pairs(self, edges: LayerEdges, into: np.ndarray) -> np.ndarray:
        """Rows of the pairs held here; returns the row of each edge's pair."""
        first = first_of_runs(edges.pair[into])
        pairs = into[first]
        self._pairs, relation = edges.pair[pairs], edges.relation[pairs]
        self._pair_relation = relation
        counts = np.bincount(np.searchsorted(self.relations, relation), minlength=len(self.relations))
        padded = -(-counts // OCTET) * OCTET
        begin = np.cumsum(padded) - padded
        before = np.cumsum(counts) - counts
        place = np.searchsorted(self.relations, relation)
        self._pair_at = np.arange(len(pairs)) - before[place] + begin[place]
        self.rows = max(int(padded.sum()), OCTET)
        self.segments = [
            (k, int(lo), int(lo + size)) for k, (lo, size) in enumerate(zip(begin, padded)) if size
        ]
        return self._pair_at[np.cumsum(first) - 1]

    def _to_out(self, group: Group, edges: LayerEdges, into: np.ndarray, at: np.ndarray, held: Held) -> None:
        """Products from inputs to pairs to rows, and from rows to pairs."""
        owner = edges.placement.owner
        self.gather = RemoteProduct(
            group, self.inputs.held(), owner, self.rows, at, edges.source[into], edges.weight[into]
        )
        own, _ = distinct(edges.pair)
        own = own[edges.owner_of_row(own) == group.rank]
        row = np.searchsorted(self.out.nodes, own // edges.R)
        self.add = RemoteProduct(group, held, edges.holder, self.out.padded, row, own)
        self.spread = RemoteProduct(
            group, self.out.held(), owner, self.rows, self._pair_at, self._pairs // edges.R
        )

    def _to_inputs(self, group: Group, edges: LayerEdges, held: Held) -> None:
        """Products from pairs to source rows to inputs."""
        out_of = edges.backward_order(np.flatnonzero(edges.at_source == group.rank))
        sources, row = distinct(edges.source_row[out_of])
        self.scatter = RemoteProduct(
            group, held, edges.holder, len(sources), row, edges.pair[out_of], edges.weight[out_of]
        )
        own = sorted_set(edges.source_row)
        own = own[edges.owner_of_row(own) == group.rank]
        row = np.searchsorted(self.inputs.nodes, own // edges.R)
        self.collect = RemoteProduct(group, Held(sources), edges.holder, self.inputs.padded, row, own)

    def _to_weights(self, group: Group, edges: LayerEdges) -> None:
        """Addends of the gradients of the relations' weights, by row block, and the sum of them."""
        placement = edges.placement
        starts = placement.rows.starts
        blocks = len(starts) - 1

        def keys_of(pairs: np.ndarray, relation: np.ndarray) -> np.ndarray:
            block = np.searchsorted(starts, pairs // edges.R, side="right") - 1
            return relation * blocks + block

        keys, first = np.unique(keys_of(self._pairs, self._pair_relation), return_index=True)
        ends = [*self._pair_at[first].tolist(), self.rows]
        self.block_starts = np.array([ends], dtype=np.int64) if len(keys) else np.zeros((1, 1), np.int64)
        if len(keys):
            self.block_starts[0, 0] = 0
        whole = sorted_set(keys_of(edges.pair, edges.relation))
        mine = whole[np.isin(whole // blocks, self.relations)]
        owner = np.searchsorted(placement.rows.cuts[1:], np.arange(blocks), side="right")

        def holder(found: np.ndarray) -> np.ndarray:
            row_part = owner[found % blocks] // placement.groups
            return row_part * placement.groups + placement.group_of[found // blocks]

        row = np.searchsorted(self.relations, mine // blocks)
        self.fold = RemoteProduct(group, Held(keys), holder, octets(len(self.relations)), row, mine)

    def _self_loops(self, group: Group) -> None:
        """Each output row is one of the inputs, on the same rank."""
        k, at = len(self.out.nodes), np.searchsorted(self.inputs.nodes, self.out.nodes)

        def owner(nodes: np.ndarray) -> np.ndarray:
            return np.full(len(nodes), group.rank)

        self.self_of = RemoteProduct(
            group, self.inputs.held(), owner, self.out.padded, np.arange(k), self.out.nodes
        )
        self.self_to = RemoteProduct(group, self.out.held(), owner, self.inputs.padded, at, self.out.nodes)
