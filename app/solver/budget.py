"""Budget: how long a solve may search, in steps (the same bits everywhere) or in seconds (kept to 10 %)."""

import time
from dataclasses import dataclass, field

HURRIED = 5.0  # s: under a shorter limit nearly all of the time goes to the local search
RESERVED = 0.02  # of the seconds, for what an answer takes beside the check of its bound


@dataclass
class Budget:
    """Steps of every search, and seconds since the budget was made; 0 seconds: only steps count.

    bound_seconds   where only steps count: what bounds may take beyond the time of the search
    reserved        seconds that checking the bound will take, as far as is known
    kept            seconds for what comes after the answer
    """

    steps: int
    seconds: float
    bound_seconds: float
    begun: float = field(default_factory=lambda: time.perf_counter())
    reserved: float = 0.0
    kept: float = 0.0

    @classmethod
    def of_case(cls, steps: int, seconds: float, bound_seconds: float, usual: int) -> "Budget":
        """The budget that keys ask for; steps -1: as many as the seconds allow, without a limit `usual`."""
        if steps < 0:
            steps = (1 << 62) if seconds else usual
        return cls(steps, seconds, bound_seconds)

    @property
    def hurried(self) -> bool:
        """Whether the time limit is short."""
        return 0 < self.seconds < HURRIED

    def elapsed(self) -> float:
        """Seconds since the budget was made."""
        return time.perf_counter() - self.begun

    @property
    def end(self) -> float:
        """When work has to be over, by the clock that `begun` is told by."""
        return self.begun + self.seconds * (1 - RESERVED) - self.kept

    def left(self) -> float:
        """Seconds left for work; infinite where only steps count."""
        if not self.seconds:
            return float("inf")
        return self.seconds * (1 - RESERVED) - self.reserved - self.kept - self.elapsed()
