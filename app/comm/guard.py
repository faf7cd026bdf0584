"""What keeps ranks together when something fails: shared errors, equal replicas, an abort."""

import hashlib
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from mpi4py import MPI

from app.comm.group import Group
from app.errors import (
    CaseError,
    DiskFull,
    Diverged,
    GraphError,
    Halted,
    LockstepError,
    NumericsError,
    OtherRankFailed,
    OutOfMemory,
    Stopped,
    disk_full,
)
from app.text import printable
from app.watchdog import SAID_S, beat

_KINDS = {  # the first that a failure is one of
    1: CaseError, 2: GraphError, 9: Diverged, 3: NumericsError, 4: OtherRankFailed, 5: OutOfMemory,
    6: DiskFull, 7: Halted, 8: Stopped,
}  # fmt: skip
_UNEXPECTED = (4, 5)  # of these the traceback is printed, by the rank that has it
ALONE_S = 60.0  # s that a rank which leaves with an error waits for the others
NAP_S = 0.005  # s between two looks for them


@contextmanager
def raise_together(group: Group, what: str, rest: bool = False) -> Iterator[None]:
    """Run work that may fail on some ranks only; all ranks leave with the same error.

    No collective may be called inside. Of several failing ranks the lowest one's error is raised on all.
    rest    the work differs in length, so that ranks wait asleep (Group.rest)
    Ranks   all enter
    """
    beat()
    failure: BaseException | None = None
    try:
        yield
    except Exception as error:  # re-raised below, on every rank
        failure = error
    if rest:
        group.rest()
    share_failure(group, failure, what)


@contextmanager
def each_by_itself(alike: Group | None, what: str) -> Iterator[None]:
    """Around what each of some ranks does by itself, where they do: an error of one is that of all, and those
    that wait for others sleep.

    alike   these ranks; None: they work together, and share what fails by themselves
    Ranks   all enter
    """
    if alike is None:
        yield
        return
    with raise_together(alike, what, rest=True):
        yield


def share_failure(group: Group, failure: BaseException | None, what: str) -> None:
    """Raise the lowest failing rank's error on all ranks; return where no rank failed. Ranks: all call."""
    failure = disk_full(failure) or failure
    if group.size == 1 and failure is not None:
        raise failure
    codes = group.gather_integers(np.array([_code_of(failure)]))[:, 0]
    if not codes.any():
        return
    first = int(np.flatnonzero(codes)[0])
    if failure is not None and not isinstance(failure, LockstepError):
        _print_trace(failure)
    text = group.broadcast_text(_one_line(failure), first)
    if isinstance(failure, LockstepError) and group.rank == first:
        raise failure
    code = int(codes[first])
    raise _KINDS[code](f"{what}: rank {first}: {text}" if code in _UNEXPECTED else text) from failure


def agree_on_command(comm: MPI.Comm, mistakes: str = "") -> None:
    """Raise CaseError on all ranks where one of them could not read the command line or the case.

    mistakes   of this rank's command line or case; "": none
    Ranks      all call, before anything else
    """
    group = Group(comm, None, direct=True)
    found, hosts = group.gather_texts(mistakes), group.gather_texts(platform.node())
    wrong = [rank for rank, text in enumerate(found) if text]
    if not wrong:
        return
    if len(wrong) == len(found):
        raise CaseError(found[0])
    right = found.index("")
    raise CaseError(
        f"{found[wrong[0]]}\n  so says rank {wrong[0]} on {hosts[wrong[0]]}, but not rank {right} on "
        f"{hosts[right]}: do both see the same files?"
    )


def _code_of(failure: BaseException | None) -> int:
    """The number by which ranks tell each other what failed; 0: nothing."""
    if failure is None:
        return 0
    if isinstance(failure, MemoryError):
        return 5
    return next((code for code, kind in _KINDS.items() if isinstance(failure, kind)), 4)


def _one_line(failure: BaseException | None) -> str:
    return "" if failure is None else str(failure) or type(failure).__name__


