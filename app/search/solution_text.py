"""Solutions as text by the file's ids: one line per chosen node, per node and side, or per stop of a tour."""

import itertools
import os
import re
from collections.abc import Callable, Iterator

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import Limits, shown
from app.graphs.formats.tsplib import read_tour
from app.graphs.ids import NodeIndex, blank_between, one_id, plain_ids, whole_number

LARGEST_FILE = 1 << 32  # bytes
BLANKS = " \t\r\n"
Split = Callable[[str], list[str]]
TOUR_HEAD = ("NAME", "TYPE", "COMMENT", "DIMENSION", "TOUR_SECTION")  # first words of TSPLIB tour files


def nodes_text(chosen: np.ndarray, ids: np.ndarray) -> str:
    """The ids of the chosen nodes, one per line; chosen [n] bool, ids [n]."""
    return _lines_of(ids[np.flatnonzero(chosen)])


def sides_text(sides: np.ndarray, ids: np.ndarray) -> str:
    """Lines `id side`; sides [n] bool."""
    return _pairs_of(ids, sides.astype(np.int64))


def spins_text(up: np.ndarray, ids: np.ndarray) -> str:
    """Lines `id spin`, 1 where up [n] bool is true, else -1."""
    return _pairs_of(ids, 2 * up.astype(np.int64) - 1)


def colors_text(colors: np.ndarray, ids: np.ndarray) -> str:
    """Lines `id colour`; colors [n] from 0 on."""
    return _pairs_of(ids, colors)


def order_text(order: np.ndarray, ids: np.ndarray) -> str:
    """The ids in the order of the tour; order [n] node numbers."""
    return _lines_of(ids[order])


def _lines_of(ids: np.ndarray) -> str:
    """Ids [k], one per line."""
    found = plain_ids(ids)
    return "\n".join(map(str, found)) + "\n" if found else ""


def _pairs_of(ids: np.ndarray, numbers: np.ndarray) -> str:
    """Lines `id number`; ids, numbers [n]."""
    both = [None] * (2 * len(ids))
    both[::2], both[1::2] = plain_ids(ids), numbers.tolist()
    line = f"%s{blank_between(ids)}%s\n"
    return line * len(ids) % tuple(both)


def read_nodes(path: str, ids: np.ndarray) -> np.ndarray:
    """[n] bool: the nodes a file names, one id per line. Raises GraphError."""
    numbers = _Numbers(path, ids)
    chosen = np.zeros(len(ids), dtype=bool)
    for line, words in _lines(path, numbers.split(1)):
        node = numbers.of(line, words, 1)
        if chosen[node]:
            raise GraphError(f"{path}:{line}: node {words[0]} is named twice; name it once")
        chosen[node] = True
    return chosen


def read_sides(path: str, ids: np.ndarray) -> np.ndarray:
    """[n] bool: the side of every node, from lines `id side`. Raises GraphError."""
    return _read_either(path, ids, ("0", "1"), "side 0 or 1")


def read_spins(path: str, ids: np.ndarray) -> np.ndarray:
    """[n] bool: which nodes are up, from lines `id spin`. Raises GraphError."""
    return _read_either(path, ids, ("-1", "1"), "spin -1 or 1")


def _read_either(path: str, ids: np.ndarray, values: tuple[str, str], right: str) -> np.ndarray:
    """[n] bool: which nodes have the second of two values, from lines `id value`; right: what they are."""
    numbers = _Numbers(path, ids)
    found = np.full(len(ids), -1, dtype=np.int8)
    for line, words in _lines(path, numbers.split(2)):
        node = numbers.of(line, words, 2)
        if words[1] not in values or found[node] >= 0:
            raise GraphError(
                f"{path}:{line}: found {' '.join(words)!r}; right is each node once, with {right}"
            )
        found[node] = values.index(words[1])
    _complete(path, ids, found >= 0)
    return found.astype(bool)


def read_colors(path: str, ids: np.ndarray, what: str = "colour") -> np.ndarray:
    """[n] int64: the colour (or `what` it is) of every node, from lines `id colour`. Raises GraphError."""
    numbers = _Numbers(path, ids)
    found = np.full(len(ids), -1, dtype=np.int64)
    for line, words in _lines(path, numbers.split(2)):
        node = numbers.of(line, words, 2)
        color = int(words[1]) if words[1].isascii() and words[1].isdigit() and len(words[1]) <= 18 else -1
        if color < 0 or found[node] >= 0:
            right = f"each node once, with a whole number as its {what}"
            raise GraphError(f"{path}:{line}: found {' '.join(words)!r}; right is {right}")
        found[node] = color
    _complete(path, ids, found >= 0)
    return found


