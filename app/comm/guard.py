"""What keeps ranks together when something fails: shared errors, equal replicas, an abort."""

import hashlib
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
from mpi4py import MPI

from app.comm.group import Group
from app.errors import CaseError, GraphError, LockstepError, NumericsError, OtherRankFailed

_KINDS = {1: CaseError, 2: GraphError, 3: NumericsError, 4: OtherRankFailed}


@contextmanager
def raise_together(group: Group, what: str) -> Iterator[None]:
    """Run work that may fail on some ranks only; all ranks leave with the same error.

    No collective may be called inside. Of several failing ranks the lowest one's error is raised on all.
    Ranks   all enter
    """
    failure: BaseException | None = None
    try:
        yield
    except Exception as error:  # re-raised below, on every rank
        failure = error
    share_failure(group, failure, what)


def share_failure(group: Group, failure: BaseException | None, what: str) -> None:
    """Raise the lowest failing rank's error on all ranks; return where no rank failed. Ranks: all call."""
    code = 0
    if failure is not None:
        code = next((k for k, kind in _KINDS.items() if isinstance(failure, kind)), 4)
    codes = group.gather_integers(np.array([code]))[:, 0]
    if not codes.any():
        return
    first = int(np.flatnonzero(codes)[0])
    if failure is not None and not isinstance(failure, LockstepError):
        traceback.print_exception(failure)
    text = group.broadcast_text(_one_line(failure), first)
    if failure is not None and group.rank == first:
        raise failure
    raise _KINDS[int(codes[first])](text if codes[first] != 4 else f"{what}: rank {first}: {text}")


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
        ranks = ", ".join(map(str, differ[:8])) + (" ..." if len(differ) > 8 else "")
        raise error(f"{what}: rank {ranks} has {texts[differ[0]]}, rank 0 has {texts[0]}")


def abort_on_uncaught() -> None:
    """Install a hook that prints rank and traceback and ends all ranks: the others would wait for ever."""

    def hook(kind: type[BaseException], value: BaseException, trace: object) -> None:
        abort(value)

    sys.excepthook = hook


def abort(error: BaseException, code: int = 1) -> None:
    """Print this rank's traceback and end every rank of the job."""
    rank = MPI.COMM_WORLD.Get_rank()
    text = "".join(traceback.format_exception(error))
    sys.stderr.write("".join(f"[rank {rank}] {line}\n" for line in text.splitlines()))
    sys.stderr.flush()
    MPI.COMM_WORLD.Abort(code)


def abort_short(text: str, code: int = 1) -> None:
    """Print one line of this rank and end every rank of the job: the others would wait for ever."""
    sys.stderr.write(f"lockstep: error: rank {MPI.COMM_WORLD.Get_rank()}: {text}\n")
    sys.stderr.flush()
    MPI.COMM_WORLD.Abort(code)
