"""Files of families of sets: .sets, .gmt (a set a line), .hgr (PACE, hMETIS), .scp (OR-Library)."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import count

import numpy as np

from app.graphs.formats.counted import MANY_NODES, MOST_PER_EDGE, read_counts
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import (
    BLANKS,
    DIGITS,
    LARGEST_ID,
    blank_out,
    fields_of,
    find_tokens,
    read_id,
    token_integers,
)
from app.graphs.ids import check_text, fault_of_name, name_array
from app.graphs.lists import ranges
from app.graphs.stream import Chunk, EdgeStream
from app.graphs.weights import kept_weights

COMMENTS = re.compile(rb"(?m)^[ \t]*[#%].*$")
PACE_COMMENTS = re.compile(rb"(?m)^[ \t]*c.*$")
NAME = re.compile(rb"(.*?):(?:[ \t]+|$)")  # of a set, before its elements
SETS_RIGHT = "'element element ...' or 'name: element element ...'"
GMT_RIGHT = "a name, a description and elements, separated by tabs,"
PACE_RIGHT = "'p hs ELEMENTS SETS'"
HMETIS_RIGHT = "'HYPEREDGES VERTICES', perhaps with 1, 10 or 11,"
SCP_RIGHT = (
    "'ROWS COLUMNS', then costs of all columns and for each row the count and numbers of its columns, or for "
    "each column its cost, and the count and numbers of its rows,"
)
KINDS = (0, 1, 10, 11)  # of hMETIS: hyperedges have weights (1), vertices have (10)


def is_hitting(lines: list[list[bytes]]) -> bool:
    """True if the first line that is no comment begins with "p hs"."""
    first = next((fields for fields in lines if fields and not fields[0].startswith(b"c")), [])
    return first[:2] == [b"p", b"hs"]


# ---- a set a line ---------------------------------------------------------------------------------------


def read_sets(path: str, limits: Limits) -> EdgeStream:
    """The stream of a file of sets; one without a name is called by its number, from 1, among all of them."""
    source, found = Source(path, limits), []
    for number, line in source.lines():
        content = line.strip(b" \t")
        if not content or content[:1] in b"#%":
            continue
        check_text(source, content, number, "\t")
        head = NAME.match(content)
        name, rest = (head[1].strip(b" \t"), content[head.end() :]) if head else (b"", content)
        elements = fields_of(rest, b"," in rest)
        found.append(_checked(source, name or str(len(found) + 1).encode(), elements, number, SETS_RIGHT))
    return _listed(source, found, "sets", SETS_RIGHT)


def read_gmt(path: str, limits: Limits) -> EdgeStream:
    """The stream of a file of gene sets: of a line the first field is a name, the second is not read."""
    source, found = Source(path, limits), []
    for number, line in source.lines():
        if not line.strip(b" \t"):
            continue
        check_text(source, line, number, "\t")
        name, *rest = (field.strip(b" ") for field in line.split(b"\t"))
        elements = [each for each in rest[1:] if each]  # the description, perhaps empty, is the first
        found.append(_checked(source, name, elements, number, GMT_RIGHT))
    return _listed(source, found, "gmt", GMT_RIGHT)


def _checked(
    source: Source, name: bytes, elements: list[bytes], number: int, right: str
) -> tuple[bytes, list[bytes]]:
    """A set and its elements, as a line of checked text has them. Raises GraphError."""
    for each in (name, *elements):
        fault = "found a tab within a name" if b"\t" in each else fault_of_name(each)
        if fault:
            raise source.error(f"{fault}: '{shown(each)}'; {right} would be right", number)
    if not elements:
        raise source.error(f"found no elements of '{shown(name)}'; {right} would be right", number)
    return name, elements


def _listed(source: Source, sets: list[tuple[bytes, list[bytes]]], format: str, right: str) -> EdgeStream:
    """The stream of sets; whole numbers throughout are ids, anything else makes all of them names."""
    if not sets:
        raise source.empty(right)
    names, elements = [name for name, _ in sets], [each for _, found in sets for each in found]
    fields = [*names, *elements]
    named = not all(map(bytes.isdigit, fields))
    table = dict(zip(dict.fromkeys(fields), count())) if named else {}
    numbers = [table[each] for each in fields] if named else [_whole(source, each) for each in fields]
    ends = np.array(numbers, dtype=np.int64)
    for number, times in Counter(numbers[: len(names)]).items():
        if times > 1:
            name = shown(names[numbers.index(number)])
            raise source.error(f"found the set '{name}' {times} times; a name for each would be right")
    u = np.repeat(ends[: len(names)], [len(found) for _, found in sets])

    def chunks(stream: EdgeStream) -> Iterator[Chunk]:
        stream.ids = name_array(list(table)) if named else None
        yield u, ends[len(names) :], None

    return EdgeStream(
        graph_name(source.path), source.path, format, None, 0, False, chunks, source.warnings, named=named
    )  # fmt: skip


def _whole(source: Source, field: bytes) -> int:
    """The id that digits are. Raises GraphError."""
    if len(field) < 19:
        return int(field)
    value = read_id(field, 0, LARGEST_ID)
    if isinstance(value, str):
        raise source.error(f"{value}: '{shown(field)}'; ids up to 2^63-1 would be right")
    return value


# ---- hypergraphs ----------------------------------------------------------------------------------------


def read_hypergraph(path: str, limits: Limits) -> EdgeStream:
    """The stream of a hypergraph, whose hyperedges are the sets: PACE's "p hs" files, or hMETIS's."""
    source = Source(path, limits)
    for number, line in source.lines():
        fields = fields_of(line)
        if not fields or fields[0][:1] in b"c%#":
            continue
        if fields[0] == b"p":
            return _pace(source, line, number)
        return _hmetis(source, line, number)
    raise source.empty(f"{PACE_RIGHT} or {HMETIS_RIGHT}")


def _pace(source: Source, header: bytes, number: int) -> EdgeStream:
    fields = fields_of(header)
    if len(fields) != 4 or fields[1] != b"hs":
        raise source.error(f"found '{shown(header)}'; {PACE_RIGHT} would be right", number)
    elements, sets = read_counts(source, fields[2:], number, header, PACE_RIGHT)
    return _hypergraph(source, sets, elements, number, 0, PACE_COMMENTS)


def _hmetis(source: Source, header: bytes, number: int) -> EdgeStream:
    fields = fields_of(header)
    if len(fields) not in (2, 3):
        raise source.error(f"found '{shown(header)}'; {HMETIS_RIGHT} would be right", number)
    sets, elements, kind = read_counts(source, [*fields, b"0"][:3], number, header, HMETIS_RIGHT)
    if kind not in KINDS:
        raise source.error(f"found '{shown(header)}'; {HMETIS_RIGHT} would be right", number)
    return _hypergraph(source, sets, elements, number, kind, COMMENTS)


def _hypergraph(
    source: Source, sets: int, elements: int, skip: int, kind: int, comments: re.Pattern
) -> EdgeStream:
    """The stream of lines of elements, counted from 1, one for each set; kind: see KINDS."""

    def chunks(stream: EdgeStream) -> Iterator[Chunk]:
        values, lines = _integers(source, skip, comments)
        _check_share(source, sets + elements, len(values))
        of, first = np.unique(lines, return_index=True)
        wanted = sets + (elements if kind >= 10 else 0)
        if len(of) != wanted:
            raise source.error(f"found {len(of)} lines after the header; {wanted} would be right")
        costs = np.ones(sets + elements)
        if kind >= 10:
            at = first[sets] if sets < len(first) else len(values)
            costs[sets:] = _one_each(source, values[at:], lines[at:])
            values, lines, first = values[:at], lines[:at], first[:sets]
        inside = np.ones(len(values), dtype=bool)
        if kind % 10:
            costs[:sets], inside[first] = values[first], False
        u = np.searchsorted(of[:sets], lines[inside])
        found = np.bincount(u, minlength=sets)
        if kind % 10 and not found.all():
            raise source.error("found a weight and no vertices", int(of[found.argmin()]))
        v = _within(source, values[inside], elements, lines[inside])
        if kind:
            stream.node_weights = _kept(source, costs, sets)
        yield u, sets + v, None

    return EdgeStream(
        graph_name(source.path), source.path, "hgr", sets + elements, 1, False, chunks, source.warnings,
        sets=sets,
    )  # fmt: skip


def _check_share(source: Source, nodes: int, numbers: int) -> None:
    """Refuse a header by which nearly all sets and elements are in no pair, before they take memory."""
    most = max(MANY_NODES, MOST_PER_EDGE * numbers)
    if nodes > most:
        said = f"the header states {nodes} sets and elements, for {numbers} numbers"
        raise source.error(f"{said}; at most {most} would be right")


def _kept(source: Source, costs: np.ndarray, sets: int) -> np.ndarray:
    """[sets + elements] float32, costs in 32 bits; a warning where that changes them."""

    def called(i: int) -> str:
        one = f"set {i + 1}" if i < sets else f"element {i - sets + 1}"
        return f"{source.where}: the cost of {one}"

    return kept_weights(costs, called, source.warnings).astype(np.float32)


def _one_each(source: Source, values: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Numbers [k] that stand on a line each."""
    again = np.flatnonzero(lines[1:] == lines[:-1])
    if len(again):
        raise source.error("found two numbers; the weight of a vertex would be right", int(lines[again[0]]))
    return values


