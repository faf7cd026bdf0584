"""Solutions that a case or a caller names: to begin a search with, or to be checked."""

from typing import Any

import numpy as np

from app.case.config import Case
from app.case.search import STARTS
from app.errors import GraphError
from app.graphs.ids import NodeIndex, one_id
from app.graphs.keys import sorted_set, without
from app.graphs.routes import after_of
from app.partition.loaded import Loaded
from app.partition.stands_for import is_quadratic
from app.problems.problem import Problem
from app.problems.table import CLASSES, MAPPING, ORDERS, ROUTES, TREE
from app.search.steiner.text import tree_of
from app.tasks.names import written_ids
from app.toolbox import Toolbox


def read_solution(problem: Problem, toolbox: Toolbox, path: str, written: np.ndarray) -> np.ndarray:
    """The solution of a file, in which nodes are called as `written` [n] says. Raises GraphError."""
    return problem.read(path, written) if toolbox.read is None else toolbox.read(path)


def solution_given(
    case: Case, problem: Problem, toolbox: Toolbox, loaded: Loaded, ids: np.ndarray
) -> np.ndarray | None:
    """The solution to begin with that a caller or a file names, as the problem has it; None: there is none.

    Raises GraphError.
    """
    if loaded.start is None:
        path = case.search.start
        return None if path in STARTS else read_solution(problem, toolbox, path, written_ids(loaded, ids))
    if problem.solution == MAPPING:
        return mapping_given(toolbox, loaded, ids)
    return given_solution(case, problem, loaded, ids)


def given_solution(
    case: Case, problem: Problem, loaded: Loaded, ids: np.ndarray, called: str = "start"
) -> np.ndarray:
    """`loaded.start`, what a caller names by nodes, as the problem has it. Raises GraphError."""
    named = ids[:-1] if is_quadratic(case) else ids  # the reference is no variable
    rows = NodeIndex(named).find(loaded.start)
    if (rows < 0).any():
        raise GraphError(
            f"{called}: node {one_id(loaded.start, int((rows < 0).argmax()))} is not in the graph"
        )
    if problem.solution == TREE:
        return _tree_of_rows(rows, loaded.start, ids, called)
    if problem.solution == ROUTES:
        return _routes_of_rows(rows, loaded.routes, ids, called)
    if problem.solution in CLASSES:
        return _classes_of_rows(rows, loaded.start_colors, ids, called, CLASSES[problem.solution])
    if problem.solution not in ORDERS:
        return np.isin(np.arange(len(ids)), rows)
    if len(rows) != len(ids) or len(sorted_set(rows)) != len(ids):
        what = ORDERS[problem.solution]
        raise GraphError(f"{called}: found {len(rows)} {what}; each of {len(ids)} once would be right")
    return rows


def mapping_given(toolbox: Any, loaded: Loaded, ids: np.ndarray, called: str = "start") -> np.ndarray:
    """[n] int64, `loaded.start` as a mapping: -1 of nodes that it does not name. Raises GraphError."""
    rows, places = NodeIndex(ids).find(loaded.start), loaded.start_colors
    if (rows < 0).any():
        raise GraphError(
            f"{called}: node {one_id(loaded.start, int((rows < 0).argmax()))} is not in the first graph"
        )
    if toolbox.asked.labels is None:
        at = NodeIndex(toolbox.asked.others).find(places)
        if (at < 0).any():
            lost = one_id(places, int((at < 0).argmax()))
            raise GraphError(f"{called}: node {lost} is not in the second graph")
        places = at
    found = np.full(len(ids), -1, dtype=np.int64)
    found[rows] = places
    return found


def _tree_of_rows(rows: np.ndarray, named: np.ndarray, ids: np.ndarray, called: str) -> np.ndarray:
    """[n] int64, the parents of the tree of edges, pairs of rows [2 m], or of one row. Raises GraphError."""
    if len(rows) == 1:
        return tree_of(np.zeros((0, 2), dtype=np.int64), ids, int(rows[0]))
    return tree_of(rows.reshape(-1, 2), ids, called=called)


def _routes_of_rows(rows: np.ndarray, routes: np.ndarray, ids: np.ndarray, called: str) -> np.ndarray:
    """[n] int64, the stops of routes: rows [k] in order, and the route of each. Raises GraphError."""
    missing = without(np.arange(len(ids)), rows)
    if len(missing) != 1:
        told = f"found {len(rows)} customers on routes"
        raise GraphError(f"{called}: {told}; all {len(ids) - 1}, each once, and no depot, would be right")
    parts = np.split(rows, np.flatnonzero(np.diff(routes)) + 1) if len(rows) else []
    return after_of([part.tolist() for part in parts], len(ids), int(missing[0]))


def _classes_of_rows(
    rows: np.ndarray, numbers: np.ndarray, ids: np.ndarray, called: str, what: str
) -> np.ndarray:
    """[n] int64, of the colours (communities) [k] of rows [k]. Raises GraphError where a node has none."""
    found = np.full(len(ids), -1, dtype=np.int64)
    found[rows] = numbers
    if (found < 0).any():
        missing = one_id(ids, int((found < 0).argmax()))
        raise GraphError(f"{called}: node {missing} has no {what}; one for each node would be right")
    return found
