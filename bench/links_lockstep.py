"""This program's network of links, under the interface of the others."""

import numpy as np
from mpi4py import MPI

from app.case.file import build
from app.gnn.links.predictor import LinkPredictor
from app.gnn.links.split import spans_of, split_edges
from app.gnn.optim import make_optimiser
from app.graphs.graph import Graph
from app.graphs.nodes.memory import table_of_arrays
from app.partition.assemble import EdgeCounts
from app.partition.loaded import Loaded
from app.partition.nodes import deal_node_table
from app.partition.rows import partition_rows
from app.sparse.rowblock import RowBlock
from app.tasks.levels.links import data_of_links
from bench import subjects
from bench.gnn_case import LEARNING_RATE, GcnCase
from bench.gnn_lockstep import FIRST_PRODUCTS


def version() -> str:
    """Of what is measured."""
    return f"device {subjects.open_group(MPI.COMM_SELF).device.describe()}"


def forms(case: GcnCase) -> list[str]:
    """What can be asked for."""
    return ["each epoch", "kept"]


class Model:
    """A predictor with its optimiser; no edge is held out."""

    def __init__(self, case: GcnCase, form: str, dropout: float) -> None:
        group, widths = subjects.open_group(MPI.COMM_SELF), case.widths
        gnn = {
            "level": "link", "depth": len(widths) - 1, "hidden": widths[1], "dropout": dropout,
            "input_dropout": 0.0, "first_product": FIRST_PRODUCTS[form], "feature_rows": "as_given",
            "learning_rate": LEARNING_RATE, "weight_decay": 0.0,
        }  # fmt: skip
        links = {"dimension": widths[-1], "held_out": 0.0, "validation": 0.0}
        table = build({"run.task": "classify", "gnn": gnn, "links": links})
        rows, edges = partition_rows(case.n, 1), len(case.indices) // 2
        graph = Graph(case.name, case.n, 0, case.n, case.indptr, case.indices, edges)
        loaded = Loaded(graph, rows, EdgeCounts(edges, 0, 0, 0))
        split = split_edges(group, loaded, spans_of(0.0, 0.0), case.seed)
        block = RowBlock(group, split.loaded.graph, rows, "auto", widths[1])
        known = deal_node_table(group, table_of_arrays(case.X, None, n=case.n), loaded)
        data = data_of_links(known, split, block)
        self.predictor = LinkPredictor(group, table.gnn, table.links, block, data, split, case.seed)
        self.params, self.epochs = self.predictor.params, 0
        named = {f"W{i}": f"layer{i}.W" for i in range(1, len(widths))}
        named |= {f"b{i}": f"layer{i}.bias" for i in range(1, len(widths))}
        first = case.weights()
        self.params.set({ours: first[name].reshape(self.params.shapes[ours]) for name, ours in named.items()})
        self.optimiser = make_optimiser(table.gnn, self.params.size, np)

    def epoch(self) -> float:
        """One gradient step; its loss."""
        self.epochs += 1
        loss = self.predictor.epoch(self.epochs)
        self.optimiser.update(self.params.flat, self.predictor.engine.gradient)
        return loss
