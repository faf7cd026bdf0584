"""A graph of which reductions leave more than one rank may work on: a policy chooses until the rest fits.

The rest then is answered by the whole pipeline but for its bounds, which would be those of the rest: what was
chosen proves nothing. A bound of the graph is found before that, on the rows of what reductions leave. The
answer of the graph is made better on its rows once more (solver/rows/exchanges.py), then region by region
until the time is up (tasks/answer_regions.py).
"""

import time
from dataclasses import replace

import numpy as np
from msgspec import structs

from app.case.search import SearchCase
from app.checkpoint.keeper import Keeper
from app.checkpoint.store import State
from app.errors import Ended
from app.partition.loaded import Loaded
from app.problems.problem import Problem
from app.rl.env import Environment
from app.solver.learned import StartClock
from app.solver.pipeline import Answer, Pipeline
from app.solver.rows.kinds import RowBound
from app.solver.rows.own import Rounds
from app.solver.rows.peel import (
    Peeled,
    Peeler,
    affordable_greedy,
    affordable_part,
    complete,
    greedy_share,
    kept_peel,
    peel_rows,
    recalled_peel,
    score_seconds,
)
from app.tasks.answer_on_rows import PEELING, Work, begun_before, exchanged, solved_on_rows
from app.tasks.answer_regions import kept_answer, recalled_answer, search_again
from app.tasks.answer_rest import Rest, replay_of, toolbox_of
from app.tasks.context import Context
from app.tasks.policy import Policy
from app.tasks.solved import Solved

POLICY, GIVEN = "policy", "given"  # the source of an answer that is the policy's; as the pipeline calls it
PEEL_SHARE, BOUND_SHARE, EXCHANGE_SHARE = 0.5, 0.1, 0.1  # of what is left of a time limit
LEAST_REST_SHARE, MOST_REST_SHARE = 0.1, 0.5  # the same for the rest, where regions follow
BRIEF_SHARE = 0.02  # of a time limit: scores that take less are made, whatever is left of it
PLANNED_GREEDY = 0.8  # of the same time, that a plain greedy is planned to take where no policy is asked
PLANNED = 0.25  # of the time of the policy, that its choices are planned to take; then it completes the rest


def answer_peeled(
    context: Context, pipeline: Pipeline, policy: Policy, problem: Problem, loaded: Loaded, rest: Rest,
    keeper: Keeper,
) -> Solved:  # fmt: skip
    """A bound, choices of the policy until the rest fits, the pipeline on it, exchanges on the rows, then
    regions of these once more.

    keeper  remembers what the policy chose, the answer before the regions, and these: see reduce_first
    Ranks   all call; identical on all
    """
    work = Work(context, problem, loaded, begun_before(rest, keeper), keeper)
    bound = _bound(work) if context.case.search.bounds else None
    known = keeper.recall("answer")
    try:
        if known is None:
            found = _first(work, pipeline, policy)
            keeper.keep("answer", kept_answer(found, work.chosen, time.perf_counter() - work.rest.begun))
        else:
            found, work.chosen = recalled_answer(known)
        found = search_again(context, problem, loaded.graph, work.rest, found, keeper)
    except Ended as ended:
        if ended.so_far is not None:
            ended.so_far = solved_on_rows(work, ended.so_far, bound)
        raise
    return solved_on_rows(work, found, bound)


def _first(work: Work, pipeline: Pipeline, policy: Policy) -> Answer:
    """The answer of the graph before regions of it are searched. Ranks: all call; identical on all."""
    context, rest, keeper, search = work.context, work.rest, work.keeper, work.context.case.search
    kind, name, whole = rest.kind, work.loaded.graph.name, rest.kind.edges
    peeled, given, replay = _peel(work, policy)
    work.chosen = peeled.chosen
    ours = given is not None and keeper.recall("search") is None  # else it begins with an earlier part's best
    with context.log.phase("reduce"):
        toolbox = toolbox_of(context, work.problem, rest, kind.rest(context.group, name))
    case = structs.replace(context.case, search=structs.replace(search, bounds=False))
    searching = Pipeline(context.group, context.log, case, pipeline.net, pipeline.params, pipeline.keeper)

    def lifted(found: Answer) -> Answer:
        keys = replay_of(found.replay, rest)
        source = POLICY if not len(kind.nodes) or (ours and found.source == GIVEN) else found.source
        return replace(
            found, source=source, replay=[*keys, *replay] if keys else [], solution=kind.lift(found.solution),
            bound=None, method="", verified=False, certificate=b"",
            evaluations=found.evaluations + peeled.evaluations,
        )  # fmt: skip

    try:
        spent = time.perf_counter() - rest.begun
        kept = rest.seconds + _later_share(search, kind.edges / max(whole, 1)) * max(
            search.seconds - spent, 0.0
        )
        answer = lifted(searching.answer(toolbox, name, given, spent, kept))
    except Ended as ended:
        if ended.so_far is not None:
            ended.so_far = lifted(ended.so_far)
        raise
    return exchanged(work, answer)


def _later_share(search: SearchCase, part: float) -> float:
    """Of what is left of a time limit, what comes after the search of the rest, which is such a part of all
    edges that were left.
    """
    if not search.row_regions:
        return EXCHANGE_SHARE
    return 1 - min(max(part, LEAST_REST_SHARE), MOST_REST_SHARE)


