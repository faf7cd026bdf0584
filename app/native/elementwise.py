"""The compiled operations on rows (elementwise.c): those of app/numerics/elementwise.py in one pass."""

import ctypes
from typing import Any

import numpy as np

from app.errors import NumericsError
from app.native.library import address, aligned, function
from app.numerics.elementwise import MASK, Dropout, Elementwise

Long, Pointer, Float = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
Matrix = (Pointer, Long)  # the first element, and elements from one row to the next


class _Drop(ctypes.Structure):
    _fields_ = (("key", ctypes.c_uint64), ("first_row", Long), ("threshold", Long), ("factor", Float))


class _Stored(ctypes.Structure):
    _fields_ = (
        ("wide", Long), ("by_columns", Long), ("first_node", Long), ("first_column", Long),
        ("indptr", Pointer), ("indices", Pointer),
    )  # fmt: skip


Drop, Stored = ctypes.POINTER(_Drop), ctypes.POINTER(_Stored)
ACTIVATE = function("lk_activate", Long, Long, *Matrix, Pointer, Pointer, *Matrix, ctypes.c_int, Drop)
DEACTIVATE = function("lk_deactivate", Long, Long, *Matrix, *Matrix, Pointer, Drop)
DROP_STORED = function("lk_drop_stored", Long, Stored, Pointer, Drop, Pointer)
ADD_INTO = function("lk_add_into", Long, Long, *Matrix, *Matrix, Float)
ELU_PLUS_ONE = function("lk_elu_plus_one", Long, Long, *Matrix)
SOFTMAX = function("lk_softmax_loss", Long, Long, *Matrix, Pointer, Pointer, Pointer)
SIGMOID = function("lk_sigmoid_loss", Long, Long, *Matrix, *Matrix, Pointer, Pointer)
SQUARED = function("lk_squared_loss", Long, Long, *Matrix, *Matrix, Pointer, Pointer)
ARGMAX = function("lk_argmax_rows", Long, Long, *Matrix, Pointer)
NORMALISE = function(
    "lk_normalise_rows", Long, Long, *Matrix, Pointer, Pointer, Float, *Matrix, Pointer, Pointer
)
NORMALISE_BACK = function(
    "lk_normalise_rows_back", Long, Long, *Matrix, *Matrix, Pointer, Pointer, Pointer, *Matrix
)
COUNTED_SUMS = function("lk_counted_sums", Long, Pointer, Long, *Matrix, *[Pointer] * 3)
COLUMNS = function("lk_normalise_columns", Long, Long, *Matrix, *[Pointer] * 4, *Matrix)
NORM_SUMS = function("lk_norm_sums", Long, Pointer, Long, *Matrix, *Matrix, *[Pointer] * 3)
COLUMNS_BACK = function("lk_normalise_columns_back", Long, Long, *Matrix, *Matrix, *[Pointer] * 6)


def available() -> bool:
    """True where the library was built."""
    return None not in (
        *(
            ACTIVATE,
            DEACTIVATE,
            DROP_STORED,
            ADD_INTO,
            ELU_PLUS_ONE,
            SOFTMAX,
            SIGMOID,
            SQUARED,
            ARGMAX,
            NORMALISE,
            NORMALISE_BACK,
            COUNTED_SUMS,
            COLUMNS,
            NORM_SUMS,
            COLUMNS_BACK,
        ),
    )


