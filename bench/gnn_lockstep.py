"""This program's graph convolutional network, under the interface of the others.

kept         A X of the first layer is computed once (gnn.first_product = "cached"; dense features)
each epoch   every product in every epoch ("live"); the only form for sparse features
"""

from typing import Any

import numpy as np
from mpi4py import MPI
from scipy.sparse import csr_array

from app.case.gnn import GnnCase
from app.comm.group import Group
from app.gnn.classifier import Classifier
from app.gnn.optim import make_optimiser
from app.graphs.graph import Graph
from app.graphs.nodes.data import NodeData
from app.partition.rows import RowPartition, block_count, block_starts, partition_rows
from app.sparse.rowblock import RowBlock
from bench import subjects
from bench.gnn_case import LEARNING_RATE, GcnCase

ALONE = ("gcn2", "appnp", "gprgnn", "sgformer")  # kinds whose first layer is dense
FIRST_PRODUCTS = {"kept": "cached", "each epoch": "live"}


def version() -> str:
    """Of what is measured."""
    return f"device {subjects.open_group(MPI.COMM_SELF).device.describe()}"


def forms(case: GcnCase) -> list[str]:
    """What can be asked for."""
    return ["each epoch"] if case.sparse or case.kind in ALONE else ["kept", "each epoch"]


def row_block(group: Group, case: GcnCase, exchange: str = "auto") -> tuple[RowBlock, RowPartition]:
    """This rank's rows of a graph that every rank holds; cuts balance rows and entries. Ranks: all call."""
    starts = block_starts(case.n, block_count(case.n))
    entries = np.diff(case.indptr[np.minimum(starts, case.n)])
    rows = partition_rows(case.n, group.size, np.diff(starts) + entries)
    lo, hi = rows.range_of(group.rank)
    own = slice(int(case.indptr[lo]), int(case.indptr[hi]))
    indptr, indices = case.indptr[lo : hi + 1] - case.indptr[lo], case.indices[own].copy()
    graph = Graph(case.name, case.n, lo, hi, indptr, indices, edges=len(case.indices) // 2)
    return RowBlock(group, graph, rows, exchange), rows


def node_data(case: GcnCase, block: RowBlock, rows: RowPartition, rank: int) -> NodeData:
    """This rank's padded rows of features, labels and training nodes."""
    lo, hi = rows.range_of(rank)
    real, no_nodes = hi - lo, np.zeros(block.n_own, dtype=bool)
    labels, train = np.full(block.n_own, -1, dtype=np.int32), no_nodes.copy()
    labels[:real] = case.labels[lo:hi]
    train[:real] = np.isin(np.arange(lo, hi), case.train)
    width, classes = case.widths[0], case.widths[-1]
    if case.sparse:
        X = case.X if real == case.n else case.X[lo:hi]
        indptr = np.concatenate([X.indptr, np.full(block.n_own - real, X.indptr[-1], X.indptr.dtype)])
        features: Any = csr_array((X.data, X.indices, indptr), shape=(block.n_own, width))
    elif real == case.n:
        features = _padded(case, block.n_own)
    else:
        features = np.zeros((block.n_own, width), dtype=np.float32)
        features[:real] = case.X[lo:hi]
    return NodeData(
        features=features, labels=labels, labelled=labels >= 0, train=train, val=no_nodes, test=no_nodes,
        classes=classes, multilabel=False, class_ids=np.arange(classes), width=width, binary=False,
        counts={"train": len(case.train), "val": 0, "test": 0},
    )  # fmt: skip


def _padded(case: GcnCase, rows: int) -> np.ndarray:
    """[rows, f] the dense features with rows of zeros behind them, in their own memory: the other programs
    read the case's array where it lies, too."""
    width, flat = case.widths[0], case.X if case.X.base is None else case.X.base
    case.X = None
    flat.resize(rows * width, refcheck=False)
    case.X = flat.reshape(rows, width)
    return case.X


class Model:
    """A classifier with its optimiser. Ranks: all construct and call."""

    def __init__(self, case: GcnCase, form: str, dropout: float, comm: Any = MPI.COMM_SELF) -> None:
        group = subjects.open_group(comm)
        deep, alone = case.kind in ("gcn2", "sgformer"), case.kind in ALONE
        table = GnnCase(
            model=case.kind if alone else "gcn", depth=case.layers - 2 * deep, hidden=case.widths[1],
            batch_norm=case.kind == "batch_norm", dropout=dropout, input_dropout=0.0, weight_decay=0.0,
            first_product="auto" if alone else FIRST_PRODUCTS[form], feature_rows="as_given",
            learning_rate=LEARNING_RATE,
        )  # fmt: skip
        block, rows = row_block(group, case)
        data = node_data(case, block, rows, group.rank)
        self.classifier = Classifier(group, table, block, data, case.seed)
        self.params, self.epochs = self.classifier.params, 0
        weights = case.weights()
        shapes = self.params.shapes
        self.names = {name: _name(name) for name in weights if _name(name) in shapes}
        given = {ours: weights[name].reshape(shapes[ours]) for name, ours in self.names.items()}
        self.params.set(self.params.host() | given)
        self.optimiser = make_optimiser(table, self.params.size, group.device.xp)

    def epoch(self) -> float:
        """One gradient step on all training nodes; its loss."""
        loss = self._pass()
        self.optimiser.update(self.params.flat, self.classifier.engine.gradient)
        return loss

    def gradients(self) -> dict[str, np.ndarray]:
        """At the present weights."""
        self._pass()
        gradient, params = self.classifier.engine.gradient, self.params
        found = {ours: np.array(gradient[part]) for ours, part in params.slices.items()}
        shaped = {ours: each.reshape(params.shapes[ours]) for ours, each in found.items()}
        return {
            name: shaped[ours][0] if name[0] == "b" else shaped[ours] for name, ours in self.names.items()
        }

    def _pass(self) -> float:
        self.epochs += 1
        return self.classifier.epoch(self.epochs)


def _name(name: str) -> str:
    """layer1.W for W1, layer1.bias for b1, layer2.W_query for Q2."""
    kinds = {"W": "W", "b": "bias", "Q": "W_query", "K": "W_key", "V": "W_value"}
    return f"layer{name[1:]}.{kinds[name[0]]}"
