"""What nodes are called: by files of solutions, and by who hands in a graph."""

from typing import Any

import numpy as np

from app.case.config import Case
from app.graphs.covering import count_candidates, demand_called
from app.graphs.formats.text import LARGEST_ID
from app.graphs.graph import Graph
from app.graphs.ids import CONTROL, fault_of_name, name_array, one_id, plain_ids
from app.partition.loaded import Loaded
from app.partition.stands_for import is_covering
from app.text import is_whole


def places_of(loaded: Loaded, ids: np.ndarray) -> dict[str, int]:
    """Rows by what files call their nodes."""
    return {each: i for i, each in enumerate(written_by(loaded, ids))}


def written_by(loaded: Loaded, ids: np.ndarray) -> list[str]:
    """What files call the nodes of rows."""
    return list(map(str, plain_ids(written_ids(loaded, ids))))


def called_by(ids: np.ndarray, labels: list[Any] | None) -> list[Any]:
    """Nodes as their owner calls them."""
    return [each if labels is None else labels[each] for each in plain_ids(ids)]


def called_as(case: Case, loaded: Loaded, whole: Graph, row: int) -> str:
    """A node as the user calls it."""
    if loaded.labels is not None:
        return repr([*loaded.labels, *(loaded.demands or [])][int(whole.held_ids()[row])])
    if is_covering(case) and row >= count_candidates(whole):
        return demand_called(whole, row)
    return one_id(whole.held_ids(), row)


def written_ids(loaded: Loaded, ids: np.ndarray) -> np.ndarray:
    """[n] what files of solutions call the nodes; what is not to be named keeps the last places.

    The ids of a file, or the labels of a graph in memory where all are whole numbers or names that files may
    have, else row numbers.
    """
    labels = loaded.labels
    if labels is None:
        return ids
    known = list(map(labels.__getitem__, ids[ids < len(labels)].tolist()))
    more = len(ids) - len(known)  # a reference and demands, which no file names
    if _are_ids(known):
        return np.array([*known, *[max(known, default=0) + 1] * more], dtype=np.int64)
    if all(type(each) is str and _is_name(each) for each in known):
        names = [each.encode() for each in known]
        return name_array([*names, *[max(names, default=b"") + b"\x7f"] * more])  # no file has it
    return ids


def _are_ids(labels: list[Any]) -> bool:
    """Whether labels are whole numbers that a file may have."""
    if set(map(type, labels)) == {int}:
        return min(labels) >= 0 and max(labels) < LARGEST_ID
    return all(is_whole(each) and 0 <= each < LARGEST_ID for each in labels)


def _is_name(text: str) -> bool:
    """Whether a label is a name that files may have."""
    return not CONTROL.search(text) and text.isprintable() and fault_of_name(text.encode()) is None
