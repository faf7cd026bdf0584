"""This program's network on a set of graphs, under the interface of the others."""

from typing import Any

import numpy as np
from mpi4py import MPI

from app.case.file import build
from app.gnn.classifier import Classifier
from app.gnn.optim import make_optimiser
from app.graphs.members import with_own_rows
from app.graphs.nodes.memory import table_of_arrays
from app.graphs.stream import EdgeStream
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock
from bench import subjects
from bench.gnn_case import LEARNING_RATE
from bench.gnn_lockstep import FIRST_PRODUCTS
from bench.graphs_case import GraphsCase


def version() -> str:
    """Of what is measured."""
    return f"device {subjects.open_group(MPI.COMM_SELF).device.describe()}"


def forms(case: GraphsCase) -> list[str]:
    """What can be asked for."""
    return ["each epoch", "kept"]


class Model:
    """A classifier with its optimiser."""

    def __init__(self, case: GraphsCase, form: str, dropout: float) -> None:
        group, widths = subjects.open_group(MPI.COMM_SELF), case.widths
        keys = {
            "level": "graph", "depth": len(widths) - 2, "hidden": widths[1], "dropout": dropout,
            "input_dropout": 0.0, "first_product": FIRST_PRODUCTS[form], "feature_rows": "as_given",
            "learning_rate": LEARNING_RATE, "weight_decay": 0.0,
        }  # fmt: skip
        table = build({"run.task": "classify", "gnn": keys})
        edges = EdgeStream(
            case.name, "", "set", int(case.starts[-1]), 0, False, lambda _: iter([(case.u, case.v, None)]),
            undirected=True, sizes=np.diff(case.starts),
        )  # fmt: skip
        loaded = load_stream(group, with_own_rows(edges), table.graph, table)
        known = table_of_arrays(case.X, case.labels, case.train, n=len(case.labels))
        block = RowBlock(group, loaded.graph, loaded.rows, "auto", widths[1])
        data = deal_node_table(group, known, loaded)
        self.classifier = Classifier(group, table.gnn, block, data, case.seed, members=loaded.members)
        self.params, self.epochs = self.classifier.params, 0
        self.params.set(self._first(case.weights()))
        self.optimiser = make_optimiser(table.gnn, self.params.size, group.device.xp)

    def _first(self, weights: dict[str, np.ndarray]) -> dict[str, Any]:
        """The case's first weights by the names that they have here."""
        last = len(weights) // 2
        names = {f"W{i}": f"layer{i}.W" for i in range(1, last)} | {f"W{last}": f"layer{last}.W_1"}
        names |= {f"b{i}": f"layer{i}.bias" for i in range(1, last + 1)}
        return {ours: weights[name].reshape(self.params.shapes[ours]) for name, ours in names.items()}

    def epoch(self) -> float:
        """One gradient step on all training graphs; its loss."""
        self.epochs += 1
        loss = self.classifier.epoch(self.epochs)
        self.optimiser.update(self.params.flat, self.classifier.engine.gradient)
        return loss
