"""What proves a lower bound of one part by rows and a tree: what proofs of sets and of orders share.

A tree divides the solutions of a part by columns z that are fixed to 1 in one subtree and to 0 in the other,
so that both together have all. Each leaf has numbers y >= 0 of some rows A z >= b, and what these prove,

    w z  >=  y b + (w - y A) z  >=  y b + sum over F of r + sum over the free ones of min(0, r)

where r = w - y A and F are the columns fixed to 1, holds whatever y is, so that rounded duals of a linear
program prove nearly what that says. The least that a leaf proves, rounded up, is proved.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from app.bounds.certificate import BadCertificate, cuts_up
from app.graphs.lists import entries_of

LARGEST = 1 << 61  # of sums of multiples of 1/one
LEAF = -1


@dataclass(frozen=True, eq=False)
class TreeProof:
    """A bound on what solutions cost in a part of a graph.

    nodes    [k] int64, ascending: the part is what they span; all that follows numbers them anew
    ptr, row_nodes   [rows+1], int64: the nodes of each row, in order
    tree     [t] int64, in preorder: LEAF, or the number of a division
    leaf_ptr, leaf_rows, leaf_values   rows of each leaf, and their y as multiples of 1/one
    divided  of messages: what a division is of, and its verb
    """

    lower: int
    method: str
    nodes: np.ndarray
    ptr: np.ndarray
    row_nodes: np.ndarray
    tree: np.ndarray
    leaf_ptr: np.ndarray
    leaf_rows: np.ndarray
    leaf_values: np.ndarray
    one: int
    divided: ClassVar[str]

    def _bad(self, why: str) -> BadCertificate:
        return BadCertificate(f"{self.method}: {why}")

    def _check_nodes(self, n: int) -> None:
        nodes = self.nodes
        if len(nodes) and not (nodes[0] >= 0 and nodes[-1] < n and (nodes[1:] > nodes[:-1]).all()):
            raise self._bad("the nodes of a part are not ascending")

    def _check_members(self) -> None:
        """Whether rows are lists of nodes of the part."""
        members = self.row_nodes
        if not cuts_up(self.ptr, len(members)):
            raise self._bad("rows that are not one behind the other")
        if len(members) and not (members.min() >= 0 and members.max() < len(self.nodes)):
            raise self._bad("a node of a row is not in the part")

    def _check_tree(self, divisions: int) -> None:
        """The tree, and what its leaves have."""
        tree, leaves = self.tree, int(np.count_nonzero(self.tree == LEAF))
        if len(self.leaf_ptr) != leaves + 1 or not cuts_up(self.leaf_ptr, len(self.leaf_rows)):
            raise self._bad("leaves that are not one behind the other")
        rows, values = self.leaf_rows, self.leaf_values
        if len(values) != len(rows) or (len(values) and values.min() < 0):
            raise self._bad("values that do not belong to rows, or are below 0")
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self.ptr) - 1):
            raise self._bad("a leaf has a row that is not there")
        if len(tree) and (tree.min() < LEAF or tree.max() >= divisions):
            raise self._bad("the tree has a division that is not there")
        open_ = 1 + np.cumsum(np.where(tree == LEAF, -1, 1))  # subtrees that are still to come
        if not len(tree) or open_[-1] != 0 or (open_[:-1] <= 0).any():
            raise self._bad("the tree is no tree")

    def _check_sums(self, total: int) -> None:
        """Whether sums have room; total   of the costs of the part"""
        if self.one < 1 or total * self.one >= LARGEST or self.lower * self.one >= LARGEST:
            raise self._bad("numbers beyond 61 bits")

    def _check_leaves(
        self, columns: int, fixed: Callable[[int], tuple[int, int]],
        proved: Callable[[np.ndarray, np.ndarray, np.ndarray], int],
    ) -> None:  # fmt: skip
        """Go through the tree with columns fixed, and see what each leaf proves.

        fixed    the column of a division, and to what the first subtree fixes it: 1, or -1, which is 0
        proved   what rows [j] and their y prove, in multiples of 1/one, where columns are fixed by side [c]
        """
        side = np.zeros(columns, dtype=np.int8)  # 1 fixed to 1, -1 to 0, 0 free
        above: list[tuple[int, bool]] = []  # columns on the way, and whether the first subtree is done
        leaf = 0
        for division in self.tree.tolist():
            if division != LEAF:
                column, first = fixed(division)
                if side[column]:
                    raise self._bad(f"{self.divided} divided twice")
                side[column] = first
                above.append((column, False))
                continue
            if proved(*self._leaf(leaf), side) <= (self.lower - 1) * self.one:
                raise self._bad(f"leaf {leaf} does not prove {self.lower}")
            leaf += 1
            while above and above[-1][1]:
                side[above.pop()[0]] = 0
            if above:
                above[-1] = above[-1][0], True
                side[above[-1][0]] *= -1

    def _leaf(self, leaf: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and values of a leaf."""
        cut = slice(int(self.leaf_ptr[leaf]), int(self.leaf_ptr[leaf + 1]))
        rows, y = self.leaf_rows[cut], self.leaf_values[cut]
        sizes = np.diff(self.ptr)[rows]
        if sum((int(value) * int(size) for value, size in zip(y, sizes)), 0) >= LARGEST:
            raise self._bad("values beyond 61 bits")
        return rows, y


def loads(
    ptr: np.ndarray, columns: np.ndarray, rows: np.ndarray, y: np.ndarray, count: int,
    sign: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """[count] int64, y A of some rows [j]; columns [entries], coefficients sign [entries], or all 1."""
    at, each = entries_of(ptr, rows), np.repeat(y, np.diff(ptr)[rows])
    load = np.zeros(count, dtype=np.int64)
    np.add.at(load, columns[at], each if sign is None else sign[at] * each)
    return load


def paid(rest: np.ndarray, side: np.ndarray) -> int:
    """Sum over F of r + sum over the free ones of min(0, r), of r and sides [c]."""
    return int(rest[side > 0].sum() + np.minimum(rest[side == 0], 0).sum())
