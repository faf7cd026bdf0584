"""Steiner tree problems of SteinLib, DIMACS and PACE (.stp, .gr): sections of edges, terminals and prizes,
strictly.

    33D32945 STP File, STP Format Version 1.0     (PACE: none)
    SECTION Graph / Nodes 5 / Edges 4 / E 1 2 10 / ... / END
    SECTION Terminals / Terminals 2 / T 1 / T 5 / END     (prizes: TP 1 20 / TP 5 7.5, a root: RootP 2)
    EOF

A file whose comment says Problem "Maximum Node Weight Connected Subgraph" has weights of nodes, T 1 -2.5.

Source   Koch, Martin and Voss, SteinLib: An updated library on Steiner tree problems in graphs, 2000
"""

import re
from collections.abc import Iterator

import numpy as np

from app.graphs.formats.counted import counted_rows, read_counts
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import Layout, fields_of, read_id
from app.graphs.stream import Chunk, EdgeStream
from app.graphs.weights import kept_weights, tell_vanished

MAGIC = b"33d32945"
EDGE = re.compile(rb"(?m)^[ \t]*[Ee][ \t]")
HEAVIEST = b"maximum node weight connected subgraph"
WEIGHT = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
PRIZE = re.compile(rb"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
LARGEST = float(np.finfo(np.float32).max)  # of prizes
IGNORED = {b"comment", b"coordinates", b"presolve"}  # sections
DIRECTED = "holds arcs; edges, as 'E 1 2 10', would be right: trees here have no directions"
OTHERS = "a Steiner tree of edges, with the sections Graph and Terminals, would be right"


def is_stp(lines: list[list[bytes]]) -> bool:
    """Whether the first line that is not blank, by its fields, is that of such a file."""
    first = next((fields for fields in lines if fields), [b""])
    return first[0].lower() == MAGIC or (len(first) == 2 and first[0].lower() == b"section")


def read_stp(path: str, limits: Limits) -> EdgeStream:
    """The stream of a file, whose terminals are known beforehand. Raises GraphError."""
    return _File(Source(path, limits)).stream()


class _File:
    """What a file says but for its edges, whose lines are counted.

    first, last   lines of edges     columns   of them, by the first one
    terminals     number by line             prizes   (node, prize, line), in the order of the lines
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.nodes = self.edges = self.stated = -1
        self.counted_at = self.first = self.last = self.found = self.columns = 0
        self.terminals: list[tuple[int, int]] = []
        self.prizes: list[tuple[int, float, int]] = []
        self.root: list[tuple[int, int, bytes]] = []
        self.roots = 0
        self.heaviest = False
        section, number = b"", 0
        for number, line in source.lines():
            if section == b"graph" and EDGE.match(line):
                self._edge(line, number)
                continue
            fields = fields_of(line)
            if not fields or (number == 1 and fields[0].lower() == MAGIC):
                continue
            word = fields[0].lower()
            if not section and word == b"eof":
                break
            if not section:
                section = self._begin(fields, line, number)
            elif word == b"end" and len(fields) == 1:
                section = b""
            elif section == b"graph":
                self._of_graph(word, fields, line, number)
            elif section == b"terminals":
                self._of_terminals(word, fields, line, number)
            elif section == b"comment" and word == b"problem":
                self.heaviest |= b" ".join(fields[1:]).strip(b"\"'").lower() == HEAVIEST
            elif section == b"presolve" and word in (b"fixed", b"lower", b"upper"):
                source.warnings.append(f"{source.where}:{number}: '{shown(line)}' is not read")
        self._complete(section, number)

    def _begin(self, fields: list[bytes], line: bytes, number: int) -> bytes:
        """The section that a line begins."""
        name = fields[1].lower() if len(fields) == 2 and fields[0].lower() == b"section" else b""
        if name in IGNORED or name in (b"graph", b"terminals"):
            if (name == b"graph" and self.nodes >= 0) or (name == b"terminals" and self.stated >= 0):
                raise self.source.error(f"found '{shown(line)}' again; one would be right", number)
            if name == b"terminals" and self.nodes < 0:
                raise self.source.error("found terminals before the graph; after it would be right", number)
            return name
        right = "'SECTION Graph' would be right" if not name else OTHERS
        raise self.source.error(f"found '{shown(line)}'; {right}", number)

    def _edge(self, line: bytes, number: int) -> None:
        """One line of an edge; its numbers are read later."""
        self.found += 1
        self.last = number
        if not self.first:
            self.first, self.columns = number, 3 if len(fields_of(line)) == 4 else 2
            if self.nodes < 0:
                raise self.source.error("found edges before 'Nodes N'; after it would be right", number)

    def _of_graph(self, word: bytes, fields: list[bytes], line: bytes, number: int) -> None:
        """A line of the graph that is no edge."""
        if word in (b"a", b"arcs"):
            raise self.source.error(f"'{shown(line)}' {DIRECTED}", number)
        if word not in (b"nodes", b"edges") or len(fields) != 2 or self.first:
            right = "'Nodes N', 'Edges M', 'E U V LENGTH' or END would be right"
            raise self.source.error(f"found '{shown(line)}'; {right}", number)
        (count,) = read_counts(self.source, fields[1:], number, line, f"'{word.decode().title()} N'")
        if getattr(self, word.decode()) >= 0:
            raise self.source.error(f"found '{shown(line)}' again; one would be right", number)
        setattr(self, word.decode(), count)
        self.counted_at = number

    def _of_terminals(self, word: bytes, fields: list[bytes], line: bytes, number: int) -> None:
        """A line of the terminals."""
        if word == b"root" and len(fields) == 2:
            self.root.append((self._node(fields[1], line, number), number, line))
            return
        if word == b"tp" or (self.heaviest and word == b"t"):
            self._prize(fields, line, number)
            return
        if word not in (b"terminals", b"t", b"rootp") or len(fields) != 2:
            right = "'Terminals K', 'T NODE', 'TP NODE PRIZE', 'RootP NODE' or END would be right"
            raise self.source.error(f"found '{shown(line)}'; {right}", number)
        if word == b"terminals":
            if self.stated >= 0:
                raise self.source.error(f"found '{shown(line)}' again; one would be right", number)
            (self.stated,) = read_counts(self.source, fields[1:], number, line, "'Terminals K'")
            return
        self.terminals.append((self._node(fields[1], line, number), number))
        self.roots += word == b"rootp"

    def _node(self, field: bytes, line: bytes, number: int) -> int:
        node = read_id(field, 1, self.nodes)
        if isinstance(node, str):
            right = f"a node 1..{self.nodes} would be right"
            raise self.source.error(f"{node} in '{shown(line)}'; {right}", number)
        return node

    def _prize(self, fields: list[bytes], line: bytes, number: int) -> None:
        """A node with what a tree loses without it."""
        written = WEIGHT if self.heaviest else PRIZE
        if len(fields) != 3 or not written.fullmatch(fields[2]) or abs(float(fields[2])) > LARGEST:
            right = "'TP NODE PRIZE', the prize a number from 0 to 3.4e38, would be right"
            if self.heaviest:
                right = "'T NODE WEIGHT', the weight a number from -3.4e38 to 3.4e38, would be right"
            raise self.source.error(f"found '{shown(line)}'; {right}", number)
        self.prizes.append((self._node(fields[1], line, number), float(fields[2]), number))
        called = lambda _: f"{self.source.where}:{number}: the {'weight' if self.heaviest else 'prize'}"  # noqa: E731
        tell_vanished(
            np.array([float(fields[2])]), fields[2], lambda: fields[2:], called, self.source.warnings
        )

    def _complete(self, section: bytes, number: int) -> None:
        """Refuse a file that has not all that it should."""
        if not number:
            raise self.source.empty("a Steiner tree problem of SteinLib")
        if section:
            raise self.source.error(f"section {shown(section)} has no END; one would be right", number)
        if self.nodes < 0 or self.edges < 0:
            raise self.source.error("found no graph; 'SECTION Graph', 'Nodes N', 'Edges M' would be right")
        if self.found != self.edges:
            found = f"found {self.found} lines 'E U V LENGTH'"
            raise self.source.error(f"the graph states {self.edges} edges, {found}", self.counted_at)
        if self.heaviest and not self.prizes:
            right = "'T NODE WEIGHT' in the section Terminals would be right"
            raise self.source.error(f"found no weights of nodes; {right}")
        self._take_root()
        told = len(self.terminals) + len(self.prizes)  # a root may be counted or not
        if self.stated >= 0 and self.stated not in (told, told - self.roots):
            what = "'T NODE' or 'TP NODE PRIZE'" if self.prizes else "'T NODE'"
            what = "'T NODE WEIGHT'" if self.heaviest else what
            found = f"{self.stated} terminals are stated, found {told} lines {what}"
            raise self.source.error(f"{found}; as many would be right")
        self._refuse_twice(self.terminals, "terminal {} is named")
        what = "weight" if self.heaviest else "prize"
        self._refuse_twice([(node, line) for node, _, line in self.prizes], f"node {{}} has a {what}")

    def _take_root(self) -> None:
        """A root is a terminal of trees with prizes; others need none."""
        for node, line, text in self.root:
            if self.prizes:
                self.terminals.append((node, line))
                self.roots += 1
            else:
                self.source.warnings.append(f"{self.source.where}:{line}: '{shown(text)}' is not read")

    def _refuse_twice(self, named: list[tuple[int, int]], told: str) -> None:
        seen: set[int] = set()
        for node, line in named:
            if node in seen:
                raise self.source.error(f"{told.format(node)} twice; once would be right", line)
            seen.add(node)

    # ---- edges ---------------------------------------------------------------------------------------------

    def stream(self) -> EdgeStream:
        """The edges, the shortest of several between two nodes, the terminals and the prizes."""
        named = np.array(sorted(node - 1 for node, _ in self.terminals), dtype=np.int64)
        known = self.stated >= 0 and not self.prizes
        return EdgeStream(
            graph_name(self.source.path), self.source.path, "stp", self.nodes, 1, self.columns == 3,
            self._chunks, self.source.warnings, self._prizes(), lines=self.edges, undirected=True,
            terminals=named if known or len(named) else None, prized=bool(self.prizes),
            heaviest=self.heaviest,
        )  # fmt: skip

    def _prizes(self) -> np.ndarray | None:
        """[nodes] float32, 0 of nodes that the file names no prize of; None: it names none at all."""
        if not self.prizes:
            return None
        nodes, prizes, lines = zip(*self.prizes)
        where, found = self.source.where, np.zeros(self.nodes, dtype=np.float32)
        what = "weight" if self.heaviest else "prize"
        called = lambda i: f"{where}:{lines[i]}: the {what}"  # noqa: E731
        found[np.array(nodes) - 1] = kept_weights(np.array(prizes), called, self.source.warnings)
        return found

    def _chunks(self, stream: EdgeStream) -> Iterator[Chunk]:
        if not self.found:
            return
        layout = Layout(self.columns, first_id=1, last_id=self.nodes, prepare=self._numbers)
        parts = list(counted_rows(self.source, self.first - 1, layout, self.edges))
        u, v, w = (None if part[0] is None else np.concatenate(part) for part in zip(*parts))
        kept = None if w is None else _shortest(u, v, w)
        if kept is None:
            yield u, v, w
            return
        many = f"{len(u) - len(kept)} edges are longer than others between the same nodes, and are left out"
        stream.warn(f"{self.source.where}: {many}")
        yield u[kept], v[kept], w[kept]

    def _numbers(self, text: bytes, line: int) -> bytes:
        """The numbers of the edge lines of a piece of text, which begins at a line."""
        if line + text.count(b"\n") - 1 > self.last:
            lines = text.split(b"\n")[: max(self.last + 1 - line, 0)]
            text = b"".join(each + b"\n" for each in lines)
        return EDGE.sub(b"", text)


def _shortest(u: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.ndarray | None:
    """[k] which of edges u[i]-v[i] of lengths w [m] are the shortest between two nodes; None: none is longer
    than another.
    """
    low, high = np.minimum(u, v), np.maximum(u, v)
    order = np.lexsort((w, high, low))
    low, high, length = low[order], high[order], w[order]
    again = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    if not (again & (length[1:] != length[:-1])).any():
        return None
    return np.sort(order[np.append(True, ~again)])
