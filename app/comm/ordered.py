"""Sums over ranks whose bits do not depend on the number of ranks.

Every rank brings one addend per block of rows that it owns, and these are chained in block order; or one for
every subtree of blocks that it owns whole, and these are added as a fixed tree. Blocks are a function of the
graph alone, and ranks own whole blocks, so the chain, and the tree, are the same on any number of ranks.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.tree import finish_tree, owned_roots

Array = Any
KEPT_ROOTS = 64  # partitions whose subtrees are kept: one a graph, or a few
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
    ends = np.array([0, blocks])
    return _combine(group, part_own, counts, lambda part_all: group.device.fold(ends, part_all)[0])


def sum_tree(group: Group, part_own: Array, cuts: list[int], blocks: int) -> Array:
    """The sum of all blocks' addends as the tree of app/comm/tree.py.

    part_own   [own roots, w] float32, the sums of the subtrees owned_roots(blocks, *own cuts), in that order
    cuts       [ranks+1] first block of each rank; a rank may own none
    returns    [w]
    Ranks      all call; result identical on all; with reproducible = false a plain all-reduce, whose bits
               depend on the number of ranks
    """
    if not group.reproducible:
        return group.sum_floats(group.device.fold(np.array([0, part_own.shape[0]]), part_own)[0])
    (roots, counts), plus = _all_roots(tuple(map(int, cuts)), blocks), group.device.plus
    return _combine(group, part_own, counts, lambda rows: finish_tree(rows, roots, blocks, plus=plus))


@lru_cache(KEPT_ROOTS)
def _all_roots(cuts: tuple[int, ...], blocks: int) -> tuple[list[tuple[int, int]], list[int]]:
    """The subtrees that all ranks own, in their order, and how many each of them owns."""
    by_rank = [owned_roots(blocks, a, b) for a, b in pairwise(cuts)]
    return [root for own in by_rank for root in own], [len(own) for own in by_rank]


def _combine(group: Group, part_own: Array, counts: list[int], finish: Callable[[Array], Array]) -> Array:
    """finish(the rows of all ranks) -> [w], where many bytes would travel by slices of the columns."""
    if group.size > 1 and (part_own.shape[1] * sum(counts) * 4 > GATHER_BYTES or group.size > 8):
        return _combine_by_slices(group, part_own, counts, finish)
    return finish(group.gather_rows(part_own, counts, phase="sum"))


def _combine_by_slices(
    group: Group, part_own: Array, counts: list[int], finish: Callable[[Array], Array]
) -> Array:
    """Each rank finishes a slice of the columns; the slices are gathered."""
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
    mine = xp.ascontiguousarray(finish(received).reshape(1, slice_width))
    return group.gather_rows(mine, [1] * group.size, phase="sum").reshape(-1)[:width]
