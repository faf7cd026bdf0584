"""Features, labels and splits from files to the owners of the rows.

Rank 0 reads a piece of rows at a time and deals it; it holds the offsets of sparse features and a byte of
splits for every node besides, no rank anything else but its own rows. The rows that a rank gets do not depend
on the number of ranks.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from app.case.config import Case
from app.case.graph import PLANTED, WORDS, GraphCase
from app.case.rules.graphs import LIKE_CLASSIFY
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import GraphError
from app.graphs.formats.source import Limits
from app.graphs.generators.motifs import motif_of
from app.graphs.generators.random_nodes import random_features, random_labels, random_splits
from app.graphs.keys import sorted_set
from app.graphs.nodes.data import (
    MOST_CLASSES,
    PIECE_BYTES,
    SPLITS,
    Check,
    NodeData,
    NodeTable,
    SparseFeatures,
    finite_floats,
    known_floats,
    none_missing,
    rows_per_piece,
    with_holes,
)
from app.graphs.nodes.degrees import degree_features
from app.graphs.nodes.files import open_node_table
from app.graphs.nodes.keyed import Nodes
from app.graphs.nodes.of_graphs import called, spread_out
from app.partition.generators import drawn_of
from app.partition.ids import ids_on_first
from app.partition.loaded import Loaded
from app.partition.rows import RowPartition
from app.partition.scatter import EntryRows, rounds, send_entries, send_rows

ENTRIES = PIECE_BYTES // 8
READING = "reading the node data"


@dataclass(frozen=True)
class _Shape:
    """What every rank must know before rows are dealt; widths are -1 where there is nothing."""

    features: int  # columns
    sparse: bool
    binary: bool
    labels: int  # columns; 0: one class for each node
    values: bool  # labels are numbers to be predicted
    splits: bool


class Room(Protocol):
    """Memory for rows of features, zero at first."""

    array: np.ndarray

    def done(self, rows: slice = slice(None)) -> None:
        """For now nobody needs these rows."""


class InMemory:
    """Room in this process's memory."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.array = np.zeros(shape, dtype=np.float32)

    def done(self, rows: slice = slice(None)) -> None:
        """They stay."""


MakeRoom = Callable[[tuple[int, ...]], Room]


def load_node_data(
    group: Group, table: GraphCase, loaded: Loaded, case: Case, make_room: MakeRoom = InMemory
) -> NodeData:
    """This rank's rows of what the files of a graph, or its generator, say of its nodes.

    Ranks   all call; the rows of all ranks together are the same on any number of ranks
    """
    if loaded.source == "generator":
        data = _generated(group, table, loaded, case, make_room)
        data = _as_values(data) if case.gnn.goal == "values" and data.classes else data
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
    dealer = _Dealer(group, loaded)
    features = _features(dealer, source, shape, make_room)
    labels = _labels(dealer, source, shape)
    flags = dealer.rows(
        iter([source.splits.flags]) if _first(group, source, "splits") else iter(()), (), np.uint8
    )
    return _finish(dealer, source, shape, features, labels, flags)


def _first(group: Group, source: NodeTable | None, part: str) -> Any:
    """Rank 0's part of the table, None elsewhere."""
    return getattr(source, part) if group.rank == 0 else None


def _share_shape(group: Group, source: NodeTable | None) -> _Shape:
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
    return _Shape(width, bool(sparse), bool(binary), labels, bool(values), bool(splits))


