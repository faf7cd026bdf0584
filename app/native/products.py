"""The compiled products (products.c, *_lanes.h): the chains of app/native/device.py without temporaries."""

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from app.errors import NumericsError
from app.native.library import address, aligned, function
from app.native.tiled import LEAST_COLUMNS, TiledMatrix, expected_bytes, lay_out, tiled_height
from app.numerics.products import PLAIN, Finish, Members, Operand

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
LANES = 16  # columns of the small matrix are padded to a multiple of this
MOST_PARTS = 36  # operands side by side in a dense product (products.h)
KEPT_TABLES = 64  # of subtrees of row blocks: a handful a graph


class _Part(ctypes.Structure):
    _fields_ = (("X", Pointer), ("ld", Long), ("k", Long), ("index", Pointer), ("scale", Pointer))


class _Lookup(ctypes.Structure):
    _fields_ = (
        ("graph", Pointer), ("f", Long), ("table", Pointer), ("code", Pointer), ("Y", Pointer),
        ("live", Pointer),
    )  # fmt: skip


class _Pool(ctypes.Structure):
    _fields_ = (("blocks", Long), ("states", Long), ("nodes", Pointer), ("out", Pointer))


class _Dense(ctypes.Structure):
    _fields_ = (
        ("rows", Long), ("parts", Long), ("m", Long), ("mp", Long), ("part", ctypes.POINTER(_Part)),
        ("W", Pointer), ("Z", Pointer), ("ldz", Long), ("base", Pointer), ("ldbase", Long),
        ("base_scale", Pointer), ("relu", Long), ("scale", Pointer), ("gate", Pointer), ("ldgate", Long),
        ("w", Pointer), ("out", Pointer), ("start", Pointer), ("start_index", Pointer),
        ("gate_index", Pointer), ("lookup", ctypes.POINTER(_Lookup)), ("pool", ctypes.POINTER(_Pool)),
        ("through", Pointer), ("ldthrough", Long), ("factor", ctypes.c_float), ("panels", Pointer),
        ("k", Long),
    )  # fmt: skip


class _Gram(ctypes.Structure):
    _fields_ = (
        ("graphs", Long), ("blocks", Long), ("parts", Long), ("m", Long), ("part", ctypes.POINTER(_Part)),
        ("starts", Pointer), ("D", Pointer), ("live", Pointer), ("out", Pointer),
    )  # fmt: skip


class _Gate(ctypes.Structure):
    _fields_ = (("values", Pointer), ("index", Pointer))


SPMM_LIVE = function(
    "lk_spmm_live", Long, Long, ctypes.c_int, Pointer, Pointer, Pointer, Long, Long, Pointer, Pointer,
    Pointer, ctypes.c_int, ctypes.POINTER(_Gate), Long,
)  # fmt: skip
SPMM = function(
    "lk_spmm", Long, Long, ctypes.c_int, Pointer, Pointer, Pointer, Long, Pointer, Pointer, Long,
    Pointer, ctypes.c_int, Long,
)  # fmt: skip
SPMM_MEMBERS = function(
    "lk_spmm_members", Long, Pointer, Long, Pointer, Pointer, Pointer, ctypes.c_int, ctypes.POINTER(_Gate),
    Long,
)  # fmt: skip
TILE_BYTES = function("lk_tile_bytes", returns=Long)
TILE_COLUMNS = function("lk_tile_columns", *(Long,) * 5, returns=Long)
LOOKUP = function("lk_lookup_members", Long, Pointer, Long, *(Pointer,) * 4, ctypes.c_int)
FOLD = function("lk_fold", Long, Pointer, Pointer, Long, Pointer)
COLUMN_ROOTS = function("lk_column_roots", Pointer, Pointer, Long, Long, *(Pointer,) * 3)
POOL = function(
    "lk_pool", Long, Long, Pointer, Pointer, Pointer, Pointer, Long, Long, Pointer, Pointer
)  # fmt: skip
SPREAD = function("lk_gated_spread", Long, Long, Pointer, Pointer, Pointer, Pointer)
DENSE = function("lk_dense", ctypes.POINTER(_Dense))
BEST_ROWS = function("lk_best_rows", Long, *(Pointer,) * 6, ctypes.c_float, ctypes.c_float, Pointer, Pointer)
GRAM = function("lk_gram", ctypes.POINTER(_Gram))
GRAM_ROOTS = function("lk_gram_roots", ctypes.POINTER(_Gram), Long, Pointer, Pointer)


