"""A graph that is too large for one rank, where reductions on row partitions come first.

What they leave (app/solver/rows/kinds.py) is a graph of its own. Where that is small enough the pipeline
answers it, and with it the whole graph; else the policy goes on from there, or what the reductions know by
themselves is the answer.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from app.checkpoint.keeper import Keeper
from app.checkpoint.store import State
from app.comm.guard import raise_together
from app.errors import Ended, LockstepError
from app.graphs.graph import Graph
from app.model.memory import whole_graph as whole_graph_bytes
from app.partition.ids import ids_everywhere
from app.partition.loaded import Loaded
from app.problems.problem import Problem
from app.proofs.archive import from_bytes, to_bytes
from app.rl.forest import ACROSS
from app.solver.learned import StartClock, StartLimits
from app.solver.pipeline import Answer, Pipeline
from app.solver.rows.kinds import ROW_KINDS, RowKind
from app.solver.rows.own import Rounds
from app.tasks.compare import holds
from app.tasks.context import Context
from app.tasks.entry import entry_of, is_weak
from app.tasks.names import written_ids
from app.tasks.rollouts import Before, introduce, prices_of
from app.tasks.solved import Solved
from app.toolbox import Instance, Toolbox

Better = Callable[[Answer], Answer]

SHARE, LEAST_SECONDS = 0.5, 1.0  # of a time limit, for reductions of rows; what they have in any case
BOUND_ROUNDS = 4096  # of peeling, for a bound where what is left is too large


@dataclass(frozen=True, eq=False)
class Rest:
    """What reductions have left of a graph.

    unit    of its weights     begun   when the solve did, by time.perf_counter
    replay  keys that lead to the same rest
    seconds that the reductions took, about what their check will take, too
    """

    kind: RowKind
    unit: float
    begun: float
    replay: list[str]
    seconds: float = 0.0

    @property
    def nbytes(self) -> int:
        """What whole-graph work on it takes on one rank."""
        return whole_graph_bytes(len(self.kind.nodes), self.kind.edges)

    def before(self) -> Before:
        """What was done before the policy is asked."""
        return Before(self.kind.chosen(), self.begun)


class _Whole(NamedTuple):
    """What an entry of result.json asks of a toolbox, of the whole graph."""

    sense: str
    weights: np.ndarray | None
    unit: float


def reduce_first(context: Context, problem: Problem, loaded: Loaded, keeper: Keeper) -> Rest | None:
    """What reductions leave of a graph too large for one rank; None: none are for it. Ranks: all call.

    keeper   remembers how many rounds there were: solutions of what they left go on from there
    """
    graph, log, begun, case = loaded.graph, context.log, time.perf_counter(), context.case
    if problem.name not in ROW_KINDS or not case.search.reductions:
        return None
    prices = prices_of(context, problem, loaded)
    introduce(context, loaded)
    weights, unit = (None, 1.0) if prices is None else (prices.weights, prices.unit)
    most_bytes, compiled = 1e6 * case.memory.whole_graph_mb, case.run.kernels == "auto"

    def fits(nodes: int, edges: int) -> bool:
        return holds(context, whole_graph_bytes(nodes, edges))

    kind = ROW_KINDS[problem.name](problem.sense, weights, fits, most_bytes, compiled)
    rounds, replay = _rounds(context, keeper), []
    with log.phase("reduce"):
        first = time.perf_counter()
        kind.reduce(context.group, graph, rounds)
        seconds = time.perf_counter() - first
    known = keeper.recall("rows")
    limited = rounds.cut_short or (known is not None and known.values.get("cut_short", True))
    keeper.keep("rows", State({"rounds": rounds.made, "cut_short": limited}, {}))
    if limited or case.search.row_rounds:
        replay = [f"search.row_rounds={rounds.made}"]
    log.info(
        "%s: rows reduced to %d of %d nodes, %d of %d edges (%s), %d rounds%s",
        graph.name, len(kind.nodes), graph.n, kind.edges, graph.edges, kind.words, rounds.made,
        ": the time was up" if rounds.cut_short else "",
    )  # fmt: skip
    return Rest(kind, unit if kind.unit is None else kind.unit, begun, replay, seconds)


def _rounds(context: Context, keeper: Keeper) -> Rounds:
    """As many as a replay says or an earlier part of the run has made, else what the time allows."""
    search, kept = context.case.search, keeper.recall("rows")
    if search.row_rounds or kept is not None:
        return Rounds(lambda: context.keeper.at(0), search.row_rounds or kept.values["rounds"])
    return Rounds(look_of(context))


def look_of(context: Context, spent: float = 0.0) -> Any:
    """Asked between rounds: whether their share of a time limit is over, after so many seconds of it; each
    question is a look at signals too.
    """
    seconds = context.case.search.seconds
    share = max(SHARE * seconds - spent, LEAST_SECONDS) if seconds else float("inf")
    return StartClock(context.group, StartLimits(1.0, 0, share, context.keeper), share).rings


def answer_rest(context: Context, pipeline: Pipeline, problem: Problem, loaded: Loaded, rest: Rest) -> Solved:
    """The pipeline on what is left of a graph, whose answer is then one of the graph.

    Ranks   all call; identical on all
    """
    name = loaded.graph.name
    with context.log.phase("reduce"):
        toolbox = toolbox_of(context, problem, rest, rest.kind.rest(context.group, name))

    def solved(found: Answer) -> Solved:
        return _solved(context, problem, loaded, rest, found)

    try:
        spent = time.perf_counter() - rest.begun
        answer = pipeline.answer(toolbox, name, spent=spent, kept=rest.seconds)
    except Ended as ended:
        if ended.so_far is not None:
            ended.so_far = solved(ended.so_far)
        raise
    return solved(answer)


def answer_alone(
    context: Context, problem: Problem, loaded: Loaded, rest: Rest, better: Better | None = None
) -> Solved | None:
    """What reductions know by themselves of a graph, where what they leave is too large; None: nothing.

    better  makes more of that answer
    Ranks   all call; identical on all
    """
    group, graph, kind = context.group, loaded.graph, rest.kind
    with context.log.phase("bounds"):
        rounds = Rounds(look_of(context, time.perf_counter() - rest.begun), BOUND_ROUNDS)
        alone = kind.alone(group, rounds)
    if alone is None:
        return None
    with context.log.phase("check"):
        alone.check(group, graph)
    value = kind.value(group, graph, alone.solution)
    seconds = time.perf_counter() - rest.begun
    answer = Answer(
        solution=alone.solution, value=value, bound=alone.bound, method=alone.method, learned=None,
        quick=value, evaluations=0, steps=0, source=alone.source, verified=True, integral=0.0,
        seconds=seconds, trace=[], replay=["search.seconds=0", *rest.replay], certificate=b"",
    )  # fmt: skip
    certificate = to_bytes(alone.proof) if context.case.output.certificates else b""

    def written(found: Answer) -> Solved:
        return written_answer(context, problem, loaded, rest, found, certificate)

    if better is None:
        return written(answer)
    try:
        return written(better(answer))
    except Ended as ended:
        if ended.so_far is not None:
            ended.so_far = written(ended.so_far)
        raise


def toolbox_of(context: Context, problem: Problem, rest: Rest, graph: Graph) -> Toolbox:
    """The problem's tools for what is left; values are those of the whole graph."""
    kind = rest.kind
    return problem.toolbox(
        Instance(
            graph, compiled=kind.compiled, whole_unit=rest.unit, most_bytes=kind.most_bytes, **kind.instance()
        )
    )


