"""Small graphs that come with NetworkX, by name: "networkx:karate_club"."""

import difflib
from collections.abc import Iterator

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import Limits, shown
from app.graphs.stream import Chunk, EdgeStream

PREFIX = "networkx:"
NAMES = {
    "karate_club": "karate_club_graph",
    "les_miserables": "les_miserables_graph",
    "florentine_families": "florentine_families_graph",
    "davis_southern_women": "davis_southern_women_graph",
}


def read_shipped(path: str, limits: Limits) -> EdgeStream:
    """The stream of a graph NetworkX ships; nodes are numbered in NetworkX's order."""
    name = path.removeprefix(PREFIX)
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0)[0]
        raise GraphError(f"{PREFIX}{shown(name)}: no such graph; did you mean {PREFIX}{near}?")
    import networkx

    graph = getattr(networkx, NAMES[name])()
    number = {node: at for at, node in enumerate(graph)}
    edges = [(number[a], number[b], data.get("weight")) for a, b, data in graph.edges(data=True)]
    weighted = all(weight is not None for _, _, weight in edges)
    u = np.array([edge[0] for edge in edges], dtype=np.int64)
    v = np.array([edge[1] for edge in edges], dtype=np.int64)
    w = np.array([edge[2] for edge in edges], dtype=np.float32) if weighted else None

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        yield u, v, w

    return EdgeStream(name, PREFIX + name, "networkx", len(number), 0, weighted, chunks, undirected=True)
