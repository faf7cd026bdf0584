"""PairWork and EigenWork: ever better bounds on what partitions cut between some nodes, with what proves
them.
"""

import math
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded, eigvalsh
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from app.bounds.certificate import BadCertificate
from app.bounds.factor import ROOM
from app.bounds.pairs.program import LOOK, PairProgram
from app.bounds.pairs.whole import FULL, LARGEST, MOST_PLACES, room, semidefinite
from app.bounds.partition.witness import Part, PartitionBound, above, band_of, lifted, part_of
from app.graphs.balance import Balance
from app.rng import stream

PAIRS, EIGENVALUE = "semidefinite relaxation", "eigenvalue"
SCALED = 2.0  # the mean weight of an edge, in the program
STILL, PERIOD = 2e-3, 100  # a share of the gap that so many steps close where they are worth it
CLOSED = 0.02  # of the gap, by which a bound has to be better in order to be proved in whole numbers
SHRINKS = (1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.2)  # by which an eigenvalue is lowered until it is proved
SHIFT = 1e-3  # of the mean degree, that makes a Laplacian definite
MOST_DENSE = 2000  # nodes of a part that is proved by a dense matrix, where no band is narrow
EIGEN_PLACES = 46
DENSE = 300  # nodes whose eigenvalues are computed at once
FLOPS = 2e9  # a second


def no_bound(nodes: np.ndarray) -> PartitionBound:
    """That cuts between nodes [k] are not below 0."""
    none = np.zeros(0, dtype=np.int64)
    return PartitionBound(0, nodes, 0, 0, np.zeros((0, 0), np.int64), 0, np.zeros((0, 4), np.int64), none)


class PairWork:
    """Bounds by the program over pairs.

    bound    with its proof     method   how it was found
    done     nothing more is to be had
    """

    method = PAIRS

    def __init__(self, balance: Balance, nodes: np.ndarray, block: np.ndarray) -> None:
        """nodes [k] of a part     block   [k] blocks to begin with"""
        part = self._part = part_of(balance, nodes)
        self._scale = max(float(part.rows.weights.mean()), 1.0) / SCALED if len(part.rows.weights) else 1.0
        worth = np.zeros((len(nodes), len(nodes)))
        worth[part.rows.row_of(), part.rows.indices] = part.rows.weights / self._scale
        self._all = float(worth.sum()) / 2
        same = block[:, None] == block
        self._size = max(float(part.sizes.mean()), 1e-9)  # squares are told in units of it
        sizes, squares = part.sizes / self._size, part.squares / self._size**2
        self._program = PairProgram(worth, same, 1 / part.parts, sizes, squares, part.parts <= 2)
        self.bound, self.done = no_bound(nodes), False
        self._before, self._tried = 0.0, 0.0
        self._places = min(MOST_PLACES, FULL.bit_length() - 4 - (4 * part.edges).bit_length())

    @property
    def seconds(self) -> float:
        """Of one step, about."""
        return step_seconds(len(self._program.matrix))

    @property
    def _lower(self) -> float:
        """What the program proves, about."""
        return (self._all - self._program.value) * self._scale

    def run(self, end: float, wanted: int) -> None:
        """Work until the clock says `end`, or partitions that cut less than `wanted` are out of the
        question.
        """
        while not self.done and self.bound.lower < wanted:
            self._program.step()
            gap = max(wanted - self.bound.lower, 1)
            steps = self._program.steps
            if steps % LOOK == 0 and math.ceil(self._lower) > self.bound.lower:
                closes = math.ceil(self._lower) >= wanted
                if closes or (self._lower > self._tried + CLOSED * gap and steps % PERIOD == 0):
                    self._prove()
            if steps % PERIOD == 0:
                self.done = self._lower - self._before < STILL * gap and steps > 3 * PERIOD
                self._before = self._lower
            if time.perf_counter() >= end:
                break
        if math.ceil(self._lower) > self.bound.lower:
            self._prove()

    def _prove(self) -> None:
        program, self._tried = self._program, self._lower
        matrix, g = program.matrix * self._scale, program.g * self._scale
        over = program.over * self._scale / self._size**2
        sizes = float(np.abs(matrix).sum()), float(np.abs(matrix).max(initial=0))
        places = min(
            self._places, room(FULL, sizes[0]), room(LARGEST, sizes[1]), room(FULL, 6 * float(g.sum())),
            room(FULL, over * float(self._part.total) ** 2),
        )  # fmt: skip
        if places < 0:
            self.done = True
            return
        table = np.concatenate([program.triangles, program.kinds[:, None]], axis=1)
        found = replace(
            self.bound, places=places, matrix=semidefinite(np.ldexp(matrix, places)),
            over=int(math.ldexp(over, places)), triangles=table,
            g=np.rint(np.ldexp(g, places)).astype(np.int64),
        )  # fmt: skip
        with suppress(BadCertificate):  # where rounding has spoilt the matrix: the bound stays
            lower = found.proved(self._part)
            if lower > self.bound.lower:
                self.bound = replace(found, lower=lower)


