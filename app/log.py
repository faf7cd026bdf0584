"""The run's log: rank 0 speaks, all ranks compute. Text for people, rows for programs, times by phase.

The lines of log.txt begin with the seconds since the start, and are as wide as those that are printed. Rows
of tables and of progress stand in columns, so they are not broken: there they are STAMP columns wider.
"""

import csv
import io
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.text import COLUMNS as WIDTH
from app.text import printable, table_lines, wrapped
from app.watchdog import beat

COLUMNS = (
    "phase", "name", "step", "episodes", "gradient_steps", "epsilon", "entropy", "loss", "held_back_nodes",
    "best_step", "left", "best", "bound", "train_score", "val_score", "test_score", "watched",
    "time_s", "sent_bytes",
)  # fmt: skip
STAMP = 8  # columns of the time before a line of log.txt
HERE = str(Path(__file__).parent) + os.sep  # where the files of this package are


def warn_caller(text: str) -> None:
    """A Python warning, which names the line that called this package, however deep in it that is."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


@dataclass(frozen=True)
class Mark:
    """How far a log had come: seconds, and bytes of metrics.csv."""

    seconds: float = 0.0
    metrics_bytes: int = 0


class Appended:
    """A text file that grows line by line; what could not be written waits for the next time."""

    def __init__(self, path: str, goes_on: bool) -> None:
        """goes_on   behind what is there already"""
        self.file = open(path, "ab" if goes_on else "wb", buffering=0)  # noqa: SIM115 (closed by close)
        self.waiting = b""

    def add(self, text: str) -> None:
        """Append text. Raises OSError where it has to wait."""
        self.waiting += text.encode()
        while self.waiting:
            self.waiting = self.waiting[self.file.write(self.waiting) :]

    def kept(self) -> int:
        """Bytes that a loss of power leaves: all, on the disk now. Raises OSError where some have to wait."""
        self.add("")
        os.fsync(self.file.fileno())
        return self.file.tell()

    def cut(self, length: int) -> None:
        """Leave the first bytes, and out what comes after them."""
        if self.file.tell() > length:
            self.file.truncate(length)
            self.file.seek(length)

    def close(self) -> None:
        """Write what waits, if it can be, and close."""
        with suppress(OSError):
            self.add("")
        with suppress(OSError):
            self.file.close()


class Log:
    """Lines on standard output and in log.txt, rows in metrics.csv; silent on other ranks than 0.

    seconds     of each phase, on every rank
    earlier_s   what the earlier parts of a resumed run took
    """

    def __init__(
        self, speaks: bool, folder: str | None = None, pace_s: float = 2.0, echo: bool = True,
        mark: Mark | None = None,
    ) -> None:  # fmt: skip
        """mark   where the log of an earlier part of the run goes on; None: at the beginning"""
        self.speaks, self.pace_s, self.echo = speaks, pace_s, echo
        self.earlier_s = mark.seconds if mark else 0.0
        self.seconds: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._opened = time.monotonic()
        self._start = self._opened - self.earlier_s
        self._text: Appended | None = None
        self._rows: Appended | None = None
        self._full = False
        if speaks and folder is not None:
            self._text = Appended(f"{folder}/log.txt", goes_on=mark is not None)
            self._rows = Appended(f"{folder}/metrics.csv", goes_on=mark is not None)
            self._rows.cut(mark.metrics_bytes if mark else 0)
            if not self._rows.file.tell():
                self._write(self._rows, ",".join(COLUMNS) + "\n")

    def mark(self) -> dict[str, float]:
        """The fields of a Mark, now. Raises OSError where rows are not on the disk yet."""
        return {"seconds": self.elapsed(), "metrics_bytes": self._rows.kept() if self._rows else 0}

    @property
    def rows_bytes(self) -> int:
        """Bytes of metrics.csv, those that wait included."""
        return self._rows.file.tell() + len(self._rows.waiting) if self._rows else 0

    def elapsed(self) -> float:
        """Seconds since the log was opened."""
        return time.monotonic() - self._start

    def info(self, text: str, *values: Any) -> None:
        """One line, or several where it is long; all ranks have computed the values before the call."""
        if self.speaks:
            line = printable(text % values if values else text)
            self._append(list(wrapped(line, WIDTH - STAMP)))
            if self.echo:
                _print("\n".join(wrapped(line)))

    def table(self, rows: list[list[str]], widest: int = WIDTH) -> None:
        """A table whose first row has its headings; columns that do not fit follow below."""
        for line in table_lines(rows, widest):
            self.info("%s", line)

    def note(self, text: str, *values: Any) -> None:
        """One line in log.txt alone, however long: it may hold a command to copy."""
        if self.speaks:
            self._append([printable(text % values if values else text)])

    def _append(self, lines: list[str]) -> None:
        """Add lines to log.txt, the first with the time."""
        times = [stamp(self.elapsed()), *[" " * STAMP] * (len(lines) - 1)]
        self._write(self._text, "".join(f"{time}{line}\n" for time, line in zip(times, lines)))

    def progress(self, text: str, *values: Any) -> None:
        """info, at most once in `pace_s` seconds for each text: no kind of lines keeps another one out."""
        if self.speaks and time.monotonic() - self._last.get(text, self._opened) >= self.pace_s:
            self._last[text] = time.monotonic()
            self.info(text, *values)

    def record(self, **row: Any) -> None:
        """One row of metrics.csv; absent columns stay empty, others are left out."""
        if self._rows is None:
            return
        row.setdefault("time_s", round(self.elapsed(), 3))
        text = io.StringIO()
        csv.DictWriter(text, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n").writerow(row)
        self._write(self._rows, text.getvalue())

    def _write(self, file: Appended | None, text: str) -> None:
        """Append to a file of the log; a full disk is said once, and is no reason to stop computing."""
        if file is None:
            return
        try:
            file.add(text)
        except OSError as error:
            if not self._full:
                self._full = True
                _print(f"warning: the log cannot be written: {error.strerror}")

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


class ToGo:
    """How long the rest of a loop will take, from its pace since it was first asked; for the log alone.

    total   steps of the loop
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._first: tuple[int, float] | None = None

    def __call__(self, done: int) -> str:
        """12 s to go, or nothing before there is a pace."""
        now = time.monotonic()
        if self._first is None:
            self._first = (done, now)
        steps, seconds = done - self._first[0], now - self._first[1]
        if steps <= 0 or done >= self.total:
            return ""
        left = seconds / steps * (self.total - done)
        return f"  {left:.0f} s to go" if left < 600 else f"  {left / 60:.0f} min to go"


def stamp(seconds: float) -> str:
    """The time before a line, STAMP columns wide for eleven days."""
    return f"{seconds:6.{1 if seconds < 9999.9 else 0}f}  "


def _print(line: str) -> None:
    """Print and flush; a reader that went away or a full disk is no reason to stop computing."""
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    except OSError:
        pass  # what the stream's buffer holds is printed when there is room; log.txt has all
