r"""N-Triples files and the label tables of the R-GCN data sets, read line by line and strictly.

Source   RDF 1.1 N-Triples (W3C Recommendation, 25 February 2014), grammar of section 7
         label tables: Ristoski, de Vries, Paulheim 2016, as the R-GCN data sets use them

A term (an IRI, a blank node, or a literal with its language or datatype) is a node, whether it stands as
subject or as object, and a predicate is a relation; both are numbered in the order of their first appearance.
Terms are equal where they are after \u, \U and \n-like escapes are resolved. Repeated triples stay; blank
lines and comments are skipped.
"""

import re
from collections.abc import Iterator

import numpy as np

from app.graphs.source import Limits, Source, graph_name, shown
from app.graphs.triples import DEFAULT_LIMITS, NodeLabels, Triples, check_labels, check_sizes

_UCHAR = rb"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_IRI = rb'<(?:[^\x00-\x20<>"{}|^`\\]|' + _UCHAR + rb")*>"
# Letters beyond ASCII arrive as bytes from 0x80 on.
_BLANK = rb"_:[A-Za-z0-9_:\x80-\xff](?:[A-Za-z0-9_:\-.\x80-\xff]*[A-Za-z0-9_:\-\x80-\xff])?"
_TEXT = rb'"(?:[^"\\\n\r]|\\[tbnrf"\'\\]|' + _UCHAR + rb')*"'
_LITERAL = _TEXT + rb"(?:\^\^" + _IRI + rb"|@[A-Za-z]+(?:-[A-Za-z0-9]+)*)?"
_LINE = re.compile(
    rb"[ \t]*(?:(" + _IRI + rb"|" + _BLANK + rb")[ \t]*(" + _IRI + rb")[ \t]*"
    rb"(" + _IRI + rb"|" + _BLANK + rb"|" + _LITERAL + rb")[ \t]*\.[ \t]*)?(?:#[^\n]*)?\n"
)  # fmt: skip
_RIGHT = "'subject predicate object .' in N-Triples would be right"
_ESCAPE = re.compile(_UCHAR + rb"|\\[tbnrf\"'\\]")
_PLAIN = {b"t": b"\t", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"f": b"\f"}


def read_ntriples(path: str, limits: Limits = DEFAULT_LIMITS) -> Triples:
    """The triples of an N-Triples file, packed or not. Raises GraphError with file and line."""
    source = Source(path, limits)
    nodes: dict[bytes, int] = {}
    relations: dict[bytes, int] = {}
    parts = [np.zeros((0, 3), dtype=np.int32)]
    for text, line in source.pieces():
        rows = [
            (
                nodes.setdefault(s, len(nodes)),
                relations.setdefault(p, len(relations)),
                nodes.setdefault(o, len(nodes)),
            )
            for s, p, o in _terms(source, text, line)
        ]
        parts.append(np.array(rows, dtype=np.int32).reshape(-1, 3))
        check_sizes(source, len(nodes), sum(map(len, parts)))
    rows = np.concatenate(parts)
    if not len(rows):
        raise source.empty("lines of 'subject predicate object .'")
    columns = [np.ascontiguousarray(rows[:, at]) for at in range(3)]
    names = [[name.decode("utf-8", "backslashreplace") for name in each] for each in (relations, nodes)]
    return Triples(graph_name(path), len(nodes), len(relations), *columns, *names)


def _terms(source: Source, text: bytes, line: int) -> Iterator[tuple[bytes, bytes, bytes]]:
    """The terms of each line of a piece of text, which starts at line `line`."""
    at = 0
    escaped = b"\\" in text
    for match in _LINE.finditer(text):
        if match.start() != at:
            break
        at = match.end()
        if match[1] is not None:
            yield tuple(map(_resolved, match.groups())) if escaped else match.groups()
    if at != len(text):
        bad = text[at : text.index(b"\n", at)]
        raise source.error(f"found '{shown(bad)}'; {_RIGHT}", line + text.count(b"\n", 0, at))


def _resolved(term: bytes) -> bytes:
    """A term with its escapes resolved."""
    return _ESCAPE.sub(_character, term) if b"\\" in term else term


def _character(match: re.Match) -> bytes:
    found = match[0]
    if found[1:2] in b"uU":
        code = int(found[2:], 16)
        # What no character has (a surrogate, beyond 10FFFF) stays as it is written.
        return found if 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code).encode()
    return _PLAIN.get(found[1:], found[1:])


# ---- labels -----------------------------------------------------------------------------------------------


def read_label_tables(
    train_path: str, test_path: str, triples: Triples, limits: Limits = DEFAULT_LIMITS
) -> NodeLabels:
    """Labels of nodes from two tables with a header line, separated by tabs.

    The label is the column whose name begins with "label", the node is the other one that is not named "id"
    (which numbers the rows); nodes are IRIs without their angle brackets. Classes are numbered in the order
    of their names. Raises GraphError.
    """
    number = {name: k for k, name in enumerate(triples.node_names)}
    tables = [_read_table(Source(path, limits), number) for path in (train_path, test_path)]
    names = sorted({label for table in tables for _, label in table})
    class_of = {name: k for k, name in enumerate(names)}
    arrays = []
    for table in tables:
        arrays.append(np.array([node for node, _ in table], dtype=np.int32))
        arrays.append(np.array([class_of[label] for _, label in table], dtype=np.int32))
    return check_labels(NodeLabels(len(names), *arrays, names), Source(train_path, limits))


def _read_table(source: Source, number: dict[str, int]) -> list[tuple[int, str]]:
    """(node, label) of each row."""
    rows: list[tuple[int, str]] = []
    columns: tuple[int, int] | None = None
    width = 0
    for line, text in source.lines():
        fields = [part.decode("utf-8", "backslashreplace").strip() for part in text.split(b"\t")]
        if not any(fields):
            continue
        if columns is None:
            columns, width = _header(source, fields, line), len(fields)
            continue
        if len(fields) != width:
            raise source.error(
                f"found {len(fields)} columns; {width}, as in the header, would be right", line
            )
        name, label = (fields[at] for at in columns)
        node = number.get(f"<{name}>", number.get(name))
        if node is None:
            raise source.error(f"found node '{shown(name)}'; a node of the graph would be right", line)
        rows.append((node, label))
    if not rows:
        raise source.error("holds no labels; a header and rows 'node, label' would be right")
    return rows


def _header(source: Source, fields: list[str], line: int) -> tuple[int, int]:
    """Which columns hold the node and its label."""
    label = [at for at, name in enumerate(fields) if name.startswith("label")]
    node = [at for at, name in enumerate(fields) if at not in label and name != "id"]
    if len(label) != 1 or len(node) != 1:
        found = ", ".join(f"'{shown(name)}'" for name in fields[:6])
        right = "one column 'label...', one of nodes and at most one 'id' would be right"
        raise source.error(f"found columns {found}; {right}", line)
    return node[0], label[0]
