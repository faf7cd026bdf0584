"""Learned starts: reduce and peel by the policy's scores, or the policy's own rollout on the core."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.case.run import ParallelCase
from app.checkpoint.keeper import NOTHING_KEPT, Keeper
from app.checkpoint.pace import Pace
from app.comm.group import Group
from app.errors import NoneFound
from app.graphs.graph import Graph
from app.graphs.metric import Metric
from app.partition.rows import block_count, block_starts, partition_rows
from app.partition.whole import EVALUATED, followed_by, sharers, work_of
from app.problems.problem import Problem
from app.rl.dynamics import begin_environment, follows_compiled
from app.rl.env import Environment
from app.rl.incremental import FullScores
from app.rl.rollout import Ending, FirstState, Terms, drop_redundant, own_marks, roll_out
from app.rl.select import independent, top_nodes
from app.rl.tour_rollout import insert_tour, within_evaluations
from app.solver.budget import HURRIED
from app.sparse.rowblock import RowBlock
from app.toolbox import Peeler, Toolbox

DENSE = 0.1  # mean degree over nodes: above, neighbours of a node taken need not wait for the next evaluation
TIME_SHARE = 0.1  # of a time limit, for the policy
LARGE, LARGE_SHARE = 1 << 20, 0.3  # entries of a core, and the share there: a search makes up for less
HURRIED_SHARE = 0.03  # of a short one, for reduce and peel
MOST_EVALUATIONS = 150  # of all passes of reduce and peel but the first
FINER = 3  # a further pass takes parts this many times smaller
ROUND_SECONDS, ENTRY_SECONDS = 1e-3, 1e-7  # about what a round of reduce and peel takes, at least
ONE_BY_ONE = 4096  # nodes of a graph, up to here moved one by one
GROWING = ("field", "family", "core", "parts")  # dynamics whose sets grow, without a peeler
SET_ONE_BY_ONE, SET_PART = 1 << 14, 1 / 500  # of growing sets; beyond it this part of the candidates at once
MOVE_WORK = 1 << 28  # nodes and entries, times evaluations, of a rollout whose moves may be undone
LEAST_MOVES = 20  # evaluations of such a rollout, at least
SPARE = 0.8  # of its time, that its evaluations are planned to take
PATIENCE = 2.0  # times the seconds planned for a tour by insertion
REST_PATIENCE = 3.0  # times the seconds of a set's choices: a start that is not complete then is given up
LARGEST_PART = 0.2  # of the candidates: where time would have it take more at once the policy is not asked
LARGE_PART = 0.05  # the same for large cores, whose greedy start is as good as such parts


def rows_of(group: Group, graph: Graph, exchange: str, metric: Metric | None = None) -> RowBlock:
    """This rank's rows of a graph that every rank holds whole, with its metric if any. Ranks: all call."""
    starts = block_starts(graph.n, block_count(graph.n))
    ends = graph.indptr[np.minimum(starts, graph.n)]
    rows = partition_rows(graph.n, group.size, np.diff(starts) + np.diff(ends))
    lo, hi = rows.range_of(group.rank)
    first, last = int(graph.indptr[lo]), int(graph.indptr[hi])
    weights = None if graph.weights is None else graph.weights[first:last].astype(np.float32)
    mine = Graph(
        graph.name, graph.n, lo, hi, graph.indptr[lo : hi + 1] - first, graph.indices[first:last].copy(),
        graph.edges, weights,
        node_weights=None if graph.node_weights is None else graph.node_weights[lo:hi],
    )  # fmt: skip
    return RowBlock(group, mine, rows, exchange, metric=metric)


def rows_to_roll_out(
    group: Group, problem: Problem, graph: Graph, parallel: ParallelCase, metric: Metric | None = None
) -> RowBlock:
    """The rows that a policy's own rollout works on, split over the ranks that help. Ranks: all call."""
    entries = len(graph.indices)
    if graph.n <= SET_ONE_BY_ONE and follows_compiled(problem):
        group = followed_by(group, parallel.spatial, graph.n, entries)
    else:
        group = sharers(group, parallel.spatial, work_of(graph.n, entries), EVALUATED)
    return rows_of(group, graph, parallel.exchange, metric)


@dataclass(frozen=True)
class StartLimits:
    """What a policy may take: the least share of the candidates at once, evaluations (0: any), seconds; where
    ranks choose a way by these, the same on all.

    keeper   where it may be stopped
    together nodes moved by one evaluation, where moves may be undone; 0: not said
    tell     called now and then with the evaluations made and, in words or "", how many there will be
    """

    fraction: float
    evaluations: int
    seconds: float
    keeper: Keeper = NOTHING_KEPT
    together: int = 0
    tell: Callable[[int, str], None] = lambda evaluations, of: None


