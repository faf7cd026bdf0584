"""Calls timed round by round, on operands that are not in the cache."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from app.comm.group import Group

ROUNDS = 7  # a rate is the median over rounds; every round times everything once
SHORTEST_S = 1e-3  # of a timing; a shorter call is repeated
POOL = 1 << 24  # numbers that operands are views of
PLACES = 6  # that operands move through from call to call: a step holds about as many arrays


class Pool:
    """Arrays that move through one piece of memory: a call does not find its operands in the cache."""

    def __init__(self, device: Any) -> None:
        self.numbers = device.put(np.linspace(0.1, 1, POOL, dtype=np.float32))
        self.turn = 0

    def take(self, rows: int, columns: int) -> Any:
        """The next [rows, columns]."""
        size = rows * columns
        self.turn += 1
        at = size * (self.turn % min(PLACES, POOL // size))
        return self.numbers[at : at + size].reshape(rows, columns)


class Bench:
    """Calls to be timed, round by round: a disturbance then meets all of them and no median.

    group   all ranks begin each call at once, and the slowest counts; None: this rank alone
    """

    def __init__(self, device: Any, group: Group | None) -> None:
        self.device, self.group = device, group
        self.calls: dict[Any, tuple[Callable[[], Any], float]] = {}

    def add(self, key: Any, call: Callable[[], Any], units: float = 1) -> None:
        """A call, of which the seconds per unit are wanted."""
        self.calls[key] = call, units

    def run(self) -> dict[Any, float]:
        """Median seconds per unit, by key. Ranks: with a group, all call."""
        repeats = {key: self._agreed(self._repeats(call)) for key, (call, _) in self.calls.items()}
        taken: dict[Any, list[float]] = {key: [] for key in self.calls}
        for _ in range(ROUNDS):
            for key, (call, _) in self.calls.items():
                if self.group is not None:
                    self.group.barrier()
                taken[key].append(self._once(call, repeats[key]))
        medians = {key: self._agreed(int(1e12 * statistics.median(times))) for key, times in taken.items()}
        return {key: medians[key] / 1e12 / units for key, (_, units) in self.calls.items()}

    def _repeats(self, call: Callable[[], Any]) -> int:
        call()
        return int(SHORTEST_S / max(self._once(call, 1), 1e-7)) + 1

    def _agreed(self, value: int) -> int:
        """The largest over the ranks."""
        return value if self.group is None else self.group.max_integer(value)

    def _once(self, call: Callable[[], Any], repeats: int) -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        self.device.synchronize()
        return (time.perf_counter() - start) / repeats
