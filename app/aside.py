"""Work beside the thread that hears signals: what has no steps of its own is left behind where a run stops.

Python hears a signal between two of its own steps, and one pass over all edges of a graph, in a compiled
kernel, NumPy or SciPy, is one step of the thread that makes it. Passes of another thread keep nobody waiting
that let go of the interpreter's lock, as nearly all do that take long.
"""

import threading
from collections.abc import Callable
from typing import Any

from app import stopping
from app.errors import Halted

NAME = "aside"  # of the threads
TICK = 0.05  # s between two looks


def at_work() -> bool:
    """Whether such a thread of this process has not come to an end yet."""
    return any(thread.name == NAME and thread.is_alive() for thread in threading.enumerate())


def aside(work: Callable[[], Any]) -> Any:
    """What `work` returns, or raises; made by another thread, while this one waits for it.

    work   touches nothing that is used where it is left behind, and sends no messages
    Raises Halted as soon as this rank is asked to stop: the pass under way is not waited for
    """
    made: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            made.append(work())
        except BaseException as error:  # raised where it is waited for
            failed.append(error)

    thread = threading.Thread(target=run, name=NAME)
    thread.start()
    while thread.is_alive():
        thread.join(TICK)
        if stopping.asked() and thread.is_alive():
            raise Halted("asked to stop")
    if failed:
        raise failed.pop()
    return made.pop()
