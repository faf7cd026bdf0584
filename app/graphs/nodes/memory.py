"""Features, labels and splits that are arrays in memory, as a NodeTable: for calls from Python."""

from collections.abc import Iterable, Iterator, Set, Sized
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import shown
from app.graphs.given import all_whole, rows_by_node, unmasked
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


def table_of_arrays(
    features: Any = None, labels: Any = None, train: Any = None, val: Any = None, test: Any = None,
    n: int = 0, values: bool = False, names: Iterable[str] = (), what: str = "node",
    columns: tuple[str, ...] = (),
) -> NodeTable:  # fmt: skip
    """The table of arrays whose rows are in the order of the graph's rows.

    features   [n, F] numbers, or a SciPy sparse matrix
    labels     [n] classes, or [n, C] of 0 and 1, NaN where it is not known
    train, val, test   [n] bool, or node numbers            n   nodes of the graph
    values     labels are numbers to be predicted, [n] or [n, C], NaN where it is not known
    names      of the classes 0, 1, ..., where they have names
    what       has labels and splits, for messages     columns   names of those of dense features, or none
    """
    sets = {name: values for name, values in zip(SPLITS, (train, val, test)) if values is not None}
    told = None
    if labels is not None:
        told = _values(labels) if values else replace(_labels(labels), names=tuple(names))
    found = None if features is None else _features(features)
    if columns and isinstance(found, DenseFeatures):
        found = replace(found, names=columns)
    return NodeTable(
        found,
        told,
        _splits(sets, n, what) if sets else None,
    )


def numbers_of(
    nodes: Iterable[Any], labels: list[Any], name: str, right: str = "a node of the graph"
) -> list[int]:
    """The numbers of nodes that are named by their labels; right: what these are. Raises GraphError."""
    number, found = {label: i for i, label in enumerate(labels)}, []
    for node in nodes:
        try:
            found.append(number[node])
        except (KeyError, TypeError):  # TypeError: what can be no label
            raise GraphError(f"{name}: found {shown(repr(node))}; {right} would be right") from None
    return found


def splits_of(
    sets: dict[str, Any], labels: list[Any] | None, right: str = "a node of the graph"
) -> dict[str, Any]:
    """The sets with nodes that are named by labels as numbers; bools stay what they are.

    Whole numbers are labels where all labels are whole numbers, else numbers of nodes.
    right   what labels name, for messages
    """
    return {name: _split_of(name, values, labels, right) for name, values in sets.items()}


def _split_of(name: str, values: Any, labels: list[Any] | None, right: str) -> Any:
    if values is None or not isinstance(values, Iterable):
        return values
    if labels is None:
        return values if isinstance(values, Sized) and not isinstance(values, Set) else list(values)
    if isinstance(values, np.ndarray) and (values.ndim != 1 or values.dtype.kind == "b"):
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and not all_whole(labels):
        return values
    nodes = list(values)
    if all(isinstance(node, bool | np.bool_) for node in nodes):
        return np.array(nodes, dtype=bool if nodes else np.int64)
    if all(isinstance(node, Integral) for node in nodes) and not all_whole(labels):
        return np.array(nodes, dtype=np.int64)
    return np.array(numbers_of(nodes, labels, name, right), dtype=np.int64)


class ClassNames:
    """Classes of nodes as numbers, and their names where they have names.

    numbers   what table_of_arrays takes of labels
    names     of the classes, ascending; empty: classes are numbers
    """

    def __init__(
        self, values: Any, nodes: list[Any] | None, n: int, right: str = "a node of the graph"
    ) -> None:
        values = unmasked("labels", rows_by_node("labels", values, nodes))
        if hasattr(values, "keys"):
            values = _in_order(values, list(range(n)) if nodes is None else nodes, right)
        if isinstance(values, Iterable) and not isinstance(values, Sized):
            values = list(values)
        self.numbers, self.names = values, []
        if isinstance(values, np.ndarray) and values.dtype.kind not in "USO":
            return
        if not isinstance(values, Iterable) or hasattr(values, "tocsr"):
            return
        if isinstance(values, np.ndarray) and not values.ndim:
            return
        if any(map(_is_row, values)):
            self.numbers = _without_none(values)
            return
        if not any(isinstance(each, str) for each in values):
            if any(each is None for each in values):
                self.numbers = [-1 if each is None else each for each in values]
            return
        values = [None if _is_none(each) else each for each in values]
        for i, each in enumerate(values):
            if each is not None and not isinstance(each, str):
                right = "names, or None for none, would be right"
                raise GraphError(
                    f"labels: found {shown(repr(each))} in row {i} among names of classes; {right}"
                )
        self.names = sorted({str(each) for each in values if each is not None})
        number = {name: i for i, name in enumerate(self.names)}
        self.numbers = np.array([-1 if each is None else number[str(each)] for each in values])

    def named(self, classes: np.ndarray) -> np.ndarray:
        """Numbers of classes [k], or their names where they have names."""
        return np.array(self.names)[classes] if self.names else classes


def _is_row(given: Any) -> bool:
    """Whether this is what is known of several classes of a node."""
    return isinstance(given, Sized) and not isinstance(given, str) and np.ndim(given) == 1


def _without_none(values: Iterable[Any]) -> Any:
    """Rows of labels with NaN in place of None, and rows of it in place of whole rows; others pass."""
    rows = list(values)
    width = next(len(each) for each in rows if _is_row(each))
    if not any(each is None or (_is_row(each) and any(entry is None for entry in each)) for each in rows):
        return values
    return [
        [np.nan] * width if row is None else [np.nan if each is None else each for each in row]
        if _is_row(row) else row
        for row in rows
    ]  # fmt: skip


