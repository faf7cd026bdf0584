"""Matrix Market coordinate files as graphs: row and column are the ends of an edge, the value its weight."""

import re
from collections.abc import Iterator
from dataclasses import replace

from app.graphs.formats.counted import counted_rows, read_counts
from app.graphs.formats.parts import part_of_rows
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import Layout, blank_out, fields_of
from app.graphs.stream import Chunk, EdgeStream

COMMENTS = re.compile(rb"(?m)^[ \t]*%.*$")
# The banner's words that describe a graph, in the banner's order.
ACCEPTED = {
    "object": ["matrix"],
    "format": ["coordinate"],
    "field": ["pattern", "real", "integer"],
    "symmetry": ["general", "symmetric"],
}


def read_matrix_market(path: str, limits: Limits) -> EdgeStream:
    """The stream of a square coordinate matrix; entries as stored, so a symmetric one has each edge once."""
    source = Source(path, limits)
    field = symmetry = None
    for number, line in source.lines():
        if number == 1:
            field, symmetry = _read_banner(source, line)
        elif line.strip(b" \t") and not line.lstrip(b" \t").startswith(b"%"):
            nodes, entries = _read_sizes(source, line, number)
            return replace(_stream(source, field, nodes, entries, number), undirected=symmetry == "symmetric")
    if field is None:
        raise source.empty("a line '%%MatrixMarket ...'")
    raise source.error("found no line of sizes; 'rows columns entries' would be right")


def _read_banner(source: Source, line: bytes) -> list[str]:
    """The field (pattern, real, integer) and the symmetry that line 1 states."""
    words = line.decode("latin-1").lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket":
        right = "'%%MatrixMarket matrix coordinate FIELD SYMMETRY' would be right"
        raise source.error(f"found '{shown(line)}'; {right}", 1)
    for word, (part, accepted) in zip(words[1:], ACCEPTED.items()):
        if word not in accepted:
            raise source.error(f"found {part} '{shown(word)}'; {' or '.join(accepted)} would be right", 1)
    return words[3:]


def _read_sizes(source: Source, line: bytes, number: int) -> tuple[int, int]:
    fields = fields_of(line)
    right = "'rows columns entries'"
    if len(fields) != 3:
        raise source.error(f"found {len(fields)} fields in '{shown(line)}'; {right} would be right", number)
    rows, columns, entries = read_counts(source, fields, number, line, right)
    if rows != columns:
        raise source.error(f"found {rows} rows and {columns} columns; a square matrix would be right", number)
    return rows, entries


def _stream(source: Source, field: str, nodes: int, entries: int, skip: int) -> EdgeStream:
    columns = 2 if field == "pattern" else 3
    layout = Layout(
        columns, first_id=1, last_id=nodes, real=field == "real", comments=b"%", prepare=_without_comments
    )

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        seen = 0
        for chunk in counted_rows(source, skip, layout, entries):
            seen += len(chunk[0])
            yield chunk
        if seen != entries:
            raise source.error(f"the header states {entries} entries, found {seen}", skip)

    return EdgeStream(
        graph_name(source.path), source.path, "matrix_market", nodes, 1, columns == 3, chunks,
        source.warnings, part=part_of_rows(source, skip, layout), lines=entries,
    )  # fmt: skip


def _without_comments(text: bytes, _: int) -> bytes:
    return blank_out(text, COMMENTS) if b"%" in text else text