def _bound(work: Work) -> RowBound | None:
    """A bound of the graph by the rows of what reductions leave, checked. Ranks: all call."""
    context = work.context
    with context.log.phase("bounds"):
        rounds = Rounds(work.clock(BOUND_SHARE, work.rest.seconds).rings)
        bound = work.rest.kind.bound(context.group, rounds)
    if bound is not None:
        with context.log.phase("check"):
            bound.check(context.group, work.loaded.graph)
    return bound


def _peel(work: Work, policy: Policy) -> tuple[Peeled, np.ndarray | None, list[str]]:
    """Choose until the rest fits; the policy's own solution of it; the keys that lead to both. Ranks: all
    call.
    """
    group, log, kind, search = work.context.group, work.context.log, work.rest.kind, work.context.case.search
    keeper, clock = work.keeper, work.clock(PEEL_SHARE, work.rest.seconds)
    done = keeper.recall("peel")
    known = keeper.recall(PEELING) if done is None else done
    made = Peeled(asked=_asked(work, clock.seconds)) if known is None else recalled_peel(known)
    if kind.weights is not None:
        log.info("%s: the policy is not asked: it does not see node weights", work.loaded.graph.name)
    elif not made.asked and not search.row_evaluations:
        log.info("%s: the policy is not asked: its scores would take too long", work.loaded.graph.name)
    plain = kind.weights is not None or not made.asked
    with log.phase("policy"):
        peeler = _peeler(work, policy, made, done is not None, clock)
        if not peeler.part and plain:
            peeler = replace(peeler, part=affordable_greedy(group, kind, PLANNED_GREEDY * clock.seconds))
        elif not peeler.part:
            part = affordable_part(group, kind, peeler, work.rest.nbytes, PLANNED * clock.seconds)
            peeler = replace(peeler, part=part)
        made.part = peeler.part
        before = made.chosen + (0 if made.begun is None else len(made.begun.nodes))
        if before:
            log.info("%s: an earlier part of the run chose %d nodes", work.loaded.graph.name, before)
        peeled = peel_rows(group, kind, peeler, made)
        chosen = peeled.evaluations
        given = complete(group, kind, peeler, peeled) if done is None else done.arrays.get("given")
    if done is None:
        more = {} if given is None else {"given": given}
        state = kept_peel(replace(peeled, evaluations=chosen), 0.0)
        keeper.keep("peel", State(state.values | {"whole": peeled.evaluations}, state.arrays | more))
    else:
        peeled.evaluations = done.values["whole"]
        given = None if given is None else given.astype(bool)
    log.info(
        "%s: the policy chose %d nodes, a plain greedy %d, by %d evaluations; %d nodes, %d edges are left",
        work.loaded.graph.name, peeled.chosen - peeled.greedy, peeled.greedy, peeled.evaluations,
        len(kind.nodes), kind.edges,
    )  # fmt: skip
    replay = []
    if not peeled.asked:
        replay.append("search.row_evaluations=-1")
    elif peeled.cut_short or search.row_evaluations:
        replay.append(f"search.row_evaluations={peeled.evaluations}")
    if peeler.part > greedy_share(kind) if plain else peeler.rule == "single":
        replay.append(f"search.row_fraction={peeler.part}")
    return peeled, given, replay


def _asked(work: Work, seconds: float) -> bool:
    """Whether the policy is asked at all: it has time for one selection, by rank 0's clock, or that is soon
    made. Ranks: all call.
    """
    search, kind, group = work.context.case.search, work.rest.kind, work.context.group
    if search.row_evaluations or kind.weights is not None or not search.seconds:
        return search.row_evaluations >= 0
    enough = max(seconds, BRIEF_SHARE * search.seconds) >= score_seconds(group, kind)
    return bool(group.first_number(enough))


def _peeler(work: Work, policy: Policy, peeled: Peeled, done: bool, clock: StartClock) -> Peeler:
    """How the policy chooses: as often as a replay says, else as long as the clock allows.

    peeled   what an earlier part of the run has chosen, and goes on counting     done   that is all
    """
    context, case, kind, name = work.context, work.context.case, work.rest.kind, work.loaded.graph.name
    search, select, made = case.search, case.select, peeled.evaluations
    counted = done or search.row_evaluations > 0

    def state() -> State:
        return kept_peel(peeled, time.perf_counter() - work.rest.begun)

    def stop() -> bool:
        work.keeper.at(made, PEELING, state)
        return not counted and clock.rings()

    def tell(evaluations: int, env: Environment) -> None:
        nonlocal made
        made = evaluations
        nodes, edges = kind.size(env.totals)
        context.log.record(phase="peel", name=name, step=evaluations, left=edges)
        context.log.progress("%s: evaluation %d, %d nodes, %d edges left", name, evaluations, nodes, edges)

    part = peeled.part or search.row_fraction
    exchange, most = case.parallel.exchange, max(search.row_evaluations, 0)
    return Peeler(
        net=policy.net, params=policy.params, exchange=exchange, rule=select.rule, fraction=select.fraction,
        part=part, most=most, stop=stop, tell=tell,
    )  # fmt: skip
