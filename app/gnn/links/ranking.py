"""How well each node's partners are ranked: held-out edges among all nodes that it may be joined to."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.gnn.links.best import Lists, Partners, Search, best_partners, first_of
from app.gnn.links.pairs import among, own_rows
from app.gnn.links.split import LinkSplit
from app.gnn.neighbours import Neighbours
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.sparse.repartition import graph_of
from app.sparse.rowblock import RowBlock

Array = Any

WALKS = 64  # nodes whose walks are followed together
EACH = ("recall", "precision", "ndcg")  # scores of a ranking, as gnn.watch has them


@dataclass(frozen=True)
class EachScores:
    """Means over the nodes that have held-out edges; nan where there are none.

    k          partners that count, the best of every node
    recall     the share of a node's held-out edges that are among its best k
    precision  the share of its best k that are held-out edges
    ndcg       sum over the hits at place i = 1, 2, ... of 1 / log2(i + 1), by the largest that it could be
               (normalised discounted cumulative gain, Jarvelin and Kekalainen 2002)
    nodes      that have held-out edges
    """

    k: int
    recall: float
    precision: float
    ndcg: float
    nodes: int

    def named(self) -> dict[str, float]:
        """What is told in result.json."""
        return {f"{name}_{self.k}": getattr(self, name) for name in EACH}


@dataclass(frozen=True, eq=False)
class Ranking:
    """What a network's rows, or plain ones, are ranked by: held-out edges of some sets.

    Ranks     all construct
    """

    group: Group
    block: RowBlock
    split: LinkSplit
    k: int
    names: tuple[str, ...]

    def scores(self, left: Array, right: Array) -> dict[str, EachScores]:
        """By set, of the products of rows left, right [n_own, d] on the device. Ranks: all call.

        A node's candidates are all nodes that it has no learned edge with, edges of other sets among them.
        """
        if not self.names:
            return {}
        sets = {name: self.split.sets[name].joined for name in self.names}
        graph = graph_of(self.block)
        rows = self._asked(np.concatenate(list(sets.values())), graph)
        order, sides = self.split.loaded.order_all, self.split.sides
        asked = Search(rows, min(self.k, self.block.n), graph, order, sides)
        found = best_partners(self.group, self.block, left, right, asked)
        return {
            name: rank_scores(self.group, found, pairs, self.block.n, self.k) for name, pairs in sets.items()
        }

    def by_walks(self, inner: list[np.ndarray]) -> dict[str, EachScores]:
        """`scores` where every node's partners are ranked by the walks to them, one step longer than `inner`.

        inner   [n_own] float32 each, by what a walk is multiplied for each node between its ends
        Ranks   all call; a walk's steps are products with A, of WALKS nodes at a time
        """
        if not self.names:
            return {}
        sets = {name: self.split.sets[name].joined for name in self.names}
        every, graph = sorted_set(np.concatenate(list(sets.values()))), graph_of(self.block)
        if self.split.sides is not None:
            every = every[self.split.sides.first[every]]
        order, count = self.split.loaded.order_all, min(self.k, self.block.n)
        steps, near, found = Neighbours(self.group, self.block), own_rows(graph).tocsc(), []
        for lo in range(0, len(every), WALKS):
            asked = Search(every[lo : lo + WALKS], count, graph, order, self.split.sides)
            found.append(self._walked(asked, steps, inner, near))
        nodes = np.concatenate(found) if found else np.empty((0, count), dtype=np.int64)
        own = (every >= graph.lo) & (every < graph.hi)
        lists = Partners(every[own], nodes[own], np.empty((0, count), dtype=np.float32))
        n = self.block.n
        return {name: rank_scores(self.group, lists, pairs, n, self.k) for name, pairs in sets.items()}

    def _walked(
        self, asked: Search, steps: Neighbours, inner: list[np.ndarray], near: sp.csc_array
    ) -> np.ndarray:
        """[k, K] int64 on all ranks, the best partners of nodes of all ranks. Ranks: all call."""
        group, device, lo, hi = self.group, self.group.device, asked.out.lo, asked.out.hi
        X = np.zeros((self.block.n_own, len(asked.rows)), dtype=np.float32)
        own = np.flatnonzero((asked.rows >= lo) & (asked.rows < hi))
        X[asked.rows[own] - lo, own] = 1
        X = device.put(X)
        for factor in (None, *inner):
            X = X if factor is None else X * device.put(factor)[:, None]
            Y = device.zeros(X.shape)
            steps.accumulate(X, Y)
            X = Y
        known, every = near[:, asked.rows], np.arange(hi - lo)
        found = device.get(X)[: hi - lo]
        found[known.indices, np.repeat(np.arange(len(asked.rows)), np.diff(known.indptr))] = -np.inf
        found[asked.rows[own] - lo, own] = -np.inf
        columns = every if asked.sides is None else every[~asked.sides.first[lo:hi]]
        lists, S = Lists(asked), np.ascontiguousarray(found[columns].T)
        lists.take(S, np.arange(len(asked.rows)), lo + columns)
        sizes = [len(asked.rows)] * group.size
        nodes, scores = (group.gather_host(each, sizes) for each in (lists.nodes, lists.scores))
        at, place = np.nonzero(nodes >= 0)
        parts = at % len(asked.rows), nodes[at, place], scores[at, place]
        rows, place, nodes, _ = first_of(asked, *parts)
        found = np.full(lists.nodes.shape, -1, dtype=np.int64)
        found[rows, place] = nodes
        return found

    def by_degrees(self) -> dict[str, EachScores]:
        """`scores` where every node's partners are ranked by their degrees. Ranks: all call."""
        device, degrees = self.group.device, np.zeros((self.block.n_own, 1), dtype=np.float32)
        degrees[:, 0] = self.block.degrees_own()
        return self.scores(device.put(np.ones_like(degrees)), device.put(degrees))

    def _asked(self, pairs: np.ndarray, graph: Graph) -> np.ndarray:
        """[k] int64 ascending: own rows that are an end of pairs [m, 2], with sides those of the first."""
        rows, sides = sorted_set(pairs), self.split.sides
        rows = rows[(rows >= graph.lo) & (rows < graph.hi)]
        return rows if sides is None else rows[sides.first[rows]]


