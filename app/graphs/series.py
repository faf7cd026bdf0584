"""Series of nodes: a number, or several channels, for each step of time and node, from files and from memory.

Arrays are T x nodes or T x nodes x channels, nodes in the order of the graph's ids. Text has a line for each
step under a line of titles, which are the ids of the nodes, all of them in any order; a first column whose
title is no node is the time, and is not read. nan, or nothing between commas or tabs, is a value that is not
known. Covariates of nodes are read likewise; those of all nodes alike are T x columns.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.formats.npy import NAME
from app.graphs.formats.npz import Column, Npz
from app.graphs.formats.source import Limits, Source, shown
from app.graphs.ids import NodeIndex, one_id
from app.graphs.nodes.data import PIECE_BYTES, Check, Refuse, known_floats, without_nan
from app.graphs.nodes.files import open_arrays
from app.graphs.nodes.keyed import find_rows
from app.graphs.nodes.text import data_lines, is_number, text_features

ARRAY, COVARIATES, SHARED = "series", "covariates", "shared_covariates"  # of an .npz
# Titles of a first column of steps, which is not read; tables are often written with none above it.
TIMES = (b"", b"time", b"date", b"step", b"datetime", b"timestamp")
MOST_CHANNELS = 1 << 10
QUOTED = re.compile(rb'[ \t]*"(?:[^"]|"")*"')  # a field at the beginning of a line


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """Series as rank 0 reads them.

    steps      of time; None: known once all is read     channels   of each node
    parts      starts an iteration over [k, n, channels] float32, NaN where not known: consecutive steps of
    time
    places     [n] int64, the row of the node that each column is of; None: they are in order
    """

    steps: int | None
    channels: int
    parts: Any
    places: np.ndarray | None = None


def open_series(
    path: str, limits: Limits, ids: np.ndarray, name: str, array: str = ARRAY, check: Check = known_floats
) -> SeriesTable:
    """The series of a file for the nodes of a graph, headers read and checked. Raises GraphError.

    ids   [n] of the nodes, in the order of the rows     name   of the graph, for messages
    array   what an .npz calls them     check   of numbers: `known_numbers` where all must be known
    """
    arrays = open_arrays(path, limits)
    if arrays is None:
        return _text(Source(path, limits), ids, name, check)
    column = _column_of(arrays, array)
    n, shape = len(ids), column.shape
    right = f"T x {n}, a column for each node of {shown(name, 200)}, or T x {n} x channels, would be right"
    if len(shape) not in (2, 3) or shape[1] != n:
        raise arrays.error(f"found the shape {_by(shape)}; {right}", column.name)
    channels = shape[2] if len(shape) == 3 else 1
    if not (1 <= channels <= MOST_CHANNELS and shape[0]):
        raise arrays.error(f"found the shape {_by(shape)}; {right}", column.name)
    if column.fortran:
        raise arrays.error("is stored column by column; numpy.ascontiguousarray would be right", column.name)
    return SeriesTable(shape[0], channels, partial(_array_parts, arrays, column, n, channels, check))


def shape_of_series(path: str, limits: Limits, array: str = ARRAY) -> tuple[int, int] | None:
    """Steps of time and channels of an array's file, by its header; None of text. Raises GraphError."""
    if (arrays := open_arrays(path, limits)) is None:
        return None
    column = _column_of(arrays, array)
    if len(column.shape) not in (2, 3):
        right = "T x nodes, or T x nodes x channels, would be right"
        raise arrays.error(f"found the shape {_by(column.shape)}; {right}", column.name)
    return column.shape[0], column.shape[2] if len(column.shape) == 3 else 1


def known_numbers(values: np.ndarray, first: int, refuse: Refuse) -> np.ndarray:
    """`finite_floats`, with a message of its own for NaN: what is known beforehand is known. Raises what
    refuse makes."""
    return without_nan(values, first, refuse, "numbers, known at each step of time, would be right")


def read_shared(path: str, limits: Limits) -> np.ndarray:
    """[T, k] float32 of all nodes alike, of a file: an array T or T x k, or text with a line for each step of
    time under a line of titles, of which a first one of TIMES is not read. Raises GraphError."""
    arrays = open_arrays(path, limits)
    if arrays is None:
        return _shared_text(Source(path, limits))
    column, _, width = _shared_column(arrays)
    found = [piece.reshape(-1, width) for piece in arrays.parts(column, _steps_per_piece(width) * width)]
    rows = np.concatenate(found).astype(np.float64)
    return known_numbers(rows, 0, partial(arrays.error, name=column.name))