class HostElementwise(Elementwise):
    """Elementwise by kernels where the device has them; arrays are then float32, their rows contiguous."""

    native: Any

    def activate(
        self,
        Z: np.ndarray,
        scale: np.ndarray | None = None,
        bias: np.ndarray | None = None,
        add: np.ndarray | None = None,
        relu: bool = False,
        drop: Dropout | None = None,
    ) -> None:
        """What follows a product, in place."""
        if not self.native:
            return super().activate(Z, scale, bias, add, relu, drop)
        rows, m = Z.shape
        ACTIVATE(
            rows, m, *_matrix(Z, (rows, m)), _vector(scale, rows), _vector(bias, m),
            *_matrix(add, (rows, m)), relu, _drop(drop),
        )  # fmt: skip

    def deactivate(
        self,
        D: np.ndarray,
        H: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        drop: Dropout | None = None,
        relu: bool = False,
    ) -> None:
        """The adjoint of activate by its Z, in place."""
        if not self.native:
            return super().deactivate(D, H, scale, drop, relu)
        rows, m = D.shape
        left = _matrix(H if relu else None, (rows, m))
        DEACTIVATE(rows, m, *_matrix(D, (rows, m)), *left, _vector(scale, rows), _drop(drop))

    @property
    def place_bytes(self) -> int:
        """Of an entry, in what `places_of` makes."""
        return 0 if self.native else super().place_bytes

    def places_of(
        self, indptr: np.ndarray, indices: np.ndarray, first: tuple[int, int], by_columns: bool
    ) -> Any:
        """The addresses of a matrix, whose arrays are kept."""
        if not self.native:
            return super().places_of(indptr, indices, first, by_columns)
        kind = indices.dtype
        if kind not in (np.int32, np.int64) or indptr.dtype != kind:
            raise NumericsError(f"dropout: offsets {indptr.dtype} and columns {kind}; both int32 or int64")
        stored = _Stored(kind == np.int64, by_columns, *first, address(indptr), address(indices))
        stored.kept = indptr, indices
        return stored

    def drop_stored(self, values: np.ndarray, places: Any, drop: Dropout, out: np.ndarray) -> np.ndarray:
        """Dropout of the stored entries of a sparse matrix."""
        if not self.native:
            return super().drop_stored(values, places, drop, out)
        count = len(values)
        if count != len(places.kept[1]):
            raise NumericsError(f"dropout: {count} values of {len(places.kept[1])} entries")
        DROP_STORED(count, places, _vector(values, count), _drop(drop), _vector(out, count))
        return out

    def add_into(self, Y: np.ndarray, X: np.ndarray, factor: float = 1.0) -> None:
        """Y += factor * X."""
        if not self.native:
            return super().add_into(Y, X, factor)
        ADD_INTO(*Y.shape, *_matrix(Y, Y.shape), *_matrix(X, Y.shape), factor)

    def elu_plus_one(self, Z: np.ndarray) -> None:
        """In place, Z + 1 where Z > 0, else exp Z."""
        if not self.native:
            return super().elu_plus_one(Z)
        ELU_PLUS_ONE(*Z.shape, *_matrix(Z, Z.shape))

    def softmax_loss(self, Z: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Cross-entropy of softmax; Z becomes the gradient."""
        if not self.native:
            return super().softmax_loss(Z, labels, weight)
        rows, losses = len(Z), np.empty(len(Z), dtype=np.float32)
        SOFTMAX(
            *Z.shape, *_matrix(Z, Z.shape), _vector(labels, rows, np.int32), _vector(weight, rows),
            address(losses),
        )  # fmt: skip
        return losses

    def sigmoid_loss(self, Z: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Binary cross-entropy of sigmoid; Z becomes the gradient."""
        if not self.native:
            return super().sigmoid_loss(Z, targets, weight)
        return _losses(SIGMOID, Z, targets, weight)

    def squared_loss(self, Z: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Squared error; Z becomes the gradient."""
        if not self.native:
            return super().squared_loss(Z, targets, weight)
        return _losses(SQUARED, Z, targets, weight)

    def argmax_rows(self, Z: np.ndarray) -> np.ndarray:
        """The column of the largest element of each row."""
        if not self.native:
            return super().argmax_rows(Z)
        out = np.empty(len(Z), dtype=np.int32)
        ARGMAX(*Z.shape, *_matrix(Z, Z.shape), address(out))
        return out

    def normalise_rows(
        self,
        Z: np.ndarray,
        gamma: np.ndarray,
        beta: np.ndarray,
        epsilon: float,
        out: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Layer normalisation."""
        if not self.native:
            return super().normalise_rows(Z, gamma, beta, epsilon, out)
        (rows, m), out = Z.shape, aligned(Z.shape) if out is None else out
        mean, inverse = np.empty(rows, dtype=np.float32), np.empty(rows, dtype=np.float32)
        NORMALISE(
            rows, m, *_matrix(Z, Z.shape), _vector(gamma, m), _vector(beta, m), epsilon,
            *_matrix(out, Z.shape), address(mean), address(inverse),
        )  # fmt: skip
        return out, mean, inverse

    def normalise_rows_back(
        self,
        D: np.ndarray,
        Z: np.ndarray,
        mean: np.ndarray,
        inverse: np.ndarray,
        gamma: np.ndarray,
        product: np.ndarray | None = None,
    ) -> None:
        """The adjoint of normalise_rows by Z, in place."""
        if not self.native:
            return super().normalise_rows_back(D, Z, mean, inverse, gamma, product)
        rows, m = D.shape
        NORMALISE_BACK(
            rows, m, *_matrix(D, D.shape), *_matrix(Z, D.shape), _vector(mean, rows), _vector(inverse, rows),
            _vector(gamma, m), *_matrix(product, D.shape),
        )  # fmt: skip

    def counted_sums(
        self, Z: np.ndarray, counted: np.ndarray, mean: np.ndarray | None, starts: np.ndarray
    ) -> np.ndarray:
        """Sums of counted rows, or of their squares about a mean, by blocks of rows."""
        if not self.native:
            return super().counted_sums(Z, counted, mean, starts)
        (rows, m), starts = Z.shape, np.ascontiguousarray(starts, dtype=np.int64)
        out, vectors = np.empty((len(starts) - 1, m), np.float32), (_vector(counted, rows), _vector(mean, m))
        COUNTED_SUMS(len(out), address(starts), m, *_matrix(Z, Z.shape), *vectors, address(out))
        return out

    def normalise_columns(
        self, Z: np.ndarray, mean: np.ndarray, inverse: np.ndarray, gamma: np.ndarray, beta: np.ndarray,
        out: np.ndarray,
    ) -> None:  # fmt: skip
        """Batch normalisation by given statistics."""
        if not self.native:
            return super().normalise_columns(Z, mean, inverse, gamma, beta, out)
        (rows, m), vectors = Z.shape, (_vector(each, Z.shape[1]) for each in (mean, inverse, gamma, beta))
        COLUMNS(rows, m, *_matrix(Z, Z.shape), *vectors, *_matrix(out, Z.shape))

    def norm_sums(
        self, D: np.ndarray, Z: np.ndarray, mean: np.ndarray, inverse: np.ndarray, starts: np.ndarray
    ) -> np.ndarray:
        """Sums of D, and of D times the normalised columns, by blocks of rows."""
        if not self.native:
            return super().norm_sums(D, Z, mean, inverse, starts)
        m, starts = D.shape[1], np.ascontiguousarray(starts, dtype=np.int64)
        out, vectors = np.empty((len(starts) - 1, 2 * m), np.float32), (_vector(mean, m), _vector(inverse, m))
        operands = *_matrix(D, D.shape), *_matrix(Z, D.shape), *vectors
        NORM_SUMS(len(out), address(starts), m, *operands, address(out))
        return out

    def normalise_columns_back(
        self, D: np.ndarray, Z: np.ndarray, mean: np.ndarray, inverse: np.ndarray, gamma: np.ndarray,
        first: np.ndarray, second: np.ndarray, counted: np.ndarray,
    ) -> None:  # fmt: skip
        """The adjoint of normalise_columns by Z, in place."""
        if not self.native:
            return super().normalise_columns_back(D, Z, mean, inverse, gamma, first, second, counted)
        rows, m = D.shape
        vectors = (_vector(each, m) for each in (mean, inverse, gamma, first, second))
        COLUMNS_BACK(rows, m, *_matrix(D, D.shape), *_matrix(Z, D.shape), *vectors, _vector(counted, rows))


def _losses(function: Any, Z: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """[rows] losses of rows Z against targets of their shape; Z becomes the gradient."""
    losses = np.empty(len(Z), dtype=np.float32)
    operands = *_matrix(Z, Z.shape), *_matrix(targets, Z.shape)
    function(*Z.shape, *operands, _vector(weight, len(Z)), address(losses))
    return losses


def _matrix(X: np.ndarray | None, shape: tuple[int, int]) -> tuple[int, int]:
    """Address and row length of a row-major matrix, or a view of columns of one; zeros for None."""
    if X is None:
        return 0, 0
    if X.shape != shape or X.dtype != np.float32 or (X.size and shape[1] > 1 and X.strides[1] != 4):
        raise NumericsError(f"rows: {X.dtype} {X.shape} is not float32 {shape} of contiguous rows")
    return address(X), X.strides[0] // 4


def _vector(values: np.ndarray | None, size: int, kind: type = np.float32) -> int:
    """The address of `size` numbers; 0 for None."""
    if values is None:
        return 0
    if values.shape != (size,) or values.dtype != kind or not values.flags.c_contiguous:
        raise NumericsError(f"rows: {values.dtype} {values.shape} is not {size} contiguous {kind.__name__}")
    return address(values)


def _drop(drop: Dropout | None) -> _Drop | None:
    if drop is None:
        return None
    return _Drop(drop.key & MASK, drop.first_row, drop.threshold, drop.factor)
