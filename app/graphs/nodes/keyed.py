"""Features, labels and splits in text files whose lines begin with the id of a node, in any order.

The first field of a line is the id: between tabs (where the line has one), else commas, else blanks. The rest
is read as the lines of a file without ids are (graphs/nodes/text.py). The first line may be a title.
"""

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

import numpy as np

from app.graphs.formats.source import Source, shown
from app.graphs.formats.text import DIGITS, LARGEST_ID, find_tokens, read_id, token_integers
from app.graphs.ids import NodeIndex, check_text, one_id
from app.graphs.nodes.data import DenseFeatures, Labels, Splits, with_unlabelled
from app.graphs.nodes.text import data_lines, held_lines

QUOTED = re.compile(rb'[ \t]*"((?:[^"]|"")*)"[ \t]*,(.*)')
RIGHT = "a {0} id and what is known of the {0} would be right"

Table = TypeVar("Table", DenseFeatures, Labels, Splits)


@dataclass(frozen=True)
class Nodes:
    """Those that the lines of a file are about.

    ids        [n] of the graph's nodes, by their rows; None: any, where the shape of a file is asked
    name       of the graph, for messages
    warnings   what is to be said of the files that were read
    what       they are, for messages
    """

    ids: np.ndarray | None = None
    name: str = ""
    warnings: list[str] = field(default_factory=list, compare=False)
    what: str = "node"

    @property
    def right(self) -> str:
        """What each line is to have."""
        return RIGHT.format(self.what)


@dataclass(frozen=True)
class _WithoutIds(Source):
    """A text file without the ids with which its lines begin, and without its first `titles` lines."""

    titles: int = 0

    def pieces(self, skip: int = 0) -> Iterator[tuple[bytes, int]]:
        """As those of Source."""
        for text, line in super().pieces(max(skip, self.titles)):
            yield without_ids(text), line


def keyed(
    read: Callable[[Source, int | None], Table],
    known: Callable[[Source, bytes], bool],
    source: Source,
    nodes: Nodes,
) -> Table:
    """What `read` makes of the file without its ids, and which node each row is of. Raises GraphError.

    read    takes the file and the number of its rows, None where that is not known
    known   whether the rest of a line is what one says of a node

    Features have a line for each node; nodes without a line have no label, and are in no set. Splits are put
    in the order of the nodes.
    """
    index = None if nodes.ids is None else NodeIndex(nodes.ids)
    titles = _titles(known, source, index, nodes)
    rest = _WithoutIds(source.path, source.limits, source.warnings, titles)
    if index is None:
        return read(rest, None)
    order = _order(source, titles, index, nodes)
    table = read(rest, len(order))
    lacking = np.ones(len(nodes.ids), dtype=bool)
    lacking[order] = False
    if isinstance(table, Splits):
        flags = np.zeros(len(nodes.ids), dtype=np.uint8)
        flags[order] = table.flags
        _say_lacking(source, nodes, lacking, "in no set (none)")
        return replace(table, flags=flags)
    if isinstance(table, Labels):
        _say_lacking(source, nodes, lacking, f"without a label ({'nan' if table.values else -1})")
        return with_unlabelled(table, order, np.flatnonzero(lacking))
    if lacking.any():
        right = f"one for each of the {len(lacking)} nodes of {shown(nodes.name, 200)} would be right"
        raise source.error(f"found no line of node {one_id(nodes.ids, lacking.argmax())}; {right}")
    names = _names_of(source) if titles and isinstance(table, DenseFeatures) else ()
    if isinstance(table, DenseFeatures) and len(names) == table.width:
        return replace(table, order=order, names=names)
    return replace(table, order=order)


def _names_of(source: Source) -> tuple[str, ...]:
    """What the first line calls the fields after the id."""
    line = next(data_lines(source))[1].decode(errors="replace")
    between = next((mark for mark in ("\t", ",") if mark in line), None)
    fields = next(csv.reader([line], skipinitialspace=True)) if between == "," else line.split(between)
    return tuple(each.strip() for each in fields[1:])


def _titles(
    known: Callable[[Source, bytes], bool], source: Source, index: NodeIndex | None, nodes: Nodes
) -> int:
    """How many lines of titles there are, 0 or 1: the first line names no node, and says nothing of one."""
    number, line = next(data_lines(source), (0, b""))
    first, rest = split_first(line)
    if number != 1 or not rest or (index is not None and is_id(index, first)):
        return 0
    if known(_WithoutIds(source.path, source.limits), rest):
        return 0
    nodes.warnings.append(f"{source.where}:1: skipped the first line '{shown(line)}'")
    return 1


def is_id(index: NodeIndex, first: bytes) -> bool:
    """Whether a field is the name of a node or, where nodes have numbers, a number."""
    if index.named:
        return index.row(first) is not None
    return not isinstance(read_id(first, 0, LARGEST_ID), str)


def _say_lacking(source: Source, nodes: Nodes, lacking: np.ndarray, what: str) -> None:
    """A warning of the nodes that have no line."""
    if count := int(np.count_nonzero(lacking)):
        first, name = one_id(nodes.ids, lacking.argmax()), shown(nodes.name, 200)
        found = f"has no line of {count} of the {len(lacking)} {nodes.what}s of {name} ({first} is the first)"
        nodes.warnings.append(f"{source.where}: {found}: taken as {what}")


