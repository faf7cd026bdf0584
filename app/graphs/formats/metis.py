"""METIS .graph files: a header "n m [fmt [ncon]]", then one line of neighbours for each node."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.graphs.formats import plain
from app.graphs.formats.counted import read_counts
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import (
    BLANKS,
    DIGITS,
    LARGEST_ID,
    fields_of,
    find_tokens,
    read_id,
    token_integers,
)
from app.graphs.stream import Chunk, EdgeStream
from app.graphs.weights import kept_weights

COMMENT_LINE = re.compile(rb"(?m)^[ \t]*%.*\n")
RIGHT = "'NODES EDGES [FMT [NCON]]'"


@dataclass(frozen=True)
class Header:
    """What the header line states; `before` numbers stand in front of a line's neighbours.

    sizes     0 or 1 vertex sizes; constraints  the number of vertex weights
    weighted  every neighbour is followed by its edge's weight
    """

    line: int
    nodes: int
    edges: int
    sizes: int
    constraints: int
    weighted: bool

    @property
    def before(self) -> int:
        """How many numbers of a line precede its neighbours."""
        return self.sizes + self.constraints


def read_metis(path: str, limits: Limits) -> EdgeStream:
    """The stream of a METIS graph: every adjacency entry, so each edge in both directions."""
    source = Source(path, limits)
    for number, line in source.lines():
        if fields_of(line) and not line.lstrip(b" \t").startswith(b"%"):
            return _stream(source, _read_header(source, line, number))
    raise source.empty(f"a header {RIGHT}")


def _read_header(source: Source, line: bytes, number: int) -> Header:
    fields = fields_of(line)
    if not 2 <= len(fields) <= 4:
        raise source.error(f"found {len(fields)} fields in '{shown(line)}'; {RIGHT} would be right", number)
    nodes, edges, *_ = read_counts(source, fields[:2] + fields[3:], number, line, RIGHT)
    code = fields[2] if len(fields) > 2 else b"0"
    if not re.fullmatch(rb"[01]{1,3}", code):
        raise source.error(f"found fmt '{shown(code)}'; 000 to 111 would be right", number)
    sizes, node_weights, edge_weights = (digit == "1" for digit in code.decode().zfill(3))
    constraints = int(fields[3]) if len(fields) == 4 else int(node_weights)
    if len(fields) == 4 and not (node_weights and 1 <= constraints <= 1000):
        found = f"found ncon {shown(fields[3])} with fmt '{shown(code)}'"
        raise source.error(f"{found}; 1..1000, with fmt x1x, would be right", number)
    return Header(number, nodes, edges, int(sizes), constraints, edge_weights)


def _stream(source: Source, header: Header) -> EdgeStream:
    def chunks(stream: EdgeStream) -> Iterator[Chunk]:
        rows, entries, mirror, node_weights = 0, 0, 0, []
        for count, u, v, w, firsts in node_lines(source, header):
            rows += count
            entries += len(u)
            mirror = (mirror + _mirror_sum(u, v)) % 2**64
            node_weights.append(firsts)
            yield u, v, w
        _compare_counts(source, header, rows, entries, mirror)
        stream.node_weights = np.concatenate([np.zeros(0, np.float32), *node_weights])
        if not header.constraints:
            stream.node_weights = None

    return EdgeStream(
        graph_name(source.path), source.path, "metis", header.nodes, 1, header.weighted, chunks,
        source.warnings, undirected=True, mirrored=not header.weighted,
    )  # fmt: skip


def node_lines(source: Source, header: Header) -> Iterator[tuple]:
    """Piece by piece of the text: how many node lines, then u, v, w and the nodes' weights of these."""
    rows = 0
    for text, line in source.pieces(header.line):
        values, counts = _read_lines(source, text, line, header, rows)
        yield len(counts), *_split_lines(source, header, values, counts, rows)
        rows += len(counts)


def _compare_counts(source: Source, header: Header, rows: int, entries: int, mirror: int) -> None:
    """Refuse other counts than the header's, and neighbours that do not name each other."""
    if rows != header.nodes:
        raise source.error(f"the header states {header.nodes} nodes, found {rows} node lines", header.line)
    if entries != 2 * header.edges:
        found = f"the header states {header.edges} edges, found {entries} neighbours"
        raise source.error(f"{found}; {2 * header.edges} would be right", header.line)
    if mirror:
        raise source.error("found neighbours that do not name each other; both directions would be right")


def _mirror_sum(u: np.ndarray, v: np.ndarray) -> int:
    """A sum that is 0 modulo 2^64 if each entry (u, v) has its mirror (v, u), and else almost never.

    u, v  [k]   entries; sums of all chunks are to be added
    """
    if (found := plain.mirror_sum(u, v)) is not None:
        return found
    low, high = np.minimum(u, v).astype(np.uint64), np.maximum(u, v).astype(np.uint64)
    mixed = low * np.uint64(0x9E3779B97F4A7C15) ^ high * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    return int(mixed[u < v].sum(dtype=np.uint64)) - int(mixed[u > v].sum(dtype=np.uint64))


