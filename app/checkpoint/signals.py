"""Signals that ask a run to stop: a handler only sets a flag, which the ranks share at their next step."""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from app import stopping

STOPPING = tuple(getattr(signal, name) for name in ("SIGUSR1", "SIGTERM", "SIGINT") if hasattr(signal, name))
EARLY: list[int] = []  # signals that came before the run listened
INTERRUPTED: list[int] = []  # SIGINT that came to a rank of several before MPI had begun
ONE_KEY_S = 0.3  # a launcher may pass on a Ctrl-C that the terminal has sent to the ranks too


def hear_early() -> None:
    """Take note of what asks a run to stop before `Signals` listens; SIGINT ends the process at once."""
    if heard_early():
        return
    for number in STOPPING:
        signal.signal(number, _end if number == signal.SIGINT else _take_note)


def _end(number: int, frame: FrameType | None) -> None:
    """At a SIGINT before there is anything to keep: imports may make another error of an exception.

    A rank that leaves before MPI has begun is one that the others wait for in MPI_Init: it leaves once that
    is over (`leave_if_interrupted`), or at a second SIGINT.
    """
    cli = sys.modules.get("app.cli")
    if "mpi4py.MPI" not in sys.modules and getattr(cli, "is_launched", bool)() and not INTERRUPTED:
        INTERRUPTED.append(number)
        return
    _say_interrupted(getattr(cli, "launcher_rank", int)())
    os._exit(1)


def _say_interrupted(rank: int) -> None:
    if rank == 0:
        with suppress(OSError):
            os.write(2, b"lockstep: interrupted before anything began\n")


def leave_if_interrupted(rank: int, abort: Callable[[], None]) -> None:
    """End the job by `abort` where a SIGINT came to this rank before MPI had begun."""
    if INTERRUPTED:
        _say_interrupted(rank)
        abort()


def _take_note(number: int, frame: FrameType | None) -> None:
    EARLY.append(number)


def heard_early() -> bool:
    """Whether `hear_early` was called, as where the process ends with its run."""
    return signal.getsignal(STOPPING[0]) is _take_note


def listen_no_more() -> None:
    """Of a command that no signal stops with a checkpoint: one that came early counts now, as by default."""
    for number in STOPPING:
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
    if EARLY:
        os.kill(os.getpid(), EARLY[0])


def let_interrupts_raise() -> None:
    """Of such a command, now that it begins: SIGINT is KeyboardInterrupt again."""
    if not heard_early() and signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def stop_listening() -> None:
    """From now on the process ends by itself: a signal that comes late changes nothing of its exit code."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


class Signals:
    """What asked this rank to stop.

    asked   the name of the first signal that came, "" before
    abort   called at a second SIGINT: ends the job at once
    speaks  this rank says on standard error that the signal was heard
    """

    def __init__(self, abort: Callable[[], None], speaks: bool = False, for_good: bool = False) -> None:
        """for_good   the process ends with the run: its handlers stay, and say nothing any more"""
        self.asked, self.abort, self.speaks, self.for_good = "", abort, speaks, for_good
        self._interrupted = -1.0
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Signals":
        for number in STOPPING:
            self._before[number] = signal.signal(number, self._take)
        if EARLY:
            self._take(EARLY.pop(), None)
            EARLY.clear()
        return self

    def __exit__(self, *exc: object) -> None:
        stopping.forget()
        if self.for_good:
            self.speaks = False
            return
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _take(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if number == signal.SIGINT:
            if self._interrupted >= 0 and now - self._interrupted > ONE_KEY_S:
                self.abort()
            if self._interrupted < 0:
                self._interrupted = now
        if not self.asked:
            self.asked = signal.Signals(number).name
            stopping.ask(self.asked)
            if self.speaks:
                again = "; SIGINT again ends it at once" if number == signal.SIGINT else ""
                said = f"lockstep: {self.asked}: the run stops after this step with a checkpoint{again}\n"
                with suppress(OSError):
                    os.write(2, said.encode())  # print could be at work