def read_order(path: str, ids: np.ndarray) -> np.ndarray:
    """[n] int64: the stops of a tour, one id per line, or of a TSPLIB tour file. Raises GraphError."""
    return _each_once(path, ids, _stops, "a tour visits it once")


def read_ranks(path: str, ids: np.ndarray) -> np.ndarray:
    """[n] int64: all nodes from first to last, one id per line. Raises GraphError."""
    return _each_once(path, ids, _lines, "an order has each once")


def _each_once(
    path: str, ids: np.ndarray, read: Callable[[str, Split], Iterator[tuple[int, list[str]]]], once: str
) -> np.ndarray:
    """[n] int64, all nodes as lines name them; once: what is said of one that is named again."""
    numbers = _Numbers(path, ids)
    order, met = [], np.zeros(len(ids), dtype=bool)
    for line, words in read(path, numbers.split(1)):
        node = numbers.of(line, words, 1)
        if met[node]:
            raise GraphError(f"{path}:{line}: node {words[0]} is named twice; {once}")
        met[node] = True
        order.append(node)
    _complete(path, ids, met)
    return np.array(order, dtype=np.int64)


def _stops(path: str, split: Split) -> Iterator[tuple[int, list[str]]]:
    """(line number, words) of a list of stops; of a TSPLIB tour file the cities of its first tour."""
    lines = _lines(path, split)
    first = next(lines, None)
    if first is not None and first[1][0].rstrip(":").upper() in TOUR_HEAD:
        return ((first[0], [str(city + 1)]) for city in read_tour(path, Limits(LARGEST_FILE)).tolist())
    return itertools.chain([] if first is None else [first], lines)


class _Numbers:
    """From ids to node numbers."""

    def __init__(self, path: str, ids: np.ndarray) -> None:
        self.path, self.index = path, NodeIndex(ids)

    def split(self, wanted: int) -> Split:
        """How the words of a line are told apart: a name may have blanks, and stands first."""
        if not self.index.named:
            return str.split
        if wanted == 1:
            return lambda text: [text.strip(BLANKS)]
        return lambda text: re.split("[ \t]+(?=[^ \t]*$)", text.strip(BLANKS))

    def of(self, line: int, words: list[str], wanted: int) -> int:
        """The node that a line names."""
        name = words[0].encode() if self.index.named else whole_number(words[0])
        if len(words) != wanted or name is None:
            right = "one node id" if wanted == 1 else "a node id and its value"
            raise GraphError(f"{self.path}:{line}: found {' '.join(words)[:60]!r}; right is {right} per line")
        row = self.index.row(name)
        if row is None:
            raise GraphError(f"{self.path}:{line}: node {shown(words[0])} is not in the graph")
        return row


def _lines(path: str, split: Split) -> Iterator[tuple[int, list[str]]]:
    """(line number, words) of the lines that are neither empty nor comments."""
    return ((number, split(text) or [text]) for number, text in lines_of(path))  # blanks of other kinds alone


def lines_of(path: str) -> Iterator[tuple[int, str]]:
    """(line number, text without blanks around it) of the lines that are neither empty nor comments."""
    try:
        if os.path.getsize(path) > LARGEST_FILE:
            raise GraphError(f"{path}: larger than {LARGEST_FILE} bytes: not a solution")
        with open(path, encoding="utf-8-sig") as file:
            for number, text in enumerate(file, 1):
                content = text.strip(" \t\r\n")  # no other blanks: names may begin with one
                if content and not content.startswith("#"):
                    yield number, content
    except UnicodeDecodeError:
        raise GraphError(f"{path}: is not text; right is one node id per line") from None
    except OSError as error:
        raise GraphError(f"{path}: cannot be read: {error.strerror}") from None


def _complete(path: str, ids: np.ndarray, met: np.ndarray) -> None:
    """Refuse a file that leaves nodes out."""
    if not met.all():
        missing = ids[np.flatnonzero(~met)]
        raise GraphError(f"{path}: {len(missing)} nodes are missing, the first is {one_id(missing, 0)}")
