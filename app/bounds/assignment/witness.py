"""What proves that no assignment costs less, checked from the quadratic assignment alone."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from app.bounds.certificate import BadCertificate, Proof
from app.graphs.pairing import Quadratic

EXACT_FLOAT = 1 << 52
LARGEST_TOP = 1 << 61  # of a multiplier that a cost is compared with, and nothing else
MOST = 1 << 52  # of a multiplier, so that sums of all of a row fit
Tables = tuple[np.ndarray, np.ndarray, np.ndarray, int]  # a, b, linear [k, k] int64, constant


# ---- each node by itself -----------------------------------------------------------------------------------


def node_costs(core: Quadratic) -> np.ndarray:
    """[k, k] int64, at (i, x) the least that node i can cost at place x, its edges with all others included.

    The least sum of products of two rows pairs the smallest of one with the largest of the other (Gilmore
    1962, Lawler 1963), diagonals left out. Where the graphs are not symmetric it is of rows, as is the cost.
    """
    return row_products(core.a.toarray(), core.b.toarray()) + core.linear.toarray()


def row_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[k, k] int64, the least sum of products of row i of a and row x of b [k, k], diagonals left out."""
    first, second = _sorted_rows(a), -_sorted_rows(-b)
    used = first.any(axis=0) & second.any(axis=0)
    first, second = first[:, used], second[:, used]
    largest = int(np.abs(first).max(initial=0)) * int(np.abs(second).max(initial=0)) * first.shape[1]
    if largest < EXACT_FLOAT:  # whole numbers that float64 adds exactly, in any order
        return (first.astype(np.float64) @ second.T.astype(np.float64)).astype(np.int64)
    return first @ second.T


def _sorted_rows(full: np.ndarray) -> np.ndarray:
    """[k, k - 1] int64, each row in ascending order, without the diagonal."""
    k = len(full)
    if not k:
        return full
    rest = full[~np.eye(k, dtype=bool)].reshape(k, k - 1)
    return np.sort(rest, axis=1)


def degree_sum(core: Quadratic) -> int:
    """The least of the sum over edges of A where all weights are one number, and those of B: no node keeps
    more edges than it has on either side, and sorted degrees keep most. Raises BadCertificate elsewhere.
    """
    for matrix in (core.a, core.b):
        if matrix.nnz and (matrix.data != matrix.data[0]).any():
            raise BadCertificate("degrees: weights differ")
    least = _row_minima(core.linear)
    if not (core.a.nnz and core.b.nnz):
        return least + core.constant
    each = int(core.a.data[0]) * int(core.b.data[0])
    if each > 0:
        return least + core.constant
    degrees = (np.sort(np.diff(matrix.indptr).astype(np.int64)) for matrix in (core.a, core.b))
    return each * int(np.minimum(*degrees).sum()) + least + core.constant


def _row_minima(matrix: sp.csr_array) -> int:
    """The sum of the least entries of all rows, zeros among them."""
    full = np.diff(matrix.indptr) == matrix.shape[1]
    least = np.zeros(matrix.shape[0], dtype=np.int64)
    for i in np.flatnonzero(np.diff(matrix.indptr)).tolist():
        low = int(matrix.data[matrix.indptr[i] : matrix.indptr[i + 1]].min())
        least[i] = low if full[i] else min(low, 0)
    return int(least.sum())


def by_rows(costs: np.ndarray, top: np.ndarray) -> int:
    """What an assignment by costs [k, k] costs at least, by multipliers of the rows [k]: their sum, and that
    of the least entries that they leave in each column.
    """
    low = (costs - top[:, None]).min(axis=0) if len(costs) else top
    return sum(top.tolist()) + sum(low.tolist())


# ---- pairs of nodes ----------------------------------------------------------------------------------------


def tables_of(core: Quadratic) -> Tables:
    """The question in full."""
    return (*core.tables, core.constant)


def placed(tables: Tables, i: int, x: int) -> Tables:
    """The question that is left where node i is at place x."""
    a, b, linear, constant = tables
    more = np.outer(a[i], b[x]) + np.outer(a[:, i], b[:, x]) + linear
    rows, columns = (np.delete(np.arange(len(a)), at) for at in (i, x))
    left = (a[np.ix_(rows, rows)], b[np.ix_(columns, columns)], more[np.ix_(rows, columns)])
    return (*left, constant + int(linear[i, x]))


