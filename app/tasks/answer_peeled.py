"""A graph of which reductions leave more than one rank may work on: a policy chooses until the rest fits.

The rest then is answered by the whole pipeline but for its bounds, which would be those of the rest: what was
chosen proves nothing. A bound of the graph is found before that, on the rows of what reductions leave. The
answer of the graph is made better on its rows once more (solver/rows/exchanges.py).
"""

import time
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from app.checkpoint.checkpoints import Keeper
from app.checkpoint.store import State
from app.errors import Ended
from app.partition.load import Loaded
from app.problems.problem import Problem
from app.proofs.archive import to_bytes
from app.rl.env import Environment
from app.solver.learned import StartClock, StartLimits
from app.solver.pipeline import Answer, Pipeline
from app.solver.progress import Event
from app.solver.rows.kinds import RowBound
from app.solver.rows.own import Rounds
from app.solver.rows.peel import Peeled, Peeler, affordable_part, complete, peel_rows
from app.tasks.answer import Solved
from app.tasks.answer_rest import Rest, replay_of, toolbox_of, written_answer
from app.tasks.context import Context
from app.tasks.policy import Policy

POLICY, GIVEN = "policy", "given"  # the source of an answer that is the policy's; as the pipeline calls it
ON_ROWS = "exchanges on rows"  # of one that was made better after the search
PEEL_SHARE, BOUND_SHARE, EXCHANGE_SHARE = 0.5, 0.1, 0.1  # of what is left of a time limit
PLANNED = 0.25  # of the time of the policy, that its choices are planned to take; then it completes the rest


@dataclass(frozen=True, eq=False)
class _Work:
    """What the parts of an answer share."""

    context: Context
    problem: Problem
    loaded: Loaded
    rest: Rest

    def clock(self, share: float, keep: float = 0.0) -> StartClock:
        """Rings where a share of what is left of a time limit is over, but for `keep` seconds of it."""
        limit = self.context.case.search.seconds
        left = limit - (time.perf_counter() - self.rest.begun) - keep if limit else float("inf")
        seconds = max(share * left, 0.0)
        return StartClock(self.context.group, StartLimits(1.0, 0, seconds, self.context.keeper), seconds)


def answer_peeled(
    context: Context, pipeline: Pipeline, policy: Policy, problem: Problem, loaded: Loaded, rest: Rest,
    keeper: Keeper,
) -> Solved:  # fmt: skip
    """A bound, choices of the policy until the rest fits, the pipeline on it, exchanges on the rows.

    keeper  remembers how much the policy chose: see reduce_first
    Ranks   all call; identical on all
    """
    work = _Work(context, problem, loaded, rest)
    bound = _bound(work) if context.case.search.bounds else None
    peeled, given, replay = _peel(work, policy, keeper)
    ours = given is not None and keeper.recall("search") is None  # else it begins with an earlier part's best
    with context.log.phase("reduce"):
        toolbox = toolbox_of(context, problem, rest, rest.kind.rest(context.group, loaded.graph.name))
    case = structs.replace(context.case, search=structs.replace(context.case.search, bounds=False))
    searching = Pipeline(context.group, context.log, case, pipeline.net, pipeline.params, pipeline.keeper)

    def solved(found: Answer, stopped: bool = False) -> Solved:
        keys = replay_of(found.replay, rest)
        source = POLICY if not len(rest.kind.nodes) or (ours and found.source == GIVEN) else found.source
        found = replace(found, source=source, replay=[*keys, *replay] if keys else [])
        return _solved(work, found, bound, peeled, stopped)

    try:
        spent = time.perf_counter() - rest.begun
        kept = rest.seconds + EXCHANGE_SHARE * max(context.case.search.seconds - spent, 0.0)
        answer = searching.answer(toolbox, loaded.graph.name, given, spent, kept)
    except Ended as ended:
        if ended.so_far is not None:
            ended.so_far = solved(ended.so_far, stopped=True)
        raise
    return solved(answer)


def _bound(work: _Work) -> RowBound | None:
    """A bound of the graph by the rows of what reductions leave, checked. Ranks: all call."""
    context = work.context
    with context.log.phase("bounds"):
        rounds = Rounds(work.clock(BOUND_SHARE, work.rest.seconds).rings)
        bound = work.rest.kind.bound(context.group, rounds)
    if bound is not None:
        with context.log.phase("check"):
            bound.check(context.group, work.loaded.graph)
    return bound


