"""Labels and splits of edges from files, a caller or a generator to the owners of the rows of both ends.

They travel as features of edges do (edge_data.py): rank 0 reads, and a rank holds those of its own entries.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.case.config import Case
from app.case.graph import PLANTED, WORDS, GraphCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import GraphError
from app.graphs.formats.source import Limits
from app.graphs.generators.random_nodes import communities, random_classes, random_splits
from app.graphs.nodes.data import SPLITS, DenseFeatures, Labels, NodeData, NodeTable, Splits
from app.graphs.nodes.files import open_edge_table
from app.graphs.nodes.keyed import Nodes
from app.graphs.nodes.of_edges import EdgeLabels
from app.partition.edge_data import Dealer, Piece, Wanted, new_rows, pieces_in_order
from app.partition.ids import ids_on_first
from app.partition.loaded import Loaded
from app.partition.nodes import class_ids_of
from app.partition.scatter import rounds

READING = "reading the labels of edges"
KINDS = {"classes": (np.int64, -1), "labels": (np.int8, -1), "values": (np.float64, np.nan)}
STEP = 1 << 20  # entries that are looked at together


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """What rank 0 has read of a graph's edges; None for what there is none of.

    label_ends, split_ends   [k, 2] int64, the rows of the ends that each row is of, in the order that they
                             had before they were ordered; None: of the edges as the graph lists them
    """

    labels: Labels | None = None
    splits: Splits | None = None
    label_ends: np.ndarray | None = None
    split_ends: np.ndarray | None = None


def load_edge_labels(group: Group, loaded: Loaded, case: Case) -> EdgeLabels:
    """This rank's entries of what the files of a graph, or its generator, say of its edges. Ranks: all call.

    Raises GraphError, CaseError on all
    """
    table, found, nodes = case.graph, EdgeTable(), Nodes()
    if loaded.source == "generator":
        return _generated(group, table, loaded, case)
    by_ends = table.edge_data_by == "ends"
    if by_ends:
        nodes = Nodes(ids_on_first(group, loaded.graph, loaded.rows, loaded.order_all), loaded.graph.name)
    with raise_together(group, READING):
        if group.rank == 0:
            limits = Limits(int(case.memory.max_decompressed_gb * 1e9))
            splits = "" if table.edge_splits == WORDS["edge_splits"] else table.edge_splits
            named, by = (table.edge_labels, splits), nodes if by_ends else None
            more = limits, case.gnn.goal == "values", by, lambda: _count(loaded)
            found = EdgeTable(*open_edge_table(loaded.stream, *named, *more))
    labels = deal_edge_table(group, found, loaded, case)
    return replace(labels, about=replace(labels.about, warnings=(*nodes.warnings, *labels.about.warnings)))


def _count(loaded: Loaded) -> int:
    """Edges as the graph lists them."""
    return sum(len(u) for u, _, _ in loaded.stream.chunks())


def deal_edge_table(group: Group, table: EdgeTable, loaded: Loaded, case: Case) -> EdgeLabels:
    """The rows of a table on rank 0 (others pass any) to the owners of both ends. Ranks: all call."""
    told = np.zeros(3, dtype=np.int64)
    with raise_together(group, READING):
        if group.rank == 0:
            labels, splits = table.labels, table.splits
            told[0] = -1 if labels is None else labels.columns
            told[1:] = labels is not None and labels.values, splits is not None
            if loaded.complemented and (labels is not None or splits is not None):
                right = "false would be right"
                raise GraphError(f"graph.complement: the edges of a complement have no labels; {right}")
    columns, values, split = group.broadcast(told).tolist()
    kind = "values" if values else "labels" if columns > 0 else "classes"
    rows = None
    if columns >= 0:
        wanted = Wanted(*KINDS[kind], what="labels", whole=False)
        rows = _dealt(
            group, loaded, _flat(table.labels, KINDS[kind][0]), table.label_ends, max(columns, 1), wanted
        )
    flags = np.zeros(len(loaded.graph.indices), dtype=np.uint8)
    if split:
        told = None if group.rank else _of_splits(table.splits)
        flags = _dealt(group, loaded, told, table.split_ends, 1, Wanted(np.uint8, 0, "splits", False))[:, 0]
    about = _about(group, loaded, table, kind, rows)
    if case.graph.edge_splits == WORDS["edge_splits"] and not split:
        flags = np.where(about.labelled, _drawn_splits(loaded, case.seed), np.uint8(0))
    return _with_sets(group, loaded, table, about, flags)


def _flat(labels: Labels | None, kind: type) -> DenseFeatures | None:
    """Labels as rows."""
    if labels is None:
        return None

    def parts() -> Iterator[np.ndarray]:
        yield from (part.reshape(len(part), -1) for part in labels.parts())

    what = "labels of edges"
    return DenseFeatures(labels.n, max(labels.columns, 1), parts, labels.refuse, kind=kind, what=what)


def _of_splits(splits: Splits) -> DenseFeatures:
    """Sets as rows."""
    parts = lambda: iter([splits.flags[:, None]])  # noqa: E731
    return DenseFeatures(splits.n, 1, parts, splits.refuse, kind=np.uint8, what="splits of edges")


def _dealt(
    group: Group, loaded: Loaded, told: DenseFeatures | None, ends: np.ndarray | None, width: int,
    wanted: Wanted,
) -> np.ndarray:  # fmt: skip
    """[nnz, width], rows on rank 0 (None elsewhere) by the entries of own rows. Ranks: all call."""
    ids = ids_on_first(group, loaded.graph, loaded.rows, loaded.order_all)
    dealer = Dealer(group, loaded, width, "both", wanted)
    pieces: Iterator[Piece] = iter(())
    if told is not None:
        pieces = pieces_in_order(loaded, told, ids) if ends is None else _by_ends(loaded, told, ends)
    for piece in rounds(group, pieces, READING):
        dealer.deal(piece)
    return dealer.finish().heard.values


def _by_ends(loaded: Loaded, told: DenseFeatures, ends: np.ndarray) -> Iterator[Piece]:
    """Rows by the numbers of the rows of their ends [k, 2], some at a time."""
    new_of, at = new_rows(loaded), 0
    for X in told.parts():
        pairs = ends[at : at + len(X)]
        pairs = pairs if new_of is None else new_of[pairs]
        yield pairs[:, 0], pairs[:, 1], at, X
        at += len(X)


# ---- what was dealt ---------------------------------------------------------------------------------------


def _about(group: Group, loaded: Loaded, table: EdgeTable, kind: str, rows: np.ndarray | None) -> NodeData:
    """Labels of entries, without sets: the classes numbered. Ranks: all call."""
    entries, names = len(loaded.graph.indices), ()
    ids, labelled, labels = np.arange(0), np.zeros(entries, dtype=bool), rows
    if kind == "values" and rows is not None:
        ids, labelled = np.arange(rows.shape[1]), ~np.isnan(rows).all(axis=1)
    elif kind == "labels" and rows is not None:
        ids, labelled = np.arange(rows.shape[1]), (rows >= 0).any(axis=1)
        if not group.max_integer(int((rows[labelled] < 0).any())):
            labels = np.maximum(rows, 0).view(np.uint8)
    elif rows is not None:
        labelled = rows[:, 0] >= 0
        with_labels = NodeTable(labels=table.labels) if group.rank == 0 else None
        ids = class_ids_of(group, with_labels, rows[labelled, 0])
        labels = np.where(labelled, np.searchsorted(ids, rows[:, 0]), -1).astype(np.int32)
        found = table.labels.names if group.rank == 0 else ()
        names = tuple(json.loads(group.broadcast_text(json.dumps(found))))
    return labels_alone(labels, labelled, ids, kind, names)


def labels_alone(
    labels: np.ndarray | None, labelled: np.ndarray, ids: np.ndarray, kind: str, names: tuple[str, ...] = ()
) -> NodeData:
    """NodeData of labels of entries, of a kind of KINDS; in no set."""
    none, counts = np.zeros(len(labelled), dtype=bool), dict.fromkeys(SPLITS, 0)
    return NodeData(
        None, labels, labelled, none, none, none, len(ids), kind == "labels", ids, 0, False, counts,
        values=kind == "values", class_names=names,
    )  # fmt: skip


def _with_sets(
    group: Group, loaded: Loaded, table: EdgeTable, about: NodeData, flags: np.ndarray
) -> EdgeLabels:
    """The sets of labelled edges, counted; one to train on must have a label. Ranks: all call."""
    graph = loaded.graph
    for name in ("test", "val"):
        both = SPLITS["train"] | SPLITS[name]
        right = "an edge in one of them would be right"
        said = f"in both train and {name}; {right}"
        _refuse_any(group, loaded, table, flags & both == both, said)
    has = about.labels is not None
    if has:
        right = "a label, or an edge outside train, would be right"
        wrong = (flags & SPLITS["train"] > 0) & ~about.labelled
        _refuse_any(group, loaded, table, wrong, f"in train, which has no label; {right}")
    first = graph.row_of() < graph.indices
    missing = (flags > 0) & ~about.labelled
    masks = {name: (flags & bit > 0) & ~missing for name, bit in SPLITS.items()}
    sums = [(each & first).sum() for each in (*masks.values(), missing)]
    *sizes, left = group.sum_integers(np.array(sums)).tolist()
    said = (f"{graph.name}: {left} held-back edges have no label and are left out",) if left and has else ()
    lo, hi = loaded.rows.offsets[group.rank : group.rank + 2]
    counts = np.zeros(int(hi - lo), dtype=np.int64)
    counts[: graph.hi - graph.lo] = graph.degrees()
    about = replace(about, **masks, counts=dict(zip(masks, sizes)), warnings=said)
    return EdgeLabels(counts, first, about)


def _refuse_any(group: Group, loaded: Loaded, table: EdgeTable, wrong: np.ndarray, said: str) -> None:
    """Refuse on all ranks the first entry [nnz] bool that is wrong on some. Ranks: all call."""
    graph, at = loaded.graph, np.flatnonzero(wrong)
    with raise_together(group, READING):
        if len(at):
            row = graph.lo + int(np.searchsorted(graph.indptr, at[0], side="right")) - 1
            edge = graph.called(row, int(graph.indices[at[0]]))
            raise GraphError(f"splits of edges: found edge {edge} {said}")


# ---- what is drawn ----------------------------------------------------------------------------------------


def _keys(loaded: Loaded) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Own entries, some at a time, with the smaller and the larger old number of their ends."""
    graph, old = loaded.graph, loaded.order_all
    rows = graph.row_of()
    for lo in range(0, len(rows), STEP):
        part = slice(lo, lo + STEP)
        u, v = rows[part].astype(np.int64), graph.indices[part].astype(np.int64)
        u, v = (u, v) if old is None else (old[u], old[v])
        yield part, np.minimum(u, v), np.maximum(u, v)


