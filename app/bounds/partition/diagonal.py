"""DiagonalWork: bounds on what partitions cut between some nodes, by the vector relaxation and its dual."""

import math
from dataclasses import replace
from time import perf_counter

import numpy as np
import scipy.sparse as sp

from app.bounds.cut.sdp import colour_classes
from app.bounds.partition.lanczos import smallest
from app.bounds.partition.part import part_of
from app.bounds.partition.rank_one import MOST_UPDATES, elimination
from app.bounds.partition.witness import DiagonalBound
from app.graphs.balance import Balance
from app.rng import stream

VECTORS = "vector relaxation"
RANK = 24  # of the vectors
MOST_ENTRIES = 1 << 21  # of a part; of more, the order of the proof alone would take a minute
FIRST, LATER, MUCH_LATER = (
    12,
    1.5,
    4.0,
)  # sweeps before the first proof; how many times as many before the next
STEEP, LARGEST_SHARE = 20.0, 20.0  # of the penalty, of its multiplier: in units of what is to be expected
NEAR_ENOUGH, STILL = 3e-4, 2e-3  # a share of the vectors' value that is left, of what is left that is gained
SLACKS = (
    (0.1, 2.0**-24),
    (0.6, 2.0**-20),
    (3.0, 2.0**-16),
    (8.0, 2.0**-12),
)  # parts of the least eigenvalue and of the size
STEPS = 80  # for an eigenvalue
MOST_SWEEPS = 20_000
PATIENT = 3  # proofs without a gain where there is much to be had
FAR = 0.5  # of the vectors' value: with less there are many more sweeps before the next proof
MOST_PLACES = 46
SWEEP, FLOPS = 6e-9, 1e10  # s for each entry and vector, a second
ORDER, ORDERED = 5e-6, 4e-7  # s of an order of the rows, with all that comes first: for each entry, update
ROWS, UPDATE, CORE = 5e-6, 4e-7, 8e-8  # s of a proof: for each entry, update, pair of rows that are left
ENTRY_BYTES = 300.0  # for each node and entry