def _peel(work: _Work, policy: Policy, keeper: Keeper) -> tuple[Peeled, np.ndarray | None, list[str]]:
    """Choose until the rest fits; the policy's own solution of it; the keys that lead to both. Ranks: all
    call.
    """
    group, log, kind, search = work.context.group, work.context.log, work.rest.kind, work.context.case.search
    known, clock = keeper.recall("peel"), work.clock(PEEL_SHARE, work.rest.seconds)
    if kind.weights is not None:
        log.info("%s: the policy is not asked: it does not see node weights", work.loaded.graph.name)
    with log.phase("policy"):
        peeler = _peeler(work, policy, known, clock)
        if not peeler.part:
            part = affordable_part(group, kind, peeler, work.rest.nbytes, PLANNED * clock.seconds)
            peeler = replace(peeler, part=part)
        peeled = peel_rows(group, kind, peeler)
        given = complete(group, kind, peeler, peeled)
    limited = peeled.cut_short or (known is not None and known.values["cut_short"])
    values = {"evaluations": peeled.evaluations, "cut_short": limited, "part": peeler.part}
    keeper.keep("peel", State(values, {}))
    log.info(
        "%s: the policy chose %d nodes, a plain greedy %d, by %d evaluations; %d nodes, %d edges are left",
        work.loaded.graph.name, peeled.chosen - peeled.greedy, peeled.greedy, peeled.evaluations,
        len(kind.nodes), kind.edges,
    )  # fmt: skip
    replay = []
    if limited or search.row_evaluations:
        replay.append(f"search.row_evaluations={peeled.evaluations}")
    if peeler.rule == "single" and kind.weights is None:
        replay.append(f"search.row_fraction={peeler.part}")
    return peeled, given, replay


def _peeler(work: _Work, policy: Policy, known: State | None, clock: StartClock) -> Peeler:
    """How the policy chooses; as often as a replay says, or `known` of an earlier part of the run, else as
    long as the clock allows.
    """
    context, case, kind, name = work.context, work.context.case, work.rest.kind, work.loaded.graph.name
    search, select, made = case.search, case.select, 0
    counted = known is not None or search.row_evaluations > 0

    def stop() -> bool:
        context.keeper.at(made)
        return not counted and clock.rings()

    def tell(evaluations: int, env: Environment) -> None:
        nonlocal made
        made = evaluations
        nodes, edges = kind.size(env.totals)
        context.log.record(phase="peel", name=name, step=evaluations, left=edges)
        context.log.progress("%s: evaluation %d, %d nodes, %d edges left", name, evaluations, nodes, edges)

    most, part = search.row_evaluations, search.row_fraction
    if known is not None:
        most, part = known.values["evaluations"], known.values["part"]
    exchange = case.parallel.exchange
    return Peeler(policy.net, policy.params, exchange, select.rule, select.fraction, part, most, stop, tell)


def _solved(work: _Work, found: Answer, bound: RowBound | None, peeled: Peeled, stopped: bool) -> Solved:
    """The answer of the graph that an answer of the rest stands for.

    stopped   the run is to end: nothing is made better
    Ranks     all call
    """
    context, kind = work.context, work.rest.kind
    whole = replace(
        found, solution=kind.lift(found.solution), bound=None, method="", verified=False,
        certificate=b"",
    )  # fmt: skip
    whole = whole if stopped else _exchanged(work, whole)
    certificate = b""
    if bound is not None:
        whole = replace(whole, bound=bound.value, method=bound.method, verified=True)
        certificate = to_bytes(bound.proof) if context.case.output.certificates else b""
    evaluations = found.evaluations + peeled.evaluations
    whole = replace(whole, evaluations=evaluations)
    solved = written_answer(context, work.problem, work.loaded, work.rest, whole, certificate)
    solved.entry["peeled"] = peeled.chosen
    return solved


def _exchanged(work: _Work, found: Answer) -> Answer:
    """An answer made better on the rows. Ranks: all call."""
    context, kind, graph = work.context, work.rest.kind, work.loaded.graph
    counted = context.case.search.row_exchanges
    look = (lambda: context.keeper.at(0)) if counted else work.clock(1.0).rings
    rounds = Rounds(look, counted)
    begun = time.perf_counter()
    with context.log.phase("exchange"):
        solution = kind.improve(context.group, graph, found.solution, rounds)
        value = kind.value(context.group, graph, solution)
    if rounds.cut_short or counted:
        keys = [*found.replay, f"search.row_exchanges={rounds.made}"] if found.replay else []
        found = replace(found, replay=keys)
    better = value < found.value if kind.sense == "minimise" else value > found.value
    if not better:
        return found
    unit, seconds = work.rest.unit, found.seconds + time.perf_counter() - begun
    context.log.info(
        "%s: exchanges on rows: %d rounds, from %.10g to %.10g", graph.name, rounds.made, found.value * unit,
        value * unit,
    )  # fmt: skip
    event = Event(seconds, value if unit == 1 else value * unit, None)
    return replace(
        found, solution=solution, value=value, source=ON_ROWS, seconds=seconds, trace=[*found.trace, event]
    )
