"""The errors a user may see, and the exit code each one ends the program with."""


class LockstepError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the program returns."""

    exit_code = 1


class CaseError(LockstepError):
    """The case file or the command line is wrong; the message says where, what was found, what is right."""

    exit_code = 2


class GraphError(LockstepError):
    """A graph or weights file is wrong; the message says file, line, what was found, what is right."""

    exit_code = 2


class OtherRankFailed(LockstepError):
    """Another rank reported an error inside `raise_together`; carries that rank's message."""


class OutOfMemory(LockstepError):
    """A rank could not get the memory it asked for."""


class NumericsError(LockstepError):
    """A NaN, or replicated numbers that are no longer equal on all ranks."""


class Stopped(LockstepError):
    """A run that stopped early, with a valid checkpoint to go on from."""

    exit_code = 3
