"""A policy on what reductions of rows leave, until the rest of it is small enough for one rank.

It chooses by the case's selection rule, with scores that follow the choices, on the rows where they are.
Once a quarter of the edges is gone the rows are reduced again: leaves appear wherever nodes have gone. Where
the policy's time is up a plain greedy (Problem.plain) goes on in its place. All that counts are selections,
so that a run with as many of them leads to the same rest.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph, index_type
from app.partition.rows import OCTET, RowPartition
from app.rl import compact
from app.rl.env import Environment
from app.rl.plain_rest import play_rest
from app.rl.rollout import Rollout, count_chosen, finished_rollout, roll_out
from app.solver.rows.kinds import RowKind
from app.solver.rows.own import Rounds, everywhere
from app.sparse.rowblock import RowBlock

STAGE = 0.75  # of the edges: where so many are left, rows are reduced again
ROUNDS = 4  # of these reductions, at most
ONE_BY_ONE, PART = 1 << 14, 1 / 100  # of larger rests not one node at a time, but this part of the candidates


@dataclass(frozen=True)
class Peeler:
    """How a policy chooses.

    exchange         as of RowBlock
    rule, fraction   of selections (app/rl/select.py)
    most             selections by the policy, at most; 0: any number
    stop             asked before every selection: whether its time is up, the same on all ranks
    tell             called with the selections made and the environment now and then
    """

    net: Any
    params: Any
    exchange: str
    rule: str
    fraction: float
    most: int = 0
    stop: Callable[[], bool] = lambda: False
    tell: Callable[[int, Environment], None] = lambda evaluations, env: None


@dataclass
class Peeled:
    """What was chosen.

    evaluations   of the policy
    chosen        nodes, of which `greedy` by a plain greedy
    stages        between two reductions of rows
    cut_short     whether the policy was stopped
    """

    evaluations: int = 0
    chosen: int = 0
    greedy: int = 0
    stages: int = 0
    cut_short: bool = False


def peel_rows(group: Group, kind: RowKind, peeler: Peeler) -> Peeled:
    """Choose and reduce until what is left of `kind` fits. Ranks: all call; the same on any number of them."""
    made = Peeled()
    while len(kind.nodes) and not kind.fits(len(kind.nodes), kind.edges):
        block, own = _block(group, kind, peeler.exchange)
        rollout = _stage(group, kind, peeler, block, own, made)
        ours = np.flatnonzero(rollout.chosen_at_own[: block.n_real] >= 0)
        nodes = everywhere(group, own[ours])
        made.evaluations += rollout.evaluations
        made.chosen += len(nodes)
        made.greedy += rollout.rest
        made.stages += 1
        kind.take(group, nodes, Rounds(most=ROUNDS))
    return made


def _stage(
    group: Group, kind: RowKind, peeler: Peeler, block: RowBlock, own: np.ndarray, made: Peeled
) -> Rollout:
    """One stretch of choices on what is left. Ranks: all call."""
    marks, first = _spread(kind, own, block), 0

    def enough(env: Environment) -> bool:
        nonlocal first
        nodes, edges = kind.size(env.totals)
        first = first or edges
        return env.steps > 0 and (kind.fits(nodes, edges) or edges <= STAGE * first)

    def stop() -> bool:
        ended = peeler.most > 0 and made.evaluations >= peeler.most
        late = bool(peeler.stop())
        made.cut_short |= late and not ended and begun()
        return ended or made.cut_short

    counted = made.evaluations

    def begun() -> bool:
        return counted > 0

    def tell(evaluations: int, env: Environment) -> None:
        nonlocal counted
        counted = made.evaluations + evaluations
        peeler.tell(counted, env)

    if kind.weights is not None:
        return _priced(group, kind, peeler, block, own, marks, enough)
    left = peeler.most - made.evaluations if peeler.most else 0
    rule, fraction = peeler.rule, peeler.fraction
    if rule == "single" and block.n > ONE_BY_ONE:
        rule, fraction = "fraction", PART
    return roll_out(
        group, peeler.net, peeler.params, block, rule, fraction, tell, stop=stop, most=max(left, 0),
        finish=True, marks=marks, enough=enough,
    )  # fmt: skip


def _priced(
    group: Group, kind: RowKind, peeler: Peeler, block: RowBlock, own: np.ndarray, marks: np.ndarray | None,
    enough: Callable[[Environment], bool],
) -> Rollout:  # fmt: skip
    """The same by the plain greedy alone, which goes by weights: a policy does not see them. Ranks: all call."""
    mark_own = None if marks is None else marks[block.lo : block.lo + block.n_own]
    residual = compact.begin(group, block, peeler.net.problem, mark_own)
    chosen_at_own = np.full(block.n_own, -1, dtype=np.int32)
    price_own = kind.weights[np.maximum(own, 0)].astype(np.float32)
    residual = play_rest(group, residual, chosen_at_own, peeler.stop, enough, price_own)
    residual.write_back(chosen_at_own)
    made = finished_rollout(group, peeler.net.problem, block, chosen_at_own, 0, None)
    return replace(made, rest=count_chosen(group, chosen_at_own >= 0))


def _block(group: Group, kind: RowKind, exchange: str) -> tuple[RowBlock, np.ndarray]:
    """The rows of what is left as a graph of its own, where they are, each rank's padded; and [n_own] int64
    the nodes that they are, -1 on padding. Ranks: all call.
    """
    rows, k = kind.own, len(kind.nodes)
    counts = group.gather_integers(np.array([len(rows.nodes)]))[:, 0]
    padded = -(-counts // OCTET) * OCTET
    starts = np.concatenate([[0], np.cumsum(padded)]).astype(np.int64)
    number = np.zeros(rows.n, dtype=index_type(int(starts[-1])))
    number[kind.nodes] = np.arange(k) + np.repeat(starts[:-1] - (np.cumsum(counts) - counts), counts)
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
