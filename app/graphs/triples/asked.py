"""Files of triples in which one end is asked, "?" in its place."""

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import Limits, Source, shown
from app.graphs.triples.data import DEFAULT_LIMITS, Triples

ASKED = "?"
DIGITS = 10  # of the largest int32
RIGHT = 'three columns between tabs, "?" as the subject or as the object, would be right'


def read_asked(path: str, triples: Triples, limits: Limits = DEFAULT_LIMITS) -> np.ndarray:
    """[q, 3] int64 (subject, relation, object) by number, -1 in the place of the end that is asked.

    Nodes and relations are spelled as the graph has them, IRIs with or without < and >; where it has no
    names they are numbers. Raises GraphError with file and line.
    """
    source, rows = Source(path, limits), []
    nodes = _Names("node", triples.node_names, triples.nodes)
    relations = _Names("relation", triples.relation_names, triples.relations)
    for line, text in source.lines():
        fields = [part.decode("utf-8", "backslashreplace").strip() for part in text.split(b"\t")]
        if not any(fields):
            continue
        if len(fields) != 3 or (fields[0] == ASKED) == (fields[2] == ASKED):
            raise source.error(f"found '{shown(text.decode('utf-8', 'backslashreplace'))}'; {RIGHT}", line)
        subject, relation, object_ = fields
        try:
            ends = [-1 if name == ASKED else nodes.number(name) for name in (subject, object_)]
            rows.append([ends[0], relations.number(relation), ends[1]])
        except KeyError as error:
            raise source.error(error.args[0], line) from None
    if not rows:
        raise GraphError(f"{source.where}: asks nothing; {RIGHT}")
    return np.array(rows, dtype=np.int64)


class _Names:
    """Numbers by name; without names a number is its own."""

    def __init__(self, what: str, names: list[str], size: int) -> None:
        self._what, self._size = what, size
        self._numbers = {name: k for k, name in enumerate(names)}

    def number(self, name: str) -> int:
        """That of a name. Raises KeyError, with what is wrong, where there is none."""
        found = self._numbers.get(name, self._numbers.get(f"<{name}>"))
        if not self._numbers and name.isascii() and name.isdecimal() and len(name) <= DIGITS:
            found = int(name) if int(name) < self._size else None
        if found is None:
            what = self._what
            raise KeyError(f"found {what} '{shown(name)}'; a {what} of the graph would be right")
        return found