def left_by(tables: Tables, top: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> tuple[int, np.ndarray]:
    """The bound that multipliers prove, and what they leave of linear costs [k, k], 0 or more.

    Where x_ix says that node i is at place x, products x_ix x_jy cost a_ij b_xy. For each x_ix its row j has
    exactly one product x_ix x_jy, worth rows[i, x, j] each, and so does each place y, columns[i, x, y]: that
    much is taken off the products and put on x_ix. What is left of a product and of its mirror image must not
    be below 0 together; then they are dropped, and x is bounded by rows and columns of what is on x_ix.

    top   [k]     rows, columns   [k, k, k] int64
    Raises BadCertificate

    Source   the dual of the level-1 reformulation (Adams and Johnson 1994)
    """
    a, b, linear, constant = tables
    k, every = len(a), np.arange(len(a))
    rows, columns = rows.copy(), columns.copy()
    rows[every, :, every] = 0  # no node has a product with itself, and no place
    columns[:, every, every] = 0
    for i in range(k):  # [x, j, y] of node i
        left = a[i][None, :, None] * b[:, None, :] - rows[i][:, :, None] - columns[i][:, None, :]
        left += a[:, i][None, :, None] * b.T[:, None, :] - rows[:, :, i][None] - columns.transpose(2, 0, 1)
        left[:, i, :] = 0
        left[every, :, every] = 0
        if (left < 0).any():
            raise BadCertificate(f"products of node {i} are left below 0")
    total = linear + rows.sum(axis=2) + columns.sum(axis=2) - top[:, None]
    low = total.min(axis=0) if k else np.zeros(0, dtype=np.int64)
    return constant + int(top.sum()) + int(low.sum()), total - low[None, :]


# ---- certificates ------------------------------------------------------------------------------------------

BY_DEGREES, BY_NODES, BY_PAIRS = "degree sequences", "Gilmore-Lawler", "dual ascent"


@dataclass(frozen=True, eq=False)
class AssignmentBound(Proof):
    """A bound on the cost of every assignment, `lower`.

    By degrees it needs no witness; by nodes `top` [k] are multipliers of rows. By pairs the nodes of a tree
    of cases, in the order of a depth first search, have multipliers each, in parts of `one`: where j nodes
    are left top [j], rows and columns [j, j, j], one after the other. Where they prove `lower` no more is to
    say; else `branch` is the node that is put on each place in turn, those left out that the multipliers
    prove to cost `lower` by themselves.

    by   BY_DEGREES, BY_NODES or BY_PAIRS
    """

    lower: int
    method: str
    by: str
    one: int
    top: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    branch: np.ndarray
    checked: bool = True

    def check(self, core: Quadratic) -> None:
        """Prove the bound from the question alone; raises BadCertificate."""
        if self.by == BY_PAIRS:
            self._check_pairs(core)
            return
        if self.by == BY_DEGREES:
            proved = degree_sum(core)
        elif self.by == BY_NODES:
            if len(self.top) != core.k or _too_large(self.top, LARGEST_TOP):
                raise BadCertificate(f"{self.method}: needs {core.k} multipliers of a size that can be added")
            proved = by_rows(node_costs(core), self.top) + core.constant
        else:
            raise BadCertificate(f"{self.by}: no kind of bound")
        if -(-proved // core.scale) * core.scale < self.lower:
            raise BadCertificate(f"{self.method}: proves {proved}, not {self.lower}")

    def _check_pairs(self, core: Quadratic) -> None:
        if self.one < 1 or any(_too_large(each) for each in (self.top, self.rows, self.columns)):
            raise BadCertificate(f"{self.method}: multipliers out of range")
        a, b, linear, constant = tables_of(core)
        sizes = (int(np.abs(each).max(initial=0)) for each in (a, b, linear))
        largest = next(sizes) * next(sizes) * core.k + next(sizes) + abs(constant)
        if largest * self.one > MOST or self.lower % core.scale:
            raise BadCertificate(
                f"{self.method}: parts that are too small, or a bound that no cost rounds to"
            )
        todo: list[Tables] = [(a * self.one, b, linear * self.one, constant * self.one)]
        parts = _parts(self)
        goal = (
            self.one * (self.lower - core.scale) + 1
        )  # what is above rounds up to the next cost there can be
        for i in self.branch.tolist():
            if not todo:
                raise BadCertificate(f"{self.method}: has cases beside its tree")
            here = todo.pop()
            k = len(here[0])
            found, rest = left_by(here, *parts(k))
            if found >= goal:
                continue
            if not 0 <= i < k:
                raise BadCertificate(f"{self.method}: a case proves {found / self.one:g}, not {self.lower}")
            left = np.flatnonzero(found + rest[i] < goal)
            todo += [placed(here, i, x) for x in left[::-1].tolist()]
        if todo:
            raise BadCertificate(f"{self.method}: cases are missing")


def _too_large(values: np.ndarray, most: int = MOST) -> bool:
    """Whether some are beyond what sums have room for."""
    return bool(((values > most) | (values < -most)).any())


def _parts(proof: AssignmentBound) -> Callable[[int], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """A function that cuts the next multipliers, for k nodes."""
    at = [0, 0]

    def cut(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        top = proof.top[at[0] : at[0] + k]
        rows, columns = (each[at[1] : at[1] + k**3] for each in (proof.rows, proof.columns))
        at[0], at[1] = at[0] + k, at[1] + k**3
        if not len(top) == k or not len(rows) == len(columns) == k**3:
            raise BadCertificate(f"{proof.method}: multipliers are missing")
        return top, rows.reshape(k, k, k), columns.reshape(k, k, k)

    return cut
