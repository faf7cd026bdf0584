"""Blocks of rows that hold equal shares of rows and edges: still a function of the graph alone.

Blocks of equal rows (rows.py) put a twelfth of all edges in the first of 256 blocks of an R-MAT graph in its
own order, which no cuts between such blocks can share out over sixteen ranks. Here a block's weight is its
share of the rows plus its share of the stored entries: a block holds at most 2/256 of either, and eight rows
more.
"""

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.partition.migrate import move_rows
from app.partition.rows import LARGEST_BLOCK, OCTET, RowPartition, block_count, cut_blocks

ROW_ENTRIES = 16  # entries that cost about as much as the dense work of a row (assemble.block_cuts)


def even_count(n: int) -> int:
    """Blocks of a graph of n nodes; twice its rows' share never exceeds the largest block."""
    return max(block_count(n), -(-2 * n // (LARGEST_BLOCK - OCTET)))


def even_starts(group: Group, graph: Graph) -> np.ndarray:
    """[even_count(n)+1] int64, the first padded row of each block; some are empty where eight rows fill
    several.

    graph    this rank's rows, from a multiple of 8 on (as every RowPartition has them)
    Ranks    all call; the same on any number of ranks: all sums are of integers
    """
    blocks = even_count(graph.n)
    weights = _octet_weights(graph, max(2 * graph.edges, 1))
    sums = group.gather_integers(np.array([weights.sum()]))[:, 0]
    before = int(sums[: group.rank].sum()) + np.cumsum(weights) - weights  # what stands before each octet
    total, numbers = int(sums.sum()), np.arange(blocks + 1, dtype=np.int64)
    goals = total // blocks * numbers + total % blocks * numbers // blocks
    return OCTET * group.sum_integers(np.searchsorted(before, goals, side="left"))


def _octet_weights(graph: Graph, entries: int) -> np.ndarray:
    """[octets] int64 of the held rows, eight by eight: rows x entries of the graph + entries x rows of it."""
    borders = np.append(np.arange(graph.lo, graph.hi, OCTET), graph.hi) - graph.lo
    return np.diff(borders) * entries + np.diff(graph.indptr[borders]) * graph.n


def even_rows(group: Group, graph: Graph, rows: RowPartition) -> tuple[Graph, RowPartition]:
    """A graph's rows by blocks of equal rows and edges, cut for equal rows and edges. Ranks: all call."""
    starts = even_starts(group, graph)
    new = RowPartition(graph.n, starts, cut_blocks(entries_weights(group, graph, starts), group.size))
    return move_rows(group, graph, rows, new), new


def static_cuts(group: Group, graph: Graph, starts: np.ndarray) -> dict[str, np.ndarray]:
    """[ranks+1] the cuts between given blocks that parallel.partition means by "rows" and "edges"; by name.

    Ranks   all call
    """
    weights = {"rows": np.diff(starts), "edges": entries_weights(group, graph, starts)}
    return {name: cut_blocks(each, group.size) for name, each in weights.items()}


def entries_weights(group: Group, graph: Graph, starts: np.ndarray) -> np.ndarray:
    """[blocks] int64, what equal edges are counted by: 16 for each row, 1 for each entry. Ranks: all call."""
    held = np.clip(starts, graph.lo, graph.hi) - graph.lo
    weights = ROW_ENTRIES * np.diff(held) + np.diff(graph.indptr[held])
    return group.sum_integers(weights)
