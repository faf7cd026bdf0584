"""A trained relational network on the receptive field of one score, and explanations of some of its scores.

Layers are those of rgcn/model.py (Schlichtkrull et al. 2018, eq. 2); every message has a mask m_e, one number
for an edge e = (i, r, j) in all layers, and a node hears itself unmasked:

    Forward   P_e = H_j W_r      Z_i = sum over the edges e of i of m_e P_e / c_ir + H_i W_0
    Backward  dm_e += <dZ_i, P_e> / c_ir     dH_j += m_e dZ_i W_r^T / c_ir     dH_i += dZ_i W_0^T
    One-hot   P_e = x_j W_jr     Z_i as above, with x_i W_i0 for H_i W_0; x_j = 1 is node j's one feature:
              dx_j = sum over the edges e of j of m_e <dZ_i, W_jr> / c_ir + <dZ_j, W_j0>

c_ir counts the edges of the graph, whatever the mask. A triple (s, r, o) and its inverse are two edges, whose
attributions are added. Scores of links are f(s, r, o) of rgcn/scorers.py by the rows that the last layer
makes of both ends, and go back through a scorer's query and ends. All in float64, by one rank for each field.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.case.rgcn import RgcnCase, bases_of
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.explain.attribution import Attribution, Shape, attribute
from app.gnn.explain.explanations import KEY, Explanation, Explanations, order_of
from app.gnn.explain.field import Field
from app.gnn.explain.network import column_of, score_of
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.model import RGCN, diagonal, shape_of
from app.gnn.rgcn.scorers import Scorer
from app.graphs.triples.relational import RelationalGraph, nodes_by_layer
from app.sparse.relational import OwnRows

Array = np.ndarray
NO_BLOCKS = np.zeros(1, dtype=np.int64)
ENTRIES, NODES = 6, 5  # arrays of entries, and of nodes beside what layers make, that are there at once


class LinkGoal:
    """What is explained of a triple: its score."""

    kind = "score"


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of a network, whole.

    keys     by name, of the rows of the first layer     arrays   by name
    widths   of the layers' outputs     inputs   columns of features; 0: one-hot
    """

    case: RgcnCase
    keys: dict[str, Array]
    arrays: dict[str, Array]
    widths: list[int]
    inputs: int

    @classmethod
    def of(
        cls, group: Group, net: RGCN, case: RgcnCase, widths: list[int], inputs: int, most: int
    ) -> "Weights":
        """Those of a network. Ranks: all call. Raises CaseError where they take more than `most` bytes."""
        whole = net.whole(group)
        if (total := 4 * sum(int(np.prod(each.shape)) for each in whole.values())) > most:
            found = f"the weights, which every rank needs whole, take {total / 1e6:,.3g} MB"
            raise CaseError(f"{KEY}: {found}; as much for memory.whole_graph_mb would be right")
        arrays = {name: each.whole() for name, each in whole.items()}
        return cls(case, {name: each.keys for name, each in whole.items()}, arrays, widths, inputs)

    def rows(self, name: str, keys: Array) -> Array:
        """[k, ...] float64, the rows of some keys."""
        return self.arrays[name][np.searchsorted(self.keys[name], keys)].astype(np.float64)

    def cost(self, nodes: int, entries: int, relations: int) -> int:
        """About the bytes of a field and of its explanation: rows of the widest layer, and the weights of the
        relations."""
        widths = [self.inputs, *self.widths]
        rows = (NODES + len(self.widths)) * nodes + ENTRIES * entries
        return 8 * (max(widths) * rows + relations * sum(f * m for f, m in pairwise(widths)))

    def of_nodes(self, nodes: Array, relation: Array, relations: int) -> Array:
        """[e, h] rows W_jr of the first layer, one-hot, of nodes j [e] and relations [e]."""
        h = self.widths[0]
        if bases_of(self.case):
            a, V = self.rows("first/a", relation), self.arrays["first/V"]
            at, out = np.searchsorted(self.keys["first/V"], nodes), np.zeros((len(nodes), h))
            for b in range(a.shape[1]):
                out += a[:, b, None] * V[at, b]
            return out
        Q = self.rows("first/W", nodes.astype(np.int64) * relations + relation)
        if not self.case.blocks:
            return Q
        out = np.zeros((len(Q), self.case.blocks, h // self.case.blocks))
        out[np.arange(len(Q)), nodes % self.case.blocks] = Q
        return out.reshape(len(Q), h)

    def of_relations(self, name: str, relation: Array, width: tuple[int, int]) -> Array:
        """[k, f, m], W_r of some relations [k]."""
        if bases_of(self.case):
            V = self.arrays[f"{name}/V"].astype(np.float64)
            return np.einsum("kb,bx->kx", self.rows(f"{name}/a", relation), V).reshape(-1, *width)
        W, at = self.rows(f"{name}/W", relation), 0
        out = np.zeros((len(W), *width))
        for rows, columns in diagonal(width, max(self.case.blocks, 1)):
            size = int(np.prod(shape_of((rows, columns))))
            out[:, rows, columns] = W[:, at : at + size].reshape(len(W), *shape_of((rows, columns)))
            at += size
        return out


# ---- the network -----------------------------------------------------------------------------------------


class Node:
    """The scores of a node."""

    def scores(self, Z: Array) -> Array:
        """[columns] of rows [1, columns]."""
        return Z[0]

    def back(self, Z: Array, G: Array) -> Array:
        """[1, columns]."""
        return G[None]


class Triple:
    """The score of a triple, of the rows of its subject and its object.

    relation   [1, d] its row     loop   what it adds to the score of a node with itself
    """

    def __init__(self, scorer: Scorer, relation: Array, loop: float) -> None:
        self.scorer, self.relation, self.loop = scorer, relation, loop

    def scores(self, Z: Array) -> Array:
        """[1] of rows [2, d]."""
        query = self.scorer.query(np, 0, Z[:1], self.relation)
        return np.array([query[0] @ self.scorer.ends(np, Z[1:])[0] + self.loop])

    def back(self, Z: Array, G: Array) -> Array:
        """[2, d]."""
        query, ends = self.scorer.query(np, 0, Z[:1], self.relation), self.scorer.ends(np, Z[1:])
        of_subject = self.scorer.query_back(np, 0, Z[:1], self.relation, G[0] * ends)[0]
        return np.concatenate([of_subject, self.scorer.ends_back(np, Z[1:], G[0] * query)])


class RelationalNetwork:
    """What `attribute` asks of a network on a field (network.py: FieldNetwork).

    reader   of what is explained     Ranks   none: one rank works alone
    """

    edge_columns = 0

    def __init__(
        self, weights: Weights, graph: RelationalGraph, field: Field, goal: Any, reader: Any
    ) -> None:
        self.field, self.goal, self.column, self._reader = field, goal, -1, reader
        heard = field.nodes[field.ends[1]].astype(np.int64)
        self.k, self.one_hot = len(field.nodes), not weights.inputs
        ones, (into, out_of) = np.ones(len(field.weights)), field.ends
        entries = np.arange(len(field.weights))
        self._into = sp.csr_array((ones, (into, entries)), (self.k, len(entries)))
        self._out_of = sp.csr_array((ones, (out_of, entries)), (self.k, len(entries)))
        self._order = np.argsort(field.relation, kind="stable")
        met, starts = np.unique(field.relation[self._order], return_index=True)
        self._spans = list(zip(starts.tolist(), [*starts[1:].tolist(), len(entries)]))
        widths = [weights.inputs, *weights.widths]
        self._first, self._own, self._layers = None, None, []
        if self.one_hot:
            self._first = weights.of_nodes(heard, field.relation, graph.relations)
            made = np.isin(field.nodes, weights.keys["first/self"])
            self._own = np.zeros((self.k, widths[1]))
            self._own[made] = weights.rows("first/self", field.nodes[made])
        for at, (f, m) in enumerate(pairwise(widths)):
            if f:
                name = f"layer{at}" if at else "first"
                W = weights.of_relations(name, met, (f, m))
                self._layers.append((W, weights.arrays[f"{name}/self"].astype(np.float64)))

    def told(self, Z: Array) -> float:
        """See FieldNetwork."""
        return score_of(self.goal, Z, self.column)[0]

    def choose(self, Z: Array) -> None:
        """See FieldNetwork."""
        self.column = column_of(self.goal, Z)

    def scores(self, mask: Array | None = None, share: float = 1.0, of_edges: float = 1.0) -> Array:
        """See FieldNetwork; edges have no features."""
        return self._reader.scores(self._forward(mask, share)[-1][self.field.places])

    def score(self, mask: Array | None = None, share: float = 1.0, of_edges: float = 1.0) -> float:
        """See FieldNetwork."""
        return self.told(self.scores(mask, share))

    def gradients(
        self, mask: Array | None = None, share: float = 1.0, of_edges: float = 1.0
    ) -> tuple[Array, Array]:
        """See FieldNetwork: [e] by the mask, and [k, f] by the features, one-hot [k, 1]."""
        made, factors = self._forward(mask, share), self._factors(mask)
        places = self.field.places
        rows = made[-1][places]
        D, found = np.zeros(made[-1].shape), np.zeros(len(factors))
        back = self._reader.back(rows, score_of(self.goal, self._reader.scores(rows), self.column)[1])
        np.add.at(D, places, back)
        for at in range(len(self._layers) - 1, -1, -1):
            (W, W0), H = self._layers[at], self._read(made, at, share)
            heard = D[self.field.ends[0]]
            found += np.einsum("em,em->e", heard, self._times(H[self.field.ends[1]], W)) * self.field.weights
            spread = self._times(heard * factors[:, None], W, back=True)
            D = self._out_of @ spread + np.einsum("km,fm->kf", D, W0)
            if (below := at - 1 + self.one_hot) >= 0:
                D = D * (made[below] > 0)
        if not self.one_hot:
            return found, D
        dots = np.einsum("em,em->e", D[self.field.ends[0]], self._first)
        found += share * dots * self.field.weights
        dx = self._out_of @ (dots * factors) + np.einsum("km,km->k", D, self._own)
        return found, dx[:, None]

    def _factors(self, mask: Array | None) -> Array:
        """[e], m_e / c_ir."""
        return self.field.weights if mask is None else self.field.weights * mask

    def _forward(self, mask: Array | None, share: float) -> list[Array]:
        """What each layer makes [k, width], before relu."""
        factors, made = self._factors(mask)[:, None], []
        if self.one_hot:
            made.append(share * (self._into @ (factors * self._first) + self._own))
        for at, (W, W0) in enumerate(self._layers):
            H = self._read(made, at, share)
            messages = self._times(H[self.field.ends[1]], W)
            made.append(self._into @ (factors * messages) + np.einsum("kf,fm->km", H, W0))
        return made

    def _read(self, made: list[Array], at: int, share: float) -> Array:
        """What a layer with dense inputs reads: relu of what the one below made, or features."""
        below = at - 1 + self.one_hot
        return np.maximum(made[below], 0) if below >= 0 else share * self.field.X.astype(np.float64)

    def _times(self, X: Array, W: Array, back: bool = False) -> Array:
        """[e, m] rows X of entries times W_r of their relations; back: times W_r^T."""
        out = np.empty((len(X), W.shape[1 if back else 2]))
        for own, (lo, hi) in zip(W, self._spans):
            some = self._order[lo:hi]
            out[some] = np.einsum("em,fm->ef" if back else "ef,fm->em", X[some], own)
        return out


# ---- fields ----------------------------------------------------------------------------------------------


def field_of(
    graph: RelationalGraph, weights: Weights, inputs: Features | None, rows: Array, most: int
) -> Field | int:
    """The field of a node [1], or of a subject and an object [2]; the bytes it takes, where these are more
    than `most`."""
    layers = nodes_by_layer(graph, rows, len(weights.widths), True)
    nodes, some = layers[0].astype(np.int64), graph.of_targets(layers[1])
    if (cost := weights.cost(len(nodes), len(some), graph.relations)) > most:
        return cost
    ends = np.stack([np.searchsorted(nodes, each) for each in (some.target, some.source)])
    pairs = some.target.astype(np.int64) * graph.relations + some.relation
    _, which, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    X = np.ones((len(nodes), 1), dtype=np.float32)
    X = X if inputs is None else inputs.rows(OwnRows(nodes, len(nodes), NO_BLOCKS))
    degrees = np.stack([np.bincount(each, minlength=len(nodes)) for each in ends]).astype(np.float64)
    return Field(
        rows, np.searchsorted(nodes, rows), nodes, ends, 1 / counts[which.reshape(-1)], degrees, X,
        np.arange(X.shape[1]), relation=some.relation.astype(np.int64),
        triples_of=graph.relations // 2 if weights.case.inverse else graph.relations,
    )  # fmt: skip


# ---- explanations ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Words:
    """What is told by name: nodes, relations of the graph, predicted columns, and features."""

    node: Callable[[int], Any]
    relation: Callable[[int], Any]
    predicted: Callable[[int], Any]
    features: bool
    what: str


def explain_relational(
    group: Group, graph: RelationalGraph, weights: Weights, inputs: Features | None, goal: Any,
    asked: Sequence[tuple[Array, Any, Array, Any]], words: Words, most: int, seed: int,
) -> Explanations:  # fmt: skip
    """Explain some scores.

    asked   rows [1|2] of nodes, what reads their scores, the known scores [columns], and what this is called
    words   of the user     most   bytes of a field     seed   of what is drawn
    Ranks   all call; result identical on all. Raises Diverged where scores are not finite
    """
    if not weights.widths:
        raise CaseError(f"{KEY}: rgcn.layers = 0 is no network, whose edges count for nothing; leave it out")
    each: list[Explanation] = []
    left_out: list[tuple[Any, float]] = []
    shape = Shape(True, 1, 0)
    for at in range(0, len(asked), group.size):
        some, numbers = list(asked[at : at + group.size]), np.zeros(0)
        fields = [field_of(graph, weights, inputs, rows, most) for rows, *_ in some]
        with raise_together(group, "explaining predictions"):
            if group.rank < len(some) and isinstance(fields[group.rank], Field):
                _, reader, known, _ = some[group.rank]
                network = RelationalNetwork(weights, graph, fields[group.rank], goal, reader)
                numbers = attribute([network], True, known[None], seed).packed()
        for root, (found, (*_, called)) in enumerate(zip(fields, some)):
            if isinstance(found, int):
                left_out.append((called, found / 1e6))
                continue
            numbers_of = group.broadcast(numbers if group.rank == root else np.zeros(shape.size(found)), root)
            each.append(_told(Attribution.unpacked(found, shape, numbers_of), called, words))
    return Explanations(tuple(each), tuple(left_out), words.what, isinstance(goal, LinkGoal))


def _told(found: Attribution, called: Any, words: Words) -> Explanation:
    """An attribution by the user's names, the largest contributions first."""
    parts, nodes = found.parts, found.field.nodes
    by_edge, by_node = order_of(parts.of_edges), order_of(parts.of_nodes)
    of_features = parts.of_features if words.features else np.empty(0)
    by_feature = order_of(of_features)
    edges = [(words.node(s), words.relation(r), words.node(o)) for s, r, o in found.edges[by_edge].tolist()]
    return Explanation(
        called, words.predicted(found.column), found.score, found.bare, found.blank, found.plain,
        edges, parts.of_edges[by_edge], parts.gradients[by_edge],
        by_feature.tolist(), of_features[by_feature],
        [words.node(node) for node in nodes[by_node].tolist()], parts.of_nodes[by_node],
        [], np.empty(0), {}, found.missing, found.taken, found.fell, found.changed,
    )  # fmt: skip
