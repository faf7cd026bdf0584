"""Features, labels and splits in .npz and .npy files, read in pieces."""

from collections.abc import Iterable, Iterator

import numpy as np

from app.graphs.formats.npz import Column, Npz, shape_text
from app.graphs.nodes.data import (
    MOST_COLUMNS,
    SPLITS,
    Check,
    DenseFeatures,
    Labels,
    NodeTable,
    Refuse,
    SparseFeatures,
    Splits,
    class_bits,
    class_numbers,
    finite_floats,
    real_numbers,
    rows_per_piece,
)

DENSE_NAMES = ("features", "feat_dense", "feature")
LABEL_NAMES = ("labels", "label")
TYPES = "node_types"  # of DGL's Reddit
TYPE_BITS = np.array([0, SPLITS["train"], SPLITS["val"], SPLITS["test"]], dtype=np.uint8)
INDEX_NAMES = {"train": ("train_idx",), "val": ("val_idx", "valid_idx"), "test": ("test_idx",)}


def table_of_archive(npz: Npz, values: bool = False) -> NodeTable:
    """What the archive of a graph says of its nodes; the layout stands in docs/formats.md.

    values   labels are numbers to be predicted
    """
    named = label_name(npz)
    labels = (array_values if values else array_labels)(npz, named) if named else None
    features = archive_features(npz, "feat_")
    counts = [part.n for part in (labels, features) if part is not None]
    return NodeTable(features, labels, archive_splits(npz, counts[0] if counts else None))


# ---- features ---------------------------------------------------------------------------------------------


def archive_features(npz: Npz, prefix: str) -> DenseFeatures | SparseFeatures | None:
    """The features in an archive: CSR arrays under names with `prefix`, or a dense matrix; None: neither."""
    if prefix + "indptr" in npz:
        return sparse_features(npz, prefix)
    name = next((each for each in DENSE_NAMES if each in npz), None)
    return None if name is None else dense_features(npz, name)


def dense_features(npz: Npz, name: str) -> DenseFeatures:
    """Array `name` [n, F] of real numbers."""
    column, refuse = _matrix(npz, name), _refusal(npz, name)
    n, width = column.shape

    def parts(check: Check = finite_floats) -> Iterator[np.ndarray]:
        at = 0
        for values in _rows(npz, column):
            yield check(values, at, refuse)
            at += len(values)

    return DenseFeatures(n, width, parts, refuse, holes=parts)


def _matrix(npz: Npz, name: str) -> Column:
    """Column `name`, which must be a matrix of real numbers, stored row by row."""
    column = npz.columns[name]
    if column.dtype.kind not in "iufb" or len(column.shape) != 2:
        found = f"found {column.dtype} of shape {shape_text(column.shape)}"
        raise npz.error(f"{found}; real numbers of shape (nodes, columns) would be right", name)
    if column.fortran and min(column.shape) > 1:
        raise npz.error("is stored column by column; numpy.ascontiguousarray(...) would be right", name)
    return column


def _rows(npz: Npz, column: Column) -> Iterator[np.ndarray]:
    """[k, width], the rows of a matrix as stored, some at a time."""
    width = column.shape[1]
    if not width:
        yield np.empty(column.shape, dtype=column.dtype)
        return
    size = rows_per_piece(width * max(column.dtype.itemsize, 4)) * width
    for part in npz.parts(column, size):
        yield part.reshape(-1, width)


def sparse_features(npz: Npz, prefix: str) -> SparseFeatures:
    """CSR arrays indptr, indices, perhaps data or the mark binary, and shape, under names with `prefix`."""
    pointers = npz.integers(prefix + "indptr", (None,))
    indices = npz.integers(prefix + "indices", (None,))
    entries = indices.shape[0]
    indptr = npz.wide(pointers, npz.whole(pointers))
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != entries or (np.diff(indptr) < 0).any():
        raise npz.error(f"ascending offsets from 0 to {entries} would be right", pointers.name)
    width = _stated_width(npz, prefix, len(indptr) - 1)
    data = npz.numbers(prefix + "data", entries) if prefix + "data" in npz else None
    binary = _is_marked(npz, prefix + "binary") or (data is not None and data.dtype.kind == "b")
    if data is None and not binary:
        right = f"that array, or {prefix}binary = True where all are one, would be right"
        raise npz.error(f"holds no array '{prefix}data'; {right}")

    def parts(counts: Iterable[int]) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        sizes, at = list(counts), 0
        values = iter([None] * len(sizes)) if binary else npz.cut(data, sizes)
        for columns, part in zip(npz.cut(indices, sizes), values, strict=True):
            yield _columns(npz, indices, columns, width, at), _values(npz, data, part, at)
            at += len(columns)

    return SparseFeatures(len(indptr) - 1, width, indptr, binary, parts, _refusal(npz, pointers.name))


def _stated_width(npz: Npz, prefix: str, n: int) -> int:
    """The number of columns, from the array `shape`."""
    column = npz.integers(prefix + "shape", (2,))
    rows, width = npz.wide(column, npz.whole(column)).tolist()
    if rows != n:
        raise npz.error(f"found {rows} rows; {n}, as the offsets have, would be right", column.name)
    if width > MOST_COLUMNS:
        raise npz.error(f"found {width} columns; at most {MOST_COLUMNS} would be right", column.name)
    return width


def _is_marked(npz: Npz, name: str) -> bool:
    """True where array `name` holds one number, not zero."""
    if name not in npz:
        return False
    column = npz.columns[name]
    if column.dtype.kind not in "iub" or column.size != 1:
        raise npz.error("one True or False would be right", name)
    return bool(npz.whole(column)[0])


