"""Work in a thread of its own that goes on only while its owner waits: slices of what has none.

Between two looks it works on whoever waits; how often it looks is the work's affair (of HiGHS see
app/bounds/cover/program.py). A process that ends waits for its next look.
"""

import threading
import time
from collections.abc import Callable

NAME = "paced"  # of the threads
TICK = 0.05  # s: signals are heard, the end of the program is seen, so soon


class _Gate:
    """What the thread and its owner share; it knows of no more, so that the owner can be forgotten."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.open = self.closed = self.done = False
        self.error: BaseException | None = None

    def look(self) -> bool:
        """In the thread: returns when it may go on; True where it has to end."""
        if self.open and not self.closed:
            return False
        with self.condition:
            while not (self.open or self.closed):
                self.condition.wait(TICK)
                self.closed = self.closed or not threading.main_thread().is_alive()
        return self.closed

    def run(self, work: Callable[[Callable[[], bool]], None]) -> None:
        """The thread."""
        try:
            if not self.look():
                work(self.look)
        except BaseException as error:  # raised in the owner's thread
            self.error = error
        with self.condition:
            self.done = True
            self.condition.notify_all()

    def close(self) -> None:
        """No more turns."""
        with self.condition:
            self.closed = True
            self.condition.notify_all()


def at_work() -> bool:
    """Whether a thread of this process has not come to an end yet, as long as what it calls does not look."""
    return any(thread.name == NAME and thread.is_alive() for thread in threading.enumerate())


class Paced:
    """Work that calls `look` often: that waits while it is not its turn, and is True where it has to end."""

    def __init__(self, work: Callable[[Callable[[], bool]], None]) -> None:
        self._gate = _Gate()
        self._thread = threading.Thread(target=self._gate.run, args=(work,), name=NAME)
        self._begun = False

    def __del__(self) -> None:
        self._gate.close()

    @property
    def done(self) -> bool:
        """Whether the work has ended."""
        return self._gate.done

    def run(self, seconds: float) -> None:
        """Let it work for about so long; raises what it raised. It may work on until it looks."""
        gate, end = self._gate, time.perf_counter() + seconds
        if not self._begun:
            self._begun = True
            self._thread.start()
        with gate.condition:
            gate.open = True
            gate.condition.notify_all()
            try:
                while not gate.done and (left := end - time.perf_counter()) > 0:
                    gate.condition.wait(min(left, TICK))
            finally:
                gate.open = False
        if gate.error is not None:
            error, gate.error = gate.error, None
            raise error

    def close(self) -> None:
        """No more turns; what is at work ends when it looks."""
        self._gate.close()
