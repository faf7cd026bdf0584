"""Receptive fields: all that the score of one node, or of one graph, depends on, brought to every rank.

A network with L products with A in a row hears, of the node v,

    R_0 = {v}     R_d = R_{d-1} and what its nodes hear     inner nodes R_{L-1}, whose entries of A are read

and the features of R_L. Rows of other nodes are multiplied by nothing that reaches the score of v, so that a
network on the field alone, with the normalisation factors of the whole graph, gives v's score exactly but for
rounding. Where a layer hears all nodes (layers/all_nodes.py), all rows below the last such layer reach the
score: the field has all nodes, and all entries of A where there are products below that layer, else those of
the products above it and beside it. What is explained of an edge, or of a pair of nodes, depends on the rows
of both ends: R_0 has the two. Fields are small where graphs are sparse and networks shallow, and a path from
an empty graph to the given one takes tens of passes: so each node is explained on its own field, and many of
them side by side, each by one rank. Passes over the whole graph would explain many nodes at once only where
their fields do not meet.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.gnn.classifier import Classifier
from app.gnn.edges import EdgeColumns
from app.gnn.inputs import Scaling, scaled_rows
from app.gnn.model import case_reads_edges
from app.graphs.keys import sorted_set, union
from app.graphs.lists import ranges
from app.sparse.rowblock import RowBlock

NUMBER = 60  # bytes that a number of the features of an entry takes
PLAIN_ENTRY = 430  # bytes that an entry takes, by tracemalloc, where layers are sums


@dataclass(frozen=True, eq=False)
class Field:
    """What one score depends on; the same on all ranks.

    rows       [1] int64 the row that is explained, or [2] the ends of an edge or a pair, and their places
               among the nodes
    nodes      [k] int64, ascending, the rows of the graph
    ends       [2, e] int64 places: node ends[0] hears ends[1]; by the former, then by the latter
    weights    [e] float32, what A has there
    degrees    [2, k] float64, of all of A and of A^T
    X          [k, f] float32, what the first layer reads, without columns that are zero in all rows
    used       [f] int64, the columns of the input that X has
    whole      a whole graph is explained, by its own row
    E          [e, c] float32, the features of edges by entries, as layers read them, of categories zeros and
               ones; None: no layer reads any
    of_edge    [c] float32, those of the edge that is explained; None: nothing reads them
    relation   [e] int64, of a knowledge graph the relation of each entry; None of others
    triples_of   of how many relations it has triples; larger ones are inverse
    """

    rows: np.ndarray
    places: np.ndarray
    nodes: np.ndarray
    ends: np.ndarray
    weights: np.ndarray
    degrees: np.ndarray
    X: np.ndarray
    used: np.ndarray
    whole: bool = False
    E: np.ndarray | None = None
    of_edge: np.ndarray | None = None
    relation: np.ndarray | None = None
    triples_of: int = 0

    @property
    def key(self) -> str:
        """What streams of draws, and messages, call it."""
        return "-".join(map(str, self.rows.tolist()))


@dataclass(frozen=True)
class Reach:
    """What of a graph a score depends on.

    hops     products with A between the score and the features, or the last layer that hears all nodes
    all      there is such a layer: it reads the rows of all nodes
    below    there are products with A below it: all entries reach the score
    """

    hops: int
    all: bool = False
    below: bool = False


class Fields:
    """Makes the receptive fields of a classifier's scores.

    reach   of scores (network.py: reach_of)
    most    bytes that a field may take, with what working on it takes
    Ranks   all construct
    """

    def __init__(
        self,
        classifier: Classifier,
        reach: Reach,
        most: int,
        columns: int,
        of_entry: int = PLAIN_ENTRY,
        networks: int = 1,
    ) -> None:
        """columns   of all that a pass holds of a node     of_entry   bytes, of an entry (see `cost`)
        networks   that work on a field at a time"""
        self._networks = networks
        self._read = classifier.edge_columns if case_reads_edges(classifier.case) else None
        self._of_entry = of_entry + (NUMBER * self._read.width if self._read else 0)
        self.classifier, self.group, self.block = classifier, classifier.group, classifier.block
        self.reach, self.most, self.columns = reach, most, columns
        engine = classifier.engine
        sides = (engine.neighbours_of, engine.adjoint)
        self._degrees = np.stack([side.degrees() for side in sides], axis=1)

    def of(self, rows: np.ndarray) -> "Field | int":
        """The field of a row [1], of a graph by its own row, or of the ends [2] of an edge or a pair; the
        bytes it takes, where these are too many. Ranks: all call; result identical on all."""
        members = self.classifier.members
        nodes = self._heard(rows) if members is None else self._of_graph(int(rows[0]))
        if isinstance(nodes, int):
            return nodes
        inner, nodes = nodes
        ends, weights, E = self._entries(inner, nodes)
        found = self._features(nodes, len(weights))
        if isinstance(found, int):
            return found
        X, used = found
        degrees = shared(self.group, self._degrees[own_of(self.block, nodes)])
        of_edge = self._of_edge(rows) if self._head_reads else None
        return Field(
            rows, np.searchsorted(nodes, rows), nodes, ends, weights, degrees.T.copy(), X, used,
            members is not None, E, of_edge,
        )  # fmt: skip

    def cost(self, nodes: int, entries: int, features: int) -> int:
        """About the bytes of a field and of its explanation: rows of features five times, and as 64-bit
        numbers twice, rows of all layers twice, entries by rows and by columns, and what is made of them."""
        return self._networks * (nodes * (36 * features + 8 * self.columns) + self._of_entry * entries)

    def _of_graph(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """All rows of the graph whose own row this is."""
        starts = self.classifier.members.starts
        graph = int(np.searchsorted(starts, row, side="right")) - 1
        nodes = np.arange(starts[graph], starts[graph + 1])
        return nodes, nodes

    def _heard(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray] | int:
        """Inner nodes and all nodes, ascending; the bytes where there are too many. Ranks: all call."""
        inner, nodes = np.empty(0, np.int64), sorted_set(rows)
        for _ in range(self.reach.hops):
            inner, own = nodes, own_of(self.block, nodes)
            counts, _, _ = self.block.adjacency.extended_rows(own)
            entries = int(self.group.sum_integers(np.array([counts.sum()]))[0])
            if (cost := self.cost(len(nodes), entries, 0)) > self.most:
                return cost
            _, heard = self.block.adjacency.global_rows(own)
            nodes = union(nodes, shared(self.group, sorted_set(heard).astype(np.int64)))
        return self._everywhere(inner) if self.reach.all else (inner, nodes)

    def _everywhere(self, inner: np.ndarray) -> tuple[np.ndarray, np.ndarray] | int:
        """Inner nodes and all nodes, where a layer hears all; the bytes where there are too many. Ranks: all
        call."""
        nodes = np.arange(self.block.n)
        inner = nodes if self.reach.below else inner
        counts, _, _ = self.block.adjacency.extended_rows(own_of(self.block, inner))
        entries = int(self.group.sum_integers(np.array([counts.sum()]))[0])
        cost = self.cost(len(nodes), entries, 0)
        return cost if cost > self.most else (inner, nodes)

    def _entries(
        self, inner: np.ndarray, nodes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Ends and weights of the entries of inner nodes, and their features. Ranks: all call."""
        matrix, own = self.block.adjacency, own_of(self.block, inner)
        counts, columns, weights = matrix.extended_rows(own)
        if weights is None or not self.classifier.case.edge_weights:
            weights = np.ones(len(columns), dtype=np.float32)
        heard = (columns if matrix.columns is None else matrix.columns[columns]).astype(np.int64)
        hears = np.repeat(own + self.block.lo, counts)
        both = shared(self.group, np.stack([hears, heard], axis=1))
        E = None if self._read is None else shared(self.group, self._features_of_edges(own, self._read))
        return np.searchsorted(nodes, both.T), shared(self.group, weights), E

    def _features_of_edges(self, own: np.ndarray, columns: EdgeColumns) -> np.ndarray:
        """[m, c] float32, those of the entries of some own rows [k], as layers read them."""
        heard = self.classifier.data.edges.heard
        starts = np.cumsum(heard.counts) - heard.counts
        return numbers_of(columns, heard.values[ranges(starts[own], heard.counts[own])])

    @property
    def _head_reads(self) -> bool:
        """Whether features of the edge that is explained are read beside the rows of its ends."""
        head = self.classifier.model.head
        return head is not None and head.edge_width > 0

    def _of_edge(self, rows: np.ndarray) -> np.ndarray:
        """[c] float32, the features of an edge, from the owner of its first end. Ranks: all call."""
        own = own_of(self.block, rows[:1])
        _, heard = self.block.adjacency.global_rows(own)
        found = self._features_of_edges(own, self.classifier.edge_columns)[heard == rows[1]]
        return shared(self.group, found)[0]

    def _features(self, nodes: np.ndarray, entries: int) -> tuple[np.ndarray, np.ndarray] | int:
        """What the first layer reads of some nodes, and which columns these are; the bytes where these are
        too many. Ranks: all call."""
        data = self.classifier.data
        dense = isinstance(data.features, np.ndarray)
        if dense and (cost := self.cost(len(nodes), entries, data.width)) > self.most:
            return cost
        rows = input_of(self.classifier, own_of(self.block, nodes))
        if isinstance(rows, np.ndarray):
            X = shared(self.group, np.ascontiguousarray(rows, dtype=np.float32))
            return X, np.arange(X.shape[1])
        rows = sp.csr_array(rows)
        counts = shared(self.group, np.diff(rows.indptr).astype(np.int64))
        columns = shared(self.group, rows.indices.astype(np.int64))
        values = shared(self.group, rows.data.astype(np.float32))
        used, places = np.unique(columns, return_inverse=True)
        if (cost := self.cost(len(nodes), entries, len(used))) > self.most:
            return cost
        X = np.zeros((len(nodes), max(len(used), 1)), dtype=np.float32)  # a network has a column, of zeros
        np.add.at(X, (np.repeat(np.arange(len(nodes)), counts), places.reshape(-1)), values)
        return X, used if len(used) else np.zeros(1, dtype=np.int64)


