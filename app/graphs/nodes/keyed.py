"""Features, labels and splits in text files whose lines begin with the id of a node, in any order.

The first field of a line is the id: between tabs (where the line has one), else commas, else blanks. The rest
is read as the lines of a file without ids are (graphs/nodes/text.py).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from app.graphs.formats.source import Source, shown
from app.graphs.formats.text import LARGEST_ID, read_id
from app.graphs.ids import NodeIndex, check_text, one_id
from app.graphs.nodes.data import DenseFeatures, Labels, Splits
from app.graphs.nodes.text import data_lines

QUOTED = re.compile(rb'[ \t]*"((?:[^"]|"")*)"[ \t]*,(.*)')
RIGHT = "a node id and what is known of the node would be right"

Table = TypeVar("Table", DenseFeatures, Labels, Splits)


@dataclass(frozen=True)
class Nodes:
    """Those that the lines of a file are about.

    ids    [n] of the graph's nodes in the order of their rows; None: any, where the shape of a file is asked
    name   of the graph, for messages
    """

    ids: np.ndarray | None = None
    name: str = ""


class _WithoutIds(Source):
    """A text file without the ids with which its lines begin."""

    def pieces(self, skip: int = 0) -> Iterator[tuple[bytes, int]]:
        """As those of Source."""
        for text, line in super().pieces(skip):
            yield b"\n".join(_rest(each) for each in text.split(b"\n")), line


def keyed(read: Callable[[Source], Table], source: Source, nodes: Nodes) -> Table:
    """What `read` makes of the file without its ids, and which node each row is of. Raises GraphError.

    Every node has one line. Splits are put in the order of the nodes.
    """
    order = None if nodes.ids is None else _order(source, NodeIndex(nodes.ids), nodes)
    table = read(_WithoutIds(source.path, source.limits, source.warnings))
    if order is None:
        return table
    if not isinstance(table, Splits):
        return replace(table, order=order)
    flags = np.empty_like(table.flags)
    flags[order] = table.flags
    return replace(table, flags=flags)


def _split(line: bytes) -> tuple[bytes, bytes]:
    """The first field of a line, and the rest."""
    between = next((mark for mark in (b"\t", b",") if mark in line), b" ")
    if between == b"," and (found := QUOTED.fullmatch(line)):
        return found[1].replace(b'""', b'"').strip(b" "), found[2]
    first, _, rest = line.strip(b" \t").partition(between)
    return first.strip(b" "), rest.strip(b" \t")


def _rest(line: bytes) -> bytes:
    return line if line.startswith(b"#") or not line.strip(b" \t") else _split(line)[1]


def _order(source: Source, index: NodeIndex, nodes: Nodes) -> np.ndarray:
    """[n] int64, the row of the node of each line."""
    rows: list[int] = []
    line_of: dict[int, int] = {}
    for number, line in data_lines(source):
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
    order = np.array(rows, dtype=np.int64)
    if len(order) < len(nodes.ids):
        lacking = np.ones(len(nodes.ids), dtype=bool)
        lacking[order] = False
        right = f"one for each of the {len(lacking)} nodes of {shown(nodes.name, 200)} would be right"
        raise source.error(f"found no line of node {one_id(nodes.ids, lacking.argmax())}; {right}")
    return order


def _id(source: Source, field: bytes, line: bytes, number: int, names: bool) -> int | bytes:
    """The id that a field holds."""
    if names:
        check_text(source, field, number)
        return field
    found = read_id(field, 0, LARGEST_ID)
    if isinstance(found, str):
        raise source.error(f"{found} in '{shown(line)}'; {RIGHT}", number)
    return found
