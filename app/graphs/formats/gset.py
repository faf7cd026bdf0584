"""Gset files (rudy): a line "n m", then m lines "u v weight", numbered from 1."""

from collections.abc import Iterator

from app.graphs.formats.counted import counted_rows, read_counts
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import Layout, fields_of
from app.graphs.stream import Chunk, EdgeStream


def read_gset(path: str, limits: Limits) -> EdgeStream:
    """The stream of a Gset file."""
    source = Source(path, limits)
    for number, line in source.lines():
        fields = fields_of(line)
        if not fields:
            continue
        right = "'NODES EDGES'"
        if len(fields) != 2:
            found = f"found {len(fields)} fields in '{shown(line)}'"
            raise source.error(f"{found}; {right} would be right", number)
        nodes, edges = read_counts(source, fields, number, line, right)
        return _stream(source, nodes, edges, number)
    raise source.empty("'NODES EDGES'")


def _stream(source: Source, nodes: int, edges: int, skip: int) -> EdgeStream:
    layout = Layout(columns=3, first_id=1, last_id=nodes)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        seen = 0
        for chunk in counted_rows(source, skip, layout, edges):
            seen += len(chunk[0])
            yield chunk
        if seen != edges:
            raise source.error(f"the header states {edges} edges, found {seen}", skip)

    return EdgeStream(
        graph_name(source.path), source.path, "gset", nodes, 1, True, chunks, source.warnings,
        undirected=True,
    )  # fmt: skip
