"""Loaded: a graph's rows on this rank, how rows are partitioned, and what was told of it."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from app.graphs.deliveries import Deliveries
from app.graphs.facility import Demands
from app.graphs.graph import Graph
from app.graphs.members import Members
from app.graphs.metric import Metric
from app.graphs.pairing import Given
from app.graphs.stream import EdgeStream
from app.partition.assemble import EdgeCounts
from app.partition.rows import RowPartition


@dataclass(eq=False)
class Loaded:
    """A graph's rows on this rank, how rows are partitioned, and what the file held.

    source   "file", "cache" (the copy of an earlier reading), "generator" or "memory"
    metric   distances between all pairs of nodes, the same on all ranks; None where the file states none
    paths    the files it was read from, several where they were united, and the format named for them
    seed     of the generator
    order_all   [n] int64 on all ranks, the old number of each row; None: rows are in the order of the file
    inside, outside   [k] int64 on all ranks, ids of nodes that a caller wants in the solution, or not in it
    terminals   the same of nodes that a Steiner tree has to hold, by a file or a caller
    prized   node weights of the graph are prizes of such a tree; heaviest: see graphs/stream.py
    deliveries  what vehicles deliver to the points of the metric, by a file, a generator or a caller; or None
    start    [k] ids on all ranks, of a caller's solution to begin with: those chosen, of side 1, or in order
    start_colors   [k] int64 on all ranks, the colours of those nodes; None: the solution is no colouring
    labels   [n] what a caller calls the node of each id, for messages; None: by its id
    demands  the same of the nodes that follow, which are not to be chosen (graphs/covering.py)
    members  the rows of the nodes, and of the graphs, of a set of graphs that a network learns on; or None
    pairing  what the nodes are put on, by a file or a caller; or None
    needs    what nodes need for whom facilities are sought, by a caller; or None
    routes   of a caller's solution to begin with, the route of each of its ids; None: it has none
    stream   on rank 0 the edges once more, where something is told of them (partition/edge_data.py)
    made     of a small graph that every rank has made by itself (the rows, all rows); they are no longer
             this graph's where `graph` is another object; or None
    seconds  of each step of its reading on this rank; empty where it was not read from text or arrays now
    """

    graph: Graph
    rows: RowPartition
    counts: EdgeCounts
    warnings: tuple[str, ...] = ()
    complemented: bool = False
    source: str = "memory"
    metric: Metric | None = None
    paths: tuple[str, ...] = ()
    format: str = "auto"
    seed: int = 0
    order_all: np.ndarray | None = None
    inside: np.ndarray | None = None
    outside: np.ndarray | None = None
    terminals: np.ndarray | None = None
    prized: bool = False
    heaviest: bool = False
    start: np.ndarray | None = None
    start_colors: np.ndarray | None = None
    labels: list[Any] | None = None
    demands: list[Any] | None = None
    members: Members | None = None
    deliveries: Deliveries | None = None
    needs: Demands | None = None
    pairing: Given | None = None
    routes: np.ndarray | None = None
    stream: EdgeStream | None = None
    made: tuple[Graph, Graph] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def release(self) -> None:
        """Let go of the columns of the rows, which somebody else now holds in another numbering."""
        self.graph = replace(self.graph, indices=self.graph.indices[:0].copy())

    def restore(self, columns: np.ndarray) -> None:
        """Take back the columns [nnz] that `release` let go of."""
        self.graph = replace(self.graph, indices=columns.astype(self.graph.indices.dtype, copy=False))
