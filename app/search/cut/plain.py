"""Annealing rounds for the maximum cut: arrays, a schedule in integers, and the trials without kernels."""

import math

import numpy as np

from app.native import cut_search
from app.rng import SplitMix

LEVELS, LOG_BITS = 4096, 16  # as in cut_search.c
HEAT_BITS = 30  # binary digits of a round's first temperature
# The places in `number`, as in cut_search.c.
CUT, BEST, FOUND_AT, STEPS, PLACE, SWEEP, SWEEPS, HEAT, RANDOM, TARGET = range(10)
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def logs() -> np.ndarray:
    """[LEVELS] int64: -ln(u) in the middle of each of LEVELS parts of (0, 1), with LOG_BITS binary places."""
    table = [-math.log((level + 0.5) / LEVELS) * 2**LOG_BITS for level in range(LEVELS)]
    return np.rint(table).astype(np.int64)


class Annealer:
    """Rounds of simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983): sweeps over the free nodes.

    A trial flips a node if the cut loses at most T * -ln(u), u uniform: Metropolis' rule. T falls linearly
    from the round's heat to zero in the last sweep, which is a descent. Sweeps in the order of the nodes and
    the linear fall follow Myklebust 2015, "Solving maximum cut problems by simulated annealing".

    rows      indptr [n+1] int64, indices [nnz] int32, weights [nnz] int64
    frozen    [n] bool, nodes that keep the side they begin with
    hottest   the largest temperature of any round, in units of cut
    target    a cut that cannot be exceeded: a round ends there
    """

    def __init__(
        self, rows: Rows, frozen: np.ndarray, hottest: float, target: int, seed: int, compiled: bool
    ) -> None:
        n = len(frozen)
        self.arrays = {name: np.zeros(n, dtype=np.uint8) for name in ("sides", "best_sides")}
        self.arrays |= {"gain": np.zeros(n, dtype=np.int64), "number": np.zeros(10, dtype=np.int64)}
        names = ("indptr", "indices", "weights", "order", "logs")
        order = np.flatnonzero(~frozen).astype(np.int32)
        self._constants = dict(zip(names, (*rows, order, logs())))
        self._number = self.arrays["number"]
        self._number[TARGET] = target
        self._number.view(np.uint64)[RANDOM] = seed
        self._binary = HEAT_BITS - math.frexp(hottest)[1] if hottest else 0
        shift = LOG_BITS + self._binary
        self._shifts = max(shift, 0), max(-shift, 0)
        self._native = None
        if compiled and cut_search.available():
            self._native = cut_search.bind(self.arrays, self._constants, self._shifts)

    def begin(self, sides: np.ndarray, sweeps: int, heat: float) -> None:
        """Start a round at `sides` [n] bool that cools from `heat` in `sweeps` sweeps."""
        self.arrays["sides"][:] = sides
        self._number[SWEEPS], self._number[HEAT] = sweeps, round(math.ldexp(heat, self._binary))
        if self._native is not None:
            cut_search.BEGIN(self._native)
        else:
            self._begin()

    def stretch(self, sweeps: int) -> None:
        """Have the round, at the end of a sweep, take so many more: it cools on from where it is."""
        done, planned = (int(self._number[each]) for each in (SWEEP, SWEEPS))
        self._number[SWEEPS] = sweeps * planned // (planned - done)
        self._number[SWEEP] = self._number[SWEEPS] - sweeps

    def until(self, part: int, parts: int) -> int:
        """Trials until `part` of `parts` of the round, and a sweep, are over; not above 0: they are."""
        number = self._number
        sweep = max(1, -(-part * int(number[SWEEPS]) // parts))
        return (sweep - int(number[SWEEP])) * len(self._constants["order"]) - int(number[PLACE])

    def run(self, steps: int) -> int:
        """Up to `steps` trials of the round; returns those made."""
        return cut_search.ANNEAL(self._native, steps) if self._native is not None else self._anneal(steps)

    def count(self, steps: int) -> None:
        """So many trials were made elsewhere, between two rounds."""
        self._number[STEPS] += steps

    @property
    def over(self) -> bool:
        """The round has come to its end."""
        return bool(self._number[SWEEP] >= self._number[SWEEPS])

    @property
    def begun(self) -> bool:
        """Some trials of the round were made."""
        return bool(self._number[SWEEP] or self._number[PLACE])

    @property
    def left(self) -> int:
        """Trials that the round still has."""
        number = self._number
        return int((number[SWEEPS] - number[SWEEP]) * len(self._constants["order"]) - number[PLACE])

    @property
    def steps(self) -> int:
        """Trials of all rounds."""
        return int(self._number[STEPS])

    @property
    def best(self) -> int:
        """The round's best cut, at its begin or at the end of a sweep."""
        return int(self._number[BEST])

    @property
    def found_at(self) -> int:
        """`steps` when the round's best cut was found."""
        return int(self._number[FOUND_AT])

    def best_sides(self) -> np.ndarray:
        """[n] bool, the sides of the round's best cut."""
        return self.arrays["best_sides"].astype(bool)

    def _begin(self) -> None:
        sides, number = self.arrays["sides"].astype(bool), self._number
        indptr, indices, weights = (self._constants[name] for name in ("indptr", "indices", "weights"))
        rows = np.repeat(np.arange(len(sides)), np.diff(indptr))
        cut = sides[rows] != sides[indices]
        self.arrays["gain"][:] = 0
        np.add.at(self.arrays["gain"], rows, np.where(cut, -weights, weights))
        number[CUT] = number[BEST] = weights[cut].sum() // 2
        number[FOUND_AT] = number[STEPS]
        number[PLACE] = number[SWEEP] = 0
        self.arrays["best_sides"][:] = sides

    def _anneal(self, steps: int) -> int:
        number, free, left = self._number, len(self._constants["order"]), steps
        while left > 0 and not self.over and number[BEST] < number[TARGET]:
            sweeps = int(number[SWEEPS])
            heat = int(number[HEAT]) * (sweeps - 1 - int(number[SWEEP])) // sweeps
            start = int(number[PLACE])
            stop = min(free, start + left)
            self._trials(start, stop, heat)
            number[PLACE] = stop
            number[STEPS] += stop - start
            left -= stop - start
            if stop == free:
                self._end_sweep()
        return steps - left

    def _trials(self, start: int, stop: int, heat: int) -> None:
        down, up = self._shifts
        table, gain = self._constants["logs"], self.arrays["gain"]
        random = SplitMix(int(self._number.view(np.uint64)[RANDOM]))
        most = (int(table[0]) * heat >> down) << up
        for v in self._constants["order"][start:stop].tolist():
            loss = -int(gain[v])
            if loss > most:
                continue
            if loss > 0:
                if loss > (int(table[random.below(LEVELS)]) * heat >> down) << up:
                    continue
            elif loss == 0 and random.below(2):
                continue
            self._flip(v)
        self._number.view(np.uint64)[RANDOM] = random.state

    def _flip(self, v: int) -> None:
        sides, gain = self.arrays["sides"], self.arrays["gain"]
        indptr, indices, weights = (self._constants[name] for name in ("indptr", "indices", "weights"))
        sides[v] ^= 1
        self._number[CUT] += gain[v]
        gain[v] = -gain[v]
        row = slice(indptr[v], indptr[v + 1])
        near = indices[row]
        gain[near] += np.where(sides[near] == sides[v], 2, -2) * weights[row]

    def _end_sweep(self) -> None:
        number = self._number
        number[PLACE] = 0
        number[SWEEP] += 1
        if number[CUT] > number[BEST]:
            number[BEST] = number[CUT]
            number[FOUND_AT] = number[STEPS]
            self.arrays["best_sides"][:] = self.arrays["sides"]
