"""Lower bounds on feedback vertex sets, with what proves them in whole numbers.

Of a subgraph H with edges, a feedback vertex set x leaves a forest, so that

    sum over nodes v of H of (d_H(v) - 1) x_v  >=  |E(H)| - |V(H)| + 1;

of a cycle this says that one of its nodes is in the set. Of k nodes that are all joined at most two are left,
or one where double edges join them all. Of a sum of such inequalities halves may be rounded up, coefficients
and right side. For weights w and multipliers y >= 0 of such inequalities a x >= b, a set
weighs at least sum of y b + sum over v of the least (w_v - sum of y a_v) x_v that a case lets x_v have: 0
where v is kept, w_v - sum of y a_v where it is taken, the lesser of the two else.

Source   Chudak, Goemans, Hochbaum and Williamson, A primal-dual interpretation of two 2-approximation
         algorithms for the feedback vertex set problem in undirected graphs, Operations Research Letters 1998
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.bounds.case_proof import CaseProof, Edges, Rows, require
from app.bounds.certificate import BadCertificate, Proof, cuts_up
from app.graphs.keys import sorted_set
from app.graphs.multigraph import Multigraph


@dataclass(frozen=True, eq=False)
class PartBound(CaseProof):
    """Of the part of a set among some nodes, which weighs at least `lower` (`proved` works it out).

    nodes            [k] int64, of the multigraph; all else counts them 0..k-1
    edge_ptr         [c+1] int64, subgraphs: edges edge_u[i]-edge_v[i] (int32), a double edge at most twice
    clique_ptr       [q+1] int64, nodes that are all joined: clique_nodes (int32). They are counted behind
                     subgraphs
    half_ptr         [h+1] int64, sums of the inequalities half_rows (int32) above; counted behind them all
    cases            int64, in preorder: v >= 0: of the two that follow the first keeps v, the second takes
                     it; -1 - i: a case that multipliers i prove
    y_ptr            [l+1] int64, multipliers: of inequalities y_rows (int32), values y (int64) / 2^places
    """

    nodes: np.ndarray
    edge_ptr: np.ndarray
    edge_u: np.ndarray
    edge_v: np.ndarray
    clique_ptr: np.ndarray
    clique_nodes: np.ndarray
    half_ptr: np.ndarray
    half_rows: np.ndarray
    cases: np.ndarray
    y_ptr: np.ndarray
    y_rows: np.ndarray
    y: np.ndarray
    places: int

    def base_rows(self, core: Multigraph) -> Rows:
        """The inequalities, but for halves of their sums. Raises BadCertificate where edges or cliques are
        not there.
        """
        k, size = len(self.nodes), len(self.edge_u)
        fits = cuts_up(self.edge_ptr, size) and len(self.edge_v) == size
        require(fits and cuts_up(self.clique_ptr, len(self.clique_nodes)), "subgraphs do not fit their lists")
        for nodes in (self.edge_u, self.edge_v, self.clique_nodes):
            require(not len(nodes) or bool(nodes.min() >= 0 and nodes.max() < k), "a node of no part")
        count = Edges(core, self.nodes)
        cut = np.repeat(np.arange(len(self.edge_ptr) - 1), np.diff(self.edge_ptr))
        u, v = (end.astype(np.int64) for end in (self.edge_u, self.edge_v))
        key = np.minimum(u, v) * k + np.maximum(u, v)
        order = np.lexsort((key, cut))
        new = np.append(True, (np.diff(cut[order]) != 0) | (np.diff(key[order]) != 0))[: len(order)]
        times = np.diff(np.append(np.flatnonzero(new), len(order)))
        require(bool((times <= count(u[order][new], v[order][new])).all()), "an edge that is not there")
        return self._with_cliques(edge_rows(k, self.edge_ptr, u, v), count)

    def _with_cliques(self, rows: Rows, count: Edges) -> Rows:
        right = []
        for first, end in zip(self.clique_ptr[:-1].tolist(), self.clique_ptr[1:].tolist()):
            own = self.clique_nodes[first:end].astype(np.int64)
            a, b = np.triu_indices(len(own), 1)
            joined = count(own[a], own[b])
            require(len(own) > 1 and bool((joined > 0).all()), "nodes of a clique are not joined")
            right.append(len(own) - 1 if (joined == 2).all() else len(own) - 2)
        more = self.clique_nodes.astype(np.int64)
        return Rows(
            np.concatenate([rows.ptr, rows.ptr[-1] + self.clique_ptr[1:]]),
            np.concatenate([rows.nodes, more]),
            np.concatenate([rows.coefficients, np.ones(len(more), dtype=np.int64)]),
            np.concatenate([rows.right, np.array(right, dtype=np.int64)]),
        )


def edge_rows(n: int, ptr: np.ndarray, u: np.ndarray, v: np.ndarray) -> Rows:
    """The inequalities of subgraphs of n nodes, edges u[i]-v[i] from ptr[c] to ptr[c+1]; each has some."""
    cut = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    keys, degree = np.unique(np.concatenate([cut * n + u, cut * n + v]), return_counts=True)
    owner, node = np.divmod(keys, max(n, 1))
    sizes = np.bincount(owner, minlength=len(ptr) - 1)
    right = np.where(np.diff(ptr) > 0, np.diff(ptr) - sizes + 1, 0)
    return Rows(np.append(0, np.cumsum(sizes)), node, degree.astype(np.int64) - 1, right)


@dataclass(frozen=True, eq=False)
class FeedbackBound(Proof):
    """No feedback vertex set of a multigraph weighs less than `lower`, the sum of what parts prove, which
    have no nodes in common; checked: False where more was found than they prove.
    """

    lower: int
    method: str
    parts: Sequence[PartBound] = ()
    checked: bool = True

    def check(self, core: Multigraph) -> None:
        """Prove the bound from the multigraph alone."""
        met = np.concatenate([np.zeros(0, np.int64), *(part.nodes for part in self.parts)])
        if len(sorted_set(met)) < len(met):
            raise BadCertificate(f"{self.method}: two parts have a node in common")
        proved = 0
        for number, part in enumerate(self.parts):
            try:
                proved += part.proved(core)
            except BadCertificate as error:
                raise BadCertificate(f"{self.method}: part {number}: {error}") from None
        if proved < self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.lower}"
            )
