"""The compiled sums over triples (distmult.c): those of app/numerics/distmult.py."""

import ctypes
from typing import Any

import numpy as np

from app.errors import NumericsError
from app.native.library import address, function
from app.numerics.distmult import DistMultProducts

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
SCORES = function("lk_triple_scores", Long, *(Pointer,) * 5, Long, Pointer)
RELATION_SUMS = function("lk_triple_relation_sums", Long, *(Pointer,) * 5, Long, Pointer)
BY_NODE = function("lk_triples_by_node", Long, Pointer, Pointer, Long, Long, Pointer, Pointer)
NODE_SUMS = function("lk_triple_node_sums", Long, Pointer, Pointer, Long, *(Pointer,) * 6, Long, Pointer)


def available() -> bool:
    """True where the library was built."""
    return None not in (SCORES, RELATION_SUMS, BY_NODE, NODE_SUMS)


class HostDistMult(DistMultProducts):
    """Sums over triples by kernels where the device has them; arrays are then row-major."""

    native: Any

    def triple_scores(self, triples: np.ndarray, E: np.ndarray, D: np.ndarray) -> np.ndarray:
        """[t], each the chain from 0 over the columns of (E_s D_r) E_o."""
        if not self.native:
            return super().triple_scores(triples, E, D)
        scores = np.empty(triples.shape[1], dtype=np.float32)
        SCORES(len(scores), *_columns(triples), *_rows(E, D), E.shape[1], address(scores))
        return scores

    def triple_relation_sums(
        self, starts: np.ndarray, triples: np.ndarray, g: np.ndarray, E: np.ndarray
    ) -> np.ndarray:
        """[k, d], row i the chain from 0 over the triples starts[i] .. starts[i+1]-1 of (g_t E_s) E_o."""
        if not self.native:
            return super().triple_relation_sums(starts, triples, g, E)
        starts = np.ascontiguousarray(starts, dtype=np.int64)
        out = np.empty((len(starts) - 1, E.shape[1]), dtype=np.float32)
        s, _, o = _columns(triples)
        RELATION_SUMS(len(out), address(starts), s, o, *_rows(g, E), E.shape[1], address(out))
        return out

    def triple_node_sums(
        self, triples: np.ndarray, g: np.ndarray, E: np.ndarray, D: np.ndarray, lo: int, hi: int
    ) -> np.ndarray:
        """[hi - lo, d]: for nodes lo .. hi-1 the chain from 0 over their triples of (D_r E_other) g_t."""
        if not self.native:
            return super().triple_node_sums(triples, g, E, D, lo, hi)
        starts, places = self.triples_by_node(triples, lo, hi)
        out = np.empty((hi - lo, E.shape[1]), dtype=np.float32)
        operands = *_columns(triples), *_rows(g, E, D)
        NODE_SUMS(
            hi - lo, address(starts), address(places), triples.shape[1], *operands, E.shape[1], address(out)
        )  # fmt: skip
        return out

    def triples_by_node(self, triples: np.ndarray, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the nodes lo .. hi-1 stand among the subjects, then the objects."""
        if not self.native:
            return super().triples_by_node(triples, lo, hi)
        starts = np.empty(hi - lo + 1, dtype=np.int64)
        s, _, o = _columns(triples)
        asked = triples.shape[1], s, o, lo, hi - lo, address(starts)
        BY_NODE(*asked, None)
        places = np.empty(int(starts[-1]), dtype=np.int64)
        if len(places):
            BY_NODE(*asked, address(places))
        return starts, places


def _columns(triples: np.ndarray) -> list[int]:
    """The addresses of subjects, relations and objects."""
    return _addresses(np.int32, *triples)


def _rows(*operands: np.ndarray) -> list[int]:
    """The addresses of row-major float32 arrays."""
    return _addresses(np.float32, *operands)


def _addresses(dtype: Any, *operands: np.ndarray) -> list[int]:
    for X in operands:
        if X.dtype != dtype or not X.flags.c_contiguous:
            raise NumericsError(f"triples: operands must be {np.dtype(dtype)} and row-major")
    return [address(X) for X in operands]
