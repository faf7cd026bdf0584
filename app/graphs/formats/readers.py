"""The table of graph file formats, and `open_edges`, which picks the reader by content or by name."""

import difflib
import re
from collections.abc import Callable

from app.errors import CaseError
from app.graphs.covering import FAMILIES
from app.graphs.formats.arrays import open_graph_set, read_npz
from app.graphs.formats.dimacs import read_dimacs
from app.graphs.formats.edge_list import read_edge_list
from app.graphs.formats.graphsage import GRAPH as GRAPHSAGE
from app.graphs.formats.graphsage import read_graphsage
from app.graphs.formats.gset import read_gset
from app.graphs.formats.lolib import read_lolib
from app.graphs.formats.matrix_market import read_matrix_market
from app.graphs.formats.metis import read_metis
from app.graphs.formats.named_edges import read_named_edges
from app.graphs.formats.ogb import read_ogb
from app.graphs.formats.pace2022 import read_pace2022
from app.graphs.formats.ppi import read_ppi
from app.graphs.formats.qaplib import read_qaplib
from app.graphs.formats.qubo import read_qubo
from app.graphs.formats.sets import is_hitting, read_gmt, read_hypergraph, read_scp, read_sets
from app.graphs.formats.solomon import is_solomon
from app.graphs.formats.source import Limits, Source, graph_suffix, shown
from app.graphs.formats.stp import is_stp, read_stp
from app.graphs.formats.text import fields_of
from app.graphs.formats.tu import read_tu
from app.graphs.generators.shipped import PREFIX, read_shipped
from app.graphs.points import read_points, read_solomon
from app.graphs.stream import EdgeStream

__all__ = ["READERS", "EdgeStream", "open_edges", "open_graph_set"]

READERS: dict[str, Callable[[str, Limits], EdgeStream]] = {
    "edges": read_edge_list,
    "matrix_market": read_matrix_market,
    "metis": read_metis,
    "dimacs": read_dimacs,
    "gset": read_gset,
    "stp": read_stp,
    "qubo": read_qubo,
    "qaplib": read_qaplib,
    "sets": read_sets,
    "gmt": read_gmt,
    "hgr": read_hypergraph,
    "scp": read_scp,
    "npz": read_npz,
    "networkx": read_shipped,
    "tsplib": read_points,
    "solomon": read_solomon,
    "ogb": read_ogb,
    "ppi": read_ppi,
    "graphsage": read_graphsage,
    "tu": read_tu,
    "pace2022": read_pace2022,
    "lolib": read_lolib,
}
SUFFIXES = {
    ".graph": "metis",
    ".metis": "metis",
    ".mtx": "matrix_market",
    ".gset": "gset",
    ".stp": "stp",
    ".qubo": "qubo",
    ".dat": "qaplib",
    ".sets": "sets",
    ".gmt": "gmt",
    ".hgr": "hgr",
    ".scp": "scp",
    ".npz": "npz",
    ".tsp": "tsplib",
    ".atsp": "tsplib",
    ".vrp": "tsplib",
    **dict.fromkeys([".lop", ".lolib"], "lolib"),
    **dict.fromkeys([".col", ".clq", ".gr", ".mis", ".dimacs"], "dimacs"),
}
# First bytes of files that hold no graph we read, and what to say instead.
REFUSED = {
    b"\x93NUMPY": "a single NumPy array (.npy); an .npz of the graph's arrays would be right",
    b"\x80\x02": "a Python pickle, which is never loaded; an .npz of plain arrays would be right",
    b"\x80\x03": "a Python pickle, which is never loaded; an .npz of plain arrays would be right",
    b"\x80\x04": "a Python pickle, which is never loaded; an .npz of plain arrays would be right",
    b"\x80\x05": "a Python pickle, which is never loaded; an .npz of plain arrays would be right",
    b"\x89HDF": "an HDF5 file; an .npz of the graph's arrays would be right",
    b"\xff\xfe": "text in UTF-16; UTF-8 would be right",
    b"\xfe\xff": "text in UTF-16; UTF-8 would be right",
}
# Formats of graphs that others write, by what stands near their beginning.
NOT_READ = {
    "GraphML": re.compile(rb"\s*<(\?xml|graphml|!--)"),
    "JSON": re.compile(rb"\s*[{\[]"),
    "GML": re.compile(rb"(?m)^[ \t]*graph\s*\["),
    "DOT": re.compile(rb"\s*(strict\s+)?(di)?graph\b[^\n{]*\s*\{"),
    "Pajek": re.compile(rb"\s*\*(vertices|network)\b", re.IGNORECASE),
}
LOADERS = {
    "GraphML": "read_graphml", "JSON": "node_link_graph", "GML": "read_gml", "DOT": "nx_pydot.read_dot",
    "Pajek": "read_pajek",
}  # fmt: skip
NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
HEAD_BYTES = 1 << 14
HEAD_LINES = 2000


