"""CommunityKernel: what is left of a graph once nodes are joined that are together in all best communities.

Communities of the best value are connected by pairs of positive worth (else the parts of one are worth more
apart). So a node that no such pair holds is alone, and a node goes with a neighbour where the pair is worth
more than the node can lose by it: all its other pairs of positive worth, and all those of negative worth with
nodes of what positive pairs connect. Under modularity nodes with one neighbour do, as a rule.

Source   leaves: Arenas et al., Size reduction of complex networks preserving modularity, New Journal of
Physics
         2007; the condition on one pair: Lange, Karrenbauer and Andres, Partial optimality and fast lower
         bounds for weighted correlation clustering, ICML 2018, here with pairs that no edge joins
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.graphs.contracted import numbered
from app.graphs.quality import Quality

FEWEST = 1000  # a round that joins less than one in so many nodes is the last
ROUNDS = 100


class CommunityKernel:
    """The core of a graph's communities; a function of what pairs are worth.

    quality  of the graph
    core     of groups of nodes that are not decided
    group    [n] int64, the core's node that a node is in, -1: it is decided
    alone    [n] int64, of decided nodes the community that they are
    own      what pairs are worth that are joined in a group, or decided
    rounds   [k, 2] int64 each: nodes that are joined to another one, as the rounds before number them
    steps    rounds that were looked for
    """

    def __init__(self, quality: Quality, compiled: bool = True) -> None:
        self.quality, self.compiled = quality, compiled
        self.core, self.group, self.own = quality, np.arange(quality.n), 0
        self.alone = np.full(quality.n, -1, dtype=np.int64)
        self.rounds: list[np.ndarray] = []
        self.steps = 0
        self.joined_core = quality  # after the rounds; nodes: those of them that are left in the core
        self.nodes = np.arange(quality.n)

    def reduce(self, look: Callable[[], Any], most: int = 0) -> None:
        """All of it, or `most` rounds.

        look   called every now and then, after the same work on all ranks; where it is true no round follows
        """
        core, group = self.quality, self.group
        for self.steps in range(1, min(most or ROUNDS, ROUNDS) + 1):
            pairs = sure_pairs(core, self.compiled)
            if not len(pairs):
                break
            matrix = sp.csr_array((np.ones(len(pairs), np.int8), pairs.T), shape=(core.n, core.n))
            joined = numbered(connected_components(matrix, directed=False)[1])
            self.rounds.append(pairs)
            self.own += core.value(joined)
            group = joined[group].astype(np.int64)
            before, core = core.n, core.contracted(joined, self.compiled)
            if FEWEST * (before - core.n) < before or look():
                break
        kept = np.zeros(core.n, dtype=bool)
        kept[core.row_of()[core.worths() > 0]] = True
        self.joined_core, self.nodes = core, np.flatnonzero(kept)
        place = np.full(core.n, -1, dtype=np.int64)
        place[self.nodes] = np.arange(len(self.nodes))
        self.core = core.induced(self.nodes, np.full(core.n, -1, dtype=np.int32))
        self.alone = np.where(kept[group], -1, group)
        self.group = place[group]

    def lift(self, label: np.ndarray) -> np.ndarray:
        """[n] int64, the communities of the graph that those of the core [k] stand for."""
        first = int(label.max(initial=-1)) + 1
        return np.where(self.group < 0, first + self.alone, np.append(label, 0)[self.group])

    def restrict(self, label: np.ndarray) -> np.ndarray:
        """[k] int64, communities of the core that follow those of the graph: of the first node of each
        group.
        """
        found = np.zeros(self.core.n, dtype=np.int64)
        nodes = np.flatnonzero(self.group >= 0)[::-1]
        found[self.group[nodes]] = label[nodes]  # of equal places the last one counts
        return found


def sure_pairs(quality: Quality, compiled: bool = True) -> np.ndarray:
    """[k, 2] int64, nodes that are with the other one in all best communities."""
    n, rows, worths = quality.n, quality.row_of(), quality.worths()
    if not len(worths):
        return np.zeros((0, 2), dtype=np.int64)
    part = quality.parts(compiled)
    inside = part[rows] == part[quality.indices]
    rows, near, worths = rows[inside], quality.indices[inside].astype(np.int64), worths[inside]
    others = _sums(quality.size, part, int(part.max()) + 1)[part] - quality.size
    others -= _sums(quality.size[near], rows, n)
    losses = quality.far * quality.size * others + _sums(np.abs(worths), rows, n)
    sure = np.flatnonzero(2 * worths > losses[rows])  # at most one of a node: more than half of it all
    return np.stack([rows[sure], near[sure]], axis=1)


def _sums(values: np.ndarray, group: np.ndarray, count: int) -> np.ndarray:
    """[count] int64, exact sums of groups."""
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, group, values)
    return found
