"""RowPartition: which rank owns which rows, in whole blocks that are a function of the graph alone.

Rows are padded to a multiple of 8 (docs/architecture.md: the 8-row form of dense products); the padding
rows, at most seven, belong to the last block, have no edges and are masked everywhere.
"""

from dataclasses import dataclass

import numpy as np

from app.errors import NumericsError

OCTET = 8
MOST_BLOCKS = 256
LARGEST_BLOCK = 1024  # rows


def block_count(n: int) -> int:
    """Blocks that a graph of n nodes (of a set of graphs: the largest) is cut in; a function of n only."""
    octets = -(-max(n, 1) // OCTET)
    return max(min(octets, MOST_BLOCKS), -(-octets * OCTET // LARGEST_BLOCK))


def block_starts(n: int, blocks: int) -> np.ndarray:
    """[blocks+1] int64, the first padded row of each block; blocks of small graphs of a set may be empty."""
    octets = -(-n // OCTET)
    return OCTET * (np.arange(blocks + 1, dtype=np.int64) * octets // blocks)


@dataclass(frozen=True, eq=False)
class RowPartition:
    """Contiguous whole blocks of rows for each rank.

    starts   [blocks+1] int64   first padded row of each block
    cuts     [ranks+1] int64    first block of each rank
    """

    n: int
    starts: np.ndarray
    cuts: np.ndarray

    @property
    def offsets(self) -> np.ndarray:
        """[ranks+1] int64, the first padded row of each rank."""
        return self.starts[self.cuts]

    @property
    def block_counts(self) -> list[int]:
        """Blocks owned by each rank."""
        return np.diff(self.cuts).tolist()

    def range_of(self, rank: int) -> tuple[int, int]:
        """The real rows lo..hi-1 of a rank, without padding."""
        lo, hi = self.offsets[rank], self.offsets[rank + 1]
        return int(min(lo, self.n)), int(min(hi, self.n))

    def owner(self, rows: np.ndarray) -> np.ndarray:
        """The rank that owns each global row."""
        return np.searchsorted(self.offsets[1:], rows, side="right")

    def row_counts(self) -> list[int]:
        """Real rows of each rank."""
        ends = np.minimum(self.offsets, self.n)
        return np.diff(ends).tolist()


def cut_blocks(weights: np.ndarray, ranks: int) -> np.ndarray:
    """Cuts of the block order that balance the weights over the ranks.

    weights   [blocks] non-negative integers (rows, or rows and edges)
    returns   [ranks+1] int64; a rank may own no block
    """
    total = np.concatenate([[0], np.cumsum(np.asarray(weights, dtype=np.int64))])
    goals = total[-1] * np.arange(ranks + 1, dtype=np.int64) // ranks
    cuts = np.searchsorted(total, goals, side="left")
    # Of the two borders around a goal take the nearer one.
    before = np.maximum(cuts - 1, 0)
    cuts = np.where(goals - total[before] < total[cuts] - goals, before, cuts)
    cuts[0], cuts[-1] = 0, len(total) - 1
    return np.maximum.accumulate(cuts)


def equal_cuts(n: int, ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """The cuts of n rows in blocks of equal rows, and their rows, without a list of the blocks.

    returns   [ranks+1] int64, as cut_blocks of block_starts(n, block_count(n)) gives them; [ranks+1] int64,
              the first padded row of each
    """
    blocks, octets = block_count(n), -(-n // OCTET)

    def start(block: int) -> int:
        return OCTET * (block * octets // blocks)

    def nearest(goal: int) -> int:
        octet = -(-goal // OCTET)
        behind = -(octet * blocks // -octets) if octets else 0  # the first border at or behind the goal
        before = max(behind - 1, 0)
        return before if goal - start(before) < start(behind) - goal else behind

    inner = [nearest(OCTET * octets * rank // ranks) for rank in range(1, ranks)]
    cuts = [0, *inner, blocks]
    return np.array(cuts, dtype=np.int64), np.array([start(cut) for cut in cuts], dtype=np.int64)


def partition_rows(n: int, ranks: int, weights: np.ndarray | None = None, blocks: int = 0) -> RowPartition:
    """The partition of n rows over ranks.

    weights   [blocks] what each block costs; None: its rows
    blocks    0: block_count(n); a set of graphs passes one number for all
    """
    blocks = blocks or block_count(n)
    starts = block_starts(n, blocks)
    weights = np.diff(starts) if weights is None else weights
    if len(weights) != blocks:
        raise NumericsError(f"partition: {len(weights)} weights for {blocks} blocks")
    return RowPartition(n, starts, cut_blocks(weights, ranks))
