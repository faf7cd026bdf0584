"""Learned starts: reduce and peel by the policy's scores, or the policy's own rollout on the core."""

import time
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.graphs.metric import Metric
from app.partition.rows import block_count, block_starts, partition_rows
from app.rl.env import GraphEnv
from app.rl.incremental import FullScores
from app.rl.select import independent, top_nodes
from app.search.toolbox import Peeler
from app.sparse.rowblock import RowBlock

DENSE = 0.1  # mean degree over nodes: above, neighbours of a node taken need not wait for the next evaluation
TIME_SHARE = 0.15  # of a time limit, for peeling


def rows_of(group: Group, graph: Graph, exchange: str, metric: Metric | None = None) -> RowBlock:
    """This rank's rows of a graph that every rank holds whole, with its metric if any. Ranks: all call."""
    starts = block_starts(graph.n, block_count(graph.n))
    ends = graph.indptr[np.minimum(starts, graph.n)]
    rows = partition_rows(graph.n, group.size, np.diff(starts) + np.diff(ends))
    lo, hi = rows.range_of(group.rank)
    first, last = int(graph.indptr[lo]), int(graph.indptr[hi])
    weights = None if graph.weights is None else graph.weights[first:last]
    mine = Graph(
        graph.name, graph.n, lo, hi, graph.indptr[lo : hi + 1] - first, graph.indices[first:last].copy(),
        graph.edges, weights,
    )  # fmt: skip
    return RowBlock(group, mine, rows, exchange, metric=metric)


def peel(
    group: Group, net: Any, params: Any, peeler: Peeler, fraction: float, exchange: str, seconds: float
) -> tuple[np.ndarray | None, int]:
    """Take the best `fraction` of the candidates by the policy, reduce, and so on until nothing is left.

    seconds   infinite, or a limit: what one evaluation costs decides by how much larger parts are taken
    returns   the core solution (None: not even a few evaluations fit), and the evaluations made
    Ranks     all call; identical on all
    """
    evaluations, begun = 0, time.perf_counter()
    while (rest := peeler.rest) is not None:
        block = rows_of(group, rest, exchange)
        env = GraphEnv(group, block)
        keys_own = FullScores(group, net, params, env).keys_own()
        if evaluations == 0 and np.isfinite(seconds):
            fraction = _affordable(group, fraction, time.perf_counter() - begun, seconds)
            if fraction > 0.5:
                return None, 1
        wanted = max(1, int(fraction * env.totals.alive))
        nodes = top_nodes(group, group.device, keys_own, wanted)
        if 2 * rest.edges <= DENSE * rest.n * rest.n:
            nodes = independent(group, block, nodes)
        peeler.take(nodes)
        evaluations += 1
    return peeler.solution(), evaluations


def _affordable(group: Group, fraction: float, each: float, seconds: float) -> float:
    """A fraction whose evaluations fit the time, by rank 0's clock. Ranks: all call.

    Taking a fraction f of what is left each time needs about 3/f evaluations of a shrinking graph, which cost
    as much as 1/f of the first.
    """
    needed = np.array([max(fraction, each / max(TIME_SHARE * seconds, 1e-9))])
    return float(group.broadcast(needed)[0])
