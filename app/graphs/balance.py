"""Balanced partitions in whole numbers: blocks of nodes, none heavier than a limit, and the weight they cut.

    most = floor((1 + imbalance) * ceil(all / parts))

is what a block may weigh (Walshaw's archive; KaHIP, METIS), in the unit of the nodes' weights.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from app.errors import GraphError
from app.graphs.contracted import WeightedRows
from app.graphs.fixed_point import integer_weights, refuse_vanished, whole_numbers
from app.graphs.graph import Graph

FULL = 1 << 52  # of all weights: sums of squares are Python's


@dataclass(frozen=True, eq=False)
class Balance:
    """A question: nodes in blocks that weigh at most so much, such that little is cut.

    rows    weights of edges and nodes in whole numbers; edges of weight 0 are left out
    limits  [parts] int64, what blocks may weigh; as many as there are nodes, at most
    unit    objective = cut * unit
    node_unit   of weights of nodes
    """

    rows: WeightedRows
    limits: np.ndarray
    unit: float = 1.0
    node_unit: float = 1.0

    @property
    def parts(self) -> int:
        """Blocks."""
        return len(self.limits)

    def cut(self, block: np.ndarray) -> int:
        """The weight between blocks [n]."""
        rows, block = self.rows, block.astype(np.int32)
        return int(rows.weights[np.repeat(block, np.diff(rows.indptr)) != block[rows.indices]].sum()) // 2

    def totals(self, block: np.ndarray) -> np.ndarray:
        """[parts] int64, what blocks weigh."""
        found = np.zeros(self.parts, dtype=np.int64)
        np.add.at(found, block, self.rows.size)
        return found

    def over(self, block: np.ndarray) -> int:
        """By how much blocks are too heavy, together."""
        return int(np.maximum(self.totals(block) - self.limits, 0).sum())


def balance_of(graph: Graph, parts: int, imbalance: float) -> Balance:
    """What a caller asks of a whole graph. Raises GraphError."""
    weights, unit = integer_weights(graph)
    _refuse_negative(graph, weights)
    indptr, indices = np.asarray(graph.indptr, np.int64), np.asarray(graph.indices, np.int32)
    if len(weights) and not weights.all():
        kept = weights > 0
        indptr = np.append(0, np.cumsum(kept))[indptr]
        indices, weights = indices[kept], weights[kept]
    size, node_unit = _sizes(graph)
    total = sum(size.tolist())
    most = int((1 + Fraction(str(float(imbalance)))) * -(-total // parts))
    most = max(min(most, total), 1)  # where nothing weighs anything, all fits in any block
    heavy = int(size.argmax()) if graph.n else 0
    if graph.n and size[heavy] > most:
        right = "fewer problem.parts, or a larger problem.imbalance, would be right"
        raise GraphError(
            f"{graph.name}: node {graph.called(heavy)} weighs {size[heavy] * node_unit:g}, a block at most "
            f"{most * node_unit:g}; {right}"
        )
    rows = WeightedRows(*map(np.ascontiguousarray, (indptr, indices, weights, size)))
    parts = min(parts, max(graph.n, 1))  # more blocks have no nodes
    return Balance(rows, np.full(parts, most, dtype=np.int64), unit, node_unit)


def _sizes(graph: Graph) -> tuple[np.ndarray, float]:
    if graph.node_weights is None:
        return np.ones(graph.n, dtype=np.int64), 1.0
    negative = np.flatnonzero(graph.node_weights < 0)
    if len(negative):
        node = int(negative[0])
        raise GraphError(
            f"{graph.name}: node {graph.called(node)} has the weight {graph.node_weights[node]:g} < 0; "
            "weights from 0 on would be right"
        )
    sizes, unit = whole_numbers(graph.node_weights, f"{graph.name}: a node weight", FULL)
    named = f"{graph.name}: the weight of node"
    refuse_vanished(sizes, graph.node_weights, lambda node: f"{named} {graph.called(node)}")
    return sizes, unit


def _refuse_negative(graph: Graph, weights: np.ndarray) -> None:
    negative = np.flatnonzero(weights < 0)
    if len(negative):
        where = int(negative[0])
        pair = graph.called_entry(where)
        right = 'weights from 0 on, or problem.name = "maxcut", would be right'
        raise GraphError(f"{graph.name}: edge {pair} has the weight {graph.weights[where]:g} < 0; {right}")
