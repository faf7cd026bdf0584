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

import numpy as np

from app.bounds.certificate import BadCertificate, cuts_up
from app.graphs.ordering import NetArcs

LARGEST = 1 << 61  # of sums of multiples of 1/one
LEAF = -1


@dataclass(frozen=True, eq=False)
class OrderingPart:
    """A bound on what orders pay for a part of net arcs.

    nodes    [k] int64, ascending: the part is what they span; all that follows numbers them anew
    ptr, row_nodes   [rows+1], int64: the nodes of a cycle, three or more, in order
    tree     [t] int64, in preorder: LEAF, or the number of a division
    us, vs   [d] int64: the two nodes of a division, the first before the second in the first subtree
    leaf_ptr, leaf_rows, leaf_values   cycles of each leaf, and their g as multiples of 1/one
    """

    lower: int
    method: str
    nodes: np.ndarray
    ptr: np.ndarray
    row_nodes: np.ndarray
    tree: np.ndarray
    us: np.ndarray
    vs: np.ndarray
    leaf_ptr: np.ndarray
    leaf_rows: np.ndarray
    leaf_values: np.ndarray
    one: int

    def check(self, net: NetArcs) -> None:
        """Prove the bound. Raises BadCertificate."""
        nodes = self.nodes
        if len(nodes) and not (nodes[0] >= 0 and nodes[-1] < net.n and (nodes[1:] > nodes[:-1]).all()):
            raise self._bad("the nodes of a part are not ascending")
        part = net.part(nodes)
        self._check_rows(part.n)
        self._check_shape()
        total = int(part.weights.sum())
        if self.one < 1 or total * self.one >= LARGEST or self.lower * self.one >= LARGEST:
            raise self._bad("numbers beyond 61 bits")
        self._check_leaves(part)

    def _bad(self, why: str) -> BadCertificate:
        return BadCertificate(f"{self.method}: {why}")

    def _check_rows(self, k: int) -> None:
        ptr, members = self.ptr, self.row_nodes
        if not cuts_up(ptr, len(members)):
            raise self._bad("cycles that are not one behind the other")
        if len(members) and not (members.min() >= 0 and members.max() < k):
            raise self._bad("a node of a cycle is not in the part")
        sizes = np.diff(ptr)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        keys = np.sort(rows * max(k, 1) + members)
        if (sizes < 3).any() or (keys[1:] == keys[:-1]).any():
            raise self._bad("a cycle has a node twice, or fewer than three")

    def _check_shape(self) -> None:
        tree, leaves = self.tree, int(np.count_nonzero(self.tree == LEAF))
        if len(self.leaf_ptr) != leaves + 1 or not cuts_up(self.leaf_ptr, len(self.leaf_rows)):
            raise self._bad("leaves that are not one behind the other")
        rows, values = self.leaf_rows, self.leaf_values
        if len(values) != len(rows) or (len(values) and values.min() < 0):
            raise self._bad("values that do not belong to cycles, or are below 0")
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self.ptr) - 1):
            raise self._bad("a leaf has a cycle that is not there")
        ends = np.concatenate([self.us, self.vs])
        if len(self.us) != len(self.vs) or (
            len(ends) and not (ends.min() >= 0 and ends.max() < len(self.nodes))
        ):
            raise self._bad("a division of nodes that are not in the part")
        if len(tree) and (tree.min() < LEAF or tree.max() >= len(self.us)):
            raise self._bad("the tree has a division that is not there")
        open_ = 1 + np.cumsum(np.where(tree == LEAF, -1, 1))  # subtrees that are still to come
        if not len(tree) or open_[-1] != 0 or (open_[:-1] <= 0).any():
            raise self._bad("the tree is no tree")

    def _check_leaves(self, part: NetArcs) -> None:
        """Go through the tree with pairs fixed, and see what each leaf proves."""
        pairs = Pairs(part, self.ptr, self.row_nodes, self.us, self.vs)
        side = np.zeros(pairs.count, dtype=np.int8)
        above: list[tuple[int, bool]] = []  # divisions on the way, and whether the first subtree is done
        leaf = 0
        for division in self.tree.tolist():
            if division != LEAF:
                pair, paid = pairs.fixed(int(self.us[division]), int(self.vs[division]))
                if side[pair]:
                    raise self._bad("two nodes are divided twice")
                side[pair] = 1 if paid else -1
                above.append((division, False))
                continue
            if self._proved(leaf, pairs, side) <= (self.lower - 1) * self.one:
                raise self._bad(f"leaf {leaf} does not prove {self.lower}")
            leaf += 1
            while above and above[-1][1]:
                last = above.pop()[0]
                side[pairs.fixed(int(self.us[last]), int(self.vs[last]))[0]] = 0
            if above:
                above[-1] = above[-1][0], True
                pair, paid = pairs.fixed(int(self.us[above[-1][0]]), int(self.vs[above[-1][0]]))
                side[pair] = -1 if paid else 1

    def _proved(self, leaf: int, pairs: "Pairs", side: np.ndarray) -> int:
        """What a leaf proves, in multiples of 1/one."""
        cut = slice(int(self.leaf_ptr[leaf]), int(self.leaf_ptr[leaf + 1]))
        rows, g = self.leaf_rows[cut], self.leaf_values[cut]
        sizes = np.diff(self.ptr)[rows]
        if sum((int(value) * int(size) for value, size in zip(g, sizes)), 0) >= LARGEST:
            raise self._bad("values beyond 61 bits")
        return pairs.proved(rows, g, self.one, side)


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
        more = np.setdiff1d(asked, own)
        keys, along = np.concatenate([own, more]), np.concatenate([arcs, more])
        order = np.argsort(keys, kind="stable")
        self._keys, self._pair, self._along = keys[order], order, along
        self.count = len(keys)
        self.weights = np.concatenate([part.weights, np.zeros(len(more), dtype=np.int64)])
        self.at = order[np.searchsorted(self._keys, asked[: len(tails)])] if len(tails) else tails
        self.sign = np.where(along[self.at] == tails * k + heads, 1, -1).astype(np.int64)
        row = np.repeat(np.arange(len(sizes)), sizes)
        self.against = np.bincount(row[self.sign < 0], minlength=len(sizes)).astype(np.int64)

    def fixed(self, u: int, v: int) -> tuple[int, bool]:
        """The pair of two nodes, and whether its y is 1 where u stands before v."""
        key = min(u, v) * self._k + max(u, v)
        pair = int(self._pair[np.searchsorted(self._keys, key)])
        return pair, bool(self._along[pair] == v * self._k + u)

    def proved(self, rows: np.ndarray, g: np.ndarray, one: int, side: np.ndarray) -> int:
        """g b + sum over F of r + sum over the free ones of min(0, r), in multiples of 1/one.

        rows, g   [j] of a leaf     side   [count] int8, 1 fixed to 1, -1 to 0, 0 free
        """
        sizes = np.diff(self.ptr)[rows]
        at = np.repeat(self.ptr[rows] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        load = np.zeros(self.count, dtype=np.int64)
        np.add.at(load, self.at[at], self.sign[at] * np.repeat(g, sizes))
        rest = self.weights * one - load
        return int(
            (g * (1 - self.against[rows])).sum() + rest[side > 0].sum() + np.minimum(rest[side == 0], 0).sum()
        )
