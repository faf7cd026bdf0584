"""The run's log: rank 0 speaks, all ranks compute. Text for people, rows for programs, times by phase."""

import csv
import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.text import printable
from app.watchdog import beat

COLUMNS = (
    "phase", "name", "step", "episodes", "gradient_steps", "epsilon", "entropy", "loss", "held_back_nodes",
    "best_step", "left", "best", "bound", "train_score", "val_score", "test_score", "time_s", "sent_bytes",
)  # fmt: skip


class Log:
    """Lines on standard output and in log.txt, rows in metrics.csv; silent on other ranks than 0.

    `seconds` collects the time of each phase on every rank.
    """

    def __init__(
        self, speaks: bool, folder: str | None = None, pace_s: float = 2.0, echo: bool = True
    ) -> None:
        self.speaks, self.pace_s, self.echo = speaks, pace_s, echo
        self.seconds: dict[str, float] = {}
        self._start = self._last = time.monotonic()
        self._text = self._rows = None
        if speaks and folder is not None:
            self._text = open(f"{folder}/log.txt", "w", encoding="utf-8")  # noqa: SIM115 (closed by close)
            self._rows = open(f"{folder}/metrics.csv", "w", encoding="utf-8")  # noqa: SIM115
            self._rows.write(",".join(COLUMNS) + "\n")

    def elapsed(self) -> float:
        """Seconds since the log was opened."""
        return time.monotonic() - self._start

    def info(self, text: str, *values: Any) -> None:
        """One line; the values must have been computed by all ranks before the call."""
        if not self.speaks:
            return
        line = printable(text % values if values else text)
        if self._text is not None:
            self._text.write(f"{self.elapsed():9.2f} s  {line}\n")
            self._text.flush()
        if self.echo:
            _print(line)

    def progress(self, text: str, *values: Any) -> None:
        """info, at most once in `pace_s` seconds."""
        if self.speaks and time.monotonic() - self._last >= self.pace_s:
            self._last = time.monotonic()
            self.info(text, *values)

    def record(self, **row: Any) -> None:
        """One row of metrics.csv; absent columns stay empty, others are left out."""
        if self._rows is None:
            return
        row.setdefault("time_s", round(self.elapsed(), 3))
        text = io.StringIO()
        csv.DictWriter(text, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n").writerow(row)
        self._rows.write(text.getvalue())
        self._rows.flush()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to `seconds[name]`."""
        beat()
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def close(self) -> None:
        """Close the files."""
        for file in (self._text, self._rows):
            if file is not None:
                file.close()


def _print(line: str) -> None:
    """Print and flush; a reader that went away is no reason to stop computing."""
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
