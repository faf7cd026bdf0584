"""One instance of a solve by the pipeline: from the whole graph to its entry of result.json."""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from app.comm.guard import raise_together
from app.errors import Ended, LockstepError
from app.graphs.graph import Graph
from app.partition.loaded import Loaded
from app.problems.problem import Problem
from app.search.dismantle.course import curves_text, robustness
from app.solver.pipeline import Answer, Pipeline
from app.solver.progress import Event
from app.solver.sampled import SampledPipeline
from app.tasks.compare import Rival, compare, seconds_of_baselines
from app.tasks.context import Context
from app.tasks.entry import entry_of, in_unit, is_weak
from app.tasks.given import solution_given
from app.tasks.names import written_ids
from app.tasks.solved import Solved
from app.tasks.tools import make_toolbox
from app.text import figures
from app.toolbox import Toolbox

POLICY_ALONE = "policy alone"  # beside the plain heuristics
CLOSING_SHARE = 0.3  # of a time limit, at most, for what is made of an answer after the search


def answer_whole(
    context: Context, pipeline: Pipeline | SampledPipeline, problem: Problem, loaded: Loaded, whole: Graph,
    alone: np.ndarray | None = None,
) -> Solved:  # fmt: skip
    """The pipeline on one instance, or what is better: a plain heuristic's solution, or the policy's.

    alone   [n] bool, that of the policy by itself, or None
    Ranks   all call; identical on all
    """
    case, group, begun = context.case, context.group, time.perf_counter()
    pipeline.keeper.at(0)  # before a pass over the whole graph
    toolbox = make_toolbox(context, problem, loaded, whole)
    ids = whole.held_ids()
    with raise_together(group, "reading the solution to start from"):
        given = solution_given(case, problem, toolbox, loaded, ids)
        if given is not None and (fault := toolbox.fault(given)) is not None:
            path = "start" if loaded.start is not None else case.search.start
            context.log.info("warning: %s: %s; it is repaired", path, fault)
    answer: Answer | None = None
    baselines: dict[str, float | int | None] = {}
    beside: dict[str, np.ndarray] = {}

    def solved(found: Answer) -> Solved:
        compared, told = {"baselines": baselines}, pipeline.told(toolbox, found)
        return _solved(problem, toolbox, loaded, whole, found, compared, told, beside)

    try:
        spent = time.perf_counter() - begun
        kept = min(toolbox.closing_seconds, CLOSING_SHARE * case.search.seconds)
        answer = pipeline.answer(toolbox, whole.name, given, spent, kept)
        _check(context, toolbox, whole.name, answer)
        if case.search.baselines:
            with context.log.phase("baselines"):
                used = pipeline.used + kept  # what is kept comes after
                best = _compared(context, problem, toolbox, whole.name, answer, alone, used)
                answer, baselines, beside = best
    except Ended as ended:
        known = ended.so_far if answer is None else answer
        if known is not None:
            _check(context, toolbox, whole.name, known)
            ended.so_far = solved(known)
        raise
    return solved(answer)


def _solved(
    problem: Problem, toolbox: Toolbox, loaded: Loaded, whole: Graph, found: Answer, compared: dict[str, Any],
    told: dict[str, Any], beside: dict[str, np.ndarray],
) -> Solved:  # fmt: skip
    """All that is told and written of an answer.

    compared, told   entries of plain heuristics and of the pipeline     beside   the curves of the former
    """
    solution, ids = found.solution, partial(written_ids, loaded, whole.held_ids())
    entry = entry_of(toolbox, whole, found) | compared
    curves = {} if toolbox.curve is None else {"answer": toolbox.curve(solution), **beside}
    if curves:
        entry["robustness"] = {label: round(robustness(curve), 6) for label, curve in curves.items()}
    entry |= {name: in_unit(toolbox, part) for name, part in toolbox.split(solution).items()}
    entry |= toolbox.counts(solution)
    if measures := toolbox.measures(solution):
        entry["measures"] = measures
    entry |= told
    entry["bound_is_weak"] = is_weak(entry)
    if toolbox.text is None:
        text = problem.text(solution, ids())
    else:
        text = toolbox.text(solution, entry["objective"])
    course = "" if toolbox.course is None else toolbox.course(solution, ids())
    return Solved(
        entry=entry, text=text, solution=solution, trace=found.trace, graph=whole, metric=loaded.metric,
        certificate=found.certificate, course=course, curves=curves_text(curves),
    )  # fmt: skip


