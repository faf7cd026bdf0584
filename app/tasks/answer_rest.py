"""A graph that is too large for one rank, where reductions on row partitions come first.

What they leave (app/solver/row_reductions.py) is a graph of its own. Where that is small enough the pipeline
answers it, and with it the whole graph; else the policy goes on from there.
"""

import time
from dataclasses import replace

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
from app.tasks.rollouts import introduce
from app.toolbox import Instance, Toolbox


def reduce_first(context: Context, problem: Problem, loaded: Loaded) -> RowsReduced | None:
    """What reductions leave of a graph too large for one rank; None: none are for it. Ranks: all call."""
    graph, log = loaded.graph, context.log
    if (
        problem.name not in ROW_REDUCED
        or graph.node_weights is not None
        or not context.case.search.reductions
    ):
        return None
    introduce(context, loaded)
    with log.phase("reduce"):
        reduced = reduce_rows(context.group, graph, lambda: context.keeper.at(0))
    log.info(
        "%s: rows reduced to %d of %d nodes, %d of %d edges (neighbours %d), %d rounds",
        graph.name, len(reduced.nodes), graph.n, reduced.edges, graph.edges,
        sum(map(len, reduced.steps)), reduced.rounds,
    )  # fmt: skip
    return reduced


def chosen_by(problem: Problem, reduced: RowsReduced) -> np.ndarray:
    """[k] int64, ascending: nodes that reductions have put into the solution of a policy's problem."""
    if problem.sense == "minimise":
        return np.flatnonzero(reduced.covered)
    return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *(nodes[:, 0] for nodes in reduced.steps)]))


def rest_bytes(reduced: RowsReduced) -> int:
    """Bytes that whole-graph work on what is left takes on one rank."""
    return whole_graph_bytes(len(reduced.nodes), reduced.edges)


def answer_rest(
    context: Context, pipeline: Pipeline, problem: Problem, loaded: Loaded, reduced: RowsReduced, begun: float
) -> Solved:
    """The pipeline on what is left of a graph, whose answer is then one of the graph.

    begun   when the solve began, by time.perf_counter
    Ranks   all call; identical on all
    """
    graph = loaded.graph
    with context.log.phase("reduce"):
        toolbox = _toolbox(context, problem, reduced, reduced.rest(context.group, graph.name))

    def solved(found: Answer) -> Solved:
        return _solved(context, problem, toolbox, loaded, reduced, found)

    try:
        answer = pipeline.answer(toolbox, graph.name, spent=time.perf_counter() - begun)
    except Ended as ended:
        if ended.so_far is not None:
            ended.so_far = solved(ended.so_far)
        raise
    return solved(answer)


def _toolbox(context: Context, problem: Problem, reduced: RowsReduced, rest: Graph) -> Toolbox:
    """The problem's tools for what is left; values are those of the whole graph."""
    case, left_out = context.case, len(reduced.covered) - len(reduced.nodes) - reduced.taken
    granted = left_out if problem.sense == "maximise" else reduced.taken
    compiled, most = case.run.kernels == "auto", 1e6 * case.memory.whole_graph_mb
    return problem.toolbox(Instance(rest, compiled=compiled, most_bytes=most, granted=granted))


def _solved(
    context: Context, problem: Problem, toolbox: Toolbox, loaded: Loaded, reduced: RowsReduced, found: Answer
) -> Solved:
    """The answer of the graph that an answer of what is left stands for, checked. Ranks: all call."""
    group, graph = context.group, loaded.graph
    outside = problem.sense == "maximise"
    cover = reduced.lift(~found.solution if outside else found.solution)
    solution = ~cover if outside else cover
    with context.log.phase("check"):
        check_rows(group, graph, reduced)
        with raise_together(group, "checking the solution"):
            if (wrong := problem.violation(graph, solution)) is not None:
                raise LockstepError(f"{graph.name}: the {problem.solution} {wrong}")
            if (size := int(np.count_nonzero(solution))) != found.value:
                raise LockstepError(f"{graph.name}: the objective is {found.value}, not {size}")
    whole = replace(found, solution=solution, method=_method(found.method), certificate=b"")
    entry = entry_of(toolbox, graph, whole)
    entry["bound_is_weak"] = is_weak(entry)
    text = problem.text(solution, written_ids(loaded, ids_everywhere(group, graph, loaded.rows)))
    return Solved(entry, text, solution, found.trace, None, None, _certificate(found.certificate, reduced))


def _method(method: str) -> str:
    """How a bound of the graph was found: one of what is left, after reductions."""
    return method if method.startswith("reductions") or not method else f"reductions, {method}"


def _certificate(content: bytes, reduced: RowsReduced) -> bytes:
    """The file of what proves a bound of the graph, from that of what is left; empty: none."""
    if not content:
        return b""
    proof = from_bytes(content)
    return to_bytes(replace(proof, log=np.concatenate([reduced.log(), renumbered(proof.log, reduced.nodes)])))
