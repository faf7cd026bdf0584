"""The independent check of reductions of dominating sets: replays their steps, and proves each.

It shares with what reduces only the meaning of a step (reducer.py), and searches nothing: it asks of each
step whether the nodes it names satisfy what its rule demands of the closed neighbourhoods that are left.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.errors import LockstepError
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.graphs.lists import ranges
from app.reductions.domination.reducer import CHOSEN, COLUMNS, ROWS, Step

CHECK_SECONDS = 4e-7  # about, for each node and entry
MOST_STEPS = 1000  # each is a look at all entries; reducer.py makes at most 3 PASSES


class BadStep(LockstepError):
    """A step is no reduction; the message names the step and what is wrong."""


class Proved(NamedTuple):
    """Some optimal set has the nodes `chosen` and, to dominate those `needed`, some `allowed`: [n] bool."""

    chosen: np.ndarray
    needed: np.ndarray
    allowed: np.ndarray


def verify_steps(
    graph: Graph, price: np.ndarray, inside: np.ndarray, outside: np.ndarray, steps: Sequence[Step],
    needed: np.ndarray | None = None,
) -> Proved:  # fmt: skip
    """Replay the steps on a whole graph; raises BadStep at the first that is not proved.

    price   [n] int64, above 0     inside, outside   [n] bool, fixed nodes
    needed  [n] bool, nodes that have to be dominated; None: all
    """
    _require(len(steps) <= MOST_STEPS, f"{graph.name}: {len(steps)} steps, each of them about many nodes")
    replay = _Replay(graph, price, inside, outside, needed)
    for number, step in enumerate(steps):
        try:
            _require(step.rule in RULES and 0 < len(step.nodes) == len(step.by), "no step")
            both = np.concatenate([step.nodes, step.by])
            _require(bool(((both >= 0) & (both < graph.n)).all()), "an unknown node")
            _require(len(sorted_set(step.nodes)) == len(step.nodes), "a node twice")
            RULES[step.rule](replay, step.nodes, step.by)
        except BadStep as error:
            raise BadStep(f"{graph.name}: step {number}: {error}") from None
        replay.leave_out()
    return Proved(replay.chosen, replay.needed, replay.allowed)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BadStep(otherwise)


class _Replay:
    """Entries (u, v): u has to be dominated, and v, which is u or next to it, may be chosen for that."""

    def __init__(
        self, graph: Graph, price: np.ndarray, inside: np.ndarray, outside: np.ndarray,
        needed: np.ndarray | None,
    ) -> None:  # fmt: skip
        self.n, self.price, self.chosen = graph.n, price, inside.copy()
        nodes = np.arange(graph.n)
        self.u = np.concatenate([nodes, graph.row_of()])
        self.v = np.concatenate([nodes, graph.indices.astype(np.int64)])
        self.needed = np.ones(graph.n, dtype=bool) if needed is None else needed.copy()
        self.needed[self.u[inside[self.v]]] = False
        self.allowed = ~(inside | outside)
        self.leave_out()

    def leave_out(self) -> None:
        """Entries of nodes that are dominated or out of question, and nodes that dominate nothing more."""
        stays = self.needed[self.u] & self.allowed[self.v]
        self.u, self.v = self.u[stays], self.v[stays]
        self.allowed &= np.bincount(self.v, minlength=self.n) > 0

    def drop_rows(self, nodes: np.ndarray, by: np.ndarray) -> None:
        """What dominates `by` dominates `nodes`."""
        _require(bool((self.needed[nodes] & self.needed[by]).all()), "a node is dominated already")
        size = np.bincount(self.u, minlength=self.n)
        first = (size[by] < size[nodes]) | ((size[by] == size[nodes]) & (by < nodes))
        _require(bool(first.all()), "two nodes may speak for each other")
        self._require_holds(self.u, self.v, by, nodes)
        self.needed[nodes] = False

    def drop_columns(self, nodes: np.ndarray, by: np.ndarray) -> None:
        """`by` dominate what `nodes` do, for no more."""
        _require(bool((self.allowed[nodes] & self.allowed[by]).all()), "a node is out of question already")
        size, price = np.bincount(self.v, minlength=self.n), self.price
        _require(bool((price[by] <= price[nodes]).all()), "a node is dearer than the one it stands for")
        better = (size[by] > size[nodes]) | (price[by] < price[nodes]) | (by < nodes)
        _require(bool(better.all()), "two nodes may stand for each other")
        self._require_holds(self.v, self.u, nodes, by)
        self.allowed[nodes] = False

    def choose(self, nodes: np.ndarray, by: np.ndarray) -> None:
        """Nobody else dominates `by`."""
        size = np.bincount(self.u, minlength=self.n)
        _require(bool((self.needed[by] & (size[by] == 1)).all()), "a node has more than one to dominate it")
        only = np.full(self.n, -1, dtype=np.int64)
        only[self.u] = self.v
        _require(bool((only[by] == nodes).all()), "another node is the only one")
        self.chosen[nodes] = True
        self.needed[self.u[self.chosen[self.v]]] = False
        self.allowed[nodes] = False

    def _require_holds(self, a: np.ndarray, b: np.ndarray, small: np.ndarray, large: np.ndarray) -> None:
        """Of entries (a, b): all that small[i] has, large[i] has too."""
        asked = np.zeros(self.n, dtype=bool)
        asked[small] = asked[large] = True
        asked = asked[a]
        keys = np.sort(a[asked] * self.n + b[asked])
        ends = np.searchsorted(keys, np.stack([small, small + 1]) * self.n)
        count = ends[1] - ends[0]
        place = ranges(ends[0], count)
        wanted = np.repeat(large, count) * self.n + keys[place] % self.n
        found = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        _require(bool((keys[found] == wanted).all()), "a neighbourhood does not hold another")


RULES = {ROWS: _Replay.drop_rows, COLUMNS: _Replay.drop_columns, CHOSEN: _Replay.choose}
