"""A policy on what reductions of rows leave, until the rest of it is small enough for one rank.

It chooses by the case's selection rule, with scores that follow the choices, on the rows where they are.
Once a quarter of the edges is gone the rows are reduced again: leaves appear wherever nodes have gone. Where
the policy's time is up a plain greedy (Problem.plain) goes on in its place. All that counts are selections,
so that a run with as many of them leads to the same rest.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import log
from typing import Any

import numpy as np

from app.checkpoint.store import State
from app.comm.group import Group
from app.graphs.graph import Graph, index_type
from app.graphs.lists import ranges
from app.partition.rows import OCTET, RowPartition
from app.rl import compact
from app.rl.env import Environment
from app.rl.plain_rest import Greedy, play_rest
from app.rl.rollout import (
    Ending,
    FirstState,
    Rollout,
    Terms,
    count_chosen,
    drop_redundant,
    finished_rollout,
    make_scores,
    roll_out,
    select,
)
from app.rl.select import Rule, Share, single, top_fraction
from app.solver.rows.kinds import RowKind
from app.solver.rows.own import Rounds, everywhere
from app.sparse.rowblock import RowBlock

STAGE, LATE_STAGE = 0.75, 0.1  # of the edges: where so many are left, rows are reduced again; by a greedy
PIECES = 64  # of a rest, after each of which it is asked whether enough is gone, where nodes go one by one
ROUNDS, LATE_ROUNDS = 4, 1  # of these reductions, at most; once a greedy goes on
ONE_BY_ONE, PART = 1 << 14, 1 / 500  # of larger rests not one node at a time, but this part of the candidates
LARGE, SKEW = 1 << 18, 8  # nodes; times the mean degree that the largest may be
SCORE_SECONDS = 3e-7  # of a rank, for all scores of a state, for each node and entry
TRIAL_SHARE = 0.05  # of the policy's time, for each kind of these
ONE = 1e-9  # a part that stands for one node at a time
SINGLES, LEAST_FALL = 32, 1.0  # of these, that tell what time allows; of edges by a part of the candidates
GREEDY, LATE_GREEDY = 0.01, 0.02  # of the candidates, that a plain greedy takes at once; after a policy's end
# A plain greedy that takes a share f at once takes about so long, divided by f, for each node and entry; the
# same where no two nodes may have a neighbour in common; the largest share that a time limit may ask for.
GREEDY_SECONDS, APART_SECONDS, LARGEST_GREEDY = 6e-9, 2e-8, 0.2
LEAST_GREEDY = 0.05  # s, that it has in any case
LEAST_TAKEN = 0.1  # of such a share, of nodes that have neighbours in common: around hubs few have none
AFTER = 4  # times the part that time has let a policy take, at least, that a greedy after it takes at once
LARGEST_PART = 0.05  # whatever a time limit asks for: larger ones are no better than a plain greedy


@dataclass(frozen=True)
class Peeler:
    """How a policy chooses.

    exchange         as of RowBlock
    rule, fraction   of selections (app/rl/select.py)
    part             of the candidates at once, where the rule is "single" and the rest large; of a policy
                     that is not asked what the plain greedy takes, 0: as much as it always does
    most             selections by the policy, at most; 0: any number
    stop             asked before every selection: whether its time is up, the same on all ranks
    tell             called with the selections made and the environment now and then
    """

    net: Any
    params: Any
    exchange: str
    rule: str
    fraction: float
    part: float = PART
    most: int = 0
    stop: Callable[[], bool] = lambda: False
    tell: Callable[[int, Environment], None] = lambda evaluations, env: None


@dataclass
class Peeled:
    """What was chosen.

    evaluations   of the policy
    chosen        nodes, of which `greedy` by a plain greedy
    stages        between two reductions of rows, the nodes [k] int64 of each
    early         of these, before the policy's end
    asked         whether the policy is, at all
    cut_short     whether it was stopped
    part          of the candidates at once; 0: not decided yet
    begun         of the stage under way, where it goes on from an earlier part of the run; None: from its
                  beginning
    so_far        tells how far the stage under way has come. Ranks: all call
    """

    evaluations: int = 0
    chosen: int = 0
    greedy: int = 0
    stages: list[np.ndarray] = field(default_factory=list)
    early: int = 0
    asked: bool = True
    cut_short: bool = False
    part: float = 0.0
    begun: "Begun | None" = None
    so_far: "Callable[[], Begun] | None" = None


@dataclass(frozen=True)
class Begun:
    """How far a stage has come.

    selections   by the policy     nodes   [k] int64, what these chose
    size         nodes and edges at its beginning
    """

    selections: int
    nodes: np.ndarray
    size: tuple[int, int]


def kept_peel(made: Peeled, elapsed: float) -> State:
    """What was chosen as a checkpoint has it; `recalled_peel` is the way back. Ranks: all call.

    elapsed   seconds since the solve began
    """
    begun = made.begun if made.so_far is None else made.so_far()
    values = {
        "evaluations": made.evaluations, "greedy": made.greedy, "asked": made.asked,
        "cut_short": made.cut_short, "part": made.part, "elapsed": elapsed,
        "ends": np.cumsum([len(nodes) for nodes in made.stages], dtype=int).tolist(), "early": made.early,
        "selections": 0 if begun is None else begun.selections,
        "size": (0, 0) if begun is None else begun.size,
    }  # fmt: skip
    none = np.empty(0, dtype=np.int64)
    arrays = {"nodes": np.concatenate([none, *made.stages]), "begun": none if begun is None else begun.nodes}
    return State(values, arrays)


def recalled_peel(state: State) -> Peeled:
    """What a checkpoint has kept."""
    told, nodes = state.values, state.arrays["nodes"]
    stages = np.split(nodes, told["ends"])[:-1] if told["ends"] else []
    begun = Begun(told["selections"], state.arrays["begun"], tuple(told["size"]))
    return Peeled(
        evaluations=told["evaluations"], chosen=len(nodes), greedy=told["greedy"], stages=stages,
        early=told["early"], asked=told.get("asked", True), cut_short=told["cut_short"], part=told["part"],
        begun=begun if begun.selections else None,
    )  # fmt: skip


def score_seconds(group: Group, kind: RowKind) -> float:
    """About what all scores of a state of what is left take."""
    return SCORE_SECONDS * (len(kind.nodes) + 2 * kind.edges) / group.size


def affordable_part(group: Group, kind: RowKind, peeler: Peeler, nbytes: int, seconds: float) -> float:
    """A part of the candidates, so that the policy's choices take about so long, by rank 0's clock.

    One node at a time (ONE) where that fits, without a limit where no node has far more neighbours than
    others: then a choice changes the scores of few. Some selections, which count for nothing, tell what one
    takes, and how fast the graph goes: each node removes about as much as the first ones did, and a part f of
    the candidates leaves exp(-c f), so that the choices until a share s is left take (1 - s) / (c f) times as
    long as the first.

    nbytes   that work on what is left would take on one rank
    Ranks    all call; identical on all
    """
    if peeler.rule != "single" or kind.weights is not None or len(kind.nodes) <= ONE_BY_ONE:
        return PART
    seconds = group.first_number(seconds)
    if seconds <= 0 or seconds <= score_seconds(group, kind):
        return LARGEST_PART  # trials would take what is left of the whole time limit
    most = group.max_integer(int(kind.own.degrees().max(initial=0)))
    even = most * len(kind.nodes) <= SKEW * 2 * kind.edges
    if not np.isfinite(seconds):
        return ONE if even and len(kind.nodes) <= LARGE else PART
    block, own = _block(group, kind, peeler.exchange)
    gone, marks = 1 - min(kind.most_bytes / nbytes, 1.0), _own_part(block, _spread(kind, own, block))

    def tried(most: int, rule: Rule, fraction: float) -> tuple[float, float]:
        """Seconds that a selection takes, and the share of the edges that it removes; of the nodes, where
        that is less and some have most of the edges: the first selections then tell little of later ones.
        """
        fresh = None if marks is None else marks.copy()
        residual, made, took = compact.begin(group, block, peeler.net.problem, fresh), 0, 0.0
        env = residual.env
        scores, first = make_scores(group, peeler.net, peeler.params, env), kind.size(env.totals)
        begun, late = time.perf_counter(), 0
        while made < most and not env.done and not late:
            before = time.perf_counter()
            select(group, residual, scores, rule, Share(len(kind.nodes), fraction), 1)
            took += time.perf_counter() - before if made else 0.0  # the first one is cold
            made += 1
            late = int(group.first_number(before - begun > TRIAL_SHARE * seconds))
        nodes, edges = (after / max(before, 1) for before, after in zip(first, kind.size(env.totals)))
        left = edges if even else max(nodes, edges)
        return took / max(made - 1, 1), (1 - left) / max(made, 1)

    took, removed = tried(SINGLES, single, 1.0)
    alone = took * gone / max(removed, 1e-12)
    took, removed = tried(2, top_fraction, PART)
    fall = max(-log(max(1 - removed, 1e-12)) / PART, LEAST_FALL)
    wanted = took * gone / (fall * max(seconds, 1e-9))
    part = ONE if alone <= seconds else min(max(wanted, PART), LARGEST_PART)
    return group.first_number(part)


def affordable_greedy(group: Group, kind: RowKind, seconds: float) -> float:
    """The part of the candidates that a plain greedy takes at once, so that it takes about so long, by rank
    0's clock; 0, without a limit: as much as it always does. Ranks: all call; identical on all.
    """
    seconds = group.first_number(seconds)
    if not np.isfinite(seconds):
        return 0.0
    entries = len(kind.nodes) + 2 * kind.edges
    each = APART_SECONDS if kind.marks() is not None else GREEDY_SECONDS
    wanted = min(each * entries / group.size / max(seconds, LEAST_GREEDY), LARGEST_GREEDY)
    return max(wanted, greedy_share(kind))


def peel_rows(group: Group, kind: RowKind, peeler: Peeler, made: Peeled) -> Peeled:
    """Choose and reduce until what is left of `kind` fits, from what was `made` before on. Ranks: all call;
    the same on any number.
    """
    for number, nodes in enumerate(made.stages):
        kind.take(group, nodes, Rounds(most=ROUNDS if number < made.early else LATE_ROUNDS))
    while len(kind.nodes) and not kind.fits(len(kind.nodes), kind.edges):
        stage = _Stage(group, kind, peeler, made)
        rollout = stage.run()
        nodes = stage.chosen(rollout.chosen_at_own)
        made.evaluations += rollout.evaluations
        made.chosen += len(nodes)
        made.greedy += rollout.rest
        made.stages.append(nodes)
        made.begun = made.so_far = None
        late = made.cut_short or _has_ended(peeler, made)
        made.early += not late
        kind.take(group, nodes, Rounds(most=LATE_ROUNDS if late else ROUNDS))
    return made


def complete(group: Group, kind: RowKind, peeler: Peeler, made: Peeled) -> np.ndarray | None:
    """[k] bool, the policy's own solution of the rest, nothing reduced; None where it makes none of it.

    Ranks    all call; the same on any number of them. `made` counts its evaluations
    """
    if not len(kind.nodes) or kind.weights is not None or _is_late(peeler, made):
        return None
    stage = _Stage(group, kind, peeler, made, whole=True)
    rollout = stage.run()
    if not rollout.evaluations:
        return None
    made.evaluations += rollout.evaluations
    if kind.marks() is None:
        rollout = drop_redundant(group, rollout)
    own = stage.own[: stage.block.n_real]
    nodes = kind.allowed(everywhere(group, own[rollout.solution_own & (own >= 0)]))
    solution = np.zeros(len(kind.nodes), dtype=bool)
    solution[np.searchsorted(kind.nodes, nodes)] = True
    return solution


class _Stage:
    """One stretch of choices on a rest, until rows are to be reduced again. Ranks: all call its methods.

    whole        True: to the end
    block, own   the rows of what is left, and the nodes that they are (_block)
    begun        how far an earlier part of the run has come in it, or None
    size         nodes and edges at its beginning; 0 before that has been looked at
    counted      evaluations made in all
    """

    def __init__(
        self, group: Group, kind: RowKind, peeler: Peeler, made: Peeled, whole: bool = False
    ) -> None:
        self.group, self.kind, self.peeler, self.made, self.whole = group, kind, peeler, made, whole
        self.block, self.own = _block(group, kind, peeler.exchange)
        self.marks = _spread(kind, self.own, self.block)
        self.begun = None if whole else made.begun
        self.size = (0, 0) if self.begun is None else self.begun.size
        self.counted, self._share = made.evaluations, STAGE

    def run(self) -> Rollout:
        """The choices of a policy; of a plain greedy where nodes have weights, which a policy does not
        see, or where it is asked no more.
        """
        kind, peeler = self.kind, self.peeler
        late = self.begun is None and _is_late(peeler, self.made)
        asked = self.made.asked and kind.weights is None
        hasty = not asked and peeler.part > greedy_share(kind)
        self._share = LATE_STAGE if late or hasty else STAGE
        return self._by_greedy(asked) if late or kind.weights is not None else self._by_policy()

    def chosen(self, chosen_at_own: np.ndarray) -> np.ndarray:
        """[k] int64, the nodes chosen, by when they were [n_own]."""
        ours = np.flatnonzero(chosen_at_own[: self.block.n_real] >= 0)
        return everywhere(self.group, self.own[ours])

    def _by_policy(self) -> Rollout:
        """Choices of the policy, up to the end of the stage. Ranks: all call."""
        peeler, made, nodes = self.peeler, self.made, len(self.kind.nodes)
        rule, fraction, selections, before = peeler.rule, peeler.fraction, 0, None
        left = peeler.most - made.evaluations if peeler.most else 0
        if self.begun is not None:
            selections, before = self.begun.selections, self._places(self.begun.nodes)
            left = selections if made.cut_short else left
        if rule == "single" and nodes > ONE_BY_ONE and peeler.part > ONE:
            rule, fraction = "fraction", peeler.part
        ending = Ending(
            self._stop, max(left, 0), finish=True, greedy=_greedy(self.kind, AFTER * peeler.part),
            enough=self._enough, pieces=max(nodes // PIECES, 1),
        )  # fmt: skip
        first = FirstState(self.marks, before, selections, nodes)
        terms = Terms(first, ending, self._tell, self._watch)
        return roll_out(self.group, peeler.net, peeler.params, self.block, rule, fraction, terms)

    def _by_greedy(self, asked: bool) -> Rollout:
        """asked   whether a policy was, whose part of the candidates the greedy's then follows"""
        group, kind, block, peeler = self.group, self.kind, self.block, self.peeler
        problem = peeler.net.problem
        residual = compact.begin(group, block, problem, _own_part(block, self.marks))
        chosen_at_own = np.full(block.n_own, -1, dtype=np.int32)
        price_own = None
        if kind.weights is not None:
            price_own = kind.weights[np.maximum(self.own, 0)].astype(np.float32)
        greedy = _greedy(kind, (AFTER if asked else 1) * peeler.part)
        residual = play_rest(group, residual, chosen_at_own, peeler.stop, self._enough, price_own, greedy)
        residual.write_back(chosen_at_own)
        rollout = finished_rollout(group, problem, block, chosen_at_own, 0, None)
        return replace(rollout, rest=count_chosen(group, chosen_at_own >= 0))

    def _places(self, nodes: np.ndarray) -> np.ndarray:
        """[k] int64, nodes [k] as the block numbers them."""
        return everywhere(self.group, self.block.lo + np.flatnonzero(np.isin(self.own, nodes)))

    def _enough(self, env: Environment) -> bool:
        """Whether the rest fits, or so much is gone that it is to be reduced."""
        if self.whole:
            return False
        size = self.kind.size(env.totals)
        self.size = self.size if any(self.size) else size
        return size != self.size and (self.kind.fits(*size) or size[1] <= self._share * self.size[1])

    def _stop(self) -> bool:
        # As a replay tells stages apart: not before the first selection of this one.
        self.made.cut_short |= bool(self.peeler.stop()) and self.counted > self.made.evaluations
        return self.made.cut_short

    def _tell(self, evaluations: int, env: Environment) -> None:
        self.counted = self.made.evaluations + evaluations
        self.peeler.tell(self.counted, env)

    def _watch(self, so_far: Callable[[], tuple[int, np.ndarray]]) -> None:
        def told() -> Begun:
            selections, chosen_at_own = so_far()
            return Begun(selections, self.chosen(chosen_at_own), self.size)

        self.made.so_far = None if self.whole else told


