"""Dense features in pieces of rows, which lie in the slow tier of memory and are brought in one at a time."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from app.comm.tree import owned_roots, owned_spans
from app.gnn.features import DenseFeatures
from app.gnn.programs import Rows
from app.memory.slow_rows import SlowRows
from app.numerics.elementwise import Dropout

Array = Any
MOST_PIECES = 8  # of whole size, and at least about half as many; the first and the last may be smaller
Spans = list[tuple[int, int, int]]


@dataclass(frozen=True)
class Cut:
    """A rank's rows in pieces of whole row blocks, so that sums over them are those over all rows.

    rows    [pieces] own rows
    starts  [pieces][1, blocks+1] first row of each block, counted from the piece's first
    spans   [pieces] its subtrees of blocks as Products.gram_roots wants them
    roots   (level, index) of the subtrees of all pieces in turn (app/comm/tree.py)
    """

    rows: list[slice]
    starts: list[np.ndarray]
    spans: list[Spans]
    roots: list[tuple[int, int]]

    @property
    def most(self) -> int:
        """Rows of the largest piece."""
        return max(each.stop - each.start for each in self.rows)


def step_of(blocks: int) -> int:
    """Blocks of a piece, a power of two, where a rank has so many."""
    return 1 << max(-(-blocks // MOST_PIECES) - 1, 0).bit_length()


def cut_rows(starts: np.ndarray, first: int, blocks: int) -> Cut:
    """The pieces of a rank, at least one.

    starts   [own blocks + 1] first row of each own block
    first    number of the first own block      blocks   of all ranks
    """
    own = len(starts) - 1
    step = step_of(own)
    inner = [at - first for at in range(first, first + own) if at % step == 0 and at > first]
    ends = [0, *inner, own]
    pieces = list(pairwise(ends))
    return Cut(
        [slice(int(starts[a]), int(starts[b])) for a, b in pieces],
        [(starts[a : b + 1] - starts[a])[None] for a, b in pieces],
        [owned_spans(blocks, first + a, first + b) for a, b in pieces],
        [root for a, b in pieces for root in owned_roots(blocks, first + a, first + b)],
    )


def most_rows(n_own: int, starts: np.ndarray) -> int:
    """At least as many rows as a piece has of any rank that owns n_own rows; the same on all ranks.

    starts   [blocks+1] first row of each block, of all ranks
    """
    rows = np.diff(starts)
    smallest, largest = max(int(rows.min()), 1), int(rows.max())
    return min(n_own, step_of(-(-n_own // smallest)) * largest)


class Piece(Rows):
    """Some rows of features: an input of the programs, which has an array while an operation names it."""

    __slots__ = ()

    @property
    def key(self) -> str:
        """What the rows are called in the operations of all programs."""
        return self.name


class PiecedFeatures(DenseFeatures):
    """X [n_own, f], or a product P X that is kept, of which only pieces are ever on the device.

    pieces   the rows of each piece of the cut
    drop     what is dropped from a piece where an operation reads it, or None
    """

    def __init__(self, device: Any, cut: Cut, width: int, name: str = "X") -> None:
        super().__init__(device, np.empty((0, width), dtype=np.float32))
        self.cut, self.name = cut, name
        self.drop: Dropout | None = None
        counts = [each.stop - each.start for each in cut.rows]
        self.pieces = [Piece(f"{name} {i + 1}", width, i, None, rows) for i, rows in enumerate(counts)]

    def begin(self, drop: Dropout | None) -> None:
        """The dropout of the next pass; None: all entries."""
        self.drop = drop

    def product(self, kind: str) -> "PiecedFeatures":
        """P X, which lies in the slow tier too."""
        if kind not in self.products:
            self.products[kind] = PiecedFeatures(self.device, self.cut, self.width, f"{kind} {self.name}")
        return self.products[kind]


class FeatureStore:
    """Where the pieces of features lie in the slow tier (app/memory/tiers.py: Inputs)."""

    def __init__(self) -> None:
        self._at: dict[str, tuple[SlowRows, slice]] = {}

    @property
    def names(self) -> frozenset[str]:
        """The keys of all pieces."""
        return frozenset(self._at)

    def hold(self, X: PiecedFeatures, rows: SlowRows) -> None:
        """Features, whose values are or will be in `rows` [n_own, f]."""
        self._at |= {piece.key: (rows, own) for piece, own in zip(X.pieces, X.cut.rows)}

    def array(self, name: str) -> np.ndarray:
        """Flat float32 of a piece."""
        rows, own = self._at[name]
        return rows.array[own].reshape(-1)

    def copied(self, name: str) -> None:
        """A piece was read."""
        rows, own = self._at[name]
        rows.done(own)