def step_seconds(k: int) -> float:
    """Of a step with the pairs of k nodes, about."""
    return 4.0 * float(k) ** 3 / FLOPS


class EigenWork:
    """A bound by one eigenvalue, of more nodes; for all others as PairWork."""

    method = EIGENVALUE

    def __init__(self, balance: Balance, nodes: np.ndarray) -> None:
        rows = part_of(balance, nodes).rows
        ones = np.ones(len(rows.indices), dtype=np.int8)
        pattern = sp.csr_matrix((ones, rows.indices, rows.indptr), shape=(rows.n, rows.n))
        nodes = nodes[reverse_cuthill_mckee(pattern, symmetric_mode=True)]
        self._part, self.bound, self.done = part_of(balance, nodes), no_bound(nodes), False

        self._dense = len(nodes) <= MOST_DENSE and 5 * band_of(self._part) > 2 * len(nodes)

    @property
    def fits(self) -> bool:
        """Whether memory holds the matrix of the proof."""
        return self._dense or (band_of(self._part) + 1) * 2 * self._part.rows.n <= ROOM

    @property
    def seconds(self) -> float:
        """Of all of it, about."""
        n, band = self._part.rows.n, float(band_of(self._part))
        return (2.0 * n**3 if self._dense else 3.0 * n * band**2) / FLOPS

    def run(self, end: float, wanted: int) -> None:
        """All of it."""
        self.done = True
        part, found = self._part, smallest_above_zero(self._part)
        if self._dense:
            self._by_pairs(found)
            return
        places = min(EIGEN_PLACES, FULL.bit_length() - 1 - (4 * part.edges).bit_length())
        while places > 0 and lifted(part, int(math.ldexp(found, places)), places) is None:
            places -= 2
        for shrink in SHRINKS:
            least = int(math.ldexp(found * (1 - shrink), places)) if places > 0 else 0
            if least > 0 and above(part, least, places):
                made = replace(self.bound, least=least, places=places)
                self.bound = replace(made, lower=made.proved(part))
                return

    def _by_pairs(self, found: float) -> None:
        """The same proved by pairs, with S of witness.py as it stands there."""
        part, c, total = self._part, self._part.sizes, self._part.total
        degrees = np.zeros(part.rows.n, dtype=np.int64)
        np.add.at(degrees, part.rows.row_of(), part.rows.weights)
        size = max(float(part.edges) * 8, found * total * 4, 1.0)
        places = min(
            room(FULL, size), room(LARGEST, 2 * float(degrees.max(initial=1)) + found * float(c.max()))
        )
        if places <= 0 or found <= 0:
            return
        for shrink in SHRINKS:
            least = int(math.ldexp(found * (1 - shrink), places))
            over = -(-least // total)
            matrix = over * np.outer(c, c)
            matrix[part.rows.row_of(), part.rows.indices] -= part.rows.weights << places
            matrix[np.diag_indices(len(c))] += (degrees << places) - least * c
            made = replace(self.bound, matrix=semidefinite(matrix), over=over, places=places)
            with suppress(BadCertificate):
                self.bound = replace(made, lower=made.proved(part))
                return


def smallest_above_zero(part: Part) -> float:
    """The least t > 0 with Lx = t Cx, about; the nodes of a part are in the order of a narrow band."""
    rows, k, sizes = part.rows, part.rows.n, part.sizes.astype(np.float64)
    weights, row, column = rows.weights.astype(np.float64), rows.row_of(), rows.indices.astype(np.int64)
    degrees = np.zeros(k)
    np.add.at(degrees, row, weights)
    shift = SHIFT * max(float(degrees.mean()), 1e-9)
    band = int(np.abs(row - column).max(initial=0))
    found = np.zeros((band + 1, k))
    below = row > column
    found[(row - column)[below], column[below]] = -weights[below]
    found[0] = degrees + shift * np.maximum(sizes, 1e-6)
    root = np.sqrt(sizes)
    try:
        factor = cholesky_banded(found, lower=True, overwrite_ab=True, check_finite=False)
        solve = partial(cho_solve_banded, (factor, True), check_finite=False)
        if k <= DENSE:
            values = eigvalsh(root[:, None] * solve(np.diag(root)))[-2:]
        else:
            turned = LinearOperator((k, k), lambda x: root * solve(root * x.reshape(-1)))
            start = stream(0, "partition eigenvalue").standard_normal(k)
            values = eigsh(turned, 2, which="LA", v0=start, tol=1e-10, return_eigenvectors=False)
    except (LinAlgError, ArpackError, ValueError):
        return 0.0
    least = float(values.min()) if len(values) > 1 else 0.0
    return 1.0 / least - shift if least > 0 else 0.0
