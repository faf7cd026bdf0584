"""A fixed balanced binary tree over the row blocks of a graph, and which of its subtrees a rank owns whole.

Node i of level l covers blocks i 2^l .. (i+1) 2^l - 1, as far as there are blocks; it is the sum of nodes 2i
and 2i + 1 of the level below, or node 2i where 2i + 1 covers no block. The number of blocks alone makes the
tree. A rank owns consecutive blocks, hence at most 2 log2(blocks) maximal whole subtrees, its *roots*:
their sums are all that it has to send, and what is above them every rank adds up alike.
"""

from collections.abc import Callable
from operator import add
from typing import Any

Array = Any


def owned_roots(blocks: int, a: int, b: int) -> list[tuple[int, int]]:
    """The maximal subtrees inside blocks a..b-1 of `blocks`: (level, index), ascending."""
    roots = []
    while a < b:
        level = top_level(blocks) if a == 0 else (a & -a).bit_length() - 1
        while min(a + (1 << level), blocks) > b:
            level -= 1
        roots.append((level, a >> level))
        a += 1 << level
    return roots


def owned_spans(blocks: int, a: int, b: int) -> list[tuple[int, int, int]]:
    """owned_roots as ranges of the rank's own blocks: (first, last + 1, level), for Products.gram_roots."""
    return [
        ((index << level) - a, min((index + 1) << level, b) - a, level)
        for level, index in owned_roots(blocks, a, b)
    ]


def top_level(blocks: int) -> int:
    """The level of the one node that covers all blocks."""
    return max(blocks - 1, 0).bit_length()


def finish_tree(
    rows: Array, roots: list[tuple[int, int]], blocks: int, node: tuple[int, int] | None = None,
    plus: Callable[[Array, Array], Array] = add,
) -> Array:  # fmt: skip
    """[w], the sum of the whole tree, or of the subtree `node`, from the sums of subtrees that cover it.

    rows   [len(roots), w], or a list of [w]
    plus   adds two of them
    """
    level, index = node or (top_level(blocks), 0)
    return _sum_of(level, index, rows, {root: row for row, root in enumerate(roots)}, blocks, plus)


def _sum_of(
    level: int, index: int, rows: Array, row_of: dict[tuple[int, int], int], blocks: int,
    plus: Callable[[Array, Array], Array],
) -> Array:  # fmt: skip
    """[w], the sum of a node.

    A function inside another one would refer to itself, and so keep `rows` until Python looks for cycles.
    """
    row = row_of.get((level, index))
    if row is not None:
        return rows[row]
    right, rest = 2 * index + 1, (rows, row_of, blocks, plus)
    left = _sum_of(level - 1, 2 * index, *rest)
    return left if right << (level - 1) >= blocks else plus(left, _sum_of(level - 1, right, *rest))
