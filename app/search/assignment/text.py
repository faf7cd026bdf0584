"""Mappings as text: a line for each node of the first graph, its id and that of the node it is put on."""

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import shown
from app.graphs.ids import NodeIndex, named, plain_ids
from app.search.solution_text import lines_of

LARGEST_ID = (1 << 63) - 1
Pairs = list[tuple[int, int, int]]


def mapping_text(mapping: np.ndarray, ids: np.ndarray, others: np.ndarray) -> str:
    """Lines `id<tab>id`; mapping [n] rows of the second graph, nodes that have none left out.

    ids [n], others [m]   what files call the nodes of both
    """
    if not (named(ids) or named(others)):
        there = np.flatnonzero(mapping >= 0)
        pairs = np.stack([ids[there], others[mapping[there]]], axis=1)
        return "%d\t%d\n" * len(pairs) % tuple(pairs.reshape(-1).tolist())
    first, second = plain_ids(ids), plain_ids(others)
    return "".join(f"{first[i]}\t{second[x]}\n" for i, x in enumerate(mapping.tolist()) if x >= 0)


def read_mapping(path: str, ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """[n] int64: the mapping of such a file, -1 of nodes that it does not name. Raises GraphError."""
    found = np.full(len(ids), -1, dtype=np.int64)
    taken: dict[int, int] = {}
    for line, i, x in read_pairs(path, ids, others):
        if found[i] >= 0:
            raise GraphError(f"{path}:{line}: {_called(ids, i)} has a place already; one would be right")
        if x in taken:
            where = f"{_called(others, x)} is taken, by line {taken[x]}"
            raise GraphError(f"{path}:{line}: {where}; each node of the second graph once would be right")
        found[i], taken[x] = x, line
    return found


def read_pairs(path: str, ids: np.ndarray, others: np.ndarray) -> Pairs:
    """(line, row of the first graph, row of the second) of lines of two ids. Raises GraphError."""
    return [(line, *rows) for line, *rows, _ in _lines(path, ids, others, 2)]


def read_worths(path: str, ids: np.ndarray, others: np.ndarray) -> list[tuple[int, int, int, str]]:
    """The same of lines of two ids and a number, as it is written."""
    return _lines(path, ids, others, 3)


def _lines(path: str, ids: np.ndarray, others: np.ndarray, wanted: int) -> list[tuple[int, int, int, str]]:
    indices, found = (NodeIndex(ids), NodeIndex(others)), []
    right = "'id id'" if wanted == 2 else "'id id number'"
    for line, text in lines_of(path):
        mark = "\t" if "\t" in text else None
        words = [each.strip() for each in text.split(mark)]
        if len(words) != wanted:
            told = f"found {shown(text)!r}; {right}, a node of the first graph and one of the second"
            raise GraphError(f"{path}:{line}: {told}, would be right (names with blanks: tabs between them)")
        rows = [_row(path, line, *each) for each in zip(words, indices, ("first", "second"))]
        found.append((line, *rows, words[-1]))
    return found


def _row(path: str, line: int, word: str, index: NodeIndex, which: str) -> int:
    number = word.isascii() and word.isdigit() and len(word) <= 19 and int(word) <= LARGEST_ID
    row = index.row(word.encode() if index.named else int(word)) if index.named or number else None
    if row is None:
        raise GraphError(f"{path}:{line}: node {shown(word)} is not in the {which} graph")
    return row


def _called(ids: np.ndarray, row: int) -> str:
    return f"node {shown(str(plain_ids(ids[[row]])[0])) if named(ids) else int(ids[row])}"
