"""DIMACS and PACE graph files: "p TYPE n m", then "e u v", "a u v w" or bare "u v" lines, numbered from 1."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from app.graphs.formats.counted import check_share, counted_rows, read_counts
from app.graphs.formats.parts import has_parts, rows_of_part
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import Layout, fields_of
from app.graphs.stream import Chunk, EdgeStream
from app.graphs.weights import kept_weights, tell_vanished

LETTER_LINE = re.compile(rb"(?m)^[ \t]*[A-Za-z].*$")
LETTER = re.compile(rb"[A-Za-z]")
NODE_WEIGHT = re.compile(rb"[+-]?[0-9]{1,18}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,3})?")
MOST_WEIGHT = 3.4e38
IGNORED = {b"v", b"d", b"x"}


def read_dimacs(path: str, limits: Limits) -> EdgeStream:
    """The stream of a DIMACS file; the first edge line settles how all of them are written."""
    source = Source(path, limits)
    header, lines = None, 0
    for number, line in source.lines():
        lines = number
        fields = fields_of(line)
        if not fields or fields[0].startswith(b"c"):
            continue
        if header is None:
            header = _read_problem(source, line, number)
        elif fields[0] in (b"e", b"a") or not fields[0][:1].isalpha():
            return _stream(source, header, fields)
    if header is None:
        right = "'p edge NODES EDGES'"
        raise source.error(f"found no p line; {right} would be right") if lines else source.empty(right)
    return _stream(source, header, [])


def _read_problem(source: Source, line: bytes, number: int) -> tuple[int, int, int]:
    """Nodes, edge lines and the line number of the "p TYPE n m" line."""
    fields = fields_of(line)
    right = "'p edge NODES EDGES'"
    if fields[0] != b"p":
        raise source.error(f"found '{shown(line)}' before the p line; {right} would be right", number)
    if len(fields) != 4:
        raise source.error(f"found {len(fields)} fields in '{shown(line)}'; {right} would be right", number)
    nodes, edges = read_counts(source, fields[2:], number, line, right)
    return nodes, edges, number


def _stream(source: Source, header: tuple[int, int, int], first: list[bytes]) -> EdgeStream:
    nodes, edges, skip = header
    letter = first[0] if first and first[0] in (b"e", b"a") else b""
    columns = 3 if len(first) - bool(letter) == 3 else 2
    layout = Layout(columns, first_id=1, last_id=nodes, comments=b"c", letter=letter)

    def chunks(stream: EdgeStream) -> Iterator[Chunk]:
        others = _OtherLines(source, nodes, letter, stream)
        seen = 0
        for chunk in counted_rows(source, skip, replace(layout, prepare=others.take_out), 2 * edges):
            seen += len(chunk[0])
            yield chunk
        _compare_counts(source, stream, edges, seen, skip)
        if others.weights:
            check_share(stream.name, nodes, seen)
            stream.node_weights = others.node_weights()

    def part(stream: EdgeStream, rank: int, size: int) -> Iterator[Chunk]:
        unseen = replace(stream, warnings=[])
        others = _OtherLines(source, nodes, letter, unseen)
        yield from rows_of_part(source, skip, replace(layout, prepare=others.take_out), rank, size)
        if others.weights or unseen.warnings:
            raise source.error("holds more than edges; reading it in one piece would be right")

    return EdgeStream(
        graph_name(source.path), source.path, "dimacs", nodes, 1, columns == 3, chunks,
        source.warnings, part=part if has_parts(source) else None, lines=edges, undirected=letter != b"a",
    )  # fmt: skip


def _compare_counts(source: Source, stream: EdgeStream, stated: int, seen: int, line: int) -> None:
    """Refuse another number of edge lines than stated, save twice or half: one or both directions."""
    if seen == stated:
        return
    found = f"the p line states {stated} edges, found {seen} edge lines"
    if seen not in (2 * stated, stated / 2):
        raise source.error(f"{found}; {stated}, or exactly twice or half as many, would be right", line)
    stream.warn(f"{source.where}:{line}: {found}")


class _OtherLines:
    """Takes the lines that are no edges out of the text, and keeps the node weights among them."""

    def __init__(self, source: Source, nodes: int, letter: bytes, stream: EdgeStream) -> None:
        self.source, self.nodes, self.letter, self.stream = source, nodes, letter, stream
        self.weights: dict[int, float] = {}

    def take_out(self, text: bytes, line: int) -> bytes:
        """`text` with only the numbers of its edge lines left."""
        if self.letter:
            text = self._strip_letter(text, line)
        if not LETTER.search(text):
            return text
        kept, at = [], 0
        for match in LETTER_LINE.finditer(text):
            line += text.count(b"\n", at, match.start())
            kept.append(text[at : match.start()])
            at = match.start()
            self._read(match.group(), line)
            line += text.count(b"\n", at, match.end())
            at = match.end()
        return b"".join(kept) + text[at:]

    def _strip_letter(self, text: bytes, line: int) -> bytes:
        """Remove the letter of the edge lines; refuse edge lines without it."""
        bare = re.search(rb"(?m)^[ \t]*[^A-Za-z \t\n]", text)
        if bare:
            number = line + text.count(b"\n", 0, bare.start())
            found = text[bare.start() : text.index(b"\n", bare.start())]
            letter = self.letter.decode()
            raise self.source.error(
                f"found '{shown(found)}'; '{letter} ...', as in the first edge line, would be right", number
            )
        text = (b"\n" + text).replace(b"\n" + self.letter + b" ", b"\n")[1:]
        if re.search(rb"(?m)^[ \t]*" + self.letter + rb"[ \t]", text):
            text = re.sub(rb"(?m)^[ \t]*" + self.letter + rb"[ \t]", b"", text)
        return text

    def _read(self, found: bytes, line: int) -> None:
        """One line that starts with a letter."""
        fields = fields_of(found)
        if fields[0].startswith(b"c"):
            return
        if fields[0] in IGNORED:
            letter = fields[0].decode()
            self.stream.warn(f"{self.source.where}: '{letter}' lines are ignored")
            return
        if fields[0] != b"n":
            right = "an edge line, or a line starting with c or n, would be right"
            raise self.source.error(f"found '{shown(found)}'; {right}", line)
        self._read_node(fields, found, line)

    def _read_node(self, fields: list[bytes], found: bytes, line: int) -> None:
        node, weight = fields[1:] if len(fields) == 3 else (b"", b"")
        plain = re.fullmatch(rb"[0-9]{1,18}", node) and NODE_WEIGHT.fullmatch(weight)
        if not plain or not 1 <= int(node) <= self.nodes or abs(float(weight)) > MOST_WEIGHT:
            right = f"'n NODE WEIGHT' with a node 1..{self.nodes}, a weight up to 3.4e38, would be right"
            raise self.source.error(f"found '{shown(found)}'; {right}", line)
        self.weights[int(node)] = float(weight)
        called = lambda _: f"{self.source.where}:{line}: the weight"  # noqa: E731
        tell_vanished(np.array([float(weight)]), weight, lambda: [weight], called, self.stream.warnings)

    def node_weights(self) -> np.ndarray:
        """[nodes] float32, 1 where no line gave a weight."""
        weights = np.ones(self.nodes)
        weights[np.array(list(self.weights)) - 1] = list(self.weights.values())
        return kept_weights(
            weights, lambda i: f"{self.source.where}: the weight of node {i + 1}", self.stream.warnings
        )