def numbers_of(columns: EdgeColumns, values: np.ndarray) -> np.ndarray:
    """[m, c] float32, the features [m, given] of edges as layers read them, of categories zeros and ones."""
    rows = columns.rows(values)[0]
    if rows.dtype.kind != "i":
        return np.ascontiguousarray(rows, dtype=np.float32)
    out = np.zeros((len(rows), columns.width), dtype=np.float32)
    edges, places = np.nonzero(rows >= 0)
    out[edges, rows[edges, places]] = 1
    return out


def own_of(block: RowBlock, nodes: np.ndarray) -> np.ndarray:
    """[m] int64, which of this rank's rows are among some nodes, ascending."""
    first, last = np.searchsorted(nodes, (block.lo, block.lo + block.n_real))
    return nodes[first:last] - block.lo


def shared(group: Group, own: np.ndarray) -> np.ndarray:
    """Rows of all ranks [*, ...], in the order of ranks. Ranks: all call."""
    counts = group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    return group.gather_host(np.ascontiguousarray(own), counts)


def input_of(classifier: Classifier, rows: np.ndarray) -> Any:
    """What the first layer reads of own rows [k], dense or sparse."""
    data, block = classifier.data, classifier.block
    if data.features is None:  # each node has a feature of its own
        columns = block.lo + rows if data.numbers is None else data.numbers[rows]
        ones, starts = np.ones(len(rows), dtype=np.float32), np.arange(len(rows) + 1)
        return sp.csr_array((ones, columns, starts), shape=(len(rows), block.n))
    scaling = Scaling(classifier.case.feature_rows, classifier.inputs, len(rows), data.beside)
    return scaled_rows(data.features[rows], scaling)
