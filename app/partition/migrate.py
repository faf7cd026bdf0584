"""Moving the rows of a graph from one partition to another: contiguous ranges, one exchange per array."""

from dataclasses import replace

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.partition.rows import RowPartition


def move_rows(group: Group, graph: Graph, old: RowPartition, new: RowPartition) -> Graph:
    """The same graph with this rank's rows of another partition. Ranks: all call."""
    lo, hi = new.range_of(group.rank)
    out = _overlaps(old.range_of(group.rank), new, group.size)
    into = group.exchange_counts([end - start for start, end in out])
    rows = [end - start for start, end in out]
    starts = [graph.indptr[start - graph.lo] if end > start else 0 for start, end in out]
    ends = [graph.indptr[end - graph.lo] if end > start else 0 for start, end in out]
    entries = [int(b - a) for a, b in zip(starts, ends)]
    entries_in = group.exchange_counts(entries)

    def per_row(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else group.exchange_host(values, rows, into)

    def per_entry(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else group.exchange_host(values, entries, entries_in)

    degrees = per_row(graph.degrees())
    return replace(
        graph, lo=lo, hi=hi, indptr=np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64),
        indices=per_entry(graph.indices), weights=per_entry(graph.weights), ids=per_row(graph.ids),
        node_weights=per_row(graph.node_weights),
    )  # fmt: skip


def _overlaps(held: tuple[int, int], new: RowPartition, ranks: int) -> list[tuple[int, int]]:
    """The part of the held rows that each rank owns in the new partition; ascending, empty parts allowed."""
    parts = []
    for rank in range(ranks):
        lo, hi = new.range_of(rank)
        start = min(max(lo, held[0]), held[1])
        parts.append((start, max(start, min(hi, held[1]))))
    return parts
