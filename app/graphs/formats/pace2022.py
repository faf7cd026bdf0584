"""Directed graphs as PACE 2022 has them: a header "n m t", then one line of heads for each node."""

from collections.abc import Iterator

from app.graphs.formats.counted import read_counts
from app.graphs.formats.metis import Header, node_lines
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import fields_of
from app.graphs.stream import Chunk, EdgeStream

RIGHT = "'NODES ARCS 0'"


def read_pace2022(path: str, limits: Limits) -> EdgeStream:
    """The stream of a directed graph: an arc from node i to each node that line i names; % begins a comment.

    Source   PACE Challenge 2022, directed feedback vertex set
    """
    source = Source(path, limits)
    for number, line in source.lines():
        if fields_of(line) and not line.lstrip(b" \t").startswith(b"%"):
            return _stream(source, _read_header(source, line, number))
    raise source.empty(f"a header {RIGHT}")


def _read_header(source: Source, line: bytes, number: int) -> Header:
    fields = fields_of(line)
    if len(fields) != 3:
        raise source.error(f"found {len(fields)} fields in '{shown(line)}'; {RIGHT} would be right", number)
    nodes, arcs, kind = read_counts(source, fields, number, line, RIGHT)
    if kind:
        raise source.error(f"found the type {kind} in '{shown(line)}'; {RIGHT} would be right", number)
    return Header(number, nodes, arcs, 0, 0, False)


def _stream(source: Source, header: Header) -> EdgeStream:
    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        rows = arcs = 0
        for count, u, v, _w, _firsts in node_lines(source, header):
            rows, arcs = rows + count, arcs + len(u)
            yield u, v, None
        if rows != header.nodes:
            said = f"the header states {header.nodes} nodes, found {rows} node lines"
            raise source.error(f"{said}; a line for each node would be right", header.line)
        if arcs != header.edges:
            said = f"the header states {header.edges} arcs, found {arcs}"
            raise source.error(f"{said}; equal numbers would be right", header.line)

    return EdgeStream(
        graph_name(source.path), source.path, "pace2022", header.nodes, 1, False, chunks, source.warnings
    )
