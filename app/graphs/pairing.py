"""Two graphs, the nodes of one to be put on those of the other, in whole numbers: quadratic assignment.

A Pairing is what is asked: graphs A and B as matrices, what putting a node on another is worth by itself, and
pairs that are known. Its answer is a mapping [n] int64: the node of B that each node of A is put on, no two
on the same one, -1 where there is none left. A Quadratic is the same as searches and bounds want it: to be
minimised over permutations, without what is known already.

Source   Koopmans and Beckmann, Assignment problems and the location of economic activities, 1957
"""

import ctypes
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.errors import GraphError
from app.graphs.ids import one_id
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ENTRIES = function("lk_pairing_entries", Long, *(Pointer,) * 6)
PRODUCTS = function("lk_pairing_products", Long, Long, *(Pointer,) * 8, returns=Long)
QAP, ALIGNMENT = "qap", "alignment"
LARGEST = 1 << 56  # of all products of entries together, in units
FINEST = 30  # binary digits of numbers that have more than 8 decimals
MOST_DECIMALS = 8
BYTES, TABLED = 64, 3000  # of tables, for each pair of nodes, at most; nodes that have some, at most


@dataclass(frozen=True, eq=False)
class Given:
    """Two graphs as a file or a caller has them, matrices of any numbers, in the order of their numbers.

    gain, seeds   as of a Pairing, of any numbers; None: nothing is said
    others, labels   as of a Pairing; None: by number
    """

    a: sp.csr_array
    b: sp.csr_array
    gain: sp.csr_array | None = None
    seeds: np.ndarray | None = None
    others: np.ndarray | None = None
    labels: list[Any] | None = None


