"""The GPU kernels compile where a CUDA compiler is, and need no memory for what registers hold."""

import ctypes
import ctypes.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import ROOT

from app.cuda.compiler import OPTIONS
from app.cuda.kernels import FOLDER, KERNELS, source

pytestmark = pytest.mark.mpi_skip
NEWEST = 90
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
        calls = re.findall(r"\bfmaf?\(|__fmaf\w*", source(file))
        assert calls == ["__fmaf_rn"]  # that of common.cuh
        own = source(file).replace((FOLDER / "common.cuh").read_text("utf-8"), "")
        assert ("fused(" in own) == (file in {"dense", "edges", "gram"})


@pytest.mark.parametrize("capabilities", [(NEWEST,), pytest.param((75, 80), marks=pytest.mark.long)])
def test_every_kernel_compiles_without_spills(tmp_path, capabilities):
    """All files in a single compilation."""
    compiler = nvcc()
    if compiler is None:
        pytest.skip("no nvcc on PATH or in /usr/local/cuda/bin")
    if shutil.which("g++") is None:
        pytest.skip("no g++, which nvcc calls")
    # One translation unit costs a third of six; the names that files share are kept apart.
    text = common = (FOLDER / "common.cuh").read_text("utf-8")
    for file in KERNELS:
        body = source(file).replace(common, "", 1)
        macros = sorted(set(re.findall(r"^#define (\w+)", body, re.MULTILINE)))
        text += f"namespace {file} {{\n{body}\n}}\n" + "".join(f"#undef {name}\n" for name in macros)
    path = tmp_path / "kernels.cu"
    path.write_text(text, "utf-8")
    targets = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in capabilities]
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
    wanted = {(name, str(sm)) for names in KERNELS.values() for name in names for sm in capabilities}
    assert set(found) >= wanted
    assert {key: spilled for key, spilled in found.items() if any(spilled)} == {}


def nvrtc():
    """The compiler that CuPy uses, from a wheel, a toolkit or the system; or None."""
    places = [Path(each) for each in sys.path if Path(each, "nvidia").is_dir()]
    wheels = [path for each in places for path in each.glob("nvidia/*/lib/libnvrtc.so.*")]
    toolkit = Path("/usr/local/cuda/lib64").glob("libnvrtc.so.*")
    found = [str(path) for path in (*wheels, *toolkit) if "builtins" not in path.name]
    found = found or [name for name in [ctypes.util.find_library("nvrtc")] if name]
    return ctypes.CDLL(found[0]) if found else None


def compile_at_run_time(library, code, capability):
    """What NVRTC says of a source; "" where it compiles."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = [each.encode() for each in (*OPTIONS, f"--gpu-architecture=compute_{capability}")]
    library.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"kernels.cu", 0, None, None)
    failed = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() if failed else ""


def test_every_source_compiles_as_cupy_compiles_it():
    """Without any header, by NVRTC."""
    library = nvrtc()
    if library is None:
        pytest.skip("no NVRTC: neither the wheel nvidia-cuda-nvrtc nor a toolkit's library")
    assert "error" in compile_at_run_time(library, "__global__ void f() { nothing; }", NEWEST)
    for file in KERNELS:
        assert compile_at_run_time(library, source(file), NEWEST) == ""


def test_the_sources_are_installed():
    """They are package data: a wheel without them could not open a GPU."""
    assert "kernels/*.cu" in (ROOT / "pyproject.toml").read_text("utf-8")