@dataclass
class Peeled:
    """The best core solution of several passes (None: no evaluations fit), and how it was made.

    told   evaluations that only told how long one takes
    """

    solution: np.ndarray | None
    evaluations: int
    fraction: float
    passes: int
    told: int


def peel(
    group: Group,
    net: Any,
    params: Any,
    toolbox: Toolbox,
    parallel: ParallelCase,
    limits: StartLimits,
    passes: int,
) -> Peeled:
    """Reduce and peel, again with smaller parts while few evaluations were needed; the best counts.

    limits    fraction of the first pass; what one evaluation costs decides by how much it is enlarged
    passes    0: as many as fit MOST_EVALUATIONS, and their share of a time limit
    Ranks     all call; identical on all
    """
    large = len(toolbox.core.indices) >= LARGE
    share = (LARGE_SHARE if large else TIME_SHARE) if limits.seconds >= HURRIED else HURRIED_SHARE
    seconds, begun = share * limits.seconds, time.perf_counter()
    fraction, spent, largest = limits.fraction, 0, 1.0
    if np.isfinite(seconds):
        largest = max(fraction, LARGE_PART if large and _unweighted(toolbox) else LARGEST_PART)
        fraction, spent = _affordable(group, net, params, toolbox, parallel, fraction, seconds, largest)
    made, least = Peeled(None, spent, fraction, 0, spent), 0
    if fraction > largest:
        return made
    while True:
        clock = StartClock(group, limits, seconds - (time.perf_counter() - begun))
        most = limits.evaluations - made.evaluations + made.told if limits.evaluations else 1 << 62
        one = _peel_once(group, net, params, toolbox.peeler(), fraction, parallel, most, clock)
        if not one.evaluations and one.cut and made.passes:  # a pass that was not begun
            return made
        made.evaluations += one.evaluations
        made.passes += 1
        value = toolbox.value(toolbox.lift(one.solution))
        better = value > least if toolbox.sense == "maximise" else value < least
        if made.solution is None or better:
            made.solution, least = one.solution, value
        fraction /= FINER
        if not one.evaluations and one.cut:  # the greedy start is that already
            return Peeled(None, made.evaluations, fraction, 0, spent)
        if one.cut or one.most <= 1 or made.passes == passes:  # of single nodes a finer pass is the same
            return made
        if not passes and not _another(group, made, one.evaluations, begun, seconds):
            return made


def _unweighted(toolbox: Toolbox) -> bool:
    """Whether the nodes of the core weigh the same."""
    return toolbox.core_weights is None


def _another(group: Group, made: Peeled, evaluations: int, begun: float, seconds: float) -> bool:
    """Whether a finer pass fits the evaluations, and the time by rank 0's clock. Ranks: all call."""
    if made.evaluations + FINER * evaluations > MOST_EVALUATIONS:
        return False
    used = time.perf_counter() - begun
    return bool(group.first_number(used * (1 + FINER) <= seconds))


@dataclass
class _Pass:
    """One pass: its core solution, evaluations, the most nodes taken at once, whether it was cut short."""

    solution: np.ndarray
    evaluations: int
    most: int
    cut: bool


def _peel_once(
    group: Group, net: Any, params: Any, peeler: Peeler, fraction: float, parallel: ParallelCase, most: int,
    clock: "StartClock",
) -> _Pass:  # fmt: skip
    """Take the best `fraction` of the candidates by the policy, reduce, and so on until nothing is left.

    most    evaluations; after these, and when the clock rings, the rest is decided greedily
    Ranks   all call; identical on all
    """
    evaluations = largest = 0
    while (rest := peeler.rest) is not None and evaluations < most and not clock.rings():
        largest = max(largest, _take_part(group, net, params, peeler, rest, fraction, parallel))
        evaluations += 1
        clock.tell(evaluations, "")
    return _Pass(peeler.solution(), evaluations, largest, rest is not None)


def _take_part(
    group: Group, net: Any, params: Any, peeler: Peeler, rest: Graph, fraction: float, parallel: ParallelCase
) -> int:
    """One evaluation on the rest, its best nodes taken; returns how many. Ranks: all call."""
    group = sharers(group, parallel.spatial, work_of(rest.n, len(rest.indices)), EVALUATED)
    block = rows_of(group, rest, parallel.exchange)
    env = begin_environment(group, block, net.problem)
    keys_own = FullScores(group, net, params, env).keys_own()
    wanted = max(1, int(fraction * env.totals.alive))
    nodes = top_nodes(group, group.device, keys_own, wanted)
    if 2 * rest.edges <= DENSE * rest.n * rest.n:
        nodes = independent(group, block, nodes)
    peeler.take(nodes)
    return len(nodes)


