"""Task study, kind rgcn: time against parts, in parallel and multiplexed (Kibata et al. 2020, section 4).

In parallel, k ranks hold one group of relations each; multiplexed, one rank processes k groups one after the
other. Ranks may share cores, so what counts are seconds of the processor without those in MPI calls, of the
slowest rank; the least epoch counts, since disturbances only add.
"""

import json
import time
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from msgspec import structs

from app.case.rgcn import RgcnCase
from app.comm.group import Group
from app.comm.guard import digest
from app.errors import CaseError
from app.gnn.rgcn.training import Course, train_rgcn
from app.gnn.work_clock import WorkClock
from app.graphs.triples.data import NodeLabels
from app.graphs.triples.relational import RelationalGraph, nodes_by_layer, relational_graph
from app.partition.relations import GROUPINGS, part_sizes
from app.plots.runs import plot_relations
from app.tasks.context import Context
from app.tasks.rgcn_inputs import load_triples
from app.tasks.studies.cells import cell

COLUMNS = (
    "graph", "grouping", "mode", "parts", "ranks", "work_s", "forward_s", "backward_s", "wall_s", "speedup",
    "digest",
)  # fmt: skip
SIZE_COLUMNS = (
    "graph",
    "grouping",
    "parts",
    "part",
    "relations",
    "edges",
    "nodes",
    "rows",
    "weights",
    "bound",
)
Row = dict[str, Any]


def run_relations(context: Context) -> dict[str, Any]:
    """Measure every grouping, mode and number of parts on [graph]; tables and plot. Ranks: all call."""
    case, group, log = context.case, context.group, context.log
    triples, labels = load_triples(context)
    if labels is None:
        raise CaseError("graph.path: holds no labels; a knowledge graph with labels would be right")
    if case.memory.fast_mb or case.graph.features:
        key = "memory.fast_mb" if case.memory.fast_mb else "graph.features"
        raise CaseError(f"{key}: is not read by study.kind rgcn, whose first layer is one-hot and in memory")
    if case.rgcn.keep != "last" or case.rgcn.patience:
        key = "rgcn.patience" if case.rgcn.patience else "rgcn.keep"
        raise CaseError(f"{key}: is not read by study.kind rgcn, which clocks all epochs; leave it out")
    if case.study.epochs == 1:
        raise CaseError("study.epochs: the first epoch is not clocked; 2 or more would be right, got 1")
    graph = relational_graph(triples, case.rgcn.inverse, case.rgcn.min_edges)
    with log.phase("measure"):
        rows = [
            cell(context, " ".join(map(str, each)), partial(_measured, context, graph, labels, *each))
            for each in _runs(group, case.study.parts)
        ]
    for row in rows:
        whole = next(each for each in rows if each["parts"] == 1 and each["grouping"] == row["grouping"])
        row["speedup"] = round(whole["work_s"] / row["work_s"], 3)
    sizes = _sizes(context, graph, labels)
    same = len({row["digest"] for row in rows}) == 1
    _say(context, rows, sizes, same)
    if context.folder is not None:
        context.folder.write_csv("relations.csv", COLUMNS, rows)
        context.folder.write_csv("sizes.csv", SIZE_COLUMNS, sizes)
        context.folder.write_json("relations.json", {"rows": rows, "sizes": sizes})
        if case.output.plots:
            plot_relations(context.folder, log, rows, f"{graph.name}, an epoch, {words_of(case.rgcn)}")
    return {"digest": rows[0]["digest"], "same_bits": same, "rows": rows, "sizes": sizes, "instances": []}


def _runs(group: Group, parts: list[int]) -> list[tuple[str, str, int]]:
    """(grouping, mode, parts): one part first; in parallel as far as there are ranks."""
    counts = sorted({1, *parts})
    modes = [("multiplexed", k) for k in counts]
    modes += [("parallel", k) for k in counts if 1 < k <= group.size]
    return [(grouping, mode, k) for grouping in GROUPINGS for mode, k in modes]


