"""Attention over the neighbours of a node whose scores read rows of the entries too.

The operations of numerics/attention.py and numerics/dynamic.py on entries that have rows E_ij of numbers
or of categories (numerics/edges.py). E_ij W is a chain over the columns of E as in all dense products, and
is added to what both ends bring; the gradient of W is one chain over the entries of a row block, in order.
layers/edge_gat.py and layers/edge_gatv2.py have the derivations. Every function is a fixed sequence of
IEEE-exact operations: the same bits on every device and in the compiled kernels.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.numerics.attention import Attention, Rounds
from app.numerics.dynamic import DynamicAttention
from app.numerics.edges import PIECE, EdgeEntries, pieces

Array = Any
ATTENDED = 10  # arrays of all columns of W that array operations make of some entries


class EdgeAttention:
    """Operations on such entries, of a device that has Attention, DynamicAttention and EdgeSums.

    W        [width, f] weights of the rows: f = h for attention, one number for a head; h k for dynamic
             attention, one for each column
    starts   [blocks+1] int64 host: block m is rows starts[m] .. starts[m+1]-1
    Other operands are those of the operations without edges.
    """

    xp: Any
    plain, dynamic = Attention, DynamicAttention  # whose operations take entries with rows

    # ---- attention --------------------------------------------------------------------------------------

    def edge_attention_top(self, entries: EdgeEntries, W: Array, R_ext: Array, T: Array) -> None:
        """T[:, :h] = the largest r_j + z_ij of the row's entries and of itself."""
        for rows, pattern, z in self._attended(entries, W):
            self.plain.attention_top(self, pattern, R_ext, T[rows], z)

    def edge_attention_add(
        self, entries: EdgeEntries, W: Array, E_ext: Array, L: Array, T: Array, V: Array
    ) -> None:
        """Add every entry's w and w S_j, and both times the slope of e there."""
        for rows, pattern, z in self._attended(entries, W):
            self.plain.attention_add(self, pattern, E_ext, L[rows], T[rows], V[rows], z)

    def edge_attention_back(
        self, entries: EdgeEntries, W: Array, F_ext: Array, S: Array, R: Array, dS: Array, dR: Array,
        starts: np.ndarray,
    ) -> Array:  # fmt: skip
        """Add every entry's part of the gradients by S_j and r_j; returns [blocks, width h], by block the
        gradient by W."""

        def back(rows: slice, pattern: Rounds, z: Array) -> None:
            self.plain.attention_back(self, pattern, F_ext, S[rows], R[rows], dS[rows], dR[rows], z)

        return self._back_by_blocks(entries, W, starts, back)

    # ---- dynamic attention ------------------------------------------------------------------------------

    def edge_dynamic_add(
        self, entries: EdgeEntries, W: Array, S_ext: Array, T: Array, a: Array, M: Array, V: Array
    ) -> None:
        """Add every entry's w and w S_j."""
        for rows, pattern, Q in self._attended(entries, W):
            self.dynamic.dynamic_add(self, pattern, S_ext, T[rows], a, M[rows], V[rows], Q)

    def edge_dynamic_back_rows(
        self, entries: EdgeEntries, W: Array, S_ext: Array, F: Array, a: Array, dT: Array, G: Array,
        starts: np.ndarray,
    ) -> Array:  # fmt: skip
        """Add every entry's part of the gradients by T_i, and by a as far as it is row i's; returns
        [blocks, width h k], by block the gradient by W."""

        def back(rows: slice, pattern: Rounds, Q: Array) -> None:
            self.dynamic.dynamic_back_rows(self, pattern, S_ext, F[rows], a, dT[rows], G[rows], Q)

        return self._back_by_blocks(entries, W, starts, back)

    def edge_dynamic_back_columns(
        self, entries: EdgeEntries, W: Array, F_ext: Array, S: Array, a: Array, dS: Array
    ) -> None:
        """Add every entry's part of the gradient by S_j, row j of the entries with columns i."""
        for rows, pattern, Q in self._attended(entries, W):
            self.dynamic.dynamic_back_columns(self, pattern, F_ext, S[rows], a, dS[rows], Q)

    # ---- pieces -----------------------------------------------------------------------------------------

    def attended_bytes(self, stored: int, f: int, width: int, kinds: bool) -> int:
        """What the operations hold of so many entries while they run, where that grows with them.

        f, width   columns of W, of rows of entries     kinds   rows are categories
        """
        return 0 if self.xp is np else 4 * min(PIECE, stored) * (width + ATTENDED * f)

    def _attended(self, entries: EdgeEntries, W: Array) -> Iterator[tuple[slice, Any, Array]]:
        """Rows, their entries and what these add to scores, some rows at a time."""
        every = np.arange(len(entries.indptr))
        for lo, hi in pieces(entries.indptr, every, self._most(entries, W.shape[1])):
            yield self._attended_rows(entries, W, lo, hi)

    def _attended_rows(self, entries: EdgeEntries, W: Array, lo: int, hi: int) -> tuple[slice, Any, Array]:
        if (lo, hi) not in entries.patterns:
            entries.patterns[lo, hi] = self._pattern(entries, lo, hi)
        first, last = int(entries.indptr[lo]), int(entries.indptr[hi])
        return slice(lo, hi), entries.patterns[lo, hi], self._edge_rows(entries, first, last, W, None)

    def _back_by_blocks(self, entries: EdgeEntries, W: Array, starts: np.ndarray, back: Any) -> Array:
        """[blocks, width f] sums of E^T G by row blocks; back: told rows, their entries and E W, in whose
        place it leaves G."""
        indptr = entries.indptr
        out = self.zeros((len(starts) - 1, entries.width * W.shape[1]))
        for lo, hi in pieces(indptr, starts, self._most(entries, W.shape[1])):
            top, bottom = int(starts[lo]), int(starts[hi])
            rows, pattern, G = self._attended_rows(entries, W, top, bottom)
            back(rows, pattern, G)
            first, last = int(indptr[top]), int(indptr[bottom])
            ends = indptr[starts[lo : hi + 1]] - first
            out[lo:hi] = self.block_gram(self._numbers(entries, first, last), G, ends[None])
        return out

    def _most(self, entries: EdgeEntries, f: int) -> int:
        """Entries whose rows of f columns are made at a time, or those of one row or block."""
        return PIECE

    def _pattern(self, entries: EdgeEntries, lo: int, hi: int) -> Any:
        """What the operations need of the entries of rows lo..hi-1, made once."""
        first, last = int(entries.indptr[lo]), int(entries.indptr[hi])
        columns = np.asarray(self.get(entries.A.indices[first:last]))
        return Rounds(self, entries.indptr[lo : hi + 1] - first, columns, with_places=True)
