"""Lower bounds on directed feedback vertex sets that improve in slices of time, part by part."""

import time

import numpy as np

from app.bounds.dfvs.part import PACKING, TREE, PartBounds
from app.bounds.dfvs.witness import DirectedFeedbackPart
from app.graphs.digraph import Digraph
from app.toolbox import Bounds

NEAR = 0.25  # gap from which on a proof gets time
ROW_SECONDS = 2e-5  # of a check, for each arc of a part
FIRST_SECONDS = 3e-6  # of the first steps of all parts, for each node and arc, about


class DirectedFeedbackBounds(Bounds):
    """Bounds of one digraph: those of its strongly connected components together.

    price   [n] int64, above 0
    """

    near = NEAR

    def __init__(self, digraph: Digraph, price: np.ndarray) -> None:
        self.digraph, self.price = digraph, price
        label = digraph.components()
        order = np.argsort(label, kind="stable")
        cuts = np.flatnonzero(np.diff(label[order])) + 1
        groups = [nodes for nodes in np.split(order, cuts) if len(nodes) > 1]
        groups.sort(key=lambda nodes: (len(nodes), int(nodes[0])))
        self._parts = [PartBounds(digraph.part(nodes), nodes, price[nodes]) for nodes in groups]
        self._left = list(self._parts)
        self._turn, self._best = 0, 0
        self._solution: np.ndarray | None = None
        self._pieces: tuple[int, np.ndarray | None] = 0, None
        self.check_seconds = ROW_SECONDS * (digraph.n + digraph.arcs)

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
        return 0.0 if begun else FIRST_SECONDS * (self.digraph.n + self.digraph.arcs)

    @property
    def closing(self) -> bool:
        """Whether branch and bound is at work."""
        return any(part.searching for part in self._left)

    @property
    def gaining(self) -> bool:
        """Whether it is, or the program has still to gain."""
        return self.closing

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, a step of each part by turns."""
        self._best = best
        if solution is not None and solution is not self._solution:
            self._solution = solution
            for part in self._parts:
                part.offer(solution[part.nodes].astype(bool))
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
        """What the best sets known of all parts cost."""
        if any(part.chosen is None for part in self._parts):
            return None
        return sum(part.best for part in self._parts)

    def _joined(self) -> np.ndarray:
        chosen = np.zeros(self.digraph.n, dtype=bool)
        for part in self._parts:
            chosen[part.nodes] = part.chosen
        return chosen

    def optimum(self) -> np.ndarray | None:
        """[n] bool, the best sets of all parts, where all are proved."""
        return self.pieces() if self._known() == self.value else None

    def pieces(self) -> np.ndarray | None:
        """[n] bool, the best sets of all parts, where they cost less than the caller's best."""
        cost = self._known()
        if cost is None or cost >= self._best:
            return None
        if self._pieces[0] != cost or self._pieces[1] is None:
            self._pieces = cost, self._joined()
        return self._pieces[1]

    def witness(self) -> tuple[DirectedFeedbackPart, ...]:
        """What proves the bound."""
        return tuple(part.witness() for part in self._parts)
