"""Threads of the linear algebra libraries: one for each rank, unless LOCKSTEP_THREADS says otherwise.

Ranks share a machine, and work that is split between threads may be added in another order.
"""

import functools
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any

from app.errors import CaseError
from app.text import show

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
MOST = 4096


def wanted() -> int:
    """Threads that each rank may use. Raises CaseError."""
    threads = os.environ.get("LOCKSTEP_THREADS", "1")
    if not (threads.isascii() and threads.isdigit() and 1 <= int(threads) <= MOST):
        raise CaseError(f"LOCKSTEP_THREADS: must be from 1 to {MOST}, got {show(threads)}")
    return int(threads)


def limit_threads() -> None:
    """For the whole process, before NumPy is imported: only then the libraries read their counts."""
    os.environ.update(dict.fromkeys(VARIABLES, str(wanted())))


def with_few_threads(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, during whose calls linear algebra has as many threads as under run.py; then as before."""

    @functools.wraps(function)
    def limited(*arguments: Any, **named: Any) -> Any:
        with _limits(wanted()):
            return function(*arguments, **named)

    return limited


def _limits(threads: int) -> AbstractContextManager[Any]:
    """The libraries keep to so many threads while it is entered; without threadpoolctl they do not."""
    if find_spec("threadpoolctl") is None:
        return nullcontext()
    import scipy.linalg  # noqa: F401  its library can be limited once it is loaded

    return _libraries(len(sys.modules)).limit(limits=threads, user_api="blas")


@functools.lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """The libraries that the process has loaded; to look for them takes a millisecond or more.

    modules   that there are: while there are no more, imports have brought no other library
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
