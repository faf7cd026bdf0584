"""Solved: an answer with its entry of result.json, what is written of it, and its nodes by name."""

import csv
import io
import itertools
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from app.checkpoint.store import State
from app.graphs.graph import Graph
from app.graphs.ids import NodeIndex
from app.graphs.routes import depot_of, routes_of
from app.partition.loaded import Loaded
from app.problems.table import CLASSES, MAPPING, NODE_ORDERS, ROUTES, TREE
from app.search.dismantle.course import read_order
from app.search.facility.tools import OF_NODES
from app.search.steiner.text import edges_of
from app.search.treewidth.decomposition import OF_BAGS
from app.solver.progress import Event
from app.tasks.compare import too_large, whole_graph
from app.tasks.context import Context
from app.tasks.names import called_by, places_of, written_by, written_ids


@dataclass(frozen=True)
class Solved:
    """An entry of result.json, with what is written and drawn beside it.

    text    of the solution's file
    course  of the file of its course (Toolbox.course); empty: it has none
    curves  of the file of its curve and of those beside it (Toolbox.curve); empty: it has none
    trace   the best and the bound over time; empty where only the policy was asked
    certificate   the file of what proves the bound; empty: none
    """

    entry: dict[str, Any]
    text: str
    solution: np.ndarray
    trace: list[Event]
    graph: Graph | None
    metric: Any = None
    certificate: bytes = b""
    course: str = ""
    curves: str = ""

    def state(self) -> State:
        """What a checkpoint keeps of it."""
        trace = [astuple(event) for event in self.trace]
        texts = {"text": self.text, "course": self.course, "curves": self.curves}
        values = {"entry": self.entry, **texts, "trace": trace}
        certificate = np.frombuffer(self.certificate, dtype=np.uint8)
        return State(values, {"solution": self.solution, "certificate": certificate})

    def named(self, ids: np.ndarray, labels: list[Any] | None, kind: str) -> list[Any]:
        """The solution, of a kind as Problem.solution, by ids [n], or by labels: the chosen nodes, those of a
        tree, those of a tour in order, or where there are classes a list of those of each.
        """
        if kind == TREE:
            return called_by(ids[np.flatnonzero(self.solution >= 0)], labels)
        if kind == MAPPING:
            return called_by(ids[np.flatnonzero(self.solution >= 0)], labels)
        if kind == ROUTES:
            return [node for route in routes_named(self.solution, ids, labels) for node in route]
        if kind in CLASSES:
            called = called_by(ids[np.argsort(self.solution, kind="stable")], labels)
            ends = np.cumsum(np.bincount(self.solution)).tolist()
            return [called[start:end] for start, end in itertools.pairwise([0, *ends])]
        return called_by(
            ids[np.flatnonzero(self.solution) if self.solution.dtype == bool else self.solution], labels
        )


def edges_named(solution: np.ndarray, ids: np.ndarray, labels: list[Any] | None) -> list[tuple[Any, Any]]:
    """The edges of a tree, parents [n], by ids [n], or by labels."""
    edges = edges_of(solution)
    return list(zip(*(called_by(ids[edges[:, end]], labels) for end in (0, 1))))


def routes_named(solution: np.ndarray, ids: np.ndarray, labels: list[Any] | None) -> list[list[Any]]:
    """The customers of each route, in order, by ids [n], or by labels; solution [n] stops."""
    routes = routes_of(solution, depot_of(solution))
    return [called_by(ids[route], labels) for route in routes]


def order_named(
    solved: Solved, loaded: Loaded, ids: np.ndarray, labels: list[Any] | None, kind: str
) -> list[Any]:
    """The nodes of a course, or of a solution that is an order, in that, by ids [n], or by labels; none where
    there is none.
    """
    if kind in NODE_ORDERS:
        return called_by(ids[solved.solution], labels)
    if not solved.course or solved.course.startswith(OF_NODES):
        return []
    named, written = read_order(solved.course), written_ids(loaded, ids)
    if written.dtype.kind in "iu":
        rows = NodeIndex(written).find(np.array(named, dtype=np.int64))
    else:
        places = places_of(loaded, ids)
        rows = np.array([places[each] for each in named], dtype=np.int64)
    return called_by(ids[rows], labels)


def assignment_named(
    solved: Solved, loaded: Loaded, ids: np.ndarray, labels: list[Any] | None
) -> dict[Any, Any]:
    """The facility of each node, by ids [n], or by labels (FacilityTools.course); None: none has a path."""
    if not solved.course.startswith(OF_NODES):
        return {}
    text = solved.course
    if '"' in text:
        rows = list(csv.reader(io.StringIO(text, newline="")))[1:]
        nodes, at = [row[0] for row in rows], [row[1] for row in rows]
    else:  # no name has a comma
        fields = text.replace("\n", ",").split(",")
        nodes, at = fields[3:-1:3], fields[4:-1:3]
    called = dict(zip(written_by(loaded, ids), called_by(ids, labels)))
    called[""] = None  # of no facility
    return dict(zip(map(called.__getitem__, nodes), map(called.__getitem__, at)))


def bags_named(
    solved: Solved, ids: np.ndarray, labels: list[Any] | None
) -> tuple[list[list[Any]], list[tuple[int, int]]]:
    """Bags of a tree decomposition, by ids [n], or by labels, and the pairs of their numbers, from 0 on,
    that are edges of its tree (EliminationTools.course); none where there is none.
    """
    if not solved.course.startswith(OF_BAGS):
        return [], []
    lines = [line.split() for line in solved.course.splitlines()[1:] if not line.startswith("c")]
    names = called_by(ids, labels)
    bags = [[names[int(node) - 1] for node in line[2:]] for line in lines if line[0] == "b"]
    return bags, [(int(a) - 1, int(b) - 1) for a, b, *_ in (line for line in lines if line[0] != "b")]


def recalled(context: Context, loaded: Loaded, state: State, drawn: bool) -> Solved:
    """An answer of an earlier part of the run; with its graph only where that is drawn. Ranks: all call."""
    values = state.values
    drawn = drawn and bool(values["trace"]) and not too_large(context, loaded)
    whole = whole_graph(context, loaded) if drawn else None
    trace = [Event(*each) for each in values["trace"]]
    solution = state.arrays.get("solution", np.zeros(0, dtype=np.int64))
    # Checkpoints of an older version have neither course nor curves.
    return Solved(
        entry=values["entry"], text=values["text"], solution=solution, trace=trace, graph=whole,
        metric=loaded.metric, certificate=certificate_in(state), course=values.get("course", ""),
        curves=values.get("curves", ""),
    )  # fmt: skip


def certificate_in(state: State) -> bytes:
    """The certificate that a checkpoint keeps of an answer; empty: none."""
    return state.arrays.get("certificate", np.zeros(0, dtype=np.uint8)).tobytes()
