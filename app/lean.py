"""SciPy's sparse matrices without what else their import loads: a sixth of the start of a run."""

import numpy as np

UNUSED = frozenset({"f2py", "testing"})  # a compiler of Fortran, and what tests are written with
LISTS = ("__all__", "__numpy_submodules__")  # in which NumPy names them; it loads them as they are asked for


def import_sparse() -> None:
    """Import scipy.sparse while NumPy does not name its submodules UNUSED.

    SciPy copies all that NumPy names (scipy/_lib/array_api_compat), which loads it, used or not.
    """
    named = {each: vars(np)[each] for each in LISTS if each in vars(np)}
    vars(np).update({each: type(names)(n for n in names if n not in UNUSED) for each, names in named.items()})
    try:
        import scipy.sparse  # noqa: F401
    finally:
        vars(np).update(named)
