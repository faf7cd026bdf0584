"""The host as a device: NumPy and SciPy, and the compiled kernels where they were built.

Every kernel adds in a documented left-to-right order, so that a row's bits depend on that row alone: not on
how many rows the call has, nor on the rank or the position it is computed at (docs/architecture.md).
"""

from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
from scipy.sparse import _sparsetools

from app.errors import NumericsError
from app.native import (
    aggregation,
    attention,
    distmult,
    dynamic,
    edge_attention,
    edges,
    elementwise,
    gates,
    heads,
    pairs,
)
from app.native.aggregation import HostAggregation
from app.native.attention import HostAttention
from app.native.distmult import HostDistMult
from app.native.dynamic import HostDynamicAttention
from app.native.edge_attention import HostEdgeAttention
from app.native.edges import HostEdgeSums
from app.native.elementwise import HostElementwise
from app.native.gates import HostGates
from app.native.heads import HostHeads
from app.native.library import absence, aligned, lanes
from app.native.pairs import HostPairs
from app.native.products import NativeProducts, available
from app.native.tiled import LEAST_COLUMNS
from app.numerics.elementwise import Dropout
from app.numerics.fused import chained_gram, chained_product
from app.numerics.pieces import row_pieces
from app.numerics.products import LOOKUP_STATES, PLAIN, Finish, Members, Operand, Products

Array = Any  # a NumPy array on the host, a CuPy array on a GPU
OCTET = 8  # rows of one BLAS product: with 8 a row's bits do not depend on its neighbours
LENT_ONES = 1 << 20  # stored values made at a time for SciPy, for a matrix of ones


