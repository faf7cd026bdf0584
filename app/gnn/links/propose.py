"""The likeliest of all pairs of nodes that no edge joins, and the best partners of each node."""

from typing import Any

import numpy as np

from app.gnn.links.best import Partners, Search, best_partners, left_out
from app.gnn.links.pairs import among, find_columns
from app.gnn.links.predictor import LinkPredictor
from app.gnn.links.split import LinkSplit
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.sparse.repartition import graph_of

Array = Any
ROWS = 256  # own rows whose scores with those of another rank are made at a time
COLUMNS = 1 << 13


def propose(predictor: LinkPredictor, count: int) -> np.ndarray:
    """[count, 2] rows u < v, those with the largest scores first, of equal ones the first pair.

    Edges that are held out are not among them; fewer than count where there are no more pairs.
    Ranks   all call, and get the same; work n^2 d / 2 multiplications, shared out by rows
    """
    return predictor.with_rows(lambda Z: _proposed(predictor, Z, count))


def propose_each(predictor: LinkPredictor, count: int, rows: np.ndarray | None) -> Partners:
    """The best partners of some nodes, of all ranks, the nodes in the order of the file.

    rows    global numbers on all ranks; None: all nodes, with two sides those of the first
    returns lists as Partners has them, of the nodes of all ranks, on all ranks: no partners are those that a
            held-out edge joins; of equal scores the partner comes first that does in the file
    Ranks   all call, and get the same; see `best_partners`
    """
    group, block, split = predictor.group, predictor.block, predictor.split
    order, sides = split.loaded.order_all, split.sides
    if rows is None:
        rows = np.arange(block.n) if sides is None else sides.rows[0]
    rows = sorted_set(rows)
    graph = left_out(graph_of(block), split.held)
    own = rows[(rows >= graph.lo) & (rows < graph.hi)]
    asked = Search(own, min(count, block.n), graph, order, sides)
    found = predictor.with_rows(lambda Z: best_partners(group, block, Z, Z, asked))
    sizes = group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    nodes, scores = (group.gather_host(each, sizes) for each in (found.nodes, found.scores))
    turn = np.arange(len(rows)) if order is None else np.argsort(order[rows])
    return Partners(rows[turn], nodes[turn], scores[turn])


def _proposed(predictor: LinkPredictor, Z: Array, count: int) -> np.ndarray:
    """See `propose`. Ranks: all call."""
    group, block = predictor.group, predictor.block
    best = _Best(predictor.split, graph_of(block), count)
    for rank, X in group.stage_rows(Z, block.own_counts):
        first, last = block.rows.range_of(rank)
        if last > block.lo:  # a pair is looked at by the owner of its first node
            _look(predictor, best, Z[: block.n_real], X[: last - first], first)
    sizes = group.gather_integers(np.array([len(best.scores)]))[:, 0].tolist()
    scores, keys = (group.gather_host(each, sizes) for each in (best.scores, best.keys))
    order = np.lexsort((keys, -scores))[:count]
    return np.stack(np.divmod(keys[order], block.n), axis=1)


def _look(predictor: LinkPredictor, best: "_Best", Z: Array, X: Array, first: int) -> None:
    """Pairs of own nodes, rows Z, with the nodes from `first` on, rows X, that come after them."""
    device, xp, lo = predictor.device, predictor.device.xp, predictor.block.lo
    for c in range(0, X.shape[0], COLUMNS):
        W = xp.ascontiguousarray(X[c : c + COLUMNS].T)
        end = first + c + W.shape[1]
        for r in range(0, min(Z.shape[0], end - lo), ROWS):
            own = Z[r : r + ROWS]
            S = device.get(device.chains(own, W))
            u, v = lo + r + np.arange(own.shape[0]), first + c + np.arange(W.shape[1])
            best.take(S, u, v)


class _Best:
    """The best pairs so far of this rank: scores and keys u n + v."""

    def __init__(self, split: LinkSplit, graph: Graph, count: int) -> None:
        self.graph, self.count, self.n, held, self.sides = graph, count, graph.n, split.held, split.sides
        self.held = sorted_set(held[:, 0] * self.n + held[:, 1])
        self.scores, self.keys = np.empty(0, dtype=np.float32), np.empty(0, dtype=np.int64)

    def take(self, S: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
        """Look at the scores S [k, m] of the pairs of u [k] and v [m]."""
        wanted = v[None] > u[:, None]
        if self.sides is not None:
            wanted &= self.sides.first[v][None] != self.sides.first[u][:, None]
        if len(self.scores) == self.count:
            wanted &= self.scores.min() <= S
        row, column = np.nonzero(wanted)
        first, second = u[row], v[column]
        free = ~(find_columns(self.graph, first, second) | among(self.held, first * self.n + second))
        scores = np.concatenate([self.scores, S[row, column][free]])
        keys = np.concatenate([self.keys, (first * self.n + second)[free]])
        order = np.lexsort((keys, -scores))[: self.count]
        self.scores, self.keys = scores[order], keys[order]
