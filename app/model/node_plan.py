"""What classifying nodes will take of a rank's memory, from headers alone (--dry-run)."""

from collections.abc import Iterator

import numpy as np

from app.config import Case
from app.gnn.rehearsal import memory_lines, rehearse
from app.gnn.saved import load_model
from app.graphs.node_files import open_node_table
from app.graphs.nodedata import DenseFeatures, Labels
from app.graphs.source import Limits

UNKNOWN = "the memory of the layers, and what moves under memory.fast_mb, is known once the graph is read"


def node_plan_lines(case: Case, nodes: int | None, ranks: int, device: object) -> Iterator[str]:
    """The buffers of an epoch and, where they pass memory.fast_mb, the plan of what moves.

    nodes   of the graph, None: not known before it is read
    Every rank is taken to own an equal share of the rows.
    """
    if nodes is None or not case.gnn.epochs:
        yield UNKNOWN
        return
    features, dense, classes = _widths(case, nodes)
    gnn = case.gnn
    if gnn.weights:
        saved = load_model(gnn.weights)
        gnn, classes = saved.architecture_of(gnn), saved.classes
    n_own = -(-nodes // (8 * ranks)) * 8
    yield from memory_lines(
        rehearse(device, gnn, n_own, features, dense, classes), round(case.memory.fast_mb * 1e6)
    )


def _widths(case: Case, nodes: int) -> tuple[int, bool, int]:
    """Features, whether they are dense, and classes; without features every node has one of its own."""
    table = case.graph
    if table.generator:
        features = table.random_features
        return features or nodes, bool(features), table.random_classes
    limits = Limits(int(case.memory.max_decompressed_gb * 1e9))
    splits = "" if table.splits == "random" else table.splits
    paths = [table.path] if isinstance(table.path, str) else list(table.path)
    found = open_node_table(paths, table.format, nodes, limits, table.features, table.labels, splits)
    classes = 0
    if found.labels is not None:
        classes = found.labels.columns or _count_classes(found.labels)
    if found.features is None:
        return nodes, False, classes
    return found.features.width, isinstance(found.features, DenseFeatures), classes


def _count_classes(labels: Labels) -> int:
    """How many different classes occur."""
    seen = np.empty(0, dtype=np.int64)
    for part in labels.parts():
        seen = np.union1d(seen, part)
    return int((seen >= 0).sum())
