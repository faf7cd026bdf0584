"""Progress of a solve: the best value and bound over time, in the log, in metrics.csv and as a trace."""

import math
import time
from dataclasses import dataclass

from app.log import Log

QUICK = 0.5  # s: a shorter solve is told in one line
HEADER = "      step         best        bound  gap %  source               evals   time s"


@dataclass(frozen=True)
class Event:
    """The state of a solve after `seconds`."""

    seconds: float
    best: float | None
    bound: float | None


class Progress:
    """What is known of one instance: every rank keeps it, rank 0 speaks.

    best, bound   values (integers), None before there is one
    source        what found the best; method: what proved the bound
    fresh         whether the best is better than what the log has shown
    """

    def __init__(self, log: Log, name: str, minimise: bool, unit: float, spent: float = 0.0) -> None:
        """spent   seconds that the solve has taken before"""
        self.log, self.name, self.minimise, self.unit = log, name, minimise, unit
        self.best: int | None = None
        self.bound: int | None = None
        self.source = self.method = ""
        self.evaluations = 0
        self.trace: list[Event] = []
        self._begun = time.perf_counter() - spent
        self._told = -math.inf
        self.fresh = self._headed = False

    def elapsed(self) -> float:
        """Seconds since the solve began."""
        return time.perf_counter() - self._begun

    def better(self, value: int, than: int | None) -> bool:
        """True when a value beats another."""
        return than is None or (value < than if self.minimise else value > than)

    def found(self, value: int, source: str, step: int) -> bool:
        """Take a solution's value; True when it is the best so far."""
        if not self.better(value, self.best):
            return False
        self.best, self.source, self.fresh = value, source, True
        self._note(step)
        self._record(step)
        self.tell(step)
        return True

    def proved(self, value: int, method: str, step: int) -> None:
        """Take a bound where it is tighter than the one that stands."""
        if self.bound is not None and (value <= self.bound if self.minimise else value >= self.bound):
            return
        self.bound, self.method = value, method
        self._note(step)
        self._record(step)

    def _record(self, step: int) -> None:
        """A row of metrics.csv."""
        best, bound = self.objective(self.best), self.objective(self.bound)
        self.log.record(phase="search", name=self.name, step=step, best=best, bound=bound)

    def objective(self, value: int | None) -> float | int | None:
        """A value in the problem's unit."""
        if value is None:
            return None
        return value if self.unit == 1 else value * self.unit

    @property
    def closed(self) -> bool:
        """True when the best is proved optimal."""
        return self.best is not None and self.best == self.bound

    def gap(self) -> float | None:
        """How far from optimal the best may be, relative to the bound; None without both."""
        return None if self.best is None or self.bound is None else relative_gap(self.best, self.bound)

    def tell(self, step: int, last: bool = False) -> None:
        """A line of the table, paced by the log's time; `*` marks an improvement.

        A solve of less than QUICK seconds has no table.
        """
        now = time.perf_counter()
        if self.elapsed() < QUICK or (not last and now - self._told < self.log.pace_s):
            return
        if not self._headed:
            self.log.info("%s", HEADER)
            self._headed = True
        self._told = now
        gap = self.gap()
        shown = "-" if gap is None or math.isinf(gap) else f"{100 * gap:.2f}"
        self.log.info(
            "%s %8d %12s %12s %6s  %-18s %7d %8.1f", "*" if self.fresh else " ", step,
            _short(self.best, self.unit), _short(self.bound, self.unit), shown, self.source[:18],
            self.evaluations, self.elapsed(),
        )  # fmt: skip
        self.fresh = False

    def integral(self) -> float:
        """The primal-dual integral, s: relative distance of best and bound over time, 1 where one is missing.

        Source   Berthold 2013, with both sides bounded by their larger magnitude
        """
        total, now = 0.0, self.elapsed()
        ends = [event.seconds for event in self.trace[1:]] + [now]
        if self.trace:
            total += self.trace[0].seconds
        for event, end in zip(self.trace, ends):
            total += _distance(event) * (end - event.seconds)
        return total if self.trace else now

    def _note(self, step: int) -> None:
        self.trace.append(Event(self.elapsed(), self.objective(self.best), self.objective(self.bound)))


def relative_gap(best: float, bound: float) -> float:
    """|best - bound| over the bound: by how much the best may miss the optimum."""
    if best == bound:
        return 0.0
    return abs(best - bound) / abs(bound) if bound else math.inf


def _distance(event: Event) -> float:
    if event.best is None or event.bound is None:
        return 1.0
    largest = max(abs(event.best), abs(event.bound))
    return min(1.0, abs(event.best - event.bound) / largest) if largest else 0.0


def _short(value: int | None, unit: float) -> str:
    """A value in at most twelve characters."""
    if value is None:
        return "-"
    return str(value) if unit == 1 else f"{value * unit:.6g}"
