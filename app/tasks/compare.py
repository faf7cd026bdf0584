"""Baselines and bounds of whole graphs, dealt out to the ranks: the work that row partitions cannot share."""

import numpy as np

from app.comm.guard import raise_together
from app.errors import LockstepError
from app.graphs.graph import Graph
from app.partition.assemble import gather_whole
from app.partition.load import Loaded
from app.problems.table import make_problem
from app.tasks.context import Context


def graph_bytes(loaded: Loaded) -> int:
    """Bytes that bounds and baselines take on one rank: the graph, Python lists of it, and working copies."""
    return 100 * loaded.graph.n + 120 * loaded.graph.edges


def whole_graph(context: Context, loaded: Loaded) -> Graph | None:
    """The whole graph on every rank, or None with a message beyond the memory limit. Ranks: all call."""
    need, limit = graph_bytes(loaded), context.case.memory.whole_graph_mb * 1e6
    if need > limit:
        context.log.info(
            "%s: bounds and baselines skipped: they need %.0f MB on one rank, memory.whole_graph_mb is %.0f",
            loaded.graph.name, need / 1e6, limit / 1e6,
        )  # fmt: skip
        return None
    return gather_whole(context.group, loaded.graph, loaded.rows)


def baseline_objectives(context: Context, graph: Graph) -> dict[str, int]:
    """Objectives of the plain heuristics by label; each is checked. Ranks: all call, each does a share."""
    problem = make_problem(context.case.problem.name)
    names = list(problem.baselines)
    values = np.zeros(len(names), dtype=np.int64)
    labels = [""] * len(names)
    with raise_together(context.group, "baselines"):
        for i, name in enumerate(names):
            if i % context.group.size == context.group.rank:
                solution, labels[i] = problem.baselines[name](graph)
                wrong = problem.violation(graph, solution)
                if wrong is not None:
                    raise LockstepError(f"baseline {name} on {graph.name}: its {problem.solution} {wrong}")
                values[i] = problem.value(graph, solution)
    values = context.group.sum_integers(values)
    labels = [context.group.broadcast_text(label, i % context.group.size) for i, label in enumerate(labels)]
    return dict(zip(labels, values.tolist()))


def best_bound(context: Context, graph: Graph) -> tuple[int | None, str | None]:
    """The best certified bound and its method; None without one. Ranks: all call, each proves a share."""
    problem = make_problem(context.case.problem.name)
    names, methods = list(problem.bounds), [""] * len(problem.bounds)
    if not names:
        return None, None
    values = np.zeros(len(names), dtype=np.int64)
    with raise_together(context.group, "bounds"):
        for i, name in enumerate(names):
            if i % context.group.size == context.group.rank:
                certificate = problem.bounds[name](graph)
                certificate.check(graph)
                values[i], methods[i] = certificate.lower, certificate.method
    values = context.group.sum_integers(values)
    best = int(np.argmax(values))
    bound = problem.bound(graph.n, int(values[best]))
    return bound, context.group.broadcast_text(methods[best], best % context.group.size)


def compare_graphs(context: Context, graphs: list[Loaded]) -> dict[str, list[int]]:
    """Baseline objectives of several graphs, by label. Ranks: all call."""
    out: dict[str, list[int]] = {}
    if not context.case.search.baselines:
        return out
    with context.log.phase("baselines"):
        for loaded in graphs:
            whole = whole_graph(context, loaded)
            if whole is None:
                return {}
            for label, value in baseline_objectives(context, whole).items():
                out.setdefault(label, []).append(value)
    return out
