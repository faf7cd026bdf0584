"""What proves a lower bound on directed feedback vertex sets, part by part of a digraph.

A set takes at least one node of each directed cycle, and all but one of nodes of which every two have arcs to
each other. Let y >= 0 be a number for each of some such rows A x >= b: then any set x, which has the nodes I
and none of O, costs

    w x  >=  y b + (w - y A) x  >=  y b + sum over I of r + sum over the others, without O, of min(0, r)

where r = w - y A, whatever y is, so that rounded duals of a linear program prove nearly what that says. Nodes
are put into I or O by a tree: both children of a node of the tree together have all its sets. Each leaf has
numbers y, and the least that a leaf proves, rounded up, is proved.
"""

from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate, cuts_up
from app.graphs.digraph import Digraph

LARGEST = 1 << 61  # of sums of multiples of 1/one
LEAF = -1


@dataclass(frozen=True, eq=False)
class DirectedFeedbackPart:
    """A bound on what sets take of a part of a digraph.

    nodes    [k] int64, ascending: the part is what they span; all that follows numbers them anew
    ptr, row_nodes, cliques   [rows+1], int64; [rows] uint8: nodes of a cycle, in order, or (1) of a clique
    tree     [t] int64, in preorder: LEAF, or a node that the first subtree has in I, the second in O
    leaf_ptr, leaf_rows, leaf_values   rows of each leaf, and their y as multiples of 1/one
    """

    lower: int
    method: str
    nodes: np.ndarray
    ptr: np.ndarray
    row_nodes: np.ndarray
    cliques: np.ndarray
    tree: np.ndarray
    leaf_ptr: np.ndarray
    leaf_rows: np.ndarray
    leaf_values: np.ndarray
    one: int

    def check(self, digraph: Digraph, price: np.ndarray) -> None:
        """Prove the bound of a part; price [n] int64 of all nodes. Raises BadCertificate."""
        nodes = self.nodes
        if len(nodes) and not (nodes[0] >= 0 and nodes[-1] < digraph.n and (nodes[1:] > nodes[:-1]).all()):
            raise self._bad("the nodes of a part are not ascending")
        own, part = price[nodes], digraph.part(nodes)
        self._check_rows(part)
        self._check_shape()
        if sum(own.tolist()) * self.one >= LARGEST or self.lower * self.one >= LARGEST:
            raise self._bad("numbers beyond 61 bits")
        self._check_leaves(own)

    def _bad(self, why: str) -> BadCertificate:
        return BadCertificate(f"{self.method}: {why}")

    def _check_rows(self, part: Digraph) -> None:
        k = len(self.cliques)
        if len(self.ptr) != k + 1 or not cuts_up(self.ptr, len(self.row_nodes)):
            raise self._bad("rows that are not one behind the other")
        members = self.row_nodes
        if len(members) and not (members.min() >= 0 and members.max() < part.n):
            raise self._bad("a node of a row is not in the part")
        arcs = set(zip(part.tails().tolist(), part.out.tolist()))
        for i in range(k):
            row = members[self.ptr[i] : self.ptr[i + 1]].tolist()
            if len(set(row)) < len(row) or len(row) < 2:
                raise self._bad(f"row {i} has a node twice, or fewer than two")
            if self.cliques[i]:
                whole = all((u, v) in arcs for u in row for v in row if u != v)
            else:
                whole = all(pair in arcs for pair in zip(row, [*row[1:], row[0]]))
            if not whole:
                raise self._bad(f"row {i} has no arc where it needs one")

    def _check_shape(self) -> None:
        tree, leaves = self.tree, int(np.count_nonzero(self.tree == LEAF))
        if len(self.leaf_ptr) != leaves + 1 or not cuts_up(self.leaf_ptr, len(self.leaf_rows)):
            raise self._bad("leaves that are not one behind the other")
        if len(self.leaf_values) != len(self.leaf_rows) or self.one < 1:
            raise self._bad("values that do not belong to rows")
        rows, values = self.leaf_rows, self.leaf_values
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self.cliques)):
            raise self._bad("a leaf has a row that is not there")
        if len(values) and values.min() < 0:
            raise self._bad("a value below 0")
        if len(tree) and (tree.min() < LEAF or tree.max() >= len(self.nodes)):
            raise self._bad("the tree has a node that is not in the part")
        open_ = 1 + np.cumsum(np.where(tree == LEAF, -1, 1))  # subtrees that are still to come
        if not len(tree) or open_[-1] != 0 or (open_[:-1] <= 0).any():
            raise self._bad("the tree is no tree")

    def _check_leaves(self, price: np.ndarray) -> None:
        """Go through the tree with nodes in I and O, and see what each leaf proves."""
        side = np.zeros(len(price), dtype=np.int8)  # 1 in I, -1 in O
        above: list[tuple[int, bool]] = []  # nodes on the way, and whether the first subtree is done
        leaf = 0
        for node in self.tree.tolist():
            if node != LEAF:
                if side[node]:
                    raise self._bad("a node is divided twice")
                side[node] = 1
                above.append((node, False))
                continue
            if self._proved(leaf, price, side) <= (self.lower - 1) * self.one:
                raise self._bad(f"leaf {leaf} does not prove {self.lower}")
            leaf += 1
            while above and above[-1][1]:
                side[above.pop()[0]] = 0
            if above:
                above[-1] = above[-1][0], True
                side[above[-1][0]] = -1

    def _proved(self, leaf: int, price: np.ndarray, side: np.ndarray) -> int:
        """What a leaf proves, in multiples of 1/one."""
        cut = slice(self.leaf_ptr[leaf], self.leaf_ptr[leaf + 1])
        rows, y = self.leaf_rows[cut], self.leaf_values[cut]
        sizes = np.diff(self.ptr)[rows]
        if sum((int(value) * int(size) for value, size in zip(y, sizes)), 0) >= LARGEST:
            raise self._bad("values beyond 61 bits")
        return proved_by(rows, y, self.ptr, self.row_nodes, self.cliques, price * self.one, side)


def proved_by(
    rows: np.ndarray, y: np.ndarray, ptr: np.ndarray, row_nodes: np.ndarray, cliques: np.ndarray,
    price: np.ndarray, side: np.ndarray,
) -> int:  # fmt: skip
    """y b + sum over I of r + sum over the rest but O of min(0, r), in the unit of y and price [k] int64.

    rows, y   [j] of a leaf     side   [k] int8, 1 in I, -1 in O, 0 for the rest
    """
    sizes = np.diff(ptr)[rows]
    at = np.repeat(ptr[rows] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    load = np.zeros(len(price), dtype=np.int64)
    np.add.at(load, row_nodes[at], np.repeat(y, sizes))
    rest = price - load
    sides = np.where(cliques[rows] > 0, sizes - 1, 1)
    paid = rest[side > 0].sum() + np.minimum(rest[side == 0], 0).sum()
    return int((y * sides).sum() + paid)
