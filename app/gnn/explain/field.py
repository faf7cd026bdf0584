"""Receptive fields: all that the score of one node, or of one graph, depends on, brought to every rank.

A network with L products with A in a row hears, of the node v,

    R_0 = {v}     R_d = R_{d-1} and what its nodes hear     inner nodes R_{L-1}, whose entries of A are read

and the features of R_L. Rows of other nodes are multiplied by nothing that reaches the score of v, so that a
network on the field alone, with the normalisation factors of the whole graph, gives v's score exactly but
for rounding. Fields are small where graphs are sparse and networks shallow, and a path from an empty graph to
the given one takes tens of passes: so each node is explained on its own field, and many of them side by side,
each by one rank. Passes over the whole graph would explain many nodes at once only where their fields do not
meet.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.gnn.classifier import Classifier
from app.gnn.inputs import Scaling, scaled_rows
from app.sparse.rowblock import RowBlock

PLAIN_ENTRY = 430  # bytes that an entry takes, by tracemalloc, where layers are sums


@dataclass(frozen=True, eq=False)
class Field:
    """What one score depends on; the same on all ranks.

    row        the row that is explained, and its place among the nodes
    nodes      [k] int64, ascending, the rows of the graph
    ends       [2, e] int64 places: node ends[0] hears ends[1]; by the former, then by the latter
    weights    [e] float32, what A has there
    degrees    [2, k] float64, of all of A and of A^T
    X          [k, f] float32, what the first layer reads, without columns that are zero in all rows
    used       [f] int64, the columns of the input that X has
    whole      a whole graph is explained, by its own row
    """

    row: int
    place: int
    nodes: np.ndarray
    ends: np.ndarray
    weights: np.ndarray
    degrees: np.ndarray
    X: np.ndarray
    used: np.ndarray
    whole: bool = False


class Fields:
    """Makes the receptive fields of a classifier's scores.

    hops    products with A between the features and a score
    most    bytes that a field may take, with what working on it takes
    Ranks   all construct
    """

    def __init__(
        self, classifier: Classifier, hops: int, most: int, columns: int, of_entry: int = PLAIN_ENTRY
    ) -> None:
        """columns   of all that a pass holds of a node     of_entry   bytes, of an entry (see `cost`)."""
        self._of_entry = of_entry
        self.classifier, self.group, self.block = classifier, classifier.group, classifier.block
        self.hops, self.most, self.columns = hops, most, columns
        engine = classifier.engine
        sides = (engine.neighbours_of, engine.adjoint)
        self._degrees = np.stack([side.degrees() for side in sides], axis=1)

    def of(self, row: int) -> "Field | int":
        """The field of a row, or of a graph by its own row; the bytes it takes, where these are too many.
        Ranks: all call; result identical on all."""
        members = self.classifier.members
        nodes = self._heard(row) if members is None else self._of_graph(row)
        if isinstance(nodes, int):
            return nodes
        inner, nodes = nodes
        ends, weights = self._entries(inner, nodes)
        found = self._features(nodes, len(weights))
        if isinstance(found, int):
            return found
        X, used = found
        degrees = shared(self.group, self._degrees[own_of(self.block, nodes)])
        place = int(np.searchsorted(nodes, row))
        return Field(row, place, nodes, ends, weights, degrees.T.copy(), X, used, members is not None)

    def cost(self, nodes: int, entries: int, features: int) -> int:
        """About the bytes of a field and of its explanation: rows of features five times, and as 64-bit
        numbers twice, rows of all layers twice, entries by rows and by columns, and what is made of them."""
        return nodes * (36 * features + 8 * self.columns) + self._of_entry * entries

    def _of_graph(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """All rows of the graph whose own row this is."""
        starts = self.classifier.members.starts
        graph = int(np.searchsorted(starts, row, side="right")) - 1
        nodes = np.arange(starts[graph], starts[graph + 1])
        return nodes, nodes

    def _heard(self, row: int) -> tuple[np.ndarray, np.ndarray] | int:
        """Inner nodes and all nodes, ascending; the bytes where there are too many. Ranks: all call."""
        inner, nodes = np.empty(0, np.int64), np.array([row])
        for _ in range(self.hops):
            inner, own = nodes, own_of(self.block, nodes)
            counts, _, _ = self.block.adjacency.extended_rows(own)
            entries = int(self.group.sum_integers(np.array([counts.sum()]))[0])
            if (cost := self.cost(len(nodes), entries, 0)) > self.most:
                return cost
            _, heard = self.block.adjacency.global_rows(own)
            nodes = np.unique(np.concatenate([nodes, shared(self.group, np.unique(heard).astype(np.int64))]))
        return inner, nodes

    def _entries(self, inner: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends and weights of the entries of inner nodes. Ranks: all call."""
        matrix, own = self.block.adjacency, own_of(self.block, inner)
        counts, columns, weights = matrix.extended_rows(own)
        if weights is None or not self.classifier.case.edge_weights:
            weights = np.ones(len(columns), dtype=np.float32)
        heard = (columns if matrix.columns is None else matrix.columns[columns]).astype(np.int64)
        hears = np.repeat(own + self.block.lo, counts)
        both = shared(self.group, np.stack([hears, heard], axis=1))
        return np.searchsorted(nodes, both.T), shared(self.group, weights)

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
