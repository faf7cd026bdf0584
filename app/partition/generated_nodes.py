"""What no file says of nodes: degrees as features, generated features and labels, splits that are drawn."""

from dataclasses import replace

import numpy as np

from app.case.config import Case
from app.case.graph import PLANTED, WORDS, GraphCase
from app.comm.group import Group
from app.errors import GraphError
from app.graphs.generators.motifs import motif_of
from app.graphs.generators.random_nodes import random_features, random_labels, random_splits
from app.graphs.nodes.data import SPLITS, NodeData, rows_per_piece
from app.graphs.nodes.degrees import degree_features
from app.partition.dealer import MakeRoom, made_room, old_numbers, own_old_rows, padded
from app.partition.generators import drawn_of
from app.partition.loaded import Loaded


def with_degrees(group: Group, data: NodeData, table: GraphCase, loaded: Loaded) -> NodeData:
    """Degrees as features, where a table asks for them, and of a set of graphs that have no others.

    Ranks   each by itself
    """
    wanted = WORDS["features"], *([""] if loaded.members is not None else [])
    if data.features is not None or table.features not in wanted:
        return data
    nodes, graph = np.ones(loaded.graph.hi - loaded.graph.lo, dtype=bool), loaded.graph
    if loaded.members is not None:
        nodes = ~loaded.members.own_of(graph.lo, graph.hi)
    X_own = degree_features(graph.degrees(), nodes, padded(loaded.rows, group.rank))
    return replace(data, features=X_own, width=X_own.shape[1], binary=True, numbers=None)


def _labels_of_graphs(table: GraphCase, loaded: Loaded, case: Case) -> np.ndarray:
    """[k] int32, the classes of generated graphs, those whose own row is here: their motifs, or drawn."""
    members, graph, classes = loaded.members, loaded.graph, table.random_classes
    if table.generator == "motifs":
        each = motif_of(drawn_of(table, case.seed, "instances")[1], classes)
    else:
        each = random_labels(loaded.seed, members.count, classes, np.arange(members.count), False)
    return each[members.graph_of(graph.lo, graph.hi)[members.own_of(graph.lo, graph.hi)]].astype(np.int32)


def generated_nodes(
    group: Group, table: GraphCase, loaded: Loaded, case: Case, make_room: MakeRoom
) -> NodeData:
    """Random features, labels and splits: each a function of (seed, node), made where the row lives."""
    n, seed, classes = loaded.graph.n, loaded.seed, table.random_classes
    old, n_own = own_old_rows(loaded, group.rank), padded(loaded.rows, group.rank)
    planted = table.generator in PLANTED and loaded.members is None
    labels, graphs, labelled = np.full(n_own, -1, dtype=np.int32), None, np.zeros(n_own, dtype=bool)
    if classes and loaded.members is not None:
        labels = _labels_of_graphs(table, loaded, case)
        graphs = np.flatnonzero(loaded.members.own_of(loaded.graph.lo, loaded.graph.hi))
    elif classes:
        labels[: len(old)] = random_labels(seed, n, classes, old, planted)
    labelled[slice(None) if graphs is None else graphs] = labels >= 0
    width = 0 if table.features == WORDS["features"] else table.random_features
    features = None
    if width:
        room = made_room(group, n_own, width, make_room)
        features, step = room.array, rows_per_piece(4 * width)
        for at in range(0, len(old), step):
            rows = slice(at, min(at + step, len(old)))
            planted_labels = labels[rows] if planted else None
            random_features(seed, old[rows], width, planted_labels, classes, table.signal, out=features[rows])
            room.done(rows)
    data = NodeData(
        features=features, labels=labels if classes else None, labelled=labelled, train=labelled,
        val=labelled, test=labelled, classes=classes, multilabel=False, class_ids=np.arange(classes),
        width=width, binary=False, counts=dict.fromkeys(SPLITS, 0),
        numbers=old_numbers(loaded, group.rank), rows=graphs,
    )  # fmt: skip
    return with_random_splits(group, data, loaded, seed) if classes else data


def as_values(data: NodeData) -> NodeData:
    """The numbers of generated classes as numbers to be predicted."""
    values = np.where(data.among(data.labelled), data.labels, np.nan)[:, None]
    return replace(data, labels=values, classes=1, class_ids=np.arange(1), values=True)


def all_in_test(group: Group, data: NodeData) -> NodeData:
    """All labelled nodes in the test set. Ranks: all call."""
    masks = {name: data.labelled & (name == "test") for name in SPLITS}
    sizes = group.sum_integers(np.array([mask.sum() for mask in masks.values()])).tolist()
    return replace(data, **masks, counts=dict(zip(masks, sizes)))


def with_random_splits(group: Group, data: NodeData, loaded: Loaded, seed: int) -> NodeData:
    """Every labelled node in a set of its own draw: train, val, test by .6, .2, .2. Ranks: all call."""
    if data.labels is None:
        raise GraphError(
            f"{loaded.graph.name}: has no labels; splits need them: graph.labels = FILE would be right"
        )
    flags = np.zeros(len(data.labelled), dtype=np.uint8)
    old = own_old_rows(loaded, group.rank)
    flags[: len(old)] = random_splits(seed, old)
    masks = {name: (flags & bit > 0) & data.labelled for name, bit in SPLITS.items()}
    counts = dict(zip(masks, group.sum_integers(np.array([mask.sum() for mask in masks.values()])).tolist()))
    empty = " and ".join(name for name, count in counts.items() if not count)
    what = "node" if loaded.members is None else "graph"
    said = f"{loaded.graph.name}: random splits leave {empty} empty (each {what} is drawn by itself)"
    return replace(data, **masks, counts=counts, warnings=(*data.warnings, *([said] if empty else [])))