def available() -> bool:
    """True where the library was built."""
    return None not in (
        *(SPMM_LIVE, SPMM, TILE_BYTES, TILE_COLUMNS, SPMM_MEMBERS, LOOKUP),
        *(FOLD, COLUMN_ROOTS, POOL, SPREAD, DENSE, BEST_ROWS, GRAM, GRAM_ROOTS, tiled_height),
    )


class NativeProducts:
    """The kernels behind HostDevice's methods of the same names.

    tile_bytes   of a dense operand that a sparse product reads at a time where rows are long enough
    """

    def __init__(self) -> None:
        self.tile_bytes: int = TILE_BYTES()

    def record(
        self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray | None, shape: tuple[int, int]
    ) -> tuple[int, ...]:
        """What spmm_add needs of a CSR matrix, taken once."""
        if indptr.dtype != indices.dtype:
            raise NumericsError("sparse product: row offsets and columns must have one type")
        return *shape, int(indices.itemsize == 8), address(indptr), address(indices), address(data)

    def spmm_add(
        self,
        record: tuple[int, ...],
        X: np.ndarray,
        Y: np.ndarray,
        live: np.ndarray | None = None,
        write: bool = False,
        gate: Operand | None = None,
        tiled: TiledMatrix | None = None,
    ) -> None:
        """Y += A X, or Y = A X; with a gate of rows of f columns, times (gate > 0). tiled: of A, or None."""
        c = X.shape[1]
        one_state = live is None or len(live) == record[0]
        if tiled and one_state and c >= LEAST_COLUMNS and gate is None and not write:
            _check_rows(X)
            tiled.times(X, Y, _row_length(Y), _vector(live, np.float32))
            return
        if not Y.flags.c_contiguous and gate is None and not write:
            _check_rows(X)
            if not one_state:
                raise NumericsError("sparse product: rows of several states must be row-major")
            rows = _vector(live, np.float32)
            SPMM(*record, c, address(X), address(Y), _row_length(Y), rows, False, self.tile_bytes)
            return
        _check_rows(X, Y)
        if not record[0]:
            return
        f = c if live is None else c * record[0] // max(len(live), 1)
        f = f if gate is None else gate.X.shape[1]
        SPMM_LIVE(
            *record, c, f, address(X), address(Y), _vector(live, np.float32), write, _gate(gate),
            self.tile_bytes,
        )  # fmt: skip

    def tile(self, record: tuple[int, ...], entries: int) -> TiledMatrix | None:
        """The tiled form of a matrix with so many entries, where products gain by it."""
        height = tiled_height(*record[:2], entries, self.tile_bytes)
        return lay_out(record, height, entries) if height else None

    def tiled_bytes(self, shape: tuple[int, int], entries: int, weighted: bool) -> int:
        """About what the tiled form of a matrix takes; 0 where there is none."""
        height = tiled_height(*shape, entries, self.tile_bytes)
        return expected_bytes(shape, entries, weighted, height) if height else 0

    def spmm_members(
        self,
        table: np.ndarray,
        X: np.ndarray,
        Y: np.ndarray,
        f: int,
        live: np.ndarray | None = None,
        write: bool = False,
        gate: Operand | None = None,
    ) -> None:
        """spmm_add for every graph of a batch; table [graphs, 9]: a record, rows in X and Y, states."""
        _check_rows(X, Y)
        live = _vector(live, np.float32)
        SPMM_MEMBERS(
            len(table), address(table), f, address(X), address(Y), live, write, _gate(gate), self.tile_bytes
        )

    def spmm_lookup(
        self,
        record: tuple[int, ...],
        table: np.ndarray,
        code: np.ndarray,
        Y: np.ndarray,
        live: np.ndarray | None = None,
        write: bool = False,
    ) -> None:
        """Y += A X, or Y = A X, X[u, s] = table[code[u, s]]."""
        row = np.array([[*record, 0, 0, code.shape[1]]], dtype=np.int64)
        self.lookup_members(row, table, code, Y, live, write)

    def lookup_members(
        self,
        members: np.ndarray,
        table: np.ndarray,
        code: np.ndarray,
        Y: np.ndarray,
        live: np.ndarray | None = None,
        write: bool = False,
    ) -> None:
        """spmm_lookup for every graph of a batch; members [graphs, 9] as in spmm_members."""
        _check_rows(table, Y)
        if members[:, 5].any():
            raise NumericsError("lookup product: only for matrices of ones")
        if code.dtype != np.int32 or not code.flags.c_contiguous:
            raise NumericsError("product: codes must be int32 and contiguous")
        LOOKUP(
            len(members), address(members), table.shape[1], address(table), address(code), address(Y),
            _vector(live, np.float32), write,
        )  # fmt: skip

    def fold(self, starts: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Sums of consecutive rows."""
        _check_rows(X)
        starts = np.ascontiguousarray(starts, dtype=np.int64)
        out = np.empty((len(starts) - 1, X.shape[1]), dtype=np.float32)
        FOLD(len(out), address(starts), address(X), X.shape[1], address(out))
        return out

    def column_roots(
        self, X: np.ndarray, starts: np.ndarray, spans: list[tuple[int, int, int]]
    ) -> np.ndarray:
        """Sums of the rows of X by subtrees of row blocks."""
        _check_rows(X)
        starts, (table, _) = np.ascontiguousarray(starts, dtype=np.int64), _span_table(tuple(spans))
        m = X.shape[1]
        sums, out = np.empty((len(starts) - 1, m), np.float32), np.empty((len(spans), m), np.float32)
        COLUMN_ROOTS(address(starts), address(X), m, len(spans), address(table), address(sums), address(out))
        return out

    def fold_members(self, members: Members, X: np.ndarray) -> np.ndarray:
        """Sums over the rows of each row block, for every state."""
        _check_rows(X)
        blocks, f = members.nodes.shape[1] - 1, X.shape[1]
        out = np.empty((blocks, members.states * f), dtype=np.float32)
        POOL(
            len(members.counts), blocks, address(members.nodes), address(members.at), address(members.counts),
            address(members.first), members.states, f, address(X), address(out),
        )  # fmt: skip
        return out

    def dense(
        self, parts: list[Operand], W: np.ndarray, then: Finish, out: np.ndarray | None = None
    ) -> np.ndarray:
        """[parts] W and what follows it."""
        shape = (_extent(parts)[0] if parts else len(then.base), W.shape[1])
        Z = aligned(shape) if out is None else out
        _check_rows(Z)
        if Z.shape != shape:
            raise NumericsError(f"dense product: {shape} does not fit the given {Z.shape}")
        self._dense(parts, W, then, Z, None, None)
        return Z

    def dense_through(self, parts: list[Operand], W: np.ndarray, H: np.ndarray, factor: float) -> None:
        """H becomes factor * [parts] W where it is above 0, else 0."""
        _check_rows(H)
        if (_extent(parts)[0], W.shape[1]) != H.shape:
            raise NumericsError(
                f"dense product: {_extent(parts)[0]} rows of {W.shape[1]} in the place of {H.shape}"
            )
        self._dense(parts, W, PLAIN, H, None, None, through=(address(H), _row_length(H), factor))

    def dense_pooled(
        self, parts: list[Operand], W: np.ndarray, then: Finish, members: Members
    ) -> tuple[np.ndarray, np.ndarray]:
        """dense of the rows of one graph and, while they are in the cache, its fold_members."""
        Z = aligned((_extent(parts)[0], W.shape[1]))
        nodes, states = members.nodes, members.states
        sums = np.zeros((nodes.shape[1] - 1, states * W.shape[1]), dtype=np.float32)
        pool = ctypes.pointer(_Pool(len(sums), states, address(nodes), address(sums)))
        self._dense(parts, W, then, Z, None, None, pool)
        return Z, sums

    def score(self, parts: list[Operand], W: np.ndarray, w: np.ndarray, then: Finish) -> np.ndarray:
        """The rows of dense(parts, W, then) times w, which are never written."""
        out = np.empty(_extent(parts)[0], dtype=np.float32)
        self._dense(parts, W, then, None, np.ascontiguousarray(w), out)
        return out

    def _dense(
        self,
        parts: list[Operand],
        W: np.ndarray,
        then: Finish,
        Z: np.ndarray | None,
        w: np.ndarray | None,
        out: np.ndarray | None,
        pool: Any = None,
        through: tuple[int, int, float] = (0, 0, 0.0),
    ) -> None:
        """Every form of `dense`, in one call; what is None is left out.

        Z         the result     w, out   Z w goes to `out`, and Z is never written
        pool      what `dense_pooled` adds up     through   the address of H, its row length, the factor
        """
        rows, columns = _extent(parts) if parts else (len(then.base), 0)
        k, m = W.shape
        if len(parts) > MOST_PARTS:
            raise NumericsError(f"dense product: {len(parts)} operands side by side, at most {MOST_PARTS}")
        if columns != k:
            raise NumericsError(f"dense product: {columns} columns times {k} rows")
        W, start, index = _padded(W), None, None
        if parts and parts[0].index is not None and parts[0].scale is None and 2 * len(parts[0].X) < rows:
            # The first columns are those of a small table: their part of the chain is made once per entry.
            table, index = parts[0].X, parts[0].index
            start = _table_product(table, W)
            parts, W = parts[1:], W[table.shape[1] :]
        base, gate = then.base, then.gate
        DENSE(
            _Dense(
                rows, len(parts), m, W.shape[1], _parts(parts), address(W), address(Z), m, address(base),
                _row_length(base), _vector(then.base_scale, np.float32), int(then.relu),
                _vector(then.scale, np.float32),
                address(gate), _row_length(gate), address(w), address(out), address(start), address(index),
                _vector(then.gate_index, np.int32), _lookup(parts), pool, *through,
            )
        )  # fmt: skip

    def gated_spread(self, values: np.ndarray, index: np.ndarray, gate: np.ndarray) -> np.ndarray:
        """values[index] * (gate > 0)."""
        _check_rows(values, gate)
        out = aligned(gate.shape)
        SPREAD(*gate.shape, address(values), address(index), address(gate), address(out))
        return out

    def best_rows(
        self, members: Members, score: np.ndarray, candidate: np.ndarray, lowest: float, least: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best candidate of every state."""
        top, where = np.empty(members.states, dtype=np.float32), np.empty(members.states, dtype=np.int64)
        rows = np.ascontiguousarray(members.nodes[:, -1])
        BEST_ROWS(
            len(rows), address(members.at), address(members.counts), address(members.first), address(rows),
            _vector(score, np.float32), _vector(candidate, np.bool_), lowest, least,
            address(top), address(where),
        )  # fmt: skip
        return top, where

    def gram(
        self, parts: list[Operand], D: np.ndarray, starts: np.ndarray, live: np.ndarray | None = None
    ) -> np.ndarray:
        """[parts]^T D by row blocks."""
        width = _extent(parts)[1] * D.shape[1]
        out = np.zeros((starts.shape[1] - 1, width), dtype=np.float32)
        starts = np.ascontiguousarray(starts, dtype=np.int64)
        GRAM(_gram(parts, D, starts, live, out))
        return out

    def gram_roots(
        self,
        parts: list[Operand],
        D: np.ndarray,
        starts: np.ndarray,
        spans: list[tuple[int, int, int]],
        live: np.ndarray | None = None,
    ) -> np.ndarray:
        """[parts]^T D by subtrees of row blocks."""
        width = _extent(parts)[1] * D.shape[1]
        starts = np.ascontiguousarray(starts, dtype=np.int64)
        table, levels = _span_table(tuple(spans))
        out, spare = aligned((len(spans), width)), aligned((levels, width))
        GRAM_ROOTS(_gram(parts, D, starts, live, out), len(spans), address(table), address(spare))
        return out


@lru_cache(KEPT_TABLES)
def _span_table(spans: tuple[tuple[int, int, int], ...]) -> tuple[np.ndarray, int]:
    """[spans, 3] int64, subtrees of row blocks as kernels read them, and the highest level."""
    table = np.array(spans, dtype=np.int64).reshape(len(spans), 3)
    return table, int(table[:, 2].max(initial=0))


def _gram(
    parts: list[Operand], D: np.ndarray, starts: np.ndarray, live: np.ndarray | None, out: np.ndarray
) -> _Gram:
    _check_rows(D)
    return _Gram(
        len(starts), starts.shape[1] - 1, len(parts), D.shape[1], _parts(parts), address(starts), address(D),
        _vector(live, np.float32), address(out),
    )  # fmt: skip


def _check_rows(*operands: np.ndarray) -> None:
    for X in operands:
        if not (X.flags.c_contiguous and X.dtype == np.float32):
            raise NumericsError("product: operands must be float32 and row-major")


def _padded(W: np.ndarray) -> np.ndarray:
    """W [k, m], row-major, its columns padded by zeros to a multiple of LANES."""
    k, m = W.shape
    padded = -(-m // LANES) * LANES
    if padded == m and W.flags.c_contiguous:
        return W
    wide = np.zeros((k, padded), dtype=np.float32)
    wide[:, :m] = W
    return wide


def _table_product(table: np.ndarray, W: np.ndarray) -> np.ndarray:
    """table [t, f] times the first f rows of W [k, a multiple of LANES]."""
    Z, m = aligned((len(table), W.shape[1])), W.shape[1]
    DENSE(_Dense(len(Z), 1, m, m, _parts([Operand(table)]), address(W), address(Z), m))
    return Z


def _extent(parts: list[Operand]) -> tuple[int, int]:
    """Rows and columns of parts side by side."""
    first = parts[0]
    rows = first.X.shape[0] if first.index is None else len(first.index)
    return rows, sum(part.X.shape[1] for part in parts)


def _row_length(X: np.ndarray | None) -> int:
    """Elements from one row of a (view of a) row-major matrix to the next."""
    if X is None:
        return 0
    if X.dtype != np.float32 or (X.size and X.shape[1] > 1 and X.strides[1] != 4):
        raise NumericsError("product: operands must be float32 and row-major")
    return X.strides[0] // 4


def _parts(parts: list[Operand]) -> Any:
    entries = [
        (
            address(part.X), _row_length(part.X), part.X.shape[1], _vector(part.index, np.int32),
            _vector(part.scale, np.float32),
        )
        for part in parts
    ]  # fmt: skip
    return (_Part * len(parts))(*entries)


def _lookup(parts: list[Operand]) -> Any:
    """What makes the rows of a part as they are needed, where one of the parts is such."""
    for part in parts:
        if part.made is None:
            continue
        made, code = part.made, part.made.code
        _check_rows(made.table, part.X)
        graph = np.array([*made.A.record, 0, 0, code.shape[1]], dtype=np.int64)
        found = _Lookup(
            address(graph), made.table.shape[1], address(made.table), _vector(code, np.int32),
            address(part.X), _vector(made.live, np.float32),
        )  # fmt: skip
        found.kept = graph
        return ctypes.pointer(found)
    return None


def _gate(gate: Operand | None) -> _Gate | None:
    if gate is None:
        return None
    _check_rows(gate.X)
    return _Gate(address(gate.X), _vector(gate.index, np.int32))


def _vector(values: np.ndarray | None, kind: type) -> int:
    """The address of one number per row; 0 for None."""
    if values is None:
        return 0
    if values.dtype != kind or not values.flags.c_contiguous:
        raise NumericsError(f"product: one number per row must be {kind.__name__} and contiguous")
    return address(values)