class _Dealer:
    """Sends pieces of consecutive old rows, read on rank 0, to the owners of the new ones.

    new_of   [n] int64 on rank 0, the new number of each old row; None: the numbers are the same
    graphs   [k] int64, the own rows of graphs of a set; None of one graph
    """

    def __init__(self, group: Group, loaded: Loaded) -> None:
        self.group, self.partition, self.graph = group, loaded.rows, loaded.graph
        self.members = loaded.members
        self.lo, self.hi = loaded.rows.range_of(group.rank)
        offsets = loaded.rows.offsets
        self.n_own = int(offsets[group.rank + 1] - offsets[group.rank])
        self.new_of = None
        if loaded.order_all is not None and group.rank == 0:
            self.new_of = np.empty(loaded.graph.n, dtype=np.int64)
            self.new_of[loaded.order_all] = np.arange(loaded.graph.n)
        self.graphs = None if self.members is None else np.flatnonzero(self.members.own_of(self.lo, self.hi))
        self.old_own = own_old_rows(loaded, group.rank)
        self.padded_old = _numbers(loaded, group.rank)

    @property
    def what(self) -> str:
        """What labels are of."""
        return "node" if self.members is None else "graph"

    def numbers(self, at: int, count: int, order: np.ndarray | None = None) -> np.ndarray:
        """[count] int64, the new numbers of old rows at, at + 1, ..., or of those in order [n]."""
        old = np.arange(at, at + count) if order is None else order[at : at + count]
        return old if self.new_of is None else self.new_of[old]

    def rows(
        self,
        pieces: Iterator[np.ndarray],
        shape: tuple[int, ...],
        kind: type,
        order: np.ndarray | None = None,
        among: np.ndarray | None = None,
    ) -> np.ndarray:
        """[n_own, *shape] of `kind`, zero on padding, from pieces [k, *shape] that rank 0 reads.

        order   [n] on rank 0, the old row of each that is read; None: they come in order
        among   [m] ascending own rows, of which alone there are rows; None: all, returns [n_own, *shape]
        """
        own = np.zeros((self.n_own if among is None else len(among), *shape), dtype=kind)
        return self.into(own, pieces, order, among=among)

    def into(
        self,
        own: np.ndarray,
        pieces: Iterator[np.ndarray],
        order: np.ndarray | None = None,
        done: Callable[[], None] = lambda: None,
        among: np.ndarray | None = None,
    ) -> np.ndarray:
        """The same into rows `own` [n_own, ...], or those of `among`; done: called after each piece."""
        shape, kind, at = own.shape[1:], own.dtype, 0
        for piece in rounds(self.group, pieces, READING):
            piece = np.empty((0, *shape), dtype=kind) if piece is None else piece.astype(kind, copy=False)
            numbers, values = send_rows(
                self.group, self.partition, self.numbers(at, len(piece), order), piece
            )
            mine = numbers - self.lo
            own[mine if among is None else np.searchsorted(among, mine)] = values
            done()
            at += len(piece)
        return own


# ---- features ---------------------------------------------------------------------------------------------


def _features(dealer: _Dealer, source: NodeTable | None, shape: _Shape, make_room: MakeRoom) -> Any:
    held = _first(dealer.group, source, "features")
    if shape.features < 0:
        return None
    if not shape.sparse:
        parts = held.parts() if held else iter(())
        room = _room(dealer.group, dealer.n_own, shape.features, make_room)
        return dealer.into(room.array, parts, held and held.order, room.done)
    counts = dealer.rows(iter([np.diff(held.indptr)]) if held else iter(()), (), np.int64)
    own, at = EntryRows(counts, np.int32, [None if shape.binary else np.float32]), 0
    for piece in rounds(dealer.group, _entry_pieces(held) if held else iter(()), READING):
        sizes, columns, values = piece or _no_entries(shape.binary)
        numbers, sizes_in, (columns, values) = send_entries(
            dealer.group, dealer.partition, dealer.numbers(at, len(sizes)), sizes, columns, values
        )
        own.put(numbers - dealer.lo, sizes_in, columns, [values])
        at += len(sizes)
    own.sort()
    _refuse_repeats(dealer, held, own)
    values = np.ones(len(own.columns), np.float32) if shape.binary else own.values[0]
    return csr_array((values, own.columns, own.indptr), shape=(dealer.n_own, shape.features))


def _room(group: Group, n_own: int, width: int, make_room: MakeRoom) -> Room:
    """Room for the own rows of dense features. Ranks: all call."""
    with raise_together(group, "making room for features"):
        room = make_room((n_own, width))
    return room


