"""Features, labels and splits from files to the owners of the rows.

Rank 0 reads a piece of rows at a time and deals it; it holds the offsets of sparse features and a byte of
splits for every node besides, no rank anything else but its own rows. The rows that a rank gets do not depend
on the number of ranks.
"""

import json
from dataclasses import replace
from typing import Any

import numpy as np

from app.case.config import Case
from app.case.graph import WORDS, GraphCase
from app.case.rules.graphs import LIKE_CLASSIFY
from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.formats.source import Limits
from app.graphs.keys import sorted_set
from app.graphs.nodes.data import (
    MOST_CLASSES,
    SPLITS,
    Check,
    NodeData,
    NodeTable,
    SparseFeatures,
    finite_floats,
    known_floats,
    none_missing,
    with_holes,
)
from app.graphs.nodes.files import open_node_table
from app.graphs.nodes.keyed import Nodes
from app.graphs.nodes.of_graphs import called, spread_out
from app.partition.dealer import READING, Dealer, InMemory, MakeRoom, Shape, first_old, first_part
from app.partition.generated_nodes import as_values, generated_nodes, with_degrees, with_random_splits
from app.partition.ids import ids_on_first
from app.partition.loaded import Loaded
from app.partition.node_features import dealt_features


def load_node_data(
    group: Group, table: GraphCase, loaded: Loaded, case: Case, make_room: MakeRoom = InMemory
) -> NodeData:
    """This rank's rows of what the files of a graph, or its generator, say of its nodes.

    Ranks   all call; the rows of all ranks together are the same on any number of ranks
    """
    if loaded.source == "generator":
        data = generated_nodes(group, table, loaded, case, make_room)
        data = as_values(data) if case.gnn.goal == "values" and data.classes else data
        return with_degrees(group, data, table, loaded)
    source, nodes, members, degrees = None, None, loaded.members, table.features == WORDS["features"]
    if table.node_data_by == "id":
        rows = loaded.graph, loaded.rows, loaded.order_all
        ids = ids_on_first(group, *rows) if members is None else members.ids()
        nodes = Nodes(ids, loaded.graph.name, what="node" if members is None else "graph")
    with raise_together(group, READING):
        if group.rank == 0:
            limits = Limits(int(case.memory.max_decompressed_gb * 1e9))
            source = open_node_table(
                list(loaded.paths),
                loaded.format,
                loaded.graph.n if members is None else members.count,
                limits,
                "" if degrees else table.features,
                table.labels,
                table.splits,
                nodes,
                case.gnn.goal == "values",
                members is not None,
            )
            source = replace(source, features=None) if degrees else source
            source = with_holes(source, known_by(case))
            if case.gnn.level == "edge":  # whose labels are others
                source = replace(source, labels=None, splits=None)
    data = with_degrees(group, deal_node_table(group, source, loaded, make_room), table, loaded)
    if nodes is not None:
        data = replace(data, warnings=(*nodes.warnings, *data.warnings))
    if table.splits == "random":
        data = with_random_splits(group, data, loaded, case.seed)
    return data


def known_by(case: Case) -> Check:
    """How features are checked: entries may be missing where the case says how they are filled, or trials of
    it, or its weights may; where they could be filled the refusal says so."""
    varied = any("missing_features" in each.partition(" ")[0] for each in case.study.vary)
    if case.gnn.missing_features != "refuse" or case.gnn.weights or varied:
        return known_floats
    trains = case.run.task == "classify" or case.study.kind in LIKE_CLASSIFY
    fills = trains and case.gnn.feature_rows != "one_hot"
    return none_missing if fills else finite_floats


def deal_node_table(
    group: Group, source: NodeTable | None, loaded: Loaded, make_room: MakeRoom = InMemory
) -> NodeData:
    """The rows of a table on rank 0 (others pass None) to their owners. Ranks: all call."""
    with raise_together(group, READING):
        if group.rank == 0 and loaded.members is not None:
            source = spread_out(source, loaded.members, loaded.graph.name)
        if group.rank == 0:
            rows = source if loaded.members is None else replace(source, labels=None)  # of graphs alone
            rows.check(loaded.graph.n, loaded.graph.name)
    shape = _share_shape(group, source)
    dealer = Dealer(group, loaded)
    features = dealt_features(dealer, source, shape, make_room)
    labels = _labels(dealer, source, shape)
    flags = dealer.rows(
        iter([source.splits.flags]) if first_part(group, source, "splits") else iter(()), (), np.uint8
    )
    return _finish(dealer, source, shape, features, labels, flags)