def columns_of_shared(path: str, limits: Limits) -> tuple[int | None, int]:
    """Steps of time, where a header tells them, and columns of such a file. Raises GraphError."""
    if (arrays := open_arrays(path, limits)) is not None:
        return _shared_column(arrays)[1:]
    return None, len(_shared_titles(Source(path, limits))[1])


def _shared_column(arrays: Npz) -> tuple[Column, int, int]:
    """An array of all nodes alike by its header: its column, steps of time, columns of it. Raises
    GraphError."""
    column = _column_of(arrays, SHARED)
    shape = column.shape
    if len(shape) not in (1, 2) or not all(shape) or (shape[-1] > MOST_CHANNELS and len(shape) == 2):
        raise arrays.error(f"found the shape {_by(shape)}; T or T x columns would be right", column.name)
    if column.fortran and len(shape) == 2:
        raise arrays.error("is stored column by column; numpy.ascontiguousarray would be right", column.name)
    return column, shape[0], shape[1] if len(shape) == 2 else 1


def _by(shape: tuple[int, ...]) -> str:
    """A shape as messages say it."""
    return " x ".join(map(str, shape))


def _shared_titles(source: Source) -> tuple[int, list[bytes], bool, int]:
    """Of a text file: the line of titles, those that are read, whether one of TIMES is before them, and how
    many there are between tabs, 0 of other files."""
    number, line = next(data_lines(source), (0, b""))
    titles = _titles(line)
    timed = bool(titles) and titles[0].strip(b'"').lower() in TIMES
    called = titles[timed:]
    if not called:
        right = "a line of titles, and a line of numbers for each step of time, would be right"
        raise source.error(f"holds nothing{' but times' * timed}; {right}")
    if all(map(is_number, called)):
        found = shown(called[0].decode("utf-8", "replace"))
        raise source.error(f"found the title '{found}'; a line of titles would be right", number)
    return number, called, timed, len(called) if b"\t" in line else 0


def _shared_text(source: Source) -> np.ndarray:
    """[T, k] of a text file."""
    number, called, timed, tabs = _shared_titles(source)
    rest = _Untitled(source.path, source.limits, source.warnings, number, timed, tabs)
    if next(data_lines(rest), None) is None:
        raise source.error("holds no numbers under its titles; a line for each step of time would be right")
    table = text_features(rest, 0)
    if table.width != len(called):
        found = f"found {table.width} numbers in the first line under {len(called)} titles"
        raise source.error(f"{found}; as many would be right", number + 1)
    return np.concatenate(list(table.holes(known_numbers)))


def _column_of(arrays: Npz, array: str = ARRAY) -> Column:
    """The array of a file that has one, or is one."""
    names = [name for name in (NAME, array) if name in arrays]
    if not names:
        raise arrays.error(f"holds no array '{array}'; that one would be right")
    column = arrays.columns[names[0]]
    if column.dtype.kind not in "iuf":
        raise arrays.error(f"holds {column.dtype}; numbers would be right", column.name)
    return column


def _array_parts(arrays: Npz, column: Column, n: int, channels: int, check: Check) -> Iterator[np.ndarray]:
    step, at = _steps_per_piece(n * channels), 0
    for piece in arrays.parts(column, step * n * channels):
        rows = piece.reshape(-1, n * channels)
        refuse = partial(arrays.error, name=column.name)
        yield check(rows.astype(np.float64), at, refuse).reshape(-1, n, channels)
        at += len(rows)


