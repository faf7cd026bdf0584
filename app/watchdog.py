"""The watchdog: ends a rank on which nothing moves any more, after saying where it stands.

A rank that hangs leaves the others waiting in a collective for ever, and a batch job burns its whole
allocation. Loops and collectives call `beat`. A thread looks whether there were beats; after too long without
one it prints what every thread of this process was doing and ends the process, at which the launcher ends
the job. Where the interpreter itself is stuck, a timer that needs none does so: one that is handed in
(app/native/countdown.py), else faulthandler's, which also counts the time for which a process was stopped.
"""

import faulthandler
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

LOOKS = 8  # within the time limit
SAID_S = 0.3  # for a launcher to read what this rank printed: what it has not read when it ends a job is lost
START_S = 60.0  # the least patience with imports, from a file system that many ranks read at once
LONGEST_S = 1e9  # as good as for ever
PATIENCE_S = 2.0  # more for a rank that waits for others: the one that is stuck speaks first


Timers = Callable[[float, str], Any]


class Watchdog:
    """Watches this process from `start` on.

    seconds   without a beat that end it     who   what its lines begin with
    timer     makes a timer that needs no interpreter, of seconds and a line to print; None: faulthandler's
    """

    def __init__(self, seconds: float, who: str, timer: Timers | None = None) -> None:
        self.seconds, self.who = min(seconds, LONGEST_S), who
        self.beats = self.waits = 0
        self._ended = threading.Event()
        said = f"{who} watchdog: the interpreter is stuck (run.watchdog_seconds); the job ends"
        self._late = 2 * self.seconds + 2 * PATIENCE_S  # leaves time for the thread to be the first
        self._timer = timer(self._late, said) if timer is not None else None

    def start(self) -> None:
        """Begin to watch."""
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
        if self._timer is not None:
            threading.Thread(target=self._timer.run, name="watchdog's timer", daemon=True).start()

    def stop(self) -> None:
        """Watch no longer."""
        self._ended.set()
        if self._timer is not None:
            self._timer.stop()
        faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        tick = self.seconds / LOOKS
        seen, since, looked = -1, 0.0, time.monotonic()
        while not self._ended.wait(tick):
            now = time.monotonic()
            paused, looked = now - looked > 3 * tick, now  # a process that was stopped and goes on
            if self.beats != seen or paused:
                seen, since = self.beats, now
                self._arm()
            elif now - since >= self.seconds + (PATIENCE_S if self.waits else 0.0):
                self._end(now - since)

    def _arm(self) -> None:
        """Put off the timer that needs no interpreter."""
        if self._ended.is_set():
            return
        if self._timer is not None:
            self._timer.put_back()
        else:
            faulthandler.dump_traceback_later(self._late, exit=True)

    def _end(self, seconds: float) -> None:
        """Say what all threads are doing, and end this process."""
        what = "waits for other ranks" if self.waits else "has not moved"
        lines = [f"watchdog: this rank {what} for {seconds:.0f} s (run.watchdog_seconds); the job ends"]
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident != threading.get_ident():
                lines.append(f"thread {names.get(ident, ident)}, the most recent call last:")
                lines += "".join(traceback.format_stack(frame)).splitlines()
        text = "".join(f"{self.who} {line}\n" for line in lines)
        os.write(2, text.encode("ascii", "backslashreplace"))
        time.sleep(SAID_S)
        os._exit(1)


_watching: Watchdog | None = None


def watch(seconds: float, who: str, timer: Timers | None = None) -> None:
    """Watch this process from now on, in place of what was said before; 0 seconds: no longer."""
    global _watching
    if _watching is not None:
        _watching.stop()
    _watching = Watchdog(seconds, who, timer) if seconds else None
    if _watching is not None:
        _watching.start()


def watch_start(seconds: float, who: str) -> None:
    """`watch` while libraries are imported: that of MPI waits there for the other ranks."""
    watch(max(seconds, START_S) if seconds else 0.0, who)


def beat() -> None:
    """Something moved: a step was made, a piece of a file was read."""
    if _watching is not None:
        _watching.beats += 1


def wait_begins() -> None:
    """From now on this rank waits for others."""
    if _watching is not None:
        _watching.beats += 1
        _watching.waits += 1


def wait_ends() -> None:
    """The others came."""
    if _watching is not None:
        _watching.beats += 1
        _watching.waits -= 1
