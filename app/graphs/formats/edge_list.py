"""Edge lists as SNAP distributes them: two ids a line, optionally a weight; comments; ids with gaps."""

import re
from collections.abc import Iterator

from app.graphs.formats.parts import part_of_rows
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import Layout, blank_out, fields_of, read_rows
from app.graphs.stream import Chunk, EdgeStream

COMMENTS = re.compile(rb"(?m)^[ \t]*[#%].*$")
NAMES = ' (graph.ids = "names" would read names)'
NUMBER_START = re.compile(rb"[+-]?\.?[0-9]|[+-]?(nan|inf)", re.IGNORECASE)


def read_edge_list(path: str, limits: Limits) -> EdgeStream:
    """The stream of an edge list; the first data line settles separator and number of columns."""
    source = Source(path, limits)
    for number, line in source.lines():
        content = line.strip(b" \t\r")
        if not content or content[:1] in b"#%":
            continue
        if number == 1 and _is_title(content):
            source.warnings.append(f"{source.where}:1: skipped the first line '{shown(content)}'")
            continue
        return _stream(source, content, number - 1)
    raise source.empty(f"lines of two node ids{NAMES if source.warnings else ''}")


def _is_title(content: bytes) -> bool:
    """True for a first line whose first field is no number: column names, or an address."""
    first = re.split(rb"[ \t,]", content, maxsplit=1)[0]
    return not NUMBER_START.match(first) and not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", content)


def _stream(source: Source, content: bytes, skip: int) -> EdgeStream:
    comma = b"," in content
    found = len(fields_of(content, comma))
    layout = Layout(
        columns=3 if found == 3 else 2, comma=comma, comments=b"#%", hint=NAMES, prepare=_without_comments
    )

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        for text, line in source.pieces(skip):
            yield read_rows(source, text, line, layout)

    return EdgeStream(
        graph_name(source.path), source.path, "edges", None, 0, layout.columns == 3, chunks,
        source.warnings, part=part_of_rows(source, skip, layout),
    )  # fmt: skip


def _without_comments(text: bytes, _: int) -> bytes:
    return blank_out(text, COMMENTS) if b"#" in text or b"%" in text else text
