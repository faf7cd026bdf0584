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
from typing import ClassVar

import numpy as np

from app.bounds.cycles.witness import TreeProof, loads, paid
from app.graphs.digraph import Digraph


@dataclass(frozen=True, eq=False)
class DirectedFeedbackPart(TreeProof):
    """A bound on what sets take of a part of a digraph; a division is of the node of its number, which the
    first subtree has in I, the second in O.

    cliques   [rows] uint8: the nodes of a row are a cycle, in order, or (1) a clique
    """

    cliques: np.ndarray
    divided: ClassVar[str] = "a node is"

    def check(self, digraph: Digraph, price: np.ndarray) -> None:
        """Prove the bound of a part; price [n] int64 of all nodes. Raises BadCertificate."""
        self._check_nodes(digraph.n)
        own = price[self.nodes]
        self._check_members()
        self._check_rows(digraph.part(self.nodes))
        self._check_tree(len(self.nodes))
        self._check_sums(sum(own.tolist()))
        rows = self.ptr, self.row_nodes, self.cliques
        self._check_leaves(
            len(own),
            lambda node: (node, 1),
            lambda which, y, side: proved_by(which, y, *rows, own * self.one, side),
        )

    def _check_rows(self, part: Digraph) -> None:
        if len(self.ptr) != len(self.cliques) + 1:
            raise self._bad("rows that are cycles or cliques, and others")
        arcs = set(zip(part.tails().tolist(), part.out.tolist()))
        for i in range(len(self.cliques)):
            row = self.row_nodes[self.ptr[i] : self.ptr[i + 1]].tolist()
            if len(set(row)) < len(row) or len(row) < 2:
                raise self._bad(f"row {i} has a node twice, or fewer than two")
            if self.cliques[i]:
                whole = all((u, v) in arcs for u in row for v in row if u != v)
            else:
                whole = all(pair in arcs for pair in zip(row, [*row[1:], row[0]]))
            if not whole:
                raise self._bad(f"row {i} has no arc where it needs one")


def proved_by(
    rows: np.ndarray, y: np.ndarray, ptr: np.ndarray, row_nodes: np.ndarray, cliques: np.ndarray,
    price: np.ndarray, side: np.ndarray,
) -> int:  # fmt: skip
    """y b + sum over I of r + sum over the rest but O of min(0, r), in the unit of y and price [k] int64.

    rows, y   [j] of a leaf     side   [k] int8, 1 in I, -1 in O, 0 for the rest
    """
    sides = np.where(cliques[rows] > 0, np.diff(ptr)[rows] - 1, 1)
    return int((y * sides).sum()) + paid(price - loads(ptr, row_nodes, rows, y, len(price)), side)
