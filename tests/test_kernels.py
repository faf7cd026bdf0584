"""The GPU kernels compile where a CUDA compiler is, and need no memory for what registers hold."""

import re
import shutil
import subprocess

import pytest
from jobs import ROOT

from app.cuda.kernels import FOLDER, KERNELS, OPTIONS, source

pytestmark = pytest.mark.mpi_skip
CAPABILITIES = (80, 90)
FUNCTION = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def nvcc():
    """The CUDA compiler, or None."""
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def test_every_file_and_kernel_is_listed():
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(KERNELS)
    for file, names in KERNELS.items():
        text = source(file)
        assert "#include" not in text  # compilers need no search path
        assert [name for name in names if name not in text] == []


def test_products_are_never_contracted():
    """Every product and sum of floats is rounded by name; the option is for what may be overlooked."""
    assert "--fmad=false" in OPTIONS
    for file in KERNELS:
        assert not re.search(r"\bfmaf?\(|__fmaf", source(file))


def test_every_kernel_compiles_without_spills(tmp_path):
    """All files for two generations in a single compilation."""
    compiler = nvcc()
    if compiler is None:
        pytest.skip("no nvcc on PATH or in /usr/local/cuda/bin")
    # One translation unit costs a third of six; the names that files share are kept apart.
    text = (FOLDER / "common.cuh").read_text("utf-8")
    for file in KERNELS:
        body = (FOLDER / f"{file}.cu").read_text("utf-8").replace('#include "common.cuh"\n', "", 1)
        macros = sorted(set(re.findall(r"^#define (\w+)", body, re.MULTILINE)))
        text += f"namespace {file} {{\n{body}\n}}\n" + "".join(f"#undef {name}\n" for name in macros)
    path = tmp_path / "kernels.cu"
    path.write_text(text, "utf-8")
    targets = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in CAPABILITIES]
    flags = ["--fmad=false", "-std=c++17", "-fatbin", "--threads=2", "-Xptxas", "-v"]
    done = subprocess.run(
        [compiler, *targets, *flags, "-o", tmp_path / "kernels.fatbin", path],
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found, name = {}, None
    for line in done.stderr.splitlines():
        function, spills = FUNCTION.search(line), SPILLS.search(line)
        name = function.groups() if function else name
        if spills and name:
            found[name] = tuple(map(int, spills.groups()))
            name = None
    wanted = {(name, str(sm)) for names in KERNELS.values() for name in names for sm in CAPABILITIES}
    assert set(found) >= wanted
    assert {key: spilled for key, spilled in found.items() if any(spilled)} == {}


def test_the_sources_are_installed():
    """They are package data: a wheel without them could not open a GPU."""
    assert "kernels/*.cu" in (ROOT / "pyproject.toml").read_text("utf-8")
