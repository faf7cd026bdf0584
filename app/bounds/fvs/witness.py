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
from typing import NamedTuple

import numpy as np

from app.bounds.certificate import BadCertificate, Proof, cuts_up, exact_sum
from app.graphs.multigraph import Multigraph

LARGEST = 1 << 60  # of the numbers of a check
FREE, KEPT, TAKEN = 0, 1, 2


class Rows(NamedTuple):
    """Inequalities: row i has coefficients[ptr[i]:ptr[i+1]] of nodes[...], and `right` [i]. All int64."""

    ptr: np.ndarray
    nodes: np.ndarray
    coefficients: np.ndarray
    right: np.ndarray


@dataclass(frozen=True, eq=False)
class PartBound:
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

    def proved(self, core: Multigraph) -> int:
        """The least weight that the cases prove. Raises BadCertificate."""
        k = len(self.nodes)
        inside = k and self.nodes.min() >= 0 and self.nodes.max() < core.n
        _require(not k or bool(inside), "a node that is not there")
        _require(len(np.unique(self.nodes)) == k, "a node is named twice")
        weights = core.weights[self.nodes]
        fits = 0 <= self.places < 60 and not (weights > LARGEST >> self.places).any()
        _require(fits, "multipliers of too many places")
        rows = self._rows(core)
        told = cuts_up(self.y_ptr, len(self.y)) and len(self.y) == len(self.y_rows)
        _require(told, "multipliers do not fit their lists")
        count = len(rows.right)
        named = not len(self.y_rows) or (self.y_rows.min() >= 0 and self.y_rows.max() < count)
        _require(bool(named), "a multiplier of no inequality")
        _require(not (self.y < 0).any(), "a multiplier below 0")
        return self._least(rows, weights << self.places)

    def _rows(self, core: Multigraph) -> Rows:
        """The inequalities. Raises BadCertificate where edges or cliques are not there."""
        k, size = len(self.nodes), len(self.edge_u)
        fits = cuts_up(self.edge_ptr, size) and len(self.edge_v) == size
        _require(
            fits and cuts_up(self.clique_ptr, len(self.clique_nodes)), "subgraphs do not fit their lists"
        )
        for nodes in (self.edge_u, self.edge_v, self.clique_nodes):
            _require(not len(nodes) or bool(nodes.min() >= 0 and nodes.max() < k), "a node of no part")
        count = _Edges(core, self.nodes)
        cut = np.repeat(np.arange(len(self.edge_ptr) - 1), np.diff(self.edge_ptr))
        u, v = (end.astype(np.int64) for end in (self.edge_u, self.edge_v))
        key = np.minimum(u, v) * k + np.maximum(u, v)
        order = np.lexsort((key, cut))
        new = np.append(True, (np.diff(cut[order]) != 0) | (np.diff(key[order]) != 0))[: len(order)]
        times = np.diff(np.append(np.flatnonzero(new), len(order)))
        _require(bool((times <= count(u[order][new], v[order][new])).all()), "an edge that is not there")
        return self._with_halves(self._with_cliques(edge_rows(k, self.edge_ptr, u, v), count))

    def _with_cliques(self, rows: Rows, count: "_Edges") -> Rows:
        right = []
        for first, end in zip(self.clique_ptr[:-1].tolist(), self.clique_ptr[1:].tolist()):
            own = self.clique_nodes[first:end].astype(np.int64)
            a, b = np.triu_indices(len(own), 1)
            joined = count(own[a], own[b])
            _require(len(own) > 1 and bool((joined > 0).all()), "nodes of a clique are not joined")
            right.append(len(own) - 1 if (joined == 2).all() else len(own) - 2)
        more = self.clique_nodes.astype(np.int64)
        return Rows(
            np.concatenate([rows.ptr, rows.ptr[-1] + self.clique_ptr[1:]]),
            np.concatenate([rows.nodes, more]),
            np.concatenate([rows.coefficients, np.ones(len(more), dtype=np.int64)]),
            np.concatenate([rows.right, np.array(right, dtype=np.int64)]),
        )

    def _with_halves(self, rows: Rows) -> Rows:
        base, of = len(rows.right), self.half_rows
        fits = cuts_up(self.half_ptr, len(of)) and (not len(of) or bool(of.min() >= 0 and of.max() < base))
        _require(fits, "a sum of inequalities that are not there")
        found = [half_row(rows, of[first:end]) for first, end in zip(self.half_ptr[:-1], self.half_ptr[1:])]
        if not found:
            return rows
        sizes = np.cumsum([len(nodes) for nodes, _, _ in found])
        return Rows(
            np.concatenate([rows.ptr, rows.ptr[-1] + sizes]),
            np.concatenate([rows.nodes, *(nodes for nodes, _, _ in found)]),
            np.concatenate([rows.coefficients, *(each for _, each, _ in found)]),
            np.append(rows.right, [right for _, _, right in found]),
        )

    def _least(self, rows: Rows, weights: np.ndarray) -> int:
        """The least bound of all cases, rounded up."""
        state, cases, at = np.zeros(len(self.nodes), dtype=np.uint8), self.cases.tolist(), 0
        waiting: list[tuple[int, int]] = [(-1, FREE)]  # what is undone and set before the next case
        path: list[int] = []
        best: int | None = None
        while waiting:
            depth, kind = waiting.pop()
            if depth >= 0:
                for node in path[depth + 1 :]:
                    state[node] = FREE
                del path[depth + 1 :]
                state[path[depth]] = kind
            _require(at < len(cases), "cases that are not told")
            case, at = cases[at], at + 1
            if case < 0:
                bound = self._case(rows, weights, state, -1 - case)
                best = bound if best is None else min(best, bound)
                continue
            _require(case < len(state) and state[case] == FREE, "a case that is divided by a node it knows")
            path.append(case)
            waiting += [(len(path) - 1, TAKEN), (len(path) - 1, KEPT)]
        _require(at == len(cases), "more cases than there are")
        return -(-best >> self.places) if best > 0 else 0

    def _case(self, rows: Rows, weights: np.ndarray, state: np.ndarray, which: int) -> int:
        _require(which < len(self.y_ptr) - 1, "a case without multipliers")
        own = slice(int(self.y_ptr[which]), int(self.y_ptr[which + 1]))
        found = bound_of(rows, weights, state, self.y_rows[own], self.y[own])
        _require(found is not None, "multipliers that are too large")
        return found[0]