def _steps_per_piece(width: int) -> int:
    """Steps of time that are read at a time."""
    return max(1, PIECE_BYTES // (8 * max(width, 1)))


# ---- text -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Untitled(Source):
    """A text file without its first `titles` lines and, with `timed`, without the first field of its lines;
    tabs: so many fields of a line are between tabs, and become fields between commas; 0: they are not."""

    titles: int = 1
    timed: bool = False
    tabs: int = 0

    def pieces(self, skip: int = 0) -> Iterator[tuple[bytes, int]]:
        """As those of Source."""
        for text, line in super().pieces(max(skip, self.titles)):
            if self.tabs:
                text = b"\n".join(map(self._tabbed, text.split(b"\n")))
            yield (b"\n".join(map(_untimed, text.split(b"\n"))) if self.timed else text), line

    def _tabbed(self, line: bytes) -> bytes:
        """A line of so many fields between commas; one of another number of fields as it is."""
        fields = line.rstrip(b"\r").split(b"\t")
        if len(fields) != self.tabs + self.timed or line.startswith(b"#"):
            return line
        first = [b'"%s"' % fields.pop(0).strip(b' "').replace(b'"', b"'")] if self.timed else []
        return b",".join(first + fields)


def _untimed(line: bytes) -> bytes:
    """A line without its first field, which may be in quotes; nan where nothing is behind it: the step counts
    all the same. Lines that hold no step stay."""
    if not line.strip(b" \t\r") or line.startswith(b"#"):
        return line
    quoted = QUOTED.match(line)
    behind = line[quoted.end() :] if quoted else line.lstrip(b" ")
    between = next((each for each in (b"\t", b",") if each in behind), b" ")
    rest = behind.partition(between)[2]
    return rest if rest.strip(b" \t\r") else b"nan"


def _text(source: Source, ids: np.ndarray, name: str, check: Check) -> SeriesTable:
    """Those of a text file."""
    number, line = next(data_lines(source), (0, b""))
    right = f"a line of the ids of the nodes of {shown(name, 200)} would be right"
    if not line:
        raise source.error(f"holds nothing; {right}, and a line of numbers for each step of time")
    titles = _titles(line)
    index, timed = NodeIndex(ids), False
    places = _places(titles, index)
    if places is None or places[0] < 0:
        timed, places = True, _places(titles[1:], index)
    called = titles[1:] if timed else titles
    if places is None or not len(places) or (places < 0).any():
        wrong = called[0] if places is None or not len(places) else called[int(np.argmin(places))]
        raise source.error(f"found the title '{shown(wrong)}', which is no node; {right}", number)
    counts = np.bincount(places, minlength=len(ids))
    if (counts > 1).any():
        twice = one_id(ids, int(np.argmax(counts > 1)))
        raise source.error(f"found node {twice} twice; one column for each node would be right", number)
    if not counts.all():
        lacking = one_id(ids, int(np.argmin(counts)))
        raise source.error(
            f"found no column of node {lacking}; one for each of the {len(ids)} would be right", number
        )
    tabs = len(called) if b"\t" in line else 0
    rest = _Untitled(source.path, source.limits, source.warnings, number, timed, tabs)
    if next(data_lines(rest), None) is None:
        raise source.error(
            "holds no numbers under its titles; a line of them for each step of time would be right"
        )
    table = text_features(rest, 0)
    if table.width != len(ids):
        found = f"found {table.width} numbers in the first line under {len(ids)} titles"
        raise source.error(f"{found}; as many would be right", number + 1)
    return SeriesTable(None, 1, lambda: (rows[:, :, None] for rows in table.holes(check)), places)


def _titles(line: bytes) -> list[bytes]:
    """The titles in a line: between tabs, else commas, else blanks."""
    if b"\t" in line:
        return [each.strip(b" \r") for each in line.split(b"\t")]
    if b"," in line:
        fields = next(csv.reader([line.decode("utf-8", "replace")], skipinitialspace=True))
        return [each.strip().encode() for each in fields]
    return line.split()


def _places(titles: list[bytes], index: NodeIndex) -> np.ndarray | None:
    """[k] int64 the rows of the nodes that titles name, -1 of none."""
    if index.named:
        return find_rows(titles, index)
    numbers = [int(each) if each.isdigit() and len(each) < 19 else -1 for each in titles]
    return index.find(np.array(numbers, dtype=np.int64))


# ---- memory -----------------------------------------------------------------------------------------------


def series_of_object(
    given: Any, names: list[Any] | None, n: int, what: str = ARRAY, check: Check = known_floats
) -> np.ndarray:
    """[T, n, C] float32 of what a caller hands in: an array T x n or T x n x C, NaN where it is masked, a
    DataFrame whose columns are nodes, or a mapping from each node to its series. Raises GraphError.

    names   what the nodes are called, by rows; None: by their numbers     what   the argument, for messages
    check   of numbers, as of open_series
    """
    if isinstance(given, Mapping) or (hasattr(given, "columns") and hasattr(given, "to_numpy")):
        array = _side_by_side(given, list(range(n)) if names is None else names, what)
    else:
        array = _floats(given, what)
    array = array[:, :, None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[1] != n or not array.shape[0] or not array.shape[2]:
        found = " x ".join(map(str, np.shape(given) if not isinstance(given, Mapping) else array.shape))
        raise GraphError(f"{what}: found the shape {found}; T x {n} or T x {n} x channels would be right")
    rows = array.reshape(len(array), -1)
    return check(rows, 0, lambda text: GraphError(f"{what}: {text}")).reshape(array.shape)


def shared_of_object(given: Any, what: str) -> np.ndarray:
    """[T, k] float32 of all nodes alike, of what a caller hands in: an array T or T x k, or a DataFrame.

    what   the argument, for messages     Raises   GraphError
    """
    array = _floats(given.to_numpy() if hasattr(given, "to_numpy") else given, what)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.size or array.shape[1] > MOST_CHANNELS:
        found = " x ".join(map(str, array.shape))
        raise GraphError(f"{what}: found the shape {found}; T or T x columns would be right")
    return known_numbers(array, 0, lambda text: GraphError(f"{what}: {text}"))


def _side_by_side(given: Any, called: list[Any], what: str) -> np.ndarray:
    """[T, n] or [T, n, C] float64 of a table or a mapping by node. Raises GraphError."""
    keys = list(given.keys() if isinstance(given, Mapping) else given.columns)
    known = {_key(key): key for key in keys}
    if len(known) < len(keys):
        twice = next(key for key in keys if sum(_key(each) == _key(key) for each in keys) > 1)
        raise GraphError(f"{what}: found {shown(repr(_key(twice)))} twice; one of each node would be right")
    lacking = [node for node in called if _key(node) not in known]
    if lacking:
        raise GraphError(
            f"{what}: found none of node {shown(repr(lacking[0]))}; one of each node would be right"
        )
    if len(known) > len(called):
        nodes = {_key(node) for node in called}
        extra = next(key for key in known if key not in nodes)
        raise GraphError(f"{what}: found {shown(repr(extra))}, which is no node; only nodes would be right")
    _refuse_unaligned(given, keys, what)
    columns = [_floats(given[known[_key(node)]], what, f" at node {shown(repr(node))}") for node in called]
    if len({each.shape for each in columns}) > 1:
        raise GraphError(f"{what}: found series of different lengths; as many steps of time would be right")
    return np.stack(columns, axis=1) if columns else np.zeros((0, 0))


def _refuse_unaligned(given: Any, keys: list[Any], what: str) -> None:
    """Refuse series of a mapping whose labels of steps differ: places are no times there. Raises
    GraphError."""
    labels = [getattr(given[key], "index", None) for key in keys] if isinstance(given, Mapping) else []
    labels = [each for each in labels if hasattr(each, "equals")]  # those of pandas
    if any(not each.equals(labels[0]) for each in labels[1:]):
        right = "a DataFrame of them, which brings their steps together, would be right"
        raise GraphError(f"{what}: found series whose indexes differ; {right}")


def refuse_other_steps(given: Any, series: Any, what: str) -> None:
    """Refuse what is known beforehand where its steps are not called what those of the series are, from the
    first one on; both have names in an index of pandas. Raises GraphError.

    what   the argument, for messages
    """
    ours, theirs = (_steps_of(each) for each in (given, series))
    if ours is None or theirs is None or _kind_of(ours) != _kind_of(theirs):
        return
    for step, (found, right) in enumerate(zip(ours, theirs)):
        if found != right:
            found, right = (shown(str(each)) for each in (found, right))
            raise GraphError(
                f"{what}: step {step} is called {found}; {right}, as of the series, would be right"
            )


def _steps_of(given: Any) -> Any:
    """The index of pandas that names steps; None of anything else."""
    if isinstance(given, Mapping):
        given = next(iter(given.values()), None)
    index = getattr(given, "index", None)
    return index if hasattr(index, "equals") else None


def _kind_of(index: Any) -> str:
    """Of the names in an index: numbers say nothing beside dates."""
    return np.asarray(index).dtype.kind


def _floats(given: Any, what: str, whose: str = "") -> np.ndarray:
    """float64 of an array, or of what NumPy makes one of; NaN where it is masked. Raises GraphError.

    what, whose   the argument, and at which node, for messages
    """
    try:
        kind = np.asarray(given).dtype.kind
        array = None if kind in "cMm" else np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None or not array.ndim:
        found = type(given).__name__
        found = f"found {found} that holds no real numbers{whose}"
        raise GraphError(f"{what}: {found}; an array of them would be right")
    return np.where(np.ma.getmaskarray(given), np.nan, array) if np.ma.isMaskedArray(given) else array


def _key(node: Any) -> Any:
    """By what a node is looked up: whole numbers of NumPy as Python's."""
    return node.item() if isinstance(node, np.generic) else node
