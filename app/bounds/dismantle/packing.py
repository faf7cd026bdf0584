"""The bound of one connected graph of any size: trees and cliques packed into the weights of nodes.

Nodes get lengths exp(RISE load / scale) / weight, load being what the inequalities so far take of a weight.
From one root after the other, those with the least load first, the tree (clique) of the least cost for its
right side by these lengths is taken as often as the lightest node for its coefficient allows. At the end all
multipliers are scaled by what makes the bound, in which too much load costs what it exceeds, largest.

Source   multiplicative weights: Garg and Könemann, Faster and simpler algorithms for multicommodity flow and
         other fractional packing problems, SIAM Journal on Computing 2007
"""

from collections.abc import Iterator

import numpy as np

from app.bounds.case_proof import FREE, Rows, bound_of
from app.bounds.dismantle.sparse import sparse_edges
from app.bounds.dismantle.trees import LONGEST, Cliques, Grower
from app.bounds.dismantle.witness import PartBound, sparse_row
from app.graphs.sized import SizedGraph

RISE = 6.0  # how far lengths rise from no load to the scale's, as logarithm
BITS = 44  # of the heaviest weight in units of multipliers
FEW = 64  # of a component's size, up to which cliques are tried
FEWER = 10  # and trees of nodes that are as far as they are long
MOST_ENTRIES = 6_000_000  # of all trees
MOST_LISTED = 3_000_000  # nodes and entries of a graph that cliques are looked for in
EVERY = 64  # trees between two scalings, and by how much, as a share, the bound is to be better:
GAINED = 0.03
PASSES = 400
WIDER = 1.5  # times the scale, once all nodes have been roots or have as much load


class Packing:
    """The course of that packing.

    lower, proof   the best bound so far, and what proves it     full  there is no room for more trees
    _later         whether all nodes have been roots: until then few nodes make a tree, which is quick
    rows           (nodes, above or None, coefficients, right) of each inequality, above None: a clique
    """

    def __init__(self, core: SizedGraph, nodes: np.ndarray) -> None:
        self.core, self.nodes = core, nodes
        self.rows: list[tuple[np.ndarray, np.ndarray | None, np.ndarray, int]] = []
        self.lower, self.proof = 0, told(nodes, [], np.zeros(0, dtype=np.int64), 0)
        self.full = self._later = False
        self._y: list[float] = []
        self._entries = 0
        self._load = np.zeros(core.n)  # in weights
        self._scale, self._gain = 1.0, 0.0
        self._grower = Grower(core)
        cliques = core.most <= FEW and core.n + len(core.indices) <= MOST_LISTED
        self._cliques = Cliques(core) if cliques else None
        self._weights = core.weights.astype(np.float64)
        self._lengthen(np.arange(core.n))

    def work(self) -> Iterator[None]:
        """Trees, EVERY at a time."""
        every = np.arange(self.core.n)
        for _ in range(PASSES):
            for root in np.argsort(self._load / self._weights, kind="stable").tolist():
                if self._load[root] > self._scale * self._weights[root]:
                    continue  # its own coefficient is a whole right side
                self._add(root)
                if len(self.rows) % EVERY == 0:
                    self._settle(GAINED)
                    yield
                if self.full:
                    break
            self._settle(0.0)
            self._later = True
            if self.full:
                return
            self._scale *= WIDER
            self._lengthen(every)
            yield

    def _add(self, root: int) -> None:
        found = self._best(root)
        if found is None:
            return
        nodes, _, coefficients, right = found
        y = float((self._weights[nodes] / coefficients).min())
        self.rows.append(found)
        self._y.append(y)
        self._gain += y * right
        self._entries += len(nodes)
        self.full = self._entries > MOST_ENTRIES
        self._load[nodes] += y * coefficients
        most = float((self._load[nodes] / self._weights[nodes]).max())
        if most > 2 * self._scale:
            self._scale = most
            nodes = np.arange(self.core.n)
        self._lengthen(nodes)

    def _lengthen(self, nodes: np.ndarray) -> None:
        """The lengths of some nodes, as whole numbers."""
        rise = np.exp(
            RISE * (np.minimum(self._load[nodes] / (self._scale * self._weights[nodes]), 1.5) - 1.5)
        )
        length = rise * (LONGEST - 1) * float(self._weights.min()) / self._weights[nodes]
        self._grower.length[nodes] = np.maximum(length.astype(np.int64), 1)

    def _best(self, root: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, int] | None:
        few = self.core.most <= FEWER
        trees = [self._grower.tree(root, True)] if few else []
        if self._later or not few:
            trees.append(self._grower.tree(root, False))
        best = None
        for tree in trees:
            if tree is not None and (best is None or tree.cost * best.right < best.cost * tree.right):
                best = tree
        if best is None:
            return None
        if self._cliques is not None:
            clique = self._cliques.around(root, self._grower.length)
            right = self._cliques.right(clique)
            cost = int(self._grower.length[clique].sum())
            if right and cost * best.right < best.cost * right:
                return np.array(clique, dtype=np.int32), None, np.ones(len(clique), dtype=np.int64), right
        return best.nodes, best.above, best.coefficients, best.right

    def _settle(self, least: float) -> None:
        """The bound of the best multiple of all multipliers, where it is better by a share `least`."""
        if not self.rows:
            return
        ratio = self._weights / np.maximum(self._load, 1e-300)
        order = np.argsort(ratio, kind="stable")  # beyond its ratio a node's load costs
        taken = np.cumsum(self._load[order])
        last = min(
            int(np.searchsorted(taken, self._gain)), len(order) - 1
        )  # more is lost than gained from here
        factor = float(ratio[order[last]])
        lost = factor * float(taken[last]) - float(self._weights[order[: last + 1]].sum())
        if factor * self._gain - lost < (1 + least) * self.lower:
            return
        places = max(0, BITS - int(self.core.weights.max()).bit_length())
        y = (np.array(self._y) * factor * 2.0**places).astype(np.int64)
        lower = proved(self.core, self.rows, y, places)
        if lower > self.lower:
            self.lower, self.proof = lower, told(self.nodes, self.rows, y, places)

    def used(self, most: int) -> list[tuple[np.ndarray, np.ndarray | None, np.ndarray, int]]:
        """The inequalities of the largest multipliers times right sides, at most so many."""
        worth = np.array([y * row[3] for y, row in zip(self._y, self.rows)])
        return [self.rows[i] for i in np.argsort(-worth, kind="stable")[:most].tolist()]


