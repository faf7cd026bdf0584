"""Seconds by kind of work."""

import time
from collections.abc import Iterator
from typing import Any


class Stopwatch:
    """Wall seconds of this rank by kind of work, waiting for others included; and those of its processor.

    with watch("forward"): ...
    for each in watch.over("backward", steps): ...      what makes the steps, not what is done with them
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self.seconds: dict[str, float] = {}
        self.processor_s: dict[str, float] = {}

    def __call__(self, kind: str) -> "_Timed":
        return _Timed(self, kind)

    def over(self, kind: str, steps: Iterator[Any]) -> Iterator[Any]:
        """The same steps, timed."""
        while True:
            start = _now()
            step = next(steps, None)
            self._add(kind, start)
            if step is None:
                return
            yield step

    def _add(self, kind: str, start: tuple[float, float]) -> None:
        self.device.synchronize()
        wall, processor = _now()
        self.seconds[kind] = self.seconds.get(kind, 0.0) + wall - start[0]
        self.processor_s[kind] = self.processor_s.get(kind, 0.0) + processor - start[1]


class _Timed:
    """Work of a kind, in a `with` statement; what fails is not counted."""

    __slots__ = ("kind", "start", "watch")

    def __init__(self, watch: Stopwatch, kind: str) -> None:
        self.watch, self.kind = watch, kind

    def __enter__(self) -> None:
        self.start = _now()

    def __exit__(self, failed: type | None, *_: object) -> None:
        if failed is None:
            self.watch._add(self.kind, self.start)


class Took:
    """Seconds of a piece of work, those of the earlier parts of a run included."""

    def __init__(self, earlier_s: float = 0.0) -> None:
        self._start = time.perf_counter() - earlier_s

    def __call__(self) -> float:
        return time.perf_counter() - self._start


def _now() -> tuple[float, float]:
    """The clock on the wall, and the processor's."""
    return time.perf_counter(), time.process_time()
