"""Files of qbsolv (.qubo): "p qubo 0 VARIABLES LINEAR PRODUCTS", then lines "i i c" and "i j c", from 0."""

import re
from collections.abc import Iterator

import numpy as np

from app.graphs.formats.counted import counted_rows, read_counts
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import Layout, blank_out, fields_of
from app.graphs.stream import Chunk, EdgeStream

COMMENTS = re.compile(rb"(?m)^[ \t]*[c#].*$")
RIGHT = "'p qubo 0 VARIABLES LINEAR PRODUCTS'"


def read_qubo(path: str, limits: Limits) -> EdgeStream:
    """The stream of a .qubo file: an entry (i, i) is a linear term, (i, j) the factor of a product."""
    source = Source(path, limits)
    for number, line in source.lines():
        fields = fields_of(line)
        if not fields or fields[0][:1] in (b"c", b"#"):
            continue
        if len(fields) != 6 or fields[:2] != [b"p", b"qubo"] or fields[2] not in (b"0", b"unconstrained"):
            raise source.error(f"found '{shown(line)}'; {RIGHT} would be right", number)
        return _stream(source, *read_counts(source, fields[3:], number, line, RIGHT), number)
    raise source.empty(RIGHT)


def _stream(source: Source, nodes: int, linear: int, products: int, skip: int) -> EdgeStream:
    layout = Layout(columns=3, last_id=max(nodes - 1, 0), comments=b"c#", prepare=_without_comments)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        seen = np.zeros(2, dtype=np.int64)
        for u, v, w in counted_rows(source, skip, layout, linear + products):
            seen += np.count_nonzero(u == v), np.count_nonzero(u != v)
            yield u, v, w
        if seen.tolist() != [linear, products]:
            found = f"found {seen[0]} lines 'i i c' and {seen[1]} lines 'i j c'"
            raise source.error(f"the header states {linear} and {products}, {found}", skip)

    return EdgeStream(
        graph_name(source.path), source.path, "qubo", nodes, 0, True, chunks, source.warnings,
        entries=2 * products,
    )  # fmt: skip


def _without_comments(text: bytes, _: int) -> bytes:
    return blank_out(text, COMMENTS) if b"c" in text or b"#" in text else text
