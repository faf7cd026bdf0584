"""EdgeStream: the edges of a graph, a chunk at a time, as every reader and generator gives them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CHUNK_EDGES = 1 << 18

# u [k] int64, v [k] int64, w [k] float32 or None
Chunk = tuple[np.ndarray, np.ndarray, np.ndarray | None]


@dataclass
class EdgeStream:
    """What a file states about its graph, and its edges as found: loops, repeats and directions untouched.

    name          file name without directory and graph suffixes
    format        the reader's name in `readers.READERS`, or "generated"
    nodes         node count where the file states one, else None: u, v are then the file's own ids
    first_id      the file's id of node number 0
    weighted      True where chunks carry weights
    make          called with this stream, starts an iteration over its chunks
    warnings      one line each; complete once chunks() is exhausted
    part          called with this stream, a rank and the number of ranks, starts an iteration over a rank's
                  share of the edges: together all of them, in any order. It may fail where chunks() reads on,
                  or refuses in better words. None: there are no parts
    undirected    True: an edge has no direction in this format; False: it goes from u to v
    mirrored      True: each edge stands in both directions already, without weights that could differ
    metric        distances between all pairs of nodes (graphs/metric.py) where the file states them, or None
    lines         the number of edges that all parts must have together, or None: any
    entries       about how many neighbours all nodes have together, where headers say so; else None
    node_weights  [nodes] float32 once chunks() is exhausted, or None
    named         True: u, v are numbers of names, in the order in which these occur
    sets          of a family of sets (graphs/covering.py), how many there are: an edge is a set 0..sets-1 and
                  one of its elements, the numbers from `sets` on; None: there is no such count
    ids           [k] the names (graphs/ids.py) by these numbers once chunks() is exhausted; else None
    sizes         of a set of graphs [graphs] int64, the nodes of each, in the order of the nodes; else None
    graph_names, first_graph   what they are called: names, or numbers from first_graph on
    members       which rows are nodes and which graphs (graphs/members.py), where these have rows; or None
    edge_features   opens a row of numbers for each edge in the order of the chunks (DenseFeatures), or None
    edge_labels   opens a label for each edge in the same order (Labels), told whether these are numbers to be
                  predicted; or None
    terminals     [k] int64 node numbers, ascending, that a Steiner tree is to hold; None: the file names none
    prized        node_weights are prizes of such a tree, or, where that is asked for, weights of any sign:
    heaviest      what is asked for is the connected subgraph that weighs most
    deliveries    what vehicles deliver to the points of the metric (graphs/deliveries.py), or None
    pairing       two matrices of a quadratic assignment (graphs/pairing.py: Given), or None
    """

    name: str
    path: str
    format: str
    nodes: int | None
    first_id: int
    weighted: bool
    make: Callable[["EdgeStream"], Iterator[Chunk]]
    warnings: list[str] = field(default_factory=list)
    node_weights: np.ndarray | None = None
    ids: np.ndarray | None = None
    part: Callable[["EdgeStream", int, int], Iterator[Chunk]] | None = None
    lines: int | None = None
    entries: int | None = None
    metric: Any = None
    undirected: bool = False
    mirrored: bool = False
    named: bool = False
    sets: int | None = None
    sizes: np.ndarray | None = None
    graph_names: tuple[str, ...] = ()
    first_graph: int = 0
    members: Any = None
    edge_features: Callable[[], Any] | None = None
    edge_labels: Callable[[bool], Any] | None = None
    terminals: np.ndarray | None = None
    prized: bool = False
    heaviest: bool = False
    deliveries: Any = None
    pairing: Any = None

    def chunks(self) -> Iterator[Chunk]:
        """Start over at the first edge.

        yields u [k] int64, v [k] int64, w [k] float32 or None; k at most CHUNK_EDGES
               u, v are node numbers 0..nodes-1 where `nodes` is known, else the file's ids
        """
        for u, v, w in self.make(self):
            for at in range(0, len(u), CHUNK_EDGES):
                cut = slice(at, at + CHUNK_EDGES)
                yield u[cut], v[cut], None if w is None else w[cut]

    def warn(self, text: str) -> None:
        """Keep a warning, once however often the stream is read."""
        if text not in self.warnings:
            self.warnings.append(text)
