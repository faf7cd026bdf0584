"""What proofs by inequalities over nodes and cases share: the least that multipliers and cases prove.

For weights w and multipliers y >= 0 of inequalities a x >= b, a set x weighs at least sum of y b + sum over v
of the least (w_v - sum of y a_v) x_v that a case lets x_v have: 0 where v is kept, w_v - sum of y a_v where
it is taken, the lesser of the two else.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from app.bounds.certificate import BadCertificate, cuts_up, exact_sum
from app.graphs.keys import sorted_set
from app.graphs.lists import entries_of, ranges

LARGEST = 1 << 60  # of the numbers of a check
FREE, KEPT, TAKEN = 0, 1, 2


def require(holds: bool, otherwise: str) -> None:
    """Raises BadCertificate where a witness is not what it has to be."""
    if not holds:
        raise BadCertificate(otherwise)


class Rows(NamedTuple):
    """Inequalities: row i has coefficients[ptr[i]:ptr[i+1]] of nodes[...], and `right` [i]. All int64."""

    ptr: np.ndarray
    nodes: np.ndarray
    coefficients: np.ndarray
    right: np.ndarray


class CaseProof(ABC):
    """Of the part of a set among some nodes of a graph, in whose fields a subclass has

    nodes            [k] int64, of the graph; all else counts them 0..k-1
    half_ptr         [h+1] int64, sums of the inequalities half_rows (int32) of `base_rows`; counted behind
    cases            int64, in preorder: v >= 0: of the two that follow the first keeps v, the second takes
                     it; -1 - i: a case that multipliers i prove
    y_ptr            [l+1] int64, multipliers: of inequalities y_rows (int32), values y (int64) / 2^places
    """

    nodes: np.ndarray
    half_ptr: np.ndarray
    half_rows: np.ndarray
    cases: np.ndarray
    y_ptr: np.ndarray
    y_rows: np.ndarray
    y: np.ndarray
    places: int

    @abstractmethod
    def base_rows(self, core: Any) -> Rows:
        """The inequalities, but for halves of their sums. Raises BadCertificate where they do not hold."""

    def proved(self, core: Any) -> int:
        """The least weight that the cases prove. Raises BadCertificate."""
        k = len(self.nodes)
        inside = k and self.nodes.min() >= 0 and self.nodes.max() < core.n
        require(not k or bool(inside), "a node that is not there")
        require(len(sorted_set(self.nodes)) == k, "a node is named twice")
        weights = core.weights[self.nodes]
        fits = 0 <= self.places < 60 and not (weights > LARGEST >> self.places).any()
        require(fits, "multipliers of too many places")
        rows = self._with_halves(self.base_rows(core))
        told = cuts_up(self.y_ptr, len(self.y)) and len(self.y) == len(self.y_rows)
        require(told, "multipliers do not fit their lists")
        count = len(rows.right)
        named = not len(self.y_rows) or (self.y_rows.min() >= 0 and self.y_rows.max() < count)
        require(bool(named), "a multiplier of no inequality")
        require(not (self.y < 0).any(), "a multiplier below 0")
        return self._least(rows, weights << self.places)

    def _with_halves(self, rows: Rows) -> Rows:
        base, of = len(rows.right), self.half_rows
        fits = cuts_up(self.half_ptr, len(of)) and (not len(of) or bool(of.min() >= 0 and of.max() < base))
        require(fits, "a sum of inequalities that are not there")
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
            require(at < len(cases), "cases that are not told")
            case, at = cases[at], at + 1
            if case < 0:
                bound = self._case(rows, weights, state, -1 - case)
                best = bound if best is None else min(best, bound)
                continue
            require(case < len(state) and state[case] == FREE, "a case that is divided by a node it knows")
            path.append(case)
            waiting += [(len(path) - 1, TAKEN), (len(path) - 1, KEPT)]
        require(at == len(cases), "more cases than there are")
        return -(-best >> self.places) if best > 0 else 0

    def _case(self, rows: Rows, weights: np.ndarray, state: np.ndarray, which: int) -> int:
        require(which < len(self.y_ptr) - 1, "a case without multipliers")
        own = slice(int(self.y_ptr[which]), int(self.y_ptr[which + 1]))
        found = bound_of(rows, weights, state, self.y_rows[own], self.y[own])
        require(found is not None, "multipliers that are too large")
        return found[0]


class Edges:
    """How many edges join two nodes of a part of a graph: 0, 1; of a multigraph 2."""

    def __init__(self, core: Any, nodes: np.ndarray) -> None:
        self.nodes, self.n = nodes, max(core.n, 1)
        self.keys, self.twice = core.row_of() * self.n + core.indices, getattr(core, "twice", None)

    def __call__(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        if not len(self.keys) or not len(u):
            return np.zeros(len(u), dtype=np.int64)
        wanted = self.nodes[u] * self.n + self.nodes[v]
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        more = 0 if self.twice is None else self.twice[place].astype(np.int64)
        return np.where(self.keys[place] == wanted, 1 + more, 0)


def half_row(rows: Rows, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Nodes, coefficients and right side of half the sum of inequalities, rounded up."""
    entries = entries_of(rows.ptr, which)
    nodes, place = np.unique(rows.nodes[entries], return_inverse=True)
    total = np.zeros(len(nodes), dtype=np.int64)
    np.add.at(total, place, rows.coefficients[entries])
    return nodes, (total + 1) // 2, (int(rows.right[which].sum()) + 1) // 2


def bound_of(
    rows: Rows, weights: np.ndarray, state: np.ndarray, which: np.ndarray, y: np.ndarray
) -> tuple[int, np.ndarray] | None:
    """What multipliers y of inequalities `which` prove of a case, and [k] what is left of weights; None:
    their sums may leave 63 bits. weights, y and the bound are in the same unit.

    state   [k] uint8, FREE, KEPT or TAKEN
    """
    sizes = rows.ptr[which + 1] - rows.ptr[which]
    entries = ranges(rows.ptr[which], sizes)
    nodes, factors = rows.nodes[entries], np.repeat(y, sizes)
    about = np.bincount(nodes, weights=rows.coefficients[entries] * factors.astype(np.float64), minlength=1)
    if about.max() > LARGEST:
        return None
    left = weights.copy()
    np.subtract.at(left, nodes, rows.coefficients[entries] * factors)
    term = np.where(state == TAKEN, left, np.where(state == KEPT, 0, np.minimum(left, 0)))
    pays = sum(a * b for a, b in zip(rows.right[which].tolist(), y.tolist()))
    return pays + exact_sum(term), left
