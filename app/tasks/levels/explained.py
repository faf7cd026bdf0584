"""Explanations of the predictions that a case names (output.explain), by the user's ids."""

from typing import Any

import numpy as np

from app.device import HostDevice
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.explain.explanations import KEY, Explanations, explain, least_certain, refuse_unexplained
from app.gnn.explain.masked import MaskedAttention
from app.graphs.ids import plain_ids
from app.partition.ids import ids_everywhere
from app.partition.load import Loaded
from app.tasks.context import Context
from app.text import printable

MB = 1e6


class MaskedDevice(MaskedAttention, HostDevice):
    """The host with attention whose messages are masked: explanations are worked on there."""


class Names:
    """What rows are called: nodes of a graph, or graphs of a set and in them nodes by numbers from 0.

    given   names of the caller's nodes, or graphs, in their order; None: the ids of the file
    Ranks   all construct
    """

    def __init__(self, context: Context, loaded: Loaded, given: list[Any] | None) -> None:
        self.members = loaded.members
        if self.members is not None:
            self._of_graphs = given or plain_ids(self.members.ids())
        elif given is None:
            self._of_rows = plain_ids(ids_everywhere(context.group, loaded.graph, loaded.rows))
        else:
            order = range(len(given)) if loaded.order_all is None else loaded.order_all.tolist()
            self._of_rows = [given[i] for i in order]

    def __call__(self, rows: np.ndarray) -> list[Any]:
        """The names of rows [k]."""
        if self.members is None:
            return [self._of_rows[row] for row in rows.tolist()]
        graphs = np.searchsorted(self.members.starts, rows, side="right") - 1
        own = rows == self.members.own_rows[graphs]
        numbers = rows - self.members.starts[graphs]
        return [
            self._of_graphs[g] if mine else number
            for g, mine, number in zip(graphs.tolist(), own.tolist(), numbers.tolist())
        ]

    def rows_of(self, asked: list[Any]) -> np.ndarray:
        """[k] int64, the rows that are called so, each once. Raises CaseError."""
        known = self._of_rows if self.members is None else self._of_graphs
        row_of = {str(name): row for row, name in enumerate(known)}
        for each in asked:
            if str(each) not in row_of:
                what = "node of the graph" if self.members is None else "graph of the set"
                raise CaseError(f"{KEY}: {printable(str(each))} is no {what}; ids of such would be right")
        rows = np.array(list(dict.fromkeys(row_of[str(each)] for each in asked)), dtype=np.int64)
        return rows if self.members is None else self.members.own_rows[rows]


def check_explained(context: Context, classifier: Classifier, names: Names | None) -> None:
    """Refuse, before there is training to lose, what will not be explained. Raises CaseError."""
    asked = context.case.output.explain
    if names is None:
        return
    if classifier.case.members > 1:
        raise CaseError(f"{KEY}: is of one network, here are {classifier.case.members}; leave it out")
    refuse_unexplained(classifier)
    if not isinstance(asked, int):
        names.rows_of(asked)


def explained(context: Context, classifier: Classifier, names: Names | None) -> Explanations | None:
    """The explanations that a case asks for, of which the log tells; None: nobody asked. Ranks: all call."""
    case = context.case
    asked = case.output.explain
    if names is None:
        return None
    with context.log.phase("explain"):
        rows = least_certain(classifier, asked) if isinstance(asked, int) else names.rows_of(asked)
        most, directed = int(case.memory.whole_graph_mb * MB), classifier.block.directed
        masked = MaskedDevice(portable=getattr(classifier.device, "portable", True))
        found = explain(classifier, masked, rows, names, most, case.seed, directed)
    for line in found.log_lines():
        context.log.info("%s", line)
    if found.left_out:
        (node, size), *others = found.left_out
        more = f", and {len(others)} more" if others else ""
        context.warn(
            f"{KEY}: {found.what} {printable(str(node))}{more} left out: what the prediction depends on "
            f"takes {size:,.3g} MB, memory.whole_graph_mb allows {case.memory.whole_graph_mb:,g}"
        )
    return found
