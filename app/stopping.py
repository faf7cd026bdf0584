"""What has asked this process to stop, for what comes before any keeper: a file that is read."""

import math
import time

_asked: list[str] = []
_end = [math.inf]  # of time.monotonic


def ask(name: str) -> None:
    """A signal came."""
    _asked.append(name)


def end_at(moment: float) -> None:
    """From this moment of time.monotonic on the run is to stop by itself, as if a signal had come."""
    _end[0] = moment


def asked() -> bool:
    """Whether one has come, or the time is up."""
    return bool(_asked) or time.monotonic() >= _end[0]


def forget() -> None:
    """The run that was asked is over."""
    _asked.clear()
    _end[0] = math.inf
