"""Seconds by kind of work."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stopwatch:
    """Wall seconds of this rank by kind of work, waiting for others included.

    with watch("forward"): ...
    for each in watch.over("backward", steps): ...      what makes the steps, not what is done with them
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, kind: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._add(kind, start)

    def over(self, kind: str, steps: Iterator[Any]) -> Iterator[Any]:
        """The same steps, timed."""
        while True:
            start = time.perf_counter()
            step = next(steps, None)
            self._add(kind, start)
            if step is None:
                return
            yield step

    def _add(self, kind: str, start: float) -> None:
        self.device.synchronize()
        self.seconds[kind] = self.seconds.get(kind, 0.0) + time.perf_counter() - start