def _columns(npz: Npz, column: Column, part: np.ndarray, width: int, at: int) -> np.ndarray:
    """int32 [k] column numbers, all within the matrix."""
    wrong = np.flatnonzero((part < 0) | (part >= width))
    if len(wrong):
        found = f"found column {part[wrong[0]]} in entry {at + wrong[0]}"
        raise npz.error(f"{found}; 0..{width - 1} would be right", column.name)
    return part.astype(np.int32)


def _values(npz: Npz, column: Column, part: np.ndarray | None, at: int) -> np.ndarray | None:
    return None if part is None else finite_floats(part, at, _refusal(npz, column.name))


# ---- labels and splits ------------------------------------------------------------------------------------


def label_name(npz: Npz) -> str | None:
    """The array of labels; None without one."""
    return next((each for each in LABEL_NAMES if each in npz), None)


def array_labels(npz: Npz, name: str, unlabelled: bool = False) -> Labels:
    """Array `name`: classes [n], or 0 and 1 [n, classes], NaN where it is not known; [n, 1] are classes too.

    unlabelled   NaN in place of a class stands for no label; otherwise it is refused, as numbers that went
                 wrong are
    """
    column, refuse = npz.columns[name], _refusal(npz, name)
    if column.dtype.kind not in "iufb" or len(column.shape) not in (1, 2) or 0 in column.shape[1:]:
        found = f"found {column.dtype} of shape {shape_text(column.shape)}"
        raise npz.error(f"{found}; integers of shape (nodes) or (nodes, classes) would be right", name)
    several = len(column.shape) == 2 and column.shape[1] > 1
    column = _matrix(npz, name) if several else column

    def parts() -> Iterator[np.ndarray]:
        at = 0
        for values in _rows(npz, column) if several else npz.parts(column, rows_per_piece(8)):
            if unlabelled and values.dtype.kind == "f" and not several:
                values = np.where(np.isnan(values), -1, values)
            yield (class_bits if several else class_numbers)(values, at, refuse)
            at += len(values)

    return Labels(column.shape[0], column.shape[1] if several else 0, parts, refuse)


def array_values(npz: Npz, name: str) -> Labels:
    """Array `name`: numbers [n] or [n, columns] to be predicted; NaN where it is not known."""
    column, refuse = npz.columns[name], _refusal(npz, name)
    if column.dtype.kind not in "iufb" or len(column.shape) not in (1, 2) or 0 in column.shape[1:]:
        found = f"found {column.dtype} of shape {shape_text(column.shape)}"
        raise npz.error(f"{found}; real numbers of shape (nodes) or (nodes, columns) would be right", name)
    several = len(column.shape) == 2
    column = _matrix(npz, name) if several else column

    def parts() -> Iterator[np.ndarray]:
        at = 0
        for values in _rows(npz, column) if several else npz.parts(column, rows_per_piece(8)):
            yield real_numbers(values, at, refuse)
            at += len(values)

    return Labels(column.shape[0], column.shape[1] if several else 1, parts, refuse, values=True)


def archive_splits(npz: Npz, n: int | None) -> Splits | None:
    """The arrays train_mask, val_mask, test_mask, or train_idx, val_idx (valid_idx), test_idx, or node_types;
    None: none.

    n   the number of nodes, which lists of nodes do not say
    """
    masks = {name: f"{name}_mask" for name in SPLITS if f"{name}_mask" in npz}
    lists = {name: each for name, known in INDEX_NAMES.items() for each in known if each in npz and not masks}
    if not masks and not lists:
        return _typed(npz) if TYPES in npz else None
    if masks:
        first = npz.columns[next(iter(masks.values()))]
        n = first.shape[0] if len(first.shape) == 1 else -1
    if n is None:
        raise npz.error(
            "holds lists of nodes, but nothing that says how many there are; masks would be right"
        )
    flags = np.zeros(max(n, 0), dtype=np.uint8)
    for name, array in masks.items():
        flags |= np.where(_mask(npz, array, n), SPLITS[name], 0).astype(np.uint8)
    for name, array in lists.items():
        flags[_listed(npz, array, n)] |= SPLITS[name]
    return Splits(flags, _refusal(npz, next(iter((masks or lists).values()))))


def _typed(npz: Npz) -> Splits:
    """Array node_types: a node is in none, train, val or test."""
    column, refuse = npz.integers(TYPES, (None,)), _refusal(npz, TYPES)
    flags, at = np.zeros(column.shape[0], dtype=np.uint8), 0
    for part in npz.parts(column, rows_per_piece(8)):
        wrong = np.flatnonzero((part < 0) | (part >= len(TYPE_BITS)))
        if len(wrong):
            right = "1 to train on, 2 to validate, 3 to test, or 0 for none, would be right"
            raise refuse(f"found {part[wrong[0]]} for node {at + wrong[0]}; {right}")
        flags[at : at + len(part)] = TYPE_BITS[part]
        at += len(part)
    return Splits(flags, refuse)


def _mask(npz: Npz, name: str, n: int) -> np.ndarray:
    """[n] bool."""
    column = npz.columns[name]
    values = npz.whole(column) if column.shape == (n,) and column.dtype.kind in "biu" else None
    if values is None or (column.dtype.kind != "b" and ((values != 0) & (values != 1)).any()):
        found = f"found {column.dtype} of shape {shape_text(column.shape)}"
        raise npz.error(f"{found}; True and False of shape ({max(n, 0) or 'nodes'}) would be right", name)
    return values.astype(bool)


def _listed(npz: Npz, name: str, n: int) -> np.ndarray:
    """[k] int64 node numbers."""
    numbers = npz.list_of(name)
    if len(numbers) and numbers.max() >= n:
        raise npz.error(f"found node {numbers.max()}; 0..{n - 1} would be right", name)
    return numbers


def _refusal(npz: Npz, name: str) -> Refuse:
    return lambda text: npz.error(text, name)