def _within(source: Source, values: np.ndarray, most: int, lines: np.ndarray | None = None) -> np.ndarray:
    """Numbers 1..most [k] counted from 0. Raises GraphError for another one."""
    wrong = np.flatnonzero((values < 1) | (values > most))
    if len(wrong):
        line = None if lines is None else int(lines[wrong[0]])
        raise source.error(f"found number {values[wrong[0]]}; 1..{most} would be right", line)
    return values - 1


def _integers(source: Source, skip: int, comments: re.Pattern) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers [t] of all lines after the first `skip`, and the line [t] of each."""
    values, lines = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for text, line in source.pieces(skip):
        text = blank_out(text, comments)
        if text.translate(None, DIGITS + BLANKS):
            _refuse_line(source, text, line)
        padded, starts, ends, line_ends = find_tokens(text)
        found = token_integers(padded, starts, ends)
        if found is None:
            _refuse_line(source, text, line)
        values.append(found)
        lines.append(np.searchsorted(line_ends, starts) + line)
    return np.concatenate(values), np.concatenate(lines)


def _refuse_line(source: Source, text: bytes, line: int) -> None:
    """Raises GraphError for the first line that holds anything but whole numbers below 2^63."""
    for number, content in enumerate(text.split(b"\n"), line):
        for field in content.split():
            if not field.isdigit() or len(field) > 18:
                raise source.error(f"found '{shown(field)}'; whole numbers would be right", number)


# ---- OR-Library -----------------------------------------------------------------------------------------


def read_scp(path: str, limits: Limits) -> EdgeStream:
    """The stream of a set covering problem of OR-Library: columns are sets, with costs, rows are elements.

    Of rows with their columns (scp41 ...), or of columns with their rows (rail507 ...): what fits.
    """
    source = Source(path, limits)
    values, _ = _integers(source, 0, COMMENTS)
    if len(values) < 2:
        raise source.error(f"found {len(values)} numbers; {SCP_RIGHT} would be right")
    rows, columns = int(values[0]), int(values[1])
    _check_share(source, rows + columns, len(values))
    found = _by_rows(values[2:], rows, columns) or _by_columns(values[2:], rows, columns)
    if found is None:
        raise source.error(
            f"found {rows} rows, {columns} columns, and numbers that do not fit; {SCP_RIGHT} would be right"
        )
    costs, u, v = found

    def chunks(stream: EdgeStream) -> Iterator[Chunk]:
        stream.node_weights = _kept(source, np.append(costs, np.ones(rows)), columns)
        yield u, columns + v, None

    return EdgeStream(
        graph_name(path), path, "scp", rows + columns, 1, False, chunks, source.warnings, sets=columns
    )  # fmt: skip


Family = tuple[np.ndarray, np.ndarray, np.ndarray]  # costs [sets], set and element of each pair [m]


def _by_rows(values: np.ndarray, rows: int, columns: int) -> Family | None:
    """Costs of all columns, then each row's count and columns; None where this does not fit."""
    lists = _lists(values[columns:], rows, 0)
    if len(values) < columns or lists is None:
        return None
    v, at = lists
    u = values[columns:][at] - 1
    return (values[:columns], u, v) if _inside(u, columns) else None


def _by_columns(values: np.ndarray, rows: int, columns: int) -> Family | None:
    """Each column's cost, count and rows; None where this does not fit."""
    lists = _lists(values, columns, 1)
    if lists is None:
        return None
    u, at = lists
    v = values[at] - 1
    costs = values[_heads(values, columns, 1)]
    return (costs, u, v) if _inside(v, rows) else None


def _inside(numbers: np.ndarray, count: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < count)


def _heads(values: np.ndarray, count: int, before: int) -> np.ndarray | None:
    """Where `count` lists begin that fill the values: `before` numbers, a length, and so many numbers."""
    starts, at = [], 0
    for _ in range(count):
        if at + before >= len(values):
            return None
        starts.append(at)
        at += before + 1 + int(values[at + before])
    return np.array(starts, dtype=np.int64) if at == len(values) else None


def _lists(values: np.ndarray, count: int, before: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Which list each member belongs to, and where it stands [m]; None: the lists do not fill the values."""
    starts = _heads(values, count, before)
    if starts is None:
        return None
    lengths = values[starts + before]
    of = np.repeat(np.arange(count), lengths)
    return of, ranges(starts + before + 1, lengths)
