"""Sums over ranks whose bits do not depend on the number of ranks.

Every rank brings one addend per block of rows that it owns; the addends are chained in block order. Blocks
are a function of the graph alone, and ranks own whole blocks, so the chain is the same on any number of
ranks.
"""

from typing import Any

import numpy as np

from app.comm.group import Group

Array = Any
GATHER_BYTES = 1 << 20  # beyond this the addends travel by slices of columns instead of whole


def sum_blocks(group: Group, part_own: Array, counts: list[int]) -> Array:
    """The sum of all blocks' addends, chained in block order.

    part_own   [counts[rank], w] float32, one row per owned block, in block order
    counts     blocks owned by each rank
    returns    [w]
    Ranks      all call; result identical on all; with reproducible = false a plain all-reduce, whose bits
               depend on the number of ranks
    """
    blocks = sum(counts)
    if not group.reproducible:
        return group.sum_floats(group.device.fold(np.array([0, part_own.shape[0]]), part_own)[0])
    if group.size > 1 and (part_own.shape[1] * blocks * 4 > GATHER_BYTES or group.size > 8):
        return _sum_by_slices(group, part_own, counts)
    part_all = group.gather_rows(part_own, counts, phase="sum")
    return group.device.fold(np.array([0, blocks]), part_all)[0]


def _sum_by_slices(group: Group, part_own: Array, counts: list[int]) -> Array:
    """Each rank chains a slice of the columns; the slices are gathered."""
    xp = group.device.xp
    width = part_own.shape[1]
    slice_width = -(-width // group.size)
    padded = xp.zeros((part_own.shape[0], slice_width * group.size), dtype=part_own.dtype)
    padded[:, :width] = part_own
    # Rank-major rows: for each destination its columns of every owned block.
    by_rank = xp.ascontiguousarray(
        padded.reshape(part_own.shape[0], group.size, slice_width).transpose(1, 0, 2)
    ).reshape(-1, slice_width)
    received = group.exchange_rows(by_rank, [counts[group.rank]] * group.size, counts, phase="sum")
    mine = group.device.fold(np.array([0, sum(counts)]), received)
    return group.gather_rows(mine, [1] * group.size, phase="sum").reshape(-1)[:width]
