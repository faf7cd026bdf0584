"""The grid of ranks of a network on relations, and the parts of its first layer that fit in memory."""

from math import isqrt
from typing import Any

import numpy as np

from app.case.rgcn import RgcnCase
from app.errors import CaseError
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.weights import CHUNK_ELEMENTS
from app.graphs.keys import sorted_set
from app.graphs.triples.data import NodeLabels
from app.graphs.triples.relational import RelationalGraph, nodes_by_layer
from app.partition.relations import Placement, fit_turns, place, refuse_turns

Array = Any


def choose_placement(
    ranks: int, graph: RelationalGraph, labels: NodeLabels, case: RgcnCase, fast_bytes: int = 0,
    inputs: Features | None = None,
) -> Placement:  # fmt: skip
    """The grid of ranks that a case asks for, and in how many parts a rank processes its relations."""
    groups = grid_groups(ranks, case)
    turns = case.parts or 1
    used = graph.of_targets(nodes_by_layer(graph, labels.nodes, case.layers, case.prune)[1])
    if fast_bytes and inputs is None:
        resident = _resident_bytes(graph, labels, case)
        if case.parts:
            refuse_turns(used, case.grouping, groups, turns, fast_bytes, case.hidden, resident)
        else:
            turns = fit_turns(used, case.grouping, groups, fast_bytes, case.hidden, resident)
    return place(used, ranks, groups, case.grouping, turns)


def widths_of(case: RgcnCase, last: int) -> list[int]:
    """Columns that each layer makes; `last`: of the last one. Without layers that of a table of nodes' rows,
    which is a first layer without edges."""
    return [case.hidden] * (case.layers - 1) + [last]


def grid_groups(ranks: int, case: RgcnCase) -> int:
    """Relation groups of the grid of ranks that a case asks for. Raises CaseError unless they divide it."""
    groups = {"rows": 1, "relations": ranks, "both": case.groups or _divisor(ranks)}[case.partition]
    if ranks % groups:
        raise CaseError(f"rgcn.groups: {groups} does not divide {ranks} ranks; a divisor would be right")
    return groups


def _resident_bytes(graph: RelationalGraph, labels: NodeLabels, case: RgcnCase) -> int:
    """Fast memory that is taken whatever the first layer's parts, on one rank: an upper bound.

    Rows of nodes (sums, activations, self-loop weights and the gradients of each), rows of pairs and source
    rows of every layer, the structure of its products, and the node weights of one piece with their gradient.
    """
    nodes = nodes_by_layer(graph, labels.nodes, case.layers, case.prune)
    width = max(case.hidden, labels.classes)
    total, rows_at_once = 2 * 4 * CHUNK_ELEMENTS, 0
    for layer in range(1, case.layers + 1):
        edges = graph.of_targets(nodes[layer])
        pairs, sources = (
            len(sorted_set(ends.astype(np.int64) * graph.relations + edges.relation))
            for ends in (edges.target, edges.source)
        )
        # Columns, factors and row offsets of the products; rows of nodes and their gradients.
        total += 16 * (len(edges) + pairs) + 8 * sources + 4 * (4 * width + 8) * len(nodes[layer])
        # Of a hidden layer M, dP, dM and Q (RelationalLayer), of the first P or dW; one layer's at a time,
        # but for M until its backward pass.
        total += 4 * width * pairs if layer > 1 else 0
        rows_at_once = max(rows_at_once, (2 * pairs if layer > 1 else pairs) + sources)
    total += 4 * width * rows_at_once
    return total


def _divisor(ranks: int) -> int:
    """The largest divisor up to the square root."""
    return max(d for d in range(1, isqrt(ranks) + 1) if ranks % d == 0)
