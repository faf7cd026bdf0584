"""A file of node weights beside a graph: lines `id weight` by the graph's own ids, or an .npy array [n]."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np

from app.graphs.formats.edge_list import NUMBER_START
from app.graphs.formats.npy import MAGIC, NAME, Npy
from app.graphs.formats.source import Limits, Source, shown
from app.graphs.formats.text import LARGEST_ID, fields_of, numbers_by_id, read_id
from app.graphs.ids import NodeIndex, name_array, name_first, named, one_id
from app.graphs.nodes.keyed import is_id
from app.graphs.nodes.text import data_lines, held_lines
from app.graphs.weights import kept_weights, tell_vanished

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
LARGEST = float(np.finfo(np.float32).max)
RIGHT = "'id weight', the weight a number from 0 to 3.4e38, would be right"


def read_node_weights(
    path: str, limits: Limits, ids: np.ndarray, name: str, missing: float | None = None
) -> tuple[np.ndarray, list[str]]:
    """Weights [n] float32 in the order of the rows, and warnings of what is not kept as it is.

    ids    [n] int64 or names, the file's id of each row     name   of the graph, for messages
    missing   the weight of nodes without a line; None: every node has one
    Fields are separated by blanks or a comma; blank lines and lines that start with # are skipped, so is a
    first line that names columns, with a warning; text may be packed. After a name, which may have blanks,
    the last field is the weight. An .npy array is in the order of the rows. A node has one weight.
    Raises GraphError.
    """
    source = Source(path, limits)
    if source.first_bytes(len(MAGIC)).startswith(MAGIC):
        return _array(source, len(ids), name)
    index = NodeIndex(ids)
    warnings = _titles(source, index)
    found, weights, lines = _lines(source, named(ids), len(warnings), warnings)
    row = index.find(found)
    if (row < 0).any():
        i = int((row < 0).argmax())
        raise source.error(
            f"found node {one_id(found, i)}; a node of {shown(name, 200)} would be right", lines[i]
        )
    _refuse_repeats(source, found, lines)
    if len(found) < len(ids) and missing is None:
        lacking = np.ones(len(ids), dtype=bool)
        lacking[row] = False
        right = f"a line for each of the {len(ids)} nodes of {shown(name, 200)} would be right"
        raise source.error(f"found no weight of node {one_id(np.sort(ids[lacking]), 0)}; {right}")
    kept = np.full(len(ids), 0 if missing is None else missing, dtype=np.float32)
    kept[row] = kept_weights(weights, lambda i: f"{source.where}:{lines[i]}: the weight", warnings)
    return kept, warnings


def _titles(source: Source, index: NodeIndex) -> list[str]:
    """A warning of a first line that names columns: its two fields are neither a node nor a number."""
    number, line = next(data_lines(source), (0, b""))
    fields = _fields(line, index.named) if number == 1 else ()
    if len(fields) != 2 or is_id(index, fields[0]) or NUMBER_START.match(fields[1]):
        return []
    return [f"{source.where}:1: skipped the first line '{shown(line)}'"]


def _fields(line: bytes, names: bool) -> Sequence[bytes]:
    """The fields of a line: an id or, where nodes have names, all but the last field, and a number."""
    return name_first(line, 2) if names else fields_of(line, b"," in line)


def _lines(
    source: Source, names: bool, skip: int = 0, warnings: list[str] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids [k] int64 or names, weights [k] float64 and line numbers [k], without the first `skip` lines.

    warnings   gets a line on the first weight that 64 bits keep as 0
    """
    ids: list[Sequence] = []
    weights, lines = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for text, first in source.pieces(skip):
        plain = None if names else numbers_by_id(text)
        if plain is None or not _fits(plain[1]).all():
            plain = _by_line(source, text, first, names)
        ids.append(plain[0])
        weights.append(plain[1])
        lines.append(plain[2] + first)
        last, place = partial(_last_fields, text, first, names), partial(_place, source, lines[-1])
        tell_vanished(plain[1], text, last, place, [] if warnings is None else warnings)
    found = name_array(list(chain(*ids))) if names else np.concatenate([np.zeros(0, dtype=np.int64), *ids])
    return found, np.concatenate(weights), np.concatenate(lines)


def _last_fields(text: bytes, first: int, names: bool) -> Iterator[bytes]:
    """The weights of a piece of text as they are written."""
    return (_fields(line, names)[-1] for _, line in held_lines(text, first))


def _place(source: Source, lines: np.ndarray, i: int) -> str:
    """Where the i-th of the weights of some lines [k] stands."""
    return f"{source.where}:{lines[i]}: the weight"


def _by_line(source: Source, text: bytes, first: int, names: bool) -> tuple[Sequence, np.ndarray, np.ndarray]:
    """Ids or names [k], weights [k] and lines [k], from 0, of any piece; raises for the first wrong line."""
    ids, weights, lines = [], [], []
    for number, line in held_lines(text, first):
        fields = _fields(line, names)
        if len(fields) != 2:
            raise source.error(f"found {len(fields)} fields in '{shown(line)}'; {RIGHT}", number)
        node = fields[0] if names else read_id(fields[0], 0, LARGEST_ID)
        if isinstance(node, str):
            raise source.error(f"{node} in '{shown(line)}'; {RIGHT}", number)
        weight = float(fields[1]) if NUMBER.fullmatch(fields[1]) else np.nan
        if not _fits(weight):
            raise source.error(f"found weight '{shown(fields[1])}'; {RIGHT}", number)
        ids.append(node)
        weights.append(weight)
        lines.append(number - first)
    found = ids if names else np.array(ids, dtype=np.int64)
    return found, np.array(weights, dtype=np.float64), np.array(lines, dtype=np.int64)


def _fits(weights: np.ndarray | float) -> np.ndarray:
    """Where numbers are from 0 to the largest of 32 bits."""
    return (weights >= 0) & (weights <= LARGEST)


def _refuse_repeats(source: Source, found: np.ndarray, lines: np.ndarray) -> None:
    """Refuse the first line whose node has a weight already."""
    order = np.argsort(found, kind="stable")
    again = np.flatnonzero(found[order[1:]] == found[order[:-1]])
    if len(again):
        place = again[order[again + 1].argmin()]
        i, before = int(order[place + 1]), int(order[place])
        told = f"found node {one_id(found, i)} again, after line {lines[before]}"
        raise source.error(f"{told}; one weight for each node would be right", lines[i])


def _array(source: Source, n: int, name: str) -> tuple[np.ndarray, list[str]]:
    """Those of an .npy file."""
    file = Npy(source)
    column = file.columns[NAME]
    if column.dtype.kind not in "iuf" or column.shape != (n,):
        right = f"{n} numbers, one for each node of {shown(name, 200)}, would be right"
        raise source.error(f"found {column.dtype} of shape {column.shape}; {right}")
    found, warnings = file.whole(column), []
    wrong = ~_fits(found.astype(np.float64))
    if wrong.any():
        i = int(wrong.argmax())
        raise source.error(f"found weight {found[i]} in row {i}; a number from 0 to 3.4e38 would be right")
    return kept_weights(found, lambda i: f"{source.where}: the weight in row {i}", warnings), warnings
