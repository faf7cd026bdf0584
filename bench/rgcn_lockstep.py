"""This program's relational network, under the interface of the others."""

from typing import Any

import numpy as np
from mpi4py import MPI

from app.case.rgcn import RgcnCase as Table
from app.gnn.rgcn.model import RGCN, NetShape
from app.gnn.rgcn.training import Steps, Targets
from app.graphs.triples.data import NodeLabels
from app.graphs.triples.relational import RelationalGraph
from app.partition.relations import place
from bench import subjects
from bench.rgcn_case import BASES, HIDDEN, LEARNING_RATE, RgcnCase


def version() -> str:
    """Of what is measured."""
    return f"device {subjects.open_group(MPI.COMM_SELF).device.describe()}"


def forms(case: RgcnCase) -> list[str]:
    """What can be asked for."""
    return ["40 bases"]


class Model:
    """A network with its optimiser. Ranks: all construct and call."""

    def __init__(self, case: RgcnCase, form: str, dropout: float, comm: Any = MPI.COMM_SELF) -> None:
        group = subjects.open_group(comm)
        columns = (each.astype(np.int32) for each in (case.target, case.relation, case.source))
        graph = RelationalGraph(case.name, case.nodes, case.relations, *columns)
        others = np.setdiff1d(case.read, case.train)
        labels = NodeLabels(case.classes, case.train, case.labels, others, np.zeros_like(others))
        table = Table(hidden=HIDDEN, bases=BASES, learning_rate=LEARNING_RATE)
        placement = place(graph, group.size, group.size)
        shape = NetShape([HIDDEN, case.classes], BASES, case.seed)
        self.net = RGCN(group, placement, graph, case.read, shape)
        self.targets, self.steps = Targets(group, self.net, placement, labels), Steps(group, table, self.net)
        self._set(group, case)

    def _set(self, group: Any, case: RgcnCase) -> None:
        """The case's first weights; of the first layer those of the nodes that count."""
        whole, weights = self.net.whole(group), case.weights()
        for layer, prefix in ((1, "first"), (2, "layer1")):
            whole[f"{prefix}/a"].set(weights[f"a{layer}"])
        V, loops = whole["first/V"], whole["first/self"]
        V.set(weights["V1"][:, V.keys].transpose(1, 0, 2))
        loops.set(weights["self1"][loops.keys])
        whole["layer1/V"].set(weights["V2"].reshape(BASES, -1))
        whole["layer1/self"].set(weights["self2"])

    def epoch(self) -> float:
        """One gradient step on all training nodes; its loss."""
        Z_own = self.net.forward()
        loss = self.targets.loss(Z_own)
        for gradient in self.net.gradients(Z_own):
            self.steps.take(gradient)
        return loss
