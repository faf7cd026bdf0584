"""The check of a log of reductions, which shares nothing with those who wrote it but the words (log.py)."""

from functools import partial

import numpy as np

from app.graphs.keys import sorted_set
from app.graphs.ordering import NetArcs
from app.reductions.ordering.log import BEFORE, BEHIND, COMPONENTS, NODES
from app.reductions.replay import follow, require

ARC_SECONDS = 8e-6  # of a check, for each node and arc and word, about


class _Left:
    """Net arcs of what is left: weight[u, v] by ends, and who the ends are.

    paid   what every order pays beside
    """

    def __init__(self, net: NetArcs) -> None:
        self.heads: list[set[int] | None] = [set() for _ in range(net.n)]
        self.tails: list[set[int]] = [set() for _ in range(net.n)]
        self.weight: dict[tuple[int, int], int] = {}
        self.paid = 0
        for u, v, w in zip(net.tails.tolist(), net.heads.tolist(), net.weights.tolist()):
            self.set(u, v, w)

    def set(self, u: int, v: int, weight: int) -> None:
        """The arc u -> v weighs that from now on; 0: it goes."""
        self.weight.pop((u, v), None)
        self.heads[u].discard(v)
        self.tails[v].discard(u)
        if weight:
            self.weight[u, v] = weight
            self.heads[u].add(v)
            self.tails[v].add(u)

    def add(self, u: int, v: int, weight: int) -> None:
        """One more arc: of two opposite ones the lighter is paid."""
        net = weight + self.weight.get((u, v), 0) - self.weight.get((v, u), 0)
        self.paid += min(weight, self.weight.get((v, u), 0))
        self.set(u, v, max(net, 0))
        self.set(v, u, max(-net, 0))


def verify_log(net: NetArcs, log: np.ndarray) -> tuple[NetArcs, np.ndarray, int]:
    """What a log leaves: net arcs, their nodes [k] by the old numbers, ascending, and what is paid beside:
    the least of the whole is that and the least of what is left.

    Raises BadReduction where a word does not hold.
    """
    left = _Left(net)
    follow(log, NODES, lambda v: 0 <= v < net.n and left.heads[v] is not None, partial(_apply, left))
    arcs = sorted((u, v, w) for (u, v), w in left.weight.items())
    tails, heads, weights = np.array(arcs, dtype=np.int64).reshape(-1, 3).T
    names = sorted_set(np.concatenate([tails, heads]))
    ends = np.searchsorted(names, tails), np.searchsorted(names, heads)
    return NetArcs(len(names), *ends, weights.copy()), names, left.paid


def _apply(left: _Left, rule: int, nodes: list[int]) -> None:
    """Take a step where it holds."""
    if rule == COMPONENTS:
        _part_components(left)
        return
    v, u = nodes
    require(rule in (BEHIND, BEFORE), "no rule")
    one, others = (left.tails, left.heads) if rule == BEHIND else (left.heads, left.tails)
    require(one[v] == {u}, "the node has another arc on that side, or none from there")
    arc = (u, v) if rule == BEHIND else (v, u)
    rest = [((v, x) if rule == BEHIND else (x, v), x) for x in sorted(others[v])]
    weights = [left.weight[pair] for pair, _ in rest]
    require(left.weight[arc] >= sum(weights), "the arcs of the other side weigh more")
    left.set(*arc, 0)
    for (pair, x), weight in zip(rest, weights):
        left.set(*pair, 0)
        left.add(*((u, x) if rule == BEHIND else (x, u)), weight)
    left.heads[v] = None


def _part_components(left: _Left) -> None:
    """Remove the arcs between strongly connected components."""
    import networkx as nx  # not needed by those who check nothing

    graph, label = nx.DiGraph(list(left.weight)), {}
    for number, part in enumerate(nx.strongly_connected_components(graph)):
        label.update(dict.fromkeys(part, number))
    for u, v in list(left.weight):
        if label[u] != label[v]:
            left.set(u, v, 0)
