"""Operations on rows by the kernels of elementwise.cu, attention.cu and pairs.cu: those of numerics/."""

from typing import Any

import numpy as np

from app.cuda.kernels import NULL, Kernels, by_four, matrix, vector, whole
from app.cuda.matrix import CudaMatrix, Pattern, edged
from app.errors import NumericsError
from app.numerics.attention import Attention
from app.numerics.elementwise import MASK, Dropout, Elementwise
from app.numerics.pairs import PairProducts

Array = Any
WARP = 32
NEAR = 47  # columns of rows that losses.cu takes into shared memory
NO_DROP = (np.uint64(0), NULL, np.int64(0), np.int32(-1), np.float32(1))


class CudaElementwise(Elementwise):
    """Elementwise in one kernel for each operation; arrays are float32, their rows contiguous."""

    kernels: Kernels
    _table: Any  # host numbers on the device (CudaProducts)

    def activate(
        self,
        Z: Array,
        scale: Array | None = None,
        bias: Array | None = None,
        add: Array | None = None,
        relu: bool = False,
        drop: Dropout | None = None,
    ) -> None:
        """What follows a product, in place."""
        rows, m = Z.shape
        left, other = matrix(Z), matrix(add, rows, m)
        self._in_place(
            "activate", by_four((*left, m), (*other, m)), rows, m, *left, vector(scale, rows),
            vector(bias, m), *other, np.int32(relu), *_drop(drop),
        )  # fmt: skip

    def _in_place(self, name: str, four: bool, rows: int, m: int, *operands: Any) -> None:
        """Start a kernel for each element, or for each four of them."""
        name, threads = (f"{name}_4", rows * m // 4) if four else (name, rows * m)
        self.kernels.launch(name, threads, np.int64(rows), np.int32(m), *operands)

    def deactivate(
        self,
        D: Array,
        H: Array | None = None,
        scale: Array | None = None,
        drop: Dropout | None = None,
        relu: bool = False,
    ) -> None:
        """The adjoint of activate by its Z, in place."""
        rows, m = D.shape
        left, right = matrix(D), matrix(H if relu else None, rows, m)
        four = by_four((*left, m), (*right, m))
        self._in_place("deactivate", four, rows, m, *left, *right, vector(scale, rows), *_drop(drop))

    def drop_entries(self, values: Array, rows: Array, columns: Array, drop: Dropout, out: Array) -> Array:
        """Dropout of the stored entries of a sparse matrix."""
        count = values.shape[0]
        numbers = (vector(each.astype(np.int64, copy=False), count, np.int64) for each in (rows, columns))
        operands = vector(values, count), *numbers, vector(out, count)
        self.kernels.launch("drop_entries", count, np.int64(count), *operands, *_drop(drop))
        return out

    def copy_into(self, Y: Array, X: Array) -> None:
        """Y = X."""
        (rows, m), left = Y.shape, matrix(Y)
        right = matrix(X, rows, m)
        if not by_four((*left, m), (*right, m)):
            Y[...] = X
            return
        sizes = np.int64(rows), np.int32(m)
        self.kernels.launch("copy_into", rows * m // 4, *sizes, *left, *right)

    def add_into(self, Y: Array, X: Array, factor: float = 1.0) -> None:
        """Y += factor * X."""
        rows, m = Y.shape
        sizes = np.int64(rows), np.int32(m)
        self.kernels.launch("add_into", rows * m, *sizes, *matrix(Y), *matrix(X, rows, m), np.float32(factor))

    def softmax_loss(self, Z: Array, labels: Array, weight: Array) -> Array:
        """Cross-entropy of softmax; Z becomes the gradient."""
        (rows, c), losses = Z.shape, self.empty(Z.shape[:1])
        marks = vector(labels, rows, np.int32), vector(weight, rows)
        name = "softmax_loss_near" if c <= NEAR else "softmax_loss"
        self.kernels.launch(name, rows, np.int64(rows), np.int32(c), *matrix(Z), *marks, losses)
        return losses

    def sigmoid_loss(self, Z: Array, targets: Array, weight: Array) -> Array:
        """Binary cross-entropy of sigmoid; Z becomes the gradient."""
        (rows, c), losses = Z.shape, self.empty(Z.shape[:1])
        operands = *matrix(Z), *matrix(targets, rows, c), vector(weight, rows)
        self.kernels.launch("sigmoid_loss", rows, np.int64(rows), np.int32(c), *operands, losses)
        return losses

    def squared_loss(self, Z: Array, targets: Array, weight: Array) -> Array:
        """Squared error; Z becomes the gradient."""
        (rows, c), losses = Z.shape, self.empty(Z.shape[:1])
        operands = *matrix(Z), *matrix(targets, rows, c), vector(weight, rows)
        self.kernels.launch("squared_loss", rows, np.int64(rows), np.int32(c), *operands, losses)
        return losses

    def argmax_rows(self, Z: Array) -> Array:
        """The column of the largest element of each row."""
        (rows, c), out = Z.shape, self.xp.empty(Z.shape[0], dtype=np.int32)
        self.kernels.launch("argmax_rows", rows, np.int64(rows), np.int32(c), *matrix(Z), out)
        return out

    def normalise_rows(
        self, Z: Array, gamma: Array, beta: Array, epsilon: float, out: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Layer normalisation."""
        (rows, m), out = Z.shape, self.empty(Z.shape) if out is None else out
        mean, inverse = self.empty((rows,)), self.empty((rows,))
        self.kernels.launch(
            "normalise_rows", rows, np.int64(rows), np.int32(m), *matrix(Z), vector(gamma, m),
            vector(beta, m), np.float32(epsilon), *matrix(out, rows, m), mean, inverse,
        )  # fmt: skip
        return out, mean, inverse

    def normalise_rows_back(
        self,
        D: Array,
        Z: Array,
        mean: Array,
        inverse: Array,
        gamma: Array,
        product: Array | None = None,
    ) -> None:
        """The adjoint of normalise_rows by Z, in place."""
        rows, m = D.shape
        self.kernels.launch(
            "normalise_rows_back", rows, np.int64(rows), np.int32(m), *matrix(D), *matrix(Z, rows, m),
            vector(mean, rows), vector(inverse, rows), vector(gamma, m), *matrix(product, rows, m),
        )  # fmt: skip

    def counted_sums(self, Z: Array, counted: Array, mean: Array | None, starts: np.ndarray) -> Array:
        """Sums of counted rows, or of their squares about a mean, by blocks of rows."""
        (rows, m), blocks = Z.shape, len(starts) - 1
        out, vectors = self.empty((blocks, m)), (vector(counted, rows), vector(mean, m))
        operands = self._table(starts), *matrix(Z), *vectors, out
        self.kernels.launch("counted_sums", blocks * m, np.int64(blocks), np.int32(m), *operands)
        return out

    def normalise_columns(
        self, Z: Array, mean: Array, inverse: Array, gamma: Array, beta: Array, out: Array
    ) -> None:
        """Batch normalisation by given statistics."""
        vectors = (vector(each, Z.shape[1]) for each in (mean, inverse, gamma, beta))
        self._in_place("normalise_columns", False, *Z.shape, *matrix(Z), *vectors, *matrix(out, *Z.shape))

    def norm_sums(self, D: Array, Z: Array, mean: Array, inverse: Array, starts: np.ndarray) -> Array:
        """Sums of D, and of D times the normalised columns, by blocks of rows."""
        m, blocks = D.shape[1], len(starts) - 1
        out, vectors = self.empty((blocks, 2 * m)), (vector(mean, m), vector(inverse, m))
        operands = self._table(starts), *matrix(D), *matrix(Z, *D.shape), *vectors, out
        self.kernels.launch("norm_sums", blocks * m, np.int64(blocks), np.int32(m), *operands)
        return out

    def normalise_columns_back(
        self, D: Array, Z: Array, mean: Array, inverse: Array, gamma: Array, first: Array, second: Array,
        counted: Array,
    ) -> None:  # fmt: skip
        """The adjoint of normalise_columns by Z, in place."""
        rows, m = D.shape
        vectors = (vector(each, m) for each in (mean, inverse, gamma, first, second))
        operands = *matrix(D), *matrix(Z, rows, m), *vectors, vector(counted, rows)
        self._in_place("normalise_columns_back", False, *D.shape, *operands)

    def adam(self, scalars: tuple[float, ...], weights: Array, gradient: Array, m: Array, v: Array) -> None:
        """One step of Adam in place; scalars in the order of the kernel's."""
        size = weights.shape[0]
        operands = (vector(each, size) for each in (weights, gradient, m, v))
        self.kernels.launch("adam", size, np.int64(size), *operands, *map(np.float32, scalars))


def _drop(drop: Dropout | None) -> tuple[Any, ...]:
    """The arguments of elementwise.cu for what is dropped."""
    if drop is None:
        return NO_DROP
    key, first = np.uint64(drop.key & MASK), np.int64(drop.first_row)
    return key, vector(drop.cell, 1, np.uint64), first, np.int32(drop.threshold), np.float32(drop.factor)


class CudaAttention(Attention):
    """Attention in one or two kernels for each operation; arrays are float32 and row-major.

    Where entries have rows of their own, z [nnz, h], kernels of the same names read these too.
    """

    kernels: Kernels

    def attention_pattern(self, A: CudaMatrix) -> CudaMatrix:
        """The matrix: its entries are gone through as they are stored."""
        return A

    def attention_top(self, pattern: Pattern, R_ext: Array, T: Array, z: Array | None = None) -> None:
        """T[:, :h] = the largest r_j of the row's entries and of itself."""
        n, h = pattern.shape[0], R_ext.shape[1]
        name, rows = edged("attention_top", pattern, z, h)
        operands = pattern.indptr, pattern.indices, *rows, whole(R_ext), whole(T, 3 * h)
        self.kernels.launch(name, n * h, np.int64(n), np.int32(h), *operands)

    def attention_begin(self, L: Array, T: Array, V: Array) -> None:
        """m from the largest r, and sums of nothing: T = [m | 0 | 0], V = 0."""
        n, h = L.shape
        self.kernels.launch("attention_begin", n * h, np.int64(n), np.int32(h), whole(L), whole(T, 3 * h))
        V.fill(0)

    def attention_add(
        self, pattern: Pattern, E_ext: Array, L: Array, T: Array, V: Array, z: Array | None = None
    ) -> None:
        """Add every entry's w and w S_j, and both times the slope of e there."""
        n, h, k = _heads(L, V.shape[1] // 2)
        name, rows = edged("attention_add", pattern, z, h)
        entries = pattern.indptr, pattern.indices, *rows, whole(E_ext, h * k + h)
        sizes = np.int64(n), np.int32(h), np.int32(k)
        self.kernels.launch(name, n * h * k, *sizes, *entries, whole(L), whole(T), whole(V))

    def attention_finish(self, T: Array, V: Array) -> None:
        """Divide by the sum of w."""
        n, h = T.shape[0], T.shape[1] // 3
        sizes = np.int64(n), np.int32(h), np.int32(V.shape[1] // (2 * h))
        self.kernels.launch("attention_finish", n * h, *sizes, whole(T), whole(V))

    def attention_pack(self, D: Array, L: Array, T: Array, V: Array, F: Array, dL: Array) -> None:
        """What other rows need of a row for their gradient, and its own dl."""
        n, h, k = _heads(L, D.shape[1])
        operands = [whole(each) for each in (D, L, T, V, F, dL)]
        self.kernels.launch("attention_pack", n * h, np.int64(n), np.int32(h), np.int32(k), *operands)

    def attention_back(
        self, pattern: Pattern, F_ext: Array, S: Array, R: Array, dS: Array, dR: Array,
        z: Array | None = None,
    ) -> None:  # fmt: skip
        """Add every entry's part of the gradients by S_j and r_j; z becomes the gradient by it."""
        n, h, k = _heads(R, S.shape[1])
        common = np.int64(n), np.int32(h), np.int32(k), pattern.indptr, pattern.indices
        F, launch = whole(F_ext, h * k + 4 * h), self.kernels.launch
        name, rows = edged("attention_back_rows", pattern, z, h)
        launch(name, n * h * k, *common, *rows, F, whole(R), whole(dS))
        name, rows = edged(
            "attention_back_heads", pattern, z, h
        )  # the last that reads z, in whose place it writes
        launch(name, n * h, *common, *rows, F, whole(S), whole(R), whole(dR))

    def row_dots(self, X: Array, D: Array) -> Array:
        """[rows], each the chain from 0 over the columns of X * D."""
        (n, m), out = X.shape, self.empty(X.shape[:1])
        if D.shape != X.shape:
            raise NumericsError(f"row products: {X.shape} with {D.shape}")
        self.kernels.launch("row_dots", n, np.int64(n), np.int32(m), whole(X), whole(D), out)
        return out


class CudaPairs(PairProducts):
    """Pairs in three kernels: what every entry adds, then sums of rows; arrays are float32, row-major."""

    kernels: Kernels

    def pair_add(
        self,
        pattern: CudaMatrix,
        X_ext: Array,
        Z: Array,
        target: float,
        weight: float,
        Y: Array,
        losses: Array,
    ) -> None:
        """Add every entry's loss to that of its row, and the gradient by z_u to the row of Y."""
        (n, d), nnz = Z.shape, pattern.nnz
        common = np.int64(n), pattern.indptr, pattern.indices
        G, terms = self.empty((nnz,)), self.empty((nnz,))
        X, z = whole(X_ext, d), whole(Z)
        how = np.float32(target), np.float32(weight)
        self.kernels.launch("pair_terms", n * WARP, *common, np.int32(d), X, z, *how, G, terms)
        self.kernels.launch("pair_rows", n * d, *common, *map(np.int32, (d, d)), X, G, whole(Y, d))
        self.kernels.launch("pair_losses", n, np.int64(n), pattern.indptr, terms, vector(losses, n))

    def rank_add(
        self, pattern: CudaMatrix, X_ext: Array, Z: Array, d: int, weight: float, Y: Array, losses: Array
    ) -> None:
        """Add every entry's gradient by z_u and by t_u to the row of Y, and what it loses."""
        (n, width), nnz = Z.shape, pattern.nnz
        k, w, common = width - d, np.float32(weight), (np.int64(n), pattern.indptr, pattern.indices)
        S, C = self.empty((nnz,)), self.empty((nnz,))
        X, z, y, launch = whole(X_ext, width), whole(Z), whole(Y, width), self.kernels.launch
        launch("rank_terms", n * WARP, *common, *map(np.int32, (d, k)), X, z, w, S, C)
        launch("rank_sums", n * k, *common[:2], *map(np.int32, (d, k)), z, w, S, y, whole(losses, k))
        launch("pair_rows", n * d, *common, *map(np.int32, (d, width)), X, C, y)

    def pair_dots(self, X: Array, Y: Array) -> Array:
        """[k], the scores of pairs by their rows."""
        (k, d), out = X.shape, self.empty(X.shape[:1])
        self.kernels.launch("pair_dots", k, np.int64(k), np.int32(d), whole(X), whole(Y, d), out)
        return out


def _heads(L: Array, width: int) -> tuple[int, int, int]:
    """Rows, heads, columns of a head."""
    n, h = L.shape
    return n, h, width // h
