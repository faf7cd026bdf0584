"""From the text of a CUDA C source to a file that the driver loads, compiled once and kept on disk.

CuPy compiles what it is handed as text with `-ftz=true`, which comes after all other options and makes zeros
of numbers below 2^-126: their bits would not be the CPU's. So NVRTC is called through CuPy with our options
alone, and CuPy is handed the file.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

# Products are rounded (__fmul_rn) or fused (__fmaf_rn) by name; the first keeps others from being contracted.
OPTIONS = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++17")

SMALLEST = 'extern "C" __global__ void nothing(int count) {}\n'
NEEDED = 'NVRTC: pip install "cupy-cuda13x[ctk]" (CUDA 12: cupy-cuda12x[ctk]), or conda install cuda-nvrtc'


def check(cp: Any) -> None:
    """Compile and load the smallest of kernels for the current device. Raises RuntimeError."""
    try:
        cp.RawModule(path=str(binary(cp, "nothing", SMALLEST))).get_function("nothing")
    except RuntimeError:
        raise
    except Exception as error:  # the compiler's own, which is no RuntimeError: of a GPU that it does not know
        raise RuntimeError(f"no kernel can be compiled: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Of what an error says; its type where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def folder() -> Path:
    """Where CuPy keeps what it compiled, and so do we."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")


def binary(cp: Any, name: str, code: str) -> Path:
    """The file of a compiled source for the current device of `cp`, made where it is not there yet.

    name   of the source, for messages of the compiler
    Raises RuntimeError where there is no compiler
    """
    capability = cp.cuda.Device().compute_capability
    made_by = (OPTIONS, capability, cp.__version__, cp.cuda.runtime.runtimeGetVersion(), code)
    digest = hashlib.sha256(repr(made_by).encode()).hexdigest()[:32]
    path = folder() / f"lockstep_{name}_{digest}.cubin"
    if not path.exists():
        try:
            compiled, _ = cp.cuda.compiler.compile_using_nvrtc(code, OPTIONS, filename=f"{name}.cu")
        except (ImportError, OSError, RuntimeError) as error:
            raise RuntimeError(f"{first_line(error)}; kernels need {NEEDED}") from error
        _keep(path, compiled)
    return path


def _keep(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all: several ranks may be here."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
        part.write(content)
    Path(part.name).replace(path)