def open_edges(
    path: str,
    format: str = "auto",
    max_decompressed_bytes: int = Limits.decompressed,
    max_bytes: int = Limits.npz,
    ids: str = "numbers",
) -> EdgeStream:
    """The stream of a graph file, its header read and checked; the edges are read by chunks().

    path     a file, perhaps packed by gzip, bzip2 or xz; or "networkx:NAME"
    format   a name in READERS, or "auto": by content, then by suffix
    max_decompressed_bytes, max_bytes   limits for packed text, and for each array of an .npz
    ids      "names": of an edge list, the only format that may have them
    """
    limits = Limits(max_decompressed_bytes, max_bytes)
    if format != "auto" and format not in READERS:
        near = difflib.get_close_matches(format, ["auto", *READERS], n=1, cutoff=0)[0]
        raise CaseError(f"graph.format: found '{shown(format)}'; did you mean '{near}'?")
    chosen = detect(path, limits) if format == "auto" else format
    if ids == "numbers" or chosen in FAMILIES:
        return READERS[chosen](path, limits)
    if chosen != "edges":
        found = f"found the format {chosen}, whose nodes are numbers"
        raise Source(path).error(
            f'{found}; an edge list (graph.format = "edges") would be right for graph.ids = "names"'
        )
    return read_named_edges(path, limits)


def detect(path: str, limits: Limits) -> str:
    """The name of the format a file is in, by content, else by suffix, else "edges"."""
    if path.startswith(PREFIX):
        return "networkx"
    source = Source(path, limits)
    start = source.first_bytes(8)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "npz"
    start = next(source.blocks(), b"").removeprefix(b"\xef\xbb\xbf")
    for magic, text in REFUSED.items():
        if start.startswith(magic):
            raise source.error(f"found {text}")
    _refuse_other_formats(source, start[:HEAD_BYTES])
    if start[:14].lower() == b"%%matrixmarket":
        return "matrix_market"
    lines = [fields_of(line) for line in start.replace(b"\r\n", b"\n").split(b"\n", HEAD_LINES)[:HEAD_LINES]]
    if is_hitting(lines):
        return "hgr"
    if is_solomon(lines):
        return "solomon"
    if is_stp(lines):
        return "stp"
    if _is_dimacs(lines):
        return "dimacs"
    if graph_suffix(path) == ".gr" and _is_heads(lines):
        return "pace2022"
    if _is_qubo(lines):
        return "qubo"
    if suffix := SUFFIXES.get(graph_suffix(path)):
        return suffix
    return "gset" if _is_gset(lines) else ("lolib" if _is_lolib(lines) else "edges")


def _refuse_other_formats(source: Source, start: bytes) -> None:
    """Name a format of graphs that is not read, and the way through NetworkX, which reads it."""
    for name, pattern in NOT_READ.items():
        if (pattern.search if name == "GML" else pattern.match)(start):
            right = "an edge list, Matrix Market, METIS, DIMACS, Gset, TSPLIB or .npz file would be right"
            way = f"NetworkX reads it: app.solve(networkx.{LOADERS[name]}(...)) in Python"
            if source.path.endswith(GRAPHSAGE):
                way = 'files of GraphSAGE: graph.format = "graphsage"'
            raise source.error(f"found {name}, which is not read; {right} ({way})")


def _is_dimacs(lines: list[list[bytes]]) -> bool:
    """True if the first line that is no "c" comment is a problem line."""
    data = (fields for fields in lines if fields and not fields[0].startswith(b"c"))
    first = next(data, [])
    return len(first) == 4 and first[0] == b"p" and first[2].isdigit() and first[3].isdigit()


def _is_qubo(lines: list[list[bytes]]) -> bool:
    """True if the first line that is no comment begins with "p qubo"."""
    first = next((fields for fields in lines if fields and fields[0][:1] not in (b"c", b"#")), [])
    return first[:2] == [b"p", b"qubo"]


def _is_heads(lines: list[list[bytes]]) -> bool:
    """True if the first line that is no comment has three numbers, the last of them 0."""
    first = next((fields for fields in lines if fields and fields[0][:1] != b"%"), [])
    return len(first) == 3 and all(field.isdigit() for field in first) and int(first[2]) == 0


def _is_lolib(lines: list[list[bytes]]) -> bool:
    """True if a line of one number, the first or behind one of text, is followed by lines of numbers."""
    rows = [fields for fields in lines if fields][:3]
    alone = [len(fields) == 1 and fields[0].isdigit() for fields in rows]
    if len(rows) < 2 or not any(alone[:2]):
        return False
    after = rows[alone.index(True) + 1 :]
    numbers = all(NUMBER.fullmatch(field) for fields in after for field in fields)
    return bool(after) and numbers and len(after[0]) >= min(int(rows[alone.index(True)][0][:9]), 4)


def _is_gset(lines: list[list[bytes]]) -> bool:
    """True if a line "n m" is followed by lines of three fields, the first of them with ids 1..n."""
    head, *rows = [fields for fields in lines if fields][:20] or [[]]
    if len(head) != 2 or not rows or any(len(fields) != 3 for fields in rows):
        return False
    numbers = [*head, *rows[0][:2]]
    if not all(field.isdigit() and len(field) < 19 for field in numbers):
        return False
    n, _, u, v = map(int, numbers)
    return 1 <= u <= n and 1 <= v <= n
