"""Layout: what each of P ranks holds and sends of a graph, as counts; P need not be running.

Exact where the graph's rows are at hand (`count`, `of_blocks`), else the expectation for a graph whose edges
do not care about node numbers (`estimate`).
"""

import math
from dataclasses import dataclass

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.partition.rows import RowPartition, block_count, block_starts, cut_blocks, equal_cuts
from app.sparse.rowblock import GATHERED_BYTES, HALO_SHARE, STAGE_BYTES, RowBlock

ROW_COST = 16  # stored entries that a row costs as much as, when cuts balance "edges" (partition/assemble.py)


@dataclass(frozen=True, eq=False)
class Layout:
    """Counts of a row partition; arrays are [ranks] int64.

    n, entries       nodes, and stored directed entries, of the whole graph
    max_degree       of the whole graph
    mode             how rows travel: "none", "gather", "halo" or "staged" (sparse/rowblock.py)
    exact            False: ghosts and sent rows are expectations
    rows, stored     padded rows, and stored entries, of each rank
    ghosts           distinct columns of a rank that others own
    ghost_entries    stored entries in such columns
    sent             rows that a rank sends in one halo exchange, once for each receiver
    partners         ranks that it receives any from
    blocks           row blocks of each rank
    """

    name: str
    n: int
    entries: int
    max_degree: int
    mode: str
    exact: bool
    rows: np.ndarray
    stored: np.ndarray
    ghosts: np.ndarray
    ghost_entries: np.ndarray
    sent: np.ndarray
    partners: np.ndarray
    blocks: np.ndarray

    @property
    def ranks(self) -> int:
        """P."""
        return len(self.rows)

    @property
    def total_rows(self) -> int:
        """Padded rows of all ranks."""
        return int(self.rows.sum())

    @property
    def heaviest(self) -> int:
        """The rank that is waited for: of rows and entries together the most."""
        return int(np.argmax(ROW_COST * self.rows + self.stored))

    def extended(self, rank: int) -> int:
        """Extended rows of a rank."""
        if self.mode == "halo":
            return int(self.rows[rank] + self.ghosts[rank])
        return self.total_rows


def choose_mode(exchange: str, ranks: int, total: int, ghosts: int, width: int = 0) -> str:
    """The rule of RowBlock, from counts alone.

    total   padded rows of all ranks     ghosts   summed over ranks     width   as for RowBlock
    """
    if ranks == 1:
        return "none"
    if exchange != "auto":
        return exchange
    if ghosts <= HALO_SHARE * total * (ranks - 1):
        return "halo"
    gathered = 4 * width * total
    return "staged" if gathered > GATHERED_BYTES and gathered >= STAGE_BYTES * ranks else "gather"


def count(graph: Graph, ranks: int, exchange: str = "auto", balance: str = "edges", width: int = 0) -> Layout:
    """The layout of a whole graph on any number of ranks, counted from its rows.

    Cuts are those of one graph that is read; repeated edges in its file, which weigh there, are
    not known here.
    """
    starts = block_starts(graph.n, block_count(graph.n))
    ends = np.minimum(starts, graph.n)
    weights = np.diff(starts)
    if balance == "edges" and ranks > 1:
        weights = ROW_COST * weights + np.diff(graph.indptr[ends])
    partition = RowPartition(graph.n, starts, cut_blocks(weights, ranks))
    return _counted(graph, partition, exchange, width)


def _counted(graph: Graph, partition: RowPartition, exchange: str, width: int) -> Layout:
    """Ghosts and sent rows of every rank of a partition."""
    offsets = partition.offsets
    bounds = np.minimum(offsets, graph.n)
    pointers = graph.indptr[bounds]
    ranks = len(offsets) - 1
    ghosts, ghost_entries, sent, partners = (np.zeros(ranks, dtype=np.int64) for _ in range(4))
    for rank in range(ranks if ranks > 1 else 0):
        columns = graph.indices[pointers[rank] : pointers[rank + 1]]
        lo, hi = bounds[rank], bounds[rank + 1]
        touched = np.zeros(graph.n, dtype=bool)
        touched[columns] = True
        touched[lo:hi] = False
        before = np.concatenate([[0], np.cumsum(touched)])
        ghosts[rank] = before[-1]
        ghost_entries[rank] = len(columns) - np.count_nonzero((columns >= lo) & (columns < hi))
        received = np.diff(before[bounds])
        sent += received
        partners[rank] = np.count_nonzero(received)
    mode = choose_mode(exchange, ranks, int(offsets[-1]), int(ghosts.sum()), width)
    return Layout(
        name=graph.name, n=graph.n, entries=len(graph.indices),
        max_degree=int(graph.degrees().max(initial=0)), mode=mode, exact=True, rows=np.diff(offsets),
        stored=np.diff(pointers), ghosts=ghosts, ghost_entries=ghost_entries, sent=sent, partners=partners,
        blocks=np.diff(partition.cuts),
    )  # fmt: skip


def estimate(
    name: str, n: int, entries: int, ranks: int, exchange: str = "auto", width: int = 0, max_degree: int = 0
) -> Layout:
    """The expected layout when only counts are known: equal shares, neighbours anywhere.

    A node of another rank is a ghost here unless none of its neighbours, a Poisson number of mean
    d = entries/n, is here: (n - n/P) (1 - exp(-d/P)) ghosts a rank. max_degree 0: four
    deviations above d.
    """
    cuts, offsets = equal_cuts(n, ranks)
    rows = np.diff(offsets)
    degree = entries / max(n, 1)
    stored = (rows * degree).astype(np.int64)
    ghosts = ((n - rows) * (1 - math.exp(-degree / ranks))).astype(np.int64)
    ghost_entries = (stored * (1 - rows / max(n, 1))).astype(np.int64)
    mode = choose_mode(exchange, ranks, int(offsets[-1]), int(ghosts.sum()), width)
    return Layout(
        name=name, n=n, entries=entries, max_degree=max_degree or int(degree + 4 * degree**0.5), mode=mode,
        exact=False, rows=rows, stored=stored, ghosts=ghosts, ghost_entries=ghost_entries,
        sent=ghosts.copy(), partners=np.minimum(ghosts, ranks - 1), blocks=np.diff(cuts),
    )  # fmt: skip


def of_blocks(group: Group, block: RowBlock) -> Layout:
    """The layout of a graph that the running ranks hold. Ranks: all call; identical on all."""
    plan = block.plan
    ghosts = sum(plan.recv_counts) - block.n_own if plan.mode == "halo" else 0
    touching = block.ghost_index()[0]
    held = 0 if touching is None else int(touching[-1])
    stored = int(block.degrees_own().sum(dtype=np.int64))
    sent = sum(len(rows) for rows in plan.send_rows)
    partners = sum(c > 0 for c in plan.recv_counts) - (block.n_own > 0) if ghosts else 0
    blocks = len(block.block_starts) - 1
    mine = [block.n_own, stored, ghosts, held, sent, partners, blocks, block.max_degree]
    table = group.gather_integers(np.array(mine)).T
    return Layout(block.name, block.n, int(table[1].sum()), int(table[7].max()), plan.mode, True, *table[:7])
