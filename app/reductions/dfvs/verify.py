"""The check of a log of reductions, which shares nothing with those who wrote it but the words (log.py)."""

from functools import partial

import numpy as np

from app.graphs.digraph import Digraph, from_arcs
from app.reductions.dfvs.log import BYPASS, DOME, DROP, LOOP, NODES, PIE, TAKE
from app.reductions.replay import BadReduction, follow, require

ARC_SECONDS = 4e-6  # of a check, for each node and arc and word, about


class _Left:
    """Arcs out of and into nodes that are left, and the price of those taken."""

    def __init__(self, digraph: Digraph, price: np.ndarray) -> None:
        self.price, self.paid = price, 0
        self.heads: dict[int, set[int]] = {v: set() for v in range(digraph.n)}
        self.tails: dict[int, set[int]] = {v: set() for v in range(digraph.n)}
        for u, v in zip(digraph.tails().tolist(), digraph.out.tolist()):
            self.join(u, v)

    def join(self, u: int, v: int) -> None:
        self.heads[u].add(v)
        self.tails[v].add(u)

    def part(self, u: int, v: int) -> None:
        self.heads[u].remove(v)
        self.tails[v].remove(u)

    def drop(self, v: int) -> None:
        for u in self.tails[v] - {v}:
            self.heads[u].remove(v)
        for u in self.heads[v] - {v}:
            self.tails[u].remove(v)
        del self.heads[v], self.tails[v]

    def take(self, v: int) -> None:
        self.paid += int(self.price[v])
        self.drop(v)

    def arcs(self) -> list[tuple[int, int]]:
        return [(u, v) for u, heads in self.heads.items() for v in heads]


def verify_log(digraph: Digraph, price: np.ndarray, log: np.ndarray) -> tuple[Digraph, np.ndarray, int]:
    """What a log leaves: the digraph, its nodes [k] by the old numbers, ascending, and the price of those
    taken: the least of the whole is that and the least of what is left.

    Raises BadReduction where a word does not hold.
    """
    left = _Left(digraph, price)
    follow(log, NODES, left.heads.__contains__, partial(_apply, left))
    names = np.array(sorted(v for v, heads in left.heads.items() if heads or left.tails[v]), dtype=np.int64)
    if any(v in heads for v, heads in left.heads.items()):
        raise BadReduction("reductions: leave a node with an arc to itself")
    ends = np.array(left.arcs(), dtype=np.int64).reshape(-1, 2)
    tails, heads = np.searchsorted(names, ends[:, 0]), np.searchsorted(names, ends[:, 1])
    return from_arcs(len(names), tails, heads)[0], names, left.paid


def _apply(left: _Left, rule: int, nodes: list[int]) -> None:
    """Take a step where it holds."""
    if rule == PIE:
        _part_components(left)
        return
    v = nodes[-1]
    heads, tails, price = left.heads[v], left.tails[v], left.price
    if rule == DROP:
        require(not heads or not tails, "the node is on a cycle, maybe")
        left.drop(v)
        return
    if rule == LOOP:
        require(v in heads, "the node has no arc to itself")
        left.take(v)
        return
    if rule == BYPASS:
        require(v not in heads, "the node has an arc to itself")
        only = [next(iter(side)) for side in (tails, heads) if len(side) == 1]
        require(any(price[u] <= price[v] for u in only), "no other node may be taken instead")
        left.drop(v)
        for u in tails:
            for w in heads:
                left.join(u, w)
        return
    u = nodes[0]
    require(u not in left.heads[u] and v not in heads, "a node has an arc to itself")
    if rule == TAKE:
        require(u in heads and u in tails, "the nodes are no cycle of two")
        within = heads - {u} <= left.heads[u] and tails - {u} <= left.tails[u]
        require(within and price[u] <= price[v], "the second node may have to be taken")
        left.take(u)
        return
    require(rule == DOME and u in tails and u not in heads, "no arc that is not mutual")
    before = left.tails[u] - left.heads[u] <= tails
    require(before or heads - tails <= left.heads[u], "the arc may be on a cycle without a chord")
    left.part(u, v)


def _part_components(left: _Left) -> None:
    """Remove the arcs between strongly connected components of the graph without mutual arcs."""
    names = {v: i for i, v in enumerate(left.heads)}
    arcs = [(u, v) for u, v in left.arcs() if u not in left.heads[v]]
    ends = np.array([(names[u], names[v]) for u, v in arcs], dtype=np.int64).reshape(-1, 2)
    part = from_arcs(len(names), ends[:, 0], ends[:, 1])[0].components()
    for (u, v), apart in zip(arcs, (part[ends[:, 0]] != part[ends[:, 1]]).tolist()):
        if apart:
            left.part(u, v)
