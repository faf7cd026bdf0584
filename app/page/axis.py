"""Axes: ranges that round numbers end, places of ticks, and what stands beside them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.page.values import shown

SMALLEST = 1e-300  # a range below it is drawn as a single value: its steps would leave the normal numbers


@dataclass(frozen=True)
class Axis:
    """Values low..high drawn on pixels start..end; `log` draws their logarithms.

    ticks   values that get a line and a label
    """

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        """The pixel of a value, to a hundredth; values outside stay at the border."""
        low, high = _scaled(self.low, self.log), _scaled(self.high, self.log)
        share = (_scaled(value, self.log) - low) / (high - low)
        return round(self.start + min(1.0, max(0.0, share)) * (self.end - self.start), 2)

    def labels(self) -> list[str]:
        """The text of each tick."""
        return [short(tick) for tick in self.ticks]


def _scaled(value: float, log: bool) -> float:
    return math.log10(value) if log else value


def make_axis(
    values: Sequence[float],
    start: float,
    end: float,
    log: bool = False,
    zero: bool = False,
    room: float = 0.0,
) -> Axis:
    """An axis for finite values (positive ones where `log`).

    zero   it begins at zero, or below where values do      room   share of the range left free at both ends
    """
    low, high = min(values), max(values)
    if log:
        ticks = log_ticks(low, high)
        return Axis(min(low, ticks[0]), max(high, ticks[-1]), start, end, True, ticks)
    low = min(0.0, low) if zero else low
    size = max(abs(low), abs(high))
    if high - low < max(SMALLEST, 1e-12 * size):
        wide = 0.1 * (size if size >= SMALLEST else 1.0)
        low, high = low - wide, high + wide
    free = room * (high - low)
    low, high = low - (0.0 if zero and low == 0 else free), high + free
    return Axis(low, high, start, end, False, linear_ticks(low, high))


def linear_ticks(low: float, high: float, about: int = 5) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten within low..high, about so many."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(float(f"{k * step:.12g}") for k in range(first, last + 1))


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten around low..high; of a range within two of them, 1, 2 and 5 times these."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    first, last = max(-322, first), min(307, last)
    if last - first > 2:
        every = max(1, (last - first) // 6)
        return tuple(10.0**k for k in range(first, last + 1, every))
    found = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
    within = [x for x in found if low * 0.999 <= x <= high * 1.001]
    if len(within) > 1:
        return tuple(within)
    below, above = [x for x in found if x < low * 0.999], [x for x in found if x > high * 1.001]
    return tuple(below[-1:] + within + above[:1])


def short(value: float) -> str:
    """A tick as text: 0.25, 1,200, 40k, 3M, 1e-05."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit and abs(value) < 1e13:
            scaled = value / (1e3 if unit == "k" else limit)
            return f"{scaled:g}{unit}"
    return shown(value, 5) if abs(value) >= 1e-3 or value == 0 else f"{value:.0e}"
