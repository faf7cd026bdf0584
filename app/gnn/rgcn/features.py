"""Features of the nodes of a knowledge graph, as a relational network reads them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.graphs.nodes.data import DenseFeatures, SparseFeatures, rows_per_piece
from app.sparse.relational import OwnRows


@dataclass(frozen=True, eq=False)
class Features:
    """Rows of numbers by node, read from a file piece by piece.

    source   the file, open
    """

    source: DenseFeatures | SparseFeatures

    @property
    def width(self) -> int:
        """Columns."""
        return self.source.width

    def check(self) -> None:
        """Read all numbers once, so that what is none is refused here. Raises GraphError."""
        dense = isinstance(self.source, DenseFeatures)
        for _ in self.source.parts() if dense else self.source.parts([int(self.source.indptr[-1])]):
            pass

    def rows(self, own: OwnRows) -> np.ndarray:
        """[padded, F] float32: the rows of some nodes, zero where there is none. Reads the whole file."""
        X = np.zeros((own.padded, self.width), dtype=np.float32)
        lo = 0
        for part in self._pieces():
            first, last = np.searchsorted(own.nodes, [lo, lo + len(part)])
            X[first:last] = part[own.nodes[first:last] - lo]
            lo += len(part)
        return X

    def _pieces(self) -> Iterator[np.ndarray]:
        """Consecutive rows, dense."""
        if isinstance(self.source, DenseFeatures):
            yield from self.source.parts()
            return
        indptr: Any = self.source.indptr
        step = rows_per_piece(4 * self.width)
        firsts = list(range(0, self.source.n, step))
        lasts = [min(first + step, self.source.n) for first in firsts]
        entries = [int(indptr[hi] - indptr[lo]) for lo, hi in zip(firsts, lasts)]
        for lo, hi, (columns, values) in zip(firsts, lasts, self.source.parts(entries)):
            part = np.zeros((hi - lo, self.width), dtype=np.float32)
            row = np.repeat(np.arange(hi - lo), np.diff(indptr[lo : hi + 1]))
            # Entries given twice add up, one after the other.
            np.add.at(part, (row, columns), np.float32(1) if values is None else values)
            yield part