class _Edges:
    """How many edges join two nodes of a part: 0, 1, 2."""

    def __init__(self, core: Multigraph, nodes: np.ndarray) -> None:
        self.nodes, self.n = nodes, max(core.n, 1)
        self.keys, self.twice = core.row_of() * self.n + core.indices, core.twice

    def __call__(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        if not len(self.keys) or not len(u):
            return np.zeros(len(u), dtype=np.int64)
        wanted = self.nodes[u] * self.n + self.nodes[v]
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[place] == wanted, 1 + self.twice[place].astype(np.int64), 0)


def half_row(rows: Rows, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Nodes, coefficients and right side of half the sum of inequalities, rounded up."""
    sizes = rows.ptr[which + 1] - rows.ptr[which]
    entries = np.arange(sizes.sum()) + np.repeat(rows.ptr[which] - (np.cumsum(sizes) - sizes), sizes)
    nodes, place = np.unique(rows.nodes[entries], return_inverse=True)
    total = np.zeros(len(nodes), dtype=np.int64)
    np.add.at(total, place, rows.coefficients[entries])
    return nodes, (total + 1) // 2, (int(rows.right[which].sum()) + 1) // 2


def edge_rows(n: int, ptr: np.ndarray, u: np.ndarray, v: np.ndarray) -> Rows:
    """The inequalities of subgraphs of n nodes, edges u[i]-v[i] from ptr[c] to ptr[c+1]; each has some."""
    cut = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    keys, degree = np.unique(np.concatenate([cut * n + u, cut * n + v]), return_counts=True)
    owner, node = np.divmod(keys, max(n, 1))
    sizes = np.bincount(owner, minlength=len(ptr) - 1)
    right = np.where(np.diff(ptr) > 0, np.diff(ptr) - sizes + 1, 0)
    return Rows(np.append(0, np.cumsum(sizes)), node, degree.astype(np.int64) - 1, right)


def bound_of(
    rows: Rows, weights: np.ndarray, state: np.ndarray, which: np.ndarray, y: np.ndarray
) -> tuple[int, np.ndarray] | None:
    """What multipliers y of inequalities `which` prove of a case, and [k] what is left of weights; None:
    their sums may leave 63 bits. weights, y and the bound are in the same unit.

    state   [k] uint8, FREE, KEPT or TAKEN
    """
    sizes = rows.ptr[which + 1] - rows.ptr[which]
    entries = np.arange(sizes.sum()) + np.repeat(rows.ptr[which] - (np.cumsum(sizes) - sizes), sizes)
    nodes, factors = rows.nodes[entries], np.repeat(y, sizes)
    about = np.bincount(nodes, weights=rows.coefficients[entries] * factors.astype(np.float64), minlength=1)
    if about.max() > LARGEST:
        return None
    left = weights.copy()
    np.subtract.at(left, nodes, rows.coefficients[entries] * factors)
    term = np.where(state == TAKEN, left, np.where(state == KEPT, 0, np.minimum(left, 0)))
    pays = sum(a * b for a, b in zip(rows.right[which].tolist(), y.tolist()))
    return pays + exact_sum(term), left


@dataclass(frozen=True, eq=False)
class FeedbackBound(Proof):
    """No feedback vertex set of a multigraph weighs less than `lower`, the sum of what parts prove, which
    have no nodes in common; checked: False where more was found than they prove.
    """

    lower: int
    method: str
    parts: Sequence[PartBound]
    checked: bool = True

    def check(self, core: Multigraph) -> None:
        """Prove the bound from the multigraph alone."""
        met = np.concatenate([np.zeros(0, np.int64), *(part.nodes for part in self.parts)])
        if len(np.unique(met)) < len(met):
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


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BadCertificate(otherwise)
