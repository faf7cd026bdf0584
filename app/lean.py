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
    """Import scipy.sparse while NumPy does not name its submodules UNUSED, and scipy.sparse.csgraph without
    linear algebra.

    SciPy copies all that NumPy names (scipy/_lib/array_api_compat), which loads it, used or not.
    """
    named = {each: vars(np)[each] for each in LISTS if each in vars(np)}
    vars(np).update({each: type(names)(n for n in names if n not in UNUSED) for each, names in named.items()})
    try:
        import scipy.sparse  # noqa: F401

        _import_graphs()
    finally:
        vars(np).update(named)


def _import_graphs() -> None:
    """Import scipy.sparse.csgraph, whose `laplacian` is loaded when somebody calls it."""
    if GRAPHS in sys.modules:
        return
    stand_in = ModuleType(LAPLACIAN)
    stand_in.laplacian = _laplacian
    sys.modules[LAPLACIAN] = stand_in
    try:
        graphs = importlib.import_module(GRAPHS)
    finally:
        del sys.modules[LAPLACIAN]
    vars(graphs).pop("_laplacian", None)


def _laplacian(*arguments: Any, **named: Any) -> Any:
    """SciPy's function of this name."""
    return importlib.import_module(LAPLACIAN).laplacian(*arguments, **named)