@dataclass(frozen=True, eq=False)
class Pairing:
    """What is asked of two graphs.

    The value of a mapping p is the sum of a_ij b_p(i)p(j) over pairs of nodes (i, j), or half of it, and of
    gain_i,p(i); nodes without a place count for nothing.

    a, b       [n, n], [m, m] csr_array int64, columns ascending, no zeros
    gain       [n, m] csr_array int64, likewise
    seeds      [n] int64, where a node has to be; -1: anywhere
    halved     whether half of the sum over pairs counts: each edge without direction once
    maximise   whether large values are sought
    unit       objective = value * unit
    ids, others   [n], [m] what files call the nodes of A, and of B
    labels     what a caller calls those of B; None: by their ids
    compiled   whether kernels may be used; sums are equal
    _last      the mapping that was valued last, and its value
    """

    a: sp.csr_array
    b: sp.csr_array
    gain: sp.csr_array
    seeds: np.ndarray
    halved: bool
    maximise: bool
    unit: Fraction
    ids: np.ndarray
    others: np.ndarray
    labels: list[Any] | None = None
    compiled: bool = True
    _last: list[Any] = field(default_factory=list, init=False, repr=False)

    @property
    def n(self) -> int:
        """Nodes of A."""
        return self.a.shape[0]

    @property
    def m(self) -> int:
        """Nodes of B."""
        return self.b.shape[0]

    def called(self, node: int) -> str:
        """A node of B for a message."""
        return one_id(self.others, node) if self.labels is None else repr(self.labels[node])

    def value(self, mapping: np.ndarray) -> int:
        """What a mapping [n] is worth, in units; that of the last one is known."""
        if not self._last or not np.array_equal(self._last[0], mapping):
            total = products(self.a, self.b, mapping, self.compiled) // (2 if self.halved else 1)
            there = np.flatnonzero(mapping >= 0)
            total += int(entries(self.gain, there, mapping[there], self.compiled).sum())
            self._last[:] = mapping.copy(), total
        return self._last[1]

    def kept(self, mapping: np.ndarray) -> tuple[int, int]:
        """How many edges of A a mapping [n] puts on edges of B, and how many there are."""
        edges = self.a.nnz // (2 if self.halved else 1)
        if self.counts:
            return self.value(mapping), edges
        ones = (
            sp.csr_array((np.ones(each.nnz, np.int64), each.indices, each.indptr), shape=each.shape)
            for each in (self.a, self.b)
        )
        return products(*ones, mapping, self.compiled) // (2 if self.halved else 1), edges

    @cached_property
    def counts(self) -> bool:
        """Whether values are numbers of edges: all weigh one, and pairs are worth nothing by themselves."""
        return not self.gain.nnz and all((each.data == 1).all() for each in (self.a, self.b))

    @cached_property
    def core(self) -> "Quadratic":
        """What is left to be decided."""
        return core_of(self)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A quadratic assignment: the least of the sum of a_ij b_p(i)p(j) over i, j, of linear_i,p(i) over i,
    and of the constant, over the permutations p of k nodes.

    a, b       [k, k] csr_array int64, nothing on the diagonals      linear   [k, k] csr_array int64
    symmetric  whether a and b are
    scale      cost = value * scale, but for the sign where the value is to be large
    rows, columns   [k] int64, the nodes of A and of B; from n, or m, on there are none
    compiled   as of a Pairing
    """

    a: sp.csr_array
    b: sp.csr_array
    linear: sp.csr_array
    constant: int
    symmetric: bool
    scale: int
    rows: np.ndarray
    columns: np.ndarray
    compiled: bool = True

    @property
    def k(self) -> int:
        """Nodes to be placed."""
        return self.a.shape[0]

    def cost(self, p: np.ndarray) -> int:
        """The cost of a permutation [k] int64."""
        linear = int(entries(self.linear, np.arange(self.k), p, self.compiled).sum())
        return products(self.a, self.b, p, self.compiled) + linear + self.constant

    @cached_property
    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """a, b, linear [k, k] int64 in full."""
        return tuple(np.ascontiguousarray(each.toarray()) for each in (self.a, self.b, self.linear))

    @cached_property
    def columnwise(self) -> tuple[sp.csr_array, sp.csr_array]:
        """The transposes of a and b, rows of which are their columns."""
        if self.symmetric:
            return self.a, self.b
        return tidy(self.a.T), tidy(self.b.T)


# ---- sums --------------------------------------------------------------------------------------------------


def tidy(matrix: Any) -> sp.csr_array:
    """A csr_array of int64 with ascending columns, repeats added, without zeros."""
    found = sp.csr_array(matrix, dtype=np.int64)
    found.sum_duplicates()
    found.eliminate_zeros()
    found.sort_indices()
    return found


def without_loops(matrix: sp.csr_array) -> sp.csr_array:
    """A matrix without the entries of its diagonal, a copy."""
    if not matrix.diagonal().any():  # zeros count for nothing
        return matrix.copy()
    found = sp.coo_array(matrix)
    off = found.row != found.col
    return sp.csr_array((found.data[off], (found.row[off], found.col[off])), shape=found.shape)


def entries(matrix: sp.csr_array, rows: np.ndarray, columns: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[q] int64, the entries of a tidy matrix at pairs of rows and columns [q]; 0 where it has none."""
    if not matrix.nnz:
        return np.zeros(len(rows), dtype=np.int64)
    if compiled and ENTRIES is not None:
        found = np.empty(len(rows), dtype=np.int64)
        given = *_arrays(matrix), *(np.ascontiguousarray(each, dtype=np.int64) for each in (rows, columns))
        ENTRIES(len(rows), *map(address, (*given, found)))
        return found
    width = matrix.shape[1]
    ends = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    keys, wanted = ends * width + matrix.indices, rows.astype(np.int64) * width + columns
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, matrix.data[at], 0)


def products(a: sp.csr_array, b: sp.csr_array, mapping: np.ndarray, compiled: bool = True) -> int:
    """The sum of a_ij b_p(i)p(j) over all i, j that a mapping p [n] int64 has a place for."""
    if compiled and PRODUCTS is not None:
        found = np.zeros(1, dtype=np.int64)
        given = *_arrays(a), *_arrays(b), np.ascontiguousarray(mapping, dtype=np.int64), found
        if PRODUCTS(a.shape[0], b.shape[0], *map(address, given)):
            raise MemoryError("products")
        return int(found[0])
    rows = np.repeat(np.arange(a.shape[0], dtype=np.int64), np.diff(a.indptr))
    on = mapping[rows], mapping[a.indices]
    both = (on[0] >= 0) & (on[1] >= 0)
    return int((a.data[both] * entries(b, on[0][both], on[1][both], False)).sum())


