"""What proves a bound of branch and cut: cuts, dual values of each case, and the tree of the cases.

Nothing here is shared with what finds the bound, but for the cuts' right sides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from app.bounds.certificate import BadCertificate, Bound, cuts_up, exact_sum
from app.bounds.tour.cuts import Cuts
from app.bounds.tour.one_tree import SHORTEST
from app.graphs.keys import sorted_set
from app.graphs.metric import MOST_TABLE_POINTS, Metric

LARGEST = 1 << 52  # of a city's value, and of the sum of those of cuts
MOST_OF_SETS = 1 << 58  # of the sum over the sets of all cuts
MOST_PLACES = 24
MOST_KEPT = 200  # edges for each city that tours below `left_out_by` may have
PIECE = 1 << 20  # pairs of cities looked at together

Split = tuple[tuple[int, int], int]  # of a divided case: its edge, the number of its first child
Fixed = tuple[tuple[int, int], bool, "Fixed"] | None  # an edge, whether a case's tours have it; the rest


@dataclass(frozen=True, eq=False)
class Duals:
    """Dual values in multiples of 2^-places: pi [n] int64 of cities, y [k] int64 at least 0 of `cuts` [k]."""

    pi: np.ndarray
    cuts: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class CutTree(Bound):
    """No tour is shorter than `lower`.

    set_ptr, set_nodes   sets of cities       [s+1], [set_ptr[s]] int64
    cut_ptr, cut_sets    cuts made of them    [c+1], [cut_ptr[c]] int64: one set, or a handle and its teeth
    root                 values that prove a bound over all edges
    left_out_by          a length: edges that no shorter tour has, by the root's values, are left out;
                         None: no edge is, and the root's bound is all
    splits               of each case the edge that tells its children apart, and the number of the child
                         without it, the next one being that with it; None where the case is not divided
    values               of each case that is not divided
    """

    lower: int
    method: str
    places: int
    set_ptr: np.ndarray
    set_nodes: np.ndarray
    cut_ptr: np.ndarray
    cut_sets: np.ndarray
    root: Duals
    left_out_by: int | None = None
    splits: Sequence[Split | None] = ()
    values: Sequence[Duals | None] = ()

    @staticmethod
    def of(
        lower: int, method: str, places: int, cuts: Cuts, root: Duals, left_out_by: int | None = None,
        splits: Sequence[Split | None] = (), values: Sequence[Duals | None] = (),
    ) -> "CutTree":  # fmt: skip
        """With those cuts alone that have a value somewhere."""
        named = [root, *(each for each in values if each is not None)]
        used = sorted_set(np.concatenate([each.cuts for each in named])).astype(np.int64)
        of_sets = [cuts.cuts[cut] for cut in used.tolist()]
        sets = sorted({number for cut in of_sets for number in cut})
        place = {number: at for at, number in enumerate(sets)}
        lists = _lists([cuts.members[number] for number in sets])
        lists += _lists([[place[number] for number in cut] for cut in of_sets])

        def among(duals: Duals | None) -> Duals | None:
            return None if duals is None else replace(duals, cuts=np.searchsorted(used, duals.cuts))

        proofs = [among(each) for each in values]
        return CutTree(lower, method, places, *lists, among(root), left_out_by, splits, proofs)

    def check(self, metric: Metric) -> None:
        """Prove the bound from the distances alone. Raises BadCertificate."""
        proved = _Proof(self, metric).value()
        if proved < self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.lower}"
            )

    def refuse(self, what: str) -> BadCertificate:
        """The error that says what is wrong."""
        return BadCertificate(f"{self.method}: {what}")


class _Proof:
    """The work of a check."""

    def __init__(self, tree: CutTree, metric: Metric) -> None:
        self.tree, self.metric, self.n = tree, metric, metric.n
        if metric.n < SHORTEST:
            raise tree.refuse(f"tours of {metric.n} points are no cycles")
        if metric.n > MOST_TABLE_POINTS:
            raise tree.refuse(f"{metric.n} points have too many edges")
        if not 0 <= tree.places <= MOST_PLACES:
            raise tree.refuse(f"values in multiples of 2^-{tree.places}")
        self.member = self._sets()
        self.right = self._cuts()

    def value(self) -> int:
        """The length that no tour falls below."""
        tree, one = self.tree, 1 << self.tree.places
        bound = self._constant(tree.root)
        for _, _, reduced in self._all_edges(tree.root):
            bound += exact_sum(np.minimum(reduced, 0))
        if tree.left_out_by is None:
            return -(-bound // one)
        self._keep_edges(bound)
        least, seen = tree.left_out_by, 0
        waiting: list[tuple[int, Fixed]] = [(0, None)]
        while waiting:
            case, fixed = waiting.pop()
            seen += 1
            if seen > len(tree.splits):
                raise tree.refuse("a case that two others have below them")
            if tree.splits[case] is None:
                least = min(least, -(-self._case(tree.values[case], fixed) // one))
            else:
                waiting += self._below(case, fixed)
        return least

    def _sets(self) -> sp.csr_array:
        """[s, n] int64: 1 where a city is a member."""
        tree = self.tree
        _check_lists(tree, tree.set_ptr, tree.set_nodes, self.n, "set")
        sizes = self._sizes = np.diff(tree.set_ptr)
        ones = np.ones(len(tree.set_nodes), dtype=np.int64)
        matrix = sp.csr_array((ones, tree.set_nodes, tree.set_ptr), shape=(len(sizes), self.n), copy=True)
        matrix.sum_duplicates()
        if (sizes >= self.n).any() or matrix.nnz < len(tree.set_nodes):
            raise tree.refuse("a set names a city twice, or all cities")
        return matrix

    def _cuts(self) -> np.ndarray:
        """[c] right sides; combs must be combs."""
        tree = self.tree
        _check_lists(tree, tree.cut_ptr, tree.cut_sets, self.member.shape[0], "cut")
        sizes = np.diff(tree.cut_ptr)
        for cut in np.flatnonzero(sizes > 1).tolist():
            handle, *teeth = tree.cut_sets[tree.cut_ptr[cut] : tree.cut_ptr[cut + 1]].tolist()
            if self._sizes[teeth].sum() > self.n:
                raise tree.refuse(f"cut {cut} is no comb: its teeth have more than all cities")
            inside = set(self._members(handle))
            sets = [set(self._members(tooth)) for tooth in teeth]
            apart = len(set().union(*sets)) == sum(map(len, sets))
            if len(teeth) < 3 or len(teeth) % 2 == 0 or not apart:
                raise tree.refuse(f"cut {cut} is no comb: an odd number of disjoint teeth would be right")
            if any(not tooth & inside or tooth <= inside for tooth in sets):
                raise tree.refuse(f"cut {cut} is no comb: a tooth lies inside the handle, or outside it")
        return np.where(sizes == 1, 2, 3 * (sizes - 1) + 1)

    def _members(self, number: int) -> list[int]:
        return self.tree.set_nodes[self.tree.set_ptr[number] : self.tree.set_ptr[number + 1]].tolist()

    def _weights(self, values: Duals) -> np.ndarray:
        """[s] what the values of cuts give each set; the values are looked at."""
        tree, known = self.tree, len(self.right)
        if values.pi.shape != (self.n,) or values.pi.dtype != np.int64 or values.y.dtype != np.int64:
            raise tree.refuse("not every city has a value")
        if int(np.abs(values.pi.astype(object)).max(initial=0)) > LARGEST:
            raise tree.refuse(f"a city's value beyond {LARGEST}")
        if values.y.shape != values.cuts.shape or (values.cuts < 0).any() or (values.cuts >= known).any():
            raise tree.refuse("a value of an unknown cut")
        if len(values.cuts) > known:
            raise tree.refuse("more values than cuts")
        if (values.y < 0).any() or sum(values.y.tolist()) > LARGEST:
            raise tree.refuse("a cut has a negative value, or all have too much")
        sizes = np.diff(tree.cut_ptr)
        of_sets = sum(size * y for size, y in zip(sizes[values.cuts].tolist(), values.y.tolist()))
        if of_sets > MOST_OF_SETS:
            raise tree.refuse("the sets of cuts have too much together")
        y = np.zeros(known, dtype=np.int64)
        np.add.at(y, values.cuts, values.y)
        weight = np.zeros(self.member.shape[0], dtype=np.int64)
        np.add.at(weight, tree.cut_sets, np.repeat(y, sizes))
        return weight

    def _constant(self, values: Duals) -> int:
        self._weights(values)
        rights = self.right[values.cuts].tolist()
        return 2 * sum(values.pi.tolist()) + sum(r * y for r, y in zip(rights, values.y.tolist()))

    def _all_edges(self, values: Duals) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Edges i < j and their reduced costs, some rows of the table of all pairs at a time."""
        weight = self._weights(values)
        around = sp.csr_array(self.member.T)
        weighed = sp.csr_array(self.member * weight[:, None])
        of_city = values.pi + around @ weight
        rows = max(1, PIECE // self.n)
        for first in range(0, self.n, rows):
            at = np.arange(first, min(first + rows, self.n))
            common = (around[at] @ weighed).toarray()
            reduced = self.metric.between(at[:, None], np.arange(self.n)) << self.tree.places
            reduced = reduced - of_city[at, None] - of_city + 2 * common
            i, j = np.nonzero(np.arange(self.n) > at[:, None])
            yield at[i], j, reduced[i, j]

    def _keep_edges(self, bound: int) -> None:
        """The edges that a tour shorter than left_out_by may have; others cost too much."""
        tree, pieces = self.tree, []
        most = ((tree.left_out_by - 1) << tree.places) - bound
        for i, j, reduced in self._all_edges(tree.root):
            kept = reduced <= most
            pieces.append(np.column_stack([i[kept], j[kept]]))
            if sum(map(len, pieces)) > MOST_KEPT * self.n:
                raise tree.refuse(f"a length of {tree.left_out_by} leaves out too few edges")
        self.i, self.j = np.concatenate([np.zeros((0, 2), dtype=np.int64), *pieces]).T
        self.cost = self.metric.between(self.i, self.j) << tree.places
        self.place = {edge: at for at, edge in enumerate(zip(self.i.tolist(), self.j.tolist()))}
        columns = self.member.tocsc()
        self.left = sp.csr_array(
            abs(columns[:, self.i] - columns[:, self.j])
        )  # [s, edges] 1: the edge leaves

    def _case(self, values: Duals | None, fixed: Fixed) -> int:
        """The bound of a case, in multiples of 2^-places."""
        if values is None:
            raise self.tree.refuse("a case without values")
        weights = self._weights(values)
        reduced = self.cost - values.pi[self.i] - values.pi[self.j] - self.left.T @ weights
        counted = np.minimum(reduced, 0)
        while fixed is not None:
            edge, with_edge, fixed = fixed
            at = self.place[edge]
            counted[at] = reduced[at] if with_edge else 0
        return self._constant(values) + exact_sum(counted)

    def _below(self, case: int, fixed: Fixed) -> list[tuple[int, Fixed]]:
        """The two cases of an edge: every tour of this case falls into one of them."""
        edge, child = self.tree.splits[case]
        if edge not in self.place or not case < child < len(self.tree.splits) - 1:
            raise self.tree.refuse(f"case {case} has no two cases below it")
        return [(child + with_edge, (edge, bool(with_edge), fixed)) for with_edge in (0, 1)]


def _lists(lists: Sequence[Sequence[int] | np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(ptr, entries) of lists one behind the other."""
    ptr = np.append(0, np.cumsum([len(each) for each in lists])).astype(np.int64)
    return ptr, np.array([number for each in lists for number in each], dtype=np.int64)


def _check_lists(tree: CutTree, ptr: np.ndarray, entries: np.ndarray, most: int, word: str) -> None:
    """Whether ptr cuts the entries, all from 0 to before `most`, into lists that are not empty."""
    whole = cuts_up(ptr, len(entries)) and (np.diff(ptr) > 0).all()
    if not whole or (entries < 0).any() or (entries >= most).any():
        raise tree.refuse(f"an empty {word}, or one with unknown entries")
