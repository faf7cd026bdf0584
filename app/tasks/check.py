"""--check: a user's solution, read, checked by independent code, valued and bounded; nothing is written.

Of a folder: the answers of a run (check_run.py).
"""

import os
from functools import partial

from app.comm.guard import raise_together
from app.errors import CaseError, GraphError
from app.problems.table import make_problem
from app.tasks.answer import bound_and_gap, in_unit, make_toolbox
from app.tasks.check_run import check_run
from app.tasks.compare import bound_of, whole_graph
from app.tasks.context import Context
from app.toolbox import Toolbox


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
    graphs = context.load(context.case.graph, "instances")
    if len(graphs) != 1:
        raise CaseError(f"--check: needs one graph, the case names {len(graphs)}; set graph.path=FILE")
    whole = whole_graph(context, graphs[0])
    if whole is None:
        raise CaseError("--check: the graph is too large for one rank; raise memory.whole_graph_mb")
    problem = make_problem(context.case.problem.name)
    toolbox = make_toolbox(context, problem, graphs[0], whole)
    with raise_together(context.group, "checking the solution"):
        solution = problem.read(path, whole.held_ids())
        if (fault := toolbox.fault(solution)) is not None:
            raise GraphError(f"{path}: not a feasible {toolbox.words} of {whole.name}: {fault}")
    value = toolbox.value(solution)
    context.log.info(
        "%s: a feasible %s of %s, objective %s", path, toolbox.words, whole.name, in_unit(toolbox, value)
    )
    if context.case.search.bounds:
        toolbox.reduce(partial(context.keeper.at, 0))
        found = bound_of(context, toolbox, value, context.case.search.bound_seconds)
        if found.value is not None:
            method = found.method + (", verified" if found.verified else "")
            _say_bound(context, toolbox, value, found.value, method)


def _say_bound(context: Context, toolbox: Toolbox, value: int, bound: int, method: str) -> None:
    """How far from optimal the solution can be."""
    shown, gap = bound_and_gap(toolbox, value, bound)
    word = "optimal: " if not gap else f"at most {100 * gap:.2f} % from optimal: "
    side = "at least" if toolbox.sense == "minimise" else "at most"
    context.log.info("%severy %s has %s %s (%s)", word, toolbox.words, side, shown, method)