def digest(arrays: dict[str, np.ndarray]) -> str:
    """sha256 over name, dtype, shape and row-major bytes of host arrays, in sorted name order."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def digest_text(digests: dict[str, str]) -> str:
    """One digest of many."""
    return digest({"all": np.frombuffer(json.dumps(digests, sort_keys=True).encode(), dtype=np.uint8)})


def digest_pieces(arrays: Iterable[tuple[str, tuple[int, ...], Iterable[np.ndarray]]]) -> str:
    """`digest` of float32 arrays, of which only some rows exist at a time.

    arrays   name, shape and consecutive pieces of each, in sorted name order
    """
    sha = hashlib.sha256()
    for name, shape, pieces in arrays:
        sha.update(f"{name}|{np.dtype(np.float32).str}|{shape}|".encode())
        for piece in pieces:
            sha.update(np.ascontiguousarray(piece))
    return sha.hexdigest()


def check_same(group: Group, text: str, what: str, error: type[LockstepError] = NumericsError) -> None:
    """Raise on all ranks, naming the ranks that differ from rank 0, unless all brought the same text.

    Ranks   all call
    """
    texts = group.gather_texts(text)
    differ = [r for r, t in enumerate(texts) if t != texts[0]]
    if differ:
        ranks = ", ".join(_first_few(differ))
        raise error(f"{what}: rank {ranks} has {texts[differ[0]]}, rank 0 has {texts[0]}")


def check_replicas(group: Group, arrays: dict[str, np.ndarray], what: str) -> None:
    """Raise on all ranks, naming ranks and arrays, unless all hold the same bits in replicated arrays.

    arrays   host arrays by name     what   which state they are, for the message
    Where most ranks agree, the others are named; else those that differ from rank 0.
    Ranks   all call (Allgather of 8 bytes; of a line for each array where they differ)
    """
    if group.size == 1:
        return
    own = int(digest(arrays)[:15], 16)
    keys = group.gather_integers(np.array([own]))[:, 0].tolist()
    if len(set(keys)) == 1:
        return
    right = max(range(group.size), key=lambda rank: (keys.count(keys[rank]), -rank))
    ranks = [rank for rank, key in enumerate(keys) if key != keys[right]]
    lines = group.gather_texts("\n".join(f"{name} {digest({name: arrays[name]})}" for name in sorted(arrays)))
    odd = set(lines[ranks[0]].split("\n")) ^ set(lines[right].split("\n"))
    names = ", ".join(_first_few(sorted({line.rpartition(" ")[0] for line in odd})))
    raise NumericsError(
        f"{what}: rank {', '.join(_first_few(ranks))} differs from rank {right} in {names}; ranks on unlike "
        "processors or libraries, or damaged memory, do that (run.portable = true prevents the first)"
    )


def _first_few(found: list[Any]) -> list[str]:
    """Up to eight of them as text, and how many more there are."""
    more = [f"{len(found) - 8} more"] if len(found) > 8 else []
    return [str(each) for each in found[:8]] + more


def abort_on_uncaught() -> None:
    """Install a hook that prints rank and traceback and ends all ranks: the others would wait for ever."""

    def hook(kind: type[BaseException], value: BaseException, trace: object) -> None:
        abort(value)

    sys.excepthook = hook


def abort(error: BaseException) -> None:
    """Print this rank's traceback and end every rank of the job."""
    _print_trace(error)
    end_all()


def abort_short(text: str) -> None:
    """Print one line of this rank and end every rank of the job: the others would wait for ever."""
    with suppress(OSError):
        sys.stderr.write(f"lockstep: error: rank {MPI.COMM_WORLD.Get_rank()}: {printable(text)}\n")
        sys.stderr.flush()
    end_all()


def leave_together(comm: MPI.Comm, limit_s: float = ALONE_S) -> None:
    """Wait until all ranks are about to leave; a rank that an error has made leave alone ends the others.

    An error that ends a run is raised on all ranks alike. Where one was not, by a mistake of this program,
    the others wait in a collective for a rank that waits for them to leave: neither would ever end.
    limit_s   seconds that the others may take
    Ranks     all call
    """
    if comm.Get_size() == 1:
        return
    met, until = comm.Ibarrier(), time.monotonic() + limit_s
    while not met.Test():
        if time.monotonic() > until:
            abort_short(f"it ended alone, and the others did not within {limit_s:g} s")
        beat()
        time.sleep(NAP_S)


def end_all() -> None:
    """End every rank with exit code 1; an Abort that comes back before the launcher acts ends here."""
    time.sleep(SAID_S)
    MPI.COMM_WORLD.Abort(1)
    os._exit(1)


def _print_trace(error: BaseException) -> None:
    """The traceback on standard error, each line beginning with this rank."""
    rank, text = MPI.COMM_WORLD.Get_rank(), "".join(traceback.format_exception(error))
    with suppress(OSError):  # nobody may be there to read it
        sys.stderr.write("".join(f"[rank {rank}] {printable(line)}\n" for line in text.splitlines()))
        sys.stderr.flush()
