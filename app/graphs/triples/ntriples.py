r"""The lines of N-Triples files, read strictly.

Source   RDF 1.1 N-Triples (W3C Recommendation, 25 February 2014), grammar of section 7

A term (an IRI, a blank node, or a literal with its language or datatype) is a node, whether it stands as
subject or as object, and a predicate is a relation. Terms are equal where they are after \u, \U and \n-like
escapes are resolved. Blank lines and comments are skipped.
"""

import re
from collections.abc import Iterator

from app.graphs.formats.source import Source, shown

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
_RIGHT = (
    "'subject predicate object .' in N-Triples, or three columns between tabs in all lines, would be right"
)
_ESCAPE = re.compile(_UCHAR + rb"|\\[tbnrf\"'\\]")
_PLAIN = {b"t": b"\t", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"f": b"\f"}


def ntriples_terms(source: Source, text: bytes, line: int) -> Iterator[tuple[bytes, bytes, bytes]]:
    """The terms of each line of a piece of text, which starts at line `line`. Raises GraphError."""
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


def is_ntriples(line: bytes) -> bool:
    """Whether a line is a triple of N-Triples, a comment or blank."""
    return _LINE.fullmatch(line + b"\n") is not None