def _solved(context: Context, problem: Problem, loaded: Loaded, rest: Rest, found: Answer) -> Solved:
    """The answer of the graph that an answer of what is left stands for, checked. Ranks: all call."""
    kind = rest.kind
    with context.log.phase("check"):
        kind.check(context.group, loaded.graph)
    solution, method = kind.lift(found.solution), _method(found.method, kind)
    whole = replace(found, solution=solution, method=method, replay=replay_of(found.replay, rest))
    return written_answer(context, problem, loaded, rest, whole, _certificate(found.certificate, kind))


def written_answer(
    context: Context, problem: Problem, loaded: Loaded, rest: Rest, found: Answer, certificate: bytes
) -> Solved:
    """An answer of the graph, checked, and what is written of it. Ranks: all call."""
    group, graph, kind = context.group, loaded.graph, rest.kind
    with context.log.phase("check"):
        value, across, together = kind.value(group, graph, found.solution), ACROSS.get(problem.name), None
        if across is not None:
            limits = problem.limits(graph.n)
            together = across(group, context.state_rows(loaded, problem), graph, found.solution, *limits)
        with raise_together(group, "checking the solution"):
            if (wrong := together or problem.violation(graph, found.solution)) is not None:
                raise LockstepError(f"{graph.name}: the {problem.solution} {wrong}")
            if value != found.value:
                raise LockstepError(f"{graph.name}: the objective is {found.value}, not {value}")
    found = replace(found, certificate=b"")
    entry = entry_of(_Whole(problem.sense, kind.weights, rest.unit), graph, found)
    entry["bound_is_weak"] = is_weak(entry)
    text = problem.text(found.solution, written_ids(loaded, ids_everywhere(group, graph, loaded.rows)))
    return Solved(entry, text, found.solution, found.trace, None, None, certificate)


def _method(method: str, kind: RowKind) -> str:
    """How a bound of the graph was found: one of what is left, after reductions."""
    first = kind.method
    return method if method.startswith(first) or not method else f"{first}, {method}"


def replay_of(keys: list[str], rest: Rest) -> list[str]:
    """Keys that give the answer of the graph again, from those of what is left. None where no time was left
    to reduce that, too: without reductions the rows would not be reduced either.
    """
    without = "search.reductions=false"
    if not keys or (without in keys and len(rest.kind.nodes)):
        return []
    return [*(key for key in keys if key != without), *rest.replay]


def _certificate(content: bytes, kind: RowKind) -> bytes:
    """The file of what proves a bound of the graph, from that of what is left; empty: none."""
    proof = kind.proof(from_bytes(content)) if content else None
    return b"" if proof is None else to_bytes(proof)