class HostDevice(
    Products, HostElementwise, HostAttention, HostDynamicAttention, HostDistMult, HostEdgeSums,
    HostEdgeAttention, HostHeads, HostPairs, HostAggregation, HostGates,
):  # fmt: skip
    """NumPy and SciPy on one core of the host, with the compiled kernels of app/native where they were built.

    portable   True: every sum of products is one float32 chain, without BLAS: in dense products each link is
               rounded once (fused multiply and add), in sparse ones twice. The same bits on every
               processor, device and with or without compiled kernels
               False: dense products by BLAS in blocks of 8 rows, which only this kind of processor repeats
    reproducible  False (needs portable False): one BLAS call for a whole product; a row's bits then depend on
               the number of rows
    compiled   False: leave the compiled kernels aside
    """

    name = "cpu"
    xp: ModuleType = np
    direct = True  # MPI may read and write these arrays where they are

    def __init__(self, portable: bool = True, reproducible: bool = True, compiled: bool = True) -> None:
        self.portable, self.reproducible = portable, reproducible
        parts = (
            elementwise,
            attention,
            dynamic,
            distmult,
            edges,
            edge_attention,
            heads,
            pairs,
            aggregation,
            gates,
        )
        built = available() and all(part.available() for part in parts)
        self.native = NativeProducts() if compiled and built else None
        self._ramp = np.arange(0, dtype=np.int32)
        self._ones = np.ones(0, dtype=np.float32)

    def put(self, host: np.ndarray) -> Array:
        """The array on this device; here the very same array."""
        return host

    def get(self, array: Array) -> np.ndarray:
        """The array on the host; here the very same array."""
        return array

    def synchronize(self) -> None:
        """Wait for the device; nothing to wait for on the host."""

    def csr(
        self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray | None, shape: tuple[int, int]
    ) -> Any:
        """A CSR matrix on this device from host arrays.

        data   [nnz] float32, or None: all stored values are one, and take no memory
        """
        # The kernels walk over memory: a view with gaps becomes an array of its own.
        indptr, indices = np.ascontiguousarray(indptr), np.ascontiguousarray(indices)
        ones = np.broadcast_to(np.float32(1), len(indices))
        values = ones if data is None else np.ascontiguousarray(data)
        A = sp.csr_array((values, indices, indptr), shape=shape, copy=False)
        A.tiled = None
        if self.native:
            A.record = self.native.record(A.indptr, A.indices, None if data is None else A.data, shape)
        return A

    def tile(self, A: Any, width: int) -> int:
        """A copy of a matrix tile by tile (native/tiled.py), where it is worth its memory."""
        if self.native and A.tiled is None and width >= LEAST_COLUMNS:
            A.tiled = self.native.tile(A.record, A.nnz)
        return A.tiled.nbytes if A.tiled else 0

    def tiled_bytes(self, shape: tuple[int, int], entries: int, weighted: bool, width: int) -> int:
        """About what `tile` makes of a matrix, with weights or of ones."""
        made = self.native and width >= LEAST_COLUMNS
        return self.native.tiled_bytes(shape, entries, weighted) if made else 0

    def spmm_add(
        self,
        A: Any,
        X: Array,
        Y: Array,
        live: Array | None = None,
        write: bool = False,
        gate: Operand | None = None,
    ) -> None:
        """Y += A X, each entry a chain over the row's entries in stored order.

        A      [n, m] CSR   X [m, c]   Y [n, c], all float32, X and Y row-major
               (where `adds_into_columns`, without write and gate, live of one state) Y may be columns of a
               wider array
        live   [n * states] or None: rows of Y are those of `states` states side by side, and where this is
               zero nobody reads them: they may be left as they are
        write  (only where `writes_products`) Y is not read, each chain starts from 0; a row that is not live
               becomes its sum or zero
        gate   (with `write` and `live`) rows of as many columns as a state has, one for each row of `live`:
               the row of a state is multiplied by (gate > 0), and is zero where not live
        """
        if A.shape[0] != Y.shape[0] or A.shape[1] != X.shape[0] or X.shape[1] != Y.shape[1]:
            raise NumericsError(f"sparse product: {A.shape} times {X.shape} does not fit {Y.shape}")
        if self.native:
            self.native.spmm_add(A.record, X, Y, live, write, gate, A.tiled)
        else:
            self._spmm_plain(A, X, Y)

    def _spmm_plain(self, A: Any, X: Array, Y: Array) -> None:
        """spmm_add through SciPy, which wants stored values: ones are lent to a piece of rows at a time."""
        if A.data.strides != (0,):
            _csr_chain(A.shape[0], A.shape[1], A.indptr, A.indices, A.data, X, Y)
            return
        for lo, hi in row_pieces(A.indptr, LENT_ONES):
            first, last = int(A.indptr[lo]), int(A.indptr[hi])
            indptr = (A.indptr[lo : hi + 1] - first).astype(A.indptr.dtype)
            ones = self.ones(last - first)
            _csr_chain(hi - lo, A.shape[1], indptr, A.indices[first:last], ones, X, Y[lo:hi])

    def zeros(self, shape: tuple[int, ...]) -> Array:
        """A float32 array of zeros that begins at a cache line."""
        out = aligned(shape)
        out[...] = 0
        return out

    def empty(self, shape: tuple[int, ...]) -> Array:
        """A float32 array that begins at a cache line, for a product that writes all of it."""
        return aligned(shape)

    def spmm_lookup(
        self, A: Any, table: Array, code: Array, Y: Array, live: Array | None = None, write: bool = False
    ) -> None:
        """Y += A X for rows of X that stand in a table; see Products.spmm_lookup. write as in spmm_add."""
        if self.native:
            self.native.spmm_lookup(A.record, table, code, Y, live, write)
        else:
            super().spmm_lookup(A, table, code, Y, live)

    def lookup_members(
        self,
        members: np.ndarray,
        table: Array,
        code: Array,
        Y: Array,
        live: Array | None = None,
        write: bool = False,
    ) -> None:
        """spmm_lookup for every graph of a batch; members as in spmm_members."""
        self.native.lookup_members(members, table, code, Y, live, write)

    @property
    def multiplies_members(self) -> bool:
        """True when one call can make the products of many graphs."""
        return self.native is not None

    @property
    def writes_products(self) -> bool:
        """True when a sparse product can write its output, which then need not be zero before."""
        return self.native is not None

    @property
    def adds_into_columns(self) -> bool:
        """True when a sparse product can add into some columns of an array of longer rows."""
        return self.native is not None

    @property
    def makes_rows(self) -> bool:
        """True when a dense product can make rows of its operand as it needs them (Operand.made)."""
        return self.native is not None and self.portable

    def member_table(self, matrices: list[Any], rows: list[tuple[int, int, int]]) -> np.ndarray:
        """What spmm_members needs of a batch, made once.

        rows   for each matrix its first row in X and in Y, and how many states its nodes have
        """
        table = [(*A.record, *own) for A, own in zip(matrices, rows)]
        return np.array(table, dtype=np.int64).reshape(len(table), -1 if table else 0)

    def spmm_members(
        self,
        table: np.ndarray,
        X: Array,
        Y: Array,
        f: int,
        live: Array | None = None,
        write: bool = False,
        gate: Operand | None = None,
    ) -> None:
        """Y += A X for every graph of a batch, its states side by side.

        X, Y   rows of f columns (several may stand in one row of the array)
        live, write, gate   of all rows, as in spmm_add
        """
        self.native.spmm_members(table, X, Y, f, live, write, gate)

    def fold(self, starts: np.ndarray, X: Array) -> Array:
        """Sums of consecutive rows: out[i] = X[starts[i]] + X[starts[i]+1] + ..., from the left.

        starts   [k+1] host integers, ascending     X [m, c] float32 row-major
        returns  [k, c]; an empty segment is zero
        """
        if self.native:
            return self.native.fold(starts, X)
        out = np.zeros((len(starts) - 1, X.shape[1]), dtype=np.float32)
        indptr = np.ascontiguousarray(starts, dtype=np.int32)
        _csr_chain(len(starts) - 1, X.shape[0], indptr, self.ramp(X.shape[0]), self.ones(X.shape[0]), X, out)
        return out

    def column_roots(self, D: Array, starts: np.ndarray, spans: list[tuple[int, int, int]]) -> Array:
        """Sums of the rows of D by subtrees of row blocks; see Products.column_roots."""
        if self.native:
            return self.native.column_roots(D, starts[0], spans)
        return super().column_roots(D, starts, spans)

    def fold_members(self, members: Members, X: Array) -> Array:
        """Sums over the rows of each block and state; see Products.fold_members."""
        return self.native.fold_members(members, X) if self.native else super().fold_members(members, X)

    def dense(self, parts: list[Operand], W: Array, then: Finish = PLAIN, out: Array | None = None) -> Array:
        """[parts] W and what follows it; see Products.dense."""
        if self.native and self.portable:
            return self.native.dense(parts, W, then, out)
        return super().dense(parts, W, then, out)

    def dense_through(self, parts: list[Operand], W: Array, H: Array, drop: Dropout | None) -> None:
        """A gradient in the place of what it goes through; see Products.dense_through."""
        if self.native and self.portable:
            self.native.dense_through(parts, W, H, 1.0 if drop is None else drop.factor)
        else:
            super().dense_through(parts, W, H, drop)

    def dense_pooled(
        self, parts: list[Operand], W: Array, then: Finish, members: Members
    ) -> tuple[Array, Array]:
        """dense, and fold_members of what it returns."""
        if self.makes_rows and len(members.counts) == 1 and members.states <= LOOKUP_STATES:
            return self.native.dense_pooled(parts, W, then, members)
        return super().dense_pooled(parts, W, then, members)

    def gram(self, parts: list[Operand], D: Array, starts: np.ndarray, live: Array | None = None) -> Array:
        """[parts]^T D by row blocks; see Products.gram."""
        if self.native and self.portable:
            return self.native.gram(parts, D, starts, live)
        return super().gram(parts, D, starts, live)

    def gram_roots(
        self,
        parts: list[Operand],
        D: Array,
        starts: np.ndarray,
        spans: list[tuple[int, int, int]],
        live: Array | None = None,
    ) -> Array:
        """[parts]^T D by subtrees of row blocks; see Products.gram_roots."""
        if self.native and self.portable:
            return self.native.gram_roots(parts, D, starts, spans, live)
        return super().gram_roots(parts, D, starts, spans, live)

    def score(self, parts: list[Operand], W: Array, w: Array, then: Finish) -> Array:
        """dense(parts, W, then) times w; see Products.score."""
        if self.native and self.portable:
            return self.native.score(parts, W, w, then)
        return super().score(parts, W, w, then)

    def best_rows(
        self, members: Members, score: Array, candidate: Array, lowest: np.float32, least: np.float32
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best candidate of every state; see Products.best_rows."""
        if self.native:
            return self.native.best_rows(members, score, candidate, lowest, least)
        return super().best_rows(members, score, candidate, lowest, least)

    def gated_spread(self, values: Array, index: Array, gate: Array) -> Array:
        """values[index] * (gate > 0); see Products.gated_spread."""
        if self.native:
            return self.native.gated_spread(values, index, gate)
        return super().gated_spread(values, index, gate)

    def chains(self, X: Array, W: Array) -> Array:
        """X W without BLAS; see Products.chains."""
        return self.native.dense([Operand(X)], W, PLAIN) if self.native else chained_product(X, W)

    def row_product(self, X: Array, W: Array) -> Array:
        """X W so that a row's bits depend on that row and W alone.

        X   [r, k], r a multiple of 8     W [k, m]
        returns [r, m] row-major
        """
        r, k = X.shape
        m = W.shape[1]
        if self.portable:
            return self.chains(X, W)
        if not self.reproducible:
            return np.matmul(X, W)
        if m == 1:  # BLAS would take a matrix-vector path
            return (X * W[:, 0]).sum(axis=1, keepdims=True)
        if k == 1:
            return X * W
        return np.matmul(X.reshape(-1, OCTET, k), W).reshape(r, m)

    def block_gram(self, X: Array, D: Array, starts: np.ndarray) -> Array:
        """X^T D, one addend for each row block: a chain over its rows, graph by graph.

        X   [r, k]   D [r, m]   starts [graphs, blocks+1] host integers: see Products.gram
        returns [blocks, k*m]; an empty block is zero
        """
        if self.portable:
            return self.native.gram([Operand(X)], D, starts) if self.native else chained_gram(X, D, starts)
        k, m = X.shape[1], D.shape[1]
        graphs, blocks = starts.shape[0], starts.shape[1] - 1
        addends = np.zeros((blocks, graphs, k * m), dtype=np.float32)
        for g, own in enumerate(starts):
            for b, (lo, hi) in enumerate(pairwise(own.tolist())):
                addends[b, g] = (X[lo:hi].T @ D[lo:hi]).reshape(-1)
        return self.fold(np.arange(blocks + 1) * graphs, addends.reshape(blocks * graphs, k * m))

    def ramp(self, m: int) -> np.ndarray:
        """[m] int32: 0, 1, ..., m-1 (a shared buffer: read only)."""
        if len(self._ramp) < m:
            self._ramp = np.arange(max(m, 2 * len(self._ramp)), dtype=np.int32)
        return self._ramp[:m]

    def ones(self, m: int) -> np.ndarray:
        """[m] float32 ones (a shared buffer: read only)."""
        if len(self._ones) < m:
            self._ones = np.ones(max(m, 2 * len(self._ones)), dtype=np.float32)
        return self._ones[:m]

    @property
    def product(self) -> str:
        """What makes sparse products."""
        if self.native:
            return f"compiled kernel, {32 * lanes()}-bit registers"
        return f"SciPy {scipy.__version__}, no compiled kernel: {absence() or 'run.kernels = plain'}"

    def describe(self) -> str:
        """One line for the log."""
        dense = "one chain per element" if self.portable else "BLAS"
        return f"cpu, NumPy {np.__version__}, dense products: {dense}"


def _csr_chain(
    n: int, m: int, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, X: np.ndarray, Y: np.ndarray
) -> None:
    """Y += CSR X through SciPy's kernel, which adds in stored order and into its output."""
    if not (X.flags.c_contiguous and Y.flags.c_contiguous):
        raise NumericsError("sparse product: operands must be row-major")
    _sparsetools.csr_matvecs(n, m, X.shape[1], indptr, indices, data, X.reshape(-1), Y.reshape(-1))