def numbers_of_edges(loaded: Loaded) -> np.ndarray:
    """[nnz] int64, of each own entry the number of its edge, the same from both ends, whatever ranks and
    order."""
    numbers = np.empty(len(loaded.graph.indices), dtype=np.int64)
    for part, low, high in _keys(loaded):
        numbers[part] = low * loaded.graph.n + high
    return numbers


def _drawn_splits(loaded: Loaded, seed: int) -> np.ndarray:
    """[nnz] uint8, sets by .6, .2, .2: a function of the seed and the two ends."""
    flags = np.zeros(len(loaded.graph.indices), dtype=np.uint8)
    for part, low, high in _keys(loaded):
        flags[part] = random_splits(seed, low * loaded.graph.n + high, "edges/splits")
    return flags


def _generated(group: Group, table: GraphCase, loaded: Loaded, case: Case) -> EdgeLabels:
    """Of communities that are planted whether an edge joins two of them (1) or lies in one (0); of other
    graphs classes that are drawn. Ranks: each by itself, and all count."""
    n, seed, graph = loaded.graph.n, loaded.seed, loaded.graph
    planted, classes = table.generator in PLANTED, table.random_classes
    labels = np.full(len(graph.indices), -1, dtype=np.int32)
    side = communities(seed, n, classes) if planted else None
    for part, low, high in _keys(loaded):
        if planted:
            labels[part] = side[low] != side[high]
        elif classes:
            labels[part] = random_classes(seed, low * n + high, classes, "edges/labels")
    kinds = (2 if planted else classes) if classes else 0
    about = labels_alone(labels if kinds else None, labels >= 0, np.arange(kinds), "classes")
    if case.gnn.goal == "values" and kinds:
        about = labels_alone(labels[:, None].astype(np.float64), labels >= 0, np.arange(1), "values")
    wanted = table.edge_splits == WORDS["edge_splits"]
    flags = _drawn_splits(loaded, case.seed) if wanted else np.zeros(len(labels), dtype=np.uint8)
    flags[~about.labelled] = 0
    return _with_sets(group, loaded, EdgeTable(), about, flags)


def edges_in_test(group: Group, labels: EdgeLabels) -> EdgeLabels:
    """All labelled edges in the test set. Ranks: all call."""
    about = labels.about
    masks = {name: about.labelled & (name == "test") for name in SPLITS}
    sums: list[Any] = [(mask & labels.first).sum() for mask in masks.values()]
    counts = dict(zip(masks, group.sum_integers(np.array(sums)).tolist()))
    return replace(labels, about=replace(about, **masks, counts=counts))
