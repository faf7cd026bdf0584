"""This program's network of layers that read features of edges, under the interface of the others."""

from dataclasses import replace
from typing import Any

import numpy as np
from mpi4py import MPI

from app.case.file import build
from app.gnn.classifier import Classifier
from app.gnn.optim import make_optimiser
from app.graphs.formats.memory_edges import features_of_rows
from app.graphs.formats.source import Limits
from app.graphs.members import with_own_rows
from app.graphs.nodes.memory import table_of_arrays
from app.graphs.stream import EdgeStream
from app.partition.edge_data import load_edge_data
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock
from bench import subjects
from bench.edges_case import EdgesCase
from bench.gnn_case import LEARNING_RATE


def version() -> str:
    """Of what is measured."""
    return f"device {subjects.open_group(MPI.COMM_SELF).device.describe()}"


def forms(case: EdgesCase) -> list[str]:
    """What can be asked for."""
    return ["one_hot" if case.kinds else "as_given"]


class Model:
    """A classifier with its optimiser."""

    def __init__(self, case: EdgesCase, form: str, dropout: float) -> None:
        group, widths = subjects.open_group(MPI.COMM_SELF), case.widths
        keys = {
            "level": "graph" if case.whole else "node", "model": case.model, "depth": len(case.layers),
            "hidden": widths[1], "dropout": dropout, "input_dropout": 0.0, "feature_rows": "as_given",
            "edge_feature_rows": form, "learning_rate": LEARNING_RATE, "weight_decay": 0.0,
        }  # fmt: skip
        table = build({"run.task": "classify", "gnn": keys})
        rows = np.ascontiguousarray(case.E, dtype=np.float32)
        edges = EdgeStream(
            case.name, "", "set", int(case.starts[-1]), 0, False, lambda _: iter([(case.u, case.v, None)]),
            undirected=True, sizes=np.diff(case.starts) if case.whole else None,
            edge_features=lambda: features_of_rows(rows),
        )  # fmt: skip
        loaded = load_stream(group, with_own_rows(edges) if case.whole else edges, table.graph, table)
        known = table_of_arrays(case.X, case.labels, case.train, n=len(case.labels))
        block = RowBlock(group, loaded.graph, loaded.rows, "auto")
        data = deal_node_table(group, known, loaded)
        data = replace(data, edges=load_edge_data(group, loaded, "", Limits(), "both"))
        self.classifier = Classifier(group, table.gnn, block, data, case.seed, members=loaded.members)
        self.params, self.epochs = self.classifier.params, 0
        self.params.set(self._first(case))
        self.optimiser = make_optimiser(table.gnn, self.params.size, group.device.xp)

    def _first(self, case: EdgesCase) -> dict[str, Any]:
        """The case's first weights by the names that they have here; zeros for all others."""
        found = {name: np.zeros(shape, np.float32) for name, shape in self.params.shapes.items()}
        for i, weights in enumerate(case.layer_weights(), 1):
            found |= {f"layer{i}.{name}": W for name, W in weights.items()}
        if case.whole:
            found[f"layer{len(case.layers) + 1}.W_1"] = case.last_weights()
        return found

    def epoch(self) -> float:
        """One gradient step on what is known; its loss."""
        self.epochs += 1
        loss = self.classifier.epoch(self.epochs)
        self.optimiser.update(self.params.flat, self.classifier.engine.gradient)
        return loss
