"""SciPy's sparse matrices and graphs without what else their import loads: a third of the start of a run."""

import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as np

UNUSED = frozenset({"f2py", "testing"})  # a compiler of Fortran, and what tests are written with
LISTS = ("__all__", "__numpy_submodules__")  # in which NumPy names them; it loads them as they are asked for
GRAPHS = "scipy.sparse.csgraph"
LAPLACIAN = f"{GRAPHS}._laplacian"  # the one part of it that loads scipy.sparse.linalg, hence scipy.linalg


def import_sparse() -> None:
    """`import_matrices`, and scipy.sparse.csgraph, where it is imported later, does not load linear algebra.

    For processes that are this program's alone.
    """
    import_matrices()
    _stand_in_for_laplacian()


def import_matrices() -> None:
    """Import scipy.sparse while NumPy does not name its submodules UNUSED.

    SciPy copies all that NumPy names (scipy/_lib/array_api_compat), which loads it, used or not.
    """
    named = {each: vars(np)[each] for each in LISTS if each in vars(np)}
    vars(np).update({each: type(names)(n for n in names if n not in UNUSED) for each, names in named.items()})
    try:
        import scipy.sparse  # noqa: F401
    finally:
        vars(np).update(named)


def _stand_in_for_laplacian() -> None:
    """Let scipy.sparse.csgraph find a module whose `laplacian` is SciPy's, loaded by the first call."""
    if GRAPHS in sys.modules or LAPLACIAN in sys.modules:
        return
    stand_in = ModuleType(LAPLACIAN, "SciPy's module of this name, until it is needed.")

    def laplacian(*arguments: Any, **named: Any) -> Any:
        """scipy.sparse.csgraph.laplacian."""
        if sys.modules.get(LAPLACIAN) is stand_in:
            del sys.modules[LAPLACIAN]
        return importlib.import_module(LAPLACIAN).laplacian(*arguments, **named)

    stand_in.laplacian = laplacian
    sys.modules[LAPLACIAN] = stand_in
