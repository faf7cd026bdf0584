"""The watchdog's timer that needs no interpreter (countdown.c)."""

import ctypes
import faulthandler
import signal
from collections.abc import Callable

from app.native.library import function

MARK = 5  # its signal is so far behind the first real-time one
PIECES = 64  # of the time that it counts
LONGEST = 2.0**62  # ns


class Countdown:
    """Ends the process unless it is put back in time: prints a line, and the stacks of all threads.

    seconds   of this process's own time: for as long as it was stopped nothing is counted
    """

    def __init__(self, count_down: Callable[..., None], seconds: float, said: str) -> None:
        self._count_down, self._said = count_down, f"{said}\n".encode("ascii", "backslashreplace")
        self._piece, self._state = (
            max(int(min(1e9 * seconds / PIECES, LONGEST)), 1),
            (ctypes.c_int64 * 2)(PIECES, 0),
        )
        self._signal = signal.SIGRTMIN + MARK
        faulthandler.register(self._signal, file=2, all_threads=True, chain=False)

    def run(self) -> None:
        """Count until `stop`; of a thread of its own, which holds no lock of the interpreter meanwhile."""
        self._count_down(self._state, self._piece, self._said, self._signal)

    def put_back(self) -> None:
        """Begin anew."""
        self._state[0] = PIECES

    def stop(self) -> None:
        """Count no longer."""
        self._state[1] = 1


def countdown(seconds: float, said: str) -> Countdown | None:
    """A timer, or None where there is no compiled library or no such signal."""
    kinds = ctypes.POINTER(ctypes.c_int64), ctypes.c_int64, ctypes.c_char_p, ctypes.c_int
    found = function("lk_count_down", *kinds)
    if found is None or not hasattr(signal, "SIGRTMIN"):
        return None
    return Countdown(found, seconds, said)