def split_first(line: bytes) -> tuple[bytes, bytes]:
    """The first field of a line, and the rest."""
    between = next((mark for mark in (b"\t", b",") if mark in line), b" ")
    if between == b"," and (found := QUOTED.fullmatch(line)):
        return found[1].replace(b'""', b'"').strip(b" "), found[2].strip(b" \t")
    first, _, rest = line.strip(b" \t").partition(between)
    return first.strip(b" "), rest.strip(b" \t")


def _rest(line: bytes) -> bytes:
    return line if line.startswith(b"#") or not line.strip(b" \t") else split_first(line)[1]


def without_ids(text: bytes) -> bytes:
    """A piece of text without the first fields of its lines."""
    plain = plain_fields(text)
    return b"\n".join(map(_rest, text.split(b"\n")) if plain is None else [*plain[1], b""])


def plain_fields(text: bytes) -> tuple[list[bytes], list[bytes]] | None:
    """The ids of a piece of text and the rest of each line, as `split_first` has them, or None.

    Only of lines of one form, none empty, without quotes, blanks around what is parted, or comments.
    """
    between = next((mark for mark in (b"\t", b",") if mark in text), b" ")
    if between == b"," and b'"' in text:
        return None
    lines = text.split(b"\n")
    lines.pop()
    # Twice, since a list of what `partition` returns would take twice the memory.
    fields = [line.partition(between)[0] for line in lines], [line.partition(between)[2] for line in lines]
    begin, end = ({each[at] for each in chain(*fields)} for at in (slice(0, 1), slice(-1, None)))
    return None if begin & {b"", b" ", b"\t", b"#"} or end & {b" ", b"\t"} else fields


def _order(source: Source, titles: int, index: NodeIndex, nodes: Nodes) -> np.ndarray:
    """[lines] int64, the row of the node of each line after the titles."""
    line_of = np.zeros(len(nodes.ids), dtype=np.int64)  # each node's; 0: none yet
    found = [np.zeros(0, dtype=np.int64)]
    for text, line in source.pieces(titles):
        rows = _plain_rows(text, line, index, line_of)
        found.append(_rows_by_line(source, text, line, index, line_of, nodes) if rows is None else rows)
    order = np.concatenate(found)
    if not len(order):
        raise source.error(f"found no line of a {nodes.what} of {shown(nodes.name, 200)}; {nodes.right}")
    return order


def _plain_rows(text: bytes, line: int, index: NodeIndex, line_of: np.ndarray) -> np.ndarray | None:
    """The rows of the nodes of a piece of text, or None where it is not plain or anything is wrong.

    line_of   [n] the line of each node that came before; those of the piece are added
    """
    plain = plain_fields(text)
    rows = None if plain is None else find_rows(plain[0], index)
    if rows is None or (rows < 0).any() or line_of[rows].any():
        return None
    lines = np.arange(line, line + len(rows))
    line_of[rows] = lines
    if (line_of[rows] == lines).all():
        return rows
    line_of[rows] = 0  # a node occurs twice
    return None


def find_rows(ids: list[bytes], index: NodeIndex) -> np.ndarray | None:
    """[k] int64 the rows of ids, -1 where there is none; or None where one is no number but should be."""
    if index.named:
        return index.find_names(ids)
    text = b"\n".join([*ids, b""])
    if text.translate(None, DIGITS + b"\n"):
        return None
    padded, starts, ends, _ = find_tokens(text)
    numbers = token_integers(padded, starts, ends)
    return None if numbers is None else index.find(numbers)


def _rows_by_line(
    source: Source, text: bytes, line: int, index: NodeIndex, line_of: np.ndarray, nodes: Nodes
) -> np.ndarray:
    """As _plain_rows, of any lines; raises for the first one that is wrong."""
    rows = []
    for number, found in held_lines(text, line):
        first, rest = split_first(found)
        if not rest or rest.startswith(b"#"):
            raise source.error(f"found nothing after the id in '{shown(found)}'; {nodes.right}", number)
        row = index.row(one_id_of(source, first, found, number, index.named, nodes.right))
        if row is None:
            right = f"a {nodes.what} of {shown(nodes.name, 200)} would be right"
            raise source.error(f"found {nodes.what} {shown(first)}; {right}", number)
        if line_of[row]:
            right = f"one line for each {nodes.what} would be right"
            raise source.error(
                f"found {nodes.what} {shown(first)} again, after line {line_of[row]}; {right}", number
            )
        line_of[row] = number
        rows.append(row)
    return np.array(rows, dtype=np.int64)


def one_id_of(source: Source, field: bytes, line: bytes, number: int, names: bool, right: str) -> int | bytes:
    """The id that a field holds."""
    if names:
        check_text(source, field, number)
        return field
    found = read_id(field, 0, LARGEST_ID)
    if isinstance(found, str):
        raise source.error(f"{found} in '{shown(line)}'; {right}", number)
    return found
