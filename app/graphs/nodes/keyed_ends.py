"""Labels and splits of edges in text files whose lines begin with the ids of both ends, in any order.

The first two fields of a line are the ids, parted as the id of a node is (keyed.py). The rest is read as the
lines of a file without ids are. The first line may be a title.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from app.graphs.formats.source import Source, shown
from app.graphs.ids import NodeIndex
from app.graphs.nodes.data import Labels, Splits
from app.graphs.nodes.keyed import (
    Nodes,
    find_rows,
    is_id,
    one_id_of,
    plain_fields,
    split_first,
    without_ids,
)
from app.graphs.nodes.text import data_lines, held_lines

RIGHT = "the ids of two nodes and what is known of their edge would be right"

Table = TypeVar("Table", Labels, Splits)


@dataclass(frozen=True)
class _WithoutEnds(Source):
    """A text file without the two ids with which its lines begin, and without its first `titles` lines."""

    titles: int = 0

    def pieces(self, skip: int = 0) -> Iterator[tuple[bytes, int]]:
        """As those of Source."""
        for text, line in super().pieces(max(skip, self.titles)):
            yield without_ids(without_ids(text)), line


def keyed_by_ends(
    read: Callable[[Source, int | None], Table],
    known: Callable[[Source, bytes], bool],
    source: Source,
    nodes: Nodes,
) -> tuple[Table, np.ndarray | None]:
    """What `read` makes of the file without its ids, and [lines, 2] int64 the rows of the ends of each line.

    read, known   as `keyed` takes them     nodes   of the graph; without ids the shape alone is asked for
    Raises GraphError
    """
    index = None if nodes.ids is None else NodeIndex(nodes.ids)
    titles = _titles(known, source, index, nodes)
    rest = _WithoutEnds(source.path, source.limits, source.warnings, titles)
    if index is None:
        return read(rest, None), None
    parts = [_ends(source, text, line, index, nodes) for text, line in source.pieces(titles)]
    ends = np.concatenate([np.empty((0, 2), dtype=np.int64), *parts])
    if not len(ends):
        raise source.error(f"found no line of an edge of {shown(nodes.name, 200)}; {RIGHT}")
    return read(rest, len(ends)), ends


def _titles(
    known: Callable[[Source, bytes], bool], source: Source, index: NodeIndex | None, nodes: Nodes
) -> int:
    """How many lines of titles there are, 0 or 1: the first line names no node, and says nothing of one."""
    number, line = next(data_lines(source), (0, b""))
    first, rest = split_first(line)
    second, rest = split_first(rest)
    if number != 1 or not rest or (index is not None and (is_id(index, first) or is_id(index, second))):
        return 0
    if known(_WithoutEnds(source.path, source.limits), rest):
        return 0
    nodes.warnings.append(f"{source.where}:1: skipped the first line '{shown(line)}'")
    return 1


def _ends(source: Source, text: bytes, line: int, index: NodeIndex, nodes: Nodes) -> np.ndarray:
    """[lines, 2] int64 the rows of the ends in a piece of text. Raises GraphError."""
    plain = plain_fields(text)
    second = plain and plain_fields(b"\n".join([*plain[1], b""]))
    if second and all(second[1]):
        found = [find_rows(each, index) for each in (plain[0], second[0])]
        if all(each is not None and (each >= 0).all() for each in found):
            return np.stack(found, axis=1)
    rows = [_ends_of_line(source, each, number, index, nodes) for number, each in held_lines(text, line)]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def _ends_of_line(
    source: Source, line: bytes, number: int, index: NodeIndex, nodes: Nodes
) -> tuple[int, int]:
    """The rows of the ends of one line; raises for what is wrong."""
    first, rest = split_first(line)
    second, rest = split_first(rest)
    if not rest or rest.startswith(b"#"):
        raise source.error(f"found nothing after the ids in '{shown(line)}'; {RIGHT}", number)
    rows = []
    for field in (first, second):
        row = index.row(one_id_of(source, field, line, number, index.named, RIGHT))
        if row is None:
            right = f"a node of {shown(nodes.name, 200)} would be right"
            raise source.error(f"found node {shown(field)}; {right}", number)
        rows.append(row)
    return rows[0], rows[1]
