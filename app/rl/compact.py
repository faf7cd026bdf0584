"""Compaction: what is left as a graph of its own, once most of the nodes have no embedding any more.

Exact: such nodes add zeros to the chain of a row, so leaving them out leaves its bits; rows keep their
order, so ties fall alike. Each rank keeps the rows it has; their number is padded to a multiple of 8 with
isolated nodes.
"""

from dataclasses import dataclass, replace

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph, index_type
from app.partition.rows import OCTET, RowPartition
from app.problems.problem import Problem
from app.rl.dynamics import begin_environment
from app.rl.env import Environment
from app.sparse.rowblock import RowBlock

PIECE = 1 << 14  # rows renumbered at a time: bounds the memory that this takes beside the new rows
SMALLEST = 512  # padded rows of all ranks: below this an evaluation is all call overhead


@dataclass
class Residual:
    """The graph that is left, and where its rows stand in the original.

    original   [n_own of env.block] int64   local row of the first graph, -1 on padding
    first_step transitions made before this environment began
    """

    env: Environment
    original: np.ndarray
    first_step: int

    def write_back(self, chosen_at: np.ndarray) -> None:
        """Enter this environment's choices in chosen_at [n_own of the first graph]."""
        found = self.env.chosen_at
        rows = np.flatnonzero(found != -1)
        chosen_at[self.original[rows]] = np.where(
            found[rows] >= 0, found[rows] + self.first_step, found[rows]
        )


def begin(group: Group, block: RowBlock, problem: Problem, mark_own: np.ndarray | None = None) -> Residual:
    """The whole graph as the first residual. Ranks: all call.

    mark_own   [n_own] int32, the marks of a first state that is no fresh one; fields dynamics alone
    """
    env = begin_environment(group, block, problem, mark_own=mark_own)
    return Residual(env, np.arange(block.n_own, dtype=np.int64), 0)


def worth_compacting(residual: Residual) -> bool:
    """True when fewer than half of the rows are still alive; the same on all ranks."""
    return residual.env.totals.alive < least_alive(residual)


def least_alive(residual: Residual) -> int:
    """The alive nodes below which compaction pays: half of the rows; 0 for small graphs."""
    size = residual.env.block.n
    return (size + 1) // 2 if size > SMALLEST else 0


def compact(group: Group, residual: Residual) -> Residual:
    """The alive rows alone, renumbered in order. Ranks: all call."""
    env, old = residual.env, residual.env.block
    alive = np.flatnonzero(env.codes_own())
    padded = -(-len(alive) // OCTET) * OCTET
    counts = group.gather_integers(np.array([padded]))[:, 0]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = RowPartition(int(starts[-1]), starts, np.arange(group.size + 1))
    lo = int(starts[group.rank])
    number = np.full(old.n_own, -1, dtype=np.int64)
    number[alive] = lo + np.arange(len(alive))
    graph = _alive_rows(old, alive, old.extend_host(group, number), rows, lo, padded)
    edges = int(group.sum_integers(np.array([len(graph.indices)]))[0]) // 2
    block = RowBlock(group, replace(graph, edges=edges), rows, old.exchange, old.width)
    original = np.full(padded, -1, dtype=np.int64)
    original[: len(alive)] = residual.original[alive]
    return Residual(env.smaller(group, block, alive), original, residual.first_step + env.steps)


def _alive_rows(
    old: RowBlock,
    alive: np.ndarray,
    number_ext: np.ndarray,
    rows: RowPartition,
    lo: int,
    padded: int,
) -> Graph:
    """CSR rows of the alive nodes in new numbers; edges are not counted."""
    kind = index_type(rows.n)
    counts = np.zeros(padded, dtype=np.int64)
    targets, values = [np.empty(0, dtype=kind)], [np.empty(0, dtype=np.float32)]
    for first in range(0, len(alive), PIECE):
        part = alive[first : first + PIECE]
        degrees, columns, weights = old.extended_rows(part)
        target = number_ext[columns]
        kept = target >= 0
        row = np.repeat(np.arange(len(part)), degrees)[kept]
        counts[first : first + len(part)] = np.bincount(row, minlength=len(part))
        targets.append(target[kept].astype(kind))
        if weights is not None:
            values.append(weights[kept])
    return Graph(
        old.name, rows.n, lo, lo + padded, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.concatenate(targets), 0, np.concatenate(values) if len(values) > 1 else None,
    )  # fmt: skip
