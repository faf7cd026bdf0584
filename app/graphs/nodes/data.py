"""What is known of a graph's nodes, for learning on it: features, labels, splits.

NodeTable is what a file holds, rows in the order of the graph's ids, read in pieces; NodeData is one rank's
rows.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.edge_data import EdgeData
from app.graphs.formats.source import shown

TRAIN, VAL, TEST = 1, 2, 4  # bits of a node's splits
SPLITS = {"train": TRAIN, "val": VAL, "test": TEST}
MOST_CLASSES = 1 << 16
MOST_COLUMNS = (1 << 31) - 1
PIECE_BYTES = 1 << 22

Refuse = Callable[[str], GraphError]  # makes the error for one array of a file
Check = Callable[[np.ndarray, int, Refuse], np.ndarray]  # rows as they are kept: finite_floats, ...


def no_labels(what: str) -> str:
    """Why nothing can be learned of nodes, edges or graphs."""
    key = "graph.edge_labels" if what == "edge" else "graph.labels"
    return f'the {what}s have no labels: set {key}, or apply trained weights by gnn.weights="FILE"'


@dataclass(frozen=True, eq=False)
class DenseFeatures:
    """Rows of numbers.

    parts    starts an iteration over [k, width] of a kind: all n rows in order, checked, some at a time
    order    [n] int64, the node that each row is of; None: they are in the order of the nodes
    refuse   makes an error that names the file and the array
    kind     of numbers     what   rows of edges are, for messages
    holes    as parts, of rows that are checked otherwise (known_floats, none_missing); None: all are known
    names    of the columns, where these have some
    """

    n: int
    width: int
    parts: Callable[[], Iterator[np.ndarray]]
    refuse: Refuse
    order: np.ndarray | None = None
    kind: type = np.float32
    what: str = "edge features"
    holes: Callable[[Check], Iterator[np.ndarray]] | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Rows of a sparse matrix.

    indptr   [n+1] int64
    binary   True: every stored value is one, and none are read
    parts    given counts of entries, iterates over (columns [k] int32, values [k] float32 or None): the next
             so many entries, checked
    """

    n: int
    width: int
    indptr: np.ndarray
    binary: bool
    parts: Callable[[Iterable[int]], Iterator[tuple[np.ndarray, np.ndarray | None]]]
    refuse: Refuse


@dataclass(frozen=True, eq=False)
class Labels:
    """The classes of nodes, or numbers that are to be predicted.

    columns  0: one class for a node; else how many classes, of which a node may have several, or values
    parts    starts an iteration over int64 [k], -1 for no label; or int8 [k, columns] of 0 and 1, -1 where it
             is not known; or of values float64 [k, columns], NaN where it is not known, a row of NaN for no
             label
    order    as that of DenseFeatures
    values   whether they are numbers (gnn.goal = "values")
    names    of the classes 0, 1, ..., ascending, each of some node; empty: classes are numbers
    """

    n: int
    columns: int
    parts: Callable[[], Iterator[np.ndarray]]
    refuse: Refuse
    order: np.ndarray | None = None
    values: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Splits:
    """[n] uint8, the sets that each node is in: bits TRAIN, VAL, TEST."""

    flags: np.ndarray
    refuse: Refuse

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.flags)


@dataclass(frozen=True, eq=False)
class NodeTable:
    """What the files of one graph hold; None for what there is none of."""

    features: DenseFeatures | SparseFeatures | None = None
    labels: Labels | None = None
    splits: Splits | None = None

    def check(self, n: int, name: str) -> None:
        """Refuse what does not have one row for each node of the graph, or trains on what it tests."""
        for part in (self.features, self.labels, self.splits):
            if part is not None and part.n != n:
                right = f"{n}, one for each node of {shown(name, 200)}, would be right"
                raise part.refuse(f"found {part.n} rows; {right}")
        if self.features is not None and not self.features.width:
            raise self.features.refuse("found features without columns; at least one would be right")
        if self.splits is not None:
            check_disjoint(self.splits)


