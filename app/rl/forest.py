"""Connected parts on row partitions: which node is in which, how large they are, whether they are trees."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.comm.group import Group
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.graphs.sized import from_ends
from app.search.dismantle.baselines import broken
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


def part_sizes_own(group: Group, block: RowBlock, label_ext: np.ndarray) -> np.ndarray:
    """[n_own] int64, how many nodes the part of an own row has; 0 where it is in none.

    label_ext   [n_ext], see parts_ext
    Ranks       all call. Parts with nodes at borders are counted by all ranks together
    """
    label = label_ext[block.own_at : block.own_at + block.n_own]
    rows, size_own = np.flatnonzero(label >= 0), np.zeros(block.n_own, dtype=np.int64)
    heads, part, count = np.unique(label[rows], return_inverse=True, return_counts=True)
    if group.size > 1:
        crossing = sorted_set(part[block.boundary_own()[rows]])
        count[crossing] = _together(group, heads[crossing], count[crossing])
    size_own[rows] = count[part]
    return size_own


def _together(group: Group, names: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[k] int64, of names [k] the sums of the counts [k] that all ranks have of them. Ranks: all call."""
    told = np.stack([names, counts], axis=1).astype(np.int64)
    told = group.gather_host(told, group.gather_integers(np.array([len(told)]))[:, 0].tolist())
    named, at = np.unique(told[:, 0], return_inverse=True)
    total = np.zeros(len(named), dtype=np.int64)
    np.add.at(total, at, told[:, 1])
    return total[np.searchsorted(named, names)]


def tree_breakers(group: Group, block: RowBlock, inside_own: np.ndarray, most: int) -> np.ndarray:
    """[k] int64, ascending, the fewest nodes without which trees have no component of more than `most` nodes.

    From the leaves up: the node at which a part first is too large goes. Any set has a node of that part, and
    none of its nodes leaves less above it.

    inside_own   [n_own] bool, own nodes of connected parts that are trees
    Ranks        all call; identical on all. The parts that are too large are gathered
    """
    size_own = part_sizes_own(group, block, parts_ext(group, block, inside_own[: block.n_real]))
    rows = np.flatnonzero(size_own > most)
    found = [np.empty((0, 2), dtype=np.int64)]
    for piece in block.pieces(rows):
        counts, near = block.global_rows(rows[piece])
        found.append(np.stack([np.repeat(rows[piece] + block.lo, counts), near], axis=1).astype(np.int64))
    ends, nodes = np.concatenate(found), rows + block.lo
    if group.size > 1:
        ends = group.gather_host(ends, group.gather_integers(np.array([len(ends)]))[:, 0].tolist())
        nodes = group.gather_host(nodes, group.gather_integers(np.array([len(nodes)]))[:, 0].tolist())
    if not len(nodes):
        return nodes
    at = np.searchsorted(nodes, ends[:, 1])
    kept = (ends[:, 0] < ends[:, 1]) & (nodes[np.minimum(at, len(nodes) - 1)] == ends[:, 1])
    ones, none = np.ones(len(nodes), dtype=np.int64), np.zeros(len(nodes), dtype=bool)
    trees = from_ends(np.searchsorted(nodes, ends[kept, 0]), at[kept], ones, ones, most)
    return nodes[broken(trees, none)]


def fault_of_parts(
    group: Group, block: RowBlock, graph_rows: Graph, solution_all: np.ndarray, most: int
) -> str | None:
    """What is wrong with a set [n] bool without which no component has more than `most` nodes; None: nothing
    is. Ranks: all call; identical on all.

    It rests on what every edge joins: nodes left that are adjacent have one label, and no label has too many.
    """
    kept = ~solution_all
    label_ext = parts_ext(group, block, kept[graph_rows.lo : graph_rows.hi])
    label_own = label_ext[block.own_at : block.own_at + block.n_real]
    label_all = group.gather_host(label_own, block.rows.row_counts())
    rows = graph_rows.row_of()
    both = kept[rows] & kept[graph_rows.indices]
    torn = int(np.count_nonzero(label_all[rows[both]] != label_all[graph_rows.indices[both]]))
    if group.sum_integers(np.array([torn]))[0]:
        return "leaves components that are told wrongly"
    largest = int(np.unique(label_all[kept], return_counts=True)[1].max(initial=0))
    return f"leaves a component of {largest} nodes; at most {most} may be" if largest > most else None


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


# (group, block, own rows of the graph, solution [n], *Problem.limits) -> what is wrong, by name of problems
# whose solutions no rank can check by its own rows (Problem.violation)
Fault = Callable[..., str | None]
ACROSS: dict[str, Fault] = {"fvs": fault_of_forest, "dismantle": fault_of_parts}
