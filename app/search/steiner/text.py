"""Trees as text by the file's ids: a line for each edge, "u v"; of a tree without edges its node; of one
without nodes nothing.
"""

import re
from collections.abc import Iterator

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import shown
from app.graphs.ids import NodeIndex, blank_between, named, one_id, plain_ids, whole_number
from app.graphs.joined import root_of
from app.graphs.steiner import ends_of, tree_of_edges
from app.search.solution_text import lines_of


def edges_of(parent: np.ndarray) -> np.ndarray:
    """[m, 2] int64, the edges of a tree, smaller nodes first, in ascending order."""
    edges = np.sort(np.stack(ends_of(parent), axis=1), axis=1)
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


def tree_text(parent: np.ndarray, ids: np.ndarray) -> str:
    """Lines `u v`; parent [n], ids [n]."""
    edges = edges_of(parent)
    if not len(edges):
        return "".join(f"{i}\n" for i in plain_ids(ids[np.flatnonzero(parent >= 0)]))
    blank, ends = blank_between(ids), (plain_ids(ids[edges[:, 0]]), plain_ids(ids[edges[:, 1]]))
    return "".join(f"{u}{blank}{v}\n" for u, v in zip(*ends))


def read_tree(path: str, ids: np.ndarray) -> np.ndarray:
    """[n] int64, the parents of the tree of a file's edges, one `u v` a line. Raises GraphError."""
    found, node = [], -1
    index, texts = NodeIndex(ids), named(ids)
    for line, words in _lines(path, texts):
        rows = [_row(path, line, index, word, texts) for word in words]
        if len(rows) == 1 and (node >= 0 or found):
            raise GraphError(f"{path}:{line}: found {shown(words[0])!r}; an edge, as 'u v', would be right")
        if len(rows) == 1:
            node = rows[0]
            continue
        if node >= 0:
            raise GraphError(f"{path}:{line}: found an edge after a single node; edges alone would be right")
        found.append((line, *rows))
    edges = np.array([each[1:] for each in found], dtype=np.int64).reshape(-1, 2)
    lines = [f"{path}:{each[0]}" for each in found]
    return tree_of(edges, ids, node, lines, path)


def tree_of(
    edges: np.ndarray, ids: np.ndarray, node: int = -1, lines: list[str] | None = None, called: str = ""
) -> np.ndarray:
    """[n] int64, the parents of the tree of edges [m, 2], rows. Raises GraphError where they are no tree.

    node    of a tree without edges; -1: there is none
    lines   [m], what edges are called in messages; None: `called`, as all of them are
    """
    part: dict[int, int] = {}
    for i, (u, v) in enumerate(edges.tolist()):
        first, other = (root_of(part, part.setdefault(end, end)) for end in (u, v))
        if first == other:
            where, edge = called if lines is None else lines[i], _called(ids, u, v)
            raise GraphError(f"{where}: edge {edge} closes a circle; edges of a tree would be right")
        part[first] = other
    roots = [node for node, above in part.items() if node == above]
    if len(roots) > 1:
        right = "the edges of one tree would be right"
        raise GraphError(f"{called}: no path joins {_called(ids, *sorted(roots)[:2], ' and ')}; {right}")
    return tree_of_edges(len(ids), edges[:, 0], edges[:, 1], node)


def _called(ids: np.ndarray, u: int, v: int, between: str = "-") -> str:
    return f"{one_id(ids, u)}{between}{one_id(ids, v)}"


def _lines(path: str, texts: bool) -> Iterator[tuple[int, list[str]]]:
    """(line number, one or two words) of a file; names with blanks are parted by a tab."""
    for line, text in lines_of(path):
        words = re.split("\t" if texts and "\t" in text else "[ \t]+", text)
        if len(words) > 2:
            raise GraphError(f"{path}:{line}: found {shown(text)!r}; an edge, as 'u v', would be right")
        yield line, [word.strip(" \t") for word in words]


def _row(path: str, line: int, index: NodeIndex, word: str, texts: bool) -> int:
    """The row of the node that a line names."""
    name = word.encode() if texts else whole_number(word)
    if name is None:
        raise GraphError(f"{path}:{line}: found {shown(word)!r}; two node ids would be right")
    row = index.row(name)
    if row is None:
        raise GraphError(f"{path}:{line}: node {shown(word)} is not in the graph")
    return row
