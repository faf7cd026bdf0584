"""Task solve: answer the problem on every graph of the case, checked, bounded, beside plain heuristics."""

import hashlib
from collections.abc import Iterator
from typing import Any

from app.checkpoint.checkpoints import NOTHING_KEPT, Keeper, Part
from app.comm.guard import raise_together
from app.errors import CaseError
from app.partition.load import Loaded
from app.problems.problem import Problem
from app.problems.table import make_problem
from app.report import plot_solutions, plot_solves
from app.solver.pipeline import Pipeline
from app.tasks.answer import Solved, answer_whole, recalled
from app.tasks.compare import whole_graph
from app.tasks.context import Context
from app.tasks.policy import Policy, find_policy
from app.tasks.rollouts import follow_policy, introduce, policy_alone

DRAWN = 4  # instances of which the course of the search is drawn
LISTED = 20  # instances that have a line each in the log


def run_solve(context: Context) -> dict[str, Any]:
    """Answer the problem on every graph; returns the task's part of result.json. Ranks: all call."""
    problem = make_problem(context.case.problem.name)
    policy = find_policy(context)
    graphs = context.load(context.case.graph, "instances")
    if not graphs:
        raise CaseError("graph: nothing to solve; set graph.path=FILE or graph.generator")
    context.log.info("policy: %s, weights %s", policy.source, policy.digest[:12])
    solved, used = [], set()
    for loaded, each in _solve_all(context, problem, policy, graphs):
        solved.append(each)
        if context.folder is not None and context.case.output.solutions:
            _write_solution(context, _file_name(loaded, used), each.text)
        if len(graphs) <= LISTED:
            _say(context, each.entry)
    instances = [each.entry for each in solved]
    _table(context, instances)
    if context.folder is not None and context.case.output.plots:
        plot_solutions(context.folder, context.log, instances)
        plot_solves(context.folder, context.log, solved[:DRAWN])
    together = hashlib.sha256("".join(i["digest"] for i in instances).encode()).hexdigest()
    return {"digest": together, "weights_digest": policy.digest, "instances": instances}


def _solve_all(
    context: Context, problem: Problem, policy: Policy, graphs: list[Loaded]
) -> Iterator[tuple[Loaded, Solved]]:
    """Every graph with its answer, in order; some are of an earlier part of the run. Ranks: all call."""
    known = {}
    for i, loaded in enumerate(graphs):
        if (state := context.keeper.recall(f"answer {i}")) is not None:
            known[id(loaded)] = recalled(context, loaded, state, drawn=i < DRAWN)
    for i, (loaded, solved) in enumerate(_solve_rest(context, problem, policy, graphs, known)):
        if id(loaded) not in known:
            context.keeper.keep(f"answer {i}", solved.state())
        yield loaded, solved
        context.keeper.at(i + 1)


def _solve_rest(
    context: Context, problem: Problem, policy: Policy, graphs: list[Loaded], known: dict[int, Solved]
) -> Iterator[tuple[Loaded, Solved]]:
    """Every graph with its answer, in order, of which some are known by id(loaded). Ranks: all call."""
    if context.case.search.solver == "policy":
        yield from follow_policy(context, problem, policy, graphs, known)
        return
    alone = policy_alone(context, problem, policy, graphs) if len(known) < len(graphs) else {}
    for i, loaded in enumerate(graphs):
        if id(loaded) in known:
            yield loaded, known[id(loaded)]
            continue
        solved = solve_graph(context, problem, policy, loaded, Part(context.keeper, f"instance {i}"))
        if id(loaded) in alone:
            solved.entry["baselines"]["policy alone"] = alone[id(loaded)]
        yield loaded, solved


def solve_graph(
    context: Context, problem: Problem, policy: Policy, loaded: Loaded, keeper: Keeper = NOTHING_KEPT
) -> Solved:
    """One graph by the pipeline; by the policy alone where the graph is too large for one rank.

    keeper  where this solve may be stopped, and what it goes on from
    Ranks   all call; identical on all
    """
    whole = whole_graph(context, loaded) if context.case.search.solver == "full" else None
    if whole is None:
        ((_, solved),) = follow_policy(context, problem, policy, [loaded])
        return solved
    introduce(context, loaded)
    pipeline = Pipeline(context.group, context.log, context.case, policy.net, policy.params, keeper)
    return answer_whole(context, pipeline, problem, loaded, whole, None)


# ---- what is written and said -----------------------------------------------------------------------------


def _file_name(loaded: Loaded, used: set[str]) -> str:
    """The graph's name as a file name, with a number where that is taken."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in loaded.graph.name) or "graph"
    name, number = plain, 1
    while name in used:
        number += 1
        name = f"{plain}-{number}"
    used.add(name)
    return name


def _write_solution(context: Context, name: str, text: str) -> None:
    """solution/NAME.txt by the input file's ids. Ranks: all call; rank 0 writes."""
    with context.log.phase("write"), raise_together(context.group, "writing the solution"):
        context.folder.write_text(f"solution/{name}.txt", text)


def _say(context: Context, instance: dict[str, Any]) -> None:
    """One line on an instance: the answer, how good it can still get, and the plain heuristics."""
    bound = "no bound"
    if instance["bound"] is not None:
        side = "at least" if instance["sense"] == "minimise" else "at most"
        bound = f"{side} {instance['bound']} ({instance['bound_method']}), gap {100 * instance['gap']:.2f} %"
        bound += ", optimal" if instance["optimal"] else ", a weak bound" if instance["bound_is_weak"] else ""
    if "primal_dual_integral" in instance:
        bound += f", primal-dual integral {instance['primal_dual_integral']:.3g} s"
    others = ", ".join(f"{label} {value}" for label, value in instance["baselines"].items())
    context.log.info(
        "%s: objective %s; %s; %s", instance["name"], instance["objective"], bound, others or "no baselines"
    )


def _table(context: Context, instances: list[dict[str, Any]]) -> None:
    """The table of a run: one line per instance."""
    labels = list(dict.fromkeys(label for i in instances for label in i["baselines"]))
    head = ["graph", "nodes", "edges", "answer", "learned", *labels, "bound", "gap %"]
    rows = [head]
    for i in instances:
        gap = "-" if i["gap"] is None else f"{100 * i['gap']:.2f}"
        shown = [i["objective"], i["learned"], *(i["baselines"].get(label) for label in labels), i["bound"]]
        cells = ["-" if value is None else f"{value:.10g}" for value in shown]
        rows.append([i["name"], str(i["nodes"]), str(i["edges"]), *cells, gap])
    widths = [max(len(row[c]) for row in rows) for c in range(len(head))]
    for row in rows:
        cells = (cell.ljust(w) if c == 0 else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths)))
        context.log.info("  ".join(cells))
