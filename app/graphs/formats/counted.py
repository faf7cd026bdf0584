"""Formats whose header counts nodes and edges: the header fields, and rows checked against the count."""

from collections.abc import Iterator

from app.errors import GraphError
from app.graphs.formats.source import Source, shown
from app.graphs.formats.text import Layout, line_of_row, prepared, read_id, read_rows
from app.graphs.stream import Chunk

MOST_NODES = 1 << 40
MANY_NODES = 1 << 24  # as many may be isolated
MOST_PER_EDGE = 256  # nodes that a header may state for each edge line


def read_counts(source: Source, fields: list[bytes], line: int, content: bytes, right: str) -> list[int]:
    """The integers of a header line; `right` says what it should look like."""
    counts = [read_id(field, 0, MOST_NODES) for field in fields]
    for count in counts:
        if isinstance(count, str):
            reason = count.replace("node id", "count")
            raise source.error(f"{reason} in '{shown(content)}'; {right} would be right", line)
    return counts


def check_share(name: str, nodes: int, lines: int) -> None:
    """Refuse a header by which nearly all nodes are isolated: it costs memory, and is a slip or an attack.

    Raises GraphError
    """
    most = max(MANY_NODES, MOST_PER_EDGE * lines)
    if nodes > most:
        said = f"the header states {nodes} nodes, for {lines} edge lines"
        raise GraphError(f"{name}: {said}; at most {most} would be right")


def counted_rows(source: Source, skip: int, layout: Layout, most: int) -> Iterator[Chunk]:
    """The rows after line `skip`; the row after the `most`-th is refused with its line."""
    seen = 0
    for text, line in source.pieces(skip):
        chunk = read_rows(source, text, line, layout)
        seen += len(chunk[0])
        if seen > most:
            row = len(chunk[0]) - (seen - most)
            raise source.error(
                f"found more than {most} edge lines; the number that the header states would be right",
                line_of_row(prepared(text, line, layout), line, row),
            )
        yield chunk
