"""PairWork: ever better bounds on what partitions cut between some nodes, by pairs, with what proves them."""

import math
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.pairs.program import LOOK, PairProgram
from app.bounds.pairs.whole import FULL, LARGEST, MOST_PLACES, room, semidefinite
from app.bounds.partition.part import part_of
from app.bounds.partition.witness import PairBound
from app.graphs.balance import Balance

PAIRS = "semidefinite relaxation"
SCALED = 2.0  # the mean weight of an edge, in the program
STILL, PERIOD = 2e-3, 100  # a share of the gap that so many steps close where they are worth it
CLOSED = 0.02  # of the gap, by which a bound has to be better in order to be proved in whole numbers
FLOPS = 2e9  # a second


def no_bound(nodes: np.ndarray) -> PairBound:
    """That cuts between nodes [k] are not below 0."""
    none = np.zeros(0, dtype=np.int64)
    return PairBound(0, nodes, 0, np.zeros((0, 0), np.int64), 0, np.zeros((0, 4), np.int64), none)


class PairWork:
    """Bounds by the program over pairs.

    bound    with its proof     method   how it was found
    done     nothing more is to be had
    """

    method, promise = PAIRS, math.inf

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
    def check_seconds(self) -> float:
        """Of a proof of the bound, about."""
        return step_seconds(len(self._program.matrix)) / 4

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
