"""Products by cuSPARSE and cuBLAS (`run.reproducible = false`), for comparison."""

from typing import Any

import numpy as np

from app.cuda.device import CudaDevice
from app.cuda.matrix import CudaMatrix
from app.numerics.products import PLAIN, Finish, Operand, Products

Array = Any
REFUSED = object()  # in the place of a matrix that the library does not take


class VendorDevice(CudaDevice):
    """CudaDevice with the vendor's products where no mask is asked for; all else by our kernels.

    cupyx      the module, with cusparse and scipy.sparse imported
    cuSPARSE writes column-major results, so a product that adds makes one array more.
    """

    product = "cuSPARSE"
    makes_rows = False
    portable = False
    reproducible = False

    def __init__(self, cp: Any, cupyx: Any, local_rank: int = 0) -> None:
        super().__init__(cp, local_rank)
        self._cupyx = cupyx

    def spmm_add(
        self,
        A: CudaMatrix,
        X: Array,
        Y: Array,
        live: Array | None = None,
        write: bool = False,
        gate: Operand | None = None,
    ) -> None:
        """Y += A X; rows that are not live are made too."""
        known = None if gate is not None or not A.nnz or not Y.size else self._vendor(A)
        if known is None:
            super().spmm_add(A, X, Y, live, write, gate)
            return
        # X row-major is its transpose column-major, which is what the library takes.
        product = self._cupyx.cusparse.spmm(known, X.T, transb=True)
        if write:
            Y[...] = product
        else:
            Y += product

    def _vendor(self, A: CudaMatrix) -> Any:
        """A as the library's type, made once; None where the columns of a row do not ascend.

        cupyx refuses such a matrix, which relational networks have on several ranks.
        """
        if A.vendor is None:
            data = self._cp.ones(A.nnz, dtype=np.float32) if A.data is None else A.data
            arrays = data, A.indices, A.indptr.astype(np.int32)
            A.vendor = self._cupyx.scipy.sparse.csr_matrix(arrays, shape=A.shape)
            if not A.vendor.has_canonical_format:
                A.vendor = REFUSED
        return None if A.vendor is REFUSED else A.vendor

    def dense(self, parts: list[Operand], W: Array, then: Finish = PLAIN, out: Array | None = None) -> Array:
        """[parts] W and what follows it, one operation after the other."""
        return Products.dense(self, parts, W, then, out)

    def dense_through(self, parts: list[Operand], W: Array, H: Array, drop: Any) -> None:
        """The gradient by H in its place, some rows at a time."""
        Products.dense_through(self, parts, W, H, drop)

    def row_product(self, X: Array, W: Array) -> Array:
        """X W by cuBLAS."""
        return self._cp.matmul(X, W)