def _is_none(label: Any) -> bool:
    """Whether a node without a label has it: None, and NaN, which tables of names have in its place."""
    return label is None or (isinstance(label, float) and label != label)


def values_of_nodes(values: Any, nodes: list[Any] | None, n: int, right: str = "a node of the graph") -> Any:
    """Numbers to be predicted in the order of the nodes, from rows or a mapping of nodes to a number or a row
    of them; nodes that it lacks have none, as have those of None, of rows also numbers of None. Raises
    GraphError."""
    values = unmasked("labels", rows_by_node("labels", values, nodes))
    if hasattr(values, "keys"):
        order, found = list(range(n)) if nodes is None else nodes, dict(values.items())
        numbers_of(found, order, "labels", right)
        values = [found.get(node) for node in order]
    if isinstance(values, np.ndarray) and (values.dtype != object or not values.ndim):
        return values
    if not isinstance(values, Iterable) or hasattr(values, "tocsr"):
        return values
    values = list(values)
    if any(map(_is_row, values)):
        return _without_none(values)
    return [np.nan if each is None else each for each in values]


def _in_order(values: Any, nodes: list[Any], right: str) -> list[Any]:
    """The classes of all nodes in their order from a mapping; nodes that it lacks have none."""
    found = dict(values.items())
    numbers_of(found, nodes, "labels", right)
    none = None if any(isinstance(each, str) or _is_row(each) for each in found.values()) else -1
    return [found.get(node, none) for node in nodes]


def rows_of_nodes(features: Any, nodes: list[Any] | None, n: int) -> Any:
    """A mapping of nodes to rows as rows in the order of the nodes; others pass. Raises GraphError."""
    features = rows_by_node("features", features, nodes)
    if not hasattr(features, "keys") or hasattr(features, "tocsr"):  # a sparse matrix may be a dictionary
        return features
    order, found = list(range(n)) if nodes is None else nodes, dict(features.items())
    numbers_of(found, order, "features")
    for node in order:
        if node not in found:
            raise GraphError(
                f"features: none of node {shown(repr(node))}; a row for each node would be right"
            )
    return [found[node] for node in order]


def names_of_columns(features: Any) -> tuple[str, ...]:
    """What a table of pandas calls its columns; of anything else, and of mere numbers, nothing."""
    columns = list(getattr(features, "columns", ())) if hasattr(features, "to_numpy") else []
    return tuple(map(str, columns)) if any(isinstance(each, str) for each in columns) else ()


def _refusal(name: str) -> Refuse:
    return lambda text: GraphError(f"{name}: {text}")


def _array(name: str, values: Any, dimensions: tuple[int, ...]) -> np.ndarray:
    """`values` as an array of real numbers."""
    try:
        array = np.asarray(unmasked(name, values))
    except ValueError:  # rows of different lengths
        raise GraphError(f"{name}: found rows of different lengths; an array would be right") from None
    if array.dtype.kind not in "iufb" or array.ndim not in dimensions:
        found = f"found {array.dtype} of shape {array.shape}"
        right = " or ".join(map(str, dimensions))
        raise GraphError(f"{name}: {found}; real numbers in {right} dimensions would be right")
    return array


def _features(values: Any) -> DenseFeatures | SparseFeatures:
    refuse = _refusal("features")
    if hasattr(values, "tocsr"):
        if values.ndim != 2:
            raise refuse(f"found {values.dtype} of shape {values.shape}; 2 dimensions would be right")
        return _sparse(values.tocsr(), refuse)
    array = _array("features", values, (2,))
    step = rows_per_piece(4 * array.shape[1])

    def parts(check: Check = finite_floats) -> Iterator[np.ndarray]:
        for at in range(0, len(array), step):
            yield check(array[at : at + step], at, refuse)

    return DenseFeatures(len(array), array.shape[1], parts, refuse, holes=parts)


def _sparse(matrix: Any, refuse: Refuse) -> SparseFeatures:
    if not matrix.has_canonical_format:  # stored entries of one place are added, as SciPy does
        matrix = matrix.copy()
        matrix.sum_duplicates()
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


def _values(values: Any) -> Labels:
    refuse, array = _refusal("labels"), _array("labels", values, (1, 2))
    if array.ndim == 2 and not array.shape[1]:
        raise refuse("found no columns; at least one would be right")
    columns = 1 if array.ndim == 1 else array.shape[1]
    return Labels(len(array), columns, lambda: iter([real_numbers(array, 0, refuse)]), refuse, values=True)


def _splits(sets: dict[str, Any], n: int, what: str) -> Splits:
    flags = np.zeros(n, dtype=np.uint8)
    for name, values in sets.items():
        array = _array(name, values, (1,))
        if array.dtype.kind == "b" and len(array) != n:
            raise GraphError(f"{name}: found {len(array)} rows; {n}, one for each {what}, would be right")
        if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.rint(array)).all():
            array = array.astype(np.int64)
        if array.dtype.kind == "f" or (array.dtype.kind in "iu" and ((array < 0) | (array >= n)).any()):
            raise GraphError(f"{name}: {what} numbers 0..{n - 1}, or True and False, would be right")
        flags[array] |= SPLITS[name]
    return Splits(flags, _refusal("train, val, test"))
