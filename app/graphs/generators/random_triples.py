"""Random knowledge graphs: preferential attachment, a relation drawn for each edge, labels that follow."""

import numpy as np

from app.errors import CaseError
from app.graphs.triples.data import NodeLabels, Triples
from app.rng import stream


def random_triples(nodes: int, edges: int, relations: int, seed: int) -> Triples:
    """A Barabási-Albert graph of about `edges` edges, whose relations are drawn uniformly.

    Node v brings its share of the edges, and each ends at an endpoint of an earlier edge, drawn uniformly, or
    at v (Batagelj and Brandes 2005, algorithm 5, for all edges at once); then self-loops are left out. Kibata
    et al. 2020 evaluate on such a graph of 0.8 million nodes, 2 million edges and 100 relations.
    """
    if not 2 <= nodes < 2**31 or not 1 <= edges < 2**31:
        found = f"{nodes} nodes and {edges} edges"
        raise CaseError(f"graph.nodes, graph.edges: 2 nodes, 1 edge or more would be right, got {found}")
    subject = np.arange(edges, dtype=np.int64) * nodes // edges
    draws = stream(seed, "triples/ends")
    # Slot 2 k is the subject of edge k; slot 2 k + 1, its object, repeats an earlier slot or 2 k.
    slot = draws.integers(0, 2 * np.arange(edges, dtype=np.int64) + 1)
    while (odd := slot & 1).any():
        slot = np.where(odd, slot[slot >> 1], slot)
    object_ = subject[slot >> 1]
    relation = stream(seed, "triples/relations").integers(0, relations, edges)
    kept = subject != object_
    columns = [each[kept].astype(np.int32) for each in (subject, relation, object_)]
    return Triples(f"ba-{nodes}-{edges}-{relations}-{seed}", nodes, relations, *columns)


def random_labels(triples: Triples, labelled: int, classes: int, seed: int) -> NodeLabels:
    """Classes of some nodes, drawn uniformly, that follow from their triples; half of them to train with.

    A node's class is the residue of relation numbers by `classes` that most triples of which it is the
    subject have, the lowest of equally frequent ones.
    """
    if labelled > triples.nodes:
        raise CaseError(f"rgcn.labelled: at most {triples.nodes} would be right, got {labelled}")
    chosen = stream(seed, "triples/labels").permutation(triples.nodes)[:labelled].astype(np.int32)
    votes = np.bincount(
        triples.subject.astype(np.int64) * classes + triples.relation % classes,
        minlength=triples.nodes * classes,
    )
    label = votes.reshape(-1, classes)[chosen].argmax(axis=1).astype(np.int32)
    half = -(-labelled // 2)
    return NodeLabels(classes, chosen[:half], label[:half], chosen[half:], label[half:])
