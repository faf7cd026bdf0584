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
from app.search.toolbox import Peeler, Toolbox
from app.sparse.rowblock import RowBlock

DENSE = 0.1  # mean degree over nodes: above, neighbours of a node taken need not wait for the next evaluation
TIME_SHARE = 0.15  # of a time limit, for the policy
LOOK = 8  # evaluations between looks at the clock
MOST_EVALUATIONS = 150  # of all passes of reduce and peel but the first
FINER = 3  # a further pass takes parts this many times smaller
LARGEST_PART = 0.5  # of the candidates: where more would have to be taken at once the policy is not asked


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


@dataclass(frozen=True)
class Limits:
    """What a policy may take: the least share of the candidates at once, evaluations (0: any), seconds."""

    fraction: float
    evaluations: int
    seconds: float


@dataclass
class Peeled:
    """The best core solution of several passes (None: no evaluations fit), and how it was made."""

    solution: np.ndarray | None
    evaluations: int
    fraction: float
    passes: int


def peel(
    group: Group, net: Any, params: Any, toolbox: Toolbox, exchange: str, limits: Limits, passes: int
) -> Peeled:
    """Reduce and peel, again with smaller parts while few evaluations were needed; the best counts.

    limits    fraction of the first pass; what one evaluation costs decides by how much it is enlarged
    passes    0: as many as fit MOST_EVALUATIONS, and TIME_SHARE of a time limit
    Ranks     all call; identical on all
    """
    seconds, begun = TIME_SHARE * limits.seconds, time.perf_counter()
    fraction, spent = _affordable(group, net, params, toolbox, exchange, limits.fraction, seconds)
    if fraction > LARGEST_PART:
        return Peeled(None, spent, fraction, 0)
    made = Peeled(None, spent, fraction, 0)
    least = 0
    while True:
        solution, evaluations, most = _peel_once(group, net, params, toolbox.peeler(), fraction, exchange)
        made.evaluations += evaluations
        made.passes += 1
        value = toolbox.value(toolbox.lift(solution))
        better = value > least if toolbox.sense == "maximise" else value < least
        if made.solution is None or better:
            made.solution, least = solution, value
        fraction /= FINER
        if most <= 1 or made.passes == passes:  # a finer pass would be the same
            return made
        if not passes and not _another(group, made, evaluations, begun, seconds):
            return made


def _another(group: Group, made: Peeled, evaluations: int, begun: float, seconds: float) -> bool:
    """Whether a finer pass fits the evaluations, and the time by rank 0's clock. Ranks: all call."""
    if made.evaluations + FINER * evaluations > MOST_EVALUATIONS:
        return False
    used = time.perf_counter() - begun
    fits = np.array([used * (1 + FINER) <= seconds], dtype=np.int64)
    return bool(group.broadcast(fits)[0])


def _peel_once(
    group: Group, net: Any, params: Any, peeler: Peeler, fraction: float, exchange: str
) -> tuple[np.ndarray, int, int]:
    """Take the best `fraction` of the candidates by the policy, reduce, and so on until nothing is left.

    returns   the core solution, the evaluations made, the most nodes taken at once. Ranks: all call
    """
    evaluations = most = 0
    while (rest := peeler.rest) is not None:
        block = rows_of(group, rest, exchange)
        env = begin_environment(group, block, net.problem)
        keys_own = FullScores(group, net, params, env).keys_own()
        evaluations += 1
        wanted = max(1, int(fraction * env.totals.alive))
        nodes = top_nodes(group, group.device, keys_own, wanted)
        if 2 * rest.edges <= DENSE * rest.n * rest.n:
            nodes = independent(group, block, nodes)
        peeler.take(nodes)
        most = max(most, len(nodes))
    return peeler.solution(), evaluations, most


def _affordable(
    group: Group, net: Any, params: Any, toolbox: Toolbox, exchange: str, fraction: float, seconds: float
) -> tuple[float, int]:
    """A fraction whose evaluations fit the seconds, by rank 0's clock, and the evaluations that told.

    Taking a fraction f of what is left each time costs as much as about 1/f evaluations of the whole core.
    Ranks     all call
    """
    if not np.isfinite(seconds):
        return fraction, 0
    block = rows_of(group, toolbox.core, exchange)
    for _ in range(2):  # the second one finds code and data warm
        begun = time.perf_counter()
        env = begin_environment(group, block, net.problem)
        FullScores(group, net, params, env).keys_own()
        each = time.perf_counter() - begun
    return float(group.broadcast(np.array([max(fraction, each / max(seconds, 1e-9))]))[0]), 2


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
