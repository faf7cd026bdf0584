"""Text files of triples: N-Triples, and the tables of three columns that link prediction is compared on.

Nodes and relations are numbered in the order of their first appearance, over all files of a graph. Repeated
triples stay.
"""

from collections.abc import Iterator

import numpy as np

from app.graphs.formats.source import Limits, Source, graph_name, graph_suffix, shown
from app.graphs.triples.data import DEFAULT_LIMITS, NO_SETS, TRAIN, Triples, check_sizes
from app.graphs.triples.ntriples import is_ntriples, ntriples_terms

Terms = tuple[bytes, bytes, bytes]
TABLE = "three columns (subject, relation, object) between tabs would be right"


def read_triple_text(
    path: str, others: dict[int, str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Triples:
    """The triples of a file, N-Triples or a table, packed or not; and those of files for other sets.

    others   files by the set that their triples are (VALID, TEST)
    Raises GraphError with file and line.
    """
    numbers = _Numbers()
    parts = {TRAIN: numbers.rows_of(Source(path, limits))}
    for number, other in (others or {}).items():
        parts[number] = numbers.rows_of(Source(other, limits))
    rows = np.concatenate(list(parts.values()))
    sets = np.concatenate([np.full(len(part), number, dtype=np.uint8) for number, part in parts.items()])
    return Triples(
        graph_name(path), len(numbers.nodes), len(numbers.relations),
        *(np.ascontiguousarray(rows[:, at]) for at in range(3)),
        _spelled(numbers.relations), _spelled(numbers.nodes), sets if others else NO_SETS,
    )  # fmt: skip


class _Numbers:
    """Names by number, in the order in which they occur, over all files that are read."""

    def __init__(self) -> None:
        self.nodes: dict[bytes, int] = {}
        self.relations: dict[bytes, int] = {}
        self.triples = 0

    def rows_of(self, source: Source) -> np.ndarray:
        """[m, 3] int32, the triples of a file."""
        nodes, relations, terms_of = self.nodes, self.relations, None
        parts = [np.zeros((0, 3), dtype=np.int32)]
        for text, line in source.pieces():
            terms_of = terms_of or (_table_terms if _is_table(source, text) else ntriples_terms)
            rows = [
                (
                    nodes.setdefault(s, len(nodes)),
                    relations.setdefault(p, len(relations)),
                    nodes.setdefault(o, len(nodes)),
                )
                for s, p, o in terms_of(source, text, line)
            ]
            parts.append(np.array(rows, dtype=np.int32).reshape(-1, 3))
            self.triples += len(rows)
            check_sizes(source, len(nodes), self.triples)
        rows = np.concatenate(parts)
        if not len(rows):
            raise source.empty("lines of 'subject predicate object .', or columns between tabs,")
        return rows


def _is_table(source: Source, text: bytes) -> bool:
    """Whether the first line of a text that says something has three columns and is no N-Triples."""
    if graph_suffix(source.path) == ".nt":
        return False
    for line in text.split(b"\n"):
        is_row = line.count(b"\t") == 2
        if line.strip() and (is_row or not line.startswith(b"#")):
            return is_row and not is_ntriples(line)
    return False


def _table_terms(source: Source, text: bytes, first: int) -> Iterator[Terms]:
    """The columns of each line that is not blank."""
    for number, line in enumerate(text.split(b"\n")[:-1], first):
        columns = tuple(column.strip() for column in line.split(b"\t"))
        if len(columns) == 3 and all(columns):
            yield columns
        elif line.strip():
            raise source.error(f"found '{shown(line)}'; {TABLE}", number)


def _spelled(names: dict[bytes, int]) -> list[str]:
    return [name.decode("utf-8", "backslashreplace") for name in names]
