"""What proves a lower bound on what orders pay, part by part of net arcs.

For two nodes u, v let y(u, v) be 1 where v stands before u, else 0: y(v, u) = 1 - y(u, v), and a net arc
u -> v of weight w costs w y(u, v). Along a cycle of nodes, with arcs or not, some step leads backward:

    y(v1, v2) + y(v2, v3) + ... + y(vk, v1) >= 1

Take one y for each two nodes, that of the net arc, if there is one. A step against it is 1 - y, so that a
cycle says a y >= b with coefficients of 1 and -1 and b = 1 - steps against. For any g >= 0 of some cycles,

    w y  >=  g b + (w - g A) y  >=  g b + sum over F of r + sum over the free ones of min(0, r)

where r = w - g A, F are those y that are fixed to 1, and those fixed to 0 count nothing: whatever g is, so
that rounded duals of a linear program prove nearly what that says. Where all cycles follow net arcs this is
a fractional packing of cycles. Two nodes are fixed by a tree: the first subtree of a division has u before
v, the second v before u, so both together have all orders. The least that a leaf proves, rounded up, is
proved.

Parts may have nodes in common, but no two nodes with a net arc: what they prove then adds up.

Source   Groetschel, Juenger and Reinelt, Facets of the linear ordering polytope, Math. Programming 1985
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from app.bounds.cycles.witness import TreeProof, loads, paid
from app.graphs.keys import without
from app.graphs.ordering import NetArcs


@dataclass(frozen=True, eq=False)
class OrderingPart(TreeProof):
    """A bound on what orders pay for a part of net arcs; its rows are cycles of three nodes or more.

    us, vs   [d] int64: the two nodes of a division, the first before the second in the first subtree
    """

    us: np.ndarray
    vs: np.ndarray
    divided: ClassVar[str] = "two nodes are"

    def check(self, net: NetArcs) -> None:
        """Prove the bound. Raises BadCertificate."""
        self._check_nodes(net.n)
        part = net.part(self.nodes)
        self._check_members()
        self._check_cycles(part.n)
        self._check_tree(len(self.us))
        self._check_ends()
        self._check_sums(int(part.weights.sum()))
        pairs = Pairs(part, self.ptr, self.row_nodes, self.us, self.vs)
        self._check_leaves(
            pairs.count,
            lambda division: pairs.fixed(int(self.us[division]), int(self.vs[division])),
            lambda rows, g, side: pairs.proved(rows, g, self.one, side),
        )

    def _check_cycles(self, k: int) -> None:
        sizes = np.diff(self.ptr)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        keys = np.sort(rows * max(k, 1) + self.row_nodes)
        if (sizes < 3).any() or (keys[1:] == keys[:-1]).any():
            raise self._bad("a cycle has a node twice, or fewer than three")

    def _check_ends(self) -> None:
        ends = np.concatenate([self.us, self.vs])
        inside = not len(ends) or (ends.min() >= 0 and ends.max() < len(self.nodes))
        if len(self.us) != len(self.vs) or not inside:
            raise self._bad("a division of nodes that are not in the part")


class Pairs:
    """The y of a part: of net arcs, from 0 on, then of pairs without one that cycles or divisions have.

    count       of pairs
    weights     [count] int64, 0 of those without an arc
    at, sign    [entries] of cycles, one behind the other: which y a step is of, 1 along, -1 against it
    against     [rows] int64, steps against
    """

    def __init__(
        self, part: NetArcs, ptr: np.ndarray, row_nodes: np.ndarray, us: np.ndarray, vs: np.ndarray
    ) -> None:
        k = self._k = max(part.n, 1)
        self.ptr, sizes = ptr, np.diff(ptr)
        after = np.arange(len(row_nodes)) + 1
        after[ptr[1:] - 1] = ptr[:-1]
        tails, heads = row_nodes, row_nodes[after] if len(row_nodes) else row_nodes
        arcs = part.tails * k + part.heads
        own = np.minimum(part.tails, part.heads) * k + np.maximum(part.tails, part.heads)
        asked_tails, asked_heads = np.concatenate([tails, us]), np.concatenate([heads, vs])
        asked = np.minimum(asked_tails, asked_heads) * k + np.maximum(asked_tails, asked_heads)
        more = without(asked, own)
        keys, along = np.concatenate([own, more]), np.concatenate([arcs, more])
        order = np.argsort(keys, kind="stable")
        self._keys, self._pair, self._along = keys[order], order, along
        self.count = len(keys)
        self.weights = np.concatenate([part.weights, np.zeros(len(more), dtype=np.int64)])
        self.at = order[np.searchsorted(self._keys, asked[: len(tails)])] if len(tails) else tails
        self.sign = np.where(along[self.at] == tails * k + heads, 1, -1).astype(np.int64)
        row = np.repeat(np.arange(len(sizes)), sizes)
        self.against = np.bincount(row[self.sign < 0], minlength=len(sizes)).astype(np.int64)

    def fixed(self, u: int, v: int) -> tuple[int, int]:
        """The pair of two nodes, and what fixes its y where u stands before v: 1 to 1, -1 to 0."""
        key = min(u, v) * self._k + max(u, v)
        pair = int(self._pair[np.searchsorted(self._keys, key)])
        return pair, 1 if self._along[pair] == v * self._k + u else -1

    def proved(self, rows: np.ndarray, g: np.ndarray, one: int, side: np.ndarray) -> int:
        """g b + sum over F of r + sum over the free ones of min(0, r), in multiples of 1/one.

        rows, g   [j] of a leaf     side   [count] int8, 1 fixed to 1, -1 to 0, 0 free
        """
        load = loads(self.ptr, self.at, rows, g, self.count, self.sign)
        sides = (g * (1 - self.against[rows])).sum()
        return int(sides) + paid(self.weights * one - load, side)
