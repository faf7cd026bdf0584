"""Lower bounds on what orders pay that improve in slices of time, part by part."""

from collections.abc import Callable

import numpy as np

from app.bounds.cycles.bounds import BoundsOfParts
from app.bounds.ordering.part import OrderingPartBounds
from app.graphs.ordering import NetArcs, least_order
from app.graphs.orders import order_within
from app.reductions.ordering.reducer import topological_components

Descend = Callable[[NetArcs, np.ndarray], np.ndarray]

MOST_BLOCKS = 100_000  # arcs of a component that is taken apart at single nodes


def parts_of(net: NetArcs) -> list[np.ndarray]:
    """The nodes [k] of parts that all cycles are within; no two of them have two nodes with a net arc in
    common: the biconnected components of strongly connected ones, small ones first.
    """
    label = topological_components(net)
    order = np.argsort(label, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    inside = label[net.tails] == label[net.heads]
    arcs = np.bincount(label[net.tails[inside]], minlength=len(groups))
    found: list[np.ndarray] = []
    for nodes, count in zip(groups, arcs.tolist()):
        if len(nodes) < 3:
            continue
        if count > MOST_BLOCKS or count > 0.5 * len(nodes) ** 2 / 2:  # dense ones are whole
            found.append(np.sort(nodes))
            continue
        part = net.part(np.sort(nodes))
        import networkx as nx  # where there is something to take apart

        graph = nx.Graph(zip(part.tails.tolist(), part.heads.tolist()))
        found += [
            np.sort(nodes)[sorted(block)] for block in nx.biconnected_components(graph) if len(block) > 2
        ]
    return sorted(found, key=lambda nodes: (len(nodes), nodes.tolist()))


def as_it_is(net: NetArcs, order: np.ndarray) -> np.ndarray:
    """No descent."""
    return order


class OrderingBounds(BoundsOfParts):
    """Bounds of net arcs: those of their parts together. A solution is an order [n] int64.

    descend   from an order of net arcs to a better one, for those that a linear program leads to
    """

    first_seconds = 4e-6

    def __init__(self, net: NetArcs, compiled: bool = True, descend: Descend = as_it_is) -> None:
        self.net, self._compiled = net, compiled
        parts = [OrderingPartBounds(net.part(nodes), nodes, compiled, descend) for nodes in parts_of(net)]
        super().__init__(parts, net.n + net.arcs)

    @property
    def gaining(self) -> bool:
        """Whether it is, or cycles are still being packed."""
        return self.closing or any(part.packing for part in self._left)

    def _within(self, solution: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda nodes: order_within(solution, nodes)

    def _joined(self) -> np.ndarray:
        """[n] int64, an order in which all parts stand as in their best ones.

        Parts meet in single nodes, never in a ring, so that there is one; arcs between parts lead forward.
        """
        tails, heads = [], []
        for part in self._parts:
            tails.append(part.nodes[part.solution[:-1]])
            heads.append(part.nodes[part.solution[1:]])
        label = topological_components(self.net)
        across = label[self.net.tails] != label[self.net.heads]
        tails, heads = [*tails, self.net.tails[across]], [*heads, self.net.heads[across]]
        return least_order(self.net.n, np.concatenate(tails), np.concatenate(heads), self._compiled)