def _share_shape(group: Group, source: NodeTable | None) -> Shape:
    numbers = np.zeros(6, dtype=np.int64)
    if group.rank == 0:
        features, labels = source.features, source.labels
        numbers[:] = (
            -1 if features is None else features.width,
            isinstance(features, SparseFeatures),
            isinstance(features, SparseFeatures) and features.binary,
            -1 if labels is None else labels.columns,
            labels is not None and labels.values,
            source.splits is not None,
        )
    width, sparse, binary, labels, values, splits = group.broadcast(numbers).tolist()
    return Shape(width, bool(sparse), bool(binary), labels, bool(values), bool(splits))


def _labels(dealer: Dealer, source: NodeTable | None, shape: Shape) -> np.ndarray | None:
    """[n_own] int64, or [n_own, c] int8, -1 throughout on padding; or values [n_own, c] float64, NaN there;
    of a set the rows of graphs alone; None without labels."""
    held = first_part(dealer.group, source, "labels")
    if shape.labels < 0:
        return None
    several = np.float64 if shape.values else np.int8
    columns, kind = ((shape.labels,), several) if shape.labels else ((), np.int64)
    parts, order = (held.parts(), held.order) if held else (iter(()), None)
    own = dealer.rows(parts, columns, kind, order, dealer.graphs)
    if dealer.graphs is None:
        own[dealer.hi - dealer.lo :] = np.nan if shape.values else -1
    return own


def _finish(
    dealer: Dealer, source: NodeTable | None, shape: Shape, features: Any, labels: Any, flags: np.ndarray
) -> NodeData:
    """The classes numbered, training without labels refused, and everything counted. Ranks: all call."""
    group, multilabel = dealer.group, shape.labels > 0 and not shape.values
    labelled, rows = np.zeros(dealer.n_own, bool), slice(None) if dealer.graphs is None else dealer.graphs
    if shape.values:
        has = ~np.isnan(labels).all(axis=1)
    elif labels is not None:
        has = (labels >= 0).any(axis=1) if multilabel else labels >= 0
    if labels is not None:
        labelled[rows] = has
    class_ids, class_names = np.arange(max(shape.labels, 0)), ()
    if shape.labels == 0:
        class_ids = class_ids_of(group, source, labels[has])
        numbered = np.searchsorted(class_ids, labels).astype(np.int32)
        labels = np.where(has, numbered, np.int32(-1))
        held = first_part(group, source, "labels")
        class_names = tuple(json.loads(group.broadcast_text(json.dumps(held.names if held else ()))))
    elif multilabel and not group.max_integer(int((labels[has] < 0).any())):
        labels = np.maximum(labels, 0, out=labels).view(np.uint8)
    given = getattr(first_part(group, source, "features"), "names", ())
    columns = tuple(json.loads(group.broadcast_text(json.dumps(given))))
    warnings = ()
    if labels is not None:
        flags, warnings = _labelled_splits(dealer, source, flags, labelled)
    masks = {name: flags & bit > 0 for name, bit in SPLITS.items()}
    sizes = group.sum_integers(np.array([mask.sum() for mask in masks.values()])).tolist()
    return NodeData(
        features=features, labels=labels, labelled=labelled, **masks, classes=len(class_ids),
        multilabel=multilabel, class_ids=class_ids, width=max(shape.features, 0), binary=shape.binary,
        counts=dict(zip(masks, sizes)), warnings=warnings, values=shape.values,
        class_names=class_names, columns=columns,
        numbers=dealer.padded_old, rows=None if labels is None else dealer.graphs,
    )  # fmt: skip


def class_ids_of(group: Group, source: NodeTable | None, found: np.ndarray) -> np.ndarray:
    """[classes] int64: the labels [k] that occur on any rank, ascending. Ranks: all call."""
    mine = sorted_set(found)
    sizes = group.gather_integers(np.array([min(len(mine), MOST_CLASSES + 1)]))[:, 0].tolist()
    ids = sorted_set(group.gather_host(mine[: sizes[group.rank]], sizes))
    with raise_together(group, READING):
        if len(ids) > MOST_CLASSES and group.rank == 0:
            right = f"at most {MOST_CLASSES} classes would be right"
            raise source.labels.refuse(f"found more than {MOST_CLASSES} different labels; {right}")
    return ids


def _labelled_splits(
    dealer: Dealer, source: NodeTable | None, flags: np.ndarray, labelled: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Splits without held-back nodes that have no label; one to train on must have it. Ranks: all call."""
    group, train = dealer.group, SPLITS["train"]
    first = first_old(dealer, np.flatnonzero((flags & train > 0) & ~labelled))
    with raise_together(group, READING):
        if first is not None and group.rank == 0:
            right = f"a label, or a {dealer.what} outside train, would be right"
            found = f"found {called(dealer.members, first)} in train, which has no label"
            raise source.splits.refuse(f"{found}; {right}")
    missing = (flags > 0) & ~labelled
    count = int(group.sum_integers(np.array([missing.sum()]))[0])
    text = f"{dealer.graph.name}: {count} held-back {dealer.what}s have no label and are left out"
    return np.where(missing, np.uint8(0), flags), (text,) if count else ()