def _read_lines(
    source: Source, text: bytes, line: int, header: Header, row: int
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a piece [t] int64 and how many stand on each node line [k]; `row` lines came before."""
    found = plain.parse_numbers(text, b"%")
    if found is None:
        found = find_numbers(COMMENT_LINE.sub(b"", text) if b"%" in text else text)
    found = found if found is not None and _fit(*found, header, row) else None
    return _read_slow(source, text, line, header, row) if found is None else found


def find_numbers(text: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """The numbers of all lines and how many stand on each, or None where anything is unusual."""
    if text.translate(None, DIGITS + BLANKS):
        return None
    padded, starts, ends, line_ends = find_tokens(text)
    values = token_integers(padded, starts, ends)
    return None if values is None else (values, np.diff(np.searchsorted(starts, line_ends), prepend=0))


def _fit(values: np.ndarray, counts: np.ndarray, header: Header, row: int) -> bool:
    """Whether the numbers of node lines are what the header says."""
    if row + len(counts) > header.nodes:
        return False
    neighbours, weights = _columns(header, counts)
    listed = values[neighbours]
    in_range = len(listed) == 0 or bool(listed.min() >= 1 and listed.max() <= header.nodes)
    positive = not header.weighted or bool((values[weights] > 0).all())
    whole = (counts >= header.before) & ((counts - header.before) % (1 + header.weighted) == 0)
    return in_range and positive and bool(whole.all())


def _columns(header: Header, counts: np.ndarray) -> tuple[Any, Any]:
    """Where neighbours, and where edge weights stand among the numbers of all lines: masks [t] or slices."""
    if not header.before:  # a line holds neighbours alone, or neighbours and weights by turns
        return (slice(0, None, 2), slice(1, None, 2)) if header.weighted else (slice(None), slice(0))
    firsts = np.repeat(np.cumsum(counts) - counts, counts)
    place = np.arange(len(firsts)) - firsts - header.before
    if not header.weighted:
        return place >= 0, slice(0)
    return (place >= 0) & (place % 2 == 0), (place >= 0) & (place % 2 == 1)


def _split_lines(source: Source, header: Header, values: np.ndarray, counts: np.ndarray, row: int) -> tuple:
    """u, v, w of all entries and the first weight of each node [k] float32."""
    neighbours, weights = _columns(header, counts)
    nodes = np.repeat(np.arange(row, row + len(counts)), counts)
    starts = np.cumsum(counts) - counts
    u, v, firsts, w = nodes[neighbours], values[neighbours] - 1, np.zeros(0, np.float32), None
    said = f"{source.where}: the weight of"
    if header.weighted:
        w = kept_weights(values[weights], lambda i: f"{said} edge {u[i] + 1}-{v[i] + 1}", source.warnings)
    if header.constraints:
        own = values[starts + header.sizes]
        firsts = kept_weights(own, lambda i: f"{said} node {row + i + 1}", source.warnings)
    return u, v, w, firsts


def _read_slow(
    source: Source, text: bytes, line: int, header: Header, row: int
) -> tuple[np.ndarray, np.ndarray]:
    """As `find_numbers`, line by line; raises for the first line that is wrong."""
    values, counts = [], []
    for number, found in enumerate(text.split(b"\n")[:-1], line):
        fields = fields_of(found)
        if found.lstrip(b" \t").startswith(b"%"):
            continue
        if row + len(counts) == header.nodes:
            if fields:
                stated = f"found '{shown(found)}' after the last of {header.nodes} node lines"
                raise source.error(f"{stated}; the end of the file would be right", number)
            continue
        numbers = _check_line(fields, header)
        if isinstance(numbers, str):
            raise source.error(f"{numbers} in '{shown(found)}'; {_right(header)} would be right", number)
        values += numbers
        counts.append(len(numbers))
    return np.array(values, dtype=np.int64), np.array(counts, dtype=np.int64)


def _check_line(fields: list[bytes], header: Header) -> list[int] | str:
    """The numbers of one node line, or what is wrong with it."""
    numbers = []
    for place, field in enumerate(fields, -header.before):
        neighbour = place >= 0 and not (header.weighted and place % 2)
        low = 1 if place >= 0 else 0
        number = read_id(field, low, header.nodes if neighbour else LARGEST_ID)
        if isinstance(number, str):
            return number if neighbour else number.replace("node id", "number")
        numbers.append(number)
    if len(fields) < header.before or (header.weighted and (len(fields) - header.before) % 2):
        return f"found {len(fields)} numbers"
    return numbers


def _right(header: Header) -> str:
    before = f"{header.before} numbers, then " if header.before else ""
    after = ", each followed by its weight," if header.weighted else ""
    return f"{before}neighbours 1..{header.nodes}{after}"
