"""Features, labels and splits that are arrays in memory, as a NodeTable: for calls from Python."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.nodedata import (
    MOST_COLUMNS,
    SPLITS,
    DenseFeatures,
    Labels,
    NodeTable,
    Refuse,
    SparseFeatures,
    Splits,
    class_bits,
    class_numbers,
    finite_floats,
    rows_per_piece,
)


def table_of_arrays(
    features: Any = None, labels: Any = None, train: Any = None, val: Any = None, test: Any = None, n: int = 0
) -> NodeTable:
    """The table of arrays whose rows are in the order of the graph's rows.

    features   [n, F] numbers, or a SciPy sparse matrix     labels   [n] classes, or [n, C] of 0 and 1
    train, val, test   [n] bool, or node numbers            n   nodes of the graph
    """
    sets = {name: values for name, values in zip(SPLITS, (train, val, test)) if values is not None}
    return NodeTable(
        None if features is None else _features(features),
        None if labels is None else _labels(labels),
        _splits(sets, n) if sets else None,
    )


def _refusal(name: str) -> Refuse:
    return lambda text: GraphError(f"{name}: {text}")


def _array(name: str, values: Any, dimensions: tuple[int, ...]) -> np.ndarray:
    """`values` as an array of real numbers."""
    array = np.asarray(values)
    if array.dtype.kind not in "iufb" or array.ndim not in dimensions:
        found = f"found {array.dtype} of shape {array.shape}"
        right = " or ".join(map(str, dimensions))
        raise GraphError(f"{name}: {found}; real numbers in {right} dimensions would be right")
    return array


def _features(values: Any) -> DenseFeatures | SparseFeatures:
    refuse = _refusal("features")
    if hasattr(values, "tocsr"):
        return _sparse(values.tocsr(), refuse)
    array = _array("features", values, (2,))
    step = rows_per_piece(4 * array.shape[1])

    def parts() -> Iterator[np.ndarray]:
        for at in range(0, len(array), step):
            yield finite_floats(array[at : at + step], at, refuse)

    return DenseFeatures(len(array), array.shape[1], parts, refuse)


def _sparse(matrix: Any, refuse: Refuse) -> SparseFeatures:
    if matrix.dtype.kind not in "iufb" or matrix.shape[1] > MOST_COLUMNS:
        raise refuse(f"found {matrix.dtype} of shape {matrix.shape}; real numbers would be right")
    indptr, binary = matrix.indptr.astype(np.int64), bool((matrix.data == 1).all())

    def parts(counts: Iterable[int]) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        at = 0
        for count in counts:
            cut = slice(at, at + count)
            values = None if binary else finite_floats(matrix.data[cut], at, refuse)
            yield matrix.indices[cut].astype(np.int32), values
            at += count

    return SparseFeatures(matrix.shape[0], matrix.shape[1], indptr, binary, parts, refuse)


def _labels(values: Any) -> Labels:
    refuse, array = _refusal("labels"), _array("labels", values, (1, 2))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2 and not array.shape[1]:
        raise refuse("found no columns; one for each class would be right")
    check = class_numbers if array.ndim == 1 else class_bits
    columns = 0 if array.ndim == 1 else array.shape[1]
    return Labels(len(array), columns, lambda: iter([check(array, 0, refuse)]), refuse)


def _splits(sets: dict[str, Any], n: int) -> Splits:
    flags = np.zeros(n, dtype=np.uint8)
    for name, values in sets.items():
        array = _array(name, values, (1,))
        if array.dtype.kind == "b" and len(array) != n:
            raise GraphError(f"{name}: found {len(array)} rows; {n}, one for each node, would be right")
        if array.dtype.kind == "f" or (array.dtype.kind in "iu" and ((array < 0) | (array >= n)).any()):
            raise GraphError(f"{name}: node numbers 0..{n - 1}, or True and False, would be right")
        flags[array] |= SPLITS[name]
    return Splits(flags, _refusal("train, val, test"))