def proved(core: SizedGraph, rows: list[tuple], y: np.ndarray, places: int) -> int:
    """What multipliers y / 2^places of inequalities prove."""
    sizes = np.array([len(row[0]) for row in rows], dtype=np.int64)
    told_rows = Rows(
        np.append(0, np.cumsum(sizes)),
        np.concatenate([row[0] for row in rows]).astype(np.int64),
        np.concatenate([row[2] for row in rows]),
        np.array([row[3] for row in rows], dtype=np.int64),
    )
    free = np.full(core.n, FREE, dtype=np.uint8)
    found = bound_of(told_rows, core.weights << places, free, np.arange(len(y)), y)
    return 0 if found is None else max(-(-found[0] >> places), 0)


def told(nodes: np.ndarray, rows: list[tuple], y: np.ndarray, places: int) -> PartBound:
    """The proof of these multipliers, trees before cliques."""
    order = [i for i, row in enumerate(rows) if row[1] is not None and y[i]]
    count = len(order)
    order += [i for i, row in enumerate(rows) if row[1] is None and y[i]]
    none, whole = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
    trees, cliques = order[:count], order[count:]
    return PartBound(
        nodes.astype(np.int64), _ptr([rows[i][0] for i in trees]),
        *(np.concatenate([none, *(rows[i][which] for i in trees)]) for which in (0, 1)),
        _ptr([rows[i][0] for i in cliques]), np.concatenate([none, *(rows[i][0] for i in cliques)]),
        np.zeros(1, dtype=np.int64), none, none, np.zeros(1, dtype=np.int64), none,
        np.array([-1], dtype=np.int64), np.array([0, len(order)], dtype=np.int64),
        np.arange(len(order), dtype=np.int32),
        np.append(whole, y[order]).astype(np.int64), places,
    )  # fmt: skip


def degree_bound(core: SizedGraph, nodes: np.ndarray) -> tuple[int, PartBound, tuple | None]:
    """The inequality of a subgraph without small cycles alone, with the multiplier at which the nodes whose
    weight it exhausts would do; and that subgraph's edges, or None.
    """
    edges = sparse_edges(core)
    if edges is None or not len(edges[0]):
        return 0, told(nodes, [], np.zeros(0, dtype=np.int64), 0), None
    own, coefficients, right = sparse_row(*edges, core.size, core.most)
    useful = coefficients > 0
    own, coefficients = own[useful], coefficients[useful]
    order = np.argsort(core.weights[own] / coefficients, kind="stable")
    last = min(int(np.searchsorted(np.cumsum(coefficients[order]), right)), len(order) - 1)
    places = max(0, BITS - int(core.weights.max()).bit_length())
    y = np.array([(int(core.weights[own[order[last]]]) << places) // int(coefficients[order[last]])])
    ends = (each.astype(np.int32) for each in edges)
    none, first = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    proof = PartBound(
        nodes.astype(np.int64), first, none, none, first, none, np.array([0, len(edges[0])], dtype=np.int64),
        *ends, first, none, np.array([-1], dtype=np.int64), np.array([0, 1], dtype=np.int64),
        np.zeros(1, dtype=np.int32), y, places,
    )  # fmt: skip
    whole = sparse_row(*edges, core.size, core.most)
    return proved(core, [(whole[0], None, whole[1], whole[2])], y, places), proof, edges


def _ptr(lists: list[np.ndarray]) -> np.ndarray:
    return np.append(0, np.cumsum([len(each) for each in lists])).astype(np.int64)
