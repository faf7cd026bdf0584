"""Baselines and bounds of whole graphs, dealt out to the ranks: the work that row partitions cannot share."""

import numpy as np

from app.bounds.table import BOUNDS
from app.bounds.verify import uncovered_edge
from app.comm.guard import raise_together
from app.errors import LockstepError
from app.graphs.graph import Graph
from app.partition.assemble import gather_whole
from app.partition.load import Loaded
from app.search.baselines import BASELINES
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
    """Cover sizes of the plain heuristics by label; each is checked. Ranks: all call, each does a share."""
    names = list(BASELINES)
    values = np.zeros(len(names), dtype=np.int64)
    labels = [""] * len(names)
    with raise_together(context.group, "baselines"):
        for i, name in enumerate(names):
            if i % context.group.size == context.group.rank:
                in_cover, labels[i] = BASELINES[name](graph)
                if uncovered_edge(graph, in_cover) is not None:
                    raise LockstepError(f"baseline {name} left an edge of {graph.name} uncovered")
                values[i] = np.count_nonzero(in_cover)
    values = context.group.sum_integers(values)
    labels = [context.group.broadcast_text(label, i % context.group.size) for i, label in enumerate(labels)]
    return dict(zip(labels, values.tolist()))


def best_bound(context: Context, graph: Graph) -> tuple[int, str]:
    """The best certified lower bound and its method. Ranks: all call, each proves a share."""
    names, methods = list(BOUNDS), [""] * len(BOUNDS)
    values = np.zeros(len(names), dtype=np.int64)
    with raise_together(context.group, "bounds"):
        for i, name in enumerate(names):
            if i % context.group.size == context.group.rank:
                certificate = BOUNDS[name](graph)
                certificate.check(graph)
                values[i], methods[i] = certificate.lower, certificate.method
    values = context.group.sum_integers(values)
    best = int(np.argmax(values))
    return int(values[best]), context.group.broadcast_text(methods[best], best % context.group.size)


def compare_graphs(context: Context, graphs: list[Loaded]) -> dict[str, list[int]]:
    """Baseline cover sizes of several graphs, by label. Ranks: all call."""
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
