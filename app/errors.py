"""The errors a user may see, and the exit code each one ends the program with."""

import errno
from typing import Any

# Of the disk, of a quota, of the limit of a file's size.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class LockstepError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the program returns."""

    exit_code = 1


class CaseError(LockstepError):
    """The case file or the command line is wrong; the message says where, what was found, what is right."""

    exit_code = 2


class GraphError(LockstepError):
    """A graph or weights file is wrong; the message says file, line, what was found, what is right."""

    exit_code = 2


class NoneFound(GraphError):
    """No solution was found in the steps, or the time, that there were; there may be some."""


class FixedNodesError(ValueError):
    """No solution holds the nodes that it has to hold without those that it must not hold."""

    def __init__(self, words: str, *nodes: int) -> None:
        """words   what is wrong, with {} for each of `nodes`: who knows the ids of a file puts those there"""
        super().__init__(words.format(*nodes))
        self.words, self.nodes = words, nodes


class OtherRankFailed(LockstepError):
    """Another rank reported an error inside `raise_together`; carries that rank's message."""


class OutOfMemory(LockstepError):
    """A rank could not get the memory it asked for."""


class DiskFull(LockstepError):
    """There is no room for a file that is to be written."""


class NumericsError(LockstepError):
    """A NaN, or replicated numbers that are no longer equal on all ranks."""


class Diverged(NumericsError):
    """A training, or what was learned, that has left the finite numbers: what the case says led there."""

    exit_code = 2


class Ended(LockstepError):
    """A run that was asked to stop.

    so_far   what was known by then, as each that lets it through has it; None: nothing
    """

    so_far: Any = None


class Stopped(Ended):
    """A run that stopped early, with a valid checkpoint to go on from."""

    exit_code = 3


class Halted(Ended):
    """Ranks that work apart from others were asked to stop; where all are together again that is Stopped."""


def disk_full(error: BaseException | None) -> DiskFull | None:
    """What to say of an error of the file system that means that there is no room; None of any other."""
    if not isinstance(error, OSError) or error.errno not in FULL:
        return None
    return DiskFull(f"{error.filename or 'a file'} cannot be written: {error.strerror}")
