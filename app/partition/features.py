"""Vertex features of a graph's rows, summed by block: what the cost model of ROC is linear in.

ROC (Jia et al. 2020), Table 2, for a vertex v whose neighbours form the runs c_1, ..., c_k of consecutive
numbers, and a layer that reads d_in numbers of each neighbour:

    x1 = 1                                  the vertex itself
    x2 = |N(v)|                             neighbours
    x3 = k                                  runs
    x4 = sum_i ceil(|c_i| / line)           memory accesses that load the neighbours' numbers
    x5 = sum_i ceil(|c_i| d_in / line)      memory accesses that load their activations

`line` is how many 4-byte numbers one access brings: the 32 threads of a warp on a GPU, a cache line of 64
bytes on the host. All features are integers, so their sums are exact in any order.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.numerics.pieces import row_pieces
from app.partition.rows import RowPartition

FEATURES = 5
HOST_LINE, GPU_LINE = 16, 32  # 4-byte numbers of a cache line of 64 bytes; threads of a warp
PIECE = 1 << 20  # stored entries looked at in one go


def line_of(device: Any) -> int:
    """How many 4-byte numbers one memory access of a device brings."""
    return HOST_LINE if device.xp is np else GPU_LINE


def row_features(indptr: np.ndarray, indices: np.ndarray, widths: list[int], line: int) -> np.ndarray:
    """The features of every row.

    indptr, indices   CSR rows, columns ascending within a row
    widths            d_in of each layer
    returns           [rows, layers, 5] int64; only x5 differs between layers
    """
    rows = len(indptr) - 1
    out = np.empty((rows, len(widths), FEATURES), dtype=np.int64)
    for lo, hi in row_pieces(indptr, PIECE):
        first, last = int(indptr[lo]), int(indptr[hi])
        _fill(out[lo:hi], indptr[lo : hi + 1] - first, indices[first:last], widths, line)
    return out


def _fill(out: np.ndarray, indptr: np.ndarray, indices: np.ndarray, widths: list[int], line: int) -> None:
    """row_features of some rows, written to `out` [rows, layers, 5]."""
    starts = np.ones(len(indices), dtype=bool)
    starts[1:] = indices[1:] != indices[:-1] + 1
    starts[indptr[:-1][np.diff(indptr) > 0]] = True
    begins = np.flatnonzero(starts)
    lengths = np.diff(np.append(begins, len(indices)))
    before = np.concatenate([[0], np.cumsum(starts)])[indptr]  # runs before each row

    def by_row(per_run: np.ndarray) -> np.ndarray:
        return np.diff(np.concatenate([[0], np.cumsum(per_run)])[before])

    out[:, :, 0] = 1
    out[:, :, 1] = np.diff(indptr)[:, None]
    out[:, :, 2] = np.diff(before)[:, None]
    out[:, :, 3] = by_row(-(-lengths // line))[:, None]
    for layer, width in enumerate(widths):
        out[:, layer, 4] = by_row(-(-lengths * width // line))


@dataclass(frozen=True, eq=False)
class BlockFeatures:
    """Features of a graph by block of rows, the same on all ranks.

    widths   d_in of each layer
    line     4-byte numbers of a memory access
    sums     [blocks+1, layers, 5] int64, partial sums over the blocks: those of rows between two borders
             are one subtraction (ROC section 4.2)
    """

    widths: tuple[int, ...]
    line: int
    sums: np.ndarray

    @property
    def blocks(self) -> np.ndarray:
        """[blocks, layers, 5] int64."""
        return np.diff(self.sums, axis=0)

    def of_ranks(self, cuts: np.ndarray) -> np.ndarray:
        """[ranks, layers, 5] int64, of the rows between consecutive cuts."""
        return np.diff(self.sums[cuts], axis=0)


def block_features(
    group: Group, graph: Graph, rows: RowPartition, widths: list[int], line: int
) -> BlockFeatures:
    """The features of every block of a graph that is held by rows. Ranks: all call (one gather)."""
    own = row_features(graph.indptr, graph.indices, widths, line)
    first, last = rows.cuts[group.rank], rows.cuts[group.rank + 1]
    borders = np.minimum(rows.starts[first : last + 1], graph.n) - graph.lo
    sums = np.concatenate([np.zeros((1, *own.shape[1:]), np.int64), np.cumsum(own, axis=0)])
    by_block = group.gather_host(np.diff(sums[borders], axis=0), rows.block_counts)
    whole = np.concatenate([np.zeros((1, *own.shape[1:]), np.int64), np.cumsum(by_block, axis=0)])
    return BlockFeatures(tuple(widths), line, whole)
