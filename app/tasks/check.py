"""--check: a user's solution, read, checked by independent code, valued and bounded; nothing is written.

Of a folder: the answers of a run (check_run.py). From Python: `check` of app/api/solve.py.
"""

import math
import os
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from app.comm.guard import raise_together
from app.errors import CaseError, GraphError
from app.graphs.ids import name_array
from app.partition.loaded import Loaded
from app.problems.table import MAPPING, problem_of
from app.tasks.check_run import check_run, proved_by
from app.tasks.compare import bound_of, whole_graph
from app.tasks.context import Context
from app.tasks.entry import bound_and_gap, in_unit
from app.tasks.given import given_solution, mapping_given, read_solution
from app.tasks.names import written_ids
from app.tasks.tools import make_toolbox
from app.text import figures, gap_words
from app.toolbox import Toolbox

BY_CERTIFICATE = "certificate"  # how a bound was found


@dataclass(frozen=True)
class Valued:
    """What a solution is worth, how far from optimal it can be at most: as Checked of api/results.py."""

    objective: float
    bound: float | None
    bound_method: str | None
    bound_verified: bool
    gap: float | None


def run_check(context: Context, path: str) -> None:
    """Check a file's solution or, where the path is a folder, the answers of a run. Ranks: all call."""
    if os.path.isdir(path):
        check_run(context, path)
    else:
        check_solution(context, path)


def check_solution(context: Context, path: str) -> None:
    """Say whether the file's solution is feasible for the case's one graph, its objective and a bound.

    Raises GraphError for a file that is wrong, and for a solution that is infeasible. Ranks: all call
    """
    graphs = context.load(context.case.graph, "instances", worked_on=False)
    if len(graphs) != 1:
        raise CaseError(f"--check: needs one graph, the case names {len(graphs)}; set graph.path=FILE")
    _valued(context, graphs[0], path, "--check")


def value_given(context: Context, loaded: Loaded, certificate: str | bytes, path: str = "") -> Valued:
    """What a caller's solution is worth: that of a file, or `loaded.start`.

    certificate   what proves a bound, a file or its content; empty: one is looked for
    Raises GraphError where the solution is infeasible, or the certificate proves nothing. Ranks: all call
    """
    return _valued(context, loaded, path or "answer", "check", certificate)


def _valued(
    context: Context, loaded: Loaded, path: str, caller: str, certificate: str | bytes = b""
) -> Valued:
    """Check and value the solution of a file, or that of `loaded.start`, and bound it. Ranks: all call."""
    whole = whole_graph(context, loaded)
    if whole is None:
        raise CaseError(f"{caller}: the graph is too large for one rank; raise memory.whole_graph_mb")
    problem = problem_of(context.case)
    toolbox = make_toolbox(context, problem, loaded, whole)
    with raise_together(context.group, "checking the solution"):
        ids = whole.held_ids()
        if loaded.start is None:
            solution = read_solution(problem, toolbox, path, written_ids(loaded, ids))
        elif problem.solution == MAPPING:
            solution = mapping_given(toolbox, loaded, ids, path)
        else:
            solution = given_solution(context.case, problem, loaded, ids, path)
        if (fault := _fault(toolbox, loaded, ids, solution)) is not None:
            raise GraphError(f"{path}: not a feasible {toolbox.words} of {whole.name}: {fault}")
        if loaded.start is None and (untrue := toolbox.untrue(path, solution)) is not None:
            raise GraphError(f"{path}: {untrue}")
    value = toolbox.value(solution)
    context.log.info(
        "%s: a feasible %s of %s, objective %s", path, toolbox.words, whole.name,
        figures(in_unit(toolbox, value)),
    )  # fmt: skip
    bound, method, verified = _bound(context, toolbox, value, certificate)
    shown, gap = bound_and_gap(toolbox, _surely(context, toolbox, solution, value), bound)
    if bound is not None:
        _say_bound(context, toolbox, shown, gap, method + (", verified" if verified else ""))
    return Valued(in_unit(toolbox, value), shown, method or None, verified, gap)


def _fault(toolbox: Toolbox, loaded: Loaded, ids: np.ndarray, solution: np.ndarray) -> str | None:
    """What is wrong with a solution, its nodes called as their owner does; None: nothing."""
    fault, labels = toolbox.fault(solution), loaded.labels
    if fault is None or labels is None:
        return fault
    labels = [*labels, *(loaded.demands or [])]
    texts = [str(labels[i] if i < len(labels) else i) for i in ids.tolist()]
    called = [text.encode(errors="backslashreplace") for text in texts]
    toolbox.graph = replace(toolbox.graph, ids=name_array(called))
    return toolbox.fault(solution)


def _bound(
    context: Context, toolbox: Toolbox, value: int, certificate: str | bytes
) -> tuple[int | None, str, bool]:
    """A bound (None: there is none), how it was found, and whether it was proved again. Ranks: all call."""
    group, search = context.group, context.case.search
    if certificate:
        found = np.zeros(1, dtype=np.int64)
        with raise_together(group, "proving the bound"):
            if group.rank == 0:
                found[0] = proved_by(certificate, toolbox)
        return int(group.broadcast(found)[0]), BY_CERTIFICATE, True
    if not search.bounds:
        return None, "", False
    toolbox.reduce(partial(context.keeper.at, 0))
    bounds = bound_of(context, toolbox, value, search.bound_seconds)
    return bounds.value, bounds.method, bounds.verified


def _surely(context: Context, toolbox: Toolbox, solution: np.ndarray, value: int) -> int:
    """What the solution is worth at least, by rank 0, which has proved the bound. Ranks: all call."""
    least = np.array([value], dtype=np.int64)
    with raise_together(context.group, "judging the solution"):
        if context.group.rank == 0:
            least[0] = toolbox.surely(solution, value)
    return int(context.group.broadcast(least)[0])


def _say_bound(context: Context, toolbox: Toolbox, shown: float, gap: float, method: str) -> None:
    """How far from optimal the solution can be."""
    away = f"at most {100 * gap:.2f} % from optimal" if math.isfinite(gap) else gap_words(gap)
    word = "optimal: " if not gap else f"{away}: "
    side = "at least" if toolbox.sense == "minimise" else "at most"
    sure = "" if toolbox.confidence == 1 else f", with probability {toolbox.confidence:g}"
    context.log.info("%severy %s has %s %s (%s)%s", word, toolbox.words, side, figures(shown), method, sure)
