"""What is known of the edges of a graph, to learn what they are: labels and splits of stored entries."""

from dataclasses import dataclass, replace

import numpy as np

from app.graphs.nodes.data import SPLITS, NodeData

ARRAYS = ("labels", "labelled", *SPLITS)  # of NodeData, which have a row for each entry here


@dataclass(frozen=True, eq=False)
class EdgeLabels:
    """Of this rank's rows of A, by rows and in a row by ascending column: every edge from both of its ends.

    counts   [n_own] int64, the entries of each row; padding has none
    first    [nnz] bool, the entry of an edge u < v in row u: each edge has one, on one rank
    about    labels and sets of the entries, NodeData whose rows they are; its counts are of edges
    """

    counts: np.ndarray
    first: np.ndarray
    about: NodeData

    def once(self) -> NodeData:
        """Those of the first entries alone: a row for each edge."""
        return some_rows(self.about, self.first)

    def ends(self, name: str) -> np.ndarray:
        """[n_own] bool, the own rows that have an edge of a set."""
        chosen = getattr(self.about, name)
        before = np.concatenate([[0], np.cumsum(chosen)])
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        return np.diff(before[starts]) > 0


def some_rows(data: NodeData, chosen: np.ndarray) -> NodeData:
    """Labels and sets of some rows [k] bool alone."""
    found = {name: getattr(data, name) for name in ARRAYS}
    return replace(data, **{name: None if each is None else each[chosen] for name, each in found.items()})
