"""The table of formats that graphs are written in, and `write_graph`; suffixes tell the format."""

import bz2
import difflib
import gzip
import io
import lzma
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np

from app.errors import CaseError, GraphError
from app.graphs.deliveries import Deliveries
from app.graphs.formats.source import graph_suffix, shown
from app.graphs.formats.written import (
    write_csv,
    write_dimacs,
    write_edges,
    write_gset,
    write_matrix_market,
    write_metis,
)
from app.graphs.graph import Graph
from app.graphs.ids import named
from app.graphs.lengths import COORDINATE_KINDS
from app.graphs.metric import DIRECTED, Metric

WRITERS: dict[str, Callable[[Graph], Iterator[bytes]]] = {
    "edges": write_edges,
    "csv": write_csv,
    "matrix_market": write_matrix_market,
    "metis": write_metis,
    "dimacs": write_dimacs,
    "gset": write_gset,
}
FORMATS = (*WRITERS, "npz", "tsplib")
SUFFIXES = {
    ".csv": "csv", ".mtx": "matrix_market", ".gset": "gset", ".npz": "npz",
    **dict.fromkeys([".tsp", ".atsp", ".vrp"], "tsplib"),
    **dict.fromkeys([".txt", ".tsv", ".edges", ".edgelist", ".el", ".wel"], "edges"),
    **dict.fromkeys([".graph", ".metis"], "metis"),
    **dict.fromkeys([".col", ".clq", ".gr", ".mis", ".dimacs"], "dimacs"),
}  # fmt: skip
WITH_NODE_WEIGHTS = ("metis", "dimacs")
WITH_IDS = ("edges", "csv", "npz")


def format_of(path: str, named: str = "auto") -> str:
    """The format that a name or the path's suffix asks for; raises CaseError."""
    if named == "auto":
        suffix = graph_suffix(path)
        if suffix not in SUFFIXES:
            right = " ".join(sorted(SUFFIXES))
            raise CaseError(
                f"{shown(path)}: found no suffix of a format; one of {right}, or --to, would be right"
            )
        return SUFFIXES[suffix]
    if named not in FORMATS:
        near = difflib.get_close_matches(named, FORMATS, n=1, cutoff=0)[0]
        raise CaseError(f"--to: found '{shown(named)}'; did you mean '{near}'?")
    return named


def losses(
    graph: Graph, metric: Metric | None, format: str, deliveries: Deliveries | None = None
) -> list[str]:
    """What a format cannot hold of a graph, a line each."""
    found = []
    alone = int(np.count_nonzero(graph.degrees() == 0))
    if alone and format in ("edges", "csv"):
        found.append(f"{alone} nodes without edges are left out: a list of edges has no place for them")
    if graph.ids is not None and format not in WITH_IDS and (named(graph.ids) or not _consecutive(graph.ids)):
        found.append("nodes are numbered 1..n in ascending order of their ids; --ids FILE writes the ids")
    if graph.node_weights is not None and format not in WITH_NODE_WEIGHTS:
        found.append(f"node weights are left out; {' and '.join(WITH_NODE_WEIGHTS)} hold them")
    if metric is not None and format != "tsplib":
        found.append("distances between all pairs are left out; each node keeps its nearest ones")
    if metric is not None and deliveries is not None and format == "tsplib" and metric.unit != 1:
        found.append(f"lengths and times are counted in units of {metric.unit:g}")
    if deliveries is not None and format != "tsplib":
        found.append("demands and capacity are left out; tsplib (.vrp) holds them")
    return found


def _consecutive(ids: np.ndarray) -> bool:
    """Whether ids follow each other, so that a number says which one it is."""
    return len(ids) == 0 or int(ids[-1]) - int(ids[0]) == len(ids) - 1


def write_graph(
    file: IO[bytes],
    graph: Graph,
    format: str,
    packing: str = "",
    metric: Metric | None = None,
    arrays: dict[str, np.ndarray] | None = None,
    deliveries: Deliveries | None = None,
) -> None:
    """Write a whole graph; the same graph gives the same bytes.

    packing   "", ".gz", ".bz2" or ".xz"      arrays   further ones of an .npz: features, labels, masks
    """
    if format == "npz":
        _write_npz(file, graph, arrays or {})
        return
    if format == "tsplib" and metric is None:
        raise GraphError(
            f"{graph.name}: has no distances between all pairs, which TSPLIB holds; --to edges would be right"
        )
    pieces = _tsplib(metric, deliveries) if format == "tsplib" else WRITERS[format](graph)
    with _packed(file, packing) as out:
        for piece in pieces:
            out.write(piece)


@contextmanager
def _packed(file: IO[bytes], packing: str) -> Iterator[IO[bytes]]:
    """A file that packs what is written to it; no time and no name go into a .gz."""
    if not packing:
        yield file
        return
    if packing == ".gz":
        out = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6)
    else:
        out = {".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}[packing](file, "wb")
    with out:
        yield out


def _write_npz(file: IO[bytes], graph: Graph, more: dict[str, np.ndarray]) -> None:
    """Rows of the adjacency matrix as plain arrays, as `numpy.savez` writes them."""
    arrays = {"indptr": graph.indptr, "indices": graph.indices, "shape": np.array([graph.n, graph.n])}
    if graph.weights is not None:
        arrays["data"] = graph.weights
    if graph.ids is not None:
        arrays["ids"] = graph.ids
    # Into memory first: the .zip format goes back to fill in sizes, which a pipe cannot.
    held = io.BytesIO()
    np.savez(held, **arrays, **more)
    file.write(held.getbuffer())


def _tsplib(metric: Metric, deliveries: Deliveries | None) -> Iterator[bytes]:
    """TSPLIB: coordinates, or the matrix; demands, where there are some."""
    by_direction = metric.kind == DIRECTED
    of, kind = ("ATSP", "EXPLICIT") if by_direction else ("TSP", metric.kind)
    times = None if deliveries is None else deliveries.times
    of = of if deliveries is None else "CVRP" if times is None else "VRPTW"
    head = f"NAME : {shown(metric.name)}\nTYPE : {of}\nDIMENSION : {metric.n}\nEDGE_WEIGHT_TYPE : {kind}\n"
    head += "" if deliveries is None else f"CAPACITY : {deliveries.capacity}\n"
    if metric.kind in COORDINATE_KINDS:
        yield f"{head}NODE_COORD_SECTION\n".encode("ascii")
        for at, point in enumerate(metric.points.tolist(), 1):
            yield f"{at} {' '.join(map(_coordinate, point))}\n".encode("ascii")
    else:
        yield f"{head}EDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n".encode("ascii")
        for row in metric.matrix:
            yield (" ".join(map(str, row.tolist())) + "\n").encode("ascii")
    if deliveries is not None:
        yield b"DEMAND_SECTION\n"
        for at, amount in enumerate(deliveries.demand.tolist(), 1):
            yield f"{at} {amount}\n".encode("ascii")
        if times is not None:
            yield b"TIME_WINDOW_SECTION\n"
            for at, window in enumerate(zip(times.opens.tolist(), times.closes.tolist()), 1):
                yield f"{at} {window[0]} {window[1]}\n".encode("ascii")
            yield b"SERVICE_TIME_SECTION\n"
            for at, service in enumerate(times.service.tolist(), 1):
                yield f"{at} {service}\n".encode("ascii")
        yield f"DEPOT_SECTION\n{deliveries.depot + 1}\n-1\n".encode("ascii")
    yield b"EOF\n"


def _coordinate(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