class DiagonalWork:
    """Vectors v_i of length one, <v_i, v_j> for (x_ij - 1/k)/(1 - 1/k), with

        minimise  sum over edges of w_ij (1 - <v_i, v_j>) (1 - 1/k)   where   |sum c_i v_i|^2 <= R,

    R = (M - W^2/k)/(1 - 1/k), one vector after the other, nodes of one colour at once; sigma, the multiplier
    of R, follows what is too much (augmented Lagrangian). The norms of the sums that vectors turn against are
    the diagonal of the dual, as in app/bounds/cut/sdp.py; what is missing to a proof is taken off in
    proportion to the degrees.

    Source   Wang and Kolter 2017; Boppana 1987 and Rendl and Wolkowicz 1995 (the diagonal)
    bound    with its proof     promise   more than this cannot be had, about
    done     nothing more is to be had
    """

    method = VECTORS

    def __init__(self, balance: Balance, nodes: np.ndarray, seconds: float = math.inf) -> None:
        """seconds   what the order of rows may take, about, or nothing is done

        last   the clock when all has to be over, checks too: no proof is begun that takes longer
        """
        part = self._part = part_of(balance, nodes)
        rows, n = part.rows, part.rows.n
        room = (seconds - order_seconds(n + len(rows.indices))) / ORDERED
        self._way, self.last = elimination(rows, min(room, MOST_UPDATES)), math.inf
        self._degrees, self._c = part.degrees().astype(float), part.sizes.astype(float)
        self._adjacent = sp.csr_array((-rows.weights.astype(float), rows.indices, rows.indptr), shape=(n, n))
        colours = colour_classes(rows.indptr, rows.indices)
        self._colours = [(each, self._adjacent[each]) for each in colours]
        self._other = 1 - 1 / part.parts
        self._room = max((part.squares - part.total**2 / part.parts) / self._other, 0.0)
        V = stream(0, "partition vectors").standard_normal((n, min(RANK, math.isqrt(2 * n) + 2)))
        self._V = V / np.sqrt(np.square(V).sum(axis=1, keepdims=True))
        self._y, self._sigma, self._used = np.zeros(n), 0.0, 0.0
        self._swept, self._wait, self._next, self._stood = 0, 0, FIRST, 0
        self._random = stream(0, "partition eigenvalue").standard_normal(n) / math.sqrt(n)
        self._least_at = np.zeros(n)
        self.bound = DiagonalBound(0, nodes, 0, np.zeros(n, dtype=np.int64), 0)
        self.promise = math.inf
        self.done = not self._way.fits or part.squares >= part.total**2 or not len(rows.weights)

    @staticmethod
    def can_begin(entries: int, seconds: float, most_bytes: float) -> bool:
        """Whether what comes before all sweeps fits, for so many nodes and entries."""
        return (
            entries <= MOST_ENTRIES
            and order_seconds(entries) <= seconds
            and ENTRY_BYTES * entries <= most_bytes
        )

    @property
    def needed_bytes(self) -> float:
        """Of a proof, about."""
        return 16.0 * len(self._way.core) ** 2 + ENTRY_BYTES * self._adjacent.nnz

    @property
    def seconds(self) -> float:
        """Of a sweep, or a proof where that is next, about."""
        return self.proof_seconds if self._due else self._sweep_seconds

    @property
    def check_seconds(self) -> float:
        """Of a check of the bound, about: the order of rows is found again."""
        entries = len(self._y) + self._adjacent.nnz
        return self.proof_seconds + order_seconds(entries) + ORDERED * self._way.updates

    @property
    def _sweep_seconds(self) -> float:
        entries = self._adjacent.nnz + 4 * len(self._y)
        return SWEEP * entries * self._V.shape[1] + 1e-4 * len(self._colours)

    @property
    def proof_seconds(self) -> float:
        """Of a proof, about."""
        core = float(len(self._way.core))
        vectors = 2 * STEPS**2 * len(self._y) / FLOPS + SWEEP * STEPS * self._adjacent.nnz
        rows = UPDATE * self._way.updates + ROWS * self._adjacent.nnz
        return rows + core**3 / 3 / FLOPS + CORE * core**2 + vectors

    @property
    def _due(self) -> bool:
        """Whether a proof is next: sweeps since the last one are as many as its time is worth, or more."""
        return self._wait >= self._next and self._wait * self._sweep_seconds >= self.proof_seconds / 2

    def run(self, end: float, wanted: int) -> None:
        """Work until the clock says `end`, or partitions that cut less than `wanted` are out of the
        question.
        """
        while not self.done and self.bound.lower < wanted:
            if self._due and perf_counter() + self.proof_seconds + self.check_seconds > self.last:
                self.done = True
            elif self._due:
                self._prove_and_look()
            else:
                self._sweep()
            if perf_counter() >= end:
                return

    # ---- vectors -------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Every vector once."""
        V, c, y = self._V, self._c, self._y
        total = max(float(y.sum()), 1e-3 * float(self._degrees.sum()))
        steep = STEEP * total / float(self._part.total) ** 4
        s = c @ V
        largest = LARGEST_SHARE * total / float(self._part.total) ** 2
        over = float(s @ s) - self._room
        self._used = sigma = min(max(self._sigma + steep * over, 0.0), largest)
        for nodes, rows in self._colours:
            own, old = c[nodes], V[nodes]
            held = sigma * own * own.sum()  # so that all of a colour move at once and none too far
            G = rows @ V + (sigma * own)[:, None] * s - held[:, None] * old
            norm = np.sqrt(np.square(G).sum(axis=1))
            y[nodes] = self._degrees[nodes] + held - norm
            new = np.where(norm[:, None] > 0, -G / np.maximum(norm, 1e-300)[:, None], old)
            s += own @ (new - old)
            V[nodes] = new
        s = c @ V
        self._sigma = min(max(self._sigma + steep * (float(s @ s) - self._room), 0.0), largest)
        self._swept += 1
        self._wait += 1

    @property
    def _value(self) -> float:
        """What the vectors cut, were they a partition."""
        along = float(np.einsum("ij,ij->", self._V, self._adjacent @ self._V))
        return self._other * (float(self._degrees.sum()) + along) / 2

    # ---- proofs --------------------------------------------------------------------------------------------

    def _prove_and_look(self) -> None:
        """A proof, and whether it is worth going on."""
        before = self.bound.lower
        self._prove()
        over = self._used * (float(np.square(self._c @ self._V).sum()) - self._room) * self._other / 2
        self.promise = self._value + over
        left, near = self.promise - self.bound.lower, max(NEAR_ENOUGH * self.promise, 0.2)
        self._stood = (
            0
            if self.bound.lower - before > max(STILL * left, NEAR_ENOUGH * self.promise)
            else self._stood + 1
        )
        far = self.bound.lower < FAR * self.promise
        self.done = max(left, abs(over)) < near or self._stood > (PATIENT if far else 1)
        self.done |= self._swept > MOST_SWEEPS
        later = MUCH_LATER if far else LATER
        self._next, self._wait = math.ceil(later * self._swept) - self._swept, 0

    def _prove(self) -> None:
        """Take of y what makes the matrix semidefinite, and keep the bound where it is better."""
        scale, y, sigma = np.maximum(self._degrees, 1e-9), self._y, self._used
        root = np.sqrt(scale)
        shifted = sp.csr_array(self._adjacent / root[:, None] / root[None, :] + sp.diags_array(1 - y / scale))
        c = self._c / root
        least, self._least_at = smallest(
            lambda x: shifted @ x + sigma * c * (c @ x), self._least_at + self._random, STEPS
        )
        for share, size in SLACKS:
            found = self._rounded(y + ((1 + share) * min(least, 0.0) - size) * scale, sigma)
            if found is None or found.value(self._part) <= self.bound.lower:
                return
            if found.semidefinite(self._part, self._way):
                self.bound = replace(found, lower=found.value(self._part))
                return

    def _rounded(self, y: np.ndarray, sigma: float) -> DiagonalBound | None:
        """In whole numbers; None where they would be too large."""
        heaviest = float(self._c.max())
        largest = max(float(self._degrees.max()), float(np.abs(y).max()), sigma * heaviest**2, 1.0)
        places = min(MOST_PLACES, 50 - math.frexp(largest)[1])
        if places < 0:
            return None
        fixed = np.floor(np.ldexp(y, places)).astype(np.int64)
        return replace(self.bound, places=places, y=fixed, sigma=max(math.ceil(math.ldexp(sigma, places)), 1))


def order_seconds(entries: int) -> float:
    """Of what comes before all sweeps, for so many nodes and entries, or more: rows may fill up."""
    return ORDER * entries
