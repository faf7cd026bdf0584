"""Explanations of the predictions that a case names (output.explain), by the user's ids."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.ensemble import Together
from app.gnn.explain.explanations import KEY, Columns, Explanations, explain
from app.gnn.explain.masked import MaskedAggregation, MaskedAttention, MaskedEdgeSums
from app.gnn.explain.which import are_edges, least_certain
from app.gnn.training import Fit
from app.graphs.ids import plain_ids
from app.native.device import HostDevice
from app.partition.ids import ids_everywhere
from app.partition.loaded import Loaded
from app.tasks.context import Context
from app.text import printable, show

MB = 1e6
PIECE = 1 << 16  # names that are looked at a time


class MaskedDevice(MaskedEdgeSums, MaskedAttention, MaskedAggregation, HostDevice):
    """The host with layers whose messages are masked: explanations are worked on there."""


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
        what = "node of the graph" if self.members is None else "graph of the set"
        for each in asked:
            if isinstance(each, list):
                raise CaseError(f"{KEY}: {show(each)} is no {what}; ids of such would be right")
        rows = np.array(list(dict.fromkeys(self._rows(asked, what))), dtype=np.int64)
        return rows if self.members is None else self.members.own_rows[rows]

    def _rows(self, asked: list[Any], what: str) -> list[int]:
        """Where names are, each of them. Raises CaseError."""
        found, places = self._places(asked), []
        for each in asked:
            place = found.get(each, found.get(str(each)))
            if place is None:
                raise CaseError(f"{KEY}: {show(each)} is no {what}; ids of such would be right")
            places.append(place)
        return places


class PairNames(Names):
    """What edges, or pairs of nodes, are called: by both ends."""

    def rows_of(self, asked: list[Any]) -> np.ndarray:
        """[k, 2] int64 u < v, the rows of the ends that are named so, each pair once. Raises CaseError."""
        for each in asked:
            if not isinstance(each, list) or len(each) != 2:
                right = f"both ends, as {KEY} = [[A, B], ...], would be right"
                raise CaseError(f"{KEY}: found {show(each)}; {right}")
        rows = self._rows([end for each in asked for end in each], "node of the graph")
        pairs = [(min(pair), max(pair)) for pair in zip(rows[::2], rows[1::2])]
        for each, (u, v) in zip(asked, pairs):
            if u == v:
                raise CaseError(f"{KEY}: {show(each)} is one node; two of them would be right")
        return np.array(list(dict.fromkeys(pairs)), dtype=np.int64).reshape(-1, 2)


def check_explained(context: Context, classifier: Classifier, names: Names | None) -> None:
    """Refuse, before there is training to lose, what will not be explained. Ranks: all call. Raises
    CaseError."""
    asked = context.case.output.explain
    if names is not None and not isinstance(asked, int):
        _refuse_strange(classifier, names, names.rows_of(asked))


def _refuse_strange(classifier: Any, names: Names, rows: np.ndarray) -> None:
    """Refuse pairs that nothing is predicted of. Ranks: all call. Raises CaseError."""
    level = classifier.case.level
    if level == "edge":
        wrong, what = ~are_edges(classifier, rows), "is no edge of the graph; ends of such would be right"
    elif level == "link" and classifier.split.sides is not None:
        wrong = ~classifier.split.sides.across(*rows.T)
        what = "is of one side; a node of each would be right"
    else:
        return
    for pair in rows[wrong]:
        raise CaseError(f"{KEY}: {show(names(pair))} {what}")


def explained(
    context: Context, classifier: Classifier, names: Names | None, fits: Sequence[Fit],
    together: Together | None,
) -> Explanations | None:  # fmt: skip
    """The explanations that a case asks for, of which the log tells; None: nobody asked.

    fits   of each network     together   what several say
    Ranks     all call
    """
    case = context.case
    asked = case.output.explain
    if names is None:
        return None
    with context.log.phase("explain"):
        some = isinstance(asked, int)
        rows = least_certain(classifier, asked, together) if some else names.rows_of(asked)
        most, directed = int(case.memory.whole_graph_mb * MB), classifier.block.directed
        masked = MaskedDevice(portable=getattr(classifier.device, "portable", True))
        turned = directed and case.graph.neighbours == "out"
        members, columns = [each.weights for each in fits], Columns.of(classifier.data)
        found = explain(classifier, masked, members, rows, names, columns, most, case.seed, turned)
    tell(context, found, "-")
    return found


def tell(context: Context, found: Explanations, between: str) -> None:
    """What the log, and a warning, tell; between: what stands between the names of a pair or a triple."""
    for line in found.log_lines():
        context.log.info("%s", line)
    if found.left_out:
        (node, size), *others = found.left_out
        more = f", and {len(others)} more" if others else ""
        called = between.join(map(str, node)) if isinstance(node, tuple) else str(node)
        context.warn(
            f"{KEY}: {found.what} {printable(called)}{more} left out: what the prediction depends on "
            f"takes {size:,.3g} MB, memory.whole_graph_mb allows {context.case.memory.whole_graph_mb:,g}"
        )
