"""Sets of graphs as one graph: the rows of each graph's nodes, and after them one row of the graph itself.

What is told of whole graphs (labels, splits, scores, predictions) stands in those rows, so that rows are cut,
exchanged and moved as those of any graph; labels are held for them alone (NodeData.rows). Layers know nothing
of it, since a graph's own row has no edges; a readout (gnn/layers/readout.py) sums the rows of a graph's
nodes there, by the matrix that `readout_rows` has.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from app.errors import GraphError
from app.graphs.graph import IN_A, IN_TRANSPOSE, Graph, index_type
from app.graphs.ids import ids_of_names
from app.graphs.stream import Chunk, EdgeStream


@dataclass(frozen=True, eq=False)
class Members:
    """Which rows are the nodes of which graph; the same on all ranks.

    starts   [graphs+1] int64, the first row of each graph; its last row is its own
    names    of the graphs; empty: they have numbers, from first_id on
    """

    starts: np.ndarray
    names: tuple[str, ...] = ()
    first_id: int = 0

    @property
    def count(self) -> int:
        """Graphs."""
        return len(self.starts) - 1

    @property
    def nodes(self) -> int:
        """Nodes of all graphs, without the graphs' own rows."""
        return int(self.starts[-1]) - self.count

    @cached_property
    def own_rows(self) -> np.ndarray:
        """[graphs] int64, the row of each graph itself."""
        return self.starts[1:] - 1

    @cached_property
    def node_rows(self) -> np.ndarray:
        """[nodes] int64, the row of each node, those of one graph after those of another."""
        return np.flatnonzero(~self.own_of(0, int(self.starts[-1])))

    def own_of(self, lo: int, hi: int) -> np.ndarray:
        """[hi-lo] bool, which of the rows lo..hi-1 are graphs."""
        own = np.zeros(hi - lo, dtype=bool)
        first, last = np.searchsorted(self.own_rows, (lo, hi))
        own[self.own_rows[first:last] - lo] = True
        return own

    def graph_of(self, lo: int, hi: int) -> np.ndarray:
        """[hi-lo] int64, the graph that each of the rows lo..hi-1 is of, or is."""
        return np.searchsorted(self.starts, np.arange(lo, hi), side="right") - 1

    def ids(self) -> np.ndarray:
        """[graphs] int64 or names (graphs/ids.py), what the graphs are called."""
        if self.names:
            return ids_of_names(list(self.names), "graphs")
        return np.arange(self.first_id, self.first_id + self.count)


def members_of(stream: EdgeStream) -> Members:
    """The rows of a stream's graphs; of a stream that says nothing of graphs it is one. Raises GraphError."""
    sizes = np.array([stream.nodes]) if stream.sizes is None else stream.sizes
    names = stream.graph_names
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise GraphError(f"{stream.name}: two graphs are called {twice!r}; names of their own would be right")
    return Members(np.concatenate([[0], np.cumsum(sizes + 1)]), names, stream.first_graph)


def with_own_rows(stream: EdgeStream) -> EdgeStream:
    """The stream of a set of graphs, each with a row of its own after those of its nodes. Raises GraphError.

    stream   of a set, or of one graph; it states its nodes (see `counted`)
    """
    members = members_of(stream)
    ends = members.starts[1:] - np.arange(1, members.count + 1)  # of the nodes before rows are added

    def chunks(opened: EdgeStream) -> Iterator[Chunk]:
        for u, v, w in stream.chunks():
            graphs = [np.searchsorted(ends, each, side="right") for each in (u, v)]
            apart = np.flatnonzero(graphs[0] != graphs[1])
            if len(apart):
                i = apart[0]
                found = f"an edge from node {u[i]} to node {v[i]}, counted from 0, joins two graphs"
                raise GraphError(f"{stream.name}: {found}; edges within graphs would be right")
            yield u + graphs[0], v + graphs[1], w
        for text in stream.warnings:
            opened.warn(text)

    return replace(
        stream, format="set", nodes=int(members.starts[-1]), first_id=0, make=chunks, part=None, lines=None,
        entries=None, node_weights=None, members=members, warnings=list(stream.warnings),
    )  # fmt: skip


def counted(stream: EdgeStream) -> EdgeStream:
    """A stream that states no number of nodes, the nodes of its edges numbered by their ids; in memory."""
    pieces = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)), *stream.chunks()]
    u, v = (np.concatenate([piece[i] for piece in pieces]) for i in (0, 1))
    ids = np.concatenate([u, v])
    if stream.named:
        ids = stream.ids[ids]
    found, numbers = np.unique(ids, return_inverse=True)
    u, v = np.split(numbers.astype(np.int64), 2)
    w = np.concatenate([piece[2] for piece in pieces]) if stream.weighted else None
    return replace(
        stream, nodes=len(found), make=lambda _: iter([(u, v, w)]), part=None, named=False, ids=None,
        first_id=0,
    )  # fmt: skip


def readout_rows(members: Members, name: str, lo: int, hi: int) -> Graph:
    """Rows lo..hi-1 of the matrix R of a readout: r_ij = 1 where row i is a graph and row j one of its nodes.

    As of directed graphs (graphs/graph.py) the pattern is that of R and of R^T.
    """
    n, graph = int(members.starts[-1]), members.graph_of(lo, hi)
    own, sizes = members.own_of(lo, hi), np.diff(members.starts) - 1
    indptr = np.concatenate([[0], np.cumsum(np.where(own, sizes[graph], 1))])
    row = np.repeat(np.arange(hi - lo), np.diff(indptr))
    within = np.arange(indptr[-1]) - indptr[row]
    columns = np.where(own[row], members.starts[graph[row]] + within, members.own_rows[graph[row]])
    arcs = np.where(own[row], IN_A, IN_TRANSPOSE).astype(np.uint8)
    return Graph(name, n, lo, hi, indptr, columns.astype(index_type(n)), members.nodes, arcs=arcs)
