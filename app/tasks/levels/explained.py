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
from app.text import printable, show

MB = 1e6
PIECE = 1 << 16  # names that are looked at a time


class MaskedDevice(MaskedAttention, HostDevice):
    """The host with attention whose messages are masked: explanations are worked on there."""


class Names:
    """What rows are called: nodes of a graph, or graphs of a set and in them nodes by numbers from 0.

    given   names of the caller's nodes, or graphs, in their order; None: the ids of the file
    Ranks   all construct
    """

    def __init__(self, context: Context, loaded: Loaded, given: list[Any] | None) -> None:
        self.members, self._given = loaded.members, given or None
        self._order = loaded.order_all if loaded.members is None else None
        self._ids = np.empty(0)
        if not given:
            own = self.members is None
            self._ids = (
                ids_everywhere(context.group, loaded.graph, loaded.rows) if own else self.members.ids()
            )

    def __call__(self, rows: np.ndarray) -> list[Any]:
        """The names of rows [k]."""
        if self.members is None:
            return self._called(rows)
        graphs = np.searchsorted(self.members.starts, rows, side="right") - 1
        own = rows == self.members.own_rows[graphs]
        numbers = rows - self.members.starts[graphs]
        named = zip(self._called(graphs), own.tolist(), numbers.tolist())
        return [name if mine else number for name, mine, number in named]

    def _called(self, places: np.ndarray) -> list[Any]:
        """The names of nodes, or graphs, at some places [k]."""
        if self._given is None:
            return plain_ids(self._ids[places])
        old = places if self._order is None else self._order[places]
        return [self._given[i] for i in old.tolist()]

    def _places(self, asked: list[Any]) -> dict[Any, int]:
        """Where names are that read like those asked for, by themselves and as text, which gives way."""
        wanted, found = {str(each) for each in asked}, {}
        count = len(self._ids) if self._given is None else len(self._given)
        for at in range(0, count, PIECE):
            for place, name in enumerate(self._called(np.arange(at, min(at + PIECE, count))), start=at):
                if (text := str(name)) in wanted:
                    found.setdefault(text, place)
                    found[name] = place
        return found

    def rows_of(self, asked: list[Any]) -> np.ndarray:
        """[k] int64, the rows that are called so, each once. Raises CaseError."""
        found, places = self._places(asked), []
        for each in asked:
            place = found.get(each, found.get(str(each)))
            if place is None:
                what = "node of the graph" if self.members is None else "graph of the set"
                raise CaseError(f"{KEY}: {show(each)} is no {what}; ids of such would be right")
            places.append(place)
        rows = np.array(list(dict.fromkeys(places)), dtype=np.int64)
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
        turned = directed and case.graph.neighbours == "out"
        found = explain(classifier, masked, rows, names, most, case.seed, directed, turned)
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