def rank_scores(group: Group, found: Partners, pairs: np.ndarray, n: int, k: int) -> EachScores:
    """Scores of the k best partners of own nodes by held-out edges.

    found   of all nodes that are an end of pairs, with two sides those of the first; others do not count
    pairs   [m, 2] rows, each once, of n nodes
    Ranks   all call, and get the same: a mean is one sum over the nodes in their order
    """
    rows, ends = found.rows, np.concatenate([pairs, pairs[:, ::-1]])
    keys = np.sort(ends[:, 0] * n + ends[:, 1])
    wanted = np.searchsorted(keys, (rows + 1) * n) - np.searchsorted(keys, rows * n)
    asked = np.flatnonzero(wanted)
    nodes, wanted = found.nodes[asked], wanted[asked]
    hits = among(keys, (rows[asked, None] * n + nodes).reshape(-1)).reshape(nodes.shape) & (nodes >= 0)
    gains = np.array([1 / math.log2(place + 2) for place in range(nodes.shape[1])])
    ideal = np.cumsum(gains)[np.minimum(wanted, len(gains)) - 1]
    count = hits.sum(axis=1)
    each = np.stack([count / wanted, count / k, (hits * gains).sum(axis=1) / ideal], axis=1)
    each = group.gather_host(each, group.gather_integers(np.array([len(asked)]))[:, 0].tolist())
    if not len(each):
        return EachScores(k, float("nan"), float("nan"), float("nan"), 0)
    return EachScores(k, *each.mean(axis=0).tolist(), len(each))
