"""RelationalGraph: the edges that a relational network passes messages along, sorted; and who needs whom.

An edge (i, r, j) brings what node j holds to node i under relation r. A triple (s, r, o) gives the edge
(o, r, s) and, with inverse relations, (s, R + r, o). Self-loops are not among them: a layer adds them apart.
"""

from dataclasses import dataclass

import numpy as np

from app.errors import GraphError
from app.graphs.keys import sorted_set, union
from app.graphs.triples.data import Triples


@dataclass(frozen=True, eq=False)
class RelationalGraph:
    """Distinct edges in the order (target, relation, source).

    target, source [m] int32 nodes     relation [m] int32, 0 .. relations-1
    kept           [R] bool, which relations of the triples are among them; None: of a part of the edges
    """

    name: str
    nodes: int
    relations: int
    target: np.ndarray
    relation: np.ndarray
    source: np.ndarray
    kept: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.target)

    def edge_counts(self) -> np.ndarray:
        """[relations] int64, edges of each relation."""
        return np.bincount(self.relation, minlength=self.relations)

    def of_targets(self, nodes: np.ndarray) -> "RelationalGraph":
        """The edges whose target is one of the nodes."""
        wanted = np.zeros(self.nodes, dtype=bool)
        wanted[nodes] = True
        return self._keep(wanted[self.target])

    def _keep(self, kept: np.ndarray) -> "RelationalGraph":
        parts = (self.target[kept], self.relation[kept], self.source[kept])
        return RelationalGraph(self.name, self.nodes, self.relations, *parts)


def relational_graph(triples: Triples, inverse: bool = True, min_edges: int = 0) -> RelationalGraph:
    """The edges of a knowledge graph.

    inverse     add an inverse relation R + r for each relation r
    min_edges   relations of fewer distinct triples are left out, and the others numbered anew in their order
                (Kibata et al. 2020, section 4.2)
    """
    s, r, o = triples.subject, triples.relation, triples.object
    edges = _sorted(triples, triples.relations, o, r, s)
    counts = np.bincount(edges[1], minlength=triples.relations)
    kept = (counts >= max(min_edges, 1)) if min_edges else np.ones(len(counts), dtype=bool)
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    chosen = kept[edges[1]]
    target, relation, source = edges[0][chosen], number[edges[1][chosen]], edges[2][chosen]
    relations = int(kept.sum())
    if not len(target):
        if not len(triples):
            raise GraphError(f"{triples.name}: holds no triples; at least one would be right")
        right = "a smaller rgcn.min_edges would be right"
        raise GraphError(f"{triples.name}: no relation has {min_edges} edges; {right}")
    if inverse:
        both = (np.concatenate([target, source]), np.concatenate([source, target]))
        relation = np.concatenate([relation, relation + np.int32(relations)])
        relations *= 2
        target, relation, source = _sorted(triples, relations, both[0], relation, both[1])
    return RelationalGraph(triples.name, triples.nodes, relations, target, relation, source, kept)


def _sorted(
    triples: Triples, relations: int, target: np.ndarray, relation: np.ndarray, source: np.ndarray
) -> list[np.ndarray]:
    """Distinct edges in order, int32."""
    n = triples.nodes
    if n * n * relations >= 2**63:
        raise GraphError(f"{triples.name}: {n} nodes and {relations} relations; fewer would be right")
    key = target.astype(np.int64)
    for factor, more in ((relations, relation), (n, source)):  # in place: there may be billions
        key *= factor
        key += more
    key = sorted_set(key)
    source = (key % n).astype(np.int32)
    key //= n
    relation = (key % relations).astype(np.int32)
    key //= relations
    return [key.astype(np.int32), relation, source]


def nodes_by_layer(graph: RelationalGraph, wanted: np.ndarray, layers: int, prune: bool) -> list[np.ndarray]:
    """The nodes whose rows each layer must make, ascending: entry l is what l layers make.

    wanted   nodes whose outputs are read
    prune    False: all nodes everywhere
    Entry `layers` is `wanted`; a node is needed below where one above it needs it, along an edge or by its
    self-loop. Nodes beyond `layers` hops of the wanted ones appear nowhere.
    """
    if not prune:
        return [np.arange(graph.nodes, dtype=np.int32)] * (layers + 1)
    out = [sorted_set(wanted).astype(np.int32)]
    for _ in range(layers):
        below = graph.of_targets(out[0]).source
        out.insert(0, union(out[0], below).astype(np.int32))
    return out