def _affordable(
    group: Group, net: Any, params: Any, toolbox: Toolbox, parallel: ParallelCase, fraction: float,
    seconds: float, largest: float,
) -> tuple[float, int]:  # fmt: skip
    """A fraction whose evaluations fit the seconds, by rank 0's clock, and the evaluations that told.

    Taking a fraction f of what is left each time costs at most about as much as 2/f evaluations of the whole
    core: its entries fall by a factor exp(-2 f) each time, and faster where reductions apply.
    largest   of a fraction that is of use
    Ranks     all call
    """
    core, part = toolbox.core, 2 / max(seconds, 1e-9)
    if part * (ROUND_SECONDS + ENTRY_SECONDS * (core.n + len(core.indices))) > largest:
        return 1.0, 0  # to find out exactly would already take too long
    peeler, each, made, edges = toolbox.peeler(), 0.0, 0, [core.edges] * 2
    while made < 2 and (rest := peeler.rest) is not None:  # the second one finds code and data warm
        begun = time.perf_counter()
        _take_part(group, net, params, peeler, rest, fraction, parallel)
        each, made = time.perf_counter() - begun, made + 1
        edges.append(rest.edges)
    fall = math.log(max(edges[-2], 1) / max(edges[-1], 1)) / (2 * fraction)
    wanted = part * each / max(fall, 1.0)
    return group.first_number(max(fraction, wanted)), made


