"""Cuts of graphs that are built already, one set of cuts for all of them.

By the rows and edges of them all, or by a cost model that an earlier run learned (ROC section 4: new
graphs, not measured yet), whatever layers it was learned for: the rows of policies are cut by any.
`classify` cuts by a model of its own layers alone, which are known once the data are (gnn/balanced.py).
"""

from dataclasses import replace

import numpy as np

from app.case.config import Case
from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.graph import Graph
from app.partition.cost import CostModel, parse_cost_model, read_text
from app.partition.cuts import best_cuts
from app.partition.even import entries_weights
from app.partition.features import block_features
from app.partition.loaded import Loaded
from app.partition.migrate import move_rows
from app.partition.rows import RowPartition, cut_blocks


def read_cost_model(group: Group, case: Case) -> CostModel | None:
    """What rank 0 finds in parallel.cost_model, on all ranks; None unless "learned". Ranks: all call."""
    path, text = case.parallel.cost_model, ""
    if case.parallel.partition != "learned" or not path:
        return None
    with raise_together(group, f"reading {path}"):
        if group.rank == 0:
            text = read_text(path)
    return parse_cost_model(group.broadcast_text(text), path)


def recut(
    group: Group, held: list[tuple[Graph, RowPartition]], model: CostModel
) -> list[tuple[Graph, RowPartition]]:
    """Graphs by cuts that balance the predicted time of them all; they share their number of blocks.

    Ranks   all call
    """
    if group.size == 1 or not held:
        return held
    costs = 0.0
    for graph, rows in held:
        features = block_features(group, graph, rows, list(model.widths), model.line)
        costs = costs + model.block_seconds(features)
    # Rank 0 decides: on unlike processors the sums might differ in their last bits.
    cuts = np.zeros(group.size + 1, dtype=np.int64)
    if group.rank == 0:
        cuts[:] = best_cuts(costs, group.size)
    return _moved(group, held, group.broadcast(cuts))


def recut_evenly(group: Group, held: list[tuple[Graph, RowPartition]]) -> list[tuple[Graph, RowPartition]]:
    """Graphs by cuts that give every rank an equal share of the rows and edges of them all.

    held    share their number of blocks
    Ranks   all call
    """
    if group.size == 1 or not held:
        return held
    weights = sum(entries_weights(group, graph, rows.starts) for graph, rows in held)
    return _moved(group, held, cut_blocks(np.asarray(weights), group.size))


def _moved(
    group: Group, held: list[tuple[Graph, RowPartition]], cuts: np.ndarray
) -> list[tuple[Graph, RowPartition]]:
    out = []
    for graph, rows in held:
        new = RowPartition(rows.n, rows.starts, cuts)
        out.append((move_rows(group, graph, rows, new), new))
    return out


def recut_all(
    group: Group, items: list[Loaded], model: CostModel | None, balance: str = "rows"
) -> list[Loaded]:
    """Graphs of equally many blocks, cut as a cost model wants; without one as parallel.partition does.

    balance   "rows": as they are
    Ranks     all call
    """
    if model is None and balance == "rows":
        return items
    held = [(item.graph, item.rows) for item in items]
    moved = recut_evenly(group, held) if model is None else recut(group, held, model)
    return [replace(item, graph=graph, rows=rows) for item, (graph, rows) in zip(items, moved)]