def _check(context: Context, toolbox: Toolbox, name: str, answer: Answer) -> None:
    """A wrong answer is an internal error, never a result. Ranks: all call."""
    with context.log.phase("check"), raise_together(context.group, "checking the solution"):
        fault = toolbox.fault(answer.solution)
        if fault is not None:
            raise LockstepError(f"{name}: {fault}")


def _compared(
    context: Context,
    problem: Problem,
    toolbox: Toolbox,
    name: str,
    answer: Answer,
    alone: np.ndarray | None,
    used: float,
) -> tuple[Answer, dict[str, float | int | None], dict[str, np.ndarray]]:
    """The best of an answer and what it is compared with; the objectives of the latter, by label, and their
    curves.

    The search does not begin from it: its course, and with it nearly all answers, would be others.
    alone   see answer_whole
    used    seconds of a time limit that were
    Ranks   all call
    """
    begun = time.perf_counter()
    compared = compare(context, toolbox, name, seconds_of_baselines(context.case, used), drawn=True)
    values, rival = dict(compared.values), compared.rival(context.group, toolbox)
    curves = dict(compared.curves)
    if alone is not None:
        other = _rival_alone(problem, toolbox, name, alone)
        values[POLICY_ALONE] = other.value
        if toolbox.curve is not None:
            curves[POLICY_ALONE] = toolbox.curve(other.solution())
        rival = other if rival is None or toolbox.improves(other.value, rival.value) else rival
    if context.case.search.seconds and answer.replay:  # the clock says which begin, if any
        key = f"search.heuristic={compared.name}" if compared.name else "search.baselines=false"
        answer = replace(answer, replay=[*answer.replay, key])
    if rival is not None and toolbox.improves(rival.value, answer.value):
        spent = time.perf_counter() - begun
        context.log.info(
            "%s: the answer is that of %s, %s; the search found %s in %d steps", name, rival.source,
            figures(in_unit(toolbox, rival.value)), figures(in_unit(toolbox, answer.value)), answer.steps,
        )  # fmt: skip
        answer = _replaced(toolbox, name, answer, rival, spent)
    return answer, {label: in_unit(toolbox, each) for label, each in values.items()}, curves


def _rival_alone(problem: Problem, toolbox: Toolbox, name: str, alone: np.ndarray) -> Rival:
    """The policy's solution, checked."""
    solution = problem.canonical(alone)
    if (fault := toolbox.fault(solution)) is not None:
        raise LockstepError(f"{POLICY_ALONE} on {name}: {fault}")
    return Rival(POLICY_ALONE, toolbox.value(solution), lambda: solution)


def _replaced(toolbox: Toolbox, name: str, answer: Answer, rival: Rival, spent: float) -> Answer:
    """The answer with a better solution, found so many seconds after it. Ranks: all call."""
    solution = rival.solution()
    if (fault := toolbox.fault(solution)) is not None or toolbox.value(solution) != rival.value:
        raise LockstepError(f"{rival.source} on {name}: {fault or 'its value is another'}")
    best = rival.value if toolbox.unit == 1 else rival.value * toolbox.unit
    bound = None if answer.bound is None else answer.trace[-1].bound
    event = Event(answer.seconds + spent, best, bound)
    return replace(
        answer, solution=solution, value=rival.value, source=rival.source, trace=[*answer.trace, event]
    )
