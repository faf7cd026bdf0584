"""Lower bounds on sets that dismantle a graph, with what proves them in whole numbers.

Nodes have sizes, and a set x leaves no component larger than K. Of a tree T in the graph, of size S > K, with
any root r, and the size b_v of the part of T that hangs on node v, v included,

    sum over nodes v of T of min(b_v, S - K) x_v  >=  S - K:

if r is in the set, it has the coefficient S - K; if not, what of T is not cut off from r is one component, of
at most K, so that at least S - K is cut off, all of it below nodes of the set; and where one coefficient is
S - K that node alone is enough. With S = K + 1 nodes of size 1 this says that one of them is in the set;
larger trees are the inequalities of spreading metrics. Of nodes that are all joined those that are left are
one component: all but the most that are not too large together are in the set. Of a subgraph H with sizes s
and degrees d_H that has no cycle of K nodes or fewer, components of k nodes that are left have at most k - 1
edges, which is at most k less their size / K, so that

    sum over nodes v of H of (K d_H(v) - K + s_v) x_v  >=  K (|E(H)| - |V(H)|) + s(H).

Of a sum of such inequalities halves may be rounded up, coefficients and right side. What multipliers prove
says case_proof.py.

Source   of spreading metrics: Even, Naor, Rao and Schieber, Divide-and-conquer approximation algorithms via
         spreading metrics, Journal of the ACM 2000
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.bounds.case_proof import CaseProof, Edges, Rows, require
from app.bounds.certificate import cuts_up
from app.bounds.fvs.witness import FeedbackBound
from app.graphs.keys import sorted_set
from app.graphs.sized import SizedGraph


@dataclass(frozen=True, eq=False)
class PartBound(CaseProof):
    """Of the part of a set among some nodes, which weighs at least `lower` (`proved` works it out).

    nodes            [k] int64, of the graph; all else counts them 0..k-1
    tree_ptr         [t+1] int64, trees: nodes tree_nodes[i] (int32), each behind the one above it, whose
                     place in the tree is above[i] (int32); of the first, the root, -1
    clique_ptr       [q+1] int64, nodes that are all joined: clique_nodes (int32). They are counted behind
                     trees
    edge_ptr         [c+1] int64, subgraphs without small cycles: edges edge_u[i]-edge_v[i] (int32), each
                     once. They are counted behind cliques
    half_ptr         [h+1] int64, sums of the inequalities half_rows (int32) above; counted behind them all
    cases, y_ptr, y_rows, y, places   as CaseProof
    """

    nodes: np.ndarray
    tree_ptr: np.ndarray
    tree_nodes: np.ndarray
    above: np.ndarray
    clique_ptr: np.ndarray
    clique_nodes: np.ndarray
    edge_ptr: np.ndarray
    edge_u: np.ndarray
    edge_v: np.ndarray
    half_ptr: np.ndarray
    half_rows: np.ndarray
    cases: np.ndarray
    y_ptr: np.ndarray
    y_rows: np.ndarray
    y: np.ndarray
    places: int

    def base_rows(self, core: SizedGraph) -> Rows:
        """The inequalities, but for halves of their sums. Raises BadCertificate where trees or cliques are
        not there.
        """
        k, entries = len(self.nodes), len(self.tree_nodes)
        fits = cuts_up(self.tree_ptr, entries) and len(self.above) == entries
        require(fits and cuts_up(self.clique_ptr, len(self.clique_nodes)), "trees do not fit their lists")
        ends = len(self.edge_u)
        fits = cuts_up(self.edge_ptr, ends) and len(self.edge_v) == ends
        require(fits, "subgraphs do not fit their lists")
        for nodes in (self.tree_nodes, self.clique_nodes, self.edge_u, self.edge_v):
            require(not len(nodes) or bool(nodes.min() >= 0 and nodes.max() < k), "a node of no part")
        joined, size = Edges(core, self.nodes), core.size[self.nodes]
        coefficients, right = self._of_trees(joined, size, core.most)
        q, more = len(self.clique_ptr) - 1, self.clique_nodes.astype(np.int64)
        sides = [self._of_clique(joined, size, core.most, i) for i in range(q)]
        sparse = [self._of_subgraph(joined, size, core.most, i) for i in range(len(self.edge_ptr) - 1)]
        last = entries + len(more)
        return Rows(
            np.concatenate([
                self.tree_ptr, entries + self.clique_ptr[1:],
                last + np.cumsum([len(nodes) for nodes, _, _ in sparse]).astype(np.int64),
            ]),
            np.concatenate([self.tree_nodes.astype(np.int64), more, *(nodes for nodes, _, _ in sparse)]),
            np.concatenate([coefficients, np.ones(len(more), np.int64), *(each for _, each, _ in sparse)]),
            np.array([*right, *sides, *(each for _, _, each in sparse)], dtype=np.int64),
        )  # fmt: skip

    def _of_trees(self, joined: Edges, size: np.ndarray, most: int) -> tuple[np.ndarray, list[int]]:
        """Coefficients of all entries, and right sides."""
        nodes, above = self.tree_nodes.astype(np.int64), self.above.astype(np.int64)
        owner = np.repeat(np.arange(len(self.tree_ptr) - 1), np.diff(self.tree_ptr))
        first = self.tree_ptr[owner]
        place = np.arange(len(nodes)) - first
        heads = place == 0
        require(bool((above[heads] == -1).all()), "a root with a node above it")
        require(bool(((above >= 0) & (above < place))[~heads].all()), "a node before the one above it")
        require(
            bool(joined(nodes[~heads], nodes[(first + above)[~heads]]).all()), "an edge that is not there"
        )
        keys = owner * max(len(size), 1) + nodes
        require(len(sorted_set(keys)) == len(keys), "a tree with a circle")
        below, ups = size[nodes].tolist(), np.where(heads, -1, first + above).tolist()
        for i in range(len(below) - 1, -1, -1):
            if ups[i] >= 0:
                below[ups[i]] += below[i]
        right = [below[i] - most for i in self.tree_ptr[:-1].tolist()]
        require(min(right, default=1) > 0, "a tree that is not too large")
        caps = np.array(right, dtype=np.int64)[owner]
        return np.minimum(np.array(below, dtype=np.int64), caps), right

    def _of_clique(self, joined: Edges, size: np.ndarray, most: int, which: int) -> int:
        own = self.clique_nodes[self.clique_ptr[which] : self.clique_ptr[which + 1]].astype(np.int64)
        a, b = np.triu_indices(len(own), 1)
        require(len(own) > 1 and bool(joined(own[a], own[b]).all()), "nodes of a clique are not joined")
        return int(np.count_nonzero(np.cumsum(np.sort(size[own])) > most))

    def _of_subgraph(
        self, joined: Edges, size: np.ndarray, most: int, which: int
    ) -> tuple[np.ndarray, np.ndarray, int]:
        own = slice(int(self.edge_ptr[which]), int(self.edge_ptr[which + 1]))
        u, v = self.edge_u[own].astype(np.int64), self.edge_v[own].astype(np.int64)
        keys = np.minimum(u, v) * len(size) + np.maximum(u, v)
        require(len(u) > 0 and len(sorted_set(keys)) == len(keys), "an edge that is named twice, or none")
        require(bool(joined(u, v).all()), "an edge that is not there")
        require(no_small_cycle(u.tolist(), v.tolist(), most), f"a cycle of at most {most} nodes")
        return sparse_row(u, v, size, most)


def sparse_row(
    u: np.ndarray, v: np.ndarray, size: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Nodes, coefficients and right side of a subgraph of edges u[i]-v[i] without cycles of at most `most`
    nodes; size [k] of all nodes.
    """
    nodes, degree = np.unique(np.concatenate([u, v]), return_counts=True)
    coefficients = most * degree.astype(np.int64) - most + size[nodes]
    return nodes, coefficients, most * (len(u) - len(nodes)) + int(size[nodes].sum())


def no_small_cycle(u: list[int], v: list[int], most: int) -> bool:
    """Whether edges u[i]-v[i], each once, close no cycle of at most `most` nodes.

    A cycle of k nodes is met from each of them, by two ways of at most k / 2 steps to one node or edge.
    """
    near: dict[int, list[int]] = {}
    for a, b in zip(u, v):
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    for root in near:
        depth, above, nodes = {root: 0}, {root: -1}, [root]
        for a in nodes:
            if 2 * depth[a] + 1 > most:
                break
            for b in (b for b in near[a] if b != above[a]):
                if b not in depth:
                    depth[b], above[b] = depth[a] + 1, a
                    nodes.append(b)
                elif depth[a] + depth[b] + 1 <= most:
                    return False
    return True


@dataclass(frozen=True, eq=False)
class DismantleBound(FeedbackBound):
    """No set that dismantles a graph weighs less than `lower`, the sum of what parts prove, which have no
    nodes in common; checked: False where more was found than they prove.
    """

    lower: int
    method: str
    parts: Sequence[PartBound] = ()
    checked: bool = True
