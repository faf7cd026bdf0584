"""Trees of nodes on row partitions: which node is in which, and whether there are any cycles."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.comm.group import Group
from app.graphs.graph import Graph
from app.sparse.rowblock import RowBlock


def parts_ext(group: Group, block: RowBlock, inside_own: np.ndarray) -> np.ndarray:
    """[n_ext] int64, of each extended column that is inside the least global node of its connected part among
    the nodes inside; -1 of others.

    inside_own   [n_real] bool
    Ranks        all call. Each joins what its own rows join, then an exchange of ghost rows for each time
                 that a part crosses borders
    """
    outside = np.iinfo(np.int64).max
    label_own = np.full(block.n_own, outside)
    label_own[: block.n_real][inside_own] = block.lo + np.flatnonzero(inside_own)
    label = block.extend_host(group, label_own)
    joined = _joined_here(block, label < outside)
    own = slice(block.own_at, block.own_at + block.n_own)
    while True:
        least = np.full(len(label), outside)
        np.minimum.at(least, joined, label)
        label_own = np.where(label[own] < outside, least[joined[own]], outside)
        changed = np.array([np.count_nonzero(label_own != label[own])])
        if not group.sum_integers(changed)[0]:
            return np.where(label < outside, label, -1)
        label = block.extend_host(group, label_own)


def _joined_here(block: RowBlock, inside_ext: np.ndarray) -> np.ndarray:
    """[n_ext] integers, equal for extended columns that entries of own rows join, both ends inside."""
    rows = np.flatnonzero(inside_ext[block.own_at : block.own_at + block.n_own])
    sources, targets = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for piece in block.pieces(rows):
        counts, columns, _ = block.extended_rows(rows[piece])
        kept = inside_ext[columns]
        sources.append(np.repeat(rows[piece] + block.own_at, counts)[kept])
        targets.append(columns[kept].astype(np.int64))
    ends = np.concatenate(sources), np.concatenate(targets)
    pattern = sp.coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(len(inside_ext),) * 2)
    return connected_components(pattern.tocsr(), directed=False)[1]


def fault_of_forest(group: Group, block: RowBlock, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
    """What is wrong with a set [n] bool that is to meet all cycles; None: nothing is.

    Nodes are a forest where they have as many edges as there are of them, less the parts that they form.
    Parts told wrongly cannot hide a cycle: with too many or too few of them the numbers do not match.

    Ranks   all call; identical on all
    """
    rows = graph_rows.row_of()
    kept = ~solution_all
    entries = np.count_nonzero(kept[rows] & kept[graph_rows.indices])
    inside_own = kept[graph_rows.lo : graph_rows.hi]
    label = parts_ext(group, block, inside_own)[block.own_at : block.own_at + block.n_real]
    parts = np.count_nonzero(label == block.lo + np.arange(block.n_real))
    sums = np.array([entries, np.count_nonzero(inside_own), parts], dtype=np.int64)
    entries, nodes, parts = group.sum_integers(sums).tolist()
    cycles = entries // 2 - nodes + parts
    return None if not cycles else f"leaves {cycles} cycles"


# (group, block, own rows of the graph, solution [n]) -> what is wrong, by name of problems whose solutions no
# rank can check by its own rows (Problem.violation)
Fault = Callable[[Group, RowBlock, Graph, np.ndarray], str | None]
ACROSS: dict[str, Fault] = {"fvs": fault_of_forest}