def _arrays(matrix: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where rows begin, columns and entries, as kernels want them."""
    kinds = (matrix.indptr, np.int64), (matrix.indices, np.int32), (matrix.data, np.int64)
    return tuple(np.ascontiguousarray(each, dtype=kind) for each, kind in kinds)


def is_symmetric(matrix: sp.csr_array) -> bool:
    """Whether a tidy matrix is its transpose."""
    if matrix.shape[0] != matrix.shape[1]:
        return False
    other = matrix.T.tocsr()  # with ascending columns
    pairs = zip(*((each.indptr, each.indices, each.data) for each in (matrix, other)))
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


# ---- from numbers ------------------------------------------------------------------------------------------


def whole(values: np.ndarray, what: str) -> tuple[np.ndarray, Fraction]:
    """Numbers [q] as whole numbers int64 of a unit: 1, one of the last of at most 8 decimals, else a power of
    two, rounded to 30 binary digits of the largest.

    what   what one is called in an error
    Raises GraphError for what is no finite number
    """
    if values.dtype.kind in "iub":
        if len(values) and int(max(values.max(), -int(values.min()))) > LARGEST:
            raise GraphError(f"{what} is above {LARGEST}; smaller numbers would be right")
        return values.astype(np.int64), Fraction(1)
    found = values.astype(np.float64)
    if not np.isfinite(found).all():
        raise GraphError(f"{what} is no finite number; numbers would be right")
    largest = float(np.abs(found).max(initial=0.0))
    if largest > LARGEST:
        raise GraphError(f"{what} is {largest:g}; at most {LARGEST} would be right")
    for decimals in range(MOST_DECIMALS + 1):
        rounded = np.round(found, decimals)
        same = (rounded.astype(values.dtype) == values).all()
        if same and largest * 10.0**decimals <= 2.0**52:
            return np.rint(found * 10.0**decimals).astype(np.int64), Fraction(1, 10**decimals)
    exponent = FINEST - int(np.frexp(largest)[1])
    unit = Fraction(1, 2**exponent) if exponent >= 0 else Fraction(2**-exponent)
    return np.rint(np.ldexp(found, exponent)).astype(np.int64), unit


def pairing_of(
    name: str, problem: str, a: sp.csr_array, b: sp.csr_array, gain: sp.csr_array, seeds: np.ndarray,
    ids: np.ndarray, others: np.ndarray, labels: list[Any] | None = None, compiled: bool = True,
) -> Pairing:  # fmt: skip
    """What is asked of graphs as matrices of any numbers [n, n], [m, m], of what pairs are worth by
    themselves [n, m], and of seeds [n].

    In an alignment entries on diagonals, loops, count for nothing.
    Raises GraphError
    """
    a, b, gain = (sp.csr_array(each) for each in (a, b, gain))
    if problem == ALIGNMENT:
        a, b = without_loops(a), without_loops(b)
    (a, of_a), (b, of_b), (gain, of_gain) = (
        _whole_matrix(each, f"{name}: an entry of {what}")
        for each, what in ((a, "the first graph"), (b, "the second graph"), (gain, "the similarities"))
    )
    unit = of_a * of_b
    if gain.nnz and of_gain != unit:
        common = min(of_gain, unit)
        if (of_gain / common).denominator != 1 or (unit / common).denominator != 1:
            common = Fraction(1, of_gain.denominator * unit.denominator)
        a, gain = _times(name, a, unit / common), _times(name, gain, of_gain / common)
        unit = common
    _refuse_overflow(name, a, b, gain)
    both = is_symmetric(a) and is_symmetric(b)
    halved = both and (problem == ALIGNMENT or not (gain.nnz or a.diagonal().any() or b.diagonal().any()))
    if halved and problem == QAP:  # each pair counts twice
        unit *= 2
    maximise = problem == ALIGNMENT
    return Pairing(a, b, gain, seeds, halved, maximise, unit, ids, others, labels, compiled)


def _whole_matrix(matrix: sp.csr_array, what: str) -> tuple[sp.csr_array, Fraction]:
    matrix.sum_duplicates()
    data, unit = whole(matrix.data, what)
    made = sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return tidy(made), unit


def _times(name: str, matrix: sp.csr_array, factor: Fraction) -> sp.csr_array:
    """A matrix times a whole number. Raises GraphError."""
    if int(np.abs(matrix.data).max(initial=0)) * factor.numerator > LARGEST:
        raise GraphError(f"{name}: numbers of too many digits; fewer decimals would be right")
    return tidy(matrix * np.int64(factor.numerator))


def _refuse_overflow(name: str, a: sp.csr_array, b: sp.csr_array, gain: sp.csr_array) -> None:
    """Refuse sums that might not fit 64 bits. Raises GraphError."""
    largest = [int(np.abs(each.data).max(initial=0)) for each in (a, b, gain)]
    sizes = [
        int(np.abs(each.data).sum()) if most * each.nnz < 1 << 62 else sum(map(abs, each.data.tolist()))
        for each, most in zip((a, b, gain), largest)
    ]
    total = min(sizes[0] * largest[1], largest[0] * sizes[1]) + a.shape[0] * largest[2]
    if total > LARGEST:
        right = f"numbers whose products add up to {LARGEST} at most would be right"
        raise GraphError(f"{name}: found products that may add up to {total:.3g}; {right}")


# ---- what is left to be decided ----------------------------------------------------------------------------


def core_of(asked: Pairing) -> Quadratic:
    """The quadratic assignment that a pairing stands for, its seeds and diagonals among what is linear.

    As many nodes without edges are added to the smaller graph as it lacks. Where only one of the graphs is
    symmetric the other is added to its transpose: of each pair of nodes one entry of the symmetric one is
    met by the sum of two of the other, so that twice the cost results.
    """
    n, m, size = asked.n, asked.m, max(asked.n, asked.m)
    sign = -1 if asked.maximise else 1
    a, b = asked.a * np.int64(sign), asked.b
    each = (True, True) if asked.halved else (is_symmetric(a), is_symmetric(b))
    scale = 2 if asked.halved or each[0] != each[1] else 1
    if each[0] != each[1]:
        a, b = (tidy(x + x.T) if not own else x for x, own in zip((a, b), each))
    linear = asked.gain * np.int64(sign * scale)
    fixed = np.flatnonzero(asked.seeds >= 0)
    to = asked.seeds[fixed]
    rows = np.concatenate([np.flatnonzero(asked.seeds < 0), np.arange(n, size)])
    free = np.ones(m, dtype=bool)
    free[to] = False
    columns = np.concatenate([np.flatnonzero(free), np.arange(m, size)])
    a, b, linear = (_padded(x, size) for x in (a, b, linear))
    loops = sp.csr_array(np.outer(a.diagonal(), b.diagonal())) if _loops(a, b) else None
    linear = linear if loops is None else tidy(linear + loops)
    a, b = tidy(without_loops(a)), tidy(without_loops(b))
    all_ = len(fixed) == 0  # then rows and columns are all, in order
    left = linear if all_ else linear[rows][:, columns]
    if len(fixed):
        left = left + a[rows][:, fixed] @ b[columns][:, to].T + a[fixed][:, rows].T @ b[to][:, columns]
    own = tidy(a[fixed][:, fixed]), tidy(b[to][:, to])
    constant = products(*own, np.arange(len(fixed)), asked.compiled)
    constant += int(entries(linear, fixed, to, asked.compiled).sum())
    a, b = (a, b) if all_ else (tidy(a[rows][:, rows]), tidy(b[columns][:, columns]))
    return Quadratic(a, b, tidy(left), constant, any(each), scale, rows, columns, asked.compiled)


def _loops(a: sp.csr_array, b: sp.csr_array) -> bool:
    return bool(a.diagonal().any() and b.diagonal().any())


def _padded(matrix: sp.csr_array, size: int) -> sp.csr_array:
    """A matrix [size, size] with nothing in the rows and columns that it has not."""
    found = tidy(matrix)
    return sp.csr_array(
        (found.data, found.indices, np.append(found.indptr, [found.nnz] * (size - found.shape[0]))),
        shape=(size, size),
    )


def permutation_of(core: Quadratic, mapping: np.ndarray, n: int) -> np.ndarray:
    """[k] int64, a permutation of the core that follows a mapping [n] as far as it can; the rest in order."""
    place = np.full(int(core.columns.max(initial=-1)) + 1, -1, dtype=np.int64)
    place[core.columns] = np.arange(core.k)
    found, used = np.full(core.k, -1, dtype=np.int64), np.zeros(core.k, dtype=bool)
    for i, row in enumerate(core.rows.tolist()):
        to = int(mapping[row]) if row < n else -1
        at = int(place[to]) if 0 <= to < len(place) else -1
        if at >= 0 and not used[at]:
            found[i], used[at] = at, True
    found[found < 0] = np.flatnonzero(~used)
    return found


def mapping_of(core: Quadratic, p: np.ndarray, seeds: np.ndarray, m: int) -> np.ndarray:
    """[n] int64, the mapping that a permutation [k] of the core stands for."""
    found = seeds.copy()
    real = core.rows < len(seeds)
    to = core.columns[p[real]]
    found[core.rows[real]] = np.where(to < m, to, -1)
    return found
