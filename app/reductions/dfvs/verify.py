"""The check of a log of reductions, which shares nothing with those who wrote it but the words (log.py)."""

import numpy as np

from app.graphs.digraph import Digraph, from_arcs
from app.reductions.dfvs.log import BYPASS, DOME, DROP, LOOP, NODES, PIE, TAKE
from app.reductions.replay import BadReduction, require

ARC_SECONDS = 4e-6  # of a check, for each node and arc and word, about


class _Left:
    """Arcs out of and into nodes that are left."""

    def __init__(self, digraph: Digraph) -> None:
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

    def arcs(self) -> list[tuple[int, int]]:
        return [(u, v) for u, heads in self.heads.items() for v in heads]


def verify_log(digraph: Digraph, price: np.ndarray, log: np.ndarray) -> tuple[Digraph, np.ndarray, int]:
    """What a log leaves: the digraph, its nodes [k] by the old numbers, ascending, and the price of those
    taken: the least of the whole is that and the least of what is left.

    Raises BadReduction where a word does not hold.
    """
    left, words, at, paid = _Left(digraph), np.asarray(log).tolist(), 0, 0
    while at < len(words):
        rule = words[at]
        if not 0 <= rule < len(NODES):
            raise BadReduction(f"reductions: word {at} is {rule}, no rule")
        nodes = words[at + 1 : at + 1 + NODES[rule]]
        if (
            len(nodes) < NODES[rule]
            or len(set(nodes)) < len(nodes)
            or not all(v in left.heads for v in nodes)
        ):
            raise BadReduction(f"reductions: word {at}: no nodes that are left follow")
        try:
            taken = _apply(left, rule, nodes, price)
        except BadReduction as error:
            raise BadReduction(f"reductions: word {at}: {error}") from None
        paid += int(price[taken]) if taken >= 0 else 0
        at += 1 + NODES[rule]
    names = np.array(sorted(v for v, heads in left.heads.items() if heads or left.tails[v]), dtype=np.int64)
    if any(v in heads for v, heads in left.heads.items()):
        raise BadReduction("reductions: leave a node with an arc to itself")
    ends = np.array(left.arcs(), dtype=np.int64).reshape(-1, 2)
    tails, heads = np.searchsorted(names, ends[:, 0]), np.searchsorted(names, ends[:, 1])
    return from_arcs(len(names), tails, heads)[0], names, paid


def _apply(left: _Left, rule: int, nodes: list[int], price: np.ndarray) -> int:
    """Take a step where it holds; returns the node that it takes, -1: none."""
    if rule == PIE:
        _part_components(left)
        return -1
    v = nodes[-1]
    heads, tails = left.heads[v], left.tails[v]
    if rule == DROP:
        require(not heads or not tails, "the node is on a cycle, maybe")
        left.drop(v)
        return -1
    if rule == LOOP:
        require(v in heads, "the node has no arc to itself")
        left.drop(v)
        return v
    if rule == BYPASS:
        require(v not in heads, "the node has an arc to itself")
        only = [next(iter(side)) for side in (tails, heads) if len(side) == 1]
        require(any(price[u] <= price[v] for u in only), "no other node may be taken instead")
        left.drop(v)
        for u in tails:
            for w in heads:
                left.join(u, w)
        return -1
    u = nodes[0]
    require(u not in left.heads[u] and v not in heads, "a node has an arc to itself")
    if rule == TAKE:
        require(u in heads and u in tails, "the nodes are no cycle of two")
        within = heads - {u} <= left.heads[u] and tails - {u} <= left.tails[u]
        require(within and price[u] <= price[v], "the second node may have to be taken")
        left.drop(u)
        return u
    require(rule == DOME and u in tails and u not in heads, "no arc that is not mutual")
    before = left.tails[u] - left.heads[u] <= tails
    require(before or heads - tails <= left.heads[u], "the arc may be on a cycle without a chord")
    left.part(u, v)
    return -1


def _part_components(left: _Left) -> None:
    """Remove the arcs between strongly connected components of the graph without mutual arcs."""
    names = {v: i for i, v in enumerate(left.heads)}
    arcs = [(u, v) for u, v in left.arcs() if u not in left.heads[v]]
    ends = np.array([(names[u], names[v]) for u, v in arcs], dtype=np.int64).reshape(-1, 2)
    part = from_arcs(len(names), ends[:, 0], ends[:, 1])[0].components()
    for (u, v), apart in zip(arcs, (part[ends[:, 0]] != part[ends[:, 1]]).tolist()):
        if apart:
            left.part(u, v)