def _measured(
    context: Context, graph: RelationalGraph, labels: NodeLabels, grouping: str, mode: str, parts: int
) -> Row:
    """A line of the table, the same on all ranks. Ranks: all call."""
    ranks = parts if mode == "parallel" else 1
    settings = structs.replace(
        context.case.rgcn, partition="relations", grouping=grouping, parts=parts // ranks, evaluate_every=1,
        epochs=context.case.study.epochs,
    )  # fmt: skip
    found = ""
    part = context.group.first(ranks)
    if part is not None:
        seconds, bits = _epochs(part, graph, labels, settings, context.case.seed)
        found = json.dumps({**seconds, "digest": bits})
    row = json.loads(context.group.broadcast_text(found, 0))
    place = {"graph": graph.name, "grouping": grouping, "mode": mode, "parts": parts, "ranks": ranks}
    return {**place, **row}


def _epochs(
    group: Group, graph: RelationalGraph, labels: NodeLabels, case: Any, seed: int
) -> tuple[dict[str, float], str]:
    """The least seconds of an epoch and of each direction, the digest of the weights. Ranks: all call."""
    clock, nets, marks = WorkClock(group, 1), [], []

    def record(_: dict[str, float]) -> None:
        kinds = nets[0].clock.seconds
        ways = [sum(s for kind, s in kinds.items() if kind.endswith(way)) for way in ("forward", "backward")]
        marks.append((clock.now(), *ways, time.perf_counter()))

    found = train_rgcn(group, graph, labels, case, seed, course=Course(record, begin=nets.append))
    microseconds = np.rint(1e6 * np.diff(np.array(marks), axis=0).min(axis=0)).astype(np.int64)
    slowest = group.gather_integers(microseconds).max(axis=0) / 1e6
    names = ("work_s", "forward_s", "backward_s", "wall_s")
    bits = digest({"predictions": found.predictions, **found.net.whole_weights(group)})
    return dict(zip(names, slowest.tolist())), bits


def _sizes(context: Context, graph: RelationalGraph, labels: NodeLabels) -> list[Row]:
    """What each part holds of the first layer, by grouping and number of parts (Tables 3 and 4)."""
    case, rows = context.case.rgcn, []
    made = nodes_by_layer(graph, labels.nodes, case.layers, case.prune)[1]
    used = graph.of_targets(made)
    for grouping, group_by in GROUPINGS.items():
        for parts in sorted({1, *context.case.study.parts}):
            part_of = group_by(used.edge_counts(), parts)
            for number, size in enumerate(part_sizes(used, part_of, parts, case.hidden, len(made)), 1):
                part = "self-loops" if number > parts else str(number)
                place = {"graph": graph.name, "grouping": grouping, "parts": parts, "part": part}
                rows.append({**place, **asdict(size)})
    return rows


def _say(context: Context, rows: list[Row], sizes: list[Row], same: bool) -> None:
    """Times, then the sizes at the largest number of parts."""
    log = context.log
    head = ["equal", "mode", "parts", "ms of work an epoch", "times faster", "forward ms", "backward ms"]
    table = [[*head, "wall ms"]]
    for row in rows:
        work, *more = (f"{1e3 * row[f'{key}_s']:.1f}" for key in ("work", "forward", "backward", "wall"))
        table.append([row["grouping"], row["mode"], str(row["parts"]), work, f"{row['speedup']:.2f}", *more])
    log.table(table)
    most = max(row["parts"] for row in sizes)
    table = [["equal", f"part of {most}", "relations", "edges", "nodes", "stored MB", "|R||V||H| MB"]]
    for row in (each for each in sizes if each["parts"] == most):
        counts = [str(row[key]) for key in ("part", "relations", "edges", "nodes")]
        table.append([row["grouping"], *counts, *(f"{4e-6 * row[key]:.2f}" for key in ("weights", "bound"))])
    log.table(table)
    log.info("results of all: %s", "the same bits" if same else "DIFFERENT BITS")


def words_of(case: RgcnCase) -> str:
    """How relations' weights are put together."""
    return f"{case.blocks} blocks" if case.blocks else f"{case.bases} bases"