def check_disjoint(
    splits: Splits, what: str = "node", called: Callable[[int], str] = "node {}".format
) -> None:
    """Refuse a node, or a graph, that is trained on and held back; called: what the one of a number is."""
    for name, bit in (("test", TEST), ("val", VAL)):
        both = np.flatnonzero(splits.flags & (TRAIN | bit) == TRAIN | bit)
        if len(both):
            right = f"a {what} in one of them would be right"
            raise splits.refuse(f"found {called(both[0])} in both train and {name}; {right}")


@dataclass(frozen=True, eq=False)
class NodeData:
    """This rank's rows of what is known of the nodes; the padding rows of n_own are zero, -1 and False.

    features      [n_own, F] float32, or a csr_array of that shape, or None; binary: all stored values are one
    labels        [n_own] int32, -1 for none; multilabel: [n_own, classes] uint8 or, where some entries of
                  some labelled node are not known, int8, -1 for these; values: [n_own, classes] float64, NaN
                  where it is not known, a row of it for none; None: the file has none
    rows          [k] int64, ascending: the own rows that labels [k, ...] are of, those of graphs; None: all
    labelled      [n_own] bool
    train, val, test   [n_own] bool
    classes       how many; of values the columns
    class_ids     [classes] int64, the file's own numbers of the classes, ascending
    class_names   [classes] the names that classes have in place of numbers, ascending; empty: none
    values        whether labels are numbers to be predicted
    width         F, 0 without features
    counts        nodes of all ranks in train, val and test
    numbers       [n_own] int64, what own rows were numbered before they were ordered; None: they are as they
                  were
    edges         what is known of the edges, where layers read it; or None
    columns       [F] the names of the columns of features, where a file or a caller has some; empty: none
    beside        how many of the last columns of features are positions (gnn/positions.py), in their scale
    """

    features: Any
    labels: np.ndarray | None
    labelled: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    classes: int
    multilabel: bool
    class_ids: np.ndarray
    width: int
    binary: bool
    counts: dict[str, int]
    warnings: tuple[str, ...] = ()
    values: bool = False
    class_names: tuple[str, ...] = ()
    numbers: np.ndarray | None = None
    rows: np.ndarray | None = None
    edges: EdgeData | None = None
    columns: tuple[str, ...] = ()
    beside: int = 0

    def among(self, own: np.ndarray) -> np.ndarray:
        """What is said of own rows [n_own, ...], of those alone that labels are of."""
        return own if self.rows is None else own[self.rows]

    def places(self, own: np.ndarray) -> np.ndarray:
        """[m] int64, the rows of labels that stand for own rows [m], which are among them."""
        return own if self.rows is None else np.searchsorted(self.rows, own)

    @property
    def partly(self) -> bool:
        """Whether nodes may have several classes, and of some it is not known whether they have."""
        return self.multilabel and self.labels is not None and self.labels.dtype == np.int8

    def called(self, classes: np.ndarray) -> np.ndarray:
        """What the data call classes [k]: their numbers, or their names."""
        return (np.array(self.class_names) if self.class_names else self.class_ids)[classes]


def with_unlabelled(table: Labels, order: np.ndarray, lacking: np.ndarray) -> Labels:
    """Labels of the rows `order` [k], with rows of none for those that have no line, `lacking`."""
    shape = (table.columns,) if table.columns else ()
    kind = np.float64 if table.values else np.int8 if table.columns else np.int64
    step = rows_per_piece(8 * max(table.columns, 1))

    def parts() -> Iterator[np.ndarray]:
        pieces = (lacking[at : at + step] for at in range(0, len(lacking), step))
        none = (np.full((len(each), *shape), np.nan if table.values else -1, dtype=kind) for each in pieces)
        return chain(table.parts(), none)

    return replace(table, n=table.n + len(lacking), parts=parts, order=np.concatenate([order, lacking]))


# ---- checks that all sources share ------------------------------------------------------------------------