def _is_late(peeler: Peeler, made: Peeled) -> bool:
    """Whether the policy is asked no more; where it is at all, not before its first selection. Ranks: all
    call.
    """
    ended = _has_ended(peeler, made)
    made.cut_short |= bool(peeler.stop()) and not ended and made.evaluations > 0
    return ended or made.cut_short


def _has_ended(peeler: Peeler, made: Peeled) -> bool:
    """Whether the policy has made all its selections."""
    return not made.asked or 0 < peeler.most <= made.evaluations


def _block(group: Group, kind: RowKind, exchange: str) -> tuple[RowBlock, np.ndarray]:
    """The rows of what is left as a graph of its own, where they are, each rank's padded; and [n_own] int64
    the nodes that they are, -1 on padding. Ranks: all call.
    """
    rows = kind.own
    counts = group.gather_integers(np.array([len(rows.nodes)]))[:, 0]
    padded = -(-counts // OCTET) * OCTET
    starts = np.concatenate([[0], np.cumsum(padded)]).astype(np.int64)
    number = np.zeros(rows.n, dtype=index_type(int(starts[-1])))
    number[kind.nodes] = ranges(starts[:-1], counts)
    lo, mine, size = int(starts[group.rank]), len(rows.nodes), int(padded[group.rank])
    indptr = np.concatenate([rows.indptr, np.full(size - mine, rows.indptr[-1])]).astype(np.int64)
    graph = Graph("what is left", int(starts[-1]), lo, lo + size, indptr, number[rows.indices], kind.edges)
    partition = RowPartition(int(starts[-1]), starts, np.arange(group.size + 1))
    own = np.full(size, -1, dtype=np.int64)
    own[:mine] = rows.nodes
    return RowBlock(group, graph, partition, exchange), own


def _spread(kind: RowKind, own: np.ndarray, block: RowBlock) -> np.ndarray | None:
    """[n of the block] int32, the marks of its first state; this rank's own alone are filled in."""
    marks = kind.marks()
    if marks is None:
        return None
    found = np.zeros(block.n, dtype=np.int32)
    real = own >= 0
    found[block.lo : block.lo + len(own)][real] = marks[np.searchsorted(kind.nodes, own[real])]
    return found


def _greedy(kind: RowKind, part: float) -> Greedy:
    """A plain greedy that takes at least such a part of the candidates at once; of what dominates, no two
    nodes that have a neighbour in common.
    """
    usual, part = greedy_share(kind), min(part, LARGEST_GREEDY)
    least = LEAST_TAKEN if part > usual else 0.0
    return Greedy(max(usual, part), apart=kind.marks() is not None, least=least)


def greedy_share(kind: RowKind) -> float:
    """What it takes in any case. After a policy, whose time is over, it is to be fast: regions are searched
    again.
    """
    return LATE_GREEDY if kind.weights is None else GREEDY


def _own_part(block: RowBlock, marks: np.ndarray | None) -> np.ndarray | None:
    """[n_own] int32, the marks [n] of the own rows."""
    return None if marks is None else marks[block.lo : block.lo + block.n_own]
