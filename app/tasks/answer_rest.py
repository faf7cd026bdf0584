"""A graph that is too large for one rank, where reductions on row partitions come first.

What they leave (app/solver/row_reductions.py) is a graph of its own. Where that is small enough the pipeline
answers it, and with it the whole graph; else the policy goes on from there.
"""

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from app.comm.guard import raise_together
from app.errors import Ended, LockstepError
from app.graphs.graph import Graph
from app.model.memory import whole_graph as whole_graph_bytes
from app.partition.ids import ids_everywhere
from app.partition.load import Loaded
from app.problems.problem import Problem
from app.problems.table import ROW_REDUCED
from app.proofs.archive import from_bytes, to_bytes
from app.reductions.cover.log import renumbered
from app.solver.pipeline import Answer, Pipeline
from app.solver.row_check import check_rows
from app.solver.row_reductions import RowsReduced, reduce_rows
from app.tasks.answer import Solved, entry_of, is_weak, written_ids
from app.tasks.context import Context
from app.tasks.rollouts import Before, introduce, prices_of
from app.toolbox import Instance, Toolbox


class Rest(NamedTuple):
    """What reductions have left of a graph.

    unit    of its node weights     begun   when the solve did, by time.perf_counter
    """

    rows: RowsReduced
    unit: float
    begun: float

    @property
    def nbytes(self) -> int:
        """What whole-graph work on it takes on one rank."""
        return whole_graph_bytes(len(self.rows.nodes), self.rows.edges)

    def before(self, problem: Problem) -> Before:
        """For a policy's problem: what is in the solution before the policy is asked."""
        each = (nodes[:, 1:] if problem.sense == "minimise" else nodes[:, :1] for nodes in self.rows.steps)
        chosen = [np.empty(0, dtype=np.int64), *(nodes.reshape(-1) for nodes in each)]
        return Before(np.sort(np.concatenate(chosen)), self.begun)


class _Whole(NamedTuple):
    """What an entry of result.json asks of a toolbox, of the whole graph."""

    sense: str
    weights: np.ndarray | None
    unit: float


def reduce_first(context: Context, problem: Problem, loaded: Loaded) -> Rest | None:
    """What reductions leave of a graph too large for one rank; None: none are for it. Ranks: all call."""
    graph, log, begun = loaded.graph, context.log, time.perf_counter()
    if problem.name not in ROW_REDUCED or not context.case.search.reductions:
        return None
    prices = prices_of(context, problem, loaded)
    introduce(context, loaded)
    weights, unit = (None, 1.0) if prices is None else (prices.weights, prices.unit)
    with log.phase("reduce"):
        rows = reduce_rows(context.group, graph, weights, lambda: context.keeper.at(0))
    log.info(
        "%s: rows reduced to %d of %d nodes, %d of %d edges (neighbours %d), %d rounds",
        graph.name, len(rows.nodes), graph.n, rows.edges, graph.edges, sum(map(len, rows.steps)), rows.rounds,
    )  # fmt: skip
    return Rest(rows, unit, begun)


def answer_rest(context: Context, pipeline: Pipeline, problem: Problem, loaded: Loaded, rest: Rest) -> Solved:
    """The pipeline on what is left of a graph, whose answer is then one of the graph.

    Ranks   all call; identical on all
    """
    name = loaded.graph.name
    with context.log.phase("reduce"):
        toolbox = _toolbox(context, problem, rest, rest.rows.rest(context.group, name))

    def solved(found: Answer) -> Solved:
        return _solved(context, problem, loaded, rest, found)

    try:
        answer = pipeline.answer(toolbox, name, spent=time.perf_counter() - rest.begun)
    except Ended as ended:
        if ended.so_far is not None:
            ended.so_far = solved(ended.so_far)
        raise
    return solved(answer)


def _toolbox(context: Context, problem: Problem, rest: Rest, graph: Graph) -> Toolbox:
    """The problem's tools for what is left; values are those of the whole graph."""
    case, rows = context.case, rest.rows
    gone = np.ones(len(rows.covered), dtype=bool)
    gone[rows.nodes] = False
    granted = rows.weight(gone & ~rows.covered) if problem.sense == "maximise" else rows.taken
    compiled, most = case.run.kernels == "auto", 1e6 * case.memory.whole_graph_mb
    weights = None if rows.weights is None else rows.weights[rows.nodes]
    return problem.toolbox(
        Instance(
            graph, compiled=compiled, whole_weights=weights, whole_unit=rest.unit, most_bytes=most,
            granted=granted,
        )
    )  # fmt: skip


def _solved(context: Context, problem: Problem, loaded: Loaded, rest: Rest, found: Answer) -> Solved:
    """The answer of the graph that an answer of what is left stands for, checked. Ranks: all call."""
    group, graph, rows = context.group, loaded.graph, rest.rows
    outside = problem.sense == "maximise"
    cover = rows.lift(~found.solution if outside else found.solution)
    solution = ~cover if outside else cover
    with context.log.phase("check"):
        check_rows(group, graph, rows)
        with raise_together(group, "checking the solution"):
            if (wrong := problem.violation(graph, solution)) is not None:
                raise LockstepError(f"{graph.name}: the {problem.solution} {wrong}")
            if (value := rows.weight(solution)) != found.value:
                raise LockstepError(f"{graph.name}: the objective is {found.value}, not {value}")
    method, replay = _method(found.method), _replay(found.replay, rows)
    whole = replace(found, solution=solution, method=method, replay=replay, certificate=b"")
    entry = entry_of(_Whole(problem.sense, rows.weights, rest.unit), graph, whole)
    entry["bound_is_weak"] = is_weak(entry)
    text = problem.text(solution, written_ids(loaded, ids_everywhere(group, graph, loaded.rows)))
    return Solved(entry, text, solution, found.trace, None, None, _certificate(found.certificate, rows))


def _method(method: str) -> str:
    """How a bound of the graph was found: one of what is left, after reductions."""
    return method if method.startswith("reductions") or not method else f"reductions, {method}"


def _replay(keys: list[str], reduced: RowsReduced) -> list[str]:
    """Keys that give the answer of the graph again, from those of what is left. None where no time was left
    to reduce that, too: without reductions the rows would not be reduced either.
    """
    without = "search.reductions=false"
    if without in keys and len(reduced.nodes):
        return []
    return [key for key in keys if key != without]


def _certificate(content: bytes, reduced: RowsReduced) -> bytes:
    """The file of what proves a bound of the graph, from that of what is left; empty: none."""
    if not content:
        return b""
    proof = from_bytes(content)
    return to_bytes(replace(proof, log=np.concatenate([reduced.log(), renumbered(proof.log, reduced.nodes)])))