def rows_per_piece(bytes_per_row: int) -> int:
    """How many rows to hold at a time."""
    return max(1, PIECE_BYTES // max(bytes_per_row, 1))


def finite_floats(values: np.ndarray, first: int, refuse: Refuse) -> np.ndarray:
    """`values` [k] or [k, f] as float32; refuses what is no finite 32-bit number.

    first   number of the first row, for the message
    """
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = values.astype(np.float32)
    wrong = np.argwhere(~np.isfinite(narrow))
    if len(wrong):
        at = tuple(wrong[0])
        place = f"row {first + at[0]}, column {at[1]}" if len(at) == 2 else f"entry {first + at[0]}"
        raise refuse(f"found {values[at]} in {place}; finite 32-bit numbers would be right")
    return narrow


def known_floats(values: np.ndarray, first: int, refuse: Refuse) -> np.ndarray:
    """`finite_floats`, but NaN stays: where it is not known."""
    unknown = values != values
    narrow = finite_floats(np.where(unknown, 0, values), first, refuse)
    narrow[unknown] = np.nan
    return narrow


def none_missing(values: np.ndarray, first: int, refuse: Refuse) -> np.ndarray:
    """`finite_floats` of rows [k, f], but where one is NaN the refusal names the key that fills it."""
    right = 'a finite number, or gnn.missing_features = "mean" or "propagate", would be right'
    return without_nan(values, first, refuse, right)


def without_nan(values: np.ndarray, first: int, refuse: Refuse, right: str) -> np.ndarray:
    """`finite_floats` of rows [k, f], with a message of its own for NaN, which says what would be right.
    Raises what refuse makes."""
    unknown = np.argwhere(values != values)
    if len(unknown):
        row, column = unknown[0].tolist()
        raise refuse(f"found nan in row {first + row}, column {column}; {right}")
    return finite_floats(values, first, refuse)


def with_holes(table: NodeTable, check: Check) -> NodeTable:
    """The table with features of which some may not be known as `check` has it, where that can be told."""
    features = table.features
    if not isinstance(features, DenseFeatures) or features.holes is None:
        return table
    return replace(table, features=replace(features, parts=partial(features.holes, check)))


def class_numbers(values: np.ndarray, first: int, refuse: Refuse) -> np.ndarray:
    """`values` [k] of any real kind as int64; refuses fractions, NaN, what is below -1 or too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        most = 2**53 - 1 if values.dtype.kind == "f" else 2**62  # beyond it two numbers are one float64
        wrong = (values < -1) | (values > most) | (values != np.trunc(values)) | ~np.isfinite(values)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        right = "a class from 0, or -1 for none, would be right (gnn.goal = values for numbers of any kind)"
        raise refuse(f"found label {values[at]} in row {first + at}; {right}")
    return values.astype(np.int64)


def class_bits(values: np.ndarray, first: int, refuse: Refuse) -> np.ndarray:
    """`values` [k, c] as int8, NaN as -1; refuses what is none of 0, 1 and NaN, but for rows of -1."""
    none, unknown = (values == -1).all(axis=1), values != values
    wrong = ~((values == 0) | (values == 1) | unknown | none[:, None])
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        right = "0 and 1, or a whole row of -1 for no label, would be right (nan where it is not known)"
        raise refuse(f"found label {values[row, column]} in row {first + row}, column {column}; {right}")
    return np.where(unknown, -1, values).astype(np.int8)


def real_numbers(values: np.ndarray, first: int, refuse: Refuse) -> np.ndarray:
    """`values` [k] or [k, c] of any real kind as float64 [k, c], NaN where it is not known; refuses what is
    beyond 32-bit numbers."""
    rows = values.reshape(len(values), -1).astype(np.float64)
    with np.errstate(invalid="ignore"):
        wrong = np.abs(rows) > np.finfo(np.float32).max
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        right = "finite 32-bit numbers, or nan where it is not known, would be right"
        raise refuse(f"found label {rows[row, column]} in row {first + row}, column {column}; {right}")
    return rows
