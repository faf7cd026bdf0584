"""Features, labels and splits in text files whose lines begin with the id of a node, in any order.

The first field of a line is the id: between tabs (where the line has one), else commas, else blanks. The rest
is read as the lines of a file without ids are (graphs/nodes/text.py). The first line may be a title.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

import numpy as np

from app.graphs.formats.source import Source, shown
from app.graphs.formats.text import LARGEST_ID, read_id
from app.graphs.ids import NodeIndex, check_text, one_id
from app.graphs.nodes.data import DenseFeatures, Labels, Splits, rows_per_piece
from app.graphs.nodes.text import data_lines

QUOTED = re.compile(rb'[ \t]*"((?:[^"]|"")*)"[ \t]*,(.*)')
RIGHT = "a node id and what is known of the node would be right"

Table = TypeVar("Table", DenseFeatures, Labels, Splits)


@dataclass(frozen=True)
class Nodes:
    """Those that the lines of a file are about.

    ids        [n] of the graph's nodes, by their rows; None: any, where the shape of a file is asked
    name       of the graph, for messages
    warnings   what is to be said of the files that were read
    """

    ids: np.ndarray | None = None
    name: str = ""
    warnings: list[str] = field(default_factory=list, compare=False)


@dataclass(frozen=True)
class _WithoutIds(Source):
    """A text file without the ids with which its lines begin, and without its first `titles` lines."""

    titles: int = 0

    def pieces(self, skip: int = 0) -> Iterator[tuple[bytes, int]]:
        """As those of Source."""
        for text, line in super().pieces(max(skip, self.titles)):
            yield b"\n".join(_rest(each) for each in text.split(b"\n")), line


def keyed(
    read: Callable[[Source], Table], known: Callable[[Source, bytes], bool], source: Source, nodes: Nodes
) -> Table:
    """What `read` makes of the file without its ids, and which node each row is of. Raises GraphError.

    known   whether the rest of a line is what one says of a node

    Features have a line for each node; nodes without a line have no label, and are in no set. Splits are put
    in the order of the nodes.
    """
    index = None if nodes.ids is None else NodeIndex(nodes.ids)
    titles = _titles(known, source, index, nodes)
    order = None if index is None else _order(source, titles, index, nodes)
    table = read(_WithoutIds(source.path, source.limits, source.warnings, titles))
    if order is None:
        return table
    lacking = np.ones(len(nodes.ids), dtype=bool)
    lacking[order] = False
    if isinstance(table, Splits):
        flags = np.zeros(len(nodes.ids), dtype=np.uint8)
        flags[order] = table.flags
        _say_lacking(source, nodes, lacking, "in no set (none)")
        return replace(table, flags=flags)
    if isinstance(table, Labels):
        _say_lacking(source, nodes, lacking, f"without a label ({'nan' if table.values else -1})")
        return _with_unlabelled(table, order, np.flatnonzero(lacking))
    if lacking.any():
        right = f"one for each of the {len(lacking)} nodes of {shown(nodes.name, 200)} would be right"
        raise source.error(f"found no line of node {one_id(nodes.ids, lacking.argmax())}; {right}")
    return replace(table, order=order)


def _titles(
    known: Callable[[Source, bytes], bool], source: Source, index: NodeIndex | None, nodes: Nodes
) -> int:
    """How many lines of titles there are, 0 or 1: the first line names no node, and says nothing of one."""
    number, line = next(data_lines(source), (0, b""))
    first, rest = _split(line)
    if number != 1 or not rest or (index is not None and _is_node(index, first)):
        return 0
    if known(_WithoutIds(source.path, source.limits), rest):
        return 0
    nodes.warnings.append(f"{source.where}:1: skipped the first line '{shown(line)}'")
    return 1


def _is_node(index: NodeIndex, first: bytes) -> bool:
    """Whether a field is the id of a node."""
    found = first if index.named else read_id(first, 0, LARGEST_ID)
    return not isinstance(found, str) and index.row(found) is not None


def _say_lacking(source: Source, nodes: Nodes, lacking: np.ndarray, what: str) -> None:
    """A warning of the nodes that have no line."""
    if count := int(np.count_nonzero(lacking)):
        first, name = one_id(nodes.ids, lacking.argmax()), shown(nodes.name, 200)
        found = f"has no line of {count} of the {len(lacking)} nodes of {name} ({first} is the first)"
        nodes.warnings.append(f"{source.where}: {found}: taken as {what}")


def _with_unlabelled(table: Labels, order: np.ndarray, lacking: np.ndarray) -> Labels:
    """Labels with rows of none for the nodes that have no line."""
    shape = (table.columns,) if table.columns else ()
    kind = np.float64 if table.values else np.int8 if table.columns else np.int64
    step = rows_per_piece(8 * max(table.columns, 1))

    def parts() -> Iterator[np.ndarray]:
        pieces = (lacking[at : at + step] for at in range(0, len(lacking), step))
        none = (np.full((len(each), *shape), np.nan if table.values else -1, dtype=kind) for each in pieces)
        return chain(table.parts(), none)

    return replace(table, n=table.n + len(lacking), parts=parts, order=np.concatenate([order, lacking]))


def _split(line: bytes) -> tuple[bytes, bytes]:
    """The first field of a line, and the rest."""
    between = next((mark for mark in (b"\t", b",") if mark in line), b" ")
    if between == b"," and (found := QUOTED.fullmatch(line)):
        return found[1].replace(b'""', b'"').strip(b" "), found[2]
    first, _, rest = line.strip(b" \t").partition(between)
    return first.strip(b" "), rest.strip(b" \t")


def _rest(line: bytes) -> bytes:
    return line if line.startswith(b"#") or not line.strip(b" \t") else _split(line)[1]


def _order(source: Source, titles: int, index: NodeIndex, nodes: Nodes) -> np.ndarray:
    """[lines] int64, the row of the node of each line after the titles."""
    rows: list[int] = []
    line_of: dict[int, int] = {}
    for number, line in data_lines(source):
        if number <= titles:
            continue
        first, rest = _split(line)
        if not rest or rest.startswith(b"#"):
            raise source.error(f"found nothing after the id in '{shown(line)}'; {RIGHT}", number)
        row = index.row(_id(source, first, line, number, index.named))
        if row is None:
            right = f"a node of {shown(nodes.name, 200)} would be right"
            raise source.error(f"found node {shown(first)}; {right}", number)
        before = line_of.setdefault(row, number)
        if before != number:
            right = "one line for each node would be right"
            raise source.error(f"found node {shown(first)} again, after line {before}; {right}", number)
        rows.append(row)
    if not rows:
        raise source.error(f"found no line of a node of {shown(nodes.name, 200)}; {RIGHT}")
    return np.array(rows, dtype=np.int64)


def _id(source: Source, field: bytes, line: bytes, number: int, names: bool) -> int | bytes:
    """The id that a field holds."""
    if names:
        check_text(source, field, number)
        return field
    found = read_id(field, 0, LARGEST_ID)
    if isinstance(found, str):
        raise source.error(f"{found} in '{shown(line)}'; {RIGHT}", number)
    return found