def rollout(
    group: Group, net: Any, params: Any, block: RowBlock, limits: StartLimits, marks: np.ndarray | None = None
) -> tuple[np.ndarray | None, int, str]:
    """The policy's own solution, one node at a time (RL4GO Alg. 2), for TIME_SHARE of a time limit.

    Where moves may be undone, and on large graphs, several nodes at once.
    block     the rows of the core (rows_to_roll_out); rank 0's clock decides
    marks     [n] int32 of the first state, or None: a fresh one
    returns   the core solution [n] bool on every rank, the evaluations made, the setting that makes the same
              ones. Where it ends before the last choice: the best state so far or, where states are no
              solutions, what a plain greedy made of the last one; None before the first, and
              where that greedy takes too long
    Ranks     all call; identical on all
    """
    clock = StartClock(group, limits, TIME_SHARE * limits.seconds)
    last = StartClock(group, limits, REST_PATIENCE * clock.seconds)
    together = 1
    if net.problem.ordered:
        together = moves_at_once(group, net, params, block, limits)
    elif net.problem.dynamics in GROWING:
        together = nodes_at_once(group, net, params, block, limits, marks)
    setting = f"search.moves_at_once={together}"
    if not limits.together and together > max(LARGEST_PART * block.n, 1):
        return None, 0, setting

    def tell(evaluations: int, env: Environment) -> None:
        expected = evaluations + -(-env.problem.left(env.totals)[0] // together)
        limits.tell(evaluations, f"about {min(expected, limits.evaluations or expected)}")

    def late() -> bool:
        """Before each step, of the plain greedy, too, which a share of the time does not end."""
        if last.rings():
            raise NoneFound("the policy's start takes too long")
        return clock.rings()

    rule, fraction = ("single", 1.0) if together == 1 else ("fraction", together / block.n)
    try:
        terms = Terms(FirstState(marks), Ending(late, limits.evaluations, finish=True), tell)
        cover = roll_out(block.group, net, params, block, rule, fraction, terms)
    except NoneFound:
        return None, 0, setting
    if clock.rang and not cover.evaluations:  # nothing of the policy is in it
        return None, 0, setting
    if marks is None:  # else some of what a set leaves undominated is; the toolbox knows what is redundant
        cover = drop_redundant(block.group, cover)
    solution = block.group.gather_host(cover.solution_own.astype(np.uint8), block.rows.row_counts())
    return solution.astype(bool), cover.evaluations, setting


def moves_at_once(group: Group, net: Any, params: Any, block: RowBlock, limits: StartLimits) -> int:
    """Nodes that one evaluation moves, where moves may be undone.

    Such a rollout has no early end: it makes 2n moves, and each evaluation is of the whole graph. Without a
    time limit evaluations of large graphs come to MOVE_WORK, under one, by rank 0's clock, to TIME_SHARE of
    it; two of them tell what one takes.
    Ranks   all call; identical on all
    """
    n, entries = block.n, 2 * block.edges
    if limits.together or not n:
        return limits.together or 1
    if not np.isfinite(limits.seconds):
        return 1 if n <= ONE_BY_ONE else -(-2 * n // max(LEAST_MOVES, MOVE_WORK // (n + entries)))
    return _affordable_at_once(group, net, params, block, TIME_SHARE * limits.seconds, 2 * n)


def nodes_at_once(
    group: Group, net: Any, params: Any, block: RowBlock, limits: StartLimits, marks: np.ndarray | None = None
) -> int:
    """Nodes that one evaluation adds to a growing set at first; later as large a part of the candidates left.

    On large graphs with hubs a choice changes the scores of many, and one by one takes the square of the
    nodes. Small parts are as good to within a percent; under a time limit as large as it takes to fit it.
    Ranks   all call; identical on all
    """
    n = block.n
    if limits.together or n <= SET_ONE_BY_ONE:
        return limits.together or 1
    least = max(1, int(SET_PART * n))
    if not np.isfinite(limits.seconds):
        return least
    seconds = TIME_SHARE * limits.seconds
    return max(least, _affordable_at_once(group, net, params, block, seconds, n // 4, marks))


def _affordable_at_once(
    group: Group, net: Any, params: Any, block: RowBlock, seconds: float, choices: int,
    marks: np.ndarray | None = None,
) -> int:  # fmt: skip
    """Nodes at once, so that `choices` of them fit the seconds; more than there are nodes: far too few fit.

    Two evaluations tell what one takes, by rank 0's clock.
    Ranks   all call; identical on all
    """
    if seconds < LEAST_MOVES * (ROUND_SECONDS + ENTRY_SECONDS * (block.n + 2 * block.edges)):
        return block.n + 1  # to find out exactly would already take too long
    first = own_marks(block, marks)
    env, each = begin_environment(block.group, block, net.problem, mark_own=first), 0.0
    scores = FullScores(block.group, net, params, env)
    for _ in range(2):  # the second one finds code and data warm
        if env.done:
            break
        begun = time.perf_counter()
        scores.remove(np.array([scores.best()]))
        each = time.perf_counter() - begun
    return max(1, int(group.first_number(-(-choices * each // (SPARE * seconds)))))


def insertion(
    group: Group, net: Any, params: Any, block: RowBlock, limits: StartLimits, marks: None = None
) -> tuple[np.ndarray | None, int, str]:
    """A tour by learned insertion (rl/tour_rollout.py), planned to take TIME_SHARE of a time limit.

    Where it takes PATIENCE times as long it is given up.
    Ranks     all call
    """
    seconds = TIME_SHARE * limits.seconds
    clock = StartClock(group, limits, PATIENCE * seconds)
    least = within_evaluations(block.n, limits.fraction, limits.evaluations)

    def look(evaluations: int, planned: int) -> bool:
        limits.tell(evaluations, f"about {max(planned, evaluations)}")
        return clock.rings()

    order, evaluations, fraction = insert_tour(group, net, params, block, least, seconds, look)
    return order, evaluations, f"search.peel_fraction={fraction}"


ROLLOUTS = {"tour": insertion}  # by dynamics; others choose one node at a time


class StartClock:
    """Rank 0's clock, where there is a limit; each question is a look at what may stop the run, too."""

    def __init__(self, group: Group, limits: StartLimits, seconds: float) -> None:
        self.keeper, self.tell, self.seconds = limits.keeper, limits.tell, seconds
        self.begun, self.pace = time.monotonic(), Pace(group)
        self.counts, self.rang = group.rank == 0, False

    def rings(self) -> bool:
        """True when the time is up. Ranks: all call; identical on all."""
        self.keeper.at(0)
        if np.isfinite(self.seconds):
            self.rang = self.rang or bool(self.pace.agreed(self._late))
        return self.rang

    def _late(self, now: float) -> int:
        return int(self.counts and now - self.begun > self.seconds)


class CountedLooks:
    """A clock that a start asks now and then, and the number of questions: a replay has the same.

    ended   the number of the question from which on the time was up; 0: it never was
    """

    def __init__(self, clock: StartClock, most: int = 0) -> None:
        """most   questions, of which the last one ends it; 0: any number"""
        self.clock, self.most = clock, most
        self.asked = self.ended = 0

    def rings(self) -> bool:
        """True when the time is up. Ranks: all call; identical on all."""
        self.asked += 1
        if not self.ended and (self.clock.rings() or self.asked == self.most):
            self.ended = self.asked
        return bool(self.ended)
