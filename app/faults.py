"""Faults on purpose, so that tests can watch how a run takes them.

LOCKSTEP_FAULT="kill:rank=1,step=7" makes rank 1 kill itself at its step 7 (or at the first after it that it
comes to). Honoured only beside LOCKSTEP_TESTING=1.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import cache


def _kill(code: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _hang(code: int) -> None:
    while True:
        time.sleep(3600)


def _raise(code: int) -> None:
    raise RuntimeError("a fault on purpose")


def _signal(code: int) -> None:
    os.kill(os.getpid(), code)


# kill: as kill -9 does; exit: at once, without clean-up; sysexit: SystemExit; hang: sleeps for ever;
# signal: `code` is its number
KINDS: dict[str, Callable[[int], None]] = {
    "kill": _kill, "exit": os._exit, "sysexit": sys.exit, "raise": _raise, "hang": _hang, "signal": _signal,
}  # fmt: skip


def strike(rank: int, step: int) -> None:
    """Commit the fault that the environment asks of this rank at this step, once; without one nothing.

    step   of the loop that calls: an environment step, an epoch, a round of searches, a cell of a study
    """
    text = os.environ.get("LOCKSTEP_FAULT")
    if text is None or os.environ.get("LOCKSTEP_TESTING") != "1":
        return
    kind, numbers = parse(text)
    if numbers["rank"] == rank and step >= numbers["step"] and text not in _struck:
        _struck.add(text)
        KINDS[kind](numbers["code"])


_struck: set[str] = set()


@cache
def parse(text: str) -> tuple[str, dict[str, int]]:
    """kind:rank=R,step=S[,code=C] as the kind and its numbers. Raises ValueError."""
    kind, _, rest = text.partition(":")
    pairs = [each.partition("=")[::2] for each in rest.split(",")]
    numbers = {"code": 0, **{name: int(value) for name, value in pairs}}
    if kind not in KINDS or set(numbers) != {"rank", "step", "code"}:
        raise ValueError(f"LOCKSTEP_FAULT={text}: one of {', '.join(KINDS)}, then :rank=R,step=S[,code=C]")
    return kind, numbers
