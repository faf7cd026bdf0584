"""The GPU kernels compile where a CUDA compiler is: nothing here runs them."""

import ast
import shutil
import subprocess

import pytest
from jobs import ROOT

pytestmark = pytest.mark.mpi_skip


def source():
    """The CUDA source in app/cuda.py, read without importing CuPy."""
    tree = ast.parse((ROOT / "app" / "cuda.py").read_text())
    values = [n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "SOURCE"]
    return ast.literal_eval(values[0])


def test_every_kernel_compiles_without_spills(tmp_path):
    compiler = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if compiler is None:
        pytest.skip("no nvcc on PATH or in /usr/local/cuda/bin")
    file = tmp_path / "kernels.cu"
    file.write_text(source())
    command = [compiler, "-arch=sm_90", "-cubin", "--fmad=false", "-Xptxas", "-v", "-o", tmp_path / "k", file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("spmm_add", "fold", "row_product", "block_gram"):
        assert f"'{name}'" in done.stderr
    assert "0 bytes spill stores" in done.stderr
    assert done.stderr.count("bytes spill stores") == done.stderr.count(" 0 bytes spill stores")