def _no_entries(binary: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    return np.empty(0, np.int64), np.empty(0, np.int32), None if binary else np.empty(0, np.float32)


def _entry_pieces(held: SparseFeatures) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """(entries of each row, columns, values) of whole rows, of about ENTRIES entries at most."""
    cuts = [0]
    while cuts[-1] < held.n:
        reached = int(np.searchsorted(held.indptr, held.indptr[cuts[-1]] + ENTRIES, side="right")) - 1
        cuts.append(min(held.n, max(reached, cuts[-1] + 1)))
    sizes = [np.diff(held.indptr[a : b + 1]) for a, b in pairwise(cuts)]
    entries = held.parts([int(each.sum()) for each in sizes])
    for each, (columns, values) in zip(sizes, entries, strict=True):
        yield each, columns, values


def _refuse_repeats(dealer: _Dealer, held: SparseFeatures | None, own: EntryRows) -> None:
    """Raise on all ranks where a row names a column twice."""
    row = np.repeat(np.arange(len(own.indptr) - 1), np.diff(own.indptr))
    twice = np.flatnonzero((own.columns[1:] == own.columns[:-1]) & (row[1:] == row[:-1]))
    first = _first_old(dealer, row[twice])
    with raise_together(dealer.group, READING):
        if first is not None and held is not None:
            graphs = 0 if dealer.members is None else int(dealer.members.graph_of(first, first + 1)[0])
            raise held.refuse(f"row {first - graphs} names a column twice; each once would be right")


def _first_old(dealer: _Dealer, own: np.ndarray) -> int | None:
    """The lowest old number of own rows [k] of all ranks; None without any. Ranks: all call."""
    nobody = dealer.graph.n
    lowest = -dealer.group.max_integer(-int(dealer.old_own[own].min(initial=nobody)))
    return None if lowest == nobody else lowest


# ---- labels, and the whole --------------------------------------------------------------------------------


def _labels(dealer: _Dealer, source: NodeTable | None, shape: _Shape) -> np.ndarray | None:
    """[n_own] int64, or [n_own, c] int8, -1 throughout on padding; or values [n_own, c] float64, NaN there;
    of a set the rows of graphs alone; None without labels."""
    held = _first(dealer.group, source, "labels")
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
    dealer: _Dealer, source: NodeTable | None, shape: _Shape, features: Any, labels: Any, flags: np.ndarray
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
        held = _first(group, source, "labels")
        class_names = tuple(json.loads(group.broadcast_text(json.dumps(held.names if held else ()))))
    elif multilabel and not group.max_integer(int((labels[has] < 0).any())):
        labels = np.maximum(labels, 0, out=labels).view(np.uint8)
    given = getattr(_first(group, source, "features"), "names", ())
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
    dealer: _Dealer, source: NodeTable | None, flags: np.ndarray, labelled: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Splits without held-back nodes that have no label; one to train on must have it. Ranks: all call."""
    group, train = dealer.group, SPLITS["train"]
    first = _first_old(dealer, np.flatnonzero((flags & train > 0) & ~labelled))
    with raise_together(group, READING):
        if first is not None and group.rank == 0:
            right = f"a label, or a {dealer.what} outside train, would be right"
            found = f"found {called(dealer.members, first)} in train, which has no label"
            raise source.splits.refuse(f"{found}; {right}")
    missing = (flags > 0) & ~labelled
    count = int(group.sum_integers(np.array([missing.sum()]))[0])
    text = f"{dealer.graph.name}: {count} held-back {dealer.what}s have no label and are left out"
    return np.where(missing, np.uint8(0), flags), (text,) if count else ()


# ---- nodes without files ----------------------------------------------------------------------------------


def own_old_rows(loaded: Loaded, rank: int) -> np.ndarray:
    """[hi-lo] int64, what the rows of a rank were numbered before they were ordered."""
    lo, hi = loaded.rows.range_of(rank)
    return np.arange(lo, hi) if loaded.order_all is None else loaded.order_all[lo:hi]


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
    X_own = degree_features(graph.degrees(), nodes, _padded(loaded.rows, group.rank))
    return replace(data, features=X_own, width=X_own.shape[1], binary=True, numbers=None)


def _labels_of_graphs(table: GraphCase, loaded: Loaded, case: Case) -> np.ndarray:
    """[k] int32, the classes of generated graphs, those whose own row is here: their motifs, or drawn."""
    members, graph, classes = loaded.members, loaded.graph, table.random_classes
    if table.generator == "motifs":
        each = motif_of(drawn_of(table, case.seed, "instances")[1], classes)
    else:
        each = random_labels(loaded.seed, members.count, classes, np.arange(members.count), False)
    return each[members.graph_of(graph.lo, graph.hi)[members.own_of(graph.lo, graph.hi)]].astype(np.int32)


def _generated(group: Group, table: GraphCase, loaded: Loaded, case: Case, make_room: MakeRoom) -> NodeData:
    """Random features, labels and splits: each a function of (seed, node), made where the row lives."""
    n, seed, classes = loaded.graph.n, loaded.seed, table.random_classes
    old, n_own = own_old_rows(loaded, group.rank), _padded(loaded.rows, group.rank)
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
        room = _room(group, n_own, width, make_room)
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
        numbers=_numbers(loaded, group.rank), rows=graphs,
    )  # fmt: skip
    return with_random_splits(group, data, loaded, seed) if classes else data


def _as_values(data: NodeData) -> NodeData:
    """The numbers of generated classes as numbers to be predicted."""
    values = np.where(data.among(data.labelled), data.labels, np.nan)[:, None]
    return replace(data, labels=values, classes=1, class_ids=np.arange(1), values=True)


def _numbers(loaded: Loaded, rank: int) -> np.ndarray | None:
    """[n_own] int64, what the rows of a rank were numbered before they were ordered; None: as they are."""
    if loaded.order_all is None:
        return None
    old = own_old_rows(loaded, rank)
    return np.pad(old, (0, _padded(loaded.rows, rank) - len(old)))


def _padded(rows: RowPartition, rank: int) -> int:
    """Rows of a rank with its padding."""
    return int(rows.offsets[rank + 1] - rows.offsets[rank])


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
