"""Learned starts: reduce and peel by the policy's scores, or the policy's own rollout on the core."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.graphs.metric import Metric
from app.partition.rows import block_count, block_starts, partition_rows
from app.rl.dynamics import begin_environment
from app.rl.incremental import FullScores
from app.rl.rollout import cover_graph, drop_redundant
from app.rl.select import independent, top_nodes
from app.rl.tour_rollout import insert_tour
from app.search.toolbox import Peeler
from app.sparse.rowblock import RowBlock

DENSE = 0.1  # mean degree over nodes: above, neighbours of a node taken need not wait for the next evaluation
TIME_SHARE = 0.15  # of a time limit, for the policy
LOOK = 8  # evaluations between looks at the clock


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
) -> tuple[np.ndarray | None, int, float]:
    """Take the best `fraction` of the candidates by the policy, reduce, and so on until nothing is left.

    seconds   infinite, or a limit: what one evaluation costs decides by how much larger parts are taken
    returns   the core solution (None: not even a few evaluations fit), evaluations made, the fraction used
    Ranks     all call; identical on all
    """
    evaluations = 0
    while (rest := peeler.rest) is not None:
        block = rows_of(group, rest, exchange)
        env = begin_environment(group, block, net.problem)
        keys_own = FullScores(group, net, params, env).keys_own()
        evaluations += 1
        if evaluations == 1 and np.isfinite(seconds):
            begun = time.perf_counter()  # of an evaluation whose code and data are warm
            FullScores(group, net, params, env).keys_own()
            fraction = _affordable(group, fraction, time.perf_counter() - begun, seconds)
            evaluations += 1
            if fraction > 0.5:
                return None, evaluations, fraction
        wanted = max(1, int(fraction * env.totals.alive))
        nodes = top_nodes(group, group.device, keys_own, wanted)
        if 2 * rest.edges <= DENSE * rest.n * rest.n:
            nodes = independent(group, block, nodes)
        peeler.take(nodes)
    return peeler.solution(), evaluations, fraction


@dataclass(frozen=True)
class Limits:
    """What a rollout may take: the least share of the candidates at once, evaluations (0: any), seconds."""

    fraction: float
    evaluations: int
    seconds: float


def rollout(
    group: Group, net: Any, params: Any, block: RowBlock, limits: Limits
) -> tuple[np.ndarray | None, int, float]:
    """The policy's own solution, one node at a time (RL4GO Alg. 2), for TIME_SHARE of a time limit.

    block     the rows of the core (rows_of); rank 0's clock decides
    returns   the core solution [n] bool on every rank, the evaluations made, the fraction. Where it ends
              before the last choice: the best state so far, None where states are no solutions
    Ranks     all call; identical on all
    """
    clock, most = _Clock(group, TIME_SHARE * limits.seconds), limits.evaluations
    cover = cover_graph(group, net, params, block, "single", 1.0, stop=clock.rings, most=most)
    if cover.counted and (clock.rang or cover.evaluations == most):
        return None, cover.evaluations, limits.fraction
    cover = drop_redundant(group, cover)
    solution = group.gather_host(cover.cover_own.astype(np.uint8), block.rows.row_counts())
    return solution.astype(bool), cover.evaluations, limits.fraction


def insertion(
    group: Group, net: Any, params: Any, block: RowBlock, limits: Limits
) -> tuple[np.ndarray | None, int, float]:
    """A tour by learned insertion (rl/tour_rollout.py), for TIME_SHARE of a time limit. Ranks: all call."""
    return insert_tour(group, net, params, block, limits.fraction, TIME_SHARE * limits.seconds)


ROLLOUTS = {"tour": insertion}  # by dynamics; others choose one node at a time


class _Clock:
    """Rank 0's clock, asked at every LOOK-th call where there is a limit."""

    def __init__(self, group: Group, seconds: float) -> None:
        self.group, self.seconds, self.begun = group, seconds, time.perf_counter()
        self.calls, self.rang = 0, False

    def rings(self) -> bool:
        """True when the time is up. Ranks: all call; identical on all."""
        self.calls += 1
        if np.isfinite(self.seconds) and self.calls % LOOK == 0:
            late = np.array([time.perf_counter() - self.begun > self.seconds], dtype=np.int64)
            self.rang = bool(self.group.broadcast(late)[0])
        return self.rang


def _affordable(group: Group, fraction: float, each: float, seconds: float) -> float:
    """A fraction whose evaluations fit the time, by rank 0's clock. Ranks: all call.

    Taking a fraction f of what is left each time needs about 3/f evaluations of a shrinking graph, which cost
    as much as 1/f of the first.
    """
    needed = np.array([max(fraction, each / max(TIME_SHARE * seconds, 1e-9))])
    return float(group.broadcast(needed)[0])
