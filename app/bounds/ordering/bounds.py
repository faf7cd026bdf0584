"""Lower bounds on what orders pay that improve in slices of time, part by part."""

import time
from collections.abc import Callable

import numpy as np

from app.bounds.ordering.part import PACKING, TREE, PartBounds
from app.bounds.ordering.witness import OrderingPart
from app.graphs.ordering import NetArcs, least_order
from app.reductions.ordering.reducer import topological_components
from app.toolbox import Bounds

Descend = Callable[[NetArcs, np.ndarray], np.ndarray]

NEAR = 0.25  # gap from which on a proof gets time
ROW_SECONDS = 2e-5  # of a check, for each arc of a part
FIRST_SECONDS = 4e-6  # of the first steps of all parts, for each node and arc, about
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


class OrderingBounds(Bounds):
    """Bounds of net arcs: those of their parts together.

    descend   from an order of net arcs to a better one, for those that a linear program leads to
    """

    near = NEAR

    def __init__(self, net: NetArcs, compiled: bool = True, descend: Descend = as_it_is) -> None:
        self.net, self._compiled = net, compiled
        self._parts = [PartBounds(net.part(nodes), nodes, compiled, descend) for nodes in parts_of(net)]
        self._left = list(self._parts)
        self._turn, self._best = 0, 0
        self._solution: np.ndarray | None = None
        self._pieces: tuple[int, np.ndarray | None] = 0, None
        self.check_seconds = ROW_SECONDS * (net.n + net.arcs)

    @property
    def value(self) -> int:
        """The sum over the parts."""
        return sum(part.lower for part in self._parts)

    @property
    def method(self) -> str:
        """How it was found; "": not yet."""
        if any(not part.method for part in self._parts):
            return ""
        named = {part.method for part in self._parts}
        return (
            " + ".join(sorted(named, key=lambda name: (name != TREE, name == PACKING, name))) or "no cycles"
        )

    @property
    def least_seconds(self) -> float:
        """An estimate of the shortest call of `improve`: what the first takes, until it has been made."""
        begun = not self._parts or self._parts[-1].method  # the largest part is the last
        return 0.0 if begun else FIRST_SECONDS * (self.net.n + self.net.arcs)

    @property
    def closing(self) -> bool:
        """Whether a linear program, or branch and bound, is at work."""
        return any(part.searching for part in self._left)

    @property
    def gaining(self) -> bool:
        """Whether it is, or cycles are still being packed."""
        return self.closing or any(part.packing for part in self._left)

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, a step of each part by turns."""
        self._best = best
        if solution is not None and solution is not self._solution:
            self._solution = solution
            place = np.empty(self.net.n, dtype=np.int64)
            place[solution] = np.arange(self.net.n)
            for part in self._parts:
                part.offer(np.argsort(place[part.nodes], kind="stable"))
        end = time.perf_counter() + seconds
        while self._left:
            if self.value >= best and self.method:
                return False
            self._turn %= len(self._left)
            part = self._left[self._turn]
            part.step()
            if part.done:
                del self._left[self._turn]
            else:
                self._turn += 1
            if time.perf_counter() >= end:
                return bool(self._left)
        return False

    def until(self, clock: float) -> None:
        """When all has to be over."""
        for part in self._parts:
            part.end = clock

    def _known(self) -> int | None:
        """What the best orders known of all parts pay."""
        if any(part.order is None for part in self._parts):
            return None
        return sum(part.best for part in self._parts)

    def _joined(self) -> np.ndarray:
        """[n] int64, an order in which all parts stand as in their best ones.

        Parts meet in single nodes, never in a ring, so that there is one; arcs between parts lead forward.
        """
        tails, heads = [], []
        for part in self._parts:
            tails.append(part.nodes[part.order[:-1]])
            heads.append(part.nodes[part.order[1:]])
        label = topological_components(self.net)
        across = label[self.net.tails] != label[self.net.heads]
        tails, heads = [*tails, self.net.tails[across]], [*heads, self.net.heads[across]]
        return least_order(self.net.n, np.concatenate(tails), np.concatenate(heads), self._compiled)

    def optimum(self) -> np.ndarray | None:
        """[n] int64, the best orders of all parts, where all are proved."""
        return self.pieces() if self._known() == self.value else None

    def pieces(self) -> np.ndarray | None:
        """[n] int64, the best orders of all parts, where they pay less than the caller's best."""
        cost = self._known()
        if cost is None or cost >= self._best:
            return None
        if self._pieces[0] != cost or self._pieces[1] is None:
            self._pieces = cost, self._joined()
        return self._pieces[1]

    def witness(self) -> tuple[OrderingPart, ...]:
        """What proves the bound."""
        return tuple(part.witness() for part in self._parts)
