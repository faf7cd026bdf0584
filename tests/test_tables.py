"""Tables of names: what a name stands for is imported when it is looked up."""

import subprocess
import sys

import numpy as np
import pytest
from jobs import ROOT

from app.errors import CaseError
from app.lean import import_sparse
from app.tables import Table

pytestmark = pytest.mark.mpi_skip


def test_a_thing_is_imported_when_it_is_looked_up():
    text = """
import sys
from app.tables import Table
table = Table({"calendar": "calendar:Calendar", "none": "no.such.module:thing"})
assert list(table) == ["calendar", "none"] and len(table) == 2 and "none" in table and "other" not in table
assert "calendar" not in sys.modules
import_calendar = table["calendar"]
assert import_calendar is sys.modules["calendar"].Calendar is table.get("calendar")
"""
    subprocess.run([sys.executable, "-c", text], cwd=ROOT, timeout=60, check=True)


def test_an_unknown_name():
    table = Table({"a": "app.errors:CaseError"})
    assert table["a"] is CaseError and table.get("b") is None
    table.check("x.kind", "kind", "a")
    with pytest.raises(CaseError, match=r"^x\.kind: unknown kind 'b'; known: a$"):
        table.check("x.kind", "kind", "b")
    with pytest.raises(KeyError):
        table["b"]


def test_things_from_outside():
    table = Table({"a": "app.errors:CaseError"})
    table["own"] = dict
    assert table["own"] is dict and list(table) == ["a", "own"]
    del table["own"]
    assert list(table) == ["a"]


def test_numpy_names_its_submodules_again():
    before = list(np.__all__)
    import_sparse()
    assert np.__all__ == before and "testing" in before and np.testing.assert_equal


def test_sparse_graphs_come_without_linear_algebra():
    text = """
import sys
from app.lean import import_sparse
import_sparse()
import numpy, scipy.sparse as sp
from scipy.sparse import csgraph
assert "scipy.linalg" not in sys.modules and "scipy.sparse.linalg" not in sys.modules
path = sp.csr_matrix([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
assert csgraph.connected_components(path)[0] == 1
assert csgraph.laplacian(path).toarray().tolist() == [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]
import scipy.sparse.csgraph._laplacian as whole
assert whole.__file__ and whole.laplacian(path).toarray()[1].tolist() == [-1, 2, -1]
"""
    subprocess.run([sys.executable, "-c", text], cwd=ROOT, timeout=60, check=True)


def test_calls_from_python_load_no_compiler_of_fortran():
    """And leave SciPy as it is to whoever else uses it."""
    text = """
import sys
from app import solve
assert callable(solve) and not {"numpy.f2py", "numpy.testing"} & set(sys.modules)
import numpy, scipy.sparse.csgraph._laplacian as whole
assert whole.__file__ and numpy.testing.assert_equal and "f2py" in numpy.__all__
"""
    subprocess.run([sys.executable, "-c", text], cwd=ROOT, timeout=60, check=True)
