"""Neighbours: the sums over neighbours that every graph layer is made of, on row partitions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.comm.group import Group
from app.numerics.aggregation import row_names
from app.numerics.elementary import log
from app.sparse.exchange import Exchange
from app.sparse.rowblock import RowBlock

Array = Any


class Neighbours:
    """The adjacency matrix of one graph as an operator on rows.

    A has no loops. Of an undirected graph it is its own transpose, and the backward pass of a product is the
    same product; of a directed one there are two of these, of RowBlock.adjacency and RowBlock.transpose.
    A row is one chain: the own row first where it is asked for, then the neighbours in global
    column order, whatever the exchange (halo, gather, staged broadcast) and the number of ranks.

    weighted   take the graph's edge weights; else every edge counts one
    """

    def __init__(self, group: Group, block: RowBlock, weighted: bool = False) -> None:
        self.group, self.device, self.block = group, group.device, block
        self.exchange = Exchange(group, [block], [1], [0, block.n_own])
        self.weighted = weighted and block.A_weights is not None  # on this rank
        self._weighted_somewhere = weighted and block.weighted
        self._matrix = block.A_weights[0] if self.weighted else block.A
        self._scales: dict[str, Array] = {}
        self._patterns: dict[str, Any] = {}
        self._names: Any = None

    def accumulate(
        self, X_own: Array, Y_own: Array, rows_own: Array | None = None, matrix: Any = None
    ) -> None:
        """Y += A X. X_own, Y_own [n_own, f] row-major. Ranks: all call (one exchange).

        rows_own   [n_own] or None: rows of Y where this is zero may be left as they are
        matrix     instead of A: without entries whose rows of X are zero (RowBlock.within)
        """
        self.exchange.accumulate(X_own, [self._matrix if matrix is None else matrix], Y_own, rows_own)

    def tile(self, width: int, matrix: Any = None) -> int:
        """Get A, or what `accumulate` is given instead, ready for many products; the bytes that takes.

        width   columns of the widest operand
        """
        found = self._matrix if matrix is None else matrix
        return sum(self.device.tile(part, width) for part in (found if isinstance(found, list) else [found]))

    def visit(
        self, X_own: Array, own: bool, work: Callable[[Any, Array], None], kind: str = "attention_pattern"
    ) -> None:
        """Go through the stored entries in global order, with the rows of X that their columns number.

        own     begin with the entry of every row in its own column
        work    called with a pattern and rows, for one tile after the other
        kind    what of the device makes a pattern of a matrix
        Ranks   all call (one exchange)
        """
        if kind not in self._patterns:
            A, make = self._pattern, getattr(self.device, kind)
            n = self.block.n_own
            ramp = np.arange(n + 1, dtype=np.int32)
            itself = make(self.device.csr(ramp, ramp[:n], None, (n, n)))
            self._patterns[kind] = [make(tile) for tile in A] if isinstance(A, list) else make(A), itself
        patterns, itself = self._patterns[kind]
        if own:
            work(itself, X_own)
        self.exchange.visit(X_own, patterns, work)

    def names(self) -> Array:
        """[n_own] float32, what own rows are called (numerics/aggregation.py), made once."""
        if self._names is None:
            self._names = self.device.put(row_names(self.block.lo, self.block.n_own))
        return self._names

    @property
    def _pattern(self) -> Any:
        """A matrix, or tiles, with the entries that are gone through."""
        return self.block.A

    def columns(self, X_own: Array, widths: tuple[int, ...], work: Callable[[Array, int], None]) -> None:
        """Call `work` with the rows of X that the columns of A number, some columns of X after the others,
        and which is their first (Exchange.visit_columns). Ranks: all call (an exchange for each width).

        Not where rows come stage after stage, which the block's plan says.
        """
        self.exchange.visit_columns(X_own, widths, work)

    def scale(self, kind: str) -> Array:
        """[n_own] float32 factors of rows, zero on padding; computed once. Ranks: all call, the first time.

        "symmetric"   (d+1)^-1/2, d the (weighted) degree: D^-1/2 (A+I) D^-1/2 with one factor on either side,
                      of a directed graph by the degrees of that side
        "in_degree"   (d+1)^-1: rows of A+I divided by their sums
        "symmetric_alone"   d^-1/2, 0 for an isolated node: the same without own loops, D^-1/2 A D^-1/2
        "mean"        1/d, 0 for an isolated node: the mean over the neighbours alone
        "log_degree"  log(1 + neighbours), whatever their weights
        """
        if kind not in self._scales:
            self._scales[kind] = self._make_scale(kind)
        return self._scales[kind]

    def counts(self) -> np.ndarray:
        """[n_own] float64 host: the neighbours of each own row."""
        return self.block.degrees_own().astype(np.float64)

    def degrees(self) -> np.ndarray:
        """[n_own] float64 host: the sum of the weights of each own row."""
        if not self._weighted_somewhere:
            return self.counts()
        xp = self.device.xp
        ones, sums = (fill((self.block.n_own, 1), dtype=np.float32) for fill in (xp.ones, xp.zeros))
        self.accumulate(ones, sums)
        return self.device.get(sums)[:, 0].astype(np.float64)

    def _make_scale(self, kind: str) -> Array:
        if kind == "log_degree":
            factor = log(np, (1 + self.counts()).astype(np.float32))
        else:
            factor = scale_of(kind, self.degrees())
        factor[self.block.n_real :] = 0
        return self.device.put(factor)


def scale_of(kind: str, degree: np.ndarray) -> np.ndarray:
    """[n] float32, the factors of `Neighbours.scale` for nodes of some degrees [n] float64."""
    # Division and square root are exact IEEE operations: the same bits everywhere.
    if kind == "symmetric":
        factor = 1 / np.sqrt(degree + 1)
    elif kind == "in_degree":
        factor = 1 / (degree + 1)
    else:
        some = np.where(degree > 0, degree, 1)
        factor = np.where(degree > 0, 1 / (np.sqrt(some) if kind == "symmetric_alone" else some), 0)
    return factor.astype(np.float32)


def both_ways(group: Group, block: RowBlock, weighted: bool) -> tuple[Neighbours, Neighbours]:
    """The products with A and with A^T; of an undirected graph they are one."""
    forward = Neighbours(group, block.adjacency, weighted)
    return forward, Neighbours(group, block.transpose, weighted) if block.directed else forward
